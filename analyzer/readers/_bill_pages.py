"""Pages of usage and cost APIs: buckets of time, each with a list of results."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

from analyzer.contract.types import Batch, Problem
from analyzer.readers._bill import moment
from analyzer.readers._document import small_document
from analyzer.readers._exports import Begin, Take, read_rows
from analyzer.readers._file import BOM, Head, InputFile
from analyzer.readers._jsonl import Bad, Sink, Skip
from analyzer.readers._reader import Options

EMPTY = "an interval in which nothing was used"
MORE = "it is one page of several (has_more): the others belong beside it"
_MORE = re.compile(rb'"has_more"\s*:\s*true')
_END_BYTES = 4096
Period = tuple[int | None, int | None]
TakeResult = Callable[[dict[str, Any], Period, int, Sink], None]


def read_pages(file: InputFile, options: Options, take: Take) -> Iterator[Batch]:
    """Every row or bucket with exact numbers, and whether the page says that more follow."""
    yield from read_rows(file, options, take, exact=True)
    if file.head.data.removeprefix(BOM).lstrip()[:1] in (b"{", b"["):
        end = b""
        for block in file.blocks():
            end = (end + block)[-_END_BYTES:]
        if _MORE.search(end):
            yield Batch(assumed=(MORE,))


def is_empty_page(head: Head) -> bool:
    """A page without a bucket, which does not tell of what it is."""
    value = small_document(head)
    return value is not None and value.get("data") == [] and "has_more" in value


def result_keys(begin: Begin, bucket: set[str]) -> set[str] | None:
    """Keys of the results of buckets with these keys; None where there is no such bucket."""
    keys: set[str] = set()
    whole = False
    for row in begin.rows:
        page = row.get("data")
        for one in page if isinstance(page, list) else (row,):
            if isinstance(one, dict) and one.keys() >= bucket and isinstance(one["results"], list):
                whole = True
                keys |= {key for some in one["results"] if isinstance(some, dict) for key in some}
    for outer, inner in pairwise([*begin.cut, set[str]()]):
        if outer >= bucket:
            whole = True
            keys |= inner
    return keys if whole else None


def period_of(row: dict[str, Any], edges: tuple[str, str], sink: Sink) -> Period:
    """The interval of a bucket or row; its end is exclusive."""
    begin, end = (moment(row.get(edge), edge, sink) for edge in edges)
    if begin is None:
        raise Bad(f"it has no {edges[0]}")
    return begin, end


def take_buckets(
    row: dict[str, Any], edges: tuple[str, str], record: int, sink: Sink, take: TakeResult
) -> bool:
    """Calls ``take`` for each result of a bucket, or of the page that ``row`` is; False if none."""
    if isinstance(row.get("data"), list):
        buckets = row["data"]
    elif isinstance(row.get("results"), list):
        buckets = [row]
    else:
        return False
    told, found = len(sink.problems), False
    for bucket in buckets:
        if not isinstance(bucket, dict) or not isinstance(bucket.get("results"), list):
            sink.problems.append(Problem(record, "a bucket that has no list of results"))
            continue
        period = period_of(bucket, edges, sink)
        for result in bucket["results"]:
            found |= _took(result, period, record, sink, take)
    if not found and len(sink.problems) == told:
        raise Skip(EMPTY)
    return True


def _took(result: Any, period: Period, record: int, sink: Sink, take: TakeResult) -> bool:  # noqa: ANN401
    """One bad result costs itself, not its neighbours."""
    if not isinstance(result, dict):
        sink.problems.append(Problem(record, "a result that is no object"))
        return False
    try:
        take(result, period, record, sink)
    except Skip:
        return False
    except Bad as bad:
        sink.problems.append(Problem(record, str(bad)))
        return False
    return True

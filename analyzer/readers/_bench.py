"""Result files of load generators: runs that follow one another, each with a column a number.

The files name no request, so each gets an id from file name, content and place.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Callable, Iterator
from itertools import accumulate
from pathlib import PurePosixPath
from typing import Any

import pyarrow as pa

from analyzer.contract.types import Batch, Problem
from analyzer.readers._document import each_value, read_all
from analyzer.readers._file import Head, InputFile
from analyzer.readers._jsonl import Bad, Sink
from analyzer.readers._reader import Claim
from analyzer.readers._rows import excerpt
from analyzer.readers._times import DURATIONS

_MAX_BYTES = 1 << 30
_ENDINGS = (".gz", ".zst", ".jsonl", ".json")


@dataclasses.dataclass
class Run:
    """One run: its columns, and the rows made of them."""

    value: dict[str, Any]
    name: str
    columns: dict[str, list[Any]] = dataclasses.field(default_factory=dict)
    sink: Sink = dataclasses.field(default_factory=Sink)
    _records: list[int] = dataclasses.field(default_factory=list)
    _indices: list[int] = dataclasses.field(default_factory=list)
    _offsets: list[int] = dataclasses.field(default_factory=list)

    def at(self, column: str, i: int) -> Any:  # noqa: ANN401 - foreign JSON
        """One entry of a column, None where the run lacks it."""
        return self.columns[column][i] if column in self.columns else None

    def requests(self, names: tuple[str, ...], needed: set[str], summary: str) -> int:
        """How many requests the columns hold; :class:`Bad` where they hold none, or disagree."""
        for name in names:
            if isinstance(self.value.get(name), list):
                self.columns[name] = self.value[name]
        lengths = {len(column) for column in self.columns.values()}
        if not needed & self.columns.keys():
            raise Bad(summary)
        if len(lengths) > 1:
            raise Bad(f"its columns differ in length: {', '.join(map(str, sorted(lengths)))}")
        return lengths.pop()

    def offsets(self, i: int, ttft_ns: int | None) -> list[int]:
        """When each chunk of a request came, from its TTFT and the gaps after it."""
        gaps = self.at("itls", i)
        steps = [ns_of(gap, "itls") or 0 for gap in gaps] if isinstance(gaps, list) else []
        offsets = list(accumulate([ttft_ns, *steps])) if ttft_ns is not None else []
        if offsets and offsets[-1] not in DURATIONS:
            raise Bad("its gaps add up to more than any request")
        return offsets

    def chunks(self, record: int, offsets: list[int]) -> None:
        """The chunks of one request, in order."""
        self._records += [record] * len(offsets)
        self._indices += range(len(offsets))
        self._offsets += offsets

    def batch(self, count: int) -> Batch:
        """What the store gets; the chunk table is too long for rows."""
        batch = self.sink.batch(count)
        if not self._records:
            return batch
        columns = {
            "record": pa.array(self._records, pa.int64()),
            "chunk_index": pa.array(self._indices, pa.int64()),
            "offset_ns": pa.array(self._offsets, pa.int64()),
            "kind": pa.array(["content"] * len(self._records)),
        }
        return dataclasses.replace(batch, tables={**batch.tables, "chunk": pa.table(columns)})


def run_claim(
    head: Head, scalars: tuple[bytes, ...], columns: tuple[str, ...], summary: str
) -> Claim:
    """A claim on an object with the scalars of a run and one column of numbers or more."""
    if not head.data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        return Claim(0, "it is no JSON object")
    keys = set(re.findall(rb'"(\w+)"\s*:', head.data))
    missing = [name.decode() for name in scalars if name not in keys]
    if missing:
        share = 1 - len(missing) / len(scalars)
        return Claim(0.7 * share, f"it lacks {', '.join(missing)}")
    if not any(name.encode() in keys for name in columns):
        return Claim(0.9, f"it is {summary}")
    return Claim(1, "")


def ns_of(value: Any, column: str) -> int | None:  # noqa: ANN401
    """Seconds to ns without Decimal: a run has a million gaps, and its floats are no stamps."""
    if value is None:
        return None
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise Bad(f"an entry of {column!r} is no number")
    if not 0 <= value * 1e9 < DURATIONS.stop:
        raise Bad(f"an entry of {column!r} is no duration")
    return round(value * 1e9)


def read_runs(
    file: InputFile, count_of: Callable[[Run], int], take: Callable[[Run, int, int], None]
) -> Iterator[Batch]:
    """A batch a run: ``count_of(run)`` requests, ``take(run, i, record)`` makes the rows of one.

    Both may raise :class:`Bad`: the first costs the run, the second one request.
    """
    try:
        text = read_all(file, _MAX_BYTES).decode("utf-8", "replace").lstrip("\ufeff")
    except ValueError as error:
        yield Batch(records=1, problems=(Problem(1, str(error)),))
        return
    stem = PurePosixPath(file.name).name
    for ending in _ENDINGS:
        stem = stem.removesuffix(ending)
    records = end = 0
    for number, (start, stop, value) in enumerate(each_value(text), 1):
        # Two files of one name must not share ids, so the content is part of them.
        digest = hashlib.sha256(text[start:stop].encode("utf-8", "replace")).hexdigest()[:8]
        run = Run(value if isinstance(value, dict) else {}, f"{stem}:{digest}#{number}")
        batch = _read_run(run, records, text[start : start + 1000], count_of, take)
        records += batch.records
        end = stop
        yield batch
    if text[end:].strip():
        reason = (
            "the run breaks off or is damaged here: its columns stand at the end, write it anew"
        )
        offset = len(text[:end].encode("utf-8", "replace"))
        problem = Problem(records + 1, reason, excerpt(text[end : end + 1000]), offset)
        yield Batch(records=1, problems=(problem,))


def _read_run(
    run: Run,
    before: int,
    text: str,
    count_of: Callable[[Run], int],
    take: Callable[[Run, int, int], None],
) -> Batch:
    try:
        count = count_of(run)
    except Bad as bad:
        return Batch(records=1, problems=(Problem(before + 1, str(bad), excerpt(text)),))
    for i in range(count):
        try:
            take(run, i, before + i + 1)
        except Bad as bad:
            reason = f"request {i + 1} of its run: {bad}"
            run.sink.problems.append(Problem(before + i + 1, reason))
    return run.batch(count)

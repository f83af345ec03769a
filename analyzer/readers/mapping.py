"""Foreign tables of requests (CSV, JSON Lines, Parquet), read as a mapping file says.

Mappings that ship are recognised by the exact names of the columns; any other is given with
``--mapping FILE``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import chain
from typing import Any

import msgspec
import polars as pl
import pyarrow as pa

from analyzer.contract.types import Batch, Problem, Resume
from analyzer.readers import _mapping_cells as cells
from analyzer.readers._file import Head, InputFile
from analyzer.readers._mapping import DERIVED, FACTS, Plan, Target
from analyzer.readers._mapping_head import closest, misfit, recognised, shape_of
from analyzer.readers._mapping_parquet import parquet_chunks
from analyzer.readers._mapping_rows import Chunk, text_chunks
from analyzer.readers._reader import Claim, Options, Reader
from analyzer.readers._rows import clean
from analyzer.readers._usage import NOT_THE_SUM

_INPUT = (
    "cache_read_tokens", "cache_write_short_tokens", "cache_write_long_tokens",
    "cache_write_unknown_tokens",
)  # fmt: skip
_MOST_HASH = 200
_ZONED = r"([Zz]|[+-][0-9]{2}:?[0-9]{2})$"
_RELATIVE = "its times count from an origin of their own: no request of it has a date"
_NO_FIRST = "a time to first token of exactly 0 means that no token came: it is left out"
# No engine makes ten thousand tokens a second for one stream: first and last came together.
_PIECE_NS, _PIECE_TOKEN_NS = 5_000_000, 100_000
_AT_ONCE = (
    "answers whose last token came within 5 ms of the first, at under 0.1 ms a token, were not "
    "streamed: their time to first token is left out"
)


def probe(head: Head) -> Claim:
    """A table with exactly the columns of a mapping that ships."""
    shape = shape_of(head)
    return Claim(1, "") if recognised(shape) else Claim(*closest(shape))


def read(file: InputFile, options: Options) -> Iterator[Batch]:
    """One ``request`` row a row; the header of a CSV is an ignored line."""
    plan, head = options.mapping, file.head
    if not head.data:
        return
    shape = shape_of(head, plan)
    plan = plan or recognised(shape)
    why = misfit(plan, head) if plan else closest(shape)[1]
    if plan is None or shape is None or why:
        yield Batch(records=1, problems=(Problem(1, why),))
        return
    table = _Table(plan, options)
    if shape.kind == "parquet":
        chunks = parquet_chunks(file, plan)
    else:
        chunks = text_chunks(file, shape, plan, options.resume)
    resume: Resume | None = None
    for chunk in chunks:
        resume = chunk.resume
        yield table.batch(chunk)
    yield Batch(resume=resume)


class _Table:
    """Turns chunks into batches."""

    def __init__(self, plan: Plan, options: Options) -> None:
        self._plan = plan
        self._zone = plan.file.zone or options.zone or "UTC"
        why = "as the option says" if options.zone else "for want of a better"
        self._no_zone = f"its times name no zone: {self._zone} was taken, {why}"
        self._ours = {one.ours: one for one in plan.targets}
        self._assumed: set[str] = set()
        if options.mapping is None:
            self._assumed.add(f"its columns mean what they mean in {plan.file.title}")
        if any(one.relative for one in plan.targets):
            self._assumed.add(_RELATIVE)

    def batch(self, chunk: Chunk) -> Batch:
        """Rows, tags and prompt blocks of one chunk, and the account of its records."""
        reasons: dict[int, list[str]] = defaultdict(list)
        tables: dict[str, pa.Table] = {}
        ignored = chunk.ignored
        if chunk.frame.height:
            records = chunk.frame["record"]
            self._bad = reasons
            rows = self._rows(chunk.frame)
            told = rows.filter(pl.any_horizontal(pl.exclude("record").is_not_null()))
            if "vantage" in rows.columns:  # a row that does not say where it was recorded is none
                told = told.filter(pl.col("vantage").is_not_null())
            for record in records.filter(~records.is_in(told["record"].implode())):
                if record not in reasons:
                    ignored["row without values"] += 1
            tables = self._tables(chunk.frame, told)
        problems = [
            *chunk.problems,
            *(
                Problem(record, "; ".join(why), *chunk.place(record))
                for record, why in sorted(reasons.items())
            ),
        ]
        lost = len({problem.record for problem in problems})
        used = chunk.records - ignored.total() - lost
        told_ignored = {name: count for name, count in ignored.items() if count}
        assumed = tuple(sorted(self._assumed))
        return Batch(tables, chunk.records, used, told_ignored, tuple(problems), assumed)

    # -- columns --------------------------------------------------------------------------------

    def _mark(self, records: pl.Series, mask: pl.Series, reason: str) -> None:
        if mask.any():
            for record in records.filter(mask):
                self._bad[record].append(reason)

    def _rows(self, frame: pl.DataFrame) -> pl.DataFrame:
        """What the cells of each row tell, in our columns and units."""
        records = frame["record"]
        out: dict[str, pl.Series] = {"record": records}
        for target in self._plan.targets:
            if target.kind == "list":
                continue
            values, bad = self._converted(frame[target.theirs], target)
            self._mark(records, bad, cells.reason(target))
            out[target.ours] = values
        rows = pl.DataFrame(out)
        rows = self._durations(rows)
        rows = self._first_tokens(rows)
        if self._plan.file.tokens == "inclusive":
            rows = self._less(rows, "input_fresh_tokens", _INPUT, "cached than its input counts")
            rows = self._less(
                rows, "output_visible_tokens", ("output_reasoning_tokens",),
                "spent on reasoning than its output counts",
            )  # fmt: skip
        return self._checked(rows)

    def _converted(self, column: pl.Series, target: Target) -> cells.Converted:
        if column.dtype == pl.Object:
            column = pl.Series(
                [None if one is None else cells.NESTED for one in column], dtype=pl.String
            )
        column = cells.trimmed(column, self._plan)
        unzoned = target.format and "%z" not in target.format
        if target.unit == "rfc3339" and column.dtype == pl.String:
            unzoned = (~column.str.contains(_ZONED)).any()
        if unzoned and not self._plan.file.zone:
            self._assumed.add(self._no_zone)
        return cells.convert(column, target, self._plan, self._zone)

    def _durations(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Differences of the times of a row."""
        for time, duration in DERIVED.items():
            if time not in rows.columns:
                continue
            early, late = ("start_ns", time) if duration != "hold_ns" else (time, "start_ns")
            between = rows[late] - rows[early]
            backwards = (between < 0).fill_null(value=False)
            theirs = f"{self._ours[early].theirs!r} is after {self._ours[late].theirs!r}"
            self._mark(rows["record"], backwards, theirs)
            rows = rows.with_columns(between.set(backwards, None).alias(duration)).drop(time)
        return rows

    def _first_tokens(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Without a time to first token where none came, or where all tokens came with it."""
        if "ttft_ns" not in rows.columns:
            return rows
        ttft = rows["ttft_ns"]
        none = (ttft == 0).fill_null(value=False)
        if none.any():
            self._assumed.add(_NO_FIRST)
        made = [
            n for n in ("output_visible_tokens", "output_reasoning_tokens") if n in rows.columns
        ]
        if "e2e_ns" in rows.columns and made:
            rest = rows["e2e_ns"] - ttft
            gaps = rows.select(pl.max_horizontal(made)).to_series() - 1
            at_once = rest.is_between(0, _PIECE_NS) & (gaps > 0) & (rest < gaps * _PIECE_TOKEN_NS)
            at_once = at_once.fill_null(value=False) & ~none
            if at_once.any():
                self._assumed.add(_AT_ONCE)
            none |= at_once
        return rows.with_columns(ttft.set(none, None))

    def _less(
        self, rows: pl.DataFrame, whole: str, parts: tuple[str, ...], what: str
    ) -> pl.DataFrame:
        """A total without its parts, which are counted in columns of their own."""
        there = [name for name in parts if name in rows.columns]
        if whole not in rows.columns or not there:
            return rows
        rest = rows.select(pl.col(whole) - pl.sum_horizontal(there)).to_series()
        over = (rest < 0).fill_null(value=False)
        self._mark(
            rows["record"], over, f"more tokens {what}; if it does not: tokens = 'exclusive'"
        )
        return rows.with_columns(rest.set(over, None).alias(whole))

    def _checked(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Without the total that is only there to be compared with the sum of the buckets."""
        if "total_tokens" not in rows.columns:
            return rows
        parts = [name for name in rows.columns if name.endswith("_tokens")]
        parts = [n for n in parts if n not in ("total_tokens", "max_output_tokens")]
        differs = rows.select(
            pl.sum_horizontal(parts, ignore_nulls=False) != pl.col("total_tokens")
        ).to_series()
        total = self._ours["total_tokens"].theirs
        differs = differs.fill_null(value=False)
        self._mark(rows["record"], differs, f"{total!r} is not the sum of its parts")
        wrong = pl.when(differs).then(pl.lit(NOT_THE_SUM))
        return rows.drop("total_tokens").with_columns(usage_contradiction=wrong)

    # -- tables ---------------------------------------------------------------------------------

    def _tables(self, frame: pl.DataFrame, rows: pl.DataFrame) -> dict[str, pa.Table]:
        kept = frame.filter(frame["record"].is_in(rows["record"].implode()))
        tables = {"prompt_block": self._blocks(kept), "request_tag": self._tags(kept)}
        tables["request"] = self._requests(rows)
        return {name: table.to_arrow() for name, table in tables.items() if table.height}

    def _requests(self, rows: pl.DataFrame) -> pl.DataFrame:
        start = self._ours.get("start_ns")
        stated = any(one.kind == "duration" for one in self._plan.targets)
        constants = dict(self._plan.file.constants)
        if start is not None:
            clock = "monotonic" if start.relative else "wall"
            rows = rows.with_columns(
                pl.when(pl.col("start_ns").is_not_null()).then(pl.lit(clock)).alias("clock")
            )
        constants["timing"] = "stated" if stated else "stamps"
        if any(one.ours.endswith("_tokens") for one in self._plan.targets):
            constants["usage_convention"] = self._plan.file.tokens or "unknown"
        return rows.with_columns(pl.lit(value).alias(name) for name, value in constants.items())

    def _tags(self, frame: pl.DataFrame) -> pl.DataFrame:
        found = []
        for name in self._plan.file.tags:
            column = frame[name]
            if column.dtype == pl.Object:
                column = pl.Series([cells.NESTED] * len(column), dtype=pl.String)
            values, bad = cells.labels(cells.trimmed(column, self._plan))
            self._mark(frame["record"], bad, f"{name!r} is too long for a label, or a list")
            found.append(
                pl.DataFrame(
                    {"record": frame["record"], "name": pl.repeat(name, len(values), eager=True)}
                ).with_columns(values.alias("value"))
            )
        return pl.concat(found).drop_nulls("value") if found else pl.DataFrame()

    def _blocks(self, frame: pl.DataFrame) -> pl.DataFrame:
        target = self._ours.get("prefix_hashes")
        if target is None:
            return pl.DataFrame()
        records: list[int] = []
        lists: list[list[Any]] = []
        for record, told in zip(frame["record"], frame[target.theirs], strict=True):
            if isinstance(told, str):
                told = _list_in(told)
            if isinstance(told, list) and set(map(type, told)) <= {int, str}:
                records.append(record)
                lists.append(told)
            elif told is not None:
                self._bad[record].append(cells.reason(target))
        return _exploded(records, lists)


def _list_in(text: str) -> Any:  # noqa: ANN401 - foreign JSON
    """The list a cell of CSV holds, as JSON; the text itself where it holds none."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text


def _exploded(records: list[int], lists: list[list[Any]]) -> pl.DataFrame:
    """A row for each hash of each list, with its place in the list."""
    sizes = pl.Series([len(one) for one in lists], dtype=pl.UInt32)
    flat = list(chain.from_iterable(lists))
    if set(map(type, flat)) == {int} and max(map(abs, flat)) < 2**63:
        hashes = pl.Series(flat, dtype=pl.Int64).cast(pl.String)
    else:
        hashes = pl.Series([clean(str(one)[:_MOST_HASH]) for one in flat], dtype=pl.String)
    owners = pl.DataFrame({"record": pl.Series(records, dtype=pl.Int64)}).select(
        pl.col("record").repeat_by(sizes).explode()
    )["record"]
    places = pl.Series(list(chain.from_iterable(map(range, sizes))), dtype=pl.Int64)
    return pl.DataFrame(
        {
            "record": owners.drop_nulls(),  # an empty list explodes to a null
            "block_index": places,
            "prefix_hash": hashes,
        }
    )


_EXAMPLE = """\
tokens = "inclusive"  # the input counts what was cached
tags = ["tenant"]  # kept as labels
[columns]  # theirs = ours
"Request Id" = "request_id"
started = { to = "start_ns", unit = "epoch_ms" }
"usage.prompt" = "input_fresh_tokens"
latency = { to = "e2e_ns", unit = "s", optional = true }
# Received = { to = "start_ns", format = "%d.%m.%Y %H:%M:%S" }  # with zone = "Europe/Berlin"
[constants]
vantage = "gateway"  # or client, provider, engine
model = "orion-8b"
"""

READER = Reader(
    title="Tables of requests (CSV, JSON Lines, Parquet) through a mapping file; traces of Azure, "
    "BurstGPT, Mooncake and Vidur without one",
    record_unit="row",
    gives=("request", "request_tag", "prompt_block"),
    probe=probe,
    read=read,
    docs="schemas/native/mapping.schema.json",
    cannot="what the table has no column for; chunk times",
    enable="write a mapping file as in the example, and ingest with --mapping FILE",
    checked_against="the Azure code trace of 2023, Mooncake's conversation trace, the Splitwise "
    "traces of Vidur; BurstGPT and Azure's other traces after their descriptions",
    example=_EXAMPLE,
    facts=FACTS,
)

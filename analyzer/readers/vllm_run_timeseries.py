"""``timeseries.csv`` of a vLLM benchmark run: the engine's state once a second."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from analyzer.contract.types import Batch, Problem, Resume
from analyzer.readers._file import Head, InputFile
from analyzer.readers._jsonl import Bad, Sink
from analyzer.readers._reader import Claim, Options, Reader
from analyzer.readers._rows import COUNTS, excerpt
from analyzer.readers._times import DURATIONS, seconds_to_ns

_COLUMNS = ("t", "prompt_throughput", "gen_throughput", "running", "waiting", "kv_cache_pct")
_NO_KV = "a kv_cache_pct of exactly 0 while requests run means it was not recorded"
_NO_DATE = (
    "its times count from the start of the run: no sample has a date; ingest the run's "
    "requests.jsonl beside it"
)


def probe(head: Head) -> Claim:
    """A CSV whose header has exactly these columns."""
    names = set(_cells(head.lines[0])) if head.lines else set()
    missing = set(_COLUMNS) - names
    if not missing:
        return Claim(1, "")
    share = 1 - len(missing) / len(_COLUMNS)
    return Claim(0.9 * share, f"its header lacks {', '.join(sorted(missing))}")


def _cells(line: bytes) -> list[str]:
    text = line.decode("utf-8", "replace")
    return [cell.strip() for cell in text.split(",")]


def _number(cell: str, name: str) -> float | None:
    if cell == "":
        return None
    try:
        number = float(cell)
    except ValueError:
        raise Bad(f"{name!r} is no number") from None
    if math.isnan(number):
        return None
    if not 0 <= number < COUNTS.stop:
        raise Bad(f"{name!r} is no number that can be")
    return number


def _count(number: float | None, name: str) -> int | None:
    if number is not None and not number.is_integer():
        raise Bad(f"{name!r} is no whole number")
    return None if number is None else int(number)


def _take(cells: list[str], header: list[str], record: int, sink: Sink) -> None:
    if len(cells) != len(header):
        raise Bad(f"{len(cells)} cells where the header has {len(header)}")
    told = {
        name: _number(cell, name)
        for name, cell in zip(header, cells, strict=True)
        if name in _COLUMNS
    }
    time_ns = seconds_to_ns(told["t"])
    if time_ns is None or time_ns not in DURATIONS:
        raise Bad("'t' is missing, or beyond any run")
    sink.assumed.add(_NO_DATE)
    running = _count(told["running"], "running")
    percent = told["kv_cache_pct"]
    if percent == 0 and running:
        sink.assumed.add(_NO_KV)
        percent = None
    sink.add(
        "engine_sample",
        record,
        time_ns=time_ns,
        clock="relative",
        running=running,
        waiting=_count(told["waiting"], "waiting"),
        kv_used_ratio=None if percent is None else round(percent / 100, 6),
        prompt_tokens_per_s=told["prompt_throughput"],
        generation_tokens_per_s=told["gen_throughput"],
    )


def read(file: InputFile, options: Options) -> Iterator[Batch]:
    """One ``engine_sample`` row a line; the header is an ignored line."""
    resume = options.resume
    offset, before = (resume.offset, resume.records) if resume else (0, 0)
    header: list[str] = resume.state if resume else []
    end = resume
    for block in file.lines(offset=offset, records_before=before):
        sink = Sink()
        for record, (line, place) in enumerate(
            zip(block.lines, block.starts, strict=True), block.first_record
        ):
            try:
                _line(line, header, record, sink)
            except Bad as bad:
                sink.problems.append(Problem(record, str(bad), excerpt(line), place))
        last = block.last_record
        if not block.unterminated:
            end = Resume(block.end, last, state=header)
        elif not sink.ignored:  # its last number may go on: it is read again when it is whole
            end = Resume(block.offset, last - 1, (last,), header) if header else None
        else:
            end = None
        yield sink.batch(len(block.lines))
    yield Batch(resume=end)


def _line(line: bytes, header: list[str], record: int, sink: Sink) -> None:
    cells: list[Any] = _cells(line)
    if cells == [""]:
        sink.ignored["blank line"] += 1
    elif set(_COLUMNS) <= set(cells):
        header[:] = cells
        sink.ignored["header line"] += 1
    elif not header:
        raise Bad("a line before the header")
    else:
        _take(cells, header, record, sink)


READER = Reader(
    title="vLLM benchmark run: engine state once a second (timeseries.csv)",
    record_unit="line",
    gives=("engine_sample",),
    probe=probe,
    read=read,
    docs="https://github.com/casys-kaist/LLMServingSim",
    cannot="when the run was: times count from its start; what happened to any one request",
    enable="add the run's requests.jsonl, or the engine's own log",
    checked_against="three runs of vLLM 0.19.0",
)

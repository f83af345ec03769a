"""What transcripts of coding agents have in common: one session a file, told line by line.

An agent writes down what was said, and beside it the usage of each answer: requests of vantage
client, most of them with no time but the one at which the line was written.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Protocol

from analyzer.contract.types import Batch, Problem
from analyzer.readers._errors import error_class
from analyzer.readers._file import InputFile
from analyzer.readers._jsonl import Sink, read_jsonl
from analyzer.readers._reader import Options
from analyzer.readers._rows import believed
from analyzer.readers._times import ms_to_ns

WRITTEN = (
    "the time of a request is when its answer was written down: the transcript does not tell when "
    "it was sent"
)
NO_USAGE = "no usage in it: content, tools or settings"
AGAIN = "repeats counts that were read"
_NOT_THE_SUM = "the total of tokens is not the sum of its parts"
_NS_PER_MS = 1_000_000
_REMEMBERED = 100_000


class Session(Protocol):
    """What one session has told so far."""

    def take(self, value: dict[str, Any], record: int, sink: Sink) -> None:
        """One line."""

    def finish(self, sink: Sink) -> None:
        """The rows that waited for what the lines after them might tell."""


def read_session(file: InputFile, options: Options, session: Session) -> Iterator[Batch]:
    """A batch a block of lines, and what was still open at the end.

    Later lines count on earlier ones, so a session that has grown is read anew.
    """
    for batch in read_jsonl(file, replace(options, resume=None), session.take):
        yield replace(batch, resume=None)
    sink = Sink(zone=options.zone)
    session.finish(sink)
    yield sink.batch(0)


def sound(sink: Sink, record: int, row: dict[str, Any]) -> dict[str, Any]:
    """A row that is written later, without what cannot be: that is a problem of its own line."""
    if strange := believed(row):
        sink.problems.append(Problem(record, strange))
    return row


def contradiction(sink: Sink, record: int, *, wrong: bool) -> dict[str, Any]:
    """The column that says so where a total is not the sum of its parts; a problem, too."""
    if not wrong:
        return {}
    sink.problems.append(Problem(record, f"{_NOT_THE_SUM}; the counts are stored as told"))
    return {"usage_contradiction": _NOT_THE_SUM}


def told_once(made: int | None) -> dict[str, Any]:
    """Usage that one record told so far, with this output."""
    return {
        "usage_records": 1,
        "usage_records_output_tokens": made,
        "usage_first_output_tokens": made,
    }


def told_again(row: dict[str, Any], made: int | None) -> dict[str, Any]:
    """The same columns after one more record of this request, which counts once all the same."""
    before = row.get("usage_records_output_tokens")
    return {
        "usage_records": (row.get("usage_records") or 0) + 1,
        "usage_records_output_tokens": made if before is None else before + (made or 0),
        "usage_first_output_tokens": row.get("usage_first_output_tokens"),
    }


def ms_moment(value: object) -> int | None:
    """Unix milliseconds, as JavaScript tells the time, as nanoseconds."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return int(value * _NS_PER_MS) if abs(value) < 1e13 else None


def ms(holder: object, *path: str) -> int | None:
    """A duration in milliseconds that lies under these keys, as nanoseconds."""
    for name in path:
        holder = holder.get(name) if isinstance(holder, dict) else None
    if isinstance(holder, bool) or not isinstance(holder, (int, float)):
        return None
    return ms_to_ns(holder)


def count(holder: object, *path: str) -> int | None:
    """A whole, non-negative count that lies under these keys."""
    for name in path:
        holder = holder.get(name) if isinstance(holder, dict) else None
    if isinstance(holder, float) and holder.is_integer():
        holder = int(holder)
    if isinstance(holder, bool) or not isinstance(holder, int):
        return None
    return holder if holder >= 0 else None


def text(holder: object, *path: str) -> str | None:
    """A text that is not empty and lies under these keys."""
    for name in path:
        holder = holder.get(name) if isinstance(holder, dict) else None
    return holder if isinstance(holder, str) and holder else None


def failure(name: str | None, message: str | None) -> str | None:
    """The class of a failure by the name the agent gives it, else by its message."""
    words = (name or "").lower()
    if "rate_limit" in words or "usage_limit" in words:
        return "http 429"
    if "abort" in words or "cancel" in words or "interrupt" in words:
        return "cancelled"
    return error_class(message or "") or (error_class(name) if name else None)


def status_of(error: str | None) -> int | None:
    """The HTTP status that a class of failure names."""
    return int(error[5:]) if error is not None and error.startswith("http ") else None


def compaction_tags(before: int | None = None, after: int | None = None) -> dict[str, str]:
    """Tags of the request after the history was summed up: its prompt is another one."""
    told = {"compacted_from_tokens": before, "compacted_to_tokens": after}
    return {"compaction": "told"} | {name: str(one) for name, one in told.items() if one}


class Seen:
    """Keys that were met; the oldest are forgotten, so that memory stays bounded."""

    def __init__(self) -> None:
        """Nothing was met yet."""
        self._past: dict[object, None] = {}

    def again(self, key: object) -> bool:
        """Whether this key was met before."""
        if key in self._past:
            return True
        self._past[key] = None
        if len(self._past) > _REMEMBERED:
            del self._past[next(iter(self._past))]
        return False

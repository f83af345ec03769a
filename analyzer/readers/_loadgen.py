"""What readers of load generators share: durations, the request body, long documents, chunks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

import msgspec

from analyzer.contract.types import Batch, Problem
from analyzer.readers._file import Head, InputFile
from analyzer.readers._json_stream import Item, each_item, is_entry
from analyzer.readers._jsonl import Bad, Sink, Skip
from analyzer.readers._reader import Claim
from analyzer.readers._rows import excerpt, int_or_none, text_or_none
from analyzer.readers._times import DURATIONS
from analyzer.readers._usage import BUCKETS, token_buckets

UNITS_NS = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9, "sec": 1e9}
ONE_PIECE = (
    "an answer whose only piece is the whole of it was not streamed: its time to first token is "
    "left out"
)
_MOST = 1e30
_BATCH_RECORDS = 5_000
_BATCH_CHUNKS = 500_000


def number(value: Any) -> float | None:  # noqa: ANN401 - foreign JSON
    """A number a float can hold, else None."""
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return None
    return value if abs(value) < _MOST else None


def duration_ns(value: Any, unit_ns: float, name: str) -> int | None:  # noqa: ANN401 - foreign JSON
    """A duration in ns; :class:`Bad` where it is no number or cannot be one."""
    if value is None:
        return None
    if (told := number(value)) is None:
        raise Bad(f"{name!r} is no number, or none of a duration")
    if not 0 <= told * unit_ns < DURATIONS.stop:
        raise Bad(f"{name!r} is no duration")
    return round(told * unit_ns)


def offsets_of(first_ns: int, gaps: Any, unit_ns: float, name: str) -> list[int]:  # noqa: ANN401
    """Offsets of the chunks from the first one's and the gaps between them."""
    steps = [duration_ns(gap, unit_ns, name) or 0 for gap in gaps]
    offsets = list(accumulate([first_ns, *steps]))
    if offsets[-1] not in DURATIONS:
        raise Bad(f"{name!r} adds up to more than any request")
    return offsets


def add_chunks(
    sink: Sink, record: int, offsets: list[int], kinds: list[str], chars: list[int | None]
) -> None:
    """The chunk rows of one request."""
    if offsets:
        sink.add_columns(
            "chunk", record, chunk_index=list(range(len(offsets))), offset_ns=offsets, kind=kinds,
            chars=chars,
        )  # fmt: skip


def asked(payload: Any) -> dict[str, Any]:  # noqa: ANN401 - foreign JSON
    """Columns the request body tells, given as an object or as its JSON text."""
    if isinstance(payload, str):
        try:
            payload = msgspec.json.decode(payload)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return {}
    if not isinstance(payload, dict):
        return {}
    if isinstance(payload.get("body"), dict):
        payload = payload["body"]
    limits = ("max_completion_tokens", "max_tokens", "max_output_tokens")
    limit = next((payload[name] for name in limits if payload.get(name) is not None), None)
    stream, tools = payload.get("stream"), payload.get("tools")
    return {
        "model": text_or_none(payload.get("model")),
        "max_output_tokens": int_or_none(limit),
        "streamed": stream if isinstance(stream, bool) else None,
        "tools_count": len(tools) if isinstance(tools, list) else None,
    }


def counted(usage: Any, convention: str = "inclusive") -> dict[str, Any]:  # noqa: ANN401
    """Token columns; empty where nothing was counted. "unknown": counted by the client itself."""
    buckets = token_buckets(usage)
    if all(buckets.get(name) is None for name in BUCKETS):
        return {}
    return buckets if convention == "inclusive" else buckets | {"usage_convention": convention}


def engine_row(metrics: Any) -> dict[str, int | None]:  # noqa: ANN401 - foreign JSON
    """Times of a request that vLLM sends along with the usage of its answer.

    Its "time to first token" counts from the moment of scheduling, so it is the prefill.
    """
    if not isinstance(metrics, dict) or "queue_time_ms" not in metrics:
        return {}
    names = {
        "queue_ns": "queue_time_ms",
        "prefill_ns": "time_to_first_token_ms",
        "decode_ns": "generation_time_ms",
    }
    row = {ours: duration_ns(metrics.get(name), 1e6, name) for ours, name in names.items()}
    return row if any(value is not None for value in row.values()) else {}


def add_engine(sink: Sink, record: int, client: dict[str, Any], metrics: Any) -> None:  # noqa: ANN401
    """A second row of the request, as the engine told it."""
    if row := engine_row(metrics):
        same = {name: client.get(name) for name in ("request_id", "response_id", "model")}
        sink.add("request", record, vantage="engine", timing="stated", **same, **row)


def document(head: Head) -> str:
    """The first 64 KiB of a JSON document as text, empty where it is none."""
    text = head.data.decode("utf-8", "replace").lstrip("\ufeff \t\r\n")
    return text if text[:1] in ("{", "[") else ""


def summary(what: str, instead: str) -> Claim:
    """The answer to a file that holds no requests, with what to do to get them."""
    return Claim(0.95, f"it is {what}, a summary without requests: {instead}")


@dataclass
class Requests:
    """How to read the requests of one document.

    ``take`` makes rows of an item of ``lists``; ``see`` is shown all other values in between.
    ``nothing`` says what to do where there is no request at all; ``finish`` may add problems that
    stand for records of their own.
    """

    lists: Collection[tuple[str, ...]]
    take: Callable[[Item, int, Sink], None]
    nothing: str
    see: Callable[[Item], None] = field(default=lambda _: None)
    finish: Callable[[Sink], list[str]] = field(default=lambda _: [])

    def read(self, file: InputFile) -> Iterator[Batch]:
        """Batches of bounded size."""
        sink, records, done, broken = Sink(), 0, 0, False
        for item in each_item(file, self.lists):
            if item.broken:
                records, broken = records + 1, True
                problem = Problem(records, item.broken, excerpt(item.value), item.offset)
                sink.problems.append(problem)
            elif not is_entry(item.path, self.lists):
                self.see(item)
            else:
                records += 1
                self._take(item, records, sink)
            chunks = sum(len(columns["record"]) for columns in sink.columns.values())
            if records - done >= _BATCH_RECORDS or chunks >= _BATCH_CHUNKS:
                yield sink.batch(records - done)
                sink, done = Sink(), records
        reasons = [] if broken else self.finish(sink)
        if not records and not reasons:
            reasons = [self.nothing]
        for reason in reasons:
            records += 1
            sink.problems.append(Problem(records, reason))
        yield sink.batch(records - done)

    def _take(self, item: Item, record: int, sink: Sink) -> None:
        try:
            self.take(item, record, sink)
        except Skip as skip:
            sink.ignored[str(skip)] += 1
        except Bad as bad:
            text = excerpt(_text(item.value))
            sink.problems.append(Problem(record, str(bad), text, item.offset))


def _text(value: Any) -> str:  # noqa: ANN401
    try:
        return msgspec.json.encode(value).decode()
    except (TypeError, ValueError, RecursionError, OverflowError):
        return ""


def object_item(item: Item) -> dict[str, Any]:
    """The item as an object, or :class:`Bad`."""
    if not isinstance(item.value, dict):
        raise Bad("an entry that is no object")
    return item.value

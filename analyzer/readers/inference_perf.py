"""inference-perf's ``per_request_lifecycle_metrics.json``, in the three shapes it has had."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from analyzer.contract.types import Batch
from analyzer.readers._answer import Answer, sse_events
from analyzer.readers._errors import error_class
from analyzer.readers._file import Head, InputFile
from analyzer.readers._json_stream import Item
from analyzer.readers._jsonl import Bad, Sink
from analyzer.readers._loadgen import (
    Requests,
    add_engine,
    asked,
    counted,
    document,
    duration_ns,
    number,
    object_item,
    summary,
)
from analyzer.readers._reader import Claim, Options, Reader
from analyzer.readers._rows import first, text_or_none

_KEYS = ("start_time", "end_time", "request", "info")
_PER_REQUEST = "set report.request_lifecycle.per_request: true"
_NO_TEXT = (
    "chunk times without the stream they belong to may begin with a role chunk and end with the "
    "usage: the time to first token is left out"
)
_TOKENIZER = "tokens without server usage are counted by inference-perf's own tokenizer"


def probe(head: Head) -> Claim:
    """A list of objects with ``start_time``, ``end_time``, ``request`` and ``info``."""
    text = document(head)
    if text.startswith("{") and '"load_summary"' in text and '"successes"' in text:
        return summary("a stage or summary report of inference-perf", _PER_REQUEST)
    missing = [key for key in _KEYS if f'"{key}"' not in text]
    if head.whole or len(missing) < len(_KEYS) - 2:
        if missing or not text.startswith("["):
            share = 1 - len(missing) / len(_KEYS)
            return Claim(0.6 * share, f"it lacks {', '.join(missing) or 'a list of requests'}")
    elif not (text.startswith("[") and '"start_time"' in text[:400] and '"request"' in text[:400]):
        return Claim(0, f"it lacks {', '.join(missing)}")
    return Claim(1, "")


def _dict(value: Any) -> dict[str, Any]:  # noqa: ANN401 - foreign JSON
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:  # noqa: ANN401
    return value if isinstance(value, list) else []


def _since(start_s: float, time_s: Any, name: str) -> int:  # noqa: ANN401
    at = number(time_s)
    offset = duration_ns(at - start_s, 1e9, name) if at is not None else None
    if offset is None:
        raise Bad(f"{name!r} is missing or no number")
    return offset


def _timed(info: dict[str, Any]) -> tuple[list[tuple[Any, Any]], bool]:
    """(time, event) of each chunk, and whether every event of the stream is among them."""
    holder = _dict(first((info.get("response_metrics"), info.get("response_info"))))
    if not holder:
        return [(time, None) for time in _list(info.get("output_token_times"))], True
    pairs: list[tuple[Any, Any]] = []
    for times, chunks in (
        ("chunk_times", "response_chunks"),
        ("reasoning_chunk_times", "reasoning_chunks"),
    ):
        if len(_list(holder.get(times))) != len(_list(holder.get(chunks))):
            raise Bad(f"{times!r} and {chunks!r} differ in length")
        pairs += zip(_list(holder.get(times)), _list(holder.get(chunks)), strict=True)
    if not pairs:
        return [], False
    return sorted(pairs, key=lambda pair: number(pair[0]) or 0), False


def _answer(value: dict[str, Any], info: dict[str, Any], start_s: float) -> tuple[Answer, bool]:
    """The answer, and whether its chunks could be told from its other events."""
    answer, response = Answer(), value.get("response")
    text = response if isinstance(response, str) else ""
    streamed = text.lstrip().startswith(("data:", "event:", ":"))
    events = list(sse_events(text)) if streamed else []
    pairs, all_events = _timed(info)
    if all_events and pairs:
        # Up to v0.4 each message of the stream has a time, its end mark too.
        if len(pairs) not in (len(events), len(events) + 1):
            return answer, False
        pairs = [(time, event) for (time, _), event in zip(pairs, events, strict=False)]
    for time, event in pairs:
        answer.take(event, _since(start_s, time, "chunk_times"))
    rest = Answer()
    for event in events if streamed else [text] if text else []:
        rest.take(event, 0)
    # What the events without a time tell: ids, usage, how it ended.
    answer.facts, answer.metrics = rest.facts | answer.facts, rest.metrics
    answer.usage = rest.usage or answer.usage
    answer.whole = rest.whole
    return answer, True


def _take(item: Item, record: int, sink: Sink) -> None:
    value = object_item(item)
    start, info = number(value.get("start_time")), _dict(value.get("info"))
    if start is None or "info" not in value:
        raise Bad("'start_time' or 'info' is missing")
    end = _since(start, value.get("end_time"), "end_time")
    payload = asked(value.get("request"))
    answer, known = _answer(value, info, start)
    if not known:
        sink.assumed.add(_NO_TEXT)
    told = answer.columns(streamed=payload.get("streamed"))
    row = {
        "vantage": "client",
        "clock": "monotonic",
        **payload,
        **told,
        "model": first((told["model"], payload.get("model"))),
        "session_id": text_or_none(value.get("session_id")),
        "e2e_ns": told["e2e_ns"] if answer.offsets and not answer.whole else end,
        "hold_ns": _hold(value.get("scheduled_time"), start),
        **_tokens(answer, info, sink),
    }
    if isinstance(error := value.get("error"), dict):
        words = " ".join(str(error.get(name) or "") for name in ("error_type", "error_msg"))
        row |= {"error": error_class(words) or "error", "e2e_ns": None}
    sink.add("request", record, **row)
    add_engine(sink, record, row, answer.metrics)
    answer.add_chunks(sink, record)


def _hold(planned: Any, start: float) -> int | None:  # noqa: ANN401
    """Newer versions may tell when a request was due."""
    due = number(planned)
    return _since(due, start, "scheduled_time") if due is not None and due <= start else None


def _tokens(answer: Answer, info: dict[str, Any], sink: Sink) -> dict[str, Any]:
    holder = _dict(first((info.get("response_metrics"), info.get("response_info"))))
    for usage in (answer.usage, holder.get("server_usage")):
        if buckets := counted(usage):
            return buckets
    text = _dict(_dict(info.get("request_metrics")).get("text"))
    made = first((holder.get("output_tokens"), info.get("output_tokens")))
    own = {
        "prompt_tokens": first((text.get("input_tokens"), info.get("input_tokens"))),
        # A failed request is counted as 0.
        "completion_tokens": made or None,
    }
    if buckets := counted(own, "unknown"):
        sink.assumed.add(_TOKENIZER)
    return buckets


def read(file: InputFile, options: Options) -> Iterator[Batch]:  # noqa: ARG001 - reader contract
    """One ``request`` row of vantage client an entry, and its chunks."""
    return Requests([()], _take, f"no request in it: {_PER_REQUEST}").read(file)


READER = Reader(
    title="inference-perf requests (per_request_lifecycle_metrics.json)",
    record_unit="request",
    gives=("request", "chunk"),
    probe=probe,
    read=read,
    docs="https://github.com/kubernetes-sigs/inference-perf",
    cannot="when a request began (its clock has no date) or was due; from v0.5 on the chunks of "
    "reasoning, so TTFT is late for models that reason; queue and prefill, unless the server sends "
    "vLLM's metrics with its answer",
    enable="report.request_lifecycle.per_request: true and api.streaming: true",
    checked_against="a run of inference-perf 0.6 against an engine that told its own queue and "
    "prefill; its earlier shapes from their sources",
)

"""Response bodies of a llama.cpp server: the ``timings`` it adds to each answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from analyzer.contract.types import Batch
from analyzer.readers._bodies import first_bodies, read_bodies
from analyzer.readers._errors import error_class
from analyzer.readers._file import Head, InputFile
from analyzer.readers._jsonl import Bad, Sink, Skip
from analyzer.readers._reader import Claim, Options, Reader
from analyzer.readers._rows import int_or_none, text_or_none
from analyzer.readers._times import ms_to_ns, time_to_ns

_NEEDED = {"prompt_n", "prompt_ms", "predicted_n", "predicted_ms"}
_CHUNK = "stream chunk before the last one"
_STARTED = "start is 'created' (the end, in whole seconds) less the two durations"
_REASONS = {"limit": "length", "eos": "stop", "word": "stop", "none": None}
_OLD_REASONS = (
    ("stopped_limit", "length"),
    ("stopped_eos", "stop"),
    ("stopped_word", "stop"),
)
_MOST_OPEN = 1024


def _timings(value: dict[str, Any]) -> dict[str, Any] | None:
    told = value.get("timings")
    return told if isinstance(told, dict) and told.keys() >= _NEEDED else None


def probe(head: Head) -> Claim:
    """Bodies with ``timings`` as only llama.cpp writes them."""
    some = first_bodies(head)
    if any(_timings(one) for one in some):
        return Claim(1, "")
    if any(isinstance(one.get("timings"), dict) for one in some):
        return Claim(0.5, "its 'timings' lack some of prompt_n, prompt_ms, predicted_n, _ms")
    return Claim(0, "none of its first bodies has 'timings'")


class _Bodies:
    """A stream's reason to end comes a chunk before its timings when usage was asked for."""

    def __init__(self, memory: dict[str, str] | None) -> None:
        self.reasons: dict[str, str] = dict(memory or {})

    def memory(self) -> dict[str, str]:
        return dict(self.reasons)

    def open_records(self) -> tuple[int, ...]:
        return ()

    def rest(self) -> Mapping[str, pa.Table]:
        return {}

    def take(self, value: dict[str, Any], record: int, sink: Sink) -> None:
        timings, response_id = _timings(value), text_or_none(value.get("id"))
        if timings is None and value.get("error") is not None:
            _failed(value["error"], record, sink)
            return
        last, reason = _ends(value)
        if reason is not None and timings is None and response_id is not None:
            if len(self.reasons) >= _MOST_OPEN:
                self.reasons.pop(next(iter(self.reasons)))
            self.reasons[response_id] = reason
        if not last or (timings is None and _is_chunk(value)):
            raise Skip(_CHUNK)
        if timings is None:
            raise Bad("a body without 'timings': no llama.cpp server wrote it, or it is cut down")
        if reason is None and response_id is not None:
            reason = self.reasons.pop(response_id, None)
        sink.add(
            "request",
            record,
            **_row(value, timings, sink),
            response_id=response_id,
            finish_reason=reason,
        )


def _row(value: dict[str, Any], timings: dict[str, Any], sink: Sink) -> dict[str, Any]:
    prefill, decode = ms_to_ns(timings["prompt_ms"]), ms_to_ns(timings["predicted_ms"])
    end = int_or_none(value.get("created"))
    start = None
    if end is not None and prefill is not None and decode is not None:
        start = time_to_ns(end)
        start = start - prefill - decode if start is not None else None
    if start is not None:
        sink.assumed.add(_STARTED)
    settings = value.get("generation_settings")
    limit = int_or_none(settings.get("n_predict")) if isinstance(settings, dict) else None
    return {
        "vantage": "engine",
        "model": text_or_none(value.get("model")),
        "start_ns": start,
        "clock": "wall" if start is not None else None,
        "timing": "stated",
        "prefill_ns": prefill,
        "decode_ns": decode,
        **_tokens(value, timings),
        "usage_final": True,
        "streamed": True if _is_chunk(value) else None,
        "max_output_tokens": limit if limit is not None and limit >= 0 else None,
    }


def _tokens(value: dict[str, Any], timings: dict[str, Any]) -> dict[str, Any]:
    """``prompt_n`` leaves out what a slot still had; old builds tell that only by the total."""
    fresh, read = int_or_none(timings["prompt_n"]), int_or_none(timings.get("cache_n"))
    if read is None and fresh is not None:
        usage = value.get("usage")
        whole = int_or_none(usage.get("prompt_tokens")) if isinstance(usage, dict) else None
        if whole is None:  # tokens_cached is no such thing: it counts the answer too
            whole = int_or_none(value.get("tokens_evaluated"))
        read = whole - fresh if whole is not None and whole >= fresh else None
    return {
        "input_fresh_tokens": fresh,
        "cache_read_tokens": read,
        "output_visible_tokens": int_or_none(timings["predicted_n"]),
        "usage_convention": "exclusive",
    }


def _is_chunk(value: dict[str, Any]) -> bool:
    kind = value.get("object")
    return value.get("stop") is False or (isinstance(kind, str) and kind.endswith(".chunk"))


def _ends(value: dict[str, Any]) -> tuple[bool, str | None]:
    """Whether a response ends with this body, and why it ended where that is told."""
    if isinstance(value.get("stop"), bool):
        told = value.get("stop_type")
        reason = _REASONS.get(told) if isinstance(told, str) else None
        old = (name for flag, name in _OLD_REASONS if value.get(flag) is True)
        return value["stop"], reason or next(old, None)
    choices = value.get("choices")
    if not isinstance(choices, list) or not choices:
        return True, None
    first = choices[0] if isinstance(choices[0], dict) else {}
    reason = text_or_none(first.get("finish_reason"))
    streams = _is_chunk(value) or value.get("object") == "text_completion"
    return reason is not None or not streams, reason


def _failed(error: object, record: int, sink: Sink) -> None:
    holder = error if isinstance(error, dict) else {}
    status = int_or_none(holder.get("code"))
    text = text_or_none(holder.get("message")) or text_or_none(error)
    sink.add(
        "request", record, vantage="engine", status=status,
        error=error_class(text or "error"),
    )  # fmt: skip


def read(file: InputFile, options: Options) -> Iterator[Batch]:
    """One ``request`` row of vantage engine a response."""
    return read_bodies(file, options, _Bodies(options.resume.state if options.resume else None))


READER = Reader(
    title="llama.cpp server responses (JSON Lines, event stream or document)",
    record_unit="object",
    gives=("request",),
    probe=probe,
    read=read,
    docs="https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md",
    cannot="the wait for a free slot, so no queue, TTFT or end to end; chunk times; when a native "
    "/completion ran (OpenAI bodies tell the second)",
    enable="add a client's stream log with the same response ids: its TTFT less prompt_ms is the "
    "wait and the network",
    checked_against="the timings of llama.cpp's README; bodies after its source of 2024 to 2026",
)

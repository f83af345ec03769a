"""What SGLang tells of one request: its ``meta_info``, and the line with its time stats.

Names moved between versions and two of them mislead: ``*_time`` may be a moment (``*_ts`` always
is one), and ``queue_time`` is negative for requests that were retracted or paused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from analyzer.readers._errors import error_class
from analyzer.readers._jsonl import Bad, Skip
from analyzer.readers._rows import first, int_or_none, text_or_none
from analyzer.readers._times import DURATIONS, TIMES, ms_to_ns, seconds_to_ns
from analyzer.readers._usage import token_buckets

HEALTH_CHECK = "health check"
# Stamps of two processes, converted to the wall clock by each of them.
_SLACK_NS = 5_000_000
_GRAMMARS = {"json_schema": "schema", "regex": "grammar", "ebnf": "grammar",
             "structural_tag": "grammar"}  # fmt: skip
_WHO = re.compile(
    r"(?:ReqTimeStats|Req Time Stats)\(rid=(?P<rid>[^,)]*+)(?P<who>[^)]*+)\):(?P<told>.*)"
)
# Forks append blobs of their own; what counts stands before them.
_MOST_CHARS = 16_384
_NAMED = re.compile(r"\b(input[ _]len|cached_input_len|output[ _]len|type)=(\w+)")
# ``a=1.50ms`` in most versions, ``a(1.50ms)`` in some of 0.5.9 for sums that are spelled out.
_DURATION = re.compile(r"\b(\w+_duration)[=(](-?\d+(?:\.\d+)?)ms")
_ENTRY = re.compile(r"\bentry_time=(\d+(?:\.\d+)?)")


class Asked(msgspec.Struct):
    """The part of a request's parameters that is of use; its text is never looked at."""

    stream: Any = None
    sampling_params: Any = None


def asked_columns(asked: Asked | None) -> dict[str, Any]:
    """Columns the request itself tells."""
    if asked is None:
        return {}
    given = asked.sampling_params if isinstance(asked.sampling_params, dict) else {}
    forms = (form for name, form in _GRAMMARS.items() if given.get(name) is not None)
    return {
        "streamed": asked.stream if isinstance(asked.stream, bool) else None,
        "max_output_tokens": int_or_none(given.get("max_new_tokens")),
        "response_format": first(forms),
    }


def meta_columns(
    meta: Mapping[str, Any], asked: Asked | None, finished_ns: int | None = None
) -> tuple[dict[str, Any], str]:
    """Columns of ``request`` from ``meta_info``, and what of it could not be believed.

    ``finished_ns`` is when the line was written, for a ``meta_info`` that names no moment.
    """
    rid = text_or_none(meta.get("id"))
    if rid is None:
        raise Bad("its meta_info names no request: 'id' is missing")
    if rid.startswith("HEALTH_CHECK"):
        raise Skip(HEALTH_CHECK)
    columns = asked_columns(asked)
    times, strange = _times(meta, streamed=columns.get("streamed") is True)
    start = _moment(meta, "request_received_ts")
    if start is None and finished_ns is not None and times["e2e_ns"] is not None:
        start = finished_ns - times["e2e_ns"]
    known = start is not None and start in TIMES
    stamped = times["prefill_ns"] is not None or times["decode_ns"] is not None
    columns |= {
        "vantage": "engine",
        "request_id": rid,
        "start_ns": start if known else None,
        "clock": "wall" if known else "monotonic",
        "timing": "stamps" if stamped else "stated",
        **times,
        **token_buckets(_usage(meta)),
        **_outcome(meta.get("finish_reason")),
    }
    return columns, strange


def _times(meta: Mapping[str, Any], *, streamed: bool) -> tuple[dict[str, Any], str]:
    """Durations; one that is negative or longer than the request is not told, and named."""
    received = _moment(meta, "request_received_ts")
    ended = first(_moment(meta, name) for name in ("request_finished_ts", "decode_finished_ts"))
    prefilled = first(_moment(meta, f"prefill_finished_{end}") for end in ("time", "ts"))
    entry = _moment(meta, "forward_entry_time")
    if entry is None:
        entry = _minus(ended, _seconds(meta, "inference_time"))
    ttft = _seconds(meta, "first_token_latency")
    if ttft is None and streamed:
        # Of a stream it is the first chunk that is stamped here, not the last.
        ttft = _minus(_moment(meta, "response_sent_to_client_ts"), received)
    e2e, whole = _seconds(meta, "e2e_latency"), _minus(ended, received)
    told = {
        "queue_time": _seconds(meta, "queue_time"),
        "prefill": _minus(prefilled, entry),
        "decode": _minus(ended, prefilled),
        "time to first token": ttft,
        "e2e_latency": whole if e2e is None else e2e,
    }
    strange = []
    limit = told["e2e_latency"]
    for name, value in told.items():
        too_long = limit is not None and value is not None and value > limit + _SLACK_NS
        if value is not None and (value not in DURATIONS or too_long):
            told[name] = None
            strange.append(f"{name}: negative, or longer than the request; not read")
    if e2e is not None and whole is not None and abs(e2e - whole) > _SLACK_NS:
        strange.append("e2e_latency: its stamps tell another one")
    queue, prefill, decode, ttft, e2e = told.values()
    before = _minus(_minus(entry, queue), received)
    return {
        "queue_ns": queue,
        "prefill_ns": prefill,
        "decode_ns": decode,
        "frontend_ns": max(0, before) if before is not None and before >= -_SLACK_NS else None,
        "ttft_ns": ttft,
        "e2e_ns": e2e,
    }, "; ".join(strange)


def _seconds(meta: Mapping[str, Any], name: str) -> int | None:
    value = meta.get(name)
    return seconds_to_ns(value) if isinstance(value, (int, float)) else None


def _moment(meta: Mapping[str, Any], name: str) -> int | None:
    """A milestone that was never reached is left out, or stays at 0."""
    return _seconds(meta, name) or None


def _minus(later: int | None, earlier: int | None) -> int | None:
    return later - earlier if later is not None and earlier is not None else None


def _usage(meta: Mapping[str, Any]) -> dict[str, Any]:
    usage = {name: meta.get(name) for name in ("prompt_tokens", "completion_tokens")}
    if meta.get("cached_tokens") is not None:
        usage["cached_tokens"] = meta["cached_tokens"]
    if meta.get("reasoning_tokens") is not None:
        usage["completion_tokens_details"] = {"reasoning_tokens": meta["reasoning_tokens"]}
    return usage


def _outcome(reason: Any) -> dict[str, Any]:  # noqa: ANN401 - foreign JSON
    """How it ended; an abort that names no status was somebody's wish."""
    kind = text_or_none(reason.get("type") if isinstance(reason, dict) else reason)
    if kind != "abort":
        return {"finish_reason": kind}
    status = text = None
    if isinstance(reason, dict):
        status, text = int_or_none(reason.get("status_code")), reason.get("message")
    error = error_class(text) if isinstance(text, str) else None
    if status is not None and status >= 400:
        error = f"http {status}"
    elif error in (None, "error"):
        error = "cancelled"
    return {"finish_reason": kind, "status": status, "error": error}


def stats_columns(text: str, line_ns: int | None) -> tuple[dict[str, Any], str, bool]:
    """Columns of ``request`` from a ReqTimeStats message, and what could not be believed.

    The last is whether the start was reckoned back from the time of the line.
    """
    match = _WHO.match(text[:_MOST_CHARS])
    durations = dict(_DURATION.findall(match["told"])) if match else {}
    if (
        match is None
        or not match["rid"]
        or not {"queue_duration", "forward_duration"} <= (durations.keys())
    ):
        raise Bad("a line of request time stats whose values cannot be read")
    rid = match["rid"].strip("'\"")
    if rid.startswith("HEALTH_CHECK"):
        raise Skip(HEALTH_CHECK)
    named = {name.replace(" ", "_"): value for name, value in _NAMED.findall(match["who"])}
    known = {name: ms_to_ns(value) for name, value in durations.items()}
    strange = any(value is None or value not in DURATIONS for value in known.values())
    role = named.get("type", "unified").lower()
    start, reckoned = _start(match["told"], line_ns, None if strange else known)
    columns: dict[str, Any] = {
        "vantage": "engine",
        "request_id": rid,
        "start_ns": start,
        "clock": "wall" if start is not None else "monotonic",
        "timing": "stated",
        **token_buckets(_lengths(named, role)),
    }
    if strange:
        return columns, "a duration below zero (it was retracted or aborted); none was read", False
    queue, forward = known["queue_duration"] or 0, known["forward_duration"] or 0
    if role == "decode":
        columns["decode_ns"] = forward
    else:
        columns["queue_ns"] = queue
    if role == "unified":
        columns["e2e_ns"] = queue + forward
    return columns, "", reckoned


def _start(
    told: str, line_ns: int | None, durations: Mapping[str, int | None] | None
) -> tuple[int | None, bool]:
    """Since 0.5.12 a moment; before, ``start_time`` is on a clock that only that process knows."""
    entry = _ENTRY.search(told)
    start = seconds_to_ns(entry[1]) if entry else None
    if start is not None and start in TIMES:
        return start, False
    if line_ns is None or durations is None:
        return None, False
    return line_ns - sum(value or 0 for value in durations.values()), True


def _lengths(named: Mapping[str, str], role: str) -> dict[str, Any]:
    counts = {name: int(value) for name, value in named.items() if value.isdecimal()}
    usage: dict[str, Any] = {
        "prompt_tokens": counts.get("input_len"),
        # A prefill worker makes the first token alone; the rest is another's.
        "completion_tokens": None if role == "prefill" else counts.get("output_len"),
    }
    if "cached_input_len" in counts:
        usage["cached_tokens"] = counts["cached_input_len"]
    return usage

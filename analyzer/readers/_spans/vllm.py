"""vLLM's ``llm_request``: one span a finished request, durations in seconds as attributes.

Engines V0 and V1 use the same names for different things. V1 states prefill and decode, and its
queue is measured inside the engine core. V0 states only the queue, counted from the arrival at the
front end, so prefill and decode are what is left of TTFT and of the whole. Start-up spans and the
child spans of newer servers have other names: the request's own span tells all that they tell.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from analyzer.readers._jsonl import Sink
from analyzer.readers._rows import first, int_or_none, text_or_none
from analyzer.readers._spans._kind import Kind, Span
from analyzer.readers._spans._vllm_columns import FAST
from analyzer.readers._times import seconds_to_ns
from analyzer.readers._usage import token_buckets

_LATENCY = "gen_ai.latency."
_NAMES = {
    "e2e": "e2e",
    "ttft": "time_to_first_token",
    "queue": "time_in_queue",
    "prefill": "time_in_model_prefill",
    "decode": "time_in_model_decode",
    "inference": "time_in_model_inference",
}
_OF_V1 = ("prefill", "decode", "inference")
# Engine core and front end read two clocks a moment apart; more than this is no such moment.
_SLACK_NS = 5_000_000
_MANY = "n > 1: one span a sequence, and each tells the tokens of the whole prompt"
_V0 = "V0 engine: its queue time also holds the front end, prefill is TTFT - queue"


def _matches(name: str, attributes: Mapping[str, Any], resource: Mapping[str, Any]) -> bool:  # noqa: ARG001 - the name is enough
    return name == "llm_request"


def _durations(span: Span) -> tuple[dict[str, int | None], list[str]]:
    """Durations in ns, and the names of those that cannot be true.

    A request that ended before a milestone leaves a stamp of 0, and so a duration as long as the
    host has been up, or a negative one.
    """
    told: dict[str, int | None] = {}
    strange = []
    limit = None
    if span.start_ns is not None and span.end_ns is not None:
        limit = span.end_ns - span.start_ns
    for short, name in _NAMES.items():
        given = span.attributes.get(_LATENCY + name)
        value = seconds_to_ns(given) if isinstance(given, (int, float)) else None
        too_long = limit is not None and value is not None and value > limit + _SLACK_NS
        if value is not None and (value < 0 or (too_long and short != "e2e")):
            value = None
        if value is None and given is not None:
            strange.append(name)
        if short == "e2e" and value is not None:
            limit = value
        told[short] = value
    return told, strange


def _frontend(told: Mapping[str, int | None]) -> int | None:
    """Tokenising before the first token and detokenising after the last, where all is told."""
    e2e, ttft, queue, prefill, decode, _ = (told[short] for short in _NAMES)
    if e2e is None or ttft is None or queue is None or prefill is None or decode is None:
        return None
    before, after = ttft - queue - prefill, e2e - ttft - decode
    return None if before < -_SLACK_NS else max(0, before) + max(0, after)


def _completed(told: dict[str, int | None]) -> str:
    """Prefill and decode make up the inference: a missing one follows; else says if they do not."""
    prefill, decode, both = (told[short] for short in _OF_V1)
    if both is None:
        return ""
    if prefill is None and decode is not None:
        told["prefill"] = _left(both, decode)
    elif decode is None and prefill is not None:
        told["decode"] = _left(both, prefill)
    elif prefill is not None and decode is not None and abs(both - prefill - decode) > _SLACK_NS:
        return "prefill and decode do not add up to time_in_model_inference"
    return ""


def _rows(span: Span, record: int, sink: Sink) -> str:
    attributes = span.attributes
    told, strange = _durations(span)
    doubt = ""
    if any(_LATENCY + _NAMES[short] in attributes for short in _OF_V1):
        doubt = _completed(told)
        frontend = _frontend(told)
    else:
        frontend = None
        told["prefill"] = _left(told["ttft"], told["queue"])
        told["decode"] = _left(told["e2e"], told["ttft"])
        if told["prefill"] is not None:
            sink.assumed.add(_V0)
    if (sequences := int_or_none(attributes.get("gen_ai.request.n"))) and sequences > 1:
        sink.assumed.add(_MANY)
    models = (
        text_or_none(holder.get(f"gen_ai.{side}.model"))
        for side in ("response", "request")
        for holder in (attributes, span.resource)
    )
    usage = {
        name: attributes.get(f"gen_ai.usage.{name}")
        for name in ("prompt_tokens", "completion_tokens")
    }
    sink.add(
        "request",
        record,
        vantage="engine",
        request_id=text_or_none(attributes.get("gen_ai.request.id")),
        trace_id=span.trace_id,
        model=first(models),
        deployment=span.deployment,
        start_ns=span.start_ns,
        clock="wall",
        timing="stated",
        frontend_ns=frontend,
        **{f"{short}_ns": value for short, value in told.items() if short != "inference"},
        **token_buckets(usage),
        max_output_tokens=int_or_none(attributes.get("gen_ai.request.max_tokens")),
        error="error" if span.failed else None,
    )
    if not strange:
        return doubt
    return f"{', '.join(strange)}: negative, no number, or longer than the request; not read"


def _left(whole: int | None, part: int | None) -> int | None:
    return whole - part if whole is not None and part is not None and whole >= part else None


KIND = Kind(matches=_matches, rows=_rows, fast=FAST)

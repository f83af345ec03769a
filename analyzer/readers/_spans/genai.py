"""Model calls of applications and gateways: one request a call, whatever instrumented it.

Spans of one trace are held until they have met, in any order: an agent's span, or the outer of two
instrumentations, tells the sums of the calls within it again. So a call that encloses another call
in time is none itself; one that only caused a later one (a chain of turns) is. The other spans of
the trace say who encloses whom, to which session a call belongs, and how long name lookup,
connect and TLS took.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from analyzer.readers._errors import error_class
from analyzer.readers._jsonl import Bad, usd
from analyzer.readers._part_bodies import settings_in
from analyzer.readers._parts import make_up
from analyzer.readers._pending import Part
from analyzer.readers._rows import text_or_none
from analyzer.readers._spans import _genai_names as names
from analyzer.readers._spans._gather import UNKNOWN
from analyzer.readers._spans._genai_prompt import prompt_of_span
from analyzer.readers._spans._kind import Kind, Span
from analyzer.readers._spans._nesting import joined
from analyzer.readers._times import DURATIONS, ms_to_ns, seconds_to_ns, time_to_ns
from analyzer.readers._usage import token_buckets, usage_contradiction

AROUND = "span of an agent, a tool or another step around model calls"
_NETWORK = (
    ("dns_ns", re.compile(r"http\.dns\b|dns(?: |\.|_)?lookup\b", re.IGNORECASE)),
    ("connect_ns", re.compile(r"http\.connect\b|(?:tcp|socket)[ ._]connect\b", re.IGNORECASE)),
    ("tls_ns", re.compile(r"http\.tls\b|tls (?:client )?handshake\b", re.IGNORECASE)),
)
_GATEWAY = re.compile(r"litellm|portkey|higress|helicone|\bkong\b|gateway", re.IGNORECASE)
_PROVIDERS = {
    "az.ai.openai": "azure.ai.openai", "vertex_ai": "gcp.vertex_ai", "gemini": "gcp.gemini",
    "xai": "x_ai",
}  # fmt: skip
_LIMITS_SENT = ("max_tokens", "max_completion_tokens", "max_output_tokens")
_MOST_PARAMETERS = 100_000
_RANDOM = re.compile(r"[0-9a-fA-F]{16}")
_WORD = re.compile(r"[\w.-]{1,40}")
_NO_ID = re.compile(r"0*")
_STATUS = re.compile(r"[45]\d\d")
_SLACK_NS = 5_000_000
_DETAILS = "ai.usage.inputTokenDetails.noCacheTokens"


def _matches(name: str, attributes: Mapping[str, Any], resource: Mapping[str, Any]) -> bool:  # noqa: ARG001 - it is asked last
    return True


def _part(span: Span) -> tuple[str, Part]:
    trace, own = _id(span.trace_id), _id(span.span_id)
    part: Part = {"span": own, "parent": _id(span.parent_id)}
    facts = names.facts_of(span.attributes)
    role = names.role(span.name, span.attributes, facts)
    if role == names.CALL:
        part |= {"start": span.start_ns, "end": span.end_ns}
        part["columns"], part["strange"] = _columns(span, facts, trace, own)
        if (prompt := prompt_of_span(span)) is not None:
            part["columns"] |= _told(make_up(prompt))
            part["prompt"] = prompt.parts
        return trace or f"# {own}", part
    part["ignored"] = AROUND if role == names.AROUND else UNKNOWN
    if "session" in facts:
        part["session"] = facts["session"]
    for column, pattern in _NETWORK if role == names.OTHER else ():
        if pattern.match(span.name) and span.start_ns is not None and span.end_ns is not None:
            part |= {"column": column, "start": span.start_ns, "end": span.end_ns}
            part["ignored"] = "span of a step of the connection"
    return (trace if own and trace else ""), part


def _id(value: str | None) -> str | None:
    """An id of zeros means that there is none."""
    return None if value is None or _NO_ID.fullmatch(value) else value


def _own_id(trace: str | None, own: str | None) -> str | None:
    """A span's id names it alone where it is random; others count within their trace."""
    return own if own is None or trace is None or _RANDOM.fullmatch(own) else f"{trace}/{own}"


def _columns(
    span: Span, facts: dict[str, Any], trace: str | None, own: str | None
) -> tuple[dict[str, Any], str]:
    attributes = span.attributes
    e2e = None
    if span.start_ns is not None and span.end_ns is not None:
        e2e = span.end_ns - span.start_ns
    strange = [] if e2e is None or e2e in DURATIONS else ["it ends before it begins"]
    e2e = None if strange else e2e
    ttft, stated = _ttft(span, facts)
    if ttft is not None and (ttft not in DURATIONS or (e2e is not None and ttft > e2e + _SLACK_NS)):
        strange.append("time to first token: negative, or longer than the call; not read")
        ttft = None
    usage = names.usage_of(span.name, attributes, facts)
    if "total_tokens" in usage and (problem := usage_contradiction(usage)):
        strange.append(f"{problem}; the counts are stored as told")
    sent = _sent(attributes)
    response, status = facts.get("response"), facts.get("status")
    status = status if status is not None and 100 <= status <= 599 else None
    reason = _finish_reason(facts.get("finish"))
    error = _error(span, status, reason)
    columns: dict[str, Any] = {
        "vantage": _vantage(span),
        # The answer's id is known to others too; the span's is better than none.
        "request_id": facts.get("request") or (None if response else _own_id(trace, own)),
        "response_id": response,
        "trace_id": trace,
        "session_id": facts.get("session"),
        "model": facts.get("model"),
        "provider": _provider(attributes, facts),
        "start_ns": span.start_ns,
        "clock": "wall",
        "timing": "stated" if stated and ttft is not None else "stamps",
        "ttft_ns": ttft,
        "e2e_ns": e2e,
        **_tokens(usage, attributes),
        "streamed": _streamed(attributes, facts, ttft),
        "max_output_tokens": facts["limit"] if "limit" in facts else _limit(sent),
        **settings_in(sent),
        "attempt": facts.get("attempt") or None,
        "status": status,
        "error": error,
        "finish_reason": reason,
        "service_tier": facts.get("tier"),
        "cost": _cost(facts.get("cost")),
    }
    return _told(columns), "; ".join(strange)


def _told(columns: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in columns.items() if value is not None}


def _tokens(usage: dict[str, Any], attributes: Mapping[str, Any]) -> dict[str, Any]:
    buckets = token_buckets(usage)
    vendor = str(attributes.get("ai.model.provider", ""))
    if (
        vendor.startswith(("anthropic", "amazon-bedrock", "google-vertex.anthropic"))
        and buckets.get("usage_convention") == "inclusive"
        and "cache_read_input_tokens" in usage
        and _DETAILS not in attributes
        and usage["cache_read_input_tokens"]
    ):
        # AI SDK 5 hands on what these vendors count, without the cached; 6 adds them and their sum.
        buckets |= {"input_fresh_tokens": None, "usage_convention": "unknown"}
    return buckets


def _ttft(span: Span, facts: dict[str, Any]) -> tuple[int | None, bool]:
    """Time to first token, and whether it is stated or follows from an event."""
    for fact, to_ns in (("ttft_s", seconds_to_ns), ("ttft_ms", ms_to_ns)):
        given = facts.get(fact)
        if isinstance(given, (int, float, str)) and (value := to_ns(given)) is not None:
            return value, True
    if span.start_ns is None:
        return None, False
    begun = span.attributes.get("langfuse.observation.completion_start_time")
    at = time_to_ns(begun.strip('"')) if isinstance(begun, str) else None
    if at is None:
        stamps = (when for name, when, _ in span.events if names.FIRST_TOKEN.search(name))
        at = next((when for when in stamps if when is not None), None)
    return (None if at is None else at - span.start_ns), False


def _vantage(span: Span) -> str:
    service = text_or_none(span.resource.get("service.name")) or ""
    return "gateway" if span.server or _GATEWAY.search(service) else "client"


def _provider(attributes: Mapping[str, Any], facts: dict[str, Any]) -> str | None:
    vercel = text_or_none(attributes.get("ai.model.provider"))
    if vercel:
        return vercel.partition(".")[0]
    told = facts.get("provider")
    return None if told is None else _PROVIDERS.get(told, told)


def _streamed(
    attributes: Mapping[str, Any], facts: dict[str, Any], ttft: int | None
) -> bool | None:
    told = facts.get("stream")
    if told in (True, "true", "True"):
        return True
    if told in (False, "false", "False"):
        return False
    vercel = str(attributes.get("ai.operationId", ""))
    if vercel.endswith((".doStream", ".doGenerate")):
        return vercel.endswith(".doStream")
    return True if ttft is not None else None


def _sent(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of the call, where they stand in one attribute."""
    sent = attributes.get("llm.invocation_parameters")
    if isinstance(sent, str) and len(sent) < _MOST_PARAMETERS:
        try:
            sent = json.loads(sent)
        except (ValueError, RecursionError):
            return {}
    return sent if isinstance(sent, dict) else {}


def _limit(sent: dict[str, Any]) -> int | None:
    limits = (names.count(sent.get(name)) for name in _LIMITS_SENT)
    return next((limit for limit in limits if limit is not None), None)


def _finish_reason(told: Any) -> str | None:  # noqa: ANN401 - foreign JSON
    """One word: a list of one, or its JSON; anything longer is no reason."""
    if isinstance(told, str) and told.startswith("["):
        try:
            told = json.loads(told)
        except (ValueError, RecursionError):
            return None
    if isinstance(told, list):
        told = told[0] if told else None
    return told if isinstance(told, str) and _WORD.fullmatch(told) else None


def _error(span: Span, status: int | None, reason: str | None) -> str | None:
    if attribute := span.attributes.get("error.type"):
        texts = [str(attribute)]
    elif span.failed or span.attributes.get("success") in (False, "false"):
        texts = []
    else:
        return "cancelled" if reason in ("abort", "cancelled") else None
    if status is not None and status >= 400:
        return f"http {status}"
    for name, _, told in span.events:
        if name == "exception":
            texts += [str(told.get("exception.type", "")), str(told.get("exception.message", ""))]
    if _STATUS.fullmatch(texts[0] if texts else ""):
        return f"http {texts[0]}"
    classes = (error_class(text) for text in texts)
    return next((one for one in classes if one not in (None, "error")), "error")


def _cost(told: Any) -> str | None:  # noqa: ANN401 - foreign JSON
    try:
        amount = usd(told) if isinstance(told, (int, float, str)) else None
    except Bad:
        return None
    return str(amount) if amount is not None and amount >= 0 else None


KIND = Kind(matches=_matches, part=_part, joined=joined, name="genai", general=True)

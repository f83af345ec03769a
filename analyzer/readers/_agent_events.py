"""Events that coding agents log of each call of a model: Claude Code, Gemini CLI and Qwen Code.

Each is written when the call ends, so it began its duration earlier. Their metrics count the same
tokens again and are never added.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from analyzer.readers._errors import error_class
from analyzer.readers._jsonl import Bad, Sink, usd
from analyzer.readers._otlp import Event
from analyzer.readers._parts import word_of
from analyzer.readers._rows import text_or_none
from analyzer.readers._spans._genai_names import SESSION, count, first_of
from analyzer.readers._times import ms_to_ns, time_to_ns
from analyzer.readers._usage import token_buckets, usage_contradiction

UNKNOWN = "log record of no known event"
NO_CALL = "event of an agent that is no answer of a model"
AGAIN = "event that the span of its call tells too"

_NAME = re.compile(r"(?:(claude_code|gemini_cli|qwen-code)\.)?([\w.]+)")
_CLAUDE, _GEMINI = "claude_code", ("gemini_cli", "qwen-code")
_CALLS = {_CLAUDE: ("api_request", "api_error")} | dict.fromkeys(
    _GEMINI, ("api_response", "api_error")
)
_SERVICES = {"claude-code": _CLAUDE, "gemini-cli": "gemini_cli", "qwen-code": "qwen-code"}
_CLAUDE_USAGE = {
    "input_tokens": "input_tokens", "output_tokens": "output_tokens",
    "cache_read_input_tokens": "cache_read_tokens",
    "cache_creation_input_tokens": "cache_creation_tokens",
}  # fmt: skip
_GEMINI_USAGE = {
    "promptTokenCount": "input_token_count", "candidatesTokenCount": "output_token_count",
    "cachedContentTokenCount": "cached_content_token_count",
    "thoughtsTokenCount": "thoughts_token_count", "toolUsePromptTokenCount": "tool_token_count",
    "totalTokenCount": "total_token_count",
}  # fmt: skip
_TAGS = {
    "prompt_id": ("prompt.id", "prompt_id"), "query_source": ("query_source",),
    "auth_type": ("auth_type",), "speed": ("speed",),
}  # fmt: skip
_LONGEST_TAG = 100


def take_event(event: Event, record: int, sink: Sink) -> str:
    """Adds the row of an event that is a call of a model; what could not be believed of it."""
    agent, name = _agent(event)
    if agent is None:
        again = (event.name or "").startswith("gen_ai.client.")
        sink.ignored[AGAIN if again else UNKNOWN] += 1
        return ""
    if name not in _CALLS[agent]:
        sink.ignored[NO_CALL] += 1
        return ""
    told = event.attributes
    duration = ms_to_ns(_ms(told.get("duration_ms")))
    end = time_to_ns(told.get("event.timestamp")) or event.time_ns
    usage = _usage(told, _CLAUDE_USAGE if agent == _CLAUDE else _GEMINI_USAGE)
    error, status = _failure(told, failed=name == "api_error")
    strange = usage_contradiction(usage)
    sink.add(
        "request",
        record,
        vantage="client",
        request_id=text_or_none(told.get("request_id")),
        session_id=first_of(told, SESSION),
        attempt=count(told.get("attempt")) or None,
        model=text_or_none(told.get("model")),
        provider="anthropic" if agent == _CLAUDE else None,
        start_ns=end - duration if end is not None and duration is not None else None,
        clock="wall",
        timing="stated" if duration is not None else None,
        ttft_ns=ms_to_ns(_ms(told.get("ttft_ms"))),
        e2e_ns=duration,
        **token_buckets(usage),
        status=status,
        error=error,
        reported_cost_usd=_cost(told),
        speed=word_of(told.get("speed")),
        effort=word_of(told.get("effort")),
    )
    for tag, spellings in _TAGS.items():
        if (text := first_of(told, spellings)) and len(text) <= _LONGEST_TAG:
            sink.add("request_tag", record, name=tag, value=text)
    return f"{strange}; the counts are stored as told" if strange else ""


def _agent(event: Event) -> tuple[str | None, str]:
    """Whose event it is, and its name there; the name alone may be anybody's."""
    match = _NAME.fullmatch(event.name or "")
    if match is None:
        return None, ""
    return match[1] or _SERVICES.get(str(event.resource.get("service.name", ""))), match[2]


def _ms(value: Any) -> float | str | None:  # noqa: ANN401 - foreign JSON
    """Milliseconds, as a number or its text."""
    return value if isinstance(value, (int, float, str)) else None


def _usage(told: Mapping[str, Any], spelled: Mapping[str, str]) -> dict[str, Any]:
    """The vendor's own usage object; an event tells each count, or says nothing."""
    counts = {ours: count(told.get(theirs)) for ours, theirs in spelled.items()}
    return {ours: value for ours, value in counts.items() if value is not None}


def _failure(told: Mapping[str, Any], *, failed: bool) -> tuple[str | None, int | None]:
    status = count(told.get("status_code"))
    status = status if status is not None and 100 <= status <= 599 else None
    if not failed and (status is None or status < 400):
        return None, status
    if status is not None and status >= 400:
        return f"http {status}", status
    text = first_of(told, ("error", "error.message", "error_message", "error_type"))
    return error_class(text or "") or "error", status


def _cost(told: Mapping[str, Any]) -> Any:  # noqa: ANN401 - a decimal
    value = told.get("cost_usd")
    try:
        amount = usd(value) if isinstance(value, (int, float, str)) else None
    except Bad:
        return None
    return amount if amount is not None and amount >= 0 else None

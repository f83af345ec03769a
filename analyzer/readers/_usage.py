"""Vendors' usage objects as disjoint token buckets.

Every vendor counts differently: OpenAI's prompt includes what was cached, Anthropic's does not.
A bucket the vendor does not tell is None, never 0.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

BUCKETS = (
    "input_fresh_tokens",
    "cache_read_tokens",
    "cache_write_short_tokens",
    "cache_write_long_tokens",
    "cache_write_unknown_tokens",
    "output_visible_tokens",
    "output_reasoning_tokens",
)


_ANTHROPIC = {"cache_creation_input_tokens", "cache_read_input_tokens", "cache_creation"}
"""Keys that only Anthropic's usage has; newer ones share a key with OpenAI's responses."""


def token_buckets(usage: Any) -> dict[str, Any]:  # noqa: ANN401 - foreign JSON
    """Columns of ``request`` from one usage object; empty where it is none.

    Recognised by its keys: OpenAI chat (and DeepSeek, OpenRouter, Groq), OpenAI responses,
    Anthropic, Gemini, Bedrock.
    """
    if not isinstance(usage, dict):
        return {}
    if "promptTokenCount" in usage or "candidatesTokenCount" in usage:
        return _gemini(usage)
    if "inputTokens" in usage or "outputTokens" in usage:
        return _bedrock(usage)
    if "prompt_tokens" in usage or "completion_tokens" in usage:
        return _openai(usage, "prompt_tokens", "completion_tokens")
    made = usage.get("output_tokens_details")
    anthropic = _ANTHROPIC & usage.keys() or (isinstance(made, dict) and "thinking_tokens" in made)
    if not anthropic and ("input_tokens_details" in usage or made is not None):
        return _openai(usage, "input_tokens", "output_tokens")
    if "input_tokens" in usage or "output_tokens" in usage:
        return _anthropic(usage)
    return {}


def _count(holder: Any, *names: str) -> int | None:  # noqa: ANN401
    """First named value that is a whole, non-negative count."""
    if not isinstance(holder, dict):
        return None
    for name in names:
        value = holder.get(name)
        if isinstance(value, bool):
            continue
        if isinstance(value, Decimal):  # which keeps the time stamps of its line exact
            value = float(value)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, int) and value >= 0:
            return value
    return None


def _less(total: int | None, *parts: int | None) -> int | None:
    return None if total is None else max(0, total - sum(part or 0 for part in parts))


def _openai(usage: dict[str, Any], prompt: str, completion: str) -> dict[str, Any]:
    given = usage.get(f"{prompt}_details")
    made = usage.get(f"{completion}_details")
    total_in, total_out = _count(usage, prompt), _count(usage, completion)
    read = _count(given, "cached_tokens")
    if read is None:
        read = _count(usage, "prompt_cache_hit_tokens", "cached_tokens")
    write = _count(given, "cache_write_tokens")
    split = given.get("cache_write_tokens_details") if isinstance(given, dict) else None
    short, long = _count(split, "ttl_30m_tokens"), _count(split, "ttl_12h_tokens")
    unknown = _less(write, short, long) if write is not None else None
    reasoning = _count(made, "reasoning_tokens")
    return {
        "input_fresh_tokens": _less(total_in, read, write),
        "cache_read_tokens": read,
        "cache_write_short_tokens": short,
        "cache_write_long_tokens": long,
        "cache_write_unknown_tokens": unknown,
        "output_visible_tokens": _less(total_out, reasoning),
        "output_reasoning_tokens": reasoning,
        "usage_convention": "inclusive",
    }


def _anthropic(usage: dict[str, Any]) -> dict[str, Any]:
    written = _count(usage, "cache_creation_input_tokens")
    split = usage.get("cache_creation")
    short = _count(split, "ephemeral_5m_input_tokens")
    long = _count(split, "ephemeral_1h_input_tokens")
    reasoning = _count(usage.get("output_tokens_details"), "thinking_tokens")
    return {
        "input_fresh_tokens": _count(usage, "input_tokens"),
        "cache_read_tokens": _count(usage, "cache_read_input_tokens"),
        "cache_write_short_tokens": short,
        "cache_write_long_tokens": long,
        "cache_write_unknown_tokens": _less(written, short, long),
        "output_visible_tokens": _less(_count(usage, "output_tokens"), reasoning),
        "output_reasoning_tokens": reasoning,
        "usage_convention": "exclusive",
    }


def _gemini(usage: dict[str, Any]) -> dict[str, Any]:
    read = _count(usage, "cachedContentTokenCount")
    prompt = _count(usage, "promptTokenCount")
    tools = _count(usage, "toolUsePromptTokenCount")
    return {
        "input_fresh_tokens": None if prompt is None else _less(prompt + (tools or 0), read),
        "cache_read_tokens": read,
        "output_visible_tokens": _count(usage, "candidatesTokenCount", "responseTokenCount"),
        "output_reasoning_tokens": _count(usage, "thoughtsTokenCount"),
        "usage_convention": "inclusive",
    }


def _bedrock(usage: dict[str, Any]) -> dict[str, Any]:
    written = _count(usage, "cacheWriteInputTokens", "cacheWriteInputTokenCount")
    short = long = None
    details = usage.get("cacheDetails")
    for detail in details if isinstance(details, list) else ():
        tokens = _count(detail, "inputTokens")
        if isinstance(detail, dict) and detail.get("ttl") == "5m":
            short = (short or 0) + (tokens or 0)
        elif isinstance(detail, dict) and detail.get("ttl") == "1h":
            long = (long or 0) + (tokens or 0)
    return {
        "input_fresh_tokens": _count(usage, "inputTokens"),
        "cache_read_tokens": _count(usage, "cacheReadInputTokens", "cacheReadInputTokenCount"),
        "cache_write_short_tokens": short,
        "cache_write_long_tokens": long,
        "cache_write_unknown_tokens": _less(written, short, long),
        "output_visible_tokens": _count(usage, "outputTokens"),
        "usage_convention": "exclusive",
    }

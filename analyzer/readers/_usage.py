"""Vendors' usage objects as disjoint token buckets.

Every vendor counts differently: OpenAI's prompt includes what was cached, Anthropic's does not;
OpenAI's completion includes the reasoning, Gemini's and xAI's do not. The vocabulary of the object
says whose counting it is. Where relays mix vocabularies, its own total decides; where that decides
nothing either, the convention is ``unknown`` and the fresh tokens are not told.
A bucket the vendor does not tell is None, never 0.
"""

from __future__ import annotations

from dataclasses import dataclass
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

NOT_THE_SUM = "the total of tokens is not the sum of its parts"

_ANTHROPIC = {"cache_creation_input_tokens", "cache_read_input_tokens", "cache_creation"}
"""Keys that only Anthropic's usage has; newer ones share a key with OpenAI's responses."""
_CODEX = {"cached_input_tokens", "cache_write_input_tokens", "reasoning_output_tokens"}
_AI_SDK = {"cachedInputTokens", "reasoningTokens"}


@dataclass(frozen=True, slots=True)
class _Told:
    """What a usage object says, in one vocabulary; None = not told."""

    prompt: int | None = None
    read: int | None = None
    written: int | None = None
    short: int | None = None
    long: int | None = None
    completion: int | None = None
    reasoning: int | None = None
    total: int | None = None
    convention: str = "unknown"
    """How its vocabulary counts what was cached."""
    own: bool = True
    """It is the vendor's own vocabulary: only what cannot be speaks against its convention."""
    apart: bool = False
    """Its completion never includes the reasoning."""

    @property
    def cached(self) -> int:
        return (self.read or 0) + max(self.written or 0, (self.short or 0) + (self.long or 0))

    def _inputs(self) -> dict[str, int]:
        """Convention -> prompt tokens in all, for the conventions that are possible."""
        inside, outside = self.prompt or 0, (self.prompt or 0) + self.cached
        if self.own and self.convention == "inclusive" and self.cached <= inside:
            return {"inclusive": inside}
        if self.cached > inside:
            return {"exclusive": outside}
        return {"inclusive": inside, "exclusive": outside}

    def reasoning_apart(self) -> bool:
        """Whether the reasoning is counted beside the completion instead of in it."""
        made, thought = self.completion or 0, self.reasoning or 0
        if self.apart or thought > made:
            return True
        if self.total is None or not thought:
            return False
        sums = self._inputs().values()
        return self.total - made not in sums and self.total - made - thought in sums

    @property
    def output(self) -> int:
        return (self.completion or 0) + ((self.reasoning or 0) if self.reasoning_apart() else 0)

    def counted(self) -> str:
        """The convention these very numbers follow."""
        possible = self._inputs()
        if not self.cached or self.prompt is None:
            return self.convention
        if len(possible) == 1:
            return next(iter(possible))
        if self.own:
            return self.convention
        if self.total is None:
            return self.convention
        rest = self.total - self.output
        return next((name for name, tokens in possible.items() if tokens == rest), "unknown")

    def contradiction(self) -> str:
        """Why these numbers cannot all be right; empty where they can."""
        lived = (self.short or 0) + (self.long or 0)
        if self.written is not None and (self.short, self.long) != (None, None):
            if lived > self.written:
                return "the cache writes by lifetime exceed their total"
            if 0 < lived < self.written and None not in (self.short, self.long):
                return "the cache writes by lifetime are less than their total"
        if self._too_much_cached():
            return "more tokens are cached than the prompt has"
        if self.total is None or self.prompt is None:
            return ""
        if self.total - self.output in self._inputs().values():
            return ""
        return NOT_THE_SUM

    def _too_much_cached(self) -> bool:
        """The vendor's own words say that the prompt includes what was cached, and it cannot."""
        if not self.own or self.convention != "inclusive" or self.prompt is None:
            return False
        apart = self.total is not None and self.total == self.prompt + self.cached + self.output
        return self.cached > self.prompt and not apart

    def buckets(self) -> dict[str, Any]:
        wrong = self.contradiction()
        convention = self.counted()
        fresh = self.prompt
        if fresh is not None and self.cached and convention != "exclusive":
            fresh = fresh - self.cached if convention == "inclusive" else None
        visible = self.completion
        if visible is not None and not self.reasoning_apart():
            visible -= self.reasoning or 0
        return {
            "input_fresh_tokens": fresh,
            "cache_read_tokens": self.read,
            "cache_write_short_tokens": self.short,
            "cache_write_long_tokens": self.long,
            "cache_write_unknown_tokens": _rest(self.written, self.short, self.long),
            "output_visible_tokens": visible,
            "output_reasoning_tokens": self.reasoning,
            "usage_convention": convention,
        } | ({"usage_contradiction": wrong} if wrong else {})


Counts = _Told
"""For a reader whose format has a vocabulary of its own: ``Counts(...).buckets()``."""


def token_buckets(usage: Any) -> dict[str, Any]:  # noqa: ANN401 - foreign JSON
    """Columns of ``request`` from one usage object; empty where it is none.

    Recognised by its keys: OpenAI chat (and DeepSeek, OpenRouter, Groq, xAI, Mistral, LiteLLM),
    OpenAI responses, Anthropic, Gemini, Bedrock, Cohere, Codex and the AI SDK.
    """
    told = _told(usage)
    return told.buckets() if told else {}


def usage_contradiction(usage: Any) -> str:  # noqa: ANN401
    """Why the numbers of a usage object cannot all be right; empty where they can."""
    told = _told(usage)
    return told.contradiction() if told else ""


def merged_usage(before: Any, now: Any) -> Any:  # noqa: ANN401
    """The usage of a stream after one more event that tells some: running totals, never deltas.

    A later event may leave out or null what an earlier one told, so each field keeps its last word.
    """
    if not isinstance(now, dict) or not now:
        return before
    if not isinstance(before, dict):
        return now
    return before | {name: value for name, value in now.items() if value is not None}


def _told(usage: Any) -> _Told | None:  # noqa: ANN401
    if not isinstance(usage, dict):
        return None
    keys = usage.keys()
    made = usage.get("output_tokens_details")
    if keys & {"promptTokenCount", "candidatesTokenCount", "prompt_token_count"}:
        return _gemini(usage)
    if keys & {"inputTokens", "outputTokens"}:
        return _ai_sdk(usage) if keys & _AI_SDK else _bedrock(usage)
    if keys & {"inputTokenCount", "outputTokenCount"}:
        return _bedrock(usage)
    if keys & {"prompt_tokens", "completion_tokens", "prompt_cache_miss_tokens"}:
        return _chat(usage)
    if isinstance(usage.get("tokens"), dict) or isinstance(usage.get("billed_units"), dict):
        return _cohere(usage)
    if keys & _CODEX:
        return _codex(usage)
    anthropic = keys & _ANTHROPIC or (isinstance(made, dict) and "thinking_tokens" in made)
    if not anthropic and (
        keys & {"input_tokens_details", "input_token_details"} or made is not None
    ):
        return _responses(usage)
    return _anthropic(usage) if keys & {"input_tokens", "output_tokens"} else None


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


def _rest(total: int | None, *parts: int | None) -> int | None:
    return None if total is None else max(0, total - sum(part or 0 for part in parts))


def _sum(*parts: int | None) -> int | None:
    told = [part for part in parts if part is not None]
    return sum(told) if told else None


def _chat(usage: dict[str, Any]) -> _Told:
    given, made = usage.get("prompt_tokens_details"), usage.get("completion_tokens_details")
    read = _count(given, "cached_tokens")
    if read is None:
        read = _count(usage, "prompt_cache_hit_tokens", "cached_tokens", "num_cached_tokens")
    prompt, missed = _count(usage, "prompt_tokens"), _count(usage, "prompt_cache_miss_tokens")
    # Anthropic's names beside OpenAI's are a relay's, and relays differ in what they include.
    relayed = bool(_ANTHROPIC & usage.keys())
    if relayed:
        read = _first(_count(usage, "cache_read_input_tokens"), read)
    split = _first_dict(
        usage.get("cache_creation"),
        given.get("cache_creation_token_details") if isinstance(given, dict) else None,
        given.get("cache_write_tokens_details") if isinstance(given, dict) else None,
    )
    return _Told(
        prompt=prompt if prompt is not None or missed is None else missed + (read or 0),
        read=read,
        written=_first(
            _count(usage, "cache_creation_input_tokens"),
            _count(given, "cache_write_tokens", "cache_creation_tokens"),
        ),
        short=_count(split, "ttl_30m_tokens", "ephemeral_5m_input_tokens"),
        long=_count(split, "ttl_12h_tokens", "ephemeral_1h_input_tokens"),
        completion=_count(usage, "completion_tokens"),
        reasoning=_first(_count(made, "reasoning_tokens"), _count(usage, "reasoning_tokens")),
        total=_count(usage, "total_tokens"),
        convention="inclusive",
        own=not relayed,
    )


def _responses(usage: dict[str, Any]) -> _Told:
    given = _first_dict(usage.get("input_tokens_details"), usage.get("input_token_details"))
    made = _first_dict(usage.get("output_tokens_details"), usage.get("output_token_details"))
    split = given.get("cache_write_tokens_details") if given else None
    return _Told(
        prompt=_count(usage, "input_tokens"),
        read=_count(given, "cached_tokens"),
        written=_count(given, "cache_write_tokens"),
        short=_count(split, "ttl_30m_tokens"),
        long=_count(split, "ttl_12h_tokens"),
        completion=_count(usage, "output_tokens"),
        reasoning=_count(made, "reasoning_tokens"),
        total=_count(usage, "total_tokens"),
        convention="inclusive",
    )


def _codex(usage: dict[str, Any]) -> _Told:
    return _Told(
        prompt=_count(usage, "input_tokens"),
        read=_count(usage, "cached_input_tokens"),
        written=_count(usage, "cache_write_input_tokens"),
        completion=_count(usage, "output_tokens"),
        reasoning=_count(usage, "reasoning_output_tokens"),
        total=_count(usage, "total_tokens"),
        convention="inclusive",
    )


def _anthropic(usage: dict[str, Any]) -> _Told:
    passes = [usage, *_compactions(usage)]

    def over(*path: str) -> int | None:
        values = []
        for one in passes:
            holder: Any = one
            for name in path[:-1]:
                holder = holder.get(name) if isinstance(holder, dict) else None
            values.append(_count(holder, path[-1]))
        return _sum(*values)

    return _Told(
        prompt=over("input_tokens"),
        read=over("cache_read_input_tokens"),
        written=over("cache_creation_input_tokens"),
        short=over("cache_creation", "ephemeral_5m_input_tokens"),
        long=over("cache_creation", "ephemeral_1h_input_tokens"),
        completion=over("output_tokens"),
        reasoning=over("output_tokens_details", "thinking_tokens"),
        total=_count(usage, "total_tokens"),
        convention="exclusive",
        own="total_tokens" not in usage,  # Anthropic sends none
    )


def _compactions(usage: dict[str, Any]) -> list[dict[str, Any]]:
    """Passes of one request that were made and billed, but are not in its own totals."""
    passes = usage.get("iterations")
    told = [one for one in passes if isinstance(one, dict)] if isinstance(passes, list) else []
    answers = [one for one in told if one.get("type") == "message"]
    for name in ("input_tokens", "output_tokens"):
        if _count(usage, name) != _sum(*(_count(one, name) for one in answers)):
            return []
    return [one for one in told if one.get("type") == "compaction"]


def _gemini(usage: dict[str, Any]) -> _Told:
    prompt = _count(usage, "promptTokenCount", "prompt_token_count")
    total = _count(usage, "totalTokenCount", "total_token_count")
    tools = _count(usage, "toolUsePromptTokenCount", "tool_use_prompt_token_count")
    made = _count(
        usage, "candidatesTokenCount", "responseTokenCount", "candidates_token_count",
        "response_token_count",
    )  # fmt: skip
    thought = _count(usage, "thoughtsTokenCount", "thoughts_token_count")
    read = _count(usage, "cachedContentTokenCount", "cached_content_token_count")
    asked = _sum(prompt, tools)
    if total is not None and total == (asked or 0) + (made or 0) + (thought or 0):
        # Counts of 0 are left out of the JSON, and the total shows that these are 0.
        made, thought, read = made or 0, thought or 0, read or 0
    return _Told(
        prompt=None if prompt is None else asked,
        read=read,
        completion=made,
        reasoning=thought,
        total=total,
        convention="inclusive",
        apart=True,
    )


def _bedrock(usage: dict[str, Any]) -> _Told:
    short = long = None
    details = usage.get("cacheDetails")
    for detail in details if isinstance(details, list) else ():
        tokens = _count(detail, "inputTokens")
        if isinstance(detail, dict) and detail.get("ttl") == "5m":
            short = (short or 0) + (tokens or 0)
        elif isinstance(detail, dict) and detail.get("ttl") == "1h":
            long = (long or 0) + (tokens or 0)
    return _Told(
        prompt=_count(usage, "inputTokens", "inputTokenCount"),
        read=_count(usage, "cacheReadInputTokens", "cacheReadInputTokenCount"),
        written=_count(usage, "cacheWriteInputTokens", "cacheWriteInputTokenCount"),
        short=short,
        long=long,
        completion=_count(usage, "outputTokens", "outputTokenCount"),
        total=_count(usage, "totalTokens"),
        convention="exclusive",
    )


def _ai_sdk(usage: dict[str, Any]) -> _Told:
    # It hands on what the vendor counted, so only the numbers can tell the convention.
    return _Told(
        prompt=_count(usage, "inputTokens"),
        read=_count(usage, "cachedInputTokens"),
        completion=_count(usage, "outputTokens"),
        reasoning=_count(usage, "reasoningTokens"),
        total=_count(usage, "totalTokens"),
        own=False,
    )


def _cohere(usage: dict[str, Any]) -> _Told:
    # What the model processed; billed units leave out the vendor's own preamble.
    counted = _first_dict(usage.get("tokens"), usage.get("billed_units"))
    return _Told(
        prompt=_count(counted, "input_tokens"),
        read=_count(usage, "cached_tokens"),
        completion=_count(counted, "output_tokens"),
        convention="inclusive",
    )


def _first(*values: int | None) -> int | None:
    return next((value for value in values if value is not None), None)


def _first_dict(*values: Any) -> dict[str, Any] | None:  # noqa: ANN401
    return next((value for value in values if isinstance(value, dict)), None)

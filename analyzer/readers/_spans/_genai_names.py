"""Names under which GenAI spans tell the same thing, and what makes a span a model call.

Current OpenTelemetry names first, then deprecated ones and those of OpenInference (Phoenix),
Traceloop, the Vercel AI SDK, pydantic-ai, Langfuse, langwatch, LangSmith and Claude Code.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from analyzer.readers._rows import text_or_none

CALL, AROUND, OTHER = "call", "around", ""
"""A model call; a span of an agent, a tool, an embedding or another step; neither."""

SESSION = (
    "gen_ai.conversation.id", "session.id", "langfuse.session.id", "langwatch.thread.id",
    "traceloop.association.properties.session_id", "traceloop.association.properties.thread_id",
    "traceloop.association.properties.conversation_id", "langsmith.metadata.session_id",
    "langsmith.trace.session_id", "ai.telemetry.metadata.sessionId",
    "ai.telemetry.metadata.session.id", "claude.code.session_id", "exgentic.session.id",
)  # fmt: skip
_TEXTS: Mapping[str, tuple[str, ...]] = {
    "model": (
        "gen_ai.response.model", "llm.response.model_name", "ai.response.model",
        "gen_ai.request.model", "llm.model_name", "llm.request.model_name", "llm.request.model",
        "ai.model.id", "langfuse.observation.model.name",
    ),
    "provider": ("gen_ai.provider.name", "gen_ai.system", "llm.provider", "llm.system"),
    "session": SESSION,
    "response": ("gen_ai.response.id", "ai.response.id", "llm.response.id"),
    "tier": ("openai.response.service_tier", "gen_ai.openai.response.service_tier"),
    "request": ("request_id",),
}  # fmt: skip
_VALUES: Mapping[str, tuple[str, ...]] = {
    "stream": (
        "gen_ai.request.stream", "gen_ai.is_streaming", "llm.is_streaming", "gen_ai.streaming",
    ),
    "finish": (
        "gen_ai.response.finish_reasons", "gen_ai.response.finish_reason",
        "ai.response.finishReason", "gen_ai.completion.0.finish_reason",
        "llm.response.finish_reason", "llm.finish_reason", "llm.response.stop_reason",
        "stop_reason",
    ),
    "cost": ("gen_ai.usage.cost", "llm.cost.total", "operation.cost"),
    "ttft_s": (
        "gen_ai.response.time_to_first_chunk", "gen_ai.client.operation.time_to_first_chunk",
        "gen_ai.response.time_to_first_token", "gen_ai.server.time_to_first_token",
    ),
    "ttft_ms": ("ai.response.msToFirstChunk", "ttft_ms"),
}  # fmt: skip
_COUNTS: Mapping[str, tuple[str, ...]] = {
    "limit": (
        "gen_ai.request.max_tokens", "llm.request.max_tokens", "ai.settings.maxOutputTokens",
        "ai.settings.maxTokens",
    ),
    "attempt": ("attempt",),
    "status": ("http.response.status_code", "http.status_code", "status_code", "error.type"),
    "input": (
        "gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.token_count.prompt",
        "llm.usage.prompt_tokens", "ai.usage.inputTokens", "ai.usage.promptTokens",
    ),
    "output": (
        "gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens",
        "llm.token_count.completion", "llm.usage.completion_tokens", "ai.usage.outputTokens",
        "ai.usage.completionTokens",
    ),
    "read": (
        "gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.cache_read_input_tokens",
        "gen_ai.usage.details.cache_read_tokens", "gen_ai.usage.details.cache_read_input_tokens",
        "gen_ai.usage.input_tokens.cached", "llm.token_count.prompt_details.cache_read",
        "llm.usage.cache_read_input_tokens", "ai.usage.inputTokenDetails.cacheReadTokens",
        "ai.usage.cachedInputTokens",
    ),
    "write": (
        "gen_ai.usage.cache_creation.input_tokens", "gen_ai.usage.cache_creation_input_tokens",
        "gen_ai.usage.details.cache_write_tokens",
        "gen_ai.usage.details.cache_creation_input_tokens",
        "llm.token_count.prompt_details.cache_write", "llm.usage.cache_creation_input_tokens",
        "ai.usage.inputTokenDetails.cacheWriteTokens",
    ),
    "reasoning": (
        "gen_ai.usage.reasoning.output_tokens", "gen_ai.usage.reasoning_tokens",
        "gen_ai.usage.details.reasoning_tokens", "gen_ai.usage.output_tokens.reasoning",
        "llm.token_count.completion_details.reasoning", "llm.usage.reasoning_tokens",
        "ai.usage.outputTokenDetails.reasoningTokens", "ai.usage.reasoningTokens",
    ),
    "total": (
        "gen_ai.usage.total_tokens", "llm.token_count.total", "llm.usage.total_tokens",
        "ai.usage.totalTokens",
    ),
}  # fmt: skip
_INDEX = {
    name: (fact, rank, how)
    for how, group in (("text", _TEXTS), ("value", _VALUES), ("count", _COUNTS))
    for fact, names in group.items()
    for rank, name in enumerate(names)
}
FIRST_TOKEN = re.compile(
    r"first.{0,3}(?:token|chunk)|llm\.content\.completion\.chunk", re.IGNORECASE
)
"""Events that mark the first token; of those that come once a chunk, the first."""

_CALLS = ("chat", "generate_content", "text_completion", "completion", "llm_call", "responses")
# One attribute whose value says it all, and which of its values is a model call.
_SAYS = (
    ("openinference.span.kind", ("llm",)),
    ("gen_ai.operation.name", _CALLS),
    ("langfuse.observation.type", ("generation",)),
    ("langwatch.span.type", ("llm",)),
    ("langsmith.span.kind", ("llm",)),
    ("llm.request.type", ("chat", "completion")),
)
_CLAUDE_CODE = "claude_code."
_OF_CLAUDE_CODE = {
    "input_tokens": "input_tokens", "output_tokens": "output_tokens",
    "cache_read_input_tokens": "cache_read_tokens",
    "cache_creation_input_tokens": "cache_creation_tokens",
}  # fmt: skip

# Some include what was cached in the prompt, as the conventions ask, and some do not: under these
# keys the numbers decide.
_AS_USAGE = {
    "input": "prompt_tokens", "output": "completion_tokens", "total": "total_tokens",
    "read": "cache_read_input_tokens", "write": "cache_creation_input_tokens",
}  # fmt: skip


def role(name: str, attributes: Mapping[str, Any], facts: Mapping[str, Any]) -> str:
    """Whether a span is a model call, a step around one, or neither."""
    vercel = attributes.get("ai.operationId")
    if isinstance(vercel, str) and vercel.startswith("ai."):
        # The outer span of a call says the sums of its steps again.
        return CALL if vercel.endswith((".doGenerate", ".doStream")) else AROUND
    if name.startswith(_CLAUDE_CODE):
        return CALL if name == "claude_code.llm_request" else AROUND
    for key, calls in _SAYS:
        if isinstance(said := attributes.get(key), str):
            return CALL if said.lower() in calls else AROUND
    if "traceloop.span.kind" in attributes:
        return AROUND
    told = "input" in facts or "output" in facts
    return CALL if told and "provider" in facts and "model" in facts else OTHER


def facts_of(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """What the attributes say, each fact under the first of its names that tells it."""
    found: dict[str, Any] = {}
    ranks: dict[str, int] = {}
    for name, value in attributes.items():
        if (known := _INDEX.get(name)) is None:
            continue
        fact, rank, how = known
        if fact in ranks and ranks[fact] <= rank:
            continue
        if how != "value":
            value = count(value) if how == "count" else text_or_none(value)
        if value is not None:
            found[fact], ranks[fact] = value, rank
    return found


def first_of(attributes: Mapping[str, Any], names: tuple[str, ...]) -> str | None:
    """The first of these that is told, as text."""
    return next((text for n in names if (text := text_or_none(attributes.get(n)))), None)


def count(value: Any) -> int | None:  # noqa: ANN401 - foreign JSON
    """A count: int64 may be text, and a table of many spans makes floats of them."""
    if isinstance(value, str) and len(value) <= 24:
        try:
            value = float(value) if "." in value else int(value)
        except ValueError:
            return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        return None
    return value


def usage_of(name: str, attributes: Mapping[str, Any], facts: Mapping[str, Any]) -> dict[str, Any]:
    """The usage of a span in the vocabulary of :mod:`_usage`; empty where none is told."""
    if name.startswith(_CLAUDE_CODE):
        given = {key: count(attributes.get(theirs)) for key, theirs in _OF_CLAUDE_CODE.items()}
        return {key: value for key, value in given.items() if value is not None}
    if "input" not in facts and "output" not in facts:
        return {}
    usage = {ours: facts[theirs] for theirs, ours in _AS_USAGE.items() if theirs in facts}
    if "reasoning" in facts:
        usage["completion_tokens_details"] = {"reasoning_tokens": facts["reasoning"]}
    return usage

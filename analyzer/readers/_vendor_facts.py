"""What vendors' answers tell beside their tokens: ids, tier, cost, reasons, their own durations."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from analyzer.readers._errors import error_class
from analyzer.readers._jsonl import Bad, usd
from analyzer.readers._part_bodies import settings_in
from analyzer.readers._rows import int_or_none, text_or_none
from analyzer.readers._times import ms_to_ns, seconds_to_ns, time_to_ns
from analyzer.readers._vendor_media import media_tags

_FINISH = {
    "end_turn": "stop", "stop_sequence": "stop", "complete": "stop", "completed": "stop",
    "max_tokens": "length", "max_output_tokens": "length", "tool_use": "tool_calls",
    "model_context_window_exceeded": "length", "function_call": "tool_calls",
    "content_filtered": "content_filter", "guardrail_intervened": "content_filter",
    "safety": "content_filter", "prohibited_content": "content_filter",
    "blocklist": "content_filter", "tool_call": "tool_calls",
}  # fmt: skip
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")
_COUNTED_TAGS = ("web_search_requests", "web_fetch_requests")
_PASS_INPUTS = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
_USAGE_TAGS = ("speed", "inference_geo", "trafficType", "is_byok")


@dataclass
class Facts:
    """Columns of the row the answer belongs to, of the vendor's own row, and tags."""

    columns: dict[str, Any] = field(default_factory=dict)
    server: dict[str, Any] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)

    def learn(self, name: str, value: Any) -> None:  # noqa: ANN401 - a column
        """A column that is told."""
        if value is not None:
            self.columns[name] = value


def finish_word(reason: Any) -> str | None:  # noqa: ANN401 - foreign JSON
    """Why an answer ended, in the field's words: such as stop, length or tool_calls."""
    text = text_or_none(reason)
    if text is None or _WORD.fullmatch(text) is None:
        return None
    return _FINISH.get(text.lower(), text.lower())


def error_word(error: Any) -> str:  # noqa: ANN401
    """The vendor's own class of a failure; its message may quote the prompt and is not kept."""
    if isinstance(error, str):
        return error_class(error) or "error"
    if not isinstance(error, dict):
        return "error"
    for name in ("type", "status", "code"):
        word = error.get(name)
        if isinstance(word, str) and word != "error" and _WORD.fullmatch(word):
            return word
    status = int_or_none(error.get("code"))
    if status is not None and 400 <= status <= 599:
        return f"http {status}"
    message = error.get("message")
    return (error_class(message) if isinstance(message, str) else None) or "error"


def learn_error(facts: Facts, error: Any) -> None:  # noqa: ANN401
    """A failure, before the answer or in the middle of it."""
    facts.learn("error", error_word(error))
    code = int_or_none(error.get("code")) if isinstance(error, dict) else None
    if code is not None and 400 <= code <= 599:
        facts.learn("status", code)


def learn_usage(facts: Facts, usage: Any) -> None:  # noqa: ANN401
    """Tier, the vendor's own cost and durations, and what else a usage object has."""
    if not isinstance(usage, dict):
        return
    facts.learn("service_tier", _name(usage.get("service_tier") or usage.get("serviceTier")))
    cost = usage.get("cost")
    cost = cost.get("total_cost") if isinstance(cost, dict) else cost
    if isinstance(cost, (int, float)) and not isinstance(cost, bool):
        with suppress(Bad):
            facts.learn("reported_cost_usd", usd(cost))
    for ours, theirs in (("queue", "queue_time"), ("prefill", "prompt_time"),
                         ("decode", "completion_time")):  # fmt: skip
        told = usage.get(theirs)
        if isinstance(told, (int, float)) and not isinstance(told, bool):
            facts.server[f"{ours}_ns"] = seconds_to_ns(told)
    for name in _USAGE_TAGS:
        value = usage.get(name)
        text = str(value).lower() if isinstance(value, bool) else _name(value)
        if text is not None and text != "not_available":
            facts.tags[name] = text
    facts.learn("speed", facts.tags.get("speed"))
    tools = usage.get("server_tool_use")
    for name in _COUNTED_TAGS:
        count = int_or_none(tools.get(name)) if isinstance(tools, dict) else None
        if count:
            facts.tags[name] = str(count)
    facts.tags |= media_tags(usage)
    _learn_passes(facts, usage.get("iterations"))


def _learn_passes(facts: Facts, passes: Any) -> None:  # noqa: ANN401
    """Passes beside the answer itself.

    Another model's are priced as that model, so they are in no bucket; those of a compaction are
    in the buckets, though not in the vendor's own totals.
    """
    for one in passes if isinstance(passes, list) else ():
        kind = one.get("type") if isinstance(one, dict) else None
        if kind not in ("advisor_message", "compaction"):
            continue
        counts = [int_or_none(one.get(name)) or 0 for name in _PASS_INPUTS]
        for name, tokens in (
            (f"{kind}_input_tokens", sum(counts)),
            (f"{kind}_output_tokens", int_or_none(one.get("output_tokens")) or 0),
        ):
            facts.tags[name] = str(int(facts.tags.get(name, "0")) + tokens)
        if model := _name(one.get("model")):
            facts.tags[f"{kind}_model"] = model


def learn_answer(facts: Facts, answer: dict[str, Any]) -> None:
    """Top-level fields of an answer or of an event: id, model, tier, diagnosis, creation."""
    facts.learn("response_id", text_or_none(answer.get("id") or answer.get("responseId")))
    facts.learn("model", text_or_none(answer.get("model") or answer.get("modelVersion")))
    tier = answer.get("service_tier") or answer.get("serviceTier")
    facts.learn("service_tier", _name(tier.get("type") if isinstance(tier, dict) else tier))
    facts.learn("provider", _provider(answer, facts.columns.get("response_id")))
    facts.learn("request_id", text_or_none(answer.get("request_id")))
    groq = answer.get("x_groq")
    if isinstance(groq, dict):
        facts.learn("request_id", text_or_none(groq.get("id")))
    _learn_diagnosis(facts, answer)
    created = next(
        (answer[n] for n in ("created", "created_at", "createTime") if answer.get(n)), None
    )
    facts.server |= {"start_ns": ns} if (ns := time_to_ns(created)) is not None else {}
    metrics = answer.get("metrics")
    if isinstance(metrics, dict) and isinstance(metrics.get("latencyMs"), (int, float)):
        facts.server["e2e_ns"] = ms_to_ns(metrics["latencyMs"])
    learn_invocation(facts, answer.get("amazon-bedrock-invocationMetrics"))


def learn_invocation(facts: Facts, metrics: Any) -> None:  # noqa: ANN401
    """Bedrock's own measure of an invocation. Its first byte is not said to be a token."""
    if not isinstance(metrics, dict):
        return
    if isinstance(latency := metrics.get("invocationLatency"), (int, float)):
        facts.server["e2e_ns"] = ms_to_ns(latency)
    if (first := int_or_none(metrics.get("firstByteLatency"))) is not None:
        facts.tags["first_byte_latency_ms"] = str(first)
    facts.learn("provider", "aws.bedrock")


def learn_settings(facts: Facts, answer: dict[str, Any]) -> None:
    """What the responses API repeats of the request."""
    facts.learn("max_output_tokens", int_or_none(answer.get("max_output_tokens")))
    if isinstance(tools := answer.get("tools"), list):
        facts.learn("tools_count", len(tools))
    if isinstance(system := answer.get("instructions"), str):
        facts.learn("system_chars", len(system))
    for name, value in settings_in(answer).items():
        facts.learn(name, value)
    text = answer.get("text")
    wanted = text.get("format") if isinstance(text, dict) else None
    if isinstance(wanted, dict):
        facts.learn("response_format", _name(wanted.get("type")))


def _learn_diagnosis(facts: Facts, answer: dict[str, Any]) -> None:
    """The vendor's own word on why the prompt cache was missed; null while it is pending."""
    openai = answer.get("prompt_cache_diagnostics")
    if isinstance(openai, dict):
        facts.learn("cache_diagnosis", _name(openai.get("reason")) or _name(openai.get("type")))
        _learn_missed(facts, openai.get("cache_missed_tokens"))
    anthropic = answer.get("diagnostics")
    reason = anthropic.get("cache_miss_reason") if isinstance(anthropic, dict) else None
    if isinstance(reason, dict):
        facts.learn("cache_diagnosis", _name(reason.get("type")))
        _learn_missed(facts, reason.get("cache_missed_input_tokens"))


def _learn_missed(facts: Facts, tokens: Any) -> None:  # noqa: ANN401
    if (count := int_or_none(tokens)) is not None:
        facts.columns["cache_missed_tokens"] = count


def _provider(answer: dict[str, Any], response_id: str | None) -> str | None:
    """The vendor, where the answer itself shows it: OpenAI's form is everybody's."""
    usage = answer.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    meta = answer.get("usageMetadata")
    if isinstance(meta, dict):
        return "gcp.vertex_ai" if "trafficType" in meta else "gcp.gemini"
    if "x_groq" in answer:
        return "groq"
    if "prompt_cache_hit_tokens" in usage:
        return "deepseek"
    if "inputTokens" in usage:
        return "aws.bedrock"
    if answer.get("type") == "message" and response_id:
        if response_id.startswith("msg_bdrk_"):
            return "aws.bedrock"
        return "gcp.vertex_ai" if response_id.startswith("msg_vrtx_") else "anthropic"
    return _name(answer.get("provider"))


def _name(value: Any) -> str | None:  # noqa: ANN401
    """A short name of a closed vocabulary; anything else is not told."""
    if not isinstance(value, str) or not 0 < len(value) <= 80 or not value.isprintable():
        return None
    return value

"""Token counts that cannot all be right, and counts that only look so until one knows the vendor.

main: a relay adds the reasoning to the total twice over in every fifth answer. Others: the split
of the cache writes is that of a stream's first event; more cached than was asked; a gateway whose
row and usage object differ; an export whose total fits nothing; the log of a provider.

Innocent: every vendor's own way to count, inside and beside; a split that was never filled in.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from analyzer.simulate.writers import NS, openai_usage, request_record, rfc3339, to_json
from cases._build import MS, at, expect, silent, write_case

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MODEL = "plover-30b"
T0 = at("2026-09-12T08:00:00Z")
RULE = "trust.contradictory-totals"
LEFT_ALONE = ["errors.rate", "trust.contradictory-durations", "queue.admission-limit"]
COUNT = 80
Usage = dict[str, Any]


def _sizes(seed: int) -> list[tuple[int, int, int]]:
    """Prompt, output and reasoning of each answer."""
    rng = random.Random(seed)
    return [
        (rng.randrange(900, 9_000), rng.randrange(120, 900), rng.randrange(10, 100))
        for _ in range(COUNT)
    ]


def _records(folder: Path, usage: Callable[[int, int, int, int], Usage]) -> None:
    lines = [
        request_record(
            f"t-{k:03d}", vantage="client", started_ns=T0 + 9 * NS * k, model=MODEL, status=200,
            durations_ns={"ttft": 300 * MS, "e2e": 300 * MS + output * 9 * MS},
            finish_reason="stop",
            usage=usage(k, prompt, output, thought),
        )
        for k, (prompt, output, thought) in enumerate(_sizes(11))
    ]  # fmt: skip
    write_case(folder, {"client.jsonl": lines}, MODEL)


def _found(count: int) -> dict[str, Any]:
    return expect(RULE, "none", count, count, "requests", must_not=LEFT_ALONE)


CLEAN = silent([RULE, *LEFT_ALONE])


def _openai(prompt: int, output: int, thought: int) -> Usage:
    return openai_usage(prompt, output, cached=prompt // 3, reasoning=thought)


def main(folder: Path) -> None:
    """Every fifth total has the reasoning twice over, beside the completion it is in."""

    # Beside the completion, as some vendors count it, the reasoning would be in the total once.
    def usage(k: int, prompt: int, output: int, thought: int) -> Usage:
        told = _openai(prompt, output, thought)
        return told | {"total_tokens": prompt + output + 2 * thought} if k % 5 == 0 else told

    _records(folder, usage)


def twin(folder: Path) -> None:
    """Every total is the sum of its parts."""
    _records(folder, lambda _, prompt, output, thought: _openai(prompt, output, thought))


def variant_first_split(folder: Path) -> None:
    """Anthropic's writes by lifetime are those of the stream's first event in every fourth."""

    def usage(k: int, prompt: int, output: int, _: int) -> Usage:
        short = prompt // 6 if k % 4 == 0 else prompt
        return {
            "input_tokens": 5, "output_tokens": output, "cache_creation_input_tokens": prompt,
            "cache_read_input_tokens": 4 * prompt,
            "cache_creation": {"ephemeral_5m_input_tokens": short, "ephemeral_1h_input_tokens": 0},
        }  # fmt: skip

    _records(folder, usage)


def variant_cached(folder: Path) -> None:
    """More cached than asked in every tenth."""

    def usage(k: int, prompt: int, output: int, _: int) -> Usage:
        return openai_usage(prompt, output, cached=2 * prompt if k % 10 == 0 else prompt // 2)

    _records(folder, usage)


def _spend(k: int, prompt: int, output: int, *, wrong: bool) -> dict[str, Any]:
    start, end = T0 + 9 * NS * k, T0 + 9 * NS * k + output * 9 * MS
    told = prompt - prompt // 3 if wrong else prompt
    return {
        "request_id": f"chatcmpl-s{k:03d}", "call_type": "acompletion", "spend": 0.001,
        "total_tokens": told + output, "prompt_tokens": told, "completion_tokens": output,
        "startTime": rfc3339(start), "endTime": rfc3339(end), "completionStartTime": rfc3339(end),
        "model": MODEL, "custom_llm_provider": "hosted_vllm", "cache_hit": "None",
        "metadata": to_json({"usage_object": openai_usage(prompt, output, cached=prompt // 3)}),
        "status": "success",
    }  # fmt: skip


def variant_gateway(folder: Path) -> None:
    """LiteLLM's row leaves out what was cached, its usage object does not, in every eighth."""
    rows = [_spend(k, p, o, wrong=k % 8 == 0) for k, (p, o, _) in enumerate(_sizes(12))]
    write_case(folder, {"spend.json": [f"[{','.join(map(to_json, rows))}]"]}, MODEL)


def innocent_gateway(folder: Path) -> None:
    """LiteLLM's prompt includes what was cached, as its usage object does."""
    rows = [_spend(k, p, o, wrong=False) for k, (p, o, _) in enumerate(_sizes(12))]
    write_case(folder, {"spend.json": [f"[{','.join(map(to_json, rows))}]"]}, MODEL)


def _observation(k: int, usage: Usage, output: int) -> str:
    start = T0 + 9 * NS * k
    return to_json(
        {
            "id": f"ob-{k:03d}", "traceId": f"tr-{k:03d}", "parentObservationId": None,
            "type": "GENERATION", "name": "answer", "startTime": rfc3339(start),
            "endTime": rfc3339(start + output * 9 * MS), "completionStartTime": None,
            "level": "DEFAULT", "model": MODEL, "usageDetails": usage,
        }
    )  # fmt: skip


def _export(folder: Path, usage: Callable[[int, int, int, int], Usage]) -> None:
    lines = [
        _observation(k, usage(k, prompt, output, thought), output)
        for k, (prompt, output, thought) in enumerate(_sizes(13))
    ]
    write_case(folder, {"observations.jsonl": lines}, MODEL)


def variant_export(folder: Path) -> None:
    """A Langfuse sender counts the answer twice in the total of every sixteenth."""

    def usage(k: int, prompt: int, output: int, _: int) -> Usage:
        twice = 2 * output if k % 16 == 0 else output
        return {"input": prompt, "output": output, "total": prompt + twice}

    _export(folder, usage)


def innocent_export(folder: Path) -> None:
    """Disjoint buckets as meant, and senders whose input and output include the rest."""

    def usage(k: int, prompt: int, output: int, thought: int) -> Usage:
        read = prompt // 2
        if k % 2:
            return {
                "input": prompt, "input_cache_read": read, "output": output,
                "output_reasoning": thought, "total": prompt + read + output + thought,
            }  # fmt: skip
        return {
            "input": prompt, "input_cached_tokens": read, "output": output,
            "output_reasoning_tokens": thought, "total": prompt + output,
        }  # fmt: skip

    _export(folder, usage)


def _vendor(k: int, prompt: int, output: int, thought: int) -> Usage:
    """OpenAI, DeepSeek, Anthropic, Bedrock, Gemini, xAI, a relay that adds the cache, LiteLLM."""
    read = prompt // 2
    return [
        openai_usage(prompt, output, cached=read, reasoning=thought),
        {
            "prompt_tokens": prompt, "completion_tokens": output, "total_tokens": prompt + output,
            "prompt_cache_hit_tokens": read, "prompt_cache_miss_tokens": prompt - read,
        },
        {
            "input_tokens": 4, "output_tokens": output, "cache_read_input_tokens": 9 * prompt,
            "cache_creation_input_tokens": prompt,
            "cache_creation": {
                "ephemeral_5m_input_tokens": prompt - 60, "ephemeral_1h_input_tokens": 60,
            },
        },
        {
            "inputTokens": prompt, "outputTokens": output, "cacheReadInputTokens": 3 * prompt,
            "totalTokens": 4 * prompt + output,
        },
        {
            "promptTokenCount": prompt, "candidatesTokenCount": output,
            "cachedContentTokenCount": read, "thoughtsTokenCount": thought,
            "totalTokenCount": prompt + output + thought,
        },
        {
            "prompt_tokens": prompt, "completion_tokens": output,
            "total_tokens": prompt + output + thought,
            "completion_tokens_details": {"reasoning_tokens": thought},
        },
        {
            "prompt_tokens": prompt, "completion_tokens": output, "cache_read_input_tokens": read,
            "total_tokens": prompt + read + output,
        },
        {
            "prompt_tokens": prompt, "completion_tokens": output, "cache_read_input_tokens": read,
            "cache_creation_input_tokens": 100, "total_tokens": prompt + output,
        },
    ][k % 8]  # fmt: skip


def innocent_vendors(folder: Path) -> None:
    """Eight vendors and relays, each by its own documented convention."""
    _records(folder, _vendor)


def innocent_no_split(folder: Path) -> None:
    """A relay hands on the total of the writes and an empty split."""

    def usage(_: int, prompt: int, output: int, __: int) -> Usage:
        return {
            "input_tokens": 3, "output_tokens": output, "cache_creation_input_tokens": prompt,
            "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
        }  # fmt: skip

    _records(folder, usage)


def _invocation(k: int, prompt: int, output: int, *, wrong: bool) -> str:
    counted = 2 * prompt if wrong else prompt
    return to_json(
        {
            "schemaType": "ModelInvocationLog", "schemaVersion": "1.0",
            "timestamp": rfc3339(T0 + 9 * NS * k), "requestId": f"bd-{k:03d}",
            "operation": "Converse", "modelId": MODEL,
            "input": {"inputTokenCount": counted, "cacheReadInputTokenCount": 3 * prompt},
            "output": {
                "outputTokenCount": output,
                "outputBodyJson": {
                    "stopReason": "end_turn", "metrics": {"latencyMs": 9 * output},
                    "usage": {
                        "inputTokens": prompt, "outputTokens": output,
                        "cacheReadInputTokens": 3 * prompt, "totalTokens": 4 * prompt + output,
                    },
                },
            },
        }
    )  # fmt: skip


def variant_provider(folder: Path) -> None:
    """Bedrock's log counts another input than the answer it holds, in every twentieth."""
    lines = [_invocation(k, p, o, wrong=k % 20 == 0) for k, (p, o, _) in enumerate(_sizes(14))]
    write_case(folder, {"invocations.jsonl": lines}, MODEL)


def innocent_provider(folder: Path) -> None:
    """Bedrock's input leaves out what was cached, its total does not."""
    lines = [_invocation(k, p, o, wrong=False) for k, (p, o, _) in enumerate(_sizes(14))]
    write_case(folder, {"invocations.jsonl": lines}, MODEL)


CASES = {
    "main": (main, _found(16)),
    "twin": (twin, CLEAN),
    "first_split": (variant_first_split, _found(20)),
    "cached": (variant_cached, _found(8)),
    "gateway": (variant_gateway, _found(10)),
    "export": (variant_export, _found(5)),
    "provider": (variant_provider, _found(4)),
    "innocent_gateway": (innocent_gateway, CLEAN),
    "innocent_export": (innocent_export, CLEAN),
    "innocent_vendors": (innocent_vendors, CLEAN),
    "innocent_no_split": (innocent_no_split, CLEAN),
    "innocent_provider": (innocent_provider, CLEAN),
}

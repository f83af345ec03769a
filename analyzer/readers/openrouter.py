"""OpenRouter: generations of ``/api/v1/generation`` and the rows of its activity CSV.

``native_tokens_*`` are the provider's own counts; ``tokens_*`` are counted with a tokenizer of
OpenRouter's and priced nowhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from analyzer.contract.types import Batch
from analyzer.readers._exports import begin_of, count, number, read_rows, truth
from analyzer.readers._file import Head, InputFile
from analyzer.readers._jsonl import Bad, Sink, usd
from analyzer.readers._reader import Claim, Options, Reader
from analyzer.readers._rows import first, text_or_none
from analyzer.readers._times import ms_to_ns, time_to_ns
from analyzer.readers._usage import token_buckets
from analyzer.readers._vendor_facts import finish_word

_GENERATION = {"native_tokens_prompt", "native_tokens_completion"}
_ACTIVITY = {"generation_id", "tokens_prompt", "model_permaslug"}
_CREATED = "created_at was taken as the start of the request"
_NORMALISED = "tokens_prompt and tokens_completion were taken for the provider's own counts"
_LATENCY = "a latency below the generation's own time is not the whole: see label latency_ms"


def probe(head: Head) -> Claim:
    """Generations with native token counts, or the CSV with ``generation_id``."""
    needles = ((b"native_tokens_prompt",), (b"generation_id", b"model_permaslug"))
    for keys in (keys for one in needles for keys in begin_of(head, one).shapes()):
        if keys >= _GENERATION or keys >= _ACTIVITY:
            return Claim(1, "")
    return Claim(0, "it has no generations with native_tokens_prompt")


def _take(row: dict[str, Any], record: int, sink: Sink) -> None:
    name = text_or_none(first((row.get("id"), row.get("generation_id"))))
    if name is None or not row.keys() & (_GENERATION | _ACTIVITY | {"tokens_completion"}):
        raise Bad("no generation of OpenRouter: it has no id or no token counts")
    # Without a zone it is UTC.
    created = row.get("created_at")
    start = time_to_ns(created)
    if created and start is None:
        sink.time(record, "created_at", created)
    if start is not None:
        sink.assumed.add(_CREATED)
    times, tags = _times(row, sink)
    reason = first((row.get("finish_reason"), row.get("finish_reason_normalized")))
    cancelled = truth(row.get("cancelled")) is True
    sink.add(
        "request", record, vantage="gateway",
        request_id=text_or_none(row.get("request_id")), response_id=name,
        session_id=text_or_none(row.get("session_id")),
        model=text_or_none(first((row.get("model"), row.get("model_permaslug")))),
        provider=text_or_none(row.get("provider_name")),
        start_ns=start, clock=None if start is None else "wall", **times, **_tokens(row, sink),
        streamed=truth(row.get("streamed")),
        finish_reason="cancelled" if cancelled else finish_word(reason),
        service_tier=text_or_none(row.get("service_tier")), reported_cost_usd=_cost(row),
    )  # fmt: skip
    for label, value in tags + _tags(row):
        sink.add("request_tag", record, name=label, value=value)


def _ms(row: dict[str, Any], *names: str) -> int | None:
    told = number(first(row.get(name) for name in names))
    return None if told is None else ms_to_ns(told)


def _times(row: dict[str, Any], sink: Sink) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """``latency`` is the whole time in one place of the documentation, and not in another.

    Where it is at least the generation's time it can be the whole; else nobody can say.
    """
    made = _ms(row, "generation_time", "generation_time_ms")
    latency = _ms(row, "latency")
    times: dict[str, Any] = {"ttft_ns": _ms(row, "time_to_first_token_ms"), "timing": "stated"}
    tags = []
    if latency is not None and made is not None and latency >= made:
        times["e2e_ns"] = latency
    elif latency is not None:
        sink.assumed.add(_LATENCY)
        tags.append(("latency_ms", str(row["latency"])))
    if made is not None:
        told = first((row.get("generation_time"), row.get("generation_time_ms")))
        tags.append(("generation_time_ms", str(told)))
    if not times["ttft_ns"]:
        times["ttft_ns"] = None
    if times["ttft_ns"] is None and "e2e_ns" not in times:
        times["timing"] = None
    return times, tags


def _tokens(row: dict[str, Any], sink: Sink) -> dict[str, Any]:
    native = any(row.get(f"native_tokens_{name}") is not None for name in ("prompt", "completion"))
    before = "native_tokens_" if native else "tokens_"
    told = {
        name: count(row.get(f"{before}{name}"))
        for name in ("prompt", "completion", "reasoning", "cached")
    }
    if told["prompt"] is None and told["completion"] is None:
        return {}
    if not native:
        sink.assumed.add(_NORMALISED)
    usage = {
        "prompt_tokens": told["prompt"], "completion_tokens": told["completion"],
        "prompt_tokens_details": {"cached_tokens": told["cached"]},
        "completion_tokens_details": {"reasoning_tokens": told["reasoning"]},
    }  # fmt: skip
    return token_buckets(usage) | {"usage_final": True}


def _cost(row: dict[str, Any]) -> Any:  # noqa: ANN401
    """What was charged; ``usage`` is the same in credits, which are US dollars."""
    told = first(number(row.get(name)) for name in ("total_cost", "cost_total", "usage"))
    return None if told is None else usd(told)


def _tags(row: dict[str, Any]) -> list[tuple[str, str]]:
    """What has no column. Answers before this one were failures: OpenRouter went on to the next."""
    tags = []
    tries = row.get("provider_responses")
    if isinstance(tries, list) and len(tries) > 1:
        tags.append(("upstream_attempts", str(len(tries))))
        lost = [number(one.get("latency")) for one in tries[:-1] if isinstance(one, dict)]
        if all(one is not None for one in lost):
            tags.append(("failed_attempts_ms", str(sum(one or 0 for one in lost))))
    if (moderated := number(row.get("moderation_latency"))) is not None:
        tags.append(("moderation_ms", str(moderated)))
    if truth(row.get("is_byok")):
        tags.append(("is_byok", "true"))
    for name, ours in (("cache_discount", "cache_discount_usd"), ("variant", "variant")):
        told = text_or_none(row.get(name))
        if told is not None and len(told) <= 40 and told.isprintable():
            tags.append((ours, told))
    return tags


def read(file: InputFile, options: Options) -> Iterator[Batch]:
    """One ``request`` row of vantage gateway a generation, and its labels."""
    return read_rows(file, options, _take)


READER = Reader(
    title="OpenRouter generations (API) and activity (CSV)",
    record_unit="generation",
    gives=("request", "request_tag"),
    probe=probe,
    read=read,
    docs="https://openrouter.ai/docs/api-reference/get-a-generation",
    cannot="the provider's queue, prefill and decode; the time to first token, except in the CSV; "
    "cache writes; the whole time, where latency is below generation_time",
    enable="GET /api/v1/generation?id=GEN for each answer's id; or export the activity as CSV",
    checked_against="the example of OpenRouter's API description; a CSV header in public code",
)

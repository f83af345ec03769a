"""Lines as real systems write them, from plain arguments.

Times and durations are whole nanoseconds and become text without a float in between, so what is
read back is what was meant. Same arguments, same bytes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

NS = 1_000_000_000
BLOCK_TOKENS = 16
"""Tokens in one block of the KV cache (vLLM's default)."""


# --- text ----------------------------------------------------------------------------------------


def to_json(value: object) -> str:
    """Compact JSON; a Decimal is written digit by digit."""
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, Mapping):
        pairs = (f"{json.dumps(name)}:{to_json(one)}" for name, one in value.items())
        return "{" + ",".join(pairs) + "}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "[" + ",".join(map(to_json, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def seconds(ns: int) -> Decimal:
    """Nanoseconds as exact seconds without trailing zeros."""
    return Decimal(ns).scaleb(-9).normalize()


def milliseconds(ns: int) -> Decimal:
    """Nanoseconds as exact milliseconds without trailing zeros."""
    return Decimal(ns).scaleb(-6).normalize()


def rfc3339(ns: int) -> str:
    """UTC time with 3, 6 or 9 fractional digits, as many as it takes."""
    whole, fraction = divmod(ns, NS)
    digits = f"{fraction:09d}"
    while len(digits) > 3 and digits.endswith("000"):
        digits = digits[:-3]
    return f"{datetime.fromtimestamp(whole, tz=UTC):%Y-%m-%dT%H:%M:%S}.{digits}Z"


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """One line each, UTF-8, the same bytes on every system."""
    path.write_bytes(text_of(lines).encode())


def text_of(lines: Iterable[str]) -> str:
    """Lines as the text of a file: each ends with a line feed."""
    return "".join(f"{line}\n" for line in lines)


def _given(**fields: object) -> dict[str, object]:
    return {name: value for name, value in fields.items() if value is not None}


# --- native stream events ------------------------------------------------------------------------


def stream_event(ts_ns: int, request_id: str, event: str, **fields: object) -> str:
    """Write any native stream event; fields that are None are left out."""
    head = {"ts": seconds(ts_ns), "request_id": request_id, "event": event}
    return to_json(head | _given(**fields))


def send(ts_ns: int, request_id: str, *, model: str, **fields: object) -> str:
    """Write that the client sends the request."""
    return stream_event(ts_ns, request_id, "send", model=model, **fields)


def chunk(
    ts_ns: int, request_id: str, chars: int, *, kind: str | None = None, tokens: int | None = None
) -> str:
    """Write that a chunk arrives; without a kind it is content."""
    return stream_event(ts_ns, request_id, "chunk", kind=kind, chars=chars, tokens=tokens)


def done(
    ts_ns: int, request_id: str, usage: Mapping[str, object], *, finish_reason: str = "stop"
) -> str:
    """Write that the response is complete."""
    return stream_event(ts_ns, request_id, "done", finish_reason=finish_reason, usage=usage)


def error(ts_ns: int, request_id: str, message: str, *, status: int | None = None) -> str:
    """Write that the request failed."""
    return stream_event(ts_ns, request_id, "error", error=message, status=status)


def openai_usage(
    prompt: int, completion: int, *, cached: int = 0, reasoning: int = 0
) -> dict[str, object]:
    """Usage in OpenAI's form: the prompt includes what was cached, the output the reasoning."""
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": cached},
        "completion_tokens_details": {"reasoning_tokens": reasoning},
    }


# --- native request and billing records ----------------------------------------------------------


def request_record(
    request_id: str,
    *,
    vantage: str,
    started_ns: int | None = None,
    ended_ns: int | None = None,
    durations_ns: Mapping[str, int] | None = None,
    **fields: object,
) -> str:
    """One native request record. ``durations_ns``: ``{"ttft": ns}`` becomes ``ttft_ms``."""
    times = {
        "started_at": None if started_ns is None else rfc3339(started_ns),
        "ended_at": None if ended_ns is None else rfc3339(ended_ns),
    }
    durations = {f"{name}_ms": milliseconds(ns) for name, ns in (durations_ns or {}).items()}
    head = {"request_id": request_id, "vantage": vantage}
    return to_json(head | _given(**times) | durations | _given(**fields))


def billing_record(
    accepted_ns: int,
    finished_ns: int,
    *,
    model: str,
    usage: Mapping[str, object],
    cost_usd: Decimal | None = None,
    **fields: object,
) -> str:
    """One billed call as the provider tells it."""
    head = {
        "accepted_at": rfc3339(accepted_ns),
        "finished_at": rfc3339(finished_ns),
        "model": model,
        "usage": usage,
    }
    return to_json(head | _given(cost_usd=cost_usd, **fields))


def prices(models: Mapping[str, Mapping[str, str]], *, currency: str = "USD") -> str:
    """``prices.json``: per million tokens; prices are decimal text, ``{"input": "0.20"}``."""
    plain = {
        model: {kind: Decimal(price) for kind, price in kinds.items()}
        for model, kinds in models.items()
    }
    return to_json({"currency": currency, "unit": "per_million_tokens", "models": plain})


# --- a vLLM engine -------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Served:
    """What an engine did with one request, on the engine's clock.

    Front end, queue, prefill, decode, front end: one after the other.
    """

    request_id: str
    arrived_ns: int
    queue_ns: int
    prefill_ns: int
    decode_ns: int
    prompt_tokens: int
    output_tokens: int
    cached_tokens: int = 0
    before_ns: int = 0
    """Front-end time on the way in: HTTP, tokenizer."""
    after_ns: int = 0
    """Front-end time on the way out."""

    @property
    def queued_ns(self) -> int:
        """When the scheduler got it."""
        return self.arrived_ns + self.before_ns

    @property
    def admitted_ns(self) -> int:
        """When it began to run."""
        return self.queued_ns + self.queue_ns

    @property
    def first_token_ns(self) -> int:
        """When its prompt was done."""
        return self.admitted_ns + self.prefill_ns

    @property
    def last_token_ns(self) -> int:
        """When its slot was free again."""
        return self.first_token_ns + self.decode_ns

    @property
    def ttft_ns(self) -> int:
        """Time to first token as the engine's span states it."""
        return self.first_token_ns - self.arrived_ns

    @property
    def e2e_ns(self) -> int:
        """Time from arrival to the last output."""
        return self.last_token_ns + self.after_ns - self.arrived_ns

    def produced(self, at_ns: int) -> int:
        """Output tokens up to and including this moment, evenly spread over decode."""
        if at_ns < self.first_token_ns:
            return 0
        if at_ns >= self.last_token_ns:
            return self.output_tokens
        return 1 + (at_ns - self.first_token_ns) * (self.output_tokens - 1) // self.decode_ns

    def prefilled(self, at_ns: int) -> int:
        """Fresh prompt tokens computed up to this moment, evenly spread over prefill."""
        fresh = self.prompt_tokens - self.cached_tokens
        if at_ns >= self.first_token_ns:
            return fresh
        return max(0, at_ns - self.admitted_ns) * fresh // self.prefill_ns

    def kv_tokens(self, at_ns: int) -> int:
        """Tokens of the KV cache it holds, in whole blocks; none unless it runs."""
        if not self.admitted_ns <= at_ns < self.last_token_ns:
            return 0
        return -(-(self.prompt_tokens + self.produced(at_ns)) // BLOCK_TOKENS) * BLOCK_TOKENS


def llm_span(served: Served, *, service: str = "engine-0", max_tokens: int | None = None) -> str:
    """One line of a collector's OTLP/JSON file with the ``llm_request`` span of a V1 engine."""
    digest = hashlib.sha256(served.request_id.encode()).hexdigest()
    span = {
        "traceId": digest[:32],
        "spanId": digest[32:48],
        "parentSpanId": "",
        "name": "llm_request",
        "kind": 2,
        "startTimeUnixNano": str(served.arrived_ns),
        "endTimeUnixNano": str(served.arrived_ns + served.e2e_ns),
        "attributes": _attributes(served, max_tokens),
        "status": {},
    }
    scope = {"scope": {"name": "vllm.tracing.otel"}, "spans": [span]}
    resource = {"attributes": [_attribute("service.name", "stringValue", service)]}
    return to_json({"resourceSpans": [{"resource": resource, "scopeSpans": [scope]}]})


def _attributes(served: Served, max_tokens: int | None) -> list[dict[str, object]]:
    latency = {
        "time_in_queue": served.queue_ns,
        "time_in_model_prefill": served.prefill_ns,
        "time_in_model_decode": served.decode_ns,
        "time_to_first_token": served.ttft_ns,
        "e2e": served.e2e_ns,
    }
    counts = {
        "usage.prompt_tokens": served.prompt_tokens,
        "usage.completion_tokens": served.output_tokens,
        "request.max_tokens": max_tokens,
    }
    return [
        _attribute("gen_ai.request.id", "stringValue", served.request_id),
        *(
            _attribute(f"gen_ai.latency.{name}", "doubleValue", seconds(ns))
            for name, ns in latency.items()
        ),
        *(
            _attribute(f"gen_ai.{name}", "intValue", str(count))
            for name, count in counts.items()
            if count is not None
        ),
    ]


def _attribute(key: str, kind: str, value: object) -> dict[str, object]:
    return {"key": key, "value": {kind: value}}


def engine_line(
    time_ns: int,
    message: str,
    *,
    process: str = "APIServer",
    pid: int = 411,
    where: str = "loggers.py:271",
) -> str:
    """One line of vLLM's text log: no year, whole seconds, UTC."""
    stamp = datetime.fromtimestamp(time_ns // NS, tz=UTC)
    return f"({process} pid={pid}) INFO {stamp:%m-%d %H:%M:%S} [{where}] {message}"


def status_message(
    *,
    prompt_rate: Decimal,
    generation_rate: Decimal,
    running: int,
    waiting: int,
    kv_percent: Decimal,
    hit_percent: Decimal,
) -> str:
    """Write the V1 engine's status message."""
    return (
        f"Engine 000: Avg prompt throughput: {prompt_rate:.1f} tokens/s, "
        f"Avg generation throughput: {generation_rate:.1f} tokens/s, "
        f"Running: {running} reqs, Waiting: {waiting} reqs, "
        f"GPU KV cache usage: {kv_percent:.1f}%, Prefix cache hit rate: {hit_percent:.1f}%"
    )


def status_lines(
    served: Sequence[Served],
    *,
    first_ns: int,
    last_ns: int,
    every_ns: int,
    capacity_tokens: int,
    pid: int = 411,
) -> list[str]:
    """Status lines that agree with the requests; each looks back over one interval."""
    lines = []
    for now in range(first_ns, last_ns + 1, every_ns):
        before = now - every_ns
        fresh = sum(one.prefilled(now) - one.prefilled(before) for one in served)
        made = sum(one.produced(now) - one.produced(before) for one in served)
        seen = [one for one in served if one.admitted_ns <= now]
        message = status_message(
            prompt_rate=Decimal(fresh * NS) / every_ns,
            generation_rate=Decimal(made * NS) / every_ns,
            running=sum(now < one.last_token_ns for one in seen),
            waiting=sum(one.queued_ns <= now < one.admitted_ns for one in served),
            kv_percent=_percent(sum(one.kv_tokens(now) for one in seen), capacity_tokens),
            hit_percent=_percent(
                sum(one.cached_tokens for one in seen), sum(one.prompt_tokens for one in seen)
            ),
        )
        lines.append(engine_line(now, message, pid=pid))
    return lines


def _percent(part: int, whole: int) -> Decimal:
    return Decimal(100 * part) / whole if whole else Decimal(0)


def startup_lines(
    ready_ns: int,
    *,
    model: str,
    capacity_tokens: int,
    arguments: Mapping[str, object],
    pid: int = 411,
) -> list[str]:
    """Write a few lines of an engine's start; it is ready at the last one."""
    told = {"model_tag": f"/models/{model}", "served_model_name": [model], **arguments}
    core = pid + 1
    return [
        engine_line(
            ready_ns - 95 * NS, f"non-default args: {told!r}", pid=pid, where="utils.py:278"
        ),
        engine_line(
            ready_ns - 52 * NS,
            f"Starting to load model /models/{model}...",
            process="EngineCore",
            pid=core,
            where="gpu_model_runner.py:5037",
        ),
        engine_line(
            ready_ns - 9 * NS,
            f"GPU KV cache size: {capacity_tokens:,} tokens",
            process="EngineCore",
            pid=core,
            where="kv_cache_utils.py:864",
        ),
        f"(APIServer pid={pid}) INFO:     Application startup complete.",
    ]

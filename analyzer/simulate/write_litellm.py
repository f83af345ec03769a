"""LiteLLM's spend log: the rows of ``/spend/logs``, one an upstream call."""

from __future__ import annotations

import hashlib
import json
import uuid
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from analyzer.simulate.money import Billing, billing_of, buckets, cost_usd
from analyzer.simulate.outcome import Base, GatewayTry, LogView, RequestOutcome
from analyzer.simulate.run import view_of
from analyzer.simulate.world import Log, World
from analyzer.simulate.writers import NS, openai_usage

if TYPE_CHECKING:
    from pathlib import Path

_PRICED = {"input": "input_cost", "cache_read": "cache_read_cost", "output": "output_cost"}
_ERRORS = {429: "RateLimitError", 408: "Timeout", 504: "Timeout", 503: "ServiceUnavailableError"}


class LiteLlmSpend(Base):
    """A JSON array of rows. Times are UTC without a zone, in microseconds.

    Its prompt counts what was cached. A failed call has no tokens and no spend, whatever the
    provider billed. ``spend`` is a float, as LiteLLM computes it.
    """

    def __init__(self, path: Path, view: LogView, billing: Billing) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("w", encoding="utf-8", newline="\n")
        self._view, self._billing = view, billing
        self._rows = 0
        self._file.write("[")

    def request(self, outcome: RequestOutcome) -> None:
        """A row for each upstream call of an attempt that reached the gateway."""
        for index, call in enumerate(outcome.tries):
            key = f"{outcome.request_id}/{outcome.attempt}/{index}"
            if self._view.drops(key):
                continue
            row = self._row(outcome, call, index, key)
            told = {name: one for name, one in row.items() if name not in self._view.missing}
            self._file.write((",\n" if self._rows else "\n") + json.dumps(told))
            self._rows += 1

    def close(self) -> None:
        """End the array."""
        self._file.write("\n]\n")
        self._file.close()

    def _row(self, one: RequestOutcome, call: GatewayTry, index: int, key: str) -> dict[str, Any]:
        last = index == len(one.tries) - 1
        good = last and one.error is None
        end_ns = call.end_ns
        first_ns = one.gateway_first_ns if good and one.streamed else None
        usage = _usage(one, self._billing) if good else None
        spend = cost_usd(one, self._billing) if good else None
        start = self._view.time(call.start_ns)
        return {
            "request_id": f"chatcmpl-{one.request_id}" if last else _uuid(key),
            "litellm_call_id": _uuid(f"call/{key}"),
            "call_type": "acompletion",
            "api_key": hashlib.sha256(b"key").hexdigest(),
            "spend": float(spend or 0),
            "total_tokens": one.prompt_tokens + one.output_tokens if good else 0,
            "prompt_tokens": one.prompt_tokens if good else 0,
            "completion_tokens": one.output_tokens if good else 0,
            "startTime": _naive(start),
            "endTime": _naive(start + end_ns - call.start_ns),
            "completionStartTime": _naive(
                start + min(end_ns, end_ns if first_ns is None else first_ns) - call.start_ns
            ),
            "request_duration_ms": (end_ns - call.start_ns) // 1_000_000,
            "model": one.model,
            "model_group": one.model,
            "model_id": hashlib.sha256(call.route.encode()).hexdigest(),
            "custom_llm_provider": "hosted_vllm",
            "api_base": f"http://{call.replica or call.route}:8000/v1",
            "user": "",
            "end_user": "",
            "team_id": "",
            "organization_id": "",
            "cache_hit": "None",
            "cache_key": "Cache OFF",
            "request_tags": "[]",
            "metadata": json.dumps(self._metadata(one, call, index, usage)),
            "messages": "{}",
            "response": "{}",
            "proxy_server_request": "{}",
            "session_id": one.session_id or _uuid(one.operation_id),
            "status": "success" if good else "failure",
            "requester_ip_address": None,
        }

    def _metadata(
        self, one: RequestOutcome, call: GatewayTry, index: int, usage: dict[str, object] | None
    ) -> dict[str, Any]:
        overhead = None
        if one.gateway_in_ns is not None and index == 0:
            overhead = (call.start_ns - one.gateway_in_ns) / 1e6
        told: dict[str, Any] = {
            "attempted_fallbacks": index or None,
            "attempted_retries": None,
            "original_model_group": one.model,
            "litellm_overhead_time_ms": overhead,
            "usage_object": usage,
            "cost_breakdown": self._costs(one) if usage else None,
            "error_information": None,
        }
        if usage is None:
            code = call.status or (504 if call.error == "timeout" else 500)
            told["error_information"] = {
                "error_code": str(code),
                "error_class": _ERRORS.get(code, "InternalServerError"),
            }
        return told

    def _costs(self, one: RequestOutcome) -> dict[str, float] | None:
        prices = self._billing.prices.get(one.model)
        total = cost_usd(one, self._billing)
        if prices is None or total is None:
            return None
        costs = {"total_cost": float(total)}
        for kind, tokens in buckets(one, self._billing).items():
            name = _PRICED.get(kind, "cache_creation_cost")
            costs[name] = float(tokens * prices.get(kind, 0) / 1_000_000)
        return costs


def _usage(one: RequestOutcome, billing: Billing) -> dict[str, object]:
    usage = openai_usage(
        one.prompt_tokens, one.output_tokens, cached=one.cached_tokens,
        reasoning=one.reasoning_tokens,
    )  # fmt: skip
    told = buckets(one, billing)
    written = told.get("cache_write_short", 0) + told.get("cache_write_long", 0)
    if billing.write_ttl is not None:
        usage["cache_read_input_tokens"] = one.cached_tokens
        usage["cache_creation_input_tokens"] = written
    return usage


def _naive(ns: int) -> str:
    """UTC, and no zone that would say so."""
    whole, rest = divmod(ns, NS)
    return f"{datetime.fromtimestamp(whole, tz=UTC):%Y-%m-%d %H:%M:%S}.{rest // 1000:06d}"


def _uuid(key: str) -> str:
    return str(uuid.UUID(bytes=hashlib.sha256(key.encode()).digest()[:16], version=4))


def recorder(folder: Path, log: Log, world: World) -> LiteLlmSpend:
    """``options.write_ttl`` (5m, 1h) gives cache writes a price."""
    path = folder / (log.file or "spend-logs.json")
    return LiteLlmSpend(path, view_of(log, world), billing_of(world, log.options))

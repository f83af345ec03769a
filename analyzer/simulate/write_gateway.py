"""Native request records of a gateway, with the routes that it tried."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analyzer.errors import AnalyzerError
from analyzer.simulate.ordered import OrderedLines
from analyzer.simulate.outcome import Base, LogView, RequestOutcome
from analyzer.simulate.run import view_of
from analyzer.simulate.world import Log, World
from analyzer.simulate.write_nginx import bytes_of
from analyzer.simulate.writers import NS, openai_usage, request_record

if TYPE_CHECKING:
    from pathlib import Path

NEEDS_CHUNKS = True
MS = 1_000_000


class GatewayRecords(Base):
    """Native request records of vantage gateway, exact to the ns, with the routes tried.

    ``ttft`` is what its instrument takes for the first token: ``first`` (which it is), ``visible``
    (the first one of the answer proper) or ``role`` (the opening chunk without any).
    """

    def __init__(self, path: Path, view: LogView, ttft: str = "first") -> None:
        self._lines, self._view = OrderedLines(path), view
        self._ttft = TTFTS[ttft]

    def request(self, outcome: RequestOutcome) -> None:
        """One line an attempt that reached the gateway."""
        one, view = outcome, self._view
        if one.gateway_in_ns is None or view.drops(f"{one.request_id}/{one.attempt}"):
            return
        start = view.time(one.gateway_in_ns)
        end = None if one.gateway_out_ns is None else one.gateway_out_ns - one.gateway_in_ns
        durations = {}
        if end is not None:
            durations["e2e"] = end
        first = self._ttft(one)
        if first is not None and one.streamed:
            durations["ttft"] = first - one.gateway_in_ns
        ended = None if end is None else start + end
        fields = {
            "operation_id": one.operation_id, "attempt": one.attempt, "route": one.route or None,
            "model": one.model, "session_id": one.session_id, "turn": one.turn,
            "status": one.status, "error": one.error, "finish_reason": one.finish_reason,
            "retry_after_s": None if one.retry_after_ns is None else one.retry_after_ns / NS,
            "streamed": one.streamed, "payload_hash": one.payload_hash,
            "bytes_sent": bytes_of(one) or None, "tags": _tags(one),
            "usage": _usage(one),
        }  # fmt: skip
        line = request_record(
            one.request_id, vantage="gateway", started_ns=start, ended_ns=ended,
            durations_ns={k: v for k, v in durations.items() if f"{k}_ms" not in view.missing},
            **{k: v for k, v in fields.items() if k not in view.missing},
        )  # fmt: skip
        self._lines.add(ended if ended is not None else start, line)

    def close(self) -> None:
        """Write the last lines."""
        self._lines.close()


def _first(one: RequestOutcome) -> int | None:
    return one.gateway_first_ns


def _visible(one: RequestOutcome) -> int | None:
    """The first token after the reasoning; where a hop holds it back, no earlier than the rest."""
    if one.gateway_first_ns is None or one.first_token_ns is None:
        return None
    if one.reasoning_tokens >= len(one.token_ns):
        return one.gateway_first_ns if not one.reasoning_tokens else None
    made = one.gateway_first_ns + one.token_ns[one.reasoning_tokens] - one.first_token_ns
    return made if one.gateway_out_ns is None else min(made, one.gateway_out_ns)


def _role(one: RequestOutcome) -> int | None:
    """The opening chunk, which the engine's front end sends as soon as it took the request."""
    if one.queued_ns is None or one.engine_in_ns is None or one.gateway_sent_ns is None:
        return None
    return one.queued_ns + one.engine_in_ns - one.gateway_sent_ns


TTFTS = {"first": _first, "visible": _visible, "role": _role}


def _usage(one: RequestOutcome) -> dict[str, object] | None:
    if one.error is not None:
        return None
    return openai_usage(
        one.prompt_tokens, one.output_tokens, cached=one.cached_tokens,
        reasoning=one.reasoning_tokens,
    )  # fmt: skip


def _tags(one: RequestOutcome) -> dict[str, str] | None:
    """The calls before the one that served: how many, where to and how they ended."""
    if len(one.tries) < 2:
        return None
    first = one.tries[0]
    return {
        "upstream_calls": str(len(one.tries)),
        "first_route": first.route,
        "first_failure": first.error or str(first.status),
        "first_call_ms": str((first.end_ns - first.start_ns) // MS),
    }


def recorder(folder: Path, log: Log, world: World) -> GatewayRecords:
    """``options.ttft`` says what its instrument takes for the first token; see the class."""
    ttft = str(log.options.get("ttft", "first"))
    if ttft not in TTFTS:
        raise AnalyzerError(f"no ttft {ttft!r}", f"one of {', '.join(TTFTS)}")
    return GatewayRecords(folder / (log.file or "gateway.jsonl"), view_of(log, world), ttft)

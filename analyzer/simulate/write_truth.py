"""What really happened, request by request: ``truth.jsonl``, on the true clock.

Segments add up to the whole in both views of a request; causes are what the mechanisms did.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TextIO

from analyzer.simulate.outcome import Base, EngineEvent, RequestOutcome
from analyzer.simulate.world import Log, World

_SAME = (
    "operation_id", "attempt", "session_id", "turn", "parent_session_id", "kind", "route",
    "replica", "model", "prompt_tokens", "cached_tokens", "output_tokens", "reasoning_tokens",
    "scheduled_ns", "sent_ns", "gateway_in_ns", "gateway_sent_ns", "engine_in_ns", "queued_ns",
    "admitted_ns", "first_token_ns", "finished_ns", "engine_out_ns", "gateway_first_ns",
    "gateway_out_ns", "first_chunk_ns", "done_ns", "hold_ns", "frontend_ns", "queue_ns",
    "prefill_ns", "decode_ns", "network_ns", "engine_ttft_ns", "engine_e2e_ns", "ttft_ns",
    "e2e_ns", "preemptions", "status", "error", "finish_reason",
)  # fmt: skip


def record_of(one: RequestOutcome) -> dict[str, object]:
    """One attempt as truth tells it; what never happened is left out."""
    told: dict[str, object] = {"id": one.request_id}
    for name in _SAME:
        value = getattr(one, name)
        if value is not None:
            told[name] = value
    told["tries"] = [
        {
            "route": call.route, "replica": call.replica, "start_ns": call.start_ns,
            "end_ns": call.end_ns, "status": call.status, "error": call.error,
        }
        for call in one.tries
    ]  # fmt: skip
    told["causes"] = [
        {
            "kind": cause.kind, "start_ns": cause.start_ns, "end_ns": cause.end_ns,
            "ns": cause.ns, "where": cause.where,
        }
        for cause in one.causes
    ]  # fmt: skip
    return told


class Truth(Base):
    """One line an attempt in order of their ends, and one a thing that an engine did."""

    def __init__(self, file: TextIO) -> None:
        self.file = file

    def request(self, outcome: RequestOutcome) -> None:
        """Write it whole."""
        self.file.write(json.dumps(record_of(outcome), separators=(",", ":")) + "\n")

    def event(self, event: EngineEvent) -> None:
        """Loads, pauses, preemptions."""
        told = {
            "engine": event.replica, "event": event.kind, "start_ns": event.time_ns,
            "ns": event.duration_ns, "of": event.request_id,
        }  # fmt: skip
        self.file.write(json.dumps(told, separators=(",", ":")) + "\n")

    def close(self) -> None:
        """No more comes."""
        self.file.close()


def recorder(folder: Path, log: Log, world: World) -> Truth:
    """Truth loses nothing and leaves nothing out, whatever the world says of its logs."""
    del world
    path = folder / (log.file or "truth.jsonl")
    return Truth(path.open("w", encoding="utf-8", newline="\n"))

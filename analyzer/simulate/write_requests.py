"""Native request records, as a client or an engine writes them."""

from __future__ import annotations

from pathlib import Path
from typing import TextIO

from analyzer.errors import AnalyzerError
from analyzer.simulate.outcome import Base, LogView, RequestOutcome
from analyzer.simulate.run import view_of
from analyzer.simulate.world import Log, World
from analyzer.simulate.writers import openai_usage, request_record, rfc3339

VANTAGES = ("client", "engine")


class Requests(Base):
    """One line an attempt, when it is over; ``missing`` names fields of the line."""

    def __init__(self, file: TextIO, view: LogView, vantage: str, replica: str | None) -> None:
        self.file, self.view, self.vantage, self.replica = file, view, vantage, replica

    def request(self, outcome: RequestOutcome) -> None:
        """Write it."""
        one, missing = outcome, self.view.missing
        key = f"{one.request_id}/{one.attempt}"
        if self.replica not in (None, one.replica) or self.view.drops(key):
            return
        if self.vantage == "client":
            start, end = one.sent_ns, one.done_ns
            durations = {"ttft": one.ttft_ns, "e2e": one.e2e_ns}
        else:
            start, end = one.engine_in_ns, one.engine_out_ns
            durations = {
                "queue": one.queue_ns, "prefill": one.prefill_ns, "decode": one.decode_ns,
                "ttft": one.engine_ttft_ns, "e2e": one.engine_e2e_ns,
            }  # fmt: skip
        if start is None:
            return
        time = self.view.time
        fields = self._fields(one)
        if self.vantage == "client":
            fields["scheduled_at"] = rfc3339(time(one.scheduled_ns))
        line = request_record(
            one.request_id,
            vantage=self.vantage,
            started_ns=time(start),
            ended_ns=None if end is None or "ended_at" in missing else time(end),
            durations_ns={
                name: ns
                for name, ns in durations.items()
                if ns is not None and f"{name}_ms" not in missing
            },
            **{name: value for name, value in fields.items() if name not in missing},
        )
        self.file.write(line + "\n")

    def _fields(self, one: RequestOutcome) -> dict[str, object]:
        usage = None
        if one.error is None:
            usage = openai_usage(
                one.prompt_tokens, one.output_tokens,
                cached=one.cached_tokens, reasoning=one.reasoning_tokens,
            )  # fmt: skip
        return {
            "operation_id": one.operation_id, "attempt": one.attempt, "route": one.route or None,
            "model": one.model, "session_id": one.session_id, "turn": one.turn,
            "status": one.status, "error": one.error, "finish_reason": one.finish_reason,
            "max_tokens": one.max_tokens, "response_format": one.response_format,
            "schema_hash": one.schema_hash, "payload_hash": one.payload_hash, "usage": usage,
        }  # fmt: skip

    def close(self) -> None:
        """No more comes."""
        self.file.close()


def recorder(folder: Path, log: Log, world: World) -> Requests:
    """``options.vantage`` is client or engine."""
    vantage = str(log.options.get("vantage", "client"))
    if vantage not in VANTAGES:
        raise AnalyzerError(f"no vantage {vantage!r}", f"one of {', '.join(VANTAGES)}")
    path = folder / (log.file or f"{vantage}-requests.jsonl")
    file = path.open("w", encoding="utf-8", newline="\n")
    return Requests(file, view_of(log, world), vantage, log.replica)

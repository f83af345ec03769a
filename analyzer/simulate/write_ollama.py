"""Captures of Ollama's answers: when the client sent, and the final object with its durations."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from analyzer.simulate.ordered import OrderedLines
from analyzer.simulate.outcome import Base, LogView, RequestOutcome
from analyzer.simulate.run import view_of
from analyzer.simulate.world import Log, World
from analyzer.simulate.writers import rfc3339, seconds, to_json

if TYPE_CHECKING:
    from pathlib import Path


class OllamaCaptures(Base):
    """One capture a line: ``sent_at`` of the client's clock, ``created_at`` of the server's.

    ``load_duration`` runs from the request to the model being there, and so has the wait for the
    scheduler in it. The wait for a slot is in no field.
    """

    def __init__(self, path: Path, view: LogView, client: LogView) -> None:
        self._lines, self._view, self._client = OrderedLines(path), view, client

    def request(self, outcome: RequestOutcome) -> None:
        """One line an answer; a request that failed has an error instead."""
        one = outcome
        if one.sent_ns is None or self._view.drops(f"{one.request_id}/{one.attempt}"):
            return
        fields: dict[str, object] = {
            "sent_at": seconds(self._client.time(one.sent_ns)),
            "request_id": one.request_id,
            "session_id": one.session_id,
            "response": self._answer(one),
        }
        told = {
            name: value
            for name, value in fields.items()
            if value is not None and name not in self._view.missing
        }
        self._lines.add(one.done_ns or one.sent_ns, to_json(told))

    def close(self) -> None:
        """Write the last captures."""
        self._lines.close()

    def _answer(self, one: RequestOutcome) -> dict[str, object]:
        total, end = one.engine_e2e_ns, one.engine_out_ns
        if one.error is not None or total is None or end is None:
            return {"error": one.error or "aborted"}
        return {
            "model": one.model,
            "created_at": rfc3339(self._view.time(end)),
            "message": {"role": "assistant", "content": ""},
            "done": True,
            "done_reason": one.finish_reason or "stop",
            "total_duration": total,
            "load_duration": (one.frontend_ns or 0) + _load_ns(one),
            "prompt_eval_count": one.prompt_tokens,
            "prompt_eval_duration": one.prefill_ns or 0,
            "eval_count": one.output_tokens,
            "eval_duration": one.decode_ns or 0,
        }


def _load_ns(one: RequestOutcome) -> int:
    return sum(cause.ns for cause in one.causes if cause.kind == "load")


def recorder(folder: Path, log: Log, world: World) -> OllamaCaptures:
    """``skew_ms`` is the server's; ``options.client_skew_ms`` that of who captures."""
    view = view_of(log, world)
    skew = round(float(log.options.get("client_skew_ms", 0)) * 1e6)
    client = replace(view, skew_ns=skew, drift_ppm=0.0)
    return OllamaCaptures(folder / (log.file or "ollama.jsonl"), view, client)

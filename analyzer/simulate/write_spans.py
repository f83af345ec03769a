"""OTLP/JSON lines of a collector with the ``llm_request`` spans of vLLM's V1 engine."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TextIO

from analyzer.simulate.outcome import Base, LogView, RequestOutcome
from analyzer.simulate.run import view_of
from analyzer.simulate.world import Log, World
from analyzer.simulate.write_stream import seconds

_COUNTS = (
    ("gen_ai.usage.prompt_tokens", "prompt_tokens"),
    ("gen_ai.usage.completion_tokens", "output_tokens"),
    ("gen_ai.request.max_tokens", "max_tokens"),
)
_TIMES = (
    ("gen_ai.latency.time_in_queue", "queue_ns"),
    ("gen_ai.latency.time_in_model_prefill", "prefill_ns"),
    ("gen_ai.latency.time_in_model_decode", "decode_ns"),
    ("gen_ai.latency.time_to_first_token", "engine_ttft_ns"),
    ("gen_ai.latency.e2e", "engine_e2e_ns"),
)


class Spans(Base):
    """One span a request that the engine saw to its end, written then.

    ``missing`` names the outcome's fields: queue_ns, prefill_ns, decode_ns, engine_ttft_ns,
    engine_e2e_ns, prompt_tokens, output_tokens, max_tokens.
    """

    def __init__(self, file: TextIO, view: LogView, replica: str | None) -> None:
        self.file, self.view, self.replica = file, view, replica

    def request(self, outcome: RequestOutcome) -> None:
        """Write its span."""
        one, view = outcome, self.view
        if one.finished_ns is None or one.engine_in_ns is None or one.engine_out_ns is None:
            return
        if self.replica not in (None, one.replica):
            return
        key = f"{one.request_id}/{one.attempt}"
        if not view.drops(key):
            self.file.write(self._line(one, key, view.time(one.engine_in_ns)))

    def _line(self, one: RequestOutcome, key: str, start: int) -> str:
        digest = hashlib.sha256(key.encode()).hexdigest()
        missing = self.view.missing
        parts = [
            f'{{"key":"gen_ai.request.id","value":{{"stringValue":{json.dumps(one.request_id)}}}}}'
        ]
        for name, field in _TIMES:
            ns = getattr(one, field)
            if ns is not None and field not in missing:
                parts.append(f'{{"key":"{name}","value":{{"doubleValue":{seconds(ns)}}}}}')
        for name, field in _COUNTS:
            count = getattr(one, field)
            if count is not None and field not in missing:
                parts.append(f'{{"key":"{name}","value":{{"intValue":"{count}"}}}}')
        end = start + (one.engine_e2e_ns or 0)
        return (
            '{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":'
            f'{{"stringValue":{json.dumps(one.replica)}}}}}]}},"scopeSpans":[{{"scope":'
            f'{{"name":"vllm.tracing.otel"}},"spans":[{{"traceId":"{digest[:32]}",'
            f'"spanId":"{digest[32:48]}","parentSpanId":"","name":"llm_request","kind":2,'
            f'"startTimeUnixNano":"{start}","endTimeUnixNano":"{end}",'
            f'"attributes":[{",".join(parts)}],"status":{{}}}}]}}]}}]}}\n'
        )

    def close(self) -> None:
        """No more comes."""
        self.file.close()


def recorder(folder: Path, log: Log, world: World) -> Spans:
    """Of one replica, or of all."""
    path = folder / (log.file or "spans.jsonl")
    file = path.open("w", encoding="utf-8", newline="\n")
    return Spans(file, view_of(log, world), log.replica)

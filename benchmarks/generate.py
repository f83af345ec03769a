"""Writes a log of a given kind and size; the same arguments give the same bytes.

``python benchmarks/generate.py KIND FILE SIZE [SEED]``: KIND is stream, requests, otlp (SIZE in MB)
or engine (SIZE in lines).
"""

from __future__ import annotations

import heapq
import json
import random
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

_FLUSH_LINES = 50_000
_BEGIN = 1_790_000_000.0
_SPANS_A_BATCH = 64


def _events(rng: random.Random, number: int, at: float) -> Iterator[tuple[float, int, str]]:
    """Events of one request as (time, order, line without its time)."""
    rid = f"req-{number:07d}"
    send = {
        "request_id": rid, "event": "send", "model": "orion-8b", "route": "direct",
        "session_id": f"s-{number % 500}", "max_tokens": 512,
    }  # fmt: skip
    yield at, 0, json.dumps(send)[1:]
    tokens, when = rng.randint(50, 300), at + 0.2 + rng.random() / 5
    for i in range(tokens):
        yield (
            when, i + 1,
            f'"request_id": "{rid}", "event": "chunk", "kind": "content", '
            f'"chars": {rng.randint(1, 9)}}}',
        )  # fmt: skip
        when += 0.02
    usage = {
        "prompt_tokens": 500, "completion_tokens": tokens,
        "prompt_tokens_details": {"cached_tokens": 0},
    }  # fmt: skip
    done = {"request_id": rid, "event": "done", "finish_reason": "stop", "usage": usage}
    yield when, tokens + 1, json.dumps(done)[1:]


def _stream(rng: random.Random, size: float) -> Iterator[str]:
    """Stream events: overlapping requests, chunks interleaved by time."""
    pending: list[tuple[float, int, int, str]] = []
    number, clock, written = 0, _BEGIN, 0
    while written < size * 1e6 or pending:
        if written < size * 1e6:
            number += 1
            clock += 0.05
            for when, order, text in _events(rng, number, clock):
                heapq.heappush(pending, (when, number, order, text))
        else:
            clock += 3600
        while pending and pending[0][0] < clock:
            when, _, _, text = heapq.heappop(pending)
            line = f'{{"ts": {when:.6f}, {text}\n'
            written += len(line)
            yield line


def _requests(rng: random.Random, size: float) -> Iterator[str]:
    """Request records as a gateway would write them; one in fifty failed."""
    number, at, written = 0, _BEGIN, 0
    while written < size * 1e6:
        number += 1
        at += rng.random() / 5
        ttft, decode = rng.uniform(80, 900), rng.uniform(400, 9000)
        prompt = rng.randint(100, 9000)
        record = {
            "request_id": f"req-{number:08d}", "attempt": 1, "vantage": "gateway",
            "route": "direct" if number % 3 else "relay", "model": "orion-8b",
            "session_id": f"s-{number // 9}", "turn": number % 9 + 1,
            "started_at": round(at, 6), "ended_at": round(at + (ttft + decode) / 1e3, 6),
            "queue_ms": round(ttft * 0.3, 3), "prefill_ms": round(ttft * 0.5, 3),
            "decode_ms": round(decode, 3), "ttft_ms": round(ttft, 3),
            "e2e_ms": round(ttft + decode, 3),
        }  # fmt: skip
        if number % 50:
            record |= {
                "status": 200, "finish_reason": "stop",
                "usage": {
                    "prompt_tokens": prompt, "completion_tokens": rng.randint(10, 900),
                    "prompt_tokens_details": {"cached_tokens": prompt // 2},
                },
            }  # fmt: skip
        else:
            record |= {"status": 503, "finish_reason": None, "error": "overloaded"}
        line = json.dumps(record) + "\n"
        written += len(line)
        yield line


def _span(rng: random.Random, number: int, at: float) -> dict[str, object]:
    queue, prefill, decode = rng.uniform(0, 2), rng.uniform(0.05, 0.9), rng.uniform(0.3, 9)
    e2e = queue + prefill + decode + 0.002
    numbers = {
        "gen_ai.latency.time_in_queue": queue,
        "gen_ai.latency.time_to_first_token": queue + prefill + 0.001,
        "gen_ai.latency.e2e": e2e,
        "gen_ai.latency.time_in_model_prefill": prefill,
        "gen_ai.latency.time_in_model_decode": decode,
        "gen_ai.latency.time_in_model_inference": prefill + decode,
        "gen_ai.request.temperature": 0.7,
        "gen_ai.request.top_p": 0.95,
    }
    counts = {
        "gen_ai.usage.prompt_tokens": rng.randint(100, 9000),
        "gen_ai.usage.completion_tokens": rng.randint(10, 900),
        "gen_ai.request.max_tokens": 1024,
        "gen_ai.request.n": 1,
    }
    rid = {"key": "gen_ai.request.id", "value": {"stringValue": f"chatcmpl-{number:012x}"}}
    return {
        "traceId": f"{rng.getrandbits(128):032x}", "spanId": f"{rng.getrandbits(64):016x}",
        "parentSpanId": f"{rng.getrandbits(64):016x}", "flags": 1, "name": "llm_request",
        "kind": 2, "startTimeUnixNano": str(int(at * 1e6) * 1000),
        "endTimeUnixNano": str(int((at + e2e) * 1e6) * 1000 + 7000),
        "attributes": [
            *({"key": key, "value": {"doubleValue": value}} for key, value in numbers.items()),
            *({"key": key, "value": {"intValue": str(value)}} for key, value in counts.items()),
            rid,
        ],
        "status": {},
    }  # fmt: skip


def _otlp(rng: random.Random, size: float) -> Iterator[str]:
    """Spans of vLLM as the Collector's file exporter writes them, one batch a line."""
    number, at, written = 0, _BEGIN, 0
    service = {"key": "service.name", "value": {"stringValue": "pool-a"}}
    while written < size * 1e6:
        spans = []
        for _ in range(_SPANS_A_BATCH):
            number += 1
            at += rng.random() / 5
            spans.append(_span(rng, number, at))
        scope = {"scope": {"name": "vllm.llm_engine"}, "spans": spans}
        group = {"resource": {"attributes": [service]}, "scopeSpans": [scope]}
        line = json.dumps({"resourceSpans": [group]}, separators=(",", ":")) + "\n"
        written += len(line)
        yield line


def _engine(rng: random.Random, size: float) -> Iterator[str]:
    """A text log of vLLM: mostly access lines, one in ten a status line, few of other kinds."""
    access = 'INFO:     10.0.{}.{}:{} - "POST /v1/chat/completions HTTP/1.1" 200 OK'
    at = _BEGIN
    for number in range(int(size)):
        at += 0.05
        time = datetime.fromtimestamp(int(at), tz=UTC).strftime("%m-%d %H:%M:%S")
        head = f"(APIServer pid=51) INFO {time}"
        if number % 10 == 0:
            yield (
                f"{head} [loggers.py:271] Engine 000: Avg prompt throughput: "
                f"{rng.uniform(0, 9000):.1f} tokens/s, Avg generation throughput: "
                f"{rng.uniform(0, 3000):.1f} tokens/s, Running: {rng.randint(0, 256)} reqs, "
                f"Waiting: {rng.randint(0, 40)} reqs, GPU KV cache usage: "
                f"{rng.uniform(0, 100):.1f}%, Prefix cache hit rate: {rng.uniform(0, 100):.1f}%\n"
            )
        elif number % 997 == 0:
            yield f"{head} [async_llm.py:650] Aborted request(s) chatcmpl-{number:x}.\n"
        elif number % 10 == 5:
            yield f"{head} [async_llm.py:428] Added request chatcmpl-{number:x}.\n"
        else:
            port = rng.randint(30000, 60000)
            yield f"(APIServer pid=51) {access.format(number % 200, number % 250, port)}\n"


KINDS: dict[str, Callable[[random.Random, float], Iterator[str]]] = {
    "stream": _stream, "requests": _requests, "otlp": _otlp, "engine": _engine,
}  # fmt: skip


def write(path: Path, size: float, seed: int = 1, kind: str = "stream") -> int:
    """Write about ``size`` MB (lines, for an engine's log); returns the number of lines."""
    count = 0
    out: list[str] = []
    with path.open("w") as stream:
        for line in KINDS[kind](random.Random(seed), size):
            out.append(line)
            count += 1
            if len(out) >= _FLUSH_LINES:
                stream.writelines(out)
                out.clear()
        stream.writelines(out)
    return count


if __name__ == "__main__":
    kind, target, size = sys.argv[1], Path(sys.argv[2]), float(sys.argv[3])
    print(f"{write(target, size, int((sys.argv[4:] or ['1'])[0]), kind):,} lines in {target}")

"""Writes a native stream log of a given size: overlapping requests, chunks interleaved by time.

``python benchmarks/generate.py FILE MEGABYTES [SEED]``; the same arguments give the same bytes.
"""

from __future__ import annotations

import heapq
import json
import random
import sys
from pathlib import Path

_FLUSH_LINES = 50_000


def _events(rng: random.Random, number: int, at: float):
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


def write(path: Path, megabytes: float, seed: int = 1) -> int:
    """Write about ``megabytes`` MB; returns the number of lines."""
    rng = random.Random(seed)
    pending: list[tuple[float, int, int, str]] = []
    size, lines, number, clock = 0, 0, 0, 1_790_000_000.0
    out: list[str] = []
    with path.open("w") as stream:
        while size < megabytes * 1e6 or pending:
            if size < megabytes * 1e6:
                number += 1
                clock += 0.05
                for when, order, text in _events(rng, number, clock):
                    heapq.heappush(pending, (when, number, order, text))
            else:
                clock += 3600
            while pending and pending[0][0] < clock:
                when, _, _, text = heapq.heappop(pending)
                out.append(f'{{"ts": {when:.6f}, {text}\n')
                size += len(out[-1])
                lines += 1
                if len(out) >= _FLUSH_LINES:
                    stream.writelines(out)
                    out.clear()
        stream.writelines(out)
    return lines


if __name__ == "__main__":
    target, megabytes = Path(sys.argv[1]), float(sys.argv[2])
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    print(f"{write(target, megabytes, seed):,} lines in {target}")

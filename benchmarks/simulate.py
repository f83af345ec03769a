"""How fast worlds run: requests and chunks a second, and the peak memory.

``python benchmarks/simulate.py [--requests 1000000] [--streamed 20000]`` runs two replicas with
engine spans and a status log, and then a stream log with every chunk, into a temporary folder.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from pathlib import Path

from analyzer.simulate.run import simulate
from analyzer.simulate.world import from_dict

RATE_PER_S = 80
MIB = 2**20


def world(requests: int, *formats: str):
    return from_dict({
        "name": "benchmark",
        "duration_s": 10 * requests / RATE_PER_S,
        "arrivals": [{
            "rate_per_s": RATE_PER_S, "most": requests, "system_tokens": 300,
            "prompt_tokens": {"mean": 700, "cv": 1}, "output_tokens": {"mean": 120, "cv": 0.7},
        }],
        "replicas": [{"name": "engine-0"}, {"name": "engine-1"}],
        "logs": [{"format": name} for name in formats],
    })  # fmt: skip


def measure(label: str, requests: int, *formats: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        began, busy = time.perf_counter(), time.process_time()
        counts = simulate(world(requests, *formats), Path(folder))
        took, busy = time.perf_counter() - began, time.process_time() - busy
        size = sum(path.stat().st_size for path in Path(folder).iterdir())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    peak_mib = peak / MIB if sys.platform == "darwin" else peak / 1024
    print(
        f"{label}: {counts.attempts:,} requests, {counts.output_tokens:,} tokens, "
        f"{counts.steps:,} steps in {took:.1f} s ({busy:.1f} CPU s): "
        f"{counts.attempts / took:,.0f} requests/s, "
        f"{counts.chunks / took:,.0f} chunks/s, {size / MIB:,.0f} MiB of logs, "
        f"peak {peak_mib:.0f} MiB"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=1_000_000)
    parser.add_argument("--streamed", type=int, default=20_000)
    args = parser.parse_args()
    measure("streams", args.streamed, "stream", "spans")
    measure("spans", args.requests, "spans", "vllm_log")


if __name__ == "__main__":
    main()

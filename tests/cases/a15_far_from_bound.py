"""A third of what the memory's bandwidth allows, for no reason that the logs show.

The deployment reads 13.8 GB of weights at 2,000 GB/s, 6.90 ms, and 57,344 bytes a cached token.

main: six single answers of 300 tokens at 19.3 ms a token: 36 % of the bound.

twin: ten answers at once, 20,000 tokens each: their caches are 11.5 GB, which the bound counts; at
15.2 ms a token 84 % of it is reached.

wrong_precision: the file says 2 bytes a parameter, the engine runs one: 4.4 ms a token is faster
than 13.8 GB can be read.

speculation: 2.6 tokens a step make 3.3 ms a token.

layout_unknown: four GPUs, and nobody says how they share the model: only strict is known.

interference: eight streams at 33 ms a token, while long prompts are in work for most of the time.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from analyzer.simulate.writers import NS, openai_usage, request_record
from cases._build import MS, US, answer, at, expect, silent, write_case

if TYPE_CHECKING:
    from pathlib import Path

MODEL = "dunlin-7b"
T0 = at("2026-02-11T09:00:00Z")
FILE = {
    "memory_bandwidth_gb_s": 2000,
    "params": 6.9e9,
    "weight_bytes_per_param": 2,
    "layers": 28,
    "kv_heads": 4,
    "head_dim": 128,
    "kv_bytes_per_value": 2,
}
OUTPUT = 300


def bound_ms(batch: int, context: float) -> float:
    """By hand: bytes over bandwidth."""
    return (6.9e9 * 2 + batch * context * 2 * 28 * 4 * 128 * 2) / 2000e9 * 1e3


def _stream(
    folder: Path,
    starts: list[int],
    prompt: int,
    first: int,
    tpot: int,
    chunk: int = 1,
    **file: object,
) -> None:
    lines = []
    for k, start in enumerate(starts):
        chunks = [(first, None, 5)]
        chunks += [
            (first + tpot * min(chunk * (i + 1), OUTPUT - 1), None, 5 * chunk)
            for i in range(-(-(OUTPUT - 1) // chunk))
        ]
        usage = openai_usage(prompt, OUTPUT)
        lines += answer(f"q{k:02d}", T0 + start, chunks, usage, model=MODEL)
    told = json.dumps(FILE | file)
    write_case(folder, {"client.jsonl": lines, "deployment.json": [told]}, MODEL)


SINGLE = [15 * NS * k for k in range(6)]
_ALL = ["decode.below-bound", "decode.offloaded", "trust.faster-than-physics"]


def main(folder: Path) -> None:
    """Single answers far from the bound."""
    _stream(folder, SINGLE, 800, 120 * MS, 19_300 * US)


EXPECT_MAIN = expect(
    "decode.below-bound", "decode", 6, bound_ms(1, 950) / 19.3, "ratio",
    must_not=["decode.offloaded", "trust.faster-than-physics", "metric.multi-token-chunks"],
)  # fmt: skip


def twin(folder: Path) -> None:
    """A batch with long contexts."""
    _stream(folder, [0] * 10, 20_000, 4 * NS, 15_200 * US)


EXPECT_TWIN = silent(_ALL)


def variant_wrong_precision(folder: Path) -> None:
    """Faster than the file's bytes can be read."""
    _stream(folder, SINGLE, 800, 120 * MS, 4_400 * US)


EXPECT_WRONG_PRECISION = expect(
    "trust.faster-than-physics", "none", 6, bound_ms(1, 950) / 4.4, "times",
    must_not=["decode.below-bound", "decode.offloaded"],
)  # fmt: skip


def variant_speculation(folder: Path) -> None:
    """Three tokens a chunk and step."""
    _stream(folder, SINGLE, 800, 120 * MS, 3_300 * US, chunk=3)


EXPECT_SPECULATION = expect(
    "trust.faster-than-physics", "none", 6, bound_ms(1, 950) / 3.3, "times",
    must_not=["decode.below-bound", "decode.offloaded"],
)  # fmt: skip


def variant_layout_unknown(folder: Path) -> None:
    """Strict alone, over four GPUs, is no ground to call anything slow."""
    _stream(folder, SINGLE, 800, 120 * MS, 19_300 * US, gpu_count=4)


EXPECT_LAYOUT_UNKNOWN = silent(_ALL)


def variant_interference(folder: Path) -> None:
    """Eight streams, and beside them ten prompts of 0.9 s each, one after the other."""
    lines = [_record(f"s{k}", 0, 600, 320, prefill=20 * MS, decode=319 * 33 * MS) for k in range(8)]
    lines += [
        _record(f"p{k}", (1 + k) * NS, 30_000, 4, prefill=900 * MS, decode=60 * MS)
        for k in range(10)
    ]
    told = json.dumps(FILE)
    write_case(folder, {"records.jsonl": lines, "deployment.json": [told]}, MODEL)


def _record(name: str, start: int, prompt: int, output: int, *, prefill: int, decode: int) -> str:
    durations = {"queue": 0, "prefill": prefill, "decode": decode, "e2e": prefill + decode}
    return request_record(
        name, vantage="engine", started_ns=T0 + start, durations_ns=durations, model=MODEL,
        usage=openai_usage(prompt, output),
    )  # fmt: skip


EXPECT_INTERFERENCE = silent(_ALL)

CASES = {
    "main": (main, EXPECT_MAIN),
    "twin": (twin, EXPECT_TWIN),
    "wrong_precision": (variant_wrong_precision, EXPECT_WRONG_PRECISION),
    "speculation": (variant_speculation, EXPECT_SPECULATION),
    "layout_unknown": (variant_layout_unknown, EXPECT_LAYOUT_UNKNOWN),
    "interference": (variant_interference, EXPECT_INTERFERENCE),
}

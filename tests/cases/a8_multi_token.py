"""Chunks of several tokens: chunk gaps are no token gaps.

main: 120 chunks every 45 ms, one to six tokens each, three on average. Nothing is slow: 14.9 ms a
token.

twin: the same chunk times with one token each; 45 ms a token is real.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from analyzer.simulate.writers import NS, openai_usage
from cases._build import MS, answer, at, expect, silent, write_case

if TYPE_CHECKING:
    from pathlib import Path

MODEL = "plover-34b"
T0 = at("2026-01-23T04:55:00Z")
REQUESTS, CHUNKS = 16, 120
FIRST, GAP = 150 * MS, 45 * MS
CHARS_A_TOKEN = 5
PATTERN = (3, 2, 4, 3, 1, 6, 2, 3)
TOKENS = sum(PATTERN[i % len(PATTERN)] for i in range(CHUNKS))
TPOT_S = (CHUNKS - 1) * GAP / (TOKENS - 1) / NS


def _write(folder: Path, pattern: tuple[int, ...]) -> None:
    sizes = [pattern[i % len(pattern)] for i in range(CHUNKS)]
    usage = openai_usage(515, sum(sizes))
    lines = []
    for k in range(REQUESTS):
        chunks = [(FIRST + i * GAP, None, CHARS_A_TOKEN * size) for i, size in enumerate(sizes)]
        lines += answer(f"sp{k:02d}", T0 + 9 * NS * k, chunks, usage, model=MODEL)
    write_case(folder, {"client.jsonl": lines}, MODEL)


def main(folder: Path) -> None:
    """Three tokens a chunk."""
    _write(folder, PATTERN)


def twin(folder: Path) -> None:
    """One token a chunk."""
    _write(folder, (1,))


EXPECT_MAIN = expect(
    "metric.multi-token-chunks",
    "none",
    REQUESTS,
    TOKENS / CHUNKS,
    "tokens",
    must_not=["network.buffered", "decode.below-bound", "metric.ttft-misread"],
)
EXPECT_TWIN = silent(["metric.multi-token-chunks", "network.buffered", "metric.ttft-misread"])
CASES = {"main": (main, EXPECT_MAIN), "twin": (twin, EXPECT_TWIN)}

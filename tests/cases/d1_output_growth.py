"""The total time rises because answers got longer.

main: 24 answers of about 80 tokens, then, from one moment on, 24 of about 400. First token and step
time stay as they were: total time = 300 ms and 10 ms a token, 1.1 s and then 4.3 s.

twin: lengths between 80 and 400 throughout, the same ones in both halves: nothing grew.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from analyzer.simulate.writers import NS, openai_usage
from cases._build import MS, answer, at, expect, silent, write_case

if TYPE_CHECKING:
    from pathlib import Path

MODEL = "egret-22b"
T0 = at("2026-12-08T13:30:00Z")
HALF = 24
BASE, STEP = 300 * MS, 10 * MS
SHORT = [80 + (5 * k % 8) - 4 + (5 * k % 8 >= 4) for k in range(HALF)]
LONG = [400 + 5 * ((5 * k % 8) - 4 + (5 * k % 8 >= 4)) for k in range(HALF)]


def _write(folder: Path, lengths: list[int]) -> None:
    lines = []
    for k, tokens in enumerate(lengths):
        chunks = [(BASE + (i + 1) * STEP, "content", 4) for i in range(tokens)]
        usage = openai_usage(610 + 10 * (7 * k % 5), tokens)
        lines += answer(f"w{k:03d}", T0 + 10 * NS * k, chunks, usage, model=MODEL, max_tokens=2048)
    write_case(folder, {"client.jsonl": lines}, MODEL)


def main(folder: Path) -> None:
    """From 80 tokens to 400."""
    _write(folder, SHORT + LONG)


def twin(folder: Path) -> None:
    """The same mix of lengths before and after."""
    rng = random.Random(20261208)
    before = [rng.randint(80, 400) for _ in range(HALF)]
    _write(folder, before + rng.sample(before, HALF))


_OTHERS = [
    "queue.admission-limit",
    "queue.saturation",
    "prefill.long-prompt",
    "prefill.cache-miss",
    "network.slow",
    "network.buffered",
    "decode.preemption",
    "decode.prefill-interference",
    "metric.multi-token-chunks",
]
EXPECT_MAIN = expect(
    "decode.output-growth",
    "decode",
    HALF,
    (sum(LONG) - sum(SHORT)) * STEP / HALF / NS,
    "s",
    must_not=_OTHERS,
)
EXPECT_TWIN = silent(["decode.output-growth", *_OTHERS])
CASES = {"main": (main, EXPECT_MAIN), "twin": (twin, EXPECT_TWIN)}

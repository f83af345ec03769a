"""Chunks of several tokens: chunk gaps are no token gaps.

main: 120 chunks every 45 ms, one to six tokens each, three on average. Nothing is slow: 14.9 ms a
token.

twin: the same chunk times with one token each; 45 ms a token is real.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from analyzer.simulate.writers import NS, chunk, done, openai_usage, send
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


def _streams(folder: Path, streams: list[list[tuple[str, int]]], **told: bool) -> None:
    """Streams of (kind, tokens) a chunk; ``usage`` and ``tokens`` say what is logged."""
    rng = random.Random(len(streams))
    lines = []
    for k, chunks in enumerate(streams):
        sent = T0 + 9 * NS * k
        name = f"sp{k:02d}"
        lines.append(send(sent, name, model=MODEL))
        now = sent + FIRST
        for kind, tokens in chunks:
            more = {"tokens": tokens} if told.get("tokens") else {}
            lines.append(chunk(now, name, CHARS_A_TOKEN * tokens, kind=kind, **more))
            now += GAP + rng.randrange(-9, 9) * MS
        hidden = told.get("hidden", False)
        reasoning = sum(tokens for kind, tokens in chunks if kind == "reasoning")
        visible = sum(tokens for _, tokens in chunks) - reasoning
        spent = 400 if hidden else reasoning
        usage = openai_usage(515, visible + spent, reasoning=spent)
        lines.append(done(now, name, usage if told.get("usage", True) else {}))
    write_case(folder, {"client.jsonl": lines}, MODEL)


SIZES = [PATTERN[i % len(PATTERN)] for i in range(CHUNKS)]
PLAIN = [("content", size) for size in SIZES]
THINKING = [("reasoning", size) for size in SIZES] + PLAIN
SINGLE = [("content", 1)] * CHUNKS


def variant_tokens_of_chunks(folder: Path) -> None:
    """No usage; each chunk tells its tokens."""
    _streams(folder, [PLAIN] * REQUESTS, usage=False, tokens=True)


def variant_nothing_told(folder: Path) -> None:
    """Neither usage nor tokens: characters alone prove nothing."""
    _streams(folder, [PLAIN] * REQUESTS, usage=False)


def variant_reasoning(folder: Path) -> None:
    """Reasoning is streamed too, as coarse as the answer."""
    _streams(folder, [THINKING] * REQUESTS)


def variant_hidden_reasoning(folder: Path) -> None:
    """400 tokens of reasoning that no chunk carries, and a token a chunk of the answer."""
    _streams(folder, [SINGLE] * REQUESTS, hidden=True)


def variant_hosted(folder: Path) -> None:
    """A hosted API joins one to nine tokens as they come."""
    rng = random.Random(77)
    answers = [[("content", rng.randint(1, 9)) for _ in range(70)] for _ in range(REQUESTS)]
    _streams(folder, answers)


def variant_tool_call_at_once(folder: Path) -> None:
    """A tool call comes in three parts, which is no rhythm."""
    calls = [("tool_call", 1), ("tool_call", 30), ("tool_call", 9)]
    _streams(folder, [calls] * REQUESTS)


def variant_end_of_answer(folder: Path) -> None:
    """Answers of five chunks; the usage counts the mark of the end too, which no chunk shows."""
    lines = []
    for k in range(REQUESTS):
        chunks = [(FIRST + i * GAP, None, CHARS_A_TOKEN) for i in range(5)]
        lines += answer(f"sp{k:02d}", T0 + 9 * NS * k, chunks, openai_usage(515, 6), model=MODEL)
    write_case(folder, {"client.jsonl": lines}, MODEL)


def variant_an_odd_one(folder: Path) -> None:
    """Three streams of eighty had a slow network that joined their chunks."""
    _streams(folder, [PLAIN if k % 30 == 7 else SINGLE for k in range(80)])


EXPECT_HOSTED = expect(
    "metric.multi-token-chunks", "none", REQUESTS, 5.0, "tokens", EXPECT_MAIN["must_not"]
)
CASES = {
    "main": (main, EXPECT_MAIN),
    "twin": (twin, EXPECT_TWIN),
    "tokens_of_chunks": (variant_tokens_of_chunks, EXPECT_MAIN),
    "nothing_told": (variant_nothing_told, EXPECT_TWIN),
    "reasoning": (variant_reasoning, EXPECT_MAIN),
    "hidden_reasoning": (variant_hidden_reasoning, EXPECT_TWIN),
    "hosted": (variant_hosted, EXPECT_HOSTED),
    "tool_call_at_once": (variant_tool_call_at_once, EXPECT_TWIN),
    "end_of_answer": (variant_end_of_answer, EXPECT_TWIN),
    "an_odd_one": (variant_an_odd_one, EXPECT_TWIN),
}

"""TTFT follows the length of the prompt.

main: 20 short prompts and 15 long ones, mixed in time, 2,000 tokens of each cached. Prefill is
20 ms and 1 ms for every 8 fresh tokens, nobody waits.

twin: all prompts have one length; prefill varies by +-10 ms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from analyzer.simulate.writers import NS, Served, openai_usage
from cases._build import MS, US, answer, at, expect, mean_seconds, silent, spans, write_case

if TYPE_CHECKING:
    from pathlib import Path

MODEL = "stork-70b"
T0 = at("2026-06-30T10:05:00Z")
CACHED, OUTPUT, STEP, NETWORK = 2_000, 70, 30 * MS, 12 * MS
REQUESTS = 35
LONG = [k for k in range(REQUESTS) if k % 7 in (2, 4, 5)]
FRESH = [
    8_500 + 250 * (5 * k % 9) if k in LONG else 340 + 20 * (3 * k % 7) for k in range(REQUESTS)
]


def _prefill(fresh: int) -> int:
    return 20 * MS + fresh * 125 * US


def _write(folder: Path, fresh: list[int], prefills: list[int]) -> None:
    stream, served = [], []
    for k, (tokens, prefill) in enumerate(zip(fresh, prefills, strict=True)):
        sent = T0 + 6 * NS * k
        one = Served(
            request_id=f"ask-{k:03d}",
            arrived_ns=sent + NETWORK // 2,
            queue_ns=2 * MS,
            prefill_ns=prefill,
            decode_ns=(OUTPUT - 1) * STEP,
            prompt_tokens=CACHED + tokens,
            output_tokens=OUTPUT,
            before_ns=3 * MS,
        )
        served.append(one)
        first = one.ttft_ns + NETWORK
        chunks = [(first + i * STEP, "content", 4) for i in range(OUTPUT)]
        usage = openai_usage(one.prompt_tokens, OUTPUT, cached=CACHED)
        stream += answer(one.request_id, sent, chunks, usage, model=MODEL)
    write_case(folder, {"client.jsonl": stream, "spans.jsonl": spans(served)}, MODEL)


def main(folder: Path) -> None:
    """Long prompts are slow to prefill."""
    _write(folder, FRESH, [_prefill(tokens) for tokens in FRESH])


def twin(folder: Path) -> None:
    """One length, a little noise."""
    noise = [(7 * k % 21 - 10) * MS for k in range(REQUESTS)]
    _write(folder, [900] * REQUESTS, [_prefill(900) + one for one in noise])


_OTHERS = [
    "prefill.cache-miss",
    "queue.admission-limit",
    "queue.saturation",
    "queue.head-of-line",
    "network.slow",
    "network.buffered",
    "decode.output-growth",
]
EXCESS_S = mean_seconds(_prefill(FRESH[k]) for k in LONG) - mean_seconds(
    _prefill(FRESH[k]) for k in range(REQUESTS) if k not in LONG
)
EXPECT_MAIN = expect("prefill.long-prompt", "prefill", len(LONG), EXCESS_S, "s", must_not=_OTHERS)
EXPECT_TWIN = silent(["prefill.long-prompt", *_OTHERS])
CASES = {"main": (main, EXPECT_MAIN), "twin": (twin, EXPECT_TWIN)}

"""A burst waits for admission although the engine has room.

main: 24 calm requests, then 30 within 0.6 s. Five run at once, the KV cache stays under 2 %: the
limit on running requests makes 25 of them wait.

twin: the same arrivals without a limit; the burst's prompts are 7.5 times as long, so prefill is
slow (the engine's throughput is that of main), and nobody waits.

saturation: the same burst, the same waits, but five requests fill the KV cache: capacity, no limit.

long_prompts: twelve prompts of 30,000 tokens prefill one at a time, 4 s each, and each waits for
those before it. Running goes up and down between 1 and 3: the limit is the engine's work.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from analyzer.simulate.writers import NS, Served, startup_lines, status_lines
from cases._build import (
    MS,
    at,
    expect,
    fifo_waits,
    mean_seconds,
    silent,
    spans,
    write_case,
)

if TYPE_CHECKING:
    from pathlib import Path

MODEL = "wren-13b"
T0 = at("2026-03-04T07:10:00Z")
BASE_QUEUE = 3 * MS
STEP = 18 * MS
SLOTS = 5
CALM, BURST = 24, 30
CAPACITY = 400_000
ARRIVALS = [1_500 * MS * k for k in range(CALM)] + [60 * NS + 20 * MS * k for k in range(BURST)]
OUTPUTS = [90 + 7 * k % 13 for k in range(CALM + BURST)]


def _served(
    prompts: list[int], prefills: list[int], decodes: list[int], waits: list[int]
) -> list[Served]:
    columns = zip(ARRIVALS, prompts, prefills, decodes, waits, OUTPUTS, strict=True)
    return [
        Served(
            request_id=f"job-{k:04d}",
            arrived_ns=T0 + arrival,
            queue_ns=BASE_QUEUE + wait,
            prefill_ns=prefill,
            decode_ns=decode,
            prompt_tokens=prompt,
            output_tokens=output,
            before_ns=4 * MS,
            after_ns=1 * MS,
        )
        for k, (arrival, prompt, prefill, decode, wait, output) in enumerate(columns)
    ]


def _write(folder: Path, served: list[Served], capacity: int, arguments: dict[str, object]) -> None:
    log = startup_lines(
        T0 - 300 * NS, model=MODEL, capacity_tokens=capacity, arguments=arguments
    ) + status_lines(
        served,
        first_ns=T0 + 3 * NS,
        last_ns=T0 + 120 * NS,
        every_ns=3 * NS,
        capacity_tokens=capacity,
    )
    write_case(folder, {"spans.jsonl": spans(served), "vllm.log": log}, MODEL)


DECODES = [(output - 1) * STEP for output in OUTPUTS]
PREFILL = 80 * MS
WAITS = fifo_waits(ARRIVALS, [PREFILL + decode for decode in DECODES], SLOTS)
WAITING = [wait for wait in WAITS if wait]
MEAN_QUEUE = mean_seconds(BASE_QUEUE + wait for wait in WAITING)


def main(folder: Path) -> None:
    """Five run, 25 wait, the KV cache is nearly empty."""
    count = len(ARRIVALS)
    served = _served([640] * count, [PREFILL] * count, DECODES, WAITS)
    _write(folder, served, CAPACITY, {"max_model_len": 16384, "max_num_seqs": SLOTS})


EXPECT_MAIN = expect(
    "queue.admission-limit",
    "queue",
    len(WAITING),
    MEAN_QUEUE,
    "s",
    must_not=[
        "queue.saturation",
        "queue.mislabelled",
        "queue.head-of-line",
        "prefill.long-prompt",
        "prefill.cache-miss",
        "network.slow",
        "network.buffered",
        "decode.output-growth",
    ],
)


def twin(folder: Path) -> None:
    """Nobody waits; 4,800 tokens each at the same 40,000 tokens/s take 3.6 s together."""
    served = _served(
        [640] * CALM + [4_800] * BURST,
        [PREFILL] * CALM + [3_600 * MS] * BURST,
        DECODES,
        [0] * len(ARRIVALS),
    )
    _write(folder, served, CAPACITY, {"max_model_len": 16384})


EXPECT_TWIN = silent(
    ["queue.admission-limit", "queue.saturation", "queue.mislabelled", "network.slow"],
    may=["prefill.long-prompt"],
)


# Prompts of 9,600 tokens: five of them hold 600 blocks and a few each of 3,075.
FULL_CAPACITY = 49_200
FULL_PREFILL = 600 * MS
FULL_DECODES = [PREFILL + decode - FULL_PREFILL for decode in DECODES]


def variant_saturation(folder: Path) -> None:
    """Waits of main, but only five requests fit the KV cache: 96 to 99 % while others wait."""
    count = len(ARRIVALS)
    served = _served([9_600] * count, [FULL_PREFILL] * count, FULL_DECODES, WAITS)
    _write(folder, served, FULL_CAPACITY, {"max_model_len": 16384})


EXPECT_SATURATION = expect(
    "queue.saturation",
    "queue",
    len(WAITING),
    MEAN_QUEUE,
    "s",
    must_not=["queue.admission-limit", "queue.mislabelled", "prefill.long-prompt", "network.slow"],
)


LONG_OUTPUTS = [40, 310, 260, 30, 25, 290, 330, 60, 20, 240, 320, 45]


def _long_prompts() -> list[Served]:
    calm = _served([640] * len(ARRIVALS), [PREFILL] * len(ARRIVALS), DECODES, [0] * len(ARRIVALS))[
        :CALM
    ]
    arrivals = [60 * NS + 2_500 * MS * k for k in range(len(LONG_OUTPUTS))]
    waits = fifo_waits(arrivals, [4 * NS] * len(arrivals), slots=1)
    return calm + [
        Served(
            request_id=f"doc-{k:04d}",
            arrived_ns=T0 + arrival,
            queue_ns=BASE_QUEUE + wait,
            prefill_ns=4 * NS,
            decode_ns=(output - 1) * 25 * MS,
            prompt_tokens=30_000,
            output_tokens=output,
            before_ns=4 * MS,
            after_ns=1 * MS,
        )
        for k, (arrival, wait, output) in enumerate(zip(arrivals, waits, LONG_OUTPUTS, strict=True))
    ]


def variant_long_prompts(folder: Path) -> None:
    """They wait for each other's prefill; Running is 1 to 3, the KV cache at most 30 % full."""
    _write(folder, _long_prompts(), 300_000, {"max_model_len": 65536})


EXPECT_LONG_PROMPTS = silent(
    ["queue.admission-limit", "queue.mislabelled", "network.slow"],
    may=["queue.saturation", "queue.head-of-line", "prefill.long-prompt"],
)

# Prompts of 25,000 tokens in a pool of 94,000: three hold 80 %, a fourth does not fit. No log line
# calls that full.
TIGHT_SLOTS, TIGHT_PROMPT, TIGHT_CAPACITY = 3, 25_000, 94_000
TIGHT_WAITS = fifo_waits(ARRIVALS, [FULL_PREFILL + decode for decode in FULL_DECODES], TIGHT_SLOTS)
TIGHT_WAITING = [wait for wait in TIGHT_WAITS if wait]


def variant_next_does_not_fit(folder: Path) -> None:
    """The KV cache shows 80 % while others wait: the next prompt needs 27 % more."""
    count = len(ARRIVALS)
    served = _served([TIGHT_PROMPT] * count, [FULL_PREFILL] * count, FULL_DECODES, TIGHT_WAITS)
    _write(folder, served, TIGHT_CAPACITY, {"max_model_len": 32768})


EXPECT_NEXT_DOES_NOT_FIT = expect(
    "queue.saturation",
    "queue",
    len(TIGHT_WAITING),
    mean_seconds(BASE_QUEUE + wait for wait in TIGHT_WAITING),
    "s",
    must_not=["queue.admission-limit", "prefill.long-prompt", "network.slow"],
)


BUSY_SLOTS, BUSY_BURST = 48, 200
BUSY_OUTPUTS = [100 + 11 * k % 37 for k in range(BUSY_BURST)]
BUSY_ARRIVALS = [15 * MS * k for k in range(BUSY_BURST)]
BUSY_DECODES = [(output - 1) * STEP for output in BUSY_OUTPUTS]
BUSY_WAITS = fifo_waits(BUSY_ARRIVALS, [PREFILL + d for d in BUSY_DECODES], BUSY_SLOTS)
BUSY_LONG = [wait for wait in BUSY_WAITS if wait >= 100 * MS]


def variant_busy_batch(folder: Path) -> None:
    """A batch of 48 at its limit: somebody's prompt is always in work, but it is not the cause."""
    columns = zip(BUSY_ARRIVALS, BUSY_DECODES, BUSY_WAITS, BUSY_OUTPUTS, strict=True)
    served = [
        Served(
            request_id=f"busy-{k:04d}",
            arrived_ns=T0 + arrival,
            queue_ns=BASE_QUEUE + wait,
            prefill_ns=PREFILL,
            decode_ns=decode,
            prompt_tokens=640,
            output_tokens=output,
            before_ns=4 * MS,
            after_ns=1 * MS,
        )
        for k, (arrival, decode, wait, output) in enumerate(columns)
    ]
    log = status_lines(
        served, first_ns=T0 + NS, last_ns=T0 + 20 * NS, every_ns=NS, capacity_tokens=CAPACITY
    )
    write_case(folder, {"spans.jsonl": spans(served), "vllm.log": log}, MODEL)


EXPECT_BUSY_BATCH = expect(
    "queue.admission-limit",
    "queue",
    len(BUSY_LONG),
    mean_seconds(BASE_QUEUE + wait for wait in BUSY_LONG),
    "s",
    must_not=["queue.saturation", "prefill.long-prompt", "network.slow"],
)


def variant_no_log(folder: Path) -> None:
    """Spans alone: five are in service whenever somebody waits, and the prompts are small."""
    count = len(ARRIVALS)
    served = _served([640] * count, [PREFILL] * count, DECODES, WAITS)
    write_case(folder, {"spans.jsonl": spans(served)}, MODEL)


def variant_limit_told(folder: Path) -> None:
    """Spans of larger prompts, and a deployment file that tells the limit."""
    count = len(ARRIVALS)
    served = _served([6_000] * count, [PREFILL] * count, DECODES, WAITS)
    files = {"spans.jsonl": spans(served), "deployment.json": [f'{{"max_running": {SLOTS}}}']}
    write_case(folder, files, MODEL)


def variant_large_without_log(folder: Path) -> None:
    """Spans of large prompts alone: five in service may be a limit or a full cache."""
    count = len(ARRIVALS)
    served = _served([9_600] * count, [FULL_PREFILL] * count, FULL_DECODES, WAITS)
    write_case(folder, {"spans.jsonl": spans(served)}, MODEL)


def variant_rare_lines(folder: Path) -> None:
    """A status line every ten seconds, as vLLM writes them by default."""
    count = len(ARRIVALS)
    served = _served([640] * count, [PREFILL] * count, DECODES, WAITS)
    log = startup_lines(
        T0 - 300 * NS, model=MODEL, capacity_tokens=CAPACITY, arguments={"max_num_seqs": SLOTS}
    ) + status_lines(
        served, first_ns=T0 + 4 * NS, last_ns=T0 + 120 * NS, every_ns=10 * NS,
        capacity_tokens=CAPACITY,
    )  # fmt: skip
    write_case(folder, {"spans.jsonl": spans(served), "vllm.log": log}, MODEL)


EXPECT_CANNOT_SAY = silent(
    ["queue.admission-limit", "queue.saturation", "queue.mislabelled", "queue.head-of-line",
     "queue.imbalance", "network.slow"],
)  # fmt: skip

CASES = {
    "no_log": (variant_no_log, EXPECT_MAIN),
    "limit_told": (variant_limit_told, EXPECT_MAIN),
    "large_without_log": (variant_large_without_log, EXPECT_CANNOT_SAY),
    "rare_lines": (variant_rare_lines, EXPECT_MAIN),
    "main": (main, EXPECT_MAIN),
    "twin": (twin, EXPECT_TWIN),
    "saturation": (variant_saturation, EXPECT_SATURATION),
    "long_prompts": (variant_long_prompts, EXPECT_LONG_PROMPTS),
    "next_does_not_fit": (variant_next_does_not_fit, EXPECT_NEXT_DOES_NOT_FIT),
    "busy_batch": (variant_busy_batch, EXPECT_BUSY_BATCH),
}

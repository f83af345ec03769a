"""A client that keeps requests back, and counts their latency from the send.

main: requests are due at random moments; a pool of six connections sends them as others end. The
server is never slow. The innocent ones: the same plan with a pool that is large enough, timers that
are some milliseconds late, and retries, whose plan is that of their first attempt.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from analyzer.simulate.writers import NS, openai_usage, request_record, rfc3339, seconds
from cases._build import MS, answer, at, expect, fifo_waits, mean_seconds, silent, write_case

if TYPE_CHECKING:
    from pathlib import Path

MODEL = "knot-70b"
T0 = at("2026-02-17T13:05:00Z")
FIRST, STEP = 240 * MS, 30 * MS
NOT_SLOW = [
    "queue.admission-limit", "queue.saturation", "queue.head-of-line", "queue.mislabelled",
    "prefill.long-prompt", "network.slow", "network.buffered", "errors.rate",
]  # fmt: skip


def plan(seed: int, count: int, gap_ns: int) -> tuple[list[int], list[int]]:
    """When requests are due, and how many tokens they get."""
    rng = random.Random(seed)
    due, now = [], 0
    for _ in range(count):
        now += round(rng.expovariate(1) * gap_ns)
        due.append(now)
    return due, [60 + rng.randrange(120) for _ in range(count)]


def took(tokens: int) -> int:
    """From the send to the last chunk."""
    return FIRST + (tokens - 1) * STEP


def held(due: list[int], tokens: list[int], pool: int) -> list[int]:
    """Waits for one of ``pool`` connections."""
    return fifo_waits(due, [took(count) for count in tokens], pool)


def _stream(folder: Path, due: list[int], tokens: list[int], waits: list[int]) -> None:
    lines = []
    for k, (planned, count, wait) in enumerate(zip(due, tokens, waits, strict=True)):
        sent = T0 + planned + wait
        chunks = [(FIRST + i * STEP, "content", 4) for i in range(count)]
        lines += answer(
            f"op-{k:04d}", sent, chunks, openai_usage(800, count), model=MODEL,
            scheduled_at=seconds(T0 + planned),
        )  # fmt: skip
    write_case(folder, {"client.jsonl": lines}, MODEL)


def _records(
    folder: Path, due: list[int], tokens: list[int], waits: list[int], **missing: str
) -> None:
    lines = []
    for k, (planned, count, wait) in enumerate(zip(due, tokens, waits, strict=True)):
        sent = T0 + planned + wait
        durations = {"ttft": FIRST, "e2e": took(count)}
        lines.append(
            request_record(
                f"op-{k:04d}", vantage="client", started_ns=sent,
                durations_ns={n: v for n, v in durations.items() if n not in missing},
                scheduled_at=rfc3339(T0 + planned), model=MODEL, status=200,
                usage=openai_usage(800, count),
            )
        )  # fmt: skip
    write_case(folder, {"calls.jsonl": lines}, MODEL)


def _expect(due: list[int], tokens: list[int], waits: list[int]) -> dict[str, object]:
    long = [
        wait
        for wait, count in zip(waits, tokens, strict=True)
        if wait >= 100 * MS and wait >= 0.05 * (wait + took(count))
    ]
    return expect(
        "metric.client-hold", "client", len(long), mean_seconds(long), "s", must_not=NOT_SLOW
    )


CLEAN = silent(["metric.client-hold", *NOT_SLOW])
DUE, TOKENS = plan(1, 160, 420 * MS)
MAIN = held(DUE, TOKENS, 6)
WIDE = held(DUE, TOKENS, 90)


def main(folder: Path) -> None:
    """A pool of six."""
    _stream(folder, DUE, TOKENS, MAIN)


def twin(folder: Path) -> None:
    """A pool of ninety."""
    _stream(folder, DUE, TOKENS, WIDE)


ONE_DUE, ONE_TOKENS = plan(7, 40, 4_200 * MS)
ONE = held(ONE_DUE, ONE_TOKENS, 1)


def variant_one_connection(folder: Path) -> None:
    """One request at a time."""
    _stream(folder, ONE_DUE, ONE_TOKENS, ONE)


def variant_records(folder: Path) -> None:
    """Records instead of streams; no time to first token in them."""
    _records(folder, DUE, TOKENS, MAIN, ttft="left out")


BURST_DUE = [k * 12 * NS + j * 3 * MS for k in range(6) for j in range(25)]
BURST_TOKENS = [70 + 13 * k % 50 for k in range(len(BURST_DUE))]
BURST = held(BURST_DUE, BURST_TOKENS, 16)


def variant_bursts(folder: Path) -> None:
    """Batches of 25 with 16 workers: nine of each wait for the others' ends."""
    _stream(folder, BURST_DUE, BURST_TOKENS, BURST)


LATE_DUE, LATE_TOKENS = plan(3, 120, 900 * MS)
LATE = [1_400 * MS - due % (20 * NS) if due % (20 * NS) < 1_300 * MS else 0 for due in LATE_DUE]


def variant_blocked_loop(folder: Path) -> None:
    """No limit: every 20 s the client's loop stands still, and what is due then goes out late."""
    _records(folder, LATE_DUE, LATE_TOKENS, LATE)


JITTER = [random.Random(k).randrange(18) * MS for k in range(160)]


def variant_timers(folder: Path) -> None:
    """Sends are up to 17 ms late, as timers are."""
    _stream(folder, DUE, TOKENS, JITTER)


def variant_retries(folder: Path) -> None:
    """Second attempts carry the plan of the first: the wait is that attempt, and no hold."""
    lines = []
    for k in range(60):
        planned = T0 + 3 * NS * k
        failed = k % 12 == 5
        for attempt in (1, 2) if failed else (1,):
            sent = planned + (0 if attempt == 1 else 4 * NS)
            bad = failed and attempt == 1
            lines.append(
                request_record(
                    f"rt-{k:03d}-{attempt}", vantage="client", started_ns=sent,
                    durations_ns={"e2e": 3 * NS if bad else took(80)}, operation_id=f"rt-{k:03d}",
                    attempt=attempt, scheduled_at=rfc3339(planned), model=MODEL,
                    status=None if bad else 200, error="timeout" if bad else None,
                )
            )  # fmt: skip
    write_case(folder, {"calls.jsonl": lines}, MODEL)


CASES = {
    "main": (main, _expect(DUE, TOKENS, MAIN)),
    "twin": (twin, CLEAN),
    "one_connection": (variant_one_connection, _expect(ONE_DUE, ONE_TOKENS, ONE)),
    "records": (variant_records, _expect(DUE, TOKENS, MAIN)),
    "bursts": (variant_bursts, _expect(BURST_DUE, BURST_TOKENS, BURST)),
    "blocked_loop": (variant_blocked_loop, _expect(LATE_DUE, LATE_TOKENS, LATE)),
    "timers": (variant_timers, CLEAN),
    "retries": (variant_retries, silent(["metric.client-hold"], may=["errors.rate"])),
}

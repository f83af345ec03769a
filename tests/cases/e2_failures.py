"""Requests that fail: for a while, on one route, by timeouts, by callers that leave.

main: one route answers 503 for five minutes. The innocent ones: an odd failure in hundreds, and
logs that tell no outcome at all, of which nothing is said.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from analyzer.simulate.writers import NS, openai_usage, request_record, stream_event
from cases._build import MS, answer, at, expect, silent, write_case

if TYPE_CHECKING:
    from pathlib import Path

MODEL = "ruff-8b"
T0 = at("2026-08-19T15:30:00Z")
EVERY = 6 * NS
NOT_SLOW = [
    "queue.admission-limit", "queue.saturation", "network.buffered", "metric.client-hold",
    "errors.truncated-output", "decode.output-growth",
]  # fmt: skip


def _expect(failed: int, known: int) -> dict[str, object]:
    return expect("errors.rate", "none", failed, failed / known, "ratio", must_not=NOT_SLOW)


CLEAN = silent(["errors.rate", *NOT_SLOW])


def record(name: str, start_ns: int, took_ns: int, **fields: object) -> str:
    """One attempt of the client."""
    return request_record(
        name, vantage="client", started_ns=start_ns, durations_ns={"e2e": took_ns}, model=MODEL,
        **fields,
    )  # fmt: skip


REQUESTS, BAD = 200, range(90, 140)
FAILED = sum(k % 2 for k in BAD)


def _route(folder: Path, bad: range) -> None:
    lines = []
    for k in range(REQUESTS):
        route = "east" if k % 2 else "west"
        fails = k in bad and route == "east"
        fields: dict[str, object] = {"route": route, "status": 503 if fails else 200}
        if not fails:
            fields |= {"finish_reason": "stop", "usage": openai_usage(400, 150)}
        took = 35 * MS if fails else 3_200 * MS + 11 * MS * (k % 17)
        lines.append(record(f"rq-{k:04d}", T0 + EVERY * k, took, **fields))
    write_case(folder, {"calls.jsonl": lines}, MODEL)


def main(folder: Path) -> None:
    """The eastern route fails for five minutes."""
    _route(folder, BAD)


def twin(folder: Path) -> None:
    """One request of two hundred fails."""
    _route(folder, range(91, 92))


TIMED_OUT = [k for k in range(50) if k % 7 == 3]
PATIENCE, PAUSE, ANSWER = 20 * NS, 2 * NS, 5 * NS


def variant_timeouts(folder: Path) -> None:
    """Every seventh operation times out once and is answered when it is tried again."""
    lines = []
    for k in range(50):
        start = T0 + 40 * NS * k
        same = {"operation_id": f"op-{k:03d}", "payload_hash": f"{k:08x}"}
        if k in TIMED_OUT:
            lines.append(
                record(f"op-{k:03d}-1", start, PATIENCE, attempt=1, error="timeout", **same)
            )
            start += PATIENCE + PAUSE
        done = {"status": 200, "finish_reason": "stop", "usage": openai_usage(900, 210)}
        attempt = 2 if k in TIMED_OUT else 1
        lines.append(
            record(f"op-{k:03d}-{attempt}", start, ANSWER, attempt=attempt, **same, **done)
        )
    write_case(folder, {"calls.jsonl": lines}, MODEL)


LEAVE, GOT = 9, 44


def variant_left_early(folder: Path) -> None:
    """Nine callers leave in the middle of their answers."""
    lines = []
    for k in range(60):
        name, sent = f"st-{k:03d}", T0 + 8 * NS * k
        if k % 6 == 2 and k // 6 < LEAVE:
            lines.append(stream_event(sent, name, "send", model=MODEL))
            at_ns = sent
            for i in range(GOT):
                at_ns = sent + 300 * MS + i * 40 * MS
                lines.append(stream_event(at_ns, name, "chunk", kind="content", chars=5))
            lines.append(stream_event(at_ns + 5 * MS, name, "error", error="cancelled"))
        else:
            chunks = [(300 * MS + i * 40 * MS, "content", 5) for i in range(120)]
            lines += answer(name, sent, chunks, openai_usage(300, 120), model=MODEL)
    write_case(folder, {"client.jsonl": lines}, MODEL)


TRIES = 6
HIDDEN = 10 * NS


def variant_hidden_tries(folder: Path) -> None:
    """Six answers come after a gateway's first try has failed; the client sees one long request."""
    outer, inner = [], []
    for k in range(40):
        name, sent = f"gw-{k:03d}", T0 + 30 * NS * k
        tries = k % 6 == 1 and k // 6 < TRIES
        late = HIDDEN + 50 * MS if tries else 0
        done = {"status": 200, "usage": openai_usage(600, 90)}
        outer.append(record(name, sent, late + 4_020 * MS, finish_reason="stop", **done))
        for attempt in (1, 2) if tries else (1,):
            first = tries and attempt == 1
            inner.append(
                request_record(
                    name, vantage="gateway", attempt=attempt, model=MODEL,
                    started_ns=sent + 10 * MS + (late if attempt == 2 else 0),
                    durations_ns={"e2e": HIDDEN if first else 4 * NS},
                    **({"error": "timeout", "status": 504} if first else done),
                )
            )  # fmt: skip
    write_case(folder, {"calls.jsonl": outer, "gateway.jsonl": inner}, MODEL)


def variant_untold(folder: Path) -> None:
    """Durations only: nothing is known of any outcome."""
    lines = [record(f"rq-{k:04d}", T0 + EVERY * k, 3 * NS) for k in range(60)]
    write_case(folder, {"calls.jsonl": lines}, MODEL)


def variant_refused(folder: Path) -> None:
    """Prompts that are too long are refused with 400."""
    lines = []
    for k in range(120):
        fails = k % 11 == 4
        fields = {"status": 400} if fails else {"status": 200, "finish_reason": "stop"}
        lines.append(record(f"rq-{k:04d}", T0 + EVERY * k, 20 * MS if fails else 2 * NS, **fields))
    write_case(folder, {"calls.jsonl": lines}, MODEL)


REFUSED = sum(k % 11 == 4 for k in range(120))
CASES = {
    "main": (main, _expect(FAILED, REQUESTS)),
    "twin": (twin, CLEAN),
    "timeouts": (variant_timeouts, _expect(len(TIMED_OUT), 50 + len(TIMED_OUT))),
    "left_early": (variant_left_early, _expect(LEAVE, 60)),
    "hidden_tries": (variant_hidden_tries, _expect(TRIES, 40 + TRIES)),
    "untold": (variant_untold, CLEAN),
    "refused": (variant_refused, _expect(REFUSED, 120)),
}

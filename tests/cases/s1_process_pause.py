"""The server's process stands still now and then.

main: five streams at 30 ms a token; every 4 s nothing happens for 800 ms, at the engine as well.

twin: as many gaps of 800 ms, each on one connection at a time of its own; the engine goes on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from analyzer.simulate.writers import NS
from cases._build import MS, at, expect, silent, write_case
from cases._streams import Stream, client_lines, emit_lines, made, read, status_log, tick_lines

if TYPE_CHECKING:
    from pathlib import Path

MODEL = "dunlin-8b"
T0 = at("2026-06-02T22:15:00Z")
COUNT, GAP, TOKENS, FIRST = 5, 30 * MS, 600, 250 * MS
WAY = 12 * MS
MUST_NOT = [
    "decode.prefill-interference", "decode.preemption", "client.stalled", "network.slow",
    "network.buffered",
]  # fmt: skip
OWN = ["decode.process-pause", *MUST_NOT]


def _pauses(
    every: int = 4 * NS, lasts: int = 800 * MS, until: int = 20 * NS
) -> list[tuple[int, int]]:
    return [(T0 + k, T0 + k + lasts) for k in range(every, until, every)]


def _streams(pauses: list[tuple[int, int]], count: int = COUNT) -> list[Stream]:
    slow = [(begin, end, 0) for begin, end in pauses]
    streams = []
    for k in range(count):
        sent = T0 + 70 * k * MS
        times = made(sent + FIRST, GAP + k * MS, TOKENS, slow)
        streams.append(Stream(f"turn-{k}", sent, times, 420, seen_ns=read(times, way_ns=WAY)))
    return streams


def _right(requests: int, value: float) -> dict[str, object]:
    return expect("decode.process-pause", "decode", requests, value, "s", MUST_NOT)


def main(folder: Path) -> None:
    """Streams and the engine's emission on a clock 40 ms ahead."""
    streams = _streams(_pauses())
    lines = client_lines(streams, MODEL)
    write_case(folder, {"client.jsonl": lines, "emits.jsonl": emit_lines(streams, 40 * MS)}, MODEL)


def twin(folder: Path) -> None:
    """Connections that stall one by one."""
    streams = _streams([])
    for k, one in enumerate(streams):
        gaps = [(begin + k * 900 * MS, end + k * 900 * MS) for begin, end in _pauses(5 * NS)]
        one.seen_ns = read(one.made_ns, gaps, WAY)
    lines = client_lines(streams, MODEL)
    write_case(folder, {"client.jsonl": lines, "emits.jsonl": emit_lines(streams, 40 * MS)}, MODEL)


def with_ticks(folder: Path) -> None:
    """No emission, but the client's heartbeats are on time and nothing had piled up."""
    streams = _streams(_pauses(5 * NS, 1_300 * MS), 3)
    lines = client_lines(streams, MODEL) + tick_lines(T0, T0 + 40 * NS, 100 * MS)
    write_case(folder, {"client.jsonl": lines}, MODEL)


def once(folder: Path) -> None:
    """A single long pause, seen in the emission alone."""
    streams = _streams([(T0 + 6 * NS, T0 + 9 * NS)], 4)
    write_case(folder, {"emits.jsonl": emit_lines(streams)}, MODEL)


def in_status(folder: Path) -> None:
    """Status lines each second: three of them say that nothing was made."""
    streams = _streams([(T0 + 6 * NS, T0 + 9_200 * MS)], 4)
    log = status_log(
        streams, first_ns=T0 + NS, last_ns=T0 + 25 * NS, every_ns=NS, capacity=300_000,
        prompts=[(T0, T0 + FIRST, 1_680)],
    )  # fmt: skip
    write_case(folder, {"client.jsonl": client_lines(streams, MODEL), "vllm.log": log}, MODEL)


def client_only(folder: Path) -> None:
    """All streams stop, and nothing tells at which end."""
    write_case(folder, {"client.jsonl": client_lines(_streams(_pauses()), MODEL)}, MODEL)


def in_bursts(folder: Path) -> None:
    """A hosted API that sends what it has every 300 ms: a rhythm, no pauses."""
    streams = _streams([])
    for one in streams:
        burst = 300 * MS
        one.seen_ns = [-(-at // burst) * burst + 20_000 * k for k, at in enumerate(one.made_ns)]
    lines = client_lines(streams, MODEL)
    write_case(folder, {"client.jsonl": lines, "emits.jsonl": emit_lines(streams)}, MODEL)


def drafted(folder: Path) -> None:
    """Speculation: one to five tokens a step of 40 ms; the emission is as uneven as the stream."""
    streams = []
    for k in range(COUNT):
        sent, times, i = T0 + 70 * k * MS, [], 0
        now = sent + FIRST
        while len(times) < TOKENS:
            times += [now + j for j in range((3, 1, 5, 1, 2, 4)[i % 6])]
            now, i = now + 40 * MS, i + 1
        times = times[:TOKENS]
        streams.append(Stream(f"turn-{k}", sent, times, 420, seen_ns=read(times, way_ns=WAY)))
    lines = client_lines(streams, MODEL)
    write_case(folder, {"client.jsonl": lines, "emits.jsonl": emit_lines(streams)}, MODEL)


CASES = {
    "main": (main, _right(COUNT, 0.8)),
    "twin": (twin, silent(OWN)),
    "with_ticks": (with_ticks, _right(3, 1.3)),
    "once": (once, _right(4, 3.0)),
    "in_status": (in_status, _right(4, 3.2)),
    "client_only": (client_only, silent(OWN)),
    "in_bursts": (in_bursts, silent(OWN)),
    "drafted": (drafted, silent(OWN)),
}

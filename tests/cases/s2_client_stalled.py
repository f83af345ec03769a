"""The client's own loop is blocked, and all its connections with it.

main: six streams at 18 ms a token; the loop does something else for 1.7 s, twice. Heartbeats that
were due come late, and what was sent meanwhile is read at once.

twin: the same gaps on one connection, while heartbeats and the other five go on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from analyzer.simulate.writers import NS
from cases._build import MS, at, expect, silent, write_case
from cases._streams import Stream, client_lines, emit_lines, made, read, tick_lines

if TYPE_CHECKING:
    from pathlib import Path

MODEL = "siskin-4b"
T0 = at("2026-07-08T17:05:00Z")
COUNT, GAP, TOKENS, FIRST = 6, 18 * MS, 700, 180 * MS
WAY = 25 * MS
LASTS = 1_700 * MS
BLOCKED = [(T0 + 3 * NS, T0 + 3 * NS + LASTS), (T0 + 8 * NS, T0 + 8 * NS + LASTS)]
MUST_NOT = [
    "decode.prefill-interference", "decode.preemption", "decode.process-pause", "network.slow",
    "network.buffered",
]  # fmt: skip
OWN = ["client.stalled", *MUST_NOT]


def _streams(blocked: list[tuple[int, int]], count: int = COUNT) -> list[Stream]:
    streams = []
    for k in range(count):
        sent = T0 + 40 * k * MS
        times = made(sent + FIRST, GAP, TOKENS)
        seen = read(times, blocked, WAY)
        streams.append(Stream(f"page-{k}", sent, times, 300, seen_ns=seen))
    return streams


def _ticks(blocked: list[tuple[int, int]], every: int = 100 * MS) -> list[str]:
    return tick_lines(T0 - NS, T0 + 20 * NS, every, blocked)


def _right(requests: int, value: float) -> dict[str, object]:
    return expect("client.stalled", "client", requests, value, "s", MUST_NOT)


def main(folder: Path) -> None:
    """Streams and heartbeats."""
    lines = client_lines(_streams(BLOCKED), MODEL) + _ticks(BLOCKED)
    write_case(folder, {"client.jsonl": lines}, MODEL)


def twin(folder: Path) -> None:
    """One connection stalls."""
    streams = _streams([])
    streams[2].seen_ns = read(streams[2].made_ns, BLOCKED, WAY)
    write_case(folder, {"client.jsonl": client_lines(streams, MODEL) + _ticks([])}, MODEL)


def engine_goes_on(folder: Path) -> None:
    """The engine's emission is known too, and did not stop. Heartbeats are in a file apart."""
    streams = _streams(BLOCKED[:1], 3)
    files = {
        "client.jsonl": client_lines(streams, MODEL),
        "ticks.jsonl": _ticks(BLOCKED[:1], 400 * MS),
        "emits.jsonl": emit_lines(streams, -7 * NS),
    }
    write_case(folder, files, MODEL)


def one_stream(folder: Path) -> None:
    """The client had one connection at that time; its heartbeats prove it all the same."""
    lines = client_lines(_streams(BLOCKED, 1), MODEL) + _ticks(BLOCKED)
    write_case(folder, {"client.jsonl": lines}, MODEL)


def no_ticks(folder: Path) -> None:
    """All streams stop and catch up: the client, or the path they share; nothing says which."""
    write_case(folder, {"client.jsonl": client_lines(_streams(BLOCKED), MODEL)}, MODEL)


def server_stops(folder: Path) -> None:
    """All streams stop because nothing is made: heartbeats are on time."""
    slow = [(begin, end, 0) for begin, end in BLOCKED]
    streams = []
    for k in range(COUNT):
        sent = T0 + 40 * k * MS
        times = made(sent + FIRST, GAP, TOKENS, slow)
        streams.append(Stream(f"page-{k}", sent, times, 300, seen_ns=read(times, way_ns=WAY)))
    lines = client_lines(streams, MODEL) + _ticks([])
    write_case(folder, {"client.jsonl": lines, "emits.jsonl": emit_lines(streams)}, MODEL)


def two_clients(folder: Path) -> None:
    """Another client, with a log of its own, reads on all the while."""
    others = _streams([], 4)
    for one in others:
        one.name = f"other-{one.name}"
    files = {
        "blocked.jsonl": client_lines(_streams(BLOCKED), MODEL) + _ticks(BLOCKED),
        "reading.jsonl": client_lines(others, MODEL) + _ticks([]),
    }
    write_case(folder, files, MODEL)


def uneven_ticks(folder: Path) -> None:
    """Heartbeats that jitter by 40 ms, and streams that never stop."""
    times = [T0 + 100 * k * MS + (40 * MS if k % 7 == 3 else 0) for k in range(150)]
    beats = [line for at in times for line in tick_lines(at, at + 1, NS)]
    write_case(folder, {"client.jsonl": client_lines(_streams([]), MODEL) + beats}, MODEL)


def begun_meanwhile(folder: Path) -> None:
    """Short answers begin and end while the loop is blocked: they come at once, by no hop."""
    streams = _streams(BLOCKED)
    for k in range(6):
        sent = BLOCKED[k % 2][0] - 40 * MS + 9 * k * MS
        times = made(sent + FIRST, GAP, 40)
        streams.append(Stream(f"short-{k}", sent, times, 90, seen_ns=read(times, BLOCKED, WAY)))
    lines = client_lines(streams, MODEL) + _ticks(BLOCKED)
    write_case(folder, {"client.jsonl": lines}, MODEL)


BOTH = 2 * LASTS / NS
CASES = {
    "main": (main, _right(COUNT, BOTH)),
    "twin": (twin, silent(OWN)),
    "engine_goes_on": (engine_goes_on, _right(3, LASTS / NS)),
    "one_stream": (one_stream, _right(1, BOTH)),
    "begun_meanwhile": (begun_meanwhile, _right(COUNT, BOTH)),
    "no_ticks": (no_ticks, silent(OWN)),
    "server_stops": (server_stops, silent(["client.stalled"], may=["decode.process-pause"])),
    "two_clients": (two_clients, _right(COUNT, BOTH)),
    "uneven_ticks": (uneven_ticks, silent(OWN)),
}

"""Events of a window of a profiler trace, for whoever writes them down again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from analyzer.engines.duckdb import Engine
from analyzer.errors import AnalyzerError

_NS_PER_MS = 1_000_000
_ROWS = 20_000

_TRACES = """SELECT r.rank_key, r.capture, r.rank, r.place, r.is_wall, r.start_ns, r.dur_ns,
  t.world_size, t.device_name, t.runtime_version, t.driver_version, t.vendor
FROM resolve_gpu_rank AS r
LEFT JOIN (SELECT source_id, coalesce(rank, -1) AS rank, max(world_size) AS world_size,
    max(device_name) AS device_name, max(runtime_version) AS runtime_version,
    max(driver_version) AS driver_version, max(vendor) AS vendor
  FROM gpu_trace GROUP BY source_id, coalesce(rank, -1)) AS t
  ON r.source_id = t.source_id AND coalesce(r.rank, -1) = t.rank
ORDER BY r.rank_key"""

_CHOSEN = """FROM gpu_event AS e
JOIN resolve_gpu_rank AS r
  ON e.source_id = r.source_id AND coalesce(e.rank, -1) = coalesce(r.rank, -1)
WHERE e.start_ns < {until} AND r.is_wall = {wall}
  AND (e.start_ns >= {since} OR e.start_ns + coalesce(e.dur_ns, 0) > {since})"""


@dataclass(frozen=True)
class Window:
    """What lies between two moments of a trace's clock; ``events`` streams them in order of time.

    ``places``: each process and device with events, as rank_key, device (or None), pid (or None).
    """

    since_ns: int
    until_ns: int
    first_ns: int
    """Begin of the first event, which may lie before the window and reach into it."""
    begun_ns: int
    """First moment of the trace."""
    is_wall: bool
    count: int
    silent: tuple[str, ...]
    """Ranks without an event in it."""
    traces: tuple[dict[str, Any], ...]
    places: tuple[dict[str, Any], ...]
    events: Iterator[list[dict[str, Any]]]


def window(engine: Engine, asked: tuple[str, int, int]) -> Window:
    """Everything that lies in the window or reaches into it.

    ``asked``: ``wall`` and two moments in ns, or ``offset`` and two times in ns since the first
    event.
    """
    traces = engine.rows(_TRACES)
    kind, first, last = asked
    walls = {row["is_wall"] for row in traces}
    if kind == "wall" and True not in walls:
        raise AnalyzerError(
            "the trace has no wall time: its times count from an unknown moment",
            "ask by milliseconds since its start: --export-window 0..50 FILE",
        )
    if kind == "offset" and len(walls) > 1:
        raise AnalyzerError(
            "some traces of the case have wall time, others count from an unknown moment",
            "ask by wall time (2026-09-17T14:10:00Z..2026-09-17T14:10:01Z), or ingest them apart",
        )
    wall = kind == "wall" or True in walls
    known = [row for row in traces if row["is_wall"] == wall and row["start_ns"] is not None]
    if not known:
        raise AnalyzerError("no trace of the case tells when it began")
    begun = min(row["start_ns"] for row in known)
    ended = max(row["start_ns"] + (row["dur_ns"] or 0) for row in known)
    since, until = (first, last) if kind == "wall" else (begun + first, begun + last)
    chosen = _CHOSEN.format(since=since, until=until, wall=wall)
    (told,) = engine.rows(f"SELECT count(*) AS n, min(e.start_ns) AS first_ns {chosen}")
    if not told["n"]:
        raise AnalyzerError(
            "no event lies in that window",
            f"the trace is {(ended - begun) / _NS_PER_MS:,.3f} ms long: "
            f"--export-window 0..{max(1, -(-(ended - begun) // _NS_PER_MS))} FILE takes all of it",
        )
    places = engine.rows(
        "SELECT DISTINCT r.rank_key, CASE WHEN e.tid IS NULL AND e.pid IS NULL THEN e.device END "
        f"AS device, e.pid, CASE WHEN e.pid IS NULL THEN e.stream END AS stream {chosen} "
        "ORDER BY ALL"
    )
    present = {row["rank_key"] for row in places}
    return Window(
        since_ns=since, until_ns=until, first_ns=told["first_ns"], begun_ns=begun, is_wall=wall,
        count=told["n"],
        silent=tuple(str(row["place"]) for row in known if row["rank_key"] not in present),
        traces=tuple(row for row in known if row["rank_key"] in present),
        places=tuple(places),
        events=engine.stream(
            f"SELECT r.rank_key, e.* {chosen} ORDER BY e.start_ns, r.rank_key, e.record",
            _ROWS,
        ),
    )  # fmt: skip

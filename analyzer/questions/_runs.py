"""Runs of requests that lie so far apart that one axis of time cannot show them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from analyzer.engines.duckdb import Engine

_NS = 1_000_000_000
_TIMES = 10
"""A gap as many times as long as the longest run sets runs apart."""
_LEAST_GAP_NS = 600 * _NS
_MOST = 200
_SHOWN = 8

_GAPS = f"""
WITH told AS (
  SELECT r.start_ns, r.start_ns + coalesce(s.e2e_ns, 0) AS end_ns
  FROM resolve_request AS r JOIN latency_segment AS s ON r.request_key = s.request_key
  WHERE r.start_ns IS NOT NULL
), ordered AS (
  SELECT start_ns, max(end_ns) OVER (
    ORDER BY start_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before_ns
  FROM told
)
SELECT before_ns, start_ns FROM ordered WHERE start_ns - before_ns >= {_LEAST_GAP_NS}
ORDER BY start_ns - before_ns DESC, start_ns LIMIT {_MOST}
"""


@dataclass(frozen=True)
class Run:
    """Requests that follow each other."""

    first_ns: int
    last_ns: int
    """End of the last one."""
    requests: int

    @property
    def options(self) -> str:
        """The filters that leave this run."""
        return f"--since {_second(self.first_ns)} --until {_second(self.last_ns + _NS)}"


def runs_apart(engine: Engine, window: tuple[int, int] | None) -> tuple[Run, ...]:
    """The runs of a case in which all gaps between them dwarf each of them; else none."""
    if window is None:
        return ()
    gaps = [(row["before_ns"], row["start_ns"]) for row in engine.rows(_GAPS)]
    for number in range(1, len(gaps) + 1):
        cuts = sorted(gaps[:number])
        spans = list(
            zip(
                [window[0], *(start for _, start in cuts)],
                [*(end for end, _ in cuts), window[1]],
                strict=True,
            )
        )
        least = min(start - end for end, start in cuts)
        if least > _TIMES * max(end - start for start, end in spans):
            return tuple(_run(engine, start, end) for start, end in spans)
    return ()


def _run(engine: Engine, first_ns: int, last_ns: int) -> Run:
    count = engine.value(
        "SELECT count(*) FROM resolve_request "
        f"WHERE start_ns >= {first_ns} AND start_ns <= {last_ns}"
    )
    return Run(first_ns, last_ns, int(count))


def told(runs: tuple[Run, ...]) -> tuple[str, ...]:
    """A line on the runs, and one with the filters of each."""
    if not runs:
        return ()
    lines = [
        f"{one.options}  ({one.requests:,} request{'' if one.requests == 1 else 's'})"
        for one in runs[:_SHOWN]
    ]
    more = [f"and {len(runs) - _SHOWN} more"] if len(runs) > _SHOWN else []
    return (f"{sentence(runs)}:", *lines, *more)


def sentence(runs: tuple[Run, ...]) -> str:
    """What is wrong with looking at all of it; empty where nothing is."""
    if not runs:
        return ""
    return (
        f"The case holds {len(runs)} runs that lie far apart, which one axis of time cannot show: "
        "ask of each by itself"
    )


def _second(ns: int) -> str:
    return f"{datetime.fromtimestamp(ns // _NS, tz=UTC):%Y-%m-%dT%H:%M:%SZ}"

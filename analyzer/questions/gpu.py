"""What devices did: their busy and idle time, classes of work, steps by phase, ranks, and trust."""

from __future__ import annotations

from typing import Any

from analyzer.contract.devices import Devices
from analyzer.contract.types import Filters, Table
from analyzer.engines.duckdb import Engine
from analyzer.errors import AnalyzerError
from analyzer.questions.gpu_trust import notes, why_no_idle, wrong_with
from analyzer.questions.scope import Say

_FEWEST = 20
"""Steps below which a 95th percentile is the longest of them."""

_GAPS = ", ".join(
    f"CAST(sum(CASE WHEN cause = '{cause}' THEN end_ns - start_ns ELSE 0 END) AS BIGINT) "
    f"AS {cause}_gap_ns"
    for cause in ("launch", "host", "device", "unknown")
)
_IDLE = f"""WITH device AS (
  SELECT w.rank_key, w.device, max(w.end_ns) - min(w.start_ns) AS span_ns,
    CAST(sum(w.busy_ns) AS BIGINT) AS busy_ns,
    CAST(sum(w.end_ns - w.start_ns - w.busy_ns) AS BIGINT) AS overlap_ns,
    CAST(sum(coalesce(w.gap_ns, 0)) AS BIGINT) AS idle_ns, max(w.gap_ns) AS longest_gap_ns,
    count(*) AS events, count(DISTINCT p.stream) AS streams
  FROM gpu_work AS w
  JOIN gpu_placed AS p ON w.rank_key = p.rank_key AND w.device = p.device AND w.nr = p.nr
  GROUP BY w.rank_key, w.device
),
gaps AS (SELECT rank_key, device, {_GAPS} FROM gpu_gap GROUP BY rank_key, device)
SELECT t.rank_key, t.place AS rank, d.* EXCLUDE (rank_key),
  g.* EXCLUDE (rank_key, device)
FROM device AS d
JOIN gpu_trust AS t ON d.rank_key = t.rank_key
LEFT JOIN gaps AS g ON d.rank_key = g.rank_key AND d.device = g.device
ORDER BY t.rank_key, d.device"""

_CLASSES = """WITH named AS (
  SELECT class, class_group, name, CAST(sum(busy_ns) AS BIGINT) AS busy_ns,
    CAST(sum(sum_ns) AS BIGINT) AS sum_ns, CAST(sum(events) AS BIGINT) AS events,
    max(longest_ns) AS longest_ns
  FROM gpu_class GROUP BY class, class_group, name
)
SELECT class, class_group, CAST(sum(busy_ns) AS BIGINT) AS busy_ns,
  CAST(sum(busy_ns) AS DOUBLE) / nullif(sum(sum(busy_ns)) OVER (), 0) AS share_ratio,
  CAST(sum(sum_ns) AS BIGINT) AS sum_ns, CAST(sum(events) AS BIGINT) AS events, count(*) AS names,
  max(longest_ns) AS longest_ns, arg_max(name, (busy_ns, name)) AS kernel,
  max(busy_ns) AS kernel_ns
FROM named
GROUP BY class, class_group
ORDER BY busy_ns DESC, class"""

_KNOWN = """WITH known AS (
  SELECT s.*, t.is_wall,
    s.device IS NOT NULL AND s.lost_launches = 0 AND t.can_idle AS has_idle,
    s.device IS NOT NULL AND s.lost_launches = 0 AND (t.can_idle OR s.is_whole) AS has_time
  FROM gpu_step AS s JOIN gpu_trust AS t ON s.rank_key = t.rank_key
)"""
_IDLES = ("idle_ns", "launch_gap_ns", "host_gap_ns", "device_gap_ns", "unknown_gap_ns")
_WORK = ("busy_ns", "compute_ns", "comm_wait_ns", "comm_transfer_ns", "copy_ns")


def _median(column: str, when: str = "") -> str:
    told = f"CASE WHEN {when} THEN {column} END" if when else column
    return f"CAST(round(percentile_cont(0.5) WITHIN GROUP (ORDER BY {told})) AS BIGINT) AS {column}"


_PHASES = f"""{_KNOWN},
usable AS (
  SELECT *, device IS NOT NULL AND lost_launches = 0 AND NOT is_lull AS is_usable FROM known
),
better AS (
  SELECT phase, told_by, coalesce(bool_or(is_whole AND is_usable), FALSE) AS whole
  FROM usable GROUP BY phase, told_by
),
chosen AS (
  SELECT u.*, b.whole, u.is_usable AND (u.is_whole OR NOT b.whole) AS is_judged
  FROM usable AS u JOIN better AS b
    ON u.phase IS NOT DISTINCT FROM b.phase AND u.told_by IS NOT DISTINCT FROM b.told_by
)
SELECT phase, told_by, count(*) AS steps, count(CASE WHEN is_judged THEN 1 END) AS judged,
  bool_or(whole) AS is_whole, {_median("step_ns", "is_judged AND has_time")},
  CASE WHEN count(CASE WHEN is_judged AND has_time THEN 1 END) >= {_FEWEST} THEN CAST(round(
    percentile_cont(0.95) WITHIN GROUP (ORDER BY CASE WHEN is_judged AND has_time THEN step_ns END)
  ) AS BIGINT) END AS p95_ns, {_median("token_ns", "is_judged AND has_time")},
  bool_or(is_drafted) AS is_drafted,
  avg(CASE WHEN is_judged THEN nullif(decode_requests, 0) END) AS batch,
  avg(CASE WHEN is_judged THEN nullif(prefill_tokens, 0) END) AS prompt_tokens,
  avg(CASE WHEN is_judged THEN kv_tokens END) AS kv_tokens,
  avg(CASE WHEN is_judged THEN launches END) AS launches,
  {", ".join(_median(name, "is_judged") for name in _WORK)},
  {", ".join(_median(name, "is_judged AND has_idle") for name in _IDLES)}
FROM chosen
GROUP BY phase, told_by
ORDER BY CASE phase WHEN 'decode' THEN 1 WHEN 'mixed' THEN 2 WHEN 'prefill' THEN 3 ELSE 4 END,
  steps DESC, told_by"""

_STEPS = f"""{_KNOWN},
begun AS (SELECT min(start_ns) AS first_ns, rank_key FROM resolve_gpu_rank GROUP BY rank_key)
SELECT k.place AS rank, k.device, k.step, k.name, k.told_by, k.engine, k.phase,
  k.prefill_requests, k.prefill_tokens, k.decode_requests, k.decode_tokens, k.kv_tokens,
  k.is_drafted, CASE WHEN k.is_wall THEN k.start_ns END AS start_ns,
  k.start_ns - b.first_ns AS offset_ns,
  CASE WHEN k.has_time THEN k.step_ns END AS step_ns,
  CASE WHEN k.has_time THEN CAST(round(k.token_ns) AS BIGINT) END AS token_ns, k.busy_ns,
  k.compute_ns, CAST(round(k.comm_wait_ns) AS BIGINT) AS comm_wait_ns,
  CAST(round(k.comm_transfer_ns) AS BIGINT) AS comm_transfer_ns, k.copy_ns,
  {", ".join(f"CASE WHEN k.has_idle THEN k.{name} END AS {name}" for name in _IDLES)},
  k.overlap_ns, k.work, k.launches, k.graph_launches, k.lost_launches, k.is_whole, k.is_lull
FROM known AS k JOIN begun AS b ON k.rank_key = b.rank_key
ORDER BY step_ns DESC NULLS LAST, k.busy_ns DESC NULLS LAST, k.rank_key, k.step, k.device"""

_RANKS = """SELECT r.place AS rank, r.device, r.capture, r.steps,
  CAST(round(r.step_ns) AS BIGINT) AS step_ns, CAST(round(r.compute_ns) AS BIGINT) AS compute_ns,
  CAST(round(r.comm_wait_ns) AS BIGINT) AS comm_wait_ns,
  CAST(round(r.comm_transfer_ns) AS BIGINT) AS comm_transfer_ns,
  CAST(round(r.copy_ns) AS BIGINT) AS copy_ns,
  CASE WHEN t.can_idle THEN CAST(round(r.idle_ns) AS BIGINT) END AS idle_ns,
  CAST(round(r.offset_ns) AS BIGINT) AS clock_ns, r.collectives, r.last, r.blame_ratio,
  r.is_straggler, r.can_compare
FROM gpu_rank AS r JOIN gpu_trust AS t ON r.rank_key = t.rank_key
ORDER BY r.capture, r.rank_key, r.device"""

_TRUST = """WITH untold AS (
  SELECT rank_key, CAST(sum(CASE WHEN class = 'other' THEN busy_ns ELSE 0 END) AS DOUBLE)
    / nullif(sum(busy_ns), 0) AS unclassified_ratio
  FROM gpu_class GROUP BY rank_key
)
SELECT t.*, t.place AS rank, r.profiler, u.unclassified_ratio
FROM gpu_trust AS t
JOIN resolve_gpu_rank AS r ON t.rank_key = r.rank_key
LEFT JOIN untold AS u ON t.rank_key = u.rank_key
ORDER BY t.rank_key"""

_BOUNDS = """SELECT deployment, model, count(*) AS requests,
  percentile_cont(0.5) WITHIN GROUP (ORDER BY tpot_ns) AS observed_ns,
  percentile_cont(0.5) WITHIN GROUP (ORDER BY strict_ns) AS strict_ns,
  percentile_cont(0.5) WITHIN GROUP (ORDER BY expected_ns) AS expected_ns
FROM hardware_decode WHERE strict_ns IS NOT NULL
GROUP BY deployment, model ORDER BY requests DESC, deployment, model"""

_BESIDE = """SELECT (SELECT sum(expected_ns * steps) / sum(steps) FROM gpu_bound
    WHERE expected_ns IS NOT NULL) AS step_bound_ns, count(DISTINCT request_key) AS requests,
  percentile_cont(0.5) WITHIN GROUP (ORDER BY covered_ratio) AS covered_ratio,
  sum(busy_ns) / sum(traced_ns) AS busy_ratio,
  sum(launch_gap_ns) / sum(traced_ns) AS launch_gap_ratio,
  sum(host_gap_ns) / sum(traced_ns) AS host_gap_ratio,
  sum(comm_wait_ns) / sum(traced_ns) AS comm_wait_ratio,
  sum(comm_transfer_ns) / sum(traced_ns) AS comm_transfer_ratio
FROM gpu_request
WHERE capture NOT IN (SELECT capture FROM gpu_trust WHERE NOT can_idle)"""

_UNKNOWN = """SELECT name, CAST(sum(busy_ns) AS BIGINT) AS busy_ns,
  CAST(sum(events) AS BIGINT) AS events,
  CAST(sum(busy_ns) AS DOUBLE)
    / nullif((SELECT sum(busy_ns) FROM gpu_class), 0) AS share_ratio,
  CAST(sum(sum(busy_ns)) OVER () AS DOUBLE)
    / nullif((SELECT sum(busy_ns) FROM gpu_class), 0) AS all_ratio
FROM gpu_class WHERE class = 'other'
GROUP BY name ORDER BY busy_ns DESC, name LIMIT 5"""
_RECORDED = """SELECT min(e.start_ns) AS first_ns, max(e.start_ns + e.dur_ns) AS last_ns
FROM gpu_event AS e
WHERE e.kind IN ('kernel', 'memcpy', 'memset', 'graph') AND e.clock = 'wall' AND e.dur_ns >= 0"""
_TRUSTED = (
    "rank", "capture", "can_idle", "reasons", "profiler", "start_ns", "dur_ns", "work",
    "late_launches", "launches", "launch_coverage_ratio", "graph_launches", "graphs_covered",
    "graph_coverage_ratio", "opaque", "unlaunched", "largest_ratio", "unclassified_ratio",
    "overhead_ratio", "has_stacks", "is_cut", "lost_records", "is_full", "ranks", "ranks_told",
)  # fmt: skip


def devices(engine: Engine) -> Devices:
    """Everything that one screen says; the caller has looked whether there is a trace."""
    told = engine.rows(_TRUST)
    unknown = tuple(engine.rows(_UNKNOWN))
    return Devices(
        trust=_trust(told, unknown),
        idle=_idle(engine, told),
        classes=classes(engine),
        phases=Table("analyze.gpu.phases", tuple(engine.rows(_PHASES))),
        ranks=ranks(engine),
        bounds=tuple(engine.rows(_BOUNDS)),
        beside=engine.rows(_BESIDE)[0],
        unclassified=unknown,
    )


def require_trace(engine: Engine, filters: Filters | None, say: Say) -> None:
    """Raise where the case holds no trace, or filters leave nothing of those it has."""
    if engine.value("SELECT count(*) FROM gpu_trace") or engine.value(
        "SELECT count(*) FROM gpu_event"
    ):
        _require_some(engine, filters, say)
        return
    raise AnalyzerError(
        "the case holds no profiler trace",
        "ingest one of PyTorch's profiler, Nsight Systems (exported to sqlite) or rocprofv3",
    )


def _require_some(engine: Engine, filters: Filters | None, say: Say) -> None:
    """What lies outside the time asked about was recorded all the same."""
    if filters in (None, Filters()) or engine.value("SELECT count(*) FROM resolve_gpu_work"):
        return
    (told,) = engine.rows(_RECORDED)
    if told["first_ns"] is None:
        return
    first, last = (say(told[name], "time_ns") for name in ("first_ns", "last_ns"))
    raise AnalyzerError(
        "no work of a device lies in the time asked about", f"the traces hold {first} to {last}"
    )


def trust(engine: Engine) -> Table:
    """What each rank's trace can carry, and what is wrong with it."""
    return _trust(engine.rows(_TRUST), tuple(engine.rows(_UNKNOWN)))


def _trust(told: list[dict[str, Any]], unknown: tuple[dict[str, Any], ...]) -> Table:
    rows = []
    for one in told:
        row = one | {
            "start_ns": one["start_ns"] if one["is_wall"] else None,
            "reasons": "; ".join(wrong_with(one)) or None,
        }
        rows.append({name: row[name] for name in _TRUSTED})
    return Table("analyze.gpu.trust", tuple(rows), notes(told, unknown))


def _idle(engine: Engine, told: list[dict[str, Any]]) -> Table:
    """Devices; whoever cannot tell idle time shows none, and says why."""
    trusted = {row["rank_key"]: row for row in told}
    rows = []
    for one in engine.rows(_IDLE):
        row = dict(one)
        rank = trusted[row.pop("rank_key")]
        row["busy_ratio"] = row["busy_ns"] / row["span_ns"] if row["span_ns"] else None
        row["why"] = None
        if not rank["can_idle"]:
            row |= dict.fromkeys((*_IDLES, "busy_ratio", "longest_gap_ns"))
            row["why"] = "; ".join(why_no_idle(rank))
        names = (
            "rank", "device", "span_ns", "busy_ns", "busy_ratio", "overlap_ns", *_IDLES,
            "longest_gap_ns", "events", "streams", "why",
        )  # fmt: skip
        rows.append({name: row[name] for name in names})
    return Table("analyze.gpu.idle", tuple(rows))


def classes(engine: Engine) -> Table:
    """Busy time by class of work."""
    return Table("analyze.gpu.classes", tuple(engine.rows(_CLASSES)))


def ranks(engine: Engine) -> Table:
    """Ranks beside each other."""
    return Table("analyze.gpu.ranks", tuple(engine.rows(_RANKS)))


def steps(engine: Engine, most: int) -> Table:
    """Steps on their devices, the longest first."""
    rows = tuple(engine.rows(f"{_STEPS}\nLIMIT {most}" if most else _STEPS))
    all_ = int(engine.value("SELECT count(*) FROM gpu_step") or 0)
    notes: tuple[str, ...] = ()
    if len(rows) < all_:
        notes = (f"The longest {len(rows):,} of {all_:,} steps; --top 0 lists all.",)
    elif not rows and not engine.value("SELECT count(*) FROM gpu_work"):
        notes = ("No work of a device was recorded, so no step.",)
    return Table("analyze.gpu.steps", rows, notes)

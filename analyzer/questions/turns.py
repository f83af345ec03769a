"""Conversations: those that cost most, one of them call by call, and why caches were missed."""

from __future__ import annotations

from typing import Any

from analyzer.contract.types import Filters, Table
from analyzer.engines.duckdb import Engine
from analyzer.errors import AnalyzerError, near

_SESSIONS = """WITH calls AS (
  SELECT c.session, c.clock, c.at_ns, c.input_tokens, c.read_tokens, c.output_tokens,
    n.seen_tokens, k.usd, m.read_usd, m.visible_usd + m.reasoning_usd AS output_usd, p.excess_usd,
    l.reason, coalesce(l.lost_tokens, 0) AS lost_tokens
  FROM turns_call AS c
  LEFT JOIN turns_loss AS l ON c.request_key = l.request_key
  LEFT JOIN turns_call_cost AS k ON c.request_key = k.request_key
  LEFT JOIN cost_request AS m ON c.request_key = m.request_key
  LEFT JOIN turns_loss_cost AS p ON c.request_key = p.request_key
  LEFT JOIN turns_seen AS n ON c.request_key = n.request_key
),
reasons AS (
  SELECT session, max_by(reason, tokens) AS reason FROM (
    SELECT session, reason, sum(lost_tokens) AS tokens FROM calls
    WHERE reason IS NOT NULL GROUP BY session, reason ORDER BY reason
  ) GROUP BY session
),
summed AS (
  SELECT session,
    min(CASE WHEN clock = 'wall' THEN at_ns END) AS start_ns,
    CAST(sum(lost_tokens) AS BIGINT) AS lost_tokens,
    CAST(sum(read_tokens + lost_tokens) AS DOUBLE)
      / nullif(sum(CASE WHEN read_tokens IS NOT NULL THEN input_tokens END), 0) AS could_ratio,
    count(reason) AS losses, CAST(sum(output_tokens) AS BIGINT) AS output_tokens,
    CAST(sum(seen_tokens) AS BIGINT) AS seen_tokens,
    CASE WHEN count(usd) = count(*) THEN sum(usd) END AS cost_usd, sum(excess_usd) AS lost_usd,
    sum(read_usd) AS read_usd, sum(output_usd) AS output_usd,
    CAST(sum(read_tokens) AS BIGINT) AS read_tokens
  FROM calls
  GROUP BY session
)
SELECT v.session, v.known, nullif(v.model, '') AS model, s.start_ns,
  v.last_ns - v.first_ns AS dur_ns, v.threads, v.calls, v.first_tokens,
  v.last_tokens, v.max_tokens, v.sent_tokens AS input_tokens, v.state,
  v.growth_tokens, v.compactions, v.resent_ratio, v.cached_ratio AS read_ratio,
  coalesce(s.could_ratio, CAST(s.seen_tokens AS DOUBLE) / nullif(v.sent_tokens, 0)) AS could_ratio,
  s.lost_tokens, s.losses, r.reason, s.output_tokens, s.cost_usd, s.lost_usd,
  s.read_usd, s.output_usd, s.read_tokens, v.again_tokens
FROM turns_conversation AS v
JOIN summed AS s ON v.session = s.session
LEFT JOIN reasons AS r ON v.session = r.session
ORDER BY s.cost_usd DESC NULLS LAST, v.sent_tokens DESC, v.session"""

_CALLS = """SELECT c.nth, c.turn, c.thread, q.id, q.start_ns, c.idle_ns,
  nullif(c.model, '') AS model, c.input_tokens, c.read_tokens, c.fresh_tokens,
  c.write_tokens, e.could_tokens,
  l.lost_tokens, c.output_tokens, s.ttft_ns, k.usd AS cost_usd, p.excess_usd AS lost_usd,
  c.event, l.reason, l.confidence, l.at_token,
  CASE WHEN l.reason IN ('changed', 'rewritten') THEN h.what END AS changed, v.diagnosis
FROM turns_call AS c
JOIN resolve_request AS q ON c.request_key = q.request_key
JOIN resolve_conversation AS v ON c.request_key = v.request_key
LEFT JOIN latency_segment AS s ON c.request_key = s.request_key
LEFT JOIN turns_expected AS e ON c.request_key = e.request_key
LEFT JOIN turns_loss AS l ON c.request_key = l.request_key
LEFT JOIN turns_changed_part AS h ON c.request_key = h.request_key
LEFT JOIN turns_call_cost AS k ON c.request_key = k.request_key
LEFT JOIN turns_loss_cost AS p ON c.request_key = p.request_key
WHERE c.session = {session} OR c.thread = {session}
ORDER BY CASE WHEN c.clock = 'wall' THEN 0 ELSE 1 END, c.clock, c.at_ns, c.thread, c.nth"""

REASONS = """SELECT l.reason, l.confidence, count(*) AS calls,
  count(DISTINCT l.session) AS sessions,
  CAST(sum(l.lost_tokens) AS BIGINT) AS lost_tokens,
  CAST(sum(l.lost_tokens) AS DOUBLE)
    / nullif((SELECT sum(input_tokens) FROM turns_call), 0) AS share,
  CAST(sum(c.extra_ns) AS BIGINT) AS extra_ns,
  CASE WHEN count(c.excess_usd) = count(*) THEN sum(c.excess_usd) END AS lost_usd
FROM turns_loss AS l
JOIN turns_loss_cost AS c ON l.request_key = c.request_key
GROUP BY l.reason, l.confidence
ORDER BY lost_tokens DESC, l.reason, l.confidence"""

_TOTALS = """SELECT count(*) AS calls, count(DISTINCT session) AS sessions,
  count(DISTINCT CASE WHEN nth > 1 THEN session END) AS several,
  sum(input_tokens) AS input_tokens,
  sum(CASE WHEN read_tokens IS NOT NULL THEN input_tokens END) AS told_tokens,
  sum(read_tokens) AS read_tokens,
  count(CASE WHEN known IN ('hashes', 'size') THEN 1 END) AS stitched,
  count(CASE WHEN known = 'size' THEN 1 END) AS suspected
FROM turns_call"""

_IDEAL = """SELECT sum(n.seen_tokens) AS seen_tokens, sum(n.short_tokens) AS short_tokens,
  sum(n.long_tokens) AS long_tokens, sum(q.input_tokens) AS input_tokens
FROM turns_seen AS n JOIN resolve_request AS q ON n.request_key = q.request_key"""


def sessions(engine: Engine, most: int) -> Table:
    """The conversations that cost most, or have the longest prompts where no price is known."""
    limit = f"\nLIMIT {most}" if most else ""
    rows = tuple(_with_part(row) for row in engine.rows(f"{_SESSIONS}{limit}"))
    return Table("analyze.turns", rows, notes(engine, len(rows)))


def _with_part(row: dict[str, Any]) -> dict[str, Any]:
    """The row with what most of its cost is; of its prompt tokens where a price is missing."""
    read, again = row.pop("read_tokens") or 0, row.pop("again_tokens")
    computed = max(row["input_tokens"] - read - row["lost_tokens"], 0)
    parts = {"lost": row["lost_tokens"], "read": read, "answers": 0}
    read_usd, output_usd = row.pop("read_usd"), row.pop("output_usd")
    if row["cost_usd"]:
        lost = max(row["lost_usd"] or 0, 0)
        parts = {"lost": lost, "read": read_usd or 0, "answers": output_usd or 0}
    whole = float(row["cost_usd"] or row["input_tokens"])
    sums = {name: float(part) for name, part in parts.items()}
    rest = max(whole - sum(sums.values()), 0)
    sums["again"] = rest * min(again / computed, 1) if computed else 0
    sums["new"] = rest - sums["again"]
    part = max(sums, key=lambda name: sums[name])
    ratio = sums[part] / whole if whole else None
    return row | {"part": part if ratio else None, "part_ratio": ratio}


def calls(engine: Engine, session: str) -> Table:
    """The calls of one conversation in order, those of its agents among them."""
    rows = tuple(engine.rows(_CALLS.format(session=quoted(session))))
    if not rows:
        known = [str(row["session"]) for row in engine.rows(_KNOWN)]
        told = f"; did you mean {', '.join(near(session, known))}?" if near(session, known) else ""
        raise AnalyzerError(f"no session {session}{told}", hint="analyze turns lists them")
    return Table("analyze.turns.calls", rows)


_KNOWN = "SELECT DISTINCT session FROM turns_thread ORDER BY session LIMIT 10000"


def quoted(text: str) -> str:
    """A text as SQL writes it."""
    return "'" + text.replace("'", "''") + "'"


def reasons(engine: Engine) -> Table:
    """Why tokens were not read from the cache that could have been; with none, what is known."""
    rows = tuple(engine.rows(REASONS))
    return Table("analyze.turns.reasons", rows, () if rows else (_none_lost(engine),))


def _none_lost(engine: Engine) -> str:
    """Nothing lost, or nothing that could tell."""
    (all_,) = engine.rows(_TOTALS)
    if not all_["calls"]:
        return _NOTHING
    if not all_["told_tokens"]:
        return (
            "No call tells what it read from a cache, so what was lost cannot be said: log "
            "cached_tokens, or cache_read_input_tokens and cache_creation_input_tokens."
        )
    judged = engine.value("SELECT count(*) FROM turns_expected WHERE lost_tokens IS NOT NULL")
    if not judged:
        return (
            "No call is known to continue another, so none could have read what came before: where "
            "they do, log the id of the conversation with each call."
        )
    calls = "1 call" if judged == 1 else f"{judged:,} calls"
    return f"Nothing lost: {calls} could read what came before, and did."


def notes(engine: Engine, shown: int | None) -> tuple[str, ...]:
    """How sessions are known, what the cache kept, and what it could have kept.

    ``shown``: how many are listed; None where that is said elsewhere, and the losses too.
    """
    (all_,) = engine.rows(_TOTALS)
    if not all_["calls"]:
        return (_NOTHING,)
    out = []
    if shown is not None and shown < all_["sessions"]:
        out.append(f"The first {shown:,} of {all_['sessions']:,} sessions; --top 0 lists all.")
    if all_["stitched"]:
        doubt = f", {all_['suspected']:,} of them by size alone" if all_["suspected"] else ""
        out.append(
            f"{all_['stitched']:,} calls have no session id and were joined to the call whose "
            f"prompt they continue{doubt}."
        )
    out += [line for line in (_cached(all_), _ideal(engine)) if line]
    return (*out, *_lost(engine)) if shown is not None else tuple(out)


_NOTHING = (
    "no call tells its prompt tokens: log usage (OpenAI streams: stream_options.include_usage), "
    "or ingest transcripts"
)


def _cached(all_: dict[str, Any]) -> str:
    if not all_["told_tokens"]:
        return (
            "No call tells what it read from a cache: a cost counts the whole prompt, and is the "
            "most it can be."
        )
    share = all_["read_tokens"] / all_["told_tokens"]
    return f"{_percent(share)} of the prompt tokens were read from a cache, as the calls tell it."


def _ideal(engine: Engine) -> str:
    (row,) = engine.rows(_IDEAL)
    if not row["input_tokens"]:
        return ""
    whole, short, long = (
        row[f"{name}_tokens"] / row["input_tokens"] for name in ("seen", "short", "long")
    )
    return (
        f"By their hashes, {_percent(whole)} of the prompt tokens had come before: what a cache "
        f"without limits would serve. With a lifetime of 5 minutes it would be {_percent(short)}, "
        f"with one of an hour {_percent(long)}."
    )


_LOST_AS = {
    "changed": "for the prompt changed",
    "rewritten": "for the history was rewritten",
    "compaction": "for the history was compacted",
    "expired": "for the pause outlasted the cache",
    "evicted": "for other traffic pushed it out",
    "elsewhere": "for another server answered",
    "restart": "for the cache was emptied as a whole",
    "model switch": "for another model answered",
    "tier switch": "for another service tier answered",
    "off": "for the cache of this model never served anything",
    "unknown": "and nothing tells why",
}
"""Why tokens had to be computed again that the call before had sent."""


def _percent(share: float) -> str:
    return f"{100 * share:.2f} %"


def _lost(engine: Engine) -> tuple[str, ...]:
    return tuple(
        f"Lost, {_LOST_AS[row['reason']]} ({row['confidence']}): {row['lost_tokens']:,} tokens in "
        f"{row['calls']:,} call{'s' if row['calls'] > 1 else ''}."
        for row in engine.rows(REASONS)
    )


def without_session(filters: Filters | None) -> Filters | None:
    """A conversation is more than the calls that bear its id: its agents belong to it."""
    from dataclasses import replace

    return replace(filters, session=None) if filters else None

"""Conversations for the report: how prompts grow, and one conversation's cache call by call."""

from __future__ import annotations

from analyzer.contract.conversations import Conversations
from analyzer.contract.types import Chart, Table
from analyzer.engines.duckdb import Engine
from analyzer.questions import turns

_SESSIONS, _DRAWN, _BINS = 8, 3, 120
_FEWEST = 5
"""Conversations that a call number needs for a median."""
_REACHED = "SELECT max(nth) FROM turns_call WHERE session = {session} AND NOT is_agent"
_LINE = """SELECT min(nth) AS x, avg(CAST(input_tokens AS DOUBLE)) AS y, {name} AS series
FROM turns_call
WHERE session = {session} AND NOT is_agent AND coalesce(event, '') <> 'side call'
GROUP BY (nth - 1) // {step}
ORDER BY x"""
_MEDIAN = """SELECT nth AS x, percentile_cont(0.5) WITHIN GROUP (ORDER BY input_tokens) AS y,
  'median of all' AS series
FROM turns_call
WHERE nth <= {most} AND NOT is_agent
GROUP BY nth
HAVING count(*) >= {fewest}
ORDER BY nth"""
_STACK = """WITH calls AS (
  SELECT c.input_tokens, c.read_tokens, coalesce(e.lost_tokens, 0) AS lost_tokens,
    row_number() OVER (
      ORDER BY CASE WHEN c.clock = 'wall' THEN 0 ELSE 1 END, c.clock, c.at_ns, c.request_key
    ) AS nth
  FROM turns_call AS c
  LEFT JOIN turns_expected AS e ON c.request_key = e.request_key
  WHERE c.session = {session} AND NOT c.is_agent
)
SELECT (nth - 1) // {step} * {step} + 1 AS call, count(*) AS calls,
  avg(CAST(coalesce(read_tokens, 0) AS DOUBLE)) AS read_tokens,
  avg(CAST(lost_tokens AS DOUBLE)) AS lost_tokens,
  avg(CAST(input_tokens - coalesce(read_tokens, 0) - lost_tokens AS DOUBLE)) AS new_tokens
FROM calls
GROUP BY (nth - 1) // {step}
ORDER BY call"""
_WORST = """SELECT c.session
FROM turns_call AS c
LEFT JOIN turns_expected AS e ON c.request_key = e.request_key
WHERE NOT c.is_agent
GROUP BY c.session
HAVING count(*) > 1 AND count(c.read_tokens) > 0
ORDER BY sum(coalesce(e.lost_tokens, 0)) DESC, sum(c.input_tokens) DESC, c.session
LIMIT 1"""


def conversations(engine: Engine) -> Conversations | None:
    """None where no conversation has a second call."""
    if not engine.value("SELECT count(*) FROM turns_call WHERE nth > 1"):
        return None
    listed = turns.sessions(engine, _SESSIONS)
    several = [str(row["session"]) for row in listed.rows if row["calls"] > 1][:_DRAWN]
    worst = engine.rows(_WORST)
    name = str(worst[0]["session"]) if worst else ""
    step = _step(engine, name) if name else 1
    sql = _STACK.format(session=turns.quoted(name), step=step)
    return Conversations(
        sessions=Table(listed.kind, listed.rows, turns.notes(engine, None)),
        reasons=turns.reasons(engine),
        growth=_growth(engine, several),
        session=name,
        stack=tuple(engine.rows(sql)) if name else (),
        stack_sql=sql,
        bin_calls=step,
    )


def _step(engine: Engine, session: str) -> int:
    reached = int(engine.value(_REACHED.format(session=turns.quoted(session))) or 1)
    return -(-reached // _BINS)


def _growth(engine: Engine, names: list[str]) -> Chart | None:
    """Prompts over the calls of the costliest conversations, beside the median of all."""
    asked = [
        _LINE.format(session=turns.quoted(one), name=turns.quoted(one), step=_step(engine, one))
        for one in names
    ]
    rows = [row for sql in asked for row in engine.rows(sql)]
    most = int(max((row["x"] for row in rows), default=0))
    if len(names) > 1:
        # The median of one conversation is that conversation.
        asked.insert(0, _MEDIAN.format(most=min(most, _BINS), fewest=_FEWEST))
        rows = engine.rows(asked[0]) + rows
    if not rows:
        return None
    return Chart(
        "Prompt over the calls of a conversation",
        "call",
        "",
        "prompt",
        "tokens",
        ";\n".join(asked),
        len(rows),
        tuple(rows),
        tuple(dict.fromkeys(str(row["series"]) for row in rows)),
    )

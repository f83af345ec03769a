"""One request over all vantages: where its time went, and the records that say so."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from analyzer.contract.types import Bar, RequestView
from analyzer.engines.duckdb import Engine, literal
from analyzer.errors import AnalyzerError
from analyzer.questions import modelled, request_cost, stalls

_FACTS = (
    "model", "route", "provider", "deployment", "session_id", "turn", "attempt", "status", "error",
    "finish_reason",
)  # fmt: skip
_TOKENS = (
    "input_fresh_tokens", "cache_read_tokens", "cache_write_tokens", "output_visible_tokens",
    "output_reasoning_tokens",
)  # fmt: skip
_MANY = 5
_NEAR, _LETTERS = 3, 4
"""Ids that are offered, and letters of which one may be wrong."""
_NS = 1_000_000_000


def view(engine: Engine, request_id: str) -> RequestView:
    """Everything known of one request; raises where the id is unknown or means several."""
    return view_of(engine, key_of(engine, request_id))


def view_of(engine: Engine, key: int) -> RequestView:
    """The same for a request that is known by its key."""
    request = engine.rows(f"SELECT * FROM resolve_request WHERE request_key = {key}")[0]
    segment = engine.rows(f"SELECT * FROM latency_segment WHERE request_key = {key}")[0]
    token = engine.rows(f"SELECT * FROM latency_token WHERE request_key = {key}")[0]
    fitted, refused = modelled.of_request(engine, key)
    return RequestView(
        id=request["id"],
        facts=tuple((name, str(request[name])) for name in _FACTS if request[name] is not None),
        e2e_ns=segment["e2e_ns"],
        ttft_ns=segment["ttft_ns"],
        bars=_bars(engine, key, segment),
        segments=_segments(segment) + fitted,
        tokens=_tokens(engine, key, request),
        records=_records(engine, key),
        cost=request_cost.of_request(engine, key),
        notes=tuple(filter(None, (_attempts(engine, request), _open(engine, segment, request))))
        + _notes(engine, key, segment, token)
        + stalls.of_request(engine, key)
        + ((refused,) if refused else ()),
    )


def _tokens(engine: Engine, key: int, request: dict[str, Any]) -> tuple[tuple[str, Any], ...]:
    """Tokens by bucket; a prompt of which it is not told what was cached is no fresh one."""
    names = dict(zip(_TOKENS, _TOKENS, strict=True))
    cached = [request[name] for name in ("cache_read_tokens", "cache_write_tokens")]
    if cached == [None, None] and "exclusive" not in _stated(engine, key, "usage_convention"):
        names["input_fresh_tokens"] = "input_tokens"
    return tuple((shown, request[name]) for name, shown in names.items())


def _stated(engine: Engine, key: int, column: str) -> list[Any]:
    """What each record behind a request says in one column."""
    rows = engine.rows(
        f"""SELECT q.{column} AS v FROM resolve_instance AS i
JOIN resolve_told AS t ON i.row_id = t.row_id
JOIN request AS q ON t.source_id = q.source_id AND t.record = q.record AND t.vantage = q.vantage
WHERE i.request_key = {key} ORDER BY t.source_id, t.record"""
    )
    return [row["v"] for row in rows if row["v"] is not None]


def _open(engine: Engine, segment: dict[str, Any], request: dict[str, Any]) -> str:
    """Why there is no end-to-end time."""
    if segment["e2e_ns"] is not None:
        return ""
    key, start_ns = request["request_key"], request["start_ns"]
    # An event log without its send begins with whatever event comes first: here with the last.
    lone = "stream" in _stated(engine, key, "timing") and not any(_stated(engine, key, "chunks"))
    if lone and request["failed"] and start_ns is not None:
        at = f"{datetime.fromtimestamp(start_ns // _NS, tz=UTC):%Y-%m-%d %H:%M:%SZ}"
        return f"it failed at {at}, its first record; its logs do not tell when it was sent"
    if request["failed"] or request["finish_reason"] is not None:
        return "its logs tell how it ended, but not when"
    reached = "" if segment["ttft_ns"] is None else " after its first token"
    return (
        f"its logs tell no end{reached}: it was running when they stop, or its end was not logged"
    )


def key_of(engine: Engine, request_id: str) -> int:
    """Key of the request people name: its id, its operation, or either with ``/ATTEMPT``.

    Of several attempts the last is meant; an id that runs reused is refused.
    """
    rows = _named(engine, request_id)
    base, slash, attempt = request_id.rpartition("/")
    if not rows and slash and attempt.isdecimal():
        every = _named(engine, base)
        rows = [row for row in every if row["attempt"] == int(attempt)]
        if every and not rows:
            told = ", ".join(str(row["attempt"]) for row in every if row["attempt"] is not None)
            raise AnalyzerError(
                f"no attempt {attempt} of {base!r} in this case",
                f"its attempts: {told}" if told else f"no attempt is told: analyze show {base}",
            )
    if not rows:
        meant = _near(engine, request_id)
        hint = f"did you mean {' or '.join(meant)}?" if meant else ""
        raise AnalyzerError(
            f"no request {request_id!r} in this case",
            hint or "analyze latency --slowest 10 lists some",
        )
    attempts = [row["attempt"] for row in rows]
    if len(rows) > 1 and (None in attempts or len(set(attempts)) < len(attempts)):
        some = ", ".join(f"'#{row['request_key']}'" for row in rows[:_MANY])
        raise AnalyzerError(
            f"{len(rows)} requests share the id {request_id!r} (ids are reused over runs)",
            f"name one of them: {some}{' …' if len(rows) > _MANY else ''}",
        )
    return int(max(rows, key=lambda row: row["attempt"] or 0)["request_key"])


def _named(engine: Engine, name: str) -> list[dict[str, Any]]:
    text = literal(name)
    return engine.rows(
        f"""SELECT DISTINCT r.request_key, r.start_ns, r.attempt
FROM resolve_request AS r
JOIN resolve_instance AS i ON r.request_key = i.request_key
JOIN resolve_told AS t ON i.row_id = t.row_id
JOIN request AS q ON t.source_id = q.source_id AND t.record = q.record AND t.vantage = q.vantage
WHERE r.id = {text} OR q.request_id = {text} OR q.response_id = {text} OR r.operation_id = {text}
  OR concat('#', CAST(r.request_key AS VARCHAR)) = {text}
ORDER BY r.start_ns, r.request_key"""
    )


def _near(engine: Engine, name: str) -> list[str]:
    """Ids that somebody who typed ``name`` may mean: it begins them, or few letters differ."""
    text = literal(name.lower())
    rows = engine.rows(
        f"""SELECT id, count(*) AS n FROM resolve_request
WHERE id IS NOT NULL AND (starts_with(lower(id), {text})
  OR levenshtein(lower(id), {text}) <= {max(1, len(name) // _LETTERS)})
GROUP BY id ORDER BY starts_with(lower(id), {text}) DESC,
  levenshtein(lower(id), {text}), id LIMIT {_NEAR}"""
    )
    return [row["id"] for row in rows]


def _attempts(engine: Engine, request: dict[str, Any]) -> str:
    """The other attempts of the same intent, each with how it ended; empty for none."""
    same = [f"(id = {literal(request['id'])} AND attempt IS NOT NULL)"]
    if request["operation_id"] is not None:
        same.append(f"operation_id = {literal(request['operation_id'])}")
    rows = engine.rows(
        "SELECT request_key, id, attempt, status, error, failed FROM resolve_request "
        f"WHERE {' OR '.join(same)} ORDER BY start_ns, request_key"
    )
    others = [row for row in rows if row["request_key"] != request["request_key"]]
    if not others or request["attempt"] is None:
        return ""
    told = []
    for row in others[:_MANY]:
        name = row["id"] if row["attempt"] is None else f"{row['id']}/{row['attempt']}"
        how = [str(row[key]) for key in ("error", "status") if row[key] is not None]
        ended = "failed" if row["failed"] else "ended"
        told.append(f"{name} ({ended}: {', '.join(how)})" if how else name)
    more = f" and {len(others) - _MANY} more" if len(others) > _MANY else ""
    return (
        f"this is attempt {request['attempt']} of {len(rows)}; "
        f"analyze show shows the others: {', '.join(told)}{more}"
    )


def _bars(engine: Engine, key: int, segment: dict[str, Any]) -> tuple[Bar, ...]:
    """Bars of each vantage: inner ones where the clocks place them, else in the middle.

    Lengths are exact either way: they are durations of one clock.
    """
    rows = engine.rows(
        f"SELECT * FROM resolve_vantage WHERE request_key = {key} ORDER BY vantage_rank"
    )
    bars: list[Bar] = []
    whole = segment["e2e_ns"] or 0
    placed = _placed(engine, key, segment)
    for row in rows:
        length = row["e2e_ns"] or sum(
            row[f"{name}_ns"] or 0 for name in ("queue", "prefill", "decode")
        )
        room = max(0, whole - length)
        at = 0 if row["vantage"] == segment["e2e_vantage"] else room // 2
        if row["vantage"] in placed:
            at = min(max(0, placed[row["vantage"]][0]), room)
        if row["queue_ns"] is None and row["prefill_ns"] is None:
            bars += _outside_bars(row, at)
        else:
            bars += _server_bars(row, at, segment)
    return tuple(bar for bar in bars if bar.dur_ns > 0)


def _placed(engine: Engine, key: int, segment: dict[str, Any]) -> dict[str, tuple[int, int]]:
    """Vantage -> its start after the outermost, and what that may be off by.

    Only where that says more than the middle does.
    """
    rows = engine.rows(
        f"""SELECT a.vantage, min_by(a.aligned_ns, t.priority) AS at_ns,
  min_by(a.loose_ns, t.priority) AS loose_ns, max(v.e2e_ns) AS e2e_ns
FROM resolve_instance AS i JOIN resolve_aligned AS a ON i.row_id = a.row_id
JOIN resolve_told AS t ON i.row_id = t.row_id
JOIN resolve_vantage AS v ON i.request_key = v.request_key AND a.vantage = v.vantage
WHERE i.request_key = {key} GROUP BY a.vantage ORDER BY a.vantage"""
    )
    outer = next((row for row in rows if row["vantage"] == segment["e2e_vantage"]), None)
    if outer is None or outer["loose_ns"] is None:
        return {}
    found = {}
    for row in rows:
        if row is outer or None in (row["loose_ns"], row["e2e_ns"], segment["e2e_ns"]):
            continue
        loose = row["loose_ns"] + outer["loose_ns"]
        if loose <= max(0, segment["e2e_ns"] - row["e2e_ns"]) // 2:
            found[row["vantage"]] = row["at_ns"] - outer["at_ns"], loose
    return found


def _outside_bars(row: dict[str, Any], at: int) -> list[Bar]:
    end, first = row["e2e_ns"], row["ttft_ns"]
    if end is None:
        return []
    if first is None or first > end:
        return [Bar(row["vantage"], "whole request", at, end, "measured", "none")]
    return [
        Bar(row["vantage"], "until the first token", at, first, "measured", "none"),
        Bar(row["vantage"], "stream", at + first, end - first, "derived", "decode"),
    ]


def _server_bars(row: dict[str, Any], at: int, segment: dict[str, Any]) -> list[Bar]:
    bars = []
    for name in ("queue", "prefill", "decode"):
        length = row[f"{name}_ns"]
        if name == "decode" and length is None and row["ttft_ns"] and row["e2e_ns"]:
            length = row["e2e_ns"] - row["ttft_ns"]
        if length:
            grade = segment[f"{name}_grade"]
            bars.append(Bar(row["vantage"], name, at, length, grade, name))
            at += length
    return bars


def _segments(segment: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    rows = []
    for view_name, names, whole in (
        ("e2e", ("queue", "prefill", "decode", "network", "unattributed"), "e2e"),
        ("ttft", ("queue", "prefill", "network_ttft", "unattributed_ttft"), "ttft"),
    ):
        for name in names:
            base = name.removesuffix("_ttft")
            grade = "derived" if base == "unattributed" else segment[f"{base}_grade"]
            value = segment[f"{name}_ns"]
            rows.append(
                {
                    "view": view_name,
                    "segment": base,
                    "dur_ns": value,
                    "grade": "absent" if value is None else grade,
                }
            )
        total = segment[f"{whole}_ns"]
        grade = "absent" if total is None else "measured"
        rows.append({"view": view_name, "segment": whole, "dur_ns": total, "grade": grade})
    return tuple(rows)


def _records(engine: Engine, key: int) -> tuple[dict[str, Any], ...]:
    return tuple(
        engine.rows(
            f"""SELECT s.path, s.record_unit, t.record, t.vantage, s.reader
FROM resolve_instance AS i
JOIN resolve_told AS t ON i.row_id = t.row_id
JOIN source AS s ON t.source_id = s.source_id
WHERE i.request_key = {key} ORDER BY t.vantage_rank, s.source_id, t.record"""
        )
    )


def _notes(
    engine: Engine, key: int, segment: dict[str, Any], token: dict[str, Any]
) -> tuple[str, ...]:
    notes = []
    if segment["contradiction"]:
        notes.append(f"parts refused: {segment['contradiction']}")
    if segment["shrunk_ns"]:
        notes.append(f"parts were {segment['shrunk_ns'] / 1e6:.3f} ms above the whole and shrunk")
    if segment["held_ns"]:
        notes.append(
            f"the first token was held back {segment['held_ns'] / 1e9:.3f} s (overlaps decode)"
        )
    if token["tokens_per_chunk"] and token["tokens_per_chunk"] >= 1.5:
        notes.append(f"{token['tokens_per_chunk']:.1f} tokens a chunk: chunk gaps are no ITL")
    misread = engine.rows(
        f"SELECT vantage, ttft_ns, reading FROM resolve_ttft WHERE request_key = {key} "
        "AND reading IN ('role', 'visible', 'whole', 'early') ORDER BY row_id"
    )
    names = {
        "role": "is the role chunk",
        "visible": "is the first visible token",
        "whole": "is the end of the answer",
        "early": "is before the server's own first token",
    }
    for row in misread:
        told = f"the {row['vantage']}'s TTFT of {row['ttft_ns'] / 1e9:.3f} s"
        notes.append(f"{told} {names[row['reading']]}; not used")
    if segment["server_e2e_ns"] is not None:
        notes.append(_where(_placed(engine, key, segment)))
    return tuple(notes)


def _where(placed: dict[str, tuple[int, int]]) -> str:
    """How the inner bars were placed."""
    if not placed:
        return "clocks are not compared: inner bars are centred, their lengths are exact"
    loose = max(loose for _, loose in placed.values())
    return (
        f"inner bars stand where the clocks, put on one, place them, to within {loose / 1e6:.3g} "
        "ms; their lengths are exact"
    )

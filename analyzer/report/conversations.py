"""The section on conversations: growth, the cache of the worst one, why it was missed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from analyzer.report.blocks import Block, Grid, Heading, Words, grid_of
from analyzer.report.turns import sessions
from analyzer.report.values import NONE, percent, plural, quantity, raw, safe_text

if TYPE_CHECKING:
    from analyzer.contract.conversations import Conversations
    from analyzer.contract.types import Report, Table

_PARTS = (
    ("read_tokens", "read", "#3f9b6c"),
    ("lost_tokens", "lost", "#d0564a"),
    ("new_tokens", "new", "#8c9196"),
)


def conversations(report: Report) -> dict[str, Any] | None:
    """Tables and pictures; None where no conversation has a second call."""
    from analyzer.report.sections import drawn

    told = report.turns
    if told is None:
        return None
    table = next((one for one in sessions(told.sessions) if isinstance(one, Grid)), None)
    return {
        "notes": told.sessions.notes,
        "table": table,
        "reasons": _reasons(told.reasons) if told.reasons.rows else None,
        "growth": drawn(told.growth) if told.growth else None,
        "growth_sql": told.growth.sql if told.growth else "",
        "cache": _cache(told) if told.stack else None,
    }


def blocks(told: Conversations) -> list[Block]:
    """The same for a terminal, without the pictures."""
    out: list[Block] = [Heading("Conversations"), *sessions(told.sessions)]
    if told.reasons.rows:
        out += [Words("Tokens that could have been read from the cache:"), _reasons(told.reasons)]
    return out


def _reasons(table: Table) -> Grid:
    return Grid(
        header=(
            "not read because",
            "known",
            "calls",
            "tokens",
            "of prompts",
            "TTFT added",
            "money",
        ),
        rows=tuple(
            (
                safe_text(str(row["reason"])),
                safe_text(str(row["confidence"])),
                f"{row['calls']:,}",
                f"{row['lost_tokens']:,}",
                percent(row["share"]),
                NONE if row["extra_ns"] is None else quantity(row["extra_ns"], "ns"),
                NONE if row["lost_usd"] is None else quantity(row["lost_usd"], "usd"),
            )
            for row in table.rows
        ),
        right=(False, False, True, True, True, True, True),
        keep=(True,) * 7,
        raw=tuple(
            ("", "", "", "", "", raw(row["extra_ns"], "ns"), raw(row["lost_usd"], "usd"))
            for row in table.rows
        ),
    )


def _cache(told: Conversations) -> dict[str, Any]:
    """Each call of one conversation as a bar: read, lost, new."""
    from analyzer.report.charts import stack_svg
    from analyzer.report.sections import NARROW, WIDE

    rows = [
        {
            "x": row["call"] - 0.5,
            "until": row["call"] - 0.5 + told.bin_calls,
            "part": name,
            "y": round(row[key]),
        }
        for row in told.stack
        for key, name, _ in _PARTS
    ]
    parts = [(name, colour) for _, name, colour in _PARTS]
    each = "mean prompt a call" if told.bin_calls > 1 else "prompt"
    pictures = {
        kind: Markup(stack_svg(rows, parts, title=f"{each}, tokens", width=width))  # noqa: S704
        for kind, width in (("wide", WIDE - 40), ("narrow", NARROW - 12))
    }
    calls = sum(row["calls"] for row in told.stack)
    title = f"Prompt cache of {safe_text(told.session)}, {plural(calls, 'call')}"
    return pictures | {
        "title": title,
        "sampled": f"{told.bin_calls:,} calls a bar" if told.bin_calls > 1 else "",
        "alt": f"{title}: of each prompt, what was read from the cache, what could have been, and "
        "what was new. The table below holds what it shows.",
        "table": grid_of(
            tuple(
                {"call": row["call"]} | {key: round(row[key]) for key, _, _ in _PARTS}
                for row in told.stack
            )
        ),
        "sql": told.stack_sql,
    }

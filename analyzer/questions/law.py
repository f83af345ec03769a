"""The linear law in the user's terms: what an answer of so many tokens takes, and its rate."""

from __future__ import annotations

from analyzer import formulas
from analyzer.contract.types import Chart, Table
from analyzer.engines.duckdb import Engine

_SHORT, _LONG = 80, 400
"""The textbook's answers, without and with reasoning."""
_CURVE = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000)
_DRAWN = 3
_FITTED = (
    "base_ns", "base_low_ns", "base_high_ns", "step_ns", "step_low_ns", "step_high_ns",
    "prompt_ns", "context_ns", "fresh_tokens", "context_tokens", "output_tokens", "off_ns",
    "explained",
)  # fmt: skip
_SQL = "SELECT * FROM latency_law ORDER BY requests DESC, model, route"


def law(engine: Engine) -> Table:
    """One row a model and route: b, k, and what follows from them; or why the law is not told."""
    shaped = []
    for row in engine.rows(_SQL):
        base, step = row["base_ns"], row["step_ns"]
        held = row["refused"] is None
        usual = row["output_tokens"] if held else None
        shaped.append(
            {"model": row["model"] or None, "route": row["route"] or None}
            | {"requests": row["requests"], "points": row["points"], "why": row["refused"]}
            | {name: row[name] for name in _FITTED}
            | {
                "short_ns": round(formulas.linear_ns(base, step, _SHORT)) if held else None,
                "long_ns": round(formulas.linear_ns(base, step, _LONG)) if held else None,
                "usual_tokens_per_s": formulas.tokens_per_s(round(usual), base, step)
                if usual
                else None,
                "most_tokens_per_s": 1e9 / step if held else None,
            }
        )
    notes = (
        ()
        if not any(row["why"] is None for row in shaped)
        else (
            "End to end = base + step x output tokens; base at the median uncached prompt. "
            f"short and long: answers of {_SHORT} and {_LONG} tokens.",
        )
    )
    return Table("analyze.latency.law", tuple(shaped), notes)


def held(engine: Engine) -> Table | None:
    """The groups where the law holds, for the report; None where it holds nowhere."""
    told = law(engine)
    rows = tuple(row for row in told.rows if row["why"] is None)[:_DRAWN]
    return Table(told.kind, rows, told.notes) if rows else None


def charts(engine: Engine) -> tuple[Chart, ...]:
    """Tokens a second over the length of the answer, of the largest groups where the law holds."""
    held = [row for row in engine.rows(_SQL) if row["refused"] is None][:_DRAWN]
    rows = [
        {"x": count, "y": value, "series": " ".join(filter(None, (row["model"], row["route"])))}
        for row in held
        for count, value in formulas.tokens_per_s_curve(row["base_ns"], row["step_ns"], _CURVE)
    ]
    if not rows:
        return ()
    return (
        Chart(
            "Tokens a second over the length of an answer: N / (b + k N)",
            "output",
            "tokens",
            "rate of one request",
            "tokens/s",
            _SQL,
            len(rows),
            tuple(rows),
            tuple(dict.fromkeys(str(row["series"]) for row in rows)),
        ),
    )

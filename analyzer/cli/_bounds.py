"""The calculator's row as people read it: three lines, sizes, what fits, levers, assumptions."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from analyzer.cli import _console
from analyzer.report import markdown, text
from analyzer.report.blocks import Block, Facts, Grid, Heading, Items, Words
from analyzer.report.values import NONE, count, duration, percent, safe_text, significant, size

if TYPE_CHECKING:
    from analyzer.contract.types import Table

_LINES = {
    "strict": "cannot be beaten",
    "expected": "this batch and layout, at full bandwidth and peak",
    "attainable": "what well tuned engines reach",
}
_TEXTBOOK = {
    "strict": "at full bandwidth and peak",
    "attainable": "prefill at 60 % of the peak",
}
_SAME = 0.005
"""Relative change below which a lever is shown to change nothing."""


def render(table: Table, form: str) -> str:
    """The answer for a terminal or as Markdown."""
    shown = blocks(table)
    if form == "md":
        return markdown.render(shown)
    return text.render(shown, width=_console.width(), color=_console.color())


def flat(table: Table) -> Table:
    """The same row with each lever as a text, for a cell that holds one."""
    (row,) = table.rows
    told = [
        f"{one['change']}: TPOT {_time(one['tpot_ms'])}, TTFT {_time(one['ttft_ms'])}"
        for one in row["levers"] or ()
    ]
    return replace(table, rows=({**row, "levers": told},))


def blocks(table: Table) -> list[Block]:
    """Blocks of the one row."""
    (row,) = table.rows
    out: list[Block] = [Words(_asked(row)), _lines(row)]
    out += [Words(note) for note in table.notes]
    out.append(Facts(tuple(_facts(row))))
    if row.get("levers"):
        out.append(_levers(row))
    out += [Heading("assumed"), Items(tuple(row["assumed"]))]
    return out


def _asked(row: dict[str, Any]) -> str:
    parts = "" if row["gpus"] == 1 else f"{row['gpus']} x "
    layout = "" if row["layout"] in {None, "one device"} else f" ({row['layout']})"
    told = [f"weights {row['weights']}", f"KV {row['kv_bits']:g} bits"]
    told += [f"batch {row['batch']:,}"] if row["batch"] else []
    told.append(f"context {row['context']:,}")
    if row["tokens_per_step"] != 1:
        told.append(f"{significant(row['tokens_per_step'])} tokens a step")
    return safe_text(f"{row['model']} on {parts}{row['gpu']}{layout}: {', '.join(told)}.")


def _lines(row: dict[str, Any]) -> Grid:
    meanings = _LINES if row["levers"] is not None else _TEXTBOOK
    return Grid(
        header=("line", "TPOT", "TTFT", "is"),
        rows=tuple(
            (name, _time(row["tpot_ms"][name]), _time(row["ttft_ms"][name]), meaning)
            for name, meaning in meanings.items()
        ),
        right=(False, True, True, False),
        keep=(True, True, True, False),
    )


def _time(value_ms: float | None) -> str:
    return NONE if value_ms is None else duration(value_ms * 1e6)


def _facts(row: dict[str, Any]) -> list[tuple[str, str]]:
    read = f"{_short(row['read_params_decode'])} read for one token"
    total = row["total_params"]
    out = [("parameters", f"{_short(total)}, {read}" if total else read)]
    held = row.get("checkpoint_bytes")
    kept = f", {size(held)} in memory" if held else ""
    out.append(("weights", f"{size(row['weight_bytes'])} read a step{kept}"))
    each = f"{size(row['kv_bytes_per_token'])} a token, {size(row['kv_bytes'])} read a step"
    out.append(("KV cache", each))
    if row.get("state_bytes"):
        out.append(("state", f"{size(row['state_bytes'])} a sequence, read and written each step"))
    if row.get("limited_by"):
        out.append(("limit", _limit(row)))
    if row.get("tokens_per_s"):
        out.append(("throughput", f"{significant(row['tokens_per_s'])} tokens/s expected"))
    if fits := _fits(row):
        out.append(("fits", fits))
    sources = f"{row['model_source']}; {row['gpu_source']}"
    return [*out, ("sources", safe_text(sources))]


def _limit(row: dict[str, Any]) -> str:
    told = f"{row['limited_by']}, {significant(row['flops_per_byte'])} FLOP a byte"
    ridge = row["ridge_batch"]
    return f"{told}; compute from batch {significant(ridge)} on, KV aside" if ridge else told


def _fits(row: dict[str, Any]) -> str:
    parts = []
    if row.get("sequences_that_fit") is not None:
        each = f"of {row['context']:,} tokens"
        parts.append(f"{count(row['sequences_that_fit'])} sequences {each}")
    if row.get("context_that_fits") is not None:
        batch = f" at batch {row['batch']:,}" if row["batch"] else ""
        parts.append(f"at most {count(row['context_that_fits'])} tokens of context{batch}")
    return "; ".join(parts)


def _short(number: float) -> str:
    for unit, word in ((1e12, "T"), (1e9, "B"), (1e6, "M")):
        if number >= unit:
            return f"{significant(number / unit)} {word}"
    return count(number)


def _levers(row: dict[str, Any]) -> Grid:
    line = row["lever_line"]
    asked = [key for key in ("tpot_ms", "ttft_ms") if row[key][line] is not None]
    rated = row["tokens_per_s"] is not None
    fitted = row["sequences_that_fit"] is not None
    header = [f"change ({line})", *(key[:4].upper() for key in asked)]
    header += ["tokens/s"] * rated + ["sequences"] * fitted
    rows = []
    for one in row["levers"]:
        cells = [one["change"], *(_against(one[key], row[key][line]) for key in asked)]
        cells += [significant(one["tokens_per_s"])] if rated else []
        cells += [count(one["sequences_that_fit"])] if fitted else []
        rows.append(tuple(cells))
    right = (False, *[True] * (len(header) - 1))
    return Grid(tuple(header), tuple(rows), right=right, keep=(True,) * len(header))


def _against(value: float | None, now: float | None) -> str:
    """The new time with its change, or that it stays."""
    if value is None or not now:
        return NONE
    change = value / now - 1
    if abs(change) < _SAME:
        return "same"
    return f"{_time(value)} ({'+' if change > 0 else ''}{percent(change)})"

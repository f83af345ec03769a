"""Observed times against the bounds of the hardware, as people read them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from analyzer.report.blocks import Block, Facts, Grid, Heading, Items, Words
from analyzer.report.values import (
    NONE,
    count,
    duration,
    percent,
    plural,
    raw,
    safe_text,
    significant,
    size,
)

if TYPE_CHECKING:
    from analyzer.contract.types import Table

_MEANINGS = {
    "strict": "cannot be beaten",
    "expected": "of the batch and context at each moment",
    "attainable": "what well tuned engines reach",
}
_NS = 1e6


def blocks(table: Table) -> list[Block]:
    """Each group: what it says, three lines against the observed, the fit, what was assumed."""
    out: list[Block] = []
    several = len(table.rows) > 1
    for row in table.rows:
        if several:
            out.append(Heading(name_of(row)))
        out += [Words(sentence(row)), *_numbers(row)]
        if row["assumed"]:
            out += [Heading("assumed", 3), Items(tuple(map(safe_text, row["assumed"])))]
    return out + [Words(note) for note in table.notes]


def _numbers(row: dict[str, Any]) -> list[Block]:
    if row["tpot_ms"] is None:
        return []
    return [lines(row), Facts(tuple(facts(row)))]


def name_of(row: dict[str, Any]) -> str:
    """Model and deployment of a group."""
    parts = [row["model"] or "model not told", row["deployment"]]
    return safe_text(", ".join(part for part in parts if part))


def sentence(row: dict[str, Any]) -> str:
    """What ran on what, and what the numbers say."""
    reading = safe_text(row["reading"] or NONE)
    if row["tpot_ms"] is None or row["gpu"] is None:
        return f"Cannot say how far from the hardware: {reading}."
    parts = "" if row["gpus"] == 1 else f"{row['gpus']} x "
    layout = "" if row["layout"] in {None, "one device"} else f" ({row['layout']})"
    model = "A model by its figures" if row["bound_model"] == "inline" else row["bound_model"]
    gpu = "a GPU by its bandwidth" if row["gpu"] == "custom" else row["gpu"]
    told = safe_text(f"{model}, weights {row['weights']}, on {parts}{gpu}{layout}")
    reached = ""
    if row["reached"]:
        middle, low, high = (percent(row["reached"][name]) for name in ("p50", "p10", "p90"))
        reached = f" The median answer reaches {middle} of its bound (p10 {low}, p90 {high})."
    return f"{told}: {reading}.{reached}"


def lines(row: dict[str, Any]) -> Grid:
    """Three bounds and what was observed, decode and prefill."""
    prompt = row["ttft_ms"] is not None
    observed: list[Any] = ["observed", row["observed_ms"], row["prefill_ms"], "median"]
    rows = [observed]
    for name, meaning in _MEANINGS.items():
        told = row["ttft_ms"][name] if prompt else None
        rows.append([name, row["tpot_ms"][name], told, meaning])
    columns = (0, 1, 2, 3) if prompt else (0, 1, 3)
    header = ("", "a token", "prefill", "is")
    shown = [[one[0], _time(one[1]), _time(one[2]), one[3]] for one in rows]
    exact = [["", _raw(one[1]), _raw(one[2]), ""] for one in rows]
    return Grid(
        header=tuple(header[at] for at in columns),
        rows=tuple(tuple(one[at] for at in columns) for one in shown),
        right=tuple(at in {1, 2} for at in columns),
        keep=tuple(at != 3 for at in columns),
        raw=tuple(tuple(one[at] for at in columns) for one in exact),
    )


def _time(value_ms: float | None) -> str:
    return NONE if value_ms is None else duration(value_ms * _NS)


def _raw(value_ms: float | None) -> str:
    return "" if value_ms is None else raw(value_ms, "ms")


def facts(row: dict[str, Any]) -> list[tuple[str, str]]:
    """Batch, context, parts of the gap, utilisation and fit, as far as they are known."""
    judged = f"{count(row['judged'])} of {plural(row['requests'], 'answer')} judged"
    out = [("answers", judged)]
    if row["batch"] is not None:
        each = f"at {count(row['context'])} tokens each"
        out.append(("batch", f"{significant(row['batch'])} on average, {each}"))
    out.append(("weights", f"{size(row['weight_bytes'])} read for one token"))
    if row["host_ms"]:
        out.append(("main memory", f"{_time(row['host_ms'])} of the bound"))
    if row["interference_ms"]:
        out.append(("prompts beside", f"at most {_time(row['interference_ms'])} a token"))
    if row["too_fast"]:
        out.append(("too fast", f"{plural(row['too_fast'], 'time')} below strict"))
    out.append(("prefill", _prefill(row)))
    if row["fit"]:
        out.append(("fit", _fit(row["fit"])))
    return out


def _prefill(row: dict[str, Any]) -> str:
    if not row["prefills"]:
        return "cannot say: it takes cached tokens, and prefill or queue times"
    prompts = plural(row["prefills"], "prompt")
    if not row["mfu"]:
        return f"{prompts}; no rate of computing is known, so no MFU"
    middle, low, high = (percent(row["mfu"][name]) for name in ("p50", "p10", "p90"))
    return f"MFU {middle} (p10 {low}, p90 {high}) of the dense 16-bit peak, {prompts}"


def _fit(fit: dict[str, Any]) -> str:
    if fit["slope_ns_per_token"] is None:
        return f"none: {fit['why']}"
    ends = f"{significant(fit['slope_low'])} to {significant(fit['slope_high'])}"
    told = f"{significant(fit['slope_ns_per_token'])} ns a cached token ({ends})"
    if fit["cache_ratio"]:
        told += f", {percent(fit['cache_ratio'])} of the bandwidth"
    told += f"; {_time(fit['intercept_ms'])} besides"
    if fit["weights_ms"] is not None:
        told += f", of which weights {_time(fit['weights_ms'])}"
    return f"{told}; {fit['why']}" if fit["why"] else told

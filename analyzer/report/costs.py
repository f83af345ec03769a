"""What was used and what it costs, as people read it on a terminal and in Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from analyzer.report import billed, self_host
from analyzer.report.blocks import Block, Facts, Grid, Heading, Words
from analyzer.report.turns import shortly
from analyzer.report.values import (
    NONE,
    money,
    percent,
    plain_number,
    plural,
    quantity,
    raw,
    safe_text,
    window,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analyzer.contract.costs import Costs
    from analyzer.contract.types import Table

    Row = dict[str, Any]

_DISPENSABLE = ("fresh", "written", "source says", "an answer", "requests", "output")
"""Columns that a narrow terminal goes without, in this order."""
_MUCH = 0.01
"""Share of the tokens without a price, from which on the first sentence says so."""
_LONG = ("source", "session", "agent", "route")
"""Names that may be cut on a narrow terminal."""


def blocks(value: Costs) -> list[Block]:
    """The sum, the groups, what changed, what bills say, what bought nothing, what it rests on."""
    out: list[Block] = [Words(summary(value))]
    if value.rows.rows:
        out.append(groups(value))
    left = value.groups - len(value.rows.rows)
    if left > 0:
        out.append(Words(f"{left_out(left)}; --top 0 lists all."))
    if value.bridge is not None:
        notes = (*value.bridge.notes[:1], changed(value))
        out += [Heading("What changed"), *(Words(note) for note in notes if note)]
        grid = bridge(value.bridge)
        out += [grid] if grid else []
        out += [Words(note) for note in (unmoved(value.bridge), *value.bridge.notes[1:]) if note]
    if value.reconciliation is not None:
        out += [Heading("Against the bill"), Facts(tuple(billed.facts(value.reconciliation)))]
        if value.reconciled is not None:
            grid = billed.differences(value.reconciled)
            out += [grid] if grid else []
            out += [Words(billed.matched(value.reconciled))]
    if value.self_host is not None:
        out += self_host.blocks(value.self_host)
    if value.waste.rows:
        out += [Heading("Paid for nothing, or for more than was needed"), waste(value.waste)]
    return [*out, *(Words(note) for note in (*prices(value), *value.notes))]


def summary(value: Costs) -> str:
    """The total in a sentence."""
    total = value.total
    if not total["requests"]:
        return "Nothing to add up."
    cost = "without a known price" if total["cost_usd"] is None else money(total["cost_usd"])
    if total["cost_usd"] is not None:
        cost = f"cost {cost}"
        each = total["usd_per_answer"]
        which = "answered one that has a price" if total["unpriced_tokens"] else ""
        which = which or f"of {total['answers']:,} answered"
        cost += f", {money(each)} for each {which}" if each else ""
    prompt = [
        f"{shortly(total[key])} {name}"
        for key, name in (
            ("input_fresh_tokens", "fresh"),
            ("cache_read_tokens", "read from a cache"),
            ("cache_write_tokens", "written to one"),
        )
        if total[key]
    ]
    thought = total["reasoning_tokens"]
    output = f"{shortly(total['output_tokens'])} output"
    output += f" ({shortly(thought)} of it reasoning)" if thought else ""
    used = ", ".join([*prompt, output])
    own = total["reported_usd"] if total["cost_usd"] is None else None
    said = f" The sources themselves say {money(own)}." if own is not None else ""
    return f"{plural(total['requests'], 'request')} {cost}.{said} Tokens: {used}.{_unpriced(total)}"


def _unpriced(total: Row) -> str:
    """That the sum is not all, where much of what was used has no price."""
    used = sum(
        total[key]
        for key in (
            "input_fresh_tokens",
            "cache_read_tokens",
            "cache_write_tokens",
            "output_tokens",
        )
    )
    missing = total["unpriced_tokens"]
    if total["cost_usd"] is None or missing < _MUCH * used or not missing:
        return ""
    return (
        f" Not in this cost: {shortly(missing)} of them ({percent(missing / used)}) have no price."
    )


def left_out(groups: int) -> str:
    """How many groups are not listed: the dearest ones are, whatever they are ordered by."""
    return f"{plural(groups, 'group')} that cost less, or have no price, not listed"


def prices(value: Costs) -> list[str]:
    """Where the prices are from, said once over all groups."""
    told = {
        one
        for row in value.rows.rows
        if row["price_source"]
        for one in _each_price(str(row["price_source"]), str(row["price_version"] or ""))
    }
    if not told:
        return []
    names = [
        safe_text(version if version.startswith(source) else f"{source} {version}")
        for source, version in sorted(told)
    ]
    return [f"Prices: {'; '.join(dict.fromkeys(name.strip() for name in names))}."]


def _each_price(source: str, version: str) -> list[tuple[str, str]]:
    """Of a group that has prices of two sources, each by itself."""
    sources, versions = source.split(", "), version.split(", ")
    if len(sources) != len(versions):
        return [(source, version)]
    # A catalog's name begins its version; they stand in orders of their own.
    versions.sort(key=lambda one: [not one.startswith(name) for name in sources])
    return list(zip(sources, versions, strict=True))


# --- groups --------------------------------------------------------------------------------------


def groups(value: Costs) -> Grid:
    """A line a group; only the columns in which some group has something."""
    lines = [_line(row, value.by) for row in value.rows.rows]
    names = [name for name in lines[0] if any(line[name] != NONE for line in lines)]
    grid: Grid | None = None
    spare = [name for name in _DISPENSABLE if name in names]
    for dropped in range(len(spare), -1, -1):
        kept = [name for name in names if name not in spare[:dropped]]
        grid = _grid(value, lines, kept, grid)
    return grid or _grid(value, lines, names, None)


def _line(row: Row, by: Sequence[str]) -> dict[str, str]:
    cached = row["cache_read_tokens"]
    prompt = row["input_fresh_tokens"] + cached + row["cache_write_tokens"]
    return {name: _named(row[name]) for name in by} | {
        "requests": plain_number(row["requests"]),
        "cost": _usd(row["cost_usd"]),
        "of all": _percent(row["share"]),
        "an answer": _usd(row["usd_per_answer"]),
        "prompt": shortly(prompt) if prompt else NONE,
        "cached": _percent(cached / prompt) if cached and prompt else NONE,
        "fresh": shortly(row["input_fresh_tokens"] or None),
        "written": shortly(row["cache_write_tokens"] or None),
        "output": shortly(row["output_tokens"] or None),
        "unpriced": shortly(row["unpriced_tokens"] or None),
        "source says": _usd(row["reported_usd"]),
    }


def _named(value: object) -> str:
    return "(not told)" if value is None else safe_text(str(value))


def _grid(value: Costs, lines: list[dict[str, str]], names: list[str], narrow: Grid | None) -> Grid:
    exact = {
        "cost": ("cost_usd", "usd"),
        "an answer": ("usd_per_answer", "usd"),
        "fresh": ("input_fresh_tokens", "tokens"),
        "written": ("cache_write_tokens", "tokens"),
        "output": ("output_tokens", "tokens"),
        "unpriced": ("unpriced_tokens", "tokens"),
        "source says": ("reported_usd", "usd"),
    }
    return Grid(
        header=tuple(names),
        rows=tuple(tuple(line[name] for name in names) for line in lines),
        right=tuple(name not in value.by for name in names),
        keep=tuple(name not in _LONG for name in names),
        raw=tuple(
            tuple(
                raw(row[exact[name][0]], exact[name][1]) if name in exact else "" for name in names
            )
            for row in value.rows.rows
        ),
        narrow=narrow,
    )


def _usd(value: Any) -> str:  # noqa: ANN401 - DECIMAL or None
    return NONE if value is None else money(value)


def _percent(value: float | None) -> str:
    return NONE if value is None else percent(value)


# --- waste ---------------------------------------------------------------------------------------


def waste(table: Table) -> Grid:
    """What bought nothing, dearest first."""
    return Grid(
        header=("paid for", "why", "requests", "tokens", "money", "of all", "known"),
        rows=tuple(
            (
                safe_text(str(row["kind"])),
                safe_text(str(row["why"])) if row["why"] else NONE,
                f"{row['requests']:,}",
                shortly(row["tokens"]),
                _usd(row["cost_usd"]),
                _percent(row["share"]),
                safe_text(str(row["confidence"])),
            )
            for row in table.rows
        ),
        right=(False, False, True, True, True, True, False),
        keep=(True, False, True, True, True, True, True),
        raw=tuple(
            (
                "", "", "", raw(row["tokens"], "tokens"), raw(row["cost_usd"], "usd"),
                raw(row["share"]), "",
            )
            for row in table.rows
        ),
    )  # fmt: skip


# --- what changed --------------------------------------------------------------------------------


def changed(value: Costs) -> str:
    """Both sums, and of which time they are."""
    if value.baseline_usd is None or value.window_usd is None or value.windows is None:
        return ""
    each = " a day" if value.by_day else ""
    told = [
        f"{money(usd)}{each} from {window(span)}"
        for usd, span in zip((value.baseline_usd, value.window_usd), value.windows, strict=True)
    ]
    return f"{', '.join(told)} (UTC)." if value.baseline_usd or value.window_usd else ""


def bridge(table: Table) -> Grid | None:
    """The factors that moved the sum; None where none did."""
    rows = [row for row in table.rows if row["cost_usd"]]
    if not rows:
        return None
    lines = [
        {
            "because of": safe_text(str(row["factor"])),
            "money": signed(row["cost_usd"]),
            "of the change": _percent(row.get("share")),
            "before": _figure(row, "before"),
            "after": _figure(row, "after"),
            "driven by": safe_text(str(row.get("drivers") or NONE)),
        }
        for row in rows
    ]
    names = [name for name in lines[0] if any(line[name] != NONE for line in lines)]
    exact = {"money": ("cost_usd", "usd"), "before": ("before", ""), "after": ("after", "")}
    return Grid(
        header=tuple(names),
        rows=tuple(tuple(line[name] for name in names) for line in lines),
        right=tuple(name not in ("because of", "driven by") for name in names),
        keep=tuple(name != "driven by" for name in names),
        raw=tuple(
            tuple(
                raw(row.get(exact[name][0]), exact[name][1]) if name in exact else ""
                for name in names
            )
            for row in rows
        ),
    )


def _figure(row: Row, side: str) -> str:
    value = row.get(side)
    return NONE if value is None else quantity(value, str(row.get("unit") or ""))


def unmoved(table: Table) -> str:
    """The factors without a part in it."""
    names = [safe_text(str(row["factor"])) for row in table.rows if not row["cost_usd"]]
    return f"No part in it: {', '.join(names)}." if names and len(names) < len(table.rows) else ""


def signed(value: Any) -> str:  # noqa: ANN401 - DECIMAL or None
    """Money with its sign."""
    return NONE if value is None else f"{'+' if value > 0 else ''}{money(value)}"

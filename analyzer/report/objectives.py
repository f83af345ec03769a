"""Objectives as people read them: who kept them, at what rate, and what broke them."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

from analyzer.report.blocks import Block, Grid, Heading, Words, grid_of, keys_of
from analyzer.report.values import (
    NONE,
    count,
    duration,
    percent,
    plural,
    raw,
    safe_text,
    significant,
)

if TYPE_CHECKING:
    from analyzer.contract.types import Objectives

    Row = dict[str, Any]

_LEAST = 0.005
"""Parts with less of the excess are left out of the table."""


def blocks(value: Objectives) -> list[Block]:
    """The table, what was not judged, and for each objective that was missed its budget."""
    if not value.rows:
        return [Words("no request to judge by"), *(Words(note) for note in value.notes)]
    out: list[Block] = [kept(value)]
    if goodput(value):
        out.append(Words(goodput(value)))
    out += [Words(note) for note in value.notes]
    for text, rows in budgets(value):
        out += [Heading(text, 3), rows]
    return out


def goodput(value: Objectives) -> str:
    """What was answered well in a second, by all objectives together; empty where not told."""
    row = value.rows[-1]
    if keys_of(value.rows)[0] != "slo" or row["goodput_per_s"] is None:
        return ""
    rates = f"{significant(row['goodput_per_s'])} requests/s"
    if row["goodput_tokens_per_s"] is not None:
        rates += f" and {significant(row['goodput_tokens_per_s'])} output tokens/s"
    which = "it" if len(value.rows) == 1 else "all of them"
    return f"Goodput: {rates} met {which}, over {duration(row['length_ns'])}."


def kept(value: Objectives) -> Grid:
    """One line an objective and group."""
    rows = value.rows
    keys = keys_of(rows)
    groups = tuple(keys[: keys.index("slo")])
    left = grid_of(tuple({key: row[key] for key in groups} for row in rows)).rows
    wide = _kept(groups, left, rows, rates=True)
    return Grid(
        wide.header, wide.rows, wide.right, wide.keep, wide.raw,
        narrow=_kept(groups, left, rows, rates=False),
    )  # fmt: skip


def _kept(
    groups: tuple[str, ...], left: tuple[tuple[str, ...], ...], rows: tuple[Row, ...], *,
    rates: bool,
) -> Grid:  # fmt: skip
    names = ("outcome", "objective", "met", "share", "asked", "percentile", "goodput", "tokens")
    at = range(len(names) if rates else 5)
    fixed = tuple(name.removesuffix("_ns") for name in groups)
    return Grid(
        header=(*fixed, *(names[i] for i in at)),
        rows=tuple(
            (*first, *(_cells(row)[i] for i in at)) for first, row in zip(left, rows, strict=True)
        ),
        right=(*(False for _ in groups), *(i > 1 for i in at)),
        keep=(*(True for _ in groups), *(True for _ in at)),
        raw=tuple((*("" for _ in groups), *(_raws(row)[i] for i in at)) for row in rows),
    )


def _cells(row: Row) -> tuple[str, ...]:
    rate, tokens, asked = (
        row[key] for key in ("goodput_per_s", "goodput_tokens_per_s", "target_ratio")
    )
    return (
        row["outcome"].upper(),
        safe_text(row["slo"]),
        f"{count(row['met'])} of {count(row['requests'])}",
        percent(row["met_ratio"]),
        NONE if asked is None else "all" if asked == 1 else percent(asked),
        duration(row["value_ns"]),
        NONE if rate is None else f"{significant(rate)} requests/s",
        NONE if tokens is None else f"{significant(tokens)} tokens/s",
    )


def _raws(row: Row) -> tuple[str, ...]:
    return (
        "",
        "",
        f"{row['met']}, without the metric {row['without']}",
        raw(row["met_ratio"]),
        "",
        raw(row["value_ns"], "ns"),
        raw(row["goodput_per_s"], "requests/s"),
        raw(row["goodput_tokens_per_s"], "tokens/s"),
    )


def budgets(value: Objectives) -> list[tuple[str, Grid]]:
    """For each objective that answers missed: a sentence on what broke it, and its parts."""
    out = []
    for _, group in groupby(value.budget, key=lambda row: row["slo"]):
        rows = list(group)
        out.append((_sentence(rows), _parts(rows)))
    return out


def _sentence(rows: list[Row]) -> str:
    first = rows[0]
    answers = f"{plural(first['requests'], 'answer')} missed {safe_text(first['slo'])}"
    if first["excess_share"] is None:
        return f"{answers}; on average they took no longer than those that met it"
    share, part = percent(min(1.0, first["excess_share"])), first["segment"]
    if first["met_mean_ns"] is None:
        return f"{answers}, and none met it: {share} of their time is {part}"
    sizes = f"{duration(first['missed_mean_ns'])} on average, {duration(first['met_mean_ns'])}"
    return f"{answers}: {share} of the excess is {part} ({sizes} where it was met)"


def _parts(rows: list[Row]) -> Grid:
    told = [row for row in rows if abs(row["excess_share"] or 0) >= _LEAST] or rows
    return Grid(
        header=("part", "missed", "met", "excess", "of it", "known for"),
        rows=tuple(
            (
                row["segment"],
                duration(row["missed_mean_ns"]),
                duration(row["met_mean_ns"]),
                duration(row["excess_ns"]),
                percent(row["excess_share"]),
                percent(row["coverage"]),
            )
            for row in told
        ),
        right=(False, True, True, True, True, True),
        keep=(True,) * 6,
        raw=tuple(
            (
                "",
                *(raw(row[key], "ns") for key in ("missed_mean_ns", "met_mean_ns", "excess_ns")),
                raw(row["excess_share"]),
                raw(row["coverage"]),
            )
            for row in told
        ),
    )

"""The table of ``analyze timeline`` as sparklines on one axis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from analyzer.report.blocks import Block, Spark, Sparks, Words
from analyzer.report.values import duration, quantity, safe_text, window

if TYPE_CHECKING:
    from analyzer.contract.types import Table


def lanes(table: Table) -> list[Block]:
    """Lanes on one axis of bins; the incident in words below, for those who cannot see it."""
    rows = table.rows
    if not rows:
        return [Words("no request has a time")]
    width = int(rows[0]["width_ns"])
    first = min(row["start_ns"] for row in rows)
    bins = (max(row["start_ns"] for row in rows) - first) // width + 1
    marked = {(row["start_ns"] - first) // width for row in rows if row["incident"]}
    inside = sorted(row["start_ns"] for row in rows if row["incident"])
    span = window((first, first + bins * width))
    out: list[Block] = [Words(f"{span}, in steps of {duration(width)}")]
    out.append(
        Sparks(
            lanes=_grouped(rows, first, width, bins),
            bins=bins,
            marked=tuple(index in marked for index in range(bins)),
        )
    )
    if inside:
        out.append(Words(f"incident: {window((inside[0], inside[-1] + width))}"))
    return out + [Words(note) for note in table.notes]


def _grouped(
    rows: tuple[dict[str, Any], ...], first: int, width: int, bins: int
) -> tuple[tuple[str, tuple[Spark, ...]], ...]:
    found: dict[str, dict[str, list[float | None]]] = {}
    units: dict[str, str] = {}
    for row in rows:
        units[row["lane"]] = row["unit"]
        lines = found.setdefault(row["lane"], {})
        values = lines.setdefault(str(row["line"]), [None] * bins)
        values[(row["start_ns"] - first) // width] = row["value"]
    return tuple(
        (
            safe_text(lane),
            tuple(
                Spark(safe_text(name), tuple(values), _highest(values, units[lane]))
                for name, values in lines.items()
            ),
        )
        for lane, lines in found.items()
    )


def _highest(values: list[float | None], unit: str) -> str:
    top = max((value for value in values if value is not None), default=None)
    return quantity(int(top) if top is not None and float(top).is_integer() else top, unit)

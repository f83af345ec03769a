"""One request in full: its waterfall, where the time went, its tokens, and who says so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from analyzer.report.blocks import Block, Code, Facts, Heading, Items, Waterfall, Words, grid_of
from analyzer.report.values import cell, count, duration, label

if TYPE_CHECKING:
    from analyzer.contract.types import RequestView

_CACHED = "; what of them was cached is not told"
_VIEWS = {
    "e2e": "end to end",
    "ttft": "to the first token",
    "model": "to the first token, modelled with 90 % intervals",
}


def view(value: RequestView) -> list[Block]:
    """What is not known is said in a line, never as a table of dashes."""
    out: list[Block] = [Heading(f"request {value.id}", 1), Facts(value.facts)]
    ends = [bar.start_ns + bar.dur_ns for bar in value.bars]
    total = max([*ends, value.e2e_ns or 0])
    if value.bars and total > 0:
        out.append(Waterfall(value.bars, total))
    out += _segments(value)
    out += [Words(note) for note in value.notes]
    told = tuple(
        (name, count(number) + (_CACHED if name == "input_tokens" else ""))
        for name, number in value.tokens
        if number is not None
    )
    if value.tokens:
        out += [Heading("tokens"), Facts(told) if told else Words("none told")]
    if value.cost:
        out += [
            Heading("cost"),
            Facts(tuple((label(k).removesuffix(" (USD)"), cell(k, v)) for k, v in value.cost)),
        ]
    if value.records:
        out += [Heading("told by"), Items(tuple(_record(item) for item in value.records))]
    return out + _lines(value)


def _segments(value: RequestView) -> list[Block]:
    whole = {"e2e": value.e2e_ns, "ttft": value.ttft_ns, "model": value.ttft_ns}
    out: list[Block] = []
    for name in dict.fromkeys(item.get("view", "e2e") for item in value.segments):
        rows = tuple(
            {key: cells for key, cells in item.items() if key != "view"}
            for item in value.segments
            if item.get("view", "e2e") == name
        )
        length = "not known" if whole.get(name) is None else duration(whole[name])
        out.append(Heading(f"{_VIEWS.get(name, str(name))}: {length}"))
        if any(row.get("grade") != "absent" for row in rows):
            out.append(grid_of(rows))
    return out


def _record(cells: dict[str, Any]) -> str:
    """``path:record`` and whatever else is told of a record."""
    told = [str(cells[key]) for key in ("vantage", "reader") if cells.get(key) is not None]
    place = f"{cells.get('path', '?')}:{cells.get('record', '?')}"
    unit = cells.get("record_unit")
    place += f" ({unit})" if unit not in (None, "line") else ""
    return f"{place}  {', '.join(told)}" if told else place


def _lines(value: RequestView) -> list[Block]:
    if not value.lines:
        return []
    out: list[Block] = [Heading("lines"), Words("Text that may be a prompt is masked.")]
    for item in value.lines:
        place = f"{cell('path', item['path'])}:{item['record']}"
        if "line" in item:
            out += [Words(place), Code(item["line"])]
        else:
            out.append(Words(f"{place}: {item['why']}"))
    return out

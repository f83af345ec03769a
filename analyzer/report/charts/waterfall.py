"""Steps from one sum to another: a bar a step, each from where the one above ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt

from analyzer.report.charts._svg import CHARACTER, INK, config, drawable, svg_of

if TYPE_CHECKING:
    from collections.abc import Sequence

_ROW = 24
_COLOURS = {"sum": "#8c9196", "more": "#d0564a", "less": "#3f9b6c"}
_GAP = 8
_EDGE = 12
"""Pixels left of the longest name: a page's letters may be wider than the converter's."""
_PHONE = 500
_CENTS, _THOUSANDS = 10, 10_000
"""Up to so many dollars an axis has cents; from so many on it counts in thousands."""


def waterfall_svg(steps: Sequence[dict[str, Any]], *, width: int) -> str:
    """Draw ``steps`` of ``name``, ``low``, ``high``, ``kind`` (sum, more, less) and ``text``."""
    names = [drawable(str(step["name"]), 16 if width < _PHONE else 32) for step in steps]
    placed = [
        dict(step) | {"nth": nth, "name": name, "end": max(step["low"], step["high"])}
        | {"text": _money(str(step["text"]))}
        for nth, (step, name) in enumerate(zip(steps, names, strict=True))
    ]  # fmt: skip
    plot = width - round(max(map(len, names)) * CHARACTER) - _GAP - 2 * _EDGE
    # The money beside the longest bar stands within the plot.
    room = max(len(step["text"]) for step in placed) * CHARACTER + 2 * _GAP
    least = min(0.0, *(min(step["low"], step["high"]) for step in placed))
    most = max(step["end"] for step in placed)
    most = least + (most - least) / max(0.2, 1 - room / plot)
    form = "$,.2f" if most < _CENTS else "$,.0f" if most < _THOUSANDS else "$~s"
    axis = alt.Axis(title=None, format=form, tickCount=max(2, plot // 110), labelOverlap=True)
    rows = alt.Y("nth:O", axis=None, scale=alt.Scale(paddingInner=0.25, paddingOuter=0.1))
    base = alt.Chart(alt.InlineData(values=placed))
    bars = base.mark_bar().encode(
        x=alt.X("low:Q", axis=axis, scale=alt.Scale(domain=[least, most], nice=False)),
        x2="high:Q",
        y=rows,
        color=alt.Color(
            "kind:N",
            scale=alt.Scale(domain=list(_COLOURS), range=list(_COLOURS.values())),
            legend=None,
        ),
    )
    word: dict[str, Any] = {"color": INK, "fontSize": 12, "baseline": "middle"}
    texts = base.mark_text(align="left", dx=5, **word).encode(x="end:Q", y=rows, text="text:N")
    labels = base.mark_text(align="right", **word).encode(
        x=alt.XValue(-_GAP), y=rows, text="name:N"
    )
    chart: Any = alt.layer(bars, texts, labels).properties(width=plot, height=_ROW * len(placed))
    edges = {"left": _EDGE, "right": 2, "top": 2, "bottom": 2}
    return svg_of(chart.configure(**config() | {"padding": edges}))


def _money(text: str) -> str:
    """Only what money is written with reaches the converter."""
    return "".join(char for char in text if char in "$+-.,0123456789")[:14]

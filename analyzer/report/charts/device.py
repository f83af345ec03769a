"""Steps of a device as lanes of streams, and bars of where its time went."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt

from analyzer.report.charts._svg import CHARACTER, INK, config, drawable, svg_of

if TYPE_CHECKING:
    from collections.abc import Sequence

_LANE, _BAR = 24, 22
_LEFT, _RIGHT = 110, 18
_WIDE = CHARACTER + 1
"""Pixels of a character of short names: in one such as gemm wide letters do not even out."""


def device_lanes_svg(
    rows: Sequence[dict[str, Any]], parts: Sequence[tuple[str, str]], *, width: int
) -> str:
    """Draw ``rows`` of ``lane``, ``part``, ``x``, ``until`` (ms) and ``full`` (0 to 1)."""
    names = list(dict.fromkeys(row["lane"] for row in rows))
    left = _left(names, width)
    plot = width - left - _RIGHT
    bars = (
        alt.Chart(alt.InlineData(values=[row | {"lane": drawable(row["lane"])} for row in rows]))
        .mark_bar(height=_LANE - 8)
        .encode(
            x=alt.X(
                "x:Q",
                axis=alt.Axis(title="ms", tickCount=plot // 90, grid=False),
                scale=alt.Scale(zero=True, nice=False),
            ),
            x2="until:Q",
            y=_rows([drawable(name) for name in names], "lane", left),
            color=_colours(parts),
            opacity=alt.Opacity("full:Q", scale=None, legend=None),
        )
    )
    return _svg(bars, parts, (plot, _LANE * len(names)))


def device_bars_svg(
    rows: Sequence[dict[str, Any]],
    parts: Sequence[tuple[str, str]],
    *,
    unit: str,
    width: int,
) -> str:
    """Draw ``rows`` of ``label``, ``part`` and ``y`` as bars, the parts of a label in a row."""
    names = list(dict.fromkeys(row["label"] for row in rows))
    left = _left(names, width)
    plot = width - left - _RIGHT
    order = [name for name, _ in parts]
    told = [
        row | {"label": drawable(row["label"]), "order": order.index(row["part"])} for row in rows
    ]
    bars = (
        alt.Chart(alt.InlineData(values=told))
        .mark_bar(height=_BAR - 8)
        .encode(
            x=alt.X("y:Q", stack="zero", axis=alt.Axis(title=unit, tickCount=plot // 90)),
            y=_rows([drawable(name) for name in names], "label", left),
            color=_colours(parts),
            order=alt.Order("order:Q"),
        )
    )
    return _svg(bars, parts, (plot, _BAR * len(names)))


def _left(names: Sequence[str], width: int) -> int:
    longest = max((len(drawable(name)) for name in names), default=4)
    return int(min(max(longest * _WIDE + 18, 60), max(_LEFT, width * 0.38)))


def _rows(names: Sequence[str], field: str, left: int) -> alt.Y:
    return alt.Y(
        f"{field}:N",
        sort=list(names),
        axis=alt.Axis(
            title=None, minExtent=left, maxExtent=left, labelLimit=left - 8, labelPadding=6,
            ticks=False, domain=False,
        ),
    )  # fmt: skip


def _colours(parts: Sequence[tuple[str, str]]) -> alt.Color:
    scale = alt.Scale(domain=[name for name, _ in parts], range=[fill for _, fill in parts])
    return alt.Color("part:N", scale=scale, legend=None)


def _svg(bars: alt.Chart, parts: Sequence[tuple[str, str]], size: tuple[int, int]) -> str:
    plot, height = size
    chart: Any = alt.layer(bars, *_legend(parts, plot)).properties(width=plot, height=height)
    return svg_of(chart.configure(**config()))


def _legend(parts: Sequence[tuple[str, str]], plot: int) -> list[Any]:
    """Swatches and names, in as many lines as they need, above the plot."""
    placed: list[tuple[float, int, str, str]] = []
    at, line = 0.0, 0
    for name, fill in parts:
        wide = 30 + len(name) * _WIDE
        if placed and at + wide > plot:
            at, line = 0.0, line + 1
        placed.append((at, line, name, fill))
        at += wide
    out = []
    for x, n, name, fill in placed:
        y = -12 - 18 * (line - n)
        swatch = alt.Chart(alt.InlineData(values=[{}])).mark_square(size=90, color=fill, opacity=1)
        out.append(swatch.encode(x=alt.XValue(x + 5), y=alt.YValue(y)))
        out.append(_words(x + 16, y + 4, drawable(name)))
    return out


def _words(x: float, y: float, text: str) -> Any:  # noqa: ANN401 - an altair chart
    mark = alt.Chart(alt.InlineData(values=[{}])).mark_text(
        align="left", baseline="alphabetic", color=INK, fontSize=12, text=text
    )
    return mark.encode(x=alt.XValue(x), y=alt.YValue(y))

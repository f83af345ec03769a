"""Bars over the calls of a conversation, each a prompt by what became of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt

from analyzer.report.charts._svg import CHARACTER, INK, config, drawable, svg_of

if TYPE_CHECKING:
    from collections.abc import Sequence

_HEIGHT = 190
_LEFT = 54


def stack_svg(
    rows: Sequence[dict[str, Any]], parts: Sequence[tuple[str, str]], *, title: str, width: int
) -> str:
    """Draw ``rows`` of ``x``, ``until``, ``part`` and ``y``; ``parts`` are names and colours."""
    plot = width - _LEFT - 18
    names = [name for name, _ in parts]
    placed = [row | {"order": names.index(row["part"])} for row in rows]
    bars = (
        alt.Chart(alt.InlineData(values=placed))
        .mark_bar(binSpacing=1 if len(rows) < plot // 2 else 0)
        .encode(
            x=alt.X(
                "x:Q",
                bin="binned",
                axis=alt.Axis(title="call", format="~s", tickCount=plot // 90),
                scale=alt.Scale(zero=False, nice=False),
            ),
            x2="until:Q",
            y=alt.Y(
                "y:Q",
                stack="zero",
                axis=alt.Axis(
                    title=None, minExtent=_LEFT, maxExtent=_LEFT, tickCount=4, format="~s"
                ),
            ),
            color=alt.Color(
                "part:N",
                scale=alt.Scale(domain=names, range=[colour for _, colour in parts]),
                legend=None,
            ),
            order=alt.Order("order:Q"),
        )
    )
    chart: Any = alt.layer(bars, *_legend(parts, title, plot)).properties(
        width=plot, height=_HEIGHT
    )
    return svg_of(chart.configure(**config()))


def _legend(parts: Sequence[tuple[str, str]], title: str, plot: int) -> list[Any]:
    out = [_words(0, -27, drawable(title, int(plot // CHARACTER)))]
    at = 0.0
    for name, colour in parts:
        swatch = alt.Chart(alt.InlineData(values=[{}])).mark_square(size=90, color=colour)
        out.append(swatch.encode(x=alt.XValue(at + 5), y=alt.YValue(-12)))
        out.append(_words(at + 16, -9, drawable(name)))
        at += 36 + len(name) * CHARACTER
    return out


def _words(x: float, y: float, text: str) -> Any:  # noqa: ANN401 - an altair chart
    mark = alt.Chart(alt.InlineData(values=[{}])).mark_text(
        align="left", baseline="alphabetic", color=INK, fontSize=12, text=text
    )
    return mark.encode(x=alt.XValue(x), y=alt.YValue(y))

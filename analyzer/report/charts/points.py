"""The picture of one finding: requests as points, one shape and colour a series."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt

from analyzer.report.charts._svg import CHARACTER, INK, clock_format, config, drawable, svg_of

if TYPE_CHECKING:
    from analyzer.report.scatter import Axis, Scatter

_HEIGHT = 190
_LEFT = 54
_SHAPES = ("circle", "triangle-up", "square", "diamond", "cross", "triangle-down")


def points_svg(picture: Scatter, *, width: int) -> str:
    """Draw the points; what was found comes last and lies on top."""
    plot = width - _LEFT - 18
    order = list(range(len(picture.series)))
    colours = alt.Scale(domain=order, range=[colour for _, colour in picture.series])
    shapes = alt.Scale(domain=order, range=[_SHAPES[i % len(_SHAPES)] for i in order])
    points = (
        alt.Chart(alt.InlineData(values=list(picture.rows)))
        .mark_point(filled=True, size=26, opacity=0.75)
        .encode(
            x=_x(picture.x, plot),
            y=alt.Y(
                "y:Q",
                axis=alt.Axis(
                    title=None, minExtent=_LEFT, maxExtent=_LEFT, tickCount=4, format="~s"
                    if picture.y.highest >= 1000 else "~f",
                ),
                scale=alt.Scale(zero=True, nice=4),
            ),
            color=alt.Color("series:N", scale=colours, legend=None),
            shape=alt.Shape("series:N", scale=shapes, legend=None),
        )
    )  # fmt: skip
    chart: Any = alt.layer(points, *_legend(picture, plot)).properties(width=plot, height=_HEIGHT)
    return svg_of(chart.configure(**config()))


def _x(axis: Axis, plot: int) -> alt.X:
    if axis.timed:
        form = clock_format(round(axis.highest - axis.lowest))
        drawn = alt.Axis(
            title="UTC", grid=False, format=form, labelOverlap=True, labelSeparation=10,
            labelFlush=True, tickCount=plot // 120,
        )  # fmt: skip
        return alt.X("x:T", axis=drawn, scale=alt.Scale(type="utc", nice=False, padding=6))
    form = "~s" if axis.highest >= 1000 else "~f"
    drawn = alt.Axis(title=drawable(axis.title, 60), format=form, tickCount=plot // 90)
    return alt.X("x:Q", axis=drawn, scale=alt.Scale(zero=True))


def _legend(picture: Scatter, plot: int) -> list[Any]:
    """Title of the y axis and the names of the series, above the plot as in the timeline."""
    title = drawable(picture.y.title, int(plot // CHARACTER))
    out = [_words(0, -24, title)]
    at = 0.0
    for index, (name, colour) in enumerate(picture.series):
        text = drawable(name)
        mark = alt.Chart(alt.InlineData(values=[{}])).mark_point(
            filled=True, size=40, color=colour, shape=_SHAPES[index % len(_SHAPES)], opacity=1
        )
        out += [mark.encode(x=alt.value(at + 6), y=alt.value(-9)), _words(at + 16, -9, text)]
        at += 36 + len(text) * CHARACTER
    return out


def _words(x: float, y: float, text: str) -> Any:  # noqa: ANN401 - an altair chart
    mark = alt.Chart(alt.InlineData(values=[{}])).mark_text(
        align="left", baseline="middle", color=INK, fontSize=12
    )
    return mark.encode(x=alt.value(x), y=alt.value(y), text=alt.value(text or "-"))

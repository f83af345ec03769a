"""The picture of one finding: requests as points, one shape and colour a series."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt

from analyzer.report.charts._svg import CHARACTER, INK, clock_format, config, drawable, svg_of

if TYPE_CHECKING:
    from analyzer.report.scatter import Axis, Scatter

_HEIGHT = 190
_LEFT = 54
_ROW = 15
"""Pixels of a line of the legend."""
_SHAPES = ("circle", "triangle-up", "square", "diamond", "cross", "triangle-down")


def points_svg(picture: Scatter, *, width: int) -> str:
    """Draw the points; what was found comes last and lies on top."""
    plot = width - _LEFT - 18
    order = list(range(len(picture.series)))
    colours = alt.Scale(domain=order, range=[colour for _, colour in picture.series])
    shapes = alt.Scale(domain=order, range=[_SHAPES[i % len(_SHAPES)] for i in order])
    dots = [row for row in picture.rows if row["series"] not in picture.joined]
    points = (
        alt.Chart(alt.InlineData(values=dots))
        .mark_point(filled=True, size=26, opacity=0.75)
        .encode(
            x=_x(picture.x, plot),
            y=alt.Y(
                "y:Q",
                axis=alt.Axis(
                    title=None, minExtent=_LEFT, maxExtent=_LEFT, tickCount=4,
                    format=_figures(picture.y),
                ),
                scale=alt.Scale(zero=True, nice=4),
            ),
            color=alt.Color("series:N", scale=colours, legend=None),
            shape=alt.Shape("series:N", scale=shapes, legend=None),
        )
    )  # fmt: skip
    lines = [_line(picture, index, points) for index in sorted(picture.joined)]
    chart: Any = alt.layer(points, *lines, *_legend(picture, plot)).properties(
        width=plot, height=_HEIGHT
    )
    return svg_of(chart.configure(**config()))


def _line(picture: Scatter, index: int, points: Any) -> Any:  # noqa: ANN401 - altair charts
    """One series joined, on the axes of the points; its dots show where it is known."""
    told = [row for row in picture.rows if row["series"] == index]
    mark = alt.Chart(alt.InlineData(values=told)).mark_line(
        color=picture.series[index][1], strokeWidth=2,
        point=alt.OverlayMarkDef(filled=True, size=30, shape=_SHAPES[index % len(_SHAPES)],
                                 color=picture.series[index][1]),
    )  # fmt: skip
    return mark.encode(x=points.encoding.x, y=points.encoding.y, order=alt.Order("x:Q"))


def _x(axis: Axis, plot: int) -> alt.X:
    if axis.timed:
        form = clock_format(round(axis.highest - axis.lowest))
        drawn = alt.Axis(
            title="UTC", grid=False, format=form, labelOverlap=True, labelSeparation=10,
            labelFlush=True, tickCount=plot // 120,
        )  # fmt: skip
        return alt.X("x:T", axis=drawn, scale=alt.Scale(type="utc", nice=False, padding=6))
    drawn = alt.Axis(title=drawable(axis.title, 60), format=_figures(axis), tickCount=plot // 90)
    return alt.X("x:Q", axis=drawn, scale=alt.Scale(zero=True))


def _figures(axis: Axis) -> str:
    """Thousands as k from where digits would crowd the axis."""
    return "~s" if axis.highest >= 10_000 else ",~f"


def _legend(picture: Scatter, plot: int) -> list[Any]:
    """Title of the y axis and the names of the series, above the plot as in the timeline."""
    title = drawable(picture.y.title, int(plot // CHARACTER))
    rows: list[list[tuple[int, float, str]]] = [[]]
    at = 0.0
    for index, (name, _) in enumerate(picture.series):
        text = drawable(name, max(24, int((plot - 16) // CHARACTER)))
        if at and at + 16 + len(text) * CHARACTER > plot:
            rows.append([])
            at = 0.0
        rows[-1].append((index, at, text))
        at += 36 + len(text) * CHARACTER
    out = [_words(0, -9 - _ROW * len(rows), title)]
    for above, row in enumerate(reversed(rows)):
        y = -9 - _ROW * above
        for index, x, text in row:
            mark = alt.Chart(alt.InlineData(values=[{}])).mark_point(
                filled=True, size=40, color=picture.series[index][1], opacity=1,
                shape=_SHAPES[index % len(_SHAPES)],
            )  # fmt: skip
            out += [mark.encode(x=alt.XValue(x + 6), y=alt.YValue(y)), _words(x + 16, y, text)]
    return out


def _words(x: float, y: float, text: str) -> Any:  # noqa: ANN401 - an altair chart
    mark = alt.Chart(alt.InlineData(values=[{}])).mark_text(
        align="left", baseline="middle", color=INK, fontSize=12
    )
    return mark.encode(x=alt.XValue(x), y=alt.YValue(y), text=alt.TextValue(text or "-"))

"""The timeline: lanes below each other on one time axis, with windows and marks over them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import altair as alt

from analyzer.report.charts._svg import (
    CHARACTER,
    INK,
    PADDING,
    clock_format,
    config,
    drawable,
    svg_of,
    to_png,
)

if TYPE_CHECKING:
    from analyzer.report.timeline import Band, Drawn, Moment, Timeline

_SEVERITIES = {"critical": "#d0564a", "warning": "#c98a1b", "note": "#6b8bb0"}
_LEFT = 54
"""Room of every lane for its labels, so that times stand below each other."""

_ROW = 15
_DASHES = ([1, 0], [5, 2], [2, 2], [8, 2, 2, 2], [1, 2], [10, 3])
_ALL = 0.98
"""A window that covers this much of the axis gets no shade: it would tell nothing apart."""


def timeline_svg(picture: Timeline, *, width: int = 900) -> str:
    """Draw lanes below each other on one time axis, with windows and marks over all of them."""
    _, plot = plot_of(width)
    x_scale = alt.Scale(type="utc", domain=list(picture.domain), nice=False)
    # Titles are drawn as text above each lane; legends that need a second row make room for it.
    space = 11 + _ROW * max(len(_legend_rows(lane, plot)) for lane in picture.lanes)
    parts = [_strip(picture, x_scale, plot)] if _strip_rows(picture) else []
    last = len(picture.lanes) - 1
    for index, lane in enumerate(picture.lanes):
        axis = _time_axis(picture.domain, width) if index == last else _no_times()
        parts.append(_lane(lane, picture, alt.X("from:T", scale=x_scale, axis=axis), plot, space))
    chart: Any = alt.vconcat(*parts, spacing=space, bounds="flush")
    # Each lane has colours of its own.
    chart = chart.resolve_scale(color="independent", strokeDash="independent")
    return svg_of(chart.configure(**config()))


def plot_of(width: int) -> tuple[int, int]:
    """Where the time axis begins in a picture of ``width``, and how long it is, in its pixels."""
    return _LEFT + PADDING, width - _LEFT - 18


# --- the strip above the lanes -------------------------------------------------------------------


def _strip_rows(picture: Timeline) -> list[str]:
    rows = ["incident"] if picture.incident else []
    return [*rows, *(item.name for item in picture.bands), *(item.name for item in picture.marks)]


def _strip(picture: Timeline, x_scale: alt.Scale, plot: int) -> Any:  # noqa: ANN401
    """One row a window and a mark, each with its name."""
    names = _strip_rows(picture)
    axis = alt.Axis(
        title=None, minExtent=_LEFT, maxExtent=_LEFT, ticks=False, domain=False, grid=False
    )
    y = alt.Y("name:N", axis=axis, sort=names, scale=alt.Scale(domain=names))
    x = alt.X("from:T", scale=x_scale, axis=None)
    rows = [
        {"name": item.name, "colour": _severity(item.severity)} | _clipped(picture, item)
        for item in picture.bands
    ]
    if picture.incident:
        inside = _within(picture.domain, picture.incident)
        rows.insert(0, {"name": "incident", "colour": INK, **inside})
    layers = []
    if rows:
        bars = alt.Chart(alt.InlineData(values=rows)).mark_bar(size=5, cornerRadius=2)
        fill = alt.Color("colour:N", scale=None)
        layers.append(bars.encode(x=x, x2="to:T", y=y, color=fill))
    layers += [_flag(item, picture, x, y, plot) for item in picture.marks]
    return alt.layer(*layers).properties(width=plot, height=_ROW * len(names))


def _severity(name: str) -> str:
    return _SEVERITIES.get(name, _SEVERITIES["note"])


def _clipped(picture: Timeline, item: Band) -> dict[str, int]:
    return _within(picture.domain, (item.start, item.end))


def _within(domain: tuple[int, int], window: tuple[int, int]) -> dict[str, int]:
    """The part that is seen; a moment is drawn wide enough to be found."""
    least = (domain[1] - domain[0]) // 200
    start = max(domain[0], min(window[0], domain[1] - least))
    return {"from": start, "to": min(domain[1], max(window[1], start + least))}


def _flag(item: Moment, picture: Timeline, x: alt.X, y: alt.Y, plot: int) -> Any:  # noqa: ANN401
    """A mark's point and its text, on the side where there is room."""
    start, end = picture.domain
    late = (item.at - start) * 2 > end - start
    most = int((plot / 2 - 8) // CHARACTER)
    row = {"name": item.name, "from": item.at, "text": drawable(item.text, min(most, 60))}
    base = alt.Chart(alt.InlineData(values=[row])).encode(x=x, y=y)
    point = base.mark_point(shape="diamond", filled=True, size=45, color=INK, opacity=1)
    text = base.mark_text(
        align="right" if late else "left", dx=-8 if late else 8, color=INK, fontSize=12
    ).encode(text="text:N")
    return alt.layer(point, text)


# --- lanes ---------------------------------------------------------------------------------------


def _lane(lane: Drawn, picture: Timeline, x: alt.X, plot: int, space: int) -> Any:  # noqa: ANN401
    height = (150 if plot < 400 else 190) if lane.stacked else 62
    rows = _legend_rows(lane, plot)
    layers = _shades(picture, x, -space, height)
    layers.append(_bars(lane, x) if lane.stacked else _steps(lane, x))
    if picture.marks:
        at = [{"from": item.at} for item in picture.marks]
        rule = alt.Chart(alt.InlineData(values=at)).mark_rule(
            color=INK, strokeDash=[3, 2], opacity=0.8
        )
        layers.append(rule.encode(x=x, y=alt.YValue(-space), y2=alt.Y2Value(height)))
    layers += _legend(lane, rows)
    return alt.layer(*layers).properties(width=plot, height=height)


def _shades(picture: Timeline, x: alt.X, top: int, height: int) -> list[Any]:
    """Shade the incident, else each finding's window, over the lane and the room above it."""
    if picture.incident:
        shades = [(_within(picture.domain, picture.incident), INK, 0.07)]
    else:
        shades = [
            (_clipped(picture, item), _severity(item.severity), 0.06) for item in picture.bands
        ]
    whole = picture.domain[1] - picture.domain[0]
    return [
        alt.Chart(alt.InlineData(values=[window]))
        .mark_rect(color=fill, opacity=thick)
        .encode(x=x, x2="to:T", y=alt.YValue(top), y2=alt.Y2Value(height))
        for window, fill, thick in shades
        if window["to"] - window["from"] < _ALL * whole
    ]


def _value_axis(lane: Drawn) -> alt.Axis:
    whole = not lane.stacked and all(row["value"] == int(row["value"]) for row in lane.rows)
    return alt.Axis(
        title=None,
        minExtent=_LEFT,
        maxExtent=_LEFT,
        tickCount=4 if lane.stacked else 2,
        tickMinStep=1 if whole and not lane.ratio else 0,
        format=".0%" if lane.ratio else "~s" if _highest(lane) >= 1000 else "~f",
    )


def _highest(lane: Drawn) -> float:
    return max((abs(row["high" if lane.stacked else "value"]) for row in lane.rows), default=0)


def _bars(lane: Drawn, x: alt.X) -> Any:  # noqa: ANN401
    fill = alt.Scale(
        domain=list(range(len(lane.groups))), range=[colour for _, colour in lane.groups]
    )
    return (
        alt.Chart(alt.InlineData(values=list(lane.rows)))
        .mark_rect()
        .encode(
            x=x,
            x2="to:T",
            y=alt.Y("low:Q", axis=_value_axis(lane), scale=alt.Scale(zero=True)),
            y2="high:Q",
            color=alt.Color("group:N", scale=fill, legend=None),
        )
    )


def _steps(lane: Drawn, x: alt.X) -> Any:  # noqa: ANN401
    """Lines in steps as wide as a bin: what is drawn is what was counted, nothing between."""
    ends: dict[str, dict[str, Any]] = {row["piece"]: row for row in lane.rows}
    rows = [*lane.rows, *({**row, "from": row["to"]} for row in ends.values())]
    several = list(range(len(lane.groups)))
    stroke = alt.Scale(domain=several, range=[colour for _, colour in lane.groups])
    dash = alt.Scale(domain=several, range=[_DASHES[index % len(_DASHES)] for index in several])
    highest = _highest(lane)
    scale = alt.Scale(zero=True, nice=2)
    if highest == 0 or (lane.ratio and 0.5 < highest <= 1):
        scale = alt.Scale(domain=[0, 1])  # nothing, or a share whose whole is near
    y = alt.Y("value:Q", axis=_value_axis(lane), scale=scale)
    return (
        alt.Chart(alt.InlineData(values=rows))
        .mark_line(interpolate="step-after", strokeWidth=1.75, strokeCap="butt")
        .encode(
            x=x,
            y=y,
            detail="piece:N",
            color=alt.Color("group:N", scale=stroke, legend=None),
            strokeDash=alt.StrokeDash("group:N", scale=dash, legend=None),
        )
    )


# --- words in the picture ------------------------------------------------------------------------


def _legend_rows(lane: Drawn, plot: int) -> list[list[tuple[float, int, str]]]:
    """Place the title and each line's name: rows of (pixels from the left, index, text)."""
    title = drawable(lane.title, int(plot // CHARACTER))
    rows: list[list[tuple[float, int, str]]] = [[(0.0, -1, title)]]
    names = [drawable(name) or "-" for name, _ in lane.groups]
    # The page says what the colours of the stack mean, and the title what a lone line is.
    if lane.stacked or (len(names) == 1 and names[0].lower() in {"-", *_words(title)}):
        return rows
    at = len(title) * CHARACTER + 16
    if at + sum(map(_wide, names)) > plot:
        rows.append([])
        at = 0.0
    for index, text in enumerate(names):
        size = _wide(text)
        if at + size > plot and at > 0:
            rows.append([])
            at = 0.0
        rows[-1].append((at, index, text))
        at += size
    return rows


def _wide(text: str) -> float:
    return 36 + len(text) * CHARACTER


def _words(title: str) -> list[str]:
    return re.findall(r"\w+", title.lower())


def _legend(lane: Drawn, rows: list[list[tuple[float, int, str]]]) -> list[Any]:
    out = []
    for line, row in enumerate(rows):
        y = -9 - _ROW * (len(rows) - 1 - line)
        for at, index, text in row:
            if index >= 0:
                sample = alt.Chart(alt.InlineData(values=[{}])).mark_rule(
                    color=lane.groups[index][1], strokeDash=_DASHES[index], strokeWidth=2
                )
                out.append(
                    sample.encode(x=alt.XValue(at), x2=alt.X2Value(at + 18), y=alt.YValue(y - 1))
                )
            words = alt.Chart(alt.InlineData(values=[{}])).mark_text(
                align="left", baseline="middle", color=INK, fontSize=12
            )
            left = at + 22 if index >= 0 else at
            out.append(
                words.encode(x=alt.XValue(left), y=alt.YValue(y), text=alt.TextValue(text or "-"))
            )
    return out


def _time_axis(domain: tuple[int, int], width: int) -> alt.Axis:
    # Vega's own choice is the 12-hour clock.
    form = clock_format(domain[1] - domain[0])
    return alt.Axis(
        title="UTC",
        grid=False,
        format=form,
        labelOverlap=True,
        labelSeparation=10,
        labelFlush=True,
        tickCount=width // (80 if form == "%H:%M" else 120),
    )


def _no_times() -> alt.Axis:
    return alt.Axis(title=None, grid=False, labels=False, ticks=False)


def timeline_png(picture: Timeline, *, width: int = 900) -> bytes:
    """Draw the same for a chat or a slide."""
    return to_png(timeline_svg(picture, width=width))

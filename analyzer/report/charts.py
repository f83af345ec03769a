"""Static pictures: the only module that knows altair and vl-convert.

SVG and no script: it prints, works under a policy that runs nothing, and is the same bytes each
time. Text and lines take the page's colour (``currentColor``); fills are mid-tones that hold on
white and on black.
"""

from __future__ import annotations

import json
import math
import re
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import altair as alt
import vl_convert

from analyzer.report.values import safe_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analyzer.contract.types import Series

COLOURS = {
    "queue": "#d9822b",
    "prefill": "#8a6fd1",
    "decode": "#3b8fc4",
    "network": "#3f9b6c",
    "client": "#c25b86",
    "unattributed": "#8c9196",
}
_OTHER = "#8c9196"
_INK = "#123456"
"""Stands for ``currentColor``, which the converter would draw as black; swapped in the result."""

_BAND = "#d0564a"
_NS = {"s": 1e9, "ms": 1e6, "us": 1e3, "ns": 1.0}
_IN_WORDS = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
_NS_PER_MS = 1_000_000
_MINUTE_MS = 60_000
_CLOCKS = (
    (10 * _MINUTE_MS, "%H:%M:%S"),
    (36 * 60 * _MINUTE_MS, "%H:%M"),
    (96 * 60 * _MINUTE_MS, "%d %b %H:%M"),
)
"""How an axis of at most this many ms writes its times; beyond, days do."""


def colour(segment: str) -> str:
    """Fill of a segment, the same in every picture."""
    return COLOURS.get(segment, _OTHER)


def segments_svg(
    series: Series,
    *,
    width: int = 880,
    windows: Sequence[tuple[str, int, int]] = (),
) -> str:
    """Draw stacked segments over time; ``windows`` are labelled bands above. Empty without rows."""
    rows, unit = _scaled(series)
    if not rows:
        return ""
    domain = [rows[0]["from"], max(row["to"] for row in rows)]
    x_scale = alt.Scale(type="utc", domain=domain, nice=False)
    main = _bars(rows, _heading(series, unit), x_scale, width // 80).properties(
        width=width - 70, height=220 if width > 500 else 170
    )
    bands = _bands(windows, domain, x_scale)
    chart: Any = main
    if bands is not None:
        height = 15 * len({name for name, _, _ in windows})
        chart = alt.vconcat(bands.properties(width=width - 70, height=height), main, spacing=4)
    return _svg(chart.configure(**_config()))


def _scaled(series: Series) -> tuple[list[dict[str, Any]], str]:
    """Stack the rows, time in ms and values in the unit that reads best.

    Stacked here, since Vega-Lite leaves bars with a start and an end unstacked.
    """
    told = [row for row in series.rows if _told(row.get(series.y))]
    told.sort(key=lambda row: (row[series.x], _order(_group(series, row))))
    starts = sorted({int(row[series.x]) for row in series.rows})
    steps = [after - before for before, after in pairwise(starts)]
    step = min(steps, default=60_000_000_000)
    factor, unit = _factor(series, told)
    rows: list[dict[str, Any]] = []
    for row in told:
        start, base = int(row[series.x]), 0.0
        if rows and rows[-1]["from"] == start // _NS_PER_MS:
            base = rows[-1]["high"]
        rows.append(
            {
                "from": start // _NS_PER_MS,
                "to": (start + step) // _NS_PER_MS,
                "low": base,
                "high": float(f"{base + float(row[series.y]) / factor:.9g}"),
                "segment": _group(series, row),
            }
        )
    return rows, unit


def _told(value: float | None) -> bool:
    return value is not None and math.isfinite(value)


def _group(series: Series, row: dict[str, Any]) -> str:
    return safe_text(str(row.get(series.group, ""))) if series.group else ""


def _order(segment: str) -> int:
    names = list(COLOURS)
    return names.index(segment) if segment in names else len(names)


def _factor(series: Series, told: list[dict[str, Any]]) -> tuple[float, str]:
    if series.unit != "ns":
        return 1.0, series.unit
    sums: dict[int, float] = {}
    for row in told:
        sums[row[series.x]] = sums.get(row[series.x], 0.0) + float(row[series.y])
    highest = max(sums.values(), default=0.0)
    unit = next((name for name, size in _NS.items() if highest >= size), "ns")
    return _NS[unit], unit


def _drawn(text: str) -> str:
    """Keep what is drawn to plain characters: on a control character the converter aborts."""
    return re.sub(r"[^A-Za-z0-9_/%. -]", "", text)[:24]


def _heading(series: Series, unit: str) -> str:
    return _drawn(_IN_WORDS.get(unit, unit) or series.y.replace("_", " "))


def _bars(rows: list[dict[str, Any]], heading: str, x_scale: alt.Scale, ticks: int) -> Any:  # noqa: ANN401
    names = sorted({row["segment"] for row in rows}, key=_order)
    fill = alt.Scale(domain=names, range=[colour(name) for name in names])
    span = max(row["to"] for row in rows) - rows[0]["from"]
    # Vega's own choice is the 12-hour clock.
    form = next((text for most, text in _CLOCKS if span <= most), "%d %b")
    axis = alt.Axis(
        title="UTC", grid=False, format=form, labelOverlap=True, labelFlush=True, tickCount=ticks
    )
    value = alt.Axis(title=heading, minExtent=44, maxExtent=44, tickCount=4, format="~g")
    return (
        alt.Chart(alt.InlineData(values=rows))
        .mark_rect()
        .encode(
            x=alt.X("from:T", scale=x_scale, axis=axis),
            x2="to:T",
            y=alt.Y("low:Q", axis=value, scale=alt.Scale(zero=True)),
            y2="high:Q",
            color=alt.Color("segment:N", scale=fill, legend=None),
        )
    )


def _bands(
    windows: Sequence[tuple[str, int, int]],
    domain: list[int],
    x_scale: alt.Scale,
) -> Any:  # noqa: ANN401
    """One thin bar a labelled window, on the time axis of the picture below. None without any."""
    rows = [
        {
            "name": _drawn(name),
            "from": max(domain[0], start // _NS_PER_MS),
            "to": min(domain[1], end // _NS_PER_MS),
        }
        for name, start, end in windows
        if start // _NS_PER_MS < domain[1] and end // _NS_PER_MS > domain[0]
    ]
    if not rows:
        return None
    names = alt.Axis(title=None, minExtent=44, maxExtent=44, ticks=False, domain=False, grid=False)
    return (
        alt.Chart(alt.InlineData(values=rows))
        .mark_bar(color=_BAND, size=4, cornerRadius=2)
        .encode(
            x=alt.X("from:T", scale=x_scale, axis=None),
            x2="to:T",
            y=alt.Y("name:N", axis=names, sort=None),
        )
    )


def _config() -> dict[str, Any]:
    font = {"labelFont": "sans-serif", "titleFont": "sans-serif"}
    ink = {
        "labelColor": _INK,
        "titleColor": _INK,
        "domainColor": _INK,
        "tickColor": _INK,
        "gridColor": _INK,
    }
    faint = {"gridOpacity": 0.15, "domainOpacity": 0.5, "tickOpacity": 0.5}
    text = {"labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal"}
    # No aria: a label on each bar trebles the size; the page names the picture and has a table.
    return {
        "aria": False,
        "background": "transparent",
        "axis": font | ink | faint | text,
        "view": {"stroke": None},
        "padding": 2,
    }


def _svg(chart: Any) -> str:  # noqa: ANN401 - an altair chart of any make
    """Draw without a network or a clock, and let the page decide the ink and the width."""
    spec = json.dumps(chart.to_dict(validate=False), sort_keys=True)
    svg = str(vl_convert.vegalite_to_svg(spec, allowed_base_urls=[]))
    svg = svg.replace(_INK, "currentColor").replace("rgb(18, 52, 86)", "currentColor")
    svg = svg.replace('font-family="sans-serif"', 'font-family="inherit"')
    head = re.search(r'<svg[^>]*?width="(\d+)[^"]*"[^>]*?height="(\d+)[^"]*"[^>]*>', svg)
    if head is None:
        return svg
    fluid = re.sub(r'\s(?:width|height|xmlns:xlink)="[^"]*"', "", head[0])
    return svg.replace(head[0], fluid, 1)

"""What all pictures share: ink, letters, clocks, and SVG without a script.

SVG and no script: it prints, works under a policy that runs nothing, and is the same bytes each
time. Text and lines take the page's colour (``currentColor``); fills are mid-tones that hold on
white and on black.
"""

from __future__ import annotations

import json
import re
from typing import Any

import vl_convert

INK = "#123456"
"""Stands for ``currentColor``, which the converter would draw as black; swapped in the result."""

CHARACTER = 6.6
"""Pixels of a character at 12 px: enough for the usual fonts, and the same on every machine."""

PADDING = 2
"""Pixels around a picture."""

_MINUTE_MS = 60_000
_CLOCKS = (
    (10 * _MINUTE_MS, "%H:%M:%S"),
    (36 * 60 * _MINUTE_MS, "%H:%M"),
    (96 * 60 * _MINUTE_MS, "%d %b %H:%M"),
)
"""How an axis of at most this many ms writes its times; beyond, days do."""


def clock_format(span_ms: int) -> str:
    """How an axis over ``span_ms`` writes its times."""
    return next((text for most, text in _CLOCKS if span_ms <= most), "%d %b")


def drawable(text: str, most: int = 24) -> str:
    """Keep what is drawn to plain characters: on a control character the converter aborts."""
    return re.sub(r"[^A-Za-z0-9_/%.,:() -]", "", text)[:most]


def config() -> dict[str, Any]:
    """Vega-Lite configuration of every picture."""
    font = {"labelFont": "sans-serif", "titleFont": "sans-serif"}
    ink = {
        "labelColor": INK,
        "titleColor": INK,
        "domainColor": INK,
        "tickColor": INK,
        "gridColor": INK,
    }
    faint = {"gridOpacity": 0.15, "domainOpacity": 0.5, "tickOpacity": 0.5}
    text = {"labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal"}
    # No aria: a label on each bar trebles the size; the page names the picture and has a table.
    return {
        "aria": False,
        "background": "transparent",
        "axis": font | ink | faint | text,
        "text": {"font": "sans-serif"},
        "view": {"stroke": None},
        "padding": PADDING,
    }


def svg_of(chart: Any) -> str:  # noqa: ANN401 - an altair chart of any make
    """Draw without a network or a clock, and let the page decide the ink and the width."""
    spec = json.dumps(chart.to_dict(validate=False), sort_keys=True)
    svg = str(vl_convert.vegalite_to_svg(spec, allowed_base_urls=[]))
    svg = svg.replace(INK, "currentColor").replace("rgb(18, 52, 86)", "currentColor")
    svg = svg.replace('font-family="sans-serif"', 'font-family="inherit"')
    # The page tells a screen reader what the picture is; its parts have no names of their own.
    svg = re.sub(r'\s(?:role|aria-[a-z]+)="[^"]*"', "", svg)
    head = re.search(r'<svg[^>]*?width="(\d+)[^"]*"[^>]*?height="(\d+)[^"]*"[^>]*>', svg)
    if head is None:
        return svg
    fluid = re.sub(r'\s(?:width|height|xmlns:xlink)="[^"]*"', "", head[0])
    return svg.replace(head[0], fluid, 1)


def to_png(svg: str) -> bytes:
    """Dark ink on white, two pixels a point, for where a page cannot go."""
    svg = svg.replace("currentColor", "#1b1f24")
    svg = svg.replace('font-family="inherit"', 'font-family="sans-serif"')
    ground = '<rect width="100%" height="100%" fill="#ffffff"/>'
    svg = re.sub(r"<svg[^>]*>", lambda head: head[0] + ground, svg, count=1)
    return bytes(vl_convert.svg_to_png(svg, scale=2))

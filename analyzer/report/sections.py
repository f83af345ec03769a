"""What the pictures and tables of the HTML page show, as plain values for its templates."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from analyzer.report import hardware, objectives, words
from analyzer.report.blocks import Grid, grid_of
from analyzer.report.charts import plot_of, points_svg, timeline_svg
from analyzer.report.scatter import scatter, summary
from analyzer.report.timeline import COLOURS, colour, group_of, letter, lines_of, timeline
from analyzer.report.values import (
    TIME_KEYS,
    duration,
    label,
    moment,
    quantity,
    raw,
    raw_cell,
    rfc3339,
    safe_text,
    window,
)

if TYPE_CHECKING:
    from analyzer.contract.types import (
        Bar,
        Chart,
        Finding,
        Incident,
        Lane,
        Report,
        RequestView,
        Series,
    )

WIDE, NARROW = 900, 356
"""Pixels of the two pictures; the page shows the one that keeps its letters readable."""

_PARTS = tuple(f"{name}_ns" for name in COLOURS)


_UNSPLIT = "repeating-linear-gradient(135deg,#8c9196 0 4px,#6b7177 4px 6px)"
"""Fill of a bar that is no single segment: hatched, for the stack's grey means unattributed."""


def raw_window(pair: tuple[int, int] | None) -> str:
    """Both ends of a window to the last digit."""
    return f"{rfc3339(pair[0])} to {rfc3339(pair[1])}" if pair else ""


# --- the timeline --------------------------------------------------------------------------------


def over_time(report: Report, found: list[Finding]) -> dict[str, Any] | None:
    """Picture of all lanes, what is marked on it, and the tables that say the same."""
    picture = timeline(report, found)
    if picture is None:
        return None
    series = report.timeline
    groups = _groups(series)
    group = series.group or ""
    drawn = {str(row.get(group)) for row in series.rows if row.get(series.y)}
    names = ", ".join(lane.title for lane in picture.lanes)
    tables = [(series.title, _pivot(series, groups))] if series.rows else []
    return {
        "alt": f"Timeline from {window(_ns(picture.domain))} UTC. Lanes: {names}. "
        "The lists and tables below hold what it shows.",
        # The converter escapes what it draws; the page must not do so again.
        "pictures": [
            (kind, Markup(timeline_svg(picture, width=width)), *plot_of(width))  # noqa: S704
            for kind, width in (("wide", WIDE), ("narrow", NARROW))
        ],
        "domain": picture.domain,
        "bin": duration(report.lanes[0].bin_ns) if report.lanes else "one bin",
        "legend": [(name, colour(name)) for name in groups if name in drawn],
        "marked": _marked(report, found),
        "tables": [*tables, *((lane.name, _lane(lane)) for lane in report.lanes if lane.rows)],
    }


def _ns(domain: tuple[int, int]) -> tuple[int, int]:
    return domain[0] * 1_000_000, domain[1] * 1_000_000


def _marked(report: Report, found: list[Finding]) -> list[dict[str, str]]:
    """What the shades and lines of the picture mean, in the order of its strip."""
    out = []
    if report.incident:
        out.append(_entry("incident", "#incident", "when it happened", report.incident.window))
    out += [
        _entry(str(number), f"#finding-{number}", item.title, item.window)
        for number, item in enumerate(found, 1)
        if item.window
    ]
    out += [
        {
            "name": letter(index),
            "href": "",
            "text": item.text,
            "when": moment(item.time_ns),
            "raw": rfc3339(item.time_ns),
        }
        for index, item in enumerate(report.marks)
    ]
    return out


def _entry(name: str, href: str, text: str, pair: tuple[int, int]) -> dict[str, str]:
    return {
        "name": name,
        "href": href,
        "text": text,
        "when": window(pair),
        "raw": raw_window(pair),
    }


def _groups(series: Series) -> list[str]:
    if series.group is None:
        return []
    told = {group_of(series, row) for row in series.rows}
    known = [name for name in COLOURS if name in told]
    return known + sorted(told - set(known))


def _pivot(series: Series, groups: list[str]) -> Grid:
    """Picture's numbers: a row a time, a column a segment."""
    if series.group is None:
        return grid_of(series.rows)
    told: dict[Any, dict[str, Any]] = {}
    for row in series.rows:
        told.setdefault(row[series.x], {})[group_of(series, row)] = row.get(series.y)
    return _by_time(told, groups, series.unit, timed=series.x in TIME_KEYS)


def _lane(lane: Lane) -> Grid:
    told: dict[Any, dict[str, Any]] = {}
    for row in lane.rows:
        name = safe_text(str(row.get("group") or ""))
        told.setdefault(row["start_ns"], {})[name] = row.get("value")
    return _by_time(told, lines_of(lane), lane.unit, timed=True)


def _by_time(told: dict[Any, dict[str, Any]], groups: list[str], unit: str, *, timed: bool) -> Grid:
    rows = sorted(told.items())
    at = moment if timed else str
    return Grid(
        header=("from", *(name or "value" for name in groups)),
        rows=tuple(
            (at(x), *(quantity(values.get(name), unit) for name in groups)) for x, values in rows
        ),
        right=(False, *(True for _ in groups)),
        keep=(True, *(True for _ in groups)),
        raw=tuple(
            (rfc3339(x) if timed else "", *(raw(values.get(name), unit) for name in groups))
            for x, values in rows
        ),
    )


# --- the picture of a finding --------------------------------------------------------------------


def picture(value: Finding) -> dict[str, Any] | None:
    """The requests of a finding as points, and the table that says the same."""
    return drawn(value.chart) if value.chart else None


def drawn(chart: Chart) -> dict[str, Any] | None:
    """A chart as two pictures and the numbers behind them; None where nothing can be drawn."""
    drawn = scatter(chart)
    if drawn is None:
        return None
    shown = sum(1 for row in drawn.rows if row["series"] not in drawn.joined)
    names = ", ".join(name for name, _ in drawn.series)
    return {
        "title": chart.title,
        "sampled": f"a sample of {shown:,} of {chart.points:,}" if 0 < shown < chart.points else "",
        "alt": f"{chart.title}: {chart.y} over {chart.x}, as points of {names}. "
        "The table below holds what it shows.",
        "wide": Markup(points_svg(drawn, width=WIDE - 40)),  # noqa: S704 - as the timeline
        "narrow": Markup(points_svg(drawn, width=NARROW - 12)),  # noqa: S704
        "table": summary(chart),
    }


# --- objectives ----------------------------------------------------------------------------------


def kept(report: Report) -> dict[str, Any] | None:
    """Who kept each objective, what broke it, and the share that kept it over time."""
    told = report.objectives
    if told is None:
        return None
    bare = (
        replace(report, timeline=replace(report.timeline, rows=()), lanes=(told.lane,))
        if told.lane
        else None
    )
    drawn = timeline(bare, ()) if bare else None
    return {
        "table": objectives.kept(told) if told.rows else None,
        "notes": [*filter(None, [objectives.goodput(told)] if told.rows else []), *told.notes],
        "budgets": objectives.budgets(told),
        "over_time": _lane(told.lane) if told.lane else None,
        "alt": "Share of the requests that keep each objective over time; the table below holds "
        "what it shows.",
        "pictures": [
            (kind, Markup(timeline_svg(drawn, width=width)))  # noqa: S704 - as the timeline
            for kind, width in (("wide", WIDE), ("narrow", NARROW))
        ]
        if drawn
        else [],
    }


# --- against the hardware ------------------------------------------------------------------------


def against_hardware(report: Report) -> dict[str, Any] | None:
    """Observed time per output token against its three lines, by group, and drawn."""
    if report.hardware is None:
        return None
    several = len(report.hardware.rows) > 1
    return {
        "groups": [
            {
                "name": hardware.name_of(row) if several else "",
                "text": hardware.sentence(row),
                "table": hardware.lines(row) if row["tpot_ms"] else None,
                "facts": hardware.facts(row) if row["tpot_ms"] else [],
                "assumed": row["assumed"],
            }
            for row in report.hardware.rows
        ],
        "charts": [
            (shown, chart.sql)
            for chart in report.hardware_charts
            if (shown := drawn(chart)) is not None
        ],
    }


# --- the incident --------------------------------------------------------------------------------


def incident(value: Incident | None) -> dict[str, Any] | None:
    """When it was, how that is known, and what differed; noise comes last."""
    if value is None:
        return None
    beyond, rest = words.changes(value.changes.rows)
    return {
        "window": window(value.window),
        "raw": raw_window(value.window),
        "length": duration(value.window[1] - value.window[0]),
        "why": value.why[:1].upper() + value.why[1:],
        "beyond": _compared(beyond) if beyond else None,
        "rest": _compared(rest) if rest else None,
        "compared": len(value.changes.rows),
        "within": len(rest),
        "notes": value.changes.notes,
    }


def _compared(rows: list[dict[str, Any]]) -> Grid:
    return Grid(
        header=("what", "rest of the case", "in the window", "change, with its 95 % interval"),
        rows=tuple(
            (
                words.measured(row),
                *(quantity(row.get(side), str(row["unit"])) for side in ("baseline", "window")),
                words.change(row),
            )
            for row in rows
        ),
        right=(False, True, True, False),
        keep=(True, True, True, True),
        raw=tuple(
            (
                "",
                *(raw(row.get(side), str(row["unit"])) for side in ("baseline", "window")),
                _raw_change(row),
            )
            for row in rows
        ),
    )


def _raw_change(row: dict[str, Any]) -> str:
    """Difference and both ends of its interval to the last digit, and how many values gave it."""
    unit = str(row["unit"])
    told = [(key, raw(row.get(key), unit)) for key in ("change", "low", "high")]
    sizes = [(f"{key} values", raw(row.get(f"{key}_requests"))) for key in ("baseline", "window")]
    return ", ".join(f"{name} {text}" for name, text in (*told, *sizes) if text)


# --- the slowest requests ------------------------------------------------------------------------


def slowest(report: Report) -> dict[str, Any]:
    """Bars of the slowest requests: per vantage where that is known, else per segment."""
    rows, views = report.slowest, report.waterfalls
    longest = max([_whole(row) for row in rows], default=0)
    used = {_name(key) for key in _PARTS if any(row.get(key) for row in rows)}
    used |= {bar.segment for view in views for bar in view.bars if bar.segment in COLOURS}
    others = any(bar.segment not in COLOURS for view in views for bar in view.bars)
    legend = [(name, colour(name)) for name in COLOURS if name in used]
    seen = {view.id for view in views}
    return {
        "views": [_view(view, max(map(_length, views))) for view in views],
        "rows": [_bar(row, longest) for row in rows if str(row.get("id", "-")) not in seen],
        "legend": [*legend, ("not split by who saw it", _UNSPLIT)] if others else legend,
        "table": grid_of(rows) if rows else None,
    }


def _name(key: str) -> str:
    return key.removesuffix("_ns")


def _whole(row: dict[str, Any]) -> int:
    return int(row.get("e2e_ns") or sum(int(row.get(key) or 0) for key in _PARTS))


def _bar(row: dict[str, Any], longest: int) -> dict[str, Any]:
    told = [(_name(key), int(row[key])) for key in _PARTS if (row.get(key) or 0) > 0]
    return {
        "id": str(row.get("id", "-")),
        "start": moment(row.get("start_ns")),
        "start_raw": raw_cell("start_ns", row.get("start_ns")),
        "e2e": duration(row.get("e2e_ns")),
        "e2e_raw": raw(row.get("e2e_ns"), "ns"),
        "text": ", ".join(f"{name} {duration(size)}" for name, size in told) or "no segments told",
        "parts": [
            {
                "colour": colour(name),
                "share": _percent(size, longest),
                "title": f"{name} {duration(size)}, {size} ns",
            }
            for name, size in told
        ],
    }


def _percent(size: int, whole: int) -> str:
    return f"{min(100.0, 100 * size / max(whole, 1)):.2f}"


def _length(view: RequestView) -> int:
    return max([view.e2e_ns or 0, *(bar.start_ns + bar.dur_ns for bar in view.bars)])


def _view(view: RequestView, longest: int) -> dict[str, Any]:
    vantages = list(dict.fromkeys(bar.vantage for bar in view.bars))
    return {
        "id": view.id,
        "facts": [(label(name), text) for name, text in view.facts],
        "e2e": duration(view.e2e_ns),
        "e2e_raw": raw(view.e2e_ns, "ns"),
        "ttft": duration(view.ttft_ns),
        "ttft_raw": raw(view.ttft_ns, "ns"),
        "vantages": [
            _vantage(name, [bar for bar in view.bars if bar.vantage == name], longest)
            for name in vantages
        ],
        "segments": grid_of(view.segments) if view.segments else None,
        "records": grid_of(view.records) if view.records else None,
        "notes": view.notes,
    }


def _vantage(name: str, bars: list[Bar], longest: int) -> dict[str, Any]:
    """Bars of one vantage; those that lie over another (a whole and its part) get a row more."""
    rows: list[list[dict[str, str]]] = []
    ends: list[int] = []
    for bar in bars:
        row = next((n for n, end in enumerate(ends) if bar.start_ns >= end), len(rows))
        if row == len(rows):
            rows.append([])
            ends.append(0)
        ends[row] = bar.start_ns + bar.dur_ns
        rows[row].append(
            {
                "left": _percent(bar.start_ns, longest),
                "width": _percent(bar.dur_ns, longest),
                "colour": colour(bar.segment) if bar.segment in COLOURS else _UNSPLIT,
                "title": f"{bar.label} {duration(bar.dur_ns)} ({bar.grade}), {bar.dur_ns} ns",
            }
        )
    text = ", ".join(f"{bar.label} {duration(bar.dur_ns)} ({bar.grade})" for bar in bars)
    return {"name": name, "text": f"{name}: {text}", "rows": rows}

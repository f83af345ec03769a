"""The page's section on device time: typical steps as lanes, where their time went, classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from analyzer.report import gpu
from analyzer.report.blocks import grid_of
from analyzer.report.gpu_beside import beside, floor_of
from analyzer.report.values import duration, plural, safe_text

if TYPE_CHECKING:
    from analyzer.contract.devices import Devices, DrawnStep
    from analyzer.contract.types import Report

_GROUPS = {
    "gemm": "#3f7fbf",
    "attention": "#3f9b6c",
    "communication": "#c98a1b",
    "memory": "#d0564a",
    "moe": "#8a63b8",
    "elementwise": "#5aa9a2",
    "sampling": "#b8638f",
    "launch": "#9aa05b",
    "host": "#c9a27a",
}
_OTHER = "#8c9196"
_PARTS = (
    ("compute_ns", "compute", "#3f7fbf"),
    ("comm_wait_ns", "waiting for ranks", "#e0b45c"),
    ("comm_transfer_ns", "transfer", "#c98a1b"),
    ("copy_ns", "copies", "#d0564a"),
    ("launch_gap_ns", "idle: launches", "#9aa05b"),
    ("host_gap_ns", "idle: host", "#c9a27a"),
    ("rest_ns", "idle: other", "#8c9196"),
    ("bound_ns", "bound of the hardware", "#3f9b6c"),
)
_CLASSES = 12


def section(report: Report) -> dict[str, Any] | None:
    """What the template shows; None where there is no trace."""
    told = report.gpu
    if told is None:
        return None
    return {
        "notes": [safe_text(note) for note in told.trust.notes],
        "trusted": all(row["can_idle"] for row in told.trust.rows),
        "bound": beside(told),
        "idle": gpu.idle(told.idle),
        "phases": gpu.phases(told.phases) if told.phases.rows else None,
        "unjudged": gpu.unjudged(told.phases),
        "no_steps": gpu.NO_STEPS,
        "breakdown": _breakdown(told),
        "classes": gpu.classes(told.classes, _CLASSES) if told.classes.rows else None,
        "classes_chart": _classes(told) if told.classes.rows else None,
        "ranks": gpu.ranks(told.ranks) if len(told.ranks.rows) > 1 else None,
        "waiting": gpu.waiting(told.ranks) if len(told.ranks.rows) > 1 else [],
        "trust": gpu.trust(told.trust),
        "steps": [_step(one) for one in told.drawn if one.rows],
    }


def _pictures(draw: Any, *args: Any, **told: Any) -> dict[str, Markup]:  # noqa: ANN401
    from analyzer.report.sections import NARROW, WIDE

    return {
        kind: Markup(draw(*args, **told, width=width))  # noqa: S704 - our own drawing
        for kind, width in (("wide", WIDE - 40), ("narrow", NARROW - 12))
    }


def _step(one: DrawnStep) -> dict[str, Any]:
    """A step as lanes; paler where work and idle time are finer than the picture."""
    from analyzer.report.charts import device_lanes_svg

    rows = [
        {
            "lane": row["lane"], "part": _part(row["part"]), "full": row["full"],
            "x": row["start_ns"] / 1e6, "until": row["end_ns"] / 1e6,
        }
        for row in one.rows
    ]  # fmt: skip
    parts = _parts_of([row["part"] for row in rows])
    title = safe_text(one.title)
    return _pictures(device_lanes_svg, rows, parts) | {
        "title": f"{title}, {duration(one.step_ns)}",
        "sampled": "paler is partly idle",
        "alt": f"{title}: what each stream and the host did over {duration(one.step_ns)}, "
        f"{plural(one.events, 'event')}. Paler is partly idle.",
        "table": grid_of(_sums(one)),
        "sql": one.sql,
    }


def _sums(one: DrawnStep) -> tuple[dict[str, Any], ...]:
    """What is drawn, added up by lane and kind of work."""
    out: dict[tuple[str, str], float] = {}
    for row in one.rows:
        key = (row["lane"], _part(row["part"]))
        out[key] = out.get(key, 0) + row["full"] * (row["end_ns"] - row["start_ns"])
    return tuple(
        {"lane": lane, "work": part, "about_ns": round(value)}
        for (lane, part), value in sorted(out.items(), key=lambda item: (item[0][0], -item[1]))
    )


def _part(group: str | None) -> str:
    return group if group in _GROUPS else "other"


def _parts_of(named: list[str]) -> list[tuple[str, str]]:
    present = set(named)
    return [pair for pair in (*_GROUPS.items(), ("other", _OTHER)) if pair[0] in present]


def _breakdown(told: Devices) -> dict[str, Any] | None:
    """Where the time of a step went, by phase, beside the bound where it is known."""
    from analyzer.report.charts import device_bars_svg

    lines: list[dict[str, Any]] = []
    for row in told.phases.rows:
        if not row["judged"] or row["step_ns"] is None:
            continue
        gaps = sum(row[key] or 0 for key in ("launch_gap_ns", "host_gap_ns"))
        whole = row | {"rest_ns": max((row["idle_ns"] or 0) - gaps, 0), "bound_ns": 0}
        label = f"{row['phase'] or 'step'}"
        lines += [
            {"label": label, "part": name, "value_ns": whole[key] or 0}
            for key, name, _ in _PARTS
            if whole[key]
        ]
    if not lines:
        return None
    floor = floor_of(told)
    if floor and any(row["phase"] in (None, "decode") for row in told.phases.rows):
        lines.append({"label": "bound", "part": _PARTS[-1][1], "value_ns": round(floor)})
    drawn = [line | {"y": line["value_ns"] / 1e6} for line in lines]
    parts = [(n, fill) for _, n, fill in _PARTS if any(line["part"] == n for line in lines)]
    title = "Where the time of a step goes (medians)"
    return _pictures(device_bars_svg, drawn, parts, unit="ms") | {
        "title": title, "sampled": "", "alt": f"{title}. The table below holds what it shows.",
        "table": grid_of(tuple(lines)), "sql": "",
    }  # fmt: skip


def _classes(told: Devices) -> dict[str, Any]:
    from analyzer.report.charts import device_bars_svg

    rows = told.classes.rows[:_CLASSES]
    drawn: list[dict[str, Any]] = [
        {
            "label": str(row["class"]).replace("_", " "),
            "part": _part(row["class_group"]),
            "y": 100 * (row["share_ratio"] or 0),
        }
        for row in rows
    ]  # fmt: skip
    parts = _parts_of([row["part"] for row in drawn])
    title = "Classes of work, share of busy time"
    return _pictures(device_bars_svg, drawn, parts, unit="% of busy time") | {
        "title": title, "sampled": "", "alt": f"{title}. The table below holds what it shows.",
    }  # fmt: skip

"""Device time beside the hardware's bound, and beside the requests that were on their way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from analyzer.report.values import duration, percent, plural, safe_text

if TYPE_CHECKING:
    from analyzer.contract.devices import Devices

    Row = dict[str, Any]

_SOME = 0.005
"""Share of time below which it goes without saying."""


def beside(value: Devices) -> list[str]:
    """All that can be said, in sentences."""
    return [*_against_bound(value), *_meanwhile(value)]


def phase_of(row: Row) -> str:
    """A phase by its name, and how it is known where no annotation tells it."""
    told = str(row["told_by"] or "")
    doubt = "" if told == "annotation" else f" ({told})"
    return safe_text(f"{row['phase'] or 'step'}{doubt}")


def _against_bound(value: Devices) -> list[str]:
    """A decode step beside the bound of the hardware, and what requests saw beside both.

    A bound is of a step. It is one of a token, too, where a step gives one token.
    """
    step = next((row for row in value.phases.rows if row["phase"] in (None, "decode")), None)
    floor = floor_of(value)
    if floor is None or step is None:
        return []
    seen = value.bounds[0]["observed_ns"] if len(value.bounds) == 1 else None
    if seen is not None and seen >= floor and not step["is_drafted"]:
        said = (
            f"The hardware's bound is {duration(floor)} a token; requests saw {duration(seen)}: "
            f"{percent(floor / seen)} of the bound is reached."
        )
        return [f"{said}{_of_step(floor, step)}"]
    said = f"The hardware's bound is {duration(floor)} a step."
    if seen is not None:
        said += (
            f" Requests saw {duration(seen)} a token, which is not held against it: a step gives "
            f"several{'' if step['is_drafted'] else ', or something told is wrong'}."
        )
    return [f"{said}{_of_step(floor, step, reached=True)}"]


def floor_of(value: Devices) -> float | None:
    """Bound of a step: of the traced ones, else of those that one deployment's requests had."""
    floor = value.beside.get("step_bound_ns")
    if floor is None and len(value.bounds) == 1:
        floor = value.bounds[0]["expected_ns"] or value.bounds[0]["strict_ns"]
    return float(floor) if floor else None


def _of_step(floor: float, step: Row, *, reached: bool = False) -> str:
    if step["step_ns"] is None:
        return ""
    out = (
        f" A {phase_of(step)}{' step' if step['phase'] else ''} takes "
        f"{duration(step['step_ns'])} on the device, {duration(step['busy_ns'])} of it busy"
    )
    if reached:
        out += f": {percent(floor / step['step_ns'])} of the bound is reached"
    gap = step["step_ns"] - floor
    if step["idle_ns"] and gap > 0:
        share = min(step["idle_ns"] / gap, 1)
        out += f"; idle time is {percent(share)} of what lies between it and the bound"
    return f"{out}."


def _meanwhile(value: Devices) -> list[str]:
    """What the device did while requests were on their way."""
    said = (
        ("busy", "busy_ratio"), ("waiting for launches", "launch_gap_ratio"),
        ("waiting for the host", "host_gap_ratio"), ("waiting for ranks", "comm_wait_ratio"),
        ("in transfer", "comm_transfer_ratio"),
    )  # fmt: skip
    one = value.beside
    if not one.get("requests"):
        return []
    return [
        f"{plural(one['requests'], 'request')} ran meanwhile; the trace covers "
        f"{percent(one['covered_ratio'])} of their time (median), and the device was then "
        + ", ".join(f"{percent(one[key])} {words}" for words, key in said if one[key] >= _SOME)
        + "."
    ]

"""Device time as people read it: trust first, then busy and idle, classes, steps, ranks."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from analyzer.report.blocks import Block, Grid, Heading, Words
from analyzer.report.gpu_beside import beside, phase_of
from analyzer.report.values import (
    NONE,
    count,
    duration,
    moment,
    percent,
    plural,
    safe_text,
    significant,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analyzer.contract.devices import Devices
    from analyzer.contract.types import Table

    Row = dict[str, Any]

_MOST = 16
"""Devices on one screen; more are told by --ranks and in JSON."""
_LEFT = frozenset({"rank", "class", "kernel", "phase", "file"})
_UNKNOWN = "cannot say"
TABLES = ("classes", "steps", "ranks", "trust", "export")
"""Tables that are drawn alone: what --export-window wrote, too."""
_CLASSES = 10
_LONGEST, _PLACE = 48, 16
"""Characters that are shown of a kernel's name; from the second on a rank's may be cut."""
_INNER = (re.compile(r"\([^()]*\)"), re.compile(r"<[^<>]*>"))
_OPEN = re.compile(r"[<(]")
_DEEPEST = 12
_COPY = re.compile(r"Mem(?:cpy|set)|\[CUDA ")


def blocks(value: Devices, *, title: bool = False) -> list[Block]:
    """One screen: can the trace be trusted, and where did device time go."""
    out: list[Block] = [Heading("Device time")] if title else []
    out += [Words(safe_text(note)) for note in value.trust.notes]
    if value.idle.rows:
        out += [idle(value.idle)]
        left = len(value.idle.rows) - _MOST
        if left > 0:
            out.append(Words(f"{plural(left, 'more device')}; -f json has all."))
    out += [Words(sentence) for sentence in beside(value)]
    if value.classes.rows:
        out += [Heading("Classes of work", 3), classes(value.classes, _CLASSES)]
    if value.phases.rows:
        out += [Heading("Steps", 3), phases(value.phases)]
        out += [Words(text) for text in unjudged(value.phases)]
    elif value.classes.rows:
        out.append(Words(NO_STEPS))
    if len(value.ranks.rows) > 1:
        out += [Heading("Ranks, a step", 3), ranks(value.ranks), *waiting(value.ranks)]
    return out


def table(value: Table) -> list[Block]:
    """One of the tables on its own."""
    draw = {
        "classes": classes, "steps": steps, "ranks": ranks, "trust": trust, "export": exported
    }[value.kind.rpartition(".")[2]]  # fmt: skip
    notes: list[Block] = [Words(safe_text(note)) for note in value.notes]
    if not value.rows:
        return notes or [Words(_NOTHING.get(value.kind, "no rows"))]
    body = [draw(value)]
    return [*notes, *body] if value.kind == "analyze.gpu.trust" else [*body, *notes]


NO_STEPS = (
    f"Steps: {_UNKNOWN}. No annotation around launches tells any; none samples a token, and what "
    "repeats may be layers of one step as well."
)
_NOTHING = {
    "analyze.gpu.steps": NO_STEPS,
    "analyze.gpu.ranks": "no rank has steps that were recorded whole",
    "analyze.gpu.classes": "no work of a device was recorded",
}


def idle(value: Table) -> Grid:
    """Devices: span, busy, idle and why."""
    lines = [
        {
            "rank": safe_text(str(row["rank"])),
            "device": count(row["device"]),
            "span": duration(row["span_ns"]),
            "busy": _part(row["busy_ns"], row["span_ns"] if row["idle_ns"] is not None else None),
            "idle": _UNKNOWN if row["idle_ns"] is None else _part(row["idle_ns"], row["span_ns"]),
            "launch gaps": _some(row["launch_gap_ns"]),
            "host gaps": _some(row["host_gap_ns"]),
            "not ready": _some(row["device_gap_ns"]),
            "not known why": _some(row["unknown_gap_ns"]),
            "work": count(row["events"]),
        }
        for row in value.rows[:_MOST]
    ]
    # A trace that tells no rank goes by its file.
    cut = ("rank",) if any(len(line["rank"]) > _PLACE for line in lines) else ()
    return grid(lines, ("work", "span", "device", "not ready", "not known why"), cut=cut)


def classes(value: Table, most: int = 0) -> Grid:
    """Classes of work by busy time; ``most`` = 0 shows all."""
    shown = value.rows[:most] if most else value.rows
    lines = [
        {
            "class": safe_text(str(row["class"])).replace("_", " "),
            "busy": duration(row["busy_ns"]),
            "share": percent(row["share_ratio"]),
            "events": count(row["events"]),
            "names": NONE if most else count(row["names"]),
            "longest": NONE if most else duration(row["longest_ns"]),
            "kernel": _shortly(str(row["kernel"])),
        }
        for row in shown
    ]
    rest = value.rows[len(shown) :]
    if rest:
        lines.append(
            {
                "class": f"{plural(len(rest), 'smaller one')}",
                "busy": duration(sum(row["busy_ns"] for row in rest)),
                "share": percent(sum(row["share_ratio"] or 0 for row in rest)),
                "events": count(sum(row["events"] for row in rest)),
            }
        )
    return grid(lines, ("names", "longest"), cut=("kernel",))


def _shortly(name: str) -> str:
    """A kernel's name without what it returns, its template's arguments and its own."""
    plain = safe_text(name)[:4000]
    bare = plain.replace("(anonymous namespace)::", "").replace("<unnamed>::", "")
    for inner in _INNER:
        for _ in range(_DEEPEST):
            bare, times = inner.subn("", bare)
            if not times:
                break
    # A name that was cut has brackets that nothing closes.
    bare = _OPEN.split(bare)[0] or bare
    words = bare.removesuffix(" const").split()
    short = plain.split(" (")[0] if _COPY.match(plain) or not words else words[-1]
    return short[:_LONGEST] or "(no name)"


def phases(value: Table) -> Grid:
    """Steps by phase: medians, and where the time went."""
    lines = [
        {
            "phase": phase_of(row),
            "steps": count(row["steps"]),
            "batch": _mean(row["batch"]),
            "prompt tokens": _mean(row["prompt_tokens"]),
            "step": _known(row["step_ns"]),
            "p95": _some(row["p95_ns"]),
            "a token": _token(row),
            "compute": _some(row["compute_ns"]),
            **_communication(row),
            "copies": _some(row["copy_ns"]),
            **_idle(row),
            "launches": _mean(row["launches"]),
        }
        for row in value.rows
    ]
    spare = ("p95", "launches", "prompt tokens", "copies", "a token", "batch", "launch gaps",
             "host gaps")  # fmt: skip
    return grid(lines, spare)


def unjudged(value: Table) -> list[str]:
    """Which steps the medians are of, where they are not of all."""
    out = []
    for row in value.rows:
        if not row["judged"]:
            out.append(f"{phase_of(row).capitalize()}: no step is recorded with all its kernels.")
        elif row["judged"] < row["steps"]:
            out.append(
                f"{phase_of(row).capitalize()}: medians of {count(row['judged'])} of "
                f"{plural(row['steps'], 'step')}; the others are recorded in part, or waited for "
                "work."
            )
        elif not row["is_whole"]:
            out.append(
                f"{phase_of(row).capitalize()}: the begin is not recorded, so the time before the "
                "first kernel is missing."
            )
    return out


def _token(row: Row) -> str:
    """Drafts count as tokens, and some of them may be dropped."""
    least = "from " if row["is_drafted"] and row["token_ns"] else ""
    return f"{least}{_some(row['token_ns'])}"


def steps(value: Table) -> Grid:
    """Steps one by one."""
    several = len({(row["rank"], row["device"]) for row in value.rows}) > 1
    lines = [
        ({"rank": safe_text(str(row["rank"]))} if several else {})
        | {
            "step": safe_text(str(row["name"] or f"step {row['step']}"))[:80],
            "phase": safe_text(str(row["phase"] or NONE)),
            "at": duration(row["offset_ns"]),
            "start": moment(row["start_ns"]) if row["start_ns"] is not None else NONE,
            "time": _known(row["step_ns"]),
            "busy": _some(row["busy_ns"]),
            **_communication(row),
            **_idle(row),
            "launches": count(row["launches"]),
        }
        for row in value.rows
    ]
    spare = ("start", "launches", "transfer", "comm wait", "phase", "launch gaps", "host gaps")
    return grid(lines, spare, cut=("step",))


def ranks(value: Table) -> Grid:
    """Ranks beside each other."""
    clocks = any(row["clock_ns"] for row in value.rows)
    lines = [
        {
            "rank": safe_text(str(row["rank"])),
            "device": count(row["device"]),
            "steps": count(row["steps"]),
            "step": duration(row["step_ns"]),
            "compute": _some(row["compute_ns"]),
            "waits": _some(row["comm_wait_ns"]),
            "transfer": _some(row["comm_transfer_ns"]),
            "idle": _known(row["idle_ns"]),
            "last": f"{count(row['last'])} of {count(row['collectives'])}"
            if row["collectives"]
            else NONE,
            "waited for": percent(row["blame_ratio"]) if row["blame_ratio"] is not None else NONE,
            "clock": duration(row["clock_ns"]) if clocks and row["clock_ns"] is not None else NONE,
        }
        for row in value.rows
    ]
    return grid(lines, ("clock", "device", "steps", "last"))


def waiting(value: Table) -> list[Block]:
    """Who the others wait for, in a sentence."""
    late = [row for row in value.rows if row["is_straggler"]]
    out: list[Block] = [
        Words(
            f"{safe_text(str(row['rank']))} is the last to come in {count(row['last'])} of "
            f"{count(row['collectives'])} collectives: {percent(row['blame_ratio'])} of all "
            "waiting is for it."
        )
        for row in late
    ]
    if not late and not all(row["can_compare"] for row in value.rows):
        out.append(
            Words(
                "Who waits for whom cannot be said: that takes the traces of all ranks, and "
                "collectives that they share."
            )
        )
    return out


def trust(value: Table) -> Grid:
    """What each rank's trace can carry."""
    lines = [
        {
            "rank": safe_text(str(row["rank"])),
            "idle time": "can be said" if row["can_idle"] else _UNKNOWN,
            "launches": _covered(row["launches"], row["launch_coverage_ratio"]),
            "graphs": _covered(row["graph_launches"], row["graph_coverage_ratio"]),
            "no launch": count(row["unlaunched"]) if row["unlaunched"] else NONE,
            "largest event": percent(row["largest_ratio"]),
            "unclassified": percent(row["unclassified_ratio"])
            if row["unclassified_ratio"]
            else NONE,
            "profiler took": percent(row["overhead_ratio"]) if row["overhead_ratio"] else NONE,
            "wrong with it": safe_text(str(row["reasons"] or NONE)),
        }
        for row in value.rows
    ]
    spare = ("profiler took", "no launch", "largest event", "unclassified")
    return grid(lines, spare, cut=("wrong with it",))


def exported(value: Table) -> Grid:
    """What was written."""
    lines = [
        {
            "file": safe_text(str(row["path"])),
            "events": count(row["events"]),
            "ranks": count(row["ranks"]),
            "from": duration(row["offset_ns"]),
            "at": moment(row["start_ns"]) if row["start_ns"] is not None else NONE,
            "length": duration(row["dur_ns"]),
        }
        for row in value.rows
    ]
    return grid(lines, ())


def _part(value_ns: int | None, whole_ns: int | None) -> str:
    if value_ns is None:
        return NONE
    share = f" ({percent(value_ns / whole_ns)})" if whole_ns else ""
    return f"{duration(value_ns)}{share}"


def _some(value_ns: float | None) -> str:
    return duration(value_ns) if value_ns else NONE


def _known(value_ns: float | None) -> str:
    return _UNKNOWN if value_ns is None else duration(value_ns)


def _communication(row: Row) -> dict[str, str]:
    return {
        "comm wait": _some(row["comm_wait_ns"]),
        "transfer": _some(row["comm_transfer_ns"]),
    }


def _idle(row: Row) -> dict[str, str]:
    return {
        "idle": _known(row["idle_ns"]),
        "launch gaps": _some(row["launch_gap_ns"]),
        "host gaps": _some(row["host_gap_ns"]),
    }


def _mean(value: float | None) -> str:
    if value is None:
        return NONE
    return f"{value:,.0f}" if value >= 100 or value == round(value) else significant(value)


def _covered(launches: int, ratio: float | None) -> str:
    if not launches or ratio is None:
        return NONE
    return f"{round(ratio * launches):,} of {launches:,}"


def grid(lines: Sequence[dict[str, str]], spare: Sequence[str], cut: Sequence[str] = ()) -> Grid:
    """Columns that some line fills; a narrow terminal goes without ``spare``, in this order."""
    names = [
        name
        for name in next((line for line in lines if line), {})
        if any(line.get(name, NONE) not in ("", NONE) for line in lines)
    ]
    left = [name for name in spare if name in names]
    out: Grid | None = None
    for dropped in range(len(left), -1, -1):
        kept = [name for name in names if name not in left[:dropped]]
        out = Grid(
            header=tuple(kept),
            rows=tuple(tuple(line.get(name, NONE) for name in kept) for line in lines),
            right=tuple(name not in (*_LEFT, *cut) for name in kept),
            keep=tuple(name not in cut for name in kept),
            narrow=out,
        )
    assert out is not None  # noqa: S101 - the range is never empty
    return out

"""What a profiler trace can carry, in sentences: what is wrong, and how to capture better."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

_MUCH_OVERHEAD, _MUCH_UNKNOWN = 0.05, 0.05
"""Of the record, in the profiler; of kernel time, without a class."""
_NAMED = 4

Row = dict[str, Any]


def why_no_idle(rank: Row) -> list[str]:
    """Why idle time of a rank cannot be said; empty where it can."""
    out = []
    if not rank["work"]:
        out.append("no work of a device was recorded")
    if rank["lacks_graphs"]:
        out.append(
            f"{rank['graphs_covered']:,} of {rank['graph_launches']:,} graph launches have all "
            "their kernels"
        )
    if rank["lacks_launches"]:
        held = round(rank["launch_coverage_ratio"] * rank["launches"])
        out.append(f"{held:,} of {rank['launches']:,} launches have their kernel")
    if rank["is_one_event"]:
        out.append(f"one event holds {100 * rank['largest_ratio']:.0f} % of the record")
    return out


def wrong_with(rank: Row) -> list[str]:
    """Everything that a reader of a rank's trace has to know."""
    out = _damage(rank)
    if (rank["unclassified_ratio"] or 0) > _MUCH_UNKNOWN:
        out.append(f"no rule knows {100 * rank['unclassified_ratio']:.0f} % of its kernel time")
    return out


def _damage(rank: Row) -> list[str]:
    out = [] if rank["can_idle"] else why_no_idle(rank)
    if rank["is_cut"]:
        out.append("cut off")
    if rank["lost_records"]:
        out.append(f"the profiler lost {rank['lost_records']:,} records")
    if rank["is_full"]:
        out.append("the profiler ran out of room")
    if rank["opaque"]:
        out.append(f"{rank['opaque']:,} graph replays told as a whole, without their kernels")
    if rank["has_stacks"]:
        out.append("recorded with Python stacks, which slow the host")
    if (rank["overhead_ratio"] or 0) >= _MUCH_OVERHEAD:
        out.append(f"the profiler took {100 * rank['overhead_ratio']:.0f} % of the record")
    missing = (rank["ranks_told"] or 0) - (rank["ranks"] or 0)
    if missing > 0:
        verb = "is" if missing == 1 else "are"
        out.append(f"{missing:,} of {rank['ranks_told']:,} ranks {verb} not in the case")
    return out


def notes(told: Sequence[Row], unknown: Sequence[Row]) -> tuple[str, ...]:
    """The verdict first; then what is wrong, by the ranks it concerns; then how to capture better.

    ``unknown``: kernels that no rule knows, longest first.
    """
    if not told:
        return ("The trace tells no rank: nothing can be said of idle time.",)
    out = [_verdict(told)]
    reasons: dict[str, list[str]] = {}
    for rank in told:
        said = why_no_idle(rank) if len(told) == 1 or _all_alike(told) else ()
        for reason in _damage(rank):
            if reason not in said:
                reasons.setdefault(reason, []).append(str(rank["rank"]))
    by_place: dict[tuple[str, ...], list[str]] = {}
    for reason, places in reasons.items():
        by_place.setdefault(tuple(places), []).append(reason)
    out += [f"{_who(places, told)}{'; '.join(some)}." for places, some in by_place.items()]
    share = unknown[0]["all_ratio"] or 0 if unknown else 0
    if share > _MUCH_UNKNOWN:
        names = ", ".join(str(row["name"])[:60] or "(no name)" for row in unknown[:_NAMED])
        out.append(f"Unclassified: {100 * share:.0f} % of busy time, most of it {names}.")
    return (*out, *_better(told))


def _verdict(told: Sequence[Row]) -> str:
    if not any(rank["work"] for rank in told):
        return "No work of a device was recorded: nothing can be said of device time."
    bad = [rank for rank in told if not rank["can_idle"]]
    if not bad:
        held = _covered(told)
        return f"The trace can be trusted with idle time: {held}." if held else _unproven(told)
    if len(bad) < len(told):
        names = ", ".join(str(rank["rank"]) for rank in bad[:_NAMED])
        more = f" and {len(bad) - _NAMED:,} more" if len(bad) > _NAMED else ""
        return (
            f"Idle time cannot be said of {len(bad):,} of {len(told):,} ranks ({names}{more}); "
            "of the others it can."
        )
    why = "; ".join(why_no_idle(bad[0])) or "no launch can be joined with its work"
    where = f" ({bad[0]['rank']})" if len(bad) > 1 and not _all_alike(bad) else ""
    where = where or (" on every rank" if len(bad) > 1 else "")
    return (
        f"Idle time cannot be said: {why}{where}. What has no kernels in the trace was not "
        "recorded, which is not the same as idle."
    )


def _covered(told: Sequence[Row]) -> str:
    graphs = sum(rank["graph_launches"] for rank in told)
    single = sum(rank["launches"] for rank in told if rank["launch_coverage_ratio"] is not None)
    parts = []
    if graphs:
        held = sum(rank["graphs_covered"] for rank in told)
        parts.append(f"{held:,} of {graphs:,} graph launches have all their kernels")
    if single:
        held = sum(
            round((rank["launch_coverage_ratio"] or 0) * rank["launches"])
            for rank in told
            if rank["launch_coverage_ratio"] is not None
        )
        parts.append(f"{held:,} of {single:,} launches of kernels have theirs")
    late = sum(rank["late_launches"] for rank in told)
    end = f"; {late:,} more still wait where it ends" if late else ""
    return f"{' and '.join(parts)}{end}" if parts else ""


def _unproven(told: Sequence[Row]) -> str:
    """No launch can be held against its work."""
    why = (
        "graphs were captured in it, and what is launched then does not run"
        if any(rank["launches"] for rank in told)
        else "it holds the work of devices without the launches behind it"
    )
    return f"Nothing contradicts the idle time of the trace, and nothing confirms it: {why}."


def _all_alike(told: Sequence[Row]) -> bool:
    """Idle time is unknown on all of them for one reason."""
    return len({tuple(why_no_idle(rank)) for rank in told}) == 1


def _who(places: Sequence[str], told: Sequence[Row]) -> str:
    if len(told) == 1:
        return "Mind: "
    if len(places) == len(told):
        return "Every rank: "
    names = ", ".join(places[:_NAMED])
    return f"{names}{' and others' if len(places) > _NAMED else ''}: "


def _better(told: Iterable[Row]) -> list[str]:
    """How to capture so that idle time can be said."""
    bad = [rank for rank in told if not rank["can_idle"]]
    if not bad:
        return []
    if any(rank["is_cut"] and not rank["work"] for rank in bad):
        return [
            "To know, ingest the file as the profiler wrote it, or capture again and wait until "
            "stop_profile has returned: events of devices stand last."
        ]
    if not any(rank["work"] for rank in bad):
        return ["To know, capture with device activities (ProfilerActivity.CPU and CUDA)."]
    if any(rank["lacks_graphs"] for rank in bad):
        nsys = any(rank["profiler"] == "nsys" for rank in bad)
        how = (
            "with nsys profile --cuda-graph-trace=node"
            if nsys
            else "fewer steps (5 to 50), without stacks and shapes, with a larger activity buffer "
            "(KINETO_CUDA_BUFFER_SIZE), or a few steps without graphs (vLLM --enforce-eager, "
            "SGLang --disable-cuda-graph)"
        )
        return [f"To know, capture again: {how}."]
    return ["To know, capture again: fewer steps, without stacks and shapes."]

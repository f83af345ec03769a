"""Results of worlds to one page of Markdown."""

from __future__ import annotations

import statistics
from collections import Counter
from typing import Any

from faults import FAULTS
from trial import FREE

Result = dict[str, Any]
OK, NO = "yes", "no"


def fired(one: Result) -> set[str]:
    """Rules that were claimed, as warning or critical."""
    return {rule for rule, severity in one["found"].items() if severity != "note"}


def table(results: list[Result], crashed: list[tuple[str, int]], base: int) -> str:
    """The whole page."""
    drawn = [one for one in results if "undrawn" not in one]
    lines = [
        "# Accuracy against the simulator's truth",
        "",
        f"{len(drawn)} worlds, seeds from {base:,}. Written by `make accuracy`; do not edit.",
        "",
        *_rules(drawn),
        "",
        *_free([one for one in drawn if one["rule"] == FREE]),
        *_measured(drawn),
        *_modelled(drawn),
        *_clocks(drawn),
        *_wrong(drawn),
    ]
    undrawn = Counter(one["rule"] for one in results if "undrawn" in one)
    for rule, count in sorted(undrawn.items()):
        lines.append(f"- {rule}: {count} worlds did not show it however often they were drawn")
    for rule, number in crashed:
        lines.append(f"- {rule} {number}: the tool failed")
    return "\n".join(lines) + "\n"


def counts_of(rule: str, results: list[Result]) -> dict[str, int]:
    """A rule over all worlds: where it is true, named, missed, refused; and claimed wrongly."""
    true = [one for one in results if one["truth"].get(rule) == "yes"]
    named = [one for one in true if rule in fired(one)]
    refused = [one for one in true if rule not in fired(one) and rule in one["cannot"]]
    own = [one for one in true if one["rule"] == rule]
    return {
        "worlds": sum(one["rule"] == rule for one in results),
        "true": len(true),
        "named": len(named),
        "missed": len(true) - len(named) - len(refused),
        "refused": sum(one["rule"] == rule for one in refused),
        "refused_elsewhere": sum(one["rule"] != rule for one in refused),
        "own_named": sum(rule in fired(one) for one in own),
        "wrong": sum(rule in fired(one) and rule not in one["truth"] for one in results),
    }


def ratio(part: int, whole: int) -> str:
    """Two digits, or nothing where there is nothing to divide."""
    return f"{part / whole:.2f}" if whole else ""


def _rules(results: list[Result]) -> list[str]:
    lines = [
        "| fault | worlds | refused | true in | named | missed | recall | claimed wrongly "
        "| precision |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    whole: Counter[str] = Counter()
    for rule in FAULTS:
        got = counts_of(rule, results)
        if not got["true"] and not got["wrong"]:
            continue
        whole.update(got)
        lines.append(f"| {rule} {_cells(got)}")
    lines.append(f"| **all** {_cells(whole)}")
    return [
        *lines,
        "",
        "A cause is true of a world by its truth, whichever fault was put in; `true in` counts all "
        "worlds, `worlds` those of that fault. `refused` = cannot say (in brackets: in worlds of "
        "other faults, whose logs were not chosen to show this one). Recall is of those that were "
        "not refused. A cause that is there but smaller than the play asks for counts neither way.",
    ]


def _cells(got: dict[str, int] | Counter[str]) -> str:
    elsewhere = f" ({got['refused_elsewhere']})" if got["refused_elsewhere"] else ""
    return (
        f"| {got['worlds']} | {got['refused']}{elsewhere} | {got['true']} | {got['named']} "
        f"| {got['missed']} | {ratio(got['named'], got['named'] + got['missed'])} "
        f"| {got['wrong']} | {ratio(got['named'], got['named'] + got['wrong'])} |"
    )


def _free(results: list[Result]) -> list[str]:
    if not results:
        return []
    alarms = [fired(one) - one["truth"].keys() for one in results]
    small = sum(bool(fired(one) & one["truth"].keys()) for one in results)
    told = Counter(rule for found in alarms for rule in found)
    names = ", ".join(f"{rule} {count}" for rule, count in told.most_common())
    bad = sum(map(bool, alarms))
    return [
        f"Worlds without a fault: {len(results)}, false alarms in {bad} "
        f"({bad / len(results):.1%}){': ' + names if names else ''}. "
        f"In {small} more something true and small was named.",
        "",
    ]


def _measured(results: list[Result]) -> list[str]:
    told: Counter[str] = Counter()
    exact: Counter[str] = Counter()
    for one in results:
        for name, (count, same) in one["measured"].items():
            told[name] += count
            exact[name] += same
    if not told:
        return []
    lines = ["| measured segment | values | the truth to the ns |", "|---|---|---|"]
    lines += [f"| {name} | {told[name]:,} | {exact[name] / told[name]:.4%} |" for name in told]
    return [*lines, ""]


ELSEWHERE = (
    "network.slow", "network.fixed-offset", "network.buffered", "client.stalled",
)  # fmt: skip
"""Delay first tokens on the way, where a client's log alone cannot tell them from a queue."""


def _modelled(results: list[Result]) -> list[str]:
    told = [one for one in results if one.get("modelled")]
    if not told:
        return []
    lines = [
        "| modelled from the client's log alone | requests | median error / TTFT | within 10 % "
        "| mean error / TTFT | in the 90 % interval | refused |",
        "|---|---|---|---|---|---|---|",
    ]
    delayed = [one for one in told if set(ELSEWHERE) & one["truth"].keys()]
    others = [one for one in told if one not in delayed]
    for name in ("queue", "prefill"):
        for label, key, chosen in (
            (name, name, others),
            (f"{name} of at least a fifth of TTFT", f"large {name}", others),
            (f"{name}, delays on the way or in the client too", name, delayed),
        ):
            lines += _modelled_row(label, key, [one["modelled"] for one in chosen])
    return [*lines, ""]


def _modelled_row(label: str, key: str, told: list[Result]) -> list[str]:
    found = [one[key] for one in told if one.get(key, {}).get("requests")]
    if not found:
        return []
    count = sum(one["requests"] for one in found)
    refused, asked = (sum(one[what] for one in told) for what in ("refused", "requests"))
    near, inside = (sum(one[what] for one in found) / count for what in ("near", "inside"))
    return [
        f"| {label} | {count:,} | {statistics.median(one['error'] for one in found):.1%} "
        f"| {near:.0%} | {sum(one['sum'] for one in found) / count:+.1%} | {inside:.0%} "
        f"| {refused / asked:.0%} |"
    ]


def _clocks(results: list[Result]) -> list[str]:
    told = [clock for one in results for clock in one.get("clock") or ()]
    if not told:
        return []
    inside = sum(one["inside"] for one in told)
    return [
        f"Clocks of servers against the client's: {len(told)}, the true skew lies within the "
        f"interval in {inside / len(told):.0%} of them; half of the intervals are narrower than "
        f"{statistics.median(one['width_ms'] for one in told):.3g} ms.",
        "",
    ]


def _wrong(results: list[Result]) -> list[str]:
    """Claims that truth does not hold, with the worlds they were made in."""
    places: Counter[tuple[str, str]] = Counter()
    for one in results:
        for rule in fired(one) - one["truth"].keys():
            places[rule, one["rule"]] += 1
    if not places:
        return []
    lines = ["| claimed wrongly | in worlds of | times |", "|---|---|---|"]
    lines += [f"| {rule} | {where} | {n} |" for (rule, where), n in places.most_common()]
    return [*lines, ""]

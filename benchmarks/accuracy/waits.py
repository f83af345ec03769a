"""Why requests waited for an engine, by truth: its queue, its balance, its loads."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from truth import MS, Attempt, Line, S, Truth, due, first_of, judged

QUEUED = ("admission", "capacity", "head_of_line", "grammar", "load")
WAIT_LINE = Line(5, 0.2, share=0.2)


def waits(truth: Truth) -> dict[str, str]:
    """Why requests waited for the engine: each for what made most of its wait."""
    parts: dict[str, list[tuple[int, Attempt]]] = defaultdict(list)
    behind = {(one["id"], one["attempt"]): part for one, part in _behind_long(truth.attempts)}
    for one in truth.attempts:
        long = behind.get((one["id"], one["attempt"]), 0)
        parts["queue.admission-limit"].append((due(one, "admission"), one))
        capacity = due(one, "capacity", "head_of_line") - long
        parts["queue.saturation"].append((capacity, one))
        parts["queue.head-of-line"].append((long, one))
        parts["queue.mislabelled"].append((due(one, "grammar"), one))
    told = {rule: _waited(found) for rule, found in parts.items()}
    told["queue.imbalance"] = _imbalance(truth)
    if told["queue.imbalance"] == "yes":
        # The waits have one cause and its form: naming the limit too is right, and not demanded.
        for rule in ("queue.admission-limit", "queue.saturation", "queue.head-of-line"):
            told[rule] = "may" if told[rule] == "yes" else told[rule]
    return told


def _waited(found: list[tuple[int, Attempt]]) -> str:
    mostly = [(part, first_of(one)) for part, one in found if part >= 0.5 * due(one, *QUEUED)]
    if judged(mostly, WAIT_LINE) == "yes":
        return "yes"
    least = judged(((part, first_of(one)) for part, one in found), WAIT_LINE)
    return "may" if least != "no" else "no"


def _behind_long(attempts: list[Attempt]) -> Iterable[tuple[Attempt, int]]:
    """Time that a request waited for the budget of steps while a far longer prompt was in work."""
    prompts: dict[str, list[tuple[int, int, int]]] = defaultdict(list)
    for one in attempts:
        if "prefill_ns" in one:
            fresh = one["prompt_tokens"] - one["cached_tokens"]
            prompts[one["replica"]].append((fresh, one["admitted_ns"], one["first_token_ns"]))
    for found in prompts.values():
        found.sort(reverse=True)
    for one in attempts:
        spent = due(one, "head_of_line")
        if not spent or "admitted_ns" not in one:
            continue
        own = max(64, one["prompt_tokens"] - one["cached_tokens"])
        overlap = 0
        for fresh, start, end in prompts[one["replica"]]:
            if fresh < 4 * own:
                break
            overlap += max(0, min(end, one["admitted_ns"]) - max(start, one["queued_ns"]))
        yield one, min(spent, overlap)


def _imbalance(truth: Truth) -> str:
    """One replica's requests wait while another has room at the same time."""
    names = [one["name"] for one in truth.world["replicas"]]
    served = [one for one in truth.attempts if one.get("replica") and "queued_ns" in one]
    if len(names) < 2 or not served:
        return "no"
    late: dict[str, list[tuple[int, Attempt]]] = defaultdict(list)
    for one in served:
        spent = due(one, "admission", "capacity", "head_of_line")
        if spent >= 100 * MS and spent >= 0.2 * first_of(one):
            late[one["replica"]].append((spent, one))
    total = sum(spent for found in late.values() for spent, _ in found)
    if not total:
        return "no"
    worst = max(late, key=lambda name: sum(spent for spent, _ in late[name]))
    mine = sum(spent for spent, _ in late[worst])
    first = min(one["queued_ns"] for _, one in late[worst])
    last = max(one.get("admitted_ns", first) for _, one in late[worst])
    during = [one for one in served if first <= one["queued_ns"] <= last]
    share = sum(one["replica"] == worst for one in during) / max(1, len(during))
    if mine < 0.7 * total or len(late[worst]) < 5:
        return "no"
    if len(late[worst]) >= 10 and mine >= 0.9 * total and share >= 1.5 / len(names):
        return "yes"
    return "may"


def loads(truth: Truth) -> dict[str, str]:
    """Loads after an unload, and those of a model that was not there before."""
    state: dict[str, bool] = {}
    again: list[dict[str, Any]] = []
    cold: list[dict[str, Any]] = []
    for event in sorted(truth.events, key=lambda one: one["start_ns"]):
        if event["event"] == "unload":
            state[event["engine"]] = True
        elif event["event"] == "load":
            (again if state.get(event["engine"]) else cold).append(event)
    after = {(one["engine"], one["start_ns"] + one["ns"]) for one in again}
    late: tuple[list[tuple[int, int]], list[tuple[int, int]]] = ([], [])
    for one in truth.attempts:
        spent = due(one, "load")
        if spent:
            ends = {(one["replica"], c["end_ns"]) for c in one["causes"] if c["kind"] == "load"}
            late[not ends & after].append((spent, first_of(one)))
    first = judged(late[1], Line(3, 0.2, S // 2))
    if first == "yes" and len(late[1]) < len(cold) + 3:
        # One request a model waits for its first load whatever is done.
        first = "may"
    again_said = judged(late[0], Line(3, 0.2, S // 2))
    return {"load.idle-unload": again_said, "load.cold-start": first}

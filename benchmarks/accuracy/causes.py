"""What was true of a world: the causes that a right verdict names, from its truth alone.

Each rule has two lines. Above the first a cause **must** be named: as many requests as the play
wants at least, and its stated relative size with a quarter more. Between the second and the first
it **may** be: either answer is right, for it is there and small. Below, it must not be. What the
fault was that somebody put in is not asked: a full pool also makes requests wait, and both hold.

The sizes are those of the plays' ``fires_when`` and of their analyses' smallest effects.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from truth import MARGIN, MS, Attempt, Line, S, Truth, due, first_of, judged, whole_of
from waits import loads, waits

# --- one rule after the other --------------------------------------------------------------------


def _limits(truth: Truth) -> dict[str, str]:
    turned = [one for one in truth.attempts if one.get("error") == "rate_limited"]
    failed = [one for one in truth.attempts if one.get("error")]
    last: dict[str, Attempt] = {}
    for one in truth.attempts:
        last[one["operation_id"]] = one
    lost = [one for one in last.values() if one.get("error")]
    share, in_the_end = len(failed) / len(truth.attempts), len(lost) / len(last)
    rate = "no"
    if len(failed) >= 3 and share >= 0.02:
        # Turned away and served later: a failure to some, to others none.
        rate = "yes" if len(lost) >= 3 and in_the_end >= 0.02 * MARGIN else "may"
        if len(failed) > len(turned) and len(failed) >= 4 and share >= 0.02 * MARGIN:
            rate = "yes"
    elif failed:
        rate = "may"
    cut = [one for one in truth.attempts if one.get("finish_reason") == "length"]
    part = len(cut) / len(truth.attempts)
    return {
        "queue.rate-limited": _counted(len(turned), 5),
        "errors.rate": rate,
        "errors.truncated-output": "yes" if len(cut) >= 6 and part >= 0.1 else _counted(len(cut)),
    }


def _counted(number: int, least: int | None = None) -> str:
    if least is not None and number >= least * MARGIN:
        return "yes"
    return "may" if number else "no"


def _prefill(truth: Truth) -> dict[str, str]:
    served = [one for one in truth.attempts if "prefill_ns" in one]
    tokens = [one["prompt_tokens"] - one["cached_tokens"] for one in served]
    if len(served) < 8 or min(tokens) == max(tokens):
        return {"prefill.long-prompt": "no"}
    short = statistics.quantiles(tokens, n=10)[0]
    usual = statistics.median(
        one["prefill_ns"] for one, count in zip(served, tokens, strict=True) if count <= 1.5 * short
    )
    pairs = [
        (round(one["prefill_ns"] - usual), first_of(one))
        for one, count in zip(served, tokens, strict=True)
        if count >= 2 * short
    ]
    said = judged(pairs, Line(5, 0.3, mean_ns=300 * MS))
    costs = zip(served, tokens, strict=True)
    heavy = [
        one["prefill_ns"] - usual >= min(S, 0.05 * whole_of(one))
        for one, count in costs
        if count >= 2 * short
    ]
    if said == "yes" and sum(heavy) < 5 * MARGIN:
        said = "may"
    follows = statistics.correlation(tokens, [one["prefill_ns"] for one in served])
    if said == "yes" and follows < 0.85:
        said = "may"
    return {"prefill.long-prompt": said if follows >= 0.6 else "no"}


def _caches(truth: Truth) -> dict[str, str]:
    """Calls that read less than the call before them had left: the cache had lost it meanwhile."""
    grows = {
        one.get("kind", "chat")
        for one in truth.world.get("arrivals", ())
        if one.get("history", True)
    }
    calls = [
        one
        for one in truth.attempts
        if "prefill_ns" in one and one.get("session_id") and one.get("kind") in grows
    ]
    if not any(one["cached_tokens"] for one in calls):
        return {}
    before: dict[str, Attempt] = {}
    pairs = []
    for one in sorted(calls, key=lambda call: call["sent_ns"]):
        last, before[one["session_id"]] = before.get(one["session_id"]), one
        if last is None:
            continue
        left = min(last["prompt_tokens"] + last["output_tokens"], one["prompt_tokens"])
        lost, computed = left - one["cached_tokens"], one["prompt_tokens"] - one["cached_tokens"]
        # The end of an answer fills no block.
        if lost > 256:
            pairs.append((round(one["prefill_ns"] * lost / computed), first_of(one)))
    said = judged(pairs, Line(2, 0.2, 20 * MS, share=0.2, mean_ns=100 * MS))
    return {"prefill.cache-miss": said, "cache.evicted": "may" if pairs else "no"}


def _network(truth: Truth) -> dict[str, str]:
    served = [one for one in truth.attempts if one.get("network_ns") is not None]
    if not served:
        return {}
    known = ("fallback", "client_stall")
    outside = [one["network_ns"] - due(one, *known) for one in served]
    usual = min(statistics.quantiles(outside, n=10)[0] if len(outside) > 1 else 0, 50 * MS)
    return {
        "network.slow": judged(
            (
                (round(took - usual), whole_of(one))
                for one, took in zip(served, outside, strict=True)
            ),
            Line(5, 0.2, share=0.2),
        ),
        "network.fixed-offset": judged(
            ((due(one, "fallback"), whole_of(one)) for one in truth.attempts), Line(5, 0.2)
        ),
        "network.buffered": judged(
            (
                (due(one, "buffered"), whole_of(one))
                for one in truth.attempts
                if one["output_tokens"] >= 16 and due(one, "buffered") >= 0.05 * one["decode_ns"]
            ),
            Line(3, 0.1),
        ),
    }


def _metrics(truth: Truth) -> dict[str, str]:
    kinds = {
        log.get("options", {}).get("ttft", "first")
        for log in truth.world["logs"]
        if log["format"] == "gateway"
    }
    clear = small = 0
    for one in truth.attempts:
        error = _misread(one, kinds)
        apart = max(20 * MS, first_of(one) // 20)
        clear += error >= 2 * apart
        small += error >= apart // 2
    engine = truth.world["engine"]
    tokens = float(engine.get("stream_tokens", 1))
    if engine.get("drafts"):
        kept = engine.get("acceptance", 0.7)
        tokens = max(tokens, (1 - kept ** (engine["drafts"] + 1)) / (1 - kept))
    size = statistics.median(one["output_tokens"] for one in truth.attempts)
    # The first token of an answer never waits for others.
    tokens = size / (1 + max(0.0, size - 1) / tokens)
    hold = judged(
        ((one["hold_ns"], whole_of(one) + one["hold_ns"]) for one in truth.attempts),
        Line(5, 0.1),
    )
    return {
        "metric.ttft-misread": "yes" if clear >= 4 else "may" if small else "no",
        "metric.multi-token-chunks": "yes" if tokens >= 1.5 else "may" if tokens >= 1.2 else "no",
        "metric.client-hold": hold,
    }


def _misread(one: Attempt, kinds: set[str]) -> int:
    if "first_token_ns" not in one or "decode_ns" not in one:
        return 0
    error = 0
    if "visible" in kinds:
        part = one["reasoning_tokens"] / max(1, one["output_tokens"])
        error = round(one["decode_ns"] * part)
    if "role" in kinds:
        error = max(error, one["queue_ns"] + one["prefill_ns"])
    return error


def _stalls(truth: Truth) -> dict[str, str]:
    client = truth.world.get("client", {})
    stalled = "no"
    if client.get("stall_every_s"):
        every, long = round(client["stall_every_s"] * S), round(client["stall_ms"] * MS)
        found = _blocked(truth.attempts, truth.start_ns, every, long)
        stalled = judged(found, Line(5, 0.05, 200 * MS))
    pauses = [event for event in truth.events if event["event"] == "pause"]
    paused = judged(
        ((due(one, "process_pause"), whole_of(one)) for one in truth.attempts),
        Line(5, 0.05, 200 * MS),
    )
    if paused == "yes" and len(pauses) < 4:
        paused = "may"
    return {
        "client.stalled": stalled,
        "decode.process-pause": paused,
        "decode.prefill-interference": _interference(truth.attempts),
        "decode.preemption": _preemption(truth.attempts),
    }


def _interference(attempts: list[Attempt]) -> str:
    """Decode steps that grew by prompts of others: demanded where a far longer prompt did it."""
    line = Line(3, 0.2, 300 * MS, share=0.2)
    served = [one for one in attempts if "prefill_ns" in one]
    if not served:
        return "no"
    usual = statistics.median(one["prompt_tokens"] - one["cached_tokens"] for one in served)
    prompts: dict[str, list[Attempt]] = defaultdict(list)
    for one in served:
        if one["prompt_tokens"] - one["cached_tokens"] >= max(2000, 4 * usual):
            prompts[one["replica"]].append(one)

    def beside_long(one: Attempt) -> int:
        start, end = one["first_token_ns"], one["finished_ns"]
        return sum(
            max(0, min(end, other["first_token_ns"]) - max(start, other["admitted_ns"]))
            for other in prompts[one["replica"]]
        )

    pairs = [(due(one, "prefill_interference"), one) for one in served if one.get("finished_ns")]
    long = [(spent, whole_of(one)) for spent, one in pairs if beside_long(one) >= 0.5 * spent > 0]
    lost, all_of_it = sum(e for e, _ in long), sum(map(whole_of, attempts))
    felt = sum(spent >= S * MARGIN for spent, _ in long) >= 2
    if judged(long, line) == "yes" and (felt or lost >= 0.01 * MARGIN * all_of_it):
        return "yes"
    every = judged(((spent, whole_of(one)) for spent, one in pairs), line)
    return "may" if every != "no" else "no"


def _preemption(attempts: list[Attempt]) -> str:
    """Pauses of requests that were put out; weighed against all time, as the play does."""
    pairs = [(due(one, "preemption"), whole_of(one)) for one in attempts]
    lost, all_of_it = sum(e for e, _ in pairs), sum(w for _, w in pairs)
    for name, factor in (("yes", MARGIN), ("may", 0.5)):
        felt = any(spent >= S * factor for spent, _ in pairs)
        size = judged(pairs, Line(2, 0.1, 400 * MS))
        heavy = felt or lost >= 0.01 * factor * all_of_it
        if heavy and size in ("yes", name):
            return name
    return "no"


def _blocked(
    attempts: list[Attempt], start: int, every: int, long: int
) -> Iterable[tuple[int, int]]:
    """Time for which the client's loop was blocked while an answer came in."""
    for one in attempts:
        if "first_chunk_ns" not in one:
            continue
        begin, end, sum_ns = one["first_chunk_ns"] - start, one["done_ns"] - start, 0
        for number in range(max(1, begin // every), end // every + 1):
            low, high = number * every, number * every + long
            sum_ns += max(0, min(end, high) - max(begin, low))
        yield sum_ns, whole_of(one)


def _growth(truth: Truth) -> dict[str, str]:
    """Answers after the change against those before it, in time and in tokens."""
    changes = [one for one in truth.world["change"] if "output_tokens" in one["key"]]
    if not changes:
        return {"decode.output-growth": "no"}
    at = truth.start_ns + round(changes[0]["at_s"] * S)
    sides: tuple[list[Attempt], list[Attempt]] = ([], [])
    for one in truth.attempts:
        if one.get("decode_ns"):
            sides[one["scheduled_ns"] >= at].append(one)
    if min(map(len, sides)) < 12:
        return {"decode.output-growth": "may"}
    before, after = (statistics.mean(one["output_tokens"] for one in side) for side in sides)
    early, late = (statistics.median(whole_of(one) for one in side) for side in sides)
    large = after >= 1.5 * MARGIN * before and late >= 1.2 * MARGIN * early
    return {"decode.output-growth": "yes" if large else "may"}


def _clock(truth: Truth) -> dict[str, str]:
    """Clocks of two machines that tell of the same requests, and by how much they differ."""
    apart = max_apart_ns(truth.world)
    return {
        "trust.clock": "yes" if apart >= S * MARGIN else "may" if apart >= 1 * MS else "no",
    }


def max_apart_ns(world: dict[str, Any]) -> int:
    """Largest difference of two clocks that stamp the same requests, over the whole world."""
    ends: list[tuple[float, float]] = []
    for log in world["logs"]:
        if log["format"] in _STAMPED:
            skew = log.get("skew_ms", 0.0)
            ends.append((skew, skew + log.get("drift_ppm", 0.0) * world["duration_s"] * 1e-3))
    apart = [max(side) - min(side) for side in zip(*ends, strict=True)]
    return round(max(apart, default=0.0) * MS)


_STAMPED = ("stream", "spans", "emit", "requests", "gateway")
"""Logs that tell when each request began."""

RULES = (waits, _limits, loads, _prefill, _caches, _network, _metrics, _stalls, _growth, _clock)


def true_causes(truth: Truth) -> dict[str, str]:
    """Rule -> yes (must be named) or may; rules that do not hold are left out."""
    told: dict[str, str] = {}
    for rules in RULES:
        told |= {rule: said for rule, said in rules(truth).items() if said != "no"}
    if told.get("client.stalled") == "yes" and "metric.client-hold" in told:
        # A loop that is blocked also sends late: one cause, and naming its other side is right.
        told["metric.client-hold"] = "may"
    return told

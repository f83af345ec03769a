"""The moment since which a bill is higher is found whatever chance does, not for one seed alone."""

from __future__ import annotations

from collections import defaultdict

import pytest
from cases.b1_spike import (
    DAY,
    FAR,
    HOUR,
    HOURS_AT,
    SHORT_AT,
    STEP_AT,
    T0,
    longer,
    thinking,
    traffic,
    unread,
    usd,
    written,
)
from deep import some_of

from analyzer.analyses.cost import step

INPUT_AT = T0 + 9 * DAY + 15 * HOUR
MANY_AT = T0 + 6 * DAY
RISES = {
    "reads": (lambda seed: traffic(unread(0.25), seed=seed), STEP_AT),
    "prompts": (
        lambda seed: traffic(longer(prompt=2.1), seed=seed, days=14, since_ns=INPUT_AT), INPUT_AT,
    ),
    "answers": (lambda seed: traffic(longer(output=4), seed=seed, a_day=30), STEP_AT),
    "reasoning": (
        lambda seed: thinking(traffic(seed=seed, a_day=40), STEP_AT, 900)[0], STEP_AT,
    ),
    "long_writes": (
        lambda seed: written(traffic(share=0.35, seed=seed), long_since=STEP_AT), STEP_AT,
    ),
    "two_days": (
        lambda seed: traffic(
            longer(output=3.5), days=2, a_day=160, since_ns=SHORT_AT, seed=seed, night=0.8
        ),
        SHORT_AT,
    ),
    "hours": (
        lambda seed: traffic(
            unread(0.1), days=0.4, a_day=900, start_ns=T0 + 8 * HOUR, since_ns=HOURS_AT, seed=seed
        ),
        HOURS_AT,
    ),
    "calls": (lambda seed: traffic(more=4, seed=seed, since_ns=MANY_AT), MANY_AT),
}  # fmt: skip
QUIET = {
    "nothing": lambda seed: traffic(since_ns=FAR, seed=seed),
    "half_as_many_again": lambda seed: traffic(more=1.5, seed=seed),
    "cheaper": lambda seed: traffic(longer(prompt=0.4), seed=seed),
}


def found(calls):
    """The rise in stretches of a minute, or of a quarter of an hour beyond three days."""
    times = [one.at_ns for one in calls]
    bin_ns = HOUR // 4 if max(times) - min(times) > 3 * DAY else HOUR // 60
    bins = defaultdict(list)
    for one in calls:
        bins[one.at_ns - one.at_ns % bin_ns].append(one)
    told = [
        {
            "start_ns": start, "bin_ns": bin_ns, "requests": len(some),
            "operations": float(len(some)), "usd": sum(map(usd, some)),
            "last_ns": max(one.at_ns for one in some),
        }
        for start, some in sorted(bins.items())
    ]  # fmt: skip
    return list(step.rows(told))


@pytest.mark.parametrize("kind", RISES)
@pytest.mark.parametrize("seed", some_of(40, 6))
def test_a_rise_is_found_at_its_moment(kind, seed):
    make, at_ns = RISES[kind]
    calls = make(100 + seed)
    (row,) = found(calls)
    wanted = sum(one.at_ns >= at_ns for one in calls)
    # A call or a few at the edge may be as cheap as those before, or as dear as those since.
    assert sum(one.at_ns >= row[2] for one in calls) == pytest.approx(wanted, rel=0.03)


@pytest.mark.parametrize("kind", QUIET)
@pytest.mark.parametrize("seed", some_of(40, 6))
def test_chance_alone_is_no_rise(kind, seed):
    assert not found(QUIET[kind](100 + seed))

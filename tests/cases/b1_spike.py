"""The bill rises from one hour to the next and stays up.

main: ten days of an assistant with a rhythm of day and night. On the seventh the prompt no longer
begins as it did: of each prompt 19 % is read from the cache instead of 78 %. Calls stay.

twin: half as many calls again from then on, each as dear as ever.

The variants: longer prompts, longer answers, reasoning, a dearer model, retries, cache writes that
last longer, a list price that changed, many times the calls, one route or one user behind it; two
days by the hour; a few hours. The innocent ones: rhythms of the day and of the week in what a call
costs, a slow rise, a day with one long session, a cheaper time since.
"""

from __future__ import annotations

import json
import random
from dataclasses import replace
from decimal import Decimal
from math import sin, tau
from typing import TYPE_CHECKING, Any

from analyzer.simulate.writers import NS, openai_usage, request_record, write_lines
from cases._build import at, expect, silent
from cases._calls import (
    LARGE,
    OTHER,
    PRICES,
    SMALL,
    Call,
    anthropic_form,
    in_order,
    openai_form,
    records,
    spend_logs,
    transcripts,
    writer,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

RULE = "cost.spike"
T0 = at("2026-03-02T00:00:00Z")
HOUR, DAY = 3_600 * NS, 86_400 * NS
STEP_AT = T0 + 6 * DAY + 9 * HOUR
FAR = T0 + 99 * DAY


def same(one: Call) -> Call:
    """Nothing changes."""
    return one


def traffic(
    change: Callable[[Call], Call] = same, *, days: float = 10, a_day: int = 48,
    since_ns: int = STEP_AT, start_ns: int = T0, more: float = 1, seed: int = 3,
    prompt: int = 9_000, share: float = 0.78, model: str = LARGE, name: str = "s",
    night: float = 0.7, **told: Any,
) -> list[Call]:  # fmt: skip
    """Calls with a rhythm of the day, changed from a time on, and ``more`` of them then."""
    rng = random.Random(seed)
    calls: list[Call] = []
    when = float(start_ns)
    while when < start_ns + days * DAY:
        hour = (when - T0) / HOUR % 24
        pace = a_day * (1 + night * sin((hour - 9) / 24 * tau))
        pace *= more if when >= since_ns else 1
        when += rng.expovariate(pace / DAY)
        size = round(prompt * rng.uniform(0.7, 1.3))
        one = Call(
            at_ns=round(when), session=f"{name}{len(calls):05d}", prompt=size,
            read=round(size * share * rng.uniform(0.94, 1.06)), output=rng.randint(150, 450),
            model=model, told=tuple(told.items()), woken=True, turn=1,
        )  # fmt: skip
        calls.append(change(one) if when >= since_ns else one)
    return calls


def usd(one: Call) -> Decimal:
    """What a call costs by the list."""
    price = {name: Decimal(text) for name, text in PRICES[one.model].items()}
    write = price.get("cache_write_long" if one.long else "cache_write_short", Decimal(0))
    return (
        one.fresh * price["input"] + one.read * price["cache_read"] + one.written * write
        + one.output * price["output"]
    ) / 1_000_000  # fmt: skip


def rise(calls: Iterable[Call], since_ns: int = STEP_AT) -> Decimal:
    """What the time since cost more than the same hours of the week before, else the days before.

    Else than as long a time of all before.
    """
    calls = list(calls)
    first, end = min(one.at_ns for one in calls), max(one.at_ns for one in calls) + 1
    new = sum(usd(one) for one in calls if one.at_ns >= since_ns)
    for period in (7 * DAY, DAY):
        back = -(-(end - since_ns) // period) * period
        if since_ns - back >= first:
            return new - sum(usd(one) for one in calls if since_ns <= one.at_ns + back < end)
    old = sum(usd(one) for one in calls if one.at_ns < since_ns)
    return new - old * Decimal(end - since_ns) / Decimal(since_ns - first)


NOT = ["cost.hidden-attempts", "cost.long-context-tier", "cost.unpriced", "trust.duplicate-usage"]


def spike(
    calls: list[Call],
    lead: str,
    *,
    since_ns: int = STEP_AT,
    size: Decimal | None = None,
    **more: Any,
) -> dict[str, Any]:
    """What the rule must say of calls that are dearer since a time."""
    size = rise(calls, since_ns) if size is None else size
    touched = [one for one in calls if one.at_ns >= since_ns]
    told = expect(RULE, "none", len(touched), float(size), "usd", NOT)
    onset = (max(one.at_ns for one in calls if one.at_ns < since_ns), touched[0].at_ns)
    return told | {
        "cost_usd": size, "cost_tolerance": 0.05, "onset_ns": onset, "said": [lead],
    } | more  # fmt: skip


def unread(share: float) -> Callable[[Call], Call]:
    """So much of it is read."""
    return lambda one: replace(one, read=round(one.read * share))


def longer(prompt: float = 1, output: float = 1) -> Callable[[Call], Call]:
    """More of each, the same share read."""
    return lambda one: replace(
        one, prompt=round(one.prompt * prompt), read=round(one.read * prompt),
        output=round(one.output * output),
    )  # fmt: skip


def written(calls: Iterable[Call], *, long_since: int = FAR) -> list[Call]:
    """What is not read is written, for an hour from a time on."""
    return [
        replace(one, written=one.prompt - one.read - 40, long=one.at_ns >= long_since)
        for one in calls
    ]


def thinking(calls: Iterable[Call], since_ns: int, tokens: int) -> tuple[list[Call], list[str]]:
    """Reasoning that answers take from a time on, inside the output."""
    out, lines = [], []
    for k, one in enumerate(in_order(calls)):
        thought = tokens if one.at_ns >= since_ns else tokens // 8
        one = replace(one, output=one.output + thought)
        out.append(one)
        usage = openai_usage(one.prompt, one.output, cached=one.read, reasoning=thought)
        lines.append(
            request_record(
                f"call-{k:05d}", vantage="client", started_ns=one.at_ns, usage=usage, status=200,
                **one.more(),
            )
        )  # fmt: skip
    return out, lines


def retried(calls: list[Call], since_ns: int) -> tuple[list[Call], list[str]]:
    """Two in three operations are tried twice from a time on; all attempts are billed."""
    out, lines = [], []
    for k, one in enumerate(calls):
        attempts = 2 if one.at_ns >= since_ns and k % 3 else 1
        for n in range(attempts):
            own = replace(one, at_ns=one.at_ns + n * 40 * NS)
            out.append(own)
            lines.append(
                request_record(
                    f"op-{k:05d}-{n}", vantage="gateway", started_ns=own.at_ns, status=200,
                    operation_id=f"op-{k:05d}", attempt=n + 1, usage=openai_form(own),
                    **own.more(),
                )
            )  # fmt: skip
    return in_order(out), lines


def mixed(share: float, since_ns: int = STEP_AT) -> list[Call]:
    """A tenth goes to the large model before, ``share`` since."""
    rng = random.Random(19)

    def change(one: Call) -> Call:
        part = share if one.at_ns >= since_ns else 0.1
        return replace(one, model=LARGE if rng.random() < part else SMALL)

    return [change(one) for one in traffic(a_day=90)]


def dearer(folder: Path) -> None:
    """The list price of input rises on a date."""
    write_lines(folder / "usage.jsonl", records(REPRICED, openai_form)["usage.jsonl"])
    dated = [
        {"input": price, "cache_read": "0.14", "output": "7.00"} | day
        for price, day in (("1.40", {}), ("3.90", {"valid_from": NEW_DAY}))
    ]
    (folder / "prices.json").write_text(
        json.dumps({"currency": "USD", "unit": "per_million_tokens", "models": {OTHER: dated}})
    )


NEW_DAY = "2026-03-09T00:00:00Z"
NEW_DAY_NS = at(NEW_DAY)
REPRICED = traffic(model=OTHER, since_ns=NEW_DAY_NS)


def _repriced_rise() -> Decimal:
    more = Decimal("2.50") / 1_000_000
    fee = sum(one.fresh for one in REPRICED if one.at_ns >= NEW_DAY_NS) * more
    return rise(REPRICED, NEW_DAY_NS) + fee


def lines(name: str, rows: list[str]) -> Callable[[Path], None]:
    """A case of these lines and the usual prices."""
    return writer({name: rows})


MAIN = traffic(unread(0.25))
TWIN = traffic(more=1.5)
INPUT = traffic(longer(prompt=2.1), seed=5, days=14, since_ns=T0 + 9 * DAY + 15 * HOUR)
OUTPUT = traffic(longer(output=4), seed=30, a_day=30)
THOUGHT, THOUGHT_LINES = thinking(traffic(seed=7, a_day=40), STEP_AT, 900)
RETRIED, RETRIED_LINES = retried(traffic(seed=8), STEP_AT)
MIXED = mixed(0.75)
LONG = written(traffic(share=0.35, seed=9), long_since=STEP_AT)
WRITTEN = written(traffic(unread(0.2), seed=10, share=0.9))
MANY = traffic(more=3.4, seed=12, since_ns=T0 + 6 * DAY)
# Twice the users from one morning to the next, each as dear as before.
TWICE = [
    Call(
        at_ns=T0 + day * DAY + 8 * HOUR + k * (10 * HOUR // count), session=f"d{day}-{k}",
        prompt=5_000 + 29 * (k * 7 % 11), output=220, woken=True, turn=1,
    )
    for day, count in enumerate((20, 20, 20, 20, 20, 40, 40, 40, 40))
    for k in range(count)
]  # fmt: skip
ROUTED = in_order([
    *traffic(a_day=30, name="c", route="chat", since_ns=FAR),
    *traffic(longer(prompt=3), a_day=24, name="r", route="report", seed=14),
])  # fmt: skip
SHORT_AT = T0 + 29 * HOUR + 20 * 60 * NS
SHORT = traffic(longer(output=3.5), days=2, a_day=160, since_ns=SHORT_AT, seed=15, night=0.8)
HOURS_AT = T0 + 14 * HOUR
HOURS = traffic(
    unread(0.1), days=0.4, a_day=900, start_ns=T0 + 8 * HOUR, since_ns=HOURS_AT, seed=16
)

# Nights are few long jobs of the large model, at every night.
NIGHTS = in_order([
    *traffic(a_day=60, model=SMALL, since_ns=FAR),
    *(
        one
        for one in traffic(longer(prompt=4), a_day=40, since_ns=T0, name="n", seed=21)
        if one.at_ns % DAY < 6 * HOUR or one.at_ns % DAY >= 21 * HOUR
    ),
])  # fmt: skip
# Batches run at weekends: 7, 8, 14 and 15 March; the log ends with one.
WEEKS = in_order([
    *(one for one in traffic(days=14, since_ns=FAR) if (one.at_ns // DAY + 3) % 7 < 5),
    *(
        one
        for one in traffic(longer(prompt=4), days=14, since_ns=T0, name="w", seed=22)
        if (one.at_ns // DAY + 3) % 7 >= 5
    ),
])  # fmt: skip
ONE_WEEK = [one for one in WEEKS if one.at_ns < T0 + 7 * DAY]
SLOW = [
    longer(prompt=1 + (one.at_ns - T0) / (9 * DAY))(one) for one in traffic(since_ns=FAR, seed=23)
]
GROWING = traffic(since_ns=FAR, seed=24)
GROWING = [one for k, one in enumerate(GROWING) if (k * 7 % 10) < (one.at_ns - T0) / DAY]
LESS = traffic(longer(prompt=0.4), seed=25)


def _one_session() -> list[Call]:
    """One day an agent works through a repository, then it is over."""
    calls = traffic(since_ns=FAR, seed=26)
    start = T0 + 5 * DAY + 10 * HOUR
    long = [
        Call(
            at_ns=start + k * 100 * NS, session="agent", prompt=40_000 + 900 * k,
            read=38_000 + 900 * k, output=300, turn=k + 1, woken=not k,
        )
        for k in range(90)
    ]  # fmt: skip
    return in_order([*calls, *long])


def _one_at_the_end() -> list[Call]:
    """The same on the last day, at a fifth of the size: what the day cost is its doing alone."""
    calls = traffic(since_ns=FAR, seed=27, days=8)
    start = T0 + 7 * DAY + 4 * HOUR
    long = [
        Call(
            at_ns=start + k * 1_500 * NS, session="agent", prompt=15_000 + 300 * k,
            read=13_000 + 300 * k, output=300, turn=k + 1, woken=not k,
        )
        for k in range(45)
    ]  # fmt: skip
    return in_order([*calls, *long])


_TWIN = silent([RULE, *NOT])
CASES: dict[str, tuple[Callable[[Path], None], dict[str, Any]]] = {
    "main": (writer(records(MAIN, openai_form)), spike(MAIN, "cache-read share")),
    "twin": (writer(records(TWIN, openai_form)), _TWIN),
    "input": (
        writer(records(INPUT, openai_form)),
        spike(INPUT, "input per call", since_ns=T0 + 9 * DAY + 15 * HOUR),
    ),
    "output": (
        writer(records(OUTPUT, openai_form)), spike(OUTPUT, "visible output per call"),
    ),
    "reasoning": (lines("u.jsonl", THOUGHT_LINES), spike(THOUGHT, "reasoning per call")),
    "retries": (lines("g.jsonl", RETRIED_LINES), spike(RETRIED, "retries")),
    "models": (writer(records(MIXED, openai_form)), spike(MIXED, "model mix")),
    "longer_writes": (
        writer(transcripts(LONG)),
        spike(LONG, "cache writes", onset_ns=(STEP_AT, STEP_AT + HOUR)),
    ),
    "written_again": (
        writer(records(WRITTEN, anthropic_form)), spike(WRITTEN, "cache-read share"),
    ),
    "gateway": (writer(spend_logs(WRITTEN)), spike(WRITTEN, "cache-read share")),
    "price": (
        dearer, spike(REPRICED, "price", since_ns=NEW_DAY_NS, size=_repriced_rise()),
    ),
    "many_calls": (
        writer(records(MANY, openai_form)),
        spike(MANY, "calls", since_ns=T0 + 6 * DAY),
    ),
    "one_route": (writer(records(ROUTED, openai_form)), spike(ROUTED, "input per call")),
    "two_days": (
        writer(records(SHORT, openai_form)),
        spike(SHORT, "visible output per call", since_ns=SHORT_AT),
    ),
    "hours": (
        writer(records(HOURS, openai_form)), spike(HOURS, "cache-read share", since_ns=HOURS_AT),
    ),
    "twin_twice_the_calls": (writer(records(TWICE, openai_form)), _TWIN),
    "twin_nights": (writer(records(NIGHTS, openai_form)), _TWIN),
    "twin_weekends": (writer(records(WEEKS, openai_form)), _TWIN),
    "twin_one_weekend": (writer(records(ONE_WEEK, openai_form)), _TWIN),
    "twin_slow": (writer(records(SLOW, openai_form)), _TWIN),
    "twin_growing": (writer(records(GROWING, openai_form)), _TWIN),
    "twin_less": (writer(records(LESS, openai_form)), _TWIN),
    "twin_one_session": (writer(records(_one_session(), openai_form)), _TWIN),
    "twin_session_at_the_end": (writer(records(_one_at_the_end(), openai_form)), _TWIN),
}  # fmt: skip

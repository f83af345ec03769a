"""The bridge between two bills: exact for any windows, and right in every direction by itself."""

from __future__ import annotations

import json
import random
from decimal import Decimal
from fractions import Fraction
from itertools import permutations

import pytest
from deep import some_of
from helpers import case_of, engine_of

from analyzer.analyses.cost import step
from analyzer.bridging import exact
from analyzer.bridging.exact import FACTORS, KINDS, Sums, Use
from analyzer.bridging.groups import split
from analyzer.bridging.money import in_money, to_money
from analyzer.bridging.told import sentence
from analyzer.contract.types import CannotSay
from analyzer.questions.bridge import between, bridge
from analyzer.report.values import quantity
from analyzer.runbook._evaluate import outcome_of
from analyzer.runbook._play import play_named
from analyzer.simulate.writers import prices

ONE = (Fraction(1), Fraction(1))
ROUNDS = 60
DAY = 86_400


def _use(rng, model, lane, calls=None):
    calls = calls or rng.randint(1, 60)
    return Use(
        model=model, lane=lane, calls=calls,
        operations=Fraction(rng.randint(1, calls * 12), 12),
        tokens={kind: rng.choice((0, rng.randint(1, 10**6))) for kind in KINDS},
        prices={kind: Fraction(rng.randint(1, 40_000), 10**9) for kind in KINDS},
        tools_usd=Fraction(rng.choice((0, rng.randint(1, 900))), 1000),
        media_usd=Fraction(rng.choice((0, 0, rng.randint(1, 900))), 1000),
    )  # fmt: skip


def _window(rng, groups=("a", "b", "c")):
    """Group -> its uses; models, lanes and groups come and go."""
    return {
        group: [
            _use(rng, f"m{m}", f"l{n}") for m in range(3) for n in range(2) if rng.random() < 0.7
        ]
        for group in groups
    }


def _flat(groups):
    return [use for uses in groups.values() for use in uses]


@pytest.mark.parametrize("seed", some_of(6, fast=2))
def test_the_parts_add_up_for_any_windows(seed):
    rng = random.Random(seed)
    for _ in range(ROUNDS):
        before, after = _flat(_window(rng)), _flat(_window(rng))
        scale = rng.choice((ONE, (Fraction(1, 7), Fraction(2, 3))))
        out = exact.bridge(before, after, scale)
        assert out.usd == (
            sum(one.usd for one in before) * scale[0], sum(one.usd for one in after) * scale[1],
        )  # fmt: skip
        assert sum(out.factors.values()) == out.difference
        assert sum(out.by_model.values()) == out.difference
        money = in_money(out.factors)
        assert sum(money.values()) == to_money(out.difference)
        assert all(abs(Fraction(money[name]) - out.factors[name]) < 2e-15 for name in FACTORS)


@pytest.mark.parametrize("seed", some_of(3, fast=1))
def test_windows_swapped_give_the_negative(seed):
    rng = random.Random(100 + seed)
    for _ in range(ROUNDS):
        before, after = _flat(_window(rng)), _flat(_window(rng))
        there, back = exact.bridge(before, after), exact.bridge(after, before)
        assert {name: -one for name, one in back.factors.items()} == there.factors
        swapped = in_money(back.factors)
        assert {name: -one for name, one in swapped.items()} == in_money(there.factors)


@pytest.mark.parametrize("seed", some_of(3, fast=1))
def test_how_use_is_grouped_changes_no_total(seed):
    rng = random.Random(200 + seed)
    for _ in range(ROUNDS // 2):
        before, after = _window(rng), _window(rng)
        whole = exact.bridge(_flat(before), _flat(after))
        groups = {name: (Sums(before[name], ONE[0]), Sums(after[name], ONE[1])) for name in before}
        parts = split(whole, groups)
        for factor in FACTORS:
            told = sum((usd for (of, _), usd in parts.items() if of == factor), Fraction())
            assert told == whole.factors[factor]
        # Halves of each group, as two groups of their own.
        halves = [_halved(rng, use) for use in _flat(before)]
        again = exact.bridge([half for pair in halves for half in pair], _flat(after))
        assert again.factors == whole.factors


def _halved(rng, use):
    share = Fraction(rng.randint(1, 9), 10)
    tokens = {kind: rng.randint(0, count) for kind, count in use.tokens.items()}
    calls = rng.randint(0, use.calls)
    first = Use(
        use.model, use.lane, calls, use.operations * share, tokens, use.prices,
        use.tools_usd * share, use.media_usd * share,
    )  # fmt: skip
    rest = {kind: use.tokens[kind] - count for kind, count in tokens.items()}
    second = Use(
        use.model, use.lane, use.calls - calls, use.operations * (1 - share), rest, use.prices,
        use.tools_usd * (1 - share), use.media_usd * (1 - share),
    )  # fmt: skip
    return first, second


def test_a_model_that_costs_more_has_that_in_its_parts():
    rng = random.Random(5)
    for _ in range(ROUNDS):
        before, after = _flat(_window(rng)), _flat(_window(rng))
        out = exact.bridge(before, after)
        for model in {one.model for one in before + after}:
            told = sum((usd for (_, of), usd in out.by_model.items() if of == model), Fraction())
            cost = [sum(u.usd for u in side if u.model == model) for side in (before, after)]
            assert told == cost[1] - cost[0]


# --- one factor alone ----------------------------------------------------------------------------

LISTS = {
    "big": {"fresh": 3, "cached": 1, "short": 4, "long": 6, "visible": 15, "reasoning": 15},
    "small": {"fresh": 1, "cached": 0.5, "short": 2, "long": 3, "visible": 5, "reasoning": 6},
}


def _of(model, *, operations=100, attempts=2, prompt=6_000, read=0.5, short=0.4, long=0.1,
        visible=300, reasoning=80, list_=1, tools=0, media=0, lane="standard"):  # fmt: skip
    """All use of one model, from its figures: the way back from what the bridge takes apart."""
    calls = operations * attempts
    whole = calls * prompt
    cached = round(whole * read)
    rest = whole - cached
    shorts, longs = round(rest * short), round(rest * long)
    counts = (rest - shorts - longs, cached, shorts, longs, calls * visible, calls * reasoning)
    return Use(
        model=model, lane=lane, calls=calls, operations=Fraction(operations),
        tokens=dict(zip(KINDS, counts, strict=True)),
        prices={k: Fraction(v) * list_ / 10**6 for k, v in LISTS[model].items()},
        tools_usd=Fraction(tools * calls), media_usd=Fraction(media * calls),
    )  # fmt: skip


BEFORE = [_of("big"), _of("small", operations=300, attempts=1)]
ALONE = {
    "calls": [_of("big", operations=140), _of("small", operations=420, attempts=1)],
    "retries": [_of("big", attempts=3), _of("small", operations=300, attempts=2)],
    "model mix": [_of("big", operations=250), _of("small", operations=150, attempts=1)],
    "input per call": [_of("big", prompt=9_000), BEFORE[1]],
    "cache-read share": [_of("big", read=0.1), _of("small", operations=300, attempts=1, read=0.9)],
    "cache writes": [_of("big", short=0.1, long=0.7), BEFORE[1]],
    "visible output per call": [
        _of("big", visible=900), _of("small", operations=300, attempts=1, visible=100),
    ],
    "reasoning per call": [_of("big", reasoning=0), BEFORE[1]],
    "price": [_of("big", list_=2), BEFORE[1]],
    "server tools": [_of("big", tools=1), BEFORE[1]],
    "sound and pictures": [BEFORE[0], _of("small", operations=300, attempts=1, media=1)],
}  # fmt: skip


@pytest.mark.parametrize("factor", ALONE)
def test_one_factor_alone_gets_all(factor):
    for before, after in ((BEFORE, ALONE[factor]), (ALONE[factor], BEFORE)):
        out = exact.bridge(before, after)
        assert out.difference
        assert out.factors == {name: out.difference * (name == factor) for name in FACTORS}


def test_another_tier_alone_gets_all():
    half = _of("big", operations=50)
    cheap = Use(
        "big", "batch", half.calls, half.operations, half.tokens,
        {kind: price / 2 for kind, price in half.prices.items()},
    )  # fmt: skip
    out = exact.bridge([_of("big")], [half, cheap])
    assert out.factors == {name: out.difference * (name == "price tier") for name in FACTORS}
    # A list that moves at once for both is a price, whatever the tiers.
    dearer = [
        Use(one.model, one.lane, one.calls, one.operations, one.tokens,
            {kind: price * 3 for kind, price in one.prices.items()})
        for one in (half, cheap)
    ]  # fmt: skip
    out = exact.bridge([half, cheap], dearer)
    assert out.factors == {name: out.difference * (name == "price") for name in FACTORS}


def test_a_model_that_comes_and_one_that_goes_are_a_change_of_the_mix():
    out = exact.bridge([_of("small")], [_of("big")])
    assert out.factors == {name: out.difference * (name == "model mix") for name in FACTORS}


def test_nothing_before_is_all_calls():
    for before, after in (([], BEFORE), (BEFORE, [])):
        out = exact.bridge(before, after)
        assert out.factors == {name: out.difference * (name == "calls") for name in FACTORS}
    assert not any(exact.bridge([], []).factors.values())


def test_the_parts_are_means_over_all_orders():
    """By hand for three factors: each order in which they could have changed, one after another."""
    figures = {"operations": (100, 130), "prompt": (6_000, 7_500), "read": (0.5, 0.2)}
    names = {"operations": "calls", "prompt": "input per call", "read": "cache-read share"}

    def cost(**now):
        return _of("big", **now).usd

    exactly = dict.fromkeys(figures, Fraction())
    orders = list(permutations(figures))
    for order in orders:
        now = {name: old for name, (old, _) in figures.items()}
        for name in order:
            was = cost(**now)
            now[name] = figures[name][1]
            exactly[name] += (cost(**now) - was) / len(orders)
    out = exact.bridge(
        [_of("big", **{name: old for name, (old, _) in figures.items()})],
        [_of("big", **{name: new for name, (_, new) in figures.items()})],
    )
    for name, factor in names.items():
        assert out.factors[factor] == exactly[name]


# --- money and words -----------------------------------------------------------------------------


def test_what_rounding_leaves_goes_to_those_that_lost_most_by_it():
    unit = Fraction(1, 10**15)
    parts = {"a": unit * Fraction(1, 2), "b": unit * Fraction(3, 4), "c": unit * Fraction(3, 4)}
    assert in_money(parts | {"d": Fraction(0)}) == {
        "a": 0, "b": Decimal("1E-15"), "c": Decimal("1E-15"), "d": 0,
    }  # fmt: skip
    assert to_money(Fraction(10**30 + 1, 3)) == Decimal(
        "333333333333333333333333333333.666666666666667"
    )


ROW = {"factor": "", "cost_usd": Decimal(0), "before": None, "after": None, "unit": ""}
READ = ROW | {
    "factor": "cache-read share", "cost_usd": Decimal("8.10"), "before": 0.81, "after": 0.22,
}  # fmt: skip
OUT = ROW | {
    "factor": "visible output per call",
    "cost_usd": Decimal("1.30"),
    "before": 200,
    "after": 240,
}
CALLS = ROW | {"factor": "calls", "cost_usd": Decimal("-2.00"), "before": 1000, "after": 990}
MIX = ROW | {"factor": "model mix", "cost_usd": Decimal("0.01")}


def test_the_classic_case_in_one_sentence():
    calls = (Fraction(1000), Fraction(990))
    assert sentence([READ, CALLS, OUT, MIX], Decimal("7.41"), Decimal("10"), calls) == (
        "The bill rose by $7.41 (+74 %) though calls stayed: cache-read share fell from 81 % to "
        "22 % (+$8.10); against it the number of calls fell from 1,000 to 990 (-$2.00)."
    )
    assert sentence([], Decimal(0), Decimal(5), calls) == "The bill did not change."


def _bins(levels, operations=12):
    """Stretches of an hour from Monday noon on, each with what an operation costs in it."""
    start = (1_780_315_200 // 604_800 * 604_800 + 4 * 86_400 + 12 * 3_600) * 10**9
    return [
        {
            "start_ns": start + k * 3_600 * 10**9, "bin_ns": 3_600 * 10**9, "requests": operations,
            "operations": float(operations), "usd": Decimal(str(level)) * operations,
            "last_ns": start + (k + 1) * 3_600 * 10**9 - 1,
        }
        for k, level in enumerate(levels)
    ]  # fmt: skip


def _found(levels):
    return list(step.rows(_bins(levels)))


def test_a_step_is_found_at_its_hour():
    wobble = [1 + 0.04 * (k * 7 % 5) for k in range(60)]
    levels = wobble[:40] + [one * 1.6 for one in wobble[40:]]
    (row,) = _found(levels)
    assert row[2] == _bins(levels)[40]["start_ns"]
    assert (row[4], row[6]) == ("cost per call", True)
    assert row[5] == pytest.approx(1.6, rel=0.02)
    # The same hours of the day before: less than two days are left.
    assert (row[2] - row[0], row[3] - row[1]) == (DAY * 10**9, DAY * 10**9)


@pytest.mark.parametrize(
    "levels",
    [
        [1 + 0.04 * (k * 7 % 5) for k in range(60)],  # nothing
        [1 + k / 60 for k in range(60)],  # a slow rise
        [3 if (k + 12) % 24 < 7 else 1 for k in range(67)],  # nights, the log ends with one
        [1] * 30 + [1.15] * 30,  # too little
        [1] * 30 + [2] * 10 + [1] * 20,  # over again
        [2] * 30 + [1] * 30,  # cheaper
        [1, 2],  # nothing to compare
    ],
)
def test_what_is_no_step(levels):
    assert not _found(levels)


# --- on a case -----------------------------------------------------------------------------------

START = 1_780_000_000
LIST = {
    "m": {"input": "2.00", "cache_read": "0.20", "cache_write_short": "2.50", "output": "8.00"},
    "dear": {"input": "6.00", "cache_read": "0.60", "output": "30.00"},
}


def _record(k, at, model="m", **more):
    usage = more.pop("usage", None) or {
        "prompt_tokens": 1_000 + 37 * k % 500, "completion_tokens": 90,
        "prompt_tokens_details": {"cached_tokens": 400 if at < DAY else 100},
    }  # fmt: skip
    return {
        "request_id": f"q{k}", "vantage": "client", "model": model, "usage": usage, "status": 200,
        "started_at": START + at,
    } | more  # fmt: skip


def _case(tmp_path, records):
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "records.jsonl").write_text("".join(json.dumps(one) + "\n" for one in records))
    (folder / "prices.json").write_text(prices(LIST))
    return case_of(folder, tmp_path / "case.duckdb")


NS = 1_000_000_000
BASE, LATER = ((START + a * DAY) * NS for a in (0, 1)), ((START + a * DAY) * NS for a in (1, 2))
WINDOWS = (tuple(BASE), tuple(LATER))


def _cost(engine, window):
    return engine.value(
        "SELECT SUM(c.usd) FROM cost_request AS c JOIN resolve_request AS q "
        "ON c.request_key = q.request_key "
        f"WHERE q.start_ns >= {window[0]} AND q.start_ns < {window[1]}"
    )


def test_a_case_adds_up_to_the_last_digit(tmp_path):
    rng = random.Random(9)
    records = [
        _record(
            k, rng.randint(0, 2 * DAY - 1), rng.choice(("m", "m", "dear")), route=rng.choice("xyz"),
            session_id=f"s{k % 70}", tags={"user": f"anne{k % 3}"},
            operation_id=f"o{k // 2}" if k % 4 < 2 else None,
        )
        for k in range(300)
    ]  # fmt: skip
    with engine_of(_case(tmp_path, records)) as engine:
        table = bridge(engine, *WINDOWS)
        cost = [_cost(engine, one) for one in WINDOWS]
        back = {row["factor"]: row["cost_usd"] for row in bridge(engine, *WINDOWS[::-1]).rows}
    assert sum(row["cost_usd"] for row in table.rows) == cost[1] - cost[0]
    assert back == {row["factor"]: -row["cost_usd"] for row in table.rows}
    assert sum(row["share"] for row in table.rows) == pytest.approx(1)
    assert set(FACTORS[:9]) <= {row["factor"] for row in table.rows} <= set(FACTORS)
    sizes = [abs(row["cost_usd"]) for row in table.rows]
    assert sizes == sorted(sizes, reverse=True)
    assert "anne" not in repr(table)


def test_reads_that_fall_are_the_whole_difference_and_their_route_drove_it(tmp_path):
    def usage(k, cached):
        return {
            "prompt_tokens": 2_000, "completion_tokens": 50,
            "prompt_tokens_details": {"cached_tokens": cached},
        }  # fmt: skip

    records = [
        _record(
            k, 300 * k, route="chat" if k % 2 else "job", tags={"user": "anne" if k % 2 else "bo"},
            usage=usage(k, 1_500 if k % 2 or 300 * k < DAY else 0),
        )
        for k in range(576)
    ]  # fmt: skip
    with engine_of(_case(tmp_path, records)) as engine:
        found = between(engine, *WINDOWS)
    lead, *rest = found.rows
    # 144 calls read 1,500 tokens less: 1.80 dollars a million each.
    assert (lead["factor"], lead["cost_usd"]) == ("cache-read share", Decimal("0.3888"))
    assert (lead["before"], lead["after"]) == (0.75, 0.375)
    assert lead["drivers"].startswith("route job +$0.3888; user ")
    assert all(not row["cost_usd"] for row in rest)
    assert found.sentence == (
        "The bill rose by $0.3888 (+79 %) though calls stayed: cache-read share fell from 75 % to "
        "38 % (+$0.3888)."
    )


def test_attempts_of_an_operation_are_retries_no_calls(tmp_path):
    records = [_record(k, 600 * k, operation_id=f"o{k}", attempt=1) for k in range(144)]
    for k in range(144):
        at = DAY + 600 * k
        records += [
            _record(1_000 + 3 * k + n, at + 60 * n, operation_id=f"p{k}", attempt=n + 1)
            for n in range(3)
        ]
    for one in records:
        one["usage"] = {"prompt_tokens": 1_000, "completion_tokens": 100}
    with engine_of(_case(tmp_path, records)) as engine:
        rows = {row["factor"]: row for row in bridge(engine, *WINDOWS).rows}
    # 288 attempts more, of 0.0028 dollars each.
    assert rows["retries"]["cost_usd"] == Decimal("0.8064")
    assert (rows["retries"]["before"], rows["retries"]["after"]) == (1, 3)
    assert rows["calls"]["cost_usd"] == 0
    assert rows["calls"]["before"] == rows["calls"]["after"] == 144


def test_what_has_no_price_is_named_in_tokens(tmp_path):
    plain = {"prompt_tokens": 1_000, "completion_tokens": 100}
    records = [_record(k, 3_000 * k, usage=plain) for k in range(56)]
    records += [_record(99, DAY + 5, "who-knows-7", usage=plain)]
    with engine_of(_case(tmp_path, records)) as engine:
        table = bridge(engine, *WINDOWS)
    assert sum(row["cost_usd"] for row in table.rows) == Decimal("0.0028") * (27 - 29)
    assert "1,100 tokens have no known price" in " ".join(table.notes)


def test_windows_of_unequal_length(tmp_path):
    plain = {"prompt_tokens": 1_000, "completion_tokens": 100}
    records = [_record(k, 600 * k, usage=plain) for k in range(144 * 3)]
    long = (WINDOWS[1][0], WINDOWS[1][0] + 2 * DAY * NS)
    with engine_of(_case(tmp_path, records)) as engine:
        plainly, daily = (bridge(engine, WINDOWS[0], long, per=per) for per in (None, "day"))
    assert {row["factor"]: row["cost_usd"] for row in plainly.rows if row["cost_usd"]} == {
        "calls": Decimal("0.4032")
    }
    assert not any(row["cost_usd"] for row in daily.rows)
    assert any("compared as they are: 1 and 2 days" in note for note in plainly.notes)
    assert not any("compared as they are" in note for note in daily.notes)


def test_an_empty_window_is_said(tmp_path):
    with engine_of(_case(tmp_path, [_record(k, 60 * k) for k in range(5)])) as engine:
        table = bridge(engine, *WINDOWS)
    assert table.notes == ("The window holds no priced request: there is nothing to compare with.",)
    assert sum(row["cost_usd"] for row in table.rows) < 0


def test_a_log_of_an_hour_cannot_say(tmp_path):
    with engine_of(_case(tmp_path, [_record(k, 60 * k) for k in range(60)])) as engine:
        outcome = outcome_of(play_named("cost.spike"), engine, quantity)
    assert isinstance(outcome, CannotSay)
    assert "two periods" in outcome.missing[0].input

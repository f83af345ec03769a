"""Growth, first prompts, compaction and what remedies are worth: by hand, on few calls each."""

from __future__ import annotations

import json
import math
import random

import pytest
from helpers import case_of, engine_of

from analyzer import api
from analyzer.analyses.turns.step import rows
from analyzer.contract.types import Filters
from analyzer.simulate.writers import NS, chunk, done, openai_usage, prices, send

START = 1_780_000_000
PRICES = {"m": {"input": "2.00", "cache_read": "0.20", "output": "8.00"}}


def _record(k, prompt, *, session=None, cached=0, output=10, at=None, **more):
    usage = {"prompt_tokens": prompt, "completion_tokens": output}
    if cached is not None:
        usage["prompt_tokens_details"] = {"cached_tokens": cached}
    return {
        "request_id": f"q{k}", "vantage": "client", "model": "m", "usage": usage,
        "session_id": session, "started_at": START + (30 * k if at is None else at),
    } | more  # fmt: skip


def _case(tmp_path, records):
    folder = tmp_path / "logs"
    folder.mkdir()
    text = "".join(json.dumps(one) + "\n" for one in records)
    (folder / "records.jsonl").write_text(text)
    (folder / "prices.json").write_text(prices(PRICES))
    return case_of(folder, tmp_path / "case.duckdb")


def _rows(db, sql):
    with engine_of(db) as engine:
        return engine.rows(sql)


def _session(prompts, name="s", first=0, **more):
    return [
        _record(first + k, prompt, session=name, **more) for k, prompt in enumerate(prompts)
    ]  # fmt: skip


def test_a_conversation_is_added_up(tmp_path):
    db = _case(tmp_path, _session([1_000, 1_500, 2_100]))
    (row,) = _rows(db, "SELECT * FROM turns_conversation")
    assert (row["calls"], row["first_tokens"], row["last_tokens"]) == (3, 1_000, 2_100)
    assert row["sent_tokens"] == 4_600
    assert row["resent_tokens"] == 1_000 + 1_500
    # Beyond the first prompt of 1,000, the last call sent 500 again.
    assert (row["history_tokens"], row["flat_tokens"]) == (500, 1_000 * 3 + 500 + 600)
    assert row["again_tokens"] == 500
    assert row["resent_ratio"] == pytest.approx(2_500 / 4_600)
    assert (row["growth_tokens"], row["call_growth_tokens"]) == (550, 550)
    assert (row["known"], row["confidence"], row["state"]) == ("told", "measured", "short")
    assert row["cached_ratio"] == 0


def test_what_a_cache_reads_is_not_computed_again(tmp_path):
    records = _session([1_000, 1_500, 2_100])
    for one, cached in zip(records, (0, 1_000, 1_200), strict=True):
        one["usage"]["prompt_tokens_details"] = {"cached_tokens": cached}
    (row,) = _rows(_case(tmp_path, records), "SELECT * FROM turns_conversation")
    # The last call could read 1,500; the 300 it did not are a loss of the cache, not of growth.
    assert row["again_tokens"] == 0
    assert row["cached_ratio"] == pytest.approx(2_200 / 4_600)


_STATES = {
    "growing": [1_000 + 700 * k for k in range(12)],
    "plateau": [min(1_000 + 700 * k, 5_200) for k in range(20)],
    "compacted": [*range(2_000, 9_000, 1_000), *range(2_000, 9_000, 1_000)],
    "short": [1_000, 3_000, 5_000, 8_000],
    "flat": [3_000 + 20 * (k % 3) for k in range(15)],
}


def test_states_of_a_thread(tmp_path):
    records = []
    for name, prompts in _STATES.items():
        records += _session(prompts, name, first=len(records))
    told = _rows(_case(tmp_path, records), "SELECT session, state FROM turns_growth")
    assert {row["session"]: row["state"] for row in told} == {name: name for name in _STATES}


def _trace(name, prompts):
    """Calls on a clock of their own, 30 s apart, as kv-cache-tester tells them."""
    requests = [
        {
            "t": 30.0 * k, "type": "s", "model": "m", "in": prompt, "out": 10, "stop": "end_turn",
            "hash_ids": list(range(1, prompt // 64 + 1)), "api_time": 1.0,
            "input_types": ["text"], "output_types": ["text"],
        }
        for k, prompt in enumerate(prompts)
    ]  # fmt: skip
    return {
        "id": name, "models": ["m"], "block_size": 64, "hash_id_scope": "local", "tool_tokens": 0,
        "system_tokens": 0, "requests": requests,
    }  # fmt: skip


def test_times_of_two_clocks_are_kept_apart(tmp_path):
    """One conversation, told by a log with dates and by a trace that counts from its first call."""
    folder = tmp_path / "logs"
    folder.mkdir()
    told = _session(_STATES["compacted"])
    (folder / "records.jsonl").write_text("".join(json.dumps(one) + "\n" for one in told))
    (folder / "s.json").write_text(json.dumps(_trace("s", _STATES["growing"])))
    db = case_of(folder, tmp_path / "case.duckdb")
    growth = _rows(db, "SELECT clock, state, compactions FROM turns_growth ORDER BY clock DESC")
    assert [(row["clock"], row["state"], row["compactions"]) for row in growth] == [
        ("wall", "compacted", 1), ("s.json", "growing", 0),
    ]  # fmt: skip
    (row,) = _rows(db, "SELECT * FROM turns_conversation")
    assert (row["calls"], row["clock"], row["first_ns"]) == (14 + 12, "wall", START * NS)
    assert row["last_ns"] - row["first_ns"] == 13 * 30 * NS
    times = [one["start_ns"] for one in api.turns(db, Filters(session="s")).rows]
    assert times[:14] == sorted(filter(None, times))
    assert times[14:] == [None] * 12


def test_growth_a_turn_is_told_by_turns(tmp_path):
    records = [
        _record(k, 2_000 + 500 * k, session="s", turn=k // 3 + 1) for k in range(12)
    ]  # fmt: skip
    (row,) = _rows(_case(tmp_path, records), "SELECT * FROM turns_growth")
    assert row["turns"] == 4
    assert row["growth_tokens"] == pytest.approx(500 * 11 / 3)
    assert row["call_growth_tokens"] == 500


def test_untold_caches_show_in_the_time_to_first_token(tmp_path):
    flat = [
        _record(k, 2_000 + 900 * k, session="flat", cached=None, ttft_ms=180 + k % 3, e2e_ms=400)
        for k in range(12)
    ]  # fmt: skip
    steep = [
        _record(20 + k, 2_000 + 900 * k, session="steep", cached=None, ttft_ms=200 + 90 * k,
                e2e_ms=2_000)
        for k in range(12)
    ]  # fmt: skip
    told = _rows(_case(tmp_path, flat + steep), "SELECT * FROM turns_growth ORDER BY session")
    assert [(row["session"], row["cache"], row["is_paid"]) for row in told] == [
        ("flat", "serves", False), ("steep", "none", True),
    ]  # fmt: skip


def test_a_compaction_and_what_follows(tmp_path):
    prompts = [10_000, 12_000, 14_000, 4_000, 6_000, 8_000, 10_000, 12_500, 13_000]
    (row,) = _rows(_case(tmp_path, _session(prompts)), "SELECT * FROM turns_compaction")
    assert (row["before_tokens"], row["after_tokens"], row["freed_tokens"]) == (
        14_000,
        4_000,
        10_000,
    )
    assert row["freed_ratio"] == pytest.approx(10 / 14)
    # Four fifths of 10,000 are back at 12,000.
    assert (row["back_calls"], row["calls"], row["refilled_tokens"]) == (4, 5, 9_000)
    assert row["growth_tokens"] == pytest.approx(9_000 / 5)
    assert row["usual_growth_tokens"] == 2_000
    assert not row["is_futile"]


def test_results_that_come_again_after_a_compaction(tmp_path):
    def parts(*names):
        return [{"kind": "tool_result", "chars": 900, "hash": name} for name in names]

    held = [("a",), ("a", "b"), ("a", "b", "c"), (), ("a",), ("a", "d")]
    prompts = [10_000, 12_000, 14_000, 6_000, 8_000, 10_000]
    records = [
        one | {"prompt_parts": parts(*names)}
        for one, names in zip(_session(prompts), held, strict=True)
    ]
    (row,) = _rows(_case(tmp_path, records), "SELECT * FROM turns_compaction")
    assert (row["new_results"], row["same_results"]) == (2, 1)


def test_session_caching_keeps_turns_flat(tmp_path):
    db = _case(tmp_path, _session([800, 1_200, 1_600, 2_000, 2_400, 2_800]))
    (row,) = _rows(db, "SELECT * FROM turns_worth WHERE remedy = 'session caching'")
    assert (row["calls"], row["now_tokens"], row["then_tokens"]) == (5, 10_000, 2_000)
    assert (row["one_now_tokens"], row["one_then_tokens"]) == (2_000, 400)
    assert float(row["saved_usd"]) == pytest.approx(8_000 * (2.00 - 0.20) / 1e6)


def test_a_shared_prefix_leaves_a_seventh(tmp_path):
    lines = []
    for k in range(40):
        at = (START + 30 * k) * NS
        lines += [
            send(
                at, f"q{k}", model="m", session_id=f"s{k}", prefix_block_tokens=200,
                prefix_hashes=[*(f"common{n}" for n in range(6)), f"own{k}"],
            ),
            chunk(at + NS // 2, f"q{k}", 4, kind="content"),
            done(at + NS, f"q{k}", openai_usage(1_400, 10, cached=0)),
        ]  # fmt: skip
    (tmp_path / "stream.jsonl").write_text("\n".join(lines) + "\n")
    db = case_of(tmp_path / "stream.jsonl", tmp_path / "case.duckdb")
    (row,) = _rows(db, "SELECT * FROM turns_worth WHERE remedy = 'shared prefix'")
    assert (row["now_tokens"], row["saved_tokens"]) == (40 * 1_400, 39 * 1_200)
    assert row["one_then_tokens"] / row["one_now_tokens"] == pytest.approx(1 / 7)


def test_trimmed_history_saves_what_is_beyond_the_budget(tmp_path):
    db = _case(tmp_path, _session([1_000, 9_000, 12_000, 15_000]))
    (row,) = _rows(db, "SELECT * FROM turns_worth WHERE remedy = 'trimmed history'")
    # History beyond the first prompt: 0, 8,000 and 11,000; 8,000 are kept.
    assert (row["calls"], row["saved_tokens"]) == (3, 3_000)
    assert float(row["saved_usd"]) == pytest.approx(3_000 * 2.00 / 1e6)


def test_a_step_is_found_to_the_request_among_many(tmp_path):
    rng = random.Random(4)
    records = [
        _record(
            k, 4_000 + rng.randint(-900, 900) + (3_000 if k >= 613 else 0), session=f"s{k}", turn=1,
            cached=1_024,
        )
        for k in range(1_000)
    ]  # fmt: skip
    db = _case(tmp_path, records)
    told = _rows(
        db,
        "SELECT q.id, i.cause, i.step_ns, count(*) AS requests, avg(i.excess_tokens) AS excess, "
        "SUM(i.excess_usd) AS usd FROM turns_inflated AS i "
        "JOIN resolve_request AS q ON i.step_key = q.request_key "
        "WHERE i.is_inflated GROUP BY q.id, i.cause, i.step_ns",
    )
    assert [(row["id"], row["cause"], row["requests"]) for row in told] == [
        ("q613", "unknown", 387)
    ]
    assert told[0]["step_ns"] == (START + 30 * 613) * 10**9
    assert told[0]["excess"] == pytest.approx(3_000, rel=0.03)
    # As much is read from the cache as before: all that was added is fresh.
    assert float(told[0]["usd"]) == pytest.approx(told[0]["excess"] * 387 * 2.00 / 1e6, rel=1e-6)


def test_what_grew_is_named(tmp_path):
    records = [
        _record(
            k, 3_000 + 10 * (k % 7) + (1_500 if k >= 20 else 0), session=f"s{k}", turn=1,
            tools_count=8, tools_chars=9_000, system_chars=2_000 if k < 20 else 8_000,
        )
        for k in range(40)
    ]  # fmt: skip
    (row,) = _rows(
        _case(tmp_path, records), "SELECT DISTINCT cause FROM turns_inflated WHERE is_inflated"
    )
    assert row["cause"] == "system prompt"


@pytest.mark.parametrize("wide", [False, True], ids=["few", "wide"])
def test_characters_show_a_step_that_sizes_hide(tmp_path, wide):
    """Eight requests on each side, or questions of very different length."""
    rng = random.Random(7)
    records = []
    for k in range(60 if wide else 16):
        after = k >= (35 if wide else 8)
        asked = round(rng.lognormvariate(8, 1)) if wide else 100 + 10 * (k % 3)
        records.append(
            _record(
                k, 2_500 + asked + (2_200 if after else 0), session=f"s{k}", turn=1,
                tools_count=16 if after else 7, tools_chars=19_000 if after else 10_000,
            )
        )  # fmt: skip
    (row,) = _rows(
        _case(tmp_path, records),
        "SELECT DISTINCT q.id, i.cause FROM turns_inflated AS i "
        "JOIN resolve_request AS q ON i.step_key = q.request_key WHERE i.is_inflated",
    )
    assert (row["id"], row["cause"]) == ("q35" if wide else "q8", "tool definitions")


@pytest.mark.parametrize(
    "size",
    [
        # A slow rise; long texts that become more common; random lengths; a step down.
        lambda k, rng: 3_000 + 40 * k + rng.randint(-50, 50),
        lambda k, rng: rng.choice([2_000] * (8 if k < 40 else 2) + [9_000] * (2 if k < 40 else 8)),
        lambda k, rng: round(rng.lognormvariate(8, 0.8)),
        lambda k, rng: 9_000 - (4_000 if k >= 40 else 0) + rng.randint(-100, 100),
    ],
    ids=["slow", "mix", "random", "down"],
)
def test_no_step(tmp_path, size):
    rng = random.Random(11)
    records = [_record(k, size(k, rng), session=f"s{k}", turn=1) for k in range(80)]
    assert not _rows(_case(tmp_path, records), "SELECT * FROM turns_inflated WHERE is_inflated")


def test_any_request_may_be_a_later_turn(tmp_path):
    """Without sessions and turns, larger prompts are no larger first prompts."""
    records = [_record(k, 1_000 if k < 20 else 7_300) for k in range(60)]
    assert not _rows(_case(tmp_path, records), "SELECT * FROM turns_inflated WHERE is_inflated")


def _series(sizes):
    return [
        {
            "group_name": "g", "first_nth": k + 1, "last_nth": k + 1, "requests": 1, "prompt": size,
            "chars": None, "first_ns": k * 86_400 * 10**9,
        }
        for k, size in enumerate(sizes)
    ]  # fmt: skip


def test_a_rise_that_ended_has_an_end():
    ((_, from_nth, low, high, end, middle, *_),) = rows(
        _series([100] * 20 + [300] * 20 + [100] * 20)
    )
    assert (from_nth, low, high, end, middle) == (1, 21, 21, 40, 200)


def test_the_larger_of_two_steps_is_told():
    ((_, _, low, _, end, *_),) = rows(_series([100] * 20 + [150] * 20 + [400] * 20))
    assert (low, end) == (41, None)


def _wandering(rng, count):
    size, sizes = 6_000.0, []
    for _ in range(count):
        size *= math.exp(rng.gauss(0, 0.04))
        sizes.append(size * rng.uniform(0.97, 1.03))
    return sizes


def test_a_level_that_wanders_has_no_step():
    """Any two halves of a random walk lie apart; nothing stands out at the place of the cut."""
    rng = random.Random(21)
    found = [
        count for count in (30, 60, 90, 150) for _ in range(25)
        if list(rows(_series(_wandering(rng, count))))
    ]  # fmt: skip
    assert len(found) <= 8, found


@pytest.mark.parametrize("times", [1.3, 1.5, 2, 2.6])
def test_a_step_is_found_in_few_and_in_many(times):
    """Prompts that vary by 3 percent, or by the hour of the day, or from one to the next."""
    rng = random.Random(22)
    kinds = [
        lambda _: rng.uniform(0.97, 1.03),
        lambda k: 1 + 0.05 * math.sin(k / 24 * 2 * math.pi) + rng.gauss(0, 0.02),
        lambda _: rng.gauss(1, 0.05),
    ]
    found = [
        list(rows(_series([6_000 * kind(k) * (times if k >= cut else 1) for k in range(count)])))
        for kind in kinds for count, cut in ((20, 10), (30, 20), (120, 50), (200, 150))
    ]  # fmt: skip
    assert sum(map(len, found)) >= 11, found

"""The accuracy benchmark: what it takes for true, and a few worlds from draw to table."""

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest
from deep import deep

HERE = Path(__file__).parents[1] / "benchmarks" / "accuracy"
sys.path.insert(0, str(HERE))

import causes  # noqa: E402
import faults  # noqa: E402
import table  # noqa: E402
from trial import seed_of  # noqa: E402
from truth import Truth  # noqa: E402

from analyzer.api import rules  # noqa: E402
from analyzer.simulate.world import from_dict  # noqa: E402

MS, S = 1_000_000, 1_000_000_000


def attempt(number=0, **more):
    """One that went well and waited for nothing."""
    one = {
        "id": f"r-{number}", "operation_id": f"r-{number}", "attempt": 1, "replica": "engine-0",
        "prompt_tokens": 400, "cached_tokens": 0, "output_tokens": 100, "reasoning_tokens": 0,
        "scheduled_ns": number * S, "sent_ns": number * S, "queued_ns": number * S,
        "admitted_ns": number * S, "first_token_ns": number * S + 100 * MS,
        "first_chunk_ns": number * S + 110 * MS, "done_ns": number * S + 1110 * MS,
        "hold_ns": 0, "queue_ns": 0, "prefill_ns": 100 * MS, "decode_ns": S, "network_ns": 10 * MS,
        "ttft_ns": 110 * MS, "e2e_ns": 1110 * MS, "causes": [],
    }  # fmt: skip
    return one | more


def cause(kind, ns, start=0, where=None):
    return {"kind": kind, "start_ns": start, "end_ns": start + ns, "ns": ns, "where": where}


def told_of(attempts, events=(), **world):
    told = {
        "replicas": [{"name": "engine-0"}], "engine": {}, "change": [], "logs": [],
        "duration_s": 60,
    } | world  # fmt: skip
    return Truth(attempts, list(events), told, 0)


def waiting(count, ns, kind="admission"):
    late = [
        attempt(n, causes=[cause(kind, ns)], queue_ns=ns, ttft_ns=110 * MS + ns)
        for n in range(count)
    ]
    return late + [attempt(n) for n in range(count, 40)]


def test_nothing_is_true_of_a_world_where_nothing_happened():
    assert causes.true_causes(told_of([attempt(n) for n in range(40)])) == {}


@pytest.mark.parametrize(
    ("count", "ns", "said"),
    [
        (5, S, "yes"),
        (4, S, "may"),  # fewer than the play wants
        (9, 130 * MS, "yes"),
        (9, 110 * MS, "may"),  # not a quarter above the smallest wait that counts
        (9, 40 * MS, None),
    ],
)
def test_a_wait_is_a_cause_from_the_plays_size_on(count, ns, said):
    told = causes.true_causes(told_of(waiting(count, ns)))
    assert told.get("queue.admission-limit") == said
    assert set(told) <= {"queue.admission-limit"}


def test_behind_a_far_longer_prompt_is_another_cause_than_behind_ones_like_it():
    long = attempt(
        99, prompt_tokens=40_000, admitted_ns=0, first_token_ns=20 * S, prefill_ns=20 * S,
        ttft_ns=20 * S, e2e_ns=21 * S,
    )  # fmt: skip
    behind = [
        attempt(
            n, queued_ns=S, admitted_ns=4 * S, queue_ns=3 * S, ttft_ns=3110 * MS,
            causes=[cause("head_of_line", 3 * S)],
        )
        for n in range(8)
    ]  # fmt: skip
    told = causes.true_causes(told_of([long, *behind]))
    assert told["queue.head-of-line"] == "yes"
    assert "queue.saturation" not in told
    told = causes.true_causes(told_of(behind))
    assert told["queue.saturation"] == "yes"
    assert "queue.head-of-line" not in told


@pytest.mark.parametrize(
    ("cached", "prefill_ns", "history", "said"),
    [
        (0, 400 * MS, True, "yes"),
        (2000, 400 * MS, True, None),  # all that the call before had left
        (0, 120 * MS, True, "may"),  # too little to be felt
        (0, 400 * MS, False, None),  # prompts of their own
    ],
)
def test_a_lost_cache_is_a_cause_where_a_call_could_have_read_more(
    cached, prefill_ns, history, said
):
    def call(n, turn, **more):
        return attempt(n, session_id=f"s-{n % 10}", kind="chat", turn=turn, **more)

    first = [call(n, 1, prompt_tokens=2000, prefill_ns=400 * MS) for n in range(10)]
    hit = {"cached_tokens": 2000, "prefill_ns": 40 * MS}
    second = [call(n, 2, prompt_tokens=2300, **hit) for n in range(10, 16)]
    missed = {"cached_tokens": cached, "prefill_ns": prefill_ns, "ttft_ns": prefill_ns + 10 * MS}
    second += [call(n, 2, prompt_tokens=2300, **missed) for n in range(16, 20)]
    arrivals = [{"kind": "chat", "history": history}]
    told = causes.true_causes(told_of([*first, *second], arrivals=arrivals))
    assert told.get("prefill.cache-miss") == said
    assert ("cache.evicted" in told) == (said is not None)


def test_one_replica_that_waits_alone_is_an_imbalance_and_its_limit_may_be_named():
    two = [{"name": "engine-0"}, {"name": "engine-1"}]
    told = causes.true_causes(told_of(waiting(12, S), replicas=two))
    assert told == {"queue.imbalance": "yes", "queue.admission-limit": "may"}


def test_loads_after_an_unload_are_told_from_the_first():
    def load(at):
        return {"engine": "engine-0", "event": "load", "start_ns": at * S, "ns": 4 * S, "of": None}

    def waits(n, at):
        return attempt(n, causes=[cause("load", 4 * S, at * S)], ttft_ns=5 * S, e2e_ns=6 * S)

    events, attempts = [load(0)], [waits(0, 0), *(attempt(n) for n in range(5, 30))]
    assert causes.true_causes(told_of(attempts, events)) == {"load.cold-start": "may"}
    for n, at in enumerate((400, 800, 1200, 1600), 1):
        events += [
            {"engine": "engine-0", "event": "unload", "start_ns": (at - 90) * S, "ns": 0},
            load(at),
        ]
        attempts.append(waits(n, at))
    told = causes.true_causes(told_of(attempts, events))
    assert told == {"load.cold-start": "may", "load.idle-unload": "yes"}


def test_clocks_differ_by_their_logs_and_only_between_machines():
    stream, spans = {"format": "stream"}, {"format": "spans", "skew_ms": -3000}
    assert causes.max_apart_ns({"logs": [stream, spans], "duration_s": 10}) == 3 * S
    assert causes.max_apart_ns({"logs": [spans], "duration_s": 10}) == 0
    drifts = {"format": "spans", "drift_ppm": 100}
    assert causes.max_apart_ns({"logs": [stream, drifts], "duration_s": 10}) == MS


def test_each_fault_is_a_rule_and_has_logs_for_twenty_worlds():
    assert set(faults.FAULTS) - rules() == set()
    for rule, fault in faults.FAULTS.items():
        assert sum(fault.mixes.values()) == 20, rule
        mixes = [faults.mix_of(fault, number) for number in range(20)]
        assert {mix: mixes.count(mix) for mix in fault.mixes} == fault.mixes


@pytest.mark.parametrize("rule", [None, *faults.FAULTS])
def test_the_same_seed_draws_the_same_world_and_it_can_be_run(rule):
    first, again = (faults.draw(random.Random("7/0"), rule, 3) for _ in range(2))
    assert first == again
    assert first.pop("mix")
    from_dict(first)


def test_seeds_of_the_table_and_of_tuning_never_meet():
    names = ("none", *faults.FAULTS)
    seeds = [{seed_of(base, rule, n) for rule in names for n in range(150)} for base in (0, 10**6)]
    assert len(seeds[0]) == len(seeds[1]) == 150 * len(names)
    assert not seeds[0] & seeds[1]


def _result(rule, found, held, cannot=()):
    return {
        "rule": rule, "number": 0, "truth": held, "found": found, "cannot": list(cannot),
        "clear": [], "measured": {}, "modelled": {}, "clock": [],
    }  # fmt: skip


def test_refusals_are_counted_apart_and_small_causes_neither_way():
    slow = "network.slow"
    results = [
        _result(slow, {slow: "warning"}, {slow: "yes"}),
        _result(slow, {slow: "note"}, {slow: "yes"}),
        _result(slow, {}, {slow: "yes"}, [slow]),
        _result("none", {slow: "critical"}, {slow: "may"}),
        _result("none", {slow: "warning"}, {}),
    ]
    assert table.counts_of(slow, results) == {
        "worlds": 3, "true": 3, "named": 1, "missed": 1, "refused": 1, "refused_elsewhere": 0,
        "own_named": 1, "wrong": 1,
    }  # fmt: skip
    page = table.table(results, [], 0)
    assert f"| {slow} | 3 | 1 | 3 | 1 | 1 | 0.50 | 1 | 0.50 |" in page
    assert "Worlds without a fault: 2, false alarms in 1 (50.0%): network.slow 1." in page


@deep
def test_a_run_that_was_cut_goes_on_and_gives_the_same_page(tmp_path):
    def page(*more):
        command = [
            sys.executable, str(HERE), "--base", "0", "--worlds", "1", "--free", "2", "--jobs", "1",
            "--faults", "network.slow,decode.output-growth,none", "--any-version",
            "--results", str(tmp_path / "results.jsonl"), *more,
        ]  # fmt: skip
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    whole = page()
    path = tmp_path / "results.jsonl"
    lines = path.read_text().splitlines()
    assert len(lines) == 4
    told = [json.loads(line) for line in lines]
    assert all(exact == count for one in told for count, exact in one["measured"].values())
    assert not any("crash" in one or "undrawn" in one for one in told)
    path.write_text("\n".join(lines[:2]) + "\n" + lines[2][:40])
    assert page() == whole
    assert "| network.slow | 1 | 0 |" in whole

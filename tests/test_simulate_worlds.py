"""The worlds that ship: their logs read without problems, their truth holds the cause, and what the
plays claim is what happened. The innocent twin of each has the symptom without the cause.

The fast suite reads the logs of all but some twins, and judges one of each part of a request.
"""

import json
from decimal import Decimal

import pytest
from deep import deep, one_in, unless
from helpers import case_of, claimed, engine_of

from analyzer.simulate.run import shipped, simulate, world_named

INNOCENT = "-innocent"
WAITS = ("admission", "capacity", "head_of_line")
ALL_OF_QUEUE = {"queue.admission-limit", "queue.saturation"}
OTHER_WAITS = {
    "queue.mislabelled", "queue.head-of-line", "queue.imbalance", "queue.rate-limited",
}  # fmt: skip
STALLS = {
    "decode.prefill-interference", "decode.preemption", "decode.process-pause", "client.stalled",
}  # fmt: skip
MUST_NOT = {
    "admission-limit": ALL_OF_QUEUE | {"network.slow", "network.buffered"},
    "buffered": {"network.buffered", "network.slow", "prefill.long-prompt"} | ALL_OF_QUEUE,
    "slow-network": {"network.buffered", "network.slow", "network.fixed-offset"} | ALL_OF_QUEUE,
    "fixed-offset": {"network.buffered", "network.fixed-offset"} | ALL_OF_QUEUE,
    "skewed-clock": {"trust.clock", "network.slow", "network.fixed-offset"} | ALL_OF_QUEUE,
    "output-growth": {"decode.output-growth"},
    "multi-token-chunks": {"metric.multi-token-chunks"},
    "ttft-misread": {"metric.ttft-misread", "prefill.long-prompt"} | ALL_OF_QUEUE,
    "saturation": ALL_OF_QUEUE,
    "grammar-compile": ALL_OF_QUEUE | OTHER_WAITS,
    "head-of-line": ALL_OF_QUEUE | OTHER_WAITS,
    "rate-limited": ALL_OF_QUEUE | OTHER_WAITS,
    "replica-imbalance": {"queue.imbalance", "queue.mislabelled", "queue.head-of-line"},
    # Its prompts come at once and do wait for one another's work.
    "preemption": STALLS
    | {"network.slow", "network.buffered", "prefill.long-prompt", "queue.admission-limit"},
    "prefill-interference": STALLS | {"network.slow", "network.buffered"} | ALL_OF_QUEUE,
    "cache-evicted": {"network.slow", "network.buffered"} | ALL_OF_QUEUE,
    "idle-unload": {"load.idle-unload", "load.cold-start"} | ALL_OF_QUEUE,
    "offloaded": ALL_OF_QUEUE,
    "paid-timeouts": {"network.slow", "network.buffered"} | ALL_OF_QUEUE,
    "process-pause": STALLS | {"network.slow", "network.buffered"} | ALL_OF_QUEUE,
    "client-stalled": STALLS | {"network.slow", "network.buffered"} | ALL_OF_QUEUE,
    "client-hold": {"metric.client-hold", "errors.rate"} | ALL_OF_QUEUE,
    "cold-start": {"load.cold-start", "load.idle-unload"} | ALL_OF_QUEUE,
    "truncated-output": {"errors.truncated-output", "errors.rate"} | ALL_OF_QUEUE,
    "failing-route": {"errors.rate", "metric.client-hold", "network.slow"} | ALL_OF_QUEUE,
}
"""What may not be claimed of the innocent twin."""
JUDGED = {"admission-limit", "failing-route"}
"""Whose twins the fast suite judges."""


@pytest.fixture(scope="module")
def run_of(tmp_path_factory):
    """Name -> (database, truth of its attempts, what engines did), each world run once."""
    known = {}

    def run(name):
        if name not in known:
            folder = tmp_path_factory.mktemp(name)
            simulate(world_named(name), folder / "logs")
            truth = folder / "logs" / "truth.jsonl"
            lines = [json.loads(line) for line in truth.read_text().splitlines()]
            truth.rename(folder / "truth.jsonl")
            db = case_of(folder / "logs", folder / "case.duckdb")
            attempts = [one for one in lines if "event" not in one]
            known[name] = db, attempts, [one for one in lines if "event" in one]
        return known[name]

    return run


def ns_of(one, *kinds):
    return sum(cause["ns"] for cause in one["causes"] if cause["kind"] in kinds)


def mean(values):
    return sum(values) / len(values)


def test_every_world_has_a_twin_and_says_what_it_shows():
    names = shipped()
    mains = {name for name in names if not name.endswith(INNOCENT)}
    assert {name.removesuffix(INNOCENT) for name in names if name.endswith(INNOCENT)} == mains
    assert mains == set(MUST_NOT)
    assert all(world_named(name).name == name for name in names)


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=unless(name in JUDGED or one_in(4, name))) for name in shipped()],
)
def test_its_logs_read_without_problems(run_of, name):
    db, truth, _ = run_of(name)
    with engine_of(db) as engine:
        assert engine.value("SELECT count(*) FROM problem") == 0
    assert len(truth) > 7


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=unless(name in JUDGED)) for name in sorted(MUST_NOT)]
)
def test_the_innocent_twin_is_not_accused(run_of, name):
    db, _, _ = run_of(name + INNOCENT)
    assert not MUST_NOT[name] & claimed(db).keys()


# --- kinds whose plays exist ---------------------------------------------------------------------


def holds(db, rule, requests, magnitude, tolerance=0.05):
    """A rule fires for the requests that truth names, and with their size."""
    fired = claimed(db)
    assert rule in fired, sorted(fired)
    finding = fired[rule]
    assert finding.requests == requests
    assert finding.magnitude.value == pytest.approx(magnitude, rel=tolerance)
    return fired


def test_admission_limit(run_of):
    db, truth, _ = run_of("admission-limit")
    waited = [one for one in truth if ns_of(one, "admission")]
    fired = holds(
        db, "queue.admission-limit", len(waited), mean([w["queue_ns"] for w in waited]) / 1e9
    )
    assert not fired.keys() & {"queue.saturation", "prefill.long-prompt", "network.slow"}
    assert not any(ns_of(one, "capacity") for one in truth)


@deep
def test_long_prompts_are_the_twin_of_an_admission_limit(run_of):
    db, truth, _ = run_of("admission-limit-innocent")
    burst = [one for one in truth if one["kind"] == "burst"]
    calm = [one["prefill_ns"] for one in truth if one["kind"] == "calm"]
    more = mean([one["prefill_ns"] for one in burst]) - mean(calm)
    holds(db, "prefill.long-prompt", len(burst), more / 1e9)
    assert not any(ns_of(one, *WAITS) for one in truth)


@deep
def test_saturation(run_of):
    db, truth, _ = run_of("saturation")
    waited = [one for one in truth if ns_of(one, "capacity")]
    assert 0.9 < len(waited) / claimed(db)["queue.saturation"].requests < 1.1
    fired = claimed(db)
    said = fired["queue.saturation"].magnitude.value
    assert said == pytest.approx(mean([one["queue_ns"] for one in waited]) / 1e9, rel=0.05)
    assert "queue.admission-limit" not in fired


def test_buffered(run_of):
    db, truth, _ = run_of("buffered")
    held = [one for one in truth if ns_of(one, "buffered")]
    lost = [one["ttft_ns"] - one["engine_ttft_ns"] - one["network_ns"] for one in held]
    fired = holds(db, "network.buffered", len(held), mean(lost) / 1e9)
    assert "prefill.long-prompt" not in fired


@deep
def test_slow_network(run_of):
    db, truth, _ = run_of("slow-network")
    usual = sorted(one["network_ns"] for one in truth)[len(truth) // 4]
    slow = [one for one in truth if one["network_ns"] > 5 * usual]
    more = mean([one["network_ns"] - usual for one in slow]) / 1e9
    assert more == pytest.approx(2 * (0.420 - 0.014), rel=0.05)
    fired = holds(db, "network.slow", len(slow), more)
    assert not fired.keys() & ALL_OF_QUEUE


@deep
def test_a_skewed_clock_is_no_slow_network(run_of):
    _, truth, _ = run_of("slow-network-innocent")
    db = run_of("slow-network-innocent")[0]
    with engine_of(db) as engine:
        told = engine.value("SELECT median(network_ns) FROM latency_segment")
    assert told == pytest.approx(mean([one["network_ns"] for one in truth]), rel=0.1)


@deep
def test_fixed_offset(run_of):
    db, truth, _ = run_of("fixed-offset")
    fell_back = [one for one in truth if ns_of(one, "fallback")]
    fired = holds(
        db,
        "network.fixed-offset",
        len(fell_back),
        mean([ns_of(f, "fallback") for f in fell_back]) / 1e9,
    )
    assert "network.slow" not in fired
    assert "network.slow" in claimed(run_of("fixed-offset-innocent")[0])


@deep
def test_skewed_clock(run_of):
    db = run_of("skewed-clock")[0]
    with engine_of(db) as engine:
        (clock,) = engine.rows("SELECT * FROM resolve_clock WHERE differs")
        seen = engine.value("SELECT count(*) FROM latency_offset")
    true = -600e6 - 120e-6 * (clock["at_ns"] + 600e6 - world_named("skewed-clock").start_ns)
    assert clock["low_ns"] <= true <= clock["high_ns"]
    assert clock["drift_low_ppm"] <= -120 <= clock["drift_high_ppm"] < 0
    fired = holds(db, "trust.clock", seen, 0.6 + 120e-6 * 600)
    assert not fired.keys() & {"network.slow", "network.fixed-offset"}


@deep
def test_output_growth(run_of):
    db, truth, _ = run_of("output-growth")
    change = min(one["sent_ns"] for one in truth) + 200 * 10**9
    after = [one for one in truth if one["sent_ns"] >= change]
    before = [one["e2e_ns"] for one in truth if one["sent_ns"] < change]
    fired = claimed(db)
    finding = fired["decode.output-growth"]
    # One answer is on the other side of the middle between short and long.
    assert abs(finding.requests - len(after)) <= max(3, len(after) // 5)
    said = finding.magnitude.value
    assert said == pytest.approx((mean([a["e2e_ns"] for a in after]) - mean(before)) / 1e9, rel=0.2)


@deep
def test_multi_token_chunks(run_of):
    db, truth, _ = run_of("multi-token-chunks")
    told = (truth[0]["output_tokens"] - 1) / -(-(truth[0]["output_tokens"] - 1) // 5)
    holds(db, "metric.multi-token-chunks", len(truth), told)


@deep
def test_ttft_misread(run_of):
    db, truth, _ = run_of("ttft-misread")
    # The gateway counts from its own receipt to the first token after the reasoning.
    late = [
        one["decode_ns"] * one["reasoning_tokens"] / (one["output_tokens"] - 1) for one in truth
    ]
    holds(db, "metric.ttft-misread", len(truth), mean(late) / 1e9)


@deep
def test_client_hold(run_of):
    db, truth, _ = run_of("client-hold")
    held = [one for one in truth if ns_of(one, "client_hold") >= 100_000_000]
    held = [one for one in held if one["hold_ns"] >= 0.05 * (one["hold_ns"] + one["e2e_ns"])]
    fired = holds(db, "metric.client-hold", len(held), mean([one["hold_ns"] for one in held]) / 1e9)
    told = {one.label: one.value for one in fired["metric.client-hold"].evidence}
    assert told["Most requests that the client ever had open"] == 7
    assert not fired.keys() & (ALL_OF_QUEUE | {"network.slow"})


@deep
def test_idle_unload(run_of):
    db, truth, events = run_of("idle-unload")
    loads = [ns_of(one, "load") for one in truth if ns_of(one, "load")]
    assert len(loads) == 6
    assert sum(one["event"] == "unload" for one in events) == 5
    fired = holds(db, "load.idle-unload", len(loads) - 1, mean(loads[1:]) / 1e9)
    assert not fired.keys() & (ALL_OF_QUEUE | {"load.cold-start"})
    _, twin, events = run_of("idle-unload-innocent")
    assert sum(bool(ns_of(one, "load")) for one in twin) == 1
    assert not any(one["event"] == "unload" for one in events)


@deep
def test_cold_start(run_of):
    db, truth, _ = run_of("cold-start")
    waits = [ns_of(one, "load") for one in truth if ns_of(one, "load") >= 500_000_000]
    assert len(waits) > 3
    fired = holds(db, "load.cold-start", len(waits), mean(waits) / 1e9)
    assert "load.idle-unload" not in fired


@deep
def test_truncated_output(run_of):
    db, truth, _ = run_of("truncated-output")
    cut = [one for one in truth if one["output_tokens"] == 320 and one["kind"] == "after"]
    fired = holds(db, "errors.truncated-output", len(cut), len(cut) / len(truth))
    assert "errors.rate" not in fired


def test_failing_route(run_of):
    db, truth, _ = run_of("failing-route")
    failed = [one for one in truth if "error" in one]
    fired = holds(db, "errors.rate", len(failed), len(failed) / len(truth))
    assert fired["errors.rate"].where == "route canary"
    told = {one.label: one.value for one in fired["errors.rate"].evidence}
    tried = {one["id"].partition("-retry")[0] for one in failed}
    unanswered = {one["id"].partition("-retry")[0] for one in failed if one["attempt"] == 2}
    assert told["Operations that ended without an answer"] == len(unanswered)
    again = told["Operations that were tried again and answered in the end"]
    assert again == len(tried) - len(unanswered)


# --- kinds whose plays come later: the truth has the cause ---------------------------------------


def test_cache_evicted(run_of):
    def lost(truth):
        """Turns after the first whose history was in the cache once and is not any more."""
        turns = [one for one in truth if one.get("turn", 1) > 1]
        return [one for one in turns if one["cached_tokens"] < 0.5 * one["prompt_tokens"]]

    assert lost(run_of("cache-evicted")[1])
    assert all(one["kind"] == "sessions" for one in lost(run_of("cache-evicted")[1]))
    innocent = run_of("cache-evicted-innocent")[1]
    assert max(one["prompt_tokens"] for one in innocent if one["cached_tokens"] == 0) > 9_000
    grown = [one for one in lost(innocent) if one["turn"] > 2]
    assert not grown


def test_prefill_interference(run_of):
    db, truth, _ = run_of("prefill-interference")
    stalled = [ns_of(one, "prefill_interference") for one in truth if one["kind"] == "streams"]
    fired = holds(db, "decode.prefill-interference", len(stalled), mean(stalled) / 1e9)
    assert not fired.keys() & (STALLS - {"decode.prefill-interference"})
    _, twin, _ = run_of("prefill-interference-innocent")
    spared = [ns_of(one, "prefill_interference") for one in twin if one["kind"] == "streams"]
    assert min(stalled) > 1e9 > 10 * max(spared)
    again = [one for one in twin if one["kind"] == "document"][-1]
    assert again["cached_tokens"] > 0.99 * again["prompt_tokens"]


@deep
def test_preemption(run_of):
    db, truth, events = run_of("preemption")
    out = [one for one in truth if one["preemptions"]]
    assert len(out) >= 2
    lost = [ns_of(one, "preemption") for one in out]
    assert min(lost) > 1e8
    fired = holds(db, "decode.preemption", len(out), mean(lost) / 1e9)
    assert not fired.keys() & (STALLS - {"decode.preemption"})
    assert sum(one["event"] == "preemption" for one in events) == sum(o["preemptions"] for o in out)
    assert not any(one["preemptions"] for one in run_of("preemption-innocent")[1])


@deep
def test_process_pause(run_of):
    db, truth, events = run_of("process-pause")
    pauses = [one for one in events if one["event"] == "pause"]
    # A pause before the first token is no stall of the stream.
    hit = [
        one
        for one in truth
        for cause in one["causes"]
        if cause["kind"] == "process_pause" and cause["start_ns"] > one["first_token_ns"]
    ]
    touched = len({one["id"] for one in hit})
    fired = holds(db, "decode.process-pause", touched, mean([p["ns"] for p in pauses]) / 1e9)
    told = {one.label: one.value for one in fired["decode.process-pause"].evidence}
    assert told["Median time from one pause to the next"] / 1e9 == pytest.approx(9, rel=0.05)
    assert fired["decode.process-pause"].confidence == "measured"
    assert not fired.keys() & (STALLS - {"decode.process-pause"})


@deep
def test_client_stalled(run_of):
    db, truth, _ = run_of("client-stalled")
    every, blocked = 13 * 10**9, 1.4
    start = min(one["scheduled_ns"] for one in truth) // 10**10 * 10**10
    hit = {
        one["id"]
        for one in truth
        for k in range(1, 9)
        if one["first_chunk_ns"] < start + k * every < one["done_ns"]
    }
    fired = holds(db, "client.stalled", len(hit), blocked)
    assert not fired.keys() & (STALLS - {"client.stalled"})


def test_paid_timeouts(run_of):
    db, truth, _ = run_of("paid-timeouts")
    late = [one for one in truth if one.get("error") == "timeout"]
    assert len(late) > 10
    assert all(one["finished_ns"] > one["done_ns"] for one in late), "computed to its end"
    with engine_of(db) as engine:
        rows = engine.rows("SELECT vantage, count(*) AS n FROM request GROUP BY vantage")
        assert {row["vantage"]: row["n"] for row in rows} == {
            "client": len(truth), "provider": len(truth),
        }  # fmt: skip
        paid = engine.value("SELECT sum(reported_cost_usd) FROM request")
    fresh = sum(one["prompt_tokens"] - one["cached_tokens"] for one in truth)
    read = sum(one["cached_tokens"] for one in truth)  # an attempt finds the one before it
    assert read
    spent = fresh * Decimal("1.80") + read * Decimal("0.18") + len(truth) * 900 * 9
    assert paid == spent / 1_000_000
    _, twin, _ = run_of("paid-timeouts-innocent")
    failed = [one for one in twin if "error" in one]
    assert failed
    assert not any("engine_in_ns" in one for one in failed), "nothing was computed"
    with engine_of(run_of("paid-timeouts-innocent")[0]) as engine:
        billed = engine.value("SELECT count(*) FROM request WHERE vantage = 'provider'")
    assert billed == len(twin) - len(failed)


@pytest.mark.parametrize(("name", "layers", "tpot_ms"), [("", 35, 54.7), (INNOCENT, 41, 18.2)])
def test_offloaded(run_of, name, layers, tpot_ms):
    db, truth, _ = run_of("offloaded" + name)
    with engine_of(db) as engine:
        (row,) = engine.rows("SELECT DISTINCT gpu_layers, layers FROM deployment")
        assert (row["gpu_layers"], row["layers"]) == (layers, 40)
        told = engine.value("SELECT median(tpot_ns) FROM latency_token") / 1e6
    assert told == pytest.approx(tpot_ms, rel=0.02)
    assert sum(bool(ns_of(one, "load")) for one in truth) == 1

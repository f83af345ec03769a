"""Worlds whose waits have a cause of their own: what the plays claim is what truth tells."""

import pytest
from deep import deep
from helpers import claimed, engine_of
from test_simulate_worlds import ALL_OF_QUEUE, holds, mean, ns_of, run_of

__all__ = ["run_of"]


@deep
def test_grammars_that_are_compiled(run_of):
    db, truth, _ = run_of("grammar-compile")
    waited = [one for one in truth if ns_of(one, "grammar") >= 100_000_000]
    fired = claimed(db)
    assert abs(fired["queue.mislabelled"].requests - len(waited)) <= 1
    said = fired["queue.mislabelled"].magnitude.value
    assert said == pytest.approx(sum(one["queue_ns"] for one in waited) / 1e9, rel=0.05)
    assert not fired.keys() & ALL_OF_QUEUE


def test_short_requests_behind_a_long_prompt(run_of):
    db, truth, _ = run_of("head-of-line")
    behind = [
        one
        for one in truth
        if one["kind"] == "short"
        and ns_of(one, "head_of_line") >= max(100_000_000, one["engine_ttft_ns"] // 5)
    ]
    fired = claimed(db)
    assert abs(fired["queue.head-of-line"].requests - len(behind)) <= 0.1 * len(behind)
    said = fired["queue.head-of-line"].magnitude.value
    assert said == pytest.approx(mean([one["queue_ns"] for one in behind]) / 1e9, rel=0.1)
    with engine_of(db) as engine:
        names = {
            row["id"]
            for row in engine.rows(
                "SELECT DISTINCT r.id FROM latency_queue_wait AS w "
                "JOIN resolve_request AS r ON w.blocker_key = r.request_key"
            )
        }
    assert names == {one["id"] for one in truth if one["kind"] == "long"}
    assert "queue.admission-limit" not in fired


def test_attempts_that_a_limit_turns_away(run_of):
    db, truth, _ = run_of("rate-limited")
    refused = [one for one in truth if one.get("error") == "rate_limited"]
    begun = {(one["operation_id"], one["attempt"]): one["sent_ns"] for one in truth}
    waits = [
        begun[one["operation_id"], one["attempt"] + 1] - one["sent_ns"]
        for one in refused
        if (one["operation_id"], one["attempt"] + 1) in begun
    ]
    holds(db, "queue.rate-limited", len(refused), sum(waits) / 1e9)


@deep
def test_one_replica_takes_it_all(run_of):
    db, truth, _ = run_of("replica-imbalance")
    waited = [
        one
        for one in truth
        if one["replica"] == "pool-a"
        and ns_of(one, "admission") >= max(105_000_000, one["engine_ttft_ns"] // 5)
    ]
    fired = claimed(db)
    assert abs(fired["queue.imbalance"].requests - len(waited)) <= 0.1 * len(waited)
    assert not fired.keys() & ALL_OF_QUEUE

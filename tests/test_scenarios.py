"""The shared scenarios: right verdict on each, silence on its twin."""

from __future__ import annotations

import shutil

import pytest
from helpers import case_of, check_verdict, engine_of
from shared import SHARED, needs_shared

import analyzer

_QUIET = [
    "queue.admission-limit", "queue.saturation", "queue.mislabelled", "queue.head-of-line",
    "queue.imbalance", "queue.rate-limited", "prefill.long-prompt", "network.slow",
    "network.buffered", "network.fixed-offset", "trust.clock", "metric.multi-token-chunks",
    "metric.ttft-misread", "decode.output-growth",
    "trust.contradictory-durations", "decode.below-bound", "decode.offloaded",
    "trust.faster-than-physics", "load.idle-unload", "load.cold-start", "metric.client-hold",
    "errors.truncated-output", "trust.duplicate-usage",
]  # fmt: skip


def _right(rule, segment, requests, value, unit):
    return {
        "rule": rule, "segment": segment, "requests": requests, "tolerance": 0.05,
        "magnitude": {"value": value, "unit": unit},
        "must_not": [other for other in _QUIET if other != rule],
    }  # fmt: skip


def _silent(*may):
    return {"must_not": [rule for rule in _QUIET if rule not in may]}


RIGHT = {
    "A1/main": _right("queue.admission-limit", "queue", 32, 5.02, "s"),
    "A1/twin": _silent("prefill.long-prompt"),
    "A3/main": _right("load.idle-unload", "queue", 5, 8.4, "s"),
    "A3/twin": _silent(),
    # The one-turn prompts are long; the three that lost their cache are not.
    "A2/main": _right("prefill.long-prompt", "prefill", 40, 0.5865, "s"),
    "A2/twin": _right("prefill.long-prompt", "prefill", 43, 0.63, "s"),
    "A4/main": _right("metric.ttft-misread", "none", 24, 8.4, "s"),
    "A4/twin": _silent(),
    "A5/main": _right("network.buffered", "network", 10, 3.99, "s"),
    "A5/twin": _silent(),
    "A6/main": _right("decode.prefill-interference", "decode", 8, 7.68, "s"),
    "A6/twin": _silent(),
    "A7/main": _right("decode.preemption", "decode", 2, 3.24, "s"),
    "A7/twin": _silent(),
    "A8/main": _right("metric.multi-token-chunks", "none", 20, 4.0, "tokens"),
    "A8/twin": _silent(),
    "A13/main": _right("trust.duplicate-usage", "none", 70, 3.083, "times"),
    "A13/twin": _silent(),
    "A15/main": _right("decode.below-bound", "decode", 5, 4.83 / 14.9, "ratio"),
    "A15/twin": _silent(),
    "A16/main": _right("decode.offloaded", "decode", 20, 1.70e9 / 60e9 * 1e3, "ms"),
    "A16/twin": _silent(),
}


@needs_shared
@pytest.mark.parametrize("name", RIGHT)
def test_verdict(name, tmp_path):
    check_verdict(_case(name, tmp_path), RIGHT[name])


def _case(name, tmp_path):
    """Case of a scenario; a profiler trace has no reader yet, so a copy does without."""
    folder = SHARED / "scenarios" / name
    if list(folder.glob("*.trace.json")):
        ignore = shutil.ignore_patterns("*.trace.json")
        folder = shutil.copytree(folder, tmp_path / "logs", ignore=ignore)
    return case_of(folder, tmp_path / "case.duckdb")


def _median(engine, column):
    order = f"percentile_cont(0.5) WITHIN GROUP (ORDER BY {column})"
    return engine.value(f"SELECT {order} FROM hardware_decode")


@needs_shared
@pytest.mark.parametrize(
    ("name", "expected_ms", "reached"),
    [
        ("A15/main", 4.83, 0.32),
        ("A15/twin", 14.81, 0.85),
        ("A16/main", 47.9, 0.87),
        ("A16/twin", 20.9, 0.85),
    ],
)
def test_bounds_of_scenarios(name, expected_ms, reached, tmp_path):
    with engine_of(_case(name, tmp_path)) as engine:
        assert _median(engine, "expected_ns") / 1e6 == pytest.approx(expected_ms, rel=0.01)
        assert _median(engine, "reached_ratio") == pytest.approx(reached, abs=0.015)


@needs_shared
def test_what_lies_in_main_memory_makes_most_of_the_floor(tmp_path):
    found = {one.rule: one for one in analyzer.findings(_case("A16/main", tmp_path)).found}
    told = {one.label: one.value for one in found["decode.offloaded"].evidence}
    assert told["Bound if all weights were on the GPU"] / 1e6 == pytest.approx(21.4, abs=0.05)
    assert told["Share of the weights that these are"] == pytest.approx(0.085, abs=0.0005)
    assert told["Share of the bound that they make"] == pytest.approx(0.59, abs=0.005)
    read = "Weights read from main memory each token, the input embedding left out"
    assert told[read] == pytest.approx(1621.00 * 2**20, rel=1e-5)
    fits = "Time per output token if all fitted, at the same efficiency"
    assert told[fits] / 1e6 == pytest.approx(24, rel=0.05)


@needs_shared
def test_a_long_prompt_is_named_with_its_steps(tmp_path):
    found = {one.rule: one for one in analyzer.findings(_case("A6/main", tmp_path)).found}
    told = {one.label: one.value for one in found["decode.prefill-interference"].evidence}
    assert told["Request with the largest prompt then"] == "r-08"
    assert told["Its prompt tokens that were not cached"] == 60_000
    assert told["Prompt tokens a step then, at most"] == pytest.approx(3_000, rel=0.05)
    assert told["Time that all streams lost together"] / 1e9 == pytest.approx(61.5, rel=0.01)
    assert told["Usual gap of these streams"] / 1e6 == pytest.approx(16)
    assert told["Mean gap while they stalled"] / 1e6 == pytest.approx(400, rel=0.01)


@needs_shared
def test_what_was_put_out_is_computed_again(tmp_path):
    db = _case("A7/main", tmp_path)
    with engine_of(db) as engine:
        again = engine.rows(
            "SELECT r.id, l.again_tokens AS tokens, l.excess_ns FROM stream_lost AS l "
            "JOIN resolve_request AS r ON l.request_key = r.request_key "
            "WHERE l.cause = 'preemption' ORDER BY r.id"
        )
    assert [(row["id"], row["tokens"]) for row in again] == [("r-10", 1_229), ("r-11", 1_117)]
    assert [row["excess_ns"] / 1e9 for row in again] == pytest.approx([2.09, 4.39], rel=0.01)

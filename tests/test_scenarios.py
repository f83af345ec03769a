"""The shared scenarios: right verdict on each, silence on its twin."""

from __future__ import annotations

from functools import cache

import pytest
from deep import one_in, unless
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
    "errors.truncated-output", "trust.duplicate-usage", "cache.prefix-changed", "cache.expired",
    "cache.model-switch", "cache.evicted", "cache.below-minimum", "cache.unused-writes",
    "prefill.cache-miss", "context.growth", "context.base-inflation", "context.compaction-loop",
    "cost.hidden-attempts", "cost.unreconciled",
    "decode.launch-bound", "decode.host-bound", "decode.communication-bound",
    "decode.straggler-rank", "decode.slow-kernel", "trust.graph-coverage", "trust.truncated",
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
    "A2/main": {
        "also": [
            _right("prefill.cache-miss", "prefill", 3, 1.212, "s")
            | {"told": [3.636e9, 1.425e9, 0.213e9, 9_696, 11_000]},
            _right("prefill.long-prompt", "prefill", 40, 0.5865, "s"),
        ],
        **_right("cache.evicted", "prefill", 3, 3 * 9_696, "tokens"),
        "told": [9_696, 200_000, 100e9, 1.212e9, 3.636e9],
        "must_not": [
            rule
            for rule in _QUIET
            if rule not in ("cache.evicted", "prefill.cache-miss", "prefill.long-prompt")
        ],
    },
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
    "A9/main": _right("cache.prefix-changed", "prefill", 29, 986_000, "tokens")
    | {"cost_usd": "4.5356", "told": [7_552, 49_000, 29]},
    "A9/twin": _silent(),
    "A10/main": _right("cache.expired", "prefill", 5, 500_000, "tokens")
    | {"cost_usd": "2.30", "told": [620e9, 34, 3.095, 1.152, 1.943]},
    "A10/twin": _silent(),
    "A11/main": _right("context.base-inflation", "prefill", 57, 9_416, "tokens")
    | {"cost_usd": "1.0734", "told": [5_992, 15_408, 12, 31, 22_800, 60_400, 0.0188]},
    "A11/twin": _silent(),
    "A12/main": _right("cost.hidden-attempts", "none", 45, 1.035, "usd")
    | {
        "cost_usd": "1.035",
        "told": [60, 105, 2.415, 1.380, 1.75, 60e9, 66e9],
        "said": ["1/2/4 s", "61/62/64 s"],
    },
    "A12/twin": _silent(),
    "A13/main": _right("trust.duplicate-usage", "none", 70, 3.083, "times"),
    "A13/twin": _silent(),
    "A14/main": _right("trust.graph-coverage", "none", 198, 0.01, "ratio")
    | {"told": [200, 0.991, 0.9]},
    "A14/twin": _right("decode.host-bound", "decode", 200, 18.0, "ms")
    | {"told": [0.1, 17.4e6], "said": ["schedule_and_detokenize"]},
    "A15/main": {
        **_right("decode.below-bound", "decode", 5, 4.83 / 14.9, "ratio"),
        "also": [
            _right("decode.launch-bound", "decode", 50, 8.9, "ms")
            | {"told": [6.0e6, 14.9e6, 292, 7.0e6, 4.83e6]}
        ],
        "must_not": [
            rule for rule in _QUIET if rule not in ("decode.below-bound", "decode.launch-bound")
        ],
    },
    "A15/twin": _silent(),
    "A16/main": _right("decode.offloaded", "decode", 20, 1.70e9 / 60e9 * 1e3, "ms"),
    "A16/twin": _silent(),
}


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    """Case of a scenario, read once."""

    @cache
    def read(name):
        made = tmp_path_factory.mktemp("scenario")
        return case_of(SHARED / "scenarios" / name, made / "case.duckdb")

    return read


# The kinds of each are judged on generated cases too (test_runbook.py): here a fixed part of them.
@needs_shared
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=unless(one_in(4, name))) for name in RIGHT]
)
def test_verdict(name, case):
    check_verdict(case(name), RIGHT[name])


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
def test_bounds_of_scenarios(name, expected_ms, reached, case):
    with engine_of(case(name)) as engine:
        assert _median(engine, "expected_ns") / 1e6 == pytest.approx(expected_ms, rel=0.01)
        assert _median(engine, "reached_ratio") == pytest.approx(reached, abs=0.015)


@needs_shared
def test_what_lies_in_main_memory_makes_most_of_the_floor(case):
    found = analyzer.explain(case("A16/main"), "decode.offloaded").outcome
    told = {one.label: one.value for one in found.evidence}
    assert told["Bound if all weights were on the GPU"] / 1e6 == pytest.approx(21.4, abs=0.05)
    assert told["Share of the weights that these are"] == pytest.approx(0.085, abs=0.0005)
    assert told["Share of the bound that they make"] == pytest.approx(0.59, abs=0.005)
    read = "Weights read from main memory each token, the input embedding left out"
    assert told[read] == pytest.approx(1621.00 * 2**20, rel=1e-5)
    fits = "Time per output token if all fitted, at the same efficiency"
    assert told[fits] / 1e6 == pytest.approx(24, rel=0.05)


@needs_shared
def test_a_long_prompt_is_named_with_its_steps(case):
    found = analyzer.explain(case("A6/main"), "decode.prefill-interference").outcome
    told = {one.label: one.value for one in found.evidence}
    assert told["Request with the largest prompt then"] == "r-08"
    assert told["Its prompt tokens that were not cached"] == 60_000
    assert told["Prompt tokens a step then, at most"] == pytest.approx(3_000, rel=0.05)
    assert told["Time that all streams lost together"] / 1e9 == pytest.approx(61.5, rel=0.01)
    assert told["Usual gap of these streams"] / 1e6 == pytest.approx(16)
    assert told["Mean gap while they stalled"] / 1e6 == pytest.approx(400, rel=0.01)


@needs_shared
def test_what_was_put_out_is_computed_again(case):
    db = case("A7/main")
    with engine_of(db) as engine:
        again = engine.rows(
            "SELECT r.id, l.again_tokens AS tokens, l.excess_ns FROM stream_lost AS l "
            "JOIN resolve_request AS r ON l.request_key = r.request_key "
            "WHERE l.cause = 'preemption' ORDER BY r.id"
        )
    assert [(row["id"], row["tokens"]) for row in again] == [("r-10", 1_229), ("r-11", 1_117)]
    assert [row["excess_ns"] / 1e9 for row in again] == pytest.approx([2.09, 4.39], rel=0.01)


@needs_shared
def test_a_larger_first_prompt_is_named_with_its_moment_and_cause(case):
    found = analyzer.explain(case("A11/main"), "context.base-inflation").outcome
    told = {one.label: one.value for one in found.evidence}
    assert told["Start of the first larger prompt"] == 1_785_837_600 * 10**9  # 2026-08-04 10:00Z
    assert told["What grew, by the characters that are told"] == "tool definitions"
    assert told["Median first prompt before"] == pytest.approx(6_000, rel=0.01)
    assert told["Median first prompt since"] == pytest.approx(15_400, rel=0.01)
    times = "Mean first prompt since, as a multiple of the one before"
    assert told[times] == pytest.approx(2.57, abs=0.005)

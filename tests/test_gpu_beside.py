"""Device time beside requests and beside the bound: like is held against like."""

from __future__ import annotations

import json

import pytest
from cases._traces import ALL_REDUCE, BASE_NS, GEMM, Trace, replay
from helpers import case_of, engine_of

from analyzer import api
from analyzer.report.gpu_beside import beside
from analyzer.runbook._play import all_plays

US = 1_000
FILE = {
    "memory_bandwidth_gb_s": 1000, "params": 1e9, "weight_bytes_per_param": 2, "layers": 16,
    "kv_heads": 8, "head_dim": 128, "kv_bytes_per_value": 2,
}  # fmt: skip
# 2 GB of weights and 4 x 1,024 tokens of 65,536 bytes at 1,000 GB/s.
STEP_MS = 2.0 + 4 * 1024 * 65_536 / 1e9


def steps(name, at_us=1_000_000, count=40, every_us=4_000):
    """Steps of 4 ms of which the device is busy for 3."""
    trace = Trace(wall=True)
    for k in range(count):
        trace.annotation(name, at_us + k * every_us, every_us - 10)
        replay(trace, at_us + k * every_us + 20, [(GEMM, 75)] * 40, lag=20)
    return trace


def request(tokens, tpot_ms, name="r-1"):
    """From the begin of the trace on, so many tokens, one every so many milliseconds."""
    return {
        "request_id": name, "vantage": "engine", "started_at": (BASE_NS + 1_000_000 * US) / 1e9,
        "e2e_ms": 20 + tpot_ms * (tokens - 1), "ttft_ms": 20.0, "model": "heron-1",
        "usage": {"prompt_tokens": 1000, "completion_tokens": tokens},
    }  # fmt: skip


def told(tmp_path, trace, *requests):
    logs = tmp_path / "logs"
    logs.mkdir()
    trace.write(logs)
    (logs / "deployment.json").write_text(json.dumps(FILE))
    lines = "".join(json.dumps(one) + "\n" for one in requests)
    if lines:
        (logs / "requests.jsonl").write_text(lines)
    return case_of(logs, tmp_path / "case.duckdb")


def test_a_token_is_held_against_the_bound_where_a_step_gives_one(tmp_path):
    db = told(tmp_path, steps("step[DECODE bs=4 g_sq=4 g_sk=4096]"), request(30, 4.0))
    bound, meanwhile = beside(api.gpu(db))
    reached = f"{100 * STEP_MS / 4:.1f} % of the bound"
    assert f"is {STEP_MS:.2f} ms a token; requests saw 4.00 ms: {reached}" in bound
    assert "takes 4.00 ms on the device, 3.00 ms of it busy" in bound
    assert meanwhile.startswith("1 request ran meanwhile")
    # It begins with work: the gap before that is of the step before.
    assert "75.6 % busy" in meanwhile
    assert "24.4 % waiting for the host" in meanwhile


def test_drafts_are_no_tokens(tmp_path):
    """A step checks three tokens of each of four requests, of which two are kept: 2 ms a token."""
    trace = steps("execute_12_context_0()_generation_4(sq12sk4096sqsq36sqsk12288)")
    db = told(tmp_path, trace, request(60, 2.0))
    devices = api.gpu(db)
    (phase,) = devices.phases.rows
    assert phase["is_drafted"]
    assert phase["token_ns"] == pytest.approx(4_000 * US / 3)
    with engine_of(db) as engine:
        (cell,) = engine.rows("SELECT * FROM gpu_bound")
    assert (cell["batch"], cell["context"], cell["positions"]) == (4, 1024, 3)
    # Weights and caches are read once for all three.
    assert cell["expected_ns"] / 1e6 == pytest.approx(STEP_MS, rel=0.01)
    bound = beside(devices)[0]
    assert f"bound is {STEP_MS:.2f} ms a step" in bound
    assert "2.00 ms a token, which is not held against it: a step gives several" in bound
    assert f"{100 * STEP_MS / 4:.1f} % of the bound is reached" in bound


def test_more_tokens_than_the_bound_allows_are_not_called_a_share_of_it(tmp_path):
    db = told(tmp_path, steps("step[DECODE bs=4 g_sq=4 g_sk=4096]"), request(90, 1.3))
    bound = beside(api.gpu(db))[0]
    assert "1.30 ms a token, which is not held against it" in bound
    assert "something told is wrong" in bound


@pytest.mark.parametrize(
    ("name", "token_us", "drafted"),
    [
        ("step[DECODE bs=4]", 4_000, False),
        # What a draft or its check gives is not told.
        ("step[VERIFY bs=4]", None, True),
        ("step[DRAFT bs=4]", None, True),
        ("execute_context_0(0)_generation_4(8)", 2_000, True),
        ("decode[bs=4/8 tok=12 d=4]", 4_000 / 3, True),
        # What is no decode has no time per token.
        ("step_7", None, False),
        ("step[EXTEND bs=1 toks=900]", None, False),
    ],
)
def test_time_per_token_where_it_is_known(name, token_us, drafted, tmp_path):
    db = told(tmp_path, steps(name, count=5))
    with engine_of(db) as engine:
        rows = engine.rows("SELECT token_ns, is_drafted FROM gpu_step WHERE is_whole")
    assert {row["is_drafted"] for row in rows} == {drafted}
    for row in rows:
        assert row["token_ns"] == (None if token_us is None else pytest.approx(token_us * US))


def test_waiting_in_prefill_does_not_hold_up_the_straggler(tmp_path):
    """Two ranks; one is late by 300 us in prefill, by 200 in decode: a fifth of a decode step."""
    made = [Trace(rank=r, world=2) for r in range(2)]
    for k in range(20):
        prefill = k % 2
        name = f"execute_context_{prefill}({64 * prefill})_generation_{1 - prefill}({1 - prefill})"
        for r, trace in enumerate(made):
            at, late = 1_000 + k * 1_000, (300 if prefill else 200) * r
            trace.annotation(name, at, 990)
            graph = trace.launch(at + 1, graph=True)
            trace.kernel(GEMM, at + 10, 500 + late, graph)
            trace.kernel(ALL_REDUCE, at + 510 + late, 490 - late, graph)
    logs = tmp_path / "logs"
    logs.mkdir()
    for trace in made:
        trace.write(logs)
    front = all_plays()["decode.straggler-rank"].front
    with engine_of(case_of(logs, tmp_path / "case.duckdb")) as engine:
        late = engine.rows("SELECT phase, is_decode FROM gpu_late ORDER BY step_name")
        share = engine.value(front.done_when[0].sql)
        scope = engine.value(front.scope)
        touched = len(engine.rows(front.touched))
    assert {(row["phase"], row["is_decode"]) for row in late} == {
        ("prefill", False), ("decode", True),
    }  # fmt: skip
    # Mean of both ranks: one waits 200 us of each 1,000, the other never.
    assert share == pytest.approx(0.1, rel=0.02)
    assert scope == 2 * touched > 0

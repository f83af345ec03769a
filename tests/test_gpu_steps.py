"""Steps of profiler traces, small enough to add up by hand."""

from __future__ import annotations

import json

import pytest
from cases import g5_graph_coverage, g6_straggler_rank, g7_communication_bound, g9_truncated
from cases._traces import ALL_REDUCE, ARGMAX, BASE_NS, COPY, GEMM, NORM, Trace, eager, replay
from helpers import case_of, claimed, engine_of
from shared import SHARED, needs_shared

import analyzer
from analyzer.analyses.gpu.annotation import step_of
from analyzer.contract.types import CannotSay

US = 1_000


def _case(tmp_path, *traces, files=None):
    logs = tmp_path / "logs"
    logs.mkdir()
    for trace in traces:
        trace.write(logs)
    for name, text in (files or {}).items():
        (logs / name).write_text(text, encoding="utf-8")
    return case_of(logs, tmp_path / "case.duckdb")


def _rows(db, sql):
    with engine_of(db) as engine:
        return engine.rows(sql)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("execute_context_0(0)_generation_32(32)", ("vllm", "decode", 0, 0, 32, 32, None)),
        ("execute_context_2(900)_generation_5(15)", ("vllm", "mixed", 2, 900, 5, 15, None)),
        ("execute_context_1(888_788544)_generation_0(0)", ("vllm", "prefill", 1, 888, 0, 0, None)),
        (
            "execute_41_context_2(sq37sk90sqsq700sqsk99)_generation_4(sq4sk610sqsq4sqsk610)",
            ("vllm", "mixed", 2, 37, 4, 4, 700),
        ),
        ("step[EXTEND bs=3 toks=77]", ("sglang", "prefill", 3, 77, 0, None, None)),
        ("step[DECODE bs=9]", ("sglang", "decode", 0, None, 9, None, None)),
        ("step[VERIFY bs=6]", ("sglang", "decode", 0, None, 6, None, None)),
        ("step[DECODE bs=9 g_sq=9 g_sk=5000]", ("sglang", "decode", 0, None, 9, 9, 5000)),
        ("prefill[bs=2 tok=14721 ctx=[1, 2]]", ("atom", "prefill", 2, 14721, 0, None, None)),
        ("decode[bs=117/128 tok=117 d=117 sk=999]", ("atom", "decode", 0, None, 117, 117, 999)),
        (
            "[Executor] _forward_step 12: 1 ctx reqs, 512 ctx tokens, 7 gen reqs",
            ("trtllm", "mixed", 1, 512, 7, None, None),
        ),
        (
            "[Executor] _forward_step: 0 ctx reqs, 3 gen reqs",
            ("trtllm", "decode", 0, None, 3, None, None),
        ),
        ("ProfilerStep#6", ("profiler", None, None, None, None, None, None)),
        ("step_14", ("other", None, None, None, None, None, None)),
        ("decode_step_3", ("other", "decode", None, None, None, None, None)),
        ("capture_32_FULL", (None,) * 7),
        ("## Call CompiledFxGraph f3x ##", (None,) * 7),
        ("gpu_model_runner: forward", (None,) * 7),
    ],
)
def test_annotations_of_engines(name, told):
    step = step_of(name)
    assert (step.engine, *step[2:8]) == told
    assert step.is_drafted is ("VERIFY" in name or "generation_5(15)" in name)


def test_a_step_adds_up(tmp_path):
    """Two steps. Of the second: 10 us idle, kernels 100-160 and 130-200 us overlap, then a copy."""
    trace = Trace()
    trace.annotation("step_0", 0, 90)
    trace.kernel(GEMM, 30, 60, trace.launch(10))
    trace.annotation("step_1", 91, 200)
    trace.kernel(GEMM, 100, 60, trace.launch(95))
    trace.kernel(NORM, 130, 70, trace.launch(104), stream=8)
    trace.kernel(COPY, 205, 20, trace.launch(112))
    db = _case(tmp_path, trace)
    first, second = _rows(db, "SELECT * FROM gpu_step ORDER BY step")
    assert (first["is_whole"], first["step_ns"], first["busy_ns"]) == (False, 60 * US, 60 * US)
    assert second["is_whole"]
    assert second["start_ns"] == 90 * US
    assert second["end_ns"] == 225 * US
    assert second["step_ns"] == 135 * US == second["busy_ns"] + second["idle_ns"]
    assert second["busy_ns"] == 120 * US == second["compute_ns"] + second["copy_ns"]
    assert second["overlap_ns"] == 30 * US
    assert second["copy_ns"] == 20 * US
    # Launched at 95, after the device went idle at 90; the copy was launched long before 205.
    assert (second["launch_gap_ns"], second["device_gap_ns"]) == (10 * US, 5 * US)
    assert second["launches"] == 3


def test_work_belongs_to_the_step_that_launched_it(tmp_path):
    """The device runs the first step while the host is in the second."""
    trace = Trace()
    for k in range(2):
        trace.annotation(
            f"execute_context_{1 - k}({64 * (1 - k)})_generation_{k}({k})", k * 100, 90
        )
        replay(trace, k * 100 + 10, [(GEMM, 200)] * 3, lag=400 + k * 500)
    rows = _rows(_case(tmp_path, trace), "SELECT * FROM gpu_step ORDER BY step")
    assert [(row["phase"], row["work"], row["busy_ns"]) for row in rows] == [
        ("prefill", 3, 600 * US), ("decode", 3, 600 * US),
    ]  # fmt: skip


def test_why_a_device_had_nothing_to_do(tmp_path):
    trace = Trace()
    # A graph's kernels follow each other on the device while the call that replays it still lasts.
    graph = trace.launch(0, graph=True, dur=100)
    trace.kernel(GEMM, 10, 10, graph)
    trace.kernel(NORM, 30, 10, graph)
    trace.kernel(GEMM, 200, 50, trace.launch(150))
    # Launched 2 us before the device is free: less than an idle device takes to begin.
    trace.kernel(NORM, 255, 10, trace.launch(242))
    trace.kernel(NORM, 270, 10, trace.launch(245))
    gaps = _rows(_case(tmp_path, trace), "SELECT start_ns, end_ns, cause FROM gpu_gap ORDER BY nr")
    first = gaps[0]["start_ns"] - 20 * US
    told = [
        ((one["start_ns"] - first) // US, (one["end_ns"] - first) // US, one["cause"])
        for one in gaps
    ]
    assert told == [
        (20, 30, "device"), (40, 200, "host"), (250, 255, "launch"), (265, 270, "device"),
    ]  # fmt: skip


def test_time_per_token_counts_speculation(tmp_path):
    trace = Trace()
    for k in range(3):
        trace.annotation("execute_context_0(0)_generation_4(12)", k * 1_000, 990)
        replay(trace, k * 1_000 + 10, [(GEMM, 90)] * 10, lag=10)
    rows = _rows(_case(tmp_path, trace), "SELECT * FROM gpu_step WHERE is_whole")
    assert [row["token_ns"] for row in rows] == pytest.approx([1_000 * US / 3] * 2)


def test_the_outermost_annotation_counts(tmp_path):
    trace = Trace()
    for k in range(4):
        trace.annotation("execute_context_0(0)_generation_8(8)", k * 500, 490)
        trace.annotation("step[DECODE bs=8]", k * 500 + 5, 480)
        replay(trace, k * 500 + 20, [(GEMM, 40)] * 10)
    trace.annotation("ProfilerStep#1", -1, 2_000)
    rows = _rows(_case(tmp_path, trace), "SELECT name, count(*) AS n FROM gpu_step GROUP BY name")
    assert rows == [{"name": "execute_context_0(0)_generation_8(8)", "n": 4}]


@pytest.mark.parametrize("how", ["graph", "sampling", "period"])
def test_steps_without_annotations_are_inferred(tmp_path, how):
    """Ten steps of 50 kernels; what ends or begins them differs."""
    trace = Trace()
    names = [(GEMM, 10.0), (NORM, 6.0)] * 24
    for k in range(10):
        at = 1_000 + k * 1_500
        if how == "graph":
            replay(trace, at, [*names, (GEMM, 5), (NORM, 5)])
        else:
            eager(trace, at, [("embed", 7), *names, (ARGMAX if how == "sampling" else NORM, 5)], 20)
    rows = _rows(_case(tmp_path, trace), "SELECT * FROM gpu_step WHERE is_whole ORDER BY step")
    assert {row["told_by"] for row in rows} == {f"inferred: {how}"}
    assert len(rows) >= 8
    assert {row["work"] for row in rows} == {50}
    assert {row["step_ns"] for row in rows} == {1_500 * US}


def test_waiting_is_told_from_transfer_whatever_the_clocks(tmp_path):
    """Rank 1 comes 30 us after rank 0, its clock is 2 s ahead; the transfer takes 8 us."""
    made = [Trace(rank=r, world=2, offset_us=r * 2_000_000.0) for r in range(2)]
    for k in range(10):
        for r, trace in enumerate(made):
            at = 1_000 + k * 400
            trace.annotation(f"step_{k}", at, 390)
            graph = trace.launch(at + 1, graph=True)
            trace.kernel(GEMM, at + 10, 100 + 30 * r, graph)
            trace.kernel(ALL_REDUCE, at + 110 + 30 * r, 38 - 30 * r, graph)
    db = _case(tmp_path, *made)
    ranks = _rows(db, "SELECT * FROM gpu_rank ORDER BY rank_key")
    assert [row["offset_ns"] for row in ranks] == [0, 2_000_000 * US]
    assert [row["comm_wait_ns"] for row in ranks] == pytest.approx([30 * US, 0])
    assert [row["comm_transfer_ns"] for row in ranks] == pytest.approx([8 * US, 8 * US])
    assert [row["is_straggler"] for row in ranks] == [False, True]


def test_nothing_is_said_of_idle_time_that_was_not_recorded(tmp_path):
    logs = tmp_path / "logs"
    logs.mkdir()
    g5_graph_coverage.main(logs)
    result = analyzer.findings(case_of(logs, tmp_path / "case.duckdb"))
    blind = {one.rule: one for one in result.cannot_say}
    for rule in ("launch-bound", "host-bound", "communication-bound", "slow-kernel"):
        one = blind[f"decode.{rule}"]
        assert one.coverage < 0.03
        assert "buffer" in one.missing[0].how
    (found,) = [one for one in result.found if one.rule == "trust.graph-coverage"]
    assert found.unit == "launches"
    assert "refused" in found.symptom


@pytest.mark.parametrize(
    ("write", "rule"),
    [
        (g6_straggler_rank.missing, "decode.straggler-rank"),
        (g7_communication_bound.alone, "decode.communication-bound"),
        (g9_truncated.absent, "decode.straggler-rank"),
    ],
)
def test_missing_ranks_are_asked_for(tmp_path, write, rule):
    logs = tmp_path / "logs"
    logs.mkdir()
    write(logs)
    outcome = analyzer.explain(case_of(logs, tmp_path / "case.duckdb"), rule).outcome
    assert isinstance(outcome, CannotSay)
    assert any("every rank" in one.how for one in outcome.missing)


def test_launches_on_another_thread_are_of_no_step(tmp_path):
    trace = Trace()
    trace.annotation("step_0", 0, 1_000)
    trace.kernel(GEMM, 30, 60, trace.launch(10))
    for event in trace.events:
        if event["cat"] == "cuda_runtime":
            event["tid"] = 77
    rows = _rows(_case(tmp_path, trace), "SELECT step FROM gpu_work")
    assert rows == [{"step": None}]


def test_device_time_is_joined_to_requests(tmp_path):
    """A request of 25 ms over steps of 10 ms, of which 6 ms are busy; wall clocks agree."""
    trace = Trace(wall=True)
    for k in range(10):
        trace.annotation("step[DECODE bs=1]", 1_000_000 + k * 10_000, 9_990)
        replay(trace, 1_000_000 + k * 10_000 + 20, [(GEMM, 600)] * 10, lag=20)
    sent = (BASE_NS + 1_040_000 * US) / 1e9
    record = {
        "request_id": "r-1", "vantage": "engine", "started_at": sent, "e2e_ms": 25.0,
        "ttft_ms": 5.0, "model": "heron-1", "usage": {"prompt_tokens": 10, "completion_tokens": 3},
    }  # fmt: skip
    db = _case(tmp_path, trace, files={"requests.jsonl": json.dumps(record) + "\n"})
    (row,) = _rows(db, "SELECT * FROM gpu_request")
    assert row["traced_ns"] == pytest.approx(25_000 * US, rel=0.01)
    assert row["busy_ns"] == pytest.approx(15_000 * US, rel=0.01)
    assert row["covered_ratio"] == pytest.approx(1, abs=0.01)
    assert row["steps"] in (2, 3)


def test_annotated_steps_have_a_bound_without_any_request(tmp_path):
    """2 GB of weights and 4 x 1,024 tokens of 65,536 bytes at 1,000 GB/s: 2.27 ms."""
    told = {
        "memory_bandwidth_gb_s": 1000, "params": 1e9, "weight_bytes_per_param": 2, "layers": 16,
        "kv_heads": 8, "head_dim": 128, "kv_bytes_per_value": 2,
    }  # fmt: skip
    trace = Trace()
    for k in range(5):
        trace.annotation("step[DECODE bs=4 g_sq=4 g_sk=4096]", k * 5_000, 4_990)
        replay(trace, k * 5_000 + 20, [(GEMM, 400)] * 10)
    db = _case(tmp_path, trace, files={"deployment.json": json.dumps(told)})
    (row,) = _rows(db, "SELECT * FROM gpu_bound")
    assert (row["batch"], row["context"], row["steps"]) == (4, 1024, 5)
    assert row["expected_ns"] / 1e6 == pytest.approx(2.0 + 4 * 1024 * 65_536 / 1e9, rel=0.01)


def test_findings_speak_of_steps(tmp_path):
    trace = Trace()
    for k in range(20):
        trace.annotation(f"step_{k}", 1_000 + k * 4_000, 3_990)
        eager(trace, 1_005 + k * 4_000, [(GEMM, 10)] * 80, 49)
    db = _case(tmp_path, trace)
    found = claimed(db)["decode.launch-bound"]
    assert (found.unit, found.requests) == ("steps", 20)
    assert found.window is None
    assert found.examples[0].startswith("step_")
    # 80 kernels of 10 us and a sixth.
    assert found.done_when[0].value == pytest.approx(0.8 * 7 / 6)
    assert "20 steps" in analyzer.findings(db).verdict
    assert "at least 3 steps" in analyzer.explain(db, "decode.launch-bound").fires_when


@needs_shared
@pytest.mark.parametrize(
    ("name", "told"),
    [
        # Sums and unions as the notes on these files give them; batch and cached tokens by name.
        ("vllm_mi300_decode_fullgraph_step", ("decode", 32, 55_086, 10_717_708, 0)),
        ("vllm_mi300_mixed_piecewise_step", ("mixed", 37, 42_919, 156_085_793, 112)),
        ("sglang_mi300_qwen3_8b_decode_step", ("decode", 32, 32_785, 9_772_926, 5_688)),
        ("vllm_b200_tp8_prefill_eager", ("prefill", 0, None, 11_596_482, 69_278)),
    ],
)
def test_steps_of_real_traces(tmp_path, name, told):
    """Nothing of a step is lost, whenever the device ran it."""
    db = tmp_path / "case.duckdb"
    analyzer.ingest(str(db), [str(SHARED / "formats" / "samples" / "gpu" / f"{name}.json.gz")])
    (row,) = _rows(str(db), "SELECT * FROM gpu_step")
    keys = ("phase", "decode_requests", "kv_tokens", "busy_ns", "overlap_ns")
    assert tuple(row[key] for key in keys) == told
    assert row["busy_ns"] == row["compute_ns"] + row["comm_ns"] + row["copy_ns"]
    gaps = ("launch_gap_ns", "host_gap_ns", "device_gap_ns", "unknown_gap_ns")
    assert row["idle_ns"] == sum(row[key] for key in gaps)
    assert not {rule for rule in claimed(str(db)) if rule.startswith("decode.")}

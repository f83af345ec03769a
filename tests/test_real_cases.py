"""Real logs, from file to attribution: the numbers their owners published."""

from __future__ import annotations

import json

import pytest
from helpers import engine_of
from shared import SHARED, needs_shared

import analyzer

pytestmark = needs_shared
ENGINES = SHARED / "formats" / "samples" / "engines"
RUNS = SHARED / "traces" / "2-measured" / "casys-kaist__LLMServingSim"
MS = 1_000_000


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    db = str(tmp_path_factory.mktemp("runs") / "case.duckdb")
    analyzer.ingest(db, [str(RUNS)])
    return db


def test_queue_shares_of_three_runs_in_one_case(runs):
    rows = analyzer.latency(runs, by=["source"]).rows
    shares = {row["source"]: row["share"] for row in rows if row["metric"] == "queue"}
    assert {
        name.split("~requests")[0]: round(100 * share, 1) for name, share in shares.items()
    } == {
        "RTX4090~Llama-3.1-8B": 75.3,
        "RTXPRO6000~Llama-3.1-8B": 24.7,
        "RTXPRO6000~Qwen3-30B-A3B-Instruct-2507": 2.9,
    }


def test_repeating_ids_are_not_merged(runs):
    with engine_of(runs) as engine:
        (row,) = engine.rows(
            "SELECT count(*) AS n, count(DISTINCT id) AS ids, max(vantages) AS v "
            "FROM resolve_request"
        )
    assert row == {"n": 900, "ids": 300, "v": 1}


@pytest.mark.parametrize(
    "run",
    ["RTX4090~Llama-3.1-8B", "RTXPRO6000~Llama-3.1-8B", "RTXPRO6000~Qwen3-30B-A3B-Instruct-2507"],
)
def test_means_agree_with_the_runs_own_summary(runs, run):
    published = {}
    for line in (RUNS / f"{run}~summary.txt").read_text().splitlines():
        words = line.split()
        if len(words) == 5 and words[1] in ("Mean", "Median"):
            published[words[0], words[1]] = float(words[2])
    ours = {
        row["metric"]: row
        for row in analyzer.latency(runs, by=["source"]).rows
        if row["source"].startswith(run)
    }
    for name, metric in (("TTFT", "ttft"), ("TPOT", "tpot"), ("Latency", "e2e")):
        for statistic, key in (("Mean", "mean_ns"), ("Median", "p50_ns")):
            assert ours[metric][key] / MS == pytest.approx(published[name, statistic], abs=0.051)


def test_two_spans_and_their_client_records_show_the_time_outside(tmp_path):
    db = str(tmp_path / "case.duckdb")
    analyzer.ingest(
        db,
        [
            str(ENGINES / "vllm_otlp_llm_request_spans.jsonl"),
            str(ENGINES / "vllm_proxy_trace_matching_spans.jsonl"),
        ],
    )
    with engine_of(db) as engine:
        rows = engine.rows("SELECT network_ns FROM latency_segment ORDER BY request_key")
    assert [round(row["network_ns"] / MS, 1) for row in rows] == [3.9, 2.6]


def test_bench_segments_agree_with_what_the_server_did(tmp_path):
    db = str(tmp_path / "case.duckdb")
    analyzer.ingest(db, [str(ENGINES / "real_run_vllm_0.33.0_bench_serve_detailed.json")])
    truth = [
        json.loads(line)
        for line in (ENGINES / "real_run_vllm_bench_truth.jsonl").read_text().splitlines()
    ]
    truth.sort(key=lambda one: int(one["x_request_id"].rsplit("-", 1)[1]))
    with engine_of(db) as engine:
        rows = engine.rows(
            "SELECT s.*, r.vantages FROM latency_segment AS s JOIN resolve_request AS r "
            "ON s.request_key = r.request_key ORDER BY r.request_key"
        )
    assert len(rows) == len(truth) == 16
    rest = []
    for row, told in zip(rows, truth, strict=True):
        assert row["vantages"] == 2
        assert row["queue_ns"] / 1e9 == pytest.approx(
            told["scheduled"] - told["arrival"], abs=0.001
        )
        prefill = told["first_token"] - told["scheduled"]
        assert row["prefill_ns"] / 1e9 == pytest.approx(prefill, abs=0.001)
        whole = told["last_token"] - told["arrival"]
        assert row["e2e_ns"] / 1e9 == pytest.approx(whole, abs=0.015)
        rest.append(row["unattributed_ttft_ns"] / MS)
    rest.sort()
    assert round(rest[0], 1) == 1.3
    assert round((rest[7] + rest[8]) / 2, 1) == 3.0
    assert round(rest[-1], 1) == 12.1

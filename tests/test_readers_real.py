"""Readers against real files, where these lie beside the checkout."""

import json
import re
import statistics

import pytest
from shared import SHARED, needs_shared
from test_readers import READERS, read, rows_of

from analyzer.readers._file import InputFile
from analyzer.readers._find import pick

pytestmark = needs_shared

ENGINES = SHARED / "formats/samples/engines"
SIMULATED = SHARED / "traces/2-measured/casys-kaist__LLMServingSim"
SERVERS = SHARED / "traces/2-measured/heyram74__nebius_sopertors_inferencex_benchmark"
RUNS = {
    "RTX4090~Llama-3.1-8B": 75.3,
    "RTXPRO6000~Llama-3.1-8B": 24.7,
    "RTXPRO6000~Qwen3-30B-A3B-Instruct-2507": 2.9,
}


def rows(path, table, reader):
    """Rows of one table; the file must be claimed by ``reader`` and have no problem."""
    found = pick(InputFile(path, path.name).head)
    assert found.reader is READERS[reader], found.why
    batches = read(READERS[reader], path)
    assert [problem for batch in batches for problem in batch.problems] == []
    return [row for name, row in rows_of(batches) if name == table]


def percentile(values, share):
    """Linear between neighbours, as the summaries have it."""
    values = sorted(values)
    place = (len(values) - 1) * share
    low = int(place)
    high = min(low + 1, len(values) - 1)
    return values[low] + (values[high] - values[low]) * (place - low)


def test_two_spans_and_the_proxy_that_saw_the_same_calls():
    spans = rows(ENGINES / "vllm_otlp_llm_request_spans.jsonl", "request", "otlp_json")
    calls = rows(
        ENGINES / "vllm_proxy_trace_matching_spans.jsonl", "request", "openai_proxy_records"
    )
    assert [span["request_id"] for span in spans] == [call["response_id"] for call in calls]
    assert [round(span["e2e_ns"] / 1e6, 1) for span in spans] == [108.2, 843.9]
    network = [
        round((call["e2e_ns"] - span["e2e_ns"]) / 1e6, 1)
        for call, span in zip(calls, spans, strict=True)
    ]
    assert network == [3.9, 2.6]
    # 10.8 ms before and 0.3 ms after; 6.1 ms before and -0.8 ms, so none, after
    assert [round(span["frontend_ns"] / 1e6, 1) for span in spans] == [11.1, 6.1]
    assert [span["output_visible_tokens"] for span in spans] == [2, 40]
    assert all("cache_read_tokens" not in span for span in spans)
    assert all("deployment" not in span for span in spans)


@pytest.mark.parametrize(("run", "share"), RUNS.items())
def test_queue_share_of_a_run(run, share):
    requests = rows(SIMULATED / f"{run}~requests.jsonl", "request", "vllm_request_stats")
    assert len(requests) == 300
    queue = sum(one["queue_ns"] for one in requests)
    e2e = sum(one["e2e_ns"] for one in requests)
    assert round(100 * queue / e2e, 1) == share
    for one in requests:
        assert one["queue_ns"] + one["prefill_ns"] + one["decode_ns"] == one["e2e_ns"]


@pytest.mark.parametrize("run", RUNS)
def test_summary_of_a_run_is_reproduced(run):
    requests = rows(SIMULATED / f"{run}~requests.jsonl", "request", "vllm_request_stats")
    told = {
        "TTFT": [one["ttft_ns"] / 1e6 for one in requests],
        "TPOT": [
            (one["e2e_ns"] - one["ttft_ns"]) / 1e6 / (one["output_visible_tokens"] - 1)
            for one in requests
        ],
        "Latency": [one["e2e_ns"] / 1e6 for one in requests],
    }
    summary = (SIMULATED / f"{run}~summary.txt").read_text()
    lines = re.findall(r"^(\w+) (Mean|Median|P\d+) +([\d.]+)", summary, re.MULTILINE)
    assert len(lines) == 15
    for metric, kind, value in lines:
        if kind == "Mean":
            ours = statistics.fmean(told[metric])
        else:
            ours = percentile(told[metric], 0.5 if kind == "Median" else int(kind[1:]) / 100)
        assert ours == pytest.approx(float(value), abs=0.051), f"{metric} {kind}"


@pytest.mark.parametrize("run", RUNS)
def test_settings_and_state_of_a_run(run):
    (settings,) = rows(SIMULATED / f"{run}~meta.json", "deployment", "vllm_run_meta")
    samples = rows(SIMULATED / f"{run}~timeseries.csv", "engine_sample", "vllm_run_timeseries")
    assert settings["tp"] == 1
    # The third run has two engines that admit 128 each; its samples add them up.
    assert settings["max_running"] == (128 if run.startswith("RTXPRO6000~Llama") else 256)
    assert max(one["running"] for one in samples) <= settings["max_running"]
    assert ("kv_capacity_tokens" in settings) == ("4090" in run)
    ratios = [one["kv_used_ratio"] for one in samples if "kv_used_ratio" in one]
    # Two of the runs wrote 0 for every second with requests in the batch.
    assert (max(ratios, default=0) > 0.9) == ("4090" in run)
    assert pick(InputFile(SIMULATED / f"{run}~summary.txt", "summary.txt").head).reader is None


@pytest.mark.parametrize(
    ("path", "lines", "capacity"),
    [
        (ENGINES / "vllm_0.22.1_server_conc16.log", 15, 13_252_813),
        (ENGINES / "vllm_0.22.1_server_conc64.log", 17, 2_560_976),
    ],
    ids=["conc16", "conc64"],
)
def test_engine_logs(path, lines, capacity):
    samples = rows(path, "engine_sample", "vllm_log")
    stats = [one for one in samples if "running" in one]
    assert len(stats) == lines
    assert all(one["waiting"] == 0 and one["prefix_hit_ratio"] == 0 for one in stats)
    assert [one["capacity_tokens"] for one in samples if "capacity_tokens" in one] == [capacity]
    text = path.read_bytes()
    batches = read(READERS["vllm_log"], path)
    ignored = sum(batch.ignored.get("access line", 0) for batch in batches)
    assert ignored == text.count(b"HTTP/1.1")
    assert sum(batch.records for batch in batches) == text.count(b"\n")


def test_engine_log_with_a_queue():
    (path,) = SERVERS.glob("*vllm22.0*tp4_conc64*server.log")
    stats = [one for one in rows(path, "engine_sample", "vllm_log") if "running" in one]
    assert len(stats) == 16
    assert max(one["running"] for one in stats) == 64
    assert max(one["waiting"] for one in stats) == 35


def test_bench_against_the_engine_s_own_times():
    path = ENGINES / "real_run_vllm_0.33.0_bench_serve_detailed.json"
    requests = rows(path, "request", "vllm_bench_serve")
    client = {one["request_id"]: one for one in requests if one["vantage"] == "client"}
    engine = {one["request_id"]: one for one in requests if one["vantage"] == "engine"}
    assert client.keys() == engine.keys()
    rest = sorted(
        (client[one]["ttft_ns"] - engine[one]["queue_ns"] - engine[one]["prefill_ns"]) / 1e6
        for one in client
    )
    assert [round(x, 1) for x in (rest[0], statistics.median(rest), rest[-1])] == [1.3, 3.0, 12.1]
    lines = (ENGINES / "real_run_vllm_bench_truth.jsonl").read_text().splitlines()
    truth = [json.loads(line) for line in lines]
    queues = sorted(1e9 * (one["scheduled"] - one["arrival"]) for one in truth)
    assert sorted(one["queue_ns"] for one in engine.values()) == pytest.approx(queues, abs=2000)
    assert len(rows(path, "chunk", "vllm_bench_serve")) == 16 * 20


def test_bench_summary_is_refused_with_a_reason():
    path = ENGINES / "inferencex_bench_serving_conc16.json"
    found = pick(InputFile(path, path.name).head)
    assert found.reader is None
    assert "summary" in found.why

"""SGLang's formats: against real files where these lie beside the checkout, and trap by trap."""

import json
import statistics

import pytest
from shared import SHARED, needs_shared
from test_readers import OPTIONS, READERS, SAMPLES, read, read_bytes, rows_of, totals

from analyzer.readers._file import InputFile
from analyzer.readers._find import pick
from analyzer.readers._reader import Options

ENGINES = SHARED / "formats/samples/engines"
MEASURED = SHARED / "traces/2-measured"
SERVER = next(
    (MEASURED / "heyram74__nebius_sopertors_inferencex_benchmark").glob("*sglang*~server.log"),
    ENGINES / "absent",
)
HEAD = "[2026-09-17 14:00:00 TP0] "


def read_text(reader, text, tmp_path, options=OPTIONS):
    file = tmp_path / "file.log"
    file.write_text(text)
    batches = read(READERS[reader], file, options)
    return rows_of(batches), [p.reason for b in batches for p in b.problems], batches


def claimed(path, reader):
    found = pick(InputFile(path, path.name).head)
    assert found.reader is READERS[reader], found.why
    batches = read(READERS[reader], path)
    assert [problem for batch in batches for problem in batch.problems] == []
    return rows_of(batches), batches


# -- real files -----------------------------------------------------------------------------------


@needs_shared
def test_server_log_tells_every_batch():
    rows, batches = claimed(SERVER, "sglang_log")
    samples = [row for table, row in rows if table == "engine_sample"]
    prefill = [row for row in samples if "prompt_tokens_per_s" in row]
    decode = [row for row in samples if "generation_tokens_per_s" in row]
    assert (len(prefill), len(decode)) == (549, 11_691)
    assert max(row["waiting"] for row in prefill) == 29
    assert {row["prefix_hit_ratio"] for row in prefill} == {0.0}
    speeds = [row["generation_tokens_per_s"] for row in decode]
    assert statistics.median(speeds) == pytest.approx(2_442, abs=1)
    assert {row["engine"] for row in samples} == {"TP0"}
    _, used, ignored = totals(batches)
    loads = [row for table, row in rows if table == "engine_event" and row["kind"] == "load"]
    assert len({row["engine"] for row in loads}) == 8
    assert used == len(rows)
    assert ignored["access line"] > 0


@needs_shared
def test_second_server_log_tells_its_pool():
    rows, _ = claimed(ENGINES / "sglang_0.5.12_server_conc16.log", "sglang_log")
    samples = [row for table, row in rows if table == "engine_sample"]
    assert [row["capacity_tokens"] for row in samples if "capacity_tokens" in row] == [509_157]
    assert sum("generation_tokens_per_s" in row for row in samples) == 11_078
    assert max(row.get("running", 0) for row in samples) == 16
    (first,) = [row for table, row in rows if table == "engine_event" and row["kind"] == "load"][:1]
    assert first["dur_ns"] > 500_000_000_000


@needs_shared
def test_real_lines_of_other_versions():
    rows, _ = claimed(ENGINES / "snippets/sglang_req_time_stats.log", "sglang_log")
    request, decode, hybrid = (row for _, row in rows)
    # 8.349 s before the line, which a server seven hours behind UTC wrote
    assert request["start_ns"] == 1_790_239_662_267_000_000
    assert request["queue_ns"] == 410_000
    assert "e2e_ns" not in request
    assert (decode["engine"], decode["kv_used_ratio"]) == ("DP0 TP0 EP0", 0.19)
    assert hybrid["prefix_hit_ratio"] == pytest.approx(128 / 192, abs=1e-6)


@needs_shared
def test_bench_serving_against_an_engine_with_known_times():
    path = ENGINES / "real_run_sglang_bench_serving_0.5.6_details.jsonl"
    rows, _ = claimed(path, "sglang_bench_serving")
    requests = [row for table, row in rows if table == "request"]
    told = json.loads(path.read_text())
    truth_lines = (ENGINES / "real_run_sglang_bench_truth.jsonl").read_text().splitlines()
    truth = [json.loads(line) for line in truth_lines]
    assert len(requests) == told["completed"] == 16
    for key, column in (("ttft", "ttft_ns"), ("e2e_latency", "e2e_ns")):
        values = [row[column] / 1e6 for row in requests]
        slack = 1e-3 if key == "ttft" else 1.5  # its latency also counts the closing event
        assert statistics.fmean(values) == pytest.approx(told[f"mean_{key}_ms"], abs=slack)
    truth = [one for one in truth if one["status"] == "ok"][-16:]
    client = sorted(row["ttft_ns"] / 1e6 for row in requests)
    engine = sorted(1e3 * (one["first_token"] - one["arrival"]) for one in truth)
    assert statistics.median(client) == pytest.approx(statistics.median(engine), abs=15)
    chunks = sum(table == "chunk" for table, _ in rows)
    assert chunks == sum(map(len, told["itls"])) + 16 == told["total_output_tokens"]


@needs_shared
@pytest.mark.parametrize(
    "name",
    ["TonyLi15__sglang-benchmark/agg_local.jsonl",
     "datacrunch-research__h200-benchmarks/llama_3_3_70b_online_output.jsonl"],
)  # fmt: skip
def test_summaries_are_refused_with_the_way_out(name):
    found = pick(InputFile(MEASURED / name, name).head)
    assert found.reader is None
    assert "--output-details" in found.why


# -- scheduler lines ------------------------------------------------------------------------------

DECODE = (
    "Decode batch, #running-req: 3, #token: 940, token usage: 0.08, cuda graph: True, "
    "gen throughput (token/s): 60.89, #queue-req: 2"
)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("#running-req: 3", "#running-req: three"), "cannot be read"),
        (("60.89", "60,89"), "cannot be read"),
        (("gen throughput (token/s): 60.89, ", ""), "cannot be read"),
        (("2026-09-17", "2026-02-30"), "time"),
        ((HEAD, ""), "time"),
    ],
)
def test_scheduler_line_that_cannot_be_read_is_a_problem(change, reason, tmp_path):
    rows, problems, _ = read_text("sglang_log", (HEAD + DECODE + "\n").replace(*change), tmp_path)
    assert rows == []
    assert len(problems) == 1
    assert reason in problems[0]


@pytest.mark.parametrize(
    "line",
    [
        DECODE.replace("batch,", "batch."),
        DECODE.replace("batch,", "batch [77],"),
        DECODE.replace("cuda graph: True, ", ""),
        DECODE + ",",
        DECODE.replace("cuda graph", "npu graph").replace("#token: 940, ", ""),
        DECODE.replace("token usage: 0.08", "swa token usage: 0.08, full token usage: 0.01"),
    ],
)
def test_variants_of_a_decode_line_tell_the_same(line, tmp_path):
    rows, problems, _ = read_text("sglang_log", HEAD + line + "\n", tmp_path)
    assert problems == []
    ((_, row),) = rows
    told = (row["running"], row["waiting"], row["kv_used_ratio"], row["generation_tokens_per_s"])
    assert told == (3, 2, 0.08, 60.89)


def test_prompt_text_is_no_scheduler_line(tmp_path):
    line = f"{HEAD}Receive: obj=GenerateReqInput(rid='r', text='{HEAD}{DECODE}')\n"
    rows, problems, batches = read_text("sglang_log", line, tmp_path)
    assert (rows, problems) == ([], [])
    assert totals(batches)[2] == {"received request: its finish repeats it": 1}


def test_zone_comes_from_the_options_and_is_told(tmp_path):
    options = Options(zone="Asia/Tokyo")
    rows, _, batches = read_text("sglang_log", HEAD + DECODE + "\n", tmp_path, options)
    assert rows[0][1]["time_ns"] == 1_789_621_200_000_000_000  # 05:00 UTC
    assert "Asia/Tokyo" in " ".join(batches[0].assumed)


# -- requests -------------------------------------------------------------------------------------

STATS = (
    "ReqTimeStats(rid=r1, input_len=9, cached_input_len=4, output_len=2, type=unified): "
    "queue_duration=QUEUEms, forward_duration=8.00ms, entry_time=1789653599.000"
)
FINISH = (
    '{"timestamp": "2026-09-17T14:00:00", "event": "request.finished", "rid": "r1", "obj": {}, '
    '"out": {"meta_info": {"id": "r1", "prompt_tokens": 9, "cached_tokens": 4, '
    '"completion_tokens": 2, "e2e_latency": 0.5, "finish_reason": null}}}'
)


@pytest.mark.parametrize("order", [1, -1])
def test_two_lines_about_a_request_make_one_row(order, tmp_path):
    lines = [HEAD + STATS.replace("QUEUE", "2.00"), HEAD + FINISH][::order]
    rows, problems, _ = read_text("sglang_log", "\n".join(lines) + "\n", tmp_path)
    assert problems == []
    ((_, row),) = rows
    assert (row["record"], row["queue_ns"], row["e2e_ns"]) == (1, 2_000_000, 500_000_000)
    assert (row["input_fresh_tokens"], row["cache_read_tokens"]) == (5, 4)


def test_an_id_used_twice_makes_two_rows(tmp_path):
    lines = [HEAD + STATS.replace("QUEUE", "2.00"), HEAD + FINISH] * 2
    rows, _, _ = read_text("sglang_log", "\n".join(lines) + "\n", tmp_path)
    assert [row["queue_ns"] for _, row in rows] == [2_000_000] * 2


def test_negative_queue_is_not_told(tmp_path):
    line = HEAD + STATS.replace("QUEUE", "-2990.00") + "\n"
    ((_, row),), (problem,), _ = read_text("sglang_log", line, tmp_path)
    assert not {"queue_ns", "e2e_ns"} & row.keys()
    assert "below zero" in problem


def test_log_that_hides_fast_requests_says_so(tmp_path):
    received = FINISH.replace("request.finished", "request.received")
    _, _, batches = read_text("sglang_log", f"{HEAD}{received}\n" * 30 + FINISH + "\n", tmp_path)
    assert "SGLANG_LOG_REQUEST_EXCEEDED_MS" in " ".join(batches[-1].assumed)


def test_unknown_event_is_a_problem(tmp_path):
    text = FINISH.replace("request.finished", "request.dreamt")
    rows, (problem,), _ = read_text("sglang_log", text + "\n", tmp_path)
    assert rows == []
    assert "not known" in problem


@pytest.mark.parametrize(
    "line",
    [
        "ReqTimeStats(rid=" + "a" * 3_000_000,
        "ReqTimeStats(rid=" * 200_000,
        "Finish: obj=X(), out={'meta_info': {" + "\"'" * 1_000_000,
        "Finish: obj=X(), out={'meta_info': {" + "[" * 1_000_000,
        "Finish: obj=X(), out={'meta_info': {'a': " + '"\\"' * 1_000_000,
    ],
    ids=["rid", "again", "quotes", "nested", "escapes"],
)
def test_hostile_line_is_one_problem_at_once(line, tmp_path):
    rows, problems, _ = read_text("sglang_log", HEAD + line + "\n", tmp_path)
    assert rows == []
    assert len(problems) == 1


METRICS = json.loads(
    '{"request_parameters": "{}", "id": "m", "prompt_tokens": 5, "completion_tokens": 3, '
    '"e2e_latency": 2.0, "request_received_ts": 1789653600.0, "queue_time": 0.5, '
    '"forward_entry_time": 1789653600.75, "prefill_finished_time": 1789653601.0, '
    '"request_finished_ts": 1789653602.0}'
)


@pytest.mark.parametrize(
    ("change", "absent", "reason"),
    [
        ({"queue_time": -2.99}, {"queue_ns", "frontend_ns"}, "queue_time"),
        ({"queue_time": 90_000.0}, {"queue_ns", "frontend_ns"}, "queue_time"),
        ({"forward_entry_time": 48_211.5}, {"prefill_ns", "frontend_ns"}, "prefill"),
        ({"e2e_latency": 3.0}, set(), "another"),
    ],
)
def test_durations_that_cannot_be_are_not_told(change, absent, reason, tmp_path):
    text = json.dumps({**METRICS, **change}) + "\n"
    ((_, row),), (problem,), _ = read_text("sglang_request_metrics", text, tmp_path)
    assert reason in problem
    names = {"queue_ns", "prefill_ns", "decode_ns", "frontend_ns"}
    assert names - row.keys() == absent


def test_health_checks_are_no_requests(tmp_path):
    text = json.dumps({**METRICS, "id": "HEALTH_CHECK_1"}) + "\n"
    rows, problems, batches = read_text("sglang_request_metrics", text, tmp_path)
    assert (rows, problems) == ([], [])
    assert totals(batches)[2] == {"health check": 1}


# -- spans ----------------------------------------------------------------------------------------


def test_cut_jaeger_document_gives_the_spans_before_the_cut(tmp_path):
    path = SAMPLES / "jaeger_json/traces.json"
    data = path.read_bytes()
    cut = data.index(b'"llm_request"')
    batches = read_bytes(path, data[:cut], tmp_path)
    assert [row["request_id"] for _, row in rows_of(batches)] == ["sg-jae-r1"]
    (problem,) = (p for b in batches for p in b.problems)
    assert "breaks off" in problem.reason
    assert totals(batches)[0] == 6  # four spans, one of the second trace, and the cut


def test_root_without_stages_claims_no_prefill(tmp_path):
    lines = (SAMPLES / "otlp_json/sglang.jsonl").read_text().splitlines()
    file = tmp_path / "spans.jsonl"
    file.write_text(lines[1] + "\n")
    ((_, row),) = rows_of(read(READERS["otlp_json"], file))
    assert not {"queue_ns", "prefill_ns", "frontend_ns"} & row.keys()
    assert row["ttft_ns"] == 400_000_000

"""Load generators against engines whose own times are known, and against public results."""

import json
import statistics

import pytest
from helpers import engine_of
from shared import SHARED, needs_shared
from test_readers import READERS, read, rows_of, totals
from test_readers_real import percentile, rows

import analyzer
from analyzer.readers._file import InputFile
from analyzer.readers._find import pick

pytestmark = needs_shared

ENGINES = SHARED / "formats/samples/engines"
MEASURED = SHARED / "traces/2-measured"
AIPERF = {
    "aiperf_records": ENGINES / "real_run_aiperf_0.13.0_profile_export.jsonl",
    "aiperf_raw": ENGINES / "real_run_aiperf_0.13.0_profile_export_raw.jsonl",
}
# Client minus engine in ms: least, median, most.
TTFT, DECODE = [1.0, 1.9, 12.3], [-5.6, 0.7, 6.3]


def spread(values):
    values = sorted(values)
    return [round(x, 1) for x in (values[0], statistics.median(values), values[-1])]


def truth():
    lines = (ENGINES / "real_run_aiperf_truth.jsonl").read_text().splitlines()
    return {one["x_request_id"]: one for one in map(json.loads, lines)}


@pytest.mark.parametrize("reader", AIPERF)
def test_aiperf_against_the_engine_s_own_times(reader):
    engine = truth()
    requests = rows(AIPERF[reader], "request", reader)
    assert {one["request_id"] for one in requests} == engine.keys()
    ttft, decode = [], []
    for one in requests:
        true = engine[one["request_id"]]
        ttft.append(one["ttft_ns"] / 1e6 - 1e3 * (true["first_token"] - true["arrival"]))
        stream_ns = one["e2e_ns"] - one["ttft_ns"]
        decode.append(stream_ns / 1e6 - 1e3 * (true["last_token"] - true["first_token"]))
        assert one["output_visible_tokens"] == one["chunks"] == true["n_out"]
        assert one["input_fresh_tokens"] == true["n_in"]
        assert 0 <= one["hold_ns"] < 50_000_000
        if reader == "aiperf_raw":
            assert one["response_id"] == true["id"]
    assert spread(ttft) == TTFT
    assert spread(decode) == DECODE


def test_both_files_of_a_run_tell_the_same_chunks():
    """The raw file also has the role chunk of each answer, which is no token."""
    records, raw = (rows(path, "chunk", name) for name, path in AIPERF.items())
    tokens = [one for one in raw if one["kind"] != "role"]
    assert len(records) == len(tokens) == 24 * 20
    assert len(raw) == 24 * 21
    assert [one["offset_ns"] for one in tokens] == pytest.approx(
        [one["offset_ns"] for one in records], abs=20
    )


@pytest.mark.parametrize("files", [["aiperf_records"], ["aiperf_raw"], [*AIPERF]])
def test_aiperf_joins_the_engine_s_records_in_a_case(files, tmp_path):
    lines = []
    for own_id, true in truth().items():
        names = ("arrival", "scheduled", "first_token", "last_token")
        arrival, scheduled, first, last = (true[name] for name in names)
        record = {
            "request_id": f"chatcmpl-{own_id}", "response_id": true["id"], "vantage": "engine",
            "started_at": arrival, "queue_ms": 1e3 * (scheduled - arrival),
            "prefill_ms": 1e3 * (first - scheduled), "decode_ms": 1e3 * (last - first),
            "ttft_ms": 1e3 * (first - arrival), "e2e_ms": 1e3 * (last - arrival),
        }  # fmt: skip
        lines.append(json.dumps(record) + "\n")
    (tmp_path / "engine.jsonl").write_text("".join(lines))
    db = str(tmp_path / "case.duckdb")
    paths = [str(AIPERF[name]) for name in files]
    assert analyzer.ingest(db, [*paths, str(tmp_path / "engine.jsonl")]).clean
    with engine_of(db) as engine:
        found = engine.rows(
            "SELECT r.vantages, s.ttft_ns, s.queue_ns, s.prefill_ns, c.e2e_ns - c.ttft_ns AS "
            "stream_ns, e.decode_ns FROM resolve_request AS r "
            "JOIN latency_segment AS s ON r.request_key = s.request_key "
            "JOIN resolve_vantage AS c ON c.request_key = r.request_key AND c.vantage = 'client' "
            "JOIN resolve_vantage AS e ON e.request_key = r.request_key AND e.vantage = 'engine'"
        )
    assert [one["vantages"] for one in found] == [2] * 24
    ttft = [(one["ttft_ns"] - one["queue_ns"] - one["prefill_ns"]) / 1e6 for one in found]
    assert spread(ttft) == TTFT
    assert spread((one["stream_ns"] - one["decode_ns"]) / 1e6 for one in found) == DECODE


def test_requests_aiperf_cancelled():
    path = ENGINES / "real_run_aiperf_0.13.0_cancelled_profile_export.jsonl"
    requests = rows(path, "request", "aiperf_records")
    lines = path.read_text().splitlines()
    told = [json.loads(line)["metadata"]["was_cancelled"] for line in lines]
    assert [one.get("error") == "cancelled" for one in requests] == told
    assert not any("ttft_ns" in one or "e2e_ns" in one for one in requests if "error" in one)
    assert not any("status" in one for one in requests if "error" in one)


def test_a_public_aiperf_record():
    (one,) = rows(ENGINES / "aiperf_profile_export_excerpt.jsonl", "request", "aiperf_records")
    assert (one["ttft_ns"], one["e2e_ns"]) == (522_848_064, 3_089_199_848)
    assert (one["hold_ns"], one["chunks"], one["connect_ns"]) == (1_138_337, 18, 288_608)


@pytest.mark.parametrize(("run", "ttft", "e2e"), [(1, 31.4, 3638), (2, 36.7, 3759)])
def test_a_public_aiperf_run(run, ttft, e2e):
    path = MEASURED / f"ajcasagrande__aiperf/qwen_concurrency{run}~profile_export.jsonl"
    requests = rows(path, "request", "aiperf_records")
    assert len(requests) == 10
    assert statistics.median(one["ttft_ns"] for one in requests) / 1e6 == pytest.approx(ttft, abs=1)
    assert statistics.median(one["e2e_ns"] for one in requests) / 1e6 == pytest.approx(e2e, abs=1)
    # No server usage: its own tokenizer counted, and it says so.
    assert {one["usage_convention"] for one in requests} == {"unknown"}


def test_inference_perf_and_what_the_engine_told_it(tmp_path):
    path = ENGINES / "real_run_inference_perf_0.6_per_request.json"
    db = str(tmp_path / "case.duckdb")
    assert analyzer.ingest(db, [str(path)]).clean
    with engine_of(db) as engine:
        found = engine.rows(
            "SELECT r.vantages, s.ttft_ns, s.queue_ns, s.prefill_ns, c.e2e_ns - c.ttft_ns AS "
            "stream_ns, e.decode_ns FROM resolve_request AS r "
            "JOIN latency_segment AS s ON r.request_key = s.request_key "
            "JOIN resolve_vantage AS c ON c.request_key = r.request_key AND c.vantage = 'client' "
            "JOIN resolve_vantage AS e ON e.request_key = r.request_key AND e.vantage = 'engine'"
        )
    assert [one["vantages"] for one in found] == [2] * 12
    for one in found:
        assert 0 < one["ttft_ns"] - one["queue_ns"] - one["prefill_ns"] < 15_000_000
        assert abs(one["stream_ns"] - one["decode_ns"]) < 15_000_000
    requests = rows(path, "request", "inference_perf")
    entries = json.loads(path.read_text())
    usage = [one["info"]["response_metrics"]["server_usage"] for one in entries]
    client = [one for one in requests if one["vantage"] == "client"]
    assert [one["output_visible_tokens"] for one in client] == [
        one["completion_tokens"] for one in usage
    ]
    assert all("start_ns" not in one for one in requests)


def test_a_public_guidellm_report():
    path = MEASURED / "neuralmagic__guidellm/benchmarks_stripped.json"
    batches = read(READERS["guidellm"], path)
    ((_, one),) = rows_of(batches)
    assert one["ttft_ns"] / 1e6 == pytest.approx(21.28196, abs=0.001)
    # 127 gaps of the 5.258 ms it states.
    assert (one["e2e_ns"] - one["ttft_ns"]) / 1e6 == pytest.approx(127 * 5.258346, abs=0.001)
    # The strategy is synchronous: its planned moment is no schedule.
    assert "hold_ns" not in one
    assert any("1 of its 47" in note for note in batches[-1].assumed)


def test_a_guidellm_report_without_its_requests_says_so():
    path = ENGINES / "guidellm_report_v2.json"
    assert pick(InputFile(path, path.name).head).reader == READERS["guidellm"]
    batches = read(READERS["guidellm"], path)
    assert totals(batches)[:2] == (2, 0)
    reasons = [problem.reason for batch in batches for problem in batch.problems]
    assert all("ran 2 requests and lists none" in reason for reason in reasons)
    assert all("--outputs json" in reason for reason in reasons)


def test_the_documented_record_of_perf_analyzer():
    path = ENGINES / "snippets/genai_perf_profile_export.json"
    (one,) = rows(path, "request", "perf_analyzer")
    assert one["e2e_ns"] == 58_614_587
    assert one["streamed"] is False
    assert "ttft_ns" not in one, "one body is no first token"
    assert (one["input_fresh_tokens"], one["output_visible_tokens"]) == (33, 32)


LLMPERF = MEASURED / "ray-project__llmperf-leaderboard"


@pytest.mark.parametrize("name", ["anyscale_7b", "bedrock_70b", "groq_70b", "together_70b"])
def test_llmperf_medians_equal_its_summary(name):
    requests = rows(LLMPERF / f"individual~{name}.json", "request", "llmperf")
    summary = json.loads((LLMPERF / f"summary~{name}.json").read_text())
    entries = json.loads((LLMPERF / f"individual~{name}.json").read_text())
    assert len(requests) == 150
    assert not any("error" in one for one in requests)
    # Its summaries leave out the answers it calls too short, though their times are sound.
    pairs = zip(requests, entries, strict=True)
    requests = [one for one, entry in pairs if entry["error_code"] is None]
    assert len(requests) == (101 if name == "bedrock_70b" else 150)
    for ours, theirs in (("ttft_ns", "ttft_s"), ("e2e_ns", "end_to_end_latency_s")):
        for share, word in ((0.5, "p50"), (0.9, "p90")):
            told = summary[f"results_{theirs}_quantiles_{word}"]
            value = percentile([one[ours] for one in requests], share) / 1e9
            assert value == pytest.approx(told, rel=1e-6), f"{theirs} {word}"


@pytest.mark.parametrize(
    ("name", "count", "in_one_piece"),
    [
        ("ray-project__llmperf-leaderboard/individual~replicate_7b.json", 150, 3),
        ("SaharaaQuestLab__llmperf/lepton-dedicated~c10~", 300, 9),
        ("SaharaaQuestLab__llmperf/lepton-serverless~c10~", 300, 8),
        ("SaharaaQuestLab__llmperf/result_outputs_h100", 490, 0),
    ],
)
def test_llmperf_answers_that_came_at_once_have_no_ttft(name, count, in_one_piece):
    paths = [p for p in MEASURED.glob(f"{name}*") if "summary" not in p.name]
    (path,) = paths
    requests = rows(path, "request", "llmperf")
    assert len(requests) == count
    assert sum("ttft_ns" not in one for one in requests) == in_one_piece


SUMMARIES = {
    "real_run_aiperf_0.13.0_profile_export_aiperf.json": "--export-level records",
    "real_run_inference_perf_0.6_stage_0.json": "per_request: true",
    "inference_perf_stage_0_lifecycle_metrics.json": "per_request: true",
    "inferencex_bench_serving_conc16.json": "--save-detailed",
}


@pytest.mark.parametrize(("name", "option"), SUMMARIES.items())
def test_a_summary_is_refused_and_names_the_option(name, option):
    found = pick(InputFile(ENGINES / name, name).head)
    assert found.reader is None
    assert "summary without requests" in found.why
    assert option in found.why


@pytest.mark.parametrize(
    ("pattern", "option"),
    [
        ("ray-project__llmperf-leaderboard/summary~*.json", "_individual_responses.json"),
        ("SaharaaQuestLab__llmperf/*summary.json", "_individual_responses.json"),
        ("kubernetes-sigs__inference-perf/*.json", "per_request: true"),
        ("ajcasagrande__aiperf/*_aiperf.json", "profile_export.jsonl"),
        ("SemiAnalysisAI__InferenceX/*.json", "--save-detailed"),
    ],
)
def test_public_summaries_are_refused_too(pattern, option):
    paths = sorted(MEASURED.glob(pattern))
    assert paths
    for path in paths:
        found = pick(InputFile(path, path.name).head)
        assert found.reader is None
        assert "summary without requests" in found.why, path.name
        assert option in found.why

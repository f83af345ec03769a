"""Figures of real public files that other tests do not hold: request tables, runs, logs."""

import json
import statistics
from collections import defaultdict
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path

import polars as pl
import pytest
from helpers import engine_of
from shared import SHARED, needs_shared
from test_readers import OPTIONS, READERS, read, rows_of, totals
from test_readers_real import SERVERS, SIMULATED, rows

import analyzer
from analyzer.readers._file import InputFile
from analyzer.readers._find import pick
from analyzer.readers._mapping import plan_of
from analyzer.readers._reader import Options

pytestmark = needs_shared

WORKLOAD = SHARED / "traces/1-workload"
MEASURED = SHARED / "traces/2-measured"
LLMPERF = MEASURED / "ray-project__llmperf-leaderboard"
SAHARA = MEASURED / "SaharaaQuestLab__llmperf"
MS = 1_000_000


def table_of(path, mapping, *, clean=True):
    """Request rows of a table read through a mapping, its tags by record, and its batches."""
    options = Options(today_ns=OPTIONS.today_ns, mapping=plan_of("m.toml", mapping.encode()))
    batches = read(READERS["mapping"], path, options)
    assert not (clean and any(batch.problems for batch in batches))
    tags = defaultdict(dict)
    requests = []
    for table, row in rows_of(batches):
        if table == "request":
            requests.append(row)
        elif table == "request_tag":
            tags[row["record"]][row["name"]] = row["value"]
    return requests, tags, batches


def notes(batches):
    return " ".join(note for batch in batches for note in batch.assumed)


def share(requests, part, whole="e2e_ns"):
    """Sum over sum, in percent, of the requests that have both."""
    both = [one for one in requests if part in one and whole in one]
    return round(100 * sum(one[part] for one in both) / sum(one[whole] for one in both), 1)


def p50(requests, name):
    return statistics.median(one[name] for one in requests if name in one)


def p99(requests, name):
    values = pl.Series([one[name] for one in requests if name in one])
    return values.quantile(0.99, "linear")


# -- which file is whose --------------------------------------------------------------------------

CLAIMS = {
    "1-workload": {
        "mapping": ("Azure__*/*.csv", "microsoft__vidur/*", "kvcache-ai__*/*.jsonl",
                    "kubernetes-sigs__inference-perf/*"),
    },
    "2-measured": {
        "aiperf_records": ("ajcasagrande__aiperf/*~profile_export.jsonl",),
        "guidellm": ("neuralmagic__guidellm/*",),
        "nvidia_smi": ("*/*gpu_metrics.csv",),
        "llmperf": ("*/individual~*", "SaharaaQuestLab__llmperf/*_responses.json"),
        "prometheus_text": ("er0080__*/*metrics*.txt",),
        "sglang_log": ("heyram74__*/*sglang*server.log",),
        "vllm_log": ("heyram74__*/*vllm*server.log", "er0080__*/*.log"),
        "vllm_request_stats": ("casys-kaist__*/*~requests.jsonl",),
        "vllm_run_meta": ("casys-kaist__*/*~meta.json",),
        "vllm_run_timeseries": ("casys-kaist__*/*~timeseries.csv",),
    },
}  # fmt: skip


@pytest.mark.parametrize("name", CLAIMS)
def test_every_file_of_a_folder_goes_to_its_reader_or_to_none(name):
    """Workloads, summaries and notes are claimed by nobody."""
    folder = SHARED / "traces" / name
    wanted = {
        path: READERS[reader]
        for reader, patterns in CLAIMS[name].items()
        for pattern in patterns
        for path in folder.glob(pattern)
    }
    paths = [path for path in sorted(folder.glob("*/*")) if path.suffix != ".zip"]
    assert len(paths) > 15
    for path in paths:
        found = pick(InputFile(path, path.name).head)
        assert found.reader is wanted.get(path), f"{path.name}: {found.why}"


# -- workloads ------------------------------------------------------------------------------------


def test_ideal_prefix_hits_of_mooncake_in_all_their_variants():
    """Read rows keep what each definition of a hit needs: order, times, blocks, lengths."""
    path = WORKLOAD / "kvcache-ai__Mooncake/conversation_trace.jsonl"
    tables = defaultdict(list)
    for batch in read(READERS["mapping"], path):
        for name, table in batch.tables.items():
            tables[name].append(pl.DataFrame(pl.from_arrow(table)))
    requests = pl.concat(tables["request"]).sort("record")
    blocks = pl.concat(tables["prompt_block"]).sort("record", "block_index")
    hashes = dict(blocks.group_by("record").agg("prefix_hash").iter_rows())
    first = {one[0] for one in hashes.values()}
    assert len(first) == 1, "one system prompt of 512 tokens before all"
    seen, fresh = set(), {}
    sums = defaultdict(int)
    shares = []
    for record, start_ns, tokens in requests.select(
        "record", "start_ns", "input_fresh_tokens"
    ).iter_rows():
        own = hashes[record]
        hit = next((i for i, one in enumerate(own) if one not in seen), len(own))
        young = next(
            (i for i, one in enumerate(own) if start_ns - fresh.get(one, -(10**18)) > 300 * 10**9),
            len(own),
        )
        hit_tokens = min(512 * hit, tokens)
        sums["input"] += tokens
        sums["hit"] += hit_tokens
        sums["blocks"] += len(own)
        sums["hit_blocks"] += hit
        sums["whole"] += min(512 * hit, 512 * (tokens // 512))
        sums["young"] += min(512 * young, tokens)
        sums["but_first"] += min(512 * max(hit - 1, 0), tokens)
        sums["complete"] += hit == len(own)
        shares.append(hit_tokens / tokens)
        seen.update(own)
        fresh.update(dict.fromkeys(own, start_ns))
    percent = {
        name: round(100 * sums[name] / sums["input"], 2)
        for name in ("hit", "whole", "young", "but_first")
    }
    assert percent == {"hit": 37.36, "whole": 37.34, "young": 29.34, "but_first": 33.13}
    assert round(100 * sums["hit_blocks"] / sums["blocks"], 2) == 36.64
    assert round(100 * statistics.median(shares), 1) == 36.3
    assert sums["complete"] == 118


ARRIVALS = """tokens = "inclusive"
[columns]
input_toks = "input_fresh_tokens"
output_toks = "output_visible_tokens"
arrival_time_ns = {to = "start_ns", unit = "ns"}
[constants]
vantage = "client"
"""


def test_a_workload_and_the_runs_that_served_it():
    """The two Llama runs served the same 300 requests, line by line."""
    path = WORKLOAD / "casys-kaist__LLMServingSim/sharegpt-llama-3.1-8b-300-sps10.jsonl"
    sent, _, _ = table_of(path, ARRIVALS)
    counts = [(one["input_fresh_tokens"], one["output_visible_tokens"]) for one in sent]
    assert len(counts) == 300
    assert sum(tokens for tokens, _ in counts) == 257_239
    assert {one["clock"] for one in sent} == {"monotonic"}
    for run in ("RTX4090~Llama-3.1-8B", "RTXPRO6000~Llama-3.1-8B"):
        served = rows(SIMULATED / f"{run}~requests.jsonl", "request", "vllm_request_stats")
        assert [
            (one["input_fresh_tokens"], one["output_visible_tokens"]) for one in served
        ] == counts


def test_a_workload_without_latency_claims_nothing_about_latency(tmp_path):
    db = str(tmp_path / "case.duckdb")
    analyzer.ingest(db, [str(WORKLOAD / "Azure__AzurePublicDataset")])
    report = analyzer.findings(db)
    assert {one.severity for one in report.found} == {"note"}
    silent = {one.rule for one in report.cannot_say}
    assert {
        "queue.saturation", "queue.admission-limit", "prefill.long-prompt", "network.slow",
        "decode.output-growth", "errors.rate",
    } <= silent  # fmt: skip
    measured = [row["measured"] + row["derived"] for row in analyzer.latency(db).rows]
    assert sum(measured) == 0


# -- runs of an engine ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("run", "means_ms", "shares", "queue_bound", "ttft_p50_ms"),
    [
        ("RTX4090~Llama-3.1-8B", (65_456.6, 65_191.0, 265.6, 21_121.7), (75.3, 0.3, 24.4), 235,
         60_110.9),
        ("RTXPRO6000~Llama-3.1-8B", (7_097.2, 6_975.2, 121.9, 21_103.6), (24.7, 0.4, 74.8), 34,
         9_442.7),
        ("RTXPRO6000~Qwen3-30B-A3B-Instruct-2507", (1_086.0, 947.2, 138.8, 31_258.6),
         (2.9, 0.4, 96.6), 0, 138.8),
    ],
)  # fmt: skip
def test_where_the_time_of_a_run_went(run, means_ms, shares, queue_bound, ttft_p50_ms):
    requests = rows(SIMULATED / f"{run}~requests.jsonl", "request", "vllm_request_stats")
    names = ("ttft_ns", "queue_ns", "prefill_ns", "decode_ns")
    means = tuple(round(statistics.fmean(one[name] for one in requests) / MS, 1) for name in names)
    assert means == means_ms
    assert tuple(share(requests, name) for name in names[1:]) == shares
    bound = [one for one in requests if one["queue_ns"] > max(one["prefill_ns"], one["decode_ns"])]
    assert len(bound) == queue_bound
    assert p50(requests, "ttft_ns") / MS == pytest.approx(ttft_p50_ms, abs=0.06)


def test_the_engine_s_state_while_its_cache_was_full():
    run = "RTX4090~Llama-3.1-8B"
    (settings,) = rows(SIMULATED / f"{run}~meta.json", "deployment", "vllm_run_meta")
    assert settings["kv_capacity_tokens"] == 41_408
    path = SIMULATED / f"{run}~timeseries.csv"
    samples = rows(path, "engine_sample", "vllm_run_timeseries")
    assert [one["kv_used_ratio"] for one in samples[:5]] == [0.1322, 0.397, 0.6444, 0.8933, 1]
    assert samples[0]["waiting"] == 2
    assert max(one["waiting"] for one in samples) == 234
    assert {one["clock"] for one in samples} == {"relative"}
    assert "no sample has a date" in notes(read(READERS["vllm_run_timeseries"], path))


def test_the_engine_s_state_with_a_date_tells_why_they_waited(tmp_path):
    """The same samples as status lines of the server's log: the cache is full."""
    run = SIMULATED / "RTX4090~Llama-3.1-8B"
    requests = Path(f"{run}~requests.jsonl")
    began = json.loads(requests.read_text().splitlines()[0])["arrival_time"]
    samples = rows(Path(f"{run}~timeseries.csv"), "engine_sample", "vllm_run_timeseries")
    lines = []
    for one in samples:
        at = datetime.fromtimestamp(began + one["time_ns"] / 1e9, UTC)
        lines.append(
            f"INFO {at:%m-%d %H:%M:%S} [loggers.py:257] Engine 000: Avg prompt throughput: "
            f"{one['prompt_tokens_per_s']} tokens/s, Avg generation throughput: "
            f"{one['generation_tokens_per_s']} tokens/s, Running: {one['running']} reqs, Waiting: "
            f"{one['waiting']} reqs, GPU KV cache usage: {100 * one['kv_used_ratio']:.1f}%, "
            "Prefix cache hit rate: 0.0%\n"
        )
    (tmp_path / "engine.log").write_text("".join(lines))
    db = str(tmp_path / "case.duckdb")
    analyzer.ingest(db, [str(requests), str(tmp_path / "engine.log")], year=2026)
    (finding,) = (one for one in analyzer.findings(db).found if one.severity != "note")
    assert (finding.rule, finding.severity) == ("queue.saturation", "critical")
    assert finding.requests == 280
    assert finding.share == pytest.approx(0.752, abs=0.001)


# -- engine logs ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("run", "lines", "running", "waiting", "served"),
    [
        ("tp4_conc4", 8, 4, 0, 49),
        ("tp4_conc64", 16, 64, 35, 769),
        ("tp8_conc64", 24, 64, 0, 769),
    ],
)
def test_status_lines_of_vllm_servers(run, lines, running, waiting, served):
    (path,) = SERVERS.glob(f"*vllm22.0*{run}_*~server.log")
    samples = rows(path, "engine_sample", "vllm_log")
    stats = [one for one in samples if "running" in one]
    assert len(stats) == lines
    assert max(one["running"] for one in stats) == running
    assert max(one["waiting"] for one in stats) == waiting
    assert {one["prefix_hit_ratio"] for one in stats} == {0.0}
    records, used, ignored = totals(read(READERS["vllm_log"], path))
    assert ignored["access line"] == served
    # Four events (load, compile, graphs, a kernel compiled while serving), five lines of the start.
    assert (records, used) == (path.read_bytes().count(b"\n"), len(samples) + 4 + 5)


def test_access_lines_of_an_sglang_server_that_was_not_ready():
    (path,) = SERVERS.glob("*sglang*~server.log")
    _, _, ignored = totals(read(READERS["sglang_log"], path))
    text = path.read_bytes()
    assert text.count(b'HTTP/1.1" 503') == 3
    assert ignored["access line"] == text.count(b'HTTP/1.1"') == 774


# -- load generators ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "ttft_p50_s", "ttft_share"),
    [
        ("anyscale_7b", 0.204, 7.6),
        ("bedrock_70b", 0.384, 6.8),
        ("groq_70b", 0.222, 28.0),
        # Of all 150 it is 76.1: three came in one piece and have no time to first token.
        ("replicate_7b", 3.680, 75.6),
        ("together_70b", 0.635, 25.0),
    ],
)
def test_share_of_the_time_before_the_first_token(name, ttft_p50_s, ttft_share):
    requests = rows(LLMPERF / f"individual~{name}.json", "request", "llmperf")
    assert round(p50(requests, "ttft_ns") / 1e9, 3) == ttft_p50_s
    assert share(requests, "ttft_ns") == ttft_share
    assert not any("queue_ns" in one or "prefill_ns" in one for one in requests)


@pytest.mark.parametrize(
    ("name", "ttft_s", "e2e_s"),
    # With the answers that came in one piece their medians were 0.758 and 1.081 s.
    [("dedicated", 0.748, 3.99), ("serverless", 1.078, 6.04)],
)
def test_two_ways_to_rent_one_model(name, ttft_s, e2e_s):
    (path,) = SAHARA.glob(f"lepton-{name}~c10~*individual_responses.json")
    requests = rows(path, "request", "llmperf")
    assert round(p50(requests, "ttft_ns") / 1e9, 3) == ttft_s
    assert round(p50(requests, "e2e_ns") / 1e9, 2) == e2e_s


@pytest.mark.parametrize("run", [1, 2])
def test_ten_records_are_not_the_64_of_the_summary(run):
    folder = MEASURED / "ajcasagrande__aiperf"
    path = folder / f"qwen_concurrency{run}~profile_export.jsonl"
    requests = rows(path, "request", "aiperf_records")
    assert len(requests) == 10
    assert {one["output_visible_tokens"] for one in requests} == {200}
    assert {one["chunks"] for one in requests} == {200}


# -- request tables through a mapping -------------------------------------------------------------

STAMPS = """tokens = "inclusive"
[columns]
request_id = "request_id"
prompt_id = "session_id"
max_tokens = "max_output_tokens"
prompt_tokens = "input_fresh_tokens"
output_tokens = "output_visible_tokens"
api_receive_ts = {to = "start_ns", unit = "epoch_s"}
first_token_ts = {to = "first_token_ns", unit = "epoch_s"}
completion_ts = {to = "end_ns", unit = "epoch_s"}
scheduling_overhead_ms = {to = "frontend_ns", unit = "ms"}
[constants]
vantage = "engine"
"""
TUHIN = MEASURED / "whiz-Tuhin__vllm-traces-dashboard"


def test_stamps_of_a_streamed_run():
    path = TUHIN / "per-token~meta-llama_Llama-2-7b-chat-hf-streaming.jsonl"
    requests, _, batches = table_of(path, STAMPS)
    assert len(requests) == 200
    assert round(p50(requests, "ttft_ns") / MS, 1) == 54.7
    assert round(p99(requests, "ttft_ns") / MS) == 1218
    before = share(requests, "ttft_ns")
    assert (share(requests, "frontend_ns"), before) == (0.5, 3.0)  # so 97.0 % is decode
    assert not any("streamed" in note for batch in batches for note in batch.assumed)


def test_growing_conversations_with_a_flat_time_to_first_token():
    path = TUHIN / "multiturn~meta-llama_Llama-2-7b-chat-hf.jsonl"
    requests, _, _ = table_of(path, STAMPS)
    assert len(requests) == 168
    by_turn = defaultdict(list)
    for one in requests:
        by_turn[one["session_id"].rsplit("_turn", 1)[1]].append(one)
    assert len({one["session_id"].rsplit("_turn", 1)[0] for one in requests}) == 50
    prompts = [p50(by_turn[turn], "input_fresh_tokens") for turn in sorted(by_turn)]
    assert prompts == [34.5, 212.5, 355, 524]
    medians = [p50(by_turn[turn], "ttft_ns") / MS for turn in sorted(by_turn)]
    assert {round(one) for one in medians} == {51, 52}


def test_answers_that_were_not_streamed_have_no_split(tmp_path):
    """Their first token is their last: neither prefill nor decode can be told."""
    path = TUHIN / "traces~meta-llama_Llama-2-7b-chat-hf.jsonl"
    requests, _, batches = table_of(path, STAMPS)
    assert len(requests) == 200
    assert not any("ttft_ns" in one for one in requests)
    assert "not streamed" in notes(batches)
    mapping, db = tmp_path / "m.toml", str(tmp_path / "case.duckdb")
    mapping.write_text(STAMPS)
    analyzer.ingest(db, [str(path)], mapping=str(mapping))
    known = {
        row["metric"]: row["measured"] + row["derived"]
        for row in analyzer.latency(db).rows
        if row["metric"] in ("e2e", "ttft", "prefill", "decode", "tpot")
    }
    assert known == {"e2e": 200, "ttft": 0, "prefill": 0, "decode": 0, "tpot": 0}


UPTIME = """tokens = "inclusive"
tags = ["status", "trial.is_warmup"]
[columns]
run_id = "request_id"
"timing_s.t_request_start" = {to = "start_ns", unit = "s"}
"metrics.ttft_s" = {to = "ttft_ns", unit = "s"}
"metrics.prefill_s" = {to = "prefill_ns", unit = "s"}
"metrics.gen_s" = {to = "decode_ns", unit = "s"}
"metrics.e2e_s" = {to = "e2e_ns", unit = "s"}
"tokens.input_tokens" = "input_fresh_tokens"
"tokens.output_tokens" = "output_visible_tokens"
[constants]
vantage = "client"
"""
EDGE = MEASURED / "KrisDcosta__edge-llm-bench/run-20260305T174113.jsonl"


def test_a_phone_s_run_with_its_warm_ups_and_failures_apart():
    requests, tags, batches = table_of(EDGE, UPTIME)
    assert len(requests) == 258
    failed = [one for one in requests if tags[one["record"]]["status"] == "failed"]
    warm = [one for one in requests if tags[one["record"]]["trial.is_warmup"] == "true"]
    assert (len(failed), len(warm)) == (2, 30)
    assert not any({"ttft_ns", "e2e_ns"} & one.keys() for one in failed)
    kept = [one for one in requests if one not in failed and one not in warm]
    parts = [share(kept, name) for name in ("prefill_ns", "decode_ns")]
    assert parts == [15.8, 84.1]
    assert "no request of it has a date" in notes(batches)


REPLAYS = """tokens = "inclusive"
tags = ["condition", "replay_index"]
[columns]
created_at = {to = "start_ns", unit = "rfc3339"}
prompt_tokens = "input_fresh_tokens"
cached_tokens = "cache_read_tokens"
completion_tokens = "output_visible_tokens"
latency_s = {to = "e2e_ns", unit = "s"}
[constants]
vantage = "client"
"""


def test_a_warm_prefix_that_makes_nothing_faster():
    (path,) = MEASURED.glob("Nyannyan222__*/*.csv")
    requests, tags, _ = table_of(path, REPLAYS)
    assert len(requests) == 24
    # A blank count is not told, so it weighs on neither side: read as 0 the first were 3 %.
    assert "cache_read_tokens" not in requests[0]

    def kind(one):
        return tags[one["record"]]["replay_index"], tags[one["record"]]["condition"]

    cached = {}
    for key, group in groupby(sorted(requests, key=kind), kind):
        told = [one for one in group if "cache_read_tokens" in one]
        read_tokens = sum(one["cache_read_tokens"] for one in told)
        cached[key] = (
            100 * read_tokens / (read_tokens + sum(one["input_fresh_tokens"] for one in told))
        )
    cold = [round(value) for key, value in sorted(cached.items()) if key[0] == "1"]
    assert cold == [5, 5, 14, 14]
    assert all(value > 99.8 for key, value in cached.items() if key[0] == "2")
    halves = {
        turn: [one for one in requests if tags[one["record"]]["replay_index"] == turn]
        for turn in "12"
    }
    medians = [round(p50(halves[turn], "e2e_ns") / 1e9, 2) for turn in "12"]
    assert medians == [0.56, 0.55]


def test_rows_without_a_time_to_first_token_have_none():
    (path,) = MEASURED.glob("LottoLottoLotto__*/benchmarks.jsonl")
    requests, _, _ = table_of(
        path,
        '[columns]\nmodel = "model"\nttft_p50_ms = {to = "ttft_ns", unit = "ms"}\n'
        'gen_tokens = "output_visible_tokens"\n[constants]\nvantage = "client"\n',
    )
    assert len(requests) == 638
    assert sum("ttft_ns" not in one for one in requests) == 191
    assert min(one.get("ttft_ns", 1) for one in requests) > 0


def test_a_table_whose_cold_times_stand_beside_the_warm_ones():
    (path,) = MEASURED.glob("AlexHiesch__*/*.csv")
    requests, _, _ = table_of(
        path,
        'tokens = "exclusive"\n[columns]\nmodel = "model"\n'
        'ttft_ms = {to = "ttft_ns", unit = "ms"}\ntotal_time_s = {to = "e2e_ns", unit = "s"}\n'
        'prompt_tokens = "input_fresh_tokens"\ncompletion_tokens = "output_visible_tokens"\n'
        '[constants]\nvantage = "client"\n',
    )
    assert len(requests) == 147
    # Its own column says 41; its other engine does not tell the prefill it divides by.
    warm = [one for one in requests if one["input_fresh_tokens"] * 1e9 / one["ttft_ns"] > 20_000]
    assert len(warm) == 33


# -- a case of several logs -----------------------------------------------------------------------


def test_a_log_without_a_year_takes_that_of_the_dated_log_beside_it(tmp_path):
    paths = [*SERVERS.glob("*sglang*~server.log"), *SERVERS.glob("*vllm*tp4_conc64_*~server.log")]
    db = str(tmp_path / "case.duckdb")
    result = analyzer.ingest(db, [str(path) for path in paths])
    assert result.clean
    with engine_of(db) as engine:
        days = engine.rows(
            "SELECT DISTINCT reader, date_trunc('day', make_timestamp(time_ns // 1000)) AS day "
            "FROM engine_sample JOIN source USING (source_id) WHERE running IS NOT NULL ORDER BY 1"
        )
    assert [(row["reader"], str(row["day"])[:10]) for row in days] == [
        ("sglang_log", "2026-06-11"),
        ("vllm_log", "2026-06-10"),
    ]

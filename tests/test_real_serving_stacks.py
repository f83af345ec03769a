"""Spans, scrapes and traces of serving stacks: real files where they lie beside, known traps."""

import cProfile
import gzip
import json
import pstats

import pytest
from shared import SHARED, needs_shared
from test_hostile_records import hold_to_bounds, problems_of
from test_readers import OPTIONS, READERS, read, rows_of, totals
from test_readers_real import rows

from analyzer.readers._file import InputFile
from analyzer.readers._find import pick
from analyzer.readers._reader import Options

SNIPPETS = SHARED / "formats/samples/engines/snippets"
SCRAPES = SHARED / "traces/2-measured/er0080__vllm-benchmarking"
S, MS = 1_000_000_000, 1_000_000
NOON = 1_770_112_800 * S


def made(reader, text, tmp_path, name="file", options=OPTIONS):
    path = tmp_path / name
    path.write_text(text)
    assert pick(InputFile(path, name).head).reader is READERS[reader]
    return read(READERS[reader], path, options)


def notes(batches):
    return " ".join(note for batch in batches for note in batch.assumed)


# -- real files -----------------------------------------------------------------------------------


@needs_shared
def test_a_loaded_server_s_scrape_gives_where_its_time_went():
    (sample,) = rows(
        SCRAPES / "fixtures~metrics_vllm_0_25_1_loaded.txt", "engine_sample", "prometheus_text"
    )
    told = {
        name: round(sample["finished"] * sample[f"{name}_mean_ns"] / S, 2)
        for name in ("e2e", "queue", "prefill", "decode")
    }
    assert told == {"e2e": 999.23, "queue": 18.51, "prefill": 36.61, "decode": 928.55}
    # The TTFT of 664 requests, 64 of them still running, is a mean over its own count.
    assert sample["ttft_mean_ns"] == round(88.24499082565308 / 664 * S)
    assert (sample["running"], sample["waiting"], sample["preemptions"]) == (64, 64, 0)
    assert sample["prefix_hit_ratio"] == round(2480 / 339968, 6)
    assert sample["capacity_tokens"] == 25028 * 16 == 400448
    assert sample["model"] == "opt-125m-tp2"
    assert "time_ns" not in sample, "no time stands in the file or in its name"


@needs_shared
def test_an_idle_server_s_scrape_has_no_means():
    (sample,) = rows(
        SCRAPES / "fixtures~metrics_vllm_0_25_1_idle.txt", "engine_sample", "prometheus_text"
    )
    assert (sample["running"], sample["waiting"], sample["finished"]) == (0, 0, 0)
    assert not [name for name in sample if "mean" in name or name == "prefix_hit_ratio"]


@needs_shared
def test_two_real_scrapes_in_one_file(tmp_path):
    text = ""
    for stamp, kind in ((0, "idle"), (40, "loaded")):
        scrape = (SCRAPES / f"fixtures~metrics_vllm_0_25_1_{kind}.txt").read_text()
        text += f"# {1_770_112_800 + stamp}\n{scrape}"
    batches = made("prometheus_text", text, tmp_path)
    first, second = (row for _, row in rows_of(batches))
    assert (first["time_ns"], second["time_ns"]) == (NOON, NOON + 40 * S)
    # Tokens from the cache were not processed.
    assert second["prompt_tokens_per_s"] == 337488 / 40
    assert second["generation_tokens_per_s"] == 165293 / 40
    assert (second["finished"], second["interval_ns"]) == (600, 40 * S)
    assert problems_of(batches) == []


@needs_shared
@pytest.mark.parametrize(
    ("name", "vantage", "told"),
    [
        ("aggregated", "engine", {"frontend": 2, "queue": 3, "prefill": 20, "ttft": 27}),
        ("disaggregated", "engine", {"frontend": 3, "queue": 5, "prefill": 27, "ttft": 83}),
        ("disaggregated", "gateway", {"ttft": 95}),
    ],
)
def test_tensorrt_llm_s_own_example(name, vantage, told):
    path = SNIPPETS / f"trtllm_perf_metrics_{name}.json"
    found = rows(path, "request", "trtllm_perf_metrics")
    (row,) = (row for row in found if row["vantage"] == vantage)
    given = {n.removesuffix("_ns"): value / MS for n, value in row.items() if n.endswith("_ns")}
    assert given == told


@needs_shared
def test_triton_s_own_example():
    (row,) = rows(SNIPPETS / "triton_trace.json", "request", "triton_trace")
    assert row["queue_ns"] == 2356425054887198 - 2356425054791517
    assert row["e2e_ns"] == 2356425057712991 - 2356425054587444
    assert row["model"] == "simple"


@needs_shared
def test_dynamo_s_own_examples():
    path = SNIPPETS / "dynamo_request_trace.jsonl"
    batches = read(READERS["dynamo_request_trace"], path)
    assert totals(batches)[:2] == (3, 1)
    # One of its synthetic stamps lies in 1970, which no log can tell.
    (problem,) = problems_of(batches)
    assert problem.record == 2
    found = [row for table, row in rows_of(batches) if table == "request"]
    assert [row.get("e2e_ns") for row in found] == [None, 20 * S]
    assert [row["input_fresh_tokens"] for row in found] == [2, 128]
    assert found[1]["session_id"] == "sess_gap"


# -- vLLM spans of all versions -------------------------------------------------------------------


def span(name="llm_request", e2e=1.0, parent="", **attributes):
    pairs = {"gen_ai.request.id": "chatcmpl-a", "gen_ai.latency.e2e": e2e} | {
        key.replace("__", "."): value for key, value in attributes.items()
    }
    typed = []
    for key, value in pairs.items():
        kind = {float: "doubleValue", int: "intValue", str: "stringValue"}[type(value)]
        typed.append({"key": key, "value": {kind: str(value) if kind == "intValue" else value}})
    return {
        "name": name,
        "parentSpanId": parent,
        "startTimeUnixNano": str(NOON),
        "endTimeUnixNano": str(NOON + S + 300_000),
        "attributes": typed,
    }


def latency(**seconds):
    return {f"gen_ai__latency__{name}": value for name, value in seconds.items()}


def spans(some, tmp_path):
    text = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": list(some)}]}]})
    batches = made("otlp_json", text + "\n", tmp_path, "spans.jsonl")
    return [row for _, row in rows_of(batches)], batches


V1 = {"time_to_first_token": 0.4, "time_in_queue": 0.1}


@pytest.mark.parametrize(
    "times",
    [
        # No first token: prefill is minus the host's uptime, decode the uptime itself.
        {"time_in_model_prefill": -481_800.5, "time_in_model_decode": 481_801.2},
        # Never scheduled: so is the queue, and so are prefill and inference.
        {"time_in_queue": -481_800.5, "time_in_model_prefill": 481_801.0,
         "time_in_model_inference": 481_801.4},
    ],
)  # fmt: skip
def test_a_milestone_that_was_not_reached_gives_no_duration(times, tmp_path):
    (row,), batches = spans([span(**latency(**(V1 | times)))], tmp_path)
    for name in times:
        column = name.removeprefix("time_in_model_").removeprefix("time_in_")
        assert f"{column}_ns" not in row
    assert row["e2e_ns"] == S
    assert row["ttft_ns"] == 400 * MS
    (problem,) = problems_of(batches)
    assert all(name in problem.reason for name in times)


def test_a_negative_queue_of_a_streamed_input_is_not_read(tmp_path):
    times = V1 | {"time_in_queue": -0.25, "time_in_model_prefill": 0.3}
    (row,), batches = spans([span(**latency(**times))], tmp_path)
    assert "queue_ns" not in row
    assert row["prefill_ns"] == 300 * MS
    assert len(problems_of(batches)) == 1


@pytest.mark.parametrize("missing", ["time_in_model_prefill", "time_in_model_decode"])
def test_prefill_and_decode_complete_each_other(missing, tmp_path):
    times = V1 | {"time_in_model_prefill": 0.25, "time_in_model_decode": 0.5}
    times["time_in_model_inference"] = 0.75
    del times[missing]
    (row,), batches = spans([span(**latency(**times))], tmp_path)
    assert (row["prefill_ns"], row["decode_ns"]) == (250 * MS, 500 * MS)
    assert problems_of(batches) == []


def test_parts_that_do_not_add_up_are_told(tmp_path):
    times = V1 | {"time_in_model_prefill": 0.25, "time_in_model_decode": 0.5}
    _, batches = spans([span(**latency(**times, time_in_model_inference=0.9))], tmp_path)
    (problem,) = problems_of(batches)
    assert "time_in_model_inference" in problem.reason


def test_a_span_without_latencies_is_a_request_all_the_same(tmp_path):
    bare = span()
    bare["attributes"] = [one for one in bare["attributes"] if "id" in one["key"]]
    (row,), batches = spans([bare], tmp_path)
    assert row["request_id"] == "chatcmpl-a"
    assert not [name for name in row if name.endswith("_ns") and name != "start_ns"]
    assert problems_of(batches) == []


def test_a_v0_span_keeps_its_scheduler_out_of_the_phases(tmp_path):
    times = V1 | {"time_in_scheduler": 0.01, "time_in_model_forward": 0.7}
    extra = {"gen_ai__request__best_of": 1, "gen_ai__usage__num_sequences": 1}
    (row,), batches = spans([span(**latency(**times), **extra)], tmp_path)
    assert (row["queue_ns"], row["prefill_ns"], row["decode_ns"]) == (100 * MS, 300 * MS, 600 * MS)
    assert "V0" in notes(batches)


def test_start_up_and_child_spans_are_no_requests(tmp_path):
    names = ["Overall Loading", "Worker init", "vllm_queue", "vllm_prefill", "vllm_decode"]
    names += ["vllm_async_kv_transfer", "tool of a newer server"]
    others = [span(name, parent="0123456789abcdef") for name in names]
    found, batches = spans([*others, span()], tmp_path)
    assert len(found) == 1
    assert totals(batches) == (8, 1, {"span of no known kind": 7})


def test_one_span_a_sequence_is_told(tmp_path):
    many = [span(gen_ai__request__n=2, gen_ai__usage__completion_tokens=n) for n in (5, 9)]
    found, batches = spans(many, tmp_path)
    assert [row["output_visible_tokens"] for row in found] == [5, 9]
    assert "n > 1" in notes(batches)


def test_ids_of_completions_are_kept_as_they_are(tmp_path):
    named = span()
    named["attributes"][0]["value"]["stringValue"] = "cmpl-bench-1-0"
    (row,), _ = spans([named], tmp_path)
    assert row["request_id"] == "cmpl-bench-1-0"


# -- vLLM's text log ------------------------------------------------------------------------------

TAIL = (
    "Avg prompt throughput: 1.0 tokens/s, Avg generation throughput: 2.0 tokens/s, "
    "Running: 3 reqs, Waiting: 4 reqs, GPU KV cache usage: 5.0%"
)
HEADS = [
    "INFO 06-11 05:58:43 metrics.py:351] ",
    "INFO 06-11 05:58:43 [loggers.py:271] Engine 000: ",
    "(APIServer pid=474373) INFO 06-11 05:58:43 [loggers.py:271] Engine 000: ",
    "(EngineCore_0 pid=7) INFO 06-11 05:58:43 [loggers.py:271] Engine 000: ",
    "(Worker_TP2 pid=9) INFO 06-11 05:58:43 [v1/metrics/loggers.py:271] Engine 001: ",
    "\x1b[1;36m(APIServer pid=1)\x1b[0;0m INFO 06-11 05:58:43 [loggers.py:271] Engine 000: ",
    "my-prefix (APIServer pid=1) INFO 06-11 05:58:43 [loggers.py:271] Engine 000: ",
    "2026-06-11 05:58:43,120 INFO vllm.v1.metrics.loggers: Engine 000: ",
    "(APIServer pid=1) INFO 06-11 05:58:43 [loggers.py:271] 2 Engines Aggregated: ",
]
TAILS = [
    TAIL,
    TAIL.replace("Waiting", "Swapped: 0 reqs, Pending") + ", CPU KV cache usage: 0.0%.",
    TAIL.replace(", GPU", ", Deferred: 1 reqs, KV fetch: 1 waiting to start, 2 in progress, 3 "
                 "completed waiting, Preemptions: 2, GPU") + ", Prefix cache hit rate: 7.0%",
    TAIL.replace("GPU", "NPU") + ", Prefix cache hit rate: 7.0%, Corrupted: 1 reqs, External "
    "prefix cache hit rate: 9.0%, MM cache hit rate: 8.0%",
]  # fmt: skip


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("tail", TAILS)
def test_status_lines_of_all_versions(head, tail, tmp_path):
    batches = made("vllm_log", f"{head}{tail}\n", tmp_path)
    ((table, row),) = rows_of(batches)
    assert table == "engine_sample"
    assert (row["running"], row["waiting"], row["kv_used_ratio"]) == (3, 4, 0.05)
    assert (row["prompt_tokens_per_s"], row["generation_tokens_per_s"]) == (1.0, 2.0)
    assert row.get("prefix_hit_ratio") == (0.07 if "7.0%" in tail else None)
    assert problems_of(batches) == []


@pytest.mark.parametrize(
    "text",
    [
        "INFO 06-11 05:58:43 [loggers.py:271] KV Transfer metrics: a=1, b=2",
        "INFO 06-11 05:58:43 [logger.py:37] Received request cmpl-1-0: params: SamplingParams(n=1)",
        "INFO 06-11 05:58:43 [async_llm.py:1] Added request cmpl-1-0.",
        'INFO:     127.0.0.1:33586 - "POST /v1/completions HTTP/1.1" 200 OK',
    ],
)
def test_lines_without_a_state_are_counted(text, tmp_path):
    path = tmp_path / "engine.log"
    path.write_text(f"{HEADS[1]}{TAIL}\n{text}\n")
    batches = read(READERS["vllm_log"], path)
    assert totals(batches)[:2] == (2, 1)
    assert problems_of(batches) == []


# -- scrapes --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        "# 2026-02-03T10:00:00Z", "# scraped at 2026-02-03 12:00:00+02:00 by cron",
        "### timestamp: 1770112800", "# 1770112800000", "2026-02-03T10:00:00.000Z", "1770112800.0",
        "=== 2026-02-03 10:00:00 UTC ===",
    ],
)  # fmt: skip
def test_a_scrape_s_time_stands_above_it(line, tmp_path):
    batches = made("prometheus_text", f"{line}\nvllm:num_requests_running 3\n", tmp_path)
    ((_, row),) = rows_of(batches)
    assert row["time_ns"] == NOON
    assert problems_of(batches) == []


@pytest.mark.parametrize(
    "name",
    ["metrics_20260203_100000.txt", "2026-02-03T10:00:00Z.prom", "m-1770112800.txt",
     "vllm.2026-02-03-10-00-00.metrics"],
)  # fmt: skip
def test_a_scrape_s_time_may_stand_in_the_file_s_name(name, tmp_path):
    batches = made("prometheus_text", "vllm:num_requests_running 3\n", tmp_path, name)
    ((_, row),) = rows_of(batches)
    assert row["time_ns"] == NOON
    assert "name" in notes(batches)


def test_a_zone_that_is_not_told_is_the_option_s(tmp_path):
    text = "# 2026-02-03 11:00:00\nvllm:num_requests_running 3\n"
    options = Options(zone="Europe/Berlin")
    batches = made("prometheus_text", text, tmp_path, options=options)
    ((_, row),) = rows_of(batches)
    assert row["time_ns"] == NOON
    assert "Europe/Berlin" in notes(batches)


def test_scrapes_without_a_time_are_kept_apart_and_say_so(tmp_path):
    text = "".join(f"vllm:num_requests_running {n}\n# EOF\n" for n in (1, 2, 3))
    text += "".join(f"vllm:num_requests_running {n}\n" for n in (4, 5))
    batches = made("prometheus_text", text, tmp_path)
    assert [row["running"] for _, row in rows_of(batches)] == [1, 2, 3, 4, 5]
    assert "names no time" in notes(batches)


@pytest.mark.parametrize("name", ["vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc",
                                  "vllm_kv_cache_usage_perc", "sglang:token_usage"])  # fmt: skip
@pytest.mark.parametrize("value", ["1.5", "-0.1", "1e300"])
def test_a_share_that_cannot_be_is_a_problem(name, value, tmp_path):
    batches = made("prometheus_text", f"{name} {value}\n{name} 0.5\n", tmp_path)
    ((_, row),) = rows_of(batches)
    assert row["kv_used_ratio"] == 0.5
    (problem,) = problems_of(batches)
    assert problem.record == 1


@pytest.mark.parametrize(
    "line",
    ["<html>502 Bad Gateway</html>", "vllm:num_requests_running", "vllm:num_requests_running {",
     'vllm:num_requests_running{a="b} 1', "vllm:num_requests_running 1.5",
     "vllm:num_requests_running 1 99", "curl: (7) Failed to connect"],
)  # fmt: skip
def test_a_broken_line_costs_itself(line, tmp_path):
    text = f"vllm:num_requests_waiting 2\n{line}\nvllm:kv_cache_usage_perc 0.5\n"
    batches = made("prometheus_text", text, tmp_path)
    ((_, row),) = rows_of(batches)
    assert (row["waiting"], row["kv_used_ratio"]) == (2, 0.5)
    assert totals(batches)[:2] == (3, 2)


def test_a_cut_number_is_not_read(tmp_path):
    text = "vllm:num_requests_waiting 2\nvllm:num_requests_running 12"
    batches = made("prometheus_text", text, tmp_path)
    ((_, row),) = rows_of(batches)
    assert "running" not in row
    assert "cut off" in problems_of(batches)[0].reason


def test_engines_and_places_are_kept_apart(tmp_path):
    labels = ('engine="0"', 'engine="1"', 'instance="a:8000",engine="0"', 'instance="b:8000"')
    text = "".join(f"vllm:num_requests_running{{{one}}} 1\n" for one in labels)
    batches = made("prometheus_text", text, tmp_path)
    assert [row["engine"] for _, row in rows_of(batches)] == ["000", "001", "a:8000/000", "b:8000"]


def test_a_scrape_of_something_else_is_refused_with_a_reason(tmp_path):
    path = tmp_path / "node.prom"
    path.write_text("# HELP node_load1 1m load average.\n# TYPE node_load1 gauge\nnode_load1 0.2\n")
    found = pick(InputFile(path, "node.prom").head)
    assert found.reader is None
    assert "vLLM" in found.why


def test_many_scrapes_take_no_quadratic_work(tmp_path):
    body = "".join(
        f'vllm:e2e_request_latency_seconds_bucket{{engine="0",le="{n}"}} 1.0\n' for n in range(50)
    )
    body += 'vllm:num_requests_running{engine="0"} 1.0\n'
    calls = []
    for count in (50, 400):
        path = tmp_path / "long.txt"
        path.write_text("".join(f"# {1_770_112_800 + n}\n{body}" for n in range(count)))
        work = cProfile.Profile()
        batches = work.runcall(list, READERS["prometheus_text"].read(InputFile(path, "x"), OPTIONS))
        calls.append(pstats.Stats(work).total_calls)
        assert len(rows_of(batches)) == count
    assert calls[1] < 20 * calls[0]


# -- documents ------------------------------------------------------------------------------------

ITEM = (
    '{"request_id":1,"perf_metrics":{"timing_metrics":{"arrival_time":1.5,'
    '"first_scheduled_time":2.0,"first_token_time":FIRST,"last_token_time":4.0}}}'
)


@pytest.mark.parametrize("first", ["1.0", "-5", "1e300", "1e18"])
def test_stamps_that_run_backwards_cost_their_durations(first, tmp_path):
    text = f"[{ITEM.replace('FIRST', '3.0')},{ITEM.replace('FIRST', first)}]"
    batches = made("trtllm_perf_metrics", text, tmp_path)
    hold_to_bounds(rows_of(batches))
    good, bad = (row for _, row in rows_of(batches))
    assert (good["prefill_ns"], good["decode_ns"]) == (S, S)
    assert bad["queue_ns"] == S // 2
    assert "prefill_ns" not in bad
    assert totals(batches)[:2] == (2, 1)


@pytest.mark.parametrize("form", ["[{0},{0}]", "[{0}]\n[{0}]", "{0}\n{0}\n", "[\n{0},\n{0}\n]"])
def test_perf_metrics_in_every_container(form, tmp_path):
    text = form.replace("{0}", ITEM.replace("FIRST", "3.0"))
    batches = made("trtllm_perf_metrics", text, tmp_path)
    assert totals(batches)[:2] == (2, 2)


def test_lines_after_a_broken_one_are_read(tmp_path):
    good = ITEM.replace("FIRST", "3.0")
    text = f"{good}\n{good[:40]}\n{good}\n"
    batches = made("trtllm_perf_metrics", text, tmp_path)
    assert totals(batches)[:2] == (3, 2)


def test_ids_that_two_servers_share_stay_apart(tmp_path):
    ids = set()
    for first in ("3.0", "3.5"):
        batches = made("trtllm_perf_metrics", f"[{ITEM.replace('FIRST', first)}]", tmp_path)
        ids |= {row["request_id"] for _, row in rows_of(batches)}
    assert len(ids) == 2


def test_a_triton_trace_that_is_still_written_is_whole(tmp_path):
    stamps = [("REQUEST_START", 1), ("QUEUE_START", 2), ("COMPUTE_START", 5), ("REQUEST_END", 9)]
    lines = [
        json.dumps({"id": 3, "timestamps": [{"name": n, "ns": 10**15 + ns}]}) for n, ns in stamps
    ]
    batches = made("triton_trace", "[" + ",".join(lines) + ",", tmp_path)
    ((_, row),) = rows_of(batches)
    assert (row["queue_ns"], row["e2e_ns"]) == (3, 8)
    assert problems_of(batches) == []


def test_a_triton_parent_of_itself_ends(tmp_path):
    lines = [
        {"id": 1, "model_name": "a", "parent_id": 2},
        {"id": 2, "model_name": "b", "parent_id": 1},
        {"id": 1, "timestamps": [{"name": "REQUEST_START", "ns": 5}]},
    ]
    batches = made("triton_trace", json.dumps(lines), tmp_path)
    assert totals(batches)[:2] == (3, 3)


def test_dynamo_s_archive_of_several_members_is_read_whole(tmp_path):
    line = (
        '{"schema":"dynamo.request.trace.v1","event_type":"request_end",'
        '"request":{"request_id":"ID","request_received_ms":1770112800000}}\n'
    )
    path = tmp_path / "trace.000001.jsonl.gz"
    path.write_bytes(b"".join(gzip.compress(line.replace("ID", x).encode()) for x in "abc"))
    batches = read(READERS["dynamo_request_trace"], path)
    assert [row["request_id"] for _, row in rows_of(batches)] == ["a", "b", "c"]


def test_no_answer_s_text_is_kept(tmp_path):
    body = {
        "id": "chatcmpl-1", "object": "chat.completion", "model": "m",
        "choices": [{"message": {"content": "hunter2"}, "finish_reason": "stop"}],
        "metrics": {"time_to_first_token_ms": 5.0, "generation_time_ms": 1e300},
    }  # fmt: skip
    batches = made("vllm_response_metrics", json.dumps(body) + "\n", tmp_path)
    ((_, row),) = rows_of(batches)
    assert row["prefill_ns"] == 5 * MS
    assert "decode_ns" not in row
    assert "hunter2" not in str([problems_of(batches), rows_of(batches)])


@pytest.mark.parametrize("indent", [None, 1, 4])
@pytest.mark.parametrize("many", [False, True])
def test_answers_in_a_document_are_read_too(indent, many, tmp_path):
    body = {
        "id": "cmpl-1", "object": "text_completion", "choices": [], "usage": {"prompt_tokens": 3},
        "metrics": {"time_to_first_token_ms": 5.0, "generation_time_ms": 8.0},
    }  # fmt: skip
    text = json.dumps([body, body] if many else body, indent=indent)
    batches = made("vllm_response_metrics", text, tmp_path)
    assert [row["decode_ns"] for _, row in rows_of(batches)] == [8 * MS] * (1 + many)

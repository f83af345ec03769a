"""vLLM's engine log: the figures of real logs where they lie beside the checkout, and traps."""

import json

import polars as pl
import pytest
from shared import SHARED, needs_shared
from test_readers import OPTIONS, READERS, read, rows_of, totals

from analyzer.readers import _vllm_lines
from analyzer.readers._file import InputFile, Lines
from analyzer.readers._find import pick
from analyzer.readers._reader import Options

ENGINES = SHARED / "formats/samples/engines"
MEASURED = SHARED / "traces/2-measured"
SERVERS = MEASURED / "heyram74__nebius_sopertors_inferencex_benchmark"
OPT = MEASURED / "er0080__vllm-benchmarking/fixtures~vllm_serve_no_kv_cache_memory_v0.25.1.log"
HEAD = "(EngineCore_DP1 pid=81) INFO 02-24 12:00:00 [core.py:364] "
STEP = (
    "Iteration(1): 1 context requests, 2034 context tokens, 14 generation requests, 14 generation "
    "tokens, iteration elapsed time: 88.50 ms"
)
CONFIG = (
    "Initializing a V1 LLM engine (v0.22.1) with config: model='{model}', dtype=torch.bfloat16, "
    "max_seq_len=4096, tensor_parallel_size=2, pipeline_parallel_size=2, data_parallel_size=1, "
    "quantization={quantization}, kv_cache_dtype={kv}, device_config=cuda, "
    "enable_prefix_caching=True, enable_chunked_prefill=True"
)


def given(text, tmp_path, options=OPTIONS):
    file = tmp_path / "engine.log"
    file.write_text(text)
    batches = read(READERS["vllm_log"], file, options)
    problems = [problem.reason for batch in batches for problem in batch.problems]
    return rows_of(batches), problems, batches


def of(rows, table):
    return [row for name, row in rows if name == table]


def configured(**values):
    told = {"model": "acme/demo-8b", "quantization": "None", "kv": "auto", **values}
    return f"(EngineCore pid=9) INFO 02-24 12:00:00 [core.py:112] {CONFIG.format(**told)}\n"


# -- real files -----------------------------------------------------------------------------------

REAL = [
    # file, record of the arguments, tp, max_num_seqs, tokens of the pool, load, compile, graphs
    (SERVERS, "*vllm22*tp4_conc4_*server.log", 7, 4, 4, 6_131_120, 49_625_210_000, 88.13, 46),
    (SERVERS, "*vllm22*tp4_conc64_*server.log", 7, 4, 64, 6_130_106, 49_707_560_000, 87.92, 49),
    (SERVERS, "*vllm22*tp8_conc64_*server.log", 7, 8, 64, 13_251_688, 59_747_585_000, 182.85, 104),
    (ENGINES, "vllm*conc16.log", 7, 8, 16, 13_252_813, 59_603_386_000, 184.08, 102),
    (ENGINES, "vllm*conc64.log", 7, 2, 64, 2_560_976, 45_556_342_000, 35.45, 23),
]


@needs_shared
@pytest.mark.parametrize(
    ("folder", "name", "record", "tp", "limit", "pool", "load_ns", "compile_s", "graphs_s"), REAL
)
def test_real_servers(folder, name, record, tp, limit, pool, load_ns, compile_s, graphs_s):
    (path,) = folder.glob(name)
    assert pick(InputFile(path, path.name).head).reader is READERS["vllm_log"]
    batches = read(READERS["vllm_log"], path)
    rows = rows_of(batches)
    assert of(rows, "deployment") == [
        {
            "record": record, "model": "openai/gpt-oss-120b", "gpu_count": tp, "tp": tp, "pp": 1,
            "kv_capacity_tokens": pool, "max_running": limit, "max_context_tokens": 2068,
            "max_step_tokens": 8192, "prefix_caching": False, "chunked_prefill": True,
            "weight_format": "gpt_oss_mxfp4",
        }
    ]  # fmt: skip
    events = of(rows, "engine_event")
    assert [(one["kind"], one.get("dur_ns")) for one in events] == [
        ("load", load_ns),
        ("compile", round(compile_s * 1e9)),
        ("compile", graphs_s * 1_000_000_000),
        ("compile", None),  # a kernel, while it served
    ]
    assert {one["engine"] for one in events} == {"TP0"}
    _, used, ignored = totals(batches)
    assert used == len(of(rows, "engine_sample")) + 4 + 5
    assert ignored["access line"] == path.read_bytes().count(b"HTTP/1.1")
    assert not any("5xx" in reason for reason in ignored)


@needs_shared
def test_real_server_that_did_not_start():
    rows, problems, _ = given_path(OPT)
    assert problems == []
    assert [(one["record"], one["kind"]) for one in of(rows, "engine_event")] == [
        (38, "crash"),
        (61, "out_of_memory"),
        (62, "crash"),
    ]
    (start,) = of(rows, "deployment")
    assert start["model"] == "facebook/opt-125m"
    assert (start["tp"], start["max_running"], start["max_context_tokens"]) == (1, 4, 2048)
    # float32 weights on a CPU
    assert (start["weight_bytes_per_param"], start["weight_format"]) == (4.0, "float32")
    assert "gpu_count" not in start


def given_path(path):
    batches = read(READERS["vllm_log"], path)
    return rows_of(batches), [one.reason for b in batches for one in b.problems], batches


# -- steps ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "engine", "used_ratio", "dummy"),
    [
        (f"{HEAD}{STEP}", "001", None, False),
        (f"{HEAD}{STEP} (dummy)", "001", None, True),
        (f"{HEAD}Engine 003: {STEP}, GPU KV cache usage: 7.5%", "003", 0.075, False),
        (f"{HEAD}Engine 003: {STEP} (dummy), GPU KV cache usage: 7.5%", "003", 0.075, True),
        (f"{HEAD}{STEP.replace('):', ') (dummy):')}, NPU KV cache usage: 100.0%", "001", 1, True),
        (
            HEAD + STEP.replace("iteration", "2 encoder inputs, 9 encoder tokens, iteration"),
            "001", None, False,
        ),
    ],
)  # fmt: skip
def test_steps_of_all_versions(line, engine, used_ratio, dummy, tmp_path):
    rows, problems, _ = given(line + "\n", tmp_path)
    assert problems == []
    ((table, row),) = rows
    assert table == "engine_step"
    assert (row["engine"], row["step"], row["dummy"]) == (engine, 1, dummy)
    assert (row["prefill_requests"], row["prefill_tokens"]) == (1, 2034)
    assert (row["decode_requests"], row["decode_tokens"]) == (14, 14)
    assert row["dur_ns"] == 88_500_000
    assert row.get("kv_used_ratio") == used_ratio


@pytest.mark.parametrize(
    "change", [("14 generation", "x generation"), ("88.50 ms", "88.50 s"), ("88.50", "9" * 40)]
)
def test_step_that_cannot_be_read_is_a_problem(change, tmp_path):
    rows, problems, _ = given(HEAD + STEP.replace(*change) + "\n", tmp_path)
    assert rows == []
    assert problems == ["a step line whose values cannot be read"]


def test_steps_that_an_engine_scheduled_ahead_are_told_apart(tmp_path):
    _, _, batches = given(f"{HEAD}{STEP}\n", tmp_path)
    assert not any("ahead" in note for note in batches[0].assumed)
    _, _, batches = given(f"{HEAD}{STEP.replace('88.50', '0.03')}\n", tmp_path)
    assert any("schedules ahead" in note for note in batches[0].assumed)


def test_step_that_the_file_ends_in_is_cut(tmp_path):
    rows, problems, batches = given(f"{HEAD}{STEP}\n{HEAD}{STEP}", tmp_path)
    assert len(rows) == 1
    assert problems == ["cut off: the file ends inside it"]
    assert batches[-1].resume.provisional == (2,)


# -- speculation ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "drafted", "accepted", "length"),
    [
        (
            "Mean acceptance length: 2.50, Accepted throughput: 1.00 tokens/s, Drafted throughput: "
            "2.00 tokens/s, Accepted: 15 tokens, Drafted: 20 tokens, Per-position acceptance rate: "
            "0.9, 0.7, 0.5, Avg Draft acceptance rate: 75.0%",
            20, 15, 2.5,
        ),
        ("Draft acceptance rate: 75.0%, Accepted: 15 tokens, Drafted: 20 tokens", 20, 15, None),
        ("Mean acceptance length: nan, Accepted: 0 tokens, Drafted: 0 tokens", 0, 0, None),
    ],
)  # fmt: skip
def test_speculation_of_all_versions(text, drafted, accepted, length, tmp_path):
    ((table, row),), problems, _ = given(f"{HEAD}SpecDecoding metrics: {text}\n", tmp_path)
    assert (table, problems) == ("engine_sample", [])
    assert (row["drafted_tokens"], row["draft_accepted_tokens"]) == (drafted, accepted)
    assert row.get("accepted_length") == length


def test_speculation_that_cannot_be_read_is_a_problem(tmp_path):
    rows, problems, _ = given(f"{HEAD}SpecDecoding metrics: Accepted: few tokens\n", tmp_path)
    assert (rows, problems) == ([], ["a speculation line whose values cannot be read"])


# -- starts ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "weights", "kv"),
    [
        ({}, 2.0, 2.0),
        ({"kv": "fp8_e5m2"}, 2.0, 1.0),
        # A quantised checkpoint may have a cache format of its own.
        ({"quantization": "modelopt"}, None, None),
        ({"quantization": "awq", "kv": "fp8"}, None, 1.0),
        ({"kv": "fp8_ds_mla"}, 2.0, None),
    ],
)
def test_sizes_are_told_where_the_configuration_decides_them(values, weights, kv, tmp_path):
    (row,) = of(given(configured(**values), tmp_path)[0], "deployment")
    assert (row.get("weight_bytes_per_param"), row.get("kv_bytes_per_value")) == (weights, kv)
    assert (row["tp"], row["pp"], row["gpu_count"]) == (2, 2, 4)


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("acme/demo-8b", "acme/demo-8b"),
        ("/home/somebody/acme--demo-8b/", "acme/demo-8b"),
        ("/data/demo-8b", "demo-8b"),
        ("/root/.cache/huggingface/hub/models--acme--demo-8b/snapshots/0123abc", "acme/demo-8b"),
    ],
)
def test_folder_of_a_model_is_its_name(model, name, tmp_path):
    (row,) = of(given(configured(model=model), tmp_path)[0], "deployment")
    assert row["model"] == name


def test_start_goes_on_where_the_file_has_grown(tmp_path):
    text = configured() + f"{HEAD}GPU KV cache size: 4,096 tokens\n"
    whole = given(text, tmp_path)[0]
    file = tmp_path / "engine.log"
    file.write_text(configured())
    first = read(READERS["vllm_log"], file)
    resume = first[-1].resume
    assert resume.provisional == (1,)
    assert json.loads(json.dumps(resume.state)) == resume.state
    file.write_text(text)
    rest = read(READERS["vllm_log"], file, Options(today_ns=OPTIONS.today_ns, resume=resume))
    kept = [row for row in rows_of(first) if row[1]["record"] not in resume.provisional]
    assert kept + rows_of(rest) == whole
    assert of(whole, "deployment")[0]["kv_capacity_tokens"] == 4096


def test_no_secret_of_the_arguments_is_kept(tmp_path):
    secret = "sk-" + "0123456789abcdef"
    line = f"{HEAD}non-default args: {{'api_key': ['{secret}'], 'max_num_seqs': 7}}\n"
    rows, _, batches = given(line, tmp_path)
    assert of(rows, "deployment") == [{"record": 1, "max_running": 7}]
    assert secret not in repr(batches)


# -- events and access lines ----------------------------------------------------------------------


def test_failed_access_lines_are_counted_as_what_they_are(tmp_path):
    line = 'INFO:     10.0.0.7:4100{} - "POST /v1/completions?x=%22%205 HTTP/1.1" {}\n'
    ends = ["200 OK", "500 Internal Server Error", "404 Not Found", "503 Service Unavailable"]
    text = f"{HEAD}x\n" + "".join(line.format(*pair) for pair in enumerate(ends))
    rows, problems, batches = given(text, tmp_path)
    assert (rows, problems) == ([], [])
    _, _, ignored = totals(batches)
    assert ignored["access line"] == 2
    assert ignored["access line of a failed request (5xx), without a time"] == 2


def test_traceback_without_a_stamp_is_no_event(tmp_path):
    text = "(EngineCore pid=25) ValueError: No available memory for the cache blocks.\n"
    rows, problems, _ = given(f"{HEAD}x\n{text}", tmp_path)
    assert (rows, problems) == ([], [])


@pytest.mark.parametrize("logger", ["logger.py:37]", "[logger.py:43]", "[request_logger.py:5]"])
def test_line_ends_of_a_prompt_make_no_rows(logger, tmp_path):
    """The formatter repeats its prefix before each line of a message."""
    said = [STEP, "Aborted request x.", "GPU KV cache size: 1 tokens", CONFIG]
    text = "".join(f"INFO 02-24 12:00:00 {logger} {line}\n" for line in said)
    rows, problems, batches = given(text, tmp_path)
    assert (rows, problems) == ([], [])
    assert totals(batches)[2] == {"line with a prompt or an answer": 4}


# -- records as JSON ------------------------------------------------------------------------------


def record(message, **more):
    return json.dumps(
        {
            "asctime": "2026-11-20 10:00:00,250", "levelname": "INFO", "name": "vllm.x",
            "processName": "MainProcess", "process": 12, "message": message, **more,
        }
    )  # fmt: skip


def test_records_as_json_are_read_like_lines(tmp_path):
    status = (
        "Engine 000: Avg prompt throughput: 1.0 tokens/s, Avg generation throughput: 2.0 tokens/s, "
        "Running: 1 reqs, Waiting: 0 reqs, GPU KV cache usage: 3.0%"
    )
    messages = [status, STEP, "SpecDecoding metrics: Drafted: 3 tokens", "Aborted request(s) a,b."]
    text = "".join(record(one) + "\n" for one in messages)
    plain = "".join(f"INFO 2026-11-20 10:00:00,250 [x.py:1] {one}\n" for one in messages)
    rows, problems, batches = given(text, tmp_path)
    assert (rows, problems) == given(plain, tmp_path)[:2]
    assert len(rows) == 5
    assert not any("year" in note for note in batches[0].assumed)
    assert pick(InputFile(tmp_path / "engine.log", "engine.log").head).why == ""


def test_damaged_record_is_a_problem_and_foreign_json_is_not(tmp_path):
    text = f'{record("x")}\n{record("Aborted request(s) a.")[:-9]}\n{{"other": 1}}\n[1, 2]\n'
    rows, problems, batches = given(text, tmp_path)
    assert (rows, problems) == ([], ["not valid JSON"])
    assert totals(batches)[2]["banner or foreign line"] == 2


def test_prompts_in_records_are_not_kept(tmp_path):
    text = record(f"Received request a: prompt: 'tell\n{STEP}\n', params: P()") + "\n"
    rows, problems, batches = given(text, tmp_path)
    assert (rows, problems) == ([], [])
    assert totals(batches)[2] == {"line with a prompt or an answer": 1}


# -- the fast way ---------------------------------------------------------------------------------


def test_kinds_are_found_by_their_words():
    """What is hot has one of the words that lines are first looked through for."""
    lines = [HEAD + STEP, configured().strip(), f"{HEAD}torch.compile takes 2.0 s in total"]
    block = Lines("\n".join([*lines, ""]).encode(), 1, 0, unterminated=False)
    told = _vllm_lines.lines_of(block)
    assert told["kind"].to_list() == ["step", "setup", "compile"]
    assert told.filter(pl.col("text").str.contains(_vllm_lines._RARE_WORDS)).height == 3


def test_bytes_that_are_no_text_end_nothing(tmp_path):
    file = tmp_path / "engine.log"
    strange = b'\xff\x01{"message": "\\ud800"}\n{"message": "\\ud800"}\n'
    file.write_bytes(f"{HEAD}{STEP}\n".encode() + strange)
    rows, _, batches = given_path(file)
    assert (len(rows), totals(batches)[:2]) == (1, (3, 1))

"""Readers of TGI, llama.cpp and Ollama: the traps of their formats, one at a time."""

import json

import polars as pl
import pytest
from test_readers import READERS, read, rows_of, totals

from analyzer.readers._file import InputFile
from analyzer.readers._find import pick
from analyzer.readers._reader import Options
from analyzer.readers._text_durations import durations

SUCCESS = (
    "2026-03-01T08:01:00.500000Z  INFO generate{parameters=GenerateParameters { PARAMS } "
    'total_time="TOTAL" validation_time="1ms" queue_time="QUEUE" inference_time="400ms" '
    'time_per_token="TPT" seed="None"}: text_generation_router::server: router/src/server.rs:1: '
    "Success\n"
)


def problems_of(batches):
    return [problem.reason for batch in batches for problem in batch.problems]


def read_text(reader, text, folder, options=None):
    path = folder / "some.log"
    path.write_text(text)
    batches = read(READERS[reader], path, options or Options())
    return rows_of(batches), problems_of(batches), batches


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("850ns", 850), ("20.4µs", 20_400), ("20.4\u03bcs", 20_400), ("20.4us", 20_400),
        ("340.1ms", 340_100_000), ("15.2285805s", 15_228_580_500), ("1m2.5s", 62_500_000_000),
        ("2m0s", 120_000_000_000), ("1h0m0.5s", 3_600_500_000_000), ("0s", 0),
        ("735.200735ms", 735_200_735), ("25.099483509s", 25_099_483_509), ("61.5s", 61_500_000_000),
        ("", None), ("5", None), ("s", None), ("1.5.5s", None), ("-1s", None), ("1s 2s", None),
        ("9" * 18 + "s", None), ("1e3s", None), ("5 ms", None),
    ],
)  # fmt: skip
def test_durations_of_go_and_rust(text, ns):
    assert pl.DataFrame({"x": [text]}).select(durations(pl.col("x"))).item() == ns


def success(total="402ms", queue="1ms", tpt="20ms", params="stop: []"):
    line = SUCCESS.replace("TOTAL", total).replace("QUEUE", queue).replace("TPT", tpt)
    return line.replace("PARAMS", params)


def test_what_a_user_wrote_is_no_time_of_tgi(tmp_path):
    params = 'stop: [" total_time=\\"9s\\" queue_time=\\"9s\\"}: text_generation_router::server"]'
    ((_, row),), problems, _ = read_text("tgi_log", success(params=params), tmp_path)
    assert (row["e2e_ns"], row["queue_ns"], problems) == (402_000_000, 1_000_000, [])


@pytest.mark.parametrize(
    "change", [{"total": "402"}, {"queue": "x"}, {"tpt": "1m1s "}, {"total": "9" * 18 + "s"}]
)
def test_a_duration_that_is_none_is_a_problem(change, tmp_path):
    rows, problems, batches = read_text("tgi_log", success(**change), tmp_path)
    assert rows == []
    assert len(problems) == 1
    assert totals(batches)[:2] == (1, 0)


@pytest.mark.parametrize(("tpt", "tokens"), [("20ms", 20), ("21.052631ms", 19), ("21ms", None)])
def test_tokens_of_tgi_are_told_only_where_the_quotient_proves_them(tpt, tokens, tmp_path):
    ((_, row),), _, _ = read_text("tgi_log", success(tpt=tpt), tmp_path)
    assert row.get("output_visible_tokens") == tokens


def test_tgi_json_that_is_cut_is_a_problem(tmp_path):
    rows, problems, _ = read_text("tgi_log", '{"timestamp":"2026-03-01T0\n', tmp_path)
    assert (rows, problems) == ([], ["not valid JSON"])


TIMES = (
    "prompt eval time =     100.00 ms /    10 tokens (   10.00 ms per token,   100.00 tokens per "
    "second)\n       eval time =     500.00 ms /    26 tokens (   20.00 ms per token,    50.00 "
    "tokens per second)\n      total time =     600.00 ms /    36 tokens\n"
)
HEADER = "slot print_timing: id  0 | task 4 | \n"
RELEASE = "slot      release: id  0 | task 4 | stop processing: n_tokens = 35, truncated = 0\n"
LAUNCH = "slot launch_slot_: id  0 | task 4 | processing task\n"


@pytest.mark.parametrize("text", [HEADER + TIMES + RELEASE, RELEASE + HEADER + TIMES])
def test_release_may_come_before_the_times_or_after(text, tmp_path):
    ((_, row),), problems, _ = read_text("llama_cpp_log", LAUNCH + text, tmp_path)
    assert (row["prefill_ns"], row["decode_ns"], problems) == (100_000_000, 500_000_000, [])


def test_times_of_an_unknown_slot_are_a_problem(tmp_path):
    rows, problems, batches = read_text("llama_cpp_log", TIMES, tmp_path)
    assert rows == []
    assert len(problems) == 2
    assert totals(batches)[2] == {"total, which adds up the two times": 1}


def test_a_task_number_that_comes_again_is_another_task(tmp_path):
    run = LAUNCH + HEADER + TIMES + RELEASE
    rows, _, _ = read_text("llama_cpp_log", run + run, tmp_path)
    assert len(rows) == 2


def test_prompts_at_high_verbosity_are_no_times(tmp_path):
    text = "srv  log_server_r: request: {'prompt': 'eval time = 5.00 ms / 3 tokens'}\n"
    rows, problems, _ = read_text("llama_cpp_log", text + LAUNCH, tmp_path)
    assert [row["record"] for _, row in rows] == [2]
    assert problems == []


LOAD = (
    "llama_model_loader: loaded meta data with 3 key-value pairs\n"
    "load_tensors: offloaded 5/5 layers to GPU\n"
    "load_tensors:        CUDA0 model buffer size =    10.00 MiB\n"
)


def test_the_same_load_again_is_no_other_deployment(tmp_path):
    rows, _, _ = read_text("llama_cpp_log", LOAD * 3, tmp_path)
    assert [row["gpu_weight_bytes"] for _, row in rows] == [10 << 20]
    rows, _, _ = read_text("llama_cpp_log", LOAD + LOAD.replace("5/5", "4/5"), tmp_path)
    assert [row["gpu_layers"] for _, row in rows] == [5, 4]


def body(**changes):
    timings = {"prompt_n": 5, "prompt_ms": 10.5, "predicted_n": 4, "predicted_ms": 30.25}
    return {"id": "a", "created": 1_772_352_000, "choices": [{"finish_reason": "stop"}],
            "timings": timings | changes}  # fmt: skip


@pytest.mark.parametrize("name", ["prompt_ms", "predicted_ms", "prompt_n", "predicted_n"])
@pytest.mark.parametrize("value", [-1, 1e300, 10**30, "NaN", None, [], "x"])
def test_one_timing_that_cannot_be_costs_itself(name, value, tmp_path):
    text = json.dumps(body()) + "\n" + json.dumps(body(**{name: value})) + "\n"
    rows, _, batches = read_text("llama_cpp_responses", text, tmp_path)
    assert len(rows) == 2
    column = {"prompt_ms": "prefill_ns", "predicted_ms": "decode_ns",
              "prompt_n": "input_fresh_tokens", "predicted_n": "output_visible_tokens"}  # fmt: skip
    assert column[name] not in rows[1][1]
    assert totals(batches)[0] == 2


def answer(**changes):
    whole = {"model": "m", "created_at": "2026-03-01T08:00:10Z", "done": True, "response": "x",
             "total_duration": 2_000_000_000, "load_duration": 5, "eval_duration": 7}  # fmt: skip
    return whole | changes


@pytest.mark.parametrize("sent", [1_772_352_005, "2026-03-01T08:00:05Z"])
def test_a_capture_whose_clock_disagrees_says_so(sent, tmp_path):
    text = json.dumps({"sent_at": sent, "response": answer()})
    ((_, row),), _, batches = read_text("ollama_responses", text + "\n", tmp_path)
    assert row["start_ns"] == 1_772_352_008_000_000_000
    assert any("sent_at" in note for note in batches[0].assumed)


def test_an_answer_without_durations_is_a_problem(tmp_path):
    bare = {"model": "m", "created_at": "2026-03-01T08:00:10Z", "done": True, "response": "x"}
    rows, problems, _ = read_text("ollama_responses", json.dumps(bare) + "\n", tmp_path)
    assert rows == []
    assert "total_duration" in problems[0]


def test_a_cut_array_gives_the_answers_before_the_cut(tmp_path):
    text = json.dumps([answer()] * 3, indent=1)
    rows, problems, batches = read_text("ollama_responses", text[:-40], tmp_path)
    assert len(rows) == 2
    assert "cut off" in problems[0]
    assert totals(batches)[:2] == (3, 2)


def test_no_text_of_an_answer_is_kept(tmp_path):
    text = json.dumps(answer(response="hunter2", error="hunter2")) + "\n{hunter2\n"
    rows, problems, batches = read_text("ollama_responses", text, tmp_path)
    excerpts = [problem.excerpt for batch in batches for problem in batch.problems]
    assert "hunter2" not in f"{rows}{problems}{excerpts}"


GIN = '[GIN] 2026/03/01 - 10:00:20 | 200 |   1.5s |   127.0.0.1 | POST     "/api/chat"\n'
STARTED = (
    "time=2026-03-01T10:00:16.5+09:00 level=INFO source=server.go:1 "
    'msg="llama runner started in 6.50 seconds"\n'
)


@pytest.mark.parametrize(
    ("before", "zone", "ends"),
    [
        ("", None, 1_772_359_220), (STARTED, None, 1_772_326_820),
        (STARTED, "Europe/Berlin", 1_772_355_620),
    ],
)  # fmt: skip
def test_zone_of_an_access_line(before, zone, ends, tmp_path):
    options = Options(zone=zone)
    rows, _, batches = read_text("ollama_log", before + GIN, tmp_path, options)
    row = next(row for table, row in rows if table == "request")
    assert row["start_ns"] + row["e2e_ns"] == ends * 1_000_000_000
    assert any("zone" in note for note in batches[0].assumed)


def test_a_load_told_twice_is_one_load(tmp_path):
    begin = STARTED.replace("llama runner started in 6.50 seconds", "starting runner")
    text = begin + STARTED + STARTED + begin + STARTED + STARTED
    rows, _, _ = read_text("ollama_log", text, tmp_path)
    assert [row["dur_ns"] for _, row in rows] == [6_500_000_000] * 2


def test_times_that_fit_two_calls_are_given_to_none(tmp_path):
    other = (LAUNCH + HEADER + TIMES + RELEASE).replace("id  0", "id  1")
    one = LAUNCH + HEADER + TIMES + RELEASE
    rows, _, batches = read_text("ollama_log", one + other + GIN + GIN, tmp_path)
    assert len(rows) == 2
    assert all("prefill_ns" not in row for _, row in rows)
    assert any("fit no one call" in note for note in batches[0].assumed)
    rows, _, _ = read_text("ollama_log", one + GIN + other + GIN, tmp_path)
    assert [row["prefill_ns"] for _, row in rows] == [100_000_000] * 2


def test_bodies_quoted_in_another_file_are_not_claimed(tmp_path):
    path = tmp_path / "cassette.yaml"
    path.write_text(
        f"interactions:\n- response:\n    body:\n      string: |\n{json.dumps(answer())}"
    )
    found = pick(InputFile(path, "cassette.yaml").head)
    assert found.reader is None


def test_access_lines_of_another_server_are_not_claimed(tmp_path):
    path = tmp_path / "web.log"
    path.write_text(GIN.replace("/api/chat", "/shop/cart"))
    found = pick(InputFile(path, "web.log").head)
    assert found.reader is None


@pytest.mark.parametrize("bad", ["2026/13/01", "0001/01/01"])
def test_an_access_line_from_no_time_is_a_problem(bad, tmp_path):
    rows, problems, _ = read_text("ollama_log", GIN.replace("2026/03/01", bad), tmp_path)
    assert rows == []
    assert len(problems) == 1

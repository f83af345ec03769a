"""``analyze bounds``: what it is asked, what it answers, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner
from jsonschema import Draft202012Validator

from analyzer import api
from analyzer.cli import cli
from analyzer.errors import AnalyzerError

SCHEMA = Path(__file__).parents[1] / "schemas/output/analyze.bounds.schema.json"
LINES = ("strict", "expected", "attainable")


def run(*args):
    return CliRunner().invoke(cli, ("bounds", *args))


def row_of(*args):
    done = run(*args, "-f", "json")
    assert (done.exit_code, done.stderr) == (0, ""), done.output
    told = json.loads(done.stdout)
    assert told["kind"] == "analyze.bounds"
    (row,) = told["rows"]
    Draft202012Validator(json.loads(SCHEMA.read_text())).validate(row)
    return row


def lever(row, text):
    (one,) = (one for one in row["levers"] if text in one["change"])
    return one


LLAMA = ("--model", "llama-3.1-8b", "--gpu", "h100-sxm5-80gb")


def test_three_lines_from_names_alone():
    row = row_of(*LLAMA, "--batch", "8", "--context", "4096", "--prompt", "2048", "--kv", "bf16")
    assert row["tpot_ms"]["expected"] == pytest.approx(5.76, abs=0.005)
    assert row["ttft_ms"]["expected"] == pytest.approx(30, abs=0.05)
    for times in (row["tpot_ms"], row["ttft_ms"]):
        assert 0 < times["strict"] <= times["expected"] < times["attainable"]
    assert row["total_params"] == 8_030_261_248
    assert row["kv_bytes_per_token"] == 131_072
    assert row["kv_bytes"] == 8 * 4096 * 131_072
    assert row["weight_bytes"] == 2 * row["read_params_decode"]
    assert row["ridge_batch"] == pytest.approx(295, abs=0.5)
    assert row["limited_by"] == "memory"
    assert row["tokens_per_s"] == pytest.approx(8 / row["tpot_ms"]["expected"] * 1000)


def test_levers_tell_what_each_change_gives():
    row = row_of(*LLAMA, "--batch", "8", "--context", "4096", "--prompt", "4096", "--kv", "bf16")
    now, then = row["tpot_ms"]["expected"], {one["change"]: one for one in row["levers"]}
    assert list(then) == [
        "weights at 8 bits", "weights at 4 bits", "KV cache at 8 bits", "twice the GPUs",
        "batch x 4", "3,072 of the prompt cached",
    ]  # fmt: skip
    half = row["weight_bytes"] / 2 / row["memory_bandwidth_bytes_s"] * 1e3
    assert now - then["weights at 8 bits"]["tpot_ms"] == pytest.approx(half, rel=1e-3)
    assert then["twice the GPUs"]["tpot_ms"] == pytest.approx(now / 2)
    cache = row["kv_bytes"] / 2 / row["memory_bandwidth_bytes_s"] * 1e3
    assert now - then["KV cache at 8 bits"]["tpot_ms"] == pytest.approx(cache)
    assert now < then["batch x 4"]["tpot_ms"] < 4 * now
    assert then["batch x 4"]["tokens_per_s"] > row["tokens_per_s"]
    hit = then["3,072 of the prompt cached"]
    asked = row_of(*LLAMA, "--prompt", "4096", "--cached", "3072", "--batch", "8", "--kv", "bf16")
    assert hit["ttft_ms"] == asked["ttft_ms"]["expected"] < row["ttft_ms"]["expected"]


@pytest.mark.parametrize(
    ("args", "note"), [((), "--batch"), (("--count", "4", "--batch", "8"), "--tp")]
)
def test_an_unknown_batch_or_layout_leaves_strict_alone(args, note):
    row = row_of(*LLAMA, *args)
    assert row["tpot_ms"]["strict"] > 0
    assert row["tpot_ms"]["expected"] is row["tpot_ms"]["attainable"] is None
    assert row["lever_line"] == "strict"
    assert row["levers"]
    assert note in run(*LLAMA, *args).stdout


def test_simple_is_the_textbook_to_the_digit():
    row = row_of("--model", "mistral-7b-v0.1", "--gpu", "rtx4090", "--simple")
    assert row["tpot_ms"]["strict"] == pytest.approx(14.11, abs=0.005)
    row = row_of("--model", "mistral-7b-v0.1", "--gpu", "rtx4090", "--simple", "--weights", "int8")
    assert row["tpot_ms"]["strict"] == pytest.approx(7.05, abs=0.005)
    inline = ("--params", "7B", "--layers", "32", "--kv-heads", "8", "--head-dim", "128")
    row = row_of(*inline, "--gpu", "a100-sxm4-80gb", "--prompt", "2048", "--simple")
    assert row["kv_bytes_per_token"] == 131_072
    assert row["prefill_flops"] == pytest.approx(2.87e13, rel=0.002)
    assert row["ttft_ms"]["attainable"] == pytest.approx(153, abs=0.5)
    assert row["total_params"] is None


def test_parameters_instead_of_a_model():
    inline = ("--params", "7.5e9", "--layers", "32", "--kv-heads", "8", "--head-dim", "128")
    figures = ("--memory-bandwidth", "3350GB/s", "--memory", "80GB", "--hidden", "4096")
    row = row_of(*inline, *figures, "--batch", "8", "--context", "4096", "--kv", "bf16")
    assert row["gpu"] == "custom"
    wanted = (15e9 + 8 * 4096 * 131_072) / 3350e9 * 1e3
    assert row["tpot_ms"]["expected"] == pytest.approx(wanted)
    assert row["sequences_that_fit"] == int((72e9 - 15e9) // (4096 * 131_072))
    bare = row_of("--params", "7.5e9", *figures[:2], "--batch", "1")
    assert bare["tpot_ms"]["expected"] == pytest.approx(15e9 / 3350e9 * 1e3)
    assert any("no KV cache" in text for text in bare["assumed"])


def test_a_file_size_beats_a_format():
    row = row_of("--model", "llama-3.1-8b", "--gpu", "rtx3090", "--weight-bytes", "4.92GB",
                 "--batch", "1")  # fmt: skip
    assert row["weight_bytes"] / 1e9 == pytest.approx(4.62, abs=0.03)
    assert row["checkpoint_bytes"] == pytest.approx(4.92e9)
    assert row["weights"] == "4.9bpw"
    assert row["tpot_ms"]["strict"] < row["tpot_ms"]["expected"]
    assert run(*LLAMA, "--weight-bytes", "1MB").exit_code == 2


def test_weights_in_the_hosts_memory_add_their_own_time():
    dense = ("--model", "llama-3.1-8b", "--gpu", "rtx4090", "--batch", "1", "--context", "0")
    whole = row_of(*dense)["tpot_ms"]["expected"]
    split = row_of(*dense, "--cpu-weight-bytes", "8GB", "--cpu-memory-bandwidth", "80GB/s")
    wanted = whole - 8e9 / 1008e9 * 1e3 + 8e9 / 80e9 * 1e3
    assert split["tpot_ms"]["expected"] == pytest.approx(wanted)
    experts = ("--model", "mixtral-8x7b", "--gpu", "rtx4090", "--batch", "1", "--weights", "int8")
    row = row_of(*experts, "--cpu-weight-bytes", "40GB", "--cpu-memory-bandwidth", "80GB/s")
    assert row["tpot_ms"]["expected"] == pytest.approx(40e9 * 0.25 / 80e9 * 1e3, rel=0.05)
    assert row["tpot_ms"]["strict"] < row["tpot_ms"]["expected"], "it may be those nobody asks for"


def test_speculation_divides_the_step():
    base = (*LLAMA, "--batch", "1", "--context", "1000")
    plain, fast = row_of(*base), row_of(*base, "--drafts", "4", "--acceptance", "0.8")
    assert fast["tokens_per_step"] == pytest.approx(3.36, abs=0.002)
    for line in ("strict", "expected"):
        ratio = plain["tpot_ms"][line] / fast["tpot_ms"][line]
        assert ratio == pytest.approx(fast["tokens_per_step"])
    told = row_of(*base, "--tokens-per-step", "2.5")
    assert told["tpot_ms"]["strict"] == pytest.approx(plain["tpot_ms"]["strict"] / 2.5)
    sparse = ("--model", "deepseek-v3", "--gpu", "h200", "--tp", "8", "--batch", "4")
    more, less = row_of(*sparse, "--drafts", "3", "--acceptance", "0.5"), row_of(*sparse)
    assert more["weight_bytes"] > less["weight_bytes"], "drafts reach more experts"


@pytest.mark.parametrize(
    ("args", "layout", "gpus"),
    [
        (("--tp", "8"), "tp8", 8),
        (("--tp", "2", "--pp", "4"), "tp2 pp4", 8),
        (("--tp", "1", "--dp", "8"), "dp8", 8),
        (("--tp", "8", "--dp", "8", "--count", "8"), "dp8", 8),
        (("--pp", "2", "--count", "8"), "tp4 pp2", 8),
        (("--tp", "2", "--count", "8"), "tp2", 2),
        (("--tp", "1"), "one device", 1),
    ],
)
def test_layouts(args, layout, gpus):
    row = row_of("--model", "deepseek-v3", "--gpu", "h200", "--batch", "8", *args)
    assert (row["layout"], row["gpus"]) == (layout, gpus)
    replicas = any("replicas" in text for text in row["assumed"])
    assert replicas == (args == ("--tp", "2", "--count", "8"))


def test_a_config_file_with_its_quantisation_beside_it(tmp_path):
    config = {
        "model_type": "llama", "num_hidden_layers": 4, "hidden_size": 1024, "vocab_size": 32_000,
        "intermediate_size": 4096, "num_attention_heads": 8, "num_key_value_heads": 2,
    }  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(config))
    plain = row_of("--model", str(tmp_path), "--gpu", "l4", "--batch", "1")
    assert plain["weights"] == "bf16"
    quant = {"quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8",
                              "exclude_modules": ["lm_head"]}}  # fmt: skip
    (tmp_path / "hf_quant_config.json").write_text(json.dumps(quant))
    row = row_of("--model", str(tmp_path / "config.json"), "--gpu", "l4", "--batch", "1")
    assert (row["weights"], row["kv_bits"]) == ("fp8", 8)
    head = 32_000 * 1024
    norms = 9 * 1024
    assert row["weight_bytes"] == row["read_params_decode"] + head + norms
    assert row["kv_bytes_per_token"] == plain["kv_bytes_per_token"] / 2


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ((), "--model"),
        (("--model", "llama-3.1-8b"), "--gpu"),
        (("--model", "llama-3.1-9b", "--gpu", "h200"), "did you mean llama-3.1-8b"),
        (("--model", "llama-3.1-8b", "--gpu", "h100"), "h100-sxm5-80gb"),
        (("--model", "llama-3.1-8b", "--params", "8B", "--gpu", "h200"), "one of them"),
        ((*LLAMA, "--weights", "fp9"), "did you mean"),
        ((*LLAMA, "--kv", "fp9"), "KV cache format"),
        ((*LLAMA, "--memory-bandwidth", "3350"), "3350GB/s"),
        ((*LLAMA, "--memory-bandwidth", "fast"), "3350GB/s"),
        ((*LLAMA, "--memory", "80 apples"), "80GB"),
        ((*LLAMA, "--memory", "0GB"), "80GB"),
        ((*LLAMA, "--memory", "1.2.3GB"), "80GB"),
        ((*LLAMA, "--batch", "0"), "--batch"),
        ((*LLAMA, "--prompt", "100", "--cached", "100"), "--cached"),
        ((*LLAMA, "--cached", "100"), "--cached"),
        ((*LLAMA, "--drafts", "4"), "--acceptance"),
        ((*LLAMA, "--acceptance", "0.4"), "--drafts"),
        ((*LLAMA, "--drafts", "1", "--tokens-per-step", "3"), "drafts"),
        ((*LLAMA, "--tp", "3", "--count", "8"), "multiple"),
        ((*LLAMA, "--cpu-weight-bytes", "4GB"), "--cpu-memory-bandwidth"),
        ((*LLAMA, "--batch", "1" + "0" * 30), "out of range"),
        (("--model", "no/such/config.json", "--gpu", "h200"), "cannot read"),
        (("--params", "8B", "--layers", "1000000000", "--kv-heads", "1", "--head-dim", "1",
          "--gpu", "h200"), "layers"),
    ],
)  # fmt: skip
def test_what_it_is_not_told_it_asks_for(args, says):
    done = run(*args)
    assert (done.exit_code, done.stdout) == (2, "")
    assert says in done.stderr


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", "1", '{"model_type": "llama"}', "[" * 100_000, "\x00\xff",
             '{"model_type": "llama", "quantization_config": {"quant_method": 3}}']
)  # fmt: skip
def test_config_files_that_are_none(tmp_path, text):
    (tmp_path / "config.json").write_text(text, encoding="latin-1")
    done = run("--model", str(tmp_path), "--gpu", "h200")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "error: " in done.stderr
    assert "bug" not in done.stderr


@pytest.mark.parametrize("form", ["table", "md", "csv"])
def test_every_format(form):
    for args in (LLAMA, (*LLAMA, "--batch", "8", "--prompt", "100"), (*LLAMA, "--simple")):
        done = run(*args, "-f", form)
        assert (done.exit_code, done.stderr) == (0, "")
        assert "llama-3.1-8b" in done.stdout


def test_the_table_says_what_each_line_assumed(monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    shown = run(*LLAMA, "--tp", "2", "--batch", "8", "--prompt", "4096").stdout
    for text in ("strict", "expected", "attainable", "cannot be beaten", "change (expected)",
                 "assumed", "KV cache: 8 bits in strict", "no speculation", "all-reduces",
                 "high confidence", "sequences of 4,096 tokens"):  # fmt: skip
        assert text in shown
    assert all(len(line) <= 100 for line in shown.splitlines())
    assert len(shown.splitlines()) < 45, "read in a minute"


def test_weights_that_do_not_fit_are_told():
    shown = run("--model", "llama-3.1-405b", "--gpu", "h200", "--batch", "1").stdout
    assert "do not fit" in shown
    row = row_of("--model", "llama-3.1-405b", "--gpu", "h200", "--batch", "1", "--context", "9")
    assert (row["sequences_that_fit"], row["context_that_fits"]) == (0, 0)


def test_the_same_question_gives_the_same_bytes():
    args = (*LLAMA, "--batch", "8", "--prompt", "4096", "-f", "json")
    assert run(*args).stdout == run(*args).stdout


@pytest.mark.parametrize(
    ("args", "typed", "wanted"),
    [
        (["bounds", "--model"], "llama-3.1", "llama-3.1-70b"),
        (["bounds", "--model"], "openai/", "openai/gpt-oss-120b"),
        (["bounds", "--gpu"], "h2", "h200-sxm-141gb"),
        (["bounds", "--gpu"], "NVIDIA H2", "NVIDIA H200"),
        (["bounds", "--weights"], "nv", "nvfp4"),
    ],
)
def test_completion_offers(args, typed, wanted):
    complete = ShellComplete(cli, {}, "analyze", "_ANALYZE_COMPLETE")
    assert wanted in [item.value for item in complete.get_completions(args, typed)]


def test_python_api():
    (row,) = api.bounds(model="llama-3.1-8b", gpu="h200", batch=4, context=1000).rows
    assert all(row["tpot_ms"][line] > 0 for line in LINES)
    with pytest.raises(AnalyzerError):
        api.bounds(model="llama-3.1-8b")

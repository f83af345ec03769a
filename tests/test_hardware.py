"""A case against the hardware it ran on: the deployment, the batch, the bound, the fit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cases import a15_far_from_bound, a16_offloaded
from cases._build import MS, at, write_case
from click.testing import CliRunner
from deep import deep
from helpers import case_of, engine_of
from jsonschema import Draft202012Validator
from shared import SHARED, needs_shared

import analyzer
from analyzer import api
from analyzer.bounds.cells import decode_cell, prefill_cell
from analyzer.bounds.deployed import FILE, LOG, NAMED_FILE, merged, setting_of
from analyzer.cli import cli
from analyzer.contract.types import Filters
from analyzer.engines.duckdb import Engine
from analyzer.errors import AnalyzerError
from analyzer.questions._context_fit import fit_of
from analyzer.report import html
from analyzer.report import json as as_json
from analyzer.simulate.writers import NS, engine_line, openai_usage, request_record
from analyzer.store.case import open_case

SCHEMA = Path(__file__).parents[1] / "schemas/output/analyze.bounds.observed.schema.json"
T0 = at("2026-03-01T06:00:00Z")
MODEL = "pipit-8b"
FIGURES = {
    "memory_bandwidth_bytes_per_s": 1000e9, "params": 5e9, "weight_bytes_per_param": 2.0,
    "layers": 10, "kv_heads": 5, "head_dim": 100, "kv_bytes_per_value": 2.0,
}  # fmt: skip
"""10 GB of weights: 10 ms a step. 2 x 10 x 5 x 100 x 2 = 20,000 bytes a cached token: 20 ns."""
FILE_TOLD = {
    ("memory_bandwidth_gb_s" if name.startswith("memory") else name): (
        1000 if name.startswith("memory") else value
    )
    for name, value in FIGURES.items()
}


def record(name, start_ms, prompt, output, *, prefill_ms=10, decode_ms=1000, cached=0, **more):
    durations = {
        "queue": 0, "prefill": prefill_ms * MS, "decode": decode_ms * MS,
        "e2e": (prefill_ms + decode_ms) * MS,
    }  # fmt: skip
    return request_record(
        name, vantage="engine", started_ns=T0 + start_ms * MS, durations_ns=durations,
        usage=openai_usage(prompt, output, cached=cached), **({"model": MODEL} | more),
    )  # fmt: skip


def case(tmp_path, lines, told=FILE_TOLD, **files):
    folder = tmp_path / "logs"
    if told is not None:
        files["deployment.json"] = [json.dumps(told)]
    write_case(folder, {"records.jsonl": lines, **files}, MODEL)
    return case_of(folder, tmp_path / "case.duckdb")


def rows_of(db, sql, told=None):
    opened = open_case(db)
    try:
        return Engine(opened, Filters(), told).rows(sql)
    finally:
        opened.close()


# --- which deployment ran ------------------------------------------------------------------------


def row(rank, path="x.json", **columns):
    return {"rank": rank, "path": path, "name": None, **columns}


def test_options_beat_files_and_files_beat_logs():
    rows = [
        row(FILE, "d.json", gpu="NVIDIA H100 80GB HBM3", tp=2),
        row(LOG, "server.log", tp=4, layers=30),
        row(NAMED_FILE, "n.json", layers=32),
    ]
    facts = merged(rows, {"gpu": "NVIDIA H200"})
    assert facts.values == {"gpu": "NVIDIA H200", "tp": 2, "layers": 32}
    assert facts.sources == {"gpu": "options", "tp": "d.json", "layers": "n.json"}


def test_the_requests_model_is_taken_where_the_catalog_knows_it():
    assert merged([], {}, "meta-llama/Llama-3.1-8B-Instruct").values["model"].endswith("Instruct")
    assert "model" not in merged([], {}, "our-tuned-model").values
    told = merged([row(FILE, model="mistral-7b")], {}, "llama-3.1-8b")
    assert told.values["model"] == "mistral-7b"


def test_the_last_load_of_a_log_holds_unless_models_differ():
    first = row(LOG, gpu_weight_bytes=5, gpu_layers=3, offloadable_layers=9)
    last = row(LOG, gpu_weight_bytes=7, gpu_layers=4, offloadable_layers=9)
    facts = merged([first, last], {})
    assert (facts.values["gpu_weight_bytes"], facts.values["gpu_layers"]) == (7, 4)
    assert "the last of 2 loads" in " ".join(facts.told)
    other = merged([first | {"model": "a"}, last | {"model": "b"}], {})
    assert "gpu_weight_bytes" not in other.values
    assert "several models" in " ".join(other.told)


def test_inline_parameters_are_those_read_a_step():
    cell = decode_cell(setting_of(FIGURES), 1, 1000)
    assert cell.expected_ns == pytest.approx(10e6 + 1000 * 20)
    assert decode_cell(setting_of(FIGURES), 4, 1000).expected_ns == pytest.approx(10e6 + 80e3)
    assert decode_cell(setting_of(FIGURES), 4, 1000).strict_ns == pytest.approx(10e6 + 20e3)


def test_parameters_without_a_cache_take_that_of_the_model():
    told = {"gpu": "h100-sxm5-80gb", "model": "llama-3.1-8b", "params": 8e9, "kv": "bf16"}
    at_ = setting_of(told)
    assert at_.shape.kv_elements_per_token * at_.precision.kv_bytes == 131_072
    assert decode_cell(at_, 1, 0).expected_ns == pytest.approx(16e9 / 3350e9 * 1e9)


def test_a_name_out_of_a_file_is_no_path(tmp_path):
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"model_type": "llama"}))
    told = merged([row(FILE, model=str(config), gpu="NVIDIA H200")], {})
    with pytest.raises(AnalyzerError, match="what a step reads is not told"):
        setting_of(told.values)
    with pytest.raises(AnalyzerError, match="config lacks"):
        setting_of(merged([row(FILE, gpu="NVIDIA H200")], {"model": str(config)}).values)


def test_an_engine_tells_the_format_of_its_weights():
    told = {"model": "llama-3.1-8b", "gpu": "NVIDIA H100 80GB HBM3", "weight_format": "fp8"}
    assert setting_of(told).precision.least_bits == 8
    assert setting_of(told | {"weight_format": "compressed-tensors"}).precision.least_bits == 16


def test_a_known_model_and_gpu_need_no_figures():
    cell = decode_cell(
        setting_of({"model": "llama-3.1-8b", "gpu": "NVIDIA H100 80GB HBM3"}), 8, 4096
    )
    assert cell.expected_ns / 1e6 == pytest.approx(5.76, abs=0.01)


def test_two_memories_add_up_and_the_embedding_is_not_read():
    told = {
        "memory_bandwidth_bytes_per_s": 500e9, "cpu_memory_bandwidth_bytes_per_s": 50e9,
        "gpu_weight_bytes": 10_000_000_000, "cpu_weight_bytes": 3_000_000_000,
        "input_embedding_bytes": 1_000_000_000,
    }  # fmt: skip
    cell = decode_cell(setting_of(told), 1, 0)
    assert cell.expected_ns == pytest.approx(10e9 / 500 + 2e9 / 50)
    assert cell.host_ns == pytest.approx(2e9 / 50)
    assert cell.all_on_gpu_ns == pytest.approx(12e9 / 500)
    # Without the host's bandwidth nothing is slower than the GPU can be blamed for.
    slow = {k: v for k, v in told.items() if not k.startswith("cpu_memory")}
    assert decode_cell(setting_of(slow), 1, 0).expected_ns == pytest.approx(12e9 / 500)
    assert "cpu_memory_bandwidth_gb_s is not told" in " ".join(setting_of(slow).assumed)


def test_an_embedding_of_unknown_size_weakens_strict_only():
    told = {"memory_bandwidth_bytes_per_s": 500e9, "weight_bytes_per_rank": 10_000_000_000}
    cell = decode_cell(setting_of(told), 1, 0)
    assert cell.expected_ns == pytest.approx(20e6)
    assert cell.strict_ns == pytest.approx(18e6)


@pytest.mark.parametrize(
    ("told", "says"),
    [
        ({"model": "llama-3.1-8b"}, "which GPU ran is not told"),
        ({"gpu": "NVIDIA H100 80GB HBM3"}, "what a step reads is not told"),
        ({"gpu": "Warp 9", "params": 1e9}, "no accelerator 'Warp 9'"),
        (FIGURES | {"gpu_count": 3, "tp": 2}, "3 GPUs cannot hold"),
        (FIGURES | {"kv_bytes_per_value": 1e9}, "no size of a value"),
    ],
)
def test_what_is_missing_is_said(told, says):
    with pytest.raises(AnalyzerError, match=says):
        setting_of(told)


def test_the_batch_is_no_more_than_the_engine_holds():
    at_ = setting_of(FIGURES)
    assert decode_cell(at_, 64, 1000, most=16).batch == 16
    assert decode_cell(at_, 64, 1000, pool=8_000).batch == 8
    assert decode_cell(at_, 64, 1000).batch == 64


def test_prefill_of_what_is_not_cached():
    at_ = setting_of({"model": "llama-3.1-8b", "gpu": "NVIDIA H100 80GB HBM3"})
    whole, rest = prefill_cell(at_, 8192, 0), prefill_cell(at_, 8192, 6144)
    assert rest.flops / whole.flops == pytest.approx(0.275, abs=0.001)
    assert whole.peak_ns / 1e6 == pytest.approx(133, abs=1)


# --- the batch, rebuilt --------------------------------------------------------------------------


def test_the_batch_is_rebuilt_from_overlap(tmp_path):
    # decode: a 10-1010 ms, b 510-1510 ms
    db = case(tmp_path, [record("a", 0, 1000, 100), record("b", 500, 3000, 100)])
    moments = rows_of(
        db,
        f"SELECT (at_ns - {T0}) / 1000000 AS ms, batch, prefilling, context_tokens "
        "FROM hardware_moment ORDER BY at_ns",
    )
    assert [tuple(one.values()) for one in moments] == [
        (0, 0, 1, 0),
        (10, 1, 0, 1050),
        (500, 1, 1, 1050),
        (510, 2, 0, 4100),
        (1010, 1, 0, 3050),
        (1510, 0, 0, 0),
    ]
    a = rows_of(db, "SELECT * FROM hardware_decode ORDER BY request_key")[0]
    assert a["batch"] == pytest.approx(1.5)
    assert a["batch_context"] == pytest.approx((1050 + 4100) / 2, rel=0.01)
    # Half its time at 10.021 ms a step, half at 10.082: as many steps as that allows.
    steps = 500 / 10.021 + 500 / 10.082
    assert a["expected_ns"] / 1e6 == pytest.approx(1000 / steps, rel=2e-4)
    assert a["strict_ns"] / 1e6 == pytest.approx(10.021, rel=2e-4)
    # The prompt of b was in work for 10 of its 1,000 ms.
    assert a["interference_ns"] / a["tpot_ns"] == pytest.approx(0.01)
    assert a["tpot_ns"] == pytest.approx(1000e6 / 99)


def test_engines_share_the_requests(tmp_path):
    told = FILE_TOLD | {"gpu_count": 4, "tp": 2}
    db = case(tmp_path, [record(f"r{k}", 0, 1000, 100) for k in range(8)], told)
    (one,) = rows_of(db, "SELECT max(batch) AS batch FROM hardware_moment")
    assert one["batch"] == 4
    (one,) = rows_of(db, "SELECT replicas, layout, gpus FROM hardware_setting")
    assert one == {"replicas": 2, "layout": "tp2", "gpus": 2}


def test_a_label_keeps_engines_apart(tmp_path):
    lines = [record(f"r{k}", 0, 1000, 100, deployment=f"e{k % 2}") for k in range(8)]
    lines.append(record("x", 0, 1000, 100, deployment="e2"))
    db = case(tmp_path, lines)
    rows = rows_of(db, "SELECT unit, max(batch) AS most FROM hardware_moment GROUP BY 1 ORDER BY 1")
    assert rows == [{"unit": "e0", "most": 4}, {"unit": "e1", "most": 4}, {"unit": "e2", "most": 1}]


def test_engines_that_report_share_what_has_no_label(tmp_path):
    lines = [record(f"r{k}", 0, 1000, 100) for k in range(8)]
    log = [engine_line(T0 + k * NS, _status(k % 2)) for k in range(4)]
    db = case(tmp_path, lines, **{"vllm.log": log})
    (one,) = rows_of(db, "SELECT max(batch) AS batch FROM hardware_moment")
    assert one["batch"] == 4


def _status(rank):
    return (
        f"Engine {rank:03d}: Avg prompt throughput: 1.0 tokens/s, Avg generation throughput: "
        "40.0 tokens/s, Running: 4 reqs, Waiting: 0 reqs, GPU KV cache usage: 1.0%, "
        "Prefix cache hit rate: 0.0%"
    )


def test_requests_that_the_logs_do_not_have_make_no_answer_slow(tmp_path):
    """Two decode, the engine reports 4: 33 ms a token is far from the bound of two, not of more."""
    lines = [record(f"r{k}", 0, 1000, 151, decode_ms=5000) for k in range(2)]
    log = [engine_line(T0 + k * NS, _status(0)) for k in range(1, 4)]
    db = case(tmp_path, lines, **{"vllm.log": log})
    (one,) = rows_of(db, "SELECT * FROM hardware_unseen")
    assert one == {"seen": 2, "reported": 4, "is_unseen": True}
    (one,) = rows_of(db, "SELECT DISTINCT reading FROM hardware_decode")
    assert one["reading"] == "others unseen"


@pytest.mark.parametrize("requests", [3, 4])
def test_engines_that_report_little_more_than_is_seen_agree(tmp_path, requests):
    lines = [record(f"r{k}", 0, 1000, 151, decode_ms=5000) for k in range(requests)]
    log = [engine_line(T0 + k * NS, _status(0)) for k in range(1, 4)]
    db = case(tmp_path, lines, **{"vllm.log": log})
    (one,) = rows_of(db, "SELECT reading, count(*) AS n FROM hardware_decode GROUP BY 1")
    assert one == {"reading": "far", "n": requests}


def test_two_engines_are_counted_together(tmp_path):
    """Eight requests, two engines with four each: nobody else is there."""
    lines = [record(f"r{k}", 0, 1000, 151, decode_ms=5000) for k in range(8)]
    log = [engine_line(T0 + k * NS, _status(k % 2)) for k in range(1, 5)]
    db = case(tmp_path, lines, **{"vllm.log": log})
    (one,) = rows_of(db, "SELECT * FROM hardware_unseen")
    assert one == {"seen": 8, "reported": 8, "is_unseen": False}


@pytest.mark.parametrize(("decode_ms", "reading"), [(900, "near"), (5000, "far")])
def test_launches_of_experts_are_no_sign_of_a_slow_engine(tmp_path, decode_ms, reading):
    """24 layers with experts may leave 24 x 150 us = 3.6 ms; 299 tokens in 0.9 s are 3.0 each."""
    lines = [
        record("a", 0, 1000, 300, decode_ms=decode_ms, model="gpt-oss-20b")
    ]  # fmt: skip
    db = case(tmp_path, lines, {"gpu": "NVIDIA B200"})
    (one,) = rows_of(db, "SELECT expert_layers FROM hardware_setting")
    assert one["expert_layers"] == 24
    (one,) = rows_of(db, "SELECT reading, reached_ratio FROM hardware_decode")
    assert one["reading"] == reading
    assert one["reached_ratio"] < 0.2


def test_devices_that_a_loader_gives_layers_are_stages():
    """Not more bandwidth for one answer, but for a batch that fills the stages."""
    values = FIGURES | {"gpu_count": 2, "gpu_layers": 30, "offloadable_layers": 30}
    at = setting_of(values)
    assert at.layout_name == "pp2"
    one, two = (decode_cell(at, batch, 0).expected_ns for batch in (1, 2))
    assert one == pytest.approx(10e6)
    assert two == pytest.approx(10e6)
    assert setting_of(values | {"tp": 2}).layout_name == "tp2"


def test_a_deployment_of_another_model_says_nothing_of_these(tmp_path):
    lines = [
        record("a", 0, 100, 50, model="llama-3.1-8b"), record("b", 0, 100, 50, model="other")
    ]  # fmt: skip
    told = {"model": "llama-3.1-8b", "gpu": "NVIDIA H100 80GB HBM3"}
    rows = rows_of(
        case(tmp_path, lines, told), "SELECT model, usable, why FROM hardware_setting ORDER BY 1"
    )
    # The other may be known to the catalog too, but not the GPU it ran on.
    assert [(one["model"], one["usable"]) for one in rows] == [
        ("llama-3.1-8b", True), ("other", False)
    ]  # fmt: skip
    assert "runs llama-3.1-8b" in rows[1]["why"]


def test_a_client_alone_is_no_engine_clock(tmp_path):
    folder = tmp_path / "logs"
    a15_far_from_bound.main(folder)
    (one,) = rows_of(
        case_of(folder, tmp_path / "c.duckdb"), "SELECT DISTINCT vantage FROM hardware_interval"
    )
    assert one["vantage"] == "client"


# --- what is said --------------------------------------------------------------------------------


def test_nothing_is_said_without_a_deployment(tmp_path):
    db = case(tmp_path, [record("a", 0, 1000, 100)], None)
    told = {one.rule: one for one in analyzer.findings(db).cannot_say}
    for rule in ("decode.below-bound", "decode.offloaded", "trust.faster-than-physics"):
        assert '{"model": "llama-3.1-8b", "gpu"' in told[rule].missing[0].how
    report = api.report(db)
    assert report.hardware is None
    assert "Against the hardware" not in html.render(report)


def test_a_share_near_one_is_suspicious(tmp_path):
    lines = [record(f"r{k}", 2000 * k, 500, 101, decode_ms=1030) for k in range(4)]
    (one,) = observed(case(tmp_path, lines))
    assert one["reached"]["p50"] == pytest.approx(10.011 / 10.3, rel=1e-3)
    assert one["reading"].startswith("suspiciously near")


def observed(db, *args):
    done = CliRunner().invoke(cli, ("--db", db, "bounds", *args, "-f", "json"))
    assert (done.exit_code, done.stderr) == (0, ""), done.output
    told = json.loads(done.stdout)
    assert told["kind"] == "analyze.bounds.observed"
    validator = Draft202012Validator(json.loads(SCHEMA.read_text()))
    for one in told["rows"]:
        validator.validate(one)
    return told["rows"]


def test_bounds_of_a_case_and_options_that_beat_its_file(tmp_path):
    lines = [record(f"r{k}", 2000 * k, 500, 101, decode_ms=2000) for k in range(4)]
    db = case(tmp_path, lines)
    (one,) = observed(db)
    assert one["observed_ms"] == pytest.approx(20)
    assert one["tpot_ms"]["expected"] == pytest.approx(10.011, rel=1e-3)
    assert "memory_bandwidth_bytes_per_s 1,000,000,000,000: deployment.json" in one["assumed"]
    (one,) = observed(db, "--memory-bandwidth", "2000GB/s")
    assert one["tpot_ms"]["expected"] == pytest.approx(10.011 / 2, rel=1e-3)
    assert "memory_bandwidth_bytes_per_s 2,000,000,000,000: options" in one["assumed"]
    (one,) = observed(db, "--model", "llama-3.1-8b", "--params", "5e9", "--weights", "fp8")
    assert one["weight_bytes"] == 5e9


def test_a_case_tells_its_batch_itself(tmp_path):
    db = case(tmp_path, [record("a", 0, 100, 50)])
    done = CliRunner().invoke(cli, ("bounds", "--db", db, "--batch", "4"))
    assert done.exit_code == 2
    assert "leave out --batch" in done.stderr


def test_a_model_that_is_named_is_calculated(tmp_path, monkeypatch):
    case(tmp_path, [record("a", 0, 100, 50)])
    monkeypatch.chdir(tmp_path)
    (tmp_path / "case.duckdb").rename("analyze.duckdb")
    args = ("bounds", "--model", "llama-3.1-8b", "--gpu", "h200", "-f", "json")
    done = CliRunner().invoke(cli, args)
    assert json.loads(done.stdout)["kind"] == "analyze.bounds"
    done = CliRunner().invoke(cli, ("bounds", "-f", "json"))
    assert json.loads(done.stdout)["kind"] == "analyze.bounds.observed"


def test_mfu_with_the_queue_taken_off(tmp_path):
    told = {"model": "llama-3.1-8b", "gpu": "NVIDIA H100 80GB HBM3"}
    lines = [record(f"r{k}", 2000 * k, 8192, 50, prefill_ms=266) for k in range(3)]
    (one,) = observed(case(tmp_path, lines, told))
    assert one["prefills"] == 3
    assert one["mfu"]["p50"] == pytest.approx(0.5, abs=0.005)
    assert one["ttft_ms"]["expected"] == pytest.approx(133, abs=1)


def test_a_prefill_faster_than_physics_is_told(tmp_path):
    told = {"model": "llama-3.1-8b", "gpu": "NVIDIA H100 80GB HBM3"}
    lines = [record(f"r{k}", 2000 * k, 8192, 50, prefill_ms=30) for k in range(3)]
    (one,) = [
        one
        for one in analyzer.findings(case(tmp_path, lines, told)).found
        if one.rule == "trust.faster-than-physics"
    ]
    assert one.requests == 3
    assert "cached tokens" in one.cause


RUNS = SHARED / "traces/2-measured/casys-kaist__LLMServingSim"


@needs_shared
@pytest.mark.parametrize(
    ("run", "options", "low", "high", "says"),
    [
        ("RTX4090~Llama-3.1-8B", (), 0.6, 0.7, "within what well tuned engines reach"),
        pytest.param(
            "RTXPRO6000~Qwen3-30B-A3B-Instruct-2507",
            ("--gpu", "rtx-pro-6000-bw"),
            *(0.9, 1.0, "within what well tuned engines reach"),
            marks=deep,
        ),
    ],
)
def test_a_measured_run_keeps_within_physics(run, options, low, high, says, tmp_path):
    db = str(tmp_path / "case.duckdb")
    analyzer.ingest(db, [str(one) for one in sorted(RUNS.glob(f"{run}~*"))])
    (one,) = observed(db, *options)
    assert low < one["reached"]["p50"] < high
    assert one["strict_ratio"] < one["reached"]["p50"]
    assert one["too_fast"] == 0
    assert one["judged"] == one["requests"] == 300
    assert says in one["reading"]
    assert "trust.faster-than-physics" not in {one.rule for one in analyzer.findings(db).found}


# --- the fit -------------------------------------------------------------------------------------


def test_the_fit_separates_the_cache_from_the_rest(tmp_path):
    # 12 ms and 25 ns a cached token: 20 ns of them are the bound's
    lines = []
    for k in range(24):
        prompt = 20_000 + 9_000 * k
        tpot_ms = 12 + (prompt + 50) * 25e-6
        lines.append(record(f"r{k}", 5000 * k, prompt, 101, decode_ms=round(100 * tpot_ms)))
    (one,) = observed(case(tmp_path, lines))
    fit = one["fit"]
    assert fit["slope_ns_per_token"] == pytest.approx(25, rel=0.02)
    assert fit["slope_low"] < 25 < fit["slope_high"]
    assert fit["bound_slope_ns_per_token"] == pytest.approx(20, rel=0.01)
    assert fit["cache_ratio"] == pytest.approx(0.8, rel=0.03)
    assert fit["intercept_ms"] == pytest.approx(12, rel=0.02)
    assert fit["weights_ms"] == pytest.approx(10, rel=0.001)


def test_the_fit_is_refused_where_contexts_do_not_vary(tmp_path):
    lines = [record(f"r{k}", 5000 * k, 1000, 101, decode_ms=2000 + k) for k in range(12)]
    (one,) = observed(case(tmp_path, lines))
    assert one["fit"]["slope_ns_per_token"] is None
    assert one["fit"]["why"] == "the contexts do not vary enough"


def test_batch_and_context_that_grow_together_are_not_told_apart():
    sums = {
        "requests": 50, "low_context": 1e3, "high_context": 9e3, "mean_context": 5e3,
        "mean_batch": 5.0, "mean_tpot_ns": 2e7, "context_context": 1e8, "batch_batch": 1e2,
        "context_batch": 9.9e4, "context_tpot": 1e10, "batch_tpot": 1e7, "tpot_tpot": 1e12,
    }  # fmt: skip
    assert "grow together" in fit_of(setting_of(FIGURES), sums)["why"]


def test_the_fit_with_a_batch_that_varies():
    # y = 3 x + 2 b, x and b uncorrelated: x in +-10, b in +-2, ten of each corner
    sums = {
        "requests": 40, "low_context": 90.0, "high_context": 900.0, "mean_context": 500.0,
        "mean_batch": 8.0, "mean_tpot_ns": 2000.0, "context_context": 4000.0, "batch_batch": 160.0,
        "context_batch": 0.0, "context_tpot": 12000.0, "batch_tpot": 320.0, "tpot_tpot": 36640.0,
    }  # fmt: skip
    fit = fit_of(setting_of(FIGURES), sums)
    assert fit["slope_ns_per_token"] == pytest.approx(3)
    assert fit["slope_high"] - fit["slope_low"] == pytest.approx(0, abs=1e-6)


# --- the report ----------------------------------------------------------------------------------


def test_the_report_shows_observed_against_three_lines(tmp_path):
    folder = tmp_path / "logs"
    a15_far_from_bound.twin(folder)
    report = api.report(case_of(folder, tmp_path / "case.duckdb"))
    page = html.render(report)
    assert "Against the hardware" in page
    assert "The picture in numbers, and its query" in page
    told = json.loads(as_json.dumps(report))
    assert told["hardware"][0]["reached"]["p50"] == pytest.approx(0.84, abs=0.01)
    series = {one["series"] for one in report.hardware_charts[0].rows}
    assert series == {"observed", "strict", "expected", "attainable"}


@deep
def test_every_number_of_the_picture_comes_from_its_query(tmp_path):
    folder = tmp_path / "logs"
    a16_offloaded.main(folder)
    db = case_of(folder, tmp_path / "case.duckdb")
    with engine_of(db) as engine:
        for chart in api.report(db).hardware_charts:
            assert list(chart.rows) == [
                one for one in engine.rows(chart.sql) if one["y"] is not None
            ]


def test_requests_that_name_no_model_are_no_other_model(tmp_path):
    lines = [record("a", 0, 100, 50), record("b", 0, 100, 50, model=None)]
    rows = rows_of(case(tmp_path, lines), "SELECT model, unit, usable FROM hardware_setting")
    assert sorted(one["model"] for one in rows) == ["", MODEL]
    assert all(one["usable"] and one["unit"] == "" for one in rows)

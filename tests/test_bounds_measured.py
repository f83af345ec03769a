"""The bounds against published measurements; a generated twin runs where those are not at hand."""

from __future__ import annotations

import csv
import random
import re
from dataclasses import replace
from functools import cache

import pytest
from shared import SHARED, needs_shared

from analyzer.bounds import capacity
from analyzer.bounds.classify import (
    KV_CAPACITY,
    METADATA,
    QUEUE_LIMITED,
    UNEXPLAINED,
    WITHIN,
    Measured,
    classify,
)
from analyzer.bounds.hardware import accelerator
from analyzer.bounds.models import model
from analyzer.bounds.precision import Precision, bits_of, uniform
from analyzer.bounds.step import Layout, expected_decode, strict_decode, strict_prefill

MEASURED = SHARED / "bounds" / "measured"
MS = 1e6

# --- shapes --------------------------------------------------------------------------------------


@needs_shared
def test_the_catalog_counts_as_the_reference_does():
    with (SHARED / "bounds" / "models.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 38
    for row in rows:
        shape = model(row["key"]).shape
        assert shape.total_params == int(row["total_params"]), row["key"]
        assert shape.read_params_decode == int(row["read_params_decode_b1"]), row["key"]
        assert shape.state_bytes() == int(row["state_bytes_fp32ssm"] or 0), row["key"]
        if row["key"] != "glm-5":  # its sparse attention is counted here, and is not there
            assert 2 * shape.kv_elements(8192) == int(row["kv_bytes_8k_bf16"]), row["key"]
        if row["config_file"]:
            own = model(str(SHARED / "bounds" / "configs" / row["config_file"])).shape
            assert own.layers == shape.layers, row["key"]


# --- single configurations -----------------------------------------------------------------------

MODELS = {
    "llama2_7b": "llama-2-7b", "llama2_13b": "llama-2-13b", "llama2_70b": "llama-2-70b",
    "llama3_8b": "llama-3.1-8b", "llama3_70b": "llama-3.1-70b", "llama3_405b": "llama-3.1-405b",
    "mixtral": "mixtral-8x7b", "mistral7b": "mistral-7b-v0.1", "codellama34b": "codellama-34b",
    "yi34b": "yi-34b", "gptoss20": "gpt-oss-20b", "gptoss120": "gpt-oss-120b",
    "dsv3": "deepseek-v3", "nem3super": "nemotron-3-super-120b-a12b",
}  # fmt: skip
PARTS = {
    "A100S": "a100-sxm4-80gb", "A100P": "a100-pcie-80gb", "MI250X_GCD": "mi250x-gcd",
    "RTX4090": "rtx4090", "RTX3090": "rtx3090", "RTX3090Ti": "rtx3090ti", "A6000": "rtx-a6000",
    "A40": "a40", "L40S": "l40s", "H100S": "h100-sxm5-80gb", "H100P": "h100-pcie-80gb",
    "H200": "h200-sxm-141gb", "B200": "b200-sxm", "B300": "b300-sxm", "B60": "arc-pro-b60",
    "GB10": "gb10-dgx-spark", "RX7900XTX": "rx7900xtx", "M1": "apple-m1", "M1Max": "apple-m1-max",
    "M2": "apple-m2", "M2Pro": "apple-m2-pro", "M2Ultra": "apple-m2-ultra", "M4": "apple-m4",
    "M3Max": "apple-m3-max-16c",
}  # fmt: skip
GGUF_BITS = 8 * 4.92e9 / 8_030_261_248
"""The file of 4.92 GB behind the Q4_K_M rows."""


def precision_of(row):
    """Format of a row, its head at 16 bits where the checkpoint of that name keeps it so."""
    text, kv = row["weights"], float(row["kv_bytes"])
    if "mxfp4" in text:
        own = model("gpt-oss-20b").own
    elif found := re.match(r"EXL2 ([\d.]+bpw)", text):
        own = uniform(found[1], head="6.0bpw")
    elif text == "Q4_K_M":
        own = uniform(f"{GGUF_BITS}bpw")
    elif text.startswith("GPTQ"):
        own = uniform("int4", head="bf16")
    elif "nvfp4" in text:
        own = uniform("nvfp4", head="bf16" if row["model"] == "dsv3" else None)
    elif text.startswith("int4g32"):
        own = uniform("int4-g32-zero")
    elif row["model"] == "llama3_70b" and text == "fp8":
        own = uniform("fp8", head="bf16") if row["gpu"] == "H200" else uniform("fp8")
    else:
        name = {"gf4": "4bpw", "q4f16_1": "int4-g32"}.get(text, text.split(",")[0])
        own = uniform(name)
    return replace(own, kv_bytes=kv, kv_told=True)


def decode_rows():
    if not MEASURED.is_dir():
        return []
    with (MEASURED / "decode_rows.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def decode_of(row):
    devices = int(row["n_gpu"])
    context = {int(float(row["avg_ctx"])): int(row["batch"])}
    return expected_decode(
        model(MODELS[row["model"]]).shape, precision_of(row), accelerator(PARTS[row["gpu"]]),
        Layout(devices, tensor=devices), context,
    )  # fmt: skip


@needs_shared
def test_decode_rows_come_out_as_they_were_worked_out():
    rows = decode_rows()
    assert len(rows) >= 50
    off = {}
    for number, row in enumerate(rows):
        # The figures spread all bytes over all devices; ours knows that a latent is on each.
        step, part = decode_of(row), accelerator(PARTS[row["gpu"]])
        least_ns = step.bytes_read / (int(row["n_gpu"]) * part.bandwidth_bytes_s) * 1e9
        assert step.memory_ns >= least_ns * 0.999
        ratio = least_ns / MS / float(row["bound_tpot_ms"])
        if abs(ratio - 1) > 0.01:
            off[number, row["model"], row["weights"]] = round(ratio, 3)
    assert not off


@needs_shared
def test_no_decode_row_is_faster_than_its_bound_but_speculation():
    for row in decode_rows():
        step, took = decode_of(row), float(row["measured_tpot_ms"]) * MS
        speculative = "draft" in row["weights"] or "spec" in row["engine"]
        assert (step.memory_ns > took) == speculative, row
    naive = [row for row in decode_rows() if row["naive_violated"] == "True"]
    assert len(naive) >= 4, "all parameters over bandwidth is beaten by experts"


@needs_shared
def test_prefill_rows_stay_below_the_peak():
    keys = {
        "Llama-3-8B F16": "llama-3.1-8b", "Llama-3.1-8B BF16": "llama-3.1-8b",
        "Llama-3.1-70B FP8": "llama-3.1-70b", "Llama-3.1-70B BF16": "llama-3.1-70b",
        "Qwen3-32B": "qwen3-32b", "Nemotron-3-Super NVFP4": "nemotron-3-super-120b-a12b",
    }  # fmt: skip
    parts = {
        "RTX A6000": "rtx-a6000", "A100 PCIe": "a100-pcie-80gb", "H100 PCIe": "h100-pcie-80gb",
        "H100": "h100-sxm5-80gb", "H200": "h200-sxm-141gb", "GB10": "gb10-dgx-spark",
        "M1 Max": "apple-m1-max", "M2 Ultra": "apple-m2-ultra", "L40S": "l40s",
        "RTX 4090": "rtx4090", "RTX 3090": "rtx3090",
    }  # fmt: skip
    with (MEASURED / "prefill_rows.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 15
    for row in rows:
        found = model(keys[row["model"]])
        weights = {"FP8": "fp8", "NVFP4": "nvfp4"}.get(row["model"].split()[-1])
        weights = weights or ("fp8" if row["peak_basis"] == "fp8" else "bf16")
        devices = int(row["n"])
        step = strict_prefill(
            found.shape, uniform(weights), accelerator(parts[row["gpu"]]), Layout(devices),
            int(row["prompt"]),
        )  # fmt: skip
        assert step.flops / 1e12 == pytest.approx(float(row["flops_T"]), rel=0.01), row
        assert step.ns / 1e9 < float(row["measured_ttft_s"]), row
        peak = float(row["peak_tflops"]) * 1e12 * devices
        assert step.flops / peak == pytest.approx(float(row["bound_s"]), rel=0.01), row


# --- benchmark runs ------------------------------------------------------------------------------

SYSTEMS = {
    "b200_sxm": "b200-sxm", "h200_sxm": "h200-sxm-141gb", "h100_sxm": "h100-sxm5-80gb",
    "gb200": "gb200", "b300_sxm": "b300-sxm", "gb300": "gb300",
}  # fmt: skip
FORMATS = {"nvfp4": "nvfp4", "fp8": "fp8", "fp8_block": "fp8-block", "int4_wo": "int4", "": None}


def whole(row, key):
    return int(float(row[key])) if row[key] else None


@cache
def run_precision(name, gemm, moe):
    """The smallest a run may have read: everything quantised, one byte a cached element."""
    own = model(name).own
    if not gemm and not moe:
        return replace(own, kv_bytes=1.0)
    dense = bits_of(gemm) / 8 if gemm else 2.0
    expert = bits_of(moe) / 8 if moe else dense
    return Precision(
        moe or gemm, min(dense, own.attention_bytes), min(dense, own.dense_bytes),
        min(expert, own.expert_bytes), min(dense, own.head_bytes), kv_bytes=1.0,
    )  # fmt: skip


def layout_of(row, prefix):
    tp, pp, dp = (
        whole(row, f"{prefix}{key}") or 1 for key in ("tp_size", "pp_size", "attention_dp_size")
    )
    return Layout(tp * pp * dp, tensor=tp * dp, pipeline=pp, attention_data=dp)


def judged(row):
    """The row's class, and how its bounds stand to what was measured."""
    together = row["mode"] == "agg"
    found, part = model(row["model_path"]), accelerator(SYSTEMS[row["system"]])
    own = run_precision(
        row["model_path"], FORMATS[row["gemm_quant_mode"]], FORMATS[row["moe_quant_mode"]]
    )
    layout = layout_of(row, "" if together else "decode_")
    batch = whole(row, "batch_size" if together else "decode_batch_size")
    told = ("attention_dp_size",) if together else ("decode_batch_size", "decode_num_workers")
    complete = batch is not None and all(row[key] for key in told)
    clients = re.search(r"_c(\d+)", row["id"])
    batch = batch * layout.attention_data if batch else int(clients[1])
    prompt = whole(row, "isl")
    context = prompt + whole(row, "osl") // 2
    prefill = strict_prefill(
        found.shape, own, part, layout_of(row, "" if together else "prefill_"), prompt
    )
    strict = strict_decode(found.shape, own, part, layout, context)
    expected = expected_decode(found.shape, own, part, layout, {context: batch})
    room = capacity.room_bytes(found.shape, own, part, layout)
    tpot, ttft = float(row["silicon_tpot_ms"]) * MS, float(row["silicon_ttft_ms"]) * MS
    word = classify(
        Measured(
            tpot, strict.ns, expected.ns, complete=complete, batch=batch, ttft_ns=ttft,
            fits=capacity.sequences(found.shape, own, layout, room, context),
            copies=capacity.cache_copies(found.shape, layout), prefill_ns=prefill.ns,
        )
    )  # fmt: skip
    return word, strict.ns / tpot, expected.ns / tpot, prefill.ns / ttft


@needs_shared
def test_nothing_beats_strict_and_what_beats_expected_is_named():
    with (MEASURED / "aiconfigurator_rows.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) > 2500
    told = [(row, *judged(row)) for row in rows]
    assert max(strict for _, _, strict, _, _ in told) == pytest.approx(0.78, abs=0.005)
    assert max(ttft for *_, ttft in told) < 1
    dump = [one for one in told if one[0]["silicon_data_source"].startswith("db-dump")]
    assert len(dump) > 400
    assert {one[1] for one in dump} == {WITHIN}
    assert max(one[3] for one in dump) == pytest.approx(0.79, abs=0.005)
    above = [one for one in told if one[3] > 1]
    assert {one[1] for one in above} == {METADATA, QUEUE_LIMITED}
    words = {(one[0]["model_path"], one[1]) for one in above if one[0]["mode"] == "agg"}
    assert words == {
        ("deepseek-ai/DeepSeek-R1", METADATA),
        ("openai/gpt-oss-120b", QUEUE_LIMITED),
    }


# --- the twin: rows of our own, with known answers -----------------------------------------------

RUNS = [
    # model, part, tensor, attention groups, batch, context: figures nobody measured
    ("llama-3.1-8b", "l40s", 1, 1, 12, 3000),
    ("qwen3-32b", "h200-sxm-141gb", 2, 1, 24, 5200),
    ("deepseek-v3", "b200-sxm", 8, 8, 64, 2100),
    ("gpt-oss-20b", "rtx5090", 1, 1, 5, 9000),
    ("gemma-3-27b", "a100-sxm4-80gb", 2, 1, 7, 30_000),
    ("nemotron-3-nano-30b-a3b", "l40s", 1, 1, 9, 12_000),
]


def twin(run):
    name, part, tensor, groups, batch, context = run
    found, gpu = model(name), accelerator(part)
    layout = Layout(tensor, tensor=tensor, attention_data=groups)
    strict = strict_decode(found.shape, found.own, gpu, layout, context).ns
    step = expected_decode(found.shape, found.own, gpu, layout, {context: batch}).ns
    return strict, step


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run[0])
def test_a_generated_run_is_judged_as_it_was_made(run):
    strict, step = twin(run)
    assert strict < step
    slack = random.Random(run[0]).uniform(1.05, 4)
    row = Measured(step * slack, strict, step, batch=run[4], fits=run[4] + 1)
    assert classify(row) == WITHIN
    middle = replace(row, tpot_ns=(strict + step) / 2)
    assert classify(middle) == UNEXPLAINED
    assert classify(replace(middle, fits=run[4] - 1)) == KV_CAPACITY
    assert classify(replace(middle, ttft_ns=1e12, prefill_ns=1e9)) == QUEUE_LIMITED
    assert classify(replace(middle, complete=False)) == METADATA
    assert classify(replace(row, tpot_ns=strict / 2, complete=False)) == UNEXPLAINED


def test_a_twin_by_hand():
    """Dense model on one part: (weights + cache) / bandwidth, with a pocket calculator."""
    strict, step = twin(RUNS[0])
    weights, cache_ = 15.0098e9, 3000 * 131_072
    assert step / MS == pytest.approx((weights + 12 * cache_) / 864e9 * 1e3, rel=1e-3)
    assert strict / MS == pytest.approx((weights + cache_ / 2) / 864e9 * 1e3, rel=1e-3)

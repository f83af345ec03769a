"""The bound model against published totals and figures that were worked out by hand."""

from __future__ import annotations

import pytest

from analyzer import formulas
from analyzer.bounds import capacity
from analyzer.bounds.classify import (
    KV_CAPACITY,
    METADATA,
    QUEUE_LIMITED,
    REPLICAS,
    UNEXPLAINED,
    WITHIN,
    Measured,
    classify,
)
from analyzer.bounds.hardware import accelerator, accelerators
from analyzer.bounds.hf_config import shape_of
from analyzer.bounds.models import model, models
from analyzer.bounds.precision import from_config, uniform
from analyzer.bounds.step import (
    Layout,
    attainable,
    decode_flops,
    expected_decode,
    mixed_ns,
    prefill_flops,
    prefill_ns,
    prefill_score_flops,
    step_ns,
    strict_decode,
    strict_prefill,
    tokens_per_step,
)
from analyzer.errors import AnalyzerError

H100 = accelerator("h100-sxm5-80gb")
H200 = accelerator("h200-sxm-141gb")
ONE = Layout()
MS = 1e6
GB = 1e9
GIB = 2**30
BF16 = uniform("bf16", kv="bf16")
LLAMA = model("llama-3.1-8b").shape
DEEPSEEK = model("deepseek-v3").shape


# --- textbook ------------------------------------------------------------------------------------


def test_textbook_decode_reads_every_weight():
    params = model("mistral-7b-v0.1").shape.read_params_decode
    assert params == pytest.approx(7.111e9, rel=1e-4)
    size = formulas.weight_bytes(params, 2)
    assert size / GB == pytest.approx(14.22, abs=0.005)
    assert formulas.read_ns(size, 1008e9) / MS == pytest.approx(14.11, abs=0.005)
    half = formulas.weight_bytes(params, 1)
    assert formulas.read_ns(half, 1008e9) / MS == pytest.approx(7.05, abs=0.005)


def test_textbook_prefill_and_cache():
    assert formulas.kv_bytes_per_token(32, 8, 128) == 131_072
    rate = formulas.effective_flops_s(312e12)
    assert rate / 1e12 == pytest.approx(187.2)
    flops = formulas.forward_flops(1, 2048, 7e9)
    assert flops == pytest.approx(2.87e13, rel=0.002)
    assert formulas.compute_ns(flops, rate) / MS == pytest.approx(153, abs=0.5)
    assert formulas.prefill_left(1400, 1200) == pytest.approx(0.143, abs=0.0005)


# --- parameters ----------------------------------------------------------------------------------


@pytest.mark.parametrize("key", models())
def test_every_model_of_the_catalog_counts_what_it_says(key):
    entry = models()[key]
    shape = shape_of(entry["config"], key)
    assert shape.total_params == entry["total_params"]
    assert entry["source"]
    assert entry["confidence"] in {"high", "medium", "low"}
    assert len({*entry["aliases"]}) == len(entry["aliases"])
    told = entry["published"]
    if "," in told:
        assert shape.total_params == int(told.replace(",", "")), key


ROUNDED = {
    # what the name says is not what the decoder has: vision towers, or rounding to a brand
    "gemma-4-26b-a4b": 0.031,
    "kimi-k2": 0.027,
    "kimi-k2.5": 0.027,
    "llama-4-scout": 0.012,
    "nemotron-3-nano-30b-a3b": 0.053,
}


@pytest.mark.parametrize("key", models())
def test_rounded_totals_agree_within_one_percent(key):
    entry = models()[key]
    told = entry["published"]
    if "," in told:
        return
    factor = {"B": 1e9, "T": 1e12}[told[-1]]
    off = abs(entry["total_params"] / (float(told[:-1]) * factor) - 1)
    assert off <= ROUNDED.get(key, 0.0101), key


def test_a_step_reads_the_head_and_no_embedding():
    assert LLAMA.read_params_decode == 7_504_924_672
    assert LLAMA.read_params_decode / LLAMA.total_params - 1 == pytest.approx(-0.065, abs=0.0005)
    gemma = model("gemma-3-27b").shape
    assert gemma.tied
    assert gemma.read_params_decode == gemma.total_params
    assert model("gpt-oss-120b").shape.read_params_decode == pytest.approx(5.13e9, rel=0.001)
    assert model("deepseek-v2-lite").shape.read_params_decode == pytest.approx(2.45e9, rel=0.001)
    qwen = model("qwen3-30b-a3b").shape
    assert qwen.read_params_decode + qwen.embedding_params == pytest.approx(3.353e9, rel=1e-4)


@pytest.mark.parametrize(
    ("experts", "topk", "batch", "share"),
    [
        (8, 2, 1, 0.25), (8, 2, 4, 0.684), (8, 2, 8, 0.90), (8, 2, 16, 0.99),
        (256, 8, 1, 0.031), (256, 8, 8, 0.224), (256, 8, 16, 0.398), (256, 8, 32, 0.638),
        (256, 8, 64, 0.869), (256, 8, 256, 0.9997), (384, 8, 32, 0.490), (384, 8, 64, 0.740),
    ],
)  # fmt: skip
def test_experts_read_grow_with_the_batch(experts, topk, batch, share):
    key = {8: "mixtral-8x7b", 256: "deepseek-v3", 384: "kimi-k2"}[experts]
    shape = model(key).shape
    assert {ffn.topk for ffn in shape.ffns if ffn.experts} == {topk}
    read = shape.experts_read(batch, strict=False) / shape.expert_params
    assert read == pytest.approx(share, abs=0.0011)
    assert shape.experts_read(batch, strict=True) / shape.expert_params == topk / experts


@pytest.mark.parametrize(
    ("batch", "read_gb", "time_ms"),
    [(1, 36.6, 0.95), (8, 162.9, 4.24), (32, 433.3, 11.3), (128, 658.9, 17.2)],
)
def test_deepseek_reads_most_experts_at_a_small_batch(batch, read_gb, time_ms):
    layout = Layout(8, tensor=8)
    step = expected_decode(DEEPSEEK, uniform("fp8", kv="bf16"), H200, layout, {0: batch})
    assert step.weight_bytes / GB == pytest.approx(read_gb, abs=0.06)
    assert step.memory_ns / MS == pytest.approx(time_ms, abs=0.06)


# --- bytes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("key", "gib"), [("gpt-oss-120b", 60.71), ("gpt-oss-20b", 12.81)])
def test_checkpoints_of_mixed_formats_have_their_size(key, gib):
    found = model(key)
    assert found.own.checkpoint_bytes(found.shape) / GIB == pytest.approx(gib, abs=0.006)


def test_a_head_left_at_16_bits_costs_its_bytes():
    shape = model("llama-3.1-70b").shape
    small = uniform("nvfp4").checkpoint_bytes(shape) - shape.embedding_params * 2
    more = uniform("nvfp4", head="bf16").checkpoint_bytes(shape) - shape.embedding_params * 2
    assert (small + 0.5625 * shape.embedding_params) / GB == pytest.approx(39.7, abs=0.05)
    assert (more - small) / GB == pytest.approx(1.5, abs=0.05)


@pytest.mark.parametrize(
    ("key", "context", "bf16_bytes"),
    [
        ("llama-3.1-8b", 1, 131_072),
        ("deepseek-v3", 1, 70_272),
        ("mistral-nemo-12b", 1, 163_840),
        ("gemma-3-27b", 131_072, 11.2e9),
        ("llama-4-scout", 131_072, 7.65e9),
        ("mistral-7b-v0.1", 8192, 536_870_912),
        ("mistral-7b-v0.2", 8192, 1_073_741_824),
    ],
)
def test_cache_read_by_kind_of_attention(key, context, bf16_bytes):
    assert model(key).shape.kv_elements(context) * 2 == pytest.approx(bf16_bytes, rel=0.005)


def test_what_a_window_saves():
    gemma, scout = model("gemma-3-27b").shape, model("llama-4-scout").shape
    assert gemma.kv_elements_per_token * 2 * 131_072 / GB == pytest.approx(66.6, abs=0.05)
    assert scout.kv_elements_per_token * 2 * 131_072 / GB == pytest.approx(25.8, abs=0.05)


def test_sparse_attention_reads_the_best_tokens_and_every_index():
    glm = model("glm-5").shape
    dense = 78 * 576
    assert glm.kv_elements(1024) == 1024 * (dense + 78 * 128)
    assert glm.kv_elements(100_000) == 2048 * dense + 100_000 * 78 * 128
    assert glm.held_elements(100_000) == 100_000 * (dense + 78 * 128)


@pytest.mark.parametrize(
    ("key", "mega"), [("qwen3.5-397b-a17b", 192), ("nemotron-h-56b", 913), ("llama-3.1-8b", 0)]
)
def test_states_have_a_fixed_size(key, mega):
    assert model(key).shape.state_bytes() / 1e6 == pytest.approx(mega, abs=0.5)


# --- a step --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("batch", "time_ms"), [(1, 4.64), (8, 5.76), (32, 9.61), (128, 25.0), (256, 45.5)]
)
def test_batching_gains_until_the_cache_is_most_of_what_is_read(batch, time_ms):
    assert step_ns(LLAMA, BF16, H100, ONE, [4096] * batch) / MS == pytest.approx(time_ms, abs=0.05)


def test_contexts_may_be_counted():
    mixed = [100] * 3 + [2000] * 2
    step = expected_decode(LLAMA, BF16, H100, ONE, mixed)
    assert step == expected_decode(LLAMA, BF16, H100, ONE, {100: 3, 2000: 2})
    assert step.flops == pytest.approx(decode_flops(LLAMA, mixed))
    assert step_ns(LLAMA, BF16, H100, ONE, []) == 0


@pytest.mark.parametrize(
    ("part", "ridge"),
    [("h100-sxm5-80gb", 295), ("a100-sxm4-80gb", 153), ("b200-sxm", 281), ("rtx4090", 164)],
)
def test_ridge(part, ridge):
    one = accelerator(part)
    assert one.flops_16bit / one.bandwidth_bytes_s == pytest.approx(ridge, abs=0.6)


def test_strict_holds_whatever_the_batch():
    """Own cache at one byte where its format is not told, experts of one token, no layout."""
    unsure, told = uniform("bf16"), uniform("bf16", kv="bf16")
    strict = strict_decode(LLAMA, unsure, H100, ONE, 4096)
    assert strict.kv_bytes == 4096 * 65_536
    assert strict_decode(LLAMA, told, H100, ONE, 4096).kv_bytes == 4096 * 131_072
    shapes = [
        LLAMA,
        DEEPSEEK,
        model("gemma-3-27b").shape,
        model("nemotron-3-super-120b-a12b").shape,
    ]
    for shape in shapes:
        for batch in (1, 7, 300):
            for layout in (ONE, Layout(8, tensor=8), Layout(8, tensor=2, pipeline=4),
                           Layout(16, tensor=16, attention_data=8)):  # fmt: skip
                low = strict_decode(shape, unsure, H100, layout, 4096)
                step = expected_decode(shape, unsure, H100, layout, {4096: batch})
                assert low.ns <= step.ns * 1.000001
                assert attainable(step, shape, H100, layout, batch).ns > step.ns


def test_layouts():
    one = expected_decode(LLAMA, BF16, H100, ONE, [4096]).memory_ns
    tp = expected_decode(LLAMA, BF16, H100, Layout(4, tensor=4), [4096]).memory_ns
    pp = expected_decode(LLAMA, BF16, H100, Layout(4, tensor=1, pipeline=4), [4096]).memory_ns
    assert tp == pytest.approx(one / 4)
    assert pp == pytest.approx(one), "a token passes all stages: bandwidth does not add"
    latent = uniform("fp8", kv="bf16")
    bare, full = ({0: 8}, {8192: 8})

    def cache_ms(layout):
        steps = [expected_decode(DEEPSEEK, latent, H200, layout, c).memory_ns for c in (bare, full)]
        return (steps[1] - steps[0]) / MS

    whole = 8 * 8192 * 70_272 / 4.8e12 * 1e3
    assert cache_ms(Layout(8, tensor=8)) == pytest.approx(whole), "a latent is on every rank"
    assert cache_ms(Layout(8, tensor=8, attention_data=8)) == pytest.approx(whole / 8)
    grouped = Layout(32, tensor=32)
    assert capacity.cache_copies(LLAMA, grouped) == 4
    assert capacity.cache_copies(DEEPSEEK, Layout(8, tensor=8, attention_data=8)) == 1


def test_all_reduces_of_small_messages_cost_their_latency():
    shape, layout = model("llama-3.1-70b").shape, Layout(8, tensor=8)
    step = expected_decode(shape, BF16, H100, layout, [100])
    assert attainable(step, shape, H100, layout, 1).communication_ns / MS == pytest.approx(1.28)
    large = attainable(step, shape, H100, layout, 512).communication_ns
    assert large / MS == pytest.approx(8 * 0.65, rel=0.01)


@pytest.mark.parametrize(("acceptance", "drafts", "tokens"), [(0.8, 4, 3.36), (0.7, 3, 2.53)])
def test_tokens_a_step_of_speculation(acceptance, drafts, tokens):
    assert tokens_per_step(acceptance, drafts) == pytest.approx(tokens, abs=0.005)
    assert tokens_per_step(1, drafts) == drafts + 1
    assert tokens_per_step(0, drafts) == 1


# --- a prefill -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prompt", "share", "time_ms"),
    [(2048, 0.038, 30), (8192, 0.15, 133), (32_768, 0.62, 747), (131_072, 2.46, 6404)],
)
def test_attention_of_a_prompt_grows_with_its_square(prompt, share, time_ms):
    scores = prefill_score_flops(LLAMA, prompt)
    linear = 2 * (LLAMA.read_params_decode - LLAMA.head_params) * prompt
    assert scores / linear == pytest.approx(share, abs=0.005)
    assert prefill_ns(LLAMA, BF16, H100, ONE, prompt) / MS == pytest.approx(time_ms, rel=0.005)


def test_a_prefix_hit_saves_less_than_its_share():
    def parts(cached):
        scores = prefill_score_flops(LLAMA, 8192, cached)
        return scores, prefill_flops(LLAMA, 8192, cached) - scores - 2 * LLAMA.head_params

    (scores, linear), (all_scores, all_linear) = parts(6144), parts(0)
    assert linear / all_linear == pytest.approx(0.25)
    assert scores / all_scores == pytest.approx(0.4375)
    both = (scores + linear) / (all_scores + all_linear)
    assert both == pytest.approx(0.275, abs=0.0006)


def test_a_short_prompt_waits_for_memory():
    step = strict_prefill(LLAMA, BF16, H100, ONE, 128)
    assert step.compute_ns / MS == pytest.approx(1.8, abs=0.05)
    assert step.memory_ns / MS == pytest.approx(4.48, abs=0.005)
    assert step.limited_by == "memory"


@pytest.mark.parametrize(("chunk", "time_ms"), [(0, 7.04), (512, 7.68), (2048, 29.4), (8192, 116)])
def test_decodes_wait_for_the_chunk_beside_them(chunk, time_ms):
    told = mixed_ns(LLAMA, BF16, H100, ONE, [2048] * 32, chunk) / MS
    assert told == pytest.approx(time_ms, rel=0.003)


def test_rates_follow_the_kernels():
    ada, blackwell = accelerator("rtx4090"), accelerator("b200-sxm")
    assert ada.fastest(16) == 330.3e12, "fp16 accumulation beats the usual kernels"
    assert ada.usual(16) == 165.2e12
    assert H100.usual(4.125) == H100.flops_16bit, "4-bit weights are multiplied in 16"
    assert H100.usual(8) == H100.flops_fp8
    assert blackwell.usual(4.5, four_bit=True) == blackwell.flops_fp4
    assert accelerator("a100-sxm4-80gb").usual(8) == 624e12, "no fp8: int8"
    assert accelerator("apple-m4").usual(16) is None


# --- what fits -----------------------------------------------------------------------------------


def test_capacity_is_what_the_weights_leave():
    room = capacity.room_bytes(LLAMA, BF16, H100, ONE)
    assert room == pytest.approx(0.9 * 80e9 - 2 * LLAMA.total_params)
    assert capacity.sequences(LLAMA, BF16, ONE, room, 4096) == int(room // (4096 * 131_072))
    longest = capacity.longest_context(LLAMA, BF16, ONE, room, 8)
    assert longest == int(room // (8 * 131_072))
    assert capacity.longest_context(LLAMA, BF16, ONE, -1.0, 1) == 0
    assert capacity.longest_context(LLAMA, BF16, ONE, 1e15, 1) == 131_072, "made for no more"
    mamba = model("nemotron-3-nano-30b-a3b").shape
    state = capacity.sequence_bytes(mamba, BF16, ONE, 0)
    assert state == mamba.state_bytes() > 0


def test_70b_at_fp8_leaves_an_h200_75_sequences_of_4500():
    """The count behind a published run (4000 in, 1000 out) whose 128 clients queued for minutes."""
    shape, fp8 = model("llama-3.1-70b").shape, uniform("fp8", kv="fp8")
    room = capacity.room_bytes(shape, fp8, H200, ONE)
    assert capacity.sequences(shape, fp8, ONE, room, 4500) == pytest.approx(75, abs=1)


# --- names ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "key", "weights", "head"),
    [
        ("llama-3.1-8b", "llama-3.1-8b", "bf16", 2),
        ("META-LLAMA/llama-3.1-8b-instruct", "llama-3.1-8b", "bf16", 2),
        ("RedHatAI/Meta-Llama-3.1-8B-Instruct-FP8-dynamic", "llama-3.1-8b", "fp8", 2),
        ("hugging-quants/Meta-Llama-3.1-70B-Instruct-AWQ-INT4", "llama-3.1-70b", "awq", 2),
        ("TheBloke/Mistral-7B-Instruct-v0.2-GPTQ", "mistral-7b-v0.2", "int4", 2),
        ("nvidia/Qwen3-32B-NVFP4", "qwen3-32b", "nvfp4", 2),
        ("llama3.1:8b", "llama-3.1-8b", "q4_k_m", 0.6118),
        ("llama3.1:8b-instruct-q8_0", "llama-3.1-8b", "q8_0", 1.0625),
        ("gpt-oss:20b", "gpt-oss-20b", "mxfp4", 2),
        ("deepseek-ai/DeepSeek-R1", "deepseek-v3", "fp8-block", 2),
        ("gemma3:27b-it-q4_K_M", "gemma-3-27b", "q4_k_m", 0.6118),
        ("moonshotai/Kimi-K2.5", "kimi-k2.5", "int4-g32", 2),
    ],
)
def test_a_name_tells_model_and_precision(name, key, weights, head):
    found = model(name)
    assert (found.key, found.own.name) == (key, weights)
    assert found.own.head_bytes == head


def test_strict_takes_a_head_that_is_not_told_as_small():
    own = model("Qwen/Qwen3-32B-FP8").own
    assert not own.head_told
    assert own.least().head_bytes == 1
    assert model("openai/gpt-oss-120b").own.least().head_bytes == 2


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("llama-3.1-9b", "llama-3.1-8b"),
        ("mistral-7b", "mistral-7b-v0.1 or mistral-7b-v0.2 or mistral-7b-v0.3"),
        ("qwen3-30b", "qwen3-30b-a3b"),
        ("my-own-model", "config.json"),
        ("", "config.json"),
        ("-fp8", "config.json"),
    ],
)
def test_no_name_is_taken_for_its_neighbour(name, hint):
    with pytest.raises(AnalyzerError, match="no model") as caught:
        model(name)
    assert hint in caught.value.hint


@pytest.mark.parametrize("key", models())
def test_every_alias_finds_its_own_model(key):
    for alias in (key, *models()[key]["aliases"]):
        assert model(alias).key == key
        assert model(alias.upper()).key == key


@pytest.mark.parametrize(
    ("device", "key"),
    [
        ("NVIDIA H100 80GB HBM3", "h100-sxm5-80gb"),
        ("NVIDIA H100 PCIe", "h100-pcie-80gb"),
        ("NVIDIA H100 NVL", "h100-nvl-94gb"),
        ("NVIDIA A100-SXM4-80GB", "a100-sxm4-80gb"),
        ("NVIDIA A10G", "a10g"),
        ("NVIDIA A10", "a10"),
        ("NVIDIA GH200 480GB", "gh200-96gb"),
        ("Tesla V100-SXM2-16GB", "v100-sxm2-16gb"),
        ("NVIDIA GeForce RTX 4090", "rtx4090"),
        ("rtx 4090", "rtx4090"),
        ("NVIDIA H20-3e", "h20-3e-141gb"),
        ("H200", "h200-sxm-141gb"),
        ("AMD Instinct MI300X", "mi300x"),
        ("Apple M2", "apple-m2"),
        ("Intel(R) Arc(TM) Pro B60 Graphics", "arc-pro-b60"),
    ],
)
def test_device_strings(device, key):
    assert accelerator(device).key == key


@pytest.mark.parametrize(
    "device",
    [
        "NVIDIA GeForce RTX 4090 Laptop GPU", "NVIDIA GeForce RTX 4090 D", "H100", "A100", "NVIDIA",
        "AMD Radeon Graphics", "Apple M3 Max", "", "M2", "Apple M4 Ultra", "NVIDIA A100-SXM4-64GB",
    ],
)  # fmt: skip
def test_device_strings_that_could_be_several_or_none(device):
    with pytest.raises(AnalyzerError):
        accelerator(device)


def test_every_device_name_finds_its_own_part_or_says_that_there_are_several():
    catalog = accelerators().values()
    for one in catalog:
        assert accelerator(one.key) is one
        for name in one.device_names:
            if sum(name in other.device_names for other in catalog) == 1:
                assert accelerator(name) is one
                continue
            with pytest.raises(AnalyzerError, match="several parts"):
                accelerator(name)
        assert one.confidence in {"high", "medium", "low"}
        assert one.sources
        rates = (one.flops_16bit, one.flops_fp8, one.ops_int8)
        assert all(rate is None or rate > 1e12 for rate in rates)


# --- configs -------------------------------------------------------------------------------------

DENSE = {
    "model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64, "intermediate_size": 128,
    "vocab_size": 100, "num_attention_heads": 4, "num_key_value_heads": 2,
}  # fmt: skip


def test_a_config_is_counted_by_hand():
    shape = shape_of(DENSE)
    layer = 64 * 64 * 2 + 2 * 64 * 32 + 3 * 64 * 128 + 2 * 64
    assert shape.total_params == 2 * layer + 64 + 2 * 100 * 64
    assert shape.read_params_decode == 2 * layer + 64 + 100 * 64
    wide = shape_of({**DENSE, "head_dim": 32})
    assert wide.kv_elements_per_token == 2 * shape.kv_elements_per_token, "never hidden / heads"


@pytest.mark.parametrize(
    "change",
    [
        {"model_type": "hal9000"}, {"model_type": None}, {"num_hidden_layers": None},
        {"num_hidden_layers": 10**9}, {"num_attention_heads": 0}, {"hidden_size": -1},
        {"hidden_size": "64"}, {"vocab_size": None}, {"intermediate_size": 1.5},
        {"text_config": [1]}, {"hidden_size": 10**40},
        {"model_type": "qwen3_next", "layer_types": ["full_attention"], "num_experts": 0},
        {"model_type": "nemotron-nas", "block_configs": [1, 2]},
        {"model_type": "mixtral", "num_local_experts": 2, "num_experts_per_tok": 3},
        {"model_type": "deepseek_v3"}, {"model_type": "gpt_oss"},
    ],
)  # fmt: skip
def test_a_config_that_cannot_be_is_refused(change):
    with pytest.raises(AnalyzerError):
        shape_of({**DENSE, **change})


@pytest.mark.parametrize(
    ("told", "quant", "expected"),
    [
        ({"quant_method": "gptq", "bits": 4, "group_size": 128}, None, ("int4", 4.125, 16)),
        ({"quant_method": "awq", "bits": 4}, None, ("awq", 4.15625, 16)),
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, None, ("fp8-block", 8.002, 16)),
        (None, {"quantization": {"quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8",
                                 "exclude_modules": ["lm_head"]}}, ("nvfp4", 4.5, 16)),
        ({"quant_method": "fp8", "ignore": ["model.embed_tokens"]}, None, ("fp8", 8, 8)),
    ],
)  # fmt: skip
def test_what_a_checkpoint_says_of_its_precision(told, quant, expected):
    own = from_config({**DENSE, **({"quantization_config": told} if told else {})}, quant)
    bits = (8 * own.dense_bytes, 8 * own.head_bytes)
    assert own.name == expected[0]
    assert bits == pytest.approx(expected[1:], abs=0.001)
    assert own.kv_told == (quant is not None)


@pytest.mark.parametrize(
    ("kept", "attention", "dense"),
    [
        (["lm_head", "model.layers.*.self_attn"], 2, 1),
        (["lm_head", "re:.*self_attn.*"], 2, 1),
        ([f"model.layers.{n}.self_attn.o_proj" for n in range(8)], 2, 1),
        ([f"model.layers.{n}.self_attn.q_a_proj" for n in range(8)], 1, 1),
        ([f"model.layers.{n}.self_attn.indexer.weights_proj" for n in range(8)], 1, 1),
        (["model.layers.0.self_attn", "model.layers.1.mlp.gate"], 1, 1),
        ([f"model.layers.{n}.linear_attn.conv1d" for n in range(48)], 1, 1),
        (["re:.*linear_attn.*", "re:.*shared_expert.*"], 2, 2),
        (["mlp.shared_expert_gate", "mlp.gate"], 1, 1),
        (["re:.*shared_experts.*", "re:.*mlp\\.(gate|up|gate_up|down)_proj.*"], 1, 2),
    ],
)
def test_parts_that_a_checkpoint_leaves_alone(kept, attention, dense):
    told = {"quant_method": "fp8", "modules_to_not_convert": kept}
    own = from_config({**DENSE, "quantization_config": told})
    assert (own.attention_bytes, own.dense_bytes) == (attention, dense)


def test_a_name_that_several_models_have_is_refused(monkeypatch):
    two = {"twin": frozenset({"llama-3.1-8b", "qwen3-8b"})}
    monkeypatch.setattr("analyzer.bounds.models._index", lambda: two)
    with pytest.raises(AnalyzerError, match="several models"):
        model("somebody/Twin-FP8")


@pytest.mark.parametrize("name", ["int3", "0bpw", "99bpw", "", "bf61"])
def test_formats_that_are_none(name):
    with pytest.raises(AnalyzerError):
        uniform(name)


# --- below a bound -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"tpot_ns": 12.0}, WITHIN),
        ({"tpot_ns": 3.0}, UNEXPLAINED),
        ({"expected_ns": None}, WITHIN),
        ({}, UNEXPLAINED),
        ({"complete": False}, METADATA),
        ({"copies": 16}, METADATA),
        ({"batch": 128, "fits": 75}, KV_CAPACITY),
        ({"batch": 64, "fits": 75, "ttft_ns": 900.0, "prefill_ns": 10.0}, QUEUE_LIMITED),
        ({"batch": 64, "fits": 75, "ttft_ns": 90.0, "prefill_ns": 10.0}, UNEXPLAINED),
        ({"batch": 448, "engine_batch": 14, "complete": False}, REPLICAS),
    ],
)
def test_a_measurement_below_a_bound_is_named_not_clipped(change, word):
    row = {"tpot_ns": 8.0, "strict_ns": 5.0, "expected_ns": 10.0}
    assert classify(Measured(**{**row, **change})) == word

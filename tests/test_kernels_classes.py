"""The class of a kernel by its name, over engines, libraries and vendors; time by class."""

from __future__ import annotations

from dataclasses import replace

import duckdb
import pytest
from helpers import engine_of

from analyzer import api
from analyzer.catalogs.kernel_classes import class_of, classes, rules
from analyzer.engines.analysis import all_analyses
from analyzer.store.case import open_case

EXAMPLES = [(number, one) for number, rule in enumerate(rules(), 1) for one in rule.examples]

# Names that no rule has as its example: written as profilers print them.
NAMES = {
    # vLLM
    "void vllm::reshape_and_cache_kernel<unsigned short, unsigned char>": "kv_write",
    "_ZN4vllm31reshape_and_cache_flash_kernelI13__nv_bfloat16hLNS_18Fp8E1EEEv": "kv_write",
    "void vllm::rms_norm_kernel<c10::BFloat16, 8, 2>(c10::BFloat16*)": "norm",
    "void vllm::cross_device_reduce_2stage<__nv_bfloat16, 8>": "communication",
    "void vllm::moe::moe_sum_kernel<float, 8>": "moe_routing",
    "void vllm::act_and_mul_kernel<c10::BFloat16, &vllm::silu_kernel>": "activation",
    "void gptq_marlin::Marlin<__half, 4>": "gemm_quantized",
    # SGLang
    "_fwd_kernel_stage2": "attention_decode",
    "void moe_fused_gate_kernel<float, 8>": "moe_routing",
    "_per_token_group_quant_8bit_colmajor": "quantize",
    "write_req_to_token_pool_triton": "elementwise",
    # TensorRT-LLM
    "void tensorrt_llm::kernels::finalizeMoeRoutingKernel<__nv_bfloat16>": "moe_routing",
    "void tensorrt_llm::kernels::rmsnorm::generalRmsNorm<__half>": "norm",
    "void tensorrt_llm::kernels::moe::customMoeRoutingKernel<float>": "moe_routing",
    "fmhaSm100fKernel_QkvE4m3OBfloat16HQk576HV512StaticContext": "attention_prefill",
    # cuBLAS and CUTLASS
    "nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_TNT": "gemm_dense",
    "ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x4_tn": "gemm_dense",
    "sm89_xmma_gemm_e4m3bf16_e4m3f32_f32_tn_n_tilesize64x64x64_stage4": "gemm_quantized",
    "void cutlass::device_kernel<GemmUniversal<cutlass::layout::NoPermute>>": "gemm_dense",
    "void cublasLt::splitKreduce_kernel<32, 16, int, float>": "gemm_dense",
    # FlashAttention
    "_ZN7cutlass13device_kernelIN5flash11enable_sm90INS1_16FlashAttnFwdSm90I": "attention",
    "void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4, false>>": "attention",
    # FlashInfer
    "void flashinfer::BatchDecodeWithPagedKVCacheKernel<2, 128>": "attention_decode",
    "void flashinfer::PersistentVariableLengthMergeStatesKernel<8>": "attention",
    "void flashinfer::norm::RMSNormKernel<8, __half>": "norm",
    "void flashinfer::activation::act_and_mul_kernel<__half, &silu>": "activation",
    "void flashinfer::sampling::TopKMaskLogitsKernel<1024>": "sampling",
    # NCCL and RCCL
    "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevKernelArgs)": "communication",
    "ncclDevKernel_Generic_1(ncclDevKernelArgsStorage<4096ul>)": "communication",
    "ncclSymkDevKernel_AllGather_LLMC": "communication",
    # Triton
    "kernel_unified_attention_2d": "attention",
    "triton_red_fused_add_mean_mul_pow_rsqrt_5": "norm",
    "triton_poi_fused_all_reduce_add_2": "elementwise",
    "_attn_fwd": "attention",
    # ROCm
    "Cijk_Alik_Bljk_HHS_BH_Bias_HA_S_SAV_UserArgs_MT256x256x64": "gemm_dense",
    "Cijk_Alik_Bljk_F8F8S_BH_Bias_MT128x128x128": "gemm_quantized",
    "void ck::kernel_gemm_xdl_cshuffle_v3_multi_d<ck::GridwiseGemmMultiD>": "gemm_dense",
    "void ck::kernel_moe_gemm_2lds<ck::GridwiseMoeGemm>": "gemm_moe",
    "_ZN5aiter42fmoe_bf16_pertokenFp8_g1u1_vs_silu_1tg_32x512E": "gemm_moe",
    "_ZN5aiter34pa_bf16_noquant_gqa8_1tg_4w_qlen1E": "attention_decode",
    "void aiter::allgather_lastdim<__hip_bfloat16>": "communication",
    "void at::native::reduce_kernel<512, 1, at::native::MaxOps<float>>": "elementwise",
    "something_nobody_knows": "other",
}  # fmt: skip


@pytest.mark.parametrize(("number", "name"), EXAMPLES, ids=[name[:60] for _, name in EXAMPLES])
def test_an_example_is_found_by_its_own_rule(number, name):
    found = class_of("kernel", name)
    assert (found.rule, found.name) == (number, rules()[number - 1].name)


@pytest.mark.parametrize(("name", "expected"), NAMES.items(), ids=[name[:60] for name in NAMES])
def test_a_name_of_the_field(name, expected):
    assert class_of("kernel", name).name == expected


@pytest.mark.parametrize(
    ("kind", "name", "expected"),
    [
        ("memcpy", "Memcpy HtoD (Pinned -> Device)", "memcpy_h2d"),
        ("memcpy", "Memcpy DtoH (Device -> Pageable)", "memcpy_d2h"),
        ("memcpy", "MEMORY_COPY_DEVICE_TO_HOST", "memcpy_d2h"),
        ("memcpy", "[CUDA memcpy Peer-to-Peer]", "memcpy_p2p"),
        ("memcpy", "nvjet_tst_128x64", "memcpy"),
        ("memcpy", None, "memcpy"),
        ("memset", "Memset (Device)", "memset"),
        ("memset", "Memcpy HtoD (Pinned -> Device)", "memset"),
        ("graph", "nvjet_tst_128x64", "graph"),
        ("kernel", "", "other"),
        ("kernel", None, "other"),
    ],
)
def test_copies_fills_and_replays_go_by_their_kind(kind, name, expected):
    assert class_of(kind, name).name == expected


def test_a_class_has_one_group_and_a_rule_a_source():
    groups = {}
    for rule in rules():
        assert rule.source
        assert rule.examples
        assert groups.setdefault(rule.name, rule.group) == rule.group
    assert groups.items() <= classes().items()


def test_a_name_of_many_kilobytes_takes_no_time():
    assert class_of("kernel", "void f<" + "x_" * 500_000 + ">").name == "other"
    assert class_of("kernel", "nvjet_tst_" + "a" * 1_000_000).name == "gemm_dense"


# -- time by class --------------------------------------------------------------------------------


@pytest.fixture
def case(tmp_path):
    """A device with a GEMM of 100, an all-reduce over its second half and 20 beyond, a gap of 30,
    a kernel of 40 nobody knows, another stream's GEMM inside it of 10; and a replay on device 1.
    """
    path = tmp_path / "case.duckdb"
    open_case(path, write=True).close()
    events = [
        (1, 1, 0, 0, "kernel", "nvjet_tst_1", 0, 100),
        (1, 2, 0, 0, "kernel", "ncclDevKernel_AllReduce_Sum", 50, 70),
        (1, 3, 0, 0, "kernel", "nobody_knows", 150, 40),
        (1, 4, 0, 0, "kernel", "nvjet_tst_1", 160, 10),
        (1, 5, 0, 1, "graph", None, 0, 500),
        (1, 6, 0, 0, "annotation", "step", 0, 10_000),
        (1, 7, 0, 0, "kernel", "no duration", 150, None),
    ]
    with duckdb.connect(str(path)) as database:
        database.execute("INSERT INTO source (source_id, path, sha256) VALUES (1, 'r.json', '')")
        database.execute("INSERT INTO gpu_trace (source_id, record, rank) VALUES (1, 0, 0)")
        database.executemany(
            "INSERT INTO gpu_event (source_id, record, rank, device, kind, name, start_ns, dur_ns) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            events,
        )
    return str(path)


def test_busy_time_is_counted_once(case):
    with engine_of(case) as engine:
        rows = engine.rows("SELECT * FROM gpu_class ORDER BY device, class")
    told = {
        (row["device"], row["class"], row["name"]): (
            row["events"],
            row["sum_ns"],
            row["busy_ns"],
            row["longest_ns"],
        )
        for row in rows
    }
    assert told == {
        (0, "communication", "ncclDevKernel_AllReduce_Sum"): (1, 70, 20, 70),
        (0, "gemm_dense", "nvjet_tst_1"): (2, 110, 100, 100),
        (0, "other", "nobody_knows"): (1, 40, 40, 40),
        (1, "graph", ""): (1, 500, 500, 500),
    }


def test_the_command_tells_the_same_classes(case):
    told = api.gpu(case)
    assert {row["class"]: (row["busy_ns"], row["kernel"]) for row in told.classes.rows} == {
        "communication": (20, "ncclDevKernel_AllReduce_Sum"), "gemm_dense": (100, "nvjet_tst_1"),
        "other": (40, "nobody_knows"), "graph": (500, ""),
    }  # fmt: skip
    assert sum(row["share_ratio"] for row in told.classes.rows) == pytest.approx(1)


def test_what_no_rule_finds_is_named_with_its_share(case):
    told = api.gpu(case)
    (row,) = told.unclassified
    assert (row["name"], row["busy_ns"]) == ("nobody_knows", 40)
    assert row["share_ratio"] == row["all_ratio"] == pytest.approx(40 / 660)
    assert told.trust.rows[0]["unclassified_ratio"] == pytest.approx(40 / 660)
    assert any("nobody_knows" in note for note in told.trust.notes)


def test_no_kernel_is_lost_where_names_are_more_than_are_looked_up(case, monkeypatch):
    """The most frequent name is looked up; all others count as unclassified."""
    everything = all_analyses()
    kernel = everything["gpu_kernel"]
    few = replace(kernel, params=(replace(kernel.params[0], value="1"),))
    monkeypatch.setitem(everything, "gpu_kernel", few)
    assert {row["class"]: row["events"] for row in api.gpu(case).classes.rows} == {
        "gemm_dense": 2, "other": 3,
    }  # fmt: skip

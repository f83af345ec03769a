"""Kernel by kernel: what the simulator adds up for a step, against hand computed figures."""

import pytest

from analyzer.bounds.kernels import Kernels, Link, captured
from analyzer.errors import AnalyzerError
from analyzer.simulate.steps import cost_of, setting_of
from analyzer.simulate.world import EngineSetup, from_dict

MS = 1e6
US = 1e3
RANKS = {"model": "qwen3-30b-a3b", "gpu": "rtx-pro-6000-bw", "count": 2, "tp": 1, "dp": 2}


def kernels(**told):
    one = setting_of(EngineSetup(**told))
    return Kernels(one.shape, one.precision, one.part, one.layout)


def cost(**told):
    return cost_of(EngineSetup(**{"efficiency": 1.0, "eager_ms": 0.0, **told}))


@pytest.mark.parametrize(
    ("tokens", "graph"), [(1, 1), (3, 4), (5, 8), (129, 136), (256, 256), (257, 272)]
)
def test_a_step_replays_the_smallest_graph_that_holds_it(tokens, graph):
    assert captured(tokens) == graph


def test_ranks_with_shared_experts_exchange_their_tokens_twice_a_layer():
    """48 layers x 2 x (20 us + 100 tokens x 2,048 x 2 bytes over 16 GB/s = 25.6 us)."""
    spent = kernels(**RANKS).exchange_ns(100, Link(20 * US, 16e9))
    assert spent == pytest.approx(48 * 2 * 45.6 * US)


def test_devices_that_share_a_layer_reduce_twice_in_it():
    """Llama 8B, tp 2: 32 layers x 2 x (8 us + 2 x 1/2 x 64 tokens x 8,192 bytes over 450 GB/s)."""
    spent = kernels(model="llama-3.1-8b", tp=2).exchange_ns(64, Link(8 * US, 450e9))
    assert spent == pytest.approx(64 * (8 * US + 64 * 8192 / 450))


def test_one_device_exchanges_nothing():
    assert kernels(model="qwen3-30b-a3b").exchange_ns(2048, Link(20 * US, 16e9)) == 0


def test_reads_and_products_hide_each_other_only_far_from_the_ridge():
    """Llama 8B on an H100: 15.01 GB of weights read in 4.481 ms, or 989 TFLOP/s of products."""
    one = kernels(model="llama-3.1-8b")
    assert one.linear_ns(1, 1, 1, 1) / MS == pytest.approx(4.48, rel=0.001)
    products = one.token_ns * 8192
    assert one.linear_ns(8192, 0, 0, 8192) == pytest.approx(products, rel=0.01)
    even = one.fixed_ns / one.token_ns
    assert one.linear_ns(even, 0, 0, even) == pytest.approx(2**0.5 * one.fixed_ns)


def test_experts_are_read_as_far_as_the_tokens_of_all_ranks_reach_them():
    """64 of 128 experts a device, 9.437 MB each: 48 x 604 MB over 1.792 TB/s = 16.18 ms."""
    one = kernels(**RANKS)
    many = one.linear_ns(0, 0, 0, 2000) - one.fixed_ns
    few = one.linear_ns(0, 0, 0, 2) - one.fixed_ns
    assert many / MS == pytest.approx(
        (16.18**2 + (one.routed_ns * 2000 / MS) ** 2) ** 0.5, rel=0.01
    )
    # Two tokens choose 8 of 128 each: 128 (1 - (15/16)^2) = 15.5 experts.
    assert few / MS == pytest.approx(16.18 * 15.5 / 128, rel=0.01)


def test_a_prompt_on_one_rank_delays_the_other():
    """The step of both is that of the slower, and no less than the prompt's own."""
    one = cost(**RANKS, link_gb_s=16, link_us=20)
    quiet = one.together_ns([(20, 20_000, ()), (20, 20_000, ())])
    both = one.together_ns([(20, 20_000, ((900, 0),)), (20, 20_000, ())])
    alone = one.together_ns([(0, 0, ((900, 0),))])
    assert both > alone > quiet


def test_a_small_step_is_padded_to_the_graph_of_the_other_rank():
    """Both replay the graph of 64, so who of them has fewer does not matter; eager does."""
    graphs = cost(**RANKS, graph_tokens=256)
    assert graphs.together_ns([(64, 0, ()), (2, 0, ())]) == pytest.approx(
        graphs.together_ns([(64, 0, ()), (60, 0, ())]), rel=0.01
    )
    eager = cost(**RANKS, graph_tokens=0)
    few, many = (
        eager.together_ns([(9, 0, ()), (2, 0, ())]),
        eager.together_ns([(9, 0, ()), (9, 0, ())]),
    )
    assert few < 0.9 * many


def test_attention_beside_a_prompt_fills_a_tile_for_each_token():
    """Grouped heads: 64 rows for one. A latent's kernels take decodes apart."""
    one = kernels(model="llama-3.1-8b")
    assert one.attention_ns(3.0, 0.0625, 64) == pytest.approx(5.0)
    assert one.attention_ns(3.0, 0.0625, 1) == pytest.approx(3.0, rel=0.001)
    latent = kernels(model="deepseek-v3", gpu="h200-sxm-141gb", count=8, tp=8)
    assert latent.attention_ns(3.0, 0.0625, 64) == pytest.approx(3.0, rel=0.001)


def test_a_link_of_no_speed_is_refused():
    with pytest.raises(AnalyzerError, match="link_gb_s is 0"):
        from_dict({"engine": {**RANKS, "link_gb_s": 0}})

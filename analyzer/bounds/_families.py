"""What a layer of each model family holds. Counts are checked against published totals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from analyzer.bounds._fields import Fields
from analyzer.bounds.shape import Attention, FeedForward, Layer, Recurrent


def _attention(
    f: Fields,
    *,
    window: int | None = None,
    qkv_bias: bool = False,
    o_bias: bool = False,
    norms: int = 0,
    gate: bool = False,
    kv_heads: int | None = None,
) -> Attention:
    """Grouped-query attention; ``norms``: parameters of norms on queries and keys."""
    heads, kv, dim = f.heads, kv_heads or f.kv_heads, f.head_dim
    query, cached = heads * dim, 2 * kv * dim
    params = f.hidden * (query * (2 if gate else 1) + cached) + query * f.hidden + norms
    params += (query + cached) if qkv_bias else 0
    params += f.hidden if o_bias else 0
    return Attention(params, cached, heads, dim, dim, shards=kv, window=window)


def _latent(f: Fields) -> Attention:
    """Multi-head latent attention (DeepSeek): one latent and one rotary key a token are cached."""
    heads, latent, rope = f.heads, f.need("kv_lora_rank"), f.need("qk_rope_head_dim")
    nope, value = f.need("qk_nope_head_dim"), f.need("v_head_dim")
    q_rank = f.whole("q_lora_rank")
    query = heads * (nope + rope)
    params = f.hidden * q_rank + q_rank + q_rank * query if q_rank else f.hidden * query
    params += f.hidden * (latent + rope) + latent
    params += latent * heads * (nope + value) + heads * value * f.hidden
    index_dim, topk = f.whole("index_head_dim"), f.whole("index_topk")
    if index_dim and topk:
        index_heads = f.need("index_n_heads")
        params += (q_rank or f.hidden) * index_heads * index_dim
        params += f.hidden * (index_dim + index_heads) + 2 * index_dim
    # Kernels that absorb the up-projection compute more than this; a bound takes the less.
    return Attention(
        params, latent + rope, heads, nope + rope, value,
        index_elements=index_dim or 0, index_topk=topk,
    )  # fmt: skip


def _mlp(hidden: int, inner: int, matrices: int = 3) -> int:
    return matrices * hidden * inner


def _experts(f: Fields, *, shared: int = 0, bias: bool = False, matrices: int = 3) -> FeedForward:
    """Routed experts with their router; ``bias``: a correction bias an expert."""
    count = f.need("n_routed_experts", "num_local_experts", "num_experts")
    inner = f.need("moe_intermediate_size", "intermediate_size")
    return FeedForward(
        params=f.hidden * count + (count if bias else 0) + shared,
        experts=count,
        topk=f.need("num_experts_per_tok", "experts_per_token"),
        expert_params=_mlp(f.hidden, inner, matrices),
    )


def _dense(f: Fields, inner: int | None = None) -> FeedForward:
    return FeedForward(_mlp(f.hidden, inner or f.need("intermediate_size")))


# --- families ------------------------------------------------------------------------------------


def _llama(f: Fields, index: int) -> Layer:
    del index
    bias = f.flag("attention_bias")
    mixer = _attention(f, window=f.whole("sliding_window"), qkv_bias=bias, o_bias=bias)
    return Layer(mixer, _dense(f), 2 * f.hidden)


def _mixtral(f: Fields, index: int) -> Layer:
    del index
    return Layer(_attention(f, window=f.whole("sliding_window")), _experts(f), 2 * f.hidden)


def _qwen2(f: Fields, index: int) -> Layer:
    del index
    window = f.whole("sliding_window") if f.flag("use_sliding_window") else None
    return Layer(_attention(f, window=window, qkv_bias=True), _dense(f), 2 * f.hidden)


def _qwen3(f: Fields, index: int) -> Layer:
    del index
    mixer = _attention(f, qkv_bias=f.flag("attention_bias"), norms=2 * f.head_dim)
    return Layer(mixer, _dense(f), 2 * f.hidden)


def _qwen3_moe(f: Fields, index: int) -> Layer:
    mixer = _attention(f, qkv_bias=f.flag("attention_bias"), norms=2 * f.head_dim)
    sparse = index not in f.listed("mlp_only_layers")
    sparse &= (index + 1) % (f.whole("decoder_sparse_step") or 1) == 0
    return Layer(mixer, _experts(f) if sparse else _dense(f), 2 * f.hidden)


def _qwen3_next(f: Fields, index: int) -> Layer:
    """Gated attention every few layers, gated DeltaNet between them (Qwen3-Next, Qwen3.5)."""
    kinds = f.listed("layer_types")
    every = f.whole("full_attention_interval") or 4
    full = kinds[index] == "full_attention" if kinds else (index + 1) % every == 0
    mixer: Attention | Recurrent
    if full:
        mixer = _attention(f, norms=2 * f.head_dim, gate=f.flag("attn_output_gate", default=True))
    else:
        mixer = _delta_net(f)
    if not f.whole("num_experts"):
        return Layer(mixer, _dense(f), 2 * f.hidden)
    shared = f.whole("shared_expert_intermediate_size") or 0
    # The shared expert has a gate of its own, one number a token.
    always = _mlp(f.hidden, shared) + f.hidden if shared else 0
    return Layer(mixer, _experts(f, shared=always), 2 * f.hidden)


def _delta_net(f: Fields) -> Recurrent:
    key_heads, value_heads = f.need("linear_num_key_heads"), f.need("linear_num_value_heads")
    key_dim, value_dim = f.need("linear_key_head_dim"), f.need("linear_value_head_dim")
    keys, values = key_heads * key_dim, value_heads * value_dim
    kernel, mixed = f.need("linear_conv_kernel_dim"), 2 * keys + values
    params = f.hidden * (mixed + values + 2 * value_heads) + mixed * kernel
    params += 2 * value_heads + value_dim + values * f.hidden
    return Recurrent(params, value_heads * key_dim * value_dim, mixed * (kernel - 1))


def _gemma2(f: Fields, index: int) -> Layer:
    window = f.whole("sliding_window") if index % 2 == 0 else None
    return Layer(_attention(f, window=window), _dense(f), 4 * f.hidden)


def _gemma3(f: Fields, index: int) -> Layer:
    kinds = f.listed("layer_types")
    every = f.whole("sliding_window_pattern") or 6
    local = kinds[index] == "sliding_attention" if kinds else (index + 1) % every != 0
    # Sparse configs leave these to the class.
    defaults = {"head_dim": 256, "num_attention_heads": 8, "num_key_value_heads": 4}
    f = f.filled(defaults)
    window = f.whole("sliding_window") or 4096
    mixer = _attention(f, window=window if local else None, norms=2 * f.head_dim)
    return Layer(mixer, _dense(f), 4 * f.hidden)


def _gemma4(f: Fields, index: int) -> Layer:
    """Wide global heads whose values are their keys, and a dense part beside the experts."""
    kinds = f.listed("layer_types")
    local = kinds[index] == "sliding_attention" if kinds else (index + 1) % 6 != 0
    if local:
        mixer = _attention(f, window=f.whole("sliding_window"), norms=2 * f.head_dim)
    else:
        dim = f.whole("global_head_dim") or f.head_dim
        kv = f.whole("num_global_key_value_heads") or f.kv_heads
        # Keys and values share a matrix, but each is cached: only the keys are rotated.
        projections = 1 if f.flag("attention_k_eq_v") else 2
        params = f.hidden * dim * (2 * f.heads + projections * kv) + 2 * dim
        mixer = Attention(params, 2 * kv * dim, f.heads, dim, dim, shards=kv)
    ffn = _dense(f)
    if f.whole("num_experts"):
        topk = f.need("top_k_experts", "num_experts_per_tok")
        inner, count = f.need("moe_intermediate_size"), f.need("num_experts")
        always = ffn.params + f.hidden * count
        ffn = FeedForward(always, count, topk, _mlp(f.hidden, inner))
    return Layer(mixer, ffn, 4 * f.hidden)


def _gpt_oss(f: Fields, index: int) -> Layer:
    kinds = f.listed("layer_types")
    local = kinds[index] == "sliding_attention" if kinds else index % 2 == 0
    window = f.whole("sliding_window") if local else None
    # One attention sink a head; every matrix has a bias.
    mixer = _attention(f, window=window, qkv_bias=True, o_bias=True, norms=f.heads)
    count, inner = f.need("num_local_experts"), f.need("intermediate_size")
    expert = _mlp(f.hidden, inner) + 2 * inner + f.hidden
    topk = f.need("num_experts_per_tok", "experts_per_token")
    return Layer(mixer, FeedForward(f.hidden * count + count, count, topk, expert), 2 * f.hidden)


def _deepseek(f: Fields, index: int) -> Layer:
    """Latent attention; the first layers are dense, the others have shared and routed experts."""
    return Layer(_latent(f), _shared_experts(f, index), 2 * f.hidden)


def _shared_experts(f: Fields, index: int) -> FeedForward:
    if index < (f.whole("first_k_dense_replace") or 0) or not f.whole("n_routed_experts"):
        return _dense(f)
    shared = (f.whole("n_shared_experts") or 0) * _mlp(f.hidden, f.need("moe_intermediate_size"))
    bias = f.text("topk_method") == "noaux_tc" or f.text("model_type") in {"glm4_moe"}
    return _experts(f, shared=shared, bias=bias)


def _glm4_moe(f: Fields, index: int) -> Layer:
    norms = 2 * f.head_dim if f.flag("use_qk_norm") else 0
    mixer = _attention(f, qkv_bias=f.flag("attention_bias"), norms=norms)
    return Layer(mixer, _shared_experts(f, index), 2 * f.hidden)


def _llama4(f: Fields, index: int) -> Layer:
    """Three of four layers look at their own chunk only; experts every few layers."""
    chunked = (index + 1) % 4 != 0
    mixer = _attention(f, window=f.whole("attention_chunk_size") if chunked else None)
    step = f.whole("interleave_moe_layer_step") or 1
    if (index + 1) % step:
        return Layer(mixer, _dense(f, f.need("intermediate_size_mlp")), 2 * f.hidden)
    shared = _mlp(f.hidden, f.need("intermediate_size"))
    return Layer(mixer, _experts(f, shared=shared), 2 * f.hidden)


def _minimax_m2(f: Fields, index: int) -> Layer:
    del index
    norms = (f.heads + f.kv_heads) * f.head_dim if f.flag("use_qk_norm") else 0
    return Layer(_attention(f, norms=norms), _experts(f, bias=True), 2 * f.hidden)


def _phimoe(f: Fields, index: int) -> Layer:
    del index
    mixer = _attention(f, window=f.whole("sliding_window"), qkv_bias=True, o_bias=True)
    return Layer(mixer, _experts(f), 4 * f.hidden)


def _nemotron_h(f: Fields, index: int) -> Layer:
    """One mixer or one feed-forward part a layer: M Mamba-2, * attention, - dense, E experts."""
    kind = f.pattern[index]
    if kind == "M":
        return Layer(_mamba2(f), None, f.hidden)
    if kind == "*":
        return Layer(_attention(f), None, f.hidden)
    if kind == "-":
        inner = f.need("intermediate_size")
        return Layer(None, FeedForward(_mlp(f.hidden, inner, matrices=2)), f.hidden)
    return Layer(None, _latent_experts(f), f.hidden)


def _latent_experts(f: Fields) -> FeedForward:
    """Experts of two matrices, which may work in a narrower latent between two projections."""
    count = f.need("n_routed_experts")
    latent = f.whole("moe_latent_size")
    width = latent or f.hidden
    shared = (f.whole("n_shared_experts") or 0) * f.need("moe_shared_expert_intermediate_size")
    params = f.hidden * count + count + _mlp(f.hidden, shared, matrices=2)
    params += 2 * f.hidden * latent if latent else 0
    inner = f.need("moe_intermediate_size")
    topk = f.need("num_experts_per_tok")
    return FeedForward(params, count, topk, _mlp(width, inner, matrices=2))


def _mamba2(f: Fields) -> Recurrent:
    heads, dim = f.need("mamba_num_heads"), f.need("mamba_head_dim")
    state = f.need("ssm_state_size")
    groups, kernel = f.need("n_groups"), f.need("conv_kernel")
    inner = heads * dim
    mixed = inner + 2 * groups * state
    params = f.hidden * (inner + mixed + heads) + inner * f.hidden
    params += mixed * (kernel + (1 if f.flag("use_conv_bias", default=True) else 0))
    params += 3 * heads + inner
    return Recurrent(params, heads * dim * state, mixed * (kernel - 1))


def _nemotron_nas(f: Fields, index: int) -> Layer:
    """Each block has its own number of key heads and its own width, or none at all."""
    block: dict[str, Any] = f.listed("block_configs")[index]
    told, ffn = block.get("attention") or {}, block.get("ffn") or {}
    mixer: Attention | None = None
    norms = 0
    if told.get("n_heads_in_group"):
        mixer = _attention(f, kv_heads=f.heads // int(told["n_heads_in_group"]))
        norms += f.hidden
    wide: FeedForward | None = None
    if ffn.get("ffn_mult"):
        inner = int(2 * float(ffn["ffn_mult"]) * f.hidden / 3)
        wide = _dense(f, -(-inner // 256) * 256)
        norms += f.hidden
    return Layer(mixer, wide, norms)


FAMILIES: dict[str, Callable[[Fields, int], Layer]] = {
    "llama": _llama, "mistral": _llama, "yi": _llama, "phi3": _llama,
    "mixtral": _mixtral,
    "qwen2": _qwen2, "qwen2_5": _qwen2, "qwen2_vl": _qwen2, "qwen2_5_vl": _qwen2,
    "qwen3": _qwen3, "qwen3_moe": _qwen3_moe,
    "qwen3_next": _qwen3_next, "qwen3_5": _qwen3_next, "qwen3_5_text": _qwen3_next,
    "qwen3_5_moe": _qwen3_next, "qwen3_5_moe_text": _qwen3_next,
    "gemma2": _gemma2, "gemma3": _gemma3, "gemma3_text": _gemma3,
    "gemma4": _gemma4, "gemma4_text": _gemma4,
    "gpt_oss": _gpt_oss,
    "deepseek_v2": _deepseek, "deepseek_v3": _deepseek, "deepseek_v32": _deepseek,
    "kimi_k2": _deepseek, "glm_moe_dsa": _deepseek,
    "glm4_moe": _glm4_moe,
    "llama4": _llama4, "llama4_text": _llama4,
    "minimax_m2": _minimax_m2,
    "phimoe": _phimoe,
    "nemotron_h": _nemotron_h, "nemotron-nas": _nemotron_nas,
}  # fmt: skip
"""model_type -> what its layer of an index holds. A new family is one function and one line."""

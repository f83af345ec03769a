"""The textbook of LLM latency: pure functions, times in ns unless a name says otherwise.

The linear law ``latency = b + k n``: ``b`` is the time to first token (queue, prefill, network),
``k`` the time per output token, ``n`` the number of output tokens. It teaches and predicts; what
was observed is measured elsewhere, with its own exact sums.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def ttft_ns(queue_ns: float, prefill_ns: float, network_ns: float = 0) -> float:
    """Time to first token: queue + prefill + network."""
    return queue_ns + prefill_ns + network_ns


def total_ns(ttft: float, tpot: float, output_tokens: int) -> float:
    """End to end: TTFT + (n - 1) x time per output token. One token takes just the TTFT.

    Raises ``ValueError`` for less than one token.
    """
    if output_tokens < 1:
        msg = f"an answer has at least one token, not {output_tokens}"
        raise ValueError(msg)
    return ttft + (output_tokens - 1) * tpot


def linear_ns(base: float, step: float, output_tokens: int) -> float:
    """Simple form b + k n, which counts the first token's step into k n."""
    return base + step * output_tokens


def longer_ns(step: float, before_tokens: int, after_tokens: int) -> float:
    """What more output costs, reasoning or visible: k x the tokens on top, whatever b is."""
    return step * (after_tokens - before_tokens)


def tpot_ns(e2e: float, ttft: float, output_tokens: int, first_tokens: int = 1) -> float | None:
    """Time per output token: (e2e - TTFT) / (output tokens - tokens of the first chunk).

    None where nothing follows the first chunk: a single token has no time per token.
    """
    rest = output_tokens - first_tokens
    return (e2e - ttft) / rest if rest > 0 else None


def tokens_per_s(output_tokens: int, ttft: float, tpot: float) -> float:
    """Tokens a second of one request as its user feels it: N / (TTFT + TPOT x N)."""
    return output_tokens * 1e9 / (ttft + tpot * output_tokens)


def tokens_per_s_curve(
    ttft: float, tpot: float, counts: Sequence[int]
) -> tuple[tuple[int, float], ...]:
    """N / (b + k N) for each N: what short answers lose to their first token."""
    return tuple((count, tokens_per_s(count, ttft, tpot)) for count in counts)


# --- hardware ------------------------------------------------------------------------------------
# Textbook forms: no attention term, no embedding, no head. What a model really reads is counted in
# `bounds/`; these agree with a pocket calculator to the digit.


def weight_bytes(params: float, bytes_per_param: float) -> float:
    """Bytes of the weights that a decode step reads: parameters x bytes each."""
    return params * bytes_per_param


def kv_bytes_per_token(
    layers: int, kv_heads: int, head_dim: int, bytes_per_value: float = 2
) -> float:
    """Bytes that one token adds to the KV cache: keys and values of every layer."""
    return 2 * layers * kv_heads * head_dim * bytes_per_value


def read_ns(size_bytes: float, bandwidth_bytes_s: float) -> float:
    """Time to read so much from memory; a decode step cannot be faster."""
    return size_bytes / bandwidth_bytes_s * 1e9


def effective_flops_s(peak_flops_s: float, utilisation: float = 0.6) -> float:
    """Rate that a prefill reaches: a share of the peak."""
    return peak_flops_s * utilisation


def forward_flops(batch: int, tokens: int, params: float) -> float:
    """FLOPs to process so many tokens, or to generate them: 2 x batch x tokens x parameters."""
    return 2 * batch * tokens * params


def compute_ns(flops: float, flops_s: float) -> float:
    """Time of so many FLOPs at that rate."""
    return flops / flops_s * 1e9


def prefill_left(prompt_tokens: int, cached_tokens: int) -> float:
    """Share of the linear prefill work that a prefix hit leaves; attention saves less."""
    return (prompt_tokens - cached_tokens) / prompt_tokens

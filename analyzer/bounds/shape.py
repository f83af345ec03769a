"""What a model is made of, layer by layer: parameters, cached elements, states.

Everything that a bound needs is counted here once. Counts are parameters and elements, not bytes;
what an element takes is the precision's to say.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Attention:
    """Softmax attention of one layer.

    ``kv_elements``: elements cached a token, keys and values together (MLA: the latent, once).
    ``shards``: into how many parts the cache can be split over devices (MLA: one).
    ``window``: tokens it looks back at most. ``index_elements``, ``index_topk``: a sparse layer
    reads that many elements of every token, and the cache of the best tokens only.
    """

    params: int
    kv_elements: int
    heads: int
    qk_dim: int
    v_dim: int
    shards: int = 1
    window: int | None = None
    index_elements: int = 0
    index_topk: int | None = None

    def tokens_read(self, context: int) -> int:
        """Cached tokens whose keys and values a step reads."""
        if self.window is not None:
            context = min(context, self.window)
        return context if self.index_topk is None else min(context, self.index_topk)

    def elements_read(self, context: int) -> int:
        """Cached elements a step reads of one sequence."""
        return self.kv_elements * self.tokens_read(context) + self.index_elements * context

    def elements_held(self, context: int) -> int:
        """Cached elements one sequence occupies: a window drops what it has passed."""
        held = context if self.window is None else min(context, self.window)
        return self.kv_elements * held + self.index_elements * context

    @property
    def flops_per_pair(self) -> int:
        """FLOPs of one query against one key, over all heads: a score and a sum."""
        return 2 * self.heads * (self.qk_dim + self.v_dim)


@dataclass(frozen=True)
class Recurrent:
    """Linear attention or state space: a state of fixed size, read and written every step."""

    params: int
    state_elements: int
    conv_elements: int


@dataclass(frozen=True)
class FeedForward:
    """Dense, or a mixture of experts beside what is always read (``params``: shared, router)."""

    params: int
    experts: int = 0
    topk: int = 0
    expert_params: int = 0


@dataclass(frozen=True)
class Layer:
    """One block: a mixer, a feed-forward part, or both, and its norms."""

    mixer: Attention | Recurrent | None
    ffn: FeedForward | None
    norms: int


@dataclass(frozen=True)
class Shape:
    """A decoder. The input embedding is a row lookup, so a step does not read it; the head is read.

    A tied embedding is one matrix, counted once and read as the head. Encoders of images and
    layers that predict several tokens are not part of it.
    """

    name: str
    hidden: int
    vocab: int
    tied: bool
    layers: tuple[Layer, ...]
    final_norm: int
    head_bias: int = 0
    max_context: int | None = None

    @cached_property
    def attention(self) -> tuple[Attention, ...]:
        """Attention layers."""
        return tuple(one.mixer for one in self.layers if isinstance(one.mixer, Attention))

    @cached_property
    def attention_kinds(self) -> tuple[tuple[Attention, int], ...]:
        """The different attention layers and how many there are of each; few, so loops are."""
        return tuple(Counter(self.attention).items())

    @cached_property
    def recurrent(self) -> tuple[Recurrent, ...]:
        """Layers with a state of fixed size."""
        return tuple(one.mixer for one in self.layers if isinstance(one.mixer, Recurrent))

    @cached_property
    def ffns(self) -> tuple[FeedForward, ...]:
        """Feed-forward parts."""
        return tuple(one.ffn for one in self.layers if one.ffn is not None)

    @cached_property
    def expert_kinds(self) -> tuple[tuple[FeedForward, int], ...]:
        """The different layers with routed experts and how many there are of each."""
        return tuple(Counter(ffn for ffn in self.ffns if ffn.experts).items())

    @property
    def embedding_params(self) -> int:
        """Rows of the vocabulary."""
        return self.vocab * self.hidden

    @property
    def head_params(self) -> int:
        """Output matrix and its bias."""
        return self.embedding_params + self.head_bias

    @cached_property
    def mixer_params(self) -> int:
        """Attention and recurrent layers."""
        return sum(one.mixer.params for one in self.layers if one.mixer is not None)

    @cached_property
    def dense_params(self) -> int:
        """Feed-forward parts that every step reads: dense ones, shared experts, routers."""
        return sum(ffn.params for ffn in self.ffns)

    @cached_property
    def norm_params(self) -> int:
        """Norms of all layers and the last."""
        return sum(one.norms for one in self.layers) + self.final_norm

    @cached_property
    def expert_params(self) -> int:
        """Routed experts, all of them."""
        return sum(ffn.experts * ffn.expert_params for ffn in self.ffns)

    @property
    def total_params(self) -> int:
        """Parameters of the decoder, as the checkpoint has them."""
        inner = self.mixer_params + self.dense_params + self.expert_params + self.norm_params
        return inner + self.head_params + (0 if self.tied else self.embedding_params)

    @property
    def fixed_params(self) -> int:
        """Parameters that every step reads whatever the batch, the head among them."""
        return self.mixer_params + self.dense_params + self.norm_params + self.head_params

    @property
    def read_params_decode(self) -> int:
        """Parameters one sequence alone reads a step: experts count as often as they are used."""
        return self.fixed_params + self.routed_params

    @cached_property
    def routed_params(self) -> int:
        """Parameters of the routed experts that one token uses."""
        return sum(ffn.topk * ffn.expert_params for ffn in self.ffns)

    def experts_read(self, tokens: float, *, strict: bool) -> float:
        """Parameters of routed experts that a step over ``tokens`` positions reads.

        ``strict``: all tokens may choose the same experts. Else uniform routing,
        E (1 - (1 - k/E)^tokens), which is an expectation and no lower bound.
        """
        total = 0.0
        for ffn, count in self.expert_kinds:
            used = float(ffn.topk)
            if not strict:
                used = ffn.experts * (1 - (1 - ffn.topk / ffn.experts) ** tokens)
            total += count * used * ffn.expert_params
        return total

    def kv_elements(self, context: int) -> int:
        """Cached elements that a step reads of one sequence of ``context`` tokens."""
        return sum(count * one.elements_read(context) for one, count in self.attention_kinds)

    def held_elements(self, context: int) -> int:
        """Cached elements that one sequence of ``context`` tokens occupies."""
        return sum(count * one.elements_held(context) for one, count in self.attention_kinds)

    @cached_property
    def kv_elements_per_token(self) -> int:
        """Elements cached for one token, windows aside."""
        return sum(one.kv_elements + one.index_elements for one in self.attention)

    def state_bytes(self, state_element_bytes: float = 4, conv_element_bytes: float = 2) -> float:
        """Bytes of the fixed states of one sequence."""
        return sum(
            one.state_elements * state_element_bytes + one.conv_elements * conv_element_bytes
            for one in self.recurrent
        )

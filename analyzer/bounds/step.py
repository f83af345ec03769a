"""Bounds of a decode step and of a prefill: bytes over bandwidth, FLOPs over peak.

Three lines, never one. *strict* cannot be beaten: it counts only what model and hardware prove.
*expected* knows the batch and the layout, and the experts that the batch reads; a run may beat it
where its routing is correlated. *attainable* takes the ceilings that were measured.

Sources: DeepMind's scaling book for the step (weights once for the batch, KV per sequence),
inference-sim's roofline for experts read at a batch, PaLM for model FLOPs, ring all-reduce for
communication. Times are in ns, sizes in bytes.

A simulator asks :func:`step_ns`, :func:`prefill_ns` and :func:`mixed_ns`: plain functions of a
shape, a precision, a part, a layout and the contexts in flight.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from analyzer.bounds.hardware import Accelerator
from analyzer.bounds.precision import Precision
from analyzer.bounds.shape import Attention, Shape

ATTAINABLE_BANDWIDTH = 0.92
"""Best share of the bandwidth that measured single-stream decodes reach (RTX 4090, M2, A6000)."""
ATTAINABLE_FLOPS = 0.8
"""Share of the dense peak that large matrix products reach (H100 80 %, A100 87 %, B200 78 %)."""
HOP_NS = 8_000.0
"""Latency of one all-reduce of a small message; two a layer under tensor parallelism."""
_NS = 1e9
_ACTIVATION_BYTES = 2.0
_STATE_LEAST_BYTES = 2.0

Contexts = Sequence[int] | Mapping[int, int]
"""Tokens of context of each sequence, or how many sequences have each context."""


@dataclass(frozen=True)
class Layout:
    """How a model is spread: ``devices`` = ``tensor`` x ``pipeline``, which hold it once.

    ``attention_data``: groups among the ``tensor`` devices of a stage that each attend to sequences
    of their own, with the attention weights replicated. ``tensor`` None = not told: with several
    devices only the strict bound is known then.
    """

    devices: int = 1
    tensor: int | None = None
    pipeline: int = 1
    attention_data: int = 1

    @property
    def known(self) -> bool:
        """Whether the layout was told, or there is nothing to lay out."""
        return self.devices == 1 or self.tensor is not None

    @property
    def split(self) -> int:
        """Devices that share the bytes of one stage."""
        return self.tensor or max(1, self.devices // self.pipeline)

    @property
    def attention_tensor(self) -> int:
        """Devices that share the attention of one sequence."""
        return max(1, self.split // max(1, self.attention_data))


@dataclass(frozen=True)
class Step:
    """Bytes and FLOPs of one step over the whole deployment, and the time they take at least."""

    weight_bytes: float
    kv_bytes: float
    state_bytes: float
    flops: float
    memory_ns: float
    compute_ns: float | None
    communication_ns: float = 0.0

    @property
    def ns(self) -> float:
        """The larger of memory and compute, and what must be waited for besides."""
        return max(self.memory_ns, self.compute_ns or 0.0) + self.communication_ns

    @property
    def bytes_read(self) -> float:
        """Everything a step reads and writes."""
        return self.weight_bytes + self.kv_bytes + self.state_bytes

    @property
    def limited_by(self) -> str:
        """What the time is: memory or compute."""
        return "compute" if (self.compute_ns or 0.0) > self.memory_ns else "memory"


def strict_decode(
    shape: Shape, precision: Precision, part: Accelerator, layout: Layout, context: int
) -> Step:
    """What one sequence's step cannot take less than, whatever the batch and the layout.

    Its own KV only, at one byte an element unless the format is told; the experts of one token;
    bytes spread over every device; no communication.
    """
    least = precision.least()
    weights = least.fixed_bytes(shape) + shape.routed_params * least.expert_bytes
    cached = shape.kv_elements(context) * least.kv_bytes
    state = 2 * shape.state_bytes(_STATE_LEAST_BYTES)
    flops = decode_flops(shape, [context])
    rate = part.fastest(least.least_bits)
    return Step(
        weights, cached, state, flops,
        (weights + cached + state) / (layout.devices * part.bandwidth_bytes_s) * _NS,
        flops / (rate * layout.devices) * _NS if rate else None,
    )  # fmt: skip


def expected_decode(
    shape: Shape, precision: Precision, part: Accelerator, layout: Layout,
    contexts: Contexts, drafts: int = 0,
) -> Step:  # fmt: skip
    """A step that decodes ``contexts``: weights once, the experts this batch reads, all its KV.

    A stage of a pipeline works on its share of the batch, and a token passes all of them.
    ``drafts``: further positions a sequence that the step verifies.
    """
    told = Counter(contexts)
    batch, positions = told.total(), drafts + 1
    split, groups, stages = layout.split, max(1, layout.attention_data), layout.pipeline
    per_stage = max(1.0, batch / stages)
    experts = shape.experts_read(per_stage * positions, strict=False) * precision.expert_bytes
    attention = shape.mixer_params * precision.attention_bytes
    others = precision.fixed_bytes(shape) - attention
    total, held = _kv_bytes(shape, precision, told, layout.attention_tensor)
    state = 2 * batch * shape.state_bytes()
    # A stage holds its share of the batch, a group its share of that; one sequence is not split.
    share = max(1.0, per_stage / groups) / max(1, batch)
    tensor = layout.attention_tensor
    device = attention / tensor + (others + experts) / split + (held + state / tensor) * share
    seconds = _linear_seconds(shape, precision, part, batch * positions)
    scores = positions * _score_flops(shape, told)
    compute = None
    if seconds is not None and part.flops_16bit:
        compute = (seconds + scores / part.flops_16bit) / split * (per_stage / max(1, batch)) * _NS
    return Step(
        attention + others + experts, total, state,
        2.0 * shape.read_params_decode * batch * positions + scores,
        device / part.bandwidth_bytes_s * _NS, compute,
    )  # fmt: skip


def _kv_bytes(
    shape: Shape, precision: Precision, told: Mapping[int, int], tensor: int
) -> tuple[float, float]:
    """KV bytes of all sequences, and those one of ``tensor`` devices reads of them."""
    total = held = 0.0
    for one, layers in shape.attention_kinds:
        elements = sum(count * one.elements_read(context) for context, count in told.items())
        size = layers * elements * precision.kv_bytes
        total += size
        # Key heads split over devices as far as there are any; a latent is on each of them.
        held += size / min(tensor, one.shards)
    return total, held


def _linear_seconds(
    shape: Shape, precision: Precision, part: Accelerator, tokens: float, *, head: bool = True
) -> float | None:
    """Device seconds of the matrix products, each part of the model at its own kernels' rate."""
    parts = [
        (shape.mixer_params, precision.attention_bytes),
        (shape.dense_params + shape.norm_params, precision.dense_bytes),
        (shape.routed_params, precision.expert_bytes),
    ]
    if head:
        parts.append((shape.head_params, precision.head_bytes))
    seconds = 0.0
    for params, size in parts:
        rate = part.usual(8 * size, four_bit=precision.four_bit_kernels)
        if rate is None:
            return None
        seconds += 2.0 * params * tokens / rate
    return seconds


def _score_flops(shape: Shape, told: Mapping[int, int]) -> float:
    return float(
        sum(
            layers * one.flops_per_pair * count * one.tokens_read(context)
            for one, layers in shape.attention_kinds
            for context, count in told.items()
        )
    )


def attainable(step: Step, shape: Shape, part: Accelerator, layout: Layout, tokens: int) -> Step:
    """The same step at measured ceilings, with its all-reduces.

    Small messages cost their latency, large ones a ring's bytes: 2 (N-1) / N of ``tokens`` rows.
    """
    ring = layout.attention_tensor
    hops = 2 * len(shape.layers) if layout.split > 1 else 0
    wire = 0.0
    if ring > 1 and part.link_bytes_s:
        size = tokens * shape.hidden * _ACTIVATION_BYTES
        wire = 2 * (ring - 1) / ring * size / part.link_bytes_s * _NS
    compute = step.compute_ns
    return replace(
        step,
        memory_ns=step.memory_ns / ATTAINABLE_BANDWIDTH,
        compute_ns=None if compute is None else compute / ATTAINABLE_FLOPS,
        communication_ns=step.communication_ns + hops * max(HOP_NS, wire),
    )


def decode_flops(shape: Shape, contexts: Contexts) -> float:
    """FLOPs of one step: two a parameter used, and the scores and sums of attention."""
    told = Counter(contexts)
    return 2.0 * shape.read_params_decode * told.total() + _score_flops(shape, told)


def prefill_flops(shape: Shape, prompt: int, cached: int = 0) -> float:
    """FLOPs to process ``prompt`` tokens of which the first ``cached`` are known.

    Linear layers work on the new tokens, the head on the last one; attention is causal, so what
    the cache saves of it is less than its share of the tokens.
    """
    linear = 2.0 * (shape.read_params_decode - shape.head_params) * (prompt - cached)
    return linear + prefill_score_flops(shape, prompt, cached) + 2.0 * shape.head_params


def prefill_score_flops(shape: Shape, prompt: int, cached: int = 0) -> float:
    """The part of them that grows with the square of the prompt."""
    return sum(
        layers * one.flops_per_pair * (_pairs(one, prompt) - _pairs(one, cached))
        for one, layers in shape.attention_kinds
    )


def _pairs(one: Attention, tokens: int) -> float:
    """Query and key pairs of causal attention over ``tokens``, each looking back so far only."""
    back = one.tokens_read(tokens)
    return back * tokens - back * back / 2


def strict_prefill(
    shape: Shape, precision: Precision, part: Accelerator, layout: Layout, prompt: int,
    cached: int = 0,
) -> Step:  # fmt: skip
    """Least time of a prefill: FLOPs over the peak of all devices, or the weights read once."""
    least = precision.least()
    flops = prefill_flops(shape, prompt, cached)
    weights = least.fixed_bytes(shape) + shape.routed_params * least.expert_bytes
    known = shape.kv_elements(cached) * least.kv_bytes
    rate = part.fastest(least.least_bits)
    return Step(
        weights, known, 0.0, flops,
        (weights + known) / (layout.devices * part.bandwidth_bytes_s) * _NS,
        flops / (rate * layout.devices) * _NS if rate else None,
    )  # fmt: skip


def expected_prefill(
    shape: Shape, precision: Precision, part: Accelerator, layout: Layout, prompt: int,
    cached: int = 0,
) -> Step:  # fmt: skip
    """One prompt alone: the experts its tokens reach, at the rate of the usual kernels.

    A prompt passes the stages of a pipeline in turn, so they add no speed for it.
    """
    new = prompt - cached
    weights = precision.fixed_bytes(shape)
    weights += shape.experts_read(new, strict=False) * precision.expert_bytes
    known = shape.kv_elements(cached) * precision.kv_bytes
    seconds = _linear_seconds(shape, precision, part, new, head=False)
    compute = None
    if seconds is not None and part.flops_16bit:
        scores = prefill_score_flops(shape, prompt, cached) + 2.0 * shape.head_params
        compute = (seconds + scores / part.flops_16bit) / layout.split * _NS
    return Step(
        weights, known, 0.0, prefill_flops(shape, prompt, cached),
        (weights + known) / (layout.split * part.bandwidth_bytes_s) * _NS, compute,
    )  # fmt: skip


def step_ns(
    shape: Shape, precision: Precision, part: Accelerator, layout: Layout, contexts: Contexts
) -> float:
    """Expected time of one decode step over sequences of these contexts; 0 for none."""
    return expected_decode(shape, precision, part, layout, contexts).ns if contexts else 0.0


def prefill_ns(
    shape: Shape, precision: Precision, part: Accelerator, layout: Layout, prompt: int,
    cached: int = 0,
) -> float:  # fmt: skip
    """Expected time of a prompt that is alone on the device, ``cached`` of its tokens known."""
    return expected_prefill(shape, precision, part, layout, prompt, cached).ns


def mixed_ns(
    shape: Shape, precision: Precision, part: Accelerator, layout: Layout,
    contexts: Contexts, chunk: int,
) -> float:  # fmt: skip
    """Expected time of a step that decodes ``contexts`` and prefills a chunk beside them.

    Its decodes wait for the chunk: max(bytes / bandwidth, 2 P (chunk + batch) / peak), the linear
    layers without the head. An expectation of interference, no bound.
    """
    if not contexts:
        return prefill_ns(shape, precision, part, layout, chunk)
    alone = expected_decode(shape, precision, part, layout, contexts)
    seconds = _linear_seconds(shape, precision, part, chunk + Counter(contexts).total(), head=False)
    busy = 0.0 if seconds is None else seconds / layout.split * _NS
    return max(alone.ns, busy)


def tokens_per_step(acceptance: float, drafts: int) -> float:
    """Tokens a step of speculation commits: (1 - a^(g+1)) / (1 - a) for acceptance a, g drafts."""
    if acceptance >= 1:
        return drafts + 1.0
    return (1 - acceptance ** (drafts + 1)) / (1 - acceptance)


def drafts_of(tokens: float) -> int:
    """Fewest drafts that can commit so many tokens a step."""
    return max(0, math.ceil(tokens) - 1)

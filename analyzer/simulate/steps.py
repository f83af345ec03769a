"""Time of one step of an engine: the bounds of its kernels in turn, over an efficiency.

Linear layers read the weights once for everything in the step, or are bound by their products;
attention reads the cache of every sequence, or is bound by its scores. Kernels follow each other,
so the two add up: a step that mixes prompts and decodes costs more than either alone.
"""

from __future__ import annotations

from dataclasses import replace

from analyzer.bounds.ask import Ask, Setting, resolve
from analyzer.bounds.capacity import room_bytes, sequence_bytes
from analyzer.bounds.step import (
    HOP_NS,
    decode_flops,
    expected_decode,
    expected_prefill,
    prefill_score_flops,
    tokens_per_step,
)
from analyzer.errors import AnalyzerError
from analyzer.simulate.world import NS_PER_MS, EngineSetup, StepTimes

_BUCKET = 256
_ROOM_TOKENS = 4096
_ACTIVATION_BYTES = 2.0

__all__ = ["StepCost", "blocks_of", "cost_of", "tokens_per_step"]


class StepCost:
    """Times of steps in ns, all floats; batches are sequences that decode."""

    def __init__(self, setup: EngineSetup) -> None:
        self.host_ns = setup.host_ms * NS_PER_MS
        self.eager_ns = setup.eager_ms * NS_PER_MS
        self.graph_most = setup.graph_tokens if setup.graph else 0
        self.positions = setup.drafts + 1

    def _least(self, tokens: int) -> float:
        """What launching every kernel takes, where no graph replays a step of so many tokens."""
        return self.eager_ns if tokens > self.graph_most else 0.0

    def decode_ns(self, batch: int, contexts: int) -> float:
        """A step that decodes ``batch`` sequences of ``contexts`` tokens altogether."""
        return self.mixed_ns(batch, contexts, ())

    def mixed_ns(self, batch: int, contexts: int, chunks: tuple[tuple[int, int], ...]) -> float:
        """The same with chunks of prompts beside it: new tokens, and the tokens before them."""
        raise NotImplementedError


class FixedCost(StepCost):
    """Times told part by part."""

    def __init__(self, setup: EngineSetup, step: StepTimes) -> None:
        super().__init__(setup)
        self.fixed = step.fixed_ms * NS_PER_MS
        self.sequence = step.per_sequence_us * 1e3
        self.context = step.per_context_token_ns
        self.token = step.per_prompt_token_us * 1e3
        self.pair = step.per_prompt_pair_ns

    def mixed_ns(self, batch: int, contexts: int, chunks: tuple[tuple[int, int], ...]) -> float:
        """Sum of the parts."""
        total = self.fixed + self.sequence * batch * self.positions + self.context * contexts
        tokens = batch * self.positions
        for new, before in chunks:
            total += self.token * new + self.pair * new * (before + new / 2)
            tokens += new
        return max(total, self._least(tokens)) + self.host_ns


class BoundCost(StepCost):
    """Times from a model's shape on a part, each piece over one efficiency."""

    def __init__(self, setup: EngineSetup) -> None:
        super().__init__(setup)
        self.setting = setting_of(setup)
        self.groups = max(1, self.setting.layout.attention_data)
        self.slower = 1 / setup.efficiency
        self.linear: dict[int, tuple[float, float]] = {}
        self.attended: dict[int, float] = {}
        self.prompts: dict[int, tuple[float, float]] = {}
        setting = self.setting
        rate = setting.part.flops_16bit
        if rate is None:
            raise AnalyzerError(f"no compute rate of {setting.part.key} is known", "[engine.step]")
        self.score_ns = 1e9 / rate / setting.layout.split * self.groups

    def _wire_ns(self, tokens: int) -> float:
        """Two exchanges a layer: all-reduces where devices share it, or what goes to experts."""
        one = self.setting
        layout = one.layout
        if layout.split == 1:
            return 0.0
        wire = 0.0
        if one.part.link_bytes_s:
            size = tokens * self.groups * one.shape.hidden * _ACTIVATION_BYTES
            ring = (layout.split - 1) / layout.split * size / one.part.link_bytes_s * 1e9
            wire = ring if self.groups > 1 else 2 * ring
        return 2 * len(one.shape.layers) * max(HOP_NS, wire)

    def _linear_of(self, batch: int) -> tuple[float, float]:
        """Weights read and products made for a batch, in ns."""
        found = self.linear.get(batch)
        if found is None:
            one = self.setting
            step = expected_decode(
                one.shape, one.precision, one.part, one.layout,
                {0: batch * self.groups}, self.positions - 1,
            )  # fmt: skip
            wire = self._wire_ns(batch * self.positions)
            found = self.linear[batch] = step.memory_ns + wire, (step.compute_ns or 0.0) + wire
        return found

    def _attention_of(self, bucket: int) -> float:
        """Cache read, or scores made, for one sequence of so many buckets of context, in ns."""
        found = self.attended.get(bucket)
        if found is None:
            one, context = self.setting, bucket * _BUCKET
            told = {context: self.groups}
            args = (one.shape, one.precision, one.part, one.layout)
            alone = expected_decode(*args, {0: self.groups}).memory_ns
            held = expected_decode(*args, told).memory_ns - alone
            scores = decode_flops(one.shape, told) - decode_flops(one.shape, {0: self.groups})
            compute = scores * self.score_ns / self.groups * self.positions
            found = self.attended[bucket] = max(held, compute)
        return found

    def _attention(self, context: float) -> float:
        buckets = context / _BUCKET
        low = int(buckets)
        start = self._attention_of(low)
        return start + (self._attention_of(low + 1) - start) * (buckets - low)

    def _prompt_of(self, tokens: int) -> tuple[float, float]:
        """Weights read and products made for so many tokens of prompts, in ns."""
        found = self.prompts.get(tokens)
        if found is None:
            one = self.setting
            args = (one.shape, one.precision, one.part, one.layout)
            step = expected_prefill(*args, tokens * self.groups)
            scores = prefill_score_flops(one.shape, tokens * self.groups) * self.score_ns
            compute = (step.compute_ns or 0.0) - scores / self.groups
            wire = self._wire_ns(tokens)
            found = self.prompts[tokens] = step.memory_ns + wire, max(0.0, compute) + wire
        return found

    def decode_ns(self, batch: int, contexts: int) -> float:
        """A step without prompts; the loop of most steps."""
        weights, products = self._linear_of(batch)
        linear = weights if weights > products else products
        device = (linear + self._attention(contexts / batch) * batch) * self.slower
        if batch * self.positions > self.graph_most and device < self.eager_ns:
            device = self.eager_ns
        return device + self.host_ns

    def mixed_ns(self, batch: int, contexts: int, chunks: tuple[tuple[int, int], ...]) -> float:
        """Linear layers once over everything, attention of decodes, attention of each chunk."""
        if not chunks:
            return self.decode_ns(batch, contexts)
        one = self.setting
        tokens = sum(new for new, _ in chunks)
        weights, products = self._prompt_of(tokens)
        attention = 0.0
        if batch:
            read, made = self._linear_of(batch)
            weights, products = max(weights, read), products + made
            attention = batch * self._attention(contexts / batch)
        for new, before in chunks:
            flops = prefill_score_flops(one.shape, before + new, before)
            attention += max(flops * self.score_ns / self.groups, self._attention(before))
        device = (max(weights, products) + attention) * self.slower
        return max(device, self._least(tokens + batch * self.positions)) + self.host_ns


def setting_of(setup: EngineSetup) -> Setting:
    """Model, part and layout that the setup names."""
    return resolve(
        Ask(
            model=setup.model, gpu=setup.gpu, weights=setup.weights, kv=setup.kv,
            count=setup.count, tp=setup.tp, dp=setup.dp, batch=1, context=0,
        )
    )  # fmt: skip


def cost_of(setup: EngineSetup) -> StepCost:
    """Step times as the setup tells them, or from bounds."""
    return BoundCost(setup) if setup.step is None else FixedCost(setup, setup.step)


def blocks_of(setup: EngineSetup) -> int:
    """Blocks of KV memory of one rank: told, or what fits beside the weights."""
    if setup.kv_blocks is not None:
        return setup.kv_blocks
    if setup.step is not None:
        raise AnalyzerError("engine.step tells times, not sizes", "set engine.kv_blocks too")
    one = setting_of(setup)
    room = room_bytes(one.shape, one.precision, one.part, one.layout)
    each = sequence_bytes(one.shape, one.precision, one.layout, _ROOM_TOKENS)
    groups = max(1, one.layout.attention_data)
    blocks = int(room / groups / (each / _ROOM_TOKENS) / setup.block_tokens) if each else 0
    if blocks < 1:
        raise AnalyzerError(
            f"{setup.model} does not fit {setup.gpu}", "more GPUs, or smaller weights"
        )
    return blocks


def slowed(setup: EngineSetup, factor: float) -> EngineSetup:
    """The same engine with every step ``factor`` times as long."""
    if setup.step is None:
        return replace(setup, efficiency=setup.efficiency / factor)
    step = setup.step
    return replace(
        setup,
        step=StepTimes(
            step.fixed_ms * factor, step.per_sequence_us * factor,
            step.per_context_token_ns * factor, step.per_prompt_token_us * factor,
            step.per_prompt_pair_ns * factor,
        ),
    )  # fmt: skip

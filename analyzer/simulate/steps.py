"""Time of one step of an engine: the bounds of its kernels in turn, over an efficiency.

Linear layers read the weights once for everything in the step, or are bound by their products;
attention reads the cache of every sequence, or is bound by its scores. Kernels follow each other,
so the two add up: a step that mixes prompts and decodes costs more than either alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from analyzer.bounds.ask import Ask, Setting, resolve
from analyzer.bounds.capacity import room_bytes, sequence_bytes
from analyzer.bounds.kernels import Kernels, Link, captured
from analyzer.bounds.step import (
    decode_flops,
    expected_decode,
    prefill_score_flops,
    tokens_per_step,
)
from analyzer.errors import AnalyzerError
from analyzer.simulate.world import NS_PER_MS, NS_PER_US, EngineSetup, StepTimes

_BUCKET = 256
_ROOM_TOKENS = 4096

Load = tuple[int, int, tuple[tuple[int, int], ...]]
"""Sequences that decode, their tokens of context, and chunks of prompts (new, before)."""

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

    def together_ns(self, loads: Sequence[Load]) -> float:
        """A step of ranks that wait for each other."""
        return max(self.mixed_ns(*one) for one in loads)

    def _tokens(self, load: Load) -> int:
        batch, _, chunks = load
        return batch * self.positions + sum(new for new, _ in chunks)


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
    """Times from a model's shape on a part: kernels over one efficiency, and exchanges as told."""

    def __init__(self, setup: EngineSetup) -> None:
        super().__init__(setup)
        self.setting = one = setting_of(setup)
        self.kernels = Kernels(one.shape, one.precision, one.part, one.layout)
        self.groups = self.kernels.groups
        self.slower = 1 / setup.efficiency
        told, known = setup.link_gb_s, one.part.link_bytes_s
        # What a data sheet says of a link is reached as little as what it says of the memory.
        rate = told * 1e9 if told else known and known * setup.efficiency
        self.link = Link(setup.link_us * NS_PER_US, rate)
        self.linear: dict[int, float] = {}
        self.rows = max(setup.attention_rows, self.positions)
        self.attended: dict[int, dict[int, tuple[float, float]]] = {
            rows: {} for rows in (1, self.positions, self.rows)
        }
        """Rows -> bucket of context -> time at its start, and what it grows by to the next."""
        rate = one.part.flops_16bit
        if rate is None:
            raise AnalyzerError(f"no compute rate of {one.part.key} is known", "[engine.step]")
        self.score_ns = 1e9 / rate / one.layout.attention_tensor

    def _attention_of(self, bucket: int, rows: int) -> float:
        """Attention of one sequence of so many buckets of context that decodes, in ns."""
        one, context = self.setting, bucket * _BUCKET
        args = (one.shape, one.precision, one.part, one.layout)
        alone = expected_decode(*args, {0: self.groups}).memory_ns
        held = expected_decode(*args, {context: self.groups}).memory_ns - alone
        scores = decode_flops(one.shape, {context: 1}) - decode_flops(one.shape, {0: 1})
        return self.kernels.attention_ns(held, scores * self.score_ns, rows)

    def _attention(self, context: float, rows: int) -> float:
        known, buckets = self.attended[rows], context / _BUCKET
        low = int(buckets)
        ends = known.get(low)
        if ends is None:
            start = self._attention_of(low, rows)
            ends = known[low] = start, self._attention_of(low + 1, rows) - start
        return ends[0] + ends[1] * (buckets - low)

    def decode_ns(self, batch: int, contexts: int) -> float:
        """A step without prompts; the loop of most steps."""
        if self.groups > 1:
            return self.together_ns([(batch, contexts, ())] * self.groups)
        found = self.linear.get(batch)
        tokens = batch * self.positions
        if found is None:
            kernels = self.kernels
            found = kernels.linear_ns(tokens, tokens, batch, tokens) * self.slower
            found = self.linear[batch] = found + kernels.exchange_ns(tokens, self.link)
        device = found + self._attention(contexts / batch, self.positions) * batch * self.slower
        if tokens > self.graph_most and device < self.eager_ns:
            device = self.eager_ns
        return device + self.host_ns

    def mixed_ns(self, batch: int, contexts: int, chunks: tuple[tuple[int, int], ...]) -> float:
        """Linear layers once over everything, attention of decodes, attention of each chunk."""
        load = (batch, contexts, chunks)
        if self.groups > 1:
            return self.together_ns([load])
        if not chunks:
            return self.decode_ns(batch, contexts)
        tokens = self._tokens(load)
        linear = self.kernels.linear_ns(tokens, self._rows(load), batch, tokens)
        device = (linear + self._attention_all(batch, contexts, chunks)) * self.slower
        device += self.kernels.exchange_ns(tokens, self.link)
        return max(device, self._least(tokens)) + self.host_ns

    def together_ns(self, loads: Sequence[Load]) -> float:
        """Ranks wait for each other in every layer, so the slowest of each kernel counts.

        Where every rank's step has a graph, all of them replay the largest: what is missing is
        computed as if it were there. An idle rank runs one token.
        """
        tokens = [max(1, self._tokens(one)) for one in loads]
        tokens += [1] * (self.groups - len(tokens))
        if self.groups > 1 and max(tokens) <= self.graph_most:
            tokens = [captured(max(tokens))] * len(tokens)
        most, linear, attention = max(tokens), 0.0, 0.0
        for size, load in zip(tokens, loads, strict=False):
            spent = self.kernels.linear_ns(size, self._rows(load), load[0], sum(tokens))
            linear = max(linear, spent)
            attention = max(attention, self._attention_all(*load))
        device = (linear + attention) * self.slower + self.kernels.exchange_ns(most, self.link)
        return max(device, self._least(most)) + self.host_ns

    def _rows(self, load: Load) -> int:
        """Positions that get logits."""
        batch, _, chunks = load
        return batch * self.positions or len(chunks)

    def _attention_all(
        self, batch: int, contexts: int, chunks: tuple[tuple[int, int], ...]
    ) -> float:
        """Attention of one rank's decodes and chunks."""
        rows, spent = self.rows if chunks else self.positions, 0.0
        if batch:
            spent = batch * self._attention(contexts / batch, rows)
        for new, before in chunks:
            flops = prefill_score_flops(self.setting.shape, before + new, before)
            spent += max(flops * self.score_ns, self._attention(before, 1))
        return spent


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

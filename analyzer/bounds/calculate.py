"""The calculator: three lines for TPOT and TTFT, what fits, and what each lever changes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from analyzer.bounds import capacity
from analyzer.bounds.ask import Ask, Setting, resolve
from analyzer.bounds.precision import Precision
from analyzer.bounds.step import (
    Step,
    attainable,
    expected_decode,
    expected_prefill,
    strict_decode,
    strict_prefill,
)

LINES = ("strict", "expected", "attainable")
_BATCHES = 4
_HIT = 0.75
"""Share of the prompt that the lever of the prefix cache takes as known."""
_NS = 1e9


@dataclass(frozen=True)
class Bounds:
    """Times in ns by line; None where a line cannot be drawn.

    ``step`` is the decode step that the sizes describe: the expected one where there is one.
    """

    setting: Setting
    step: Step
    tpot_ns: dict[str, float | None]
    ttft_ns: dict[str, float | None]

    @property
    def line(self) -> str:
        """The line that levers and rates are told of."""
        return "strict" if self.tpot_ns["expected"] is None else "expected"

    @property
    def tokens_per_s(self) -> float | None:
        """Output tokens of the batch a second, at the expected step."""
        told = self.tpot_ns["expected"]
        return (self.setting.ask.batch or 1) * _NS / told if told else None


@dataclass(frozen=True)
class Lever:
    """One change, and the times of the line that is told."""

    name: str
    tpot_ns: float | None
    ttft_ns: float | None
    tokens_per_s: float | None
    sequences: int | None


def bounds(ask: Ask) -> Bounds:
    """All lines of one question."""
    return of_setting(resolve(ask))


def of_setting(at: Setting) -> Bounds:
    """All lines of a question whose names are resolved: many of one deployment are quick so."""
    shape, part, layout = at.shape, at.part, at.layout
    first = strict_decode(shape, at.strict_precision, part, layout, at.context)
    steps: dict[str, Step | None] = dict.fromkeys(LINES)
    steps["strict"] = _beside(at, at.strict_precision, first, 1, strict=True)
    if at.ask.batch and layout.known:
        contexts = {at.context: at.ask.batch}
        step = expected_decode(shape, at.precision, part, layout, contexts, at.drafts)
        positions = at.ask.batch * (at.drafts + 1)
        step = _beside(at, at.precision, step, positions, strict=False)
        steps["expected"] = step
        steps["attainable"] = attainable(step, shape, part, layout, positions)
    return Bounds(
        at,
        steps["expected"] or first,
        {name: step.ns / at.tokens if step else None for name, step in steps.items()},
        _prefill(at),
    )


def _prefill(at: Setting) -> dict[str, float | None]:
    out: dict[str, float | None] = dict.fromkeys(LINES)
    prompt, cached = at.ask.prompt, at.ask.cached or 0
    if not prompt:
        return out
    shape, part, layout, new = at.shape, at.part, at.layout, prompt - cached
    step = strict_prefill(shape, at.strict_precision, part, layout, prompt, cached)
    out["strict"] = _beside(at, at.strict_precision, step, 1, strict=True).ns
    if layout.known:
        step = expected_prefill(shape, at.precision, part, layout, prompt, cached)
        step = _beside(at, at.precision, step, new, strict=False)
        # Where no rate is known, memory alone would be a promise that nothing keeps.
        if step.compute_ns is not None:
            out["expected"] = step.ns
            out["attainable"] = attainable(step, shape, part, layout, new).ns
    return out


def _beside(at: Setting, precision: Precision, step: Step, positions: int, *, strict: bool) -> Step:
    """The step with its share of weights in the host's memory: two memories add up."""
    rate = at.ask.cpu_bandwidth_bytes_s
    read = host_read_bytes(at, precision, step, positions, strict=strict)
    if not read or not rate:
        return step
    device = read / ((at.layout.devices if strict else at.layout.split) * at.part.bandwidth_bytes_s)
    seconds = max(0.0, step.memory_ns / _NS - device) + read / rate
    return replace(step, memory_ns=seconds * _NS)


def host_read_bytes(
    at: Setting, precision: Precision, step: Step, positions: int, *, strict: bool
) -> float:
    """Bytes of weights that a step reads from the host's memory."""
    held = at.ask.cpu_weight_bytes
    if not held:
        return 0.0
    shape = at.shape
    experts = shape.expert_params * precision.expert_bytes
    moved = min(held, experts)
    read = max(0.0, min(held - moved, step.weight_bytes))
    if experts:
        used = shape.experts_read(positions, strict=strict) * precision.expert_bytes
        # The host's experts may be those that no token asks for.
        read += max(0.0, moved - (experts - used)) if strict else moved * used / experts
    return read


def sequences_that_fit(at: Setting) -> int | None:
    """How many sequences of this context one replica holds; None where memory is not known."""
    room = _room(at)
    if room is None or not at.context:
        return None
    return capacity.sequences(at.shape, at.precision, at.layout, room, at.context)


def context_that_fits(at: Setting) -> int | None:
    """The longest context at this batch, or of one sequence."""
    room = _room(at)
    if room is None:
        return None
    batch = at.ask.batch or 1
    return capacity.longest_context(at.shape, at.precision, at.layout, room, batch)


def _room(at: Setting) -> float | None:
    if not at.part.memory_bytes:
        return None
    elsewhere = at.ask.cpu_weight_bytes or 0.0
    return capacity.room_bytes(at.shape, at.precision, at.part, at.layout, elsewhere)


def ridge_batch(at: Setting) -> float | None:
    """Batch from which a step computes longer than it reads weights, KV aside."""
    each = 8 * at.precision.dense_bytes
    rate = at.part.usual(each, four_bit=at.precision.four_bit_kernels)
    read = at.precision.fixed_bytes(at.shape) + at.shape.routed_params * at.precision.expert_bytes
    if rate is None:
        return None
    return rate * read / (2 * at.shape.read_params_decode * at.part.bandwidth_bytes_s)


def levers(now: Bounds) -> Iterator[Lever]:
    """What each of the usual changes would give, of those that change anything here."""
    for name, ask in _asks(now.setting):
        then = bounds(ask)
        if then.line == now.line:
            yield Lever(
                name,
                then.tpot_ns[now.line],
                then.ttft_ns[now.line],
                then.tokens_per_s,
                sequences_that_fit(then.setting),
            )


def _asks(at: Setting) -> Iterator[tuple[str, Ask]]:
    ask, bits = at.ask, at.precision.least_bits
    plain = replace(ask, weight_bytes=None, kv=_kv_name(at))
    if bits > 9:
        yield "weights at 8 bits", replace(plain, weights="fp8")
    if bits > 5:
        four = "nvfp4" if at.part.flops_fp4 else "int4"
        yield "weights at 4 bits", replace(plain, weights=four)
    if at.precision.kv_bytes > 1 and at.shape.kv_elements_per_token:
        yield "KV cache at 8 bits", replace(ask, kv="fp8")
    yield "twice the GPUs", _twice(at)
    if ask.batch:
        yield f"batch x {_BATCHES}", replace(ask, batch=_BATCHES * ask.batch)
    if ask.prompt and not ask.cached:
        known = min(ask.prompt - 1, int(_HIT * ask.prompt))
        yield f"{known:,} of the prompt cached", replace(ask, cached=known)


def _twice(at: Setting) -> Ask:
    """Twice as many share each layer; of an unknown layout, twice as many."""
    layout = at.layout
    if not layout.known:
        return replace(at.ask, count=2 * layout.devices)
    tp, pp, dp = 2 * layout.attention_tensor, layout.pipeline, max(1, layout.attention_data)
    return replace(at.ask, tp=tp, pp=pp, dp=dp, count=tp * pp * dp)


def _kv_name(at: Setting) -> str | None:
    """The cache keeps its format when the weights change theirs."""
    if not at.precision.kv_told:
        return at.ask.kv
    return at.ask.kv or ("fp8" if at.precision.kv_bytes <= 1 else "bf16")

"""What fits: sequences of a context, and the longest context, beside the weights."""

from __future__ import annotations

from analyzer.bounds.hardware import Accelerator
from analyzer.bounds.precision import Precision
from analyzer.bounds.shape import Shape
from analyzer.bounds.step import Layout

USABLE = 0.9
"""Share of the memory that engines use by default; the rest is for activations and graphs."""
_LONGEST = 2**40


def weights_held_bytes(shape: Shape, precision: Precision, layout: Layout) -> float:
    """Weights on all devices together; attention stands once in each group of its own."""
    copies = max(1, layout.attention_data) - 1
    attention = shape.mixer_params * precision.attention_bytes
    return precision.checkpoint_bytes(shape) + copies * attention


def sequence_bytes(shape: Shape, precision: Precision, layout: Layout, context: int) -> float:
    """Cache and states of one sequence; what cannot be split stands on every device."""
    tensor = layout.attention_tensor if layout.known else 1
    cached = sum(
        count * one.elements_held(context) * tensor / min(tensor, one.shards)
        for one, count in shape.attention_kinds
    )
    return cached * precision.kv_bytes + shape.state_bytes()


def room_bytes(
    shape: Shape, precision: Precision, part: Accelerator, layout: Layout, elsewhere: float = 0.0
) -> float:
    """Memory left for sequences; negative where the weights alone do not fit.

    ``elsewhere``: bytes of weights that lie in the host's memory.
    """
    usable = USABLE * part.memory_bytes * layout.devices
    return usable - weights_held_bytes(shape, precision, layout) + elsewhere


def sequences(
    shape: Shape, precision: Precision, layout: Layout, room: float, context: int
) -> int | None:
    """How many sequences of ``context`` tokens fit; None where one takes nothing."""
    each = sequence_bytes(shape, precision, layout, context)
    return max(0, int(room // each)) if each else None


def longest_context(
    shape: Shape, precision: Precision, layout: Layout, room: float, batch: int
) -> int | None:
    """Tokens of context that fit ``batch`` times, at most what the model was made for.

    0 where nothing fits; None where neither the memory nor the model limits it.
    """
    top = shape.max_context or _LONGEST
    if batch * sequence_bytes(shape, precision, layout, top) <= room:
        return shape.max_context
    low, high = 0, top
    while low < high:
        middle = (low + high + 1) // 2
        fits = batch * sequence_bytes(shape, precision, layout, middle) <= room
        low, high = (middle, high) if fits else (low, middle - 1)
    return low


def cache_copies(shape: Shape, layout: Layout) -> float:
    """How many devices hold the same part of the cache; 1 where it is split over all of them."""
    tensor = layout.attention_tensor if layout.known else 1
    return max((tensor / min(tensor, one.shards) for one, _ in shape.attention_kinds), default=1)

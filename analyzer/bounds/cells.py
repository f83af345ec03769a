"""The bounds of one deployment over a grid: a decode step of a batch, and the prefill of a prompt.

A case has as many steps as tokens, but few distinct pairs of batch and context once both are
rounded; each pair is asked for once here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from analyzer.bounds import capacity
from analyzer.bounds.ask import Setting
from analyzer.bounds.calculate import host_read_bytes, of_setting
from analyzer.bounds.step import prefill_flops

_NS = 1e9


@dataclass(frozen=True)
class DecodeCell:
    """Times of one step in ns. ``host_ns``: of the expected step, reading main memory.

    ``all_on_gpu_ns``: the expected step if nothing lay in main memory. None where only strict can
    be said. ``batch`` is the one that was taken: no more than fits.
    """

    batch: int
    strict_ns: float
    expected_ns: float | None
    attainable_ns: float | None
    all_on_gpu_ns: float | None
    host_ns: float


def decode_cell(
    at: Setting, batch: int, context: int, *, most: int | None = None, pool: int | None = None
) -> DecodeCell:
    """A step of ``batch`` sequences of ``context`` tokens each.

    Overlapping answers may be more than one engine runs: the batch is at most ``most``, what the
    memory holds, and what a cache of ``pool`` tokens does.
    """
    batch = max(1, min(batch, *_limits(at, context, most, pool)))
    ask = replace(at.ask, batch=batch, prompt=None, cached=None)
    told = of_setting(replace(at, ask=ask, context=context))
    alone = told
    read = host_read_bytes(at, at.precision, told.step, batch * (at.drafts + 1), strict=False)
    if ask.cpu_weight_bytes:
        elsewhere = replace(ask, cpu_weight_bytes=None, cpu_bandwidth_bytes_s=None)
        alone = of_setting(replace(at, ask=elsewhere, context=context))
    strict = told.tpot_ns["strict"]
    rate = ask.cpu_bandwidth_bytes_s
    return DecodeCell(
        batch,
        strict if strict is not None else 0.0,
        told.tpot_ns["expected"],
        told.tpot_ns["attainable"],
        alone.tpot_ns["expected"],
        read / rate * _NS / at.tokens if rate else 0.0,
    )


def _limits(at: Setting, context: int, most: int | None, pool: int | None) -> list[int]:
    """What keeps a batch small; nothing is said where nothing is known."""
    told = [limit for limit in (most,) if limit]
    if pool and context:
        told.append(pool // context)
    if at.part.memory_bytes and at.layout.known:
        elsewhere = at.ask.cpu_weight_bytes or 0.0
        room = capacity.room_bytes(at.shape, at.precision, at.part, at.layout, elsewhere)
        fits = capacity.sequences(at.shape, at.precision, at.layout, room, context)
        # Weights that do not fit ran all the same: the figure of the memory is of no use then.
        if fits:
            told.append(fits)
    return [*told, 1 << 40]


@dataclass(frozen=True)
class PrefillCell:
    """Times of a prompt alone in ns, and the part of the expected one that is computing at peak."""

    strict_ns: float
    expected_ns: float | None
    attainable_ns: float | None
    peak_ns: float | None
    flops: float


def prefill_cell(at: Setting, prompt: int, cached: int) -> PrefillCell:
    """``prompt`` tokens of which ``cached`` are known; the last token is always processed."""
    cached = min(cached, prompt - 1)
    ask = replace(at.ask, batch=None, prompt=prompt, cached=cached)
    told = of_setting(replace(at, ask=ask, context=prompt)).ttft_ns
    strict = told["strict"]
    flops = prefill_flops(at.shape, prompt, cached)
    rate = at.part.flops_16bit
    return PrefillCell(
        strict if strict is not None else 0.0,
        told["expected"],
        told["attainable"],
        flops / (rate * at.layout.devices) * _NS if rate else None,
        flops,
    )

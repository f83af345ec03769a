"""Why a measurement lies below a bound: it is named, never clipped."""

from __future__ import annotations

from dataclasses import dataclass

WITHIN = "within"
METADATA = "above-bound: metadata"
QUEUE_LIMITED = "queue-limited"
KV_CAPACITY = "kv-capacity"
REPLICAS = "replicas"
UNEXPLAINED = "unexplained: check model, GPU and dtype"

_QUEUED = 20.0
"""TTFT over the prefill it needs: from here on a request mostly waited, so fewer were running."""


_COPIES = 8
"""Devices of one node. A cache said to stand on more of them is mostly a layout told wrongly."""


@dataclass(frozen=True)
class Measured:
    """A step time that was measured, and what is known about how.

    ``batch``: sequences believed to decode together; ``engine_batch``: what one engine had, if
    told; ``fits``: how many the memory holds; ``copies``: devices that hold the same cache, by the
    layout. ``complete``: layout and batch were recorded, not inferred.
    """

    tpot_ns: float
    strict_ns: float
    expected_ns: float | None
    complete: bool = True
    batch: int | None = None
    engine_batch: int | None = None
    fits: int | None = None
    copies: float = 1
    ttft_ns: float | None = None
    prefill_ns: float | None = None


def classify(row: Measured) -> str:
    """One of the words above: within its bounds, or the assumption that breaks first.

    Below *strict* nothing but a wrong model, GPU, dtype or clock is left. Below *expected* it is
    what was taken for the batch or the layout.
    """
    if row.tpot_ns < row.strict_ns:
        return UNEXPLAINED
    if row.expected_ns is None or row.tpot_ns >= row.expected_ns:
        return WITHIN
    if row.engine_batch is not None and row.batch is not None and row.engine_batch < row.batch:
        return REPLICAS
    if not row.complete or row.copies > _COPIES:
        return METADATA
    if row.fits is not None and row.batch is not None and row.fits < row.batch:
        return KV_CAPACITY
    if row.ttft_ns and row.prefill_ns and row.ttft_ns > _QUEUED * row.prefill_ns:
        return QUEUE_LIMITED
    return UNEXPLAINED

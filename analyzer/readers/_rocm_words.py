"""What the formats of rocprofv3 share."""

from __future__ import annotations

from analyzer.readers._gpu_rows import product

OTHERS = (
    "memory_allocation", "scratch_memory", "rocdecode_api", "rocjpeg_api", "pc_sample_host_trap",
    "pc_sample_stochastic", "ompt", "kfd_event",
)  # fmt: skip
"""Lists of records that no table takes."""


def groups(items: list[int | None], blocks: list[int | None]) -> int | None:
    """Work-groups of a grid that is told in work-items."""
    if any(not one for one in (*items, *blocks)):
        return None
    return product(*(-(-(i or 0) // (b or 1)) for i, b in zip(items, blocks, strict=True)))

"""Table of kernels by name, where a source gives totals or measures them alone."""

from __future__ import annotations

import pyarrow as pa

from analyzer.contract._fields import ns, ratio, real, table, text, whole


def gpu_kernel_total(provenance: list[pa.Field]) -> pa.Schema:
    """Totals of one kernel, or one kernel measured alone."""
    return table(
        "Totals of one kernel by its name, or one launch of it measured alone; no moments in time.",
        [
            *provenance,
            text("name", "kernel"),
            whole("device", "device index"),
            text("device_name", "accelerator, as the source says"),
            text(
                "measured",
                "run: totals of a run; replay: launched again alone, with locked clocks and "
                "cleared caches, so its bytes hold and its duration is no part of a step",
            ),
            whole("calls", "launches"),
            ns("total_ns", "all of them together"),
            ns("min_ns", "shortest"),
            ns("max_ns", "longest"),
            real("dram_bytes", "moved to and from device memory, mean of a launch", "bytes"),
            ratio("dram_busy_ratio", "of the bandwidth of device memory"),
            ratio("sm_busy_ratio", "of the arithmetic the multiprocessors can do"),
            whole("grid_blocks", "blocks of the grid (work-groups), all axes multiplied"),
            whole("block_threads", "threads of a block (work-items), all axes multiplied"),
        ],
    )

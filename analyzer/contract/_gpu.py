"""Tables of profiler traces: what devices did, and what each trace says of itself."""

from __future__ import annotations

import pyarrow as pa

from analyzer.contract._fields import column, ns, table, text, whole


def gpu_event(provenance: list[pa.Field]) -> pa.Schema:
    """One thing a device did, or a thread had it do."""
    return table(
        "One event of a profiler trace.",
        [
            *provenance,
            whole("rank", "process rank"),
            whole("device", "device of that rank; NULL = it ran on a host thread"),
            whole("stream", "stream of that device"),
            text(
                "kind",
                "on a device: kernel, memcpy, memset, sync, gpu_annotation, graph (a whole replay, "
                "its kernels untold); on a host thread: runtime, graph_launch, annotation, cpu_op",
            ),
            text("name", "kernel or operation"),
            ns("start_ns", "start"),
            text("clock", "wall, or relative: start_ns counts from an unknown moment"),
            ns("dur_ns", "duration; NULL = not told, or no duration a trace can have"),
            whole(
                "correlation",
                "joins a launch with what it launched, within a source and rank; all kernels of a "
                "graph's replay have that of its launch",
            ),
            whole("graph_id", "graph that was replayed; NULL = none, or not told"),
            whole("graph_node", "node of that graph"),
            whole("pid", "process of a host thread"),
            whole("tid", "host thread: annotations enclose launches of the same pid and tid"),
            whole("external_id", "joins device work and launches with the operator behind them"),
            whole("bytes", "bytes that were copied or set", "bytes"),
            whole("grid_blocks", "blocks of the grid (work-groups), all axes multiplied"),
            whole("block_threads", "threads of a block (work-items), all axes multiplied"),
            text("collective", "collective operation of a communication kernel"),
            whole("collective_elements", "elements this rank put in"),
            text("collective_dtype", "their type"),
            text("collective_group", "process group"),
            whole("collective_ranks", "ranks in that group"),
        ],
    )


def gpu_trace(provenance: list[pa.Field]) -> pa.Schema:
    """One rank of a profiler trace."""
    return table(
        "One rank of one profiler trace: what was recorded, by which clock, and what was lost.",
        [
            *provenance,
            whole("rank", "process rank; NULL = neither the trace nor its name tells"),
            text("rank_source", "trace, file name, or label (of a merged trace)"),
            text("rank_label", "what a merged trace calls the rank"),
            whole("world_size", "ranks of the job"),
            text("device_name", "accelerator, as the trace says"),
            whole("devices", "accelerators that the process saw"),
            text("vendor", "nvidia, amd; NULL = not told"),
            text("profiler", "what wrote it: kineto, nsys, ..."),
            text("schema_version", "version of the trace's format"),
            text("clock", "wall, or relative: start_ns counts from an unknown moment"),
            ns("base_ns", "wall time that the trace's own times count from, where told"),
            ns("resolution_ns", "what a time of the trace is exact to"),
            ns("start_ns", "first event, or the recorded window where told"),
            ns("dur_ns", "to the last event's end, or the recorded window where told"),
            whole("device_events", "kernels, copies, sets"),
            whole("launches", "runtime calls that were kept"),
            whole("graph_launches", "replays of graphs that were asked for"),
            column("ended", pa.bool_(), "the trace ends as it should; false = cut off"),
            column("stacks", pa.bool_(), "Python stacks were recorded: the host was slower"),
            whole("dropped_records", "records that the profiler says it lost"),
            column("stopped_early", pa.bool_(), "the profiler ran out of room for records"),
            whole("errors", "errors that the profiler logged"),
            ns("overhead_ns", "time the profiler itself took, as far as it says"),
            text("runtime_version", "CUDA or HIP runtime"),
            text("driver_version", "CUDA or HIP driver"),
        ],
    )

"""How fast profiler traces are read, against the barest way to get the same events out of them.

``python benchmarks/gpu_traces.py [--megabytes 500] [--hta PYTHON] [--stacks TRACE...] [--plain
TRACE...]`` writes two traces in the layout of PyTorch's profiler, the events of some steps again
and again with later times: one of decode steps with Python stacks, one of eager steps full of
kernels. The steps are made up, or those of real traces that are named. It times whole processes:
ingest into a new case and a sum by kernel; a loader that only makes Arrow columns of the same
events; and, where a Python with HolisticTraceAnalysis is named, that.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from run import Cost, best, cost

_BARE = r"""
import re, sys, zlib, msgspec, pyarrow as pa, pyarrow.compute
try:
    from isal import isal_zlib as zlib
except ImportError:
    pass
class Args(msgspec.Struct, gc=False):
    device: object = None
    stream: object = None
    correlation: object = None
    bytes: object = None
    graph: object = msgspec.field(default=None, name="graph id")
class Event(msgspec.Struct, gc=False):
    name: str
    cat: str
    pid: object
    tid: object
    ts: float
    dur: float = 0.0
    args: Args = msgspec.field(default_factory=Args)
decode = msgspec.json.Decoder(list[Event]).decode
wanted = re.compile(rb'"cat": "(?:kernel|gpu_|cuda_runtime|cuda_driver|user_ann)')
sep, tables, events, step = b"\n  },\n  {", [], [], zlib.decompressobj(31)
def whole(values):
    return pa.array([v if type(v) is int else None for v in values], pa.int64())
def flush():
    if not events:
        return
    args = [e.args for e in events]
    tables.append(pa.table({
        "cat": pa.array([e.cat for e in events]).dictionary_encode(),
        "name": pa.array([e.name for e in events]).dictionary_encode(),
        "pid": whole([e.pid for e in events]), "tid": whole([e.tid for e in events]),
        "start": pa.array([e.ts for e in events], pa.float64()),
        "dur": pa.array([e.dur for e in events], pa.float64()),
        "device": whole([a.device for a in args]), "stream": whole([a.stream for a in args]),
        "correlation": whole([a.correlation for a in args]),
        "bytes": whole([a.bytes for a in args]), "graph": whole([a.graph for a in args])}))
    events.clear()
def take(data):
    at, pieces = 0, []
    for match in wanted.finditer(data):
        if match.start() < at:
            continue
        begin = data.rfind(sep, at, match.start())
        begin = data.rfind(b"{", at, match.start()) if begin < 0 else begin + len(sep) - 1
        end = data.find(sep, match.start())
        if end < 0:
            end = data.find(b"\n  }", match.start())
        pieces.append(data[begin:end + 4])
        at = end + 4
    events.extend(decode(b"[" + b",".join(pieces) + b"]"))
    if len(events) >= 262144:
        flush()
rest = b""
with open(sys.argv[1], "rb") as stream:
    while data := stream.read(1 << 20):
        while data:
            rest += step.decompress(data, 4 << 20)
            data = step.unconsumed_tail
            cut = rest.rfind(sep)
            if cut > 0 and len(rest) > 4 << 20:
                take(rest[:cut + 4])
                rest = rest[cut + 5:]
take(rest)
flush()
table = pa.concat_tables(tables).unify_dictionaries()
kinds = pa.array(["kernel", "gpu_memcpy", "gpu_memset"])
work = table.filter(pa.compute.is_in(table["cat"], kinds))
print(work.group_by("name").aggregate([("dur", "sum"), ("dur", "count")]).num_rows)
"""
OURS = """
import os, sys, analyzer, duckdb
db = sys.argv[2] + str(os.getpid())
analyzer.ingest(db, [sys.argv[1]])
with duckdb.connect(db, read_only=True) as case:
    rows = case.execute("SELECT name, sum(dur_ns), count(*) FROM gpu_event WHERE kind IN "
                        "('kernel', 'memcpy', 'memset') GROUP BY name").fetchall()
print(len(rows))
os.unlink(db)
"""
_HTA = """
import sys
from hta.trace_analysis import TraceAnalysis
trace = TraceAnalysis(trace_files={0: sys.argv[1]})
print(trace.get_gpu_kernel_breakdown(visualize=False))
"""
_HEAD = {
    "schemaVersion": 1,
    "deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3", "numSms": 132}],
    "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 1},
    "baseTimeNanoseconds": 1784073600000000000,
}
_CUTLASS = (
    "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_{}x128_64x4_tn_align8>"
    "(cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_{}x128_64x4_tn_align8::Params)"
)


def _event(
    cat: str, name: str, ts: float, dur: float, *, gpu: bool = False, **args: Any
) -> dict[str, Any]:
    place = {"pid": 0, "tid": 7} if gpu else {"pid": 901, "tid": 901}
    return {"ph": "X", "cat": cat, "name": name, **place, "ts": ts, "dur": dur, "args": args}


def _kernel(name: str, ts: float, dur: float, correlation: int) -> dict[str, Any]:
    return _event(
        "kernel", name, ts, dur, gpu=True, device=0, context=1, stream=7, correlation=correlation,
        **{"registers per thread": 168, "shared memory": 98304, "warps per SM": 7.757576},
        grid=[132, 1, 1], block=[384, 1, 1], **{"est. achieved occupancy %": 11},
    )  # fmt: skip


def _arrows(start: float, end: float, correlation: int) -> list[dict[str, Any]]:
    both = {"id": correlation, "cat": "ac2g", "name": "ac2g"}
    return [
        {"ph": "s", "pid": 901, "tid": 901, "ts": start, **both},
        {"ph": "f", "pid": 0, "tid": 7, "ts": end, **both, "bp": "e"},
    ]


def stacked_step() -> list[dict[str, Any]]:
    """Decode by graph replay, with the Python stacks of the scheduler around it."""
    found = [_event("user_annotation", "execute_context_0(0)_generation_32(32)", 0, 9000)]
    for i in range(3300):
        name = f"vllm/v1/worker/gpu_model_runner.py({i % 400}): _prepare_inputs_{i % 40}"
        args = {"Python parent id": i // 3, "Python id": i, "Ev Idx": i}
        found.append(_event("python_function", name, i * 2.5, 40.125, **args))
    for i in range(160):
        dims = {"Input Dims": [[32, 4096], [4096, 4096]], "Input type": ["c10::BFloat16"] * 2}
        found.append(_event("cpu_op", "aten::copy_", i * 50.0, 8.25, **{"External id": i}, **dims))
    for i in range(40):
        at = i * 200.0
        found.append(_event("cuda_runtime", "cudaLaunchKernel", at, 5.5, cbid=211, correlation=i))
        found += [_kernel(_CUTLASS.format(64, i % 9), at + 90, 12.5, i), *_arrows(at, at + 90, i)]
    found.append(_event("cuda_runtime", "cudaGraphLaunch", 8100, 350.5, cbid=311, correlation=77))
    for i in range(180):
        at = 8500 + i * 20.0
        found += [_kernel(_CUTLASS.format(128, i % 20), at, 19.875, 77), _arrows(8100, at, 77)[1]]
    return found


def plain_step() -> list[dict[str, Any]]:
    """Eager: a launch and a kernel for each of many operators, with records of memory."""
    found = [_event("user_annotation", "ProfilerStep#5", 0, 90_000)]
    for i in range(1000):
        at = i * 90.0
        found += [
            _event("cpu_op", name, at, 60.5, **{"External id": i, "Ev Idx": i})
            for name in ("aten::linear", "aten::matmul", "aten::mm")[: 2 + i % 2]
        ]
        found += [
            _event("cuda_runtime", call, at + 9, 4.5, cbid=211, correlation=i)
            for call in ("cudaLaunchKernel", "cudaEventRecord")
        ]
        found += [_kernel(_CUTLASS.format(256, i % 25), at + 40, 45.5, i), *_arrows(at, at + 40, i)]
        found.append(
            {
                "ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 901,
                "tid": 901, "ts": at, "args": {"Total Allocated": i, "Bytes": 512},
            }
        )  # fmt: skip
    return found


def events_of(paths: list[str]) -> list[dict[str, Any]]:
    """The events of real traces, one after the other."""
    found: list[dict[str, Any]] = []
    for path in paths:
        data = Path(path).read_bytes()
        text = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
        some = json.loads(text.decode("utf-8", "replace"), strict=False)["traceEvents"]
        timed = [one for one in some if isinstance(one.get("ts"), int | float)]
        first = min(one["ts"] for one in timed)
        end = max((one["ts"] + one.get("dur", 0) for one in found), default=0.0)
        found += [one | {"ts": one["ts"] - first + end + 100} for one in timed]
    return found


def _pieces(event: dict[str, Any]) -> tuple[str, str]:
    """An event's text before and behind its time, as PyTorch's profiler lays it out."""
    told = {key: value for key, value in event.items() if key not in ("ts", "dur", "args")}
    before = "  {\n    " + ", ".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in told.items())
    behind = f', "dur": {event["dur"]:.3f}' if "dur" in event else ""
    if event.get("args"):
        args = ", ".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in event["args"].items())
        behind += f',\n    "args": {{\n      {args}\n    }}'
    return f'{before},\n    "ts": ', f"{behind}\n  }}"


def write(path: Path, megabytes: float, events: list[dict[str, Any]]) -> int:
    """The events again and again; gives the size of the text."""
    unit = [(*_pieces(event), event["ts"]) for event in events]
    length = max(event["ts"] + event.get("dur", 0) for event in events) + 100
    size, start, before = 0, 1_000_000.0, json.dumps(_HEAD)[:-1] + ',\n  "traceEvents": [\n'
    with gzip.open(path, "wb", 6) as stream:
        while size < megabytes * 1e6:
            text = ",\n".join([f"{a}{start + ts:.3f}{b}" for a, b, ts in unit])
            size += stream.write((before + text).encode())
            start, before = start + length, ",\n"
        size += stream.write(b'\n  ],\n  "traceName": "/tmp/trace.json"\n}\n')
    return size


def compare(title: str, path: Path, size: int, hta: str | None) -> None:
    """One trace: ours, the bare loader, and HolisticTraceAnalysis."""
    code = (sys.executable, "-c")
    ours = best(cost, *code, OURS, str(path), str(path.with_suffix(".duckdb")))
    bare = best(cost, *code, _BARE, str(path))
    print(f"{title}, {size / 1e6:,.0f} MB of JSON, {path.stat().st_size / 1e6:,.0f} MB packed")
    rows: list[tuple[str, Cost]] = [("ours, into a case", ours), ("bare loader", bare)]
    if hta:
        rows.append(("HTA", best(cost, hta, "-c", _HTA, str(path), times=1)))
    for name, one in rows:
        wall, cpu = one.wall_s / ours.wall_s, one.cpu_s / ours.cpu_s
        print(f"  {name:18} {one}   {wall:6.2f} {cpu:6.2f} of ours", flush=True)


def main() -> None:
    """Print both rows; numbers are of this machine and this run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=float, default=500)
    parser.add_argument("--hta", metavar="PYTHON", help="one that has HolisticTraceAnalysis")
    parser.add_argument("--stacks", nargs="*", metavar="TRACE", help="real steps with stacks")
    parser.add_argument("--plain", nargs="*", metavar="TRACE", help="real steps without stacks")
    options = parser.parse_args()
    kinds = (
        ("decode with Python stacks", options.stacks, stacked_step),
        ("eager, full of kernels", options.plain, plain_step),
    )
    with tempfile.TemporaryDirectory(prefix="analyze-bench-") as folder:
        for title, real, made in kinds:
            path = Path(folder) / "trace.json.gz"
            size = write(path, options.megabytes, events_of(real) if real else made())
            compare(title, path, size, options.hta)


if __name__ == "__main__":
    main()

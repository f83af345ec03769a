"""Profiler traces as Kineto writes them, one rank a file, built a step at a time."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

GEMM = "nvjet_tst_192x8_64x12_2x1_v_bz_TNT"
ATTENTION = "void flash::flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<128, 64, 128, 4>>(params)"
NORM = "void vllm::rms_norm_kernel<c10::BFloat16>(c10::BFloat16*, float, int)"
ARGMAX = "void at::native::reduce_kernel<512, 1, ReduceOp<float, at::native::ArgMaxOps<float>>>"
ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
DEQUANTIZE = "void kDequantizeBlockwise<__nv_bfloat16, 512, 64, 8, 1>(float*, unsigned char*)"
COPY = "Memcpy HtoD (Pinned -> Device)"
BASE_NS = 1_767_189_312_000_000_000
"""What recent writers count times from."""


@dataclass
class Trace:
    """Events of one rank; times are microseconds."""

    rank: int = 0
    world: int | None = None
    offset_us: float = 0.0
    """The rank's clock is ahead by this."""
    wall: bool = False
    events: list[dict[str, Any]] = field(default_factory=list)
    correlation: int = 0

    def _add(
        self, cat: str, name: str, pid: int, tid: int, at: float, dur: float, **args: Any
    ) -> None:
        event = {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid,
                 "ts": round(at + self.offset_us, 3), "dur": round(dur, 3)}  # fmt: skip
        self.events.append(event | ({"args": args} if args else {}))

    def annotation(self, name: str, at: float, dur: float) -> None:
        """A step, on the thread that launches."""
        self._add("user_annotation", name, 9, 9, at, dur)

    def op(self, name: str, at: float, dur: float) -> None:
        """What the host does."""
        self._add("cpu_op", name, 9, 9, at, dur)

    def launch(self, at: float, *, graph: bool = False, dur: float = 6.0) -> int:
        """A call that launches; its correlation."""
        self.correlation += 1
        name = "cudaGraphLaunch" if graph else "cudaLaunchKernel"
        self._add("cuda_runtime", name, 9, 9, at, dur, correlation=self.correlation)
        return self.correlation

    def kernel(self, name: str, at: float, dur: float, correlation: int, stream: int = 7) -> None:
        """A kernel, or a copy by its name."""
        cat = "gpu_memcpy" if name.startswith("Memcpy") else "kernel"
        args: dict[str, Any] = {"device": 0, "stream": stream, "correlation": correlation}
        if cat == "gpu_memcpy":
            args["bytes"] = int(dur * 20_000)
        self._add(cat, name, 0, stream, at, dur, **args)

    def write(self, folder: Path, name: str = "", *, cut: int | None = None) -> None:
        """The file; ``cut`` leaves out that many characters at its end."""
        facts: dict[str, Any] = {
            "schemaVersion": 1,
            "deviceProperties": [{"id": 0, "name": "SYN-90"}],
        }
        if self.world is not None:
            facts["distributedInfo"] = {"rank": self.rank, "world_size": self.world}
        if self.wall:
            facts["baseTimeNanoseconds"] = BASE_NS
        text = json.dumps(facts | {"traceEvents": self.events})
        path = folder / (name or f"rank{self.rank}.pt.trace.json")
        path.write_text(text if cut is None else text[:-cut], encoding="utf-8")


def eager(
    trace: Trace, at: float, names: Iterable[tuple[str, float]], every: float, lag: float = 8.0
) -> float:
    """One launch a kernel, ``every`` so many microseconds; kernels wait for each other. Its end."""
    free = at
    for k, (name, dur) in enumerate(names):
        called = at + k * every
        begin = max(free, called + lag)
        trace.kernel(name, begin, dur, trace.launch(called))
        free = begin + dur
    return free


def replay(
    trace: Trace, at: float, names: Iterable[tuple[str, float]], lag: float = 20.0, gap: float = 0.0
) -> float:
    """One launch of a graph, its kernels back to back. Its end."""
    correlation = trace.launch(at, graph=True)
    begin = at + lag
    for name, dur in names:
        trace.kernel(name, begin, dur, correlation)
        begin += dur + gap
    return begin - gap

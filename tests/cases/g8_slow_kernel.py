"""Decode steps with work on their path that a better kernel would not do.

main: 30 steps of 40 layers; each layer converts its weights (45 us) before a GEMM of 60 us: 1.8 ms
of 4.6 ms a step, 10 us a layer being something else.

twin: the GEMM reads the quantised weights itself.

copied: 2.4 ms of copies from main memory before the graph, in a step of 7.4 ms. fetched: every
layer waits for a copy of 30 us.

beside: the same copies on another stream while kernels run. activations: 3 us a layer quantise the
activations. prompts: only prefill converts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cases._build import expect, silent
from cases._traces import COPY, DEQUANTIZE, GEMM, NORM, Trace, replay
from cases.g3_launch_bound import ALL

if TYPE_CHECKING:
    from pathlib import Path

OTHERS = [rule for rule in ALL if rule != "decode.slow-kernel"]
QUANTIZED = (
    "void vllm::dynamic_per_token_scaled_fp8_quant_kernel<c10::BFloat16>(float*, float*, int)"
)


def _layers(*kernels: tuple[str, float]) -> list[tuple[str, float]]:
    return list(kernels) * 40


def _steps(
    trace: Trace, names: list[tuple[str, float]], steps: int = 30, copy: float = 0.0,
    name: str = "step_{k}", start: float = 10_000.0,
) -> float:  # fmt: skip
    """``copy`` runs before the graph, which waits for it. The end."""
    at = start
    for k in range(steps):
        begin = at
        if copy:
            trace.kernel(COPY, at + 12, copy, trace.launch(at + 2))
            at += copy
        at = replay(trace, at + 10, names, lag=10)
        trace.annotation(name.format(k=k), begin, at - begin - 5)
    return at


def main(folder: Path) -> None:
    """Converted each time."""
    trace = Trace()
    _steps(trace, _layers((NORM, 10), (DEQUANTIZE, 45), (GEMM, 60)))
    trace.write(folder)


def twin(folder: Path) -> None:
    """Fused."""
    trace = Trace()
    _steps(trace, _layers((NORM, 10), ("void marlin::Marlin<__nv_bfloat16, 128, 4, 8>(int4*)", 64)))
    trace.write(folder)


def copied(folder: Path) -> None:
    """Before the graph."""
    trace = Trace()
    _steps(trace, _layers((NORM, 10), (GEMM, 115)), copy=2_400)
    trace.write(folder)


def fetched(folder: Path) -> None:
    """In every layer."""
    trace = Trace()
    _steps(trace, _layers((NORM, 10), (COPY, 30), (GEMM, 60)), 25)
    trace.write(folder)


def beside(folder: Path) -> None:
    """Hidden."""
    trace = Trace()
    at = 10_000.0
    for k in range(30):
        trace.annotation(f"step_{k}", at, 5_015)
        replay(trace, at + 10, _layers((NORM, 10), (GEMM, 115)), lag=10)
        trace.kernel(COPY, at + 40, 4_000, trace.launch(at + 16), stream=14)
        at += 5_020
    trace.write(folder)


def activations(folder: Path) -> None:
    """A few hundredths."""
    trace = Trace()
    _steps(trace, _layers((NORM, 8), (QUANTIZED, 3), (GEMM, 70)))
    trace.write(folder)


def prompts(folder: Path) -> None:
    """No decode step does."""
    trace = Trace()
    at = 10_000.0
    for _ in range(4):
        at = _steps(
            trace,
            _layers((DEQUANTIZE, 200), (GEMM, 300)),
            1,
            0.0,
            "step[EXTEND bs=1 toks=2048]",
            at,
        )
        at = _steps(trace, _layers((NORM, 10), (GEMM, 80)), 9, 0.0, "step[DECODE bs=4]", at)
    trace.write(folder)


def _found(steps: int, ms: float, *said: str) -> dict[str, object]:
    found = expect("decode.slow-kernel", "decode", steps, ms, "ms", must_not=OTHERS)
    return found | {"said": list(said)}


CASES = {
    "main": (main, _found(30, 1.8, DEQUANTIZE) | {"told": [40]}),
    "twin": (twin, silent(ALL)),
    "copied": (copied, _found(30, 2.4, COPY) | {"told": [48e6]}),
    "fetched": (fetched, _found(25, 1.2, COPY)),
    "beside": (beside, silent(ALL)),
    "activations": (activations, silent(ALL)),
    "prompts": (prompts, silent(ALL)),
}

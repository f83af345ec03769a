"""The thread that launches does something else between steps, and the device has nothing to do.

main: 60 steps of 14 ms; a graph of 40 kernels takes 3.2 ms, then build_batch takes 10.5 ms of the
host. The device is idle for 10.8 ms a step.

twin: the same operator beside a graph of 13.5 ms: it is hidden.

eager: 100 launches a step every 12 us with kernels of 20 us, then 6 ms of apply_grammar. nested:
the operator lies inside another that encloses the launches, too. ranks: two ranks. wall: SGLang's
names. unnamed: nothing tells what the host does. prompts: only prefill steps wait.

quiet: three bursts of ten steps, a second apart: there was nothing to do. small: 0.6 ms of 9 ms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cases._build import expect, silent
from cases._traces import ATTENTION, GEMM, Trace, eager, replay
from cases.g3_launch_bound import ALL

if TYPE_CHECKING:
    from pathlib import Path

OTHERS = [rule for rule in ALL if rule != "decode.host-bound"]


def _graph(total: float, count: int = 40) -> list[tuple[str, float]]:
    return [(GEMM if k % 3 else ATTENTION, total / count) for k in range(count)]


def _steps(
    trace: Trace, steps: int, period: float, busy: float, op: tuple[str, float, float] | None,
    name: str = "step_{k}", start: float = 40_000.0,
) -> None:  # fmt: skip
    """``op`` begins so long after the step, and takes so long."""
    for k in range(steps):
        at = start + k * period
        trace.annotation(name.format(k=k), at, period - 20)
        replay(trace, at + 60, _graph(busy), lag=40)
        if op is not None:
            trace.op(op[0], at + op[1], op[2])


def main(folder: Path) -> None:
    """Behind the graph."""
    trace = Trace()
    _steps(trace, 60, 14_000, 3_200, ("build_batch", 3_400, 10_500))
    trace.write(folder)


def twin(folder: Path) -> None:
    """Beside it."""
    trace = Trace()
    _steps(trace, 60, 14_000, 13_500, ("build_batch", 400, 10_500))
    trace.write(folder)


def eager_steps(folder: Path) -> None:
    """Launching is fast enough; the operator is not."""
    trace = Trace()
    for k in range(30):
        at = 7_000 + k * 8_200
        trace.annotation(f"step_{k}", at - 3, 8_190)
        end = eager(trace, at, [(GEMM, 20)] * 100, 12)
        trace.op("apply_grammar", end + 50, 6_000)
    trace.write(folder)


def nested(folder: Path) -> None:
    """The inner one is to blame."""
    trace = Trace()
    _steps(trace, 50, 20_000, 5_000, ("detokenize", 5_200, 14_500))
    for k in range(50):
        trace.op("event_loop", 40_000 + k * 20_000 + 5, 19_960)
    trace.write(folder)


def ranks(folder: Path) -> None:
    """Each by itself."""
    for rank in range(2):
        trace = Trace(rank=rank, world=2, offset_us=rank * 3_000)
        _steps(trace, 20, 16_000, 6_000, ("schedule", 6_200, 9_600))
        trace.write(folder)


def wall(folder: Path) -> None:
    """SGLang."""
    trace = Trace(wall=True)
    _steps(trace, 40, 11_000, 4_000, ("process_batch_result", 4_200, 6_700), "step[DECODE bs=16]")
    trace.write(folder)


def unnamed(folder: Path) -> None:
    """Operators were not recorded."""
    trace = Trace()
    _steps(trace, 40, 9_000, 3_000, None)
    trace.write(folder)


def prompts(folder: Path) -> None:
    """Decode steps follow each other closely."""
    trace = Trace()
    for k in range(40):
        late = 12_000 if k % 4 == 0 else 0
        at = 50_000 + k * 9_000 + (k // 4 + 1) * 12_000 - late
        name = "step[EXTEND bs=1 toks=900]" if late else "step[DECODE bs=8]"
        trace.annotation(name, at, late + 8_990)
        replay(trace, at + late + 30, _graph(8_800), lag=30)
    trace.write(folder)


def quiet(folder: Path) -> None:
    """Bursts."""
    trace = Trace()
    for burst in range(3):
        _steps(trace, 10, 6_000, 5_800, None, f"step_{burst}{{k}}", 40_000.0 + burst * 1_000_000)
    trace.write(folder)


def small(folder: Path) -> None:
    """Seven hundredths."""
    trace = Trace()
    _steps(trace, 50, 9_000, 8_400, ("schedule", 8_500, 450))
    trace.write(folder)


def _found(steps: int, ms: float, *said: str) -> dict[str, object]:
    found = expect("decode.host-bound", "decode", steps, ms, "ms", must_not=OTHERS)
    return found | {"said": list(said)}


CASES = {
    "main": (main, _found(60, 10.8, "build_batch") | {"told": [10.5e6]}),
    "twin": (twin, silent(ALL)),
    "eager": (eager_steps, _found(30, 8.2 - 2.0, "apply_grammar")),
    "nested": (nested, _found(50, 15.0, "detokenize")),
    "ranks": (ranks, _found(40, 10.0, "schedule")),
    "wall": (wall, _found(40, 7.0, "process_batch_result")),
    "unnamed": (unnamed, _found(40, 6.0)),
    "prompts": (prompts, silent(ALL)),
    "quiet": (quiet, silent(ALL)),
    "small": (small, silent(ALL)),
}

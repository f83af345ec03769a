"""Ollama's server log: calls, loads and unloads, and what the loader placed where."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from analyzer.errors import AnalyzerError, hint_of
from analyzer.simulate.ordered import OrderedLines
from analyzer.simulate.outcome import Base, EngineEvent, LogView, RequestOutcome
from analyzer.simulate.run import view_of
from analyzer.simulate.world import Log, World
from analyzer.simulate.writers import NS

if TYPE_CHECKING:
    from pathlib import Path

_US, _MS, _MIB = 1_000, 1_000_000, 1 << 20
_MINUTE = 60 * NS
_GIVEN_UP = 499


@dataclass(frozen=True, kw_only=True)
class Placement:
    """What a model's loader tells; a size that is 0 has no line."""

    layers: int = 32
    on_gpu: int = 33
    """Of ``layers`` and the output matrix, which counts as one more."""
    gpu_bytes: int = 0
    cpu_bytes: int = 0
    """In main memory, the input embedding with it."""
    embedding: str | None = None
    """Type and shape of the input embedding: ``q4_K [ 5120, 152064, 1, 1 ]``."""
    cells: int = 8192
    slots: int = 1


class OllamaLog(Base):
    """Lines of one server: a ``[GIN]`` line at the end of each call, in whole seconds.

    ``missing = ["calls"]`` is a server that logs no calls, as with ``GIN_MODE=release`` at WARN.
    """

    def __init__(self, path: Path, view: LogView, model: str, placed: Placement) -> None:
        self._lines, self._view = OrderedLines(path), view
        self._model, self._placed = model, placed

    def request(self, outcome: RequestOutcome) -> None:
        """One line a call that reached the server."""
        one, view = outcome, self._view
        if "calls" in view.missing or one.engine_in_ns is None:
            return
        if view.drops(f"{one.request_id}/{one.attempt}"):
            return
        end = one.engine_out_ns if one.engine_out_ns is not None else one.done_ns
        if end is None:
            return
        status = one.status if one.status is not None else _GIVEN_UP
        stamp = datetime.fromtimestamp(view.time(end) // NS, tz=UTC)
        latency = go_duration(end - one.engine_in_ns)
        self._lines.add(
            view.time(end),
            f"[GIN] {stamp:%Y/%m/%d - %H:%M:%S} | {status} | {latency:>12} | "
            f'{"10.0.0.9":>15} | POST     "/api/chat"',
        )

    def event(self, event: EngineEvent) -> None:
        """Loads with the loader's own lines, and unloads."""
        start = self._view.time(event.time_ns)
        if event.kind == "load":
            blob = hashlib.sha256(self._model.encode()).hexdigest()
            self._slog(
                start, "server.go:431", "starting runner",
                f'cmd="/usr/bin/ollama runner --model /models/blobs/sha256-{blob} --port 40001"',
            )  # fmt: skip
            for line in loader_lines(self._placed):
                self._lines.add(start + event.duration_ns // 2, line)
            hundredths = event.duration_ns // (NS // 100)
            told = f"llama runner started in {hundredths // 100}.{hundredths % 100:02d} seconds"
            self._slog(start + event.duration_ns, "server.go:1390", told)
        elif event.kind == "unload":
            self._slog(start, "sched.go:380", "runner released", f"runner.name={self._model}")

    def close(self) -> None:
        """Write the last lines."""
        self._lines.close()

    def _slog(self, at_ns: int, source: str, message: str, rest: str = "") -> None:
        stamp = datetime.fromtimestamp(at_ns // NS, tz=UTC)
        time = f"{stamp:%Y-%m-%dT%H:%M:%S}.{at_ns % NS // _MS:03d}Z"
        line = f'time={time} level=INFO source={source} msg="{message}" {rest}'
        self._lines.add(at_ns, line.rstrip())


def loader_lines(placed: Placement) -> list[str]:
    """llama.cpp's own lines of a load."""
    lines = []
    if placed.embedding:
        lines.append(
            f"llama_model_loader: - tensor    0:                token_embd.weight "
            f"{placed.embedding}"
        )
    lines += [
        f"print_info: n_layer          = {placed.layers}",
        f"load_tensors: offloaded {placed.on_gpu}/{placed.layers + 1} layers to GPU",
    ]
    for name, size in (("CUDA0", placed.gpu_bytes), ("CPU_Mapped", placed.cpu_bytes)):
        if size:
            lines.append(f"load_tensors: {name:>12} model buffer size = {_mib(size)} MiB")
    lines.append(f"llama_context: n_seq_max     = {placed.slots}")
    return lines


def _mib(size: int) -> str:
    hundredths = (100 * size + _MIB // 2) // _MIB
    return f"{hundredths // 100:5d}.{hundredths % 100:02d}"


def go_duration(ns: int) -> str:
    """A duration as Go prints it: ``1m2.5s``, ``15.2s``, ``340.1ms``, ``20.4µs``, ``850ns``."""
    if ns < _US:
        return f"{ns}ns"
    for unit, name in ((_US, "µs"), (_MS, "ms")):
        if ns < unit * 1000:
            return _trimmed(ns, unit) + name
    minutes, rest = divmod(ns, _MINUTE)
    hours, minutes = divmod(minutes, 60)
    head = f"{hours}h{minutes}m" if hours else f"{minutes}m" if minutes else ""
    return f"{head}{_trimmed(rest, NS)}s"


def _trimmed(ns: int, unit: int) -> str:
    whole, rest = divmod(ns, unit)
    digits = str(rest).rjust(len(str(unit)) - 1, "0").rstrip("0")
    return f"{whole}.{digits}" if digits else str(whole)


def recorder(folder: Path, log: Log, world: World) -> OllamaLog:
    """``options`` are the fields of :class:`Placement`, which the loader tells at each load."""
    known = [one.name for one in fields(Placement)]
    for name in log.options:
        if name not in known:
            raise AnalyzerError(f"ollama_log has no option {name!r}", hint_of(name, known))
    path = folder / (log.file or "server.log")
    return OllamaLog(path, view_of(log, world), world.engine.model, Placement(**log.options))

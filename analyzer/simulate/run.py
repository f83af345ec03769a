"""Run a world: arrivals in, outcomes out, one after the other."""

from __future__ import annotations

import copy
import importlib
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analyzer.errors import AnalyzerError, near
from analyzer.simulate._tables import put
from analyzer.simulate.client import Client
from analyzer.simulate.gateway import Gateway, needs_tokens
from analyzer.simulate.job import Hooks
from analyzer.simulate.loop import Loop
from analyzer.simulate.outcome import (
    ClientTick,
    EngineEvent,
    EngineSample,
    LogView,
    PrefillBatch,
    Recorder,
    RequestOutcome,
)
from analyzer.simulate.replica import Replica
from analyzer.simulate.sessions import Session, drawn, gaps, traced
from analyzer.simulate.steps import blocks_of, cost_of
from analyzer.simulate.world import NS_PER_MS, NS_PER_S, Arrivals, Log, World, load

_WORLDS = Path(__file__).parent / "worlds"


@dataclass
class Counts:
    """What a run was, in numbers."""

    attempts: int = 0
    failed: int = 0
    chunks: int = 0
    output_tokens: int = 0
    steps: int = 0
    first_ns: int = 0
    last_ns: int = 0


class Fan:
    """Hands everything to several recorders, and counts."""

    def __init__(self, recorders: list[Recorder]) -> None:
        self.recorders = recorders
        self.counts = Counts()

    def request(self, outcome: RequestOutcome) -> None:
        """One attempt is over."""
        counts = self.counts
        counts.attempts += 1
        counts.failed += outcome.error is not None
        counts.output_tokens += outcome.output_tokens
        counts.chunks += len(outcome.chunk_ns)
        for one in self.recorders:
            one.request(outcome)

    def sample(self, sample: EngineSample) -> None:
        """A replica's state."""
        for one in self.recorders:
            one.sample(sample)

    def event(self, event: EngineEvent) -> None:
        """What a replica did."""
        for one in self.recorders:
            one.event(event)

    def prefill(self, batch: PrefillBatch) -> None:
        """A step with prompts."""
        for one in self.recorders:
            one.prefill(batch)

    def tick(self, tick: ClientTick) -> None:
        """A heartbeat."""
        for one in self.recorders:
            one.tick(tick)

    def close(self) -> None:
        """Everything was told."""
        for one in self.recorders:
            one.close()


def run(world: World, *recorders: Recorder, detail: bool = False, prefills: bool = False) -> Counts:
    """Simulate; ``detail`` follows every chunk, ``prefills`` tells steps. Closes the recorders."""
    # A run changes its world: the same one can be run again.
    world = copy.deepcopy(world)
    loop, fan = Loop(), Fan(list(recorders))
    tokens = detail or needs_tokens(world)
    gateway = Gateway(world, loop, detail=detail)
    hooks = Hooks(gateway.first, gateway.finished, fan.event, fan.prefill if prefills else None)
    for number, replica in enumerate(world.replicas):
        gateway.replicas[replica.name] = Replica(
            replica.name, world.engine_of(replica), loop, hooks, fan,
            start_ns=world.start_ns, tokens=tokens, seed=world.seed * 1000 + number,
        )  # fmt: skip
    client = Client(world, loop, gateway, fan)
    for change in world.change:
        at = world.start_ns + round(change.at_s * NS_PER_S)
        loop.at(at, _Changes(world, gateway).apply, change)
    for number, stream in enumerate(world.arrivals):
        _Source(world, stream, number, loop, client).next(world.start_ns)
    if world.client.tick_s:
        end = world.start_ns + round(world.duration_s * NS_PER_S)
        loop.at(world.start_ns, client.ticks, end)
    fan.counts.first_ns = world.start_ns
    fan.counts.last_ns = loop.run()
    for one in gateway.replicas.values():
        one.close()
        fan.counts.steps += sum(engine.steps for engine in one.ranks)
    fan.close()
    return fan.counts


class _Source:
    """One stream of arrivals, one event ahead."""

    def __init__(
        self, world: World, stream: Arrivals, number: int, loop: Loop, client: Client
    ) -> None:
        self.loop, self.client, self.stream = loop, client, stream
        self.rng = random.Random((world.seed << 16) + number)  # noqa: S311 - a simulation
        self.from_ns = world.start_ns + round(stream.from_s * NS_PER_S)
        until = world.duration_s if stream.until_s is None else stream.until_s
        self.until_ns = world.start_ns + round(until * NS_PER_S)
        self.left = stream.most
        self.number = 0
        self.waits: Iterator[float] = gaps(stream, self.rng)
        self.trace = traced(stream, world) if stream.process == "trace" else None
        self.base_ns = self.from_ns

    def next(self, now: int, _: Any = None) -> None:  # noqa: ANN401 - nothing is passed
        """Plan the next arrival."""
        if self.left is not None and self.number >= self.left:
            return
        if self.trace is not None:
            told = next(self.trace, None)
            if told is not None:
                at = self.from_ns + round(told[0] * NS_PER_S)
                self.loop.at(max(now, at), self._arrive, told[1])
            return
        self.base_ns = max(now, self.from_ns) + round(next(self.waits) * NS_PER_S)
        if self.base_ns < self.until_ns:
            self.loop.at(self.base_ns, self._arrive)

    def _arrive(self, now: int, session: Session | None) -> None:
        if session is None:
            session = drawn(f"{self.stream.kind}-{self.number:06d}", self.stream, self.rng)
        self.number += 1
        self.client.begin(now, session)
        self.next(now)


class _Changes:
    """Sets a field of the running world, and of the engines that are built from it."""

    def __init__(self, world: World, gateway: Gateway) -> None:
        self.world, self.gateway = world, gateway

    def apply(self, _now: int, change: Any) -> None:  # noqa: ANN401 - a Change
        """From now on it is so."""
        put(self.world, change.key, change.value)
        head, _, rest = change.key.partition(".")
        if head == "engine":
            for replica in self.gateway.replicas.values():
                put(replica.setup, rest, change.value, "engine")
                replica.changed()
        elif head == "replicas":
            name, _, rest = rest.partition(".")
            replica = self._replica(name)
            put(replica.setup, rest.removeprefix("set."), change.value, change.key)
            replica.changed()
        elif head == "gateway":
            self.gateway.routes = {one.name: one for one in self.world.gateway.routes}

    def _replica(self, name: str) -> Replica:
        names = list(self.gateway.replicas)
        return self.gateway.replicas[names[int(name)] if name.isdigit() else name]


# --- worlds that ship ----------------------------------------------------------------------------


def shipped() -> list[str]:
    """Names of the worlds that come with the package."""
    return sorted(file.stem for file in _WORLDS.glob("*.toml"))


def world_named(scenario: str, sets: Sequence[str] = (), seed: int | None = None) -> World:
    """World of a TOML file, or one that ships, by its name."""
    path = Path(scenario)
    if path.suffix != ".toml" and not path.is_file():
        names = shipped()
        if scenario not in names:
            meant = near(scenario, names)
            did = f"did you mean {' or '.join(meant)}? " if meant else ""
            raise AnalyzerError(
                f"there is no world {scenario!r}",
                f"{did}Give a TOML file, or one of: {', '.join(names)}",
            )
        path = _WORLDS / f"{scenario}.toml"
    return load(path, sets, seed)


# --- logs ----------------------------------------------------------------------------------------


def view_of(log: Log, world: World) -> LogView:
    """How one log sees the world."""
    return LogView(
        name=log.file or log.format, skew_ns=round(log.skew_ms * NS_PER_MS),
        drift_ppm=log.drift_ppm, epoch_ns=world.start_ns, loss=log.loss,
        missing=frozenset(log.missing), seed=str(world.seed),
    )  # fmt: skip


def formats() -> list[str]:
    """Names of the logs that can be written."""
    files = Path(__file__).parent.glob("write_*.py")
    return sorted(file.stem.removeprefix("write_") for file in files)


def logs_of(world: World) -> list[Log]:
    """Logs that a world writes: those it names, and always its truth."""
    logs = list(world.logs)
    return logs if any(one.format == "truth" for one in logs) else [*logs, Log("truth")]


def simulate(world: World, folder: Path, *more: Recorder) -> Counts:
    """Run a world and write its logs into ``folder``; ``more`` recorders are told as well."""
    logs = logs_of(world)
    modules = [_module(one.format) for one in logs]
    for replica in world.replicas:
        # What has no times or no room is refused before anything is written.
        setup = world.engine_of(replica)
        cost_of(setup)
        blocks_of(setup)
    detail = any(getattr(module, "NEEDS_CHUNKS", False) for module in modules)
    prefills = any(getattr(module, "NEEDS_PREFILLS", False) for module in modules)
    folder.mkdir(parents=True, exist_ok=True)
    recorders: list[Recorder] = []
    try:
        for module, log in zip(modules, logs, strict=True):
            recorders.append(module.recorder(folder, log, world))
        return run(world, *recorders, *more, detail=detail, prefills=prefills)
    except BaseException:
        # Closing twice does no harm; a file left open would.
        for one in recorders:
            one.close()
        raise


def _module(name: str) -> Any:  # noqa: ANN401 - a module with ``recorder``
    known = formats()
    if name not in known:
        raise AnalyzerError(f"no log {name!r} can be written", f"known: {', '.join(known)}")
    return importlib.import_module(f"analyzer.simulate.write_{name}")

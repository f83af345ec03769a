"""vLLM's text log: start, status lines, aborts."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import TextIO

from analyzer.simulate.outcome import Base, EngineSample, LogView, RequestOutcome
from analyzer.simulate.run import view_of
from analyzer.simulate.steps import blocks_of
from analyzer.simulate.world import NS_PER_S, Log, Replica, World
from analyzer.simulate.writers import engine_line, startup_lines, status_message


class VllmLog(Base):
    """Lines of one replica's server, in whole seconds without a year."""

    def __init__(self, file: TextIO, view: LogView, replica: str, pid: int) -> None:
        self.file, self.view, self.replica, self.pid = file, view, replica, pid

    def _line(self, time_ns: int, message: str, where: str) -> None:
        shown = max(0, self.view.time(time_ns))
        self.file.write(engine_line(shown, message, pid=self.pid, where=where) + "\n")

    def sample(self, sample: EngineSample) -> None:
        """A status line; rates are rounded as the engine rounds them."""
        name, _, rank = sample.replica.partition("/")
        if name != self.replica or self.view.drops(f"{sample.replica}/{sample.time_ns}"):
            return
        message = status_message(
            prompt_rate=Decimal(sample.prompt_tokens * NS_PER_S) / sample.interval_ns,
            generation_rate=Decimal(sample.output_tokens * NS_PER_S) / sample.interval_ns,
            running=sample.running,
            waiting=sample.waiting,
            kv_percent=_percent(sample.kv_used_blocks, sample.kv_blocks),
            hit_percent=_percent(sample.hit_tokens, sample.asked_tokens),
        )
        if rank:
            message = message.replace("Engine 000", f"Engine {int(rank):03d}", 1)
        self._line(sample.time_ns, message, "loggers.py:271")

    def request(self, outcome: RequestOutcome) -> None:
        """A line for an abort; those that end well have none here."""
        one = outcome
        gone = one.error == "timeout" and one.engine_in_ns is not None and one.finished_ns is None
        if gone and one.replica == self.replica and one.done_ns is not None:
            message = f"Aborted request(s) {one.request_id}."
            self._line(one.done_ns, message, "async_llm.py:650")

    def close(self) -> None:
        """No more comes."""
        self.file.close()


def _percent(part: int, whole: int) -> Decimal:
    return Decimal(100 * part) / whole if whole else Decimal(0)


def recorder(folder: Path, log: Log, world: World) -> VllmLog:
    """Of the replica that the log names, else of the first."""
    name = log.replica or world.replicas[0].name
    number, replica = _find(world, name)
    setup = world.engine_of(replica)
    path = folder / (log.file or f"{name}.log")
    one = VllmLog(
        path.open("w", encoding="utf-8", newline="\n"), view_of(log, world), name, 411 + 10 * number
    )
    lines = startup_lines(
        one.view.time(world.start_ns),
        model=setup.model,
        capacity_tokens=blocks_of(setup) * setup.block_tokens,
        arguments={
            "max_num_seqs": setup.max_running,
            "max_num_batched_tokens": setup.max_step_tokens,
        },
        pid=one.pid,
    )
    one.file.writelines(line + "\n" for line in lines)
    return one


def _find(world: World, name: str) -> tuple[int, Replica]:
    for number, replica in enumerate(world.replicas):
        if replica.name == name:
            return number, replica
    return 0, world.replicas[0]

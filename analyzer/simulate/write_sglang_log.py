"""SGLang's server log: start, a line for each batch of prompts, and decode lines."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

from analyzer.simulate.outcome import Base, EngineEvent, EngineSample, LogView, PrefillBatch
from analyzer.simulate.run import view_of
from analyzer.simulate.steps import blocks_of
from analyzer.simulate.world import NS_PER_S, Log, World

NEEDS_PREFILLS = True


class SglangLog(Base):
    """Lines of one replica's scheduler; decode lines stand at the status interval."""

    def __init__(self, file: TextIO, view: LogView, replica: str) -> None:
        self.file, self.view, self.replica = file, view, replica

    def line(self, time_ns: int, message: str) -> None:
        """One line, in whole seconds."""
        stamp = datetime.fromtimestamp(self.view.time(time_ns) // NS_PER_S, tz=UTC)
        self.file.write(f"[{stamp:%Y-%m-%d %H:%M:%S} TP0] {message}\n")

    def _mine(self, replica: str, time_ns: int) -> bool:
        name = replica.partition("/")[0]
        return name == self.replica and not self.view.drops(f"{replica}/{time_ns}")

    def prefill(self, batch: PrefillBatch) -> None:
        """A step with prompts; cached tokens are not among the new ones."""
        if not self._mine(batch.replica, batch.time_ns):
            return
        rate = batch.new_tokens * 1e9 / max(1, batch.step_ns)
        self.line(
            batch.time_ns,
            f"Prefill batch, #new-seq: {batch.sequences}, #new-token: {batch.new_tokens}, "
            f"#cached-token: {batch.cached_tokens}, token usage: {batch.kv_used_ratio:.2f}, "
            f"#running-req: {batch.running}, #queue-req: {batch.waiting}, #pending-token: 0, "
            f"cuda graph: False, input throughput (token/s): {rate:.2f}",
        )

    def sample(self, sample: EngineSample) -> None:
        """What decodes."""
        if not self._mine(sample.replica, sample.time_ns) or not sample.running:
            return
        rate = sample.output_tokens * 1e9 / sample.interval_ns
        used = sample.kv_used_blocks / sample.kv_blocks
        self.line(
            sample.time_ns,
            f"Decode batch, #running-req: {sample.running}, "
            f"#token: {sample.kv_used_blocks * sample.block_tokens}, token usage: {used:.2f}, "
            f"cuda graph: {sample.graph}, gen throughput (token/s): {rate:.2f}, "
            f"#queue-req: {sample.waiting}",
        )

    def event(self, event: EngineEvent) -> None:
        """A retraction, as SGLang calls a preemption."""
        if event.kind == "preemption" and self._mine(event.replica, event.time_ns):
            self.line(
                event.time_ns,
                "KV cache pool is full. Retract requests. #retracted_reqs: 1, "
                "#new_tokens_gained: 0, #new_token_ratio: 0.50 -> 0.60",
            )

    def close(self) -> None:
        """No more comes."""
        self.file.close()


def recorder(folder: Path, log: Log, world: World) -> SglangLog:
    """Of the replica that the log names, else of the first."""
    name = log.replica or world.replicas[0].name
    replica = next((one for one in world.replicas if one.name == name), world.replicas[0])
    setup = world.engine_of(replica)
    path = folder / (log.file or f"sglang-{name}.log")
    one = SglangLog(path.open("w", encoding="utf-8", newline="\n"), view_of(log, world), name)
    one.line(
        world.start_ns,
        f"max_total_num_tokens={blocks_of(setup) * setup.block_tokens}, "
        f"chunked_prefill_size={setup.max_step_tokens if setup.chunked else -1}, "
        f"max_prefill_tokens=16384, max_running_requests={setup.max_running}, "
        "context_len=131072, available_gpu_mem=6.00 GB",
    )
    return one

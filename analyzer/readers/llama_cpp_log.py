"""Text log of a llama.cpp server: prefill and decode of each task, and what its loader placed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

import polars as pl
import pyarrow as pa

from analyzer.contract.types import Batch
from analyzer.readers._file import Head, InputFile, Lines
from analyzer.readers._jsonl import Sink
from analyzer.readers._line_log import problem_at, read_log
from analyzer.readers._llama_lines import HOT, lines_of
from analyzer.readers._llama_loader import QUIET as LOADER_QUIET
from analyzer.readers._llama_loader import Loader
from analyzer.readers._llama_tasks import Tasks, columns_of
from analyzer.readers._reader import Claim, Options, Reader
from analyzer.readers._rows import believed, tables_of

_TASK = re.compile(
    rb"slot +(?:print_timing|launch_slot_|update_slots|release|get_availabl): id +-?\d+ \| task "
    rb"|INFO +\[ *(?:print_timings|launch_slot_with_\w+|update_slots)\] "
    rb'|"function":"(?:print_timings|launch_slot_with_\w+)"'
)
_LOADER = re.compile(rb"^(?:\S+ )*?(?:llm_load_tensors|load_tensors|llama_model_loader): ")
_OLLAMA = re.compile(rb"\[GIN\] \d{4}/|time=\S+ level=[A-Z]+ source=\w+\.go:\d+ msg=")
_STAMPED = "task times are those since the process began: the log has no date"


def probe(head: Head) -> Claim:
    """Slot lines of a llama.cpp server, or its model loader's, and nothing of Ollama."""
    if any(_OLLAMA.search(line) for line in head.lines):
        return Claim(0, "it is the log of a Go server")
    if any(_TASK.search(line) for line in head.lines):
        return Claim(1, "")
    if any(_LOADER.search(line) for line in head.lines):
        return Claim(1, "")
    return Claim(0, "no line names a slot and its task, or what the model loader placed")


class _Log:
    def __init__(self, memory: dict[str, Any] | None) -> None:
        memory = memory or {}
        self.tasks = Tasks(memory.get("tasks"))
        self.loader = Loader(**memory.get("loader", {}))

    def memory(self) -> dict[str, Any]:
        return {"tasks": self.tasks.memory(), "loader": asdict(self.loader)}

    def open_records(self) -> tuple[int, ...]:
        load = [self.loader.record] if self.loader.record is not None else []
        return tuple(sorted([*load, *(task["record"] for task in self.tasks.open.values())]))

    def rest(self) -> Mapping[str, pa.Table]:
        rows = []
        for task in self.tasks.open.values():
            row = {"record": task["record"], **columns_of(task)}
            believed(row)
            rows.append(row)
        load = self.loader.row()
        loads = [{"record": load[0], **load[1]}] if load else []
        return tables_of(request=rows, deployment=loads)

    def take(self, block: Lines) -> Batch:
        lines = lines_of(block)
        hot = lines.filter(pl.col("kind").is_in(HOT))
        cold = lines.filter(~pl.col("kind").is_in(HOT)).group_by("kind").len()
        sink = Sink()
        sink.ignored.update(dict(cold.iter_rows()))
        for line in hot.iter_rows(named=True):
            self._one(line, block, sink)
        return sink.batch(len(block.lines))

    def _one(self, line: dict[str, Any], block: Lines, sink: Sink) -> None:
        record, kind = line["record"], line["kind"]
        if kind == "loader":
            used, load = self.loader.take(record, line["text"])
            if load is not None:
                sink.add("deployment", load[0], **load[1])
            if not used:
                sink.ignored[LOADER_QUIET] += 1
        elif kind == "unreadable":
            sink.problems.append(problem_at(record, "not valid JSON", block))
        elif kind == "refused":
            clock = "monotonic" if line["stamp_ns"] is not None else None
            sink.add(
                "request", record, vantage="engine", endpoint=line["path"], status=line["status"],
                deployment=line["port"], start_ns=line["stamp_ns"], clock=clock, error="error",
            )  # fmt: skip
        else:
            done, wrong = self.tasks.take(line)
            if wrong:
                sink.problems.append(problem_at(record, wrong, block))
            for task in done:
                if task.get("clock") == "monotonic":
                    sink.assumed.add(_STAMPED)
                sink.add("request", task["record"], **columns_of(task))


def read(file: InputFile, options: Options) -> Iterator[Batch]:
    """One ``request`` row a task, one ``deployment`` row a load that differs from the last."""
    return read_log(file, options, _Log(options.resume.state if options.resume else None))


READER = Reader(
    title="llama.cpp server log (text, or the JSON lines of old versions)",
    record_unit="line",
    gives=("request", "deployment"),
    probe=probe,
    read=read,
    docs="https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md",
    cannot="the wait for a free slot, so no queue, TTFT or end to end: a task's clock starts when "
    "its slot does; the date (only old versions stamp Unix seconds); ids that any client knows",
    enable="--log-timestamps --log-prefix for times since the start; keep the response bodies "
    "(their timings name the response id) and a client's stream log for TTFT and the wait",
    checked_against="quoted logs of llama.cpp from 2024 to 2026 (three generations); the loader's "
    "lines of a partly offloaded model",
)

"""Ollama's server log: a request a ``[GIN]`` line, loads and unloads, what the loader placed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import polars as pl
import pyarrow as pa

from analyzer.contract.types import Batch
from analyzer.readers._file import Head, InputFile, Lines
from analyzer.readers._jsonl import Sink
from analyzer.readers._line_log import problem_at, read_log
from analyzer.readers._llama_lines import HOT
from analyzer.readers._llama_loader import QUIET as LOADER_QUIET
from analyzer.readers._llama_loader import Loader
from analyzer.readers._llama_tasks import Task, Tasks, columns_of
from analyzer.readers._ollama_lines import OURS, lines_of
from analyzer.readers._reader import Claim, Options, Reader
from analyzer.readers._rows import believed, tables_of
from analyzer.readers._times import DURATIONS, time_to_ns

_GIN = re.compile(rb'\[GIN\] \d{4}/.*"/(?:api/(?:chat|generate|embed|tags|ps|version|show)|v1/)')
_ANY_GIN = re.compile(rb"\[GIN\] \d{4}/")
_SLOG = re.compile(
    rb"time=\S+ level=[A-Z]+ source=(?:routes|sched|server|images|gpu|types|runner|ggml|device"
    rb"|llama_server|memory|amd_linux|common|model|download)\.go:\d+ msg="
)
_SECOND = "requests end at the whole second of their [GIN] line; start is that less the latency"
_REPEATED = "second line of the same load"
_UNMATCHED = "times of a task that fit no one call"
_SLACK_NS = 50_000_000
_MOST_WAITING = 256
_EVENTS = {"unload": "unload", "memory": "out_of_memory", "restart": "restart"}


def probe(head: Head) -> Claim:
    """Access lines of Ollama's endpoints, or lines of its own source files."""
    if any(_SLOG.search(line) or _GIN.search(line) for line in head.lines):
        return Claim(1, "")
    if any(_ANY_GIN.search(line) for line in head.lines):
        return Claim(0.6, "its [GIN] lines name none of Ollama's endpoints")
    return Claim(0, "it has neither Ollama's [GIN] lines nor lines of its source files")


class _Log:
    def __init__(self, options: Options) -> None:
        memory = (options.resume.state if options.resume else None) or {}
        self.zone = options.zone
        self.offset: str | None = memory.get("offset")
        self.loading: bool | None = memory.get("loading")
        self.tasks = Tasks(memory.get("tasks"))
        self.done: list[Task] = memory.get("done", [])
        self.loader = Loader(**memory.get("loader", {}))

    def memory(self) -> dict[str, Any]:
        return {
            "offset": self.offset, "loading": self.loading, "tasks": self.tasks.memory(),
            "done": [dict(task) for task in self.done], "loader": asdict(self.loader),
        }  # fmt: skip

    def open_records(self) -> tuple[int, ...]:
        load = [self.loader.record] if self.loader.record is not None else []
        return tuple(sorted([*load, *(task["record"] for task in self._pending())]))

    def _pending(self) -> list[Task]:
        return [*self.done, *self.tasks.open.values()]

    def rest(self) -> Mapping[str, pa.Table]:
        """Tasks whose call has not ended yet; a log cut off ends among them."""
        rows = []
        for task in self._pending():
            row = {"record": task["record"], **columns_of(task)}
            believed(row)
            rows.append(row)
        load = self.loader.row()
        loads = [{"record": load[0], **load[1]}] if load else []
        return tables_of(request=rows, deployment=loads)

    def take(self, block: Lines) -> Batch:
        lines = lines_of(block)
        is_hot = pl.col("kind").is_in([*HOT, *OURS])
        cold = lines.filter(~is_hot).group_by("kind").len()
        sink = Sink()
        sink.ignored.update(dict(cold.iter_rows()))
        if self.offset is None:  # the first lines may be calls
            self.offset = next(iter(lines["offset"].drop_nulls()), None)
        for line in lines.filter(is_hot).iter_rows(named=True):
            if line["kind"] in OURS:
                self._ours(line, block, sink)
            else:
                self._runner(line, block, sink)
        return sink.batch(len(block.lines))

    def _ours(self, line: dict[str, Any], block: Lines, sink: Sink) -> None:
        record, kind = line["record"], line["kind"]
        self.offset = line["offset"] or self.offset
        if kind == "broken":
            reason = "a line without a time that exists, or without a duration"
            sink.problems.append(problem_at(record, reason, block))
        elif kind == "call":
            self._call(line, sink)
        elif kind == "begin":
            self.loading = True
            self._loader(record, line["text"], sink)
            sink.ignored["load that begins"] += 1
        elif kind == "load" and self.loading is False:
            sink.ignored[_REPEATED] += 1  # newer versions write the line twice a load
        elif kind == "load":
            self.loading = False
            began = line["time_ns"] - line["dur_ns"]
            sink.add("engine_event", record, time_ns=began, kind="load", dur_ns=line["dur_ns"])
        else:
            sink.add("engine_event", record, time_ns=line["time_ns"], kind=_EVENTS[kind])

    def _loader(self, record: int, text: str, sink: Sink) -> bool:
        used, load = self.loader.take(record, text)
        if load is not None:
            sink.add("deployment", load[0], **load[1])
        return used

    def _runner(self, line: dict[str, Any], block: Lines, sink: Sink) -> None:
        record, kind = line["record"], line["kind"]
        if kind == "loader":
            if not self._loader(record, line["text"], sink):
                sink.ignored[LOADER_QUIET] += 1
        elif kind == "unreadable":
            sink.problems.append(problem_at(record, "not valid JSON", block))
        elif kind == "refused":
            sink.ignored["runner's answer, which the server's own line tells again"] += 1
        else:
            done, wrong = self.tasks.take(line)
            if wrong:
                sink.problems.append(problem_at(record, wrong, block))
            self.done += done
            while len(self.done) > _MOST_WAITING:
                task = self.done.pop(0)
                sink.add("request", task["record"], **columns_of(task))

    def _call(self, line: dict[str, Any], sink: Sink) -> None:
        """A call, with the one task that has ended since the last call and fits inside it."""
        end = self._end(line["naive"], sink)
        sink.assumed.add(_SECOND)
        row = {
            "vantage": "engine", "endpoint": line["path"], "clock": "wall",
            "start_ns": end - line["dur_ns"] if end is not None else None, "timing": "stated",
            "e2e_ns": line["dur_ns"], "status": line["status"],
        }  # fmt: skip
        if line["status"] >= 400:
            row["error"] = f"http {line['status']}"
        record = line["record"]
        fitting = [task for task in self.done if _took(task) <= line["dur_ns"] + _SLACK_NS]
        if len(fitting) == 1:
            (task,) = fitting
            self.done.remove(task)
            told = columns_of(task)
            del told["start_ns"], told["clock"], told["timing"]
            row |= {name: value for name, value in told.items() if value is not None}
            record = task["record"]
        elif fitting:
            sink.assumed.add(_UNMATCHED)
            self.done = [task for task in self.done if task not in fitting]
        sink.add("request", record, **row)

    def _end(self, naive: datetime, sink: Sink) -> int | None:
        if self.zone is not None:
            zone, why = self.zone, "as the option says"
            text = naive.isoformat()
            ns = time_to_ns(text, zone)
        else:
            zone, why = self.offset or "UTC", "as its other lines have it"
            if self.offset is None:
                why = "for want of a better"
            offset = "Z" if zone == "UTC" else zone
            ns = time_to_ns(naive.replace(tzinfo=UTC).strftime("%Y-%m-%dT%H:%M:%S") + offset)
        sink.assumed.add(f"its [GIN] times name no zone: {zone} was taken, {why}")
        return ns


def _took(task: Task) -> int:
    took = (task.get("prefill_ns") or 0) + (task.get("decode_ns") or 0)
    return int(took) if took in DURATIONS else DURATIONS.last


def read(file: InputFile, options: Options) -> Iterator[Batch]:
    """One ``request`` row a call that runs a model, events of loads, what each load placed."""
    return read_log(file, options, _Log(options))


READER = Reader(
    title="Ollama server log (text)",
    record_unit="line",
    gives=("request", "engine_event", "deployment"),
    probe=probe,
    read=read,
    docs="https://github.com/ollama/ollama/blob/main/docs/troubleshooting.mdx",
    cannot="queue, load, prefill and decode of a call, unless the runner's slot lines are there; "
    "tokens and model; less than a second, and the zone of [GIN] lines; unloads without "
    "OLLAMA_DEBUG=1",
    enable='OLLAMA_DEBUG=1, and keep {"sent_at": ..., "response": ...} of each call: the final '
    "object has all durations",
    checked_against="quoted logs of Ollama from 2024 to 2026; the loader's lines of a partly "
    "offloaded model",
)

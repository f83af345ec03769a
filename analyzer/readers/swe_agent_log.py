"""SWE-agent's run log: tokens, cost and time of each call, between the texts of the run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from analyzer.contract.types import Batch
from analyzer.readers._file import Head, InputFile, Lines
from analyzer.readers._jsonl import Bad, Sink, usd
from analyzer.readers._line_log import BLANK, problem_at, read_log
from analyzer.readers._reader import Claim, Options, Reader
from analyzer.readers._times import DURATIONS

_STAMP = rb"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}) [A-Z]+ "
_LINE = re.compile(_STAMP + rb"(.*)", re.DOTALL)
_CALL = re.compile(
    rb"input_tokens=([\d,]{1,20}), output_tokens=([\d,]{1,20}), "
    rb"instance_cost=([\d.,]+), cost=([\d.,]{1,24})\s*"
)
_TASK = re.compile(rb"\S+\s+Beginning task (\d+) (\S+)\s*")
_MODEL = re.compile(rb"\s+model_name: (\S+)\s*")
_FIRST = re.compile(_STAMP + rb"\S+ Arguments: ")
_ANY_CALL = re.compile(rb"(?m)^" + _STAMP + rb"input_tokens=[\d,]+, output_tokens=")
_TEXT = "text of the run, which holds no call"
_SUM = "running total, which the calls add up to"
_CENTS = "costs are those of the log, which rounds each to cents"
_MODEL_CHARS, _NAME_CHARS = 200, 300


def probe(head: Head) -> Claim:
    """Begins with SWE-agent's arguments, or has its lines of tokens and cost."""
    first = head.lines[0] if head.lines else b""
    if _FIRST.match(first) and b"agent:" in head.data[:4096]:
        return Claim(1, "")
    if b"instance_cost=" in head.data and _ANY_CALL.search(head.data):
        return Claim(1, "")
    if _LINE.match(first):
        return Claim(0.3, "it has no line of tokens and cost")
    return Claim(0, "it has neither SWE-agent's arguments nor its lines of tokens and cost")


class _Run:
    """A log under way; what it carries on is plain JSON."""

    def __init__(self, zone: str | None, memory: Any) -> None:  # noqa: ANN401 - its own, as JSON
        self._zone = zone
        carried = memory if isinstance(memory, dict) else {}
        self._model: str | None = carried.get("model")
        self._task: str | None = carried.get("task")
        self._turn: int = carried.get("turn", 0)
        self._sent: str | None = carried.get("sent")

    def memory(self) -> dict[str, Any]:
        return {"model": self._model, "task": self._task, "turn": self._turn, "sent": self._sent}

    def open_records(self) -> tuple[int, ...]:
        return ()

    def rest(self) -> Mapping[str, pa.Table]:
        return {}

    def take(self, block: Lines) -> Batch:
        """Only lines with a time and a level are the program's own."""
        sink = Sink(zone=self._zone)
        for index, line in enumerate(block.lines):
            record = block.first_record + index
            found = _LINE.match(line) if line[:2] == b"20" else None
            if found is None:
                self._argument(line)
                sink.ignored[_TEXT if line.strip() else BLANK] += 1
                continue
            try:
                self._event(found[1].decode(), found[2], record, sink)
            except Bad as bad:
                sink.problems.append(problem_at(record, str(bad), block))
        return sink.batch(block.count)

    def _argument(self, line: bytes) -> None:
        if self._model is None and self._task is None and (found := _MODEL.fullmatch(line)):
            self._model = found[1].decode("utf-8", "replace")[:_MODEL_CHARS]

    def _event(self, stamp: str, text: bytes, record: int, sink: Sink) -> None:
        if text.startswith(b"input_tokens="):
            self._call(stamp, text, record, sink)
            return
        if text.startswith(b"total_tokens_sent="):
            sink.ignored[_SUM] += 1
            return
        if b"MODEL INPUT" in text[:24]:
            self._sent = stamp
        elif found := _TASK.fullmatch(text):
            self._task, self._turn = found[2].decode("utf-8", "replace")[:_NAME_CHARS], 0
            self._sent = None
        sink.ignored[_TEXT] += 1

    def _call(self, stamp: str, text: bytes, record: int, sink: Sink) -> None:
        found = _CALL.fullmatch(text)
        if found is None:
            raise Bad("a line of tokens and cost that cannot be read")
        end = sink.needed_time("time", stamp)
        start = sink.needed_time("time", self._sent) if self._sent else None
        took = end - start if start is not None and end >= start else None
        if took is not None and took not in DURATIONS:
            took = None
        asked, made, _, cost = (one.replace(b",", b"").decode() for one in found.groups())
        amount = usd(cost)
        self._sent = None
        self._turn += 1
        sink.assumed.add(_CENTS)
        sink.add(
            "request",
            record,
            vantage="client",
            session_id=self._task,
            turn=self._turn,
            model=self._model,
            start_ns=start if took is not None else None,
            clock="wall",
            timing="stamps" if took is not None else None,
            e2e_ns=took,
            input_fresh_tokens=int(asked or -1),
            output_visible_tokens=int(made or -1),
            usage_convention="inclusive",
            reported_cost_usd=amount,
        )


def read(file: InputFile, options: Options) -> Iterator[Batch]:
    """One ``request`` row a call."""
    memory = options.resume.state if options.resume else None
    return read_log(file, options, _Run(options.zone, memory))


READER = Reader(
    title="SWE-agent run logs (run-*.log)",
    record_unit="line",
    gives=("request",),
    probe=probe,
    read=read,
    docs="https://github.com/SWE-agent/SWE-agent",
    cannot="time to first token; what was cached; retries inside a call, which its time includes; "
    "a cost finer than a cent",
    enable="it is written to the folder of trajectories; put a gateway's log beside it for TTFT",
    checked_against="a published run of 8 instances with 124 calls: tokens, logged cost, calls",
    facts=(
        ("start", "the MODEL INPUT line before a call; its end is the line of its tokens"),
        ("zone", "times name none: --zone"),
    ),
)

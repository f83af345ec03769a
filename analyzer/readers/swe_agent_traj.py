"""SWE-agent trajectories (``.traj``): the steps of one instance and what they cost together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from analyzer.contract.types import Batch
from analyzer.readers._document import top_level
from analyzer.readers._file import Head, InputFile
from analyzer.readers._json_stream import Item
from analyzer.readers._jsonl import Bad, Sink
from analyzer.readers._loadgen import Requests, object_item
from analyzer.readers._part_bodies import prompt_of
from analyzer.readers._parts import write_prompt
from analyzer.readers._prefix import stem_of
from analyzer.readers._reader import Claim, Options, Reader
from analyzer.readers._rows import int_or_none, text_or_none
from analyzer.readers._thread import Thread

_KEYS = ("environment", "trajectory", "history", "info")
_HISTORY = (
    "where a step does not tell its query, the lengths of its prompt are of the steps before it: "
    "without the task and the system prompt, and before SWE-agent shortens old observations"
)
_TOLD = ("assistant_chars", "tool_result_chars")
_STATS = ("tokens_sent", "tokens_received", "api_calls", "instance_cost")


def probe(head: Head) -> Claim:
    """An object with ``trajectory`` of steps with ``action``, ``observation`` and ``response``."""
    if b'"trajectory"' not in head.data or b'"observation"' not in head.data:
        return Claim(0, "it has no trajectory of actions and observations")
    top = top_level(head.data)
    if "trajectory" not in top:
        return Claim(0.2, "its trajectory is no list of its own")
    missing = [key for key in _KEYS if key not in top]
    if head.whole and missing:
        return Claim(0.6, f"it lacks {', '.join(missing)}")
    if b'"action"' not in head.data:
        return Claim(0.6, "its steps lack an action")
    return Claim(1, "")


class _Steps:
    """The steps of one file, and what it tells of all of them together."""

    def __init__(self, session: str) -> None:
        self.session = session
        self.turns = 0
        self.said = Thread()
        self.told: dict[str, Any] = {}

    def see(self, item: Item) -> None:
        if item.path == ("info",) and isinstance(item.value, dict):
            stats = item.value.get("model_stats")
            self.told = stats if isinstance(stats, dict) else {}

    def take(self, item: Item, record: int, sink: Sink) -> None:
        value = object_item(item)
        response = value.get("response")
        if not isinstance(response, str):
            raise Bad("a step without the model's response")
        self.turns += 1
        asked = prompt_of(value.get("query"))
        made_of = write_prompt(sink, record, asked)
        if asked is None and self.turns > 1:
            made_of = {name: one for name, one in self.said.columns().items() if name in _TOLD}
            sink.assumed.add(_HISTORY)
        sink.add(
            "request", record, vantage="client", session_id=self.session, turn=self.turns,
            output_chars=len(response), **made_of,
        )  # fmt: skip
        self.said.content("assistant", response)
        self.said.content("tool_result", value.get("observation"))

    def finish(self, sink: Sink) -> list[str]:
        """Sums over the instance become labels of its first request: no step may count them."""
        for name in _STATS if self.turns else ():
            if (text := text_or_none(self.told.get(name))) is not None:
                sink.add("request_tag", 1, name=f"session_{name}", value=text)
        calls = int_or_none(self.told.get("api_calls"))
        if calls is not None and self.turns and calls != self.turns:
            sink.assumed.add("its steps are not as many as its calls of the model")
        return []


def read(file: InputFile, options: Options) -> Iterator[Batch]:  # noqa: ARG001 - reader contract
    """One ``request`` row a step."""
    steps = _Steps(stem_of(file))
    nothing = "no step in it: the instance ended before its first call"
    lists = [("trajectory",)]
    return Requests(lists, steps.take, nothing, steps.see, steps.finish).read(file)


READER = Reader(
    title="SWE-agent trajectories (.traj)",
    record_unit="step",
    gives=("request", "prompt_part", "request_tag"),
    probe=probe,
    read=read,
    docs="https://github.com/SWE-agent/SWE-agent",
    cannot="tokens, cost or time of a single call: only sums over the instance, which stand as "
    "labels of its first step; the model",
    enable="keep the run's log (run-*.log): it has tokens, cost and times of each call",
    checked_against="one published trajectory of 12 steps",
)

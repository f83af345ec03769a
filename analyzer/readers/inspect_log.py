"""Inspect's evaluation logs as JSON: every call of a model, with its own time and the wall's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from analyzer.contract.types import Batch
from analyzer.readers._document import top_level
from analyzer.readers._errors import error_class
from analyzer.readers._file import Head, InputFile
from analyzer.readers._json_stream import Item
from analyzer.readers._jsonl import Sink, Skip
from analyzer.readers._loadgen import Requests, duration_ns, object_item
from analyzer.readers._part_bodies import prompt_of, settings_in
from analyzer.readers._parts import write_prompt
from analyzer.readers._reader import Claim, Options, Reader
from analyzer.readers._rows import int_or_none, text_or_none
from analyzer.readers._times import DURATIONS
from analyzer.readers._usage import Counts

_LISTS = [("samples", "*", "events"), ("events",)]
_KEYS = ("eval", "plan")
_SAMPLE = ["id", "epoch", "input"]
_OTHER = "event that is no call of a model"
_PENDING = "call that had not ended"
_LOCAL = "answered from Inspect's own cache"
_WAIT = (
    "a call's own time is output.time; what the wall shows before it is a wait in the client: for "
    "a connection, a rate limit or a retry"
)
_MIXED = "its usage counts what was cached neither inside nor beside the input"


def probe(head: Head) -> Claim:
    """An object with ``eval`` and ``plan`` and samples, or one sample of an ``.eval`` archive."""
    if b'"eval"' not in head.data[:4096]:
        return _sample_claim(head)
    top = top_level(head.data)
    missing = [key for key in _KEYS if key not in top]
    if missing or b'"task"' not in head.data:
        return Claim(0.5 if "eval" in top else 0, f"it lacks {', '.join(missing) or 'task'}")
    if head.whole and "samples" not in top:
        return Claim(0.9, "it is the head of an evaluation without samples: keep its samples")
    return Claim(1, "")


def _sample_claim(head: Head) -> Claim:
    """A sample is a document that begins with its id and epoch."""
    if b'"epoch"' not in head.data[:4096]:
        return Claim(0, "it does not begin with an evaluation or a sample of one")
    top = top_level(head.data)
    if list(top)[:3] != _SAMPLE:
        return Claim(0, "it has an epoch, but is no sample of an evaluation")
    if head.whole and not {"target", "events"} <= top.keys():
        return Claim(0.5, "it is a sample of an evaluation without its target or events")
    return Claim(1, "")


def _dict(value: Any) -> dict[str, Any]:  # noqa: ANN401 - foreign JSON
    return value if isinstance(value, dict) else {}


class _Evaluation:
    """One log under way."""

    def __init__(self, folder: str) -> None:
        self.run: str | None = folder or None
        self.status: str | None = None
        self.sample: dict[str, Any] = {}
        self.place: Any = None
        self.turn = 0

    def see(self, item: Item) -> None:
        path = item.path
        if path == ("eval",):
            told = _dict(item.value)
            ids = (told.get("eval_id"), told.get("run_id"))
            self.run = next((text for one in ids if (text := text_or_none(one))), self.run)
        elif path == ("status",):
            self.status = text_or_none(item.value)
        elif path in (("id",), ("epoch",)):
            self.sample[str(path[0])] = item.value
        elif len(path) == 3 and path[0] == "samples":
            self._move(path[1])
            if path[2] in ("id", "epoch"):
                self.sample[str(path[2])] = item.value

    def _move(self, place: Any) -> None:  # noqa: ANN401 - a place in a list
        if place != self.place:
            self.place, self.sample, self.turn = place, {}, 0

    def take(self, item: Item, record: int, sink: Sink) -> None:
        if item.path[0] == "samples":
            self._move(item.path[1])
        value = object_item(item)
        if value.get("event") != "model":
            raise Skip(_OTHER)
        if value.get("pending"):
            raise Skip(_PENDING)
        if value.get("cache") == "read":
            raise Skip(_LOCAL)
        output = _dict(value.get("output"))
        row = _times(value, output, record, sink) | _usage(output.get("usage"), sink)
        self.turn += 1
        if self.status == "cancelled":
            sink.assumed.add("the evaluation was cancelled: samples may be missing")
        prompt = prompt_of(value.get("input"), tools=value.get("tools"))
        sink.add(
            "request", record, vantage="client", clock="wall", session_id=self._session(),
            turn=self.turn,
            **(_columns(value, output) | row | write_prompt(sink, record, prompt)),
        )  # fmt: skip

    def _session(self) -> str | None:
        """A sample of one epoch; its scorers' calls belong to it."""
        names = [self.run, *(text_or_none(self.sample.get(key)) for key in ("id", "epoch"))]
        told = [name for name in names if name is not None]
        return "/".join(told) or None


def _times(
    value: dict[str, Any], output: dict[str, Any], record: int, sink: Sink
) -> dict[str, Any]:
    begin = sink.needed_time("timestamp", value.get("timestamp"))
    end = sink.time(record, "completed", value.get("completed"))
    own = duration_ns(output.get("time"), 1e9, "time")
    if own is None:
        own = duration_ns(value.get("working_time"), 1e9, "working_time")
    wall = end - begin if end is not None and end - begin in DURATIONS else None
    if own is None:
        return {"start_ns": begin, "e2e_ns": wall, "timing": "stamps" if wall else None}
    if wall is None or wall < own:
        return {"start_ns": begin, "e2e_ns": own, "timing": "stated"}
    sink.assumed.add(_WAIT)
    return {
        "start_ns": begin + wall - own, "e2e_ns": own, "hold_ns": wall - own, "timing": "stated",
    }  # fmt: skip


def _columns(value: dict[str, Any], output: dict[str, Any]) -> dict[str, Any]:
    call = _dict(value.get("call"))
    asked, answered = _dict(call.get("request")), _dict(call.get("response"))
    choices, tools = output.get("choices"), value.get("tools")
    choice = _dict(choices[0]) if isinstance(choices, list) and choices else {}
    named = text_or_none(value.get("model"))
    error = value.get("error")
    return {
        "request_id": text_or_none(_dict(asked.get("extra_headers")).get("x-irid")),
        "response_id": text_or_none(answered.get("id")),
        "model": text_or_none(output.get("model")) or named,
        "provider": named.partition("/")[0] if named and "/" in named else None,
        "max_output_tokens": int_or_none(_dict(value.get("config")).get("max_tokens")),
        **settings_in(value.get("config")),
        "tools_count": len(tools) if isinstance(tools, list) else None,
        "finish_reason": text_or_none(choice.get("stop_reason")),
        "service_tier": text_or_none(answered.get("service_tier")),
        "error": (error_class(error) if isinstance(error, str) else None),
    }


def _usage(usage: Any, sink: Sink) -> dict[str, Any]:  # noqa: ANN401 - foreign JSON
    """Inspect passes on the counts of vendors who disagree; the total says whose way it is."""
    told = _dict(usage)
    asked, made, total, read, written, thought = (
        int_or_none(told.get(name))
        for name in (
            "input_tokens", "output_tokens", "total_tokens", "input_tokens_cache_read",
            "input_tokens_cache_write", "reasoning_tokens",
        )
    )  # fmt: skip
    if asked is None and made is None:
        return {}
    convention = "unknown" if read or written else "inclusive"
    counts = Counts(
        prompt=asked, read=read, written=written, completion=made, reasoning=thought, total=total,
        convention=convention, own=False,
    )  # fmt: skip
    row = counts.buckets()
    if row["usage_convention"] == "unknown":
        sink.assumed.add(_MIXED)
    return row | {"usage_final": True}


def read(file: InputFile, options: Options) -> Iterator[Batch]:  # noqa: ARG001 - reader contract
    """One ``request`` row a model event; usage of samples and of the run sums these and is none."""
    folder = PurePosixPath(file.name).parent.as_posix()  # names the archive of a lone sample
    log = _Evaluation(folder.strip("."))
    nothing = "no event in it: its samples were not logged (log_samples) or it is only a head"
    return Requests(_LISTS, log.take, nothing, log.see).read(file)


READER = Reader(
    title="Inspect evaluation logs (.json, or samples of an .eval archive)",
    record_unit="event",
    gives=("request", "prompt_part"),
    probe=probe,
    read=read,
    docs="https://inspect.aisi.org.uk/eval-logs.html",
    cannot="time to first token; single attempts of a call that was retried; calls that Inspect "
    "answered from its own cache are none",
    enable="keep samples (log_samples) and --log-model-api; an .eval file is read as it is, the "
    "head of its archive left out",
    checked_against="two published JSON logs with 9 calls: own time, wall time and usage; samples "
    "of .eval archives after the source of their writer",
    facts=(("hold_ns", "wall time of the event less output.time, which is the call alone"),),
)

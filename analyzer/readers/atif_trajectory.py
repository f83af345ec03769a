"""Harbor's agent trajectories (ATIF): the steps of one agent, with usage where it was told."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from analyzer.contract.types import Batch
from analyzer.readers._document import top_level
from analyzer.readers._file import Head, InputFile
from analyzer.readers._json_stream import Item
from analyzer.readers._jsonl import Bad, Sink, Skip, usd
from analyzer.readers._loadgen import Requests, duration_ns, object_item
from analyzer.readers._parts import as_json
from analyzer.readers._prefix import stem_of, text_of
from analyzer.readers._reader import Claim, Options, Reader
from analyzer.readers._rows import text_or_none
from analyzer.readers._thread import Thread
from analyzer.readers._usage import token_buckets

_COPIED = "copied from the trajectory before: its calls stand there"
_OTHERS = "step of the user or the environment"
_NO_CALL = "step without a call of a model"
_STEP_TIME = (
    "a step is dated when its answer was there: without a latency that time stands for its start"
)
_SOURCES = {"agent", "user", "system"}


def probe(head: Head) -> Claim:
    """An object whose ``schema_version`` is ATIF's."""
    if b'"ATIF-v' not in head.data[:4096]:
        return Claim(0, "it names no version of ATIF")
    top = top_level(head.data)
    version = top.get("schema_version")
    if not isinstance(version, str) or not version.startswith("ATIF-v"):
        return Claim(0.3, "its schema_version is not ATIF's")
    if head.whole and "steps" not in top:
        return Claim(0.8, "it lacks steps")
    return Claim(1, "")


def _dict(value: Any) -> dict[str, Any]:  # noqa: ANN401 - foreign JSON
    return value if isinstance(value, dict) else {}


class _Trajectory:
    """One file under way."""

    def __init__(self, session: str) -> None:
        self.session = session
        self.agent: dict[str, Any] = {}
        self.turn = 0
        self.said = Thread()

    def see(self, item: Item) -> None:
        if item.path == ("session_id",):
            self.session = text_or_none(item.value) or self.session
        elif item.path == ("agent",):
            self.agent = _dict(item.value)

    def take(self, item: Item, record: int, sink: Sink) -> None:
        value = object_item(item)
        source = value.get("source")
        if not isinstance(source, str) or source not in _SOURCES:
            raise Bad("'source' is none of agent, user and system")
        made_of = self.said.columns()
        self._hear(source, value)
        if source != "agent":
            raise Skip(_OTHERS)
        if value.get("is_copied_context") is True:
            raise Skip(_COPIED)
        if value.get("llm_call_count") == 0:
            raise Skip(_NO_CALL)
        metrics = _dict(value.get("metrics"))
        extra = _dict(metrics.get("extra"))
        row = _times(value, extra, record, sink)
        buckets = token_buckets(_usage(metrics))
        cost = usd(metrics.get("cost_usd"))
        named = (value.get("model_name"), self.agent.get("model_name"))
        self.turn += 1
        sink.add(
            "request",
            record,
            vantage="client",
            session_id=self.session,
            turn=self.turn,
            model=next((text for one in named if (text := text_or_none(one))), None),
            **row,
            **buckets,
            usage_final=True if buckets else None,
            **made_of,
            **_tools(self.agent.get("tool_definitions")),
            output_chars=len(text_of(value.get("message"))) or None,
            finish_reason=text_or_none(extra.get("finish_reason")),
            reported_cost_usd=cost,
        )

    def _hear(self, source: str, value: dict[str, Any]) -> None:
        """What the step adds to the prompt of the next one; copied steps are part of it, too."""
        self.said.content("reasoning", text_or_none(value.get("reasoning_content")))
        self.said.content("assistant" if source == "agent" else source, value.get("message"))
        for call in _list(value.get("tool_calls")):
            if isinstance(call, dict):
                named = {"name": call.get("function_name"), "arguments": call.get("arguments")}
                self.said.message({"role": "assistant", "tool_calls": [named]})
        for result in _list(_dict(value.get("observation")).get("results")):
            self.said.content("tool_result", _dict(result).get("content"))


def _list(value: Any) -> list[Any]:  # noqa: ANN401 - foreign JSON
    return value if isinstance(value, list) else []


def _tools(definitions: Any) -> dict[str, int]:  # noqa: ANN401
    if not isinstance(definitions, list):
        return {}
    return {
        "tools_count": len(definitions),
        "tools_chars": sum(len(as_json(one)) for one in definitions),
    }


def _times(value: dict[str, Any], extra: dict[str, Any], record: int, sink: Sink) -> dict[str, Any]:
    end = sink.time(record, "timestamp", value.get("timestamp"))
    took = duration_ns(extra.get("latency_ms"), 1e6, "latency_ms")
    if end is None:
        return {"e2e_ns": took, "timing": None if took is None else "stated"}
    if took is None:
        sink.assumed.add(_STEP_TIME)
        return {"start_ns": end, "clock": "wall"}
    return {"start_ns": end - took, "clock": "wall", "e2e_ns": took, "timing": "stated"}


def _usage(metrics: dict[str, Any]) -> dict[str, Any] | None:
    """In OpenAI's words, whose counting it is; what was cached may be left out, which is not 0."""
    names = ("prompt_tokens", "completion_tokens")
    usage: dict[str, Any] = {name: metrics[name] for name in names if name in metrics}
    if metrics.get("cached_tokens") is not None:
        usage["prompt_tokens_details"] = {"cached_tokens": metrics["cached_tokens"]}
    return usage or None


def read(file: InputFile, options: Options) -> Iterator[Batch]:  # noqa: ARG001 - reader contract
    """One ``request`` row an agent's step; the final metrics sum over other files too."""
    told = _Trajectory(stem_of(file))
    return Requests([("steps",)], told.take, "no step in it", told.see).read(file)


READER = Reader(
    title="Agent trajectories of Harbor and others (ATIF)",
    record_unit="step",
    gives=("request",),
    probe=probe,
    read=read,
    docs="https://harborframework.com/docs/trajectory-format",
    cannot="time to first token; durations, unless the agent adds latency_ms; what was cached "
    "where the agent leaves it out; several calls within one step",
    enable="agents that fill metrics (prompt_tokens, completion_tokens, cached_tokens, cost_usd); "
    "keep every part of a continued trajectory and its sub-agents' files",
    checked_against="six published trajectories, with and without cached tokens, one of them "
    "continued in a second file",
)

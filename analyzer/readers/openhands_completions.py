"""OpenHands' completion logs: one JSON document a call, with the request and the whole answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from analyzer.contract.types import Batch, Problem
from analyzer.readers._document import top_level
from analyzer.readers._file import Head, InputFile
from analyzer.readers._items import Item, items_of
from analyzer.readers._jsonl import Bad, Sink, usd
from analyzer.readers._loadgen import duration_ns
from analyzer.readers._part_bodies import prompt_of as prompt_parts
from analyzer.readers._part_bodies import settings_in
from analyzer.readers._parts import write_prompt
from analyzer.readers._prefix import TEXT_BLOCK_CHARS, add_blocks, prompt_of, text_blocks, text_of
from analyzer.readers._reader import Claim, Options, Reader
from analyzer.readers._rows import excerpt, first, int_or_none, text_or_none
from analyzer.readers._usage import token_buckets

_KEYS = ("messages", "response", "cost", "timestamp")
_NO_LATENCY = "no latency_sec: the time at which the answer was logged stands for the start"


def probe(head: Head) -> Claim:
    """An object with ``messages``, ``response``, ``cost``, ``timestamp`` and ``kwargs``."""
    if b'"messages"' not in head.data[:4096] or not head.data.lstrip(b"\xef\xbb\xbf \r\n\t")[
        :1
    ].startswith(b"{"):
        return Claim(0, "it does not begin with messages")
    top = top_level(head.data)
    if not head.whole:  # the answer stands behind the prompt, which may be long
        sure = "messages" in top and ("kwargs" in top or set(top) <= {"messages", "tools"})
        early = next(iter(top), "") == "messages"
        return Claim(1 if sure and early else 0.3, "" if sure and early else "its keys are others")
    missing = [key for key in _KEYS if key not in top]
    if missing:
        return Claim(0.6 * (1 - len(missing) / 4), f"it lacks {', '.join(missing)}")
    return Claim(1, "")


def _dict(value: Any) -> dict[str, Any]:  # noqa: ANN401 - foreign JSON
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:  # noqa: ANN401 - foreign JSON
    return value if isinstance(value, list) else []


def _times(value: dict[str, Any], sink: Sink) -> dict[str, Any]:
    """The log is written when the answer is there; what it took stands beside it."""
    end = sink.needed_time("timestamp", value.get("timestamp"))
    took = duration_ns(value.get("latency_sec"), 1e9, "latency_sec")
    if took is None:
        sink.assumed.add(_NO_LATENCY)
        return {"start_ns": end}
    return {"start_ns": end - took, "e2e_ns": took, "timing": "stated"}


def _tools(value: dict[str, Any]) -> Any:  # noqa: ANN401 - foreign JSON
    return first((value.get("tools"), _dict(value.get("kwargs")).get("tools")))


def _asked(value: dict[str, Any]) -> dict[str, Any]:
    kwargs = _dict(value.get("kwargs"))
    limit = first(kwargs.get(name) for name in ("max_completion_tokens", "max_tokens"))
    stream = kwargs.get("stream")
    metadata = _dict(_dict(kwargs.get("extra_body")).get("metadata"))
    return {
        "session_id": text_or_none(metadata.get("session_id")),
        "max_output_tokens": int_or_none(limit),
        "streamed": stream if isinstance(stream, bool) else None,
        **settings_in(kwargs),
    }


def _take(item: Item, sink: Sink) -> None:
    value, record = item.value, item.record
    response = _dict(value.get("response"))
    usage = response.get("usage")
    if not response:
        raise Bad("it has no response: a call that failed, or no log of a completion")
    choice = _dict(first(_list(response.get("choices"))))
    row = _asked(value) | _times(value, sink)
    tools = _tools(value)
    prompt = prompt_of(value.get("messages"), tools)
    cost = usd(value.get("cost"))
    buckets = token_buckets(usage)
    row |= write_prompt(sink, record, prompt_parts(value.get("messages"), tools=tools))
    row["input_chars"] = len(prompt) or None
    sink.add(
        "request",
        record,
        vantage="client",
        clock="wall",
        **row,
        **buckets,
        usage_final=True if buckets else None,
        response_id=text_or_none(response.get("id")),
        model=text_or_none(response.get("model")),
        finish_reason=text_or_none(choice.get("finish_reason")),
        service_tier=text_or_none(response.get("service_tier")),
        reported_cost_usd=cost,
        output_chars=len(text_of(_dict(choice.get("message")).get("content"))) or None,
        prefix_block_chars=TEXT_BLOCK_CHARS if prompt else None,
    )
    add_blocks(sink, record, text_blocks(prompt))


def read(file: InputFile, options: Options) -> Iterator[Batch]:  # noqa: ARG001 - reader contract
    """One ``request`` row a call."""
    sink, records = Sink(), 0
    for item in items_of(file):
        records += 1
        if isinstance(item, Problem):
            sink.problems.append(item)
            continue
        try:
            _take(item, sink)
        except Bad as bad:
            sink.problems.append(Problem(item.record, str(bad), excerpt(item.text)))
    yield sink.batch(records)


READER = Reader(
    title="OpenHands completion logs (one JSON file a call)",
    record_unit="call",
    gives=("request", "prompt_block", "prompt_part"),
    probe=probe,
    read=read,
    docs="https://github.com/OpenHands/software-agent-sdk",
    cannot="time to first token; which calls make one conversation and their order, except by "
    "their times; attempts that failed before the answer",
    enable="LLM(log_completions=True, log_completions_folder=...) in the SDK; for TTFT put a "
    "gateway's log beside it",
    checked_against="six recorded calls of one conversation: tokens, cost and latency of each",
    facts=(("one file a call", "ingest the folder; calls are ordered by their times"),),
)

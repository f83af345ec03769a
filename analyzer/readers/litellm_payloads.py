"""LiteLLM's ``StandardLoggingPayload``, as its callbacks write it to a bucket or a file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from analyzer.contract.types import Batch
from analyzer.readers import _litellm as litellm
from analyzer.readers._exports import begin_of, mapping, read_rows, truth
from analyzer.readers._file import Head, InputFile
from analyzer.readers._jsonl import Bad, Sink
from analyzer.readers._parts import write_prompt
from analyzer.readers._reader import Claim, Options, Reader
from analyzer.readers._rows import text_or_none

_NEEDED = {"startTime", "endTime", "response_cost"}
_TELLING = {"completionStartTime", "hidden_params", "model_map_information"}
_FAILED = "failure"


def probe(head: Head) -> Claim:
    """Objects with ``response_cost``, ``startTime``, and ``completionStartTime`` in camel case."""
    for keys in begin_of(head, (b"response_cost", b"startTime")).shapes():
        if keys >= _NEEDED and keys & _TELLING:
            if "spend" in keys:
                return Claim(0.6, "its rows have a spend: they are spend logs")
            return Claim(1, "")
    return Claim(0, "it has no objects with startTime, endTime and response_cost")


def _take(one: dict[str, Any], record: int, sink: Sink) -> None:
    if not one.keys() & _NEEDED:
        raise Bad("no logging payload: it has neither times nor 'response_cost'")
    metadata, hidden = mapping(one.get("metadata")), mapping(one.get("hidden_params"))
    failed = one.get("status") == _FAILED
    streamed = truth(one.get("stream"))
    # Epoch seconds; older dumps have the text of a naive local time.
    stamps = [
        sink.time(record, name, one.get(name))
        for name in ("startTime", "completionStartTime", "endTime")
    ]
    told = litellm.times(*stamps)
    if streamed is False:
        told.pop("ttft_ns", None)
    response = mapping(one.get("response"))
    usage = (
        mapping(hidden.get("usage_object"))
        or mapping(metadata.get("usage_object"))
        or mapping(response.get("usage"))
    )
    name = text_or_none(one.get("id"))
    cached = str(one.get("cache_hit")).lower() == "true"
    error = mapping(one.get("error_information"))
    sent, prompt = litellm.body(one.get("model_parameters"), one.get("messages"))
    columns = {
        "vantage": "gateway",
        "request_id": text_or_none(one.get("litellm_call_id")) or name,
        "response_id": None if failed or cached else name,
        **_identity(one),
        "model": text_or_none(one.get("model")),
        "provider": text_or_none(one.get("custom_llm_provider")),
        "deployment": litellm.host(one.get("api_base") or hidden.get("api_base"))
        or text_or_none(one.get("model_id")),
        **told,
        **litellm.tokens(one, usage, failed=failed),
        **litellm.answer(one),
        **sent,
        **litellm.outcome(one.get("status"), error),
        "reported_cost_usd": litellm.money(one.get("response_cost"), failed=failed),
    }
    if streamed is not None:
        columns["streamed"] = streamed
    columns |= write_prompt(sink, record, prompt)
    sink.add("request", record, **columns)
    litellm.add_tags(sink, record, one, hidden | metadata)


def _identity(one: dict[str, Any]) -> dict[str, Any]:
    """``trace_id`` groups retries and fallbacks, unless it only repeats the session."""
    trace, session = text_or_none(one.get("trace_id")), text_or_none(one.get("session_id"))
    groups = session is not None and trace != session
    return {
        "operation_id": trace if groups else None, "trace_id": trace, "session_id": session,
    }  # fmt: skip


def read(file: InputFile, options: Options) -> Iterator[Batch]:
    """One ``request`` row of vantage gateway a payload, and its labels."""
    return read_rows(file, options, _take)


READER = Reader(
    title="LiteLLM logging payloads (StandardLoggingPayload; JSON, JSON Lines)",
    record_unit="payload",
    gives=("request", "prompt_part", "request_tag"),
    probe=probe,
    read=read,
    docs=litellm.DOCS,
    cannot=litellm.CANNOT + "; response_time is the time to first token of a stream and the whole "
    "time otherwise, so it is not read",
    enable='litellm_settings: callbacks: ["s3_v2"] (or gcs_bucket, generic_api) in its config.yaml',
    checked_against="a payload of LiteLLM's own test suite (1.110)",
)

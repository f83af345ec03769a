"""AIPerf's ``profile_export_raw.jsonl``: each request with every event of its answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from analyzer.contract.types import Batch
from analyzer.readers._aiperf import DOCS, claim, identity, outcome
from analyzer.readers._answer import Answer
from analyzer.readers._file import Head, InputFile
from analyzer.readers._jsonl import Bad, Sink, read_jsonl
from analyzer.readers._loadgen import add_engine, asked
from analyzer.readers._part_bodies import prompt_in
from analyzer.readers._parts import write_prompt
from analyzer.readers._reader import Claim, Options, Reader
from analyzer.readers._rows import first, int_or_none


def probe(head: Head) -> Claim:
    """JSON lines with ``metadata.request_start_ns`` and ``responses``."""
    return claim(head, "responses")


def _take(value: dict[str, Any], record: int, sink: Sink) -> None:
    who, payload = identity(value.get("metadata")), asked(value.get("payload"))
    began = int_or_none(value.get("start_perf_ns"))
    responses = value.get("responses")
    if began is None or not isinstance(responses, list):
        raise Bad("'start_perf_ns' or 'responses' is missing")
    answer = Answer()
    for response in responses:
        at = int_or_none(response.get("perf_ns")) if isinstance(response, dict) else None
        if at is None:
            raise Bad("a response without 'perf_ns'")
        if isinstance(response.get("text"), str):
            answer.whole = True
            answer.take(response["text"], at - began)
        for packet in _list(response.get("packets")):
            if isinstance(packet, dict) and packet.get("name") == "data":
                answer.take(packet.get("value"), at - began)
    row = who | payload | {"status": int_or_none(value.get("status"))}
    told = answer.columns(streamed=payload.get("streamed"))
    row |= told | {"model": first((told["model"], payload.get("model")))}
    ended = outcome(value)
    if ended:
        row["e2e_ns"] = None
    row |= ended
    row |= write_prompt(sink, record, prompt_in(value.get("payload")))
    sink.add("request", record, **row)
    add_engine(sink, record, row, answer.metrics)
    answer.add_chunks(sink, record)


def _list(value: Any) -> list[Any]:  # noqa: ANN401 - foreign JSON
    return value if isinstance(value, list) else []


def read(file: InputFile, options: Options) -> Iterator[Batch]:
    """One ``request`` row of vantage client a line, and its chunks."""
    return read_jsonl(file, options, _take)


READER = Reader(
    title="AIPerf raw records (profile_export_raw.jsonl)",
    record_unit="line",
    gives=("request", "chunk", "prompt_part"),
    probe=probe,
    read=read,
    docs=DOCS,
    cannot="queue and prefill, unless the server sends vLLM's metrics with its answer; tokens of "
    "a chunk; network-level times",
    enable="aiperf profile --streaming --export-level raw; vllm serve --enable-per-request-metrics",
    checked_against="a run of AIPerf 0.13.0 against an engine with known times",
)

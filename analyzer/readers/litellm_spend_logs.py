"""LiteLLM's spend logs: one row an upstream call, from its database, ``/spend/logs`` or a CSV.

``cache_hit`` is LiteLLM's own cache of answers, not the provider's cache of prompts: a label.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from analyzer.contract.types import Batch
from analyzer.readers import _litellm as litellm
from analyzer.readers._exports import begin_of, mapping, number, read_rows
from analyzer.readers._file import Head, InputFile
from analyzer.readers._hints import no_time
from analyzer.readers._jsonl import Bad, Sink
from analyzer.readers._parts import write_prompt
from analyzer.readers._reader import Claim, Options, Reader
from analyzer.readers._rows import text_or_none
from analyzer.readers._times import ms_to_ns, time_to_ns

_NEEDED = {"request_id", "startTime", "endTime"}
_TELLING = {"call_type", "spend"}
_FAILED = "failure"


def probe(head: Head) -> Claim:
    """Rows with ``request_id``, ``startTime`` and ``endTime`` beside ``spend`` or ``call_type``."""
    for keys in begin_of(head, (b"startTime", b"request_id")).shapes():
        if keys >= _NEEDED and keys & _TELLING:
            if "response_cost" in keys and "spend" not in keys:
                return Claim(0.6, "its rows are logging payloads, not spend logs")
            return Claim(1, "")
    return Claim(0, "it has no rows with request_id, startTime, endTime and spend")


def _time(row: dict[str, Any], name: str, record: int, sink: Sink) -> int | None:
    """The database keeps UTC and names no zone."""
    value = row.get(name)
    ns = time_to_ns(value)
    if ns is None and value not in (None, ""):
        if name == "startTime":
            raise Bad(f"'startTime' {no_time(value)}")
        sink.time(record, name, value)
    return ns


def _take(row: dict[str, Any], record: int, sink: Sink) -> None:
    if not _NEEDED & row.keys() or not (row.keys() & _TELLING):
        raise Bad("no spend log: it has neither 'call_type' nor 'spend'; export whole rows")
    metadata = mapping(row.get("metadata"))
    failed = row.get("status") == _FAILED
    told = litellm.times(
        *(
            _time(row, name, record, sink)
            for name in ("startTime", "completionStartTime", "endTime")
        )
    )
    if "e2e_ns" not in told and (took := number(row.get("request_duration_ms"))) is not None:
        told |= {"e2e_ns": ms_to_ns(took), "timing": "stated"}
    usage = mapping(metadata.get("usage_object")) or _added(row, metadata)
    name = text_or_none(row.get("request_id"))
    cached = str(row.get("cache_hit")).lower() == "true"
    sent, prompt = litellm.body(row.get("proxy_server_request"), row.get("messages"))
    columns = {
        "vantage": "gateway",
        "request_id": text_or_none(row.get("litellm_call_id")) or name,
        # An answer out of LiteLLM's own cache, and a failure, have an id of LiteLLM's making.
        "response_id": None if failed or cached else name,
        "session_id": text_or_none(row.get("session_id")),
        "model": text_or_none(row.get("model")),
        "provider": text_or_none(row.get("custom_llm_provider")),
        "deployment": litellm.host(row.get("api_base")) or text_or_none(row.get("model_id")),
        **told,
        **litellm.tokens(row, usage, failed=failed),
        **litellm.answer(row),
        **sent,
        **litellm.outcome(row.get("status"), mapping(metadata.get("error_information"))),
        "service_tier": text_or_none(mapping(metadata.get("cost_breakdown")).get("service_tier")),
        "reported_cost_usd": litellm.money(row.get("spend"), failed=failed),
    }
    columns |= write_prompt(sink, record, prompt)
    sink.add("request", record, **columns)
    litellm.add_tags(sink, record, row, metadata)


def _added(row: dict[str, Any], metadata: dict[str, Any]) -> dict[str, Any]:
    """The row's counts with the details that older versions keep beside them."""
    extra = mapping(metadata.get("additional_usage_values"))
    if not extra:
        return {}
    names = ("prompt_tokens", "completion_tokens", "total_tokens")
    return {name: number(row.get(name)) for name in names} | extra


def read(file: InputFile, options: Options) -> Iterator[Batch]:
    """One ``request`` row of vantage gateway a row, and its labels."""
    return read_rows(file, options, _take)


READER = Reader(
    title="LiteLLM spend logs (JSON, JSON Lines, CSV)",
    record_unit="row",
    gives=("request", "prompt_part", "request_tag"),
    probe=probe,
    read=read,
    docs=litellm.DOCS,
    cannot=litellm.CANNOT,
    enable='GET /spend/logs/v2 of the proxy, or SELECT * FROM "LiteLLM_SpendLogs" as CSV or JSON',
    checked_against="a row of LiteLLM's own test suite (1.110); the simulator's spend logs, back "
    "to what was simulated",
    facts=(
        ("cost", "spend as LiteLLM computed it; known wrong for streamed cache reads and writes"),
        ("cache", "cache_hit is LiteLLM's cache of answers: label response_cache"),
    ),
)

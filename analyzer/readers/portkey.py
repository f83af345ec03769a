"""Portkey: the log objects of its open gateway, and the JSON Lines that the hosted one exports."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from analyzer.contract.types import Batch
from analyzer.readers._exports import begin_of, count, mapping, nested, number, read_rows, truth
from analyzer.readers._file import Head, InputFile
from analyzer.readers._jsonl import Bad, Sink, usd
from analyzer.readers._loadgen import asked
from analyzer.readers._part_bodies import prompt_in, settings_in
from analyzer.readers._parts import write_prompt
from analyzer.readers._reader import Claim, Options, Reader
from analyzer.readers._rows import first, text_or_none
from analyzer.readers._times import ms_to_ns
from analyzer.readers._usage import token_buckets
from analyzer.readers._vendor_bodies import told_by_body

_HOSTED = {"ai_model", "ai_org"}
_OPEN = {"executionTime", "cacheStatus", "requestParams"}
_OPEN_TELLING = {"lastUsedOptionIndex", "finalUntransformedRequest", "originalResponse"}
_CENTS = "its cost is in US cents"
_UNITS = "req_units and res_units were taken as tokens of prompt and completion"


def probe(head: Head) -> Claim:
    """``ai_model`` and ``ai_org``, or the open gateway's ``executionTime`` and ``cacheStatus``."""
    for needle in (b"ai_org", b"executionTime"):
        for keys in begin_of(head, (needle,)).shapes():
            if keys >= _HOSTED and keys & {"response_time", "req_units", "res_units", "cost"}:
                return Claim(1, "")
            if keys >= _OPEN and keys & _OPEN_TELLING:
                return Claim(1, "")
    return Claim(0, "it has no records with ai_org, or with executionTime and cacheStatus")


def _take(row: dict[str, Any], record: int, sink: Sink) -> None:
    if "executionTime" in row or "requestParams" in row:
        columns = _open(row, record, sink)
    elif row.keys() & _HOSTED:
        columns = _hosted(row, record, sink)
    else:
        raise Bad("no record of Portkey: neither 'ai_model' nor 'executionTime'")
    took = number(first((row.get("executionTime"), row.get("response_time"))))
    if took is not None:
        columns |= {"e2e_ns": ms_to_ns(took), "timing": "stated"}
    if columns.get("start_ns") is not None:
        columns["clock"] = "wall"
    sink.add("request", record, vantage="gateway", **columns)
    cache = text_or_none(first((row.get("cacheStatus"), row.get("cache_status"))))
    if cache is not None and "HIT" in cache.upper():
        sink.add("request_tag", record, name="response_cache", value="hit")
    option = count(row.get("lastUsedOptionIndex"))
    if option is not None:
        sink.add("request_tag", record, name="last_used_option_index", value=str(option))


def _open(row: dict[str, Any], record: int, sink: Sink) -> dict[str, Any]:
    """The open gateway repeats request and answer: what the answer itself tells is taken."""
    sent = nested(row.get("requestParams"))
    request = asked(sent) | settings_in(sent)
    answer = mapping(row.get("originalResponse"))
    body = mapping(answer.get("body")) or mapping(answer.get("response")) or answer
    told = told_by_body(body) if body else None
    columns: dict[str, Any] = {
        "request_id": text_or_none(row.get("id")),
        "start_ns": sink.time(record, "createdAt", row.get("createdAt") or None),
        **{name: one for name, one in request.items() if one is not None},
        "status": count(answer.get("status")),
        **write_prompt(sink, record, prompt_in(sent)),
    }
    if told is not None:
        told.learn()
        columns |= told.facts.columns
        buckets = token_buckets(told.usage)
        columns |= buckets | ({"usage_final": True} if buckets else {})
    return columns


def _hosted(row: dict[str, Any], record: int, sink: Sink) -> dict[str, Any]:
    tokens = {name: count(row.get(name)) for name in ("req_units", "res_units")}
    usage: Any = mapping(row.get("usage"))
    if not token_buckets(usage):
        usage = {"prompt_tokens": tokens["req_units"], "completion_tokens": tokens["res_units"]}
        if any(one is not None for one in tokens.values()):
            sink.assumed.add(_UNITS)
        else:
            usage = None
    buckets = token_buckets(usage)
    cents, works = number(row.get("cost")), truth(row.get("is_success"))
    if cents is not None:
        sink.assumed.add(_CENTS)
    status = count(first((row.get("response_status_code"), row.get("status"))))
    return {
        "request_id": text_or_none(first((row.get("id"), row.get("request_id")))),
        "trace_id": text_or_none(row.get("trace_id")),
        "start_ns": sink.time(
            record, "created_at", first((row.get("created_at"), row.get("time_of_generation")))
        ),
        "model": text_or_none(row.get("ai_model")),
        "provider": text_or_none(row.get("ai_org")),
        **buckets,
        "usage_final": True if buckets else None,
        "status": status if status else 200 if works else None,
        "error": "error" if works is False and not status else None,
        "reported_cost_usd": None if cents is None else usd(str(Decimal(str(cents)) / 100)),
    }  # fmt: skip


def read(file: InputFile, options: Options) -> Iterator[Batch]:
    """One ``request`` row of vantage gateway a record, and its labels."""
    return read_rows(file, options, _take)


READER = Reader(
    title="Portkey gateway logs (open gateway and hosted export; JSON, JSON Lines)",
    record_unit="record",
    gives=("request", "prompt_part", "request_tag"),
    probe=probe,
    read=read,
    docs="https://portkey.ai/docs/product/observability/logs-export",
    cannot="the time to first token; how long each retry and fallback took: the time is of all of "
    "them together",
    enable="export the logs of the hosted gateway as JSON Lines; log the answer with the usage",
    checked_against="records written after the open gateway's source and third parties' readers of "
    "the hosted export; no file of a real account",
)

"""Helicone's requests: rows of its ``request_response_rmt`` table, its API, or a CSV of them.

``cost`` is a whole number of billionths of a dollar. Helicone's cache is one of answers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any
from urllib.parse import urlsplit

from analyzer.contract.types import Batch
from analyzer.readers._exports import begin_of, count, mapping, nested, number, read_rows, truth
from analyzer.readers._file import Head, InputFile
from analyzer.readers._hints import no_time
from analyzer.readers._jsonl import Bad, Sink, usd
from analyzer.readers._part_bodies import prompt_in, settings_in
from analyzer.readers._parts import write_prompt
from analyzer.readers._reader import Claim, Options, Reader
from analyzer.readers._rows import first, text_or_none
from analyzer.readers._times import ms_to_ns, time_to_ns
from analyzer.readers._usage import Counts

_TELLING = {"prompt_cache_read_tokens", "time_to_first_token", "cache_reference_id", "cost"}
_NANO = Decimal("1e-9")
_NO_REFERENCE = re.compile(r"[0-]*")
_STATES = {-3: "cancelled", -4: "blocked"}
_SEGMENT = re.compile(r"[\w.:-]{1,40}")
_IN_USD = "a cost that is no whole number was taken as US dollars, not as billionths of one"


def probe(head: Head) -> Claim:
    """Rows with ``request_created_at`` and Helicone's own counts."""
    for keys in begin_of(head, (b"request_created_at",)).shapes():
        if "request_created_at" in keys:
            if len(keys & _TELLING) >= 2:
                return Claim(1, "")
            return Claim(0.6, "its rows lack Helicone's token counts and cost")
    return Claim(0, "it has no rows with request_created_at")


def _take(row: dict[str, Any], record: int, sink: Sink) -> None:
    if "request_created_at" not in row:
        raise Bad("no request of Helicone: it has no 'request_created_at'")
    # ClickHouse keeps UTC and names no zone.
    start = time_to_ns(row["request_created_at"])
    if start is None:
        raise Bad(f"'request_created_at' {no_time(row['request_created_at'])}")
    properties = mapping(first((row.get("properties"), row.get("request_properties"))))
    streamed, times = _times(row, start)
    # The API leaves the body out and gives a signed address for it.
    body = nested(row.get("request_body"))
    sink.add(
        "request", record, vantage="gateway",
        request_id=text_or_none(row.get("request_id")),
        session_id=text_or_none(properties.get("Helicone-Session-Id")),
        endpoint=_path(first((row.get("request_path"), row.get("target_url")))),
        model=first(
            text_or_none(row.get(name)) for name in ("model", "response_model", "request_model")
        ),
        provider=text_or_none(row.get("provider")),
        start_ns=start, clock="wall", **times, **_tokens(row), streamed=streamed,
        **_outcome(row), reported_cost_usd=_cost(row, sink), **settings_in(body),
        **write_prompt(sink, record, prompt_in(body)),
    )  # fmt: skip
    for name, value in _tags(row):
        sink.add("request_tag", record, name=name, value=value)


def _times(row: dict[str, Any], start: int) -> tuple[bool | None, dict[str, Any]]:
    took = number(first((row.get("latency"), row.get("delay_ms"))))
    e2e, timing = (None, None) if took is None else (ms_to_ns(took), "stated")
    end = time_to_ns(row.get("response_created_at"))
    if e2e is None and end is not None and end >= start:
        e2e, timing = end - start, "stamps"
    begun = number(row.get("time_to_first_token"))
    ttft = ms_to_ns(begun) if begun else None
    if ttft is not None and e2e is not None and ttft >= e2e:
        ttft = None  # a stream of one piece, or none
    return (True if ttft else None), {"ttft_ns": ttft, "e2e_ns": e2e, "timing": timing}


def _tokens(row: dict[str, Any]) -> dict[str, Any]:
    """Newer versions of Helicone take what was cached out of the prompt, older ones hand it on.

    Only newer ones count the reasoning, which they take out of the completion. Where nothing shows
    the version, and its own total never does, the fresh tokens are not told.
    """
    reasoning = count(row.get("reasoning_tokens"))
    exclusive = row.get("provider") == "ANTHROPIC" or bool(reasoning)
    counts = Counts(
        prompt=count(row.get("prompt_tokens")), read=count(row.get("prompt_cache_read_tokens")),
        written=count(row.get("prompt_cache_write_tokens")),
        completion=count(row.get("completion_tokens")), reasoning=reasoning,
        convention="exclusive" if exclusive else "unknown", own=False, apart=True,
    )  # fmt: skip
    # Zeros are what an answer out of Helicone's own cache has.
    told = any((counts.prompt, counts.completion, counts.read, counts.written))
    return counts.buckets() | {"usage_final": True} if told else {}


def _outcome(row: dict[str, Any]) -> dict[str, Any]:
    status = number(first((row.get("status"), row.get("response_status"))))
    if not isinstance(status, int):
        return {}
    if status in _STATES:
        return {"error": _STATES[status]}
    return {"status": status if 100 <= status <= 599 else None}


def _cost(row: dict[str, Any], sink: Sink) -> Any:  # noqa: ANN401
    told = number(row.get("cost"))
    if told is None:
        dollars = number(first((row.get("costUSD"), row.get("cost_usd"))))
        return None if dollars is None else usd(dollars)
    if isinstance(told, float) and not told.is_integer():
        sink.assumed.add(_IN_USD)
        return usd(told)
    # 0 is what it has for a model without a price.
    return usd(str(int(told) * _NANO)) if told else None


def _path(url: Any) -> str | None:  # noqa: ANN401
    """The path of the API; what may name a user or hold a key is left out."""
    text = text_or_none(url)
    if text is None:
        return None
    try:
        path = urlsplit(text).path
    except ValueError:
        return None
    return path if len(path) <= 200 and path.isprintable() and path.startswith("/") else None


def _tags(row: dict[str, Any]) -> Iterator[tuple[str, str]]:
    reference = row.get("cache_reference_id")
    if isinstance(reference, str) and not _NO_REFERENCE.fullmatch(reference):
        yield "response_cache", "hit"
    if truth(row.get("is_passthrough_billing")):
        yield "is_passthrough_billing", "true"
    referrer = row.get("request_referrer")
    if isinstance(referrer, str) and _SEGMENT.fullmatch(referrer):
        yield "request_referrer", referrer


def read(file: InputFile, options: Options) -> Iterator[Batch]:
    """One ``request`` row of vantage gateway a row, and its labels."""
    return read_rows(file, options, _take)


READER = Reader(
    title="Helicone requests (JSON, JSON Lines, CSV)",
    record_unit="row",
    gives=("request", "prompt_part", "request_tag"),
    probe=probe,
    read=read,
    docs="https://docs.helicone.ai/rest/request/post-v1requestquery-clickhouse",
    cannot="what its own hop adds: latency runs from Helicone's start to the provider's end; "
    "queue, prefill and decode; the fresh input, where something was cached and neither "
    "Anthropic nor reasoning shows whether the prompt includes it",
    enable="POST /v1/request/query-clickhouse, or a download of the table request_response_rmt",
    checked_against="rows written after Helicone's own source; no file of a real account",
)

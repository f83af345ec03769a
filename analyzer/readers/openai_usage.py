"""OpenAI's usage: pages of the organization's usage API, and the CSV exports of usage and activity.

Quantities alone; the money stands in the costs (``openai_costs``).
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from analyzer.contract.types import Batch, Problem
from analyzer.readers._bill import add_line, exact, moment, name
from analyzer.readers._bill_pages import (
    EMPTY,
    Period,
    period_of,
    read_pages,
    result_keys,
    take_buckets,
)
from analyzer.readers._exports import begin_of, truth
from analyzer.readers._file import Head, InputFile
from analyzer.readers._jsonl import Bad, Sink, Skip
from analyzer.readers._reader import Claim, Options, Reader

_BUCKET = {"object", "start_time", "end_time", "results"}
_EDGES = ("start_time", "end_time")
_USAGE = {"start_time", "end_time", "start_time_iso", "num_model_requests"}
_LEGACY = {"n_context_tokens_total", "n_generated_tokens_total"}
_NOT_A_SUM = "its cached, written and other input tokens do not add up to input_tokens"
_UNITS = {
    "images": "images", "characters": "characters", "seconds": "seconds",
    "num_sessions": "sessions", "usage_bytes": "bytes", "num_model_requests": "requests",
}  # fmt: skip
_LEGACY_KINDS = {"n_context_tokens_total": "input", "n_generated_tokens_total": "output"}
_COUNTS = {*_UNITS, "input_tokens", "output_tokens"}
_Quantities = list[tuple[str | None, str, str, Decimal]]
"""Kind of token, unit, the source's own name, how many."""


def probe(head: Head) -> Claim:
    """Buckets whose results are usage, or one of the two headers."""
    for needle in (b"num_model_requests", b"n_context_tokens_total"):
        for keys in begin_of(head, (needle,)).shapes():
            if keys >= _USAGE or keys >= _LEGACY:
                return Claim(1, "")
    found = result_keys(begin_of(head, (b"end_time", b"results", b"bucket")), _BUCKET)
    if found is not None and (not found or found & _COUNTS):
        return Claim(1, "")
    return Claim(0, "it has no buckets of OpenAI's usage API")


def _take(row: dict[str, Any], record: int, sink: Sink) -> None:
    if take_buckets(row, _EDGES, record, sink, _take_result):
        return
    if row.keys() & _LEGACY:
        begin = moment(row.get("timestamp"), "timestamp", sink)
        _lines(row, _legacy(row), (begin, None), record, sink)
    elif row.keys() >= set(_EDGES):
        _take_result(row, period_of(row, _EDGES, sink), record, sink)
    else:
        raise Bad("no bucket and no row of OpenAI's usage: it has no start_time and end_time")


def _take_result(row: dict[str, Any], period: Period, record: int, sink: Sink) -> None:
    _lines(row, _quantities(row, record, sink), period, record, sink)


def _quantities(row: dict[str, Any], record: int, sink: Sink) -> _Quantities:
    told = {
        key: exact(row.get(key), key)
        for key in row
        if key.startswith(("input_", "output_")) or key in _UNITS
    }
    total, cached = told.get("input_tokens"), told.get("input_cached_tokens")
    writes = _writes(told)
    written = sum((many for _, _, many in writes), Decimal(0))
    fresh = told.get("input_uncached_tokens")
    if fresh is None and total is not None and cached is not None:
        fresh = total - cached - written
        if fresh < 0:
            sink.problems.append(Problem(record, _NOT_A_SUM))
            fresh = None
    elif None not in (fresh, total, cached) and fresh + cached + written != total:  # type: ignore[operator]
        sink.problems.append(Problem(record, _NOT_A_SUM))
    found: list[tuple[str | None, str, str, Decimal | None]] = [
        ("input_fresh", "tokens", "input_uncached_tokens", fresh),
        ("cache_read", "tokens", "input_cached_tokens", cached),
        *((kind, "tokens", key, many) for kind, key, many in writes),
        ("output", "tokens", "output_tokens", told.get("output_tokens")),
        *((None, unit, key, told.get(key)) for key, unit in _UNITS.items()),
    ]
    if cached is None and fresh is None:
        found.insert(0, ("input", "tokens", "input_tokens", total))
    return [(kind, unit, key, many) for kind, unit, key, many in found if many]


def _writes(told: dict[str, Decimal | None]) -> list[tuple[str, str, Decimal]]:
    """What was written to the cache, by lifetime where both are told."""
    split = [
        (kind, key, many)
        for key, many in told.items()
        for mark, kind in (("30m", "cache_write_short"), ("12h", "cache_write_long"))
        if many is not None and key.startswith("input_cache_write") and mark in key
    ]
    whole = told.get("input_cache_write_tokens")
    rest = (whole or Decimal(0)) - sum((many for _, _, many in split), Decimal(0))
    if rest > 0:
        split.append(("cache_write_unknown", "input_cache_write_tokens", rest))
    return split


def _legacy(row: dict[str, Any]) -> _Quantities:
    """The old activity export: the whole prompt, cached tokens included."""
    found: list[tuple[str | None, str, str, Decimal | None]] = [
        (kind, "tokens", key, exact(row.get(key), key)) for key, kind in _LEGACY_KINDS.items()
    ]
    found.append((None, "requests", "n_requests", exact(row.get("n_requests"), "n_requests")))
    return [(kind, unit, key, many) for kind, unit, key, many in found if many]


def _lines(row: dict[str, Any], told: _Quantities, period: Period, record: int, sink: Sink) -> None:
    if not told:
        raise Skip(EMPTY)
    tier = "batch" if truth(row.get("batch")) else name(row.get("service_tier"))
    for kind, unit, key, many in told:
        add_line(
            sink, record, period, model=name(row.get("model")), token_kind=kind, quantity=many,
            unit=unit, provider="openai", item=key, service_tier=tier,
            account=name(row.get("project_id") or row.get("organization_id")),
        )  # fmt: skip


def read(file: InputFile, options: Options) -> Iterator[Batch]:
    """One ``invoice_line`` row a kind of token of each result, without an amount."""
    return read_pages(file, options, _take)


READER = Reader(
    title="OpenAI usage (API pages, CSV of usage, CSV of the old activity page)",
    record_unit="bucket or row",
    gives=("invoice_line",),
    probe=probe,
    read=read,
    docs="https://platform.openai.com/docs/api-reference/usage/completions",
    cannot="money; single requests; reasoning apart from the rest of the output; audio and images "
    "apart from text; what was cached, in the old activity export",
    enable="GET /v1/organization/usage/completions with bucket_width=1h and group_by=model, batch "
    "and service_tier: what is not grouped by is not told; fetch every page (next_page)",
    checked_against="the fields of OpenAI's SDK and headers in public code; no real export",
    facts=(
        ("zero", "counts of zero make no line"),
        ("pages", "a page with has_more is only a part: put all of them into the folder"),
    ),
)

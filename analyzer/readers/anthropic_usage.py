"""Anthropic's usage: pages of the usage report, and the console's CSV of tokens."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from analyzer.contract.types import Batch
from analyzer.readers._bill import above_usual, add_line, day, exact, name
from analyzer.readers._bill_pages import EMPTY, Period, read_pages, result_keys, take_buckets
from analyzer.readers._exports import begin_of, mapping
from analyzer.readers._file import Head, InputFile
from analyzer.readers._jsonl import Bad, Sink, Skip
from analyzer.readers._reader import Claim, Options, Reader

_BUCKET = {"starting_at", "ending_at", "results"}
_TABLE = {"usage_date_utc", "usage_input_tokens_no_cache", "usage_output_tokens"}
_EDGES = ("starting_at", "ending_at")
_KINDS = {
    "uncached_input_tokens": "input_fresh",
    "cache_read_input_tokens": "cache_read",
    "cache_creation.ephemeral_5m_input_tokens": "cache_write_short",
    "cache_creation.ephemeral_1h_input_tokens": "cache_write_long",
    "cache_creation_input_tokens": "cache_write_unknown",
    "output_tokens": "output",
}
_COLUMNS = {
    "usage_input_tokens_no_cache": "input_fresh",
    "usage_input_tokens_cache_read": "cache_read",
    "usage_input_tokens_cache_write_5m": "cache_write_short",
    "usage_input_tokens_cache_write_1h": "cache_write_long",
    "usage_input_tokens_cache_write": "cache_write_unknown",
    "usage_output_tokens": "output",
}
_SPLIT = {"cache_write_short", "cache_write_long"}


def probe(head: Head) -> Claim:
    """Buckets whose results count tokens, or the header of the console's export."""
    keys = result_keys(begin_of(head, (b"starting_at", b"results")), _BUCKET)
    if keys is not None and (not keys or "uncached_input_tokens" in keys):
        return Claim(1, "")
    if any(keys >= _TABLE for keys in begin_of(head, (b"usage_date_utc",)).shapes()):
        return Claim(1, "")
    return Claim(0, "it has no buckets of Anthropic's usage report")


def _take(row: dict[str, Any], record: int, sink: Sink) -> None:
    if take_buckets(row, _EDGES, record, sink, _take_result):
        return
    period = day(row.get("usage_date_utc"), "usage_date_utc", sink)
    if period[0] is None:
        raise Bad("no bucket and no row of Anthropic's usage: it has no usage_date_utc")
    told = {key: exact(row.get(key), key) for key in _COLUMNS}
    batch = "batch" if "batch" in str(row.get("usage_type", "")).lower() else None
    _lines(row, told, _COLUMNS, period, record, sink, batch)


def _take_result(row: dict[str, Any], period: Period, record: int, sink: Sink) -> None:
    flat = row | {f"cache_creation.{k}": v for k, v in mapping(row.get("cache_creation")).items()}
    told = {key: exact(flat.get(key), key) for key in _KINDS}
    web = mapping(row.get("server_tool_use")).get("web_search_requests")
    found = row | {"web_search_count": web}
    _lines(found, told, _KINDS, period, record, sink, name(row.get("service_tier")))


def _lines(
    row: dict[str, Any], told: dict[str, Decimal | None], kinds: dict[str, str], period: Period,
    record: int, sink: Sink, tier: str | None,
) -> None:  # fmt: skip
    by_lifetime = any(many is not None and kinds[key] in _SPLIT for key, many in told.items())
    found: list[tuple[str | None, str, Decimal | None]] = [
        (kinds[key], key, many)
        for key, many in told.items()
        # The sum of both lifetimes stands beside them.
        if not (by_lifetime and kinds[key] == "cache_write_unknown")
    ]
    found.append((None, "web_search_requests", exact(row.get("web_search_count"), "web_search")))
    if not any(many for _, _, many in found):
        raise Skip(EMPTY)
    for kind, key, many in found:
        if many:
            add_line(
                sink, record, period, model=name(row.get("model") or row.get("model_version")),
                token_kind=kind, quantity=many, unit="tokens" if kind else "requests",
                provider="anthropic", item=key, service_tier=tier,
                long_context=above_usual(row.get("context_window")),
                account=name(row.get("workspace_id") or row.get("workspace")),
            )  # fmt: skip


def read(file: InputFile, options: Options) -> Iterator[Batch]:
    """One ``invoice_line`` row a kind of token of each result, without an amount."""
    return read_pages(file, options, _take)


READER = Reader(
    title="Anthropic usage (usage report, console CSV)",
    record_unit="bucket or row",
    gives=("invoice_line",),
    probe=probe,
    read=read,
    docs="https://platform.claude.com/docs/en/build-with-claude/usage-cost-api",
    cannot="money; single requests; thinking apart from the rest of the output; what is not "
    "grouped by",
    enable="GET /v1/organizations/usage_report/messages with bucket_width=1h and group_by[] model, "
    "service_tier, context_window; fetch every page (next_page)",
    checked_against="Anthropic's published example of the API and headers in public code; no real "
    "export",
    facts=(
        ("zero", "counts of zero make no line"),
        ("priority", "tokens of the priority tier are here, their money is on no cost report"),
        ("keys", "names of API keys are not kept"),
    ),
)

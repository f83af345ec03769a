"""Cursor's admin API: pages of usage events, each with its tokens and what was charged."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from analyzer.contract.types import Batch
from analyzer.readers._cursor import Event, kind_of, person
from analyzer.readers._document import top_level
from analyzer.readers._file import Head, InputFile
from analyzer.readers._json_stream import Item
from analyzer.readers._jsonl import Bad, Sink, usd
from analyzer.readers._loadgen import Requests, object_item
from analyzer.readers._reader import Claim, Options, Reader
from analyzer.readers._rows import int_or_none, text_or_none
from analyzer.readers._times import TIMES

_TOKENS = {
    "inputTokens": "input_fresh_tokens",
    "outputTokens": "output_visible_tokens",
    "cacheWriteTokens": "cache_write_unknown_tokens",
    "cacheReadTokens": "cache_read_tokens",
}
_LISTS = [("usageEventsDisplay",)]
_WHOLE = re.compile(r"\d{1,18}")
_NO_TOKENS = "an event without tokenUsage was counted by requests: its tokens are not told"


def probe(head: Head) -> Claim:
    """An object with ``usageEventsDisplay``."""
    if b'"usageEventsDisplay"' not in head.data:
        return Claim(0, "it has no usageEventsDisplay")
    if "usageEventsDisplay" not in top_level(head.data):
        return Claim(0.5, "its usageEventsDisplay stands inside something else")
    return Claim(1, "")


class _Page:
    """One page under way."""

    def __init__(self) -> None:
        self.total: int | None = None
        self.events = 0

    def see(self, item: Item) -> None:
        if item.path == ("totalUsageEventsCount",):
            self.total = int_or_none(item.value)

    def take(self, item: Item, record: int, sink: Sink) -> None:
        self.events += 1
        value = object_item(item)
        usage = value.get("tokenUsage")
        if not isinstance(usage, dict):
            usage = {}
            sink.assumed.add(_NO_TOKENS)
        Event(
            start_ns=_time(value.get("timestamp")),
            kind=kind_of(value.get("kind")),
            model=text_or_none(value.get("model")),
            session=None,
            usage={ours: int_or_none(usage.get(name)) for name, ours in _TOKENS.items()},
            cost=_cents(value.get("chargedCents")),
            labels={
                "headless": _flag(value.get("isHeadless")),
                "max_mode": _flag(value.get("maxMode")),
                "user": person(value.get("userEmail")),
            },
        ).add(sink, record)

    def finish(self, sink: Sink) -> list[str]:
        if self.total is not None and self.total > self.events > 0:
            sink.assumed.add("its count tells of more events than this page holds: add the others")
        return []


def _time(value: Any) -> int:  # noqa: ANN401 - foreign JSON
    """Milliseconds, as a string."""
    if isinstance(value, str) and _WHOLE.fullmatch(value):
        value = int(value)
    if type(value) is not int or value * 1_000_000 not in TIMES:
        raise Bad("'timestamp' is no time in milliseconds")
    return value * 1_000_000


def _cents(value: Any) -> Decimal | None:  # noqa: ANN401 - foreign JSON
    amount = usd(value)
    return None if amount is None else usd(str(amount / 100))


def _flag(value: Any) -> str | None:  # noqa: ANN401 - foreign JSON
    return str(value).lower() if isinstance(value, bool) else None


def read(file: InputFile, options: Options) -> Iterator[Batch]:  # noqa: ARG001 - reader contract
    """One ``request`` row an event; a line of a bill where it was charged."""
    page = _Page()
    nothing = "no event in it: nothing was used, or the page lies beyond the last"
    return Requests(_LISTS, page.take, nothing, page.see, page.finish).read(file)


READER = Reader(
    title="Cursor usage events (admin API)",
    record_unit="event",
    gives=("request", "request_tag", "invoice_line"),
    probe=probe,
    read=read,
    docs="https://cursor.com/docs/account/teams/admin-api",
    cannot="durations and TTFT; the lifetime of what was written to the cache; tokens of events "
    "that are counted by requests",
    enable="POST /teams/filtered-usage-events of the admin API, every page of it",
    checked_against="a page of two events from a public test suite",
    facts=(
        ("cost", "chargedCents, which includes Cursor's own fee; 0 for what a plan includes"),
        ("user", "a mail address is kept as a hash"),
    ),
)

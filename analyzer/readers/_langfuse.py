"""What an observation of Langfuse says: tokens, times, and which generations only repeat others."""

from __future__ import annotations

import hashlib
import re
from array import array
from typing import Any

import polars as pl

from analyzer.readers._exports import count, mapping, number
from analyzer.readers._times import ms_to_ns, seconds_to_ns
from analyzer.readers._usage import BUCKETS, Counts

CALLS = ("GENERATION", "EMBEDDING")
"""Observations that are calls of a model; spans, agents and chains contain these."""
SESSIONS = ("gen_ai.conversation.id", "langsmith.metadata.session_id", "session.id")
_MOST_DEPTH = 200
_NEAR_NS, _NEAR_SHARE = 2_000_000, 0.01
_INPUT = ("input", "prompt_tokens", "inputTokens")
_READ = (
    "input_cached_tokens", "input_cache_read", "cache_read_input_tokens",
    "prompt_details.cache_read", "input_cache_read_input_tokens", "cached_tokens",
    "prompt_tokens_details.cached_tokens",
)  # fmt: skip
_WRITTEN = (
    "input_cache_creation", "cache_creation_input_tokens", "input_cache_write",
    "prompt_details.cache_write", "prompt_details.cache_creation",
)  # fmt: skip
_SHORT = ("input_cache_creation_5m", "cache_creation.ephemeral_5m_input_tokens")
_LONG = ("input_cache_creation_1h", "cache_creation.ephemeral_1h_input_tokens")
_OUTPUT = ("output", "completion_tokens", "outputTokens")
_REASONING = (
    "output_reasoning", "output_reasoning_tokens", "completion_details.reasoning",
    "completion_tokens_details.reasoning_tokens", "reasoning_tokens",
)  # fmt: skip
_TOTAL = ("total", "total_tokens", "totalTokens")
_KNOWN = frozenset((*_INPUT, *_READ, *_WRITTEN, *_SHORT, *_LONG, *_OUTPUT, *_REASONING, *_TOTAL))
_CAMEL = re.compile(r"_([a-z])")


def camel(row: dict[str, Any]) -> dict[str, Any]:
    """The row by the names of the API; exports to a bucket have these in snake case."""
    if "traceId" in row or "trace_id" not in row:
        return row
    return {_CAMEL.sub(lambda match: match[1].upper(), name): one for name, one in row.items()}


def tokens(row: dict[str, Any]) -> dict[str, Any]:
    """Buckets of ``usageDetails``.

    They are meant to be disjoint, with their sum in ``total``; senders break this, and each row's
    own total shows it. Parts of the input or output that are no bucket of ours stay in it.
    """
    raw = mapping(row.get("usageDetails")) or mapping(row.get("usage"))
    if not raw:
        raw = {
            "input": row.get("inputUsage"), "output": row.get("outputUsage"),
            "total": row.get("totalUsage"),
        }  # fmt: skip
    details = {name: whole for name, one in raw.items() if (whole := count(one)) is not None}
    # Zeros alone are what Langfuse puts where nothing was sent.
    if not any(details.values()):
        return {}

    def told(names: tuple[str, ...]) -> int | None:
        return next((details[name] for name in names if name in details), None)

    rest = {name: one for name, one in details.items() if name not in _KNOWN}
    asked = sum(one for name, one in rest.items() if name.startswith("input_"))
    made = sum(one for name, one in rest.items() if name.startswith("output_"))
    counts = Counts(
        prompt=told(_INPUT), read=told(_READ), written=told(_WRITTEN), short=told(_SHORT),
        long=told(_LONG), completion=told(_OUTPUT), reasoning=told(_REASONING), total=told(_TOTAL),
        convention="exclusive", own=False,
    )  # fmt: skip
    if (asked or made) and counts.contradiction():
        counts = _with(counts, asked, made)
    buckets = counts.buckets()
    return {} if all(buckets[name] is None for name in BUCKETS) else buckets


def _with(counts: Counts, asked: int, made: int) -> Counts:
    """Audio, images and the like told beside the text, where the total says so."""
    both = Counts(
        prompt=(counts.prompt or 0) + asked, read=counts.read, written=counts.written,
        short=counts.short, long=counts.long, completion=(counts.completion or 0) + made,
        reasoning=counts.reasoning, total=counts.total, convention=counts.convention, own=False,
    )  # fmt: skip
    return counts if both.contradiction() else both


def unit_of(latency: Any, took_ns: int | None) -> str:  # noqa: ANN401 - foreign JSON
    """Whether a latency beside its own time stamps is in ``s`` or ``ms``; "" where neither."""
    told = number(latency)
    if told is None or took_ns is None:
        return ""
    near = max(_NEAR_NS, round(took_ns * _NEAR_SHARE))
    for unit, convert in (("s", seconds_to_ns), ("ms", ms_to_ns)):
        ns = convert(told)
        if ns is not None and abs(ns - took_ns) <= near:
            return unit
    return ""


class Family:
    """Which observations have a call of a model somewhere inside them.

    Only hashes are kept, 17 bytes an observation, so that millions of them fit.
    """

    def __init__(self) -> None:
        self._ids, self._parents, self._calls = array("q"), array("q"), array("b")
        self._outer: frozenset[int] = frozenset()

    def add(self, row: dict[str, Any]) -> None:
        """One more observation, in any order."""
        self._ids.append(_hash(row, "id"))
        self._parents.append(_hash(row, "parentObservationId"))
        self._calls.append(row.get("type") in CALLS)

    def settle(self) -> None:
        """All observations are known."""
        frame = pl.DataFrame(
            {"id": pl.Series(self._ids, dtype=pl.Int64),
             "parent": pl.Series(self._parents, dtype=pl.Int64),
             "call": pl.Series(self._calls, dtype=pl.Int8) > 0}
        )  # fmt: skip
        above = frame.filter(pl.col("parent") != 0).select("id", "parent").unique("id")
        outer: set[int] = set()
        reached = frame.filter("call").select("id").join(above, on="id")["parent"].unique()
        for _ in range(_MOST_DEPTH):  # a cycle of parents would have no end
            fresh = reached.filter(~reached.is_in(list(outer)))
            if fresh.is_empty():
                break
            outer |= set(fresh)
            reached = pl.DataFrame({"id": fresh}).join(above, on="id")["parent"].unique()
        calls = set(frame.filter("call")["id"])
        self._outer = frozenset(outer & calls)

    def repeats(self, row: dict[str, Any]) -> bool:
        """Whether the usage of this call is that of calls inside it."""
        return _hash(row, "id") in self._outer


def _hash(row: dict[str, Any], name: str) -> int:
    value = row.get(name)
    if not isinstance(value, str) or not value:
        return 0
    key = f"{row.get('traceId')}\0{value}".encode("utf-8", "replace")
    return int.from_bytes(hashlib.blake2b(key, digest_size=8).digest(), "big", signed=True)

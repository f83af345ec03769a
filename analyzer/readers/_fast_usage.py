"""Usage objects of alike lines as token buckets: the plain cases of :mod:`_usage`, in columns.

Only vocabularies and numbers that nobody can read in two ways; all others are read one by one.
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from analyzer.readers._fast_kinds import SMALL, Kind
from analyzer.readers._fast_shapes import Shape

_CHAT = ("prompt_tokens", "completion_tokens")
_PLAIN = ("input_tokens", "output_tokens")
_CACHED = "prompt_tokens_details.cached_tokens"
_THOUGHT = "completion_tokens_details.reasoning_tokens"
_WRITTEN = "cache_creation_input_tokens"
_READ = "cache_read_input_tokens"

FIELDS: Mapping[str, Kind] = {
    f"usage.{name}": SMALL
    for name in (*_CHAT, *_PLAIN, _CACHED, _THOUGHT, _WRITTEN, _READ, "total_tokens")
}


def _has(shape: Shape, *names: str) -> bool:
    return any(f"usage.{name}" in shape.keys for name in names)


def _of(shape: Shape, name: str) -> pl.Expr:
    return shape.column(f"usage.{name}", pl.Int64)


def plain(shape: Shape) -> pl.Expr:
    """Whether the numbers leave no doubt how they were counted."""
    if _has(shape, *_CHAT):
        if _has(shape, *_PLAIN, _WRITTEN, _READ):
            return pl.lit(value=False)
        total = _of(shape, "prompt_tokens") + _of(shape, "completion_tokens")
        return (
            (_none_or_zero(_of(shape, _CACHED)) | (_of(shape, _CACHED) <= _of(shape, _CHAT[0])))
            & (_none_or_zero(_of(shape, _THOUGHT)) | (_of(shape, _THOUGHT) <= _of(shape, _CHAT[1])))
            & _of(shape, "total_tokens").eq_missing(total).or_(_of(shape, "total_tokens").is_null())
        )
    return pl.lit(value=not _has(shape, _CACHED, _THOUGHT, "total_tokens"))


def _none_or_zero(count: pl.Expr) -> pl.Expr:
    return count.fill_null(0) == 0


def buckets(shape: Shape) -> dict[str, pl.Expr]:
    """Columns of ``request``."""
    if _has(shape, *_CHAT):
        read, thought = _of(shape, _CACHED), _of(shape, _THOUGHT)
        return {
            "input_fresh_tokens": _of(shape, "prompt_tokens") - read.fill_null(0),
            "cache_read_tokens": read,
            "output_visible_tokens": _of(shape, "completion_tokens") - thought.fill_null(0),
            "output_reasoning_tokens": thought,
            "usage_convention": pl.lit("inclusive"),
        }
    if _has(shape, *_PLAIN):
        return {
            "input_fresh_tokens": _of(shape, "input_tokens"),
            "cache_read_tokens": _of(shape, _READ),
            "cache_write_unknown_tokens": _of(shape, _WRITTEN),
            "output_visible_tokens": _of(shape, "output_tokens"),
            "usage_convention": pl.lit("exclusive"),
        }
    return {}

"""Durations as Go and Rust print them (``1m2.5s``, ``735.2ms``, ``20.4µs``), as nanoseconds."""

from __future__ import annotations

import polars as pl

from analyzer.readers._times import DURATIONS

# Both micro signs occur: Rust and Go write U+00B5, keyboards and converters also give U+03BC.
_UNIT_NS = {"ns": 1.0, "us": 1e3, "µs": 1e3, "\u03bcs": 1e3, "ms": 1e6, "s": 1e9}
_DURATION = (
    r"^(?:(?<hours>\d{1,6})h)?(?:(?<minutes>\d{1,8})m)?"
    r"(?:(?<number>\d{1,18}(?:\.\d{1,12})?)(?<unit>[nm]s|us|µs|\x{3BC}s|s))?$"
)


def durations(text: pl.Expr) -> pl.Expr:
    """Whole nanoseconds of each text; NULL where it is no duration or none a request can have."""
    parts = text.str.extract_groups(_DURATION)

    def number(name: str) -> pl.Expr:
        return parts.struct.field(name).cast(pl.Float64, strict=False)

    unit = parts.struct.field("unit").replace_strict(
        _UNIT_NS, default=None, return_dtype=pl.Float64
    )
    # Nine digits after the point times 1e9 are exact once rounded: doubles hold 15.
    total = (
        pl.coalesce(number("hours") * 3.6e12, 0.0)
        + pl.coalesce(number("minutes") * 6e10, 0.0)
        + pl.coalesce(number("number") * unit, 0.0)
    ).round()
    told = text.str.len_bytes() > 0
    return pl.when(
        told & parts.struct.field("number").is_not_null()
        | parts.struct.field("hours").is_not_null()
        | parts.struct.field("minutes").is_not_null()
    ).then(pl.when(total.is_between(0, DURATIONS.last)).then(total).cast(pl.Int64, strict=False))

"""vLLM's log lines as columns: a kind for each line, and the values of the few that have some."""

from __future__ import annotations

import polars as pl

from analyzer.readers._rows import COUNTS
from analyzer.readers._times import TIMES

HOT = ("stats", "hits", "size", "preemption", "abort")
ACCESS, ENGINE, FOREIGN, BLANK, TEXT = (
    "access line", "engine line without numbers", "banner or foreign line", "blank line",
    "line with a prompt or an answer",
)  # fmt: skip
# A quote before them would make them somebody's prompt.
_UNQUOTED = r"^[^'\"]*"
# kind -> words that only its lines have; the first that fits wins
_KINDS = {
    BLANK: r"^$",
    TEXT: r"Received request |Generated response ",
    "stats": _UNQUOTED + r"Avg prompt throughput: ",
    "hits": _UNQUOTED + r"Prefix cache hit rate: GPU: ",
    "size": _UNQUOTED + r"KV cache size: ",
    "preemption": _UNQUOTED + r"Sequence group \S+ is preempted by ",
    # "Request x aborted." always follows one of these, so it tells nothing new.
    "abort": _UNQUOTED + r"Aborted request(?:\(s\))? ",
    ACCESS: r'"[A-Z]+ \S+ HTTP/\d',
    ENGINE: r"(?:^|\D)(?:\d{4}-)?\d\d-\d\d[ T]\d\d:\d\d:\d\d",
}

_ANSI = r"\x1b\[[0-9;]*[A-Za-z]"
# The message stands at the start of the line, or after punctuation and a space.
_MESSAGE = (
    r"^(?<head>(?:[^'\"]*?[^\w\s'\"] )??)"
    r"(?:Engine (?<engine>\d+): |(?<together>\d+) Engines Aggregated: )?"
    r"(?<message>(?:Avg prompt throughput|Prefix cache hit rate: GPU|(?:\w+ )?KV cache size): .*"
    r"|Sequence group .*|Aborted request.*)$"
)
_STAMP = (
    r"(?:^|\D)(?:(?<year>\d{4})-)?(?<month>\d\d)-(?<day>\d\d)[ T](?<time>\d\d:\d\d:\d\d)"
    r"(?:[.,](?<fraction>\d{1,9}))?(?<offset>Z|[+-]\d\d:?\d\d)?"
)
_NUMBER = r"(\d+(?:\.\d+)?|nan|inf)"
_END = r"(?:,|\.?$)"
# column -> (name as written, unit as written, divisor); anything else on the line is passed over
_PAIRS = {
    "prompt_tokens_per_s": ("Avg prompt throughput", " tokens/s", 1),
    "generation_tokens_per_s": ("Avg generation throughput", " tokens/s", 1),
    "running": ("Running", " reqs", 0),
    "waiting": ("(?:Waiting|Pending)", " reqs", 0),
    "swapped": ("Swapped", " reqs", 0),
    "preemptions": ("Preemptions", "", 0),
    # Version 0 also tells of a second pool in main memory; the first one named is the device's.
    "kv_used_ratio": (r"(?:\w+ )?KV cache usage", "%", 100),
    "prefix_hit_ratio": ("Prefix cache hit rate", "%", 100),
}
_REQUIRED = ("prompt_tokens_per_s", "generation_tokens_per_s", "running")


def lines_of(lines: list[bytes], first_record: int) -> pl.DataFrame:
    """record, text and kind of each line."""
    data = b"\n".join(lines)
    text = pl.Series("text", data.decode("utf-8", "replace").split("\n"))
    if b"\x1b" in data:
        text = text.str.replace_all(_ANSI, "")
    frame = pl.DataFrame({"text": text.str.strip_chars_end()})
    return frame.with_columns(
        record=pl.int_range(pl.len(), dtype=pl.Int64) + first_record,
        kind=pl.coalesce(
            pl.when(pl.col("text").str.contains(words)).then(pl.lit(name))
            for name, words in _KINDS.items()
        ).fill_null(FOREIGN),
    )


def messages_of(hot: pl.DataFrame) -> pl.DataFrame:
    """The hot lines split into head, stamp, engine and message."""
    parts = hot.with_columns(pl.col("text").str.extract_groups(_MESSAGE)).unnest("text")
    return parts.with_columns(
        pl.col("head").str.extract_groups(_STAMP).alias("stamp"),
        engine=pl.coalesce(
            "engine",
            pl.when(pl.col("together").is_not_null()).then(pl.lit("aggregated")),
            pl.col("head").str.extract(r"EngineCore(?:_DP)?_?(\d+) pid=").str.zfill(3),
        ),
    ).unnest("stamp")


def values_of(messages: pl.DataFrame) -> pl.DataFrame:
    """Messages with their values as columns; ``good`` is false where a value cannot be read."""
    stats = pl.col("kind") == "stats"
    columns, good = [], pl.lit(value=True)
    for column, (name, unit, divisor) in _PAIRS.items():
        told = pl.col("message").str.extract(f"(?:^|, ){name}: {_NUMBER}{unit}{_END}")
        present = pl.col("message").str.contains(f"(?:^|, ){name}:")
        value = _cast(told, divisor)
        # An engine that has nothing to tell yet writes nan, which is no count and no mistake.
        sound = value.is_between(0, COUNTS[-1]) | (divisor != 0) & told.is_in(["nan", "inf"])
        good = good & (~present | sound.fill_null(value=False))
        if column in _REQUIRED:
            good = good & told.is_not_null()
        columns.append(value.alias(column))
    hits = pl.col("message").str.extract(r"GPU: (\d+(?:\.\d+)?)%(?:,|\.?$)")
    size = pl.col("message").str.extract(r"KV cache size: ([\d,]+) tokens(?:\W|$)")
    size = size.str.replace_all(",", "").cast(pl.Int64, strict=False)
    size = pl.when(size <= COUNTS[-1]).then(size)
    rate = pl.when(stats).then(pl.col("prefix_hit_ratio")).otherwise(_cast(hits, 100))
    names = [name for name in _PAIRS if name != "prefix_hit_ratio"]
    return (
        messages.with_columns(*columns, stats_good=good, capacity_tokens=size)
        .with_columns(prefix_hit_ratio=rate)
        .with_columns(pl.when(stats).then(pl.col(name)).alias(name) for name in names)
        .with_columns(
            good=pl.when(stats)
            .then("stats_good")
            .when(pl.col("kind") == "hits")
            .then(hits.is_not_null())
            .when(pl.col("kind") == "size")
            .then(size.is_not_null())
            .otherwise(pl.lit(value=True))
            .fill_null(value=False)
        )
    )


def _cast(told: pl.Expr, divisor: int) -> pl.Expr:
    if not divisor:
        return told.cast(pl.Int64, strict=False)
    number = told.cast(pl.Float64, strict=False)
    return pl.when(number.is_finite()).then((number / divisor).round(6))


def times_of(messages: pl.DataFrame, years: pl.Series, zone: str) -> pl.DataFrame:
    """``time_ns`` of each line, NULL where it is no time; ``years`` for the lines without one."""
    digits = pl.concat_str(
        [pl.coalesce("year", years.cast(pl.String)), "month", "day", "time"], separator="-"
    )
    naive = digits.str.to_datetime("%Y-%m-%d-%H:%M:%S", time_unit="us", strict=False)
    there = naive.dt.replace_time_zone(zone, ambiguous="earliest", non_existent="null")
    offset = pl.col("offset").replace("Z", "+00:00").str.replace(":", "")
    seconds = (
        offset.str.slice(1, 2).cast(pl.Int64) * 3600 + offset.str.slice(3, 2).cast(pl.Int64) * 60
    ) * pl.when(offset.str.starts_with("-")).then(-1).otherwise(1)
    us = (
        pl.when(pl.col("offset").is_null())
        .then(there.dt.epoch("us"))
        .otherwise(naive.dt.epoch("us") - seconds * 1_000_000)
    )
    fraction = pl.col("fraction").str.pad_end(9, "0").cast(pl.Int64).fill_null(0)
    # Years first: int64 nanoseconds would not hold all of them.
    fits = naive.dt.year().is_between(1989, 2200)
    frame = messages.with_columns(time_ns=pl.when(fits).then(us * 1000 + fraction))
    real = pl.col("time_ns").is_between(TIMES[0], TIMES[-1])
    return frame.with_columns(time_ns=pl.when(real).then("time_ns"))

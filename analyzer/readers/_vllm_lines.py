"""vLLM's log lines as columns: a kind for each line, and the values of the few that have some."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from analyzer.readers._fast_shapes import INDEX, LINE, frame_of
from analyzer.readers._file import Lines
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

# Each of these kinds has one of these words.
_RARE_WORDS = (
    "Received request |Generated response |Avg prompt throughput: |Prefix cache hit rate: GPU: "
    "|KV cache size: |is preempted by |Aborted request"
)
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
_USUAL = (
    r"^Avg prompt throughput: (?<prompt_tokens_per_s>[0-9]{1,9}\.[0-9]+) tokens/s, "
    r"Avg generation throughput: (?<generation_tokens_per_s>[0-9]{1,9}\.[0-9]+) tokens/s, "
    r"Running: (?<running>[0-9]{1,9}) reqs, Waiting: (?<waiting>[0-9]{1,9}) reqs, "
    r"GPU KV cache usage: (?<kv_used_ratio>[0-9]{1,9}\.[0-9]+)%, "
    r"Prefix cache hit rate: (?<prefix_hit_ratio>[0-9]{1,9}\.[0-9]+)%$"
)
_REQUIRED = ("prompt_tokens_per_s", "generation_tokens_per_s", "running")


def lines_of(block: Lines) -> pl.DataFrame:
    """record, text and kind of each line."""
    frame = frame_of(block)
    if frame is None:
        text = pl.Series(LINE, block.data.decode("utf-8", "replace").split("\n")[: block.count])
        frame = text.to_frame().with_row_index(INDEX)
    text = frame[LINE].fill_null("")
    if b"\x1b" in block.data:
        text = text.str.replace_all(_ANSI, "")
    record = pl.col(INDEX).cast(pl.Int64) + block.first_record
    lines = frame.select(record=record, text=text.str.strip_chars_end())
    # Nearly all lines are of the last kinds: the others are looked for where their words stand.
    rare = lines["text"].str.contains(_RARE_WORDS)
    common = lines.filter(~rare)
    access = common["text"].str.contains(_KINDS[ACCESS])
    parts = [
        _with_kind(lines.filter(rare), _KINDS),
        common.filter(access).with_columns(kind=pl.lit(ACCESS)),
        _with_kind(common.filter(~access), {kind: _KINDS[kind] for kind in (BLANK, ENGINE)}),
    ]
    return pl.concat(parts).sort("record")


def _with_kind(lines: pl.DataFrame, kinds: Mapping[str, str]) -> pl.DataFrame:
    told = pl.coalesce(
        pl.when(pl.col("text").str.contains(words)).then(pl.lit(name))
        for name, words in kinds.items()
    )
    return lines.with_columns(kind=told.fill_null(FOREIGN))


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
    usual = messages["message"].str.contains(_USUAL).fill_null(value=False)
    if usual.any() and not usual.all():
        parts = [values_of(messages.filter(usual)), values_of(messages.filter(~usual))]
        return pl.concat(parts, how="diagonal").sort("record")
    if usual.any():
        return _usual_values(messages)
    stats = pl.col("kind") == "stats"
    columns, good = [], pl.lit(value=True)
    for column, (name, unit, divisor) in _PAIRS.items():
        told = pl.col("message").str.extract(f"(?:^|, ){name}: {_NUMBER}{unit}{_END}")
        present = pl.col("message").str.contains(f"(?:^|, ){name}:")
        value = _cast(told, divisor)
        # An engine that has nothing to tell yet writes nan, which is no count and no mistake.
        sound = value.is_between(0, COUNTS.last) | (divisor != 0) & told.is_in(["nan", "inf"])
        good = good & (~present | sound.fill_null(value=False))
        if column in _REQUIRED:
            good = good & told.is_not_null()
        columns.append(value.alias(column))
    hits = pl.col("message").str.extract(r"GPU: (\d+(?:\.\d+)?)%(?:,|\.?$)")
    size = pl.col("message").str.extract(r"KV cache size: ([\d,]+) tokens(?:\W|$)")
    size = size.str.replace_all(",", "").cast(pl.Int64, strict=False)
    size = pl.when(size <= COUNTS.last).then(size)
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


def _usual_values(messages: pl.DataFrame) -> pl.DataFrame:
    """The same for status lines of the usual form, in one pass over each."""
    groups = messages["message"].str.extract_groups(_USUAL).struct.unnest()
    return messages.hstack(groups).with_columns(
        *(_cast(pl.col(name), _PAIRS[name][2]) for name in groups.columns),
        *(pl.lit(None, pl.Int64).alias(name) for name in ("swapped", "preemptions")),
        stats_good=pl.lit(value=True),
        capacity_tokens=pl.lit(None, pl.Int64),
        good=pl.lit(value=True),
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
    real = pl.col("time_ns").is_between(TIMES.start, TIMES.last)
    return frame.with_columns(time_ns=pl.when(real).then("time_ns"))

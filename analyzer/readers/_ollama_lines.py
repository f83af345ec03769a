"""Lines of Ollama's server log as columns: its access lines and its own key=value lines."""

from __future__ import annotations

from typing import Any

import polars as pl

from analyzer.readers._file import Lines
from analyzer.readers._line_log import texts
from analyzer.readers._llama_lines import COLUMNS, INFERENCE, QUIET, columns_of
from analyzer.readers._text_durations import durations
from analyzer.readers._times import TIMES

OURS = ("call", "load", "begin", "unload", "memory", "restart", "broken")
OTHER_CALL = "call that runs no model"
_EXTRA = {"time_ns": pl.Int64, "naive": pl.Datetime("us"), "offset": pl.String, "dur_ns": pl.Int64}

# A journal or container runtime may put its own words before a line.
_GIN = (
    r"\[GIN\] (?<day>\d{4}/\d\d/\d\d) - (?<clock>\d\d:\d\d:\d\d) \| +(?<status>\d{3}) +\| +"
    r"(?<latency>\S+) +\| +\S+ +\| +(?<method>[A-Z]+) +\"(?<path>[^\"?]*)"
)
_SLOG = (
    r"\btime=\"?(?<at>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?)(?<offset>Z|[+-]\d\d:\d\d)\"? "
    r"level=(?<level>[A-Z]+) source=(?<source>[\w./-]+:\d+) (?<message>.*)$"
)
_STARTED = r"^msg=\"(?:llama runner|llama-server) started in (\d{1,9}\.\d+) seconds\""
_BEGIN = (
    r"^msg=\"(?:starting (?:llama server|runner|llama-server)|loading model via llama-server)\""
)
_UNLOAD = r"^msg=\"(?:runner released|runner terminated and removed from list)"
_MEMORY = r"(?:^msg=\"Load failed\".*error=.*memory|out of memory)"
_RESTART = r"^msg=\"Listening on "
_PREFIX = r"^(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \S+ \S+\[\d+\]: |[\w.\[\] -]{1,60}? +\| )"


def lines_of(block: Lines) -> pl.DataFrame:
    """llama.cpp's columns of each line and ours beside them; ``naive`` is a time without a zone."""
    frame = texts(block).with_columns(pl.col("text").str.replace(_PREFIX, ""))
    gin = pl.col("text").str.contains(r"\[GIN\] ")
    slog = pl.col("text").str.contains(r"\btime=\S+ level=[A-Z]+ source=")
    runner = columns_of(frame.filter(~gin & ~slog))
    parts = [_calls(frame.filter(gin)), _told(frame.filter(slog & ~gin)), _padded(runner)]
    return pl.concat(parts).sort("record")


def _padded(frame: pl.DataFrame) -> pl.DataFrame:
    whole: dict[str, Any] = {**COLUMNS, **_EXTRA}
    missing = [
        pl.lit(None, dtype=kind).alias(name)
        for name, kind in whole.items()
        if name not in frame.columns
    ]
    return frame.with_columns(missing).select(list(whole))


def _calls(frame: pl.DataFrame) -> pl.DataFrame:
    frame = frame.with_columns(pl.col("text").str.extract_groups(_GIN).alias("gin")).unnest("gin")
    model = (pl.col("method") == "POST") & pl.col("path").str.contains(INFERENCE)
    told = frame.with_columns(
        naive=pl.concat_str("day", "clock", separator=" ").str.to_datetime(
            "%Y/%m/%d %H:%M:%S", time_unit="us", strict=False
        ),
        dur_ns=durations(pl.col("latency")),
        status=pl.col("status").cast(pl.Int64, strict=False),
        text=pl.lit(None, dtype=pl.String),
    )
    good = pl.col("naive").dt.year().is_between(1990, 2199) & pl.col("dur_ns").is_not_null()
    return _padded(
        told.with_columns(
            kind=pl.when(~good.fill_null(value=False))
            .then(pl.lit("broken"))
            .when(model)
            .then(pl.lit("call"))
            .otherwise(pl.lit(OTHER_CALL)),
        ).select("record", "kind", "naive", "dur_ns", "status", "path", "text")
    )


def _told(frame: pl.DataFrame) -> pl.DataFrame:
    frame = frame.with_columns(pl.col("text").str.extract_groups(_SLOG).alias("slog")).unnest(
        "slog"
    )
    message = pl.col("message")
    at = pl.concat_str("at", pl.col("offset").replace("Z", "+00:00"))
    seconds = message.str.extract(_STARTED)
    frame = frame.with_columns(
        time_ns=at.str.to_datetime("%+", time_unit="ns", strict=False, time_zone="UTC").dt.epoch(
            "ns"
        ),
        dur_ns=durations(pl.concat_str(seconds, pl.lit("s"))),
    )
    real = pl.col("time_ns").is_between(TIMES.start, TIMES.last).fill_null(value=False)
    loader = message.str.contains(r"^msg=\"(?:model weights|offloaded \d+/\d+ layers)")
    kind = (
        pl.when(~real)
        .then(pl.lit("broken"))
        .when(pl.col("dur_ns").is_not_null())
        .then(pl.lit("load"))
        .when(message.str.contains(_BEGIN))
        .then(pl.lit("begin"))
        .when(message.str.contains(_UNLOAD))
        .then(pl.lit("unload"))
        .when(message.str.contains(_MEMORY))
        .then(pl.lit("memory"))
        .when(message.str.contains(_RESTART))
        .then(pl.lit("restart"))
        .when(loader)
        .then(pl.lit("loader"))
        .otherwise(pl.lit(QUIET))
    )
    frame = frame.with_columns(kind=kind)
    kept = pl.col("kind").is_in(["loader", "begin"])
    return _padded(
        frame.with_columns(text=pl.when(kept).then("message")).select(
            "record", "kind", "time_ns", "offset", "dur_ns", "text"
        )
    )

"""Lines of TGI's router as columns, the same ones for its text and its JSON form."""

from __future__ import annotations

from typing import Any

import msgspec
import polars as pl

from analyzer.readers._file import Lines
from analyzer.readers._line_log import BLANK, FOREIGN, texts
from analyzer.readers._rows import COUNTS
from analyzer.readers._text_durations import durations
from analyzer.readers._times import TIMES

HOT = ("success", "refused", "capacity", "load", "unreadable")
QUIET = "router or launcher line without times"
TIMES_TOLD = (
    "total_time", "validation_time", "tokenization_time", "queue_time", "inference_time",
    "time_per_token",
)  # fmt: skip
_PARTS = ("at", "level", "span", "parameters", "target", "message", "trace_id", "rank", *TIMES_TOLD)

_decode = msgspec.json.Decoder().decode

_TEXT = (
    r"^[^{\"]*?(?<at>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z)\s+"
    r"(?<level>TRACE|DEBUG|INFO|WARN|ERROR)\s+(?<rest>.*)$"
)
_SUCCESS = r": text_(?:generation|embeddings)_router[\w:]*: [\w/.-]+:\d+: Success$"
# The parameters come first and may hold what users wrote; the times are what follows the last
# of them, so the greedy part eats every look-alike.
_SPAN = (
    r"(?:^|[:\s])(?<span>\w+)\{(?:parameters=(?<parameters>.*) )?"
    r"(?<told>total_time=\"[^\"]*\"(?: \w+=\"[^\"]*\")*)\}: text_"
)
_REFUSED = (
    r"^(?<span>\w*)[^ ]*.* text_generation_router::infer[\w:]*: [\w/.-]+:\d+: (?<message>.*)$"
)
_CAPACITY = r"^Setting max batch total tokens to (\d{1,15})$"
_LOAD = r"^Shard ready in (\S+?)(?: rank=(\d+))?$"
_LIMIT = r"max_new_tokens: (?:Some\()?(\d{1,15})"
_OVERLOADED = r"no permits available|overloaded"


def lines_of(block: Lines) -> pl.DataFrame:
    """Kind and parts of each line; parts are the texts as written."""
    frame = texts(block)
    is_json = pl.col("text").str.starts_with("{")
    text = _text_parts(frame.filter(~is_json))
    objects = _json_parts(frame.filter(is_json))
    return pl.concat([text, objects]).sort("record")


def _text_parts(frame: pl.DataFrame) -> pl.DataFrame:
    frame = frame.with_columns(pl.col("text").str.extract_groups(_TEXT).alias("head")).unnest(
        "head"
    )
    rest = pl.col("rest")
    span = rest.str.extract_groups(_SPAN)
    refused = rest.str.extract_groups(_REFUSED)
    last = rest.str.extract(r": ((?:Setting max|Shard ready).*)$")
    success = rest.str.contains(_SUCCESS)
    fault = (pl.col("level") == "ERROR") & refused.struct.field("message").is_not_null()
    told = span.struct.field("told")
    frame = frame.with_columns(
        span=pl.when(success)
        .then(span.struct.field("span"))
        .otherwise(refused.struct.field("span")),
        parameters=span.struct.field("parameters"),
        message=pl.when(fault).then(refused.struct.field("message")).otherwise(last),
        trace_id=rest.str.extract(r"^[^\"]*?\btrace_id=([0-9a-f]{32})\}"),
        **{name: told.str.extract(rf'\b{name}="([^"]*)"') for name in TIMES_TOLD},
    )
    return frame.with_columns(
        target=pl.lit(None, dtype=pl.String),
        rank=pl.lit(None, dtype=pl.String),
        kind=pl.when(pl.col("text") == "")
        .then(pl.lit(BLANK))
        .when(pl.col("at").is_null())
        .then(pl.lit(FOREIGN))
        .when(success)
        .then(pl.lit("success"))
        .when(fault)
        .then(pl.lit("refused"))
        .when(pl.col("message").str.contains(_CAPACITY))
        .then(pl.lit("capacity"))
        .when(pl.col("message").str.contains(_LOAD))
        .then(pl.lit("load"))
        .otherwise(pl.lit(QUIET)),
    ).select("record", "kind", *_PARTS)


def _json_parts(frame: pl.DataFrame) -> pl.DataFrame:
    rows = [
        {"record": record, **_object_parts(text)}
        for record, text in frame.select("record", "text").iter_rows()
    ]
    schema = {"record": pl.Int64, "kind": pl.String} | dict.fromkeys(_PARTS, pl.String)
    return pl.DataFrame(rows, schema=schema)


def _object_parts(text: str) -> dict[str, str | None]:
    try:
        value = _decode(text)
    except (msgspec.DecodeError, RecursionError):
        return {"kind": "unreadable"}
    if not isinstance(value, dict) or "timestamp" not in value or "level" not in value:
        return {"kind": FOREIGN}
    fields = value.get("fields")
    message = _text(
        value.get("message") or (fields if isinstance(fields, dict) else {}).get("message")
    )
    span = value.get("span")
    span = span if isinstance(span, dict) else {}
    spans = value.get("spans")
    holders = [span, *(one for one in _list(spans)[::-1] if isinstance(one, dict))]
    target = _text(value.get("target")) or ""
    parts: dict[str, str | None] = {
        "at": _text(value.get("timestamp")), "level": _text(value.get("level")), "target": target,
        "message": message, "rank": _rank(span), "kind": _object_kind(value, target, message or ""),
    }  # fmt: skip
    timed = next((one for one in holders if "total_time" in one), holders[-1])
    parts["span"] = _text(timed.get("name"))
    parts["parameters"] = _text(timed.get("parameters"))
    trace = (_text(one.get("trace_id")) for one in holders)
    parts["trace_id"] = next((one for one in trace if one), None)
    return parts | {name: _text(timed.get(name)) for name in TIMES_TOLD}


def _object_kind(value: dict[str, Any], target: str, message: str) -> str:
    if message == "Success" and target.startswith(("text_generation_", "text_embeddings_")):
        return "success"
    if value.get("level") == "ERROR" and target.startswith("text_generation_router::infer"):
        return "refused"
    if message.startswith("Setting max batch total tokens to "):
        return "capacity"
    return "load" if message.startswith("Shard ready in ") else QUIET


def _rank(span: dict[str, Any]) -> str | None:
    rank = span.get("rank")
    return str(rank) if isinstance(rank, int) and rank in COUNTS else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def values_of(hot: pl.DataFrame) -> pl.DataFrame:
    """Columns of the tables, and ``bad``: why a line cannot be read."""
    whole = pl.col("at").str.to_datetime("%+", time_unit="ns", strict=False, time_zone="UTC")
    ns = {name: durations(pl.col(name)) for name in TIMES_TOLD}
    frame = hot.with_columns(
        time_ns=whole.dt.epoch("ns"),
        **{f"{name}_ns": value for name, value in ns.items()},
        capacity_tokens=pl.col("message").str.extract(_CAPACITY).cast(pl.Int64, strict=False),
        dur_ns=durations(pl.col("message").str.extract(_LOAD)),
        engine=pl.coalesce("rank", pl.col("message").str.extract(_LOAD, 2)),
    )
    frame = frame.with_columns(
        time_ns=pl.when(pl.col("time_ns").is_between(TIMES.start, TIMES.last)).then("time_ns"),
        frontend_ns=pl.coalesce("validation_time_ns", "tokenization_time_ns"),
        queue_ns="queue_time_ns",
        e2e_ns="total_time_ns",
        output_visible_tokens=_tokens(),
    )
    success, refused = pl.col("kind") == "success", pl.col("kind") == "refused"
    return frame.with_columns(
        bad=_bad(),
        vantage=pl.lit("engine"),
        clock=pl.lit("wall"),
        timing=pl.when(success).then(pl.lit("stated")),
        # A line is written when what it tells of is over.
        time_ns=pl.col("time_ns") - pl.coalesce("dur_ns", 0),
        start_ns=pl.when(success).then(pl.col("time_ns") - pl.col("e2e_ns")).otherwise("time_ns"),
        endpoint=pl.when(~pl.col("span").is_in(["", "HTTP", "HTTP request"])).then("span"),
        streamed=pl.when(pl.col("span") == "generate_stream")
        .then(pl.lit(value=True))
        .when(pl.col("span") == "generate")
        .then(pl.lit(value=False)),
        max_output_tokens=pl.col("parameters").str.extract(_LIMIT).cast(pl.Int64, strict=False),
        error=pl.when(refused & pl.col("message").str.contains(_OVERLOADED))
        .then(pl.lit("overloaded"))
        .when(refused)
        .then(pl.lit("error")),
        status=pl.when(refused & pl.col("message").str.contains(_OVERLOADED)).then(
            pl.lit(429, dtype=pl.Int64)
        ),
    )


def _tokens() -> pl.Expr:
    """TGI divides whole nanoseconds by the tokens it made, so the quotient proves itself."""
    inference, each = pl.col("inference_time_ns"), pl.col("time_per_token_ns")
    count = (inference / each).round().cast(pl.Int64, strict=False)
    proven = (each > 0) & (count > 0) & (inference // count == each)
    return pl.when(proven).then(count)


def _bad() -> pl.Expr:
    success = pl.col("kind") == "success"
    unread = pl.any_horizontal(
        pl.col(name).is_not_null() & pl.col(f"{name}_ns").is_null() for name in TIMES_TOLD
    )
    return (
        pl.when(pl.col("kind") == "unreadable")
        .then(pl.lit("not valid JSON"))
        .when(pl.col("time_ns").is_null())
        .then(pl.lit("a line with values, but without a time that exists"))
        .when(success & unread)
        .then(pl.lit("a duration that is none"))
        .when(success & (pl.col("e2e_ns").is_null() | pl.col("queue_ns").is_null()))
        .then(pl.lit("a Success line without total_time and queue_time"))
        .when((pl.col("kind") == "capacity") & pl.col("capacity_tokens").is_null())
        .then(pl.lit("a size that cannot be read"))
        .when((pl.col("kind") == "load") & pl.col("dur_ns").is_null())
        .then(pl.lit("a duration that is none"))
    )

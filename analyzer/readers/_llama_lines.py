"""Lines of a llama.cpp server's log as columns: its three generations, text or JSON."""

from __future__ import annotations

from typing import Any

import msgspec
import polars as pl

from analyzer.readers._file import Lines
from analyzer.readers._line_log import BLANK, FOREIGN, texts
from analyzer.readers._llama_loader import LINE as LOADER_LINE
from analyzer.readers._rows import COUNTS

TASK = ("launch", "prompt", "header", "prefill", "decode", "release", "cancel")
HOT = (*TASK, "loader", "refused", "unreadable")
QUIET, ACCESS, SUM = (
    "server or slot line without times", "access line", "total, which adds up the two times",
)  # fmt: skip
COLUMNS = {
    "record": pl.Int64, "kind": pl.String, "port": pl.String, "stamp_ns": pl.Int64,
    "wall_ns": pl.Int64, "slot": pl.Int64, "task": pl.Int64, "ms": pl.Float64, "count": pl.Int64,
    "status": pl.Int64, "path": pl.String, "text": pl.String,
}  # fmt: skip
INFERENCE = (
    r"^(?:/v1)?/(?:chat/)?(?:completions?|infill|embeddings?|responses|messages|rerank(?:ing)?)$"
    r"|^/api/(?:chat|generate|embed|embeddings)$"
)

_decode = msgspec.json.Decoder().decode

_HEAD = (
    r"^(?:\[(?<port>\d{1,5})\] ?)?"
    r"(?:(?<minutes>\d{1,7})\.(?<seconds>\d\d)\.(?<millis>\d{3})\.(?<micros>\d{3}) [A-Z] )?"
    r"(?<rest>.*)$"
)
_SLOT = r"^slot +(?<func>\w+): id +(?<slot>\d+) \| task (?<task>\d+) \|\s*(?<message>.*)$"
# Version i: a message, then key=value pairs behind a bar.
_PAIRED = r"^(?:INFO|VERB|WARN|ERR|DEBUG) +\[ *(?<func>\w+)\] (?<message>.*?) \| (?<pairs>.*)$"
_TIME = (
    r"^\s*(?<what>prompt eval|generation eval|eval|total) time += +(?<ms>[\d.]+) ms"
    r"(?: / +(?<count>\d+) (?:tokens|runs))?"
)
_PROMPT = r"(?:n_prompt_tokens|task\.n_tokens) = (\d+)"
_ACCESS = r"^srv +\w+: (?:done )?request: [A-Z]+ (?<path>\S+) \S+ (?<status>\d{3})$"
_CANCEL = r"cancel task, id_task = (\d+)"
_SERVER = r"^(?:srv|slot|que|main|res|init|set|build|system) *\w*:|^(?:INFO|WARN|ERR|VERB) +\["


def lines_of(block: Lines) -> pl.DataFrame:
    """:data:`COLUMNS` of each line; ``text`` only where the model loader speaks."""
    return columns_of(texts(block))


def columns_of(frame: pl.DataFrame) -> pl.DataFrame:
    """The same for lines that are already texts with their record."""
    is_json = pl.col("text").str.starts_with('{"')
    text = _text_columns(frame.filter(~is_json))
    objects = _json_columns(frame.filter(is_json))
    return pl.concat([text, objects]).sort("record")


def _text_columns(frame: pl.DataFrame) -> pl.DataFrame:
    frame = frame.with_columns(pl.col("text").str.extract_groups(_HEAD).alias("head")).unnest(
        "head"
    )
    rest = pl.col("rest")
    slot, paired = rest.str.extract_groups(_SLOT), rest.str.extract_groups(_PAIRED)
    pairs = paired.struct.field("pairs")

    def pair(names: str) -> pl.Expr:
        told = pairs.str.extract(rf"(?:^| )(?:{names})=(\d{{1,18}})(?: |$)")
        return told.cast(pl.Int64, strict=False)

    frame = frame.with_columns(
        is_slot=slot.struct.field("func").is_not_null(),
        is_paired=pairs.is_not_null(),
        func=pl.coalesce(slot.struct.field("func"), paired.struct.field("func")),
        message=pl.coalesce(slot.struct.field("message"), paired.struct.field("message"), rest),
        slot=pl.coalesce(
            slot.struct.field("slot").cast(pl.Int64, strict=False), pair("id_slot|slot_id")
        ),
        task=pl.coalesce(
            slot.struct.field("task").cast(pl.Int64, strict=False), pair("id_task|task_id")
        ),
        wall_ns=_epoch(pair("timestamp")),
        stamp_ns=_since_start(),
        access=rest.str.extract_groups(_ACCESS),
        cancelled=rest.str.extract(_CANCEL).cast(pl.Int64, strict=False),
    )
    return _kinds(frame).select(list(COLUMNS))


def _since_start() -> pl.Expr:
    parts = [pl.col(name).cast(pl.Int64) for name in ("minutes", "seconds", "millis", "micros")]
    return (parts[0] * 60 + parts[1]) * 1_000_000_000 + parts[2] * 1_000_000 + parts[3] * 1_000


def _epoch(seconds: pl.Expr) -> pl.Expr:
    return pl.when(seconds.is_between(631_152_000, 7_258_118_399)).then(seconds * 1_000_000_000)


def _kinds(frame: pl.DataFrame) -> pl.DataFrame:
    message, func = pl.col("message"), pl.col("func")
    time = message.str.extract_groups(_TIME)
    what = time.struct.field("what")
    printing = func.str.starts_with("print_timing")
    loader = pl.col("text").str.contains(LOADER_LINE)
    status = pl.col("access").struct.field("status").cast(pl.Int64, strict=False)
    path = pl.col("access").struct.field("path")
    # Continuation lines carry no slot: the header before them does.
    timed = printing | func.is_null()
    frame = frame.with_columns(
        ms=time.struct.field("ms").cast(pl.Float64, strict=False),
        count=pl.coalesce(time.struct.field("count"), message.str.extract(_PROMPT)).cast(
            pl.Int64, strict=False
        ),
        status=status,
        path=path,
        task=pl.coalesce("cancelled", "task"),
        kind=pl.when(pl.col("text") == "")
        .then(pl.lit(BLANK))
        .when(pl.col("cancelled").is_not_null())
        .then(pl.lit("cancel"))
        .when(timed & (what == "prompt eval"))
        .then(pl.lit("prefill"))
        .when(timed & what.is_in(["eval", "generation eval"]))
        .then(pl.lit("decode"))
        .when(timed & (what == "total"))
        .then(pl.lit(SUM))
        .when(printing & pl.col("is_slot") & (message == ""))
        .then(pl.lit("header"))
        .when(message.str.contains(r"^(?:slot is )?processing task"))
        .then(pl.lit("launch"))
        .when(pl.col("is_slot") & message.str.starts_with("new prompt,"))
        .then(pl.lit("prompt"))
        .when(message.str.contains(r"^stop processing|^slot released$"))
        .then(pl.lit("release"))
        .when((status >= 400) & path.str.contains(INFERENCE))
        .then(pl.lit("refused"))
        .when(status.is_not_null() | message.str.contains(r"^request$"))
        .then(pl.lit(ACCESS))
        .when(loader)
        .then(pl.lit("loader"))
        .when(pl.col("rest").str.contains(_SERVER))
        .then(pl.lit(QUIET))
        .otherwise(pl.lit(FOREIGN)),
    )
    lost = pl.col("kind").is_in(["launch", "release"]) & pl.col("slot").is_null()
    return frame.with_columns(
        kind=pl.when(lost).then(pl.lit(FOREIGN)).otherwise("kind"),
        text=pl.when(pl.col("kind") == "loader").then("text"),
    )


def _json_columns(frame: pl.DataFrame) -> pl.DataFrame:
    """``--log-format json`` of version i: the same messages, the pairs as keys."""
    rows = []
    for record, text in frame.select("record", "text").iter_rows():
        try:
            value = _decode(text)
        except (msgspec.DecodeError, RecursionError):
            value = None
        if isinstance(value, dict):
            rows.append({"record": record, "text": _as_text(value)})
        else:
            rows.append({"record": record, "text": None})
    if not rows:
        return pl.DataFrame(schema=COLUMNS)
    frame = pl.DataFrame(rows, schema={"record": pl.Int64, "text": pl.String})
    unread = frame.filter(pl.col("text").is_null()).with_columns(kind=pl.lit("unreadable"))
    read = _text_columns(frame.drop_nulls("text"))
    return pl.concat(
        [
            read,
            unread.with_columns(
                pl.lit(None, dtype=kind).alias(name)
                for name, kind in COLUMNS.items()
                if name not in unread.columns
            ).select(list(COLUMNS)),
        ]
    )


def _as_text(value: dict[str, Any]) -> str:
    func, message = value.get("function"), value.get("msg")
    if not isinstance(func, str) or not isinstance(message, str) or not func.isidentifier():
        return "?"
    numbers = (
        f"{name}={value[name]}"
        for name in ("timestamp", "id_slot", "slot_id", "id_task", "task_id")
        if type(value.get(name)) is int and value[name] in COUNTS
    )
    return f"INFO [{func}] {message.splitlines()[0] if message else ''} | {' '.join(numbers)}"

"""SGLang's log lines as columns: a kind for each line, and the values of the scheduler's.

The head of a scheduler line changed its punctuation twice and the pairs after it changed names and
order, so each value is looked up by its name, wherever it stands.
"""

from __future__ import annotations

import polars as pl

from analyzer.readers._rows import COUNTS
from analyzer.readers._times import TIMES

BATCHES = ("prefill", "decode", "size")
EVENTS = ("retract", "load", "compile", "memory", "abort")
REQUESTS = ("stats", "json", "finish")
HOT = (*BATCHES, *EVENTS, *REQUESTS)
RECEIVED = "received request: its finish repeats it"
ACCESS, ENGINE, FOREIGN, BLANK = (
    "access line", "engine line without numbers", "banner or foreign line", "blank line",
)  # fmt: skip
# A quote before them would make them somebody's prompt.
_UNQUOTED = r"^[^'\"]*"
_BATCH = r" batch(?:[.,]| \[\d+\],) #"
# kind -> words that only its lines have; the first that fits wins
_KINDS = {
    "decode": _UNQUOTED + "Decode" + _BATCH,
    "prefill": _UNQUOTED + "Prefill" + _BATCH,
    BLANK: r"^$",
    "json": r"^[^'\"{]*\{\"timestamp\": ?\"[^\"]*\", ?\"event\": ?\"",
    "finish": _UNQUOTED + r"\bFinish: obj=\w+\(",
    RECEIVED: _UNQUOTED + r"\bReceive: obj=\w+\(",
    "stats": _UNQUOTED + r"Req ?Time ?Stats\(rid=",
    "size": _UNQUOTED + r"\bmax_total_num_tokens=\d",
    "retract": _UNQUOTED + r"#retracted_reqs: \d",
    "load": _UNQUOTED + r"Load weight end\.",
    "compile": _UNQUOTED + r"(?:Capture [\w ]*graph end\.|Compiling a graph .*takes)",
    "memory": _UNQUOTED + r"(?:OutOfMemoryError: |(?:Prefill|Decode) out of memory\.)",
    "abort": _UNQUOTED + r"Abort (?:queued|running|completed|grammar queue) request\.",
    ACCESS: r'"[A-Z]+ \S+ HTTP/\d',
    ENGINE: r"^[^'\"]*\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d",
}

_ANSI = r"\x1b\[[0-9;]*[A-Za-z]"
_HEAD = (
    r"^[^'\"]*?\[(?<day>\d{4}-\d\d-\d\d) (?<time>\d\d:\d\d:\d\d)(?:[.,](?<fraction>\d{1,9}))?"
    r"(?: (?<engine>[A-Z]+\d+(?: [A-Z]+\d+)*))?\] ?(?<message>.*)$"
)
_START = r"(?:^|[,.] )"
_NUMBER = r"(\d+(?:\.\d+)?|nan|inf)"
_END = r"(?:, |,?$)"
# column -> (name as written, unit as written, divisor); anything else on the line is passed over
_PAIRS = {
    "running": ("#running-req", "", 0),
    "waiting": ("#queue-req", "", 0),
    "kv": ("token usage", "", 1),
    "kv_full": ("full token usage", "", 1),
    "kv_swa": ("swa token usage", "", 1),
    "prompt_tokens_per_s": (r"input throughput \(token/s\)", "", 1),
    "generation_tokens_per_s": (r"gen throughput \(token/s\)", "", 1),
    # Up to 0.4.3, since the start of the server.
    "hit_ratio": ("cache hit rate", "%", 100),
    "new": ("#new-token", "", 0),
    "cached": ("#cached-token", "", 0),
}
# The layouts of most versions in one go; what differs is looked up pair by pair.
_USUAL = {
    "decode": (
        r"^Decode batch[^#]*#running-req: (?<running>\d{1,9}), #token: \d+, token usage: "
        r"(?<kv>\d+\.\d+), (?:cuda graph: \w+, )?gen throughput \(token/s\): "
        r"(?<generation_tokens_per_s>\d+\.\d+), #queue-req: (?<waiting>\d{1,9}),?$"
    ),
    "prefill": (
        r"^Prefill batch[^#]*#new-seq: \d+, #new-token: (?<new>\d{1,9}), #cached-token: "
        r"(?<cached>\d{1,9}), token usage: (?<kv>\d+\.\d+), #running-req: (?<running>\d{1,9}), "
        r"#queue-req: (?<waiting>\d{1,9}),(?: #pending-token: \d+,)? cuda graph: \w+, "
        r"input throughput \(token/s\): (?<prompt_tokens_per_s>\d+\.\d+),?$"
    ),
}
_KNOWN = pl.col("kind").is_not_null()
_REQUIRED = {"prefill": ("new", "running"), "decode": ("running", "generation_tokens_per_s")}


def lines_of(lines: list[bytes], first_record: int) -> pl.DataFrame:
    """record, text and kind of each line."""
    data = b"\n".join(lines)
    text = pl.Series("text", data.decode("utf-8", "replace").split("\n"))
    if b"\x1b" in data:
        text = text.str.replace_all(_ANSI, "")
    frame = pl.DataFrame({"text": text.str.strip_chars_end()}).with_columns(
        record=pl.int_range(pl.len(), dtype=pl.Int64) + first_record
    )
    # Nearly every line is a scheduler's: the others alone are asked for the other kinds.
    frame = frame.with_columns(kind=_kind("decode", "prefill"))
    scheduler, other = frame.filter(_KNOWN), frame.filter(~_KNOWN)
    other = other.with_columns(kind=_kind(*_KINDS).fill_null(FOREIGN))
    return pl.concat([scheduler, other]).sort("record")


def _kind(*names: str) -> pl.Expr:
    return pl.coalesce(
        pl.when(pl.col("text").str.contains(_KINDS[name])).then(pl.lit(name)) for name in names
    )


def messages_of(hot: pl.DataFrame, zone: str) -> pl.DataFrame:
    """The hot lines split into time_ns, engine and message; NULL time where there is none."""
    parts = hot.with_columns(pl.col("text").str.extract_groups(_HEAD).alias("head")).unnest("head")
    naive = pl.concat_str(["day", "time"], separator=" ").str.to_datetime(
        "%Y-%m-%d %H:%M:%S", time_unit="us", strict=False
    )
    there = naive.dt.replace_time_zone(zone, ambiguous="earliest", non_existent="null")
    fraction = pl.col("fraction").str.pad_end(9, "0").cast(pl.Int64).fill_null(0)
    # Years first: int64 nanoseconds would not hold all of them.
    fits = naive.dt.year().is_between(1989, 2200)
    timed = parts.with_columns(
        time_ns=pl.when(fits).then(there.dt.epoch("us") * 1000 + fraction),
        message=pl.coalesce("message", "text"),
    )
    real = pl.col("time_ns").is_between(TIMES.start, TIMES.last)
    return timed.with_columns(time_ns=pl.when(real).then("time_ns"))


def values_of(messages: pl.DataFrame) -> pl.DataFrame:
    """Scheduler lines with their values as columns; ``good`` is false where one cannot be read."""
    parts, rest = [], [messages.filter(~pl.col("kind").is_in(list(_USUAL)))]
    for kind, layout in _USUAL.items():
        groups = pl.col("message").str.extract_groups(layout).alias("told")
        lines = messages.filter(pl.col("kind") == kind).with_columns(groups)
        usual = pl.col("told").struct.field("running").is_not_null()
        parts.append(_typed(lines.filter(usual).unnest("told")))
        rest.append(lines.filter(~usual).drop("told"))
    parts.append(_looked_up(pl.concat(rest)))
    return (
        pl.concat(parts, how="diagonal")
        .sort("record")
        .with_columns(
            # The first pool to fill up is the one that holds requests back.
            kv_used_ratio=pl.max_horizontal("kv", "kv_full", "kv_swa"),
            prefix_hit_ratio=pl.coalesce("hit_ratio", _hits()),
        )
    )


def _typed(told: pl.DataFrame) -> pl.DataFrame:
    names = [name for name in _PAIRS if name in told.columns]
    casts = [_cast(pl.col(name), _PAIRS[name][2]).alias(name) for name in names]
    return told.with_columns(*casts, good=pl.lit(value=True))


def _looked_up(messages: pl.DataFrame) -> pl.DataFrame:
    """Each value by its name: other versions, disaggregation, speculation, damage; and the size."""
    columns, good = [], pl.lit(value=True)
    for column, (name, unit, divisor) in _PAIRS.items():
        told = pl.col("message").str.extract(f"{_START}{name}: {_NUMBER}{unit}{_END}")
        present = pl.col("message").str.contains(f"{_START}{name}:")
        value = _cast(told, divisor)
        sound = value.is_between(0, COUNTS.last) | (divisor != 0) & told.is_in(["nan", "inf"])
        good = good & (~present | sound.fill_null(value=False))
        for kind, required in _REQUIRED.items():
            if column in required:
                good = good & ((pl.col("kind") != kind) | told.is_not_null())
        columns.append(value.alias(column))
    size = pl.col("message").str.extract(r"\bmax_total_num_tokens=(\d+)(?:,|$)")
    size = size.cast(pl.Int64, strict=False)
    is_size = pl.col("kind") == "size"
    return messages.with_columns(
        *columns, good=good, capacity_tokens=pl.when(is_size & (size <= COUNTS.last)).then(size)
    ).with_columns(
        good=pl.when(is_size).then(pl.col("capacity_tokens").is_not_null()).otherwise("good")
    )


def _hits() -> pl.Expr:
    """Hits of this batch: cached tokens are counted beside the new ones, not among them."""
    prompt = pl.col("new") + pl.col("cached")
    return pl.when(prompt > 0).then((pl.col("cached") / prompt).round(6))


def _cast(told: pl.Expr, divisor: int) -> pl.Expr:
    if not divisor:
        return told.cast(pl.Int64, strict=False)
    number = told.cast(pl.Float64, strict=False)
    return pl.when(number.is_finite()).then((number / divisor).round(6))

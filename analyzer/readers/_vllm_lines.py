"""vLLM's log lines as columns: a kind for each line, and the values of the few that have some."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from analyzer.readers._fast_shapes import INDEX, LINE, frame_of
from analyzer.readers._file import Lines
from analyzer.readers._rows import COUNTS
from analyzer.readers._times import TIMES
from analyzer.readers._vllm_events import KINDS as EVENTS
from analyzer.readers._vllm_events import WORDS
from analyzer.readers._vllm_json import UNREADABLE, text_of

STATES, STEPS = ("stats", "hits", "size"), ("step", "speculation")
ACCESS, FAILED_ACCESS, ENGINE, FOREIGN, BLANK, TEXT = (
    "access line", "access line of a failed request (5xx), without a time",
    "engine line without numbers", "banner or foreign line", "blank line",
    "line with a prompt or an answer",
)  # fmt: skip
# A quote before them would make them somebody's prompt.
_UNQUOTED = r"^[^'\"]*"
_STAMPED = r"^[^'\"]*\d\d-\d\d[ T]\d\d:\d\d:\d\d[^'\"]*"
_SETUP = (
    r"non-default args: \{|args: Namespace\(|Initializing an? (?:\w+ )?LLM engine \("
    r"|Using max model len \d|Maximum concurrency for [\d,]+ tokens per request"
    r"|Chunked prefill is enabled with max_num_batched_tokens|# (?:GPU|cuda|rocm) blocks: \d"
    r"|(?:Using|Config file|\w+ sub-optimal)[^'\"]*\bdevice_name="
)
# kind -> words that only its lines have; the first that fits wins. Most lines that are no access
# line are of these few.
_OFTEN = {
    # Whatever the line says, a prompt's or an answer's logger wrote it: prompts have line ends.
    TEXT: r"Received request |Generated response |\b(?:request_)?logger\.py:\d+\] ",
    "stats": _UNQUOTED + r"Avg prompt throughput: ",
    "step": _UNQUOTED + r"Iteration\(\d+\)[^:]*: \d+ context requests",
}
_SELDOM = {
    "hits": _UNQUOTED + r"Prefix cache hit rate: GPU: ",
    "size": _UNQUOTED + r"KV cache size: ",
    "speculation": _UNQUOTED + r"SpecDecoding metrics: ",
    "json": "^" + UNREADABLE,
    # Tracebacks are printed once more without the logger's stamp.
    **{kind: f"{_STAMPED}(?:{words})" for kind, words in EVENTS.items()},
    "setup": f"{_UNQUOTED}(?:{_SETUP})",
}
_USUALLY = {
    BLANK: r"^$",
    ENGINE: r"(?:^|\D)(?:\d{4}-)?\d\d-\d\d[ T]\d\d:\d\d:\d\d",
}
_IS_ACCESS = r'"[A-Z]+ \S+ HTTP/\d'
_IS_FAILED = r'HTTP/\d(?:\.\d)?" 5\d\d\b'
HOT = ("stats", "step", *_SELDOM)
_OTHERS = tuple(kind for kind in HOT if kind not in (*STATES, *STEPS))

# Each of these kinds has one of these words.
_RARE_WORDS = (
    r"Received request |Generated response |logger\.py:|Avg prompt throughput: |Iteration\("
    r"|Prefix cache hit rate: GPU: |KV cache size: |SpecDecoding metrics: |\x01not JSON|args: "
    r"|LLM engine \(|max model len |Maximum concurrency for |Chunked prefill is enabled| blocks: "
    rf"|device_name=|{WORDS}"
)
_ANSI = r"\x1b\[[0-9;]*[A-Za-z]"
# The message stands at the start of the line, or after punctuation and a space.
_HEAD = (
    r"^(?<head>(?:[^'\"]*?[^\w\s'\"] )??)"
    r"(?:Engine (?<engine>\d+): |(?<together>\d+) Engines Aggregated: )?"
)
_STATE = (
    _HEAD + r"(?<message>(?:Avg prompt throughput|Prefix cache hit rate: GPU"
    r"|(?:\w+ )?KV cache size): .*)$"
)
_STEP = _HEAD + r"(?<message>(?:Iteration\(|SpecDecoding metrics: ).*)$"
_OTHER = (
    _HEAD + r"(?<message>(?:"
    + "|".join([*EVENTS.values(), _SETUP]) + r').*|\S+ - "[A-Z]+ \S+ HTTP/.*)$'
)  # fmt: skip
_PROCESS = r"(?:EngineCore(?:_DP)?_?(?<core>[0-9]+)|\(Worker_(?<worker>[A-Z0-9_]+)) pid="
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
    "deferred": ("Deferred", " reqs", 0),
    "corrupted": ("Corrupted", " reqs", 0),
    "external_hit_ratio": ("External prefix cache hit rate", "%", 100),
    "mm_hit_ratio": ("MM cache hit rate", "%", 100),
}
# Requests whose cache comes from elsewhere, before, while and after it comes.
_FETCH = (
    r"(?:^|, )KV fetch: (\d{1,9}) waiting to start, (\d{1,9}) in progress, "
    r"(\d{1,9}) completed waiting(?:,|$)"
)
_USUAL = (
    r"^Avg prompt throughput: (?<prompt_tokens_per_s>[0-9]{1,9}\.[0-9]+) tokens/s, "
    r"Avg generation throughput: (?<generation_tokens_per_s>[0-9]{1,9}\.[0-9]+) tokens/s, "
    r"Running: (?<running>[0-9]{1,9}) reqs, Waiting: (?<waiting>[0-9]{1,9}) reqs, "
    r"GPU KV cache usage: (?<kv_used_ratio>[0-9]{1,9}\.[0-9]+)%, "
    r"Prefix cache hit rate: (?<prefix_hit_ratio>[0-9]{1,9}\.[0-9]+)%$"
)
_UNUSUAL_COUNTS = ("swapped", "preemptions", "deferred", "corrupted", "kv_fetching")
_UNUSUAL_RATIOS = ("external_hit_ratio", "mm_hit_ratio")
_REQUIRED = ("prompt_tokens_per_s", "generation_tokens_per_s", "running")


def lines_of(block: Lines) -> pl.DataFrame:
    """record, text and kind of each line."""
    frame = frame_of(block)
    if frame is None:
        text = pl.Series(LINE, block.data.decode("utf-8", "replace").split("\n")[: block.count])
        frame = text.to_frame().with_row_index(INDEX)
    text = frame[LINE].fill_null("")
    if block.data.startswith(b"{") or b"\n{" in block.data:
        text = _without_json(text)
    if b"\x1b" in block.data:
        text = text.str.replace_all(_ANSI, "")
    record = pl.col(INDEX).cast(pl.Int64) + block.first_record
    lines = frame.select(record=record, text=text.str.strip_chars_end())
    # Nearly all lines are of the last kinds: the others are looked for where their words stand.
    rare = lines["text"].str.contains(_RARE_WORDS)
    some = _with_kind(lines.filter(rare), _OFTEN)
    few = some.filter(pl.col("kind").is_null()).select("record", "text")
    told = _with_kind(few, _SELDOM)
    rest = told.filter(pl.col("kind").is_null()).select("record", "text")
    parts = [
        some.filter(pl.col("kind").is_not_null()),
        told.filter(pl.col("kind").is_not_null()),
        *_common(pl.concat([lines.filter(~rare), rest])),
    ]
    return pl.concat(parts).sort("record")


def _without_json(text: pl.Series) -> pl.Series:
    """Records of the JSON formatter as text lines; whatever else there is stays as it is."""
    starts = text.str.starts_with("{").to_list()
    lines = text.to_list()
    for at, begins in enumerate(starts):
        if begins:
            told = text_of(lines[at].encode())
            lines[at] = lines[at] if told is None else told
    return pl.Series(text.name, lines, dtype=pl.String)


def _common(lines: pl.DataFrame) -> list[pl.DataFrame]:
    """Access lines and those without a value of their own."""
    access = lines["text"].str.contains(_IS_ACCESS)
    served = lines.filter(access).with_columns(kind=pl.lit(ACCESS))
    # Cheap words first: the pattern is looked for in few lines.
    if served["text"].str.contains('" 5', literal=True).any():
        failed = pl.col("text").str.contains(_IS_FAILED)
        # Where the log gives its access lines a time, as the JSON formatter does, they are events.
        timed = pl.col("text").str.contains(_STAMPED)
        kind = pl.when(failed & timed).then(pl.lit("failed"))
        served = served.with_columns(
            kind=kind.when(failed).then(pl.lit(FAILED_ACCESS)).otherwise("kind")
        )
    others = _with_kind(lines.filter(~access), _USUALLY)
    return [served, others.with_columns(pl.col("kind").fill_null(FOREIGN))]


def _with_kind(lines: pl.DataFrame, kinds: Mapping[str, str]) -> pl.DataFrame:
    return lines.with_columns(
        kind=pl.coalesce(
            pl.when(pl.col("text").str.contains(words)).then(pl.lit(name))
            for name, words in kinds.items()
        )
    )


def messages_of(hot: pl.DataFrame) -> pl.DataFrame:
    """The hot lines split into head, stamp, engine and message."""
    kinds = {_STATE: STATES, _STEP: STEPS, _OTHER: _OTHERS}
    parts = [
        part.with_columns(pl.col("text").str.extract_groups(pattern)).unnest("text")
        for pattern, some in kinds.items()
        if (part := hot.filter(pl.col("kind").is_in(some))).height or pattern is _STATE
    ]
    whole = pl.concat(parts).sort("record") if len(parts) > 1 else parts[0]
    heads = (("stamp", _STAMP), ("process", _PROCESS))
    told = whole.with_columns(
        pl.col("head").str.extract_groups(pattern).alias(name) for name, pattern in heads
    ).unnest("stamp", "process")
    return told.with_columns(
        engine=pl.coalesce(
            "engine",
            pl.when(pl.col("together").is_not_null()).then(pl.lit("aggregated")),
            pl.col("core").str.zfill(3),
            pl.col("worker").str.replace_all("_", " ", literal=True),
        ),
    )


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
    fetch = pl.col("message").str.extract_groups(_FETCH)
    counts = (fetch.struct.field(name).cast(pl.Int64, strict=False) for name in "123")
    columns.append(pl.sum_horizontal(counts, ignore_nulls=False).alias("kv_fetching"))
    good = good & (~pl.col("message").str.contains(", KV fetch:") | columns[-1].is_not_null())
    hits = pl.col("message").str.extract(r"GPU: (\d+(?:\.\d+)?)%(?:,|\.?$)")
    size = pl.col("message").str.extract(r"KV cache size: ([\d,]+) tokens(?:\W|$)")
    size = size.str.replace_all(",", "").cast(pl.Int64, strict=False)
    size = pl.when(size <= COUNTS.last).then(size)
    rate = pl.when(stats).then(pl.col("prefix_hit_ratio")).otherwise(_cast(hits, 100))
    names = [*(name for name in _PAIRS if name != "prefix_hit_ratio"), "kv_fetching"]
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
        *(pl.lit(None, pl.Int64).alias(name) for name in _UNUSUAL_COUNTS),
        *(pl.lit(None, pl.Float64).alias(name) for name in _UNUSUAL_RATIOS),
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

"""Values of vLLM's lines about single steps, and about speculation."""

from __future__ import annotations

import polars as pl

from analyzer.readers._rows import COUNTS
from analyzer.readers._times import DURATIONS

_COUNT = "[0-9]{1,15}"
_USED = r"KV cache usage: (?<used>[0-9]{1,3}(?:\.[0-9]{1,6})?)%"
_STEP = (
    rf"^Iteration\((?<step>{_COUNT})\)MARK: "
    rf"(?<prefill_requests>{_COUNT}) context requests, (?<prefill_tokens>{_COUNT}) context tokens, "
    rf"GAP(?<decode_requests>{_COUNT}) generation requests, "
    rf"(?<decode_tokens>{_COUNT}) generation tokens, "
    r"GAPiteration elapsed time: (?<elapsed>[0-9]{1,9}\.[0-9]{1,9}) ms"
)
# Nearly all are of one of two forms, which are cut up in one pass.
_USUAL = _STEP.replace("MARK", "").replace("GAP", "") + rf"(?:, GPU {_USED})?$"
# 0.16 to 0.25 end with the time; later versions add the cache, and an encoder's part before it.
_ANY = (
    _STEP.replace("MARK", "[^:]*").replace("GAP", "(?:[^:]*, )??") + rf"(?:\W(?:.*?{_USED})?.*)?$"
)
STEP = (
    "record", "time_ns", "clock", "engine", "step", "prefill_requests", "prefill_tokens",
    "decode_requests", "decode_tokens", "dur_ns", "kv_used_ratio", "dummy",
)  # fmt: skip
SPECULATION = (
    "record", "time_ns", "clock", "engine", "drafted_tokens", "draft_accepted_tokens",
    "accepted_length",
)  # fmt: skip
TOO_QUICK_NS = 100_000
"""No forward pass takes less: a step that did was over before anybody waited for it."""


def steps_of(messages: pl.DataFrame) -> pl.DataFrame:
    """Step lines with their values as columns; ``good`` is false where they cannot be read."""
    told = messages["message"].str.extract_groups(_USUAL).struct.unnest()
    usual = told["step"].is_not_null()
    parts = [_typed(messages.hstack(told).filter(usual))]
    if not usual.all():
        rest = messages.filter(~usual)
        parts.append(_typed(rest.hstack(rest["message"].str.extract_groups(_ANY).struct.unnest())))
    return pl.concat(parts)


def _typed(told: pl.DataFrame) -> pl.DataFrame:
    took = (pl.col("elapsed").cast(pl.Float64, strict=False) * 1e6).round()
    return told.with_columns(
        *(pl.col(name).cast(pl.Int64, strict=False) for name in STEP[4:9]),
        dur_ns=pl.when(took < DURATIONS.stop).then(took).cast(pl.Int64),
        kv_used_ratio=(pl.col("used").cast(pl.Float64, strict=False) / 100).round(6),
        dummy=pl.col("message").str.contains("(dummy)", literal=True),
        good=pl.col("step").is_not_null(),
    ).drop("elapsed", "used")


def speculation_of(messages: pl.DataFrame) -> pl.DataFrame:
    """``SpecDecoding metrics`` lines: values hold commas, so each is looked up by its name."""
    drafted, accepted = (
        pl.col("message").str.extract(rf"(?:: |, ){name}: ({_COUNT}) tokens(?:,|$)").cast(pl.Int64)
        for name in ("Drafted", "Accepted")
    )
    length = pl.col("message").str.extract(
        r"Mean acceptance length: (\d{1,9}(?:\.\d{1,9})?)(?:,|$)"
    )
    return messages.with_columns(
        drafted_tokens=pl.when(drafted <= COUNTS.last).then(drafted),
        draft_accepted_tokens=pl.when(accepted <= COUNTS.last).then(accepted),
        accepted_length=length.cast(pl.Float64, strict=False),
    ).with_columns(
        good=pl.any_horizontal(
            pl.col("drafted_tokens", "draft_accepted_tokens", "accepted_length").is_not_null()
        )
    )

"""vLLM's request spans in columns: V1 engines whose durations fit each other."""

from __future__ import annotations

import polars as pl

from analyzer.readers._fast_kinds import COUNT, FLOAT_SECONDS, NAME, NANOS, WORD, Kind
from analyzer.readers._fast_lines import Fast
from analyzer.readers._fast_shapes import Shape

_LATENCY = "attributes.gen_ai.latency."
_SECONDS = {
    "e2e": "e2e",
    "ttft": "time_to_first_token",
    "queue": "time_in_queue",
    "prefill": "time_in_model_prefill",
    "decode": "time_in_model_decode",
    "inference": "time_in_model_inference",
}
_COUNTS = {
    "prompt": "usage.prompt_tokens",
    "completion": "usage.completion_tokens",
    "most": "request.max_tokens",
    "sequences": "request.n",
}
_ID = "attributes.gen_ai.request.id.value.stringValue"
_MODELS = tuple(
    f"attributes.gen_ai.{side}.model.value.stringValue" for side in ("response", "request")
)
_SLACK_NS = 5_000_000

FIELDS: dict[str, Kind] = {
    "traceId": NAME, "name": WORD, "startTimeUnixNano": NANOS, "endTimeUnixNano": NANOS,
    "status.code": Kind(number="[01]"), _ID: NAME,
} | dict.fromkeys(_MODELS, NAME)  # fmt: skip
FIELDS |= {f"{_LATENCY}{name}.value.doubleValue": FLOAT_SECONDS for name in _SECONDS.values()}
FIELDS |= {f"attributes.gen_ai.{name}.value.intValue": COUNT for name in _COUNTS.values()}


def _ns(shape: Shape, short: str) -> pl.Expr:
    return shape.column(f"{_LATENCY}{_SECONDS[short]}.value.doubleValue", pl.Int64)


def _count(shape: Shape, short: str) -> pl.Expr:
    return shape.column(f"attributes.gen_ai.{_COUNTS[short]}.value.intValue", pl.Int64)


def _sound(shape: Shape) -> pl.Expr:
    e2e, ttft, queue, prefill, decode, inference = (_ns(shape, short) for short in _SECONDS)
    most = e2e + _SLACK_NS
    inner = (ttft, queue, prefill, decode, inference.fill_null(0))
    return (
        pl.all_horizontal(*(one <= most for one in inner))
        & ((inference - prefill - decode).abs() <= _SLACK_NS).fill_null(value=True)
        & (_count(shape, "sequences").fill_null(1) <= 1)
    )


def _tables(shape: Shape, values: pl.DataFrame) -> dict[str, pl.DataFrame]:
    e2e, ttft, queue, prefill, decode, _ = (_ns(shape, short) for short in _SECONDS)
    before, after = ttft - queue - prefill, e2e - ttft - decode
    frontend = before.clip(lower_bound=0) + after.clip(lower_bound=0)
    columns = {f"{short}_ns": _ns(shape, short) for short in _SECONDS if short != "inference"}
    counted = _count(shape, "prompt").is_not_null() | _count(shape, "completion").is_not_null()
    request = values.select(
        "record",
        vantage=pl.lit("engine"),
        request_id=shape.column(_ID, pl.String),
        trace_id=shape.column("traceId", pl.String),
        model=pl.coalesce(*(shape.column(name, pl.String) for name in _MODELS)),
        start_ns=shape.column("startTimeUnixNano", pl.Int64),
        clock=pl.lit("wall"),
        timing=pl.lit("stated"),
        frontend_ns=pl.when(before >= -_SLACK_NS).then(frontend),
        input_fresh_tokens=_count(shape, "prompt"),
        output_visible_tokens=_count(shape, "completion"),
        usage_convention=pl.when(counted).then(pl.lit("inclusive")),
        max_output_tokens=_count(shape, "most"),
        **columns,
    )
    return {"request": request}


FAST = Fast(FIELDS, _tables, _sound)

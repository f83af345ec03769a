"""Higress and other AI gateways on Envoy: its JSON access log with an ``ai_log`` in each line.

One line tells both the way of the request and what the model did: tokens, and the gateway's own
times to the first token and to the end of the answer.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import polars as pl

from analyzer.contract.types import Batch
from analyzer.readers._access_log import batch_of
from analyzer.readers._envoy import COLUMNS, KEYS, named, requests_of
from analyzer.readers._exports import count, mapping, number
from analyzer.readers._file import Head, InputFile, Lines
from analyzer.readers._json_columns import json_columns
from analyzer.readers._line_log import BLANK, LineByLine, read_log
from analyzer.readers._reader import Claim, Options, Reader
from analyzer.readers._rows import COUNTS, clean
from analyzer.readers._times import DURATIONS, ms_to_ns
from analyzer.readers._usage import token_buckets

_NOT_JSON = "no JSON line; set the access log's format to JSON"
_NO_AI = "request without an ai_log: no call of a model"
_PAIR = re.compile(r"(\w+)\s*:\s*([^,\s{}]+)")
_NAME = re.compile(r"[\w.:/@+-]{1,120}")
_MOST = 64 * 1024
_TAGS = {
    "token_ratelimit_status": "token_ratelimit_status", "fallback_from": "fallback_from",
    "api": "api", "consumer": "consumer",
}  # fmt: skip
_TOKENS = (
    "input_fresh_tokens", "cache_read_tokens", "output_visible_tokens", "output_reasoning_tokens",
)  # fmt: skip
_WORDS = (
    "model", "response_id", "session_id", "usage_convention", "usage_contradiction", "provider",
)  # fmt: skip
_NUMBERS = ("ttft_ns", "upstream_ns", *_TOKENS)
_FLAGS = ("streamed", "usage_final")
_OURS = {
    **dict.fromkeys(_WORDS, pl.String), **dict.fromkeys(_NUMBERS, pl.Int64),
    **dict.fromkeys(_FLAGS, pl.Boolean),
}  # fmt: skip


def probe(head: Head) -> Claim:
    """JSON lines of Envoy with an ``ai_log``."""
    if not head.lines or b"ai_log" not in head.data:
        return Claim(0, "its lines have no ai_log")
    block = Lines(b"\n".join(head.lines) + b"\n", 1, 0, unterminated=False)
    frame = json_columns(block, (*KEYS, "ai_log")).frame
    missing = {"start_time", "duration", "ai_log"} - set(frame.columns)
    if missing:
        return Claim(0.6, f"its JSON lines lack {', '.join(sorted(missing))}")
    if not frame.drop_nulls(["start_time", "ai_log"]).height:
        return Claim(0.6, "none of its first lines tells start_time and ai_log")
    return Claim(1, "")


def _fields(text: str | None) -> dict[str, Any]:
    """The fields of an ``ai_log``: JSON in a text, or ``name:value`` pairs."""
    if text is None or len(text) > _MOST or text.strip() in ("", "-"):
        return {}
    told = mapping(text)
    return told or dict(_PAIR.findall(text))


def _ns(told: dict[str, Any], name: str) -> int | None:
    value = number(told.get(name))
    ns = None if value is None else ms_to_ns(value)
    return ns if ns in DURATIONS else None


def _word(told: dict[str, Any], name: str) -> str | None:
    value = told.get(name)
    return clean(value) if isinstance(value, str) and _NAME.fullmatch(value) else None


def _columns(told: dict[str, Any]) -> dict[str, Any]:
    """What an ``ai_log`` tells, in columns of ours."""
    kind = told.get("response_type")
    streamed = kind == "stream" if kind in ("stream", "normal") else None
    first, whole = _ns(told, "llm_first_token_duration"), _ns(told, "llm_service_duration")
    if streamed is False or (first is not None and whole is not None and first >= whole):
        first = None  # the whole answer came at once
    counts = {
        name: one if one in COUNTS else None
        for name in ("input_token", "output_token", "total_token", "cached_token", "cached_tokens",
                     "reasoning_token", "reasoning_tokens")
        if (one := count(told.get(name))) is not None
    }  # fmt: skip
    buckets = token_buckets(
        {
            "prompt_tokens": counts.get("input_token"),
            "completion_tokens": counts.get("output_token"),
            "total_tokens": counts.get("total_token"),
            "prompt_tokens_details": {
                "cached_tokens": counts.get("cached_token", counts.get("cached_tokens"))
            },
            "completion_tokens_details": {
                "reasoning_tokens": counts.get("reasoning_token", counts.get("reasoning_tokens"))
            },
        }
    )
    if counts.get("input_token") is None and counts.get("output_token") is None:
        buckets = {}
    return {
        "model": _word(told, "model"), "response_id": _word(told, "chat_id"),
        "session_id": _word(told, "session_id"), "provider": _word(told, "provider"),
        "ttft_ns": first, "upstream_ns": whole, "streamed": streamed,
        "usage_final": True if buckets else None,
        **{name: buckets.get(name) for name in (*_TOKENS, *_WORDS) if name in buckets},
    }  # fmt: skip


class _Log(LineByLine):
    def take(self, block: Lines) -> Batch:
        read = json_columns(block, (*KEYS, "ai_log"))
        ignored: Counter[str] = Counter()
        broken = list(read.broken)
        for record, line in read.others:
            if line.strip():
                broken.append((record, _NOT_JSON))
            else:
                ignored[BLANK] += 1
        frame = read.frame
        if "ai_log" not in frame.columns:
            frame = frame.with_columns(ai_log=pl.lit(None, pl.String))
        values = requests_of(named(frame))
        told = [_fields(text) for text in frame["ai_log"]]
        rows = [_columns(one) for one in told]
        ours = pl.DataFrame(
            {name: [row.get(name) for row in rows] for name in _OURS}, schema=_OURS
        ).with_columns(
            record=frame["record"], has_ai=pl.Series([bool(one) for one in told], dtype=pl.Boolean)
        )
        values = values.join(ours, on="record", how="left", maintain_order="left").with_columns(
            ignored=pl.coalesce(
                "ignored",
                pl.when(~pl.col("has_ai") & (pl.col("status").fill_null(200) < 400)).then(
                    pl.lit(_NO_AI)
                ),
            )
        )
        labels = [
            (record, ours_name, value)
            for record, one in zip(frame["record"], told, strict=True)
            for theirs, ours_name in _TAGS.items()
            if (value := _word(one, theirs)) is not None
        ]
        tags = pl.DataFrame(labels, schema=dict.fromkeys(("record", "name", "value"), pl.String) |
                            {"record": pl.Int64}, orient="row")  # fmt: skip
        return batch_of(block, values, (*COLUMNS, *_OURS), tags, ignored, broken)


def read(file: InputFile, options: Options) -> Iterator[Batch]:
    """One ``request`` row of vantage gateway a line, and its labels."""
    return read_log(file, options, _Log())


READER = Reader(
    title="Higress access log (Envoy JSON lines with ai_log)",
    record_unit="line",
    gives=("request", "request_tag"),
    probe=probe,
    read=read,
    docs="https://higress.cn/en/docs/latest/plugins/ai/observability/ai-statistics/",
    cannot="queue, prefill and decode behind the gateway; what each retry took; whether the client "
    "got the stream as it came; times below a millisecond",
    enable="switch the ai-statistics plugin on; put %FILTER_STATE(wasm.ai_log:PLAIN)% as ai_log "
    "into the JSON format of the access log",
    checked_against="a published line of Higress; ai_log after its plugin's documentation",
)

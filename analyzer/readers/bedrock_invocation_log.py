"""Amazon Bedrock's model invocation log, as it lies in S3 or CloudWatch: one JSON object a call."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from analyzer.contract.types import Batch
from analyzer.readers._exports import begin_of, count, mapping, nested, read_rows
from analyzer.readers._file import Head, InputFile
from analyzer.readers._jsonl import Bad, Sink, Skip
from analyzer.readers._part_bodies import prompt_in, settings_in
from analyzer.readers._parts import write_prompt
from analyzer.readers._reader import Claim, Options, Reader
from analyzer.readers._rows import text_or_none
from analyzer.readers._times import ms_to_ns
from analyzer.readers._usage import BUCKETS, merged_usage, token_buckets
from analyzer.readers._vendor_facts import Facts, finish_word, learn_invocation, learn_usage

_SCHEMA = "ModelInvocationLog"
_OTHER = "delivery of image, video or embedding data"
_CLASS = re.compile(r"[A-Za-z][A-Za-z0-9_.]{0,80}")
_LABEL = re.compile(r"[\w .:/@+=-]{1,200}")
_MOST_LABELS = 20
_LEARNT = ("finish_reason", "service_tier", "response_id")
_COUNTS = (
    "inputTokenCount", "cacheReadInputTokenCount", "cacheWriteInputTokenCount", "outputTokenCount",
)  # fmt: skip


def probe(head: Head) -> Claim:
    """Objects whose ``schemaType`` is ``ModelInvocationLog``."""
    begin = begin_of(head, (b"schemaType", _SCHEMA.encode()))
    if any(row.get("schemaType") == _SCHEMA for row in begin.rows):
        return Claim(1, "")
    if any(keys >= {"schemaType", "accountId", "modelId"} for keys in begin.cut):
        return Claim(1, "")
    return Claim(0, "it has no objects of schemaType ModelInvocationLog")


def _take(row: dict[str, Any], record: int, sink: Sink) -> None:
    if row.get("schemaType") != _SCHEMA:
        if "permissionCheck" in row or "amazon-bedrock-logs-permission-check" in row:
            raise Skip(_OTHER)
        raise Bad("no entry of the model invocation log: its schemaType is another")
    start = sink.needed_time("timestamp", row.get("timestamp"))
    given, made = mapping(row.get("input")), mapping(row.get("output"))
    facts, body_usage = _answer(made.get("outputBodyJson"))
    operation = text_or_none(row.get("operation"))
    error = row.get("errorCode")
    sink.add(
        "request", record, vantage="provider", request_id=text_or_none(row.get("requestId")),
        endpoint=operation, model=_model(row.get("modelId")), provider="aws.bedrock",
        deployment=text_or_none(row.get("inferenceRegion") or row.get("region")),
        start_ns=start, clock="wall", timing="stated" if facts.server else None, **facts.server,
        **_tokens(given | made, body_usage), streamed=_streamed(operation),
        max_output_tokens=_limit(given.get("inputBodyJson")),
        error=error if isinstance(error, str) and _CLASS.fullmatch(error) else None,
        status=None if error or not made else 200,
        **{name: facts.columns.get(name) for name in _LEARNT},
        **settings_in(given.get("inputBodyJson")),
        **write_prompt(sink, record, prompt_in(given.get("inputBodyJson"))),
    )  # fmt: skip
    for name, value in _tags(row, facts):
        sink.add("request_tag", record, name=name, value=value)


def _streamed(operation: str | None) -> bool | None:
    return None if operation is None else "Stream" in operation


def _model(name: Any) -> str | None:  # noqa: ANN401 - foreign JSON
    """The model or the inference profile; of its ARN only the last part, which names no account."""
    text = text_or_none(name)
    return None if text is None else text.rpartition("/")[2]


def _answer(logged: Any) -> tuple[Facts, Any]:  # noqa: ANN401
    """What the logged answer tells of time and tokens: one body, or the chunks of a stream."""
    found = nested(logged)
    parts = found if isinstance(found, list) else [found]
    facts, usage = Facts(), None
    for part in parts:
        if not isinstance(part, dict):
            continue
        inner = mapping(part.get("metadata")) or mapping(part.get("messageStop")) or part
        begun = mapping(part.get("message"))
        usage = merged_usage(usage, begun.get("usage"))
        usage = merged_usage(usage, inner.get("usage") or part.get("usage"))
        if (name := text_or_none(begun.get("id") or part.get("id"))) is not None:
            facts.learn("response_id", name)
        took = mapping(inner.get("metrics")).get("latencyMs")
        if isinstance(took, (int, float)):
            facts.server["e2e_ns"] = ms_to_ns(took)
        learn_invocation(facts, part.get("amazon-bedrock-invocationMetrics"))
        delta = mapping(part.get("delta"))
        reason = inner.get("stopReason") or part.get("stop_reason") or delta.get("stop_reason")
        if (word := finish_word(reason)) is not None:
            facts.columns["finish_reason"] = word
    learn_usage(facts, usage)
    return facts, usage


def _tokens(told: dict[str, Any], usage: Any) -> dict[str, Any]:  # noqa: ANN401
    """The log's own counts, which leave out what was cached; the answer's usage has lifetimes."""
    counts = {name: count(told.get(name)) for name in _COUNTS if told.get(name) is not None}
    own, more = token_buckets(counts), token_buckets(usage)
    if not any(own.get(name) is not None for name in BUCKETS):
        return more | ({"usage_final": True} if more else {})
    same = ("input_fresh_tokens", "output_visible_tokens", "cache_read_tokens")
    if more and all(own[name] is None or more[name] == own[name] for name in same):
        own = more
    elif more and more["input_fresh_tokens"] not in (None, own["input_fresh_tokens"]):
        own["usage_contradiction"] = "the log's token counts are not those of the answer it holds"
    return own | {"usage_final": True}


def _limit(body: Any) -> int | None:  # noqa: ANN401
    asked = mapping(body)
    config = mapping(asked.get("inferenceConfig"))
    return count(asked.get("max_tokens")) or count(config.get("maxTokens"))


def _tags(row: dict[str, Any], facts: Facts) -> Iterator[tuple[str, str]]:
    """The caller's own labels, and where the call went: another region has another cache."""
    yield from facts.tags.items()
    for name, ours in (("region", "region"), ("inferenceRegion", "inference_region")):
        if (region := text_or_none(row.get(name))) is not None and _LABEL.fullmatch(region):
            yield ours, region
    labels = list(mapping(row.get("requestMetadata")).items())
    for name, value in labels[:_MOST_LABELS]:
        if isinstance(value, str) and _LABEL.fullmatch(value) and _LABEL.fullmatch(name):
            yield name, value


def read(file: InputFile, options: Options) -> Iterator[Batch]:
    """One ``request`` row of vantage provider a call, and its labels."""
    return read_rows(file, options, _take)


READER = Reader(
    title="Amazon Bedrock model invocation log (JSON Lines, JSON)",
    record_unit="call",
    gives=("request", "prompt_part", "request_tag"),
    probe=probe,
    read=read,
    docs="https://docs.aws.amazon.com/bedrock/latest/userguide/model-invocation-logging.html",
    cannot="when the answer ended, unless it is logged with its metrics (bodies over 100 KB "
    "lie in files of their own); the time to first token; money",
    enable="Bedrock console, Settings, Model invocation logging: text data, to S3 or CloudWatch",
    checked_against="entries written after third parties' fixtures, which agree with each other; "
    "no file of a real account",
    facts=(("tokens", "inputTokenCount leaves out what was read from or written to the cache"),),
)

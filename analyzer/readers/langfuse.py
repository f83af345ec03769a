"""Langfuse's observations: an export (JSON, JSON Lines, CSV), a trace's download, or its API.

Each call of a model counts once: a generation that has another inside it only repeats that one's
usage. Durations are those of the time stamps; ``latency`` is in seconds in one version of
Langfuse and in milliseconds in the next.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from analyzer.contract.types import Batch, Problem
from analyzer.readers._errors import error_class
from analyzer.readers._exports import begin_of, count, each_row, mapping, number, read_rows
from analyzer.readers._file import Head, InputFile
from analyzer.readers._jsonl import Bad, Sink, Skip, usd
from analyzer.readers._langfuse import CALLS, SESSIONS, Family, camel, tokens, unit_of
from analyzer.readers._part_bodies import decoded, plain_prompt, prompt_in, prompt_of
from analyzer.readers._parts import Prompt, write_prompt
from analyzer.readers._reader import Claim, Options, Reader
from analyzer.readers._rows import text_or_none
from analyzer.readers._times import ms_to_ns, seconds_to_ns, time_to_ns

_CAMEL = {"traceId", "parentObservationId", "startTime"}
_SNAKE = {"trace_id", "parent_observation_id", "start_time"}
_TRACE = {"projectId", "timestamp", "bookmarked"}
_LIMITS = ("max_completion_tokens", "max_output_tokens", "max_tokens", "maxTokens")
_SPAN = "observation that is no call of a model"
_REPEATS = "generation that repeats the usage of those inside it"
_TRACE_ROW = "trace, session or score"
_MILLI = "its latency is in milliseconds, as its time stamps show"
_NEITHER = "'latency' fits the time stamps neither in seconds nor in milliseconds; these were taken"


def probe(head: Head) -> Claim:
    """Observations: ``traceId``, ``parentObservationId`` and ``startTime``, or in snake case."""
    for needles in ((b"traceId", b"startTime"), (b"trace_id", b"start_time"), (b"projectId",)):
        for keys in begin_of(head, needles).shapes():
            if keys >= _CAMEL or keys >= _SNAKE:
                return Claim(1, "")
            if keys >= {"traceId", "startTime", "usageDetails"}:
                return Claim(1, "")
            if keys >= _TRACE:
                if b'"trace"' in head.data[:200] or not head.whole:
                    return Claim(1 if _download(head) else 0.6, "it has no observations yet")
                return Claim(0.6, "it has traces without their observations: export observations")
    return Claim(0, "it has no observations with traceId and parentObservationId")


def _download(head: Head) -> bool:
    """A trace's download, whose trace alone fills the head."""
    return head.data.lstrip(b"\xef\xbb\xbf \r\n\t{").startswith(b'"trace"')


class _Rows:
    """Takes observation by observation, after a first look at how they lie in each other."""

    def __init__(self, family: Family) -> None:
        self._family = family

    def take(self, value: dict[str, Any], record: int, sink: Sink) -> None:
        row = camel(value)
        if text_or_none(row.get("type")) is None and "usageDetails" not in row:
            if row.keys() & {"traceId", "bookmarked", "tags", "timestamp"}:
                raise Skip(_TRACE_ROW)
            raise Bad("no observation: it has no 'type'; export observations")
        if row.get("type") not in CALLS:
            raise Skip(_SPAN)
        if self._family.repeats(row):
            raise Skip(_REPEATS)
        stamps = {name: _stamp(row, name, record, sink) for name in _STAMPS}
        times = _times(row, stamps, record, sink)
        buckets = tokens(row)
        if wrong := buckets.get("usage_contradiction"):
            sink.problems.append(Problem(record, f"{wrong}; the counts are stored as told"))
        sink.add(
            "request", record, vantage="client", **_identity(row), **times, **buckets,
            usage_final=True if buckets else None,
            max_output_tokens=_limit(row), reported_cost_usd=_cost(row),
            **_outcome(row), **write_prompt(sink, record, _prompt(row)),
        )  # fmt: skip
        for name in ("name", "environment", "release", "usagePricingTierName"):
            told = text_or_none(row.get(name))
            if told is not None and len(told) <= 80 and told.isprintable():
                sink.add("request_tag", record, name=name, value=told)


_STAMPS = ("startTime", "completionStartTime", "endTime")


def _stamp(row: dict[str, Any], name: str, record: int, sink: Sink) -> int | None:
    value = row.get(name)
    if isinstance(value, str) and not value:
        return None
    # Without a zone it is the database's own, which is UTC.
    ns = time_to_ns(value)
    return ns if ns is not None or value is None else sink.time(record, name, value)


def _times(
    row: dict[str, Any], stamps: dict[str, int | None], record: int, sink: Sink
) -> dict[str, Any]:
    start, begun, end = (stamps[name] for name in _STAMPS)
    times: dict[str, Any] = {"start_ns": start, "clock": None if start is None else "wall"}
    if start is None:
        return times
    took = end - start if end is not None and end >= start else None
    unit = unit_of(row.get("latency"), took)
    if took is not None:
        times |= {"e2e_ns": took, "timing": "stamps"}
        if number(row.get("latency")) and not unit:
            sink.problems.append(Problem(record, _NEITHER))
    if unit == "ms":
        sink.assumed.add(_MILLI)
    first_token = number(row.get("timeToFirstToken"))
    if begun is not None and start < begun and (end is None or begun < end):
        times |= {"ttft_ns": begun - start, "streamed": True, "timing": "stamps"}
    elif begun is None and first_token and unit:
        ttft = (seconds_to_ns if unit == "s" else ms_to_ns)(first_token)
        if ttft is not None and took is not None and 0 < ttft < took:
            times |= {"ttft_ns": ttft, "streamed": True}
    return times


def _identity(row: dict[str, Any]) -> dict[str, Any]:
    metadata = mapping(row.get("metadata"))
    attributes = mapping(metadata.get("attributes"))
    session = text_or_none(row.get("sessionId"))
    for name in SESSIONS:
        session = session or text_or_none(attributes.get(name)) or text_or_none(metadata.get(name))
    return {
        "request_id": text_or_none(row.get("id")),
        "trace_id": text_or_none(row.get("traceId")),
        "session_id": session,
        "model": text_or_none(row.get("model") or row.get("providedModelName")),
        "provider": text_or_none(
            attributes.get("gen_ai.provider.name") or attributes.get("gen_ai.system")
        ),
    }


def _prompt(row: dict[str, Any]) -> Prompt | None:
    """The input as it was sent: messages, or an object that has them with the tools."""
    given = decoded(row.get("input"))
    if isinstance(given, str):
        # A table may have its own line ends within its cells.
        return plain_prompt(given.replace("\r\n", "\n")) if given else None
    return prompt_in(given) if isinstance(given, dict) else prompt_of(given)


def _outcome(row: dict[str, Any]) -> dict[str, Any]:
    if row.get("level") != "ERROR":
        # An observation is marked where its call failed; one that ended unmarked was answered.
        return {"status": 200 if row.get("level") and row.get("endTime") else None}
    message = row.get("statusMessage")
    return {"error": (error_class(message) if isinstance(message, str) else None) or "error"}


def _limit(row: dict[str, Any]) -> int | None:
    settings = mapping(row.get("modelParameters"))
    told = (count(settings.get(name)) for name in _LIMITS)
    return next((one for one in told if one), None)  # -1 and 0 stand for no limit


def _cost(row: dict[str, Any]) -> Any:  # noqa: ANN401
    costs = mapping(row.get("costDetails"))
    for value in (row.get("totalCost"), row.get("calculatedTotalCost"), costs.get("total")):
        if (amount := number(value)) is not None:
            # Langfuse writes 0 where it knows no price.
            return usd(amount) if amount else None
    return None


def read(file: InputFile, options: Options) -> Iterator[Batch]:
    """One ``request`` row of vantage client a call of a model, and its labels.

    The file is read twice: what lies in what may be told in any order.
    """
    kind = begin_of(file.head).kind
    kind = "pages" if kind == "lines" else kind
    family = Family()
    for one in each_row(file, kind):
        if not isinstance(one, Problem) and one.value:
            family.add(camel(one.value))
    family.settle()
    yield from read_rows(file, options, _Rows(family).take, kind)


READER = Reader(
    title="Langfuse observations (JSON, JSON Lines, CSV, a trace's download, the API)",
    record_unit="row",
    gives=("request", "prompt_part", "request_tag"),
    probe=probe,
    read=read,
    docs="https://langfuse.com/docs/api-and-data-platform/features/observations-api",
    cannot="queue, prefill and decode; the time to first token unless the sender sets "
    "completionStartTime; a call whose tokens only its agent tells",
    enable="export observations, not traces; pass completion_start_time in the SDK for streams",
    checked_against="nine traces of Langfuse's own test suite, and the sums people found in them",
)

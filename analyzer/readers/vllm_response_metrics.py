"""Answers of a vLLM server that adds its own times to each (``metrics``): lines, or a document.

Its ``time_to_first_token_ms`` counts from the moment of scheduling, so it is prefill alone; the
queue stands beside it, and the front end in neither.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from analyzer.contract.types import Batch, Problem
from analyzer.readers._document import each_value
from analyzer.readers._file import Head, InputFile
from analyzer.readers._items import items_of
from analyzer.readers._jsonl import Bad, Sink, Skip, objects, read_jsonl
from analyzer.readers._reader import Claim, Options, Reader
from analyzer.readers._rows import int_or_none, text_or_none
from analyzer.readers._times import NS, ms_to_ns
from analyzer.readers._usage import token_buckets

_DURATIONS = {
    "queue_ns": "queue_time_ms",
    "prefill_ns": "time_to_first_token_ms",
    "decode_ns": "generation_time_ms",
}
_SPECULATION = {
    "mean_acceptance_length": "spec_mean_acceptance_length",
    "num_draft_tokens": "spec_draft_tokens",
    "num_accepted_draft_tokens": "spec_accepted_draft_tokens",
}
_SECONDS = "'created' has whole seconds: starts are true to a second"


def probe(head: Head) -> Claim:
    """JSON lines with ``metrics`` in which vLLM's own names stand."""
    some = objects(head) or _bodies(head)
    held = [one["metrics"] for one in some if isinstance(one.get("metrics"), dict)]
    if any({"time_to_first_token_ms", "generation_time_ms"} <= one.keys() for one in held):
        if any("choices" in one for one in some):
            return Claim(1, "")
        return Claim(0.7, "it has vLLM's metrics, but no answer's choices")
    return Claim(0, "its lines have no metrics object of vLLM")


def _bodies(head: Head) -> list[dict[str, Any]]:
    """The first answers of a document: one over many lines, or a list of them."""
    text = head.data.decode("utf-8", "replace").lstrip("\ufeff")
    values = each_value(text, between=" \t\r\n,[")
    return [one for _, _, one in islice(values, 50) if isinstance(one, dict)]


def _take(value: dict[str, Any], record: int, sink: Sink) -> None:
    metrics = value.get("metrics")
    kind = text_or_none(value.get("object")) or ""
    streamed = _streamed(kind, value)
    if "error" in value and "choices" not in value:
        raise Skip("error body")
    if not isinstance(metrics, dict) and streamed:
        raise Skip("stream chunk without metrics")
    if (answer := text_or_none(value.get("id"))) is None:
        raise Bad("'id' is missing")
    if metrics is not None and not isinstance(metrics, dict):
        raise Bad("'metrics' is no object")
    metrics = metrics or {}
    created = int_or_none(value.get("created"))
    if created is not None:
        sink.assumed.add(_SECONDS)
    sink.add(
        "request",
        record,
        vantage="engine",
        request_id=answer,
        model=text_or_none(value.get("model")),
        start_ns=None if created is None else created * NS,
        clock="wall",
        timing="stated",
        streamed=streamed,
        finish_reason=_finish(value.get("choices")),
        **{column: _ms(metrics.get(name)) for column, name in _DURATIONS.items()},
        **token_buckets(value.get("usage")),
    )
    guesses = metrics.get("speculative_decoding")
    for name, tag in _SPECULATION.items():
        told = text_or_none(guesses.get(name)) if isinstance(guesses, dict) else None
        if told is not None:
            sink.add("request_tag", record, name=tag, value=told)


def _streamed(kind: str, value: dict[str, Any]) -> bool | None:
    """A completion calls itself the same in one piece and in chunks, which lack the usage."""
    if kind == "text_completion":
        return None if value.get("usage") else True
    return kind.endswith(".chunk")


def _ms(value: Any) -> int | None:  # noqa: ANN401 - foreign JSON
    """Null where the request has several answers (n > 1)."""
    return ms_to_ns(value) if isinstance(value, (int, float)) else None


def _finish(choices: Any) -> str | None:  # noqa: ANN401 - foreign JSON
    for choice in choices if isinstance(choices, list) else ():
        if isinstance(choice, dict) and (told := text_or_none(choice.get("finish_reason"))):
            return told
    return None


def read(file: InputFile, options: Options) -> Iterator[Batch]:
    """One ``request`` row of vantage engine an answer, or final chunk of one."""
    if objects(file.head):
        yield from read_jsonl(file, options, _take)
        return
    sink, records = Sink(), 0
    for item in items_of(file):
        records += 1
        try:
            if isinstance(item, Problem):
                sink.problems.append(item)
            else:
                _take(item.value, item.record, sink)
        except Skip as skip:
            sink.ignored[str(skip)] += 1
        except Bad as bad:
            sink.problems.append(Problem(item.record, str(bad)))
    yield sink.batch(records)


READER = Reader(
    title="vLLM answers with per-request metrics (JSON)",
    record_unit="answer",
    gives=("request", "request_tag"),
    probe=probe,
    read=read,
    docs="https://docs.vllm.ai/en/latest/cli/serve.html",
    cannot="the front end, network and TTFT as the client sees it (its time_to_first_token_ms "
    "leaves the queue out); any time of a request with n > 1; preemptions",
    enable="vllm serve --enable-per-request-metrics (0.25.1 or later), --enable-prompt-tokens-"
    "details for cached tokens; add the client's log",
    checked_against="the source of vLLM 0.25.1 to 0.33.0; its times in a bench run of 0.33.0",
)

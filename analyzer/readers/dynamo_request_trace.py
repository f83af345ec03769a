"""NVIDIA Dynamo's request trace: one line a finished request, on the front end's clock.

The front end stands between client and workers, so its rows have the vantage of a gateway. Its
wait lasts until a prefill worker is chosen; its prefill until it sees the first token, so a queue
inside the worker and the transfer of the KV cache are in there too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from analyzer.contract.types import Batch
from analyzer.readers._file import Head, InputFile
from analyzer.readers._jsonl import Bad, Sink, Skip, objects, read_jsonl
from analyzer.readers._reader import Claim, Options, Reader
from analyzer.readers._rows import first, int_or_none, text_or_none
from analyzer.readers._times import ms_to_ns
from analyzer.readers._usage import token_buckets

_SCHEMA = "dynamo.request.trace.v1"
_OTHERS = {
    "request_payload": "payload of a request",
    "tool_start": "tool event",
    "tool_end": "tool event",
    "tool_error": "tool event",
}
_HIDDEN = "a worker's own queue is not told apart from prefill: both are in prefill_time_ms"


def probe(head: Head) -> Claim:
    """JSON lines with Dynamo's schema, bare or inside an envelope."""
    some = [_record(one) for one in objects(head)]
    if any(one.get("schema") == _SCHEMA for one in some):
        return Claim(1, "")
    if any(str(one.get("schema")).startswith("dynamo.request.trace") for one in some):
        return Claim(0.9, f"its schema is another version than {_SCHEMA}")
    return Claim(0, f"its lines do not have the schema {_SCHEMA}")


def _record(value: dict[str, Any]) -> dict[str, Any]:
    inner = value.get("event")
    return inner if isinstance(inner, dict) else value


def _take(value: dict[str, Any], record: int, sink: Sink) -> None:
    one = _record(value)
    if "verification" in one and "schema" not in one:
        raise Skip("verification line")
    if one.get("schema") != _SCHEMA:
        raise Bad(f"its schema is not {_SCHEMA}")
    kind = text_or_none(one.get("event_type"))
    if kind in _OTHERS:
        raise Skip(_OTHERS[kind])
    if kind != "request_end":
        raise Bad("an event_type that is not known")
    request = one.get("request")
    if not isinstance(request, dict):
        raise Skip("end of a request without its figures")
    _request(request, one.get("agent_context"), record, sink)


def _request(request: dict[str, Any], context: Any, record: int, sink: Sink) -> None:  # noqa: ANN401
    own, asked = (text_or_none(request.get(name)) for name in ("request_id", "x_request_id"))
    if own is None and asked is None:
        raise Bad("'request_id' is missing")
    wait, prefill, ttft, total = (
        _ms(request.get(name))
        for name in ("prefill_wait_time_ms", "prefill_time_ms", "ttft_ms", "total_time_ms")
    )
    decode = total - ttft if total is not None and ttft is not None and total >= ttft else None
    if prefill is not None:
        sink.assumed.add(_HIDDEN)
    finish = request.get("finish_reason_metadata")
    replay = request.get("replay")
    replay = replay if isinstance(replay, dict) else {}
    sink.add(
        "request",
        record,
        vantage="gateway",
        request_id=first((asked, own)),
        response_id=own if asked is not None else None,
        session_id=_text(context, "session_id"),
        route=_route(request.get("worker")),
        model=text_or_none(request.get("model")),
        start_ns=_ms(request.get("request_received_ms")),
        clock="wall",
        timing="stated",
        queue_ns=wait,
        prefill_ns=prefill,
        decode_ns=decode,
        ttft_ns=ttft,
        e2e_ns=total,
        **token_buckets(_usage(request, replay)),
        prefix_block_tokens=int_or_none(replay.get("trace_block_size")),
        finish_reason=_text(finish, "finish_reason"),
    )
    if (depth := int_or_none(request.get("queue_depth"))) is not None:
        sink.add("request_tag", record, name="router_queue_depth", value=str(depth))
    hashes = replay.get("input_sequence_hashes")
    for index, block in enumerate(hashes if isinstance(hashes, list) else ()):
        if (digest := text_or_none(block)) is not None:
            sink.add("prompt_block", record, block_index=index, prefix_hash=digest)


def _ms(value: Any) -> int | None:  # noqa: ANN401 - foreign JSON
    return ms_to_ns(value) if isinstance(value, (int, float)) else None


def _text(holder: Any, name: str) -> str | None:  # noqa: ANN401 - foreign JSON
    return text_or_none(holder.get(name)) if isinstance(holder, dict) else None


def _usage(request: dict[str, Any], replay: dict[str, Any]) -> dict[str, Any]:
    given = first((request.get("input_tokens"), replay.get("input_length")))
    usage: dict[str, Any] = {
        "prompt_tokens": given,
        "completion_tokens": request.get("output_tokens"),
    }
    if request.get("cached_tokens") is not None:
        usage["prompt_tokens_details"] = {"cached_tokens": request["cached_tokens"]}
    return usage


def _route(worker: Any) -> str | None:  # noqa: ANN401 - foreign JSON
    """The workers that served it: one, or a prefill worker and a decode worker."""
    ids = []
    for phase in ("prefill", "decode"):
        number, rank = (_text(worker, f"{phase}_{part}") for part in ("worker_id", "dp_rank"))
        if number is not None:
            ids.append(number if rank is None else f"{number}/{rank}")
    return " -> ".join(dict.fromkeys(ids)) or None


def read(file: InputFile, options: Options) -> Iterator[Batch]:
    """One ``request`` row of vantage gateway a finished request, and its prompt's blocks."""
    return read_jsonl(file, options, _take)


READER = Reader(
    title="NVIDIA Dynamo request trace (JSON Lines)",
    record_unit="line",
    gives=("request", "request_tag", "prompt_block"),
    probe=probe,
    read=read,
    docs="https://docs.nvidia.com/dynamo/latest/",
    cannot="the queue inside a worker and the KV transfer (both are in its prefill); chunk times; "
    "requests that were not sampled; timings of requests that Python chat processors handle",
    enable="DYN_REQUEST_TRACE=1; OTLP spans of the workers for their own queue",
    checked_against="the examples of its tests, bare and inside an envelope; no live system",
)

"""TensorRT-LLM's ``GET /perf_metrics``: stamps of each finished request on a steady clock.

A server alone tells one set of stamps. With prefill and decode on different servers the router
tells its own, and one set of each of them. The prefill server makes the first token, so queue and
prefill are its own; decode is the decode server's, from its first own token. What lies between, the
hand-off of the KV cache and the wait at the decode server, is in neither: tags tell it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from analyzer.contract.types import Batch, Problem
from analyzer.readers._file import Head, InputFile
from analyzer.readers._items import Item, items_of, local_id
from analyzer.readers._jsonl import Bad, Sink
from analyzer.readers._milestones import Milestones, stamp_of
from analyzer.readers._reader import Claim, Options, Reader
from analyzer.readers._rows import int_or_none, text_or_none

_BATCH = 5_000
_TELLING = re.compile(rb'"(?:perf_metrics|ctx_perf_metrics|gen_perf_metrics)"\s*:')
_ARRIVED = ("server_arrival_time", "arrival_time")
_FIRST = ("server_first_token_time", "first_token_time")
_ONE_CLOCK = (
    "prefill and decode servers: their clocks are taken as one for TTFT and e2e, as TensorRT-LLM "
    "shifts them by the offset that it measured, and their stamps are in order"
)
_OUT_OF_ORDER = (
    "prefill and decode servers: stamps out of order, so their clocks were not aligned: TTFT and "
    "e2e are the router's alone"
)
_BLOCKS = {
    "num_reused_blocks": "kv_reused_blocks",
    "num_missed_blocks": "kv_missed_blocks",
    "num_total_allocated_blocks": "kv_allocated_blocks",
}


def probe(head: Head) -> Claim:
    """Objects with ``perf_metrics`` and in it ``timing_metrics``."""
    start = head.data.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    if start not in (b"[", b"{") or not _TELLING.search(head.data):
        return Claim(0, "it has no perf_metrics")
    if b'"timing_metrics"' not in head.data:
        return Claim(0.7, "it has perf_metrics, but none with timing_metrics")
    return Claim(1, "")


def read(file: InputFile, options: Options) -> Iterator[Batch]:  # noqa: ARG001 - reader contract
    """A row of vantage engine a request, and one of vantage gateway where a router tells it."""
    sink, records = Sink(), 0
    for item in items_of(file):
        records += 1
        if isinstance(item, Problem):
            sink.problems.append(item)
        else:
            try:
                _take(file, item, sink)
            except Bad as bad:
                sink.problems.append(Problem(item.record, str(bad)))
        if records == _BATCH:
            yield sink.batch(records)
            sink, records = Sink(), 0
    yield sink.batch(records)


def _take(file: InputFile, item: Item, sink: Sink) -> None:
    value = item.value
    prefill, decode = value.get("ctx_perf_metrics"), value.get("gen_perf_metrics")
    if isinstance(prefill, dict) or isinstance(decode, dict):
        _take_split(file, item, sink)
        return
    metrics = value.get("perf_metrics")
    if not isinstance(metrics, dict) or not isinstance(metrics.get("timing_metrics"), dict):
        raise Bad("it has no perf_metrics with timing_metrics")
    stamps = Milestones.of_seconds(metrics["timing_metrics"])
    arrived = stamps.first(*_ARRIVED)
    columns = _prefill_side(stamps)
    columns["decode_ns"] = stamps.span("decode", "first_token_time", "last_token_time")
    columns["e2e_ns"] = stamps.between("e2e", arrived, stamps.first("last_token_time"))
    _add(file, item, sink, "engine", columns)
    _tag_blocks(metrics, item.record, sink)
    if doubt := stamps.doubt():
        raise Bad(doubt)


def _prefill_side(stamps: Milestones) -> dict[str, int | None]:
    """What a server that makes a first token knows of the time before it."""
    return {
        "frontend_ns": stamps.span("front end", "server_arrival_time", "arrival_time"),
        "queue_ns": stamps.span("queue", "arrival_time", "first_scheduled_time"),
        "prefill_ns": stamps.span("prefill", "first_scheduled_time", "first_token_time"),
        "ttft_ns": stamps.between("TTFT", stamps.first(*_ARRIVED), stamps.first(*_FIRST)),
    }


def _take_split(file: InputFile, item: Item, sink: Sink) -> None:
    router, prefill = _router(item.value), _phase(item.value, "ctx_perf_metrics")
    decode = _phase(item.value, "gen_perf_metrics")
    columns = _prefill_side(prefill)
    columns["decode_ns"] = decode.span("decode", "first_token_time", "last_token_time")
    arrived = prefill.first(*_ARRIVED)
    if _in_order(router, prefill, decode):
        sink.assumed.add(_ONE_CLOCK)
        columns["ttft_ns"] = decode.between("TTFT", arrived, decode.first(*_FIRST))
        columns["e2e_ns"] = decode.between("e2e", arrived, decode.first("last_token_time"))
    elif decode.first("arrival_time") is not None:
        sink.assumed.add(_OUT_OF_ORDER)
        columns["ttft_ns"] = None
    _add(file, item, sink, "engine", columns)
    whole = {
        "ttft_ns": router.between(
            "TTFT of the router", router.first(*_ARRIVED), router.first("server_first_token_time")
        ),
        "e2e_ns": router.between(
            "e2e of the router", router.first(*_ARRIVED), router.first("last_token_time")
        ),
    }
    if any(one is not None for one in whole.values()):
        _add(file, item, sink, "gateway", whole)
    _tag_split(item, decode, sink)
    doubts = [stamps.doubt() for stamps in (router, prefill, decode)]
    if any(doubts):
        raise Bad("; ".join(doubt for doubt in doubts if doubt))


def _router(value: dict[str, Any]) -> Milestones:
    """Its stamps stand in a ``timing_metrics`` of its own, earlier beside the two servers'."""
    given = value.get("timing_metrics")
    if isinstance(given, dict):
        return Milestones.of_seconds(given)
    return Milestones(
        {
            "server_arrival_time": stamp_of(value.get("disagg_server_arrival_time")),
            "server_first_token_time": stamp_of(value.get("disagg_server_first_token_time")),
        }
    )


def _phase(value: dict[str, Any], name: str) -> Milestones:
    holder = value.get(name)
    metrics = holder.get("perf_metrics") if isinstance(holder, dict) else None
    return Milestones.of_seconds(metrics.get("timing_metrics") if isinstance(metrics, dict) else {})


def _in_order(router: Milestones, prefill: Milestones, decode: Milestones) -> bool:
    """Stamps of three machines that follow one another: the least that one clock must show."""
    chain = (
        router.first(*_ARRIVED), prefill.first(*_ARRIVED), prefill.first("first_token_time"),
        decode.first(*_ARRIVED), decode.first("first_token_time"),
    )  # fmt: skip
    told = [ns for ns in chain if ns is not None]
    return len(told) == len(chain) and told == sorted(told)


def _add(
    file: InputFile, item: Item, sink: Sink, vantage: str, columns: dict[str, int | None]
) -> None:
    sink.add(
        "request",
        item.record,
        vantage=vantage,
        request_id=_id_of(file, item),
        clock="monotonic",
        timing="stamps",
        **columns,
    )


def _id_of(file: InputFile, item: Item) -> str:
    """Ids are counters of the server's process, so they are made this file's own."""
    for holder in (item.value, *(item.value.get(f"{side}_perf_metrics") for side in _SIDES)):
        if isinstance(holder, dict):
            for name in ("disagg_request_id", "ctx_request_id", "request_id"):
                if (number := text_or_none(holder.get(name))) is not None:
                    return local_id(file, item, number)
    return local_id(file, item, item.record)


_SIDES = ("ctx", "gen")


def _tag_blocks(metrics: dict[str, Any], record: int, sink: Sink) -> None:
    blocks = metrics.get("kv_cache_metrics")
    for given, name in _BLOCKS.items():
        count = int_or_none(blocks.get(given)) if isinstance(blocks, dict) else None
        if count is not None:
            sink.add("request_tag", record, name=name, value=str(count))


def _tag_split(item: Item, decode: Milestones, sink: Sink) -> None:
    """The hand-off, which is a part of decode, and who served the two halves."""
    parts = {
        "kv_transfer_ns": decode.span(
            "KV transfer", "kv_cache_transfer_start", "kv_cache_transfer_end"
        ),
        "decode_queue_ns": decode.span("decode queue", "arrival_time", "first_scheduled_time"),
        "prefill_server": item.value.get("ctx_server"),
        "decode_server": item.value.get("gen_server"),
    }
    for name, value in parts.items():
        if (text := text_or_none(value)) is not None:
            sink.add("request_tag", item.record, name=name, value=text)


READER = Reader(
    title="TensorRT-LLM /perf_metrics (JSON)",
    record_unit="request",
    gives=("request", "request_tag"),
    probe=probe,
    read=read,
    docs="https://github.com/NVIDIA/TensorRT-LLM/tree/main/tensorrt_llm/serve/scripts/time_breakdown",
    cannot="when a request ran (a steady clock); prompt and output tokens; the id its client "
    "knows; requests to /v1/responses; network",
    enable="return_perf_metrics: true and perf_metrics_max_requests: N; fetch /perf_metrics often, "
    "each call empties it; add the client's log for tokens and times",
    checked_against="the two examples of its time_breakdown README; its source for the newer form "
    "with the router's own timing_metrics",
)

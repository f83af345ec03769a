"""Answers that ended well and tell no usage.

main: from one moment on the streams of one route are no longer asked for their usage. The innocent
ones: another vantage tells it, the log cannot tell usage at all, an odd answer lacks it, and what
failed before its first token took none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from analyzer.simulate.writers import NS, openai_usage, request_record, stream_event, to_json
from cases._build import MS, at, expect, silent, write_case

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

MODEL = "plover-14b"
T0 = at("2026-07-09T09:00:00Z")
EVERY, FIRST, STEP, OUTPUT = 3 * NS, 180 * MS, 15 * MS, 90
RULE = "trust.missing-usage"
LEFT_ALONE = ["errors.rate", "errors.truncated-output"]
CLEAN = silent([RULE, *LEFT_ALONE])


def _record(k: int, usage: Mapping[str, object] | None, **fields: object) -> str:
    told = {"model": MODEL, "status": 200, "finish_reason": "stop", "streamed": True} | fields
    if usage is not None:
        told["usage"] = usage
    return request_record(
        f"mu-{k:04d}",
        vantage=str(told.pop("vantage", "gateway")),
        started_ns=T0 + EVERY * k,
        durations_ns={"ttft": FIRST, "e2e": FIRST + (OUTPUT - 1) * STEP},
        **{name: value for name, value in told.items() if value is not None},
    )


def _gateway(
    folder: Path,
    count: int,
    lacks: Callable[[int], bool],
    fields: Callable[[int], dict[str, object]],
) -> None:
    usage = openai_usage(400, OUTPUT)
    lines = [_record(k, None if lacks(k) else usage, **fields(k)) for k in range(count)]
    write_case(folder, {"gateway.jsonl": lines}, MODEL)


def _no_fields(_k: int) -> dict[str, object]:
    return {}


def _route(k: int) -> dict[str, object]:
    return {"route": "chat" if k % 2 else "batch"}


def _is_lost(k: int) -> bool:
    return k >= 60 and k % 2 == 1


def main(folder: Path) -> None:
    """The chat route's streams, from the 61st request on."""
    _gateway(folder, 120, _is_lost, _route)


def twin(folder: Path) -> None:
    """All are asked for their usage."""
    _gateway(folder, 120, lambda _: False, _route)


def variant_always(folder: Path) -> None:
    """Every stream, from the first; answers in one piece tell theirs."""
    _gateway(folder, 100, lambda k: k % 4 != 0, lambda k: {"streamed": k % 4 != 0})


def variant_all(folder: Path) -> None:
    """None of the log's answers, which tells how they ended."""
    _gateway(folder, 40, lambda _: True, _no_fields)


def _stream(k: int, chunks: int, end: Mapping[str, object], event: str = "done") -> list[str]:
    name, sent = f"mu-{k:04d}", T0 + EVERY * k
    lines = [stream_event(sent, name, "send", model=MODEL)]
    offsets = [FIRST + i * STEP for i in range(chunks)]
    lines += [stream_event(sent + o, name, "chunk", kind="content", chars=4) for o in offsets]
    return [*lines, stream_event(sent + (offsets or [FIRST])[-1], name, event, **end)]


def variant_client_streams(folder: Path) -> None:
    """A client's stream log, a third of it without."""
    lines = []
    for k in range(60):
        usage = {} if k % 3 == 0 else {"usage": openai_usage(400, 30)}
        lines += _stream(k, 30, {"finish_reason": "stop", **usage})
    write_case(folder, {"client.jsonl": lines}, MODEL)


def variant_aborted(folder: Path) -> None:
    """Every tenth stream is given up by its reader after twelve chunks."""
    lines = []
    for k in range(80):
        if k % 10 == 9:
            lines += _stream(k, 12, {"error": "cancelled"}, "error")
        else:
            lines += _stream(k, 30, {"finish_reason": "stop", "usage": openai_usage(400, 30)})
    write_case(folder, {"client.jsonl": lines}, MODEL)


def variant_refused(folder: Path) -> None:
    """Two requests fail before their first token."""
    _gateway(
        folder, 120, lambda k: k in (30, 31),
        lambda k: {"status": 503, "finish_reason": None} if k in (30, 31) else {},
    )  # fmt: skip


def variant_told_elsewhere(folder: Path) -> None:
    """The client logs none; the gateway tells each."""
    usage = openai_usage(400, OUTPUT)
    client = [_record(k, None, vantage="client") for k in range(60)]
    gateway = [_record(k, usage) for k in range(60)]
    write_case(folder, {"client.jsonl": client, "gateway.jsonl": gateway}, MODEL)


def variant_cannot_tell(folder: Path) -> None:
    """A log of bytes and times: no answer is looked into."""
    _gateway(folder, 60, lambda _: True, lambda _: {"finish_reason": None, "streamed": None})


def variant_odd_one(folder: Path) -> None:
    """One in two hundred."""
    _gateway(folder, 200, lambda k: k == 77, _no_fields)


def _span(k: int, *, told: bool) -> dict[str, object]:
    start = T0 + EVERY * k
    given: dict[str, object] = {
        "gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai",
        "gen_ai.request.model": MODEL,
    }  # fmt: skip
    pairs = [{"key": name, "value": {"stringValue": value}} for name, value in given.items()]
    pairs.append({"key": "gen_ai.request.stream", "value": {"boolValue": not told}})
    counts = {"input": 400, "output": OUTPUT} if told else {}
    pairs += [
        {"key": f"gen_ai.usage.{side}_tokens", "value": {"intValue": str(count)}}
        for side, count in counts.items()
    ]
    return {
        "traceId": f"{k + 1:032x}", "spanId": f"{k + 1:016x}", "name": f"chat {MODEL}", "kind": 3,
        "startTimeUnixNano": str(start), "endTimeUnixNano": str(start + 2 * NS),
        "attributes": pairs, "status": {},
    }  # fmt: skip


def variant_spans(folder: Path) -> None:
    """GenAI spans: those of streams lack the usage."""
    lines = [
        to_json({"resourceSpans": [{"scopeSpans": [{"spans": [_span(k, told=k % 2 == 0)]}]}]})
        for k in range(50)
    ]
    write_case(folder, {"spans.jsonl": lines}, MODEL)


def _expect(requests: int, of: int) -> dict[str, object]:
    return expect(RULE, "none", requests, requests / of, "ratio", must_not=LEFT_ALONE)


CASES = {
    "main": (main, _expect(30, 120)),
    "twin": (twin, CLEAN),
    "always": (variant_always, _expect(75, 100)),
    "all": (variant_all, _expect(40, 40)),
    "client_streams": (variant_client_streams, _expect(20, 60)),
    "aborted": (
        variant_aborted,
        expect(RULE, "none", 8, 0.1, "ratio", must_not=("trust.duplicate-usage",)),
    ),
    "spans": (variant_spans, _expect(25, 50)),
    "refused": (variant_refused, silent([RULE])),
    "told_elsewhere": (variant_told_elsewhere, CLEAN),
    "cannot_tell": (variant_cannot_tell, CLEAN),
    "odd_one": (variant_odd_one, CLEAN),
}

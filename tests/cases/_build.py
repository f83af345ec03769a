"""What the case modules share."""

from __future__ import annotations

import heapq
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from analyzer.simulate.writers import NS, chunk, done, llm_span, prices, send, write_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from analyzer.simulate.writers import Served

MS = 1_000_000
US = 1_000
TOLERANCE = 0.05


def at(text: str) -> int:
    """RFC 3339 to ns, for whole seconds."""
    return int(datetime.fromisoformat(text).astimezone(UTC).timestamp()) * NS


def fifo_waits(arrivals: Sequence[int], services: Sequence[int], slots: int) -> list[int]:
    """Waits of requests that are admitted in order of arrival, one a free slot."""
    free = [0] * slots
    waits = []
    for arrival, service in zip(arrivals, services, strict=True):
        start = max(arrival, heapq.heappop(free))
        heapq.heappush(free, start + service)
        waits.append(start - arrival)
    return waits


def mean_seconds(durations_ns: Iterable[int]) -> float:
    """Their mean in seconds."""
    known = list(durations_ns)
    return sum(known) / len(known) / NS


def expect(
    rule: str,
    segment: str,
    requests: int,
    value: float,
    unit: str,
    must_not: Iterable[str],
    may: Iterable[str] = (),
) -> dict[str, Any]:
    """What a verdict must and must not claim."""
    return {
        "rule": rule,
        "segment": segment,
        "requests": requests,
        "magnitude": {"value": value, "unit": unit},
        "tolerance": TOLERANCE,
        "must_not": list(must_not),
        "may": list(may),
    }


def silent(must_not: Iterable[str], may: Iterable[str] = ()) -> dict[str, Any]:
    """Only what must not be claimed."""
    return {"must_not": list(must_not), "may": list(may)}


def answer(
    request_id: str,
    sent_ns: int,
    chunks: Iterable[tuple[int, str | None, int]],
    usage: Mapping[str, object],
    **sent: object,
) -> list[str]:
    """Stream events of one answer; ``chunks`` are (offset from the send, kind, characters)."""
    lines = [send(sent_ns, request_id, **sent)]
    end = sent_ns
    for offset, kind, chars in chunks:
        end = sent_ns + offset
        lines.append(chunk(end, request_id, chars, kind=kind))
    lines.append(done(end, request_id, usage))
    return lines


def write_case(folder: Path, files: Mapping[str, Iterable[str]], model: str) -> None:
    """Write the files and a price list for the model."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, lines in files.items():
        write_lines(folder / name, lines)
    price = {"input": "1.50", "cache_read": "0.15", "output": "6.00"}
    write_lines(folder / "prices.json", [prices({model: price})])


def spans(served: Iterable[Served]) -> list[str]:
    """One span line each, in order of arrival."""
    return [llm_span(one) for one in served]

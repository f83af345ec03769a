"""SGLang's lines about something that happened to the server.

They are written when it is over; where they say how long it took, it began so much earlier. A
line that only counts the requests it concerns makes one event; of preemptions, a sample as well.
"""

from __future__ import annotations

import re
from typing import Any

import polars as pl

from analyzer.readers._times import DURATIONS, seconds_to_ns

Rows = list[dict[str, Any]]

_COUNTS = {
    "preemption": re.compile(r"#retracted_reqs: (\d{1,9})(?:\D|$)"),
    "abort": re.compile(r"#abort\w*_reqs: (\d{1,9})(?:\D|$)"),
}
_TOOK = re.compile(r"(?:elapsed[=:]|takes) ?(\d{1,9}(?:\.\d{1,9})?) s\b")
_RID = re.compile(r"\brid=['\"]?([^'\",\s]+)")
_KINDS = {"load": "load", "compile": "compile", "memory": "out_of_memory", "abort": "abort"}


def events_of(messages: pl.DataFrame) -> tuple[Rows, Rows]:
    """Rows of ``engine_event``, and of ``engine_sample`` for counted preemptions."""
    events: Rows = []
    samples: Rows = []
    columns = ("record", "time_ns", "engine", "kind", "message")
    for record, time_ns, engine, kind, message in messages.select(columns).iter_rows():
        same = {"record": record, "time_ns": time_ns, "engine": engine}
        if kind != "retract":
            events.append({**same, "kind": _KINDS[kind], **_told(kind, message, time_ns)})
            continue
        for name, pattern in _COUNTS.items():
            told = pattern.search(message)
            count = int(told[1]) if told else 0
            if count:
                events.append({**same, "kind": name})
            if count and name == "preemption":
                samples.append({**same, "clock": "wall", "preemptions": count})
    return events, samples


def _told(kind: str, message: str, time_ns: int | None) -> dict[str, Any]:
    if kind == "abort":
        rid = _RID.search(message)
        return {"request_id": rid[1]} if rid else {}
    took = _TOOK.search(message)
    dur = seconds_to_ns(took[1]) if took else None
    if dur is None or dur not in DURATIONS:
        return {}
    return {"dur_ns": dur} | ({"time_ns": time_ns - dur} if time_ns is not None else {})

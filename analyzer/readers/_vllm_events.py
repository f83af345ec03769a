"""vLLM's lines about something that happened to the engine, as rows of ``engine_event``.

They are written when it is over; where they say how long it took, it began so much earlier.
"""

from __future__ import annotations

import re
from typing import Any

import polars as pl

from analyzer.readers._times import DURATIONS, seconds_to_ns
from analyzer.readers._vllm_json import MEMORY

KINDS = {
    "preemption": r"Sequence group \S+ is preempted by ",
    # "Request x aborted." always follows one of these, so it tells nothing new.
    "abort": r"Aborted request(?:\(s\))? ",
    "failed": r"Request \S+ failed(?: \(|\.)",
    # The loading of the weights is part of it; graphs and compilation are told apart from it.
    "load": r"(?:Model loading|Loading model weights) took ",
    "compile": (
        r"(?:torch\.compile tak\w+|torch\.compile took) [\d.]+ s|Graph capturing finished in "
        r"|(?:Triton )?[Kk]ernel JIT compilation during inference"
    ),
    "out_of_memory": (
        r"(?:torch\.(?:cuda\.)?)?OutOfMemoryError: |ValueError: (?:No available memory for the "
        r"cache blocks|To serve at least one request with|The model's max seq len \(\d)"
    ),
    "crash": (
        r"EngineCore (?:encountered a fatal error|failed to start)"
        r"|(?:Engine core proc|Worker proc) \S+ died unexpectedly|Engine background task failed"
    ),
}
"""kind -> how its messages begin."""
WORDS = (
    r"is preempted by |Aborted request| failed \(| failed\.$|odel loading took "
    r"|odel weights took |torch\.compile t|Graph capturing finished|ernel JIT compilation"
    r"|OutOfMemoryError|ValueError: |EngineCore encountered|EngineCore failed|died unexpectedly"
    r"|Engine background task"
)
_TOOK = re.compile(r"(?:took|takes|in|and) (\d{1,9}(?:\.\d{1,9})?) ?(?:s|secs?|seconds?)\b")


def events_of(messages: pl.DataFrame) -> list[dict[str, Any]]:
    """Rows; a message about several requests makes one of each."""
    rows: list[dict[str, Any]] = []
    columns = ("record", "time_ns", "engine", "kind", "message")
    for record, time_ns, engine, kind, message in messages.select(columns).iter_rows():
        same = {"record": record, "time_ns": time_ns, "engine": engine, "kind": kind}
        if kind == "abort":
            ids = message.partition(" request")[2].removeprefix("(s)").strip().rstrip(".")
            rows += [{**same, "request_id": one.strip() or None} for one in ids.split(",")]
        elif kind == "preemption":
            one = message.removeprefix("Sequence group ").partition(" ")[0]
            rows.append({**same, "request_id": one})
        elif kind == "failed" and message.startswith("Request "):
            rows.append({**same, "request_id": message.split(" ")[1]})
        else:
            took = _TOOK.search(message) if kind in ("load", "compile") else None
            dur = seconds_to_ns(took[1]) if took else None
            told = {}
            if dur is not None and dur in DURATIONS:
                told = {"dur_ns": dur} | ({"time_ns": time_ns - dur} if time_ns is not None else {})
            rows.append({**same, **told})
            if message.endswith(MEMORY):
                rows.append({**same, "kind": "out_of_memory"})
    return rows

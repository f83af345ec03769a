"""Row keys of every command's output: what ``-f json`` and ``-f csv`` promise.

Durations are integers in ns; where a column is a moment, JSON prints it as RFC 3339 under the same
name with ``_at`` for ``_ns``. ``analyze sql`` has whatever columns the query has.
"""

from __future__ import annotations

import pyarrow as pa

GROUPS = {
    "model": "model",
    "route": "route",
    "provider": "provider",
    "deployment": "deployment",
    "session": "session_id",
    "source": "source",
}
"""``--by`` name -> column of ``resolve_request``."""

BINS_NS = {"minute": 60_000_000_000, "hour": 3_600_000_000_000, "day": 86_400_000_000_000}
"""``--by`` name -> width of a bin of the start time, UTC."""


def _row(doc: str, *columns: tuple[str, pa.DataType, str, str]) -> pa.Schema:
    fields = [
        pa.field(name, kind, metadata={"doc": text} | ({"unit": unit} if unit else {}))
        for name, kind, unit, text in columns
    ]
    return pa.schema(fields, metadata={"doc": doc})


_S, _I, _F = pa.string(), pa.int64(), pa.float64()
_GROUP_COLUMNS = [(name, _S, "", f"group: {name} (with --by)") for name in GROUPS] + [
    (f"{name}_ns", _I, "ns", f"group: start of the {name} (with --by)") for name in BINS_NS
]

OUTPUTS: dict[str, pa.Schema] = {
    "analyze.latency": _row(
        "One latency metric of one group of requests.",
        *_GROUP_COLUMNS,
        ("metric", _S, "", "e2e, ttft, tpot, itl (per chunk), or a segment"),
        ("requests", _I, "requests", "requests that have it"),
        ("mean_ns", _I, "ns", "mean"),
        ("p50_ns", _I, "ns", "median"),
        ("p95_ns", _I, "ns", "95th percentile"),
        ("p99_ns", _I, "ns", "99th percentile"),
        ("share", _F, "ratio", "of the summed e2e; segments and e2e only"),
        ("measured", _I, "requests", "how many are stated by a source"),
        ("derived", _I, "requests", "how many are a difference of measured durations"),
        ("absent", _I, "requests", "how many do not have it"),
    ),
    "analyze.latency.slowest": _row(
        "One of the slowest requests, with both exact views of its time.",
        ("id", _S, "", "request"),
        ("start_ns", _I, "ns", "start"),
        ("model", _S, "", "model"),
        ("route", _S, "", "route"),
        ("e2e_ns", _I, "ns", "end to end"),
        ("ttft_ns", _I, "ns", "time to first token"),
        ("queue_ns", _I, "ns", "queue"),
        ("prefill_ns", _I, "ns", "prefill"),
        ("decode_ns", _I, "ns", "decode"),
        ("network_ns", _I, "ns", "network"),
        ("unattributed_ns", _I, "ns", "in no part"),
        ("held_ns", _I, "ns", "delivery delay that overlaps decode"),
        ("output_tokens", _I, "tokens", "visible and reasoning"),
    ),
    "analyze.latency.slo": _row(
        "One objective held against every request that has its metric.",
        ("slo", _S, "", "the objective"),
        ("requests", _I, "requests", "requests that have the metric"),
        ("met", _I, "requests", "requests that meet it"),
        ("missed", _I, "requests", "requests that do not"),
        ("met_ratio", _F, "ratio", "share that meets it"),
        ("without", _I, "requests", "requests that lack the metric"),
    ),
    "analyze.verify": _row(
        "One done-when criterion, asked of a later window or capture.",
        ("rule", _S, "", "finding"),
        ("outcome", _S, "", "met, not met or cannot say"),
        ("metric", _S, "", "what is held to"),
        ("value", _F, "", "what it is, in unit"),
        ("op", _S, "", "<=, <, >=, > or ="),
        ("target", _F, "", "what it must be, in unit"),
        ("unit", _S, "", "unit of value and target"),
        ("why", _S, "", "what is missing, where nothing can be said"),
    ),
    "analyze.compare": _row(
        "One statistic of one metric in two windows or cases, with the interval of its change.",
        ("metric", _S, "", "latency, segment, tokens or rate"),
        ("statistic", _S, "", "mean, p50 or p95"),
        ("baseline", _F, "", "before, in unit"),
        ("window", _F, "", "after, in unit"),
        ("change", _F, "", "after minus before, in unit"),
        ("low", _F, "", "lower edge of the 95 % bootstrap interval of the change"),
        ("high", _F, "", "upper edge of it"),
        ("unit", _S, "", "unit of the values"),
        ("change_ratio", _F, "ratio", "change over before"),
        ("beyond_noise", pa.bool_(), "", "the interval leaves out 0; NULL below 5 values a side"),
        ("baseline_requests", _I, "requests", "values before"),
        ("window_requests", _I, "requests", "values after"),
    ),
    "analyze.sources": _row(
        "One file that was read.",
        ("path", _S, "", "file"),
        ("reader", _S, "", "reader"),
        ("record_unit", _S, "", "what a record is"),
        ("records", _I, "records", "records met"),
        ("used", _I, "records", "records that gave rows"),
        ("ignored", _I, "records", "records known to carry nothing"),
        ("problems", _I, "records", "records that could not be read"),
        ("first_ns", _I, "ns", "first time told"),
        ("last_ns", _I, "ns", "last time told"),
        ("bytes", _I, "bytes", "decompressed size"),
        ("sha256", _S, "", "hash of the decompressed bytes"),
    ),
    "analyze.coverage": _row(
        "How many requests tell a quantity, and how it is known.",
        ("quantity", _S, "", "segment or number"),
        ("requests", _I, "requests", "requests in scope"),
        ("measured", _I, "requests", "stated by a source"),
        ("derived", _I, "requests", "difference of measured durations"),
        ("absent", _I, "requests", "not known"),
        ("coverage", _F, "ratio", "share that has it"),
    ),
    "analyze.problems": _row(
        "Records that could not be read, by file and reason.",
        ("path", _S, "", "file"),
        ("record", _I, "1", "first such record"),
        ("records", _I, "records", "how many"),
        ("reason", _S, "", "what is wrong"),
        ("excerpt", _S, "", "keys and punctuation of the first one"),
    ),
    "analyze.formats": _row(
        "One format that can be read.",
        ("name", _S, "", "reader; --reader NAME forces it"),
        ("title", _S, "", "what it reads"),
        ("gives", _S, "", "tables it fills"),
    ),
    "analyze.format": _row(
        "One fact about a format.",
        ("field", _S, "", "what the fact is about"),
        ("value", _S, "", "the fact"),
    ),
    "analyze.schema": _row(
        "One column of a table or analysis.",
        ("table", _S, "", "table or analysis"),
        ("column", _S, "", "column"),
        ("type", _S, "", "SQL type"),
        ("unit", _S, "", "unit"),
        ("doc", _S, "", "meaning"),
    ),
}
"""Kind -> schema of a row. Findings have an envelope of their own (``report/json.py``)."""

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


def _struct(*names: tuple[str, pa.DataType, str, str]) -> pa.StructType:
    return pa.struct(list(_row("", *names)))


_BY_LINE = _struct(
    ("strict", _F, "ms", "cannot be beaten: own KV, all bandwidth, fastest dtype"),
    ("expected", _F, "ms", "of this batch and layout; NULL where they are not told"),
    ("attainable", _F, "ms", "the same at ceilings that were measured, with all-reduces"),
)
_LEVER = _struct(
    ("change", _S, "", "what is changed"),
    ("tpot_ms", _F, "ms", "TPOT then, of lever_line"),
    ("ttft_ms", _F, "ms", "TTFT then, of lever_line"),
    ("tokens_per_s", _F, "tokens/s", "expected output of the batch then"),
    ("sequences_that_fit", _I, "sequences", "sequences of this context that fit then"),
)
_BATCHED = _struct(
    ("batch", _I, "sequences", "sequences that share steps"),
    ("step", _F, "units", "mean cost of a step"),
    ("decode", _F, "units", "decode of one request"),
    ("slower", _F, "ratio", "against a request alone"),
    ("tokens_per_1k", _F, "tokens", "output tokens of the batch in 1,000 units"),
)
_QUEUED = _struct(
    ("load", _F, "ratio", "share of the capacity"),
    ("queue", _F, "units", "mean wait of a server that takes one at a time"),
    ("ttft", _F, "units", "wait and prefill"),
    ("queue_share", _F, "ratio", "of TTFT"),
    ("batched_queue", _F, "units", "mean wait for one of several slots"),
    ("batched_ttft", _F, "units", "that wait and prefill"),
)
_SPREAD = _struct(
    ("p10", _F, "ratio", "a tenth is below"),
    ("p50", _F, "ratio", "median"),
    ("p90", _F, "ratio", "a tenth is above"),
)
_FIT = _struct(
    ("requests", _I, "requests", "answers that count"),
    ("slope_ns_per_token", _F, "ns", "time a cached token of the batch adds to a step"),
    ("slope_low", _F, "ns", "lower edge of its 95 % interval"),
    ("slope_high", _F, "ns", "upper edge of it"),
    ("bound_slope_ns_per_token", _F, "ns", "reading it at full bandwidth"),
    ("cache_ratio", _F, "ratio", "bound over slope: share of the bandwidth reached on the cache"),
    ("intercept_ms", _F, "ms", "what does not grow with the context: weights and overhead"),
    ("intercept_low", _F, "ms", "lower edge of its 95 % interval"),
    ("intercept_high", _F, "ms", "upper edge of it"),
    ("weights_ms", _F, "ms", "of it, reading the weights at full bandwidth"),
    ("why", _S, "", "why there is no fit"),
)
_GROUP_COLUMNS = [(name, _S, "", f"group: {name} (with --by)") for name in GROUPS] + [
    (f"{name}_ns", _I, "ns", f"group: start of the {name} (with --by)") for name in BINS_NS
]

OUTPUTS: dict[str, pa.Schema] = {
    "analyze.latency": _row(
        "One latency metric of one group of requests.",
        *_GROUP_COLUMNS,
        (
            *("metric", _S, ""),
            "e2e, ttft, tpot, itl (per chunk) or a segment of requests that succeeded; failed: "
            "end-to-end time of those that did not, which are in no other row",
        ),
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
        "One objective held against every request that has its metric; a failure misses it.",
        ("slo", _S, "", "the objective"),
        ("requests", _I, "requests", "requests that have the metric or failed"),
        ("met", _I, "requests", "requests that meet it"),
        ("missed", _I, "requests", "requests that do not"),
        ("failed", _I, "requests", "of the missed: requests that failed, each a miss"),
        ("met_ratio", _F, "ratio", "share that meets it"),
        ("without", _I, "requests", "requests that lack the metric"),
    ),
    "analyze.bounds": _row(
        "How fast a model can be on a part: one row an answer.",
        ("model", _S, "", "model: key of the catalog, name of the config, or inline"),
        ("gpu", _S, "", "part: key of the catalog, or custom"),
        ("gpus", _I, "1", "devices that hold the model once"),
        ("layout", _S, "", "tp, pp and dp; NULL where not told"),
        ("weights", _S, "", "weight format"),
        ("kv_bits", _F, "bits", "bits of a cached element"),
        ("batch", _I, "sequences", "sequences that decode together"),
        ("context", _I, "tokens", "context of each"),
        ("prompt", _I, "tokens", "prompt"),
        ("cached", _I, "tokens", "of the prompt, in the prefix cache"),
        ("tokens_per_step", _F, "tokens", "tokens a step commits"),
        ("total_params", _I, "1", "parameters of the decoder"),
        ("read_params_decode", _I, "1", "parameters that one token reads; the head, no embedding"),
        ("weight_bytes", _I, "bytes", "weights read a step, by the batch where it is told"),
        ("checkpoint_bytes", _I, "bytes", "weights held on all devices"),
        ("kv_bytes_per_token", _F, "bytes", "cache of one token, windows aside"),
        ("kv_bytes", _I, "bytes", "cache read a step"),
        ("state_bytes", _I, "bytes", "fixed states of one sequence"),
        ("flops_per_step", _F, "FLOP", "FLOPs of a decode step"),
        ("prefill_flops", _F, "FLOP", "FLOPs of the prompt (with --simple)"),
        ("tpot_ms", _BY_LINE, "ms", "time per output token"),
        ("ttft_ms", _BY_LINE, "ms", "time to first token: prefill of one prompt alone"),
        ("tokens_per_s", _F, "tokens/s", "expected output of the batch"),
        ("limited_by", _S, "", "memory or compute: which of them a decode step waits for"),
        ("flops_per_byte", _F, "FLOP/byte", "arithmetic intensity of a decode step"),
        ("ridge_batch", _F, "sequences", "batch from which weights are computed longer than read"),
        ("sequences_that_fit", _I, "sequences", "sequences of this context beside the weights"),
        ("context_that_fits", _I, "tokens", "longest context at this batch"),
        ("lever_line", _S, "", "line that the levers tell: expected, else strict"),
        ("levers", pa.list_(pa.field("item", _LEVER, nullable=False)), "", "what changes give"),
        ("assumed", pa.list_(pa.field("item", _S, nullable=False)), "", "what was not told"),
        ("model_source", _S, "", "where the shape is from, and how sure that is"),
        ("gpu_source", _S, "", "where the figures are from, and how sure they are"),
        ("memory_bandwidth_bytes_s", _F, "bytes/s", "bandwidth of one device"),
    ),
    "analyze.bounds.observed": _row(
        "How near the answers of one deployment and model come to the hardware.",
        ("deployment", _S, "", "label of the requests; NULL = none"),
        ("model", _S, "", "model of the requests"),
        ("reading", _S, "", "what the numbers say, in a line"),
        ("bound_model", _S, "", "model of the bound: key of the catalog, or inline figures"),
        ("gpu", _S, "", "part: key of the catalog, or custom"),
        ("gpus", _I, "1", "devices that hold the model once"),
        ("layout", _S, "", "tp, pp and dp; NULL where not told"),
        ("weights", _S, "", "weight format"),
        ("kv_bits", _F, "bits", "bits of a cached value"),
        ("weight_bytes", _F, "bytes", "weights that one token alone reads"),
        ("requests", _I, "requests", "answers with a time per output token"),
        ("judged", _I, "requests", "of them with a bound of their batch"),
        ("batch", _F, "sequences", "mean batch, rebuilt from answers that overlap"),
        ("context", _F, "tokens", "mean context of an answer"),
        ("observed_ms", _F, "ms", "median time per output token"),
        ("tpot_ms", _BY_LINE, "ms", "medians of its bounds"),
        ("reached", _SPREAD, "ratio", "expected over observed (MBU where memory is the limit)"),
        ("strict_ratio", _F, "ratio", "median of strict over observed"),
        ("host_ms", _F, "ms", "of the bound: weights in main memory"),
        ("interference_ms", _F, "ms", "of the observed, at most: prompts in work beside it"),
        ("too_fast", _I, "requests", "answers and prompts that beat strict"),
        ("prefills", _I, "requests", "prompts timed without the queue, cached tokens told"),
        ("prefill_ms", _F, "ms", "their median time"),
        ("ttft_ms", _BY_LINE, "ms", "medians of their bounds"),
        ("mfu", _SPREAD, "ratio", "FLOPs of the model over the dense 16-bit peak"),
        ("fit", _FIT, "", "time per output token over the context of the batch"),
        ("why", _S, "", "what is missing, where nothing can be said"),
        ("assumed", pa.list_(pa.field("item", _S, nullable=False)), "", "values and sources"),
    ),
    "analyze.timeline": _row(
        "One bin of one line of a lane over time.",
        ("lane", _S, "", "what is shown, as in the report"),
        ("line", _S, "", "line of the lane: p50, p95, running, ..."),
        ("unit", _S, "", "unit of the value"),
        ("start_ns", _I, "ns", "start of the bin"),
        ("width_ns", _I, "ns", "length of the bin"),
        ("value", _F, "", "value, in unit; no row where nothing is told"),
        ("incident", pa.bool_(), "", "the bin lies in the window that stands out"),
    ),
    "analyze.rules": _row(
        "One rule of a family and its outcome in this case.",
        ("rule", _S, "", "rule"),
        ("outcome", _S, "", "found, clear or cannot say"),
        ("severity", _S, "", "of what was found"),
        ("requests", _I, "requests", "requests touched"),
        ("coverage", _F, "ratio", "share of the requests in scope with the inputs"),
        ("title", _S, "", "what it claims, in a line"),
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
        (
            *("when", _S, ""),
            "where the requests judged lie: before, during or after the finding; never where it "
            "was not found in the case; NULL where that is not known",
        ),
        ("why", _S, "", "what is missing, where nothing can be said"),
    ),
    "analyze.compare": _row(
        "One statistic of one metric in two windows or cases, with the interval of its change.",
        ("metric", _S, "", "latency, segment, tokens or rate"),
        ("statistic", _S, "", "mean, p50 or p95"),
        ("baseline", _F, "", "before, in unit; no p95 below 20 values"),
        ("window", _F, "", "after, in unit; no p95 below 20 values"),
        ("change", _F, "", "after minus before, in unit"),
        ("low", _F, "", "lower edge of the 95 % bootstrap interval of the change"),
        ("high", _F, "", "upper edge of it"),
        ("unit", _S, "", "unit of the values"),
        ("change_ratio", _F, "ratio", "change over before"),
        (
            "beyond_noise",
            pa.bool_(),
            "",
            "the interval leaves out 0; NULL below 20 values (5 minutes) a side",
        ),
        ("baseline_requests", _I, "requests", "values before"),
        ("window_requests", _I, "requests", "values after"),
    ),
    "analyze.engines": _row(
        "The state of one model server at its fullest, by its own samples.",
        ("engine", _S, "", "the server; empty = not told"),
        ("samples", _I, "", "samples"),
        ("running", _I, "requests", "most requests in the batch"),
        ("waiting", _I, "requests", "most requests queued"),
        ("kv_used_ratio", _F, "1", "highest use of the KV cache, 0 to 1"),
        ("first_ns", _I, "ns", "first sample"),
        ("last_ns", _I, "ns", "last sample"),
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
    "analyze.simulate": _row(
        "What a simulated world was, in numbers; its logs and truth.jsonl lie in the folder.",
        ("world", _S, "", "name of the world"),
        ("seed", _I, "1", "the same seed gives the same bytes"),
        ("folder", _S, "", "where the logs are"),
        ("logs", _S, "", "formats written"),
        ("attempts", _I, "requests", "requests sent, each retry counted"),
        ("failed", _I, "requests", "of them, without an answer"),
        ("output_tokens", _I, "tokens", "tokens made"),
        ("chunks", _I, "1", "chunks that clients saw; 0 where no log needs them"),
        ("steps", _I, "steps", "decode steps of all engines"),
        ("span_ns", _I, "ns", "from the start to the last event"),
    ),
    "analyze.simulate.two-stage": _row(
        "The two-stage model in units of cost: one row with a KV cache, one without.",
        ("kv_cache", pa.bool_(), "", "whether decode reads a KV cache"),
        ("prompt_tokens", _I, "tokens", "prompt"),
        ("output_tokens", _I, "tokens", "output"),
        ("ttft", _I, "units", "prefill"),
        ("decode", _I, "units", "all decode steps"),
        ("total", _I, "units", "both"),
        ("per_token", _F, "units", "total over output tokens"),
        ("step_first", _I, "units", "first decode step"),
        ("step_mid", _I, "units", "middle one"),
        ("step_last", _I, "units", "last one"),
        ("tokens_per_1k", _F, "tokens", "output tokens in 1,000 units, one request at a time"),
        ("saved", _F, "ratio", "of the total without a cache"),
        ("lanes", _I, "sequences", "sequences computed side by side at the price of one"),
        ("batching", pa.list_(pa.field("item", _BATCHED, nullable=False)), "", "by batch size"),
        ("queueing", pa.list_(pa.field("item", _QUEUED, nullable=False)), "", "by load"),
    ),
    "analyze.simulate.what-if": _row(
        "One metric of a simulated world before and after a change, or of a case and its world.",
        ("what_if", _S, "", "what was changed"),
        ("metric", _S, "", "a segment, ttft, tpot, e2e, or a total of the run"),
        ("unit", _S, "", "unit of the values"),
        ("before", _F, "", "mean of a duration, else the total"),
        ("after", _F, "", "the same after the change"),
        ("change", _F, "ratio", "after over before, less 1"),
        ("before_p95", _F, "", "95th percentile of a duration"),
        ("after_p95", _F, "", "the same after the change"),
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

"""Row keys of ``analyze latency``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analyzer.contract._columns import GROUP_COLUMNS as _GROUP_COLUMNS
from analyzer.contract._columns import INT as _I
from analyzer.contract._columns import REAL as _F
from analyzer.contract._columns import TEXT as _S
from analyzer.contract._columns import row as _row

if TYPE_CHECKING:
    import pyarrow as pa

LATENCY: dict[str, pa.Schema] = {
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
        ("modelled", _I, "requests", "how many come from a fit; only in rows of their own"),
        ("absent", _I, "requests", "how many do not have it"),
        ("low_ns", _I, "ns", "modelled rows: mean lower edge of the requests' 90 % intervals"),
        ("high_ns", _I, "ns", "modelled rows: mean upper edge"),
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
    "analyze.latency.law": _row(
        "The linear law of one model and route: end to end = base + step x output tokens.",
        ("model", _S, "", "model"),
        ("route", _S, "", "route"),
        ("requests", _I, "requests", "answers with an end and output tokens"),
        ("points", _I, "requests", "of them, fitted"),
        ("why", _S, "", "why the law is not told; NULL = it holds"),
        ("base_ns", _F, "ns", "b at the median uncached prompt"),
        ("base_low_ns", _F, "ns", "lower edge of its 90 % interval"),
        ("base_high_ns", _F, "ns", "upper edge of it"),
        ("step_ns", _F, "ns", "k at the median context"),
        ("step_low_ns", _F, "ns", "lower edge of its 90 % interval"),
        ("step_high_ns", _F, "ns", "upper edge of it"),
        ("prompt_ns", _F, "ns", "what an uncached prompt token adds to b; NULL = not seen"),
        ("context_ns", _F, "ns", "what a token of context adds to k; NULL = not seen"),
        ("fresh_tokens", _F, "tokens", "median uncached prompt"),
        ("context_tokens", _F, "tokens", "median context in the middle of an answer"),
        ("output_tokens", _F, "tokens", "median output"),
        ("off_ns", _F, "ns", "median distance of an answer from the law"),
        ("explained", _F, "ratio", "share of the scatter of e2e that the law explains"),
        ("short_ns", _I, "ns", "an answer of 80 tokens, by the law"),
        ("long_ns", _I, "ns", "an answer of 400 tokens"),
        ("usual_tokens_per_s", _F, "tokens/s", "rate of a median answer: N / (b + k N)"),
        ("most_tokens_per_s", _F, "tokens/s", "rate that long answers approach: 1 / k"),
    ),
    "analyze.latency.slo": _row(
        "One objective, or all of them, held against every request; a failure misses it.",
        *_GROUP_COLUMNS,
        ("slo", _S, "", "the objective, or 'all of them'"),
        (
            *("outcome", _S, ""),
            "met, not met, or cannot say where less than 90 % of the requests tell the metric",
        ),
        ("requests", _I, "requests", "requests that have the metric or failed"),
        ("met", _I, "requests", "requests that meet it"),
        ("missed", _I, "requests", "requests that do not"),
        ("failed", _I, "requests", "of the missed: requests that failed, each a miss"),
        ("met_ratio", _F, "ratio", "share of the requests that meets it"),
        ("target_ratio", _F, "ratio", "share that has to: 0.95 for a p95, else 1"),
        (
            "value_ns",
            _I,
            "ns",
            "the percentile by rank; NULL among failures or where none is asked",
        ),
        ("without", _I, "requests", "requests that lack the metric"),
        ("coverage", _F, "ratio", "share of all requests that can be judged"),
        ("goodput_per_s", _F, "requests/s", "requests that meet it, over length_ns"),
        ("goodput_tokens_per_s", _F, "tokens/s", "their output; NULL below 90 % that tell it"),
        ("length_ns", _I, "ns", "first start to last end of the case, or of the bin within it"),
    ),
    "analyze.latency.slo.budget": _row(
        "One part of the time of requests that missed an objective, against those that met it.",
        ("slo", _S, "", "the objective"),
        ("segment", _S, "", "the part; parts add up to the metric"),
        ("requests", _I, "requests", "requests that missed it without failing"),
        ("missed_mean_ns", _I, "ns", "mean of the part over them"),
        ("met_mean_ns", _I, "ns", "mean over those that met it; NULL where none did"),
        ("excess_ns", _I, "ns", "the difference"),
        ("excess_share", _F, "ratio", "of the whole difference; of all time where none met it"),
        ("coverage", _F, "ratio", "share of those that missed it whose part is known"),
    ),
}

"""Canonical tables, one pyarrow schema each.

Times are int64 nanoseconds since the Unix epoch, UTC, named ``..._ns``; durations too. Ratios run
from 0 to 1. Tokens are disjoint buckets: nothing is counted in two columns. NULL means the source
did not say; it never means zero. Every row names the source record it came from.
"""

from __future__ import annotations

import pyarrow as pa

from analyzer.contract._bills import invoice_line
from analyzer.contract._fields import column as _f
from analyzer.contract._fields import ns as _ns
from analyzer.contract._fields import ratio as _ratio
from analyzer.contract._fields import real as _float
from analyzer.contract._fields import table as _table
from analyzer.contract._fields import text as _text
from analyzer.contract._fields import tokens as _tokens
from analyzer.contract._fields import whole as _int
from analyzer.contract._gpu import gpu_event, gpu_trace
from analyzer.contract._gpu_kernel import gpu_kernel_total
from analyzer.contract.prompts import cache_columns, prompt_columns, prompt_part

CONTRACT_VERSION = 4
"""Stored in each case; a case of another version is re-ingested, never guessed at."""

USD = pa.decimal128(18, 9)

VANTAGES = ("client", "gateway", "provider", "engine")
"""Where a source stood, outermost first."""

CHUNK_KINDS = ("role", "reasoning", "content", "tool_call")


_SOURCE_ID = _f("source_id", pa.int32(), "the source this row was read from", required=True)
_RECORD = _f(
    "record",
    pa.int64(),
    "first record of the source that told this row, counted from 1 (the unit stands in source)",
    required=True,
)
_PROVENANCE = [_SOURCE_ID, _RECORD]


TABLES: dict[str, pa.Schema] = {
    "source": _table(
        "One file or archive member that was read. records = used + ignored + problems.",
        [
            _SOURCE_ID,
            _f("path", pa.string(), "path relative to the ingest argument", required=True),
            _f("sha256", pa.string(), "SHA-256 of the decompressed bytes", required=True),
            _text("reader", "reader that read it"),
            _int("reader_version", "version of that reader"),
            _text(
                "container", "plain, gzip or zstd; of an archive's member zip, tar, tar+gzip, ..."
            ),
            _int("bytes", "decompressed size", "bytes"),
            _text("record_unit", "what a record is: line, row, event, span"),
            _int("records", "records met", "records"),
            _int("used", "records that gave rows", "records"),
            _int("ignored", "records known to carry nothing for us; reasons in source_note"),
            _int("problems", "records that could not be read; each stands in problem"),
            _ns("first_ns", "first time told"),
            _ns("last_ns", "last time told"),
            _text("resume", "JSON: where reading goes on when the file has grown; NULL = cannot"),
        ],
    ),
    "source_note": _table(
        "What was assumed about a source, and why records of it were ignored.",
        [
            _SOURCE_ID,
            _f("kind", pa.string(), "assumed or ignored", required=True),
            _f("note", pa.string(), "the assumption, or the reason", required=True),
            _int("records", "records concerned", "records"),
        ],
    ),
    "source_length": _table(
        "A shorter form in which a source that has grown was read before.",
        [
            _SOURCE_ID,
            _f("bytes", pa.int64(), "its decompressed size", "bytes", required=True),
            _f("sha256", pa.string(), "SHA-256 of those bytes", required=True),
        ],
    ),
    "problem": _table(
        "A record that could not be read, or only in part. Nothing is dropped in silence.",
        [
            *_PROVENANCE,
            _int("byte_offset", "offset of the record in the decompressed bytes", "bytes"),
            _f("reason", pa.string(), "what is wrong and what to do", required=True),
            _text("excerpt", "keys and punctuation of the record; strings are cut to …(n chars)"),
        ],
    ),
    "request": _table(
        "One attempt of one request seen from one vantage, as that source tells it.",
        [
            *_PROVENANCE,
            _f("vantage", pa.string(), "client, gateway, provider or engine", required=True),
            # identity
            _text("request_id", "id the source gives the request"),
            _text("response_id", "id of the response, often known to both ends"),
            _text("operation_id", "one user intent over its retries"),
            _int("attempt", "1 for the first try"),
            _text("trace_id", "distributed-trace id"),
            _text("session_id", "conversation or agent session"),
            _int("turn", "turn of the session, from 1"),
            _text("parent_session_id", "session that started this one"),
            _f("is_sidechain", pa.bool_(), "a sub-agent's or side call"),
            _text("route", "path the request took: direct, gateway, region, replica"),
            _text("endpoint", "API path"),
            _text("model", "model that answered, as named by the source"),
            _text("provider", "vendor"),
            _text("deployment", "deployment or engine instance"),
            # time
            _ns("start_ns", "when the vantage saw the request begin; Unix epoch, UTC"),
            _text("clock", "wall, or monotonic (then start_ns is NULL or of unknown origin)"),
            _text(
                "timing",
                "how this row knows its durations: stated (the source states them), stream (from "
                "the times of the chunks it lists), stamps (differences of its own stamps)",
            ),
            _ns("hold_ns", "client wait before sending (coordinated omission)"),
            _ns("queue_ns", "wait for the model server to begin"),
            _ns("load_ns", "model load, part of queue_ns"),
            _ns("prefill_ns", "prompt processing until the first token"),
            _ns("decode_ns", "first token to last token"),
            _ns("frontend_ns", "HTTP, tokenising, detokenising inside the server"),
            _ns("ttft_ns", "time to first token, as this vantage states or saw it"),
            _ns("first_role_ns", "offset of a role chunk that precedes the first token"),
            _ns("first_reasoning_ns", "offset of the first reasoning token"),
            _ns("first_content_ns", "offset of the first visible token"),
            _ns("e2e_ns", "end to end: until the last chunk"),
            _ns("dns_ns", "name lookup"),
            _ns("connect_ns", "TCP connect"),
            _ns("tls_ns", "TLS handshake"),
            _ns("upstream_headers_ns", "gateway: until the upstream's headers"),
            _ns("upstream_ns", "gateway: whole upstream exchange"),
            _int("upstream_calls", "gateway: calls of an upstream that this row holds", "calls"),
            _ns("upstream_failed_ns", "gateway: in calls that failed before the last one"),
            # tokens, disjoint
            _tokens("input_fresh_tokens", "prompt tokens neither read from nor written to a cache"),
            _tokens("cache_read_tokens", "prompt tokens served from a cache; NULL = not told"),
            _tokens("cache_write_short_tokens", "written to the short-lived cache"),
            _tokens("cache_write_long_tokens", "written to the long-lived cache"),
            _tokens("cache_write_unknown_tokens", "written to a cache of unknown lifetime"),
            _tokens("output_visible_tokens", "output the user sees"),
            _tokens("output_reasoning_tokens", "output spent on reasoning"),
            _text("usage_convention", "inclusive, exclusive or unknown: the source's own counting"),
            _f("usage_final", pa.bool_(), "the usage is the last word of the response"),
            _int(
                "usage_records",
                "records of this source that tell the usage of this request; it counts once",
                "records",
            ),
            _tokens("usage_records_output_tokens", "output added up over those records"),
            _tokens("usage_first_output_tokens", "output as the first of those records tells it"),
            _text(
                "usage_contradiction", "why its token counts cannot all be right; NULL = they can"
            ),
            # stream
            _int("chunks", "chunks that carried tokens", "chunks"),
            _int("chunk_chars", "characters over those chunks", "chars"),
            _int("first_chunk_chars", "characters of the first of them", "chars"),
            _tokens("first_chunk_tokens", "tokens of the first of them, where told"),
            # context
            _f("streamed", pa.bool_(), "answered as a stream"),
            _text("response_format", "json, schema, grammar, ..."),
            _tokens("max_output_tokens", "the request's limit on output"),
            *prompt_columns(),
            _int("output_chars", "characters of the answer, where its text was logged", "chars"),
            _text("schema_hash", "hash of the output schema"),
            _text("payload_hash", "hash of the request body"),
            _tokens("prefix_block_tokens", "tokens a prompt_block covers"),
            _int("prefix_block_chars", "characters a prompt_block covers, of a text", "chars"),
            *cache_columns(),
            # outcome
            _int("status", "HTTP status"),
            _text("error", "error class"),
            _text("finish_reason", "stop, length, tool_calls, abort, ..."),
            _int("bytes_sent", "request bytes that left", "bytes"),
            _ns("retry_after_ns", "wait the server asked for"),
            _text("service_tier", "tier that was billed"),
            _f("reported_cost_usd", USD, "cost as the source reports it", "usd"),
        ],
    ),
    "chunk": _table(
        "One chunk of a streamed answer. A chunk is not a token.",
        [
            *_PROVENANCE,
            _f("chunk_index", pa.int64(), "order in the answer, from 0", "1", required=True),
            _ns("offset_ns", "since the request began (its first event where that is unknown)"),
            _text("kind", "role, reasoning, content or tool_call"),
            _int("chars", "characters of text", "chars"),
            _tokens("tokens", "tokens, where told"),
        ],
    ),
    "prompt_block": _table(
        "Hash of a prompt prefix up to and including a block.",
        [
            *_PROVENANCE,
            _f("block_index", pa.int64(), "block of the prompt, from 0", "1", required=True),
            _text("prefix_hash", "hash of the prefix that ends with this block"),
        ],
    ),
    "prompt_part": prompt_part(_PROVENANCE),
    "request_tag": _table(
        "A free label of a request.",
        [*_PROVENANCE, _text("name", "label"), _text("value", "its value")],
    ),
    "engine_sample": _table(
        "A status line or scrape of a model server.",
        [
            *_PROVENANCE,
            _ns("time_ns", "when"),
            _text("clock", "wall, or relative (seconds since the run began)"),
            _text("engine", "engine, rank or replica that reports"),
            _text("model", "model it serves"),
            _int("running", "requests in the batch", "requests"),
            _int("waiting", "requests that wait for admission", "requests"),
            _int("swapped", "requests swapped out", "requests"),
            _ratio("kv_used_ratio", "KV cache in use"),
            _float("prompt_tokens_per_s", "prompt tokens processed", "tokens/s"),
            _float("generation_tokens_per_s", "tokens generated", "tokens/s"),
            _ratio(
                "prefix_hit_ratio",
                "prefix-cache hits, over the engine's own moving window or a scrape's interval",
            ),
            _int("preemptions", "preemptions since the last sample"),
            _tokens("capacity_tokens", "size of the KV pool"),
            _int(
                "deferred", "requests held back from admission, not among those waiting", "requests"
            ),
            _int("kv_fetching", "requests whose KV cache comes from elsewhere", "requests"),
            _int("corrupted", "requests whose results are no numbers", "requests"),
            _ratio("external_hit_ratio", "hits in a cache outside the engine, as prefix_hit_ratio"),
            _ratio("mm_hit_ratio", "hits in the cache of images and the like, as prefix_hit_ratio"),
            _tokens("drafted_tokens", "speculation: proposed since the last sample"),
            _tokens("draft_accepted_tokens", "speculation: of those accepted"),
            _float("accepted_length", "speculation: mean tokens a draft gains, plus one", "tokens"),
            _ns(
                "interval_ns",
                "scrape: what its counts and means cover, which is the time since the scrape "
                "before, of a first scrape since the counters began; NULL = not told",
            ),
            _int("finished", "scrape: requests that ended in the interval", "requests"),
            _ns("ttft_mean_ns", "scrape: mean time to first token in the interval"),
            _ns("e2e_mean_ns", "scrape: mean end-to-end time in the interval"),
            _ns("queue_mean_ns", "scrape: mean queue time in the interval"),
            _ns("prefill_mean_ns", "scrape: mean prefill time in the interval"),
            _ns("decode_mean_ns", "scrape: mean decode time in the interval"),
        ],
    ),
    "engine_step": _table(
        "One step of an engine's loop: what was computed together. Their order is their number.",
        [
            *_PROVENANCE,
            _ns("time_ns", "when it was reported"),
            _text("clock", "wall, or relative (seconds since the run began)"),
            _text("engine", "engine, rank or replica"),
            _int("step", "its number, from 0 when the engine began"),
            _int("prefill_requests", "requests whose prompt was in work", "requests"),
            _tokens("prefill_tokens", "prompt tokens computed in it"),
            _int("decode_requests", "requests that decoded", "requests"),
            _tokens("decode_tokens", "tokens computed for those, drafts included"),
            _ns("dur_ns", "what the engine measured; where it schedules ahead, less than the step"),
            _ratio("kv_used_ratio", "KV cache in use"),
            _f("dummy", pa.bool_(), "nothing was asked for: keeps data-parallel ranks in pace"),
        ],
    ),
    "engine_event": _table(
        "Something that happened to a model server.",
        [
            *_PROVENANCE,
            _ns("time_ns", "when it began"),
            _text("engine", "engine, rank or replica"),
            _text(
                "kind",
                "load, unload, restart, out_of_memory, preemption, compile, abort, crash, failed",
            ),
            _ns("dur_ns", "how long it took"),
            _text("request_id", "request concerned"),
        ],
    ),
    "client_tick": _table(
        "A heartbeat of a client's event loop.",
        [*_PROVENANCE, _ns("time_ns", "when"), _text("client", "which client")],
    ),
    "gpu_event": gpu_event(_PROVENANCE),
    "gpu_trace": gpu_trace(_PROVENANCE),
    "gpu_sample": _table(
        "One sample of device counters.",
        [
            *_PROVENANCE,
            _ns("time_ns", "when"),
            _text("host", "machine"),
            _int("device", "device index"),
            _ratio("gpu_used_ratio", "device busy"),
            _ratio("memory_busy_ratio", "memory interface busy: share of its cycles"),
            _int("memory_used_bytes", "memory in use", "bytes"),
            _float("power_w", "power draw", "W"),
            _float("sm_clock_hz", "SM clock", "Hz"),
            _float("temperature_c", "temperature", "Celsius"),
            _text("clock", "wall, or relative (since an unknown moment)"),
            _text("device_id", "the device's own id (UUID)"),
            _text("device_name", "accelerator, as the source says"),
            _int("memory_total_bytes", "memory there is", "bytes"),
            _ratio("memory_traffic_ratio", "time with any memory traffic: no measure of bandwidth"),
            _ratio("sm_active_ratio", "multiprocessors with work, mean of all"),
            _ratio("tensor_active_ratio", "tensor cores active, mean of all"),
        ],
    ),
    "gpu_kernel_total": gpu_kernel_total(_PROVENANCE),
    "invoice_line": invoice_line(_PROVENANCE),
    "deployment": _table(
        "What a model runs on: any subset of shape, layout, limits and bandwidths.",
        [
            *_PROVENANCE,
            _text("name", "deployment; NULL = the whole case"),
            _text("model", "catalog or served name"),
            _text("gpu", "accelerator"),
            _int("gpu_count", "accelerators"),
            _int("tp", "tensor-parallel ranks"),
            _int("pp", "pipeline-parallel stages"),
            _float("memory_bandwidth_bytes_per_s", "of one accelerator", "bytes/s"),
            _float("cpu_memory_bandwidth_bytes_per_s", "of main memory", "bytes/s"),
            _float("params", "parameters read a step", "parameters"),
            _float("weight_bytes_per_param", "stored size of one parameter", "bytes"),
            _int("weight_bytes_per_rank", "weights on one rank", "bytes"),
            _int("layers", "layers"),
            _int("gpu_weight_bytes", "weights in the accelerators' memory, all of them", "bytes"),
            _int("cpu_weight_bytes", "weights in main memory, with an input embedding", "bytes"),
            _int("gpu_layers", "layers on accelerators; the output matrix counts as one"),
            _int("offloadable_layers", "layers that could be there, the output matrix included"),
            _int("kv_heads", "key-value heads"),
            _int("head_dim", "dimension of one head"),
            _float("kv_bytes_per_value", "stored size of one KV value", "bytes"),
            _int("input_embedding_bytes", "input embedding, read one row a token", "bytes"),
            _tokens("kv_capacity_tokens", "tokens the KV pool holds"),
            _int("max_running", "admission limit", "requests"),
            _tokens("max_context_tokens", "longest prompt with its answer"),
            _tokens("max_step_tokens", "token budget of a step"),
            _f("prefix_caching", pa.bool_(), "prompts are looked up in a prefix cache"),
            _f("chunked_prefill", pa.bool_(), "long prompts are computed in parts"),
            _text("weight_format", "quantisation, or the number type where there is none, as told"),
        ],
    ),
    "price": _table(
        "A unit price, or a factor on others. Never zero: an unlisted model is unpriced.",
        [
            *_PROVENANCE,
            _text("model", "model; NULL = every one (of the provider)"),
            _text(
                "token_kind",
                "input, cache_read, cache_write_short, cache_write_long, output, reasoning, "
                "input_audio, output_audio, input_image, output_image; web_search is per thousand "
                "searches; NULL = a factor on all",
            ),
            _tokens("above_input_tokens", "applies strictly above this prompt size; NULL = always"),
            _f("usd_per_million_tokens", USD, "unit price; NULL = a factor", "usd/Mtokens"),
            _text("currency", "ISO 4217"),
            _ns("valid_from_ns", "first moment it holds; NULL = always"),
            _text("provider", "vendor it is paid to; NULL = whichever"),
            _text("service_tier", "batch, flex, priority or fast; NULL = the price without a tier"),
            _f(
                "factor",
                USD,
                "instead of a price: the price without the tier times this; without a tier: list "
                "prices times this (a discount)",
                "1",
            ),
            _text("catalog", "catalog it was copied from; NULL = the user's own prices"),
        ],
    ),
}
"""Name -> schema. ``schemas/`` publishes it; the store validates every batch against it."""


def doc_of(field: pa.Field) -> str:
    """One-line meaning of a field."""
    return str((field.metadata or {}).get(b"doc", b"").decode())


def unit_of(field: pa.Field) -> str:
    """Unit of a field, empty for text."""
    return str((field.metadata or {}).get(b"unit", b"").decode())

"""Native log formats, for people who instrument their own client or gateway: JSON Lines.

``schemas/native/`` publishes them. Times are RFC 3339 text or Unix seconds; every field but the
ids and the time is optional: give what is known, leave out what is not.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from analyzer.contract._native_prices import Prices, Time

Ms = Annotated[float | None, Meta(description="milliseconds")]
Count = Annotated[int, Meta(ge=0)]
Usage = Annotated[
    dict[str, Any] | None,
    Meta(description="the vendor's own usage object (OpenAI, Anthropic, Gemini, Bedrock, ...)"),
]


class PromptPart(Struct, kw_only=True):
    """One part of a prompt, without its text: what it is, its length, hashes of it."""

    kind: Literal[
        "tools",
        "system",
        "user",
        "assistant",
        "reasoning",
        "tool_call",
        "tool_result",
        "image",
        "schema",
        "other",
    ]
    chars: Count | None = None
    hash: Annotated[
        str | None, Meta(description="of its content, without marks such as cache_control")
    ] = None
    plain_hash: Annotated[
        str | None,
        Meta(description="the same with times, ids and numbers each replaced by a fixed word"),
    ] = None
    volatile: Annotated[
        str | None,
        Meta(description="which of timestamp, id and number it has, with commas between"),
    ] = None
    first_volatile_chars: Annotated[
        Count | None, Meta(description="characters before the first time or id in it")
    ] = None
    name_hash: Annotated[str | None, Meta(description="of a tool: hash of its name")] = None


PromptParts = Annotated[
    list[PromptPart] | None,
    Meta(
        description="the whole prompt in the order in which the provider sees it: tools one by "
        "one, system, messages"
    ),
]


class Send(Struct, tag_field="event", tag="send", kw_only=True):
    """The client sends the request."""

    ts: Time
    request_id: str
    attempt: int | None = None
    operation_id: str | None = None
    model: str | None = None
    provider: str | None = None
    endpoint: str | None = None
    route: str | None = None
    session_id: str | None = None
    parent_session_id: str | None = None
    turn: int | None = None
    is_sidechain: bool | None = None
    scheduled_at: Annotated[
        Time | None, Meta(description="when the client meant to send; the wait is hold_ns")
    ] = None
    stream: bool | None = None
    max_tokens: int | None = None
    tools_count: int | None = None
    tools_chars: int | None = None
    system_chars: int | None = None
    user_chars: int | None = None
    assistant_chars: int | None = None
    reasoning_chars: int | None = None
    tool_result_chars: int | None = None
    images: int | None = None
    prompt_parts: PromptParts = None
    is_compacted: bool | None = None
    effort: str | None = None
    speed: str | None = None
    response_format: str | None = None
    schema_hash: str | None = None
    payload_hash: str | None = None
    prefix_hashes: Annotated[
        list[str] | None,
        Meta(description="one hash a full block, each of the whole prompt prefix up to there"),
    ] = None
    prefix_block_tokens: int | None = None
    tags: dict[str, str] | None = None


class Headers(Struct, tag_field="event", tag="headers", kw_only=True):
    """The response headers arrived."""

    ts: Time
    request_id: str
    attempt: int | None = None
    status: int | None = None
    response_id: str | None = None
    retry_after_s: float | None = None


class Chunk(Struct, tag_field="event", tag="chunk", kw_only=True):
    """A chunk arrived. ``role`` chunks carry no token."""

    ts: Time
    request_id: str
    attempt: int | None = None
    kind: Literal["role", "reasoning", "content", "tool_call"] = "content"
    chars: Count | None = None
    tokens: Count | None = None


class Emit(Struct, tag_field="event", tag="emit", kw_only=True):
    """The engine handed over token ``index`` (told by the engine's side)."""

    ts: Time
    request_id: str
    index: Count


class Done(Struct, tag_field="event", tag="done", kw_only=True):
    """The response is complete."""

    ts: Time
    request_id: str
    attempt: int | None = None
    finish_reason: str | None = None
    status: int | None = None
    response_id: str | None = None
    service_tier: str | None = None
    usage: Usage = None


class Error(Struct, tag_field="event", tag="error", kw_only=True):
    """The request failed or was given up."""

    ts: Time
    request_id: str
    attempt: int | None = None
    error: str | None = None
    status: int | None = None
    finish_reason: str | None = None
    retry_after_s: float | None = None
    usage: Usage = None


class Tick(Struct, tag_field="event", tag="tick", kw_only=True):
    """A heartbeat of the client's event loop."""

    ts: Time
    client: str | None = None


StreamEvent = Send | Headers | Chunk | Emit | Done | Error | Tick


class RequestRecord(Struct, kw_only=True):
    """One line a request or attempt. Records of one id from several files complete each other."""

    request_id: str
    response_id: str | None = None
    operation_id: str | None = None
    attempt: int | None = None
    vantage: Literal["client", "gateway", "provider", "engine"] = "client"
    trace_id: str | None = None
    route: str | None = None
    endpoint: str | None = None
    model: str | None = None
    provider: str | None = None
    deployment: str | None = None
    session_id: str | None = None
    parent_session_id: str | None = None
    turn: int | None = None
    is_sidechain: bool | None = None
    started_at: Time | None = None
    ended_at: Time | None = None
    scheduled_at: Time | None = None
    queue_ms: Ms = None
    load_ms: Ms = None
    prefill_ms: Ms = None
    decode_ms: Ms = None
    ttft_ms: Ms = None
    e2e_ms: Ms = None
    status: int | None = None
    error: str | None = None
    finish_reason: str | None = None
    bytes_sent: int | None = None
    retry_after_s: float | None = None
    service_tier: str | None = None
    streamed: bool | None = None
    payload_hash: str | None = None
    schema_hash: str | None = None
    response_format: str | None = None
    max_tokens: int | None = None
    tools_count: int | None = None
    tools_chars: int | None = None
    system_chars: int | None = None
    user_chars: int | None = None
    assistant_chars: int | None = None
    reasoning_chars: int | None = None
    tool_result_chars: int | None = None
    images: int | None = None
    prompt_parts: PromptParts = None
    cache_diagnosis: str | None = None
    cache_missed_tokens: int | None = None
    is_compacted: bool | None = None
    effort: str | None = None
    speed: str | None = None
    usage: Usage = None
    cost_usd: str | float | None = None
    tags: dict[str, str] | None = None


class BillingRecord(Struct, kw_only=True):
    """One billed call, as the provider tells it; an id is optional."""

    accepted_at: Time
    finished_at: Time | None = None
    request_id: str | None = None
    response_id: str | None = None
    attempt: int | None = None
    model: str | None = None
    provider: str | None = None
    status: int | None = None
    service_tier: str | None = None
    usage: Usage = None
    cost_usd: str | float | None = None


class Deployment(Struct, kw_only=True):
    """``deployment.json`` or ``.toml``: any subset. SI units: 1 GB/s is 1e9 bytes/s."""

    name: str | None = None
    model: str | None = None
    gpu: str | None = None
    gpu_count: int | None = None
    tp: int | None = None
    pp: int | None = None
    memory_bandwidth_gb_s: float | None = None
    cpu_memory_bandwidth_gb_s: float | None = None
    params: Annotated[float | None, Meta(description="parameters read a step")] = None
    weight_bytes_per_param: float | None = None
    weight_bytes_per_rank: int | None = None
    layers: int | None = None
    kv_heads: int | None = None
    head_dim: int | None = None
    kv_bytes_per_value: float | None = None
    input_embedding_bytes: int | None = None
    kv_capacity_tokens: int | None = None
    max_running: int | None = None


Unit = Literal["s", "ms", "us", "ns", "epoch_s", "epoch_ms", "epoch_us", "epoch_ns", "rfc3339"]


class MappedColumn(Struct, kw_only=True, forbid_unknown_fields=True):
    """Where a foreign column goes, and in which unit it is."""

    to: Annotated[
        str,
        Meta(
            description="a column of the request table, or one that gives it: end_ns (then e2e_ns "
            "is end_ns - start_ns), first_token_ns (ttft_ns), scheduled_ns (hold_ns), "
            "prefix_hashes (a list; rows of prompt_block), total_tokens (checked, not stored)"
        ),
    ]
    unit: Annotated[
        Unit | None,
        Meta(
            description="durations: s, ms, us or ns; times: epoch_..., rfc3339, or s, ms, us, ns "
            "where they count from an origin of their own"
        ),
    ] = None
    origin: Annotated[
        str | None, Meta(description="RFC 3339 time from which a time in s, ms, us or ns counts")
    ] = None
    format: Annotated[
        str | None,
        Meta(
            description="instead of a unit: how a time is written, in Python's strptime codes, as "
            "%d.%m.%Y %H:%M:%S"
        ),
    ] = None
    optional: Annotated[bool, Meta(description="a file may lack the column")] = False


class Mapping(Struct, kw_only=True, forbid_unknown_fields=True):
    """``mapping.toml``: how the columns of a foreign CSV, JSON Lines or Parquet file are read."""

    columns: Annotated[
        dict[str, str | MappedColumn],
        Meta(description="their column (in JSON a key, or keys with dots between) -> ours"),
    ]
    constants: Annotated[
        dict[str, str | int | float | bool],
        Meta(
            description="columns of the request table that are the same for every row: vantage, "
            "model, ..."
        ),
    ] = {}
    tags: Annotated[list[str], Meta(description="their columns to keep as request_tag")] = []
    tokens: Annotated[
        Literal["inclusive", "exclusive"] | None,
        Meta(
            description="inclusive: their input counts what was cached, their output the "
            "reasoning; exclusive: each token is counted in one column"
        ),
    ] = None
    zone: Annotated[str | None, Meta(description="zone of times that name none")] = None
    null: Annotated[
        list[str], Meta(description="texts that mean not told, besides an empty cell and NULL")
    ] = []
    header: Annotated[
        list[str] | None, Meta(description="names of the columns of a CSV that has no header line")
    ] = None
    delimiter: Annotated[str | None, Meta(description="of a CSV; found by itself")] = None
    decimal: Annotated[Literal[".", ","], Meta(description="decimal mark of a CSV")] = "."
    title: Annotated[str | None, Meta(description="what is read through it")] = None
    source: Annotated[str | None, Meta(description="where the format is described")] = None


NATIVE: dict[str, Any] = {
    "stream-event": StreamEvent,
    "request-record": RequestRecord,
    "billing-record": BillingRecord,
    "deployment": Deployment,
    "prices": Prices,
    "mapping": Mapping,
}
"""Published name -> type of one record (or one file, for the last three)."""

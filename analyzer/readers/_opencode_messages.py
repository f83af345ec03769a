"""What one message of opencode tells, wherever it is kept."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from analyzer.readers._errors import error_class
from analyzer.readers._jsonl import Bad, usd
from analyzer.readers._transcript import count, failure, ms_moment, text
from analyzer.readers._usage import token_buckets
from analyzer.readers._vendor_facts import finish_word

UNTOLD_OUTPUT = (
    "without a total the output is taken to include the reasoning, as older versions counted"
)


def row_of(message_id: str | None, session: str | None, data: dict[str, Any]) -> dict[str, Any]:
    """Columns of ``request``, without its turn and its session's parent."""
    start = ms_moment(_under(data, "time", "created"))
    error = data.get("error")
    finish = finish_word(text(data, "finish"))
    row = {
        "vantage": "client",
        "request_id": message_id,
        "session_id": session,
        "model": text(data, "modelID"),
        "provider": text(data, "providerID"),
        "start_ns": start,
        "clock": None if start is None else "wall",
        "finish_reason": {"tool-calls": "tool_calls", "content-filter": "content_filter"}.get(
            finish or "", finish
        ),
        "error": _error(error) if isinstance(error, dict) else None,
        "status": count(error, "data", "statusCode") if isinstance(error, dict) else None,
        "reported_cost_usd": _cost(data.get("cost")),
    }
    tokens = data.get("tokens")
    counts = _buckets(tokens) if isinstance(tokens, dict) else {}
    # A message that was not finished keeps the zeros it was made with.
    if counts and (any(_parts(tokens)) or finish is not None):
        row |= counts | {"usage_final": finish is not None}
    return row


def is_contradicted(tokens: Any) -> bool:  # noqa: ANN401 - foreign JSON
    """Whether the total contradicts its parts under either way of counting the reasoning."""
    total = count(tokens, "total")
    return total is not None and total not in _sums(tokens)


def assumes(tokens: Any) -> bool:  # noqa: ANN401
    """Whether nothing tells that the output includes the reasoning."""
    thought = count(tokens, "reasoning") or 0
    return count(tokens, "total") is None and 0 < thought <= (count(tokens, "output") or 0)


def _parts(tokens: Any) -> tuple[int, int, int, int, int]:  # noqa: ANN401
    made, thought = count(tokens, "output") or 0, count(tokens, "reasoning") or 0
    read, written = count(tokens, "cache", "read") or 0, count(tokens, "cache", "write") or 0
    return count(tokens, "input") or 0, made, thought, read, written


def _sums(tokens: Any) -> tuple[int, int]:  # noqa: ANN401
    """The totals where the output includes the reasoning, and where it does not."""
    given, made, thought, read, written = _parts(tokens)
    return given + made + read + written, given + made + thought + read + written


def _buckets(tokens: dict[str, Any]) -> dict[str, Any]:
    """Exclusive of what was cached, for every provider; the total tells about the reasoning."""
    made, thought = count(tokens, "output"), count(tokens, "reasoning")
    usage = {
        "input_tokens": count(tokens, "input"),
        "output_tokens": made,
        "cache_read_input_tokens": count(tokens, "cache", "read"),
        "cache_creation_input_tokens": count(tokens, "cache", "write"),
    }
    columns = token_buckets({name: one for name, one in usage.items() if one is not None})
    if not columns:
        return {}
    inside, _ = _sums(tokens)
    total = count(tokens, "total")
    included = (made or 0) >= (thought or 0) and (total is None or total == inside)
    visible = made - (thought or 0) if made is not None and included else made
    return columns | {
        "output_visible_tokens": visible,
        "output_reasoning_tokens": thought,
        "usage_convention": "exclusive",
    }


def _error(error: dict[str, Any]) -> str | None:
    status = count(error, "data", "statusCode")
    if status is not None and 400 <= status <= 599:
        return f"http {status}"
    return failure(text(error, "name"), text(error, "data", "message")) or error_class("error")


def _cost(value: Any) -> Decimal | None:  # noqa: ANN401
    """What it says it cost; 0 means a subscription or an unknown price."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value <= 0:
        return None
    try:
        return usd(value)
    except Bad:
        return None


def _under(holder: object, *path: str) -> object:
    for name in path:
        holder = holder.get(name) if isinstance(holder, dict) else None
    return holder

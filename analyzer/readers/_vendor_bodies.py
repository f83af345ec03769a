"""A vendor's whole answer to what it tells; the answers of all vendors, by the keys they have."""

from __future__ import annotations

from typing import Any

from analyzer.readers._rows import text_or_none
from analyzer.readers._usage import token_buckets
from analyzer.readers._vendor_events import end_responses, told_by
from analyzer.readers._vendor_facts import learn_answer, learn_settings
from analyzer.readers._vendor_told import Told

_OBJECTS = {"chat.completion", "text_completion", "response", "list"}
_TRIMMED = {
    "id", "model", "modelVersion", "usage", "usageMetadata", "meta", "responseId", "service_tier",
    "object", "type", "created", "provider",
}  # fmt: skip
_UNFINISHED = ("queued", "in_progress")


def usage_of(body: dict[str, Any]) -> Any:  # noqa: ANN401 - foreign JSON
    """The usage object of an answer, wherever the vendor puts it."""
    for name in ("usage", "usageMetadata", "meta"):
        if token_buckets(body.get(name)):
            return body[name]
    return None


def by_engine(body: dict[str, Any]) -> bool:
    """Whether a model server added its own times: its own reader knows them."""
    timings, metrics = body.get("timings"), body.get("metrics")
    if isinstance(timings, dict) and "predicted_n" in timings:
        return True
    return isinstance(metrics, dict) and "time_to_first_token_ms" in metrics


def is_part(body: dict[str, Any]) -> bool:
    """Whether this is one event of a Gemini stream; it has the form of a whole answer."""
    if "candidates" not in body:
        return False
    told = told_by(body)
    return told is not None and not told.complete


def is_body(body: dict[str, Any]) -> bool:
    """Whether this is a vendor's whole answer, and nobody else's record that quotes one."""
    if usage_of(body) is None:
        return False
    if body.keys() <= _TRIMMED:
        return True
    return looks_like_body(body)


def looks_like_body(top: dict[str, Any]) -> bool:
    """The same by the top level alone, for an answer whose usage lies beyond what was read."""
    kind = top.get("object")
    if isinstance(kind, str) and kind in _OBJECTS:
        return "choices" in top or "output" in top or "data" in top
    if top.get("type") == "message":
        return "role" in top and "content" in top and "model" in top
    if "choices" in top and "model" in top:
        return "usage" in top
    if "candidates" in top:
        return bool(top.keys() & {"usageMetadata", "modelVersion"})
    if "output" in top and "stopReason" in top:
        return True
    return "finish_reason" in top and "message" in top and "id" in top


def told_by_body(body: dict[str, Any]) -> Told | None:
    """What a whole answer, or the failure in its place, tells; None where it is neither."""
    usage = usage_of(body)
    if usage is None and not body.get("error"):
        if body.get("status") in _UNFINISHED:
            return Told(idle=True)
        if not looks_like_body(body):
            return None
    if body.keys() & {"choices", "candidates", "usageMetadata"} or (
        body.get("error") and body.get("object") != "response"
    ):
        return told_by(body)
    told = Told(begins=True, ends=True, complete=True)
    learn_answer(told.facts, body)
    told.count(usage)
    reason = body.get("stop_reason") or body.get("stopReason") or body.get("finish_reason")
    if body.get("object") == "response":
        learn_settings(told.facts, body)
        end_responses(told, body, str(text_or_none(body.get("status"))))
    else:
        told.finish(reason)
    return told

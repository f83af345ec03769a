"""What LiteLLM's spend logs and its logging payloads have in common."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from analyzer.readers._exports import count, mapping, nested, number
from analyzer.readers._jsonl import Bad, Sink, usd
from analyzer.readers._loadgen import asked
from analyzer.readers._part_bodies import prompt_in, settings_in
from analyzer.readers._parts import Prompt
from analyzer.readers._prefix import digest_of
from analyzer.readers._rows import text_or_none
from analyzer.readers._times import ms_to_ns
from analyzer.readers._usage import BUCKETS, token_buckets
from analyzer.readers._vendor_facts import error_word, finish_word

DOCS = "https://docs.litellm.ai/docs/proxy/logging_spec"
CANNOT = (
    "queue, prefill and decode behind the gateway; the time to first token of an answer that was "
    "not streamed or whose first token was lost (completionStartTime = endTime); which attempts "
    "belong together, where no trace_id groups them; what a failed call was billed upstream"
)
_COUNTS = ("prompt_tokens", "completion_tokens", "total_tokens")
_MOST_TAGS = 20
_MOST_TAG = 200
_NAME = re.compile(r"[\w.:/@-]{1,80}")
_DIFFER = "the row's own token counts are not those of its usage object"


def times(start: int | None, first: int | None, end: int | None) -> dict[str, Any]:
    """Start, duration and time to first token of one call.

    A first token at the very end is LiteLLM's word for "not streamed, or not seen".
    """
    row: dict[str, Any] = {"start_ns": start, "clock": None if start is None else "wall"}
    if start is None or end is None or end < start:
        return row
    row |= {"e2e_ns": end - start, "timing": "stamps"}
    if first is not None and start <= first < end:
        row |= {"ttft_ns": first - start, "streamed": True}
    return row


def tokens(row: dict[str, Any], usage: Any, *, failed: bool) -> dict[str, Any]:  # noqa: ANN401
    """Buckets of a usage object, else of the row's own counts, which include what was cached.

    A failed call is written with zeros: nothing is known of it.
    """
    own = {name: count(row.get(name)) for name in _COUNTS}
    buckets = token_buckets(usage)
    if all(buckets.get(name) is None for name in BUCKETS):
        usage, buckets = own, token_buckets(own)
    if failed and not any(buckets.get(name) for name in BUCKETS):
        return {}
    if usage is not own and _differ(own, usage):
        buckets["usage_contradiction"] = buckets.get("usage_contradiction") or _DIFFER
    return buckets | {"usage_final": True}


def _differ(own: dict[str, int | None], usage: Any) -> bool:  # noqa: ANN401
    """Whether both count the same thing and find another number."""
    return any(
        own[name] and isinstance(usage.get(name), int) and own[name] != usage[name]
        for name in _COUNTS
    )


def outcome(status: Any, error: dict[str, Any]) -> dict[str, Any]:  # noqa: ANN401
    """LiteLLM's success is an answer of HTTP 200; a failure has a code and a class."""
    if status == "success":
        return {"status": 200}
    if status != "failure":
        return {}
    code = count(error.get("error_code"))
    word = error_word({"type": error.get("error_class") or None, "code": code})
    return {"status": code if code and 100 <= code <= 599 else None, "error": word}


def money(value: Any, *, failed: bool) -> Any:  # noqa: ANN401
    """What LiteLLM computed for the call; the 0 of a failed one says nothing."""
    amount = number(value)
    if amount is None or (failed and not amount):
        return None
    try:
        return usd(amount)
    except Bad as bad:
        raise Bad(f"'spend' or 'response_cost' is {bad}") from None


def host(api_base: Any) -> str | None:  # noqa: ANN401
    """Host of the deployment that was called."""
    text = text_or_none(api_base)
    if text is None:
        return None
    with suppress(ValueError):
        return urlsplit(text if "//" in text else f"//{text}").netloc.rpartition("@")[2] or None
    return None


def answer(row: dict[str, Any]) -> dict[str, Any]:
    """Why the logged answer ended, where answers are logged at all."""
    response = mapping(row.get("response"))
    choices = response.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else {}
    reason = first.get("finish_reason") if isinstance(first, dict) else None
    return {"finish_reason": finish_word(reason or response.get("stop_reason"))}


def body(payload: Any, messages: Any = None) -> tuple[dict[str, Any], Prompt | None]:  # noqa: ANN401
    """Limit, tools and prompt of the request, where bodies are logged.

    Payloads tell the messages apart from the other parameters of the call.
    """
    payload = nested(payload)
    told = asked(payload)
    limit = count(told.get("max_output_tokens"))
    columns = {"max_output_tokens": limit or None, "tools_count": told.get("tools_count")}
    whole = payload if isinstance(payload, dict) else {}
    prompt = prompt_in(whole | {"messages": nested(messages)} if messages else whole)
    if prompt is not None and not whole:
        prompt = prompt._replace(tools_told=False)
    return columns | settings_in(whole), prompt


def add_tags(sink: Sink, record: int, row: dict[str, Any], metadata: dict[str, Any]) -> None:
    """What has no column: LiteLLM's own cache, its overhead, the alias asked for, labels."""
    hit = str(row.get("cache_hit")).lower() == "true"
    tags = {
        "response_cache": "hit" if hit else None,
        "call_type": row.get("call_type"),
        "model_group": row.get("model_group"),
        "original_model_group": metadata.get("original_model_group"),
    }
    named = [
        (name, one) for name, one in tags.items() if isinstance(one, str) and _NAME.fullmatch(one)
    ]
    # Tries of the gateway's own making: the attempts of its caller are another count.
    named += [
        (name, str(tries))
        for name in ("attempted_retries", "attempted_fallbacks")
        if (tries := count(metadata.get(name)))
    ]
    overhead = number(metadata.get("litellm_overhead_time_ms"))
    if overhead is not None and ms_to_ns(overhead) is not None:
        named.append(("litellm_overhead_ms", str(overhead)))
    labels = nested(row.get("request_tags"))
    named += [
        ("request_tag", label)
        for label in (labels[:_MOST_TAGS] if isinstance(labels, list) else ())
        if isinstance(label, str) and 0 < len(label) <= _MOST_TAG and label.isprintable()
    ]
    for name, value in (*named, *_whose(row, metadata)):
        sink.add("request_tag", record, name=name, value=value)


_WHOSE = {
    "user": ("user", "user_api_key_user_id"),
    "end_user": ("end_user", "user_api_key_end_user_id"),
    "api_key": ("api_key", "user_api_key_hash"),
}


def _whose(row: dict[str, Any], metadata: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Who asked, with which key, for which team: people and keys as hashes."""
    for name, (own, theirs) in _WHOSE.items():
        told = text_or_none(row.get(own)) or text_or_none(metadata.get(theirs))
        if told is not None:
            yield name, digest_of(told)[:12]
    team = text_or_none(row.get("team_id")) or text_or_none(metadata.get("user_api_key_team_id"))
    if team is not None and _NAME.fullmatch(team):
        yield "team", team

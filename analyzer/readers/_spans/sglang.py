"""SGLang's request spans: a root a request, below it a span a thread, below that a span a stage.

The root has vLLM's attribute names, but its ``time_in_model_prefill`` counts from the moment of
dispatch and so holds the queue, and ``time_in_queue`` is never set. Queue and prefill are those of
the stages ``prefill_waiting`` and ``prefill_forward``, which other processes export on their own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from analyzer.readers._pending import Part
from analyzer.readers._rows import first, int_or_none, text_or_none
from analyzer.readers._spans._gather import HEALTH_CHECK
from analyzer.readers._spans._kind import Kind, Span
from analyzer.readers._times import DURATIONS, seconds_to_ns
from analyzer.readers._usage import token_buckets

_LATENCY = "gen_ai.latency."
_NAMES = {"ttft": "time_to_first_token", "decode": "time_in_model_decode", "e2e": "e2e"}
_QUEUE, _PREFILL, _CHUNK = "prefill_waiting", "prefill_forward", "chunked_prefill"
_STAGES = (_QUEUE, _PREFILL, _CHUNK)
_ENDS = ("response", "request")
_ROOT = re.compile(r"(?:prefill |decode | )?Req \S*")
_REASONS = re.compile(r"\b(stop|length|abort|tool_calls|content_filter)\b")
_WHOLE = ("e2e", "queue", "prefill", "decode")
_SLACK_NS = 5_000_000
_LONGEST_CHAIN = 16


def _matches(name: str, attributes: Mapping[str, Any], resource: Mapping[str, Any]) -> bool:
    module = attributes.get("module")
    if isinstance(module, str) and module.startswith("sglang::"):
        return True
    if resource.get("service.name") == "sglang" or _is_thread(attributes):
        return True
    return name in _STAGES or ("rid" in attributes and _ROOT.fullmatch(name) is not None)


def _is_thread(attributes: Mapping[str, Any]) -> bool:
    return {"host_id", "pid", "thread_label"} <= attributes.keys()


def _part(span: Span) -> tuple[str, Part] | None:
    rid = text_or_none(span.attributes.get("rid"))
    if rid is not None and _ROOT.fullmatch(span.name):
        if rid.startswith("HEALTH_CHECK"):
            return HEALTH_CHECK, {}
        columns, strange = _columns(span, rid)
        part: Part = {"of": "root", "columns": columns, "strange": strange}
    elif span.name in _STAGES:
        part = {"of": span.name, "start": span.start_ns, "end": span.end_ns}
    elif _is_thread(span.attributes):
        part = {"of": "thread"}
    else:
        return None
    part |= {"span": span.span_id, "parent": span.parent_id}
    return span.trace_id or f"# {rid} {span.span_id}", part


def _columns(span: Span, rid: str) -> tuple[dict[str, Any], str]:
    attributes = span.attributes
    whole = _between(span.start_ns, span.end_ns)
    told: dict[str, int | None] = {}
    strange = []
    for short, name in _NAMES.items():
        given = attributes.get(_LATENCY + name)
        value = seconds_to_ns(given) if isinstance(given, (int, float)) else None
        too_long = whole is not None and value is not None and value > whole + _SLACK_NS
        if value is not None and (value not in DURATIONS or too_long):
            value = None
        if value is None and given is not None:
            strange.append(name)
        told[f"{short}_ns"] = value
    stated = any(value is not None for value in told.values())
    if told["e2e_ns"] is None:
        told["e2e_ns"] = whole
    usage = {
        name: attributes.get(f"gen_ai.usage.{name}")
        for name in ("prompt_tokens", "completion_tokens", "cached_tokens")
        if attributes.get(f"gen_ai.usage.{name}") is not None
    }
    reason = _reason(attributes.get("gen_ai.response.finish_reasons"))
    columns = {
        "vantage": "engine",
        "request_id": rid,
        "trace_id": span.trace_id,
        "model": first(text_or_none(attributes.get(f"gen_ai.{end}.model")) for end in _ENDS),
        "deployment": span.deployment,
        "start_ns": span.start_ns,
        "clock": "wall",
        "timing": "stated" if stated else "stamps",
        **told,
        **token_buckets(usage),
        "max_output_tokens": int_or_none(attributes.get("gen_ai.request.max_tokens")),
        "finish_reason": reason,
        "error": "cancelled" if reason == "abort" else "error" if span.failed else None,
    }
    doubt = f"{', '.join(strange)}: negative, no number, or longer than the request; not read"
    return columns, doubt if strange else ""


def _reason(value: Any) -> str | None:  # noqa: ANN401 - foreign JSON
    """A list, or its JSON."""
    text = " ".join(map(str, value[:4])) if isinstance(value, list) else value
    found = _REASONS.search(text) if isinstance(text, str) else None
    return found[1] if found else None


def _between(earlier: int | None, later: int | None) -> int | None:
    if earlier is None or later is None or later - earlier not in DURATIONS:
        return None
    return later - earlier


def _joined(parts: list[Part]) -> list[dict[str, Any]]:
    """A row a root. A trace that came from outside may hold several: then parents decide."""
    roots = [part for part in parts if part["of"] == "root"]
    parents = {part["span"]: part["parent"] for part in parts if part["span"]}
    stages: dict[int, list[Part]] = {}
    for part in parts:
        if part["of"] in _STAGES:
            stages.setdefault(_owner(part, roots, parents), []).append(part)
    rows = []
    for index, root in enumerate(roots):
        row = {"record": root["record"], **root["columns"], **_waits(stages.get(index, []))}
        row["frontend_ns"] = _left(*(row[f"{name}_ns"] for name in _WHOLE))
        rows.append(row)
    return rows


def _left(whole: int | None, *parts: int | None) -> int | None:
    """Front end before and after, where all is told; clocks may differ a little."""
    known = [part for part in parts if part is not None]
    if whole is None or len(known) < len(parts) or whole - sum(known) < -_SLACK_NS:
        return None
    return max(0, whole - sum(known))


def _owner(part: Part, roots: list[Part], parents: Mapping[str, str | None]) -> int:
    """Index of the root of a stage; -1 where none can be told."""
    if len(roots) == 1:
        return 0
    ids = {root["span"]: index for index, root in enumerate(roots) if root["span"]}
    at = part["parent"]
    for _ in range(_LONGEST_CHAIN):
        if at is None or at in ids:
            break
        at = parents.get(at)
    return ids.get(at, -1)


def _waits(stages: list[Part]) -> dict[str, int | None]:
    """Queue and prefill before the first token; what follows a retraction is another's time.

    Chunks lie inside ``prefill_forward``, or (up to 0.5.6) before it, which is then the last one.
    """
    timed = sorted(
        (part for part in stages if part["start"] is not None and part["end"] is not None),
        key=lambda part: (part["start"], part["end"]),
    )
    queue = next((part for part in timed if part["of"] == _QUEUE), None)
    forward = next((part for part in timed if part["of"] == _PREFILL), None)
    begin = next((part for part in timed if part["of"] in (_PREFILL, _CHUNK)), None)
    return {
        "queue_ns": _between(queue["start"], queue["end"]) if queue else None,
        "prefill_ns": _between(begin["start"], forward["end"]) if begin and forward else None,
    }


KIND = Kind(matches=_matches, part=_part, joined=_joined, name="sglang")

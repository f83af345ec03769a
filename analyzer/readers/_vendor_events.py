"""What one event of a vendor's stream tells: pieces of the answer, usage, its end, an error."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from analyzer.readers._rows import text_or_none
from analyzer.readers._vendor_facts import learn_answer, learn_invocation, learn_settings
from analyzer.readers._vendor_told import CONTENT, REASONING, ROLE, TOOL, Told

_GEMINI = {"usageMetadata", "modelVersion", "responseId", "createTime"}


def told_by(event: dict[str, Any]) -> Told | None:
    """What an event says; None where it is no vendor's."""
    kind = event.get("type")
    if isinstance(kind, str):
        if kind.startswith("response."):
            return _responses(event, kind)
        if kind in _ANTHROPIC:
            told = Told()
            learn_invocation(told.facts, event.get("amazon-bedrock-invocationMetrics"))
            return _ANTHROPIC[kind](event, told)
    if isinstance(event.get("choices"), list):
        return _chat(event)
    if event.keys() & {"candidates", "promptFeedback"} or (
        "usageMetadata" in event and event.keys() <= _GEMINI
    ):
        return _gemini(event)
    if event.get("error") or kind == "error":
        return _error(event)
    for name, inner in event.items():
        if name in _CONVERSE and isinstance(inner, dict):
            if name == "metadata" and not inner.keys() & {"usage", "metrics"}:
                continue
            return _CONVERSE[name](inner, Told())
        if name.endswith("Exception"):
            told = Told()
            told.fail({"type": name})
            return told
    return _wrapped(event)


def _wrapped(event: dict[str, Any]) -> Told | None:
    """Bedrock's InvokeModelWithResponseStream: the model's own event in base64."""
    chunk = event.get("chunk", event)
    data = chunk.get("bytes") if isinstance(chunk, dict) else None
    if not isinstance(data, str):
        return None
    try:
        inner = msgspec.json.decode(base64.b64decode(data, validate=True))
    except (binascii.Error, ValueError, RecursionError):
        return None
    if not isinstance(inner, dict) or "bytes" in inner or "chunk" in inner:
        return None
    told = told_by(inner)
    if told is not None:
        told.facts.columns["provider"] = "aws.bedrock"
    return told


def _error(event: dict[str, Any]) -> Told:
    told = Told()
    inner = event.get("error")
    told.fail(inner if inner else event)
    told.facts.learn("request_id", text_or_none(event.get("request_id")))
    return told


# -- OpenAI chat and everybody who copies it ------------------------------------------------------


def _chat(event: dict[str, Any]) -> Told:
    told = Told(key=text_or_none(event.get("id")), answer=event)
    pieces: dict[str, int] = {}
    for choice in event["choices"]:
        if not isinstance(choice, dict):
            continue
        told.finish(choice.get("finish_reason"))
        for kind, chars in _delta_of(choice):
            pieces[kind] = pieces.get(kind, 0) + chars
    if len(pieces) > 1:
        pieces.pop(ROLE, None)
    # One event is one chunk: reasoning that ends in it comes before what follows.
    told.pieces = [
        (kind, pieces[kind]) for kind in (ROLE, REASONING, CONTENT, TOOL) if kind in pieces
    ]
    groq = event.get("x_groq")
    told.count(event.get("usage") or (groq.get("usage") if isinstance(groq, dict) else None))
    if not event["choices"] and told.usage is not None:
        told.complete = True  # the one last chunk that include_usage adds
    if event.get("error"):  # relays report a failure in the middle as one more chunk
        told.fail(event["error"])
    return told


def _delta_of(choice: dict[str, Any]) -> Iterator[tuple[str, int]]:
    delta = choice.get("delta")
    if not isinstance(delta, dict):
        text = choice.get("text")
        if isinstance(text, str) and text:
            yield CONTENT, len(text)
        return
    if delta.get("role"):
        yield ROLE, 0
    thought = delta.get("reasoning_content") or delta.get("reasoning")
    if isinstance(thought, str) and thought:
        yield REASONING, len(thought)
    for name in ("content", "refusal"):
        text = delta.get(name)
        if isinstance(text, str) and text:
            yield CONTENT, len(text)
        elif isinstance(text, list):  # Mistral: parts of thinking and text
            yield from _parts(text)
    calls = delta.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict):
            told = [function.get(name) for name in ("name", "arguments")]
            yield TOOL, sum(len(text) for text in told if isinstance(text, str))


def _parts(parts: list[Any]) -> Iterator[tuple[str, int]]:
    for part in parts:
        if not isinstance(part, dict):
            continue
        if isinstance(text := part.get("text"), str) and text:
            yield CONTENT, len(text)
        thought = part.get("thinking")
        for one in thought if isinstance(thought, list) else ():
            if isinstance(one, dict) and isinstance(text := one.get("text"), str) and text:
                yield REASONING, len(text)


# -- OpenAI responses -----------------------------------------------------------------------------

_DELTAS = {
    "response.output_text": CONTENT, "response.refusal": CONTENT,
    "response.reasoning_text": REASONING, "response.reasoning_summary_text": REASONING,
    "response.function_call_arguments": TOOL, "response.custom_tool_call_input": TOOL,
    "response.mcp_call_arguments": TOOL, "response.code_interpreter_call_code": TOOL,
}  # fmt: skip
_STATES = ("created", "queued", "in_progress", "completed", "incomplete", "failed", "cancelled")
_QUIET = re.compile(
    r"response\.(?:\w+\.(?:added|done|annotation\.added|delta)|audio\.transcript\.\w+"
    r"|\w+_(?:call|list_tools)\.\w+|keepalive)"
)


def _responses(event: dict[str, Any], kind: str) -> Told | None:
    told, answer = Told(), event.get("response")
    state = kind.removeprefix("response.")
    if state in _STATES:
        if not isinstance(answer, dict):
            answer = {}
        learn_answer(told.facts, answer)
        learn_settings(told.facts, answer)
        told.count(answer.get("usage"))
        told.begins = state == "created"
        told.ends = state in _STATES[3:]
        told.queued = {"queued": True, "in_progress": False}.get(state)
        if told.begins:
            told.pieces.append((ROLE, 0))
        end_responses(told, answer, state)
        return told
    name, _, what = kind.rpartition(".")
    if what == "delta" and name in _DELTAS:
        told.piece(_DELTAS[name], event.get("delta"))
        return told
    return told if _QUIET.fullmatch(kind) else None


def end_responses(told: Told, answer: dict[str, Any], state: str) -> None:
    """How an answer of the responses API ended."""
    if state == "failed":
        told.fail(answer.get("error"))
    elif state == "cancelled":
        told.finish("cancelled")
    elif state == "incomplete":
        details = answer.get("incomplete_details")
        told.finish(details.get("reason") if isinstance(details, dict) else "incomplete")
    elif state == "completed":
        output = answer.get("output")
        called = isinstance(output, list) and any(
            isinstance(item, dict) and item.get("type") == "function_call" for item in output
        )
        told.finish("tool_calls" if called else "stop")


# -- Anthropic ------------------------------------------------------------------------------------


def _message_start(event: dict[str, Any], told: Told) -> Told:
    message = event.get("message")
    message = message if isinstance(message, dict) else {}
    learn_answer(told.facts, message)
    usage = message.get("usage")
    if isinstance(usage, dict):
        # Its output is a placeholder; message_delta has the running total.
        told.count({name: value for name, value in usage.items() if name != "output_tokens"})
    told.begins = True
    told.pieces.append((ROLE, 0))
    return told


def _block_start(event: dict[str, Any], told: Told) -> Told:
    block = event.get("content_block")
    block = block if isinstance(block, dict) else {}
    kind = block.get("type")
    if kind in ("tool_use", "server_tool_use", "mcp_tool_use"):
        told.piece(TOOL, block.get("name"))
    elif kind == "redacted_thinking":
        told.pieces.append((REASONING, None))
    elif kind in ("text", "thinking"):
        told.piece(CONTENT if kind == "text" else REASONING, block.get(kind))
    return told


def _block_delta(event: dict[str, Any], told: Told) -> Told:
    delta = event.get("delta")
    delta = delta if isinstance(delta, dict) else {}
    told.piece(CONTENT, delta.get("text"))
    told.piece(REASONING, delta.get("thinking"))
    told.piece(TOOL, delta.get("partial_json"))
    if delta.get("type") == "compaction_delta":
        told.piece(CONTENT, delta.get("content"))
    return told


def _message_delta(event: dict[str, Any], told: Told) -> Told:
    delta = event.get("delta")
    if isinstance(delta, dict):
        told.finish(delta.get("stop_reason"))
        learn_answer(told.facts, {"diagnostics": delta.get("diagnostics")})
    told.count(event.get("usage"))
    return told


def _message_stop(_event: dict[str, Any], told: Told) -> Told:
    told.ends = told.complete = True
    return told


def _ping(_event: dict[str, Any], told: Told) -> Told:
    told.idle = True
    return told


def _nothing(_event: dict[str, Any], told: Told) -> Told:
    return told


_Take = Callable[[dict[str, Any], Told], Told]
_ANTHROPIC: dict[str, _Take] = {
    "message_start": _message_start, "content_block_start": _block_start,
    "content_block_delta": _block_delta, "content_block_stop": _nothing,
    "message_delta": _message_delta, "message_stop": _message_stop, "ping": _ping,
}  # fmt: skip


# -- Gemini ---------------------------------------------------------------------------------------


def _gemini(event: dict[str, Any]) -> Told:
    told = Told(key=text_or_none(event.get("responseId")), answer=event)
    told.count(event.get("usageMetadata"))
    candidates = event.get("candidates")
    for candidate in candidates if isinstance(candidates, list) else ():
        if not isinstance(candidate, dict):
            continue
        told.finish(candidate.get("finishReason"))
        content = candidate.get("content")
        parts = content.get("parts") if isinstance(content, dict) else None
        for part in parts if isinstance(parts, list) else ():
            if isinstance(part, dict):
                told.pieces += _gemini_part(part)
    feedback = event.get("promptFeedback")
    if isinstance(feedback, dict) and feedback.get("blockReason"):
        told.finish("content_filter")
    return told


def _gemini_part(part: dict[str, Any]) -> list[tuple[str, int | None]]:
    text = part.get("text")
    if isinstance(text, str) and text:
        return [(REASONING if part.get("thought") is True else CONTENT, len(text))]
    if isinstance(part.get("functionCall"), dict):
        return [(TOOL, len(str(part["functionCall"].get("name") or "")))]
    if part.keys() & {"inlineData", "executableCode", "codeExecutionResult"}:
        return [(CONTENT, None)]
    return []


# -- Bedrock's ConverseStream ---------------------------------------------------------------------


def _converse_start(_event: dict[str, Any], told: Told) -> Told:
    told.begins = True
    told.facts.learn("provider", "aws.bedrock")
    told.pieces.append((ROLE, 0))
    return told


def _converse_block(event: dict[str, Any], told: Told) -> Told:
    start = event.get("start")
    tool = start.get("toolUse") if isinstance(start, dict) else None
    told.piece(TOOL, tool.get("name") if isinstance(tool, dict) else None)
    return told


def _converse_delta(event: dict[str, Any], told: Told) -> Told:
    delta = event.get("delta")
    delta = delta if isinstance(delta, dict) else {}
    told.piece(CONTENT, delta.get("text"))
    if isinstance(tool := delta.get("toolUse"), dict):
        told.piece(TOOL, tool.get("input"))
    if isinstance(thought := delta.get("reasoningContent"), dict):
        told.piece(REASONING, thought.get("text"))
    return told


def _converse_stop(event: dict[str, Any], told: Told) -> Told:
    told.finish(event.get("stopReason"))
    return told


def _converse_metadata(event: dict[str, Any], told: Told) -> Told:
    learn_answer(told.facts, event)
    told.count(event.get("usage"))
    told.ends = told.complete = True
    return told


_CONVERSE: dict[str, _Take] = {
    "messageStart": _converse_start, "contentBlockStart": _converse_block,
    "contentBlockDelta": _converse_delta, "contentBlockStop": _nothing,
    "messageStop": _converse_stop, "metadata": _converse_metadata,
}  # fmt: skip

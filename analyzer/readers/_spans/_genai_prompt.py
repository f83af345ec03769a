"""The prompt of a GenAI span: told as one JSON, as an attribute a field, or as events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from analyzer.readers._part_bodies import decoded, prompt_in, prompt_of
from analyzer.readers._parts import Prompt
from analyzer.readers._spans._kind import Span

_MESSAGES = ("gen_ai.input.messages", "ai.prompt.messages", "llm.input_messages")
_SYSTEM = ("gen_ai.system_instructions", "gen_ai.system.instructions", "ai.prompt.system")
_TOOLS = ("gen_ai.tool.definitions", "ai.prompt.tools", "llm.tools", "llm.request.functions")
_WHOLE = (
    "gen_ai.prompt", "langwatch.input", "langfuse.observation.input", "langsmith.inputs",
    "input.value", "all_messages_events", "events",
)  # fmt: skip
# One attribute a field: OpenInference and Traceloop.
_FIELDS = {
    "llm.input_messages.": "messages", "gen_ai.prompt.": "messages", "llm.tools.": "tools",
    "llm.request.functions.": "tools",
}  # fmt: skip
_WRAPPERS = ("message", "message_content", "tool_call", "tool", "json_schema")
_DEEPEST = 12
_EVENT = "gen_ai."
_SAID = {
    f"gen_ai.{role}.message": role for role in ("system", "developer", "user", "assistant", "tool")
}


def prompt_of_span(span: Span) -> Prompt | None:
    """The parts of the prompt, where the span was told to record it."""
    found = _told(span.attributes) or _told_by_events(span)
    if found is not None:
        return found
    for name in _WHOLE:
        value = span.attributes.get(name)
        whole = decoded(value) if isinstance(value, str) else value
        if isinstance(whole, dict):
            inner = whole.get("value")
            found = prompt_of(inner) if isinstance(inner, list) else prompt_in(whole)
        elif isinstance(whole, list):
            found = prompt_of([one for one in whole if not _is_answer(one)])
        if found is not None:
            return found
    return None


def _is_answer(event: Any) -> bool:  # noqa: ANN401 - foreign JSON
    """Old instrumentations list the answer after the messages."""
    return isinstance(event, dict) and event.get("event.name") == "gen_ai.choice"


def _told(attributes: Mapping[str, Any]) -> Prompt | None:
    first = {
        "messages": _first(attributes, _MESSAGES),
        "system": _first(attributes, _SYSTEM),
        "tools": _first(attributes, _TOOLS),
    }
    trees: dict[str, dict[str, Any]] = {}
    for name, value in attributes.items():
        for before, what in _FIELDS.items():
            if name.startswith(before):
                _grow(trees.setdefault(what, {}), name[len(before) :].split("."), value)
    for what, tree in trees.items():
        if first[what] is None:
            first[what] = tree
    messages = _plain(decoded(first["messages"]))
    if not isinstance(messages, list):
        return None
    return prompt_of(messages, tools=_plain(decoded(first["tools"])), system=first["system"])


def _told_by_events(span: Span) -> Prompt | None:
    """The conventions of 2024: an event a message, or one with all of them."""
    messages = []
    for name, _, told in span.events:
        if not name.startswith(_EVENT):
            continue
        if "gen_ai.input.messages" in told:
            return _told(told)
        if name in _SAID:
            messages.append({"role": _SAID[name], **told})
    return prompt_of(messages) if messages else None


def _first(attributes: Mapping[str, Any], names: Iterable[str]) -> Any:  # noqa: ANN401
    return next((attributes[name] for name in names if attributes.get(name) is not None), None)


def _grow(tree: dict[str, Any], path: list[str], value: Any) -> None:  # noqa: ANN401
    if len(path) > _DEEPEST:
        return
    for step in path[:-1]:
        below = tree.setdefault(step, {})
        if not isinstance(below, dict):
            return
        tree = below
    tree.setdefault(path[-1], value)


def _plain(node: Any, depth: int = 0) -> Any:  # noqa: ANN401
    """Lists where the keys are numbers, and no object around a single thing."""
    if depth > _DEEPEST:
        return node
    if isinstance(node, list):
        return [_plain(one, depth + 1) for one in node]
    if not isinstance(node, dict):
        return node
    if node and all(key.isdecimal() and len(key) < 9 for key in node):
        return [_plain(node[key], depth + 1) for key in sorted(node, key=int)]
    if len(node) == 1 and (name := next(iter(node))) in _WRAPPERS:
        return _plain(node[name], depth + 1)
    told = {key: _plain(value, depth + 1) for key, value in node.items()}
    if "contents" in told and told.get("content") is None:
        told["content"] = told.pop("contents")
    return told

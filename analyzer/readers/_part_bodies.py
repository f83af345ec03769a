"""Request bodies as parts: OpenAI's chat, responses and completions, Anthropic, Gemini, Bedrock."""

from __future__ import annotations

from typing import Any

import msgspec

from analyzer.readers._part_blocks import content_pieces, message_pieces
from analyzer.readers._parts import (
    Part,
    Piece,
    Prompt,
    Untold,
    as_json,
    part_of,
    plain_parts,
    remembered,
    text_piece,
    unmarked,
    word_of,
)

_ELSEWHERE = ("previous_response_id", "conversation", "cachedContent", "cached_content")
"""Where one of these is named, a part of the prompt is stored at the provider's."""
_MESSAGES = ("messages", "input", "contents")
_TOOLS = ("tools", "functions", "toolConfig", "tool_config")
_SYSTEM = ("system", "instructions", "systemInstruction", "system_instruction", "system_prompt")
_DECLARED = ("functionDeclarations", "function_declarations")


def decoded(value: Any) -> Any:  # noqa: ANN401 - foreign JSON
    """A value that may be JSON in a text; the text itself where it is none."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "[", '"'):
        try:
            return msgspec.json.decode(value)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return value
    return value


def prompt_in(body: Any) -> Prompt | None:  # noqa: ANN401 - foreign JSON
    """The parts of a whole request body, given as an object or as its JSON text."""
    body = decoded(body)
    if isinstance(body, dict) and isinstance(body.get("body"), dict):
        body = body["body"]
    if not isinstance(body, dict) or any(body.get(name) for name in _ELSEWHERE):
        return None
    found = {name: _first(body, names) for name, names in _GROUPS}
    if found["messages"] is None and isinstance(body.get("prompt"), str):
        return plain_prompt(body["prompt"])
    if found["messages"] is None:
        return None
    if isinstance(found["messages"], str):
        found["messages"] = [found["messages"]]
    prompt = prompt_of(**found, schema=_schema(body))
    return None if prompt is None else prompt._replace(tools_told=True)


_GROUPS = (("messages", _MESSAGES), ("tools", _TOOLS), ("system", _SYSTEM))


def _first(body: dict[str, Any], names: tuple[str, ...]) -> Any:  # noqa: ANN401
    return next((body[name] for name in names if body.get(name) is not None), None)


def plain_prompt(text: str) -> Prompt | None:
    """A prompt that is told as one text."""
    try:
        return Prompt(plain_parts(text), tools_told=False, roles_told=False)
    except Untold:
        return None


def prompt_of(
    messages: Any,  # noqa: ANN401 - foreign JSON
    *,
    tools: Any = None,  # noqa: ANN401
    system: Any = None,  # noqa: ANN401
    schema: Any = None,  # noqa: ANN401
) -> Prompt | None:
    """The parts of a prompt whose pieces are told one by one; None where there is no message."""
    messages, tools, system = decoded(messages), decoded(tools), decoded(system)
    if not isinstance(messages, list) or not messages or isinstance(messages[0], (int, float)):
        return None
    parts: list[Part] = []
    try:
        for tool in _each_tool(tools):
            parts += remembered(_tool, tool)
        if schema is not None:
            parts.append(part_of(text_piece("schema", as_json(schema))))
        if system:
            parts += remembered(_system, system)
        for message in messages:
            parts += remembered(message_pieces, message)
    except Untold:
        return None
    return Prompt(parts, tools_told=isinstance(tools, (list, dict))) if parts else None


def _system(system: Any) -> list[Piece]:  # noqa: ANN401
    if isinstance(system, dict):
        system = system.get("parts") or system.get("content") or system
    return list(content_pieces("system", system))


def _each_tool(tools: Any) -> list[Any]:  # noqa: ANN401
    """One definition at a time; Gemini's lists lie one level deeper."""
    if isinstance(tools, dict):
        tools = tools.get("tools")
    found: list[Any] = []
    for one in tools if isinstance(tools, list) else ():
        tool = decoded(one)
        inner = _first(tool, _DECLARED) if isinstance(tool, dict) else None
        if isinstance(inner, list):
            found += inner
            tool = {name: value for name, value in tool.items() if name not in _DECLARED}
        if not isinstance(tool, dict) or unmarked(tool):
            found.append(tool)
    return found


def _tool(tool: Any) -> list[Piece]:  # noqa: ANN401
    if not isinstance(tool, dict):
        return [text_piece("tools", as_json(tool))]
    tool = unmarked(tool)
    if isinstance(function := tool.get("function"), dict):
        tool = {**tool, "function": unmarked(function)}
    inner = next((tool[n] for n in ("function", "toolSpec") if isinstance(tool.get(n), dict)), tool)
    named = next((one for n in ("name", "type") if isinstance(one := inner.get(n), str)), None)
    name = named or next(iter(tool), "")
    text = as_json(tool)
    return [Piece("tools", text, len(text), name)]


def _schema(body: dict[str, Any]) -> Any:  # noqa: ANN401
    """The schema that the answer has to keep, which providers put before the messages."""
    for holder, name in (
        (body, "response_format"), (body.get("text"), "format"), (body, "output_format"),
        (body.get("output_config"), "format"),
    ):  # fmt: skip
        told = holder.get(name) if isinstance(holder, dict) else None
        if isinstance(told, dict):
            found = told.get("json_schema") or told.get("schema")
            if found is not None:
                return found
    config = body.get("generationConfig") or body.get("config")
    names = ("responseSchema", "responseJsonSchema", "response_schema")
    return _first(config, names) if isinstance(config, dict) else None


def settings_in(body: Any) -> dict[str, Any]:  # noqa: ANN401
    """Reasoning effort and speed that were asked for."""
    body = decoded(body)
    if not isinstance(body, dict):
        return {}
    holders = [body.get(name) for name in ("reasoning", "output_config")]
    told = [body.get("reasoning_effort")]
    told += [one.get("effort") for one in holders if isinstance(one, dict)]
    columns = {
        "effort": next((word for one in told if (word := word_of(one))), None),
        "speed": word_of(body.get("speed")),
    }
    return {name: value for name, value in columns.items() if value is not None}

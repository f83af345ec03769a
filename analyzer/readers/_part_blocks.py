"""Messages of a prompt in pieces: the blocks that vendors and instrumentations put into them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from analyzer.readers._parts import Piece, as_json, text_piece, unmarked

ROLES = {
    "system": "system", "developer": "system", "user": "user", "human": "user",
    "assistant": "assistant", "model": "assistant", "ai": "assistant", "tool": "tool_result",
    "function": "tool_result", "toolresult": "tool_result",
}  # fmt: skip
_TEXTS = frozenset({"text", "input_text", "output_text", "refusal", "message", "summary_text"})
_REASONING = frozenset({"thinking", "reasoning", "redacted_thinking", "thought"})
_FILES = frozenset({
    "image", "image_url", "input_image", "file", "input_file", "document", "input_audio", "audio",
    "video", "media", "blob", "uri", "image_file", "video_url", "audio_url",
})  # fmt: skip
# Blocks that say what they are by their only key (Gemini, Bedrock).
_WRAPPED = {
    "functionCall": "tool_call", "function_call": "tool_call", "toolUse": "tool_call",
    "executableCode": "tool_call", "executable_code": "tool_call",
    "functionResponse": "tool_result", "function_response": "tool_result",
    "toolResult": "tool_result", "codeExecutionResult": "tool_result",
    "code_execution_result": "tool_result", "reasoningContent": "reasoning",
    "inlineData": "image", "inline_data": "image", "fileData": "image", "file_data": "image",
    "image": "image", "document": "image", "video": "image", "audio": "image",
}  # fmt: skip
# Some call the role of a tool's message by the tool's name.
_OF_TOOLS = {"tool_call_id", "additional_kwargs"}
_NAMES = ("name", "toolName", "tool_name", "function", "type")
_ARGUMENTS = ("input", "arguments", "args", "parameters", "action", "code", "queries")
_RESULTS = ("content", "output", "result", "response", "value", "results")
_THOUGHTS = ("thinking", "reasoning", "text", "content", "summary")
# The same thoughts more than once, for vendors who name them otherwise.
_THOUGHT_BESIDE = ("reasoning_content", "reasoning", "thinking_blocks", "reasoning_details")
_SECRETS = ("data", "encrypted_content", "redactedContent", "signature", "reasoningSignature")
_SOURCES = (
    "source",
    "image",
    "image_url",
    "url",
    "data",
    "file_id",
    "file",
    "uri",
    "content",
    "bytes",
)
_DEEPEST = 4


def message_pieces(message: Any) -> list[Piece]:  # noqa: ANN401 - foreign JSON
    """The pieces of one message, or of one item of OpenAI's responses API."""
    if isinstance(message, str):
        return [text_piece("user", message)]
    if not isinstance(message, dict):
        return [text_piece("other", as_json(message))]
    role = message.get("role")
    if not isinstance(role, str):
        return list(_block("other", message, 0))
    kind = ROLES.get(role.lower(), "other")
    if kind == "other" and message.keys() & _OF_TOOLS:
        kind = "tool_result"
    pieces: list[Piece] = []
    thought = next((message[name] for name in _THOUGHT_BESIDE if message.get(name)), None)
    pieces += content_pieces("reasoning", thought)
    content = message.get("content")
    pieces += content_pieces(kind, message.get("parts") if content is None else content)
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        if isinstance(call, dict):
            pieces.append(_call(call))
    if isinstance(message.get("function_call"), dict):
        pieces.append(_call(message["function_call"]))
    return pieces or [text_piece(kind, "")]


def content_pieces(kind: str, content: Any, depth: int = 0) -> Iterator[Piece]:  # noqa: ANN401
    """The pieces of what a message or a system prompt holds: a text, a block or a list of them."""
    if content is None:
        return
    blocks = content if isinstance(content, list) else [content]
    for block in blocks:
        if isinstance(block, str):
            yield text_piece(kind, block)
        elif isinstance(block, dict):
            yield from _block(kind, block, depth)
        elif block is not None:
            yield text_piece("other", as_json(block))


def _block(kind: str, block: dict[str, Any], depth: int) -> Iterator[Piece]:
    what, inner = _what(block)
    if what == "text":
        text = next((t for n in ("text", "content", "refusal") if (t := inner.get(n))), "")
        if isinstance(text, str):
            yield text_piece(kind, text)
        elif depth < _DEEPEST:
            yield from content_pieces(kind, text, depth + 1)
    elif what == "reasoning":
        yield _reasoning(inner)
    elif what == "tool_call":
        yield _call(inner)
    elif what == "tool_result":
        yield from _result(inner, depth)
    elif what == "image":
        found = next((inner[name] for name in _SOURCES if inner.get(name)), inner)
        yield Piece("image", found if isinstance(found, str) else as_json(found), None)
    elif what == "other":
        yield text_piece("other", as_json(unmarked(block)))


def _what(block: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """What a block is, and where its fields are; "" for a mere mark."""
    word = block.get("type")
    if not isinstance(word, str):
        for name, what in _WRAPPED.items():
            if isinstance(block.get(name), dict):
                return what, block[name]
        if isinstance(block.get("text"), str):
            return ("reasoning" if block.get("thought") is True else "text"), block
        return ("other" if unmarked(block) else ""), block
    word = word.lower().replace("-", "_")
    if word in _TEXTS:
        return "text", block
    if word in _REASONING:
        return "reasoning", block
    if word in _FILES:
        return "image", block
    if word.endswith(("_result", "_output", "_response")):
        return "tool_result", block
    if word in ("function", "toolcall") or word.endswith(("tool_use", "_call")):
        return "tool_call", block
    return ("" if word in ("cache_point", "cachepoint") else "other"), block


def _call(call: dict[str, Any]) -> Piece:
    function = call.get("function")
    if isinstance(function, dict):
        call = function
    name = next((one for key in _NAMES if isinstance(one := call.get(key), str) and one), "")
    given = next((call[key] for key in _ARGUMENTS if call.get(key) is not None), "")
    text = given if isinstance(given, str) else as_json(given)
    return Piece("tool_call", f"{name}\n{text}", len(name) + len(text))


def _result(result: dict[str, Any], depth: int) -> Iterator[Piece]:
    """One part for its text, whatever the blocks, and one for each image in it."""
    found = next((result[key] for key in _RESULTS if result.get(key) is not None), "")
    if isinstance(found, dict) and "value" in found:
        found = found["value"]
    if isinstance(found, list) and depth < _DEEPEST:
        texts: list[str] = []
        images: list[Piece] = []
        for one in found:
            what, inner = _what(one) if isinstance(one, dict) else ("", {})
            text = one if isinstance(one, str) else inner.get("text")
            if isinstance(text, str):
                texts.append(text)
            elif what == "image":
                images += _block("image", one, depth + 1)
            else:
                texts.append(as_json(one))
        yield Piece("tool_result", "\n".join(texts), sum(map(len, texts)))
        yield from images
        return
    yield text_piece("tool_result", found if isinstance(found, str) else as_json(found))


def _reasoning(block: dict[str, Any]) -> Piece:
    """Reasoning as text, else as what only its vendor can read."""
    inner = block.get("reasoningText")
    block = inner if isinstance(inner, dict) else block
    for name in _THOUGHTS:
        told = block.get(name)
        if isinstance(told, list):
            told = "\n".join(
                text for one in told if isinstance(one, dict)
                if isinstance(text := one.get("text"), str)
            )  # fmt: skip
        if isinstance(told, str) and told:
            return text_piece("reasoning", told)
    secret = next((one for n in _SECRETS if isinstance(one := block.get(n), str)), "")
    return Piece("reasoning", secret, None)

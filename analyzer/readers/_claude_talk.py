"""How long the prompts of a Claude Code session have become, by who said what: lengths alone."""

from __future__ import annotations

from analyzer.readers._claude_lines import Block, Message, Spoken

TALK_COLUMNS = (
    "user_chars", "assistant_chars", "reasoning_chars", "tool_result_chars", "images",
)  # fmt: skip
_USER, _ASSISTANT, _REASONING, _RESULT, _IMAGES = range(5)
_MOST = 2_000
"""Threads of one file that are known; a file has one, and one for each side chain."""


class Talk:
    """What was said so far, thread by thread."""

    def __init__(self) -> None:
        """Nothing was said."""
        self._sums: dict[str | None, list[int]] = {}

    def so_far(self, thread: str | None) -> tuple[int, ...] | None:
        """Values of ``TALK_COLUMNS`` of the thread's next prompt; None where nothing was told."""
        sums = self._sums.get(thread)
        return None if sums is None else tuple(sums)

    def forget(self, thread: str | None) -> None:
        """The history was summed up."""
        self._sums.pop(thread, None)

    def said(self, thread: str | None, message: Message, who: int = _ASSISTANT) -> None:
        """A line added its content to the prompts after it."""
        if not isinstance(message, Spoken) or message.content is None:
            return
        # The line may be kept for long; what was said is not.
        content, message.content = message.content, None
        sums = self._sums.get(thread)
        if sums is None:
            if len(self._sums) >= _MOST:
                del self._sums[next(iter(self._sums))]
            sums = self._sums[thread] = [0] * len(TALK_COLUMNS)
        if isinstance(content, str):
            sums[who] += len(content)
            return
        for block in content:
            kind = block.type
            if kind == "tool_result" or (kind is not None and kind.endswith("_result")):
                _result(sums, block)
            elif kind == "text":
                sums[who] += len(block.text or "")
            elif kind == "thinking":
                sums[_REASONING] += len(block.thinking or "")
            elif kind == "tool_use" or kind == "server_tool_use":
                sums[_ASSISTANT] += len(block.name or "") + len(block.input)
            elif kind in ("image", "document"):
                sums[_IMAGES] += 1

    def heard(self, thread: str | None, message: Message) -> None:
        """The same for the user's side, which also hands in what tools gave."""
        self.said(thread, message, _USER)


def _result(sums: list[int], block: Block) -> None:
    content = block.content
    if isinstance(content, str):
        sums[_RESULT] += len(content)
        return
    for one in content or ():
        if one.type in ("image", "document"):
            sums[_IMAGES] += 1
        else:
            sums[_RESULT] += len(one.text or "")

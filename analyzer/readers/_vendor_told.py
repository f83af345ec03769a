"""What one event of a stream, or a whole answer, tells, in the same words for every vendor."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from analyzer.readers._vendor_facts import (
    Facts,
    finish_word,
    learn_answer,
    learn_error,
    learn_usage,
)

ROLE, REASONING, CONTENT, TOOL = "role", "reasoning", "content", "tool_call"


@dataclass
class Told:
    """What one event says. ``pieces``: kind and characters, None where these are not text."""

    key: str | None = None
    """Id that every event of the answer carries; None where only the first one does."""
    begins: bool = False
    ends: bool = False
    """Nothing of this answer follows."""
    complete: bool = False
    """The answer is whole; figures may still follow."""
    idle: bool = False
    """It only keeps the connection open."""
    queued: bool | None = None
    """The answer waits for the server (True), or its turn has come (False)."""
    pieces: list[tuple[str, int | None]] = field(default_factory=list)
    usage: Any = None
    facts: Facts = field(default_factory=Facts)
    answer: dict[str, Any] | None = None
    """An event that repeats who answers, which need not be looked at each time."""

    def learn(self) -> None:
        """Who answers, where each event repeats it."""
        if self.answer is not None:
            learn_answer(self.facts, self.answer)

    def finish(self, reason: Any) -> None:  # noqa: ANN401 - foreign JSON
        """The answer ended for this reason; null while it goes on."""
        if (word := finish_word(reason)) is not None:
            self.facts.columns["finish_reason"] = word
            self.complete = True

    def count(self, usage: Any) -> None:  # noqa: ANN401
        """A usage object; null while it is not known."""
        if isinstance(usage, dict):
            self.usage = usage
            learn_usage(self.facts, usage)

    def piece(self, kind: str, text: Any) -> None:  # noqa: ANN401
        """A piece of the answer; empty text is none."""
        if isinstance(text, str) and text:
            self.pieces.append((kind, len(text)))

    def fail(self, error: Any) -> None:  # noqa: ANN401
        """The stream reports a failure."""
        learn_error(self.facts, error)
        self.ends = True

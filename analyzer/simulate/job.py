"""One request inside an engine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from analyzer.simulate.memory import Held, Path
from analyzer.simulate.outcome import Cause, EngineEvent, PrefillBatch, RequestOutcome

if TYPE_CHECKING:
    from analyzer.simulate.engine import Engine

WAITS = ("admission", "capacity", "head_of_line")
"""Why the head of the queue does not start; all behind it wait for the same."""


class Job:
    """State of one request in the scheduler; times and causes go into its outcome."""

    __slots__ = (
        "base", "call", "computed", "dropped", "engine", "entered_ns", "extra_from", "extra_ns",
        "generation", "held", "hit", "made", "outcome", "output", "path", "preempted_ns",
        "ready_ns", "result_name", "scheduled", "since", "target", "waited",
    )  # fmt: skip

    def __init__(
        self, outcome: RequestOutcome, output: int, path: Path, result_name: object = None
    ) -> None:
        self.outcome = outcome
        self.output = output
        """Tokens it will make."""
        self.path = path
        self.result_name = result_name
        """Name of the part that prompt and answer make, for whoever continues them."""
        self.target = outcome.prompt_tokens
        """Tokens to compute before the next one can be made."""
        self.scheduled = self.computed = self.made = self.hit = 0
        self.held: Held | None = None
        self.generation = 0
        """Moves when it leaves the decodes or the plan, so that old entries are known as such."""
        self.since = self.base = 0
        """Decode step after which it joined the decodes, and its tokens in memory then."""
        self.extra_ns = self.extra_from = 0.0
        """What prompts of others added to its decode steps, and the engine's sum when it joined."""
        self.waited: tuple[int, ...] = (0, 0, 0)
        self.entered_ns = self.ready_ns = 0
        self.preempted_ns: int | None = None
        self.dropped = False
        self.call: Any = None
        """Who asked for it, for the gateway."""
        self.engine: Engine | None = None

    def cause(
        self, kind: str, start_ns: int, end_ns: int, ns: int | None = None, where: str | None = None
    ) -> None:
        """Note what delayed it."""
        amount = end_ns - start_ns if ns is None else ns
        if amount > 0:
            self.outcome.causes.append(Cause(kind, start_ns, end_ns, amount, where))


@dataclass
class Hooks:
    """Who is told of a first token, of the end of a request, and of events."""

    first: Callable[[Job, int], None]
    finished: Callable[[Job, int], None]
    event: Callable[[EngineEvent], None]
    prefill: Callable[[PrefillBatch], None] | None = None
    """None where nobody wants to know of steps."""

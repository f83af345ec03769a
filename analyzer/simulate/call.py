"""What is asked for, and one attempt at it on its way."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from analyzer.simulate.job import Job
from analyzer.simulate.outcome import RequestOutcome

if TYPE_CHECKING:
    import random

    from analyzer.simulate.replica import Replica
    from analyzer.simulate.sessions import Session


@dataclass(slots=True)
class Ask:
    """One request as its session wants it."""

    session: Session
    turn: int
    operation_id: str
    prompt_tokens: int
    output_tokens: int
    history_tokens: int
    path: list[tuple[object, int]]
    result_name: object
    first_due_ns: int = 0


@dataclass(slots=True)
class Call:
    """One attempt."""

    ask: Ask
    outcome: RequestOutcome
    rng: random.Random | None = None
    job: Job | None = None
    replica: Replica | None = None
    try_start_ns: int = 0
    tries: int = 0
    """Upstream calls begun; a late answer of an earlier one is known by it."""
    over: bool = False
    """The client has moved on."""
    orphan: bool = False
    """It has, and the engine goes on all the same."""
    arrivals: list[int] = field(default_factory=list)

"""Arrivals, and the sessions behind them: what they ask next depends on what they were told."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from analyzer.errors import AnalyzerError
from analyzer.simulate.world import NS_PER_S, Arrivals, World


@dataclass(slots=True)
class Turn:
    """One turn, drawn when its session arrives, so that nothing later changes it."""

    new_tokens: int
    output_tokens: int
    think_ns: int
    child: Session | None = None
    blocks: tuple[Any, ...] = ()


@dataclass(slots=True)
class Session:
    """A conversation, or an agent's run; ``parent`` waits for a sub-agent."""

    name: str
    stream: Arrivals
    turns: list[Turn]
    parent: Session | None = None
    at: int = 0
    history_tokens: int = 0
    path: list[tuple[object, int]] = field(default_factory=list)


def gaps(stream: Arrivals, rng: random.Random) -> Iterator[float]:
    """Seconds between arrivals; the rate is read each time, for it may change."""
    first = True
    while True:
        mean = 1 / stream.rate_per_s if stream.rate_per_s > 0 else 1e9
        if stream.process == "even":
            yield 0.0 if first else mean
        elif stream.process == "poisson":
            yield rng.expovariate(1) * mean
        else:
            shape = 1 / (stream.burst * stream.burst)
            yield rng.gammavariate(shape, 1 / shape) * mean
        first = False


def drawn(name: str, stream: Arrivals, rng: random.Random, *, nested: bool = False) -> Session:
    """A session with all its turns."""
    sizes = stream.subagent_turns if nested else stream.turns
    session = Session(name, stream, [])
    for number in range(sizes.whole(rng, 1)):
        output = stream.output_tokens.whole(rng, 1)
        turn = Turn(
            stream.prompt_tokens.whole(rng, 1),
            min(output, stream.max_tokens) if stream.max_tokens else output,
            round(stream.think_s.draw(rng) * NS_PER_S),
        )
        if stream.subagent_share and not nested and rng.random() < stream.subagent_share:
            turn.child = drawn(f"{name}-sub{number}", stream, rng, nested=True)
            turn.child.parent = session
        session.turns.append(turn)
    return session


def traced(stream: Arrivals, world: World) -> Iterator[tuple[float, Session]]:
    """Arrivals of a trace file, read line by line: seconds, and a session of one turn."""
    path = Path(world.folder, stream.file or "")
    try:
        file = path.open(encoding="utf-8")
    except OSError as error:
        raise AnalyzerError(f"cannot read {path}: {error.strerror}", "arrivals.file") from None
    with file:
        for number, line in enumerate(file):
            try:
                told = json.loads(line)
                turn = Turn(
                    max(1, round(told["prompt_tokens"] * stream.scale_prompt)),
                    max(1, round(told["output_tokens"] * stream.scale_output)), 0, None,
                    tuple(told.get("blocks", ())),
                )  # fmt: skip
                turn.output_tokens = min(turn.output_tokens, stream.max_tokens or sys.maxsize)
                at = float(told["arrival_s"]) / stream.speed
            except (ValueError, KeyError, TypeError):
                raise AnalyzerError(
                    f"{path}, line {number + 1}: no arrival",
                    '{"arrival_s": 0.5, "prompt_tokens": 700, "output_tokens": 90}',
                ) from None
            yield at, Session(f"{stream.kind}-{number:06d}", stream, [turn])

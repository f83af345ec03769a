"""Streams token by token: when an engine makes them, when a client reads them, what both log."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING

from analyzer.simulate.writers import (
    NS,
    chunk,
    done,
    engine_line,
    openai_usage,
    send,
    status_message,
    stream_event,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Slow = tuple[int, int, int]
"""From, to, and the gap meanwhile; a gap of 0 makes no token until the end."""


def made(first_ns: int, gap_ns: int, tokens: int, slow: Sequence[Slow] = ()) -> list[int]:
    """When an engine makes each token."""
    times = [first_ns]
    while len(times) < tokens:
        now = times[-1]
        for begin, end, gap in slow:
            if begin <= now + gap_ns and now < end:
                times.append(now + gap if gap else end)
                break
        else:
            times.append(now + gap_ns)
    return times


def read(
    times: Iterable[int], blocked: Sequence[tuple[int, int]] = (), way_ns: int = 0
) -> list[int]:
    """When a client sees them: what comes while it, or the path, is blocked comes at the end."""
    seen = []
    for at in times:
        late = next((end for begin, end in blocked if begin <= at + way_ns < end), at + way_ns)
        seen.append(late + 20_000 * len(seen) // 1_000 if late > at + way_ns else late)
    return seen


@dataclass
class Stream:
    """One answer: ``made_ns`` on the engine's side, ``seen_ns`` at the client."""

    name: str
    sent_ns: int
    made_ns: list[int]
    prompt: int
    cached: int = 0
    seen_ns: list[int] = field(default_factory=list)

    @property
    def seen(self) -> list[int]:
        """What the client saw; as made, where nothing else is said."""
        return self.seen_ns or self.made_ns

    def holds(self, at_ns: int, out: Sequence[tuple[int, int]] = ()) -> int:
        """Tokens of the KV cache at a time; none while it is put out."""
        if at_ns >= self.made_ns[-1] or at_ns < self.sent_ns:
            return 0
        if any(begin <= at_ns < end for begin, end in out):
            return 0
        return self.prompt + sum(one <= at_ns for one in self.made_ns)


def client_lines(streams: Iterable[Stream], model: str, tokens_a_chunk: int = 1) -> list[str]:
    """Their stream events in order of time."""
    timed: list[tuple[int, int, str]] = []
    for one in streams:
        seen = one.seen[::tokens_a_chunk]
        usage = openai_usage(one.prompt, len(one.made_ns), cached=one.cached)
        timed.append((one.sent_ns, 0, send(one.sent_ns, one.name, model=model)))
        timed += [(at, 1, chunk(at, one.name, 4 * tokens_a_chunk)) for at in seen]
        timed.append((seen[-1], 2, done(seen[-1], one.name, usage)))
    return [line for _, _, line in sorted(timed, key=lambda one: one[:2])]


def emit_lines(streams: Iterable[Stream], skew_ns: int = 0) -> list[str]:
    """What the engine handed over, on a clock of its own."""
    return [
        stream_event(at + skew_ns, one.name, "emit", index=index)
        for one in streams
        for index, at in enumerate(one.made_ns)
    ]


def tick_lines(
    start_ns: int, end_ns: int, every_ns: int, blocked: Sequence[tuple[int, int]] = ()
) -> list[str]:
    """Heartbeats of the client: one that is due while the loop is blocked comes at its end."""
    lines, due = [], start_ns
    while due < end_ns:
        now = next((end for begin, end in blocked if begin <= due < end), due)
        lines.append(stream_event(now, "", "tick", client="web-0"))
        due = now + every_ns
    return lines


def status_log(
    streams: Sequence[Stream],
    *,
    first_ns: int,
    last_ns: int,
    every_ns: int,
    capacity: int,
    prompts: Sequence[tuple[int, int, int]] = (),
    out: dict[str, Sequence[tuple[int, int]]] | None = None,
) -> list[str]:
    """vLLM's status lines of these streams. ``prompts``: from, to and tokens of prompt work;
    ``out``: when a stream was put out."""
    away = out or {}
    lines = []
    for now in range(first_ns, last_ns + 1, every_ns):
        since = now - every_ns
        tokens = sum(since < at <= now for one in streams for at in one.made_ns)
        fresh = sum(
            count * max(0, min(now, end) - max(since, begin)) // (end - begin)
            for begin, end, count in prompts
        )
        here = [one for one in streams if one.sent_ns <= now < one.made_ns[-1]]
        gone = [
            one for one in here if any(begin <= now < end for begin, end in away.get(one.name, ()))
        ]
        held = sum(one.holds(now, away.get(one.name, ())) for one in here)
        message = status_message(
            prompt_rate=Decimal(fresh * NS) / every_ns,
            generation_rate=Decimal(tokens * NS) / every_ns,
            running=len(here) - len(gone),
            waiting=len(gone),
            kv_percent=Decimal(100 * held) / capacity,
            hit_percent=Decimal(0),
        )
        lines.append(engine_line(now, message))
    return lines

"""Tokens to chunks, as an engine's front end sends them."""

from __future__ import annotations

from array import array

from analyzer.simulate.outcome import CONTENT, REASONING, ROLE, RequestOutcome
from analyzer.simulate.world import EngineSetup


def chunks_of(
    one: RequestOutcome, setup: EngineSetup, later_ns: int
) -> tuple[list[int], array[int], array[int]]:
    """When chunks are sent (``later_ns`` after their last token), their tokens and kinds."""
    tokens = one.token_ns
    if setup.stream_tokens <= 1 and not setup.drafts:
        times = [time + later_ns for time in tokens]
        counts = array("q", [1]) * len(times)
    else:
        times, counts = _grouped(tokens, max(1, setup.stream_tokens), one.reasoning_tokens)
        times = [time + later_ns for time in times]
    kinds = array("q", [CONTENT]) * len(times)
    if one.reasoning_tokens:
        seen = 0
        for index, count in enumerate(counts):
            if seen >= one.reasoning_tokens:
                break
            kinds[index] = REASONING
            seen += count
    if setup.role_chunk != "none" and times:
        at = times[0]
        if setup.role_chunk == "accepted" and one.engine_in_ns is not None:
            at = one.engine_in_ns + later_ns
        times.insert(0, at)
        counts.insert(0, 0)
        kinds.insert(0, ROLE)
    return times, counts, kinds


def _grouped(tokens: array[int], most: int, reasoning: int) -> tuple[list[int], array[int]]:
    """Tokens of one step together, or so many of several; reasoning and answer never mix.

    The first token never waits for more.
    """
    times: list[int] = []
    counts = array("q")
    held = 0
    last = len(tokens) - 1
    for index, time in enumerate(tokens):
        held += 1
        ends_step = index == last or tokens[index + 1] != time
        full = held >= most and ends_step
        if full or index == last or (not times and ends_step) or index + 1 == reasoning:
            times.append(time)
            counts.append(held)
            held = 0
    return times, counts

"""LMCache's agent traces: each call of an agent with its whole prompt and answer as text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from analyzer.contract.types import Batch
from analyzer.readers._file import Head, InputFile
from analyzer.readers._jsonl import Bad, Sink, objects, read_jsonl
from analyzer.readers._part_bodies import plain_prompt
from analyzer.readers._parts import add_parts
from analyzer.readers._prefix import TEXT_BLOCK_CHARS, add_blocks, digest_of, text_blocks
from analyzer.readers._reader import Claim, Options, Reader
from analyzer.readers._rows import text_or_none
from analyzer.readers._times import TIMES

_KEYS = ("timestamp", "input", "output", "session_id")
_CUT = re.compile(rb'\s*\{\s*"timestamp"\s*:\s*\d{12,19}\s*,\s*"input"\s*:\s*"')
_UNITS = (("seconds", 10**9), ("milliseconds", 10**6), ("microseconds", 10**3), ("ns", 1))
_START = "the time of a line is taken as the start of its request"


def probe(head: Head) -> Claim:
    """JSON lines with ``timestamp``, ``input``, ``output`` and ``session_id``, and no other key."""
    if b'"session_id"' not in head.data and (head.whole or not _CUT.match(head.data)):
        return Claim(0, "its lines lack session_id")
    some = objects(head)
    if not some:
        cut = not head.whole and _CUT.match(head.data)
        return Claim(1 if cut else 0, "" if cut else "its first lines are not JSON objects")
    best = max(some, key=lambda one: len(set(_KEYS) & one.keys()))
    missing = [key for key in _KEYS if key not in best]
    if missing:
        share = 1 - len(missing) / len(_KEYS)
        return Claim(0.6 * share, f"its JSON lines lack {', '.join(missing)}")
    if len(best) > len(_KEYS) or not isinstance(best["input"], str):
        return Claim(0.5, "its lines have more than a time, two texts and a session")
    return Claim(1, "")


def _time(value: Any, sink: Sink) -> int:  # noqa: ANN401 - foreign JSON
    """A whole number since 1970; its size alone tells the unit, of which only one can be."""
    if type(value) is not int:
        raise Bad("'timestamp' is no whole number")
    for unit, ns in _UNITS:
        if value * ns in TIMES:
            if unit != "microseconds":
                sink.assumed.add(f"times are taken as {unit}: no other unit gives a time of today")
            return value * ns
    raise Bad("'timestamp' is a time in no unit")


def _take(value: dict[str, Any], record: int, sink: Sink) -> None:
    asked, answer = value.get("input"), value.get("output")
    if not isinstance(asked, str):
        raise Bad("'input' is no text")
    start = _time(value.get("timestamp"), sink)
    sink.assumed.add(_START)
    sink.add(
        "request",
        record,
        vantage="client",
        session_id=text_or_none(value.get("session_id")),
        start_ns=start,
        clock="wall",
        input_chars=len(asked),
        output_chars=len(answer) if isinstance(answer, str) else None,
        payload_hash=digest_of(asked),
        prefix_block_chars=TEXT_BLOCK_CHARS,
    )
    add_blocks(sink, record, text_blocks(asked))
    if (prompt := plain_prompt(asked)) is not None:
        add_parts(sink, record, prompt.parts)


def read(file: InputFile, options: Options) -> Iterator[Batch]:
    """One ``request`` row a line: lengths and hashes of its texts."""
    return read_jsonl(file, options, _take)


READER = Reader(
    title="LMCache agent traces (prompt and answer of each call, JSON Lines)",
    record_unit="line",
    gives=("request", "prompt_block", "prompt_part"),
    probe=probe,
    read=read,
    docs="https://github.com/LMCache/lmcache-agent-trace",
    cannot="tokens, models, durations, and whether a cache served anything; the turn, for lines "
    "are in no order and a session may hold several agents with prompts of their own",
    enable="replay the trace against a server and read its log, or the load generator's records",
    checked_against="four published traces with 131 calls, their growth in characters and shared "
    "prefixes",
    facts=(("prompt_block", "64 characters each; prompts themselves are not kept"),),
)

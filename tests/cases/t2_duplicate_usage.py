"""Transcripts tell an answer several times, on several lines and in several files.

main: a session of 34 answers, three lines each, resumed once under another session id, with a
sub-agent of 12 answers. Adding up the lines counts most of it two to four times.

twin: 18 answers in pairs, 0.3 s apart and alike in every number, but each with ids of its own.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from analyzer.simulate.writers import NS, prices, rfc3339, write_lines
from cases._build import at, expect, silent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

LARGE, SMALL = "tern-large", "tern-small"
T0 = at("2026-04-07T09:12:00Z")
PRICES = {
    LARGE: {
        "input": "3.00", "cache_read": "0.30", "cache_write_short": "3.75",
        "cache_write_long": "6.00", "output": "15.00",
    },
    SMALL: {
        "input": "0.80", "cache_read": "0.08", "cache_write_short": "1.00",
        "cache_write_long": "1.60", "output": "4.00",
    },
}  # fmt: skip


@dataclass(frozen=True)
class Answer:
    """One request and the output that each of its lines tells."""

    number: int
    at_ns: int
    read: int
    written: int
    outputs: tuple[int, ...]
    model: str = LARGE
    long: bool = True
    fresh: int = 14
    request_id: bool = True
    mid: str = ""
    final: bool = True

    @property
    def prompt(self) -> int:
        return self.fresh + self.read + self.written

    @property
    def tokens(self) -> int:
        return self.prompt + max(self.outputs)

    @property
    def line_tokens(self) -> int:
        return self.prompt * len(self.outputs) + sum(self.outputs)

    def lines(self, session: str, agent: str | None = None, **more: Any) -> list[str]:
        """Its lines as Claude Code writes them."""
        mid = self.mid or f"msg_{self.model[5]}{self.number:04d}"
        told = []
        for index, output in enumerate(self.outputs):
            last = index == len(self.outputs) - 1
            usage = {
                "input_tokens": self.fresh, "cache_creation_input_tokens": self.written,
                "cache_read_input_tokens": self.read, "output_tokens": output,
                "cache_creation": {
                    "ephemeral_5m_input_tokens": 0 if self.long else self.written,
                    "ephemeral_1h_input_tokens": self.written if self.long else 0,
                },
            }  # fmt: skip
            line = {
                "parentUuid": None, "isSidechain": agent is not None, "sessionId": session,
                "type": "assistant", "uuid": f"{session}-{agent}-{mid}-{index}",
                "timestamp": rfc3339(self.at_ns + index * NS),
                "message": {
                    "id": mid, "type": "message", "role": "assistant", "model": self.model,
                    "content": [{"type": "text"}],
                    "stop_reason": "end_turn" if last and self.final else None, "usage": usage,
                },
            }  # fmt: skip
            line |= {"requestId": f"req_{mid}"} if self.request_id else {}
            line |= {"agentId": agent} if agent is not None else {}
            told.append(json.dumps(line | more))
        return told


@dataclass
class Log:
    """Files of lines, and what they hold in truth and line by line."""

    files: dict[str, list[str]] = field(default_factory=dict)
    answers: dict[str, Answer] = field(default_factory=dict)
    line_tokens: int = 0
    repeated: set[str] = field(default_factory=set)

    def add(self, name: str, session: str, answers: Iterable[Answer], **more: Any) -> None:
        """Answers into one file; those that are known are copies."""
        for one in answers:
            key = one.mid or f"{one.model}{one.number}"
            if key in self.answers or len(one.outputs) > 1:
                self.repeated.add(key)
            known = self.answers.get(key)
            if known is None or max(one.outputs) > max(known.outputs):
                self.answers[key] = one
            self.line_tokens += one.line_tokens
            self.files.setdefault(name, []).extend(one.lines(session, **more))

    @property
    def times(self) -> float:
        """All lines, as a multiple of what was used."""
        return self.line_tokens / sum(one.tokens for one in self.answers.values())

    def write(self, folder: Path) -> None:
        """All files, and a price list."""
        for name, lines in self.files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            write_lines(folder / name, lines)
        write_lines(folder / "prices.json", [prices(PRICES)])


def session(count: int, **fixed: Any) -> list[Answer]:
    """Answers 45 s apart, three lines each, over a growing prompt; some have no request id."""
    told = {"outputs": (3, 3, 510), "read": 22_000, "written": 1_350} | fixed
    return [
        Answer(
            number=k,
            at_ns=T0 + 45 * NS * k,
            **(told | {"read": told["read"] + 1_350 * k, "request_id": k % 7 != 3}),
        )
        for k in range(count)
    ]


def agents(count: int) -> list[Answer]:
    """A sub-agent's answers, two lines each that say the same."""
    return [
        Answer(k, T0 + 700 * NS + 20 * NS * k, 7_200 + 600 * k, 600, (240, 240), SMALL, long=False)
        for k in range(count)
    ]


def main_log() -> Log:
    """The case of the module."""
    log = Log()
    log.add("a.jsonl", "ses-a", session(34))
    log.add("b.jsonl", "ses-b", session(9))
    log.add("a/subagents/agent-q7.jsonl", "ses-a", agents(12), agent="q7")
    return log


def twin_log() -> Log:
    """Pairs that are alike."""
    log = Log()
    pairs = [
        Answer(2 * k + j, T0 + 30 * NS * k + j * 300_000_000, 22_000 + 1_350 * k, 1_350, (510,))
        for k in range(9)
        for j in range(2)
    ]
    log.add("a.jsonl", "ses-a", pairs)
    return log


def one_line() -> Log:
    """A program that writes one line an answer: nothing is repeated."""
    log = Log()
    log.add("a.jsonl", "ses-a", session(20, outputs=(430,)))
    return log


def only_resumed() -> Log:
    """One line an answer, but the session was resumed twice."""
    log = Log()
    for name, count in (("a", 20), ("b", 12), ("c", 20)):
        log.add(f"{name}.jsonl", f"ses-{name}", session(count, outputs=(430,)))
    return log


def cut_copy() -> Log:
    """The copy was made while an answer was being written: its last answer has the first line."""
    log = Log()
    whole = session(15)
    log.add("a.jsonl", "ses-a", whole)
    log.add("0-copy.jsonl", "ses-0", [*whole[:6], replace(whole[6], outputs=(3,), final=False)])
    return log


def side_copies() -> Log:
    """A sub-agent's file begins with answers of the main session, under other request ids."""
    log = Log()
    whole = session(16)
    log.add("a.jsonl", "ses-a", whole)
    copies = [replace(one, outputs=(510,), at_ns=one.at_ns + 1_200 * NS) for one in whole[:4]]
    log.add("a/subagents/agent-m2.jsonl", "ses-a", copies, agent="m2", requestId="req_m2")
    return log


def no_request_ids() -> Log:
    """A relay tells no request ids at all."""
    log = Log()
    answers = [replace(one, request_id=False) for one in session(22)]
    log.add("a.jsonl", "ses-a", answers)
    log.add("b.jsonl", "ses-b", answers[:5])
    return log


def few() -> Log:
    """One answer in thirty has a second line: less than one percent more."""
    log = Log()
    answers = session(60, outputs=(430,))
    log.add("a.jsonl", "ses-a", [replace(answers[0], outputs=(430, 430)), *answers[1:]])
    return log


def other_ids() -> Log:
    """Two sessions with equal numbers at equal times, as two people's can be."""
    log = Log()
    for name in ("a", "b"):
        answers = [
            replace(one, mid=f"msg_{name}{one.number}") for one in session(12, outputs=(99,))
        ]
        log.add(f"{name}.jsonl", f"ses-{name}", answers)
    return log


_NOT = [
    "queue.rate-limited", "errors.rate", "errors.truncated-output", "cost.hidden-attempts",
    "trust.contradictory-durations", "prefill.long-prompt", "decode.output-growth",
]  # fmt: skip


def _case(make: Callable[[], Log], *, fires: bool = True) -> tuple[Any, Any]:
    log = make()
    if not fires:
        return log.write, silent(["trust.duplicate-usage", *_NOT])
    told = expect(
        "trust.duplicate-usage", "none", len(log.repeated), log.times, "times", must_not=_NOT
    )
    return log.write, told | {"tolerance": 1e-6}


CASES = {
    "main": _case(main_log),
    "twin": _case(twin_log, fires=False),
    "one_line": _case(one_line, fires=False),
    "only_resumed": _case(only_resumed),
    "cut_copy": _case(cut_copy),
    "side_copies": _case(side_copies),
    "no_request_ids": _case(no_request_ids),
    "few": _case(few, fires=False),
    "other_ids": _case(other_ids, fires=False),
}

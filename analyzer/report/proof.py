"""One finding with its proof: each number names its SQL by number, and each SQL stands once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analyzer.contract.types import Clear, Finding
from analyzer.report import outcomes, words
from analyzer.report.blocks import Block, Code, Heading, Items, Words
from analyzer.report.values import percent, quantity

if TYPE_CHECKING:
    from analyzer.contract.types import CannotSay, Explanation


class Queries:
    """The SQL behind an answer, numbered as it is first named."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def mark(self, sql: str) -> str:
        """``  [3]``, to stand behind what the query gave; nothing for none."""
        text = sql.strip()
        return f"  [{self._numbers.setdefault(text, len(self._numbers) + 1)}]" if text else ""

    def blocks(self) -> list[Block]:
        """Every query once, under its number."""
        out: list[Block] = []
        if self._numbers:
            out += [Heading("SQL"), Words("analyze sql 'QUERY' runs any of these again.")]
        for sql, number in self._numbers.items():
            out += [Words(f"[{number}]"), Code(sql)]
        return out


def explanation(value: Explanation) -> list[Block]:
    """One rule: its outcome in this case, the proof or what is missing, and what it claims."""
    queries = Queries()
    out: list[Block] = []
    outcome = value.outcome
    if isinstance(outcome, Finding):
        out += explained(outcome, queries)
    elif isinstance(outcome, Clear):
        out += [
            Heading(f"{value.rule}: clear", 1),
            Words(value.title),
            Words(f"Looked and found nothing; coverage {percent(outcome.coverage)}."),
        ]
    else:
        out += _blind(value, outcome)
    for title, text in (("What it claims", value.claims), ("When it fires", value.fires_when)):
        if text:
            out += [Heading(title), Words(text)]
    if value.others:
        out.append(Heading("Also found by this rule"))
        out += [outcomes.found(item) for item in value.others]
    return out + queries.blocks()


def _blind(value: Explanation, outcome: CannotSay) -> list[Block]:
    how = tuple(f"{item.input}: {item.how}" for item in outcome.missing)
    return [
        Heading(f"{value.rule}: cannot say", 1),
        Words(value.title),
        Words(f"{words.NOT_CLEAR}; coverage {percent(outcome.coverage)}."),
        Heading("How to record what is missing"),
        Items(how),
    ]


def explained(value: Finding, queries: Queries) -> list[Block]:
    """A finding with its proof, cause, action and end; ``queries`` numbers its SQL."""
    out: list[Block] = [outcomes.found(value)]
    if value.symptom:
        out += [Heading("Symptom"), Words(value.symptom)]
    if words.answered(value.evidence):
        lines = tuple(
            f"{item.label}: {quantity(item.value, item.unit)}{queries.mark(item.sql)}"
            for item in words.answered(value.evidence)
        )
        out += [Heading("Evidence"), Items(lines)]
    if value.how_computed.startswith(("SELECT", "WITH")):
        touched = queries.mark(value.how_computed)
        out.append(Words(f"The {value.unit} touched, with the excess of each:{touched}"))
    elif value.how_computed:
        out += [Heading("How it is computed"), Words(value.how_computed)]
    for title, text in (
        ("Cause", value.cause),
        ("What would contradict it", value.contradicts),
        ("How to record more", value.record_it),
    ):
        if text:
            out += [Heading(title), Words(text)]
    if value.actions:
        steps = tuple(f"{a.do} (owner: {a.owner}; expect: {a.expect})" for a in value.actions)
        out += [Heading("Action"), Items(steps, numbered=True)]
    if value.done_when:
        goals = tuple(f"{words.criterion(one)}{queries.mark(one.sql)}" for one in value.done_when)
        out += [Heading("Done when"), Items(goals)]
    if value.examples:
        out += [Heading(f"Example {value.unit}"), Words(", ".join(value.examples))]
    return out

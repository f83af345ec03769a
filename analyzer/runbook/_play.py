"""A play: TOML front matter that says what to ask the case, and the words for people."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib.resources import files
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from analyzer.contract.units import singular
from analyzer.errors import AnalyzerError, hint_of

_SECTION = re.compile(r"^## +(.+?) *$", re.MULTILINE)
_SECTIONS = ("Symptom", "Cause", "Contradicts", "Done when")

Sql = Annotated[str, Meta(description="one SELECT over tables and analyses")]


class MagnitudeOf(Struct, kw_only=True, forbid_unknown_fields=True):
    """The one size of the finding: mean of ``excess`` over the touched, times ``scale``.

    ``sql`` states it otherwise, where the mean is not what people need; ``time`` says that
    ``excess`` is time all the same, so that its share of all time can be told.
    """

    unit: str
    of: str
    scale: float = 1.0
    time: bool = False
    sql: Sql | None = None


class FiresWhen(Struct, kw_only=True, forbid_unknown_fields=True):
    """What makes the finding more than a note, and why these numbers.

    ``smallest``: smallest magnitude. ``relative``: smallest sum of excess over sum of ``whole`` of
    the touched requests.
    ``critical_share``: from this share of all time (or money) on it is critical.
    ``at_most``: the highest severity it can have.
    ``weighing`` counts those of the touched that ``requests`` means, where not all of them weigh.
    """

    why: str
    requests: int = 1
    weighing: Sql | None = None
    relative: float = 0.0
    smallest: float = 0.0
    critical_share: float = 0.25
    at_most: Literal["critical", "warning", "note"] = "critical"


class CostOf(Struct, kw_only=True, forbid_unknown_fields=True):
    """What the finding costs, in dollars: ``sql``; NULL where a price is missing.

    ``whole`` is the cost it is part of: where the magnitude is no time, the finding's share is of
    that.
    """

    sql: Sql
    whole: Sql | None = None


class Need(Struct, kw_only=True, forbid_unknown_fields=True):
    """An input: ``sql`` counts the requests in scope that carry it; ``how`` to record it."""

    input: str
    sql: Sql
    how: str


class EvidenceOf(Struct, kw_only=True, forbid_unknown_fields=True):
    """One number: ``id`` is its name in the text."""

    id: str
    label: str
    unit: str
    sql: Sql


class ChartOf(Struct, kw_only=True, forbid_unknown_fields=True):
    """The picture: ``sql`` gives one row a request with ``x``, ``y`` and ``series``."""

    title: str
    x: str
    x_unit: str
    y: str
    y_unit: str
    sql: Sql


class ActionOf(Struct, kw_only=True, forbid_unknown_fields=True):
    """What to do, who does it, what to expect."""

    do: str
    owner: str
    expect: str


class CriterionOf(Struct, kw_only=True, forbid_unknown_fields=True):
    """Fixed when ``sql`` ``op`` ``value``, which ``value_sql`` gives where the case decides it."""

    metric: str
    op: Literal["<=", "<", ">=", ">", "="]
    unit: str
    sql: Sql
    value: float = 0.0
    value_sql: Sql | None = None


class Front(Struct, kw_only=True, forbid_unknown_fields=True):
    """Front matter of a play.

    ``brief`` is its clause in the verdict, a dozen words with their numbers.
    ``touched`` gives one row a touched request: ``request_key``, ``excess`` (raw unit, ns where the
    magnitude is a time), ``whole`` (what the excess is part of). ``scope`` counts the requests the
    play looks at. ``confidence_sql`` gives the word where the logs of the case decide which it is.
    ``unit``: what is counted instead of requests (steps, launches, ranks). ``touched`` then gives
    ``item`` (its name), ``place``, ``start_ns`` and ``end_ns`` (wall time, or NULL), ``excess`` and
    ``whole``; ``total`` gives the sum that the finding's share is of.
    """

    title: str
    brief: str
    claims: str
    segment: Literal["queue", "prefill", "decode", "network", "client", "none"]
    confidence: Literal["measured", "derived", "modelled", "suspected"]
    scope: Sql
    touched: Sql
    magnitude: MagnitudeOf
    fires_when: FiresWhen
    needs: list[Need]
    evidence: list[EvidenceOf]
    actions: list[ActionOf]
    done_when: list[CriterionOf]
    must_not: str = ""
    record: str = ""
    unit: str = "requests"
    total: Sql | None = None
    confidence_sql: Sql | None = None
    cost: CostOf | None = None
    chart: ChartOf | None = None

    @property
    def is_time(self) -> bool:
        """``excess`` is time, so that its share of all time can be told."""
        return self.magnitude.time or (self.magnitude.unit == "s" and self.magnitude.sql is None)

    @property
    def is_share_of_cost(self) -> bool:
        """The share of the finding is one of money."""
        return self.cost is not None and self.cost.whole is not None and not self.is_time


class Play(Struct, frozen=True):
    """One finding the tool can make."""

    rule: str
    front: Front
    symptom: str
    cause: str
    contradicts: str
    done_when: str

    @property
    def fires_when(self) -> str:
        """The thresholds and their reason, for ``explain``."""
        rule = self.front.fires_when
        unit = self.front.unit
        few = f"1 {singular(unit)}" if rule.requests == 1 else f"{rule.requests} {unit}"
        parts = [f"at least {few}"]
        if rule.smallest:
            parts.append(f"a magnitude of at least {rule.smallest:g} {self.front.magnitude.unit}")
        if rule.relative:
            of = "time" if self.front.is_time else "whole"
            parts.append(f"an effect of at least {rule.relative:.0%} of their {of}")
        if rule.at_most == "note":
            head = "always a note"
        else:
            head = f"a warning from {' and '.join(parts)} on, else a note"
        if rule.at_most == "critical":
            whole = "cost" if self.front.is_share_of_cost else "time"
            head += f"; critical from {rule.critical_share:.0%} of all {whole} on"
        must_not = f" Does not fire: {self.front.must_not}" if self.front.must_not else ""
        return f"{head}. {rule.why}{must_not}"


@cache
def all_plays() -> dict[str, Play]:
    """Rule -> play, for every ``.md`` file below ``runbook/<prefix>/``."""
    found = {}
    for prefix in sorted(files("analyzer").joinpath("runbook").iterdir(), key=lambda p: p.name):
        if not prefix.is_dir():
            continue
        for file in sorted(prefix.iterdir(), key=lambda p: p.name):
            if file.name.endswith(".md"):
                rule = f"{prefix.name}.{file.name.removesuffix('.md')}"
                found[rule] = parse(rule, file.read_text(encoding="utf-8"))
    return found


def play_named(rule: str) -> Play:
    """The play of a rule; an unknown one names the near ones."""
    plays = all_plays()
    if rule not in plays:
        raise AnalyzerError(f"no finding named {rule!r}", hint_of(rule, plays))
    return plays[rule]


def parse(rule: str, text: str) -> Play:
    """Read one play; raises where its front matter or sections are not what they must be."""
    parts = text.split("+++\n", 2)
    if len(parts) != 3 or parts[0].strip():
        raise AnalyzerError(f"play {rule}: it does not begin with +++ front matter +++")
    try:
        front = msgspec.convert(tomllib.loads(parts[1]), Front)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise AnalyzerError(f"play {rule}: {error}") from None
    pieces = _SECTION.split(parts[2])
    sections = dict(zip(pieces[1::2], (one.strip() for one in pieces[2::2]), strict=True))
    missing = [name for name in _SECTIONS if name not in sections]
    if missing:
        raise AnalyzerError(f"play {rule}: section {', '.join(missing)} is missing")
    symptom, cause, contradicts, done_when = (_flow(sections[name]) for name in _SECTIONS)
    return Play(rule, front, symptom, cause, contradicts, done_when)


def _flow(text: str) -> str:
    """Paragraphs on one line each."""
    return "\n\n".join(" ".join(one.split()) for one in text.split("\n\n") if one.strip())

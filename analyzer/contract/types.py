"""Values that pass between layers: frozen, plain, and named after what the field calls them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from analyzer.contract.ingested import FileRead as FileRead
from analyzer.contract.ingested import IngestResult as IngestResult

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from analyzer.contract.conversations import Conversations
    from analyzer.contract.costs import Costs
    from analyzer.contract.devices import Devices

SEVERITIES = ("critical", "warning", "note")
CONFIDENCES = ("measured", "derived", "modelled", "suspected")
SEGMENTS = ("queue", "prefill", "decode", "network", "client", "none")


# --- reader -> store ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Problem:
    """A record that could not be read. ``excerpt`` must already be free of prompt text."""

    record: int
    reason: str
    excerpt: str = ""
    byte_offset: int | None = None


@dataclass(frozen=True)
class Resume:
    """Where reading goes on when a file has grown since.

    ``offset``/``records``: bytes and records that are read for good. ``provisional``: records whose
    request rows may still change; the store removes those rows before it appends the tail.
    ``state``: the reader's own JSON-able memory (open requests).
    """

    offset: int
    records: int
    provisional: tuple[int, ...] = ()
    state: Any = None


@dataclass(frozen=True)
class Batch:
    """What a reader yields, again and again: rows, and an account of every record behind them."""

    tables: Mapping[str, pa.Table] = field(default_factory=dict)
    records: int = 0
    used: int = 0
    ignored: Mapping[str, int] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    assumed: tuple[str, ...] = ()
    resume: Resume | None = None


# --- analyses -> runbook -> report -------------------------------------------------------------


@dataclass(frozen=True)
class Evidence:
    """One number of a finding and the SQL that gave it. ``value`` is raw, in ``unit``."""

    label: str
    value: float | int | str | None
    unit: str
    sql: str


@dataclass(frozen=True)
class Action:
    """What to do, who does it, and what to expect from it."""

    do: str
    owner: str
    expect: str


@dataclass(frozen=True)
class Criterion:
    """When a finding counts as fixed: ``metric op value unit``; ``sql`` gives the metric."""

    metric: str
    op: str
    value: float
    unit: str
    sql: str = ""


@dataclass(frozen=True)
class Magnitude:
    """The one size of a finding: ``value`` ``unit``, of what."""

    value: float
    unit: str
    of: str


@dataclass(frozen=True)
class Chart:
    """The requests behind a finding as points: ``rows`` have ``x``, ``y`` and ``series``.

    ``rows`` are a sample where there are too many to draw; ``points`` is how many there are. An
    axis is a name and a unit as in :class:`Evidence`, or ``time_ns`` for moments. Points of the
    series in ``lines`` are joined.
    """

    title: str
    x: str
    x_unit: str
    y: str
    y_unit: str
    sql: str
    points: int
    rows: tuple[dict[str, Any], ...]
    lines: tuple[str, ...] = ()


@dataclass(frozen=True)
class Finding:
    """A claim with its proof. ``coverage`` is the share of requests in scope with the inputs."""

    rule: str
    severity: str
    segment: str
    title: str
    requests: int
    magnitude: Magnitude
    share: float
    confidence: str
    coverage: float
    cost_usd: str | None = None
    where: str | None = None
    window: tuple[int, int] | None = None
    evidence: tuple[Evidence, ...] = ()
    actions: tuple[Action, ...] = ()
    done_when: tuple[Criterion, ...] = ()
    examples: tuple[str, ...] = ()
    brief: str = ""
    symptom: str = ""
    cause: str = ""
    contradicts: str = ""
    how_computed: str = ""
    record_it: str = ""
    chart: Chart | None = None
    unit: str = "requests"


@dataclass(frozen=True)
class Clear:
    """A rule whose inputs were there and that found nothing."""

    rule: str
    coverage: float
    title: str = ""


@dataclass(frozen=True)
class Missing:
    """An input that a rule lacks, and how to record it."""

    input: str
    how: str


@dataclass(frozen=True)
class CannotSay:
    """A rule that could not look. Never to be shown as healthy."""

    rule: str
    missing: tuple[Missing, ...]
    coverage: float
    title: str = ""


@dataclass(frozen=True)
class Findings:
    """Every rule's outcome, each in exactly one of the three lists.

    ``verdict`` says when, what and what to do first; ``split`` where all the time went.
    """

    found: tuple[Finding, ...] = ()
    clear: tuple[Clear, ...] = ()
    cannot_say: tuple[CannotSay, ...] = ()
    verdict: str = ""
    split: str = ""


@dataclass(frozen=True)
class Table:
    """Rows of one command: ``kind`` names the published row schema (``analyze.latency``)."""

    kind: str
    rows: tuple[dict[str, Any], ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Series:
    """Aggregated points for one chart, never raw rows. ``rows`` share the keys ``x`` and ``y``."""

    title: str
    x: str
    y: str
    unit: str
    group: str | None
    rows: tuple[dict[str, Any], ...]


@dataclass(frozen=True)
class Lane:
    """One lane of the timeline: points on the shared time axis, already aggregated into bins.

    ``rows`` have ``start_ns`` (the bin), ``group`` (a line of the lane) and ``value`` in ``unit``.
    """

    name: str
    unit: str
    bin_ns: int
    rows: tuple[dict[str, Any], ...]


@dataclass(frozen=True)
class Objectives(Table):
    """How objectives were kept (rows of ``analyze.latency.slo``), and what broke them.

    ``budget`` has rows of ``analyze.latency.slo.budget``; ``lane`` shares over time.
    """

    budget: tuple[dict[str, Any], ...] = ()
    lane: Lane | None = None


@dataclass(frozen=True)
class Mark:
    """A moment the user knows of, such as a roll-out."""

    time_ns: int
    text: str


@dataclass(frozen=True)
class Incident:
    """When it began and ended, how that is known, and what differed from the time around it.

    ``changes`` has rows of ``analyze.compare``: the rest of the case against the window.
    """

    window: tuple[int, int]
    why: str
    changes: Table


@dataclass(frozen=True)
class Report:
    """Everything the report shows; printers add nothing of their own."""

    title: str
    verdict: str
    window: tuple[int, int] | None
    requests: int
    findings: Findings
    segments: Table
    timeline: Series
    slowest: tuple[dict[str, Any], ...]
    sources: Table
    notes: tuple[str, ...]
    version: str
    lanes: tuple[Lane, ...] = ()
    marks: tuple[Mark, ...] = ()
    incident: Incident | None = None
    waterfalls: tuple[RequestView, ...] = ()
    hardware: Table | None = None
    """Rows of ``analyze.bounds.observed``; None where no bound can be drawn."""
    hardware_charts: tuple[Chart, ...] = ()
    law: Table | None = None
    """Rows of ``analyze.latency.law`` where it holds; None where it does nowhere."""
    law_charts: tuple[Chart, ...] = ()
    objectives: Objectives | None = None
    turns: Conversations | None = None
    costs: Costs | None = None
    gpu: Devices | None = None


@dataclass(frozen=True)
class Bar:
    """One bar of a request's waterfall, in ns from the request's start."""

    vantage: str
    label: str
    start_ns: int
    dur_ns: int
    grade: str
    segment: str


@dataclass(frozen=True)
class RequestView:
    """One request over all vantages: facts, waterfall, tokens and the records it came from.

    ``lines`` (on request only) quote the records from disk: path, record, and ``line`` or ``why``
    there is none.
    """

    id: str
    facts: tuple[tuple[str, str], ...]
    e2e_ns: int | None
    ttft_ns: int | None
    bars: tuple[Bar, ...]
    segments: tuple[dict[str, Any], ...]
    tokens: tuple[tuple[str, int | None], ...]
    records: tuple[dict[str, Any], ...]
    notes: tuple[str, ...] = ()
    lines: tuple[dict[str, Any], ...] = ()
    cost: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True)
class Explanation:
    """One rule: its outcome in this case and the play behind it."""

    rule: str
    title: str
    outcome: Finding | Clear | CannotSay
    others: tuple[Finding, ...]
    claims: str
    fires_when: str


@dataclass(frozen=True)
class Status:
    """What a case holds and what cannot be said yet."""

    db: str
    sources: Table
    coverage: Table
    problems: Table
    assumed: tuple[tuple[str, str], ...]
    cannot_say: tuple[CannotSay, ...]
    requests: int
    window: tuple[int, int] | None
    engines: Table


@dataclass(frozen=True)
class Filters:
    """What part of a case to look at. The window is half-open, in ns since the epoch, UTC."""

    since_ns: int | None = None
    until_ns: int | None = None
    model: str | None = None
    route: str | None = None
    session: str | None = None

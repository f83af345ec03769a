"""Every value a command prints, as blocks: the order and the words, not the looks."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

from analyzer.contract.types import (
    CannotSay,
    Clear,
    Explanation,
    FileRead,
    Finding,
    Findings,
    IngestResult,
    Report,
    RequestView,
    Status,
    Table,
)
from analyzer.report import words
from analyzer.report.blocks import (
    Block,
    Code,
    Facts,
    Found,
    Grid,
    Heading,
    Items,
    Waterfall,
    Words,
    grid,
    grid_of,
)
from analyzer.report.values import cell, count, duration, moment, percent, plural, quantity, window

_PROBLEMS_SHOWN = 10


@singledispatch
def blocks(value: object) -> list[Block]:
    """Blocks of any value a command prints."""
    msg = f"no printed form for {type(value).__name__}"
    raise TypeError(msg)


@blocks.register(Table)
def _table(value: Table) -> list[Block]:
    body: Block = grid(value) if value.rows else Words("no rows")
    return [body, *(Words(note) for note in value.notes)]


# --- findings ----------------------------------------------------------------------------------


@blocks.register(Findings)
def _findings(value: Findings) -> list[Block]:
    out: list[Block] = [Words(value.verdict)] if value.verdict else []
    out.append(Words(words.tally(value)))
    out += [found(item) for item in words.by_severity(value.found)]
    return out + clear(value.clear) + cannot_say(value.cannot_say)


def found(value: Finding) -> Found:
    """Shorten a finding to four lines at most."""
    lines = (words.size_of(value), words.place_of(value), words.grade_of(value))
    return Found(value.severity, value.rule, value.title, tuple(line for line in lines if line))


def clear(values: tuple[Clear, ...]) -> list[Block]:
    """Rules that looked and found nothing, by name."""
    out: list[Block] = [Heading(f"clear: {plural(len(values), 'check')}")]
    return [*out, Words(", ".join(item.rule for item in values))] if values else out


def cannot_say(values: tuple[CannotSay, ...]) -> list[Block]:
    """Rules that could not look, what each lacks and how to record it."""
    out: list[Block] = [Heading(f"cannot say: {plural(len(values), 'check')}")]
    if not values:
        return out
    rows = [
        {"rule": item.rule, "needs": words.needs(item), "coverage": item.coverage}
        for item in values
    ]
    how = dict.fromkeys((miss.input, miss.how) for item in values for miss in item.missing)
    return [
        *out,
        Words(words.NOT_CLEAR),
        grid_of(tuple(rows)),
        Words("How to record what is missing:"),
        Items(tuple(f"{name}: {text}" for name, text in how)),
    ]


# --- ingest and status ---------------------------------------------------------------------------


@blocks.register(IngestResult)
def _ingest(value: IngestResult) -> list[Block]:
    out: list[Block] = []
    if value.files:
        out.append(_files(value))
    why = tuple(f"{item.path}: {item.why}" for item in value.files if item.why)
    if why:
        out += [Heading("not read as it stands"), Items(why)]
    total = sum(item.problems for item in value.files)
    if total:
        out.append(Heading(f"{plural(total, 'problem')}: records that could not be read"))
    if value.problems:
        out.append(grid_of(value.problems[:_PROBLEMS_SHOWN]))
    if total > min(len(value.problems), _PROBLEMS_SHOWN):
        out.append(Words("All of them: analyze sql 'SELECT * FROM problem'"))
    out += _assumed(value.assumed)
    rows = sum(item.rows for item in value.files)
    summary = f"{value.db}: {plural(rows, 'row')} from {plural(len(value.files), 'file')}"
    first = [item.first_ns for item in value.files if item.first_ns is not None]
    last = [item.last_ns for item in value.files if item.last_ns is not None]
    if first and last:
        summary += f", {window((min(first), max(last)))}"
    out.append(Words(summary))
    return [*out, Words(f"Next: {value.next_command}")] if value.next_command else out


def _files(value: IngestResult) -> Grid:
    return Grid(
        header=("file", "reader", "records", "used", "ignored", "problems"),
        rows=tuple(
            (
                cell("", item.path),
                _reader(item),
                plural(item.records, item.record_unit),
                count(item.used),
                count(item.ignored),
                count(item.problems),
            )
            for item in value.files
        ),
        right=(False, False, True, True, True, True),
        keep=(False, True, True, True, True, True),
    )


def _reader(item: FileRead) -> str:
    if item.reader is None:
        return item.outcome
    return item.reader if item.outcome == "read" else f"{item.reader} ({item.outcome})"


def _assumed(pairs: tuple[tuple[str, str], ...]) -> list[Block]:
    if not pairs:
        return []
    return [Heading("assumed"), Items(tuple(f"{source}: {note}" for source, note in pairs))]


@blocks.register(Status)
def _status(value: Status) -> list[Block]:
    out: list[Block] = [
        Facts(
            (
                ("case", value.db),
                ("requests", count(value.requests)),
                ("window", window(value.window)),
            )
        )
    ]
    for name, table in (("sources", value.sources), ("coverage", value.coverage)):
        out += [Heading(name), *_table(table)]
    out.append(Heading("problems"))
    out += _table(value.problems) if value.problems.rows else [Words("none")]
    return out + _assumed(value.assumed) + cannot_say(value.cannot_say)


# --- one request ---------------------------------------------------------------------------------

_VIEWS = {"e2e": "end to end", "ttft": "to the first token"}


@blocks.register(RequestView)
def _request(value: RequestView) -> list[Block]:
    out: list[Block] = [Heading(f"request {value.id}", 1), Facts(value.facts)]
    ends = [bar.start_ns + bar.dur_ns for bar in value.bars]
    total = max([*ends, value.e2e_ns or 0])
    if value.bars and total > 0:
        out.append(Waterfall(value.bars, total))
    out += _segments(value)
    if value.tokens:
        tokens = tuple((name, count(number)) for name, number in value.tokens)
        out += [Heading("tokens"), Facts(tokens)]
    if value.records:
        out += [Heading("told by"), Items(tuple(record(item) for item in value.records))]
    return out + [Words(note) for note in value.notes]


def _segments(value: RequestView) -> list[Block]:
    whole = {"e2e": value.e2e_ns, "ttft": value.ttft_ns}
    out: list[Block] = []
    for view in dict.fromkeys(item.get("view", "e2e") for item in value.segments):
        rows = tuple(
            {key: cells for key, cells in item.items() if key != "view"}
            for item in value.segments
            if item.get("view", "e2e") == view
        )
        name = _VIEWS.get(view, str(view))
        out += [Heading(f"{name}: {duration(whole.get(view))}"), grid_of(rows)]
    return out


def record(cells: dict[str, object]) -> str:
    """``path:record`` and whatever else is told of a record."""
    rest = ", ".join(
        f"{key} {cell(key, item)}"
        for key, item in cells.items()
        if key not in {"path", "record"} and item is not None
    )
    place = f"{cells.get('path', '?')}:{cells.get('record', '?')}"
    return f"{place}  {rest}" if rest else place


# --- one finding ---------------------------------------------------------------------------------


@blocks.register(Explanation)
def _explanation(value: Explanation) -> list[Block]:
    out: list[Block] = []
    outcome = value.outcome
    if isinstance(outcome, Finding):
        out += explained(outcome)
    elif isinstance(outcome, Clear):
        out += [
            Heading(f"{value.rule}: clear", 1),
            Words(value.title),
            Words(f"Looked and found nothing; coverage {percent(outcome.coverage)}."),
        ]
    else:
        out += [Heading(f"{value.rule}: cannot say", 1), Words(value.title)]
        out.append(Words(f"{words.NOT_CLEAR}; coverage {percent(outcome.coverage)}."))
        how = tuple(f"{item.input}: {item.how}" for item in outcome.missing)
        out += [Heading("How to record what is missing"), Items(how)]
    for title, text in (("What it claims", value.claims), ("When it fires", value.fires_when)):
        if text:
            out += [Heading(title), Words(text)]
    if value.others:
        out += [Heading("Also found by this rule"), *(found(item) for item in value.others)]
    return out


def explained(value: Finding) -> list[Block]:
    """Tell a finding with its proof, cause, action and end."""
    out: list[Block] = [found(value)]
    for title, text in (("Symptom", value.symptom),):
        if text:
            out += [Heading(title), Words(text)]
    if value.evidence:
        out.append(Heading("Evidence"))
    for item in value.evidence:
        out += [Words(f"{item.label}: {quantity(item.value, item.unit)}"), Code(item.sql)]
    for title, text in (
        ("Cause", value.cause),
        ("What would contradict it", value.contradicts),
        ("How it is computed", value.how_computed),
        ("How to record more", value.record_it),
    ):
        if text:
            out += [Heading(title), Words(text)]
    out += actions(value)
    if value.examples:
        out += [Heading("Example requests"), Items(tuple(value.examples))]
    return out


def actions(value: Finding) -> list[Block]:
    """Say what to do, and when it is done."""
    out: list[Block] = []
    if value.actions:
        steps = tuple(f"{a.do} (owner: {a.owner}; expect: {a.expect})" for a in value.actions)
        out += [Heading("Action"), Items(steps, numbered=True)]
    if value.done_when:
        out.append(Heading("Done when"))
    for item in value.done_when:
        out.append(Words(words.criterion(item)))
        if item.sql:
            out.append(Code(words.sql_command(item.sql)))
    return out


# --- the report ----------------------------------------------------------------------------------


@blocks.register(Report)
def _report(value: Report) -> list[Block]:
    facts = (
        ("window", window(value.window)),
        ("requests", count(value.requests)),
        ("outcome", words.tally(value.findings)),
    )
    out: list[Block] = [Heading(value.title, 1), Words(value.verdict), Facts(facts)]
    out += _incident(value)
    for item in words.by_severity(value.findings.found):
        out += explained(item)
    out += [Heading("Segments"), *_table(value.segments)]
    if value.slowest:
        out += [Heading("Slowest requests"), grid_of(value.slowest)]
    out += cannot_say(value.findings.cannot_say) + clear(value.findings.clear)
    out += [Heading("Sources"), *_table(value.sources)]
    return [*out, *(Words(note) for note in value.notes), Words(f"analyze {value.version}")]


def _incident(value: Report) -> list[Block]:
    out: list[Block] = []
    if value.incident:
        known = value.incident
        out += [Heading(f"Incident {window(known.window)}"), Words(known.why)]
        beyond, rest = words.changes(known.changes.rows)
        if beyond:
            out.append(Facts(tuple((words.measured(row), _change(row)) for row in beyond)))
        if rest:
            out.append(Words(f"{plural(len(rest), 'other number')} differ no more than noise does"))
        out += [Words(note) for note in known.changes.notes]
    if value.marks:
        marks = tuple(f"{moment(mark.time_ns)}  {mark.text}" for mark in value.marks)
        out += [Heading("Marks"), Items(marks)]
    return out


def _change(row: dict[str, Any]) -> str:
    unit = str(row.get("unit", ""))
    sides = (quantity(row.get("baseline"), unit), quantity(row.get("window"), unit))
    return f"{sides[0]} -> {sides[1]}: {words.change(row)}"

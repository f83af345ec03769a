"""Which question about cost is asked: what it is, what changed, where bills disagree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal

from analyzer.contract.costs import Costs
from analyzer.engines.duckdb import Engine
from analyzer.questions import _zone, cost
from analyzer.questions.bridge import bridge
from analyzer.questions.reconcile import reconciled
from analyzer.questions.self_host import Plan, self_host, worth_asking

Window = tuple[int, int]
_SHOWN = 12
_DAY_NS = 86_400_000_000_000
_SUM = """SELECT sum(c.usd)
FROM cost_tracked AS t
JOIN cost_request AS c ON t.request_key = c.request_key
JOIN resolve_request AS q ON t.request_key = q.request_key
WHERE t.is_metered AND q.start_ns >= {0} AND q.start_ns < {1}"""
_BILLED = """SELECT (SELECT count(*) FROM invoice_line)
  + (SELECT count(*) FROM resolve_on_bill)"""
_OTHER_LINES = """SELECT count(*) FROM invoice_line AS i
JOIN source AS s ON i.source_id = s.source_id
WHERE s.reader NOT IN ('cursor_usage_csv', 'cursor_usage_events')"""
_UNHELD = "There is a bill, for all requests: ask without filters to hold it against the logs."
_UNUSED = """SELECT bill, path, used_lines, unused_lines, unused_from_ns, unused_until_ns, instead
FROM cost_bill_source
WHERE unused_lines > 0
ORDER BY bill, path"""
_FOREIGN = """SELECT path, currency, count(*) AS lines
FROM cost_bill_line
WHERE amount IS NOT NULL AND currency <> 'USD'
GROUP BY path, currency
ORDER BY path, currency"""
_CHANGE = """SELECT baseline_from_ns, baseline_until_ns, window_from_ns, window_until_ns
FROM cost_change"""


def answer(
    engine: Engine,
    by: Sequence[str] = (),
    *,
    top: int = 20,
    zone: str = "UTC",
    windows: tuple[Window, Window] | None = None,
    plan: Plan | None = None,
    filtered: bool = False,
) -> Costs:
    """Cost by group; with two windows the bridge between them; with bills the reconciliation.

    With a plan, the API beside GPUs of one's own. A bill has no filters: ``filtered`` requests are
    not held against it.
    """
    billed = bool(engine.value(_BILLED))
    out = cost.costs(engine, by, top=top, zone=zone, billed=billed and not filtered)
    out = _billed(engine, out, filtered=filtered) if billed else out
    out = replace(out, self_host=self_host(engine, plan)) if plan else out
    return _bridged(engine, out, windows) if windows else out


def _billed(engine: Engine, out: Costs, *, filtered: bool) -> Costs:
    if filtered:
        return replace(out, notes=(*out.notes, _UNHELD))
    sums, lines = reconciled(engine)
    if sums is None:
        told = tuple(_foreign(engine)) or tuple(_apart(engine))
        return replace(out, notes=(*out.notes, *told))
    notes = (*out.notes, *_unused(engine), *_foreign(engine))
    return replace(out, reconciliation=sums, reconciled=lines, notes=notes)


def _foreign(engine: Engine) -> Iterator[str]:
    """Amounts that nothing here can be compared with."""
    for row in engine.rows(_FOREIGN):
        lines = row["lines"]
        yield (
            f"{row['path']}: {lines:,} amount{'' if lines == 1 else 's'} in {row['currency']} "
            f"{'is' if lines == 1 else 'are'} held against nothing, for no rate is known: convert "
            "them to US dollars. Tokens are compared where a bill or usage report tells them."
        )


def _unused(engine: Engine) -> Iterator[str]:
    """Files of bills that do not count, or not with all of their lines."""
    for row in engine.rows(_UNUSED):
        lines, part = row["unused_lines"], "" if row["used_lines"] else "all "
        first = _zone.day_of(row["unused_from_ns"])
        last = _zone.day_of(row["unused_until_ns"] - 1)
        span = first if first == last else f"{first} to {last}"
        yield (
            f"{row['path']}: {part}{lines:,} line{'' if lines == 1 else 's'} ({span}) "
            f"{'is' if lines == 1 else 'are'} not counted: {row['instead']} tells the same time of "
            f"{row['bill']}."
        )


def _apart(engine: Engine) -> Iterator[str]:
    """That a bill is there and has nothing to hold against the logs."""
    lines = engine.value(_OTHER_LINES)
    if lines:
        yield (
            f"The bills hold {lines:,} line{'' if lines == 1 else 's'}, none for tokens or calls "
            "of a model: there is nothing to hold against the logs."
        )


def reported(engine: Engine, *, filtered: bool) -> Costs | None:
    """The same for a report, with the rise it found; None where nothing is priced or billed."""
    out = answer(engine, top=_SHOWN, filtered=filtered)
    if out.total["cost_usd"] is None and out.reconciliation is None:
        return None
    out = replace(out, notes=(*out.notes, *worth_asking(engine)))
    found = engine.rows(_CHANGE)
    if not found:
        return out
    ends = found[0]
    before = (ends["baseline_from_ns"], ends["baseline_until_ns"])
    after = (ends["window_from_ns"], ends["window_until_ns"])
    # What is found is seldom of the same length: then dollars of a day are compared.
    return _bridged(engine, out, (before, after), by_day=_length(before) != _length(after))


def _length(window: Window) -> int:
    return window[1] - window[0]


def _bridged(
    engine: Engine, out: Costs, windows: tuple[Window, Window], *, by_day: bool = False
) -> Costs:
    before, after = windows
    return replace(
        out,
        bridge=bridge(engine, before, after, per="day" if by_day else None),
        baseline_usd=_sum(engine, before, by_day=by_day),
        window_usd=_sum(engine, after, by_day=by_day),
        windows=windows,
        by_day=by_day,
    )


def _sum(engine: Engine, window: Window, *, by_day: bool) -> Decimal:
    usd = Decimal(engine.value(_SUM.format(*window)) or 0)
    return round(usd * _DAY_NS / _length(window), 15) if by_day else usd

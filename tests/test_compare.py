"""compare: failures apart, errors first, nothing judged that is too thin."""

from __future__ import annotations

import json

import pytest

import analyzer
from analyzer.contract.types import Filters
from analyzer.errors import AnalyzerError
from analyzer.report import answers, formats

START = 1_790_000_000
NS = 1_000_000_000


def case_of(tmp_path, before, after):
    """Two minutes-long halves of requests: (e2e in ms, status) each."""
    lines = []
    for half, requests in enumerate((before, after)):
        for i, (e2e_ms, status) in enumerate(requests):
            record = {"request_id": f"{half}-{i}", "started_at": START + half * 3600 + i}
            record |= {"e2e_ms": e2e_ms, "status": status}
            lines.append(json.dumps(record))
    (tmp_path / "log.jsonl").write_text("\n".join(lines) + "\n")
    db = str(tmp_path / "case.duckdb")
    analyzer.ingest(db, [str(tmp_path / "log.jsonl")])
    middle = (START + 1800) * NS
    return db, Filters(until_ns=middle), Filters(since_ns=middle)


def rows_of(table):
    return {(row["metric"], row["statistic"]): row for row in table.rows}


def test_failures_are_in_the_error_rate_and_nowhere_else(tmp_path):
    calm = [(100 + i % 7, 200) for i in range(60)]
    broken = [(100 + i % 7, 200) for i in range(30)] + [(90_000, 504)] * 30
    table = analyzer.compare(*case_of(tmp_path, calm, broken))
    rows = rows_of(table)
    assert rows["e2e", "mean"]["window"] == pytest.approx(103e6, rel=0.01)
    assert rows["e2e", "mean"]["beyond_noise"] is False
    assert rows["error_rate", "mean"]["window"] == 0.5
    assert answers.compared(table).startswith("1 of ")
    assert "error rate rose from 0 % to 50 %" in answers.compared(table)


def test_errors_lead_whatever_their_size(tmp_path):
    calm = [(100 + i % 7, 500 if i % 2 else 200) for i in range(80)]
    slow = [(9_000 + i % 7, 200) for i in range(80)]
    table = analyzer.compare(*case_of(tmp_path, calm, slow))
    shown = " ".join(formats.render(table, "table").split())
    assert shown.index("error rate fell") < shown.index("mean e2e rose")
    assert "x 87" in shown


def test_few_values_are_shown_and_not_judged(tmp_path):
    table = analyzer.compare(
        *case_of(tmp_path, [(100 + i, 200) for i in range(60)], [(9_000, 200)] * 19)
    )
    rows = rows_of(table)
    assert rows["e2e", "mean"]["beyond_noise"] is None
    assert rows["e2e", "mean"]["low"] is None
    assert rows["e2e", "p95"]["window"] is None
    assert rows["e2e", "p95"]["baseline"] is not None
    shown = " ".join(formats.render(table, "table").split())
    assert "too few requests to tell" in shown
    assert "mean e2e 130 ms 9.00 s 60 19" in shown


def test_what_neither_side_has_is_one_line(tmp_path):
    table = analyzer.compare(*case_of(tmp_path, [(100, 200)] * 30, [(100, 200)] * 30))
    (note,) = table.notes
    assert note.startswith("On neither side: ttft, queue")
    shown = formats.render(table, "table")
    assert " - " not in shown
    assert shown.count("ttft") == 1


def test_a_side_without_requests_is_refused_with_the_span_of_the_case(tmp_path):
    db, before, _ = case_of(tmp_path, [(100, 200)] * 30, [(100, 200)] * 30)
    with pytest.raises(AnalyzerError, match="no request matches the filters") as caught:
        analyzer.compare(db, before, Filters(since_ns=(START + 10**6) * NS))
    assert "the case: 2026-" in caught.value.hint

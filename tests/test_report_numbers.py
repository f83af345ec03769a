"""One number, three printers: page, terminal and JSON agree, and each number shows its proof."""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass, replace
from typing import Any

import examples_of_results as ex
import pytest
from deep import deep
from test_report import page_of

from analyzer.contract.types import Report
from analyzer.report import values, words
from analyzer.report.formats import render
from analyzer.report.html import render as html
from analyzer.report.timeline import timeline


def _pair(value: float, unit: str) -> tuple[str, str]:
    return values.quantity(value, unit), values.raw(value, unit)


def _numbers(report: Report) -> list[tuple[str, str]]:
    """What people read and the raw value behind it, from the JSON that machines read."""
    told = json.loads(render(report, "json"))
    out = []
    for item in told["findings"]:
        size = item["magnitude"]
        out.append((values.quantity(size["value"], size["unit"]), values.raw(size["value"])))
        out.append((values.percent(item["coverage"]), values.raw(item["coverage"])))
        if item["share"]:
            out.append((values.percent(item["share"]), values.raw(item["share"])))
        if item["window"]:
            start, end = item["window"]["from"], item["window"]["to"]
            out.append((f"{start.replace('T', ' ')} to {end[11:]}", f"{start} to {end}"))
        out += [_pair(it["value"], it["unit"]) for it in (*item["evidence"], *item["done_when"])]
    for row in told["incident"]["changes"]:
        if row["beyond_noise"]:
            out += [_pair(row[side], row["unit"]) for side in ("baseline", "window")]
            out.append((words.change(row), values.raw(row["change"], row["unit"])))
    return out


def test_page_terminal_and_json_tell_the_same_numbers():
    page = page_of(ex.REPORT)
    terminal = " ".join(render(ex.REPORT, "table", width=132).split())
    written = " ".join(page.text.split())
    hovers = [attrs["title"] or "" for _, attrs in page.tags if "title" in attrs]
    numbers = _numbers(ex.REPORT)
    assert len(numbers) > 25
    for text, exact in numbers:
        assert text in written, text
        assert text in terminal, text
        assert any(exact in title for title in hovers), exact


def test_every_measured_cell_has_its_raw_value():
    page = page_of(ex.REPORT)
    numeric = [a for t, a in page.tags if t == "td" and a.get("class") == "num"]
    assert len(numeric) > 300
    # "-" is no number, and one cell each stands for a part or a bin that nothing tells of
    assert sum("title" not in attrs for attrs in numeric) <= 12


def test_how_it_was_computed_shows_sql_and_counts():
    text = " ".join(page_of(ex.REPORT).text.split())
    assert "Requests touched1,412 Requests in this report4,218" in text
    assert "mean wait in the window = 4012345678 ns SELECT CAST(avg(queue_ns)" in text


def test_changes_are_told_in_words():
    text = " ".join(page_of(ex.REPORT).text.split())
    assert "+4.06 s, between 3.85 and 4.27 s" in text
    assert "-59.0 percentage points, between -65.0 and -53.0 percentage points" in text
    assert text.index("p50 ttft") < text.index("p95 tpot")
    assert "3 other numbers, not beyond noise or too few to tell" in text
    assert words.change({"change": 5.0, "low": None, "high": None, "unit": "ns"}).endswith(
        "too few values for an interval"
    )
    assert words.change({"change": None, "unit": "ns"}) == "known on one side only"


def test_lanes_have_twins_and_marks_their_words():
    page = page_of(ex.REPORT)
    for lane in ex.REPORT.lanes:
        assert f"As a table: {lane.name}" in page.text
    for mark in ex.REPORT.marks:
        assert mark.text in page.text
        assert values.moment(mark.time_ns) in page.text
    told = json.loads(page.data)
    assert [lane["name"] for lane in told["lanes"]] == [lane.name for lane in ex.REPORT.lanes]
    assert told["lanes"][0]["rows"][0]["start_at"] == values.rfc3339(ex.START)


def test_lines_break_where_nothing_is_known():
    picture = timeline(ex.REPORT, ())
    assert picture is not None
    lane = next(lane for lane in picture.lanes if lane.title.startswith("Time to first"))
    assert {row["piece"] for row in lane.rows} == {"0-0", "0-1", "1-0", "1-1"}
    assert max(row["value"] for row in lane.rows) == pytest.approx(7.582)


def _longer(value: Any) -> Any:
    if isinstance(value, str):
        return value + "x" * 10_000
    if isinstance(value, tuple):
        return tuple(_longer(item) for item in value)
    if isinstance(value, dict):
        return {k: v if k in {"group", "unit"} else _longer(v) for k, v in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        kept = {"unit", "x", "y", "kind", "severity", "group", "confidence", "cost_usd"}
        parts = {f.name: getattr(value, f.name) for f in fields(value)}
        return replace(value, **{k: v if k in kept else _longer(v) for k, v in parts.items()})
    return value


LONG = _longer(ex.REPORT)


@deep
def test_long_names_and_many_rows_keep_the_page_small():
    report = LONG
    plain = [replace(one, chart=None) for one in report.findings.found]  # a picture each is slow
    found = (*report.findings.found, *plain * 39)
    many = replace(
        report,
        findings=replace(report.findings, found=found),
        sources=replace(report.sources, rows=report.sources.rows * 2000),
        notes=report.notes * 500,
    )
    page = html(many)
    assert len(page.encode()) < 3_000_000
    assert "further rows not shown here" in page
    assert "further findings not shown here" in page
    assert ">120 found<" in page


def test_a_name_is_shown_to_120_characters():
    page = page_of(LONG)
    assert "req-0412" + "x" * 111 + "…" in page.text.split()
    assert "req-0412" + "x" * 112 not in page.text

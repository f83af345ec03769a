"""Printers: hostile text stays text, same bytes twice, three outcomes kept apart."""

from __future__ import annotations

import csv
import io
import json
import re
from base64 import b64encode
from dataclasses import replace
from decimal import Decimal
from hashlib import sha256
from html.parser import HTMLParser

import examples_of_results as ex
import pytest

from analyzer.contract.types import Findings, Report, Series, Table
from analyzer.report import values
from analyzer.report.charts import timeline_svg
from analyzer.report.formats import FORMATS, render
from analyzer.report.html import render as html
from analyzer.report.timeline import timeline

EVIL = ex.hostile_report()
VALUES = {
    "table": ex.LATENCY,
    "wide": ex.METRICS,
    "findings": ex.FINDINGS,
    "status": ex.STATUS,
    "ingest": ex.INGESTED,
    "show": ex.VIEW,
    "explain": ex.EXPLAINED,
    "explain_clear": replace(ex.EXPLAINED, outcome=ex.FINDINGS.clear[0]),
    "explain_cannot_say": replace(ex.EXPLAINED, outcome=ex.FINDINGS.cannot_say[0]),
    "report": ex.REPORT,
    "hostile_report": EVIL,
    "hostile_findings": ex.hostile_findings(),
    "empty": ex.EMPTY,
}
ACTIVE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069]")


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.data = ""
        self.script = ""
        self.text = ""

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in {"meta", "link"}:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] == "script":
            if dict(self.tags[-1][1]).get("type"):
                self.data += data
            else:
                self.script += data
        else:
            # A number and its unit are kept on one line.
            self.text += data.replace("\N{NO-BREAK SPACE}", " ")


_pages: dict[int, tuple[Report, str]] = {}


def drawn(report: Report) -> str:
    """Its page, drawn once for all tests that look at the same report."""
    if id(report) not in _pages:
        _pages[id(report)] = report, html(report)
    return _pages[id(report)][1]


def page_of(report: Report) -> _Page:
    page = _Page()
    page.feed(drawn(report))
    page.close()
    assert page.open == []
    return page


# --- values --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (None, "-"),
        (0, "0 s"),
        (1, "1.00 ns"),
        (850_000, "850 us"),
        (999_949, "1.00 ms"),
        (12_345_678, "12.3 ms"),
        (999_999_999, "1.00 s"),
        (4_012_345_678, "4.01 s"),
        (-4_012_345_678, "-4.01 s"),
        (125 * ex.S, "2 min 05 s"),
        (3 * 3600 * ex.S + 720 * ex.S, "3 h 12 min"),
        (3 * 86400 * ex.S, "3 d 00 h"),
    ],
)
def test_durations_have_three_digits(ns, text):
    assert values.duration(ns) == text


@pytest.mark.parametrize(
    ("ratio", "text"),
    [(0.3127, "31.3 %"), (1.0, "100 %"), (0.99999, "> 99.9 %"), (0, "0 %"), (None, "-")],
)
def test_short_of_all_never_reads_as_all(ratio, text):
    assert values.percent(ratio) == text


def test_other_values_in_their_units():
    assert values.count(12345) == "12,345"
    assert values.size(1_412_000) == "1.41 MB"
    assert values.quantity(5.3, "ratio") == "5.30 times"
    assert values.quantity(2.0, "s") == "2.00 s"
    assert values.quantity(4812330, "tokens") == "4,812,330 tokens"
    assert values.cell("generation_tokens_per_s", 1234.5) == "1,234 /s"
    assert values.cell("cost_usd", Decimal("12.418250000")) == "$12.42"
    assert values.moment(ex.START) == "2026-09-17 14:10:00Z"
    assert values.rfc3339(ex.START + 1_500_000) == "2026-09-17T14:10:00.0015Z"
    assert values.window(ex.INCIDENT) == "2026-09-17 14:30:00Z to 14:52:30Z"
    assert values.moment(1 << 80) == f"{1 << 80} ns"


@pytest.mark.parametrize(
    "text",
    [
        "\x1b[31mred\x1b[0m",
        "\x9b31mred",
        "\x1b]0;title\x07red",
        "\x1b]8;;http://x\x1b\\red",
        "\x1bPq#\x1b\\red",
        "\x1bcred",
        "r\x00e\x08d",
        "re\u202ed",
        "red\x1b",
        "red\x1b[",
    ],
)
def test_escapes_and_controls_are_stripped(text):
    assert values.safe_text(text) == "red"


# --- all printers --------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("name", VALUES)
def test_every_value_has_every_format_without_active_characters(name, form):
    text = render(VALUES[name], form)
    assert text == render(VALUES[name], form)
    assert text.endswith("\n") or (form == "csv" and not text)
    assert not ACTIVE.search(text)
    assert "None" not in text


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("width", [60, 80, 132])
def test_text_keeps_the_width_but_for_what_gets_copied(name, width):
    lines = render(VALUES[name], "table", width=width).split("\n")
    long = [line for line in lines if len(line) > width and not line.startswith("    ")]
    # A word of its own length, as a path or an id, is never broken.
    assert [line for line in long if max(map(len, line.split())) < width - 30] == []


def test_json_envelopes():
    table = json.loads(render(ex.LATENCY, "json"))
    assert (table["kind"], table["version"]) == ("analyze.latency", 1)
    assert table["rows"] == [
        {
            "model": "llama-3.1-70b",
            "hour_at": "2026-09-17T14:10:00Z",
            "metric": "ttft",
            "requests": 4218,
            "ttft_p95_ns": 4812000000,
            "error_ratio": 0.0123456789,
            "cost_usd": "12.418250000",
        }
    ]
    told = json.loads(render(replace(ex.FINDINGS, verdict="All well."), "json"))
    assert list(told) == ["kind", "version", "verdict", "findings", "clear", "cannot_say"]
    assert told["verdict"] == "All well."
    assert list(told["findings"][2]) == [
        "rule",
        "severity",
        "segment",
        "title",
        "requests",
        "unit",
        "magnitude",
        "share",
        "cost_usd",
        "confidence",
        "coverage",
        "where",
        "window",
        "evidence",
        "actions",
        "done_when",
        "examples",
    ]
    assert told["findings"][2]["window"] == {
        "from": "2026-09-17T14:30:00Z",
        "to": "2026-09-17T14:52:30Z",
    }
    assert list(told["findings"][2]["done_when"][0]) == ["metric", "op", "value", "unit"]
    assert list(told["clear"][0]) == ["rule", "coverage"]
    assert list(told["cannot_say"][0]) == ["rule", "missing", "coverage"]


def test_sql_rows_come_out_as_asked_for():
    table = Table("analyze.sql", ({"start_ns": ex.START, "n": float("nan"), "x": 1.5},))
    assert json.loads(render(table, "json"))["rows"] == [
        {"start_ns": ex.START, "n": None, "x": 1.5}
    ]
    assert str(ex.START) in render(table, "table")


def test_csv_holds_the_rows_and_no_formula():
    rows = list(csv.DictReader(io.StringIO(render(ex.FINDINGS, "csv"))))
    assert [row["outcome"] for row in rows].count("cannot say") == 2
    table = Table("analyze.sql", ({"a": "=cmd()", "b": "-1.5", "c": "@x", "d": "x\ny"},))
    got = next(csv.DictReader(io.StringIO(render(table, "csv"))))
    assert got == {"a": "'=cmd()", "b": "-1.5", "c": "'@x", "d": "x\ny"}


def test_three_outcomes_are_counted_apart():
    text = render(ex.FINDINGS, "table")
    assert "3 found (1 critical, 1 warning, 1 note), 6 clear, 2 cannot say" in text
    assert text.index("CRITICAL") < text.index("WARNING") < text.index("NOTE")
    assert text.index("clear: 6 checks") < text.index("cannot say: 2 checks")
    assert "does not mean healthy" in text
    assert "1,412 requests, 4.01 s mean wait, 31.3 % of end-to-end time" in " ".join(text.split())


def test_colour_is_only_added_when_asked_for():
    assert "\x1b" not in render(ex.FINDINGS, "table")
    assert "\x1b[31;1mCRITICAL\x1b[0m" in render(ex.FINDINGS, "table", color=True)


def test_waterfall_and_both_views():
    text = render(ex.VIEW, "table", width=80)
    assert "█" in text
    assert "end to end: 11.2 s" in text
    assert "to the first token: 7.45 s" in text
    assert "absent" in text
    assert "logs/client/stream.jsonl:88211" in text


def test_wide_tables_turn_into_one_block_a_row():
    table = Table("analyze.sql", ({f"column_{n}": n for n in range(30)},))
    text = render(table, "table", width=80)
    assert "column_29  29" in text


def test_wide_tables_of_many_rows_are_split_and_keep_their_names():
    text = render(Table("analyze.other", ex.METRICS.rows), "table", width=80)
    assert all(len(line) <= 80 for line in text.split("\n"))
    assert text.count("llama-3.1-70b-instruct") == 2 * len(ex.METRICS.rows)
    for name in ("p50", "p95", "p99", "measured", "derived", "absent"):
        assert text.count(name) == 1


def test_sentences_wrap_within_their_column():
    doc = "a sentence that is far too long for one line of the terminal and must not be cut " * 2
    text = render(Table("analyze.schema", ({"column": "x", "doc": doc},)), "table", width=60)
    assert " ".join(text.split()) == f"column doc x {doc.strip()}"


# --- HTML ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "report", [ex.REPORT, ex.EMPTY, ex.QUIET, EVIL], ids=["rich", "0", "3", "evil"]
)
def test_html_is_closed_in_itself(report):
    page = page_of(report)
    policy = [a["content"] for t, a in page.tags if t == "meta" and "http-equiv" in a]
    digest = b64encode(sha256(page.script.encode()).digest()).decode()
    runs = f"script-src 'sha256-{digest}'"
    assert policy == [f"default-src 'none'; {runs}; style-src 'unsafe-inline'; img-src data:"]
    fetching = {"src", "srcset", "action", "data", "poster", "xlink:href", "background"}
    for tag, attrs in page.tags:
        assert not fetching & set(attrs), (tag, attrs)
        assert not any(name.startswith("on") for name in attrs)
        assert (attrs.get("href") or "#").startswith(("#", "data:,"))
        assert "url(" not in (attrs.get("style") or "")
    scripts = [attrs for tag, attrs in page.tags if tag == "script"]
    assert scripts == [{"type": "application/json", "id": "report-data"}, {}]
    assert not re.search(r"innerHTML|eval|fetch|XMLHttp|document\.write", page.script)
    assert not re.search(r"@import|url\(", drawn(report))
    assert html(report) == drawn(report)
    embedded = json.loads(page.data)
    assert embedded == json.loads(render(report, "json"))
    assert embedded["requests"] == report.requests


def test_html_shows_hostile_text_as_text():
    page = page_of(EVIL)
    assert "alert(1)" in page.text
    assert not ACTIVE.search(drawn(EVIL))
    assert "<script>alert" not in drawn(EVIL)


def test_html_tells_each_finding_with_sql_action_and_end():
    page = page_of(ex.REPORT)
    for title in ("Symptom", "Evidence", "Cause", "What would contradict it", "Done when"):
        assert title in page.text
    for item in ex.FINDINGS.found:
        assert item.title in page.text
        for proof in item.evidence:
            assert proof.sql in page.text
        for action in item.actions:
            # notes ask for nothing tonight: their actions stand with them only
            assert page.text.count(action.do) == (1 if item.severity == "note" else 2)
    assert "analyze sql 'SELECT" in page.text
    heads = [tag for tag, _ in page.tags if re.fullmatch(r"h[1-6]", tag)]
    assert heads[0] == "h1"
    assert heads.count("h1") == 1


def test_html_of_nothing_claims_nothing():
    text = page_of(ex.EMPTY).text
    assert "No check was run." in text
    assert "Every check had its inputs" not in text
    assert "1 check could not look, which says nothing about health" in page_of(ex.QUIET).text


def test_chart_sizes():
    assert timeline(ex.EMPTY, ()) is None
    gone = Series("t", "start_ns", "v", "ns", None, ({"start_ns": 0, "v": None},))
    assert timeline(replace(ex.EMPTY, timeline=gone), ()) is None
    picture = timeline(ex.REPORT, ex.FINDINGS.found)
    assert picture is not None
    svg = timeline_svg(picture)
    assert svg.startswith("<svg")
    assert "currentColor" in svg
    assert 'width="' not in svg.split(">")[0]
    drawn = re.findall(r">([^<>]+)</text>", svg)
    for text in ("incident", "2", "3", "A", "rolled back", "p95", "Time to first token, seconds"):
        assert text in drawn


def test_findings_empty():
    assert "0 found, 0 clear, 0 cannot say" in render(Findings(), "table")

"""What a terminal shows: widths, colours, the answers of compare and verify, completion."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner
from deep import deep

import analyzer
from analyzer import api
from analyzer.cli import _console, cli
from analyzer.cli._options import Window
from analyzer.contract import units
from analyzer.contract.types import Table
from analyzer.report import answers, formats, text, values
from analyzer.report.blocks import Found, Grid, Spark, Sparks, Words

ROOT = Path(analyzer.__file__).parents[1]
S = 1_000_000_000
HALVES = ("2026-09-17..2026-09-17T14:10:00Z", "2026-09-17T14:10:00Z..2026-09-18")


def run(*args, **kwargs):
    return CliRunner().invoke(cli, args, **kwargs)


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    db = str(tmp_path_factory.mktemp("terminal") / "case.duckdb")
    api.ingest(db, [str(ROOT / "sample_traces" / "incident")])
    return db


def change(metric, statistic, beyond, *, change=S, few=False, alone=False):
    sides = (0 if alone else 9 if few else 90, 90)
    return {
        "metric": metric, "statistic": statistic, "unit": "ns",
        "baseline": None if alone else S, "window": S + change,
        "change": None if alone else change,
        "low": None if few or alone else change - S // 10,
        "high": None if few or alone else change + S // 10,
        "change_ratio": None if alone else change / S, "beyond_noise": beyond,
        "baseline_requests": sides[0], "window_requests": sides[1],
    }  # fmt: skip


CHANGES = Table(
    "analyze.compare",
    (
        change("e2e", "mean", False),
        change("e2e", "p95", True),
        change("queue", "mean", True, change=30 * S),
        change("ttft", "p50", True, change=-S // 2),
        change("decode", "mean", False),
        change("network", "mean", False),
        change("itl", "mean", None, few=True),
        change("tpot", "mean", None, alone=True),
    ),
)


def test_compare_puts_what_changed_first_and_counts_the_rest():
    shown = formats.render(CHANGES, "table", width=100)
    lines = shown.splitlines()
    told = " ".join(shown.split())
    assert told.startswith("3 of 7 metrics changed beyond noise, biggest first: mean queue rose")
    table = lines[lines.index("") + 1 :]
    assert table[0].split("  ")[0] == "changed"
    assert [line.split("  ")[0] for line in table[1:4]] == ["mean queue", "p95 e2e", "p50 ttft"]
    assert "x 31.0" in table[1]
    assert "+100 %  +1.00 s, between 900 ms and 1.10 s" in table[2]
    assert "2 metrics did not change beyond noise: decode, network." in shown
    assert "1 metric with too few values on a side for an interval or a p95" in told
    assert "1 metric known only after: tpot." in shown
    assert "p95 e2e rose from 1.00 s to 2.00 s (+100 %)" in told
    for form in ("json", "csv"):
        assert formats.render(CHANGES, form).count("decode") == 1, "every row is there"


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ((), "Neither side holds anything"),
        ((change("e2e", "mean", None, few=True),), "Nothing can be said"),
        ((change("e2e", "mean", False),), "Nothing changed beyond noise."),
        ((change("e2e", "mean", True),), "1 of 1 metric changed beyond noise: mean e2e rose"),
    ],
)
def test_compare_in_one_sentence(rows, sentence):
    assert answers.compared(Table("analyze.compare", rows)).startswith(sentence)


def verdict(outcome, why=""):
    return {
        "rule": f"queue.{outcome.replace(' ', '-')}", "outcome": outcome, "metric": "p95 wait",
        "value": None if why else 1.5, "op": "<=", "target": 2.0, "unit": "s", "why": why,
    }  # fmt: skip


def verify_of(*outcomes):
    return Table(
        "analyze.verify",
        tuple(
            verdict(one, "the log is missing" if one == "cannot say" else "") for one in outcomes
        ),
    )


@pytest.mark.parametrize(
    ("outcomes", "sentence"),
    [
        ((), "No finding fires, so there is nothing to verify."),
        (("met",), "Fixed: the criterion is met."),
        (("met", "met"), "Fixed: all 2 criteria are met."),
        (("met", "not met"), "Not fixed: of 2 criteria 1 met, 1 not met."),
        (("met", "cannot say"), "Not known to be fixed: of 2 criteria 1 met, 1 cannot be judged."),
    ],
)
def test_verify_in_one_sentence(outcomes, sentence):
    table = verify_of(*outcomes)
    assert answers.verified(table) == sentence
    assert sentence in formats.render(table, "table")


def test_verify_shows_outcomes_by_word_and_colour():
    table = verify_of("met", "cannot say", "not met")
    plain = formats.render(table, "table", width=100)
    assert "\x1b" not in plain
    assert plain.startswith("Not fixed: of 3 criteria 1 met, 1 not met, 1 cannot be judged.")
    assert [line.split("  ")[0] for line in plain.splitlines()[3:6]] == [
        "NOT MET",
        "CANNOT SAY",
        "MET",
    ]
    assert "queue.cannot-say: the log is missing" in plain
    painted = formats.render(table, "table", width=100, color=True)
    for word, code in (("NOT MET", "31;1"), ("CANNOT SAY", "33;1"), ("MET", "32;1")):
        assert f"\x1b[{code}m{word}\x1b[0m" in painted
    assert answers.unmet(table) == "queue.not-met"
    assert answers.unmet(verify_of("met")) is None


def test_verify_ends_with_the_next_command(case):
    done = run("--db", case, "verify", "--window", HALVES[1])
    assert done.exit_code == 1
    last = done.stdout.strip().splitlines()[-1]
    assert last == f"Next: analyze --db {case} explain queue.admission-limit"
    done = run("--db", case, "verify", "network.buffered", "--window", HALVES[0], "-f", "json")
    assert "Next" not in done.stdout


def test_pages_of_compare_and_verify(case, tmp_path):
    path = tmp_path / "changes.html"
    args = ("--db", case, "compare", "--baseline", HALVES[0], "--window", HALVES[1])
    done = run(*args, "-o", str(path))
    assert done.exit_code == 0, done.stderr
    page = path.read_text(encoding="utf-8")
    sentence = "metrics changed beyond noise"
    assert sentence in page
    assert " ".join(done.stdout.split()).count(sentence) == 1
    for part in ("Content-Security-Policy", "native_stream", "SELECT", "--page:", "bootstraps"):
        assert part in page
    again = run(*args, "-o", str(path))
    assert again.exit_code == 2
    assert "--force overwrites it" in again.stderr
    assert run(*args, "-o", str(path), "--force", "-f", "csv").exit_code == 0
    assert path.read_text(encoding="utf-8") == page, "same case, same bytes"
    done = run("--db", case, "verify", "--window", HALVES[1], "-o", str(path), "--force")
    assert done.exit_code == 1
    page = path.read_text(encoding="utf-8")
    assert "Not fixed" in page
    assert "queue.admission-limit: " in page
    logs = str(ROOT / "sample_traces" / "incident")
    done = run("--db", case, "verify", "network.buffered", logs, "-o", str(path), "--force")
    assert done.exit_code == 1, done.stderr
    assert "gateway.jsonl" in path.read_text(encoding="utf-8")


def test_marks_and_share_safe(case, retried, tmp_path):
    marks = ("--mark", "2026-09-17T14:12:00Z later", "--mark", "2026-09-17 the day")
    path = tmp_path / "report.html"
    done = run("--db", case, "report", "-o", str(path), *marks, "--share-safe")
    assert done.exit_code == 0, done.stderr
    page = path.read_text(encoding="utf-8")
    assert "o8-119" not in page
    assert "edge-eu" not in page
    assert "gateway.jsonl" not in page
    told = api.report(retried, marks=[analyzer.contract.types.Mark(2, "b"), _mark(1, "a")]).marks
    assert [mark.text for mark in told] == ["a", "b"]


def test_picture_as_png(case, tmp_path):
    args = ("--db", case, "report", "-o", str(tmp_path / "r.html"), "--png", str(tmp_path / "p"))
    done = run(*args)
    assert done.exit_code == 0, done.stderr
    assert "timeline.png" in done.stdout
    picture = (tmp_path / "p" / "timeline.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert len(picture) > 10_000
    assert run(*args).exit_code == 2
    assert run("--db", case, "report", "--png", str(tmp_path), "-f", "md").exit_code == 2


def _mark(time_ns, words):
    return analyzer.contract.types.Mark(time_ns, words)


@pytest.mark.parametrize("words", ["2026-09-17T14:12:00Z", "roll-out", "2026-09-17 14:10:00 x"])
def test_marks_that_are_none(words):
    done = run("report", "--mark", words)
    assert done.exit_code == 2
    assert "is no mark" in done.stderr


# --- what a question is answered with ------------------------------------------------------------


def words_of(done):
    assert done.exit_code == 0, done.stderr
    return " ".join(done.stdout.split())


def test_verify_before_the_finding_proves_no_fix(case):
    done = run("--db", case, "verify", "queue.admission-limit", "--window", HALVES[0])
    assert "All 2 criteria are met, but the requests judged are from before" in words_of(done)
    assert "Fixed" not in done.stdout
    rows = analyzer.verify(case, "queue.admission-limit", _window(HALVES[0])).rows
    assert {row["when"] for row in rows} == {"before"}
    rows = analyzer.verify(case, "queue.admission-limit", _window(HALVES[1])).rows
    assert {row["when"] for row in rows} == {"during"}


def _window(text):
    since, until = Window().convert(text, None, None)
    return analyzer.contract.types.Filters(since_ns=since, until_ns=until)


def test_verify_outside_the_data_says_so(case):
    done = run("--db", case, "verify", "--window", "2020-01-01..2020-01-02")
    assert done.exit_code == 1
    told = " ".join(done.stdout.split())
    assert told.startswith("Not known to be fixed: none of 3 criteria can be judged")
    assert "those of the case start from 2026-09-17 14:05:09Z" in told


def test_verify_names_the_input_that_is_missing(case):
    logs = str(ROOT / "sample_traces" / "incident" / "gateway.jsonl")
    done = run("--db", case, "verify", "queue.admission-limit", logs)
    told = " ".join(done.stdout.split())
    assert "queue.admission-limit: it needs the queue time of each request. To record it:" in told


def test_verify_names_the_rule_that_was_meant(case):
    done = run("--db", case, "verify", "queue.admision-limit", "--window", HALVES[1])
    assert done.exit_code == 2
    assert "did you mean queue.admission-limit?" in done.stderr


def test_explain_says_each_query_once(case):
    shown = run("--db", case, "explain", "queue.admission-limit").stdout
    finding = api.explain(case, "queue.admission-limit").outcome
    queries = {item.sql for item in (*finding.evidence, *finding.done_when)}
    assert all(shown.count(f"    {sql}\n") == 1 for sql in queries | {finding.how_computed})
    named = len(finding.evidence) + len(finding.done_when) + 1
    assert len(re.findall(r"\[\d+\]", shown)) == named + len(queries) + 1
    assert f"\n[{len(queries) + 1}]\n" in shown


def test_explain_of_a_family_lists_its_rules(case):
    done = run("--db", case, "explain", "queue")
    assert "queue.saturation" in done.stdout
    assert "Next: " in done.stdout
    table = api.explain_family(case, "queue")
    assert {row["rule"]: row["outcome"] for row in table.rows} == {
        "queue.admission-limit": "found",
        "queue.head-of-line": "clear",
        "queue.imbalance": "clear",
        "queue.mislabelled": "clear",
        "queue.rate-limited": "clear",
        "queue.saturation": "clear",
    }
    assert not api.explain_family(case, "nothing").rows


@pytest.mark.parametrize(
    ("args", "meant"),
    [
        (("find",), "findings"),
        (("lateny",), "latency"),
        (("explain", "admision-limit"), "queue.admission-limit"),
        (("formats", "native"), "native_stream"),
        (("schema", "reques"), "request"),
        (("latency", "--by", "modle"), "model"),
        (("latency", "--slo", "tfft<=2s"), "ttft"),
    ],
)
def test_what_is_misspelt_is_guessed_at(case, args, meant):
    done = run("--db", case, *args)
    assert done.exit_code == 2
    assert f"did you mean {meant}" in done.stderr


@pytest.mark.parametrize(
    ("goal", "says"),
    [
        ("foo<=2s", "no metric foo"),
        ("ttft<=2", "no unit"),
        ("ttft<=2h", "no unit h"),
        ("x", "read"),
    ],
)
def test_goals_that_are_none(case, goal, says):
    done = run("--db", case, "latency", "--slo", goal)
    assert done.exit_code == 2
    assert says in done.stderr


def test_latency_is_one_table_in_80_columns_and_uses_more(case):
    for by in ((), ("--by", "route")):
        narrow = run("--db", case, "latency", *by, env={"COLUMNS": "80"}).stdout
        assert all(len(line) <= 80 for line in narrow.splitlines())
        assert narrow.count(" mean ") == 1
        assert "72 of 119 measured" in narrow or by
    wide = run("--db", case, "latency", env={"COLUMNS": "120"}).stdout
    assert "measured  derived  absent" in wide.splitlines()[0]


def test_failed_requests_stand_apart(case):
    rows = {row["metric"]: row for row in analyzer.latency(case).rows}
    assert (rows["e2e"]["requests"], rows["failed"]["requests"]) == (119, 1)
    assert "1 request failed: its end-to-end time has a row apart" in words_of(
        run("--db", case, "latency")
    )
    (slo,) = analyzer.latency(case, slo=["e2e<=60m"]).rows
    assert (slo["requests"], slo["met"], slo["missed"], slo["failed"]) == (120, 119, 1, 1)


def test_status_counts_what_findings_tells(tmp_path):
    db = str(tmp_path / "thin.duckdb")
    log = tmp_path / "one.jsonl"
    log.write_text('{"request_id": "a", "started_at": 1790000000, "e2e_ms": 5}\n')
    api.ingest(db, [str(log)])
    found, status = words_of(run("--db", db, "findings")), words_of(run("--db", db, "status"))
    blind = api.findings(db).cannot_say
    assert all(item.rule in found and item.rule in status for item in blind)
    for shown in (found, status):
        assert f"cannot say: {len(blind)} checks not looked at for want of data" in shown
    assert all(f"{miss.input}: {miss.how} (" in status for one in blind for miss in one.missing)
    most = Counter((miss.input, miss.how) for one in blind for miss in one.missing).most_common(5)
    for (name, how), number in most:
        assert f"{name} ({number} checks): {how}" in found
    assert "how to record it: analyze status" in found


def test_findings_and_explain_name_the_next_command(case):
    found = api.findings(case).found
    shown = run("--db", case, "findings").stdout
    assert shown.endswith(f"\nNext: analyze --db {case} explain {found[0].rule}\n")
    assert "Next:" not in run("--db", case, "findings", "--since", "2020-01-01").stdout
    explained = run("--db", case, "explain", found[0].rule).stdout
    assert explained.endswith(f"analyze --db {case} show {found[0].examples[0]}\n")
    assert "Next" not in run("--db", case, "explain", found[0].rule, "-f", "md").stdout


def test_a_family_of_rules_keeps_its_words_whole(case):
    shown = run("--db", case, "explain", "queue", env={"COLUMNS": "80"}).stdout
    head = shown.split("\n\n")[0].splitlines()
    assert head[0].split() == ["rule", "outcome", "title"]
    assert all(len(line) <= 80 for line in head)
    assert "queue.admission-limit  found, critical" in shown
    assert (
        "requests  coverage  title"
        in run("--db", case, "explain", "queue", env={"COLUMNS": "140"}).stdout
    )


def test_one_of_a_thing_is_said_in_the_singular(case):
    shown = words_of(run("--db", case, "explain", "prefill.long-prompt"))
    assert "1 request took 203 ms" in shown
    assert values.quantity(1, "requests") == "1 request"
    assert values.quantity(1, "tokens a chunk") == "1 token a chunk"
    assert values.quantity(2, "requests") == "2 requests"
    assert values.quantity(1, "ms") == "1.00 ms"


@pytest.mark.parametrize(
    ("phrase", "one"),
    [
        (" streamed answers (route a) were late", " streamed answer (route a) was late"),
        (" requests ({of}) do not tell", " request ({of}) does not tell"),
        (" of 12 requests failed", " of 12 requests failed"),
        (" later requests take longer", " later request takes longer"),
        (" queries", " query"),
        (" branches", " branch"),
        (" less", " less"),
    ],
)
def test_nouns_and_verbs_agree_with_one(phrase, one):
    assert units.agreeing(phrase) == one


# --- one request ---------------------------------------------------------------------------------

ATTEMPTS = (
    '{"ts": 1790000100, "request_id": "r", "event": "send", "attempt": 1, "operation_id": "op"}',
    '{"ts": 1790000101, "request_id": "r", "event": "error", "error": "timeout", "attempt": 1}',
    '{"ts": 1790000161, "request_id": "r", "event": "send", "attempt": 2, "operation_id": "op",'
    ' "note": "a secret \\u001b[31m", "ids": [7, 8]}',
    '{"ts": 1790000162, "request_id": "r", "event": "chunk", "chars": 4, "attempt": 2}',
    '{"ts": 1790000163, "request_id": "r", "event": "done", "attempt": 2}',
    '{"ts": 1790000261, "request_id": "s", "event": "send"}',
)


@pytest.fixture
def retried(tmp_path):
    (tmp_path / "log.jsonl").write_text("\n".join(ATTEMPTS) + "\n")
    db = str(tmp_path / "case.duckdb")
    api.ingest(db, [str(tmp_path / "log.jsonl")])
    return db


def test_attempts_are_told_and_can_be_named(retried):
    for name, attempt in (("r", "2"), ("r/2", "2"), ("r/1", "1"), ("op", "2"), ("op/1", "1")):
        assert dict(api.show(retried, name).facts)["attempt"] == attempt
    assert (
        "this is attempt 2 of 2; analyze show shows the others: r/1 (failed: timeout)"
        in words_of(run("--db", retried, "show", "r"))
    )
    done = run("--db", retried, "show", "r/3")
    assert done.exit_code == 2
    assert "its attempts: 1, 2" in done.stderr


def test_a_request_that_never_ended_reads_well(retried):
    shown = run("--db", retried, "show", "s").stdout
    assert "end to end: not known" in shown
    assert "its logs tell no end" in shown
    assert "absent" not in shown
    assert "none told" in shown


def test_lines_are_quoted_masked_while_the_bytes_are_the_same(retried, tmp_path):
    shown = run("--db", retried, "show", "r", "--lines").stdout
    assert '"request_id": "r"' in shown
    assert "secret" not in shown
    assert "[7, 8]" not in shown
    assert "\x1b" not in shown
    log = tmp_path / "log.jsonl"
    log.write_text(log.read_text() + '{"ts": 1790000900, "request_id": "z", "event": "send"}\n')
    assert "line" in api.show(retried, "r", lines=True).lines[0], "it has only grown"
    log.write_text(log.read_text().replace("secret", "SECRET"))
    (told,) = api.show(retried, "r", lines=True).lines
    assert "line" not in told
    assert "--logs FOLDER" in told["why"]


# --- times, marks, files -------------------------------------------------------------------------


def test_a_clock_means_the_only_day_of_the_case(case):
    done = run("--db", case, "latency", "--since", "14:10", "-f", "json")
    whole = run("--db", case, "latency", "--since", "2026-09-17T14:10:00Z", "-f", "json")
    assert done.stdout == whole.stdout
    assert "14:10 is read as 2026-09-17T14:10Z" in done.stderr
    done = run("latency", "--since", "2026-09-17T14:10", "--db", case)
    assert "UTC is 2026-09-17T14:10Z" in done.stderr


def test_a_clock_of_several_days_is_refused(tmp_path):
    db, log = str(tmp_path / "days.duckdb"), tmp_path / "days.jsonl"
    days = (1790000000, 1790200000)
    log.write_text("".join(f'{{"request_id": "{d}", "started_at": {d}}}\n' for d in days))
    api.ingest(db, [str(log)])
    done = run("--db", db, "latency", "--since", "14:10")
    assert done.exit_code == 2
    assert "the case runs from 2026-09-21 to 2026-09-23" in done.stderr
    none = run("--db", str(tmp_path / "none"), "latency", "--since", "14:10")
    assert "names no date" in none.stderr


@deep
def test_marks_outside_the_data_are_warned_of(case):
    args = ("--db", case, "report", "-f", "md", "--mark")
    done = run(*args, "2027-01-01 later")
    assert done.exit_code == 0
    assert "the mark 'later' at 2027-01-01 00:00:00Z lies outside the data" in done.stderr
    assert "outside" not in run(*args, "2026-09-17T14:12:00Z in it").stderr


def test_a_picture_folder_that_is_a_file(case, tmp_path):
    (tmp_path / "file").write_text("x")
    done = run(
        "--db", case, "report", "-o", str(tmp_path / "r.html"), "--png", str(tmp_path / "file")
    )
    assert done.exit_code == 2
    assert "is a file" in done.stderr
    assert not (tmp_path / "r.html").exists()


@pytest.mark.parametrize(("content", "says"), [(b"", "is empty"), (b"hello", "is no DuckDB file")])
def test_what_is_no_case_is_told_plainly(tmp_path, content, says):
    path = tmp_path / "x.duckdb"
    path.write_bytes(content)
    done = run("--db", str(path), "status")
    assert done.exit_code == 2
    assert says in done.stderr
    assert "hint: " in done.stderr
    assert "is a folder" in run("--db", str(tmp_path), "status").stderr


# --- ingest --------------------------------------------------------------------------------------


def test_ingest_tells_of_this_run_only(tmp_path):
    db, first, second = (str(tmp_path / name) for name in ("c.duckdb", "a.jsonl", "b.jsonl"))
    record = '{{"request_id": "{}", "started_at": 1790000000, "e2e_ms": 5}}\n'
    Path(first).write_text(record.format("a") + "broken\n")
    Path(second).write_text(record.format("b"))
    assert "1 problem: records that could not be read" in words_of(run("--db", db, "ingest", first))
    again = words_of(run("--db", db, "ingest", first))
    assert "nothing new, 1 file known" in again
    assert "problem" not in again
    third = words_of(run("--db", db, "ingest", first, second))
    assert "1 file known and unchanged: a.jsonl" in third
    assert "problem:" not in third
    with Path(first).open("a") as file:
        file.write(record.format("c") + "worse\n")
    grown = api.ingest(db, [first])
    assert [row["record"] for row in grown.problems] == [4]


def test_ingest_fails_where_one_file_of_several_does(tmp_path):
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "a.jsonl").write_text('{"request_id": "a", "started_at": 1790000000, "e2e_ms": 5}\n')
    (logs / "odd.txt").write_text("nothing\n")
    args = ("--db", str(tmp_path / "c.duckdb"), "ingest", str(logs))
    assert "1 file not read" in words_of(run(*args))
    (logs / "gone.jsonl").symlink_to("/proc/self/mem")
    done = run(*args)
    assert done.exit_code == 2
    assert "1 of 3 files could not be read (gone.jsonl: " in done.stderr
    assert "1 file known" in done.stdout


# --- over time -----------------------------------------------------------------------------------


def test_timeline_marks_the_incident(case):
    shown = run("--db", case, "timeline", env={"COLUMNS": "80"}).stdout
    assert all(len(line) <= 80 for line in shown.splitlines())
    (marks,) = (line for line in shown.splitlines() if line.startswith("incident  "))
    assert "====" in marks
    for lane in ("Requests started", "Queue wait", "Time to first token", "Failed requests"):
        assert f"\n{lane}\n" in shown
    table = api.over_time(case)
    inside = {row["start_ns"] for row in table.rows if row["incident"]}
    assert 0 < len(inside) < len({row["start_ns"] for row in table.rows})
    for form in ("csv", "json", "md"):
        assert run("--db", case, "timeline", "-f", form).exit_code == 0


def test_sparklines_fit_any_width():
    values_ = tuple(None if i == 3 else float(i) for i in range(60))
    block = Sparks((("lane", (Spark("p50", values_, "59"),)),), 60, (False,) * 59 + (True,))
    for width in (40, 80, 300):
        lines = text.render([block], width=width).splitlines()
        assert all(text.cells(line) <= width for line in lines)
        assert lines[-1].rstrip("59 ").endswith("█")


# --- widths and colours --------------------------------------------------------------------------

WIDE = Grid(
    header=("path", "reader", "records", "first", "sha"),
    rows=(("logs/" + "x" * 60 + ".jsonl", "native_stream", "6,768", "2026-09-17", "ab" * 6),) * 2,
    right=(False, False, True, False, False),
    keep=(False, True, True, False, False),
)


def test_tables_use_the_width_there_is():
    name = WIDE.rows[0][0]
    narrow, wide = (text.render([WIDE], width=width) for width in (80, 160))
    assert name not in narrow
    assert all(text.cells(line) <= 80 for line in narrow.splitlines())
    assert name in wide
    assert max(map(text.cells, wide.splitlines())) > 100


def test_sentences_stay_readable_on_wide_terminals():
    lines = text.render([Words("word " * 200)], width=240).splitlines()
    assert max(map(len, lines)) <= 100


def test_a_name_out_of_all_measure_is_cut():
    long = "n" * 100_000
    for block in (
        Words(f"seen: {long} twice"),
        Grid(("id", "n"), ((long, "1"), ("b", "2")), (False, True), (True, True)),
        Found("critical", long, f"title {long}", ()),
    ):
        assert len(text.render([block], width=80)) < 2_000


@pytest.mark.parametrize(
    ("name", "value", "colour"),
    [("NO_COLOR", "1", False), ("TERM", "dumb", False), ("NO_COLOR", "", True)],
)
def test_when_to_colour(monkeypatch, name, value, colour):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv(name, value)
    assert _console.color() is colour


# --- help and completion -------------------------------------------------------------------------


def test_every_help_has_an_example():
    for name in ("", *cli.list_commands(click.Context(cli))):
        shown = run(*filter(None, (name, "--help"))).stdout
        assert "Example:" in shown, name
    first = run().stdout
    for name in ("verify", "compare", "completion"):
        assert f"analyze {name}" in first


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_one_line_that_works(shell):
    done = run("completion", shell)
    assert done.exit_code == 0
    assert f"_ANALYZE_COMPLETE={shell}_source analyze" in done.stdout
    assert done.stdout.count("\n") == 1
    code = "import sys; sys.argv = ['analyze']; from analyzer.cli import main; main()"
    env = os.environ | {"_ANALYZE_COMPLETE": f"{shell}_source"}
    out = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=env, capture_output=True, text=True, check=False
    )
    assert "analyze" in out.stdout or "bash" in out.stderr.lower()


def test_completion_refuses_other_shells():
    assert run("completion", "tcsh").exit_code == 2
    assert run("completion").exit_code == 2


@pytest.mark.parametrize(
    ("args", "typed", "wanted"),
    [
        (["explain"], "queue.a", "queue.admission-limit"),
        (["verify"], "network.b", "network.buffered"),
        (["formats"], "native", "native_stream"),
        (["ingest", "--reader"], "vllm_l", "vllm_log"),
        (["schema"], "engine_s", "engine_sample"),
        (["schema"], "latency_seg", "latency_segment"),
        (["latency", "--by"], "mod", "model"),
        (["latency", "--by"], "model,ho", "model,hour"),
        ([], "comp", "compare"),
    ],
)
def test_completion_offers(args, typed, wanted):
    complete = ShellComplete(cli, {}, "analyze", "_ANALYZE_COMPLETE")
    offered = [item.value for item in complete.get_completions(args, typed)]
    assert wanted in offered
    assert all(item.startswith(typed) for item in offered)


def test_completion_of_a_list_leaves_out_what_is_taken():
    complete = ShellComplete(cli, {}, "analyze", "_ANALYZE_COMPLETE")
    offered = [item.value for item in complete.get_completions(["latency", "--by"], "model,")]
    assert "model,hour" in offered
    assert "model,model" not in offered


def test_completion_that_fails_offers_nothing(monkeypatch):
    monkeypatch.setattr(api, "rules", lambda: 1 / 0)
    complete = ShellComplete(cli, {}, "analyze", "_ANALYZE_COMPLETE")
    assert complete.get_completions(["explain"], "q") == []

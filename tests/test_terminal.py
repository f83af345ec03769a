"""What a terminal shows: widths, colours, the answers of compare and verify, completion."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

import analyzer
from analyzer import api
from analyzer.cli import _console, cli
from analyzer.contract.types import Table
from analyzer.report import answers, formats, text
from analyzer.report.blocks import Found, Grid, Words

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
    return {
        "metric": metric, "statistic": statistic, "unit": "ns",
        "baseline": None if alone else S, "window": S + change,
        "change": None if alone else change,
        "low": None if few or alone else change - S // 10,
        "high": None if few or alone else change + S // 10,
        "change_ratio": None if alone else change / S, "beyond_noise": beyond,
        "baseline_requests": 9, "window_requests": 9,
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
    assert lines[0].split("  ")[0] == "changed"
    assert [line.split("  ")[0] for line in lines[1:4]] == ["p95 e2e", "mean queue", "p50 ttft"]
    assert "+1.00 s, between 900 ms and 1.10 s (+100 %)" in lines[1]
    assert "(31.0 times)" in lines[2]
    assert "2 metrics did not change beyond noise: decode, network." in shown
    assert "1 metric with too few values to tell: itl." in shown
    assert "1 metric known on one side only: tpot." in shown
    assert lines[-1].startswith("3 of 7 metrics changed beyond noise") or "3 of 7" in shown
    assert "p95 e2e rose from 1.00 s to 2.00 s" in shown
    for form in ("json", "csv"):
        assert formats.render(CHANGES, form).count("decode") == 1, "every row is there"


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ((), "Neither side holds anything"),
        ((change("e2e", "mean", None, few=True),), "Nothing can be said"),
        ((change("e2e", "mean", False),), "Nothing changed beyond noise."),
        ((change("e2e", "mean", True),), "1 of 1 metric has changed beyond noise: mean e2e rose"),
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
        (("met", "cannot say"), "Not known to be fixed: of 2 criteria 1 met, 1 cannot say."),
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
    assert [line.split("  ")[0] for line in plain.splitlines()[1:4]] == [
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


def test_marks_and_share_safe(case, tmp_path):
    marks = ("--mark", "2026-09-17T14:12:00Z later", "--mark", "2026-09-17 the day")
    path = tmp_path / "report.html"
    done = run("--db", case, "report", "-o", str(path), *marks, "--share-safe")
    assert done.exit_code == 0, done.stderr
    page = path.read_text(encoding="utf-8")
    assert "o8-119" not in page
    assert "edge-eu" not in page
    assert "gateway.jsonl" not in page
    told = api.report(case, marks=[analyzer.contract.types.Mark(2, "b"), _mark(1, "a")]).marks
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

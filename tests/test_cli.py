"""The command line over a stand-in api: options, exit codes, envelopes, streams."""

from __future__ import annotations

import importlib
import json
import pkgutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import click
import examples_of_results as ex
import pytest
from click.testing import CliRunner

import analyzer
import analyzer.cli
from analyzer.cli import cli
from analyzer.contract.types import Filters, Findings, Table
from analyzer.errors import AnalyzerError, GateFailed

COMMANDS = [m.name for m in pkgutil.iter_modules(analyzer.cli.__path__) if m.name[0] != "_"]
ROOT = Path(analyzer.__file__).parents[1]


@pytest.fixture
def calls(monkeypatch, tmp_path):
    """What each api function was called with; each gives a hand-made value."""
    seen: dict[str, tuple] = {}

    def stand_in(name, value):
        def call(*args, **kwargs):
            seen[name] = (args, kwargs)
            if isinstance(value, BaseException):
                raise value
            return value

        return call

    written = tmp_path / "incident.html"
    written.write_text("x" * 1500)
    table = Table("analyze.sql", ({"a": 1},))
    answers = {
        "ingest": ex.INGESTED,
        "hold_to": None,
        "status": ex.STATUS,
        "latency": ex.LATENCY,
        "show": ex.VIEW,
        "findings": ex.FINDINGS,
        "explain": ex.EXPLAINED,
        "report": ex.REPORT,
        "write_report": written,
        "sql": table,
        "formats": Table("analyze.formats", ({"name": "native_stream"},)),
        "schema": Table("analyze.schema", ({"table": "request", "column": "record"},)),
    }
    api = SimpleNamespace(**{name: stand_in(name, value) for name, value in answers.items()})
    api.fail = lambda name, error: setattr(api, name, stand_in(name, error))
    api.give = lambda name, value: setattr(api, name, stand_in(name, value))
    api.seen = seen
    monkeypatch.setitem(sys.modules, "analyzer.api", api)
    monkeypatch.setattr(analyzer, "api", api, raising=False)
    return api


def run(*args, **kwargs):
    return CliRunner().invoke(cli, args, **kwargs)


def test_first_screen_says_what_to_type(calls):
    done = run()
    assert done.exit_code == 0
    for name in ("ingest", "latency", "findings", "explain", "report"):
        assert f"analyze {name}" in done.stdout
    assert done.stderr == ""
    assert all(len(line) <= 80 for line in done.stdout.split("\n"))


def test_every_command_has_help_with_an_example():
    assert set(cli.list_commands(click.Context(cli))) == {n.replace("_", "-") for n in COMMANDS}
    for name in COMMANDS:
        done = run(name, "--help")
        assert done.exit_code == 0
        assert f"Example:\n    analyze {name}" in done.stdout
        assert importlib.import_module(f"analyzer.cli.{name}").command.name == name


def test_version_and_unknown_command():
    assert analyzer.__version__ in run("--version").stdout
    done = run("nonsense")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "No such command" in done.stderr


@pytest.mark.parametrize(
    ("args", "db"),
    [
        (("status",), "analyze.duckdb"),
        (("--db", "a.duckdb", "status"), "a.duckdb"),
        (("status", "--db", "b.duckdb"), "b.duckdb"),
        (("--db", "a.duckdb", "status", "--db", "b.duckdb"), "b.duckdb"),
    ],
)
def test_db_before_or_after_the_command(calls, args, db):
    assert run(*args).exit_code == 0
    assert calls.seen["status"][0][0] == db


def test_filters_reach_the_api(calls):
    done = run(
        *("latency", "--by", "model, hour", "--slowest", "3", "--slo", "ttft<=2s"),
        *("--since", "2026-09-17", "--until", "2026-09-17T16:10:00.5+02:00"),
        *("--model", "m", "--route", "r", "--session", "s"),
    )
    assert done.exit_code == 0, done.stderr
    midnight = ex.START - (14 * 3600 + 600) * ex.S
    filters = Filters(midnight, ex.START + ex.S // 2, "m", "r", "s")
    assert calls.seen["latency"] == (
        ("analyze.duckdb", filters),
        {"by": ("model", "hour"), "slowest": 3, "slo": ("ttft<=2s",), "law": False},
    )


@pytest.mark.parametrize("text", ["yesterday", "2026-09-17T14:10:00", "2026-13-01", "12"])
def test_times_that_are_none_are_refused(calls, text):
    done = run("status", "--since", text)
    assert done.exit_code == 2
    assert "is no time" in done.stderr


def test_strict_shows_what_was_read_before_it_fails(calls):
    calls.fail("hold_to", GateFailed("--strict: some records could not be read"))
    done = run("ingest", "logs", "--strict")
    assert done.exit_code == 1
    assert "Next: analyze findings" in done.stdout
    assert "--strict" in done.stderr


def test_ingest_passes_its_options(calls):
    done = run(
        *("ingest", "-", "logs/*.gz", "--reader", "r", "--deployment", "d.json"),
        *("--prices", "p.toml", "--zone", "Europe/Berlin", "--year", "2026", "--strict"),
    )
    assert done.exit_code == 0
    args, named = calls.seen["ingest"]
    assert args == ("analyze.duckdb", ("-", "logs/*.gz"))
    assert named == {
        "reader": "r",
        "mapping": None,
        "deployment": "d.json",
        "prices": "p.toml",
        "zone": "Europe/Berlin",
        "year": 2026,
        "progress": None,
    }
    assert calls.seen["hold_to"] == ((ex.INGESTED,), {})
    assert "Next: analyze findings" in done.stdout
    assert run("ingest").exit_code == 2


@pytest.mark.parametrize(
    ("args", "kind"),
    [
        (("ingest", "x"), "analyze.ingest"),
        (("status",), "analyze.status"),
        (("latency",), "analyze.latency"),
        (("show", "req-0412"), "analyze.show"),
        (("findings",), "analyze.findings"),
        (("explain", "queue.admission-limit"), "analyze.explain"),
        (("report",), "analyze.report"),
        (("sql", "SELECT 1 AS a"), "analyze.sql"),
        (("formats",), "analyze.formats"),
        (("schema", "request"), "analyze.schema"),
    ],
)
def test_every_command_prints_every_format(calls, args, kind):
    told = run(*args, "-f", "json")
    assert (told.exit_code, told.stderr) == (0, "")
    assert json.loads(told.stdout)["kind"] == kind
    assert json.loads(told.stdout)["version"] == 1
    for form in ("table", "csv", "md"):
        done = run(*args, "-f", form)
        assert (done.exit_code, done.stderr) == (0, "")
        assert done.stdout
    assert run(*args, "-f", "xml").exit_code == 2


@pytest.mark.parametrize(
    ("gate", "found", "code"),
    [
        (None, ex.FINDINGS, 0),
        ("critical", ex.FINDINGS, 1),
        ("warning", ex.FINDINGS, 1),
        ("critical", Findings(found=(ex.CACHE,)), 0),
        ("warning", Findings(found=(ex.CACHE,)), 1),
        ("warning", Findings(found=(ex.NOTE,)), 0),
        ("warning", Findings(cannot_say=ex.FINDINGS.cannot_say), 0),
    ],
)
def test_fail_on(calls, gate, found, code):
    calls.give("findings", found)
    done = run("findings", *(("--fail-on", gate) if gate else ()))
    assert done.exit_code == code
    assert "cannot say" in done.stdout
    assert done.stderr.startswith("error: --fail-on") == (code == 1)


def test_report_overwrites_its_own_path_only(calls):
    done = run("report", "--title", "T")
    assert done.exit_code == 0
    assert "Wrote" in done.stdout
    assert "1.50 kB" in done.stdout
    args, named = calls.seen["write_report"]
    assert args == ("analyze.duckdb", None)
    assert named == {
        "filters": Filters(),
        "title": "T",
        "marks": (),
        "share_safe": False,
        "slo": (),
        "png": None,
        "force": False,
    }
    run("report", "-o", "mine.html")
    assert calls.seen["write_report"][0][1] == "mine.html"
    assert calls.seen["write_report"][1]["force"] is False
    run("report", "-o", "mine.html", "--force")
    assert calls.seen["write_report"][1]["force"] is True
    assert run("report", "-o", "mine.html", "-f", "md").exit_code == 2


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (AnalyzerError("no case\x1b[2J here", "analyze ingest"), 2, "error: no case here\nhint: a"),
        (GateFailed("3 problems"), 1, "error: 3 problems\n"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (FileNotFoundError(2, "No such file", "x.log"), 2, "error: x.log: No such file"),
    ],
)
def test_errors_and_their_exit_codes(calls, error, code, words):
    calls.fail("status", error)
    done = run("status")
    assert (done.exit_code, done.stdout) == (code, "")
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_a_bug_asks_for_its_report(calls, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    calls.fail("status", ZeroDivisionError("boom"))
    done = run("status")
    assert (done.exit_code, done.stdout) == (3, "")
    assert "bug in analyze (ZeroDivisionError: boom)" in done.stderr
    (saved,) = tmp_path.glob("analyze-bug-*.txt")
    assert "Traceback" in saved.read_text()
    assert str(saved) in done.stderr


def python(code, **kwargs):
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        **kwargs,
    )


@pytest.mark.parametrize("args", [[], ["--help"], ["findings", "--help"], ["--version"]])
def test_help_imports_nothing_heavy(args):
    done = python(
        "import sys\nfrom analyzer.cli import cli\n"
        f"try:\n    cli.main({args!r})\nexcept SystemExit as end:\n    assert not end.code\n"
        "heavy = {'polars', 'duckdb', 'altair', 'pyarrow', 'vl_convert', 'jinja2', 'numpy'}\n"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)\n"
    )
    assert (done.returncode, done.stderr) == (0, "[]\n")


def test_a_reader_that_goes_away_is_no_error():
    code = "from analyzer.cli import _console\nfor _ in range(9): _console.out('x' * 99999)"
    gone = subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    gone.stdout.read(1)
    gone.stdout.close()
    assert gone.stderr.read() == b""
    gone.stderr.close()
    assert gone.wait(timeout=20) == 0


def test_terminals_without_unicode_get_plain_bars():
    code = (
        "import sys; sys.path.insert(0, 'tests')\nimport examples_of_results as ex\n"
        "from analyzer.cli._options import show\nshow(ex.VIEW, 'table')"
    )
    done = python(code, env={"PYTHONIOENCODING": "ascii", "PATH": ""})
    assert done.returncode == 0, done.stderr
    assert "####" in done.stdout


def test_progress_only_for_a_terminal(monkeypatch, capsys):
    from analyzer.cli import _console

    assert _console.progress() is None
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    line = _console.progress()
    line("logs/\x1b[31ma.log", 500, 1000)
    _console.end_progress()
    told = capsys.readouterr()
    assert told.out == ""
    assert "50 %  500 B of 1.00 kB  logs/a.log" in told.err


def test_no_color(monkeypatch):
    from analyzer.cli import _console

    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert _console.color()
    monkeypatch.setenv("NO_COLOR", "1")
    assert not _console.color()

"""What a new user runs into in the first hour: typos, units, empty folders, thin or odd cases."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest
from browser import Browser, chromium
from click.testing import CliRunner
from deep import deep
from test_fast_paths import both_ways, told

import analyzer
from analyzer.cli import cli
from analyzer.contract.types import Filters, Table
from analyzer.errors import AnalyzerError
from analyzer.report import _cut, answers, formats
from analyzer.store.case import open_case

START = 1_790_000_000
DAY = 86_400
INCIDENT = "sample_traces/incident"
BEFORE = "2026-09-17T14:05:00Z..2026-09-17T14:10:00Z"
AFTER = "2026-09-17T14:10:00Z..2026-09-17T14:16:00Z"


def run(*args, **kwargs):
    return CliRunner().invoke(cli, tuple(map(str, args)), **kwargs)


def words(done):
    return " ".join(done.stdout.split())


def record(number, **more):
    return {
        "request_id": f"r{number}", "started_at": START + number, "e2e_ms": 1400, "status": 200,
    } | more  # fmt: skip


def write(path, values):
    path.write_text("".join(json.dumps(one) + "\n" for one in values))
    return path


@pytest.fixture
def db(tmp_path):
    return str(tmp_path / "case.duckdb")


@pytest.fixture(scope="module")
def incident(tmp_path_factory, request):
    path = str(tmp_path_factory.mktemp("incident") / "case.duckdb")
    analyzer.ingest(path, [str(request.config.rootpath / INCIDENT)])
    return path


# -- what is read, and what is not ----------------------------------------------------------------


def table_of(tmp_path, status="OK", when="17.09.2026 14:00:05"):
    rows = [f"{when};{number};260;{status}" for number in range(3)]
    path = tmp_path / "requests.csv"
    path.write_text("\n".join(["Wann;Nr;First Byte;Status", *rows]) + "\n")
    return path


def mapping_of(tmp_path, when='format = "%d.%m.%Y %H:%M:%S"'):
    path = tmp_path / "mapping.toml"
    path.write_text(
        f"""zone = "Europe/Berlin"
[columns]
Nr = "request_id"
Wann = {{ to = "start_ns", {when} }}
"First Byte" = {{ to = "ttft_ns", unit = "ms" }}
Status = "status"
[constants]
vantage = "client"
"""
    )
    return path


def test_a_row_with_one_bad_cell_is_read_in_part_and_counted_as_that(tmp_path, db):
    done = run("--db", db, "ingest", table_of(tmp_path), "--mapping", mapping_of(tmp_path))
    assert done.exit_code == 0
    header, row = done.stdout.splitlines()[:2]
    assert header.split() == ["file", "reader", "records", "used", "in", "part", "ignored", "not",
                              "read"]  # fmt: skip
    assert row.split()[2:] == ["4", "rows", "0", "3", "1", "0"], "the counts add up"
    assert "3 problems: records read in part; what is wrong in them is left out" in words(done)
    (one, *_) = analyzer.sql(db, "SELECT start_ns, ttft_ns, status FROM request").rows
    assert one == {"start_ns": 1789646405 * 10**9, "ttft_ns": 260_000_000, "status": None}


def test_times_written_in_a_form_of_their_own(tmp_path, db):
    for number, (form, text, second) in enumerate(
        (
            ("%d.%m.%Y %H:%M:%S", "17.09.2026 14:00:05", "1789646405"),
            ("%d.%m.%Y %H:%M:%S.%f", "17.09.2026 14:00:05.250", "1789646405.25"),
            ("%d.%m.%Y %H:%M:%S,%f", "17.09.2026 14:00:05,25", "1789646405.25"),
            ("%m/%d/%y %I:%M %p", "09/17/26 02:00 PM", "1789646400"),
            ("%d/%b/%Y:%H:%M:%S %z", "17/Sep/2026:14:00:05 +0000", "1789653605"),
        )
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        plan = mapping_of(folder, f'format = "{form}"')
        path = str(folder / "case.duckdb")
        analyzer.ingest(path, [str(table_of(folder, 200, text))], mapping=str(plan))
        (row, *_) = analyzer.sql(path, "SELECT start_ns FROM request").rows
        assert row["start_ns"] == int(Decimal(second) * 10**9), form


@pytest.mark.parametrize(
    ("when", "reasons"),
    [
        ('unit = "foo"', ("column 'Wann': unit 'foo' is none of s, ms, us, ns, epoch_s",)),
        ('format = "%H:%M"', ("column 'Wann': '%H:%M' is no format that gives date",)),
        ('format = "%d.%m.%Y %H:%M", unit = "ms"', ("takes the place of a unit",)),
    ],
)
def test_a_mapping_that_is_wrong_names_column_and_choices(tmp_path, db, when, reasons):
    with pytest.raises(AnalyzerError) as caught:
        analyzer.ingest(db, [str(table_of(tmp_path))], mapping=str(mapping_of(tmp_path, when)))
    for reason in reasons:
        assert reason in caught.value.message
    assert "analyze formats mapping" in caught.value.hint


def test_a_german_date_gets_the_way_out(tmp_path, db):
    plan = mapping_of(tmp_path, 'unit = "rfc3339"')
    result = analyzer.ingest(db, [str(table_of(tmp_path, 200))], mapping=str(plan))
    assert "format = '%d.%m.%Y %H:%M:%S' in place of its unit" in result.problems[0]["reason"]


def test_formats_mapping_lists_units_and_columns():
    told_of = {row["field"]: row["value"] for row in analyzer.formats("mapping").rows}
    assert told_of["units of durations"] == "s, ms, us, ns"
    assert "epoch_ms" in told_of["units of times"]
    assert "first_token_ns" in told_of["columns to map to"]


@pytest.mark.parametrize("many", [3, 400])
def test_a_typo_in_a_native_record_is_noted_once(tmp_path, db, many):
    path = write(tmp_path / "log.jsonl", [record(i, tttf_ms=400, team="x") for i in range(many)])
    result = analyzer.ingest(db, [str(path)])
    (note,) = result.assumed
    assert note[1] == "unknown fields, not used: team, tttf_ms (did you mean ttft_ms?)"
    both_ways("request_records", path)
    *_, (_, _, _, assumed) = told("request_records", path)[1]
    assert assumed == (note[1],)


def test_unknown_keys_of_stream_events_are_noted_and_a_usage_on_a_chunk_too(tmp_path, db):
    lines = [{"ts": START, "request_id": "a", "event": "send", "modell": "m"}]
    for i in range(60):
        chunk = {"ts": START + 1 + i, "request_id": "a", "event": "chunk", "char": 3, "model": "m"}
        lines.append(chunk | ({"usage": {"output_tokens": 3}} if i == 40 else {}))
    path = write(tmp_path / "log.jsonl", lines)
    ((_, note),) = analyzer.ingest(db, [str(path)]).assumed
    assert note == (
        "unknown fields, not used: char (did you mean chars?), modell (did you mean model?), "
        "usage (no field of the event it stands on)"
    )
    both_ways("native_stream", path)


def test_keys_that_may_be_text_are_not_shown(tmp_path, db):
    odd = {f"k{i}": 1 for i in range(30)} | {"my prompt, in full": 1}
    path = write(tmp_path / "log.jsonl", [record(0, **odd)])
    ((_, note),) = analyzer.ingest(db, [str(path)]).assumed
    assert note.endswith("others")
    assert "prompt" not in note
    assert note.count(",") < 12


def test_milliseconds_are_named_and_nothing_is_suggested_over_them(tmp_path, db):
    events = [
        {"ts": (START + i) * 1000, "request_id": "a", "event": name}
        for i, name in enumerate(("send", "chunk", "done"))
    ]
    path = write(tmp_path / "ms.jsonl", events)
    write(tmp_path / "good.jsonl", [record(0)])
    run("--db", db, "ingest", tmp_path / "good.jsonl")
    done = run("--db", db, "ingest", path, env={"COLUMNS": "200"})
    assert done.exit_code == 2
    assert "it looks like milliseconds, divide by 1,000" in words(done)
    assert "ms.jsonl: nothing could be read, each of its records is a problem" in words(done)
    assert "findings" not in done.stdout
    assert "1 of 1 file could not be read" in done.stderr


def test_a_value_that_cannot_be_is_named_as_the_log_spells_it(tmp_path, db):
    path = write(tmp_path / "log.jsonl", [record(0), record(1, ttft_ms=-1)])
    ((problem),) = analyzer.ingest(db, [str(path)]).problems
    assert problem["reason"].startswith("'ttft_ms': beyond any request")
    assert '"ttft_ms":' in problem["excerpt"]


def test_an_empty_folder_is_named(tmp_path, db):
    (tmp_path / "logs").mkdir()
    done = run("--db", db, "ingest", tmp_path / "logs")
    assert done.exit_code == 2
    assert f"no file to read in {tmp_path / 'logs'}" in done.stderr


def test_files_of_no_known_format_say_what_would_help(tmp_path, db):
    write(tmp_path / "good.jsonl", [record(0)])
    (tmp_path / "stock.csv").write_text("day, shelf, crates\n2026/09/17, 0, 7\n")
    (tmp_path / "conf.yaml").write_text("# a, b, c, d\nmodel: x\n")
    shown = words(run("--db", db, "ingest", tmp_path))
    assert "stock.csv: closest is mapping: a CSV of 3 columns: where its rows are requests" in shown
    assert "conf.yaml: no reader knows anything like it" in shown


@pytest.mark.parametrize("width", [12, 16, 24, 40])
def test_names_that_are_cut_stay_apart(width):
    same_ends = [f"heyram74_vllm-rtx4090-llama-8b-{i}-concurrency-64_server.log" for i in "abc"]
    middle = [f"{'x' * 30}{i}{'y' * 30}" for i in range(12)]
    for names in (same_ends, middle, ["short", *same_ends]):
        lines = _cut.apart(names, width)
        assert len({tuple(one) for one in lines}) == len(names)
        assert all(_cut.cells(line) <= width for one in lines for line in one)


def test_three_alike_files_are_told_apart_in_the_list(tmp_path, db):
    for letter in "abc":
        name = f"heyram74_vllm-benchmark-rtx4090-{letter}-concurrency-64_of_the_server.log.jsonl"
        write(tmp_path / name, [record(0, request_id=letter)])
    for args in (("ingest", tmp_path), ("status",)):
        lines = [one for one in run("--db", db, *args).stdout.splitlines() if "request_rec" in one]
        assert len({line.split()[0] for line in lines}) == 3


# -- asking ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "message", "hint"),
    [
        (("findings", "--route", "edge"), "none has the route 'edge'", "did you mean edge-eu?"),
        (("latency", "--model", "zzz"), "none has the model 'zzz'", "models of the case: orion-8b"),
        (("latency", "--session", "s0"), "none has the session 's0'", "did you mean s01"),
        (("show", "o8-07"), "no request 'o8-07'", "did you mean o8-070 or o8-071 or o8-072?"),
        (("show", "o8070"), "no request 'o8070'", "did you mean o8-070"),
        (("explain", "quue"), "no rule or family 'quue'", "did you mean queue?"),
        (("verify", "queu", "x"), "no rule or path 'queu'", "did you mean queue?"),
        (("sql", "select 1; select 2"), "several statements", "one by one"),
        (("report", "-o", "x.pdf"), "x.pdf: it is written as HTML", "ends in .html"),
        (("compare", "--baseline", BEFORE, "--window", AFTER, "-o", "x.png"), "x.png", ".html"),
        (
            ("compare", "--baseline", BEFORE, "--window", BEFORE),
            "overlap",
            "compared with themselves",
        ),
    ],
)
def test_a_slip_is_named_with_what_was_meant(incident, args, message, hint):
    done = run("--db", incident, *args)
    assert done.exit_code == 2
    assert message in done.stderr
    assert hint in done.stderr


def test_windows_that_touch_do_not_overlap(incident):
    assert run("--db", incident, "compare", "--baseline", BEFORE, "--window", AFTER).exit_code == 0


def test_filters_that_fit_alone_and_not_together_are_listed(tmp_path, db):
    apart = [record(0, model="m", route="a"), record(1, model="n", route="b")]
    analyzer.ingest(db, [str(write(tmp_path / "log.jsonl", apart))])
    with pytest.raises(AnalyzerError, match="together: model m and route b") as caught:
        analyzer.findings(db, Filters(model="m", route="b"))
    assert "the case: " in caught.value.hint


def test_a_family_can_be_verified(incident):
    done = run("--db", incident, "verify", "queue", "--window", BEFORE)
    assert done.exit_code in (0, 1)
    assert "queue.admission-limit" in done.stdout
    assert "queue.saturation" not in done.stdout, "only those that fire"


def test_what_never_fired_is_not_called_fixed(incident, request):
    for asked in (("--window", AFTER), (request.config.rootpath / INCIDENT,)):
        done = run("--db", incident, "verify", "network.slow", *asked)
        assert "network.slow was not found in this case to begin with" in words(done)
        assert "Fixed" not in done.stdout
    assert "These logs are in this case already" in words(done)
    assert "Next" not in done.stdout


def test_a_later_capture_says_why_to_ingest_it(incident, tmp_path):
    path = write(tmp_path / "later.jsonl", [record(i) for i in range(30)])
    done = run("--db", incident, "verify", "errors.rate", path)
    assert "Next, to look into these logs in a case of their own: analyze --db later.duckdb" in (
        words(done)
    )


def test_when_a_request_failed_and_what_is_not_known_of_its_prompt(tmp_path, db):
    events = [
        {"ts": START, "request_id": "a-1", "event": "send"},
        {"ts": START + 1, "request_id": "a-1", "event": "chunk", "chars": 5},
        {"ts": START + 2, "request_id": "a-1", "event": "done",
         "usage": {"prompt_tokens": 640, "completion_tokens": 9}},
        {"ts": START + 3, "request_id": "a-2", "event": "error", "error": "timeout"},
    ]  # fmt: skip
    analyzer.ingest(db, [str(write(tmp_path / "log.jsonl", events))])
    assert "it failed at 2026-09-21 14:13:23Z" in words(run("--db", db, "show", "a-2"))
    shown = words(run("--db", db, "show", "a-1"))
    assert "input_tokens 640; what of them was cached is not told" in shown
    assert "fresh" not in shown
    told_of = json.loads(run("--db", db, "show", "a-1", "-f", "json").stdout)["tokens"]
    assert told_of["input_tokens"] == 640


# -- thin, even and scattered cases ---------------------------------------------------------------


def test_ten_requests_are_too_few_to_look_for_a_window(tmp_path, db):
    analyzer.ingest(db, [str(write(tmp_path / "log.jsonl", [record(i) for i in range(10)]))])
    for command in ("timeline", "findings"):
        shown = words(run("--db", db, command)).lower()
        assert "too few requests (10 requests) to look for a window" in shown
        assert "no window stands out" not in shown


def test_rounding_is_no_change(tmp_path):
    for name, extra in (("a", 0), ("b", 1e-3)):
        many = [record(i, e2e_ms=1400 + extra) for i in range(40)]
        path = write(tmp_path / f"{name}.jsonl", many)
        analyzer.ingest(str(tmp_path / f"{name}.duckdb"), [str(path)])
    table = analyzer.compare(
        str(tmp_path / "b.duckdb"), Filters(), Filters(), baseline_db=str(tmp_path / "a.duckdb")
    )
    rows = [row for row in table.rows if row["metric"] == "e2e"]
    assert rows[0]["baseline"] != rows[0]["window"]
    assert {(row["change"], row["low"], row["high"], row["beyond_noise"]) for row in rows} == {
        (0.0, 0.0, 0.0, False)
    }


def test_compare_leads_with_what_changed_and_ends_with_errors_that_did_not(incident):
    said = answers.compared(analyzer.compare(incident, *map(window_of, (BEFORE, AFTER))))
    assert said.startswith("4 of 14 metrics changed beyond noise, biggest first: mean queue rose")
    assert said.endswith("after: no change beyond noise.")


def window_of(text):
    ends = [analyzer_time(one) for one in text.split("..")]
    return Filters(since_ns=ends[0], until_ns=ends[1])


def analyzer_time(text):
    from analyzer.cli._options import Moment

    return Moment().convert(text, None, None)


def scattered(tmp_path, db, days=(0, 80, 159)):
    many = [record(day * DAY + i * 30, request_id=f"{day}-{i}") for day in days for i in range(40)]
    analyzer.ingest(db, [str(write(tmp_path / "log.jsonl", many))])


def test_runs_far_apart_are_named_each_with_its_filters(tmp_path, db):
    scattered(tmp_path, db)
    shown = words(run("--db", db, "timeline"))
    assert "The case holds 3 runs that lie far apart" in shown
    first = "--since 2026-09-21T14:13:20Z --until 2026-09-21T14:32:52Z"
    assert f"{first} (40 requests)" in shown
    assert "3 runs that lie far apart" in words(run("--db", db, "findings"))
    alone = run("--db", db, "timeline", *first.split())
    assert "far apart" not in alone.stdout
    assert "40 requests" not in alone.stdout, "its axis has bins of its own"
    out = tmp_path / "r.html"
    assert run("--db", db, "report", "-o", out).exit_code == 0
    page = out.read_text()
    assert "<h1>Report</h1>" in page, "no incident, no incident report"
    assert page.count(first) >= 1


@deep
def test_pauses_within_one_run_are_no_runs(tmp_path, db, incident):
    scattered(tmp_path, db, days=(0, 1, 2, 3, 11))
    shown = words(run("--db", db, "timeline"))
    assert "5 runs" in shown
    assert "far apart" not in run("--db", incident, "timeline").stdout
    assert run("--db", incident, "report", "-f", "md").stdout.startswith("# Incident report\n")


# -- pages ----------------------------------------------------------------------------------------


def test_the_page_of_a_comparison_names_each_column_once(incident, tmp_path):
    out = tmp_path / "changes.html"
    done = run("--db", incident, "compare", "--baseline", BEFORE, "--window", AFTER, "-o", out)
    assert done.exit_code == 0
    page = out.read_text().split('id="all"')[1].split("</section>")[0]
    heads = [part.split("<")[0] for part in page.split('<th scope="col"')[1:]]
    assert len({part.partition(">")[2] for part in heads}) == len(heads)
    assert "x 705" in page
    assert "70,397" not in page
    assert "which take 20 values (5 minutes for requests per minute)" in words(done)


@pytest.mark.skipif(chromium() is None, reason="no chromium on this machine")
@pytest.mark.parametrize("width", [390, pytest.param(1440, marks=deep)])
def test_no_table_of_a_page_is_cut(incident, tmp_path, width):
    pages = {
        "changes.html": ("compare", "--baseline", BEFORE, "--window", AFTER),
        "fixed.html": ("verify", "--window", BEFORE),
    }
    with Browser() as browser:
        for name, args in pages.items():
            run("--db", incident, *args, "-o", tmp_path / name)
            browser.open(tmp_path / name, width)
            cut = (
                "[...document.querySelectorAll('.scroll')].map(e => e.scrollWidth - e.clientWidth)"
            )
            assert set(browser.value(cut)) == {0}
            assert browser.value("document.documentElement.scrollWidth") <= width


# -- what is written about it ---------------------------------------------------------------------


def test_no_command_is_promised_that_does_not_exist(request):
    root = request.config.rootpath
    assert "`export`" not in (root / "schemas" / "README.md").read_text()
    assert "explain queue.admission-limit" not in (root / "Makefile").read_text()


def test_a_case_of_one_bad_file_still_opens(tmp_path, db):
    path = write(tmp_path / "log.jsonl", [record(0, ttft_ms=-1)])
    analyzer.ingest(db, [str(path)])
    case = open_case(db)
    try:
        assert case.run("SELECT records, used, problems FROM source") == [(1, 0, 1)]
    finally:
        case.close()


def test_verify_in_a_sentence_for_what_was_never_found():
    row = {"rule": "a.b", "outcome": "met", "metric": "x", "value": 1, "op": "<=", "target": 2,
           "unit": "", "when": "never", "why": ""}  # fmt: skip
    table = Table("analyze.verify", (row,))
    assert answers.verified(table).startswith("The criterion is met, but a.b was not found")
    assert "not found" in formats.render(table, "table")

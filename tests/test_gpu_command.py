"""``analyze gpu``: small traces made by hand, on a terminal, as JSON and page, and written back."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from cases._traces import ALL_REDUCE, BASE_NS, COPY, GEMM, NORM, Trace, eager, replay
from click.testing import CliRunner
from deep import unless
from helpers import case_of, engine_of

import analyzer
from analyzer import api
from analyzer.cli import cli
from analyzer.contract.outputs import OUTPUTS
from analyzer.contract.types import Table
from analyzer.errors import AnalyzerError
from analyzer.report.gpu import classes

EVIL = 'x"}]}\\<script>alert(1)</script>\x1b[31m\u202e,{"ph":"X","cat":"kernel"'
ROW = (
    "rank", "device", "stream", "kind", "name", "start_ns", "dur_ns", "correlation", "graph_id",
    "graph_node", "pid", "tid", "external_id", "bytes", "grid_blocks", "block_threads", "clock",
    "collective", "collective_elements", "collective_dtype", "collective_group",
    "collective_ranks",
)  # fmt: skip


def case(tmp_path, *traces):
    logs = tmp_path / "logs"
    logs.mkdir(exist_ok=True)
    for trace in traces:
        trace.write(logs)
    return case_of(logs, tmp_path / "case.duckdb")


def run(db, *args):
    return CliRunner().invoke(cli, ("--db", db, "gpu", *args), env={"COLUMNS": "80"})


def told(db, *args):
    out = run(db, *args, "-f", "json")
    assert out.exit_code == 0, out.output
    return json.loads(out.output)


def launch_bound(rank=0, **about):
    """Ten decode steps of 1,000 us: ten kernels of 30 us, each launched every 100 us."""
    trace = Trace(rank, **about)
    for k in range(10):
        at = 1_000.0 + 1_000 * k
        trace.annotation("execute_context_0(0)_generation_4(4)", at, 990)
        eager(trace, at + 5, [(GEMM, 30.0)] * 6 + [(NORM, 30.0)] * 4, every=100)
    return trace


def without_kernels(rank=0, recorded=2, steps=40):
    """Forty replays, and all but two without their kernels."""
    trace = Trace(rank)
    for k in range(steps):
        at = 1_000.0 + 1_000 * k
        trace.annotation(f"step_{k}", at, 900)
        replay(trace, at + 5, [(GEMM, 40.0)] * 20 if k < recorded else [], lag=10)
    return trace


def test_device_time_adds_up(tmp_path):
    got = told(case(tmp_path, launch_bound()))
    (device,) = got["rows"]
    # From the first kernel (1,013 us) to the last one's end (10,000 + 5 + 908 + 30 us).
    assert device["span_ns"] == 9_930_000
    assert device["busy_ns"] == 100 * 30_000
    assert device["idle_ns"] == 9_930_000 - 3_000_000 == device["launch_gap_ns"]
    assert [device[f"{one}_gap_ns"] for one in ("host", "device", "unknown")] == [0, 0, 0]
    assert device["longest_gap_ns"] == 70_000
    assert device["why"] is None
    classes = {row["class"]: row for row in got["classes"]}
    assert (classes["gemm_dense"]["busy_ns"], classes["gemm_dense"]["events"]) == (1_800_000, 60)
    assert classes["norm"]["share_ratio"] == pytest.approx(0.4)
    (phase,) = got["phases"]
    assert (phase["phase"], phase["steps"], phase["judged"]) == ("decode", 10, 9)
    assert (phase["step_ns"], phase["busy_ns"], phase["launch_gap_ns"]) == (
        1_000_000, 300_000, 700_000,
    )  # fmt: skip
    assert (phase["batch"], phase["launches"], phase["token_ns"]) == (4, 10, 1_000_000)
    assert got["trust"][0]["can_idle"] is True
    assert got["notes"][0].startswith("The trace can be trusted with idle time: 100 of 100")


def test_without_coverage_no_idle_number_is_told(tmp_path):
    db = case(tmp_path, without_kernels())
    got = told(db)
    assert got["notes"][0].startswith("Idle time cannot be said: 2 of 40 graph launches")
    assert any("capture again" in note for note in got["notes"])
    rows = [*got["rows"], *got["phases"], *got["ranks"], *told(db, "--steps", "--top", "0")["rows"]]
    idle = [key for row in rows for key in row if key == "idle_ns" or key.endswith("_gap_ns")]
    assert len(idle) > 100
    assert all(row[key] is None for row in rows for key in row if key in set(idle))
    assert got["rows"][0]["busy_ns"] == 2 * 20 * 40_000
    assert got["rows"][0]["busy_ratio"] is None
    screen = run(db).output
    assert screen.startswith("Idle time cannot be said")
    assert "cannot say" in screen
    assert "%" not in next(line for line in screen.splitlines() if line.startswith("rank 0"))


def test_overlapping_streams_are_counted_once(tmp_path):
    trace = launch_bound()
    # Beside the first kernels a copy, and a collective that half hides behind a kernel.
    trace.kernel(COPY, 1_013, 20, 7_001, stream=20)
    trace.kernel(ALL_REDUCE, 1_128, 30, 7_002, stream=21)
    (device,) = told(case(tmp_path, trace))["rows"]
    assert device["busy_ns"] == 3_000_000 + 15_000
    assert device["overlap_ns"] == 20_000 + 15_000
    assert device["busy_ns"] + device["idle_ns"] == device["span_ns"]
    assert device["streams"] == 3


def test_a_terminal_of_eighty_columns_holds_it(tmp_path):
    two = [launch_bound(rank, world=2) for rank in (0, 1)]
    for trace in two:
        for k in range(10):
            trace.kernel(ALL_REDUCE, 1_950 + 1_000 * k + 5 * trace.rank, 40 - 5 * trace.rank,
                         trace.launch(1_940 + 1_000 * k))  # fmt: skip
    db = case(tmp_path, *two)
    for args in ((), ("--steps",), ("--classes",), ("--ranks",), ("--trust",)):
        out = run(db, *args)
        assert out.exit_code == 0, out.output
        assert max(map(len, out.output.splitlines())) <= 80, args
        assert len(out.output.splitlines()) < 50
    assert "rank 1" in run(db).output
    assert "The longest 3 of 20 steps" in run(db, "--steps", "--top", "3").output
    assert len(told(db, "--steps", "--top", "3")["rows"]) == 3


def test_one_table_at_a_time(tmp_path):
    db = case(tmp_path, launch_bound())
    out = run(db, "--steps", "--classes", "--trust")
    assert out.exit_code == 2
    assert "--steps, --classes, --trust: give one" in out.output


def test_a_name_that_was_cut_is_shown_by_what_it_begins_with():
    whole = "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, Mean<float>>>(Op)"
    row = {
        "class": "norm",
        "busy_ns": 1,
        "share_ratio": 1,
        "events": 1,
        "names": 1,
        "longest_ns": 1,
    }
    for name in (f"{whole[:40]}\u2026", f"{whole[:60]}\u2026", whole):
        drawn = classes(Table("analyze.gpu.classes", (row | {"kernel": name},)))
        assert drawn.rows[0][-1] == "at::native::reduce_kernel"


def test_rows_are_as_published(tmp_path):
    db = case(tmp_path, launch_bound())
    for name in ("steps", "classes", "ranks", "trust"):
        for row in api.gpu(db, table=name).rows:
            assert list(row) == OUTPUTS[f"analyze.gpu.{name}"].names
    whole = api.gpu(db)
    for table in (whole.idle, whole.phases):
        assert all(list(row) == OUTPUTS[table.kind].names for row in table.rows)
    out = api.write_gpu_window(db, tmp_path / "w.json", ("offset", 0, 10**9))
    assert list(out.rows[0]) == OUTPUTS[out.kind].names
    assert run(db, "-f", "csv").output.startswith("rank,device,span_ns")
    assert run(db, "--trust", "-f", "md").exit_code == 0


# --- a window written back -----------------------------------------------------------------------


def rows_in(db, where="TRUE"):
    with engine_of(str(db)) as engine:
        rows = engine.rows(f"SELECT {', '.join(ROW)} FROM gpu_event WHERE {where} ORDER BY ALL")
    return [tuple(row.values()) for row in rows]


def read_again(tmp_path, path):
    db = tmp_path / "again.duckdb"
    db.unlink(missing_ok=True)
    result = analyzer.ingest(str(db), [str(path)])
    assert not result.problems
    return db


@pytest.mark.parametrize(
    ("name", "ranks", "wall"),
    [
        pytest.param(name, ranks, wall, marks=unless(wall == (ranks == 2) == name.endswith("z")))
        for name in ("w.json", "w.json.gz")
        for ranks in (1, 2)
        for wall in (True, False)
    ],
)
def test_a_window_comes_back_with_the_same_events(tmp_path, wall, ranks, name):
    traces = [launch_bound(rank, world=ranks, wall=wall) for rank in range(ranks)]
    for trace in traces:
        trace.kernel(COPY, 1_200.001, 30.007, 901, stream=20)
        trace.op("schedule", 1_500, 400)
    db = case(tmp_path, *traces)
    out = run(db, "--export-window", "0..99999", str(tmp_path / name))
    assert out.exit_code == 0, out.output
    data = (tmp_path / name).read_bytes()
    document = json.loads(gzip.decompress(data) if name.endswith(".gz") else data)
    assert ("baseTimeNanoseconds" in document) is wall
    assert sum(event["ph"] == "X" for event in document["traceEvents"]) == len(rows_in(db))
    again = read_again(tmp_path, tmp_path / name)
    assert rows_in(again) == rows_in(db)
    assert api.gpu(str(again)).classes == api.gpu(db).classes


def test_ranks_go_by_what_is_known_of_them(tmp_path):
    """Not every rank is a tensor-parallel one; the numbers come back."""
    db = case(tmp_path, *(launch_bound(rank, world=8) for rank in (2, 5)))
    path = tmp_path / "w.json"
    assert run(db, "--export-window", "0..50", str(path)).exit_code == 0
    pids = {event["pid"] for event in json.loads(path.read_bytes())["traceEvents"]}
    assert pids == {"rank 2 0", "rank 2 9", "rank 5 0", "rank 5 9"}
    assert rows_in(read_again(tmp_path, path)) == rows_in(db)


def test_only_what_reaches_into_the_window_is_written(tmp_path):
    db = case(tmp_path, launch_bound(wall=True))
    # The trace begins with the annotation at 1,000 us.
    path = tmp_path / "w.json"
    assert run(db, "--export-window", "1.0..3.0", str(path)).exit_code == 0
    start, end = BASE_NS + 2_000_000, BASE_NS + 4_000_000
    inside = f"start_ns < {end} AND start_ns + coalesce(dur_ns, 0) > {start}"
    assert rows_in(read_again(tmp_path, path)) == rows_in(db, inside)
    moments = "2025-12-31T13:55:12.002Z..2025-12-31T13:55:12.004Z"
    first = path.read_bytes()
    out = run(db, "--export-window", moments, str(path), "--force")
    assert out.exit_code == 0, out.output
    assert path.read_bytes() == first


def test_hostile_names_stay_names(tmp_path):
    trace = launch_bound(wall=True)
    trace.annotation(EVIL, 11_500, 300)
    trace.op(f"op {EVIL}", 11_600, 150)
    trace.kernel(f"void {EVIL}<int>(float*)", 11_700, 50, trace.launch(11_680))
    db = case(tmp_path, trace)
    path = tmp_path / "w.json"
    assert run(db, "--export-window", "0..50", str(path)).exit_code == 0
    names = {event["name"] for event in json.loads(path.read_bytes())["traceEvents"]}
    with engine_of(db) as engine:
        stored = {row["name"] for row in engine.rows("SELECT DISTINCT name FROM gpu_event")}
    assert stored <= names
    assert rows_in(read_again(tmp_path, path)) == rows_in(db)
    for args in ((), ("--classes",), ("--steps",)):
        assert "\x1b" not in run(db, *args).output
        assert "\u202e" not in run(db, *args).output
    page = tmp_path / "report.html"
    analyzer.write_report(db, page)
    text = page.read_text(encoding="utf-8")
    assert '<section id="gpu">' in text
    assert "<script>alert(1)" not in text
    assert "\u202e" not in text


def test_what_cannot_be_written_is_said(tmp_path):
    db = case(tmp_path, launch_bound())
    path = str(tmp_path / "w.json")
    assert "no event lies" in run(db, "--export-window", "900000..900001", path).output
    moments = "2025-12-31T13:00:00Z..2025-12-31T14:00:00Z"
    assert "no wall time" in run(db, "--export-window", moments, path).output
    assert run(db, "--export-window", "5..2", path).exit_code == 2
    assert "120..180 (ms" in run(db, "--export-window", "5", path).output
    assert "ends in .json" in run(db, "--export-window", "0..2", str(tmp_path / "w.txt")).output
    assert run(db, "--export-window", "0..2", path, "--steps").exit_code == 2
    assert not list(tmp_path.glob("*.draft"))
    assert run(db, "--export-window", "0..2", path).exit_code == 0
    assert "exists" in run(db, "--export-window", "0..2", path).output


def test_a_case_without_a_trace_says_how_to_get_one(tmp_path):
    db = str(tmp_path / "case.duckdb")
    analyzer.ingest(db, [str(Path(__file__).parents[1] / "sample_traces" / "request_records")])
    with pytest.raises(AnalyzerError, match="no profiler trace"):
        api.gpu(db)


def test_a_time_without_work_is_no_capture_without_devices(tmp_path):
    db = case(tmp_path, launch_bound(wall=True))
    assert told(db, "--since", "2025-12-31T13:00:00Z")["trust"][0]["work"] == 100
    for table in ((), ("--trust",), ("--steps",)):
        out = run(db, "--since", "2026-06-01", *table)
        assert out.exit_code == 2
        assert "no work of a device lies in the time asked about" in out.output
        assert "2025-12-31 13:55:12Z" in out.output


# --- the report ----------------------------------------------------------------------------------


def test_the_report_draws_steps_and_says_what_cannot_be_said(tmp_path):
    trusted = case(tmp_path, launch_bound())
    whole = api.report(trusted)
    (step,) = whole.gpu.drawn
    assert step.step_ns == 1_000_000
    assert {row["lane"] for row in step.rows} == {"stream 7", "host"}
    assert sum(
        row["full"] * (row["end_ns"] - row["start_ns"])
        for row in step.rows
        if row["lane"] == "stream 7"
    ) == pytest.approx(300_000, rel=0.15)
    page = tmp_path / "a.html"
    analyzer.write_report(trusted, page)
    assert page.read_text(encoding="utf-8").count("<svg") >= 6
    (tmp_path / "other").mkdir()
    doubtful = case(tmp_path / "other", without_kernels())
    told = api.report(doubtful).gpu
    assert all(row["idle_ns"] is None for row in (*told.idle.rows, *told.phases.rows))


def test_a_step_with_more_events_than_are_drawn_says_so(tmp_path, monkeypatch):
    db = case(tmp_path, launch_bound())
    assert "only" not in api.report(db).gpu.drawn[0].title
    monkeypatch.setattr("analyzer.questions.gpu_drawn._EVENTS", 5)
    assert "only its first 5 events" in api.report(db).gpu.drawn[0].title


def test_ranks_without_an_event_in_the_window_are_named(tmp_path):
    db = case(tmp_path, launch_bound(0, world=2), launch_bound(1, world=2, offset_us=500_000))
    out = run(db, "--export-window", "0..20", str(tmp_path / "w.json"))
    assert "No event in that window: rank 1." in out.output

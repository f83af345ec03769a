"""Public traces of profilers, where they lie beside the checkout: counts, sums, and classes."""

from __future__ import annotations

import shutil
import sqlite3
from collections import Counter

import gpu_databases
import pyarrow as pa
import pytest
from deep import deep
from helpers import engine_of
from pyarrow import ipc, parquet
from shared import SHARED
from test_readers import READERS, read, rows_of, totals

import analyzer
from analyzer.catalogs.kernel_classes import class_of
from analyzer.readers._file import InputFile
from analyzer.readers._find import pick
from analyzer.readers._reader import Options

SAMPLES = SHARED / "formats" / "samples" / "gpu"
H100 = SAMPLES / "nsys_h100_2gpu_1s.sqlite"

beside = pytest.mark.skipif(not H100.exists(), reason="the public GPU samples are not beside it")


def events_of(path, reader):
    assert pick(InputFile(path, path.name).head).reader is READERS[reader]
    batches = read(READERS[reader], path)
    rows = rows_of(batches)
    return [row for table, row in rows if table == "gpu_event"], rows, batches


def by_kind(events):
    """(kind, rank) -> events and nanoseconds."""
    counts, sums = Counter(), Counter()
    for row in events:
        counts[row["kind"], row.get("rank")] += 1
        sums[row["kind"], row.get("rank")] += row["dur_ns"]
    return {key: (counts[key], sums[key]) for key in counts}


@beside
def test_nsys_of_two_devices_agrees_with_its_own_tables():
    events, rows, batches = events_of(H100, "nsys_sqlite")
    told = by_kind(events)
    with sqlite3.connect(f"file:{H100}?mode=ro", uri=True) as database:
        for kind in ("KERNEL", "MEMCPY", "MEMSET", "SYNCHRONIZATION"):
            name = {"SYNCHRONIZATION": "sync"}.get(kind, kind.lower())
            for rank, pid in enumerate((281476838981632, 281476855758848)):
                want = database.execute(
                    f'SELECT count(*), sum("end" - start) FROM CUPTI_ACTIVITY_KIND_{kind} '
                    "WHERE globalPid = ?",
                    (pid,),
                ).fetchone()
                assert told[name, rank] == want
    assert {row["device"] for row in events if row["kind"] == "kernel" and row["rank"] == 1} == {1}
    records, used, ignored = totals(batches)
    assert records == used + sum(ignored.values())
    traces = [row for table, row in rows if table == "gpu_trace"]
    assert [row["clock"] for row in traces] == ["wall", "wall"]
    # All it tells are waits for a full command buffer: the program's own time.
    assert all("overhead_ns" not in row for row in traces)


@beside
def test_correlations_are_of_one_process():
    events, _, _ = events_of(H100, "nsys_sqlite")
    calls = {(row["rank"], row["correlation"]) for row in events if row["kind"] == "runtime"}
    kernels = [row for row in events if row["kind"] == "kernel"]
    joined = sum((row["rank"], row["correlation"]) in calls for row in kernels)
    with sqlite3.connect(f"file:{H100}?mode=ro", uri=True) as database:
        (want,) = database.execute(
            "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL AS k WHERE EXISTS (SELECT 1 FROM "
            "CUPTI_ACTIVITY_KIND_RUNTIME AS r WHERE r.correlationId = k.correlationId "
            "AND r.globalTid >> 24 = k.globalPid >> 24)"
        ).fetchone()
    # The window was cut out of a longer run: kernels at its begin were launched before it.
    assert 0 < joined == want < len(kernels)


@beside
def test_what_waits_where_the_record_ends_is_no_loss(tmp_path):
    """The host is 0.42 s ahead of the devices, and the window ends in between."""
    case = str(tmp_path / "case.duckdb")
    analyzer.ingest(case, [str(H100)])
    with engine_of(case) as engine:
        rows = engine.rows("SELECT * FROM gpu_trust ORDER BY rank_key")
        steps = engine.rows("SELECT * FROM gpu_step")
    told = [(row["launches"], row["launch_coverage_ratio"], row["late_launches"]) for row in rows]
    assert told == [(816, 1.0, 1_673 - 816)] * 2
    assert all(row["can_idle"] for row in rows)
    # A part of one pass: its layers repeat, and nothing tells a step.
    assert not steps
    assert not {one.rule for one in analyzer.findings(case).found if one.rule.startswith("decode.")}


@beside
def test_nsys_tells_memory_bandwidth_and_no_secrets():
    path = SAMPLES / "nsys_rtx3080_tiny_full_schema.sqlite"
    events, rows, _ = events_of(path, "nsys_sqlite")
    (deployment,) = [row for table, row in rows if table == "deployment"]
    assert deployment["gpu"] == "NVIDIA GeForce RTX 3080"
    assert deployment["memory_bandwidth_bytes_per_s"] == 760_080_000_000
    assert Counter(row["kind"] for row in events)["kernel"] == 2
    assert "torch.zeros" not in str(rows)
    assert "TOKEN" not in str(rows)


@beside
def test_a_reduced_export_is_read():
    path = SAMPLES / "nsys_reduced_schema.sqlite"
    events, rows, batches = events_of(path, "nsys_sqlite")
    assert Counter(row["kind"] for row in events) == {"kernel": 20, "runtime": 19}
    (trace,) = [row for table, row in rows if table == "gpu_trace"]
    assert trace["clock"] == "relative"
    assert sum(len(batch.problems) for batch in batches) == 1


@deep
@beside
def test_rocprofv3_json_has_every_kernel_and_its_name():
    path = SAMPLES / "rocprofv3_mi350_results.json.gz"
    events, _, _ = events_of(path, "rocprofv3_json")
    assert by_kind(events) == {("kernel", None): (43_915, 4_441_741_378)}
    assert all("name" in row for row in events)
    times = Counter()
    for row in events:
        times[class_of("kernel", row["name"]).group] += row["dur_ns"]
    assert times["communication"] / 4_441_741_378 == pytest.approx(0.936, abs=0.001)
    assert times["other"] / 4_441_741_378 < 0.001


@deep
@beside
def test_training_without_launches_or_annotations_is_seen_as_such(tmp_path):
    case = str(tmp_path / "case.duckdb")
    analyzer.ingest(case, [str(SAMPLES / "rocprofv3_mi350_results.json.gz")])
    with engine_of(case) as engine:
        assert {row["phase"] for row in engine.rows("SELECT phase FROM gpu_step")} == {"training"}
        assert engine.value("SELECT count(*) FROM gpu_decode") == 0


@beside
@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("kernel_trace", {"kernel": 7}),
        ("memory_copy_trace", {"memcpy": 2}),
        ("hip_runtime_trace", {"runtime": 5}),
        ("marker_api_trace", {"annotation": 3}),
    ],
)
def test_rocprofv3_examples(name, kinds):
    events, _, batches = events_of(SAMPLES / f"rocprofv3_doc_{name}.csv", "rocprofv3_csv")
    assert Counter(row["kind"] for row in events) == kinds
    assert not [problem for batch in batches for problem in batch.problems]


# -- exports as folders, made from what a database holds -------------------------------------------


def exported(folder, tables, write):
    folder.mkdir()
    for name, (columns, rows) in tables.items():
        names = [column.split()[0] for column in columns.split(", ")]
        cells = list(zip(*rows, strict=True))
        write(pa.table([pa.array(column) for column in cells], names), folder, name)
    return folder


def as_parquet(table, folder, name):
    parquet.write_table(table, folder / f"{name}.parquet")


def as_arrow(table, folder, name):
    with ipc.new_file(folder / f"{name}.arrow", table.schema) as out:
        out.write_table(table)


@pytest.mark.parametrize("write", [as_parquet, as_arrow])
def test_a_folder_tells_what_the_database_tells(write, tmp_path):
    path = tmp_path / "run.sqlite"
    gpu_databases.write(path, gpu_databases.NSYS)
    folder = exported(tmp_path / "run", gpu_databases.NSYS, write)
    want, _, _ = events_of(path, "nsys_sqlite")
    ending = ".parquet" if write is as_parquet else ".arrow"
    got, rows, _ = events_of(folder / f"CUPTI_ACTIVITY_KIND_KERNEL{ending}", "nsys_tables")
    key = lambda row: {k: v for k, v in row.items() if k != "record"}  # noqa: E731
    kept = [row for row in got if row["kind"] != "cpu_op"]
    assert [key(row) for row in kept] == [key(row) for row in want if row["kind"] != "cpu_op"]
    for other in folder.iterdir():
        if "KERNEL" not in other.name:
            assert pick(InputFile(other, other.name).head).reader is READERS["nsys_tables"]
            assert rows_of(read(READERS["nsys_tables"], other)) == []
    assert [row["rank"] for table, row in rows if table == "gpu_trace"] == [0, 1]


def test_a_database_becomes_a_case_with_times_by_class(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    gpu_databases.write(folder / "run.sqlite", gpu_databases.NSYS)
    case = str(tmp_path / "case.duckdb")
    analyzer.ingest(case, [str(folder)])
    with engine_of(case) as engine:
        rows = engine.rows(
            "SELECT r.rank, c.class, c.busy_ns FROM gpu_class AS c JOIN resolve_gpu_rank AS r "
            "ON c.rank_key = r.rank_key ORDER BY r.rank, c.class"
        )
    assert [tuple(row.values()) for row in rows] == [
        (0, "attention", 40_000), (0, "gemm_dense", 25_000), (0, "memcpy_h2d", 2_000),
        (0, "memset", 1_000), (1, "attention", 41_000), (1, "graph", 800_000),
    ]  # fmt: skip


def test_losses_and_overhead_of_a_database(tmp_path):
    path = tmp_path / "run.sqlite"
    gpu_databases.write(path, gpu_databases.NSYS)
    _, rows, _ = events_of(path, "nsys_sqlite")
    first, second = [row for table, row in rows if table == "gpu_trace"]
    assert (first["overhead_ns"], second.get("overhead_ns")) == (40_000, None)
    assert first["stopped_early"] is True
    assert first["errors"] == 0
    assert first["schema_version"] == "3.18.0"


def test_cells_of_another_type_cost_their_row(tmp_path):
    path = tmp_path / "run.sqlite"
    gpu_databases.write(path, gpu_databases.NSYS)
    with sqlite3.connect(path) as database:
        database.execute("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET start = 'x' WHERE rowid = 1")
        database.execute("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET gridX = 9e99 WHERE rowid = 2")
        database.execute(f"UPDATE CUPTI_ACTIVITY_KIND_MEMCPY SET start = {-(2**62)}")
    batches = read(READERS["nsys_sqlite"], path)
    assert sum(len(batch.problems) for batch in batches) == 2
    kernels = [row for _, row in rows_of(batches) if row.get("kind") == "kernel"]
    assert [row.get("grid_blocks") for row in kernels] == [None, 128]


def test_a_view_in_the_place_of_a_table_is_not_run(tmp_path):
    path = tmp_path / "run.sqlite"
    gpu_databases.write(path, {"NVTX_EVENTS": gpu_databases.NSYS["NVTX_EVENTS"]})
    with sqlite3.connect(path) as database:
        database.execute("CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS SELECT 1 AS start, 2 AS end")
    rows = rows_of(read(READERS["nsys_sqlite"], path))
    assert not [row for _, row in rows if row.get("kind") == "kernel"]


def test_metrics_of_a_device_become_samples(tmp_path):
    path = tmp_path / "run.sqlite"
    metrics = [(1 << 32, 3, "DRAM Read Bandwidth [Throughput %]"),
               (1 << 32, 4, "DRAM Write Bandwidth [Throughput %]"),
               (1 << 32, 5, "SMs Active [Throughput %]")]  # fmt: skip
    samples = [(1000, 1 << 32, 3, 60), (1000, 1 << 32, 4, 15), (1000, 1 << 32, 5, 90),
               (-5, 1 << 32, 3, 60)]  # fmt: skip
    gpu_databases.write(path, gpu_databases.NSYS | {
        "TARGET_INFO_GPU_METRICS": ("typeId INTEGER, metricId INTEGER, metricName TEXT", metrics),
        "GPU_METRICS": ("timestamp INTEGER, typeId INTEGER, metricId INTEGER, value INT", samples),
    })  # fmt: skip
    (row,) = [
        row for table, row in rows_of(read(READERS["nsys_sqlite"], path)) if table == "gpu_sample"
    ]
    assert row["time_ns"] == gpu_databases.EPOCH_NS + 1000
    assert (row["memory_busy_ratio"], row["sm_active_ratio"]) == (0.75, 0.9)


def test_rocpd_with_tables_of_time_stamps(tmp_path):
    path = tmp_path / "run.db"
    end = gpu_databases.GUID
    tables = {name: table for name, table in gpu_databases.ROCPD.items() if "region" not in name}
    tables[f"rocpd_timestamp{end}"] = (
        "id INTEGER PRIMARY KEY, value INTEGER",
        [(1, 700), (2, 950)],
    )
    tables[f"rocpd_track{end}"] = (
        "id INTEGER PRIMARY KEY, pid INTEGER, agent_id INTEGER, queue_id INTEGER, stream_id INT",
        [(1, 1, 2, 1, 6)],
    )
    tables[f"rocpd_kernel_dispatch{end}"] = (
        "id INTEGER PRIMARY KEY, track_id INTEGER, kernel_id INTEGER, start_id INTEGER, "
        "end_id INTEGER, event_id INTEGER",
        [(1, 1, 4, 1, 2, 2)],
    )
    gpu_databases.write(path, tables)
    events, _, _ = events_of(path, "rocpd")
    kernel = next(row for row in events if row["kind"] == "kernel")
    assert kernel == {
        "record": 1, "kind": "kernel", "name": "aiter::pa_fwd()", "start_ns": 700, "dur_ns": 250,
        "device": 0, "stream": 6, "correlation": 71,
    }  # fmt: skip


@pytest.mark.parametrize("name", ["nsys_sqlite/decode.sqlite", "rocpd/decode.db"])
def test_a_database_cut_anywhere_never_raises(name, tmp_path):
    source = gpu_databases.SAMPLES / name
    data = source.read_bytes()
    path = tmp_path / source.name
    for size in range(0, len(data), 1500):
        path.write_bytes(data[:size])
        read(READERS[source.parent.name], path)
    shutil.copy(source, path)
    assert rows_of(read(READERS[source.parent.name], path))


def test_the_span_of_samples_is_the_same_however_they_are_stored(tmp_path, monkeypatch):
    """Samples on a clock of their own tell no date, whether they wait in memory or not."""
    path = tmp_path / "run.sqlite"
    gpu_databases.write(path, {
        "NVTX_EVENTS": gpu_databases.NSYS["NVTX_EVENTS"],
        "TARGET_INFO_GPU_METRICS": (
            "typeId INTEGER, metricId INTEGER, metricName TEXT",
            [(1 << 32, 5, "SMs Active [Throughput %]")],
        ),
        "GPU_METRICS": (
            "timestamp INTEGER, typeId INTEGER, metricId INTEGER, value INT", [(5, 1 << 32, 5, 60)],
        ),
    })  # fmt: skip
    spans = []
    for name in ("waits", "stored"):
        result = analyzer.ingest(str(tmp_path / f"{name}.duckdb"), [str(path)])
        spans.append((result.files[0].first_ns, result.files[0].last_ns))
        with engine_of(str(tmp_path / f"{name}.duckdb")) as engine:
            assert engine.rows("SELECT clock FROM gpu_sample") == [{"clock": "relative"}]
        monkeypatch.setattr("analyzer.store.case._INSERT_ROWS", 1)
    assert spans == [(None, None), (None, None)]


def test_a_range_may_begin_with_words_of_nsys(tmp_path):
    path = tmp_path / "ranges.csv"
    path.write_text(
        "Processing [a.sqlite] with [nvtx_gpu_proj_trace.py]...\n"
        "Name,Projected Start (ns),Projected Duration (ns),Style,PID,TID\n"
        "Generate step 3,5000000,52000,PushPop,501,501\n"
        "Processing [a.sqlite] with [cuda_api_sum.py]...\n"
    )
    events, _, batches = events_of(path, "nsys_stats")
    assert [(one["kind"], one["name"]) for one in events] == [("gpu_annotation", "Generate step 3")]
    assert not any(batch.problems for batch in batches)


@pytest.mark.parametrize(("zone", "told"), [(None, "UTC"), ("Asia/Tokyo", "Asia/Tokyo")])
def test_a_scrape_dated_by_its_file_says_which_zone_was_taken(tmp_path, zone, told):
    path = tmp_path / "dcgm_20260213-164000.prom"
    path.write_text('DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-a"} 99\n')
    (batch, last) = read(READERS["dcgm_exporter"], path, Options(zone=zone))
    assert [note for note in last.assumed if f"no zone: {told} was taken" in note]
    assert not batch.problems

"""Databases of strangers, scanned into Arrow: cells of any type, damaged pages, no trust."""

from __future__ import annotations

import sqlite3
import threading

import gpu_databases
import pyarrow as pa
import pytest
from test_readers import READERS, read, rows_of, totals

from analyzer.readers import _sqlite
from analyzer.readers._fast_ahead import ahead_of
from analyzer.readers._sqlite import blob, scan

CUPTI = gpu_databases.CUPTI


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch):
    monkeypatch.setattr(_sqlite, "_BATCH_ROWS", 8)


def database(tmp_path, rows=40):
    path = tmp_path / "some.db"
    with sqlite3.connect(path) as made:
        made.execute("CREATE TABLE t (a INTEGER, b INTEGER, c TEXT)")
        cells = [(i, None if i % 3 else 2 * i, f"word {i}") for i in range(rows)]
        made.executemany("INSERT INTO t VALUES (?, ?, ?)", cells)
    return path


def scanned(path, **cells):
    text = frozenset(name for name, sql in cells.items() if "BLOB" in sql)
    return pa.Table.from_batches(scan(path, cells, "FROM t", text))


@pytest.mark.parametrize("at", [0, 5, 30])
@pytest.mark.parametrize("cell", ["x", 1.5, b"\xff", None, 9e99])
def test_a_cell_of_another_type_is_empty_and_the_others_are_read(tmp_path, cell, at):
    path = database(tmp_path)
    with sqlite3.connect(path) as made:
        made.execute("UPDATE t SET a = ?, c = ? WHERE rowid = ?", (cell, cell, at + 1))
    table = scanned(path, a="a", b="b", c=blob("c", 6))
    assert table["a"].to_pylist() == [None if i == at else i for i in range(40)]
    assert table["b"].to_pylist() == [None if i % 3 else 2 * i for i in range(40)]
    texts = table["c"].to_pylist()
    assert [text for i, text in enumerate(texts) if i != at] == [
        f"word {i}"[:6].encode() for i in range(40) if i != at
    ]


def test_a_column_of_nothing_is_whole_numbers(tmp_path):
    path = database(tmp_path)
    with sqlite3.connect(path) as made:
        made.execute("UPDATE t SET b = NULL")
    assert scanned(path, b="b").schema == pa.schema([("b", pa.int64())])
    with sqlite3.connect(path) as made:
        made.execute("DELETE FROM t")
    assert list(scan(path, {"b": "b"}, "FROM t")) == []


@pytest.mark.parametrize(
    ("guard", "value"), [("trusted_schema", 0), ("cell_size_check", 1), ("query_only", 1)]
)
def test_what_scans_trusts_no_schema_and_changes_nothing(tmp_path, guard, value):
    path = database(tmp_path)
    batches = scan(path, {"value": guard}, f"FROM pragma_{guard}")
    assert pa.Table.from_batches(batches)["value"].to_pylist() == [value]


def test_rows_before_a_damaged_page_are_kept(tmp_path):
    path = tmp_path / "run.sqlite"
    columns, (kernel, *_) = gpu_databases.NSYS[f"{CUPTI}KERNEL"]
    kernels = [(i * 10, i * 10 + 5, *kernel[2:]) for i in range(400)]
    gpu_databases.write(path, {f"{CUPTI}KERNEL": (columns, kernels)})
    whole = rows_of(read(READERS["nsys_sqlite"], path))
    data = bytearray(path.read_bytes())
    middle = len(data) // 2 // 4096 * 4096
    data[middle : middle + 8] = b"\xff" * 8
    path.write_bytes(data)
    batches = read(READERS["nsys_sqlite"], path)
    kept = [row for table, row in rows_of(batches) if table == "gpu_event"]
    assert 0 < len(kept) < 400
    assert kept == [row for table, row in whole if table == "gpu_event"][: len(kept)]
    (problem,) = [problem for batch in batches for problem in batch.problems]
    assert "damaged" in problem.reason
    (trace,) = [row for table, row in rows_of(batches) if table == "gpu_trace"]
    assert trace["ended"] is False
    assert trace["device_events"] == len(kept)


@pytest.mark.parametrize("pages", [1, 2])
def test_a_database_that_ends_early_is_read_as_far_as_it_goes_and_said_to_be(tmp_path, pages):
    path = tmp_path / "run.sqlite"
    gpu_databases.write(path, gpu_databases.NSYS)
    whole = [row for table, row in rows_of(read(READERS["nsys_sqlite"], path)) if "kind" in row]
    # Written last: ranges, and before them calls.
    path.write_bytes(path.read_bytes()[: -4096 * pages])
    batches = read(READERS["nsys_sqlite"], path)
    rows = rows_of(batches)
    kept = [row for table, row in rows if "kind" in row]
    assert kept
    assert (
        kept == [row for row in whole if row["kind"] not in ("cpu_op", "annotation")][: len(kept)]
    )
    problems = [problem.reason for batch in batches for problem in batch.problems]
    assert any(_sqlite.EARLY in reason for reason in problems)
    assert {row["ended"] for table, row in rows if table == "gpu_trace"} == {False}
    records, used, ignored = totals(batches)
    assert records == used + sum(ignored.values()) + len(problems)


@pytest.mark.parametrize("gap", [False, True])
def test_every_row_is_accounted_for_where_rows_are_left_in_the_database(tmp_path, gap):
    path = tmp_path / "run.sqlite"
    gpu_databases.write(path, gpu_databases.NSYS)
    if gap:
        with sqlite3.connect(path) as made:
            made.execute(f"DELETE FROM {CUPTI}RUNTIME WHERE rowid = 1")
            made.execute("DELETE FROM NVTX_EVENTS WHERE rowid = 1")
    batches = read(READERS["nsys_sqlite"], path)
    records, used, ignored = totals(batches)
    problems = sum(len(batch.problems) for batch in batches)
    assert records == used + sum(ignored.values()) + problems
    # One record more than the rows: what the export says of itself.
    tables = [name for name in gpu_databases.NSYS if name.startswith((CUPTI, "NVTX"))]
    assert records == 1 + sum(len(gpu_databases.NSYS[name][1]) for name in tables) - 2 * gap
    calls = [row for _, row in rows_of(batches) if row.get("kind") in ("runtime", "graph_launch")]
    assert len(calls) == 3 - gap
    numbers = [row["record"] for table, row in rows_of(batches) if table == "gpu_event"]
    assert len(set(numbers)) == len(numbers)
    assert numbers == sorted(numbers)


def test_a_column_that_only_looks_like_a_number_of_the_row(tmp_path):
    path = tmp_path / "run.sqlite"
    gpu_databases.write(path, gpu_databases.NSYS)
    with sqlite3.connect(path) as made:
        made.execute(f"ALTER TABLE {CUPTI}RUNTIME ADD COLUMN rowid INTEGER")
        made.execute(f"UPDATE {CUPTI}RUNTIME SET rowid = iif(_rowid_ IN (1, 4), _rowid_, NULL)")
    events = [row for table, row in rows_of(read(READERS["nsys_sqlite"], path))]
    assert len([row for row in events if row.get("kind") in ("runtime", "graph_launch")]) == 3
    assert all(row["record"] for row in events)


def test_calls_without_names_are_read(tmp_path):
    path = tmp_path / "run.sqlite"
    columns, rows = gpu_databases.NSYS[f"{CUPTI}RUNTIME"]
    unnamed = (columns.removesuffix(", nameId INTEGER"), [row[:-1] for row in rows])
    gpu_databases.write(path, {f"{CUPTI}RUNTIME": unnamed})
    batches = read(READERS["nsys_sqlite"], path)
    assert totals(batches)[0] == 1 + len(rows)
    assert not any(batch.problems for batch in batches)


def test_what_runs_ahead_ends_in_its_own_thread():
    threads = []

    def items():
        try:
            for i in range(100):
                threads.append(threading.current_thread())
                yield i
        finally:
            threads.append(threading.current_thread())

    some = ahead_of(items())
    assert next(some) == 0
    some.close()
    assert len(threads) < 20
    assert {thread.name.partition("_")[0] for thread in threads} == {"read-ahead"}
    assert list(ahead_of(items())) == list(range(100))


def test_what_goes_wrong_ahead_is_told_in_its_place():
    def items():
        yield 1
        raise sqlite3.DatabaseError("malformed")

    some = ahead_of(items())
    assert next(some) == 1
    with pytest.raises(sqlite3.DatabaseError):
        next(some)

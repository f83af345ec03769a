"""What keeps large cases within memory gives the same rows as small ones get."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from cases import a5_buffered, a8_multi_token
from deep import deep
from helpers import case_of, engine_of

from analyzer.contract.types import Filters
from analyzer.engines import _slices
from analyzer.engines.analysis import all_analyses
from analyzer.store import _limits
from analyzer.store.case import open_case

SAMPLES = Path(__file__).parents[1] / "sample_traces"
READ = sorted(name for name, one in all_analyses().items() if _slices.CHUNKS in one.needs)


@pytest.fixture(
    scope="module",
    params=[pytest.param("incident", marks=deep), "buffered", "several tokens a chunk"],
)
def case(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("case")
    if request.param == "incident":
        return case_of(SAMPLES / request.param, folder / "case.duckdb")
    (a5_buffered if request.param == "buffered" else a8_multi_token).main(folder / "logs")
    return case_of(folder / "logs", folder / "case.duckdb")


def _rows(db, name, filters=None):
    with engine_of(db, filters) as engine:
        return sorted(map(repr, engine.rows(f"SELECT * FROM {name}"))), engine._slices


@pytest.mark.parametrize("name", READ)
def test_analyses_of_chunks_do_not_care_how_they_are_cut(case, name, monkeypatch):
    whole, none = _rows(case, name)
    assert none is None
    for at_once in (1, 400):
        monkeypatch.setattr(_slices, "_AT_ONCE", at_once)
        cut, slices = _rows(case, name)
        assert len(slices) > 1
        assert cut == whole


def test_an_analysis_of_chunks_says_from_where():
    for name in READ:
        assert all_analyses()[name].python is None, "what is cut into slices is SQL alone"
        assert _slices._READS.search(all_analyses()[name].sql), f"{name}: write FROM or JOIN chunk"


def test_filters_that_leave_nothing(case, monkeypatch):
    monkeypatch.setattr(_slices, "_AT_ONCE", 1)
    rows, slices = _rows(case, "stream_gap", Filters(until_ns=0))
    assert (rows, bool(slices)) == ([], True)


def test_slices_hold_whole_requests(case, monkeypatch):
    monkeypatch.setattr(_slices, "_AT_ONCE", 25)
    with engine_of(case) as engine:
        engine.rows("SELECT 1 FROM stream_gap")
        split = engine.rows(
            "SELECT i.request_key FROM chunk_slice AS s JOIN resolve_told AS t "
            "ON s.source_id = t.source_id AND s.record = t.record "
            "JOIN resolve_instance AS i ON t.row_id = i.row_id "
            "GROUP BY i.request_key HAVING count(DISTINCT s.slice) > 1"
        )
    assert split == []


def test_memory_is_limited_and_each_process_spills_apart(tmp_path):
    db = tmp_path / "case.duckdb"
    open_case(db, write=True).close()
    # A comparison opens one case twice; DuckDB wants both alike.
    one, other = open_case(db), open_case(db)
    ((spill, memory),) = one.run(
        "SELECT current_setting('temp_directory'), current_setting('memory_limit')"
    )
    for case in (one, other):
        case.close()
    assert Path(spill) == tmp_path / f"case.duckdb.{os.getpid()}.tmp"
    assert float(memory.split()[0]) <= 4.0 if memory.endswith("GiB") else memory.endswith("MiB")
    assert [path.name for path in tmp_path.iterdir()] == ["case.duckdb"]


def test_a_small_case_is_read_by_one_thread_and_a_large_one_by_all(tmp_path, monkeypatch):
    db = tmp_path / "case.duckdb"

    def threads(*, write=False):
        case = open_case(db, write=write)
        ((count,),) = case.run("SELECT current_setting('threads')")
        case.close()
        return count

    every = threads(write=True)
    assert every > 1 or os.cpu_count() == 1
    assert (threads(), threads(write=True)) == (1, every)
    monkeypatch.setattr(_limits, "_SMALL", db.stat().st_size)
    assert threads() == every


def test_a_container_counts(tmp_path, monkeypatch):
    told = tmp_path / "memory.max"
    monkeypatch.setattr(_limits, "_CGROUP", told)
    for text, most in (("2147483648\n", 1024), ("max\n", 4096), ("1000\n", 512)):
        told.write_text(text)
        assert int(_limits.limits(tmp_path / "x")["memory_limit"].removesuffix("MiB")) <= most


def test_a_folder_that_cannot_be_written_spills_elsewhere(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda *_: False)
    spill = Path(_limits.limits(tmp_path / "x.duckdb")["temp_directory"])
    assert spill.parent != tmp_path
    assert spill.name.startswith("x.duckdb.")

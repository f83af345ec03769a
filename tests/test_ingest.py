"""Nothing lost, nothing twice: provenance, idempotence, growth, damage, and what is said of it."""

from __future__ import annotations

import gzip
import io
import json
import re
import sys

import pytest
import zstandard
from cases import a1_admission, a4_ttft_misread, a5_buffered
from deep import deep
from helpers import engine_of

import analyzer
from analyzer.contract.tables import TABLES
from analyzer.errors import AnalyzerError, GateFailed


def _everything(db):
    """All rows of all tables but the account itself."""
    with engine_of(db) as engine:
        return {
            name: engine.rows(f"SELECT * FROM {name} ORDER BY ALL")
            for name in TABLES
            if name not in ("source", "source_note", "source_length")
        }


def _logs(folder):
    folder.mkdir()
    a4_ttft_misread.main(folder)
    return folder


def test_ingesting_twice_adds_nothing(tmp_path):
    logs, db = _logs(tmp_path / "logs"), str(tmp_path / "case.duckdb")
    analyzer.ingest(db, [str(logs)])
    once = _everything(db)
    again = analyzer.ingest(db, [str(logs)])
    assert {file.outcome for file in again.files} == {"known"}
    assert _everything(db) == once


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress])
def test_the_compressed_twin_adds_nothing(tmp_path, pack):
    logs, db = _logs(tmp_path / "logs"), str(tmp_path / "case.duckdb")
    analyzer.ingest(db, [str(logs)])
    once = _everything(db)
    packed = tmp_path / "packed"
    packed.mkdir()
    for file in logs.iterdir():
        (packed / f"{file.name}.z").write_bytes(pack(file.read_bytes()))
    assert {file.outcome for file in analyzer.ingest(db, [str(packed)]).files} == {"known"}
    assert _everything(db) == once


def test_compressed_files_read_like_plain_ones(tmp_path):
    logs = _logs(tmp_path / "logs")
    analyzer.ingest(str(tmp_path / "plain.duckdb"), [str(logs)])
    packed = tmp_path / "packed"
    packed.mkdir()
    for file in logs.iterdir():
        (packed / file.name).write_bytes(gzip.compress(file.read_bytes()))
    analyzer.ingest(str(tmp_path / "packed.duckdb"), [str(packed)])
    assert _everything(str(tmp_path / "packed.duckdb")) == _everything(
        str(tmp_path / "plain.duckdb")
    )


@pytest.mark.parametrize(
    "cut", [0.37, 0.999, *(pytest.param(one, marks=deep) for one in (0.1, 0.5, 0.83))]
)
def test_a_file_that_grew_is_read_from_where_it_ended(tmp_path, cut):
    logs = _logs(tmp_path / "logs")
    data = (logs / "client.jsonl").read_bytes()
    growing = tmp_path / "growing.jsonl"
    db, whole = str(tmp_path / "grown.duckdb"), str(tmp_path / "whole.duckdb")
    growing.write_bytes(data[: int(len(data) * cut)])
    first = analyzer.ingest(db, [str(growing)]).files[0]
    growing.write_bytes(data)
    (second,) = analyzer.ingest(db, [str(growing)]).files
    (once,) = analyzer.ingest(whole, [str(growing)]).files
    assert second.outcome == "grown"
    assert second.rows < once.rows
    assert (second.records, second.used, second.problems) == (
        once.records, once.used, once.problems,
    )  # fmt: skip
    assert first.records <= second.records
    assert _everything(db) == _everything(whole)


def test_every_record_is_accounted_for_and_the_bad_ones_are_named(tmp_path):
    log = tmp_path / "client.jsonl"
    log.write_bytes(
        b'{"ts": 1790000000.5, "request_id": "a", "event": "send", "model": "m"}\n'
        b"\n"
        b'{"ts": "not a time", "request_id": "a", "event": "chunk", "kind": "content"}\n'
        b'{"ts": 1790000000.9, "request_id": "a", "event": "chunk", "chars": 4}\n'
        b'{"ts": 1790000001.0, "request_id": "a", "event": "wave", "text": "a secret prompt"}\n'
        b"\xff\xfe broken\n"
        b'{"ts": 1790000001.1, "request_id": "a", "event": "done"}\n'
        b'{"ts": 1790000002.0, "request_id": "b", "event": "se'
    )
    db = str(tmp_path / "case.duckdb")
    (file,) = analyzer.ingest(db, [str(log)]).files
    assert (file.records, file.used, file.ignored, file.problems) == (8, 3, 1, 4)
    with engine_of(db) as engine:
        problems = engine.rows(
            "SELECT record, byte_offset, reason, excerpt FROM problem ORDER BY 1"
        )
        (request,) = engine.rows("SELECT ttft_ns, e2e_ns FROM request")
    assert [row["record"] for row in problems] == [3, 5, 6, 8]
    assert "'ts' is neither" in problems[0]["reason"]
    assert "cut off" in problems[3]["reason"]
    assert "secret" not in json.dumps(problems)
    lines = log.read_bytes().split(b"\n")
    assert problems[1]["byte_offset"] == sum(len(line) + 1 for line in lines[:4])
    # With one chunk only, "done" tells the end.
    assert request == {"ttft_ns": 400_000_000, "e2e_ns": 600_000_000}


def test_strict_fails_on_a_bad_record(tmp_path):
    log = tmp_path / "client.jsonl"
    log.write_text(
        '{"ts": 1790000000, "request_id": "a", "event": "send"}\n{"ts": 1, "event": "x"}\n'
    )
    with pytest.raises(GateFailed, match="--strict"):
        analyzer.ingest(str(tmp_path / "case.duckdb"), [str(log)], strict=True)


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress])
def test_a_cut_archive_is_read_up_to_the_cut_and_said_to_be(tmp_path, pack):
    logs = _logs(tmp_path / "logs")
    data = pack((logs / "client.jsonl").read_bytes())
    cut = tmp_path / "client.jsonl.z"
    cut.write_bytes(data[: int(len(data) * 0.9)])
    (file,) = analyzer.ingest(str(tmp_path / "case.duckdb"), [str(cut)]).files
    assert file.used > 0
    assert file.problems >= 1


def test_nothing_recognised_names_the_closest_format_and_why(tmp_path):
    (tmp_path / "odd.jsonl").write_text('{"ts": 1, "event": "wave"}\n')
    (tmp_path / "empty.log").write_text("")
    db = tmp_path / "case.duckdb"
    with pytest.raises(AnalyzerError) as caught:
        analyzer.ingest(str(db), [str(tmp_path)])
    assert "closest is native_stream" in caught.value.message
    assert "the file is empty" in caught.value.message
    assert not db.exists()


def test_missing_paths_and_unknown_options_say_what_to_do(tmp_path):
    with pytest.raises(AnalyzerError, match="no such file or folder"):
        analyzer.ingest(str(tmp_path / "c.duckdb"), [str(tmp_path / "nope")])
    with pytest.raises(AnalyzerError, match="no such time zone"):
        analyzer.ingest(str(tmp_path / "c.duckdb"), [str(tmp_path)], zone="Mars/Base")
    (tmp_path / "x.log").write_text("x")
    with pytest.raises(AnalyzerError, match="no reader named"):
        analyzer.ingest(str(tmp_path / "c.duckdb"), [str(tmp_path)], reader="nope")


def test_stdin_and_globs_are_read(tmp_path, monkeypatch):
    logs = tmp_path / "logs"
    logs.mkdir()
    a5_buffered.main(logs)
    data = (logs / "client.jsonl").read_bytes()

    class Stdin:
        buffer = io.BytesIO(data)

    monkeypatch.setattr(sys, "stdin", Stdin)
    db = str(tmp_path / "case.duckdb")
    (file,) = analyzer.ingest(db, ["-"]).files
    assert (file.path, file.outcome) == ("stdin", "read")
    again = analyzer.ingest(db, [str(logs / "cli*.jsonl")])
    assert [one.outcome for one in again.files] == ["known"]


def test_a_crash_in_the_middle_of_a_file_leaves_the_case_as_it_was(tmp_path, monkeypatch):
    logs, db = _logs(tmp_path / "logs"), str(tmp_path / "case.duckdb")
    analyzer.ingest(db, [str(logs / "prices.json")])
    before = _everything(db)
    from analyzer.store import case

    calls = iter(range(100))
    genuine = case.FileWriter.append

    def broken(self, batch):
        genuine(self, batch)
        if next(calls) >= 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(case.FileWriter, "append", broken)
    with pytest.raises(KeyboardInterrupt):
        analyzer.ingest(db, [str(logs / "client.jsonl")])
    assert _everything(db) == before


def test_a_file_that_is_no_case_is_refused(tmp_path):
    other = tmp_path / "other.duckdb"
    other.write_text("hello")
    with pytest.raises(AnalyzerError, match="no DuckDB file"):
        analyzer.findings(str(other))
    with pytest.raises(AnalyzerError, match="no case at"):
        analyzer.findings(str(tmp_path / "none.duckdb"))


def test_retries_that_reuse_an_id_stay_apart(tmp_path):
    log = tmp_path / "client.jsonl"
    events = []
    for attempt, start in ((1, 100), (2, 161)):
        events += [
            {"ts": 1_790_000_000 + start, "request_id": "r", "event": "send", "attempt": attempt},
            {"ts": 1_790_000_001 + start, "request_id": "r", "event": "chunk", "chars": 4},
            {"ts": 1_790_000_002 + start, "request_id": "r", "event": "done"},
        ]
    log.write_text("".join(json.dumps(one) + "\n" for one in events))
    db = str(tmp_path / "case.duckdb")
    analyzer.ingest(db, [str(log)])
    with engine_of(db) as engine:
        rows = engine.rows("SELECT attempt, vantages FROM resolve_request ORDER BY attempt")
    assert rows == [{"attempt": 1, "vantages": 1}, {"attempt": 2, "vantages": 1}]


def test_ids_reused_over_runs_are_not_merged(tmp_path):
    db = str(tmp_path / "case.duckdb")
    for run, start in enumerate((1_790_000_000, 1_790_500_000)):
        for side in ("client", "engine"):
            rows = [
                {
                    "request_id": f"bench-{i}", "vantage": side, "started_at": start + i,
                    "e2e_ms": 900 + (side == "client") * 20,
                }
                for i in range(5)
            ]  # fmt: skip
            path = tmp_path / f"{side}-{run}.jsonl"
            path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    analyzer.ingest(db, [str(tmp_path / "*.jsonl")])
    with engine_of(db) as engine:
        (row,) = engine.rows("SELECT count(*) AS n, min(vantages) AS v FROM resolve_request")
    assert row == {"n": 10, "v": 2}


def test_a_log_without_a_year_takes_it_from_dated_logs_in_any_order(tmp_path):
    logs = tmp_path / "logs"
    logs.mkdir()
    a1_admission.main(logs)
    spans = logs / "spans.jsonl"
    # The same case a year ago: the newest year that fits would be wrong.
    year_ns = 365 * 86_400 * 1_000_000_000
    text = re.sub(
        r'UnixNano": "(\d+)"', lambda m: f'UnixNano": "{int(m[1]) - year_ns}"', spans.read_text()
    )
    spans.write_text(text)
    cases = []
    for name, order in (("together", [logs]), ("apart", [logs / "vllm.log", logs / "spans.jsonl"])):
        db = str(tmp_path / f"{name}.duckdb")
        for path in order:
            analyzer.ingest(db, [str(path)])
        with engine_of(db) as engine:
            times = engine.rows("SELECT time_ns FROM engine_sample ORDER BY record")
            (note,) = engine.rows("SELECT note FROM source_note WHERE note LIKE '%no year%'")
        cases.append((times, note))
    assert cases[0] == cases[1]
    assert "nearest to the dated logs" in cases[0][1]["note"]


def test_an_older_copy_of_a_file_that_grew_adds_nothing(tmp_path):
    short, long = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    ticks = [f'{{"ts": {1_790_000_000 + i}, "event": "tick"}}\n' for i in range(9)]
    short.write_text("".join(ticks[:5]))
    long.write_text("".join(ticks))
    db = str(tmp_path / "case.duckdb")
    for _ in range(2):
        analyzer.ingest(db, [str(short), str(long)])
    with engine_of(db) as engine:
        assert engine.value("SELECT count(*) FROM client_tick") == 9


def test_tags_of_a_record_that_is_read_again_stand_once(tmp_path):
    log, db = tmp_path / "a.jsonl", str(tmp_path / "case.duckdb")
    record = '{"request_id": "a", "vantage": "client", "e2e_ms": 1, "tags": {"k": "v"}}'
    for text in (record, record + "\n", record + "\n" + record.replace('"a"', '"b"')):
        log.write_text(text)
        analyzer.ingest(db, [str(log)])
    with engine_of(db) as engine:
        assert engine.value("SELECT count(*) FROM request_tag") == 2
        assert engine.value("SELECT count(*) FROM request") == 2


def test_a_case_is_created_in_one_piece(tmp_path, monkeypatch):
    from analyzer.store import case

    path = tmp_path / "case.duckdb"
    genuine = case.Case.run

    def killed(self, sql, parameters=()):
        if sql.startswith("CREATE TABLE request "):
            raise KeyboardInterrupt
        return genuine(self, sql, parameters)

    monkeypatch.setattr(case.Case, "run", killed)
    with pytest.raises(KeyboardInterrupt):
        case.open_case(path, write=True)
    monkeypatch.undo()
    case.open_case(path, write=True).close()
    assert not analyzer.findings(str(path)).found


def test_a_file_that_cannot_be_read_does_not_stop_the_others(tmp_path):
    logs = _logs(tmp_path / "logs")
    (logs / "gone.jsonl").symlink_to("/proc/self/mem")
    files = analyzer.ingest(str(tmp_path / "case.duckdb"), [str(logs)]).files
    outcomes = {file.path: file.outcome for file in files}
    assert outcomes.pop("gone.jsonl") == "failed"
    assert set(outcomes.values()) == {"read"}


def test_a_query_reads_the_case_and_nothing_else(tmp_path):
    logs, db = _logs(tmp_path / "logs"), str(tmp_path / "case.duckdb")
    analyzer.ingest(db, [str(logs)])
    for query in (
        f"SELECT * FROM read_text('{logs / 'client.jsonl'}')",
        f"COPY (SELECT 1) TO '{tmp_path / 'out'}'",
        "INSTALL httpfs",
        "SET enable_external_access = true",
        "DELETE FROM request",
        "",
        "SELEC",
    ):
        with pytest.raises(AnalyzerError):
            analyzer.sql(db, query)
    assert not (tmp_path / "out").exists()
    assert analyzer.sql(db, "SELECT 1 AS a, 2 AS a").rows == ({"a": 1, "a_2": 2},)


def test_a_client_that_logs_only_its_first_chunk_has_its_end_from_done(tmp_path):
    log = tmp_path / "client.jsonl"
    log.write_text(
        '{"ts": 1790000000.120, "request_id": "a", "event": "send"}\n'
        '{"ts": 1790000000.610, "request_id": "a", "event": "chunk", "chars": 5}\n'
        '{"ts": 1790000002.480, "request_id": "a", "event": "done",'
        ' "usage": {"completion_tokens": 87}}\n'
    )
    db = str(tmp_path / "case.duckdb")
    analyzer.ingest(db, [str(log)])
    with engine_of(db) as engine:
        (row,) = engine.rows("SELECT e2e_ns, ttft_ns, decode_ns FROM latency_segment")
    assert row == {"e2e_ns": 2_360_000_000, "ttft_ns": 490_000_000, "decode_ns": 1_870_000_000}


@pytest.mark.parametrize(("zone", "hours"), [(None, 0), ("Europe/Berlin", 2)])
def test_times_without_an_offset_are_in_the_zone_that_is_told_and_said(tmp_path, zone, hours):
    (tmp_path / "stream.jsonl").write_text(
        '{"ts": "2026-09-21 14:00:20", "request_id": "a", "event": "send"}\n'
        '{"ts": "2026-09-21T14:00:21.5", "request_id": "a", "event": "done"}\n'
    )
    (tmp_path / "records.jsonl").write_text(
        '{"request_id": "b", "started_at": "2026-09-21 14:00:20", "e2e_ms": 1500}\n' * 3
    )
    db = str(tmp_path / "case.duckdb")
    result = analyzer.ingest(db, [str(tmp_path)], zone=zone)
    noted = {note for _, note in result.assumed}
    assert len(result.assumed) == 2
    assert all(f"no zone: {zone or 'UTC'} was taken" in note for note in noted)
    with engine_of(db) as engine:
        starts = engine.rows("SELECT DISTINCT start_ns FROM request")
    assert starts == [{"start_ns": (1_789_999_220 - hours * 3600) * 1_000_000_000}]


def test_samples_of_a_run_are_laid_beside_its_requests_whichever_comes_first(tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    (run / "timeseries.csv").write_text(
        "t,prompt_throughput,gen_throughput,running,waiting,kv_cache_pct\n1.0,1.0,2.0,5,2,13.5\n"
    )
    db = str(tmp_path / "case.duckdb")
    first = analyzer.ingest(db, [str(run)])
    assert any("no sample has a date" in note for _, note in first.assumed)
    (run / "requests.jsonl").write_text(
        '{"request_id": "x-0", "input_toks": 9, "output_toks": 5, "arrival_time": 1790000000.5, '
        '"queued_ts": 10.0, "scheduled_ts": 10.5, "first_token_ts": 11.0, "last_token_ts": 12.0}\n'
    )
    second = analyzer.ingest(db, [str(run)])
    assert any("was taken as the start" in note for _, note in second.assumed)
    with engine_of(db) as engine:
        samples = engine.rows("SELECT time_ns, waiting FROM resolve_engine_sample")
    assert samples == [{"time_ns": 1_790_000_001_500_000_000, "waiting": 2}]

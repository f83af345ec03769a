"""Large files: their fingerprint is taken while they are read."""

from __future__ import annotations

from types import SimpleNamespace

from test_ingest import _everything, _logs

import analyzer


def test_a_large_file_is_known_whoever_read_it(tmp_path, monkeypatch):
    monkeypatch.setattr("analyzer.intake._LARGE_BYTES", 1)
    logs, db = _logs(tmp_path / "logs"), str(tmp_path / "case.duckdb")
    analyzer.ingest(db, [str(logs / "client.jsonl")])
    once = _everything(db)
    again = analyzer.ingest(db, [str(logs / "client.jsonl")], reader="sse_capture")
    assert [file.outcome for file in again.files] == ["known"]
    assert _everything(db) == once


def test_what_a_large_log_gains_while_it_is_read_is_read_the_next_time(tmp_path, monkeypatch):
    monkeypatch.setattr("analyzer.intake._LARGE_BYTES", 1)
    logs, db = _logs(tmp_path / "logs"), str(tmp_path / "case.duckdb")
    log = logs / "client.jsonl"
    analyzer.ingest(str(tmp_path / "whole.duckdb"), [str(log)])
    data = log.read_bytes()
    some = data.rindex(b"\n", 0, len(data) // 2) + 1
    log.write_bytes(data[:some])

    class Late:
        """Takes the fingerprint when it is asked for, and the log has grown by then."""

        def __init__(self, *_):
            pass

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def submit(self, work, *asked):
            def result():
                log.write_bytes(data)
                return work(*asked)

            return SimpleNamespace(result=result)

    monkeypatch.setattr("analyzer.intake.ThreadPoolExecutor", Late)
    (file,) = analyzer.ingest(db, [str(log)]).files
    assert (file.outcome, file.bytes) == ("read", some)
    (file,) = analyzer.ingest(db, [str(log)]).files
    assert (file.outcome, file.bytes) == ("grown", len(data))
    assert _everything(db) == _everything(str(tmp_path / "whole.duckdb"))

"""Files read ahead in other processes give the case that reading them one by one gives."""

import gzip
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import pytest
from deep import deep

ROOT = Path(__file__).parents[1]
SAMPLES = ROOT / "sample_traces"
# A process of its own: only one that has no threads yet starts others.
DRIVER = """
import json, os, signal, sys, time
import analyzer
from analyzer.intake import _ahead
db, folder, how = sys.argv[1:]
_ahead._FEWEST_FILES, _ahead._FEWEST_BYTES, _ahead._BATCH_FILES = 2, 0, 4
if how == "alone":
    _ahead._processes = lambda files: 0
else:
    os.sched_getaffinity = lambda pid: {0, 1}
genuine, taken, known = _ahead._read, [], _ahead.Ahead.take
def early(task, *others):
    if how == "dies" and task.name.endswith("dies.jsonl"):
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "fails" and "_usage" in task.name:
        raise MemoryError
    if how == "hangs":
        time.sleep(0.1)
    return genuine(task, *others)
def take(self, i):
    if how == "hangs":
        print("begun", flush=True)
        time.sleep(60)
    one = known(self, i)
    taken.append(one is not None)
    return one
_ahead._read, _ahead.Ahead.take = early, take
result = analyzer.ingest(db, [folder])
print(json.dumps([sum(taken), [vars(file) for file in result.files]]))
"""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="no forks elsewhere")


def ingest(db, folder, how="ahead"):
    """How many files were read ahead, and what came of every file."""
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, str(db), str(folder), how],
        capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    return json.loads(done.stdout)


def everything(db):
    with duckdb.connect(str(db), read_only=True) as case:
        names = case.execute("SELECT table_name FROM duckdb_tables() ORDER BY ALL").fetchall()
        return {
            name: case.execute(f"SELECT * FROM {name} ORDER BY ALL").fetchall() for (name,) in names
        }


@pytest.fixture
def folder(tmp_path):
    """Every sample there is, a copy, a grown copy, packed ones, a cut one and damaged lines."""
    logs = tmp_path / "logs"
    for file in sorted(SAMPLES.rglob("*")):
        if file.is_file() and "__pycache__" not in file.parts:
            target = logs / file.relative_to(SAMPLES)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(file.read_bytes())
    session = (SAMPLES / "claude_code" / "session.jsonl").read_bytes()
    lines = session.splitlines(keepends=True)
    some = logs / "sessions"
    some.mkdir()
    (some / "a.jsonl").write_bytes(b"".join(lines[:-3]))
    (some / "b.jsonl").write_bytes(session)
    (some / "c.jsonl").write_bytes(session.replace(b"claude-", b"claude-x-"))
    (some / "d.jsonl.gz").write_bytes(gzip.compress(session.replace(b"claude-", b"claude-y-")))
    cut = gzip.compress(session.replace(b"claude-", b"claude-z-"))
    (some / "e.jsonl.gz").write_bytes(cut[: len(cut) * 2 // 3])
    (some / "f-dies.jsonl").write_bytes(session.replace(b"}\n", b"]\n", 2))
    return logs


@pytest.mark.parametrize(
    "how", ["ahead", pytest.param("dies", marks=deep), pytest.param("fails", marks=deep)]
)
def test_the_case_is_the_same(tmp_path, folder, how):
    _, alone = ingest(tmp_path / "alone.duckdb", folder, "alone")
    count, ahead = ingest(tmp_path / "ahead.duckdb", folder, how)
    assert ahead == alone
    assert everything(tmp_path / "ahead.duckdb") == everything(tmp_path / "alone.duckdb")
    assert count > 20


@deep
def test_known_and_grown_files(tmp_path, folder):
    dbs = {how: tmp_path / f"{how}.duckdb" for how in ("alone", "ahead")}
    for db in dbs.values():
        ingest(db, folder, "alone")
    again = {how: ingest(db, folder, how)[1] for how, db in dbs.items()}
    assert {file["outcome"] for file in again["ahead"]} <= {"known", "unrecognised"}
    assert again["ahead"] == again["alone"]
    for name in ("sessions/c.jsonl", "native_stream/unix.jsonl"):
        file = folder / name
        lines = file.read_bytes().splitlines(keepends=True)
        file.write_bytes(b"".join([*lines, lines[-1]]))
    known = (folder / "sessions" / "f-dies.jsonl").read_bytes()
    (folder / "sessions" / "g.jsonl").write_bytes(known + b"{}\n")
    grown = {how: ingest(db, folder, how)[1] for how, db in dbs.items()}
    assert grown["ahead"] == grown["alone"]
    assert {"grown", "replaced"} <= {file["outcome"] for file in grown["ahead"]}
    assert everything(dbs["ahead"]) == everything(dbs["alone"])


def test_they_end_with_the_process_that_asks(tmp_path, folder):
    command = [sys.executable, "-c", DRIVER, str(tmp_path / "case.duckdb"), str(folder), "hangs"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        process.stdout.readline()
        before = children(process.pid)
        process.kill()
    assert len(before) == 2
    end = time.monotonic() + 20
    while any(Path(f"/proc/{pid}").exists() for pid in before) and time.monotonic() < end:
        time.sleep(0.05)
    assert not [pid for pid in before if Path(f"/proc/{pid}").exists()]


def children(pid):
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def test_no_process_is_started_beside_threads(tmp_path, monkeypatch):
    from analyzer.intake import _ahead
    from analyzer.readers._file import InputFile

    file = tmp_path / "big"
    file.write_bytes(b" " * _ahead._FEWEST_BYTES)
    files = [InputFile(file, "big")] * _ahead._FEWEST_FILES
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    monkeypatch.setattr(_ahead.threading, "active_count", lambda: 2)
    assert _ahead._processes(files) == 0
    assert _ahead._processes(files[1:]) == 0

"""Killed, out of disk, locked out: the case is as before or after a file, and a new run ends it.

``ANALYZE_SEEDS=20 pytest -m deep tests/test_crash.py`` tries twenty times as many moments.
"""

import gzip
import io
import json
import os
import random
import subprocess
import sys
import zipfile
from itertools import count
from pathlib import Path

import duckdb
import pytest
from deep import deep, thorough

from analyzer.contract.tables import TABLES

SEEDS = int(os.environ.get("ANALYZE_SEEDS", "1"))
DRIVER = Path(__file__).with_name("crash_driver.py")
SIGKILL = 9
PARTS = [name for name in TABLES if name not in ("source", "source_note", "source_length")]

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a system that can fork")


def content(db):
    """All rows of all tables, each with the path of its source instead of a number.

    Files that failed at first are numbered later; and a log whose year was corrected afterwards is
    not read on but anew, so where reading goes on is left out.
    """
    with duckdb.connect(db, read_only=True) as case:
        return {
            name: case.execute(
                f"SELECT s.path AS path, t.* EXCLUDE ({left_out}) FROM {name} AS t "
                "JOIN source AS s ON t.source_id = s.source_id ORDER BY ALL"
            ).fetchall()
            for name in TABLES
            for left_out in ["source_id, path, resume" if name == "source" else "source_id"]
        }


def by_source(db):
    """Path -> number of rows that hang on it, by table; what a file left behind."""
    with duckdb.connect(db, read_only=True) as case:
        if not case.execute("SELECT count(*) FROM duckdb_tables()").fetchone()[0]:
            return {}  # killed before there was a case
        sources = dict(case.execute("SELECT source_id, path FROM source").fetchall())
        counts: dict = {path: {} for path in sources.values()}
        for name in PARTS:
            rows = case.execute(f"SELECT source_id, count(*) FROM {name} GROUP BY 1").fetchall()
            for source, number in rows:
                assert source in sources, f"{name} has rows of no source"
                counts[sources[source]][name] = number
    return counts


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    """A dated log, one without a year, a table, an archive, a compressed one with bad lines."""
    folder = tmp_path_factory.mktemp("logs")
    events = "".join(
        f'{{"ts":{1_790_000_000 + i},"request_id":"r{i // 4}","event":"{event}"{more}}}\n'
        for i, (event, more) in enumerate(
            [("send", ""), ("chunk", ',"chars":3'), ("chunk", ',"chars":4'), ("done", "")] * 300
        )
    )
    (folder / "events.jsonl").write_text(events)
    (folder / "engine.log").write_text(
        "".join(
            f"INFO 09-21 14:{i // 6:02}:{i % 6 * 10:02} [loggers.py:1] Engine 000: Avg prompt "
            f"throughput: 1.0 tokens/s, Avg generation throughput: 2.0 tokens/s, Running: {i} "
            "reqs, Waiting: 0 reqs, GPU KV cache usage: 3.0%\n"
            for i in range(60)
        )
    )
    (folder / "table.csv").write_text(
        "TIMESTAMP,ContextTokens,GeneratedTokens\n"
        + "".join(f"2026-09-21 14:00:{i % 60:02}.5,{i},7\n" for i in range(500))
    )
    records = "".join(
        f'{{"request_id":"r{i}","vantage":"gateway","e2e_ms":{i},"tags":{{"k":"v"}}}}\n'
        for i in range(300)
    )
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("one.jsonl", records)
        archive.writestr("two.jsonl", records.replace("gateway", "client"))
    (folder / "both.zip").write_bytes(packed.getvalue())
    bad = records.replace("gateway", "engine") + '{"request_id":1}\nnonsense\n'
    (folder / "bad.jsonl.gz").write_bytes(gzip.compress(bad.encode()))
    return str(folder)


@pytest.fixture(scope="module")
def drive(logs, tmp_path_factory):
    """Does deeds, each followed by a run that nothing disturbs where ``then`` asks for it."""
    folder = tmp_path_factory.mktemp("cases")
    driver = subprocess.Popen(
        [sys.executable, str(DRIVER), str(folder)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=DRIVER.parents[1],
    )  # fmt: skip
    numbers = count()

    def run(deeds):
        for deed in deeds:
            deed.setdefault("db", str(folder / f"{next(numbers)}.duckdb"))
            deed.setdefault("paths", [logs])
        driver.stdin.write(json.dumps(deeds) + "\n")
        driver.stdin.flush()
        results = json.loads(driver.stdout.readline())
        for deed, (_, _, text) in zip(deeds, results, strict=True):
            assert "Traceback" not in text, text
            assert "bug in analyze" not in text, text
            deed["text"] = " ".join(text.split())
        return results

    yield run
    driver.stdin.close()
    driver.stdout.close()
    assert driver.wait(60) == 0


@pytest.fixture(scope="module")
def whole(drive):
    """An ingest that nothing disturbs: its content, and whether each statement is within a file."""
    deed = {"how": "count"}
    ((steps, died, _),) = drive([deed])
    assert not died
    assert "Traceback" not in deed["text"]
    return content(deed["db"]), by_source(deed["db"]), steps


def again(drive, deeds, whole):
    """A second run over each case ends in what an undisturbed one gives."""
    told, counts, _ = whole
    for deed in deeds:
        if Path(deed["db"]).exists():
            for path, rows in by_source(deed["db"]).items():
                assert rows == counts[path], f"half of {path} after {deed}"
    second = [{"how": "plain", "db": deed["db"]} for deed in deeds]
    for code, died, text in drive(second):
        assert (code, died) == (0, 0), text
    for deed in deeds:
        assert content(deed["db"]) == told, deed


@thorough
def test_killed_at_any_statement_the_next_run_ends_in_the_same_content(drive, whole, thorough):
    _, _, steps = whole
    dice = random.Random(7)
    within = [number for number, inside in enumerate(steps, 1) if inside]
    without = [number for number, inside in enumerate(steps, 1) if not inside]
    chosen = dice.sample(within, min(len(within), 5 * SEEDS if thorough else 2))
    chosen += dice.sample(without, min(len(without), 2 * SEEDS if thorough else 1))
    deeds = [{"how": "step", "step": step} for step in chosen]
    results = drive(deeds)
    assert all(died == SIGKILL for _, died, _ in results)
    proven = [told for told, _, _ in results]
    assert proven == [steps[step - 1] for step in chosen]
    assert proven.count(True) >= (5 if thorough else 2)
    again(drive, deeds, whole)


@deep
def test_killed_at_any_time_the_next_run_ends_in_the_same_content(drive, whole):
    # While a statement runs: half of them are commits, where the most is at stake.
    _, _, steps = whole
    dice = random.Random(11)
    commits = [n for n in range(2, len(steps) + 1) if steps[n - 2] and not steps[n - 1]]
    chosen = dice.choices(commits, k=2 * SEEDS) + dice.choices(range(2, len(steps)), k=2 * SEEDS)
    deeds = [
        {"how": "time", "tell": step, "seconds": dice.choice((0, 1e-4, 1e-3, 5e-3))}
        for step in chosen
    ]
    results = drive(deeds)
    assert any(died == SIGKILL for _, died, _ in results)
    again(drive, deeds, whole)


@deep
def test_killed_again_and_again_it_still_ends(drive, whole, tmp_path):
    _, _, steps = whole
    db = str(tmp_path / "case.duckdb")
    deeds = [
        {"how": "step", "step": step, "db": db}
        for step in random.Random(13).choices(range(20, max(40, len(steps) // 3)), k=3 * SEEDS)
    ]
    drive(deeds)
    again(drive, deeds[:1], whole)


@thorough
def test_a_full_disk_is_told_and_loses_nothing(drive, whole, thorough):
    dice = random.Random(17)
    sizes = [2_000, 60_000]
    if thorough:
        sizes += [15_000, *(dice.randrange(12_288, 700_000) for _ in range(2 * SEEDS))]
    deeds = [{"how": "full", "bytes": size} for size in sizes]
    results = drive(deeds)
    told = 0
    for (code, died, text), deed in zip(results, deeds, strict=True):
        assert not died, text
        assert code in (0, 2), text
        if code:
            told += 1
            assert "cannot be written (File too large)" in deed["text"], text
            assert "run the same command again" in deed["text"]
    assert told >= 2
    again(drive, deeds, whole)


def test_a_locked_case_is_told_and_not_touched(drive, whole, tmp_path):
    db = str(tmp_path / "case.duckdb")
    drive([{"how": "plain", "db": db}])
    before = Path(db).read_bytes()
    results = drive([{"how": "hold", "db": db}, {"how": "plain", "db": db}])
    code, died, text = results[1]
    assert (code, died) == (2, 0)
    assert "is in use by another process" in " ".join(text.split())
    assert Path(db).read_bytes() == before
    assert content(db) == whole[0]

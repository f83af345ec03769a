"""How fast the tool is, as ratios against a named floor in the same run.

``python benchmarks/run.py [MEGABYTES]`` writes a log, reads it once with a bare DuckDB
``read_json`` into a table (the floor: no account, no request, no exact time), then ingests it in a
fresh process, and prints rates, the ratio, peak memory and where the time goes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from generate import write

_FLOOR = """
import sys, time, duckdb
start = time.perf_counter()
with duckdb.connect(sys.argv[2]) as connection:
    query = "CREATE TABLE line AS SELECT * FROM read_json('" + sys.argv[1] + "')"
    connection.execute(query).fetchall()
print(time.perf_counter() - start)
"""
_INGEST = """
import json, resource, sys, time
import analyzer.api
from analyzer.readers import native_stream
from analyzer.readers._file import InputFile
from analyzer.store.case import FileWriter
spent = {}
def timed(owner, name, label):
    genuine = getattr(owner, name)
    def run(*args, **options):
        start = time.perf_counter()
        try:
            return genuine(*args, **options)
        finally:
            spent[label] = spent.get(label, 0) + time.perf_counter() - start
    setattr(owner, name, run)
timed(InputFile, "fingerprint", "hash")
timed(FileWriter, "append", "store")
timed(FileWriter, "finish", "store")
timed(native_stream, "parse_lines", "parse lines")
start = time.perf_counter()
analyzer.api.ingest(sys.argv[2], [sys.argv[1]])
total = time.perf_counter() - start
spent["sum up requests, commit, other"] = total - sum(spent.values())
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps({"total_s": total, "peak_mb": peak, "spent_s": spent}))
"""
_FINDINGS = """
import resource, sys, time
import analyzer.api
start = time.perf_counter()
analyzer.api.findings(sys.argv[1])
print(time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def _run(code: str, *args: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code, *args], capture_output=True, text=True, check=True
    )
    return done.stdout


def main() -> None:
    """Print the table; numbers are of this machine and this run."""
    megabytes = float(sys.argv[1]) if len(sys.argv) > 1 else 200.0
    with tempfile.TemporaryDirectory() as folder:
        log, db = Path(folder) / "stream.jsonl", Path(folder) / "case.duckdb"
        lines = write(log, megabytes)
        size = log.stat().st_size / 1e6
        print(f"{size:,.0f} MB, {lines:,} lines, {os.cpu_count()} cores")
        floor = min(float(_run(_FLOOR, str(log), f"{folder}/floor{i}")) for i in range(3))
        print(f"floor, DuckDB read_json   {size / floor:7.1f} MB/s   {floor:6.2f} s")
        got = json.loads(_run(_INGEST, str(log), str(db)))
        total, peak = got["total_s"], got["peak_mb"]
        ratio = f"{total / floor:.1f} x the floor, peak {peak:,.0f} MB"
        print(f"analyze ingest            {size / total:7.1f} MB/s   {total:6.2f} s   {ratio}")
        for label, seconds in sorted(got["spent_s"].items(), key=lambda pair: -pair[1]):
            print(f"  {label:32s} {seconds:6.2f} s  {seconds / total:4.0%}")
        seconds, peak = map(float, _run(_FINDINGS, str(db)).split())
        print(f"analyze findings {seconds:31.2f} s   peak {peak:,.0f} MB")
        print(f"case file                 {db.stat().st_size / 1e6:7.1f} MB")


if __name__ == "__main__":
    main()

"""How fast the tool reads, against what people would use instead, in the same run.

``python benchmarks/run.py [--scale 1.0] [--inflame COMMAND] [--long]`` writes seeded logs and times
whole processes: wall time, processor time, peak memory. A scale below 1 shrinks every log.
``--inflame`` names the command of inflame-trace, ``--long`` adds a log ten times as long.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shlex
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from generate import write

_DUCKDB = """
import sys, duckdb
with duckdb.connect(sys.argv[2]) as connection:
    query = "CREATE TABLE line AS SELECT * FROM read_json('" + sys.argv[1] + "')"
    connection.execute(query).fetchall()
"""
# What the reader looks for in each line, with the same words, and the values of status lines.
_RE_LOOP = """
import datetime, re, sys
kinds = [(kind, re.compile(words)) for kind, words in (
    ("blank", r"^$"), ("text", r"Received request |Generated response "),
    ("stats", r"^[^'\\"]*Avg prompt throughput: "),
    ("hits", r"^[^'\\"]*Prefix cache hit rate: GPU: "), ("size", r"^[^'\\"]*KV cache size: "),
    ("preemption", r"^[^'\\"]*Sequence group \\S+ is preempted by "),
    ("abort", r"^[^'\\"]*Aborted request(?:\\(s\\))? "),
    ("access", r'"[A-Z]+ \\S+ HTTP/\\d'),
    ("engine", r"(?:^|\\D)(?:\\d{4}-)?\\d\\d-\\d\\d[ T]\\d\\d:\\d\\d:\\d\\d"))]
stamp = re.compile(r"(\\d\\d)-(\\d\\d) (\\d\\d):(\\d\\d):(\\d\\d)")
names = ("Avg prompt throughput", "Avg generation throughput", "Running", "Waiting",
         "KV cache usage", "Prefix cache hit rate")
values = [re.compile(name + r": (\\d+(?:\\.\\d+)?)") for name in names]
rows, counts = [], {}
for line in open(sys.argv[1]):
    line = line.rstrip()
    kind = next((kind for kind, words in kinds if words.search(line)), "foreign")
    counts[kind] = counts.get(kind, 0) + 1
    if kind == "stats":
        when = datetime.datetime(2026, *map(int, stamp.search(line).groups()))
        found = [value.search(line) for value in values]
        rows.append((when.timestamp(), *(float(one[1]) for one in found if one)))
"""
_SPENT = """
import json, sys, threading, time
import analyzer.intake
from analyzer.readers._fast_shapes import Shapes
from analyzer.readers._file import InputFile
from analyzer.readers._stream_requests import OpenRequests
from analyzer.store.case import Case, FileWriter
spent, lock = {}, threading.Lock()
def timed(owner, name, label):
    genuine = getattr(owner, name)
    def run(*args, **options):
        start = time.perf_counter()
        try:
            return genuine(*args, **options)
        finally:
            with lock:
                spent[label] = spent.get(label, 0) + time.perf_counter() - start
    setattr(owner, name, run)
timed(InputFile, "fingerprint", "hash")
timed(FileWriter, "append", "store")
timed(FileWriter, "finish", "store")
timed(Case, "close", "store")
timed(Shapes, "split", "cut lines into columns (two threads)")
timed(OpenRequests, "take_block", "sum up requests")
start = time.perf_counter()
analyzer.intake.ingest(sys.argv[2], [sys.argv[1]])
spent["all of it"] = time.perf_counter() - start
print(json.dumps(spent))
"""


@dataclass(frozen=True)
class Cost:
    """What one process took."""

    wall_s: float
    cpu_s: float
    peak_mb: float

    def __str__(self) -> str:
        return f"{self.wall_s:6.2f} s {self.cpu_s:6.2f} CPU s {self.peak_mb:6,.0f} MB"


def cost(*command: str) -> Cost:
    """Run a command; its output is only shown where it fails."""
    with tempfile.TemporaryFile() as out:
        start = time.perf_counter()
        process = subprocess.Popen(command, stdout=out, stderr=out)
        _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            out.seek(0)
            sys.exit(f"{shlex.join(command)[:200]} failed:\n{out.read().decode()}")
    return Cost(wall, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def ingest(log: Path) -> Cost:
    """``analyze ingest`` into a new case."""
    db = log.with_suffix(".duckdb")
    db.unlink(missing_ok=True)
    command = (sys.executable, "-m", "analyzer", "--db", str(db), "ingest", str(log))
    return cost(*command)


def best(run, *args, times: int = 3) -> Cost:
    """The quickest of some runs: other work on the machine only ever adds."""
    return min((run(*args) for _ in range(times)), key=lambda one: one.wall_s)


def compare(title: str, log: Path, rival: str, *command: str) -> None:
    """One row: ours, the other's, and the ratio."""
    others = best(cost, *command, times=1 if "inflame" in rival else 3)
    ours = best(ingest, log)
    print(f"{title}, {log.stat().st_size / 1e6:,.0f} MB")
    print(f"  analyze ingest  {ours}")
    print(f"  {rival:15} {others}")
    wall, cpu = ours.wall_s / others.wall_s, ours.cpu_s / others.cpu_s
    print(f"  ours / theirs   {wall:6.2f}   {cpu:6.2f}", flush=True)


def over_duckdb(folder: Path, kind: str, scale: float) -> Path:
    """A native log against a bare ``read_json`` into a table."""
    log = folder / f"{kind}.jsonl"
    write(log, 250 * scale, kind=kind)
    for number in range(3):
        (folder / f"bare{number}").unlink(missing_ok=True)
    code = _DUCKDB.replace("sys.argv[2]", "sys.argv[2] + str(__import__('os').getpid())")
    compare(f"native {kind}", log, "DuckDB read_json", sys.executable, "-c", code, str(log),
            str(folder / "bare"))  # fmt: skip
    return log


def spent(log: Path) -> None:
    """Where the time of one stream log goes; the parts run side by side."""
    db = log.with_suffix(".spent.duckdb")
    done = subprocess.run(
        [sys.executable, "-c", _SPENT, str(log), str(db)],
        capture_output=True,
        text=True,
        check=True,
    )
    for label, seconds in sorted(json.loads(done.stdout).items(), key=lambda pair: -pair[1]):
        print(f"    {label:40} {seconds:6.2f} s")


def growth(folder: Path, scale: float) -> None:
    """A log ten times as long: time must be ten times as much, memory the same."""
    short, long = folder / "short.jsonl", folder / "long.jsonl"
    write(short, 200 * scale)
    write(long, 2000 * scale)
    small, large = best(ingest, short), best(ingest, long, times=1)
    sizes = long.stat().st_size / short.stat().st_size
    print(f"growth, {short.stat().st_size / 1e6:,.0f} MB to {long.stat().st_size / 1e6:,.0f} MB")
    print(f"  short           {small}")
    print(f"  long            {large}")
    wall, cpu = (
        math.log(one / other) / math.log(sizes)
        for one, other in ((large.wall_s, small.wall_s), (large.cpu_s, small.cpu_s))
    )
    print(f"  exponent {wall:.3f} of wall time, {cpu:.3f} of processor time")


def main() -> None:
    """Print the table; numbers are of this machine and this run."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--inflame", default="")
    parser.add_argument("--long", action="store_true")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} before the first run")
        spent(over_duckdb(folder, "stream", asked.scale))
        over_duckdb(folder, "requests", asked.scale)
        otlp = folder / "spans.jsonl"
        write(otlp, 200 * asked.scale, kind="otlp")
        if asked.inflame:
            compare("OTLP spans", otlp, "inflame summary", asked.inflame, "summary", str(otlp))
        else:
            print(
                f"OTLP spans, {otlp.stat().st_size / 1e6:,.0f} MB\n  analyze ingest  {ingest(otlp)}"
            )
        engine = folder / "engine.log"
        write(engine, 1_000_000 * asked.scale, kind="engine")
        compare(
            "engine log", engine, "re, line by line", sys.executable, "-c", _RE_LOOP, str(engine)
        )
        if asked.long:
            growth(folder, asked.scale)


if __name__ == "__main__":
    main()

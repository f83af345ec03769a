"""How every analysis grows: a million requests with 100 chunks each, on this machine.

``python benchmarks/scale.py [--sizes 10000,100000,1000000] [--chunks 100] [--read-mb 200]
[--wide 1000000]`` reads a slice of a stream log, writes cases of each size straight into the store
(reading a hundred million chunks is extrapolated from the slice), then times whole commands and,
apart, each analysis and play: seconds, peak memory, and the exponent of growth.

Exponents are of processor time, which other work on the machine changes least. A scan of chunks and
requests in the same run is the floor.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
from generate import write
from run import Cost, cost, ingest

from analyzer.contract.tables import TABLES
from analyzer.store.case import open_case

BEGIN_NS = 1_790_000_000_000_000_000
PER_S = 80
"""Requests that start in a second: the longer the case, not the busier, the more requests."""

# hash() is the same in every run, so the same size gives the same case.
_UNIT = "(hash(k * 31 + {salt}) % 1000003) / 1000003.0"


def _unit(salt: int) -> str:
    return _UNIT.format(salt=salt)


_TOLD = f"""
CREATE TEMPORARY TABLE told AS
SELECT
  k, {BEGIN_NS} + CAST(k * (1e9 / {PER_S}) AS BIGINT) + CAST(1e7 * {_unit(1)} AS BIGINT)
    AS start_ns,
  CAST(200 + 6000 * {_unit(2)} * {_unit(3)} AS BIGINT) AS prompt,
  CASE WHEN {_unit(4)} < 0.3 THEN 0.8 ELSE 0.0 END AS hit,
  CAST(1e6 * (1 + 20 * {_unit(5)} * {_unit(5)}) AS BIGINT)
    + CASE WHEN k * 10 // $1 = 6 THEN CAST(4e9 * {_unit(6)} AS BIGINT) ELSE 0 END AS queue_ns,
  CAST(2e7 * (0.8 + 0.4 * {_unit(7)}) AS BIGINT) AS step_ns,
  CAST(4e6 + 2e7 * {_unit(8)} * {_unit(8)} AS BIGINT) AS way_ns,
  CASE WHEN {_unit(9)} < 0.002 THEN CAST($2 * {_unit(10)} AS BIGINT) END AS stalls_at,
  {_unit(11)} < 0.004 AS fails
FROM (SELECT range AS k FROM range($1))
"""
_SHAPED = """
CREATE TEMPORARY TABLE shaped AS
SELECT *, prompt - CAST(prompt * hit AS BIGINT) AS fresh,
  CAST(15e6 + 9e4 * (prompt - CAST(prompt * hit AS BIGINT)) AS BIGINT) AS prefill_ns,
  ($1 - 1) * step_ns + CASE WHEN stalls_at IS NULL THEN 0 ELSE 1500000000 END AS decode_ns
FROM told
"""
_SAME = """
  'req-' || k AS request_id, 1 AS attempt, 's-' || (k // 10) AS session_id, k % 10 + 1 AS turn,
  'route-' || (hash(k) % $routes) AS route, 'orion-' || (k % 3) AS model, start_ns, 'wall' AS clock,
  fresh AS input_fresh_tokens, prompt - fresh AS cache_read_tokens,
  CASE WHEN NOT fails THEN $chunks END AS output_visible_tokens, TRUE AS usage_final,
  CASE WHEN NOT fails THEN 'stop' END AS finish_reason, TRUE AS streamed
"""
_CLIENT = f"""
INSERT INTO request BY NAME
SELECT 1 AS source_id, k + 1 AS record, 'client' AS vantage, 'stream' AS timing, {_SAME},
  CASE WHEN NOT fails THEN queue_ns + prefill_ns + way_ns END AS ttft_ns,
  CASE WHEN NOT fails THEN queue_ns + prefill_ns + way_ns END AS first_content_ns,
  CASE WHEN fails THEN 30000000000 ELSE queue_ns + prefill_ns + way_ns + decode_ns END AS e2e_ns,
  CASE WHEN NOT fails THEN $chunks END AS chunks,
  CASE WHEN NOT fails THEN 5 * $chunks END AS chunk_chars,
  CASE WHEN NOT fails THEN 5 END AS first_chunk_chars,
  CASE WHEN fails THEN 'timeout' END AS error
FROM shaped ORDER BY k
"""
_ENGINE = f"""
INSERT INTO request BY NAME
SELECT 2 AS source_id, k + 1 AS record, 'engine' AS vantage, 'stated' AS timing, {_SAME},
  'pool-' || (k % 8) AS deployment, queue_ns, prefill_ns, decode_ns,
  queue_ns + prefill_ns AS ttft_ns, queue_ns + prefill_ns + decode_ns AS e2e_ns
FROM shaped WHERE NOT fails ORDER BY k
"""
_CHUNKS = """
INSERT INTO chunk BY NAME
SELECT 1 AS source_id, k + 1 AS record, i AS chunk_index,
  queue_ns + prefill_ns + way_ns + i * step_ns + CAST(hash(k * $chunks + i) % 4000000 AS BIGINT)
    - CASE WHEN i = 0 THEN CAST(hash(k * $chunks) % 4000000 AS BIGINT) ELSE 0 END
    + CASE WHEN i >= stalls_at THEN 1500000000 ELSE 0 END AS offset_ns,
  'content' AS kind, 5 AS chars
FROM (SELECT * FROM shaped WHERE NOT fails AND k >= $from AND k < $until),
  (SELECT range AS i FROM range($chunks))
ORDER BY k, i
"""
_SAMPLES = f"""
INSERT INTO engine_sample BY NAME
SELECT 3 AS source_id, range + 1 AS record, {BEGIN_NS} + (range // 8) * 10000000000 AS time_ns,
  'wall' AS clock, 'pool-' || (range % 8) AS engine,
  CAST(20 + hash(range) % 12 AS BIGINT) AS running,
  CAST(CASE WHEN range * 10 // $1 = 6 THEN hash(range) % 30 ELSE 0 END AS BIGINT) AS waiting,
  0.3 + (hash(range) % 100) / 500.0 AS kv_used_ratio
FROM range($1)
"""
_TICKS = f"""
INSERT INTO client_tick BY NAME
SELECT 1 AS source_id, $1 + range + 1 AS record, {BEGIN_NS} + range * 250000000 AS time_ns,
  'client-0' AS client
FROM range($2)
"""
_AT_ONCE = 100_000
"""Requests whose chunks are sorted at once."""


def write_case(path: Path, requests: int, chunks: int, routes: int = 8) -> None:
    """A case as clients' streams, engine spans and status lines would have given it."""
    path.unlink(missing_ok=True)
    case = open_case(path, write=True)
    span_s = requests // PER_S + 1
    told = {"routes": str(routes), "chunks": str(chunks)}

    def run(sql: str, values: dict[str, str] | None = None, *parameters: int) -> None:
        for name, value in (told | (values or {})).items():
            sql = sql.replace(f"${name}", value)
        case.run(sql, parameters)

    run("BEGIN TRANSACTION")
    for number, name in enumerate(("client.jsonl", "spans.jsonl", "engine.log"), 1):
        row = {
            "source_id": number, "path": name, "sha256": f"{number:064x}", "reader": "benchmark",
            "record_unit": "line", "records": requests, "used": requests, "ignored": 0,
            "problems": 0, "first_ns": BEGIN_NS, "last_ns": BEGIN_NS + span_s * 1_000_000_000,
        }  # fmt: skip
        case.insert("source", pa.Table.from_pylist([row], schema=TABLES["source"]))
    run(_TOLD, None, requests, chunks)
    run(_SHAPED, None, chunks)
    run(_CLIENT)
    run(_ENGINE)
    for first in range(0, requests, _AT_ONCE):
        run(_CHUNKS, {"from": str(first), "until": str(first + _AT_ONCE)})
    run(_SAMPLES, None, 8 * (span_s // 10 + 1))
    run(_TICKS, None, requests, 4 * span_s)
    run("COMMIT")
    case.close()


_EACH = """
import json, re, sys, time
from analyzer.engines.duckdb import Engine
from analyzer.report.values import quantity
from analyzer.runbook._evaluate import outcome_of
from analyzer.runbook._play import all_plays
from analyzer.engines.analysis import all_analyses
from analyzer.store.case import open_case
case, spent = open_case(sys.argv[1]), {}
genuine = case.run
def run(sql, *rest):
    start = time.process_time()
    try:
        return genuine(sql, *rest)
    finally:
        made = re.match(r"\\s*(?:CREATE TEMPORARY TABLE|INSERT INTO) (\\w+)", sql)
        name = made[1] if made else "else"
        spent[name] = spent.get(name, 0) + time.process_time() - start
case.run = run
start = time.process_time()
for _ in range(3):
    genuine("SELECT SUM(offset_ns), max(chunk_index) FROM chunk")
    genuine("SELECT SUM(input_fresh_tokens), max(start_ns) FROM request")
floor = (time.process_time() - start) / 3
engine, failed = Engine(case), []
for name in all_analyses():
    try:
        engine.rows(f"SELECT count(*) FROM {name}")
    except Exception as error:
        failed.append(f"{name}: {error}")
for name, play in all_plays().items():
    start = time.process_time()
    try:
        outcome_of(play, engine, quantity)
    except Exception as error:
        failed.append(f"{name}: {error}")
    spent[f"play {name}"] = time.process_time() - start
print(json.dumps({"floor": floor, "spent": spent, "failed": failed}))
"""
_NOTED_S = 0.5
"""Processor seconds from which on an analysis is listed."""
COMMANDS = (
    ("latency",), ("latency", "--slo", "ttft<=2s,p95 tpot<=50ms"), ("findings",),
    ("report", "-o", "REPORT", "--force"),
)  # fmt: skip
WIDE = (
    ("latency", "--by", "route"), ("latency", "--by", "session", "-f", "csv"),
    ("latency", "--slo", "ttft<=2s,e2e<=5s", "--by", "route"),
    ("latency", "--slo", "ttft<=2s,e2e<=5s", "--by", "session", "-f", "csv"),
)  # fmt: skip


def command(db: Path, *words: str) -> Cost:
    """One command as people run it, from the start of Python to its end."""
    told = (str(db.with_suffix(".html")) if word == "REPORT" else word for word in words)
    return cost(sys.executable, "-m", "analyzer", "--db", str(db), *told)


def each(db: Path) -> dict:
    """Processor seconds of every analysis and play, and of a scan of chunks and requests."""
    done = subprocess.run(
        [sys.executable, "-c", _EACH, str(db)], capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def exponent(small: float, large: float, times: float) -> float:
    """Power of the size with which a cost grows."""
    return math.log(max(large, 1e-3) / max(small, 1e-3)) / math.log(times)


def reading(folder: Path, megabytes: float) -> None:
    """What reading costs: a slice of a stream log, and what a hundred million chunks would take."""
    log = folder / "slice.jsonl"
    lines = write(log, megabytes)
    read = ingest(log)
    chunks = 0.99 * lines  # a send and a done beside 50 to 300 chunks
    print(
        f"reading {log.stat().st_size / 1e6:,.0f} MB of stream events, {lines:,} lines: {read}\n"
        f"  100 M chunks at that rate (extrapolated): {read.wall_s * 1e8 / chunks / 60:.0f} min, "
        f"{read.cpu_s * 1e8 / chunks / 60:.0f} CPU min, {log.stat().st_size / chunks / 10:,.0f} GB",
        flush=True,
    )
    for path in (log, log.with_suffix(".duckdb")):
        path.unlink()


def grown(
    folder: Path,
    sizes: list[int],
    commands: Sequence[tuple[str, ...]],
    make: Callable[[Path, int], str],
) -> None:
    """Every command, analysis and play at every size, with the exponent from the size before.

    ``make`` writes the case and says in words what is in it.
    """
    before: tuple[int, dict, list[Cost]] | None = None
    for size in sizes:
        db = folder / f"{size}.duckdb"
        made = make(db, size)
        print(f"{made}, {db.stat().st_size / 1e6:,.0f} MB, load {os.getloadavg()[0]:.1f}")
        costs = [command(db, *words) for words in commands]
        for number, (words, took) in enumerate(zip(commands, costs, strict=True)):
            power = ""
            if before:
                old = before[2][number]
                power = f"  exponent {exponent(old.cpu_s, took.cpu_s, size / before[0]):.2f}"
            print(f"  {' '.join(words)[:44]:44} {took}{power}", flush=True)
        if (page := db.with_suffix(".html")).exists():
            print(f"  the page has {page.stat().st_size / 1e6:.1f} MB")
        told = each(db)
        print(f"  a scan of the rows {told['floor']:.3f} CPU s", *told["failed"], sep="\n  ")
        for name, seconds in sorted(told["spent"].items(), key=lambda pair: -pair[1]):
            if seconds >= _NOTED_S and before:
                old = before[1]["spent"].get(name, 0)
                power = exponent(old, seconds, size / before[0])
                print(f"    {name:34} {seconds:7.2f} CPU s  exponent {power:.2f}")
        sys.stdout.flush()
        before = (size, told, costs)
        for path in (db, db.with_suffix(".html")):
            path.unlink(missing_ok=True)


def wide(folder: Path, requests: int) -> None:
    """Grouping by a thousand routes and a hundred thousand sessions."""
    db = folder / "wide.duckdb"
    write_case(db, requests, 2, routes=1_000)
    print(f"wide: {requests:,} requests, 1,000 routes, {requests // 10:,} sessions")
    for words in WIDE:
        print(f"  {' '.join(words)[:60]:60} {command(db, *words)}", flush=True)
    db.unlink()


def main() -> None:
    """Print the table; numbers are of this machine and this run."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sizes", default="10000,100000,1000000")
    parser.add_argument("--chunks", type=int, default=100)
    parser.add_argument("--read-mb", type=float, default=200)
    parser.add_argument("--wide", type=int, default=1_000_000)
    asked = parser.parse_args()

    def make(db: Path, size: int) -> str:
        write_case(db, size, asked.chunks)
        return f"{size:,} requests, {size * asked.chunks:,} chunks"

    with tempfile.TemporaryDirectory() as name:
        print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} before the first run")
        if asked.read_mb:
            reading(Path(name), asked.read_mb)
        grown(Path(name), [int(size) for size in asked.sizes.split(",")], COMMANDS, make)
        if asked.wide:
            wide(Path(name), asked.wide)


if __name__ == "__main__":
    main()

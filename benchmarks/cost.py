"""What ten million requests cost, and what the cost of two weeks differs by, on this machine.

``python benchmarks/cost.py [--sizes 1000000,10000000]`` writes request rows straight into the store
(eight models with a price and one without, caches, reasoning, a second week that differs from the
first) and times whole commands, from the start of Python to their end: seconds, processor time,
peak memory, and the exponent of growth. A scan of the same rows is the floor.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa
from run import Cost, cost
from scale import BEGIN_NS, command, exponent

from analyzer.contract.tables import TABLES
from analyzer.store.case import open_case

_S = 1_000_000_000
_WEEK_NS = 7 * 86_400 * _S
_FROM_NS = BEGIN_NS - BEGIN_NS % (86_400 * _S)
MODELS = (
    ("anthropic", "claude-sonnet-4-5"), ("anthropic", "claude-haiku-4-5"),
    ("anthropic", "claude-opus-4-5"), ("openai", "gpt-4.1"), ("openai", "gpt-4.1-mini"),
    ("openai", "gpt-5"), ("google", "gemini-2.5-flash"), ("google", "gemini-2.5-pro"),
    ("vllm", "orion-7b"),
)  # fmt: skip

# hash() is the same in every run, so the same size gives the same case. In the second week prompts
# are longer, the cache serves less of them, and one model has more of the calls.
_REQUESTS = f"""
INSERT INTO request BY NAME
SELECT 1 AS source_id, k + 1 AS record, 'client' AS vantage, 'stated' AS timing,
  'req-' || k AS request_id, 1 AS attempt, 'wall' AS clock, start_ns,
  's-' || (k // 10) AS session_id, 'route-' || (hash(k * 3) % 12) AS route,
  list_extract([{{models}}], which + 1) AS model,
  list_extract([{{providers}}], which + 1) AS provider,
  prompt - cached - written AS input_fresh_tokens, cached AS cache_read_tokens,
  CASE WHEN which < 3 THEN written END AS cache_write_short_tokens,
  CAST(50 + hash(k * 13) % 700 AS BIGINT) AS output_visible_tokens,
  CASE WHEN which IN (5, 7) THEN CAST(hash(k * 17) % 900 AS BIGINT) END AS output_reasoning_tokens,
  TRUE AS usage_final, TRUE AS streamed, 'stop' AS finish_reason,
  CAST(4e8 AS BIGINT) AS ttft_ns, CAST(5e9 AS BIGINT) AS e2e_ns
FROM (
  SELECT k, start_ns, which, prompt,
    CASE WHEN hash(k * 5) % 100 < 70 - 20 * late THEN prompt * 3 // 4 ELSE 0 END AS cached,
    CASE WHEN which < 3 THEN prompt // 8 ELSE 0 END AS written
  FROM (
    SELECT range AS k, range * 2 // $requests AS late,
      {_FROM_NS} + CAST(range * ({2 * _WEEK_NS}.0 / $requests) AS BIGINT) AS start_ns,
      CAST(CASE WHEN range * 2 // $requests = 1 AND hash(range * 7) % 10 < 1 THEN 2
        ELSE hash(range * 11) % {len(MODELS)} END AS BIGINT) AS which,
      CAST(500 + hash(range * 23) % 7000 + 600 * (range * 2 // $requests) AS BIGINT) AS prompt
    FROM range($requests)
  )
)
ORDER BY k
"""
_SCAN = """
import sys
from analyzer.store.case import open_case
open_case(sys.argv[1]).run(
    "SELECT model, sum(input_fresh_tokens), sum(cache_read_tokens), sum(output_visible_tokens) "
    "FROM request GROUP BY model"
)
"""


def _day(number: int) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(_FROM_NS // _S + number * 86_400))


COMMANDS = (
    ("cost",),
    ("cost", "--by", "day,model"),
    ("cost", "--baseline", f"{_day(0)}..{_day(7)}", "--window", f"{_day(7)}..{_day(14)}"),
)  # fmt: skip
ALONE = ("SELECT count(*), sum(usd), sum(unpriced_tokens) FROM cost_request",)


def write_case(path: Path, requests: int) -> None:
    """Two weeks of requests as a gateway's log would have given them."""
    path.unlink(missing_ok=True)
    case = open_case(path, write=True)
    case.run("BEGIN TRANSACTION")
    row = {
        "source_id": 1, "path": "gateway.jsonl", "sha256": f"{1:064x}", "reader": "request_records",
        "record_unit": "line", "records": requests, "used": requests, "ignored": 0, "problems": 0,
        "first_ns": _FROM_NS, "last_ns": _FROM_NS + 2 * _WEEK_NS,
    }  # fmt: skip
    case.insert("source", pa.Table.from_pylist([row], schema=TABLES["source"]))
    sql = _REQUESTS.replace("$requests", str(requests))
    sql = sql.replace("{models}", ", ".join(f"'{name}'" for _, name in MODELS))
    sql = sql.replace("{providers}", ", ".join(f"'{name}'" for name, _ in MODELS))
    case.run(sql)
    case.run("COMMIT")
    case.close()


def measured(db: Path) -> dict[str, Cost]:
    """What each command takes; one that fails says so and is left out."""
    out = {"a scan": cost(sys.executable, "-c", _SCAN, str(db))}
    for words in (*COMMANDS, *(("sql", text, "-f", "json") for text in ALONE)):
        name = " ".join(words)[:60]
        try:
            out[name] = command(db, *words)
        except subprocess.CalledProcessError as error:
            print(f"  {name}: failed, {error}")
    return out


def main() -> None:
    """Print the table; numbers are of this machine and this run."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sizes", default="1000000,10000000")
    asked = parser.parse_args()
    before: tuple[int, dict[str, Cost]] | None = None
    with tempfile.TemporaryDirectory() as folder:
        print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} before the first run")
        for size in (int(number) for number in asked.sizes.split(",")):
            db = Path(folder) / f"{size}.duckdb"
            write_case(db, size)
            told = f"{size:,} requests, {db.stat().st_size / 1e6:,.0f} MB"
            print(f"{told}, load {os.getloadavg()[0]:.1f}", flush=True)
            costs = measured(db)
            for name, took in costs.items():
                power = ""
                if before and name in before[1]:
                    old = before[1][name].cpu_s
                    power = f"  exponent {exponent(old, took.cpu_s, size / before[0]):.2f}"
                print(f"  {name:60} {took}{power}", flush=True)
            before = (size, costs)
            db.unlink()


if __name__ == "__main__":
    main()

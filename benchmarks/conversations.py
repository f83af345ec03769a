"""How the analyses of conversations grow: a session of 10,000 turns, a fleet of a million requests.

``python benchmarks/conversations.py [--fleet 100000,1000000] [--session 1000,10000]
[--hashed 10000,100000]`` writes cases straight into the store: sessions of ten calls (some with
sub-agents, pauses, changed prefixes), a single session that is compacted again and again, and calls
without a session id whose prompts are known as hashes of blocks. Then it times whole commands and,
apart, each analysis and play, as ``scale.py`` does.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

import pyarrow as pa
from scale import BEGIN_NS, grown

from analyzer.contract.tables import TABLES
from analyzer.store.case import Case, open_case

COMMANDS = (
    ("turns",), ("turns", "--reasons"), ("findings",), ("report", "-o", "REPORT", "--force"),
)  # fmt: skip
TURNS = 10
"""Calls of a session of the fleet."""
_S = 1_000_000_000

# hash() is the same in every run, so the same size gives the same case. Of a thousand calls, 20
# come after a long pause and 10 have another prompt; what those read from the cache is nothing.
_CALLS = f"""
CREATE TEMPORARY TABLE calls AS
SELECT *,
  CASE WHEN turn = 1 OR luck < 30 OR grown < 800 THEN 0 ELSE prompt - step END AS cached
FROM (
  SELECT k, session, turn, luck, grown,
    400 + CAST(hash(k * 7) % 900 AS BIGINT) AS step,
    4000 + CAST(hash(session * 3) % 9000 AS BIGINT) + grown AS prompt,
    {BEGIN_NS} + begin_s * {_S} + turn * 40 * {_S} + CAST(hash(k * 11) % 20 * {_S} AS BIGINT)
      + pauses * 400 * {_S} AS start_ns
  FROM (
    SELECT k, session, turn, begin_s, hash(k * 5) % 1000 AS luck,
      CASE WHEN $calls > 100 THEN turn % 200 ELSE turn END * 850 AS grown,
      count(*) FILTER (hash(k * 5) % 1000 < 20) OVER (PARTITION BY session ORDER BY turn) AS pauses
    FROM (
      SELECT range AS k, range // $calls AS session, range % $calls + 1 AS turn,
        (range // $calls) * 4 AS begin_s
      FROM range($requests)
    )
  )
)
"""
_REQUESTS = """
INSERT INTO request BY NAME
SELECT 1 AS source_id, k + 1 AS record, 'client' AS vantage, 'stated' AS timing,
  'req-' || k AS request_id, 1 AS attempt, 'wall' AS clock, start_ns,
  CASE WHEN $named THEN CASE WHEN session % 20 = 7 AND turn > 6 THEN 'a-' || session
    ELSE 's-' || session END END AS session_id,
  CASE WHEN $named AND session % 20 = 7 AND turn > 6 THEN 's-' || session END AS parent_session_id,
  $named AND session % 20 = 7 AND turn > 6 AS is_sidechain,
  CASE session % 3 WHEN 0 THEN 'claude-sonnet-4-5' WHEN 1 THEN 'gpt-4.1' ELSE 'orion-7b' END
    AS model,
  CASE session % 3 WHEN 0 THEN 'anthropic' WHEN 1 THEN 'openai' ELSE 'vllm' END AS provider,
  'route-' || (session % 8) AS route, TRUE AS usage_final, TRUE AS streamed,
  'stop' AS finish_reason,
  CASE WHEN session % 3 = 0 THEN 20 ELSE prompt - cached END AS input_fresh_tokens,
  cached AS cache_read_tokens,
  CASE WHEN session % 3 = 0 THEN greatest(prompt - cached - 20, 0) END AS cache_write_short_tokens,
  300 AS output_visible_tokens, 200000000 + (prompt - cached) * 50000 AS ttft_ns,
  6000000000 + (prompt - cached) * 50000 AS e2e_ns,
  CASE WHEN $hashed THEN 512 END AS prefix_block_tokens
FROM calls ORDER BY k
"""
_BLOCKS = """
INSERT INTO prompt_block BY NAME
SELECT 1 AS source_id, k + 1 AS record, block AS block_index,
  md5(CASE WHEN block < 4 THEN 'system' || block
    ELSE session || '-' || block || CASE WHEN luck < 10 THEN '-' || k ELSE '' END END)
    AS prefix_hash
FROM calls, (SELECT range AS block FROM range(200))
WHERE block * 512 < prompt
ORDER BY k, block
"""


def _run(case: Case, sql: str, **values: object) -> None:
    for name, value in values.items():
        sql = sql.replace(f"${name}", str(value))
    case.run(sql)


def write_case(path: Path, requests: int, calls: int, *, hashed: bool = False) -> None:
    """Sessions of ``calls`` calls each; with ``hashed``, without ids and with blocks of prompts."""
    path.unlink(missing_ok=True)
    case = open_case(path, write=True)
    case.run("BEGIN TRANSACTION")
    row = {
        "source_id": 1, "path": "client.jsonl", "sha256": f"{1:064x}", "reader": "request_records",
        "record_unit": "line", "records": requests, "used": requests, "ignored": 0, "problems": 0,
        "first_ns": BEGIN_NS, "last_ns": BEGIN_NS + (requests // calls * 4 + calls * 60) * _S,
    }  # fmt: skip
    case.insert("source", pa.Table.from_pylist([row], schema=TABLES["source"]))
    _run(case, _CALLS, requests=requests, calls=calls)
    _run(case, _REQUESTS, named=not hashed, hashed=hashed)
    if hashed:
        _run(case, _BLOCKS)
    case.run("COMMIT")
    case.close()


def _fleet(db: Path, size: int) -> str:
    write_case(db, size, TURNS)
    return f"{size:,} requests in {size // TURNS:,} sessions"


def _session(db: Path, size: int) -> str:
    write_case(db, size, size)
    return f"one session of {size:,} turns"


def _hashed(db: Path, size: int) -> str:
    write_case(db, size, TURNS, hashed=True)
    return f"{size:,} requests without a session, with the blocks of their prompts"


def main() -> None:
    """Print the tables; numbers are of this machine and this run."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--fleet", default="100000,1000000")
    parser.add_argument("--session", default="1000,10000")
    parser.add_argument("--hashed", default="10000,100000")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} before the first run")
        for told, make in (
            (asked.session, _session), (asked.fleet, _fleet), (asked.hashed, _hashed),
        ):  # fmt: skip
            sizes = [int(size) for size in told.split(",") if size.strip("0")]
            if sizes:
                grown(Path(name), sizes, COMMANDS, make)


if __name__ == "__main__":
    main()

"""How fast access logs of gateways are read, against the plainest way to read the same values.

``python benchmarks/access_logs.py [--lines 1000000]`` writes a log of nginx (JSON lines) and one of
Envoy (its default text) and times whole processes, as ``run.py`` does: ``analyze ingest`` into a
new case against DuckDB's ``read_json`` into a table, and against one regular expression a line.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from run import compare

_BEGIN_MS = 1_784_203_200_000
_READ_JSON = """
import os, sys, duckdb
with duckdb.connect(sys.argv[2] + str(os.getpid())) as connection:
    query = "CREATE TABLE line AS SELECT * FROM read_json('" + sys.argv[1] + "')"
    connection.execute(query).fetchall()
"""
_ONE_PATTERN = r"""
import re, sys
line = re.compile(
    r'\[([^\]]*)\] "([^ ]+) ([^ ]+) [^"]+" ([0-9]+|-) ([^ ]+) [0-9]+ [0-9]+ ([0-9]+|-) ([0-9]+|-) '
    r'"[^"]*" "[^"]*" "([^"]*)" "[^"]*" "([^"]*)"')
rows = []
for text in open(sys.argv[1]):
    found = line.match(text)
    if found:
        rows.append(found.groups())
"""


def _seconds(ms: int) -> str:
    return f"{ms // 1000}.{ms % 1000:03d}"


def _nginx(rng: random.Random, end_ms: int) -> str:
    took = rng.randrange(200, 9000)
    head, size = rng.randrange(50, took), took * 9
    return (
        f'{{"msec":"{_seconds(end_ms)}","request":"POST /v1/chat/completions HTTP/1.1",'
        f'"status":200,"request_time":{_seconds(took)},"upstream_addr":"10.4.0.{took % 9}:8000",'
        f'"upstream_status":"200","upstream_connect_time":"0.001","upstream_header_time":'
        f'"{_seconds(head)}","upstream_response_time":"{_seconds(took)}","bytes_sent":{size},'
        f'"upstream_bytes_received":"{size}","sent_http_content_type":"text/event-stream",'
        f'"gzip_ratio":"","request_completion":"OK","http_x_request_id":'
        f'"{rng.getrandbits(128):032x}","upstream_http_x_request_id":""}}\n'
    )


def _envoy(rng: random.Random, start_ms: int) -> str:
    took = rng.randrange(200, 9000)
    stamp = f"{datetime.fromtimestamp(start_ms // 1000, tz=UTC):%Y-%m-%dT%H:%M:%S}"
    return (
        f'[{stamp}.{start_ms % 1000:03d}Z] "POST /v1/chat/completions HTTP/1.1" 200 - 512 '
        f'{took * 9} {took} {rng.randrange(50, took)} "10.9.0.4" "OpenAI/Python 3.57.0" '
        f'"{rng.getrandbits(128):032x}" "llm.example.org" "10.4.0.{took % 9}:8000"\n'
    )


def _write(path: Path, line, lines: int) -> Path:
    rng, at = random.Random(7), _BEGIN_MS
    with path.open("w") as out:
        for _ in range(lines):
            at += rng.randrange(20)
            out.write(line(rng, at))
    return path


def main() -> None:
    """Print both rows; numbers are of this machine and this run."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--lines", type=int, default=1_000_000)
    lines = parser.parse_args().lines
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} before the first run")
        nginx = _write(folder / "nginx.jsonl", _nginx, lines)
        bare = str(folder / "bare")
        compare(
            "nginx JSON lines", nginx, "DuckDB read_json", sys.executable, "-c", _READ_JSON,
            str(nginx), bare,
        )  # fmt: skip
        nginx.unlink()
        envoy = _write(folder / "envoy.log", _envoy, lines)
        compare(
            "Envoy text", envoy, "re, line by line", sys.executable, "-c", _ONE_PATTERN, str(envoy)
        )


if __name__ == "__main__":
    main()

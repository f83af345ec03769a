"""Coding-agent transcripts: a folder as large as a busy year, and how fast it is counted.

``python benchmarks/transcripts.py [--megabytes 336] [--files 1000] [--ccusage COMMAND]`` writes a
seeded folder as Claude Code lays it out (``projects/<project>/<session>.jsonl``, sub-agents below)
and times ``analyze ingest`` against ``ccusage`` over it (``npm install ccusage``), whole processes
both, and the parts of ours apart. ``--keep DIR`` leaves the folder there.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from run import best, cost

_BEGIN = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)
_TEXT = (
    "the file returns an error when two callers share one buffer so this change keeps a copy for "
    "each of them and the test now fails without it import value config request session handler "
    "self.items[index] = result # see the note above\n    return None\n"
)
_MODELS = ("claude-opus-4-6", "claude-sonnet-4-5-20250929", "claude-haiku-4-5-20251001")
_SPENT = """
import json, sys, threading, time
import analyzer.intake
from analyzer.intake import _ahead
from analyzer.readers import claude_code, _find
from analyzer.readers._file import InputFile
from analyzer.store.case import Case, FileWriter
spent = {}
def timed(owner, name, label):
    genuine = getattr(owner, name)
    def run(*args, **options):
        start = time.process_time()
        try:
            return genuine(*args, **options)
        finally:
            spent[label] = spent.get(label, 0) + time.process_time() - start
    setattr(owner, name, run)
genuine = claude_code.read
def read(file, options):
    start = time.process_time()
    for batch in genuine(file, options):
        spent["read lines"] = spent.get("read lines", 0) + time.process_time() - start
        yield batch
        start = time.process_time()
    spent["read lines"] = spent.get("read lines", 0) + time.process_time() - start
claude_code.READER = __import__("dataclasses").replace(claude_code.READER, read=read)
timed(InputFile, "fingerprint", "hash")
timed(_find.Usual, "pick", "recognise")
timed(FileWriter, "append", "store")
timed(FileWriter, "finish", "store")
timed(Case, "flush", "store: write")
timed(Case, "close", "store: close")
_ahead._processes = lambda files: 0  # all of it in this process, where it is seen
_find.all_readers()
spent["start"] = start = time.process_time()
analyzer.intake.ingest(sys.argv[2], [sys.argv[1]])
spent["all of it, without the start"] = time.process_time() - start
print(json.dumps(spent))
"""


class _Writer:
    """One session after another, each a chain of prompts, answers and tool results."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        words = _TEXT.split(" ")
        self.pool = " ".join(self.rng.choice(words) for _ in range(200_000))
        self.now = _BEGIN

    def id(self) -> str:
        return str(uuid.UUID(int=self.rng.getrandbits(128), version=4))

    def text(self, chars: int) -> str:
        start = self.rng.randrange(len(self.pool) - chars)
        return self.pool[start : start + chars]

    def stamp(self) -> str:
        return self.now.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def line(self, kind: str, parent: str | None, session: dict[str, Any], **more: Any) -> str:
        self.now += timedelta(milliseconds=self.rng.randint(20, 4000))
        self.last = self.id()
        line = {
            "parentUuid": parent, **session, "userType": "external", "cwd": "/home/dev/project",
            "version": "2.1.80", "gitBranch": "main", "type": kind, **more,
            "uuid": self.last, "timestamp": self.stamp(),
        }  # fmt: skip
        return json.dumps(line, separators=(",", ":"))

    def session(self, size: int, session: dict[str, Any]) -> Iterator[str]:
        """Lines of about ``size`` bytes in all: turns of a prompt or tool result and an answer."""
        rng, parent, written = self.rng, None, 0
        context = rng.randint(14_000, 30_000)
        model = rng.choice(_MODELS)
        while written < size:
            told = {"role": "user", "content": [{"type": "tool_result", "content": ""}]}
            told["content"][0]["content"] = self.text(rng.randint(200, 8_000))
            line = self.line("user", parent, session, message=told)
            written += len(line)
            yield line
            parent = self.last
            for line in self.answer(parent, session, model, context):
                written += len(line)
                yield line
            parent = self.last
            context += rng.randint(300, 2_500)

    def answer(
        self, parent: str, session: dict[str, Any], model: str, context: int
    ) -> Iterator[str]:
        """One request: a line for each block of the answer, its output growing."""
        rng = self.rng
        mid, rid = f"msg_{rng.getrandbits(96):024x}", f"req_{rng.getrandbits(96):024x}"
        blocks = rng.choice((["text"], ["thinking", "text"], ["thinking", "text", "tool_use"]))
        output, write = rng.randint(80, 1_500), rng.randint(200, 3_000)
        for number, block in enumerate(blocks):
            last = number == len(blocks) - 1
            usage = {
                "input_tokens": 6, "cache_creation_input_tokens": write,
                "cache_read_input_tokens": context,
                "cache_creation": {
                    "ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": write,
                },
                "output_tokens": output if last else min(output, 3), "service_tier": "standard",
                "server_tool_use": {"web_search_requests": 0, "web_fetch_requests": 0},
                "inference_geo": "not_available", "speed": "standard",
            }  # fmt: skip
            usage["iterations"] = [{**usage_counts(usage), "type": "message"}]
            message = {
                "model": model, "id": mid, "type": "message", "role": "assistant",
                "content": [{"type": block, "text": self.text(rng.randint(80, 2_400))}],
                "stop_reason": "end_turn" if last else None, "stop_sequence": None, "usage": usage,
            }  # fmt: skip
            yield self.line("assistant", parent, session, message=message, requestId=rid)
            parent = self.last


def usage_counts(usage: dict[str, Any]) -> dict[str, Any]:
    """The counts alone, as a pass of the request tells them."""
    return {name: value for name, value in usage.items() if name.endswith("_tokens")}


def write(folder: Path, megabytes: float, files: int, seed: int = 7) -> int:
    """Sessions, one in five with a sub-agent, one in twelve resumed elsewhere; bytes written."""
    writer = _Writer(seed)
    size = int(megabytes * 1e6 / files)
    done, total = 0, 0
    while done < files:
        project = folder / "projects" / f"-home-dev-project-{done % 12}"
        own = writer.id()
        lines = list(writer.session(size, {"isSidechain": False, "sessionId": own}))
        todo = [(project / f"{own}.jsonl", lines)]
        if done % 5 == 0:
            agent = f"{writer.rng.getrandbits(64):016x}"
            marks = {"isSidechain": True, "sessionId": own, "agentId": agent}
            child = list(writer.session(size, marks))
            todo.append((project / own / "subagents" / f"agent-{agent}.jsonl", child))
        if done % 12 == 0:
            other = writer.id()
            copied = [line.replace(own, other) for line in lines[: len(lines) // 2]]
            todo.append((project / f"{other}.jsonl", copied))
        for path, some in todo:
            path.parent.mkdir(parents=True, exist_ok=True)
            total += path.write_text("\n".join(some) + "\n", encoding="utf-8")
        done += len(todo)
    return total


def ours(folder: Path, db: Path) -> Any:
    """``analyze ingest`` of the folder into a new case."""
    db.unlink(missing_ok=True)
    return cost(sys.executable, "-m", "analyzer", "--db", str(db), "ingest", str(folder))


def spent(folder: Path, db: Path) -> None:
    """Where our time goes, with everything in one process."""
    db.unlink(missing_ok=True)
    done = subprocess.run(
        [sys.executable, "-c", _SPENT, str(folder), str(db)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    for label, seconds in json.loads(done.stdout).items():
        print(f"    {label:30} {seconds:6.2f} CPU s")


def main() -> None:
    """Print both; numbers are of this machine and this run."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--megabytes", type=float, default=336)
    parser.add_argument("--files", type=int, default=1_000)
    parser.add_argument("--ccusage", default="")
    parser.add_argument("--keep", default="")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(asked.keep or name) / "claude"
        if not folder.exists():
            write(folder, asked.megabytes, asked.files)
        files = list(folder.rglob("*.jsonl"))
        size = sum(path.stat().st_size for path in files) / 1e6
        print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} before the first run")
        print(f"transcripts, {size:,.0f} MB in {len(files):,} files")
        db = Path(name) / "case.duckdb"
        print(f"  analyze ingest  {best(ours, folder, db)}")
        spent(folder, db)
        if asked.ccusage:
            os.environ["CLAUDE_CONFIG_DIR"] = str(folder)
            told = (asked.ccusage, "daily", "--json", "--offline")
            print(f"  ccusage daily   {best(cost, *told)}")


if __name__ == "__main__":
    main()

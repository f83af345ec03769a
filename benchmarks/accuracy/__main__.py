"""How right the tool is, against the simulator's truth: ``python benchmarks/accuracy``.

For each play that has a fault, ``--worlds`` worlds are drawn by seed, and ``--free`` without any;
each is run, its logs are read, and the verdict is held against the truth. Results are JSON lines in
``--results``: a run that was cut goes on where it was, unless the tool changed since. ``--base``
moves the seeds: the published table has 1000000 and nothing else does, thresholds are chosen on 0.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from faults import FAULTS  # noqa: E402
from table import table  # noqa: E402
from trial import FREE, one_world  # noqa: E402

ROOT = HERE.parents[1]
PUBLISHED = 1_000_000
_SOURCES = ("*.py", "*.sql", "*.md", "*.toml", "*.json")


def version() -> str:
    """Digest of the tool and of this benchmark: results of another one are not mixed in."""
    digest = hashlib.sha256()
    for folder in (ROOT / "analyzer", HERE):
        for kind in _SOURCES:
            for path in sorted(folder.rglob(kind)):
                if path.name != "TABLE.md":
                    digest.update(path.relative_to(ROOT).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()[:12]


def known(path: Path, current: str | None) -> dict[tuple[str, int], dict[str, Any]]:
    """Results that are there already; a line cut in the middle is none."""
    found = {}
    if path.exists():
        for line in path.read_text().splitlines():
            try:
                one = json.loads(line)
            except ValueError:
                continue
            if "crash" not in one and current in (None, one["version"]):
                found[one["rule"], one["number"]] = one
    return found


def run(asked: list[tuple[str, int]], args: argparse.Namespace, current: str) -> None:
    """Run the worlds that are missing, and note each as soon as it is done."""
    args.results.parent.mkdir(parents=True, exist_ok=True)
    cut = args.results.exists() and not args.results.read_bytes().endswith(b"\n")
    began = time.perf_counter()
    spawn = multiprocessing.get_context("spawn")
    with (
        args.results.open("a", encoding="utf-8") as file,
        ProcessPoolExecutor(args.jobs, mp_context=spawn) as pool,
    ):
        file.write("\n" if cut else "")
        waiting = [pool.submit(one_world, *one, args.base, args.keep) for one in asked]
        try:
            for done, future in enumerate(as_completed(waiting), 1):
                result = future.result()
                if "crash" in result:
                    print(
                        f"\n{result['rule']} {result['number']}: {result['crash']}", file=sys.stderr
                    )
                file.write(json.dumps(result | {"version": current}) + "\n")
                file.flush()
                if sys.stderr.isatty() or done == len(asked):
                    spent = time.perf_counter() - began
                    print(
                        f"\r{done} of {len(asked)} worlds, {spent:.0f} s", end="", file=sys.stderr
                    )
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    print(file=sys.stderr)


def options(arguments: list[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="accuracy", description=__doc__)
    parser.add_argument("--faults", default=",".join((*FAULTS, FREE)), help="rules, or 'none'")
    parser.add_argument("--worlds", type=int, default=20, help="of each fault")
    parser.add_argument("--free", type=int, default=150, help="worlds without a fault")
    parser.add_argument("--base", "--seed-base", type=int, default=PUBLISHED, dest="base")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--results", type=Path, help="default reports/accuracy-BASE.jsonl")
    parser.add_argument("--table", type=Path, help="also write the Markdown here")
    parser.add_argument("--keep", help="folder for the logs of worlds that were judged wrongly")
    parser.add_argument("--any-version", action="store_true", help="take results of older code too")
    parser.add_argument("--quick", action="store_true", help="one world a fault, six without")
    args = parser.parse_args(arguments)
    if args.quick:
        args.worlds, args.free = 1, 6
    if args.results is None:
        args.results = ROOT / "reports" / f"accuracy-{args.base}.jsonl"
    unknown = set(args.faults.split(",")) - {*FAULTS, FREE}
    if unknown:
        parser.error(f"no fault {', '.join(sorted(unknown))}; known: {', '.join(FAULTS)}, {FREE}")
    return args


def main(arguments: list[str] | None = None) -> None:
    """Run what is missing, and print the table of what was asked."""
    args = options(arguments)
    current = version()
    asked = [
        (rule, number)
        for rule in args.faults.split(",")
        for number in range(args.free if rule == FREE else args.worlds)
    ]
    there = known(args.results, None if args.any_version else current)
    # Neighbours differ in their fault, so that a run that is cut has some of each.
    missing = sorted((one for one in asked if one not in there), key=lambda one: one[1])
    if missing:
        run(missing, args, current)
    told = known(args.results, None if args.any_version else current)
    crashed = [one for one in asked if one not in told]
    text = table([told[one] for one in asked if one in told], crashed, args.base)
    if args.table is not None:
        args.table.write_text(text, encoding="utf-8")
    print(text, end="")


if __name__ == "__main__":
    main()

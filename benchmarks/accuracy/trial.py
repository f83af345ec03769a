"""One world: drawn, run, read, judged, and held against its truth. Everything in one process."""

from __future__ import annotations

import json
import random
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from causes import Truth, true_causes
from faults import FAULTS, draw
from measured import clock_of, measured, modelled

from analyzer import api
from analyzer.simulate.run import simulate
from analyzer.simulate.world import from_dict

FREE = "none"
"""Name of the fault of a world that has none."""
MOST_REDRAWS = 40
DATA_RULES = ("trust.clock",)
"""Hold of the logs and not of the service: a world may have them and still no fault."""


def seed_of(base: int, rule: str, number: int) -> int:
    """Seed of a world; those of different bases never meet."""
    place = 0 if rule == FREE else 1 + list(FAULTS).index(rule)
    return base + place * 1000 + number


def one_world(rule: str, number: int, base: int, keep: str | None) -> dict[str, Any]:
    """Result of a world, also where the tool itself fails: that is one too."""
    try:
        return run_world(rule, number, base, keep)
    except Exception as error:
        told = f"{type(error).__name__}: {error}"[:300]
        return {"rule": rule, "number": number, "base": base, "crash": told}


def run_world(rule: str, number: int, base: int, keep: str | None = None) -> dict[str, Any]:
    """Result of one world; ``keep`` is a folder for its logs where the verdict is wrong."""
    began = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="accuracy-") as folder:
        result = _drawn(rule, number, base, Path(folder))
        if keep is not None and result.get("wrong"):
            kept = Path(keep) / f"{rule}-{base + number}"
            shutil.rmtree(kept, ignore_errors=True)
            shutil.copytree(folder, kept, ignore=shutil.ignore_patterns("*.duckdb*"))
            result["kept"] = str(kept)
    result["seconds"] = round(time.perf_counter() - began, 2)
    return result


def _drawn(rule: str, number: int, base: int, folder: Path) -> dict[str, Any]:
    """Draw until the world shows what it should: its fault, or none."""
    seed = seed_of(base, rule, number)
    result: dict[str, Any] = {"rule": rule, "number": number, "base": base}
    for redraw in range(MOST_REDRAWS):
        told = draw(random.Random(f"{seed}/{redraw}"), None if rule == FREE else rule, number)
        mix = told.pop("mix")
        told["seed"] = seed * 16 + redraw
        truth = _simulated(told, folder)
        held = true_causes(truth)
        must = {one for one, said in held.items() if said == "yes"}
        fits = not must - set(DATA_RULES) if rule == FREE else rule in must
        if fits:
            result |= {"mix": mix, "redraws": redraw, "truth": held, "seed": seed}
            (folder / "world.toml").write_text(_toml(told))
            return result | _judged(folder, truth, held)
        shutil.rmtree(folder / "logs")
    return result | {"undrawn": sorted(held), "redraws": MOST_REDRAWS}


def _simulated(told: dict[str, Any], folder: Path) -> Truth:
    world = from_dict(told)
    simulate(world, folder / "logs")
    path = folder / "truth.jsonl"
    (folder / "logs" / "truth.jsonl").rename(path)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return Truth(
        [one for one in lines if "event" not in one],
        [one for one in lines if "event" in one],
        told,
        world.start_ns,
    )


def _judged(folder: Path, truth: Truth, held: dict[str, str]) -> dict[str, Any]:
    db = str(folder / "case.duckdb")
    api.ingest(db, [str(folder / "logs")])
    findings = api.findings(db)
    found = {one.rule: one.severity for one in findings.found}
    cannot = sorted(one.rule for one in findings.cannot_say)
    fired = {one for one, severity in found.items() if severity != "note"}
    wrong = sorted(fired - held.keys())
    missed = sorted(
        one
        for one, said in held.items()
        if said == "yes" and one not in fired and one not in cannot
    )
    return {
        "requests": len(truth.attempts),
        "found": found,
        "clear": sorted(one.rule for one in findings.clear),
        "cannot": cannot,
        "wrong": wrong + [f"missed {one}" for one in missed],
        "measured": measured(db, truth),
        "modelled": modelled(folder, truth),
        "clock": clock_of(db, truth),
    }


def _toml(value: dict[str, Any]) -> str:
    """A world as a TOML file: nested values inline."""
    return "".join(f"{key} = {_inline(one)}\n" for key, one in value.items())


def _inline(value: object) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_inline(one)}" for key, one in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_inline, value)) + "]"
    return json.dumps(value)

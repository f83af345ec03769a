"""Worlds run: logs with known truth, what-ifs, the teaching model, and worlds like a case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from analyzer.contract.types import Filters, Table
from analyzer.engines.duckdb import Engine
from analyzer.errors import AnalyzerError
from analyzer.questions.like import observed
from analyzer.simulate import run as simulated
from analyzer.simulate import two_stage as two_stages
from analyzer.simulate.like import Fitted, against, world_like
from analyzer.simulate.money import billing_of
from analyzer.simulate.summary import Summary
from analyzer.simulate.what_if import changed
from analyzer.simulate.what_if import what_if as compared
from analyzer.simulate.world import load
from analyzer.store.case import open_case


def two_stage(settings: Mapping[str, str]) -> Table:
    """The teaching model of a two-stage server, in units of cost, and its curves."""
    return two_stages.table(two_stages.told(dict(settings)))


def simulate(
    scenario: str, folder: str | Path, *, sets: Sequence[str] = (), seed: int | None = None,
    force: bool = False,
) -> Table:  # fmt: skip
    """Run a world (a TOML file, or the name of one that ships) and write its logs and truth."""
    world = changed(simulated.world_named(scenario), sets, seed)
    target = _may_fill(folder, force=force)
    counts = simulated.simulate(world, target)
    row = {
        "world": world.name, "seed": world.seed, "folder": str(target),
        "logs": ", ".join(one.format for one in simulated.logs_of(world)),
        "attempts": counts.attempts, "failed": counts.failed,
        "output_tokens": counts.output_tokens, "chunks": counts.chunks, "steps": counts.steps,
        "span_ns": counts.last_ns - counts.first_ns,
    }  # fmt: skip
    return Table("analyze.simulate", (row,))


def simulate_like(
    db: str, folder: str | Path, filters: Filters | None = None, *, sets: Sequence[str] = (),
    seed: int | None = None, force: bool = False,
) -> Table:  # fmt: skip
    """Fit a world to a case, write it and its logs, and hold it against the case.

    ``world.toml`` is the fitted world; ``sets`` change what is run and not the file.
    """
    target = _may_fill(folder, force=force)
    seen, fitted = _fitted(db, filters, seed)
    world = changed(load(fitted.write(target)), sets, seed)
    made = Summary(billing_of(world))
    simulated.simulate(world, target, made)
    return against(seen, fitted, made)


def what_if(
    scenario: str, alternatives: Sequence[str], *, sets: Sequence[str] = (), seed: int | None = None
) -> Table:
    """Segments and cost of a world, as it is and with each alternative on its own."""
    world = changed(simulated.world_named(scenario), sets, seed)
    return compared(world, alternatives, simulated.run)


def what_if_like(
    db: str, alternatives: Sequence[str], filters: Filters | None = None, *,
    sets: Sequence[str] = (), seed: int | None = None,
) -> Table:  # fmt: skip
    """The same of a world that is fitted to a case first."""
    _, fitted = _fitted(db, filters, seed)
    with TemporaryDirectory(prefix="analyze-world-") as folder:
        world = changed(load(fitted.write(Path(folder))), sets, seed)
        return compared(world, alternatives, simulated.run)


def _fitted(
    db: str, filters: Filters | None, seed: int | None
) -> tuple[Mapping[str, object], Fitted]:
    case = open_case(db)
    try:
        seen = observed(Engine(case, filters))
    finally:
        case.close()
    return seen, world_like(seen, 1 if seed is None else seed)


def _may_fill(folder: str | Path, *, force: bool) -> Path:
    target = Path(folder)
    if target.exists() and (not target.is_dir() or any(target.iterdir())) and not force:
        raise AnalyzerError(f"{target} is not empty", "--force writes into it all the same")
    return target

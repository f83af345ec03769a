"""What if: the same world again with something changed, and how segments and cost move.

Both runs have the same seed, so they differ by the change and not by the dice.
"""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from analyzer.contract.types import Table
from analyzer.errors import AnalyzerError, hint_of
from analyzer.simulate.money import billing_of
from analyzer.simulate.summary import DURATIONS, Summary
from analyzer.simulate.world import with_sets

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from analyzer.simulate.world import World

KIND = "analyze.simulate.what-if"
NS = 1_000_000_000
_ENGINE = {
    "batch": "max_running",
    "chunk": "max_step_tokens",
    "cache": "prefix_cache",
    "weights": "weights",
    "kv": "kv",
}
_ARRIVALS = {
    "prompt": "prompt_tokens.mean",
    "output": "output_tokens.mean",
    "cap": "max_tokens",
    "rate": "rate_per_s",
}
_TRACE = {"prompt": "scale_prompt", "output": "scale_output", "rate": "speed"}
_WORDS = {"on": "true", "off": "false"}
_QUANTISATION = ("weights", "kv")


def expand(world: World, text: str) -> list[str]:
    """``key=value`` of one of the short names as fields of this world; others stay as they are.

    ``2x`` multiplies what the world has: ``prompt=2x``, ``rate=1.5x``.
    """
    key, sign, value = text.partition("=")
    key, value = key.strip(), _WORDS.get(value.strip(), value.strip())
    if not sign or not value:
        raise AnalyzerError(f"{text!r} has no value", "write batch=64, replicas=4, cache=off, ...")
    if key in _QUANTISATION and world.engine.step is not None:
        raise AnalyzerError(
            f"{key} changes nothing here: [engine.step] gives the step's time",
            "remove it and name model and gpu, so that the time follows from their bytes",
        )
    if key in _ENGINE:
        return _of_engine(world, key, value)
    if key in _ARRIVALS:
        return _of_arrivals(world, key, value)
    if key == "replicas":
        return [f"replicas={_replicas(world, value)}"]
    known = [*_ENGINE, *_ARRIVALS, "replicas", *(one.name for one in fields(world))]
    if key.partition(".")[0] not in known:
        raise AnalyzerError(f"a world has no {key!r}", hint_of(key, known))
    return [text]


def _of_engine(world: World, key: str, value: str) -> list[str]:
    field = _ENGINE[key]
    value = _scaled(value, getattr(world.engine, field), whole=True)
    sets = [f"engine.{field}={value}"]
    # A replica's own setting would win.
    sets += [
        f"replicas.{one.name}.set.{field}={value}" for one in world.replicas if field in one.set
    ]
    return sets


def _of_arrivals(world: World, key: str, value: str) -> list[str]:
    sets = []
    for index, stream in enumerate(world.arrivals):
        field = _ARRIVALS[key]
        if stream.process == "trace" and key in _TRACE:
            field = _TRACE[key]
            if not value.endswith("x"):
                raise AnalyzerError(
                    f"{key}={value}: what {stream.kind} asks for is in its trace",
                    f"write a factor: {key}=2x",
                )
        owner: Any = stream
        for part in field.split("."):
            owner = getattr(owner, part)
        sets.append(f"arrivals.{index}.{field}={_scaled(value, owner, whole=key == 'cap')}")
    return sets


def _scaled(value: str, now: object, *, whole: bool) -> str:
    """A factor like ``2x`` as the value it gives."""
    if not value.endswith("x"):
        return value
    try:
        factor = float(value[:-1])
    except ValueError:
        return value
    if isinstance(now, bool) or not isinstance(now, int | float):
        raise AnalyzerError(f"{value}: there is nothing to multiply", "give the value itself")
    scaled = factor * now
    return str(max(1, round(scaled))) if whole else repr(scaled)


def _replicas(world: World, value: str) -> str:
    if not value.isdigit() or not 0 < int(value) <= 1000:
        raise AnalyzerError(f"replicas={value} is no number of replicas", "replicas=4")
    named = [route.name for route in world.gateway.routes if route.replicas]
    if named:
        raise AnalyzerError(
            f"route {named[0]} names its replicas", "--set replicas and gateway.routes in full"
        )
    kept = [one.name for one in world.replicas][: int(value)]
    if any(one.set for one in world.replicas):
        raise AnalyzerError("replicas differ from each other here", "--set replicas in full")
    added = [f"engine-{index}" for index in range(len(kept), int(value))]
    names = list(dict.fromkeys([*kept, *added]))
    return "[" + ", ".join(f'{{name = "{name}"}}' for name in names) + "]"


def changed(world: World, texts: Sequence[str], seed: int | None = None) -> World:
    """A copy of the world with each ``key=value`` applied, short names understood."""
    for text in texts:
        world = with_sets(world, expand(world, text))
    return with_sets(world, (), seed) if seed is not None else world


def what_if(
    world: World, alternatives: Sequence[str], run: Callable[[World, Summary], object]
) -> Table:
    """Compare each alternative on its own with the world as it is.

    An alternative may be several changes: ``batch=64,chunk=4096``.
    """
    before = _summary(world, run)
    rows = []
    for text in alternatives:
        other = changed(world, _parts(text))
        after = _summary(other, run)
        for name, unit, was, now, *tails in _lines(world, before, other, after):
            rows.append({
                "what_if": text, "metric": name, "unit": unit, "before": was, "after": now,
                "change": now / was - 1 if was and now is not None else None,
                "before_p95": tails[0] if tails else None,
                "after_p95": tails[1] if tails else None,
            })  # fmt: skip
    return Table(KIND, tuple(rows))


def _parts(text: str) -> list[str]:
    """Changes between commas, where a comma is not within brackets of a value."""
    parts, depth, start = [], 0, 0
    for index, char in enumerate(text):
        depth += (char in "[{") - (char in "]}")
        if char == "," and depth == 0 and "=" in text[index:]:
            parts.append(text[start:index])
            start = index + 1
    return [*parts, text[start:]]


def _summary(world: World, run: Callable[[World, Summary], object]) -> Summary:
    summary = Summary(billing_of(world))
    run(world, summary)
    return summary


def _lines(world: World, before: Summary, other: World, after: Summary) -> list[tuple[Any, ...]]:
    """Metric, unit, before, after, and the 95th percentiles of a duration."""
    lines: list[tuple[Any, ...]] = []
    for name in DURATIONS:
        was, now = before.spread(name), after.spread(name)
        if was is None and now is None:
            continue
        means = (was.mean_ns if was else None, now.mean_ns if now else None)
        lines.append((name, "ns", *means, was.p95_ns if was else None, now.p95_ns if now else None))
    for name, unit, of in (
        ("requests", "1", lambda one, _: one.requests),
        ("failed attempts", "1", lambda one, _: one.failed),
        ("preemptions", "1", lambda one, _: one.preemptions),
        ("output rate", "tokens/s", lambda one, _: _per(one.output_tokens * NS, one.span_ns)),
        ("cache share", "ratio", lambda one, _: _per(one.cached_tokens, one.prompt_tokens)),
        ("GPU per 1k output", "s", _gpu_seconds),
    ):
        lines.append((name, unit, of(before, world), of(after, other)))
    if world.prices and not before.unpriced and not after.unpriced:
        lines.append(("cost", "USD", float(before.cost_usd), float(after.cost_usd)))
    return lines


def _per(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def _gpu_seconds(one: Summary, world: World) -> float | None:
    """Devices are paid for as long as the run lasts, busy or not."""
    setups = [world.engine_of(replica) for replica in world.replicas]
    devices = sum(setup.count or setup.tp or 1 for setup in setups)
    return _per(1000 * devices * one.span_ns / NS, one.output_tokens)

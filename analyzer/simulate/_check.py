"""What no single field of a world can say: whether they make sense together."""

from __future__ import annotations

import copy
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

from analyzer.errors import AnalyzerError
from analyzer.simulate._tables import put

if TYPE_CHECKING:
    from analyzer.simulate.world import Arrivals, EngineSetup, Route, World

_SIGNED = ("skew_ms", "drift_ppm", "seed")
_AT_LEAST_ONE = ("max_running", "max_step_tokens", "block_tokens", "stream_tokens", "kv_blocks",
                 "file_block_tokens", "attention_rows")  # fmt: skip
_ABOVE_ZERO = ("efficiency", "status_s", "link_gb_s")
_SHARES = ("loss", "failing", "acceptance", "subagent_share", "reasoning_share")
_FIXED = (
    "kind", "dp", "kv_blocks", "block_tokens", "prefix_cache", "cache_lifetime_s", "drafts",
)  # fmt: skip
"""Fields of an engine that it is built from."""
_CHOICES = {
    "process": ("poisson", "even", "bursty", "trace"),
    "policy": ("least_busy", "round_robin", "random", "session"),
    "role_chunk": ("none", "first_token", "accepted"),
}


def check(world: World) -> None:
    """Raise where a world cannot be run, and say what to change."""
    _sane(world)
    try:
        start = world.start_ns
    except ValueError:
        raise AnalyzerError(f"start is {world.start!r}", 'start = "2026-03-02T09:00:00Z"') from None
    if not 0 < start < 1 << 62:
        raise AnalyzerError(f"start is {world.start}", "a year from 1971 to 2100")
    names = [one.name for one in world.replicas]
    if not names or len(set(names)) != len(names):
        raise AnalyzerError("replicas need names of their own", "[[replicas]] name = ...")
    routes = {one.name: one for one in world.gateway.routes}
    for route in world.gateway.routes:
        _check_route(route, routes, names)
    for stream in world.arrivals:
        _check_arrivals(stream, routes)
    for log in world.logs:
        if log.replica is not None and log.replica not in names:
            raise AnalyzerError(f"log {log.format} names no replica {log.replica}", _known(names))
    for replica in world.replicas:
        _check_engine(replica.name, world.engine_of(replica))
    _check_changes(world)


def _known(names: object) -> str:
    return f"known: {', '.join(map(str, names))}"  # type: ignore[call-overload]


def _sane(owner: Any, place: str = "") -> None:  # noqa: ANN401 - any dataclass of a world
    """Numbers that no mechanism could have."""
    for one in fields(owner):
        value, where = getattr(owner, one.name), f"{place}{one.name}"
        if is_dataclass(value):
            _sane(value, f"{where}.")
        elif isinstance(value, list):
            for index, member in enumerate(value):
                if is_dataclass(member):
                    _sane(member, f"{where}.{index}.")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            _number(one.name, value, where)
        elif one.name in _CHOICES and value not in _CHOICES[one.name]:
            raise AnalyzerError(f"{where} is {value!r}", _known(_CHOICES[one.name]))


def _number(name: str, value: float, where: str) -> None:
    if value != value or (value < 0 and name not in _SIGNED):
        raise AnalyzerError(f"{where} is {value}", "give 0 or more")
    if name in _AT_LEAST_ONE and value < 1:
        raise AnalyzerError(f"{where} is {value}", "give 1 or more")
    if name in _ABOVE_ZERO and value <= 0:
        raise AnalyzerError(f"{where} is {value}", "give more than 0")
    if name in _SHARES and value > 1:
        raise AnalyzerError(f"{where} is {value}", "a share is between 0 and 1")


def _check_route(route: Route, routes: dict[str, Route], names: list[str]) -> None:
    for name in route.replicas:
        if name not in names:
            raise AnalyzerError(f"route {route.name} names no replica {name}", _known(names))
    if route.unreachable and route.timeout_s <= 0:
        raise AnalyzerError(f"route {route.name} would hang for ever", "give it timeout_s")
    seen, at = {route.name}, route
    while at.fallback is not None:
        if at.fallback not in routes:
            raise AnalyzerError(f"route {at.name} falls back to {at.fallback}", _known(routes))
        at = routes[at.fallback]
        if at.name in seen:
            raise AnalyzerError(
                f"route {route.name} falls back to itself", "the last fallback has none"
            )
        seen.add(at.name)


def _check_arrivals(stream: Arrivals, routes: dict[str, Route]) -> None:
    if stream.process == "trace" and not stream.file:
        raise AnalyzerError(f"arrivals {stream.kind} have no file", 'file = "trace.jsonl"')
    if stream.process == "bursty" and stream.burst <= 0:
        raise AnalyzerError(f"arrivals {stream.kind}: burst is 0", "give more, or process even")
    if stream.route not in routes:
        raise AnalyzerError(f"arrivals {stream.kind}: no route {stream.route}", _known(routes))


def _check_engine(name: str, setup: EngineSetup) -> None:
    if setup.max_step_tokens < setup.max_running * (setup.drafts + 1):
        raise AnalyzerError(
            f"{name}: a step of {setup.max_step_tokens} tokens cannot hold "
            f"{setup.max_running} sequences",
            "raise max_step_tokens or lower max_running",
        )
    if setup.idle_unload_s and not setup.load_s:
        raise AnalyzerError(f"{name} unloads what it never loads", "set engine.load_s")


def _check_changes(world: World) -> None:
    """Each change must be one of a running world, and leave one that can run."""
    if not world.change:
        return
    later = copy.deepcopy(world)
    later.change = []
    for change in sorted(world.change, key=lambda one: one.at_s):
        head, _, rest = change.key.partition(".")
        if head not in ("arrivals", "client", "network", "gateway", "engine", "replicas"):
            raise AnalyzerError(
                f"change.key is {change.key!r}",
                "of arrivals, client, network, gateway, engine or replicas",
            )
        if head in ("engine", "replicas") and rest.rpartition(".")[2] in _FIXED:
            raise AnalyzerError(
                f"{change.key} cannot change while an engine runs",
                "two replicas with a route each can differ in it",
            )
        put(later, change.key, change.value)
    check(later)

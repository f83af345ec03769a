"""Finds the prompt-cache rule of each provider and model in the catalog of rules."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from itertools import groupby
from typing import Any

Rule = dict[str, Any]

_NS = 1_000_000_000
_UNFIT = frozenset({"models", "providers", "readers", "family", "name", "vendors"})
_GENERIC = "deployment"
"""Reader of a file that an operator wrote: it says that there is an engine, not which."""


def rows(told: list[dict[str, Any]]) -> Iterator[tuple[Any, ...]]:
    """One row a provider and model; ``told`` has one a pair and engine log, in order."""
    for (provider, model), group in groupby(told, lambda one: (one["provider"], one["model"])):
        lines = list(group)
        yield (provider, model, *_columns(_rule(provider, model, lines)))


@cache
def catalog() -> dict[str, Any]:
    """The rules as they stand in the file."""
    text = files("analyzer").joinpath("catalogs").joinpath("cache_rules.toml").read_text("utf-8")
    return tomllib.loads(text)


def plain(model: str) -> str:
    """A model's name as its vendor writes it: no path, region, platform or tuning in front."""
    name = model.strip().lower()
    for pattern, replacement in catalog()["names"]:
        name = re.sub(pattern, replacement, name)
    return name


def _rule(provider: str, model: str, lines: list[dict[str, Any]]) -> Rule:
    """Engine that served it, vendor by name or provider, way of counting, engine of the case."""
    first = lines[0]
    provider, name = provider.strip().lower(), plain(model)
    readers = sorted({one["reader"] for one in lines if one["reader"]})
    deployed = {plain(one["deployed"]) for one in lines if one["deployed"]}
    engine = _fitting(catalog()["engine"], "providers", provider)
    if engine or first["by_engine"] or (name and name in deployed):
        return _engine(engine, readers)
    vendors = catalog()["vendor"]
    if named := _fitting(vendors, "models", name):
        return _served(named, provider, name)
    by_provider = _fitting(vendors, "providers", provider)
    if by_provider and "short_life_s" in by_provider:
        return _served(by_provider, provider, name)
    if counting := _counting(first):
        whose = {"vendor": by_provider["name"] if by_provider else "unknown"}
        return _figures(counting) | {"family": counting["name"]} | whose
    if readers:
        return _engine(None, readers)
    if by_provider:
        return _served(by_provider, provider, name)
    return {"vendor": "unknown", "life_unknown": True}


def _counting(pair: dict[str, Any]) -> Rule | None:
    """Whose rules writes are told by; Anthropic's usage tells both lifetimes even of no write."""
    beside, within = catalog()["counting"]
    if pair["exclusive"] and (pair["apart_tokens"] is not None or pair["written_tokens"]):
        return dict(beside)
    return dict(within) if pair["apart_tokens"] or pair["written_tokens"] else None


def _fitting(rules: list[Rule], key: str, text: str) -> Rule | None:
    return next((one for one in rules if text and re.match(one.get(key, "$^"), text)), None)


def _engine(named: Rule | None, readers: list[str]) -> Rule:
    """The engine that is named, else the one whose logs these are, where it is one only."""
    known = catalog()["engine"]
    logs = [one for one in readers if one != _GENERIC]
    found = [one for one in (_fitting(known, "readers", log) for log in logs) if one]
    names = {one["name"] for one in found}
    one = named or (found[0] if len(names) == 1 else known[-1])
    drops = "a restart; other replicas have their own; least recently used blocks when it is full"
    fixed = {"vendor": "engine", "family": one["name"], "scope": "engine", "switch_drops": drops}
    return {"life_unknown": False, "refreshed_by_hit": True} | _figures(one) | fixed


def _served(vendor: Rule, provider: str, name: str) -> Rule:
    """The vendor's rule for this model, as the platform that serves it has it."""
    rule = {"vendor": vendor["name"]} | _figures(vendor) | _family(vendor, name)
    platform = _fitting(catalog()["platform"], "providers", provider)
    if platform is None or vendor["name"] not in str(platform.get("vendors", vendor["name"])):
        return rule
    here = _family(platform, name)
    # What a platform does not tell of its own is not the vendor's: minimums differ.
    for flag, column in (("no_minimum", "min_tokens"), ("no_long_life", "long_life_s")):
        if here.pop(flag, False):
            rule.pop(column, None)
    family = {"family": rule["family"]} if "family" in rule else {}
    return rule | _figures(platform) | here | family | {"vendor": platform["name"]}


def _family(vendor: Rule, name: str) -> Rule:
    """Figures of the first family that fits, and the part of the name that did."""
    for family in vendor.get("family", ()):
        if found := re.match(family["models"], name):
            return _figures(family) | {"family": found[0]}
    return {}


def _figures(rule: Rule) -> Rule:
    return {key: value for key, value in rule.items() if key not in _UNFIT}


def _columns(rule: Rule) -> tuple[Any, ...]:
    """In the order of ``returns``."""
    told = rule.get
    return (
        rule["vendor"], told("family"), told("min_tokens"), told("step_tokens"),
        _life(told("short_life_s")), _life(told("long_life_s")), rule["life_unknown"],
        told("refreshed_by_hit"), told("short_write_factor"), told("long_write_factor"),
        told("read_factor"), told("max_breakpoints"), told("look_back_blocks"), told("scope"),
        told("switch_drops"), told("source"), told("as_of", catalog()["as_of"]),
    )  # fmt: skip


def _life(seconds: int | None) -> int | None:
    return None if seconds is None else seconds * _NS

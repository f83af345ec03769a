"""What a kernel does, by its name: the ordered rules of ``kernels.toml``."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

OTHER = "other"
"""Class and group of a kernel that no rule finds."""
_WHOLE = {
    "memcpy": ("memcpy", "memory"),
    "memset": ("memset", "memory"),
    "graph": ("graph", "graph"),
}
"""Kinds whose class does not hang on a name, with what they are where no rule says more."""
_MOST_CHARS = 8_000
"""Templates give names of many kilobytes; what a kernel is stands in its first ones."""


@dataclass(frozen=True)
class Rule:
    """Names that fit ``pattern`` and no earlier rule are of this class."""

    name: str
    group: str
    pattern: re.Pattern[str]
    source: str
    examples: tuple[str, ...]


@dataclass(frozen=True)
class KernelClass:
    """What a name was found to be; ``rule`` counts from 1, and is None where no rule found it."""

    name: str
    group: str
    rule: int | None = None


@cache
def rules() -> tuple[Rule, ...]:
    """The rules in their order."""
    text = files("analyzer").joinpath("catalogs").joinpath("kernels.toml").read_text("utf-8")
    return tuple(
        Rule(
            one["class"], one["group"], re.compile(one["pattern"]), one["source"],
            tuple(one.get("examples", ())),
        )
        for one in tomllib.loads(text)["rule"]
    )  # fmt: skip


@cache
def classes() -> dict[str, str]:
    """Every class there is, with its group."""
    known = {rule.name: rule.group for rule in rules()}
    return known | dict(_WHOLE.values()) | {OTHER: OTHER}


def class_of(kind: str, name: str | None) -> KernelClass:
    """The class of one device event by its kind (kernel, memcpy, memset, graph) and name."""
    text = (name or "")[:_MOST_CHARS]
    if kind == "graph":
        return KernelClass(*_WHOLE[kind])
    for number, rule in enumerate(rules(), 1):
        if kind != "kernel" and rule.group != "memory":
            break
        if (kind != "memset" or rule.name == "memset") and rule.pattern.search(text):
            return KernelClass(rule.name, rule.group, number)
    return KernelClass(*_WHOLE.get(kind, (OTHER, OTHER)))

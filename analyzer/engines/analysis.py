"""Analyses as files: one SELECT with a typed header; the file's place is its name.

``analyses/latency/segment.sql`` is the table ``latency_segment``. The header's comments are its
documentation, its column contract, and the captions people read. Where the header names a Python
module beside the file, the few rows of the SELECT pass through its function ``rows``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.resources import files
from typing import Any, cast

from analyzer.errors import AnalyzerError

_RETURNS = re.compile(r"^(\w+) (\w+(?:\(\d+,\d+\))?)\s+-- (.+)$")
_PARAM = re.compile(r"^(\w+) = (\S+)\s+-- (.+)$")
_USE = re.compile(r"\$(\w+)")


@dataclass(frozen=True)
class Column:
    """One column an analysis returns."""

    name: str
    type: str
    doc: str


@dataclass(frozen=True)
class Param:
    """A typed literal of an analysis, with the reason for its value."""

    name: str
    value: str
    doc: str


@dataclass(frozen=True)
class Analysis:
    """One ``.sql`` file: what it answers, what it reads, what it returns."""

    name: str
    title: str
    grain: str
    needs: tuple[str, ...]
    params: tuple[Param, ...]
    returns: tuple[Column, ...]
    sql: str
    python: str | None = None
    """Module whose ``rows`` makes of the SELECT's rows those that are returned."""

    def through(self) -> Callable[[list[dict[str, Any]]], Iterable[tuple[Any, ...]]]:
        """That function: rows of the SELECT in, tuples in the order of ``returns`` out."""
        if self.python is None:
            raise AnalyzerError(f"analysis {self.name} is SQL alone")
        function = import_module(self.python).rows
        return cast("Callable[[list[dict[str, Any]]], Iterable[tuple[Any, ...]]]", function)

    def text(self, overrides: dict[str, str]) -> str:
        """The SELECT with its parameters filled in; an unknown one is a mistake of the file."""
        values = {param.name: param.value for param in self.params} | overrides

        def fill(match: re.Match[str]) -> str:
            if match[1] not in values:
                raise AnalyzerError(f"analysis {self.name} uses undeclared parameter ${match[1]}")
            return values[match[1]]

        return _USE.sub(fill, self.sql)


@cache
def all_analyses() -> dict[str, Analysis]:
    """Name -> analysis, for every ``.sql`` file below ``analyses/``."""
    found = {}
    root = files("analyzer").joinpath("analyses")
    for group in sorted(root.iterdir(), key=lambda one: one.name):
        if not group.is_dir():
            continue
        for file in sorted(group.iterdir(), key=lambda one: one.name):
            if file.name.endswith(".sql"):
                name = f"{group.name}_{file.name.removesuffix('.sql')}"
                found[name] = parse(name, file.read_text(encoding="utf-8"))
    return found


def parse(name: str, text: str) -> Analysis:
    """Split a file into header and SELECT; raises where the header does not say what it must."""
    header = [line[2:].strip() for line in text.splitlines() if line.startswith("--")]
    body = "\n".join(line for line in text.splitlines() if not line.startswith("--")).strip()
    title, entries = [], []
    for line in header:
        if match := re.match(r"^(grain|needs|param|python|returns):\s*(.*)$", line):
            entries.append((match[1], match[2]))
        elif not entries:
            title.append(line)
    grain = [value for key, value in entries if key == "grain"]
    needs = [value for key, value in entries if key == "needs"]
    if not title or len(grain) != 1 or len(needs) != 1:
        raise AnalyzerError(f"analysis {name}: its header needs a title, one grain, one needs")
    returns = [_matched(name, _RETURNS, v) for k, v in entries if k == "returns"]
    params = [_matched(name, _PARAM, v) for k, v in entries if k == "param"]
    module = next((v.partition(" ")[0] for k, v in entries if k == "python"), None)
    return Analysis(
        name,
        " ".join(title),
        grain[0],
        tuple(part.strip() for part in needs[0].split(",")),
        tuple(Param(*match.groups()) for match in params),
        tuple(Column(*match.groups()) for match in returns),
        body.rstrip(";"),
        f"analyzer.analyses.{name.partition('_')[0]}.{module}" if module else None,
    )


def _matched(name: str, pattern: re.Pattern[str], text: str) -> re.Match[str]:
    match = pattern.match(text)
    if match is None:
        raise AnalyzerError(f"analysis {name}: cannot read header line {text!r}")
    return match

"""Mapping files: which column of a foreign table is which of ours, checked before anything is read.

The mappings that ship lie in ``_mappings/``; a file there is one, there is nothing to register.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import get_close_matches
from functools import cache
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Any, get_args
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec
import pyarrow as pa

from analyzer.contract.native import MappedColumn, Unit
from analyzer.contract.native import Mapping as MappingFile
from analyzer.contract.tables import TABLES, VANTAGES
from analyzer.errors import AnalyzerError
from analyzer.readers._file import BOM
from analyzer.readers._times import time_to_ns

UNIT_NS = MappingProxyType({"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1})
UNITS = get_args(Unit)
NULLS = ("", "null", "none", "nan", "n/a", "na", "\\n")
"""Texts that mean not told, in small letters."""
DERIVED = MappingProxyType(
    {"end_ns": "e2e_ns", "first_token_ns": "ttft_ns", "scheduled_ns": "hold_ns"}
)
"""Times a mapping may name -> the duration they give together with start_ns."""
_MOST_BYTES = 1024 * 1024
_WHEN = datetime(2026, 9, 17, 14, 35, tzinfo=UTC)
"""A time that formats are tried on."""
_OWN = {
    "source_id", "record", "clock", "timing", "usage_convention", "usage_contradiction",
}  # fmt: skip
_LISTS, _CHECKED = "prefix_hashes", "total_tokens"
_FIELDS = {field.name: field for field in TABLES["request"] if field.name not in _OWN}
_ALLOWED = (*_FIELDS, *DERIVED, _LISTS, _CHECKED)
_INPUTS = {name for name in _FIELDS if name.startswith(("cache_read_", "cache_write_"))}
_HINT = "analyze formats mapping lists units and columns, and shows an example"
_DURATION_UNITS = ", ".join(UNIT_NS)
FACTS = (
    ("units of durations", _DURATION_UNITS),
    (
        "units of times",
        f"{', '.join(one for one in UNITS if one not in UNIT_NS)}; {_DURATION_UNITS} from an "
        "origin of their own; or no unit but a format: '%d.%m.%Y %H:%M:%S'",
    ),
    ("columns to map to", ", ".join(_ALLOWED)),
)
"""What a mapping may name, for whoever writes one."""


@dataclass(frozen=True)
class Target:
    """One column of theirs, and what it becomes."""

    theirs: str
    ours: str
    kind: str
    """time, duration, count, text, flag, money or list."""
    unit: str = ""
    origin_ns: int | None = None
    optional: bool = False
    format: str = ""
    """How a time is written, where it is neither RFC 3339 nor a number."""

    @property
    def relative(self) -> bool:
        """A time that counts from nothing we know."""
        return self.kind == "time" and self.unit in UNIT_NS and self.origin_ns is None


@dataclass(frozen=True)
class Plan:
    """A mapping that has been checked."""

    name: str
    file: MappingFile
    targets: tuple[Target, ...]

    @property
    def theirs(self) -> tuple[str, ...]:
        """Every column of theirs that is read, once."""
        return tuple(dict.fromkeys([*(one.theirs for one in self.targets), *self.file.tags]))

    @property
    def needed(self) -> tuple[str, ...]:
        """Those that a file must have."""
        optional = {one.theirs for one in self.targets if one.optional}
        return tuple(name for name in self.theirs if name not in optional)

    @property
    def nulls(self) -> tuple[str, ...]:
        """Texts that mean not told, in small letters."""
        return (*NULLS, *(text.strip().lower() for text in self.file.null))

    def missing(self, there: Iterable[str], what: str) -> str:
        """Which needed column ``what`` lacks, with the nearest it has; empty where it has all."""
        names = list(there)
        lacking = [name for name in self.needed if name not in names]
        if not lacking:
            return ""
        name = lacking[0]
        role = next((f"as {one.ours}" for one in self.targets if one.theirs == name), "as a tag")
        near = _near(name, names)
        has = f"; it has {near}" if near else f"; it has {_listed(names)}"
        more = f" (and {len(lacking) - 1} more)" if len(lacking) > 1 else ""
        return f"{what} lacks the column {name!r}, which {self.name} reads {role}{more}{has}"


def load(path: str | Path) -> Plan:
    """Read and check a mapping file; :class:`AnalyzerError` says what is wrong with it."""
    path = Path(path)
    try:
        with path.open("rb") as stream:
            data = stream.read(_MOST_BYTES + 1)
    except OSError as error:
        raise AnalyzerError(f"{path}: {error.strerror or error}", "check the path") from None
    if len(data) > _MOST_BYTES:
        raise AnalyzerError(f"{path.name} is larger than 1 MiB: no mapping file", _HINT)
    return plan_of(path.name, data)


@cache
def shipped() -> tuple[Plan, ...]:
    """The mappings that come with the package."""
    folder = resources.files("analyzer.readers") / "_mappings"
    files = sorted((f for f in folder.iterdir() if f.name.endswith(".toml")), key=lambda f: f.name)
    return tuple(plan_of(f.name.removesuffix(".toml"), f.read_bytes()) for f in files)


def plan_of(name: str, data: bytes) -> Plan:
    """Check the text of a mapping file."""
    try:
        file = msgspec.toml.decode(data.removeprefix(BOM), type=MappingFile)
    except msgspec.ValidationError as error:
        raise AnalyzerError(f"{name} is no mapping: {_explained(error, data)}", _HINT) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise AnalyzerError(f"{name} is not valid TOML: {error}", _HINT) from None
    try:
        targets = tuple(_target(theirs, spec) for theirs, spec in file.columns.items())
        _check(file, targets)
    except ValueError as error:
        raise AnalyzerError(f"{name}: {error}", _HINT) from None
    return Plan(name, file, targets)


def _explained(error: msgspec.ValidationError, data: bytes) -> str:
    text = str(error)
    if "$.columns" in text:
        text = _in_column(data) or text
    near = ""
    if "unknown field" in text:
        known = [*MappingFile.__struct_fields__, *MappedColumn.__struct_fields__]
        near = _near(text.split("`")[1], known)
    if near:
        return f"{text}; near it: {near}"
    if "$.columns" in str(error) and ".unit" not in str(error):
        return f"{text}; a column name that holds a dot or a space stands in quotes"
    return text


def _in_column(data: bytes) -> str:
    """The same of the column it is about, which the error does not name."""
    columns: Any = msgspec.toml.decode(data.removeprefix(BOM)).get("columns")
    for theirs, spec in columns.items() if isinstance(columns, dict) else ():
        unit = spec.get("unit") if isinstance(spec, dict) else None
        if unit is not None and unit not in UNITS:
            told = f"unit {unit!r}" if isinstance(unit, str) else "its unit"
            return f"column {theirs!r}: {told} is none of {', '.join(UNITS)}"
        try:
            msgspec.convert(spec, str | MappedColumn)
        except msgspec.ValidationError as error:
            return f"column {theirs!r}: {error}"
    return ""


def _near(name: str, names: Iterable[str]) -> str:
    """The names most like one, quoted."""
    plain = {one.casefold().replace(" ", "_").replace("-", "_"): one for one in names}
    asked = name.casefold().replace(" ", "_").replace("-", "_")
    close = get_close_matches(asked, plain, 3, 0.6)
    close += [key for key in plain if len(asked) > 2 and asked in key and key not in close]
    return " or ".join(repr(plain[key]) for key in close[:3])


def _listed(names: list[str]) -> str:
    shown = ", ".join(repr(name[:40]) for name in names[:8])
    return f"{shown}, …" if len(names) > 8 else shown or "none"


def _target(theirs: str, spec: str | MappedColumn) -> Target:
    told = MappedColumn(to=spec) if isinstance(spec, str) else spec
    if told.to not in _ALLOWED:
        near = _near(told.to, _ALLOWED)
        own = "is set by analyze itself" if told.to in _OWN else "is no column of the request table"
        raise ValueError(
            f"column {theirs!r} goes to {told.to!r}, which {own}"
            + (f"; near it: {near}" if near else "")
        )
    kind = _kind(told.to)
    unit = told.unit or ""
    if told.format is not None:
        return Target(theirs, told.to, *_formatted(theirs, told, kind), told.optional, told.format)
    if kind == "duration" and unit not in UNIT_NS:
        raise ValueError(f"column {theirs!r} goes to {told.to}: its unit must be s, ms, us or ns")
    if kind == "time" and not unit:
        raise ValueError(
            f"column {theirs!r} goes to {told.to}: its unit must be rfc3339, epoch_s, epoch_ms, "
            "epoch_us or epoch_ns; or s, ms, us or ns where it counts from an origin of its own; "
            "or give a format such as '%d.%m.%Y %H:%M:%S'"
        )
    if kind not in ("duration", "time") and unit:
        raise ValueError(f"column {theirs!r} goes to {told.to}, which has no unit to choose")
    origin = None
    if told.origin is not None:
        origin = time_to_ns(told.origin)
        if origin is None or unit not in UNIT_NS or kind != "time":
            raise ValueError(
                f"column {theirs!r}: an origin is an RFC 3339 time from which s, ms, us or ns count"
            )
    return Target(theirs, told.to, kind, unit, origin, told.optional)


def _formatted(theirs: str, told: MappedColumn, kind: str) -> tuple[str, str, None]:
    """Kind, unit and origin of a time that is written in a way of its own."""
    if kind != "time" or told.unit is not None or told.origin is not None:
        raise ValueError(f"column {theirs!r}: a format is for times, and takes the place of a unit")
    form = told.format or ""
    try:
        written = _WHEN.strftime(form)
        again = datetime.strptime(written, form)  # noqa: DTZ007 - only compared
    except (ValueError, re.error):
        again = None
    if "%Z" in form or again is None or again.replace(tzinfo=UTC) != _WHEN:
        raise ValueError(
            f"column {theirs!r}: {form!r} is no format that gives date, hour and minute; "
            "17.09.2026 14:00:05 is '%d.%m.%Y %H:%M:%S', and names of zones (%Z) are not read: "
            'zone = "Europe/Berlin" gives one'
        )
    return kind, "", None


def _kind(ours: str) -> str:
    if ours == "start_ns" or ours in DERIVED:
        return "time"
    if ours == _LISTS:
        return "list"
    if ours == _CHECKED:
        return "count"
    kind = _FIELDS[ours].type
    if pa.types.is_decimal(kind):
        return "money"
    if pa.types.is_boolean(kind):
        return "flag"
    if pa.types.is_string(kind):
        return "text"
    return "duration" if ours.endswith("_ns") else "count"


def _check(file: MappingFile, targets: tuple[Target, ...]) -> None:
    by_ours: dict[str, Target] = {}
    for one in targets:
        other = by_ours.setdefault(one.ours, one)
        if other is not one:
            raise ValueError(f"both {other.theirs!r} and {one.theirs!r} go to {one.ours}")
    if not by_ours:
        raise ValueError("no column is mapped")
    _check_times(by_ours)
    for name, value in file.constants.items():
        _check_constant(name, value, by_ours)
    if "vantage" not in by_ours and "vantage" not in file.constants:
        raise ValueError(
            'say where the file was recorded: [constants] vantage = "client" (or gateway, '
            "provider, engine)"
        )
    split = ("input_fresh_tokens" in by_ours and _INPUTS & by_ours.keys()) or {
        "output_visible_tokens", "output_reasoning_tokens",
    } <= by_ours.keys()  # fmt: skip
    if split and file.tokens is None:
        raise ValueError(
            'say how tokens are counted: tokens = "inclusive" (the input counts what was cached, '
            'the output the reasoning) or "exclusive"'
        )
    if file.zone is not None:
        try:
            ZoneInfo(file.zone)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise ValueError(f"zone {file.zone!r}: use a name such as Europe/Berlin") from None
    if file.delimiter is not None and (len(file.delimiter) != 1 or not file.delimiter.isascii()):
        raise ValueError("delimiter is one ASCII character")
    for what, names in (("tags", file.tags), ("header", file.header or [])):
        if len(set(names)) < len(names):
            raise ValueError(f"{what} names a column twice")


def _check_times(by_ours: Mapping[str, Target]) -> None:
    start = by_ours.get("start_ns")
    for name, duration in DERIVED.items():
        if name not in by_ours:
            continue
        if duration in by_ours:
            raise ValueError(f"both {name} and {duration} are mapped: one gives the other")
        if start is None or start.relative != by_ours[name].relative:
            raise ValueError(f"{name} gives {duration} only beside a start_ns of the same origin")


def _check_constant(name: str, value: object, by_ours: Mapping[str, Target]) -> None:
    if name not in _FIELDS or name == "start_ns":
        near = _near(name, _FIELDS)
        raise ValueError(
            f"constant {name!r} is no column of the request table that can be the same for all "
            "rows" + (f"; near it: {near}" if near else "")
        )
    if name in by_ours:
        raise ValueError(f"{name} is both a constant and the column {by_ours[name].theirs!r}")
    if name == "vantage" and value not in VANTAGES:
        raise ValueError(f"vantage {value!r} is none of {', '.join(VANTAGES)}")
    kinds = {"text": str, "flag": bool, "count": int, "duration": int}
    wanted = kinds.get(_kind(name))
    if wanted is None or type(value) is not wanted or (wanted is int and not _fits(value)):
        raise ValueError(f"constant {name} is no {_kind(name)}")


def _fits(value: object) -> bool:
    return isinstance(value, int) and 0 <= value < 2**53

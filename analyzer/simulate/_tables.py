"""Tables of TOML to dataclasses and back to single fields, with errors that name the place."""

from __future__ import annotations

import tomllib
import types
import typing
from dataclasses import fields, is_dataclass
from datetime import datetime
from typing import Any

from analyzer.errors import AnalyzerError, near


def put(owner: Any, key: str, value: Any, place: str = "") -> None:  # noqa: ANN401 - any field
    """Set the field that a dotted key names; list members go by position or by their name."""
    head, _, rest = key.partition(".")
    where = f"{place}.{head}" if place else head
    if isinstance(owner, list):
        owner_at = _member(owner, head, where)
        if rest:
            put(owner[owner_at], rest, value, where)
        else:
            owner[owner_at] = build(type(owner[owner_at]), value, where)
        return
    if isinstance(owner, dict):
        owner[key] = value
        return
    kinds = _kinds(type(owner))
    if head not in kinds:
        raise _unknown(head, kinds, place)
    if not rest:
        setattr(owner, head, _of(kinds[head], value, where))
        return
    if getattr(owner, head) is None:
        setattr(owner, head, build(_inner(kinds[head]), {}, where))
    elif isinstance(getattr(owner, head), int | float | str):
        raise AnalyzerError(f"{where} is one value: there is no {key}", f"set {where}")
    put(getattr(owner, head), rest, value, where)


def _member(owner: list[Any], head: str, where: str) -> int:
    if head.isdigit() and int(head) < len(owner):
        return int(head)
    names = [getattr(one, "name", None) or getattr(one, "kind", "") for one in owner]
    if head in names:
        return names.index(head)
    known = ", ".join(filter(None, names)) or "none"
    raise AnalyzerError(f"there is no {where}", f"by position from 0, or by name: {known}")


def _kinds(kind: type) -> dict[str, Any]:
    hints = typing.get_type_hints(kind)
    return {one.name: hints[one.name] for one in fields(kind)}


def _inner(kind: Any) -> Any:  # noqa: ANN401 - a type form
    if isinstance(kind, types.UnionType):
        return next(one for one in kind.__args__ if one is not types.NoneType)
    return kind


def build(kind: Any, told: Any, place: str) -> Any:  # noqa: ANN401 - any dataclass
    """A dataclass of a table; one that has ``of_number`` may be a plain number too."""
    if hasattr(kind, "of_number") and isinstance(told, int | float) and not isinstance(told, bool):
        return kind.of_number(told)
    if not isinstance(told, dict):
        raise AnalyzerError(f"{place} is {told!r}, not a table", f"[{place}] with fields below it")
    kinds = _kinds(kind)
    for name in told:
        if name not in kinds:
            raise _unknown(name, kinds, place)
    prefix = f"{place}." if place else ""
    try:
        return kind(**{name: _of(kinds[name], one, prefix + name) for name, one in told.items()})
    except TypeError:
        need = ", ".join(kinds)
        raise AnalyzerError(f"{place} is not complete", f"its fields: {need}") from None


def _of(kind: Any, value: Any, place: str) -> Any:  # noqa: ANN401 - one branch a type form
    if isinstance(kind, types.UnionType):
        return None if value is None else _of(_inner(kind), value, place)
    if is_dataclass(kind):
        return value if isinstance(value, typing.cast("type", kind)) else build(kind, value, place)
    if typing.get_origin(kind) is list:
        if not isinstance(value, list):
            raise AnalyzerError(f"{place} is {value!r}, not a list", f"{place} = [...]")
        inner = typing.get_args(kind)[0]
        return [_of(inner, one, f"{place}.{index}") for index, one in enumerate(value)]
    if kind is Any:
        return value
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if kind is str and isinstance(value, datetime):
        return value.isoformat()
    if typing.get_origin(kind) is dict and isinstance(value, dict):
        return value
    is_bool = isinstance(value, bool) and kind is not bool
    if isinstance(kind, type) and isinstance(value, kind) and not is_bool:
        return value
    raise AnalyzerError(f"{place} is {value!r}", f"it takes {getattr(kind, '__name__', str(kind))}")


def _unknown(name: str, kinds: dict[str, Any], place: str) -> AnalyzerError:
    meant = near(name, kinds)
    did = f"did you mean {' or '.join(meant)}? " if meant else ""
    return AnalyzerError(
        f"a world has no {place + '.' if place else ''}{name}", f"{did}Known: {', '.join(kinds)}"
    )


def value_of(text: str) -> Any:  # noqa: ANN401 - whatever TOML value it spells
    """A value as TOML spells it; anything else is text."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text

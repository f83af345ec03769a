"""Keys of a price file that mean nothing: a misspelt one would leave its tokens without a price."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Struct
from msgspec.structs import fields

from analyzer.contract._native_prices import LongContext, ModelPrice, Prices, Terms, TierPrice
from analyzer.errors import near

_MOST, _LONGEST = 5, 40
_INNER: dict[str, type[Struct]] = {
    "long_context": LongContext, "batch": TierPrice, "flex": TierPrice, "priority": TierPrice,
    "fast": TierPrice,
}  # fmt: skip


def unknown(value: dict[str, Any]) -> list[str]:
    """A sentence for each, at most five; ``_comment`` and ``$schema`` are meant to mean nothing."""
    return list(dict.fromkeys(_in_file(value)))[:_MOST]


def _in_file(value: dict[str, Any]) -> Iterator[str]:
    yield from _in_struct(value, Prices, "the file")
    for key, kind in (("models", ModelPrice), ("providers", Terms)):
        for name, dated in (value.get(key) or {}).items():
            for one in dated if isinstance(dated, list) else [dated]:
                yield from _in_struct(one, kind, name[:_LONGEST])


def _in_struct(value: dict[str, Any], kind: type[Struct], where: str) -> Iterator[str]:
    known = {field.name for field in fields(kind)}
    for key, inner in value.items():
        if key not in known and key[:1] not in ("_", "$"):
            meant = near(key, known)
            hint = f": did you mean {meant[0]!r}?" if meant else ""
            yield f"the key {key[:_LONGEST]!r} of {where} is not known, and not used{hint}"
        elif key in _INNER and isinstance(inner, dict):
            yield from _in_struct(inner, _INNER[key], where)

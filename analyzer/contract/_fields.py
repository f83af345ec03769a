"""Columns of the canonical tables: a type, a unit and what they mean."""

from __future__ import annotations

import pyarrow as pa


def column(
    name: str, kind: pa.DataType, doc: str, unit: str = "", *, required: bool = False
) -> pa.Field:
    """A column; ``required`` where no row may leave it out."""
    meta = {"doc": doc} | ({"unit": unit} if unit else {})
    return pa.field(name, kind, nullable=not required, metadata=meta)


def ns(name: str, doc: str) -> pa.Field:
    """Nanoseconds."""
    return column(name, pa.int64(), doc, "ns")


def tokens(name: str, doc: str) -> pa.Field:
    """A count of tokens."""
    return column(name, pa.int64(), doc, "tokens")


def text(name: str, doc: str) -> pa.Field:
    """A text."""
    return column(name, pa.string(), doc)


def whole(name: str, doc: str, unit: str = "1") -> pa.Field:
    """A whole number."""
    return column(name, pa.int64(), doc, unit)


def ratio(name: str, doc: str) -> pa.Field:
    """A share, from 0 to 1."""
    return column(name, pa.float64(), doc, "ratio")


def real(name: str, doc: str, unit: str) -> pa.Field:
    """A number with a unit."""
    return column(name, pa.float64(), doc, unit)


def table(doc: str, fields: list[pa.Field]) -> pa.Schema:
    """A table and what it is."""
    return pa.schema(fields, metadata={"doc": doc})

"""What native logs tell of a prompt as lists: hashes of its prefixes, its parts, labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from analyzer.contract.prompts import PART_KINDS, VOLATILE_CLASSES
from analyzer.readers._parts import Part
from analyzer.readers._rows import COUNTS, clean, int_or_none, text_or_none

_MOST_HASH = 128
Rows = list[dict[str, Any]]


class Lists:
    """Rows of lists that were told, until somebody fetches them."""

    def __init__(self) -> None:
        """Nothing was told yet."""
        self._rows: dict[str, Rows] = {}

    def take(self, record: int, value: Mapping[str, Any]) -> None:
        """The lists of one request."""
        hashes, tags = value.get("prefix_hashes"), value.get("tags")
        blocks: Rows = [
            {"block_index": i, "prefix_hash": clean(str(block))}
            for i, block in enumerate(hashes if isinstance(hashes, list) else ())
        ]
        parts: Rows = [
            {"part_index": i, **part._asdict()}
            for i, part in enumerate(parts_told(value.get("prompt_parts")))
        ]
        labels: Rows = [
            {"name": clean(name), "value": text_or_none(one)}
            for name, one in (tags.items() if isinstance(tags, dict) else ())
        ]
        for table, rows in (
            ("prompt_block", blocks), ("prompt_part", parts), ("request_tag", labels),
        ):  # fmt: skip
            if rows:
                held = self._rows.setdefault(table, [])
                held += [{"record": record, **row} for row in rows]

    def fetch(self) -> dict[str, Rows]:
        """Rows by table since the last call."""
        rows, self._rows = self._rows, {}
        return rows


def parts_told(value: Any) -> list[Part]:  # noqa: ANN401 - foreign JSON
    """Parts as the log's own client told them; what cannot be of one is not told."""
    return [_part(one) for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _part(told: dict[str, Any]) -> Part:
    whole, plain = _hash(told.get("hash")), _hash(told.get("plain_hash"))
    kind = told.get("kind")
    classes = str(told.get("volatile") or "").replace(" ", "").split(",")
    return Part(
        kind if kind in PART_KINDS else "other", _count(told.get("chars")), whole, plain,
        ",".join(name for name in VOLATILE_CLASSES if name in classes) or None,
        _count(told.get("first_volatile_chars")), _hash(told.get("name_hash")),
    )  # fmt: skip


def _hash(value: Any) -> str | None:  # noqa: ANN401
    """Any short word will do, if equal words mean equal content."""
    text = text_or_none(value)
    return text if text and len(text) <= _MOST_HASH and len(text.split()) == 1 else None


def _count(value: Any) -> int | None:  # noqa: ANN401
    number = int_or_none(value)
    return number if number in COUNTS else None

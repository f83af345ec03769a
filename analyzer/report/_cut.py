"""Names cut to a width so that they stay apart from each other."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_LEAD = 4
"""Characters kept of a beginning that all names share."""


def cells(text: str) -> int:
    """Columns a text takes on a terminal."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(char) else 1 + (unicodedata.east_asian_width(char) in "WF")
        for char in text
    )


def cut(text: str, width: int) -> str:
    """Middle cut: the head and the tail of a path both tell something."""
    if cells(text) <= width:
        return text
    keep = width - 1
    while cells(text[: keep - keep // 2]) + cells(text[-(keep // 2) :]) > width - 1:
        keep -= 1
    return text[: keep - keep // 2] + "…" + (text[-(keep // 2) :] if keep // 2 else "")


def apart(texts: Sequence[str], width: int) -> list[list[str]]:
    """Lines of each text: cut in the middle, without what all share, or else broken in pieces."""
    long = [text for text in texts if cells(text) > width]
    if _differ(texts, [cut(text, width) for text in texts]):
        return [[cut(text, width)] for text in texts]
    shared = _shared(min(long), max(long))
    short = [
        f"{text[:_LEAD]}…{text[shared:]}" if shared > _LEAD + 1 and cells(text) > width else text
        for text in texts
    ]
    short = [cut(text, width) for text in short]
    if _differ(texts, short):
        return [[text] for text in short]
    return [_pieces(text, width) for text in texts]


def _shared(one: str, other: str) -> int:
    """Characters that both begin with; of the first and last in order, that all begin with."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))


def _differ(texts: Sequence[str], short: Sequence[str]) -> bool:
    return len(set(short)) == len(set(texts))


def _pieces(text: str, width: int) -> list[str]:
    out, line = [], ""
    for char in text:
        if cells(line + char) > width:
            out.append(line)
            line = ""
        line += char
    return [*out, line]

"""Blocks as Markdown for chats, issues and wikis. Foreign text cannot form markup."""

from __future__ import annotations

import re
from functools import singledispatch
from typing import TYPE_CHECKING

from analyzer.report.blocks import (
    Block,
    Code,
    Facts,
    Found,
    Grid,
    Heading,
    Items,
    Sparks,
    Waterfall,
    Words,
)
from analyzer.report.text import render as text_render
from analyzer.report.values import safe_text

if TYPE_CHECKING:
    from collections.abc import Iterable

# What could begin markup where it stands; chats show a needless backslash as it is.
_MARKUP = re.compile(
    r"([\\`*~|]"
    r"|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])"
    r"|\](?=[(\[:])|!(?=\[)"
    r"|<(?=[A-Za-z/!?@#])|&(?=#?\w+;))"
)


def render(blocks: Iterable[Block]) -> str:
    """Blocks, with an empty line between them."""
    return "\n\n".join(_lines(block) for block in blocks) + "\n"


def _plain(text: str, *, starts: bool = True) -> str:
    """Text that stays text; ``starts``: it stands at the start of a paragraph or an item."""
    escaped = _MARKUP.sub(r"\\\1", safe_text(text))
    if not starts:
        return _unlinked(escaped)
    # At its start a paragraph could become a list, a rule or the line below a heading.
    escaped = re.sub(r"^(\s*)([-+=#>])", r"\1\\\2", escaped)
    escaped = re.sub(r"^(\s*\d{1,9})([.)])", r"\1\\\2", escaped)
    return _unlinked(escaped)


def _unlinked(escaped: str) -> str:
    # Nothing is fetched for a bare address either: without its colon it is no link.
    return re.sub(r"(?i)\b(https?|ftp|mailto)\\?:", r"\1&#58;", escaped)


@singledispatch
def _lines(block: object) -> str:
    raise TypeError(type(block).__name__)


@_lines.register(Heading)
def _heading(block: Heading) -> str:
    return f"{'#' * block.level} {_plain(block.text)}"


@_lines.register(Words)
def _words(block: Words) -> str:
    return "\n\n".join(_plain(part) for part in block.text.split("\n") if part.strip())


@_lines.register(Facts)
def _facts(block: Facts) -> str:
    return "\n".join(
        f"- **{_plain(name)}**: {_plain(value or '-', starts=False)}" for name, value in block.pairs
    )


@_lines.register(Items)
def _items(block: Items) -> str:
    return "\n".join(
        f"{f'{number}.' if block.numbered else '-'} {_plain(item)}"
        for number, item in enumerate(block.items, 1)
    )


@_lines.register(Code)
def _code(block: Code) -> str:
    return _fenced(safe_text(block.text.strip("\n"), lines=True))


def _fenced(text: str) -> str:
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}"


@_lines.register(Found)
def _found(block: Found) -> str:
    head = f"## {_plain(block.severity)}: {_plain(block.title)}"
    details = [f"- {_plain(text)}" for text in (f"rule: {block.rule}", *block.details)]
    return head + "\n\n" + "\n".join(details)


@_lines.register(Grid)
def _grid(block: Grid) -> str:
    rule = ["--:" if side else "---" for side in block.right]
    rows = [[_plain(text, starts=False) for text in row] for row in (block.header, *block.rows)]
    rows.insert(1, rule)
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


@_lines.register(Waterfall)
@_lines.register(Sparks)
def _drawn(block: Waterfall | Sparks) -> str:
    return _fenced(text_render([block], width=100).rstrip("\n"))

"""Blocks as text for a terminal of a given width. Every foreign character passes `safe_text`."""

from __future__ import annotations

import textwrap
from functools import singledispatch
from typing import TYPE_CHECKING

from analyzer.report._cut import apart, cells
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
from analyzer.report.values import duration, safe_text

if TYPE_CHECKING:
    from collections.abc import Iterable

_GAP = "  "
_LEAST = 8
"""Narrowest a cut column gets; below it the table turns into one block a row."""

_ROOM = 24
"""Width a text column is given where a table has to be split."""

_LEADERS = 2
"""Most columns that are repeated in each part of a split table."""

_PROSE = 100
"""Sentences are not wrapped wider, whatever the terminal; tables take all there is."""

_LONGEST_NAME, _LONGEST_TEXT = 300, 2_000
"""Characters shown of one cell: an id of a megabyte must not push the rest off the screen."""

_COLOURS = {
    "critical": "31;1",
    "warning": "33;1",
    "note": "36;1",
    "NOT MET": "31;1",
    "CANNOT SAY": "33;1",
    "MET": "32;1",
}
_EIGHTHS = " ▏▎▍▌▋▊▉"


def render(blocks: Iterable[Block], *, width: int = 80, color: bool = False) -> str:
    """Blocks, one after the other, with a newline at the end."""
    out: list[str] = []
    for block in blocks:
        if out and not (isinstance(block, Code) or out[-1] == ""):
            out.append("")
        lines = _lines(block, max(width, 40))
        if color and isinstance(block, Found):
            lines[0] = _painted(lines[0], block.severity, block.severity.upper())
        if color and isinstance(block, Grid) and block.header[:1] == ("outcome",):
            lines = [_outcome_painted(line) for line in lines]
        out += lines
    return "\n".join(line.rstrip() for line in out).strip("\n") + "\n"


def _painted(line: str, name: str, word: str) -> str:
    code = _COLOURS.get(name)
    return line.replace(word, f"\x1b[{code}m{word}\x1b[0m", 1) if code else line


def _outcome_painted(line: str) -> str:
    word = next((name for name in _COLOURS if name.isupper() and line.startswith(f"{name} ")), "")
    return _painted(line, word, word) if word else line


def _wrap(text: str, width: int, first: str = "", rest: str | None = None) -> list[str]:
    return textwrap.wrap(
        safe_text(_shortened(text)),
        min(width, _PROSE + cells(first)),
        initial_indent=first,
        subsequent_indent=first if rest is None else rest,
        break_on_hyphens=False,
        break_long_words=False,
    )


def _shortened(text: str) -> str:
    """Text without the middle of a name, or the end of a sentence, that is out of all measure."""
    if len(text) <= _LONGEST_NAME:
        return text
    if " " not in text:
        half = _LONGEST_NAME // 2
        return f"{text[:half]}…{text[-half:]}"
    if len(text) <= _LONGEST_TEXT and max(map(len, text.split(" "))) <= _LONGEST_NAME:
        return text
    short = " ".join(_shortened(word) for word in text[: 10 * _LONGEST_TEXT].split(" "))
    return short if len(short) <= _LONGEST_TEXT else f"{short[:_LONGEST_TEXT]}…"


@singledispatch
def _lines(block: object, width: int) -> list[str]:
    msg = f"{type(block).__name__} cannot be drawn {width} columns wide"
    raise TypeError(msg)


@_lines.register(Heading)
def _heading(block: Heading, width: int) -> list[str]:
    lines = _wrap(block.text, width)
    if block.level == 1:
        lines.append("=" * max(map(cells, lines), default=0))
    return lines


@_lines.register(Words)
def _words(block: Words, width: int) -> list[str]:
    return [line for part in block.text.split("\n") for line in _wrap(part, width)]


@_lines.register(Facts)
def _facts(block: Facts, width: int) -> list[str]:
    column = max((cells(safe_text(name)) for name, _ in block.pairs), default=0)
    out: list[str] = []
    for name, value in block.pairs:
        head = _pad(safe_text(name), column) + _GAP
        out += _wrap(value or "-", width, head, " " * len(head))
    return out


@_lines.register(Items)
def _items(block: Items, width: int) -> list[str]:
    out: list[str] = []
    for number, item in enumerate(block.items, 1):
        mark = f"{number}. " if block.numbered else "- "
        out += _wrap(item, width, f"  {mark}", " " * (len(mark) + 2))
    return out


@_lines.register(Code)
def _code(block: Code, width: int) -> list[str]:
    del width  # what gets copied is never wrapped
    return [f"    {line}" for line in safe_text(block.text.strip("\n"), lines=True).split("\n")]


@_lines.register(Found)
def _found(block: Found, width: int) -> list[str]:
    mark = safe_text(block.severity).upper().ljust(8)
    out = [f"{mark}{_GAP}{_shortened(safe_text(block.rule))}"]
    for text in (block.title, *block.details):
        out += _wrap(text, width, " " * 10)
    return out


# --- tables --------------------------------------------------------------------------------------


def _pad(text: str, width: int, *, right: bool = False) -> str:
    space = " " * max(0, width - cells(text))
    return space + text if right else text + space


@_lines.register(Grid)
def _grid(block: Grid, width: int) -> list[str]:
    narrow = block.narrow
    block = Grid(
        header=tuple(map(_shortened, block.header)),
        rows=tuple(tuple(map(_shortened, row)) for row in block.rows),
        right=block.right,
        keep=block.keep,
    )
    widths = [
        max(cells(name), *(cells(row[index]) for row in block.rows))
        for index, name in enumerate(block.header)
    ]
    fitted = _fit(widths, block, width)
    if fitted is not None:
        return _drawn(block, fitted)
    if narrow is not None:
        return _grid(narrow, width)
    parts = _parts(widths, block, width) if len(block.rows) > 1 else []
    drawn: list[str] = []
    for part in parts:
        chosen = _columns(block, part)
        fitted = _fit([widths[index] for index in part], chosen, width)
        if fitted is None:
            return _tall(block, width)
        drawn += ([""] if drawn else []) + _drawn(chosen, fitted)
    return drawn or _tall(block, width)


def _drawn(block: Grid, widths: list[int]) -> list[str]:
    names = [apart([row[index] for row in block.rows], width) for index, width in enumerate(widths)]
    lines = _row([[name] for name in block.header], widths, block.right)
    for number, row in enumerate(block.rows):
        texts = [
            textwrap.wrap(text, width) if " " in text and cells(text) > width else name[number]
            for text, width, name in zip(row, widths, names, strict=True)
        ]
        lines += _row(texts, widths, block.right)
    return lines


def _columns(block: Grid, indices: list[int]) -> Grid:
    return Grid(
        header=tuple(block.header[index] for index in indices),
        rows=tuple(tuple(row[index] for index in indices) for row in block.rows),
        right=tuple(block.right[index] for index in indices),
        keep=tuple(block.keep[index] for index in indices),
    )


def _parts(widths: list[int], block: Grid, width: int) -> list[list[int]]:
    """Columns of several tables one below the other, each led by what names the row."""
    texts = [index for index, right in enumerate(block.right[:_LEADERS]) if not right]
    lead = list(range(len(texts))) if texts == list(range(len(texts))) and texts else [0]
    least = [
        size if keep else min(size, _ROOM) for size, keep in zip(widths, block.keep, strict=True)
    ]
    room = width - sum(least[index] + len(_GAP) for index in lead)
    parts: list[list[int]] = []
    used = room + 1
    for index in range(len(lead), len(widths)):
        if used + least[index] > room:
            parts.append(list(lead))
            used = 0
        parts[-1].append(index)
        used += least[index] + len(_GAP)
    return parts


def _fit(widths: list[int], block: Grid, width: int) -> list[int] | None:
    """Column widths that fit; the widest text gives way first. None when nothing helps."""
    out = list(widths)
    free = [
        index
        for index, keep in enumerate(block.keep)
        if not keep and not block.right[index] and widths[index] > _LEAST
    ]
    while sum(out) + len(_GAP) * (len(out) - 1) > width:
        room = [index for index in free if out[index] > max(_LEAST, cells(block.header[index]))]
        if not room:
            return None
        widest = max(room, key=lambda index: out[index])
        out[widest] -= 1
    return out


def _row(columns: list[list[str]], widths: list[int], right: tuple[bool, ...]) -> list[str]:
    """One row: sentences wrap within their column, names are cut or broken."""
    return [
        _GAP.join(
            _pad(lines[number] if number < len(lines) else "", width, right=side)
            for lines, width, side in zip(columns, widths, right, strict=True)
        ).rstrip()
        for number in range(max(map(len, columns)))
    ]


def _tall(block: Grid, width: int) -> list[str]:
    out: list[str] = []
    for row in block.rows:
        pairs = tuple(
            (name, text) for name, text in zip(block.header, row, strict=True) if text != "-"
        )
        out += ([""] if out else []) + _facts(Facts(pairs), width)
    return out


# --- waterfall -----------------------------------------------------------------------------------


@_lines.register(Waterfall)
def _waterfall(block: Waterfall, width: int) -> list[str]:
    bars = [
        (safe_text(bar.vantage), safe_text(bar.label), duration(bar.dur_ns), safe_text(bar.grade))
        for bar in block.bars
    ]
    vantage, name, size, grade = (max(cells(bar[i]) for bar in bars) for i in range(4))
    room = max(10, width - vantage - name - size - grade - 4 * len(_GAP))
    end = duration(block.total_ns)
    scale = "0" + "·" * max(1, room - 1 - len(end)) + end
    out = [" " * (vantage + name + 2 * len(_GAP)) + scale]
    before = ""
    for bar, texts in zip(block.bars, bars, strict=True):
        drawn = _bar(bar.start_ns, bar.dur_ns, block.total_ns, room)
        shown = "" if texts[0] == before else texts[0]
        before = texts[0]
        out.append(
            _GAP.join(
                (
                    _pad(shown, vantage),
                    _pad(texts[1], name),
                    _pad(drawn, room),
                    _pad(texts[2], size, right=True),
                    texts[3],
                )
            )
        )
    return out


def _bar(start: int, dur: int, total: int, room: int) -> str:
    """Bar in whole cells with an eighth's precision at its end; never invisible."""
    left = min(room - 1, max(0, start) * room // total)
    eighths = min((room - left) * 8, max(1, round(max(0, dur) * room * 8 / total)))
    whole, part = divmod(eighths, 8)
    return " " * left + "█" * whole + (_EIGHTHS[part] if part else "")


# --- sparklines ----------------------------------------------------------------------------------

_STEPS = "▁▂▃▄▅▆▇█"
_INCIDENT = "incident"


@_lines.register(Sparks)
def _sparks(block: Sparks, width: int) -> list[str]:
    sparks = [spark for _, lines in block.lanes for spark in lines]
    name = max(cells(_INCIDENT), *(cells(spark.name) + len(_GAP) for spark in sparks))
    most = max(cells("highest"), *(cells(spark.highest) for spark in sparks))
    room = max(10, width - name - most - 2 * len(_GAP))
    head = " " * (name + len(_GAP) + _columns_of(block.bins, room))
    out = [f"{head}{_GAP}{_pad('highest', most, right=True)}"]
    if any(block.marked):
        marks = _spread([float(mark) for mark in block.marked], room)
        drawn = "".join("=" if mark else " " for mark in marks)
        out.append(f"{_pad(_INCIDENT, name)}{_GAP}{drawn}")
    for title, lines in block.lanes:
        out.append(title)
        told = [value for spark in lines for value in spark.values if value is not None]
        top = max(told, default=0.0)
        for spark in lines:
            drawn = "".join(_step_of(value, top) for value in _spread(list(spark.values), room))
            label = _pad(_GAP + spark.name, name)
            out.append(f"{label}{_GAP}{drawn}{_GAP}{_pad(spark.highest, most, right=True)}")
    return out


def _columns_of(bins: int, room: int) -> int:
    return bins * (room // bins) if bins <= room else -(-bins // -(-bins // room))


def _spread(values: list[float | None], room: int) -> list[float | None]:
    """Bins as columns: several in one, which then shows the highest, or one over several."""
    bins = len(values)
    if bins <= room:
        return [value for value in values for _ in range(room // bins)]
    taken = -(-bins // room)
    parts = [values[start : start + taken] for start in range(0, bins, taken)]
    return [max((v for v in part if v is not None), default=None) for part in parts]


def _step_of(value: float | None, top: float) -> str:
    """A step of the lane's own scale; what is not told stays empty, zero is the lowest step."""
    if value is None:
        return " "
    return _STEPS[round(max(0.0, value) / top * (len(_STEPS) - 1)) if top > 0 else 0]

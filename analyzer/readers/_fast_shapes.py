"""Whole blocks of JSON lines at once, by the shapes that the lines of one program share.

A shape is a line without its values: keys in their order, punctuation, spaces. It is learned from
one line and becomes one regular expression, which checks every character of a line and cuts its
values out in the same pass. Numbers stay text until they are exact decimals. A line that fits no
shape, or holds anything out of the ordinary (an escape in a name, a number of another form, a key
told twice), is left to the reader's own way of reading one line, which alone decides what it is.
So which lines are read fast changes how long reading takes, and never what is read.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import msgspec
import polars as pl

from analyzer.readers._fast_kinds import Kind
from analyzer.readers._file import BOM, Lines

INDEX, LINE = "#index", "#line"
"""Columns that no field can be named like."""
_MOST_SHAPES = 24
_LESSONS = (0.5, 0.25, 0.75, 0.1, 0.9, 0.4)
"""Where among the lines of a block that are left the next shape is learned. Lines that are all
unlike each other are not worth more tries."""
_FEW = 16
"""A sixteenth of a block is read line by line sooner than its shapes are learned."""
_MOST_GROUPS = 15
"""The regex engine cuts up to 16 groups out in one pass; more take many times as long."""

_TOKEN = re.compile(
    r'[ \t\r]*(?:(?P<text>"(?:[^"\\]|\\.)*")|(?P<number>-?[0-9][0-9.eE+-]*)'
    r'|(?P<word>true|false|null)|(?P<pair>\{[ ]?"key":[ ]?"[^"\\]*")|(?P<mark>[{}:,])'
    r"|(?P<list>[\[\]]))"
)
_META = re.compile(r"[\\.+*?()|\[\]{}^$#&~-]")
_NUMBER = r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
_TEXT = r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"'
_ANY = {"text": _TEXT, "number": _NUMBER, "word": ""}
_decode = msgspec.json.Decoder().decode

Strange = tuple[int, bytes]
"""Index of a line in its block, and the line without its newline."""


@dataclass(frozen=True)
class Shape:
    """What the lines of one kind have in common.

    ``parts``: patterns and the names of what they cut out; each but the first goes on where the one
    before stopped. ``constants``: words that are part of the shape. ``keys``: every key there is,
    null ones too; those of inner objects with dots between.
    """

    parts: tuple[tuple[str, tuple[str, ...]], ...]
    captured: Mapping[str, tuple[Kind, str]]
    constants: Mapping[str, str | bool]
    keys: frozenset[str]

    @property
    def names(self) -> frozenset[str]:
        """Fields with a value."""
        return frozenset(self.captured) | frozenset(self.constants)

    def read(self, lines: pl.DataFrame) -> pl.DataFrame:
        """Values of the lines; every value of a line that has another shape is NULL."""
        frame, rest = lines.select(INDEX), lines[LINE]
        for pattern, names in self.parts:
            groups = rest.str.extract_groups(pattern).struct.unnest()
            groups.columns = [*names, LINE][: groups.width]
            if LINE in groups.columns:
                rest = groups[LINE]
            frame = frame.hstack(groups.select(names))
        return frame.select(
            INDEX,
            *(kind.told(name, form).alias(name) for name, (kind, form) in self.captured.items()),
        )

    def column(self, name: str, dtype: pl.DataType | type[pl.DataType]) -> pl.Expr:
        """A field as a column, NULL where the shape lacks it."""
        if name in self.captured:
            return pl.col(name)
        return pl.lit(self.constants.get(name), dtype)


@dataclass
class Shapes:
    """The shapes of one file, learned as it is read; safe to use from several threads.

    ``trusted(shape, line)`` decides whether the reader takes lines of a shape: it has all that a
    record needs, and its first line says the same either way. ``sound(shape)`` is true for the
    rows whose values the reader need not look at one by one.
    """

    fields: Mapping[str, Kind]
    trusted: Callable[[Shape, str], bool]
    sound: Callable[[Shape], pl.Expr] = lambda _: pl.lit(value=True)
    _known: list[Shape] = field(default_factory=list)

    def split(self, block: Lines) -> tuple[list[tuple[Shape, pl.DataFrame]], list[Strange]]:
        """Values by shape, and the lines that must be read one by one."""
        lines = None if block.unterminated else frame_of(block)
        if lines is None:
            return [], list(enumerate(block.lines))
        found: list[tuple[Shape, pl.DataFrame]] = []
        for known in list(self._known):
            if lines.height:
                lines = self._take(known, lines, found)
        strange: list[tuple[int, str | None]] = []
        for place in _LESSONS:
            if lines.height * _FEW < block.count or len(self._known) >= _MOST_SHAPES:
                break
            at = int(place * lines.height)
            index, line = lines.row(at)
            before = lines.height
            shape = learn(line, self.fields) if line else None
            if shape is not None and self.trusted(shape, line):
                lines = self._take(shape, lines, found)
            if shape is not None and lines.height < before:
                self._known.append(shape)
            else:
                strange.append((index, line))
                lines = lines.filter(pl.col(INDEX) != index)
        strange += lines.iter_rows()
        return found, [(index, (line or "").encode()) for index, line in sorted(strange)]

    def _take(
        self, shape: Shape, lines: pl.DataFrame, found: list[tuple[Shape, pl.DataFrame]]
    ) -> pl.DataFrame:
        """Moves the lines of one shape to ``found``; gives the others."""
        frame = shape.read(lines)
        fits = frame.select(
            pl.all_horizontal(*(pl.col(name).is_not_null() for name in shape.captured))
            & self.sound(shape).fill_null(value=False)
        ).to_series()
        if fits.all():
            found.append((shape, frame))
            return lines.clear()
        if fits.any():
            found.append((shape, frame.filter(fits)))
            return lines.filter(~fits)
        return lines


def frame_of(block: Lines) -> pl.DataFrame | None:
    """Lines as a column, without building a Python object for each; None where that is unsafe."""
    if block.data.startswith(BOM) or b"\x01" in block.data:
        return None
    try:
        lines = pl.read_csv(
            io.BytesIO(block.data), separator="\x01", has_header=False, quote_char=None,
            schema={LINE: pl.String},
        )  # fmt: skip
    except pl.exceptions.PolarsError:  # not UTF-8
        return None
    return lines.with_row_index(INDEX) if lines.height == block.count else None


def learn(line: str, fields: Mapping[str, Kind]) -> Shape | None:
    """The shape of a line, or None where it has anything that no shape can hold.

    Lists are only known whose elements are objects that begin with their ``key``, by which their
    fields are named.
    """
    try:
        if not isinstance(_decode(line), dict):
            return None
    except (msgspec.DecodeError, RecursionError):
        return None
    return _Lesson(fields).of(line)


class _Unlike(Exception):
    """The line has something that no shape can hold."""


class _Lesson:
    """One line on its way to become a shape."""

    def __init__(self, fields: Mapping[str, Kind]) -> None:
        self._fields = fields
        # Objects that are told apart field by field: what else they hold makes them no shape.
        self._holders = {
            ".".join(parts[:depth])
            for parts in (name.split(".") for name in fields)
            for depth in range(1, len(parts))
        }
        self._parts: list[tuple[str, tuple[str, ...]]] = []
        self._pattern: list[str] = ["^"]
        self._names: list[str] = []
        self._captured: dict[str, tuple[Kind, str]] = {}
        self._constants: dict[str, str | bool] = {}
        self._keys: set[str] = set()

    def of(self, line: str) -> Shape | None:
        """The shape, or None."""
        try:
            self._walk(line)
        except _Unlike:
            return None
        if not self._captured:
            return None
        self._parts.append(("".join([*self._pattern, "$"]), tuple(self._names)))
        return Shape(tuple(self._parts), self._captured, self._constants, frozenset(self._keys))

    def _walk(self, line: str) -> None:
        path: list[str] = []
        key: str | None = None
        at = 0
        while token := _TOKEN.match(line, at):
            kind, text = str(token.lastgroup), token[token.lastgroup or 0]
            self._literal(line[at : token.end() - len(text)])
            if kind == "pair" and key is None and path:
                path.append(self._element(path, text))
            elif text in ("{", "[") and key is not None:
                self._open(path, key, text)
                path.append(key)
                key = None
            elif text in ("}", "]"):
                path = path[:-1]
                self._literal(text)
            elif text in (":", ",") or (text == "{" and not at):
                self._literal(text)
            elif key is not None and kind in _ANY:
                self._value(".".join([*path, key]), kind, text)
                key = None
            elif kind == "text":
                key = self._key(path, text)
            else:
                raise _Unlike
            at = token.end()
        if line[at:].strip(" \t\r"):
            raise _Unlike
        self._literal(line[at:])

    def _element(self, path: list[str], text: str) -> str:
        """An element of a list that names itself: ``{"key": "service.name", ...``."""
        key = text.split('"')[-2]
        name = ".".join([*path, key])
        if not path or name in self._keys:
            raise _Unlike
        self._keys.add(name)
        self._literal(text)
        return key

    def _key(self, path: list[str], text: str) -> str:
        key = text[1:-1]
        name = ".".join([*path, key])
        # A dot of its own could make a key look like one of an inner object.
        if "\\" in key or "." in key or name in self._keys:
            raise _Unlike
        self._keys.add(name)
        self._literal(text)
        return key

    def _open(self, path: list[str], key: str, mark: str) -> None:
        name = ".".join([*path, key])
        self._literal(mark)
        declared = name in self._holders
        if name in self._fields or (".".join(path) in self._holders and not declared):
            raise _Unlike

    def _value(self, name: str, form: str, text: str) -> None:
        holder = name.rpartition(".")[0]
        kind = self._fields.get(name) or self._fields.get(f"{holder}.*")
        if name in self._holders and text != "null":
            raise _Unlike
        if kind is None and holder in self._holders and name not in self._holders:
            raise _Unlike
        if form == "word" and text == "null":
            self._literal(text)
        elif kind is None:
            self._pattern.append(text if form == "word" else _ANY[form])
        elif kind.is_word:
            self._constants[name] = text == "true" if form == "word" else self._word(form, text)
            self._literal(text)
        else:
            self._capture(name, kind, form)

    @staticmethod
    def _word(form: str, text: str) -> str:
        if form != "text" or "\\" in text:
            raise _Unlike
        return text[1:-1]

    def _capture(self, name: str, kind: Kind, form: str) -> None:
        pattern = kind.text if form == "text" else kind.number if form == "number" else None
        if pattern is None:
            raise _Unlike
        if len(self._names) == _MOST_GROUPS:
            self._parts.append(("".join([*self._pattern, "(.*)$"]), tuple(self._names)))
            self._pattern, self._names = ["^"], []
        self._pattern.append(f'"({pattern})"' if form == "text" else f"({pattern})")
        self._names.append(name)
        self._captured[name] = (kind, form)

    def _literal(self, text: str) -> None:
        self._pattern.append(_META.sub(r"\\\g<0>", text))

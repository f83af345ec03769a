"""Lines of OTLP/JSON whose spans are all alike: the spans as columns, the rest as a skeleton.

A batch is cut before each span. What follows the spans in their text, put together with a ``0`` for
each, is the same batch without its spans: a short JSON text that says whose they are, and proves
that they were cut in the right places. A line with anything else in it is read span by span.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

import msgspec
import polars as pl
import pyarrow as pa

from analyzer.readers._fast_kinds import Kind as Value
from analyzer.readers._fast_lines import Fast, contracted
from analyzer.readers._fast_shapes import INDEX, LINE, Shape, learn
from analyzer.readers._file import Lines
from analyzer.readers._jsonl import Sink
from analyzer.readers._otlp import Broken, attributes, spans_of
from analyzer.readers._spans._kind import Kind, Span, all_kinds

_OPENING = '{"traceId":'
_PATTERN = r'\{"traceId":'
_TAIL, _OWNER, _PLACE, _DEPLOYMENT = "#tail", "#owner", "#place", "#deployment"
_FEW = 16
"""A sixteenth of the spans of a block is read one by one sooner than its shapes are learned."""
_MOST_SHAPES, _LESSONS = 12, (0.5, 0.25, 0.75)
_RAW = Value(text=".*")
_decode = msgspec.json.Decoder().decode


@dataclass
class Told:
    """What was read fast of a block: spans by line index, and their rows but for the records.

    ``rows``: the shape's kind, its shape, and values with the columns of line and place in it.
    """

    counts: dict[int, int] = field(default_factory=dict)
    rows: list[tuple[Fast, Shape, pl.DataFrame]] = field(default_factory=list)

    def tables(self, first: dict[int, int]) -> dict[str, list[pa.Table]]:
        """Rows of the contract; ``first`` is the record of the first span of each line."""
        found: dict[str, list[pa.Table]] = {}
        for fast, shape, values in self.rows:
            begin = pl.col(_OWNER).replace_strict(first, return_dtype=pl.Int64)
            numbered = values.with_columns(record=begin + pl.col(_PLACE))
            for name, frame in fast.tables(shape, numbered).items():
                whole = frame.with_columns(deployment=values[_DEPLOYMENT])
                found.setdefault(name, []).append(contracted(name, whole))
        return found


@dataclass(frozen=True, eq=False)
class _Known:
    """A shape, the kind of its spans, and the span it was learned from."""

    kind: Kind
    fast: Fast
    shape: Shape
    span: Span


@dataclass
class SpanShapes:
    """The shapes of one file's spans, learned as it is read; safe to use from several threads."""

    _known: list[_Known] = field(default_factory=list)
    _fitting: dict[tuple[_Known, str], bool] = field(default_factory=dict)

    def split(self, block: Lines) -> Told:
        """The lines of which each span has a known shape."""
        heads, pieces, owners = _cut(block)
        columns = {INDEX: range(len(pieces)), LINE: pieces, _OWNER: owners}
        rest = pl.DataFrame(columns, {INDEX: pl.Int64, LINE: pl.String, _OWNER: pl.Int64})
        found: list[tuple[_Known, pl.DataFrame]] = []
        for known in list(self._known):
            if rest.height:
                rest = _take(known, rest, found)
        for place in _LESSONS:
            if not rest.height or rest.height * _FEW < len(pieces):
                break
            if (learned := self._learn(rest[LINE][int(place * rest.height)])) is not None:
                rest = _take(learned, rest, found)
        strange = set(rest[_OWNER])
        return self._proven(heads, found, strange, owners) if found else Told()

    def _learn(self, piece: str) -> _Known | None:
        if len(self._known) >= _MOST_SHAPES or not piece.endswith("},"):
            return None
        text = _OPENING + piece[:-1]
        span = _span(text)
        kind = None if span is None else _kind_of(span)
        if span is None or kind is None or kind.fast is None or kind.part is not None:
            return None
        shape = learn(text, kind.fast.fields)
        if shape is None or not kind.fast.trusted(lambda _: _rows(kind, span), shape, text):
            return None
        learned = _Known(kind, kind.fast, _open_ended(shape), span)
        self._known.append(learned)
        return learned

    def _proven(
        self,
        heads: dict[int, str],
        found: list[tuple[_Known, pl.DataFrame]],
        strange: set[int],
        owners: list[int],
    ) -> Told:
        """Without the lines that are no whole batch once their spans are taken out."""
        told = Told()
        deployments: list[str | None] = [None] * len(owners)
        places = [0] * len(owners)
        for owner, first, ends, shapes in _ends(found).iter_rows():
            if owner in strange:
                continue
            holders = _holders(heads[owner] + "".join(f"0{tail}" for tail in ends))
            if holders is None or len(holders) != len(ends):
                continue
            if not self._fit({found[at][0] for at in shapes}, holders):
                continue
            told.counts[owner] = len(ends)
            places[first : first + len(ends)] = range(len(ends))
            names = {at: _deployment(one) for at, one in {id(one): one for one in holders}.items()}
            deployments[first : first + len(ends)] = [names[id(one)] for one in holders]
        columns = {INDEX: range(len(owners)), _PLACE: places, _DEPLOYMENT: deployments}
        all_of = pl.DataFrame(columns, {INDEX: pl.Int64, _PLACE: pl.Int64, _DEPLOYMENT: pl.String})
        for known, frame in found:
            values = frame.filter(pl.col(_OWNER).is_in(list(told.counts))).join(all_of, on=INDEX)
            if values.height:
                told.rows.append((known.fast, known.shape, values))
        return told

    def _fit(self, shapes: set[_Known], holders: list[dict[str, Any]]) -> bool:
        """Whether spans of these shapes are of their kinds in these resources too."""
        for one in {id(holder): holder for holder in holders}.values():
            if any(name.startswith("gen_ai.") for name in one):
                return False
            for known in shapes:
                at = known, repr(one)
                if at not in self._fitting:
                    there = dataclasses.replace(known.span, resource=one)
                    self._fitting[at] = _kind_of(there) is known.kind
                if not self._fitting[at]:
                    return False
        return True


def _take(
    known: _Known, lines: pl.DataFrame, found: list[tuple[_Known, pl.DataFrame]]
) -> pl.DataFrame:
    """Moves the spans of one shape to ``found``; gives the others."""
    frame = known.shape.read(lines)
    fits = frame.select(
        pl.all_horizontal(*(pl.col(name).is_not_null() for name in known.shape.captured))
        & known.fast.sound(known.shape).fill_null(value=False)
    ).to_series()
    found.append((known, frame.with_columns(lines[_OWNER]).filter(fits)))
    return lines.filter(~fits)


def _ends(found: list[tuple[_Known, pl.DataFrame]]) -> pl.DataFrame:
    """Per line: its number, its first span, what follows each span, and which shapes they have."""
    parts = [
        frame.select(INDEX, _OWNER, _TAIL, shape=pl.lit(at)) for at, (_, frame) in enumerate(found)
    ]
    return (
        pl.concat(parts)
        .sort(INDEX)
        .group_by(_OWNER, maintain_order=True)
        .agg(pl.col(INDEX).first(), pl.col(_TAIL), pl.col("shape").unique())
    )


def _cut(block: Lines) -> tuple[dict[int, str], list[str], list[int]]:
    """What stands before the first span of each line; the spans and what follows each; whose."""
    heads: dict[int, str] = {}
    pieces: list[str] = []
    owners: list[int] = []
    for index, line in enumerate([] if block.unterminated else block.lines):
        try:
            head, *spans = line.decode().split(_OPENING)
        except UnicodeDecodeError:
            continue
        heads[index] = head
        pieces += spans
        owners += [index] * len(spans)
    return heads, pieces, owners


def _open_ended(shape: Shape) -> Shape:
    """The shape without the opening of a span, and with whatever follows the span."""
    (first, *rest), tail = shape.parts, (_TAIL,)
    parts = [(first[0].replace(f"^{_PATTERN}", "^", 1), first[1]), *rest]
    pattern, names = parts[-1]
    parts[-1] = (f"{pattern[:-1]}(.*)$", names + tail)
    return dataclasses.replace(
        shape, parts=tuple(parts), captured={**shape.captured, _TAIL: (_RAW, "text")}
    )


def _span(text: str) -> Span | None:
    try:
        value = _decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None
    (span,) = spans_of({"resourceSpans": [{"scopeSpans": [{"spans": [value]}]}]})
    return None if isinstance(span, Broken) else span


def _kind_of(span: Span) -> Kind | None:
    return next(
        (k for k in all_kinds() if k.matches(span.name, span.attributes, span.resource)), None
    )


def _rows(kind: Kind, span: Span) -> dict[str, list[dict[str, Any]]] | None:
    sink = Sink()
    strange = kind.rows(span, 1, sink) if kind.rows else "no rows"
    odd = strange or sink.problems or sink.ignored or sink.assumed or sink.columns
    return None if odd else sink.rows


def _holders(skeleton: str) -> list[dict[str, Any]] | None:
    """The resource of each span of a batch whose spans are zeros; None where it is none."""
    try:
        batch = _decode(skeleton)
    except (msgspec.DecodeError, RecursionError):
        return None
    if not isinstance(batch, dict) or batch.keys() != {"resourceSpans"}:
        return None
    found = []
    for group in batch["resourceSpans"] if isinstance(batch["resourceSpans"], list) else [None]:
        if not isinstance(group, dict) or not isinstance(group.get("scopeSpans"), list):
            return None
        holder = group.get("resource")
        resource = attributes(holder.get("attributes")) if isinstance(holder, dict) else {}
        for scope in group["scopeSpans"]:
            spans = scope.get("spans") if isinstance(scope, dict) else None
            if not isinstance(spans, list) or any(span != 0 for span in spans):
                return None
            found += [resource] * len(spans)
    return found


def _deployment(resource: dict[str, Any]) -> str | None:
    return Span("", None, None, None, False, {}, resource).deployment  # noqa: FBT003 - a field

"""The events of a chrome trace that analyses use, picked out of the text and decoded.

Nine events in ten are Python stack frames, flow arrows and small operators. They are counted, and
never parsed: the wanted ones are found by their category, cut out, and decoded in one go.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import msgspec

from analyzer.contract.types import Problem
from analyzer.readers._gpu_rows import TELLING
from analyzer.readers._kineto_text import LEARN_BYTES, Border, Chunk
from analyzer.readers._rows import excerpt

LONG_US = 100
"""Operators and calls below this explain no gap worth a verdict."""
STACKS = "Python stack frames"
OTHER = (
    f"operators under {LONG_US} us, calls that launch, copy and await nothing, flow arrows, memory "
    "records, names"
)
BROKEN = "the file ends, or is damaged, inside this event"
BAD = "no valid JSON, not even with control characters, NaN and lone backslashes mended"

CALLS = ("cuda_runtime", "cuda_driver", "Runtime")
DEVICE = {
    "kernel": "kernel", "Kernel": "kernel", "gpu_memcpy": "memcpy", "Memcpy": "memcpy",
    "gpu_memset": "memset", "Memset": "memset", "gpu_user_annotation": "gpu_annotation",
    "cuda_sync": "sync",
}  # fmt: skip
_HOST = {"user_annotation": "annotation", "cpu_op": "cpu_op", "Operator": "cpu_op"}
_CATEGORY = re.compile(rb'"cat"(\s{0,8}:\s{0,8})"')
_ANY_CALL = rb'(?:cuda_runtime|cuda_driver|cpu_op|python_function)"'
_REST = (
    rb',\s*+"name":\s*+"[^"]*+",\s*+"pid":[^,]++,\s*+"tid":[^,]++,\s*+"ts":\s*+[\d.]++'
    rb',\s*+"dur":\s*+'
)
_CALL = rb'[a-z]+(?:Launch|Mem(?:cpy|set)|Graph)|[^"]*?(?:Launch|Mem(?:cpy|set)|Graph|Synchronize)'
# One branch for each first letter: each event of a file is held against all branches.
_DEVICE = (
    rb'k(?=ernel")|gpu_(?:mem(?:cpy|set)|user_annotation)"|user_annotation"|cuda_sync"|overhead"'
    rb'|Trace"|Kernel"|Mem(?:cpy|set)"'
)
_LOOSE = b"(?:" + _DEVICE + rb'|c(?:uda_(?:runtime|driver)|pu_op)"|Runtime"|Operator")'
_NAMED = rb'(?:,\s*+"name":\s*+"(?:' + _CALL + rb")|" + _REST + rb"\d{3})"
_LONG = _REST + rb"\d{3}"
_SIFTED = (
    b"(?:" + _DEVICE + rb'|c(?:uda_(?:runtime|driver)"' + _NAMED + rb'|pu_op"' + _LONG
    + rb')|Runtime"' + _NAMED + rb'|Operator"' + _LONG + b")"
)  # fmt: skip
_ESCAPE = re.compile(r'\\(?!["\\/bfnrtu])')
_NOT_FINITE = re.compile(r"(?<=[:\[,\s])-?(?:nan|inf(?:inity)?)(?=\s*[,}\]])", re.IGNORECASE)


_Axes = tuple[Any, ...] | dict[str, Any] | str | float | bool | None
"""Any JSON; a list as what can be looked up."""


class Args(msgspec.Struct, gc=False):
    """What is used of an event's ``args``; any type, for some writers give numbers as text."""

    external_id: Any = msgspec.field(default=None, name="External id")
    device: Any = None
    stream: Any = None
    correlation: Any = None
    bytes: Any = None
    grid: _Axes = None
    block: _Axes = None
    graph_id: Any = msgspec.field(default=None, name="graph id")
    graph_node: Any = msgspec.field(default=None, name="graph node id")
    collective: Any = msgspec.field(default=None, name="Collective name")
    elements: Any = msgspec.field(default=None, name="In msg nelems")
    dtype: Any = None
    group: Any = msgspec.field(default=None, name="Process Group Name")
    group_size: Any = msgspec.field(default=None, name="Group size")


class Event(msgspec.Struct, gc=False):
    """One event. A double holds its time to the nanosecond while it counts from a recent base."""

    name: str = ""
    ph: str = "X"
    cat: str = ""
    pid: Any = None
    tid: Any = None
    ts: Any = None
    dur: float | None = None
    args: Args | None = None


class Relative(Event, gc=False):
    """Times as doubles: integers, or microseconds from a base of this quarter of a year."""

    ts: float | None = None


class Absolute(Event, gc=False):
    """Times as text: microseconds since 1970 with decimals have more digits than a double."""

    ts: msgspec.Raw = msgspec.Raw(b"")


_DECODERS: dict[type[Event], msgspec.json.Decoder[list[Event]]] = {
    Relative: msgspec.json.Decoder(list[Relative]),
    Absolute: msgspec.json.Decoder(list[Absolute]),
}
NO_ARGS = Args()


@dataclass
class Picked:
    """What a chunk gave: decoded events with their numbers, and an account of all of them."""

    events: list[Event] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    odd: list[Event] = field(default_factory=list)
    """Events that only a lenient look could read."""
    odd_numbers: list[int] = field(default_factory=list)
    total: int = 0
    ignored: Counter[str] = field(default_factory=Counter)
    problems: list[Problem] = field(default_factory=list)


@dataclass(frozen=True)
class Wanted:
    """What finds the wanted events of a file."""

    pattern: re.Pattern[bytes]
    at_brace: bool
    """It begins where the event begins; else at its category."""
    sifted: bool
    """Short operators and idle calls are left out unparsed."""


class Picker:
    """Finds the wanted events of one file; what it looks for is fitted to the file's layout."""

    def __init__(self, begin: bytes) -> None:
        self.kind: type[Event] = Absolute if _has_long_times(begin) else Relative
        self.relative = re.search(rb'"ts"\s{0,8}:\s{0,8}\d{15,}', begin) is None
        """Times do not count from 1970."""
        spacings = {match[1] for match in _CATEGORY.finditer(begin)}
        one = spacings.pop() if len(spacings) == 1 else None
        self._wanted = None if one is None else _wanted(b'"cat"' + one + b'"', begin)
        self.sifted = self._wanted is not None and self._wanted.sifted

    def pick(self, chunk: Chunk) -> Picked:
        """The wanted events of a chunk."""
        found = Picked()
        if self._wanted is None or chunk.border is None:
            pieces, numbers = _all(chunk.data, chunk.border)
            found.total = len(pieces)
        else:
            pieces, numbers, found.total = _cut(chunk.data, self._wanted, chunk.border)
        dropped = found.total - len(pieces)
        lost = chunk.broken and (not numbers or numbers[-1] != found.total - 1)
        self._decode(pieces, numbers, found, chunk)
        if lost:
            dropped -= 1
            found.problems.append(Problem(found.total, BROKEN, "", chunk.offset))
        if dropped:
            stacks = min(dropped, chunk.data.count(b'"python_function"'))
            found.ignored[STACKS] += stacks
            found.ignored[OTHER] += dropped - stacks
        return found

    def _decode(self, pieces: list[bytes], numbers: list[int], found: Picked, chunk: Chunk) -> None:
        try:
            events = _DECODERS[self.kind].decode(b"[" + b",".join(pieces) + b"]")
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            events = []
        if len(events) == len(pieces):
            found.events, found.numbers = events, numbers
            return
        extra = 0
        for piece, number in zip(pieces, numbers, strict=True):
            try:
                some = _DECODERS[self.kind].decode(b"[" + piece + b"]")
            except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
                some = None
            if some is not None:
                found.events += some
                found.numbers += range(number + extra, number + extra + len(some))
                extra += len(some) - 1
                continue
            mended = lenient(piece)
            if mended is None:
                last = chunk.broken and number == found.total - 1
                reason = BROKEN if last else BAD
                found.problems.append(
                    Problem(number + extra + 1, reason, excerpt(piece), chunk.offset)
                )
            else:
                found.odd.append(mended)
                found.odd_numbers.append(number + extra)
        found.total += extra


def _cut(data: bytes, wanted: Wanted, border: Border) -> tuple[list[bytes], list[int], int]:
    """Each piece with a wanted category, its number, and how many pieces there are in all."""
    text, close, step = border.text, border.close, len(border.text) - 1
    find, count = data.find, data.count
    pieces, numbers = [], []
    at = number = 0
    for match in wanted.pattern.finditer(data):
        begin = place = match.start()
        if place < at:
            continue
        if not wanted.at_brace:
            begin = data.rfind(text, at, place)
            begin = at if begin < 0 else begin + step
        if begin > at:
            number += count(text, at, begin + 1)
            at = begin
        end = find(text, place)
        numbers.append(number)
        if end < 0:
            pieces.append(data[begin:])
            return pieces, numbers, number + 1
        pieces.append(data[begin : end + close])
        at = end + step
        number += 1
    return pieces, numbers, number + count(text, at) + 1


def _all(data: bytes, border: Border | None) -> tuple[list[bytes], list[int]]:
    """Every piece, where the layout does not tell which are wanted."""
    if border is None:
        return [data], [0]
    head, tail = border.text[: border.close], b"{"
    some = data.split(border.text)
    pieces = [
        (tail if i else b"") + one + (head if i < len(some) - 1 else b"")
        for i, one in enumerate(some)
    ]
    return pieces, list(range(len(pieces)))


def _wanted(category: bytes, begin: bytes) -> Wanted:
    """Finds wanted categories; short operators only where the layout tells them apart unparsed."""
    # An event that the end of the text cuts tells nothing of the layout.
    most = len(begin) - (8192 if len(begin) >= LEARN_BYTES else 0)
    told, fitting = (
        sum(match.start() < most for match in re.finditer(category + one, begin))
        for one in (_ANY_CALL, _ANY_CALL + _REST + rb"\d")
    )
    sifted = 0 < told == fitting
    # Where all whole events begin alike, the pattern begins with what they begin with.
    heads = set(re.findall(rb'\{(\s{0,64}"ph"\s{0,8}:\s{0,8}"X"[\s,]{0,64})"cat"', begin))
    others = len(re.findall(rb'"ph"\s{0,8}:\s{0,8}"X"', begin)) - len(
        re.findall(rb'\{\s{0,64}"ph"\s{0,8}:\s{0,8}"X"[\s,]{0,64}"cat"', begin)
    )
    head = b"{" + heads.pop() if len(heads) == 1 and others <= 1 else b""
    kinds = _SIFTED if sifted else _LOOSE
    pattern = re.compile(re.escape(head) + category + kinds)
    return Wanted(pattern, bool(head), sifted)


def _has_long_times(begin: bytes) -> bool:
    """Whether times count from 1970 and have decimals."""
    return re.search(rb'"ts"\s{0,8}:\s{0,8}\d{15,}\.\d', begin) is not None


def lenient(piece: bytes) -> Event | None:
    """An event with control characters, NaN, lone backslashes or numbers as text."""
    text = piece.decode("utf-8", "replace")
    for one in (text, _NOT_FINITE.sub("null", _ESCAPE.sub(r"\\\\", text))):
        try:
            value = json.loads(one, strict=False, parse_float=str)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            return _event(value)
    return None


def _event(value: dict[str, Any]) -> Event:
    args = value.get("args")
    told = args if isinstance(args, dict) else {}
    names = Args.__struct_encode_fields__
    fields = Args.__struct_fields__
    inner = Args(**{field: told.get(name) for field, name in zip(fields, names, strict=True)})
    texts = {name: str(value.get(name, "")) for name in ("name", "cat")}
    return Event(
        ph=str(value.get("ph", "X")), pid=value.get("pid"), tid=value.get("tid"),
        ts=microseconds(value.get("ts")), dur=microseconds(value.get("dur")), args=inner, **texts,
    )  # fmt: skip


def microseconds(value: object) -> Any:  # noqa: ANN401 - whatever it counts in
    """A number of microseconds, given as a number or its text; None where it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        exact = Decimal(str(value))
    except ArithmeticError:
        return None
    return exact if exact.is_finite() else None


def useful(event: Event, kind: str | None) -> bool:
    """Whether it is kept, where the text could not tell."""
    if kind in ("annotation", *DEVICE.values()):
        return True
    return (event.dur or 0) >= LONG_US or (kind != "cpu_op" and bool(TELLING.search(event.name)))


def kind_of(category: str, name: str) -> str | None:
    """What the contract calls an event; None where no table takes it."""
    if category in CALLS:
        return "graph_launch" if "GraphLaunch" in name else "runtime"
    return DEVICE.get(category) or _HOST.get(category)

"""Columns of decoded events, some thousand at a time: so many stay in the processor's cache."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from functools import cache
from math import prod
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import astuple

from analyzer.readers._kineto_events import (
    CALLS,
    DEVICE,
    NO_ARGS,
    Args,
    Event,
    Relative,
    kind_of,
    microseconds,
)
from analyzer.readers._rows import COUNTS, clean
from analyzer.readers._times import Limits

KINDS = (
    "kernel", "memcpy", "memset", "gpu_annotation", "sync", "runtime", "graph_launch", "annotation",
    "cpu_op",
)  # fmt: skip
WHOLE = pa.int64()
# Made once: pyarrow takes as long to make one of these as to add up some thousand numbers.
NOTHING = pa.scalar(None, WHOLE)
_NAMES = pa.array(KINDS)
_GRAPH = pa.scalar(KINDS.index("graph_launch"), pa.int32())
_LABEL = re.compile(r"(.*\S)\s+(?:(-?\d{1,18})|-?\d+)")
_BEYOND = Decimal("7.3e15")
_LEAST_US, _MOST_US = pa.scalar(-7.3e15), pa.scalar(7.3e15)
"""Beyond any time a trace can have, and in nanoseconds within an int64."""
_ZERO, _THOUSAND, _THOUSANDFOLD = pa.scalar(0), pa.scalar(1000), pa.scalar(1000.0)
_ON_DEVICE = frozenset(DEVICE.values())
_COLLECTIVE = ("collective_elements", "collective_dtype", "collective_group", "collective_ranks")
_NUMBERS = {
    "correlation": "correlation", "graph_id": "graph_id", "graph_node": "graph_node",
    "external_id": "external_id", "bytes": "bytes", "device": "device", "stream": "stream",
    "elements": "collective_elements", "group_size": "collective_ranks",
}  # fmt: skip
_TEXTS = {
    "collective": "collective", "dtype": "collective_dtype", "group": "collective_group",
}  # fmt: skip
_AXES = {"grid": "grid_blocks", "block": "block_threads"}


class _Volumes(dict[Any, int | None]):
    """Numbers of three axes, multiplied; a trace has few of them."""

    def __missing__(self, axes: Any) -> int | None:  # noqa: ANN401 - foreign JSON
        volume = _volume(axes)
        if volume is not None and len(self) < 100_000:
            self[axes] = volume
        return volume


_VOLUMES = _Volumes({None: None})


def fields_of(events: Sequence[Event | Args]) -> dict[str, tuple[Any, ...]]:
    """The values of each field."""
    names = type(events[0]).__struct_fields__
    return dict(zip(names, zip(*map(astuple, events), strict=True), strict=True))


def columns_of(told: dict[str, tuple[Any, ...]], records: list[int], kind: type[Event]) -> pa.Table:
    """What events tell, as it is; what none of them tells is no column."""
    args = fields_of([one or NO_ARGS for one in told["args"]])
    pids, labels = _labels(told["pid"])
    columns = {"label": labels, "pid": _whole(pids), "tid": _whole(told["tid"])}
    columns |= {column: _whole(args[name]) for name, column in _NUMBERS.items()}
    columns |= {column: _texts(args[name]) for name, column in _TEXTS.items()}
    columns |= {column: _volumes(args[name]) for name, column in _AXES.items()}
    count = len(records)
    return pa.table(
        {
            "record": pa.array(records, WHOLE),
            "cat": _texts(told["cat"]),
            "name": _texts(told["name"]),
            "ts": _times(told["ts"], exact=kind is not Relative),
            "dur": _times(told["dur"], exact=kind is Event),
        }
        | {name: one for name, one in columns.items() if one is not None and one.null_count < count}
    )


def finished(some: list[pa.Table]) -> dict[str, pa.Array]:
    """Columns of the contract, and ``label``: the name of an event's rank in a merged trace.

    Each event must have a category that the contract knows.
    """
    table = pa.concat_tables(some, promote_options="default").combine_chunks()
    told = {name: table[name].chunk(0) for name in table.column_names}
    kinds, own = _kinds(told.pop("cat"), told["name"])
    found = {
        "record": told.pop("record"),
        "name": told.pop("name"),
        "kind": kinds,
        "start_ns": _nanoseconds(told.pop("ts")),
        "dur_ns": _nanoseconds(told.pop("dur")),
        "label": told.pop("label", pa.nulls(table.num_rows, pa.string())),
    }
    for name, column in told.items():
        if column.type == WHOLE:
            fits = within(column, COUNTS)
            if pc.all(fits).as_py() is False:
                told[name] = pc.if_else(fits, column, NOTHING)
    for name, host in (("device", "pid"), ("stream", "tid")):
        other = told.get(host, NOTHING)
        told[name] = pc.if_else(own, pc.coalesce(told.get(name, NOTHING), other), NOTHING)
        told[host] = pc.if_else(own, NOTHING, other)
    for name in told.keys() & {"graph_id", "graph_node"}:
        told[name] = pc.if_else(pc.not_equal(told[name], _ZERO), told[name], NOTHING)
    if "collective" not in told:
        told = {name: column for name, column in told.items() if name not in _COLLECTIVE}
    return found | told


def _labels(pids: tuple[Any, ...]) -> tuple[Sequence[Any], pa.Array | None]:
    """In a merged trace, the pid behind the label of its rank, and the labels."""
    if str not in set(map(type, pids)):
        return pids, None
    found = [_LABEL.fullmatch(pid) if isinstance(pid, str) else None for pid in pids]
    labels = pa.array([match and match[1] for match in found], pa.string())
    pairs = zip(found, pids, strict=True)
    return [match[2] and int(match[2]) if match else pid for match, pid in pairs], labels


def _kinds(
    categories: pa.DictionaryArray, names: pa.DictionaryArray
) -> tuple[pa.DictionaryArray, pa.Array]:
    """What the contract calls each event, and whether the device did it."""
    distinct = categories.dictionary.to_pylist()
    kinds = [kind_of(one, "") or "" for one in distinct]
    places = pa.array([KINDS.index(one) for one in kinds], pa.int32()).take(categories.indices)
    own = pa.array([one in _ON_DEVICE for one in kinds], pa.bool_()).take(categories.indices)
    graphs = pc.match_substring(names.dictionary, "GraphLaunch")
    if pc.any(graphs).as_py():
        calls = pa.array([one in CALLS for one in distinct], pa.bool_()).take(categories.indices)
        places = pc.if_else(pc.and_(calls, graphs.take(names.indices)), _GRAPH, places)
    return pa.DictionaryArray.from_arrays(places, _NAMES), own


def nanoseconds(event: Event) -> tuple[int | None, int | None]:
    """Start and duration of one event."""
    kind = type(event)
    start = _nanoseconds(_times((event.ts,), exact=kind is not Relative))
    dur = _nanoseconds(_times((event.dur,), exact=kind is Event))
    return start[0].as_py(), dur[0].as_py()


def _times(values: Sequence[Any], *, exact: bool) -> pa.Array:
    """Microseconds, or nanoseconds where a double might not hold them."""
    return pa.array(map(_exact, values), WHOLE) if exact else pa.array(values, pa.float64())


def within(values: pa.Array, limits: Limits) -> pa.Array:
    """Which values are within limits; nothing is neither."""
    first, last = _ends(limits)
    return pc.and_(pc.greater_equal(values, first), pc.less_equal(values, last))


@cache
def _ends(limits: Limits) -> tuple[pa.Scalar, pa.Scalar]:
    return pa.scalar(limits.start), pa.scalar(limits.last)


def _nanoseconds(microseconds: pa.Array) -> pa.Array:
    """Exact while a double holds a thousandth of a microsecond: up to 101 days from the base."""
    if microseconds.type == WHOLE:
        return microseconds
    # What no column takes becomes what no trace can have.
    some = pc.min_element_wise(
        pc.max_element_wise(microseconds, _LEAST_US, skip_nulls=False), _MOST_US, skip_nulls=False
    )
    whole = pc.floor(some)
    rest = pc.round(pc.multiply(pc.subtract(some, whole), _THOUSANDFOLD))
    return pc.add(pc.multiply(whole.cast(WHOLE), _THOUSAND), rest.cast(WHOLE))


def _exact(value: Any) -> int | None:  # noqa: ANN401 - a number, its text, or raw JSON
    """Nanoseconds of microseconds with any number of digits."""
    if type(value) is msgspec.Raw:
        value = bytes(value).decode()
    if type(value) is str and value[-4:-3] == ".":
        digits = value[:-4] + value[-3:]
        if digits.isdecimal() and len(digits) < 19:
            return int(digits)
    number = microseconds(value if isinstance(value, str) else str(value))
    if number is None:
        return None
    return int((max(-_BEYOND, min(_BEYOND, number)) * 1000).to_integral_value())


def _whole(values: Sequence[Any]) -> pa.Array:
    """Whole numbers; numbers as text are taken, hexadecimal ones too."""
    try:
        return pa.array(values, WHOLE)
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        return pa.array([_number(value) for value in values], WHOLE)


def _number(value: Any) -> int | None:  # noqa: ANN401 - foreign JSON
    if isinstance(value, str):
        try:
            value = int(value, 0) if len(value) < 40 else None
        except ValueError:
            return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    fits = isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**62
    return value if fits else None


def _volumes(axes: Sequence[Any]) -> pa.Array:
    try:
        return _whole(list(map(_VOLUMES.__getitem__, axes)))
    except TypeError:  # what cannot be looked up: lists, and objects in place of numbers
        return _whole([_volume(one) for one in axes])


def _volume(axes: Any) -> int | None:  # noqa: ANN401 - foreign JSON
    told = isinstance(axes, tuple | list) and all(type(one) is int for one in axes)
    return prod(axes) if told and axes else None


def _texts(values: Sequence[Any]) -> pa.DictionaryArray:
    """Names, each kept once."""
    try:
        return pa.array(values, pa.string()).dictionary_encode()
    except (pa.ArrowException, TypeError, ValueError, UnicodeError):
        some = [None if value is None else clean(str(value)) for value in values]
        return pa.array(some, pa.string()).dictionary_encode()

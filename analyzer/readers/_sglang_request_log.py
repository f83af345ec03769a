"""Lines of SGLang's request log (JSON or text) and of its time stats, as parts of request rows."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from analyzer.readers._jsonl import Bad, Skip
from analyzer.readers._pending import Part
from analyzer.readers._rows import believed, text_or_none
from analyzer.readers._sglang_lines import RECEIVED
from analyzer.readers._sglang_requests import Asked, meta_columns, stats_columns
from analyzer.readers._times import time_to_ns
from analyzer.readers._usage import BUCKETS

RECKONED = (
    "request time stats without entry_time (before 0.5.12): a request began its durations before "
    "the line about it"
)
_META = "'meta_info': {"
_MOST_META = 1 << 20
# A key; else a string, whole or up to the end; else a bracket; else a word.
_TOKEN = re.compile(
    r"""(?P<key>'(?:[^'\\]|\\.)*+'(?=: ))|(?P<text>'(?:[^'\\]|\\.)*+'?|"(?:[^"\\]|\\.)*+"?)"""
    r"""|(?P<open>[{\[(])|(?P<close>[}\])])|(?P<word>[^\s,:{}\[\]()'"]+)""",
    re.DOTALL,
)
_WORDS = {"None": None, "True": True, "False": False}


class _Out(msgspec.Struct):
    meta_info: Any = None


class _Event(msgspec.Struct):
    """A JSON line; what may hold a prompt or an answer is passed over unread."""

    event: str
    timestamp: Any = None
    rid: Any = None
    obj: Asked | None = None
    out: _Out | None = None
    rank: Any = None
    running_rids: list[Any] | None = None
    queued_rids: list[Any] | None = None


_event = msgspec.json.Decoder(_Event).decode


class Taken(msgspec.Struct):
    """What one line gave: a part of a request row, or a sample of the scheduler."""

    part: Part | None = None
    sample: dict[str, Any] | None = None
    strange: str = ""
    assumed: str = ""


def take(kind: str, text: str, message: str, time_ns: int | None, zone: str) -> Taken:
    """One line of a kind of :data:`REQUESTS`; raises :class:`Skip` or :class:`Bad`."""
    if kind == "json":
        return _take_json(text, zone)
    if kind == "stats":
        at = re.search(r"Req ?Time ?Stats\(", message)
        columns, strange, reckoned = stats_columns(message[at.start() :] if at else "", time_ns)
        assumed = RECKONED if reckoned else ""
    else:
        columns, strange = meta_columns(_meta_of(message), None, time_ns)
        assumed = ""
    return _part(kind, columns, strange, assumed)


def _part(kind: str, columns: dict[str, Any], strange: str, assumed: str = "") -> Taken:
    doubts = [one for one in (strange, believed(columns)) if one]
    part = {"from": kind, **{name: value for name, value in columns.items() if value is not None}}
    return Taken(part, None, "; ".join(doubts), assumed)


def _take_json(text: str, zone: str) -> Taken:
    try:
        event = _event(text[text.index("{") :])
    except (msgspec.DecodeError, RecursionError):
        raise Bad("a request-log line that is no valid JSON of that kind") from None
    time_ns = time_to_ns(event.timestamp, zone)
    if event.event.startswith("request.received"):
        raise Skip(RECEIVED)
    if event.event == "scheduler.status":
        if time_ns is None or event.running_rids is None or event.queued_rids is None:
            raise Bad("a scheduler.status without its time or its lists of requests")
        sample = {
            "time_ns": time_ns,
            "clock": "wall",
            "engine": text_or_none(event.rank),
            "running": len(event.running_rids),
            "waiting": len(event.queued_rids),
        }
        return Taken(sample=sample)
    if event.event != "request.finished":
        raise Bad("an event that SGLang's request log is not known to have")
    meta = event.out.meta_info if event.out else None
    if not isinstance(meta, dict):
        raise Bad("a finished request without its meta_info")
    columns, strange = meta_columns({"id": event.rid, **meta}, event.obj, time_ns)
    return _part("json", columns, strange)


def _meta_of(message: str) -> dict[str, Any]:
    """``meta_info`` of a text line: a Python dict, whose neighbours hold prompt and answer.

    It is the last key of the answer, and its strings are quoted, so what a prompt says that looks
    like it stands before.
    """
    start = message.rfind(_META)
    if start < 0:
        raise Bad("a finished request without its meta_info")
    found: dict[str, Any] = {}
    depth, path = 0, ["", ""]
    place = start + len(_META) - 1
    for token in _TOKEN.finditer(message, place, place + _MOST_META):
        if token["open"]:
            depth += 1
            if depth == 2:
                found.setdefault(path[0], {} if token["open"] == "{" else None)
        elif token["close"]:
            depth -= 1
            if depth == 0:
                return found
        elif depth <= 2 and token["key"]:
            path[depth - 1] = token["key"][1:-1]
        elif depth == 1:
            found.setdefault(path[0], _value(token))
        elif depth == 2 and isinstance(found.get(path[0]), dict):
            found[path[0]].setdefault(path[1], _value(token))
    raise Bad("a finished request whose meta_info is cut, or longer than 1 MiB")


def _value(token: re.Match[str]) -> Any:  # noqa: ANN401
    if token["text"]:
        return token["text"][1:-1]
    word = token["word"]
    if word in _WORDS:
        return _WORDS[word]
    if re.fullmatch(r"-?\d{1,18}", word):
        return int(word)
    return float(word) if re.fullmatch(r"-?\d{1,18}\.\d{1,18}(?:e-?\d\d)?", word) else None


def rows_of(parts: list[Part]) -> list[dict[str, Any]]:
    """Rows of one id: time stats and a finish complete each other, two of a kind never do."""
    rows: list[dict[str, Part]] = []
    for part in parts:
        side = "stats" if part["from"] == "stats" else "finish"
        home = next((row for row in rows if side not in row), None)
        if home is None:
            rows.append({side: part})
        else:
            home[side] = part
    return [_joined(row) for row in rows]


def _joined(row: dict[str, Part]) -> dict[str, Any]:
    """The API server saw the whole request; the scheduler's line adds what it alone knows."""
    finish, stats = row.get("finish", {}), dict(row.get("stats", {}))
    record = min(part["record"] for part in row.values())
    if any(name in finish for name in BUCKETS):
        # The buckets of one prompt come from one source.
        stats = {name: value for name, value in stats.items() if name not in BUCKETS}
    columns = {**stats, **finish, "record": record}
    if finish and finish["clock"] == "monotonic" and stats.get("clock") == "wall":
        columns["clock"] = "wall"
    del columns["from"]
    return columns

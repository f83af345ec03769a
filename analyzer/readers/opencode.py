"""opencode's database (``opencode.db``), and the messages older versions kept as files.

The database is opened read-only and as it lies there: what stands in its write-ahead log alone is
not in it, and the reader says so.
"""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

from analyzer.contract.types import Batch, Problem
from analyzer.readers._document import read_all
from analyzer.readers._file import BOM, Head, InputFile
from analyzer.readers._jsonl import Bad, Sink, Skip, object_of
from analyzer.readers._opencode_messages import UNTOLD_OUTPUT, assumes, is_contradicted, row_of
from analyzer.readers._reader import Claim, Options, Reader
from analyzer.readers._rows import excerpt
from analyzer.readers._sqlite import MAGIC, on_disk, opened, tables, told
from analyzer.readers._thread import Thread
from analyzer.readers._transcript import NO_USAGE, contradiction, text

_TABLES = (
    re.compile(rb"CREATE TABLE [`\"\[]?message[`\"\]]?\s*\([^;]{0,400}session_id", re.DOTALL),
    re.compile(rb"CREATE TABLE [`\"\[]?session[`\"\]]?\s*\(", re.DOTALL),
)
_LONG = (
    re.compile(rb'(?<!\\)"id"\s*:\s*"msg_'),
    re.compile(rb'(?<!\\)"role"\s*:\s*"(?:assistant|user)"'),
)
"""What a message has that is longer than a probe sees: some hold the prompt of the system."""
_WAL = 2
"""What bytes 18 and 19 of the header say of a database with a write-ahead log."""
_LOGGED = (
    "the database keeps a write-ahead log: what stands only in opencode.db-wal is not read; "
    "`sqlite3 opencode.db 'VACUUM INTO \"copy.db\"'` makes a copy with all of it"
)
_DAMAGED = (
    "the database is damaged or cut off ({why}): `sqlite3 opencode.db .recover | sqlite3 new.db` "
    "saves what can be read"
)
_MOST_BYTES = 64 * 1024 * 1024
_ROWS = 10_000
_MESSAGES = (
    "SELECT m.id, m.session_id, CASE WHEN length(m.data) > ? THEN NULL ELSE m.data END, "
    "s.parent_id, s.id, {sums} FROM message AS m LEFT JOIN session AS s ON s.id = m.session_id "
    "{parts} ORDER BY m.session_id, m.time_created, m.id"
)
# Only lengths leave the database: text, reasoning, calls of tools, their results, files.
_SUMS = "p.said, p.thought, p.called, p.resulted, p.files"
_PARTS = (
    "LEFT JOIN (SELECT message_id, "
    "sum(iif(kind = 'text', length(json_extract(data, '$.text')), 0)) AS said, "
    "sum(iif(kind = 'reasoning', length(json_extract(data, '$.text')), 0)) AS thought, "
    "sum(iif(kind = 'tool', coalesce(length(json_extract(data, '$.tool')), 0) "
    "+ coalesce(length(json_extract(data, '$.state.input')), 0), 0)) AS called, "
    "sum(iif(kind = 'tool', length(json_extract(data, '$.state.output')), 0)) AS resulted, "
    "sum(kind = 'file') AS files "
    "FROM (SELECT message_id, data, json_extract(data, '$.type') AS kind FROM part "
    "WHERE json_valid(data)) GROUP BY message_id) AS p ON p.message_id = m.id"
)


def probe(head: Head) -> Claim:
    """SQLite with opencode's tables, or one message, part or session in a file of its own."""
    if head.data.startswith(MAGIC):
        found = sum(1 for table in _TABLES if table.search(head.data))
        why = "a SQLite database without opencode's tables 'message' and 'session' at its head"
        return Claim(1, "") if found == len(_TABLES) else Claim(0.3, why)
    if not head.whole:
        data = head.data.removeprefix(BOM).lstrip()
        # One object, not the lines of somebody else's transcript.
        alone = data.startswith(b"{") and b"\n{" not in data and b'"sessionId"' not in data
        long = alone and all(one.search(data) for one in _LONG)
        return Claim(1 if long else 0, "" if long else "neither a database nor a small object")
    try:
        value = object_of(head.data.strip())
    except Bad:
        return Claim(0, "neither a SQLite database nor a JSON object")
    if _kind(value):
        return Claim(1, "")
    return Claim(0.3 if "sessionID" in value else 0, "no message, part or session of opencode")


def _kind(value: dict[str, Any]) -> str:
    """message, part, session, or nothing that opencode keeps."""
    if text(value, "messageID") and text(value, "sessionID") and text(value, "type"):
        return "part"
    timed = isinstance(value.get("time"), dict)
    if text(value, "sessionID") and text(value, "role") and timed:
        return "message"
    if text(value, "projectID") and text(value, "directory") and text(value, "id") and timed:
        return "session"
    return ""


class _Messages:
    """Messages in, rows out; turns are counted a session where all of it is there."""

    def __init__(self, *, whole: bool) -> None:
        self._whole = whole
        self._turns: Counter[str | None] = Counter()
        self._thread = Thread()
        self._of: str | None = None
        self._compacted = False

    def take(
        self, own: str | None, session: str | None, starter: tuple[str | None, bool | None],
        data: dict[str, Any], record: int, sink: Sink, lengths: Sequence[Any] = (),
    ) -> None:  # fmt: skip
        """``starter``: the session that started this one, and whether there is one."""
        made_of, compacted = self._hear(session, data, lengths)
        if data.get("role") != "assistant":
            raise Skip(NO_USAGE)
        tokens = data.get("tokens")
        if assumes(tokens):
            sink.assumed.add(UNTOLD_OUTPUT)
        row = row_of(own, session, data)
        if "usage_final" not in row and row["error"] is None:
            raise Skip("an answer that was not finished: no usage yet")
        self._turns[session] += 1
        if self._whole:
            row["turn"] = self._turns[session]
        row["parent_session_id"], row["is_sidechain"] = starter
        row |= made_of | {"is_compacted": True if compacted else None}
        row |= contradiction(sink, record, wrong=is_contradicted(tokens))
        sink.add("request", record, **row)

    def _hear(
        self, session: str | None, data: dict[str, Any], lengths: Sequence[Any]
    ) -> tuple[dict[str, int], bool]:
        """The prompt of this message by the messages before, and whether those were summed up."""
        if session != self._of:
            self._thread, self._of, self._compacted = Thread(), session, False
        told = self._thread.columns(), self._compacted
        self._compacted = False
        if not any(isinstance(one, int) for one in lengths):
            return {}, told[1]
        said, thought, called, resulted, files = (
            one if isinstance(one, int) else 0 for one in lengths
        )
        if data.get("summary") is True and data.get("role") == "assistant":
            # A summary of the history stands for it from here on.
            self._thread.forget()
            self._thread.add({"user_chars": said})
            self._compacted = True
        elif data.get("role") == "user":
            self._thread.add({"user_chars": said, "images": files})
        else:
            self._thread.add(
                {"assistant_chars": said + called, "reasoning_chars": thought,
                 "tool_result_chars": resulted, "images": files}
            )  # fmt: skip
        return told


def _check(database: sqlite3.Connection) -> bool:
    """Tables, and no views or virtual tables of these names; whether one has the parts, too."""
    known = tables(database)
    if not {"message", "session"} <= known.keys():
        raise sqlite3.DatabaseError("it has no tables 'message' and 'session'")
    return {"message_id", "data"} <= known.get("part", frozenset())


def _database(file: InputFile, options: Options) -> Iterator[Batch]:
    messages, records = _Messages(whole=True), 0
    sink, begun = Sink(zone=options.zone), 0
    if file.head.data[18:20] == bytes((_WAL, _WAL)):
        sink.assumed.add(_LOGGED)
    try:
        with on_disk(file) as path, closing(opened(path)) as database:
            parts = _check(database)
            wanted = _MESSAGES.format(
                sums=_SUMS if parts else "NULL", parts=_PARTS if parts else ""
            )
            for row in database.execute(wanted, (_MOST_BYTES,)):
                records += 1
                _row(row, messages, records, sink)
                if records - begun == _ROWS:
                    yield sink.batch(_ROWS)
                    sink, begun = Sink(zone=options.zone), records
    except (sqlite3.Error, OverflowError, UnicodeError) as error:
        records += 1
        why = type(error).__name__ if isinstance(error, UnicodeError) else told(error)
        sink.problems.append(Problem(records, _DAMAGED.format(why=why)))
    yield sink.batch(records - begun)


def _row(row: tuple[Any, ...], messages: _Messages, record: int, sink: Sink) -> None:
    own, session, data, parent, known, *lengths = row
    try:
        starter = (_name(parent), parent is not None if known is not None else None)
        messages.take(_name(own), _name(session), starter, _object(data), record, sink, lengths)
    except Skip as skip:
        sink.ignored[str(skip)] += 1
    except Bad as bad:
        shown = excerpt(data) if isinstance(data, bytes) else ""
        sink.problems.append(Problem(record, str(bad), shown))


def _object(data: object) -> dict[str, Any]:
    if not isinstance(data, bytes):
        raise Bad(f"a message without JSON text, or of over {_MOST_BYTES >> 20} MiB")
    return object_of(data)


def _name(value: object) -> str | None:
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    return value if isinstance(value, str) and value else None


def _document(file: InputFile, options: Options) -> Iterator[Batch]:
    sink = Sink(zone=options.zone)
    data = b""
    try:
        data = read_all(file, _MOST_BYTES)
        if not data.strip():
            yield sink.batch(0)
            return
        _take_document(object_of(data.strip()), sink)
    except Skip as skip:
        sink.ignored[str(skip)] += 1
    except ValueError as bad:  # Bad is one
        sink.problems.append(Problem(1, str(bad), excerpt(data[:1000]), 0))
    yield sink.batch(1)


def _take_document(value: dict[str, Any], sink: Sink) -> None:
    kind = _kind(value)
    if kind in ("part", "session"):
        raise Skip(NO_USAGE if kind == "part" else "a session's title and times: no usage")
    if not kind:
        raise Bad("no message, part or session of opencode")
    own, session = text(value, "id"), text(value, "sessionID")
    _Messages(whole=False).take(own, session, (None, None), value, 1, sink)


def read(file: InputFile, options: Options) -> Iterator[Batch]:
    """One ``request`` row of vantage client an answer."""
    if file.head.data.startswith(MAGIC):
        yield from _database(file, options)
    else:
        yield from _document(file, options)


READER = Reader(
    title="opencode database (opencode.db) and message files",
    record_unit="message",
    gives=("request",),
    probe=probe,
    read=read,
    docs="https://opencode.ai/docs; ~/.local/share/opencode/opencode.db and storage/message",
    cannot="TTFT; how long an answer took: the times of a message include the tools it ran; "
    "messages copied into a forked session, which get new ids; in files of their own, turns and "
    "which session started which",
    enable="copy the database with sqlite3's VACUUM INTO, so that its write-ahead log is in it; "
    "for durations send opencode through a gateway that logs",
    checked_against="databases made with the tables that public readers of the format describe",
)

"""OpenAI Codex CLI rollouts: what a thread's token counts add, request by request.

Newer versions write a ``token_usage_record`` a response; then nothing else counts. Older ones write
running totals, again and again, and a fork or sub-agent begins with a replay of its parent's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from analyzer.contract.types import Batch, Problem
from analyzer.readers._codex_usage import (
    Counts,
    Running,
    buckets_of,
    counts_of,
    is_contradicted,
)
from analyzer.readers._file import Head, InputFile
from analyzer.readers._jsonl import Bad, Sink, Skip, objects
from analyzer.readers._parts import word_of
from analyzer.readers._reader import Claim, Options, Reader
from analyzer.readers._thread import AnsweredThread
from analyzer.readers._times import DURATIONS, time_to_ns
from analyzer.readers._transcript import (
    AGAIN,
    NO_USAGE,
    WRITTEN,
    Seen,
    compaction_tags,
    contradiction,
    count,
    failure,
    ms,
    read_session,
    sound,
    status_of,
    text,
    told_again,
    told_once,
)

_CLAIMED = {"session_meta", "turn_context", "event_msg", "response_item", "token_usage_record"}
_SILENT = {
    "world_state", "inter_agent_communication_metadata",
    "inter_agent_communication", "ghost_snapshot",
}  # fmt: skip
_REPLAY = "replay of the thread it was forked from"
_OLD = "token_count beside a token_usage_record"
_SUM = "sum over requests that are counted by themselves"
_NO_MODEL = "a count before any turn_context names no model"
_ASKED = "a request is taken to begin with the last line that it answers"
_BURST_NS = 1_000_000_000
_RECORD = b"token_usage_record"
_RECORD_LINE = re.compile(rb'(?<!\\)"type"\s*:\s*"token_usage_record"')


def probe(head: Head) -> Claim:
    """JSON lines of ``timestamp``, ``type`` and ``payload`` with a type that Codex writes."""
    some = objects(head)
    if not some:
        return Claim(0, "its first lines are not JSON objects")
    for one in some:
        kind = one.get("type")
        if isinstance(one.get("payload"), dict) and isinstance(kind, str):
            if kind in _CLAIMED and "timestamp" in one:
                return Claim(1, "")
            return Claim(0.5, "its payloads are of no type that Codex writes")
        if kind in ("thread.started", "turn.completed") and not one.keys() & {"id", "sessionId"}:
            return Claim(
                0.6,
                "it is the output of codex exec --json, whose usage is a sum over a turn's "
                "requests: take the rollout file of the same thread under ~/.codex/sessions",
            )
    return Claim(0, "its JSON lines have no 'payload'")


class _Rollout:
    """One file: whose thread it is, what was counted, and the turn that goes on."""

    def __init__(self, *, records: bool) -> None:
        self._records = records
        """The thread has records of its own for each response: running totals do not count."""
        self._thread: str | None = None
        self._columns: dict[str, Any] = {}
        self._forked = False
        self._begun = False
        """A count of its own was met: the replay is over."""
        self._burst: int | None = None
        self._first_ordinal: int | None = None
        self._running = Running()
        self._seen = Seen()
        self._calls = 0
        self._turn: str | None = None
        self._turn_ns: int | None = None
        self._asked: object = None
        """When the last line was written that a request answers."""
        self._compacted: dict[str, str] = {}
        self._said = AnsweredThread()
        self._waiting: tuple[int, dict[str, Any]] | None = None
        """The first request of the turn, whose TTFT is only told when the turn ends."""
        self._last: tuple[int, dict[str, Any]] | None = None
        """The last request, if it is not the first: its counts may be told again."""

    def take(self, value: dict[str, Any], record: int, sink: Sink) -> None:
        kind, payload = value.get("type"), value.get("payload")
        if not isinstance(kind, str) or not isinstance(payload, dict):
            raise Bad("no 'type' with a 'payload': not a line that Codex writes")
        if kind == "compacted":
            self._compact(payload)
            return
        if kind in _SILENT or kind == "response_item":
            if kind == "response_item":
                self._said.message(payload)
            if _asks(payload):
                self._asked = value.get("timestamp")
            raise Skip(NO_USAGE)
        if kind == "session_meta":
            self._meta(payload, value, sink)
        elif kind == "turn_context":
            self._begin(text(payload, "turn_id"), None, sink)
            told = {"model": text(payload, "model"), "effort": word_of(payload.get("effort"))}
            self._columns |= {name: one for name, one in told.items() if one is not None}
        elif kind == "token_usage_record":
            self._record(value, payload, record, sink)
        elif kind == "event_msg":
            self._event(value, payload, record, sink)
        else:
            raise Bad("a type of line this reader does not know; if it tells usage, report it")

    def _meta(self, payload: dict[str, Any], value: dict[str, Any], sink: Sink) -> None:
        thread = text(payload, "id") or text(payload, "session_id")
        spawned = text(payload, "source", "subagent", "thread_spawn", "parent_thread_id")
        if self._thread is not None:
            if (
                thread != self._thread and not self._begun
            ):  # the parent's own, at the head of what it replays
                self._forked = True
                self._columns.setdefault("parent_session_id", thread)
            return
        self._thread = thread
        self._said.content("system", _instructions(payload))
        parent = text(payload, "parent_thread_id") or spawned or text(payload, "forked_from_id")
        source = payload.get("source")
        side = payload.get("thread_source") == "subagent" or source == "subagent"
        side = side or (isinstance(source, dict) and "subagent" in source)
        self._forked = side or parent is not None
        self._burst = time_to_ns(value.get("timestamp"), sink.zone)
        self._first_ordinal = count(payload, "subagent_history_start_ordinal")
        if self._first_ordinal is None:
            self._first_ordinal = count(payload, "history_base", "end_ordinal_exclusive")
        told = {"parent_session_id": parent, "provider": text(payload, "model_provider")}
        self._columns |= {name: one for name, one in told.items() if one is not None}
        self._columns |= {"is_sidechain": side}

    def _compact(self, payload: dict[str, Any]) -> None:
        """What stands for the history from here on is the new one, else the summary."""
        self._compacted = compaction_tags()
        self._said.forget()
        history = payload.get("replacement_history")
        for one in history if isinstance(history, list) else [text(payload, "message") or ""]:
            self._said.message(one)

    def _event(
        self, value: dict[str, Any], payload: dict[str, Any], record: int, sink: Sink
    ) -> None:
        kind = payload.get("type")
        if kind == "token_count":
            self._count(value, payload, record, sink)
        elif kind == "user_message":
            self._asked = value.get("timestamp")
            raise Skip(NO_USAGE)
        elif kind == "task_started":
            self._begin(text(payload, "turn_id"), self._moment(value, record, sink), sink)
        elif kind == "task_complete":
            self._complete(payload, record, sink)
        elif kind == "thread_settings_applied":
            settings = payload.get("thread_settings")
            told = {
                "model": text(settings, "model"),
                "service_tier": text(settings, "service_tier"),
            }
            self._columns |= {name: one for name, one in told.items() if one is not None}
        elif kind == "error":
            self._error(value, payload, record, sink)
        elif isinstance(payload.get("usage"), dict):
            if self._calls:
                raise Skip(_SUM)
            raise Bad(
                "the usage of a turn is a sum over its requests, and no request of it is told: "
                "take the rollout of a newer Codex, which writes token_count"
            )
        else:
            raise Skip(NO_USAGE)

    def _moment(self, value: dict[str, Any], record: int, sink: Sink) -> int | None:
        return sink.time(record, "timestamp", value.get("timestamp"))

    def _begin(self, turn: str | None, started: int | None, sink: Sink) -> None:
        if turn is None or turn != self._turn:
            self.finish(sink)
            self._turn, self._turn_ns = turn, None
        if started is not None:
            self._turn_ns = started

    def _complete(self, payload: dict[str, Any], record: int, sink: Sink) -> None:
        ttft = ms(payload, "time_to_first_token_ms")
        turn = text(payload, "turn_id")
        if ttft is not None and self._waiting and (turn is None or turn == self._turn):
            if ttft in DURATIONS:
                self._waiting[1].update(ttft_ns=ttft, timing="stated")
            else:
                reason = "'time_to_first_token_ms': beyond any request, not read"
                sink.problems.append(Problem(record, reason))
        self.finish(sink)

    def _replayed(self, value: dict[str, Any], now: int | None) -> bool:
        """Whether this count is one the parent made: those lead, under the second of the fork."""
        if not self._forked or self._begun:
            return False
        ordinal = count(value, "ordinal")
        if self._first_ordinal is not None and ordinal is not None:
            return ordinal < self._first_ordinal
        if now is None or self._burst is None or now >= self._burst + _BURST_NS:
            return False
        self._burst = max(now, self._burst)
        return True

    def _count(
        self, value: dict[str, Any], payload: dict[str, Any], record: int, sink: Sink
    ) -> None:
        if self._records:
            raise Skip(_OLD)
        info = payload.get("info")
        if info is None:
            raise Skip("token_count of the rate limits alone")
        total, last = (
            counts_of(info.get(name)) if isinstance(info, dict) else None
            for name in ("total_token_usage", "last_token_usage")
        )
        if total is None and last is None:
            raise Bad("a token_count that does not say whether it is of one request or of all")
        now = self._moment(value, record, sink)
        if self._replayed(value, now):
            self._running.added(total, last)
            raise Skip(_REPLAY)
        self._begun = True
        added, note = self._running.added(total, last)
        if added is None:
            raise self._again(last or total)
        if note:
            sink.assumed.add(note)
        said = info.get("total_token_usage" if last is None else "last_token_usage")
        self._request(added, said, now, record, sink, model=text(info, "model"))

    def _record(
        self, value: dict[str, Any], payload: dict[str, Any], record: int, sink: Sink
    ) -> None:
        usage = counts_of(payload.get("usage"))
        if usage is None:
            raise Bad("a token_usage_record without counts")
        thread, response = text(payload, "thread_id"), text(payload, "response_id")
        now = self._moment(value, record, sink)
        foreign = thread is not None and self._thread is not None and thread != self._thread
        if (self._forked and foreign) or self._replayed(value, now):
            raise Skip(_REPLAY)
        self._begun = True
        told = response or hash(repr(payload.get("thread_token_usage") or record))
        if self._seen.again((thread or self._thread, told)):
            raise self._again(usage)
        own = {"session_id": thread} if foreign else {}
        self._request(usage, payload.get("usage"), now, record, sink, response_id=response, **own)

    def _request(
        self, counts: Counts, said: object, now: int | None, record: int, sink: Sink,
        **told: str | None,
    ) -> None:  # fmt: skip
        self._calls += 1
        row = self._identity(str(self._calls)) | {"turn": self._calls} | buckets_of(counts)
        row |= {name: one for name, one in told.items() if one is not None}
        row["request_id"] = told.get("response_id") or row["request_id"]
        row |= contradiction(sink, record, wrong=is_contradicted(said))
        row |= told_once(counts["output_tokens"]) | self._said.told()
        row |= {"is_compacted": True} if self._compacted else {}
        row |= {"usage_final": True, "start_ns": now, "clock": None if now is None else "wall"}
        if "model" not in row:
            sink.assumed.add(_NO_MODEL)
        first = self._turn_ns is not None and self._waiting is None and now is not None
        if now is not None:
            asked = self._turn_ns if first else time_to_ns(self._asked, sink.zone)
            row["start_ns"] = now if asked is None else min(asked, now)
            sink.assumed.add(WRITTEN if asked is None else _ASKED)
        self._asked = None
        row = sound(sink, record, row)
        for name, tag in self._compacted.items():
            sink.add("request_tag", record, name=name, value=tag)
        self._compacted = {}
        self._flush(sink)
        if first:
            self._waiting = (record, row)
        else:
            self._last = (record, row)

    def _again(self, counts: Counts | None) -> Skip:
        """The counts of the last request once more: it counts once, and the row says how often."""
        told = self._last or self._waiting
        if told is not None and counts is not None:
            told[1].update(told_again(told[1], counts["output_tokens"]))
        return Skip(AGAIN)

    def _flush(self, sink: Sink) -> None:
        if self._last:
            record, row = self._last
            sink.add("request", record, **row)
        self._last = None

    def _identity(self, call: str) -> dict[str, Any]:
        row = {"vantage": "client", "session_id": self._thread} | self._columns
        row["request_id"] = f"{self._thread}#{call}" if self._thread else None
        return row

    def _error(
        self, value: dict[str, Any], payload: dict[str, Any], record: int, sink: Sink
    ) -> None:
        inner = payload.get("error")
        name = text(payload, "codex_error_info") or text(inner, "kind")
        error = failure(name, text(payload, "message") or text(inner, "message"))
        if error in (None, "error"):
            raise Skip(NO_USAGE)
        now = self._moment(value, record, sink)
        row = self._identity(f"error{record}") | {"error": error, "status": status_of(error)}
        sink.add("request", record, **row, start_ns=now, clock=None if now is None else "wall")

    def finish(self, sink: Sink) -> None:
        """The turn is over: its first request has all it will get."""
        if self._waiting:
            record, row = self._waiting
            sink.add("request", record, **row)
        self._flush(sink)
        self._waiting, self._turn_ns = None, None


def _instructions(payload: dict[str, Any]) -> str | None:
    """What the session begins with as the system's words."""
    return text(payload, "base_instructions", "text") or text(payload, "instructions")


def _asks(payload: dict[str, Any]) -> bool:
    """Whether this is what a model answers: a prompt, or what a tool gave."""
    kind = payload.get("type")
    if kind == "message":
        return payload.get("role") == "user"
    return isinstance(kind, str) and kind.endswith(("_output", "_result"))


def _has_records(file: InputFile) -> bool:
    rest = b""
    for block in file.blocks():
        data = rest + block
        if _RECORD in data and _RECORD_LINE.search(data):
            return True
        rest = data[-200:]
    return False


def read(file: InputFile, options: Options) -> Iterator[Batch]:
    """One ``request`` row of vantage client a response, with what it added to the counts."""
    yield from read_session(file, options, _Rollout(records=_has_records(file)))


READER = Reader(
    title="OpenAI Codex CLI rollouts (rollout-*.jsonl)",
    record_unit="line",
    gives=("request", "request_tag"),
    probe=probe,
    read=read,
    docs="https://github.com/openai/codex; $CODEX_HOME/sessions/YYYY/MM/DD/rollout-*.jsonl",
    cannot="when a request was sent and how long it took; TTFT but of the first request of a turn, "
    "from the start of that turn; requests before the last one where totals were written rarely; "
    "a bill: on a subscription costs are what the API would have cost",
    enable="a Codex that writes token_usage_record and time_to_first_token_ms is best; for "
    "durations add its OpenTelemetry export ([otel] in config.toml) or a gateway's log; ingest "
    "sessions/ and archived_sessions/ whole, so that sub-agents are there",
    facts=(("compaction", "tag compaction on the next request"),),
    checked_against="public rollouts of versions 0.50 to 0.146 and of readers' test data; Codex "
    "itself is a native binary and was not read",
)

"""Ollama's answers: final objects with their durations, whole streams, or captures of either."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from analyzer.contract.types import Batch
from analyzer.readers._bodies import first_bodies, read_bodies
from analyzer.readers._errors import error_class
from analyzer.readers._file import Head, InputFile
from analyzer.readers._jsonl import Bad, Sink
from analyzer.readers._reader import Claim, Options, Reader
from analyzer.readers._rows import believed, int_or_none, tables_of, text_or_none
from analyzer.readers._times import DURATIONS, NS
from analyzer.readers._usage import token_buckets

_DURATIONS = ("total_duration", "load_duration", "prompt_eval_duration", "eval_duration")
_KINDS = (("thinking", "reasoning"), ("content", "content"), ("tool_calls", "tool_call"))
_TAGGED = ("request_id", "session_id", "route")
_START = "start is 'created_at' less 'total_duration', both of the server"
_SENT = "start is the client's 'sent_at' where an answer has no 'created_at' or 'total_duration'"
_APART = (
    "'sent_at' and the server's own start are over a second apart: two clocks, or a wait before "
    "the server took the request; the server's is used"
)
_MOST_CHUNKS = 1_000_000

Stream = dict[str, Any]
"""A streamed answer under way; nothing in it that JSON cannot carry."""


def _is_answer(value: dict[str, Any]) -> bool:
    if not isinstance(value.get("model"), str):
        return False
    if isinstance(value.get("total_duration"), int):
        return "done" in value or "embeddings" in value
    told = isinstance(value.get("created_at"), str) and isinstance(value.get("done"), bool)
    return told and ("response" in value or "message" in value)


def probe(head: Head) -> Claim:
    """Bodies with Ollama's durations or chunks, or captures that hold one."""
    some = first_bodies(head)
    if any(_is_answer(one) for one in some):
        return Claim(1, "")
    captures = [one for one in some if "sent_at" in one and isinstance(one.get("response"), dict)]
    if any(_is_answer(one["response"]) for one in captures):
        return Claim(1, "")
    if captures:
        return Claim(0.6, "its captures hold no answer of Ollama")
    return Claim(0, "none of its first bodies has Ollama's 'total_duration' or 'done'")


class _Answers:
    """Chunks have no id: those of one answer stand together, up to the object that is done."""

    def __init__(self, memory: Stream | None) -> None:
        self.stream: Stream | None = memory

    def memory(self) -> Stream | None:
        return None if self.stream is None else {**self.stream, "chunks": [*self.stream["chunks"]]}

    def open_records(self) -> tuple[int, ...]:
        return () if self.stream is None else (self.stream["record"],)

    def rest(self) -> Mapping[str, pa.Table]:
        if self.stream is None:
            return {}
        row = {"record": self.stream["record"], **_unfinished(self.stream)}
        believed(row)
        return tables_of(request=[row])

    def take(self, value: dict[str, Any], record: int, sink: Sink) -> None:
        sent, told = None, {}
        answer = value.get("response")
        if isinstance(answer, dict):  # a capture; an answer's own 'response' is its text
            sent = sink.time(record, "sent_at", value.get("sent_at"))
            told = {name: text_or_none(value.get(name)) for name in _TAGGED}
            value = answer
        if value.get("error") is not None:
            self._failed(value, record, sent, told, sink)
        elif not _is_answer(value):
            raise Bad("no answer of Ollama: it has neither 'total_duration' nor 'done'")
        elif value.get("done") is False:
            self._chunk(value, record, sink)
        else:
            self._final(value, record, sent, told, sink)

    def _chunk(self, value: dict[str, Any], record: int, sink: Sink) -> None:
        model = text_or_none(value.get("model"))
        at = sink.time(record, "created_at", value.get("created_at"))
        if self.stream is not None and self.stream["model"] != model:
            self._give_up(sink)
        if self.stream is None:
            self.stream = {"record": record, "model": model, "chunks": []}
            self.stream["endpoint"] = _endpoint(value)
        kind, chars = _piece(value)
        if kind is not None and at is not None and len(self.stream["chunks"]) < _MOST_CHUNKS:
            self.stream["chunks"].append([at, kind, chars])

    def _give_up(self, sink: Sink) -> None:
        if self.stream is not None:
            sink.add("request", self.stream["record"], **_unfinished(self.stream))
            self.stream = None

    def _failed(
        self,
        value: dict[str, Any],
        record: int,
        sent: int | None,
        told: dict[str, Any],
        sink: Sink,
    ) -> None:
        row = {"vantage": "engine", "start_ns": sent, "clock": "wall" if sent else None}
        if self.stream is not None:
            record, row = self.stream["record"], _unfinished(self.stream)
            self.stream = None
        fault = error_class(text_or_none(value["error"]) or "error")
        sink.add("request", record, **row, **told, error=fault)

    def _final(
        self,
        value: dict[str, Any],
        record: int,
        sent: int | None,
        told: dict[str, Any],
        sink: Sink,
    ) -> None:
        stream = self.stream
        if stream is not None and stream["model"] != text_or_none(value.get("model")):
            self._give_up(sink)
            stream = None
        self.stream = None
        end = sink.time(record, "created_at", value.get("created_at"))
        total, load, prefill, decode = (int_or_none(value.get(name)) for name in _DURATIONS)
        reason = text_or_none(value.get("done_reason"))
        if reason in ("load", "unload") and prefill is None and decode is None:
            _loaded(reason, end, load, record, sink)
            return
        if total is None:
            self.stream = stream
            self._give_up(sink)
            raise Bad("a final object without 'total_duration': its durations were cut away")
        start = _start(end, sent, total, sink)
        usage = {
            "prompt_tokens": value.get("prompt_eval_count"),
            "completion_tokens": value.get("eval_count"),
        }
        row = {
            "vantage": "engine",
            **told,
            "endpoint": _endpoint(value),
            "model": text_or_none(value.get("model")),
            "start_ns": start,
            "clock": "wall" if start is not None else None,
            "timing": "stated",
            # The wait for the scheduler is in load_duration too; both end when the model is there.
            "queue_ns": load,
            "load_ns": load,
            "prefill_ns": prefill,
            "decode_ns": decode,
            "e2e_ns": total,
            **token_buckets(usage),
            "usage_convention": "unknown",
            "usage_final": True,
            "finish_reason": reason,
        }
        if stream is not None:
            record = stream["record"]
            row |= _streamed(stream, start, record, sink)
        sink.add("request", record, **row)


def _start(end: int | None, sent: int | None, total: int, sink: Sink) -> int | None:
    if end is None or total not in DURATIONS:
        if sent is not None:
            sink.assumed.add(_SENT)
        return sent
    sink.assumed.add(_START)
    if sent is not None and abs(end - total - sent) > NS:
        sink.assumed.add(_APART)
    return end - total


def _loaded(kind: str, end: int | None, load: int | None, record: int, sink: Sink) -> None:
    """A request without a prompt only loads the model, or unloads it with keep_alive 0."""
    began = end
    if end is not None and load is not None and load in DURATIONS:
        began = end - load
    sink.add("engine_event", record, time_ns=began, kind=kind, dur_ns=load)


def _streamed(stream: Stream, start: int | None, record: int, sink: Sink) -> dict[str, Any]:
    chunks = stream["chunks"]
    since = start if start is not None else (chunks[0][0] if chunks else None)
    for index, (at, kind, chars) in enumerate(chunks):
        sink.add(
            "chunk", record, chunk_index=index, offset_ns=at - since, kind=kind, chars=chars
        )  # fmt: skip
    row = _counted(stream)
    if start is not None:
        for name, kinds in (
            ("ttft_ns", None),
            ("first_reasoning_ns", "reasoning"),
            ("first_content_ns", "content"),
        ):
            first = next((at for at, kind, _ in chunks if kinds in (None, kind)), None)
            row[name] = first - start if first is not None and first >= start else None
    return row


def _counted(stream: Stream) -> dict[str, Any]:
    chunks = stream["chunks"]
    return {
        "streamed": True,
        "chunks": len(chunks),
        "chunk_chars": sum(chars or 0 for _, _, chars in chunks),
        "first_chunk_chars": chunks[0][2] if chunks else None,
    }


def _unfinished(stream: Stream) -> dict[str, Any]:
    """What is known of an answer whose last object is missing: no duration, no count."""
    return {
        "vantage": "engine",
        "model": stream["model"],
        "endpoint": stream["endpoint"],
        **_counted(stream),
    }


def _endpoint(value: dict[str, Any]) -> str | None:
    if "message" in value:
        return "/api/chat"
    if "embeddings" in value:
        return "/api/embed"
    return "/api/generate" if "response" in value else None


def _piece(value: dict[str, Any]) -> tuple[str | None, int | None]:
    """Kind and characters of a chunk; one without any text carries no token."""
    message = value.get("message")
    holder = message if isinstance(message, dict) else value
    for name, kind in _KINDS:
        piece = holder.get(name)
        if piece:
            return kind, len(piece) if isinstance(piece, str) else None
    text = value.get("response")
    return ("content", len(text)) if isinstance(text, str) and text else (None, None)


def read(file: InputFile, options: Options) -> Iterator[Batch]:
    """One ``request`` row of vantage engine an answer, with its chunks where they are kept."""
    return read_bodies(file, options, _Answers(options.resume.state if options.resume else None))


READER = Reader(
    title="Ollama responses and captures (JSON Lines or document)",
    record_unit="object",
    gives=("request", "chunk", "engine_event"),
    probe=probe,
    read=read,
    docs="https://github.com/ollama/ollama/blob/main/docs/api.md",
    cannot="the wait for a parallel slot of a loaded model, which is in no duration; loading apart "
    "from the wait for the scheduler (load_duration is both); cached prompt tokens; the network",
    enable='keep {"sent_at": ..., "response": ...} a call, and the stream\'s chunks for TTFT',
    checked_against="recorded answers of Ollama of 2024 (cold and warm, streamed and not), and "
    "captures of an unloaded and of a partly offloaded model",
)

"""``profile_export.json`` of perf_analyzer and GenAI-Perf: times and texts of every response."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from analyzer.contract.types import Batch
from analyzer.readers._answer import Answer
from analyzer.readers._file import Head, InputFile
from analyzer.readers._json_stream import Item
from analyzer.readers._jsonl import Bad, Sink
from analyzer.readers._loadgen import Requests, asked, document, object_item, summary
from analyzer.readers._reader import Claim, Options, Reader
from analyzer.readers._rows import first, int_or_none, text_or_none

_LISTS = [("experiments", "*", "requests")]
_EXPORT = "read the profile_export.json that --profile-export-file names"
_EVENT_END = re.compile(r"\r?\n\r?\n")


def probe(head: Head) -> Claim:
    """An object with ``experiments`` whose requests have ``response_timestamps``."""
    text = document(head)
    if '"experiments"' in text and '"requests"' in text:
        if '"response_timestamps"' in text or '"request_inputs"' in text:
            return Claim(1, "")
        return Claim(0.7, "its experiments have no response_timestamps")
    if '"request_latency"' in text and '"input_config"' in text and '"aiperf_version"' not in text:
        instead = f"{_EXPORT} (of AIPerf: profile_export.jsonl)"
        return summary("a profile_export_*.json of GenAI-Perf or AIPerf", instead)
    return Claim(0, "it has no experiments with requests")


class _Events:
    """Responses to events: several may share a response, and one may be spread over several."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._rest = ""

    def take(self, output: Any, offset_ns: int) -> None:  # noqa: ANN401 - foreign JSON
        if not isinstance(output, dict):
            raise Bad("an entry of 'response_outputs' is no object")
        text = output.get("response")
        if not isinstance(text, str):
            self._answer.take(output, offset_ns)
            return
        if not self._rest and text.lstrip()[:1] == "{":
            self._answer.take(text, offset_ns)
            return
        *events, self._rest = _EVENT_END.split(self._rest + text)
        for event in events:
            self._event(event, offset_ns)
        if _whole(self._rest):
            self._event(self._rest, offset_ns)
            self._rest = ""

    def _event(self, event: str, offset_ns: int) -> None:
        if data := _data(event):
            self._answer.take(data, offset_ns)


def _data(event: str) -> str:
    return "".join(line[5:].strip() for line in event.splitlines() if line[:5] == "data:")


def _whole(event: str) -> bool:
    """The tool may have cut off the blank line that ends an event."""
    data = _data(event)
    try:
        return data == "[DONE]" or bool(data and msgspec.json.decode(data))
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False


def _take(item: Item, record: int, sink: Sink) -> None:
    value = object_item(item)
    start, times = int_or_none(value.get("timestamp")), value.get("response_timestamps")
    outputs, inputs = value.get("response_outputs"), value.get("request_inputs")
    if start is None or not isinstance(times, list):
        raise Bad("'timestamp' or 'response_timestamps' is missing")
    inputs = inputs if isinstance(inputs, dict) else {}
    outputs = outputs if isinstance(outputs, list) else []
    if outputs and len(outputs) != len(times):
        raise Bad("'response_timestamps' and 'response_outputs' differ in length")
    answer = Answer()
    events = _Events(answer)
    stamps = [int_or_none(one) for one in times]
    for i, at in enumerate(stamps):
        if at is None:
            raise Bad("an entry of 'response_timestamps' is no number")
        events.take(outputs[i] if outputs else {}, at - start)
    payload = asked(inputs.get("payload"))
    told = answer.columns(streamed=payload.get("streamed"))
    row = {"vantage": "client", "start_ns": start, "clock": "wall"} | payload | told
    row["model"] = first((told["model"], payload.get("model")))
    row["session_id"] = text_or_none(first((inputs.get("session_id"), value.get("sequence_id"))))
    if not times:
        # The tool keeps no error: a request without a response is all that is left of one.
        row |= {"error": "error", "e2e_ns": None}
    elif row.get("error") is not None:
        row["e2e_ns"] = None
    sink.add("request", record, **row)
    answer.add_chunks(sink, record)


def read(file: InputFile, options: Options) -> Iterator[Batch]:  # noqa: ARG001 - reader contract
    """One ``request`` row of vantage client a request, and its chunks."""
    return Requests(_LISTS, _take, f"no request in it: {_EXPORT}").read(file)


READER = Reader(
    title="perf_analyzer and GenAI-Perf exports (profile_export.json)",
    record_unit="request",
    gives=("request", "chunk"),
    probe=probe,
    read=read,
    docs="https://github.com/triton-inference-server/perf_analyzer",
    cannot="queue and prefill; why a request failed; tokens where the server sends no usage; "
    "whether a request lies in a stable window",
    enable="perf_analyzer --profile-export-file FILE, genai-perf profile --streaming; "
    "stream_options.include_usage in --extra-inputs for tokens",
    checked_against="the record in its documentation; no file of a stream was at hand",
)

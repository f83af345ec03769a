"""Result files of ``vllm bench serve --save-result``: columns of numbers, one entry a request.

Several runs may follow one another in one file (``--append-result``). The file names no request,
so each gets an id from file name, content and place; where the server told its own times, they
make a second row of the same id with the vantage of the engine.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Iterator
from itertools import accumulate
from pathlib import PurePosixPath
from typing import Any

import pyarrow as pa

from analyzer.contract.types import Batch, Problem
from analyzer.readers._document import each_value, read_all
from analyzer.readers._errors import error_class
from analyzer.readers._file import Head, InputFile
from analyzer.readers._jsonl import Bad, Sink
from analyzer.readers._reader import Claim, Options, Reader
from analyzer.readers._rows import excerpt, text_or_none
from analyzer.readers._times import DURATIONS
from analyzer.readers._usage import token_buckets

_MAX_BYTES = 1 << 30
_SCALARS = (b"date", b"backend", b"model_id", b"num_prompts", b"request_rate")
_COLUMNS = (
    "input_lens", "output_lens", "ttfts", "itls", "latencies", "queue_times", "errors",
    "server_queue_times", "server_ttfts",
)  # fmt: skip
_ROLE_CHUNK = (
    "openai-chat: vllm bench up to 0.30 takes the empty role chunk for the first token, so TTFT "
    "may be too early and the first gap too long"
)
_SUMMARY = "a summary without requests: run vllm bench serve with --save-result --save-detailed"


def probe(head: Head) -> Claim:
    """An object with the scalars of a run and at least one column of per-request numbers."""
    if not head.data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        return Claim(0, "it is no JSON object")
    keys = set(re.findall(rb'"(\w+)"\s*:', head.data))
    missing = [name.decode() for name in _SCALARS if name not in keys]
    if missing:
        share = 1 - len(missing) / len(_SCALARS)
        return Claim(0.7 * share, f"it lacks {', '.join(missing)}")
    if not any(name.encode() in keys for name in _COLUMNS):
        return Claim(0.9, f"it is {_SUMMARY}")
    return Claim(1, "")


@dataclasses.dataclass
class _Run:
    """One run: its columns, and the rows made of them."""

    value: dict[str, Any]
    name: str
    columns: dict[str, list[Any]] = dataclasses.field(default_factory=dict)
    sink: Sink = dataclasses.field(default_factory=Sink)
    chunk_records: list[int] = dataclasses.field(default_factory=list)
    chunk_indices: list[int] = dataclasses.field(default_factory=list)
    chunk_offsets: list[int] = dataclasses.field(default_factory=list)

    def at(self, column: str, i: int) -> Any:  # noqa: ANN401 - foreign JSON
        """One entry of a column, None where the run lacks it."""
        return self.columns[column][i] if column in self.columns else None

    def requests(self) -> int:
        """How many requests the columns hold; :class:`Bad` where they hold none, or disagree."""
        for name in _COLUMNS:
            if isinstance(self.value.get(name), list):
                self.columns[name] = self.value[name]
        lengths = {len(column) for column in self.columns.values()}
        if not {"ttfts", "latencies"} & self.columns.keys():
            raise Bad(_SUMMARY)
        if len(lengths) > 1:
            raise Bad(f"its columns differ in length: {', '.join(map(str, sorted(lengths)))}")
        return lengths.pop()

    def take(self, i: int, record: int) -> None:
        """Rows of one request."""
        ttft, gaps = _ns(self.at("ttfts", i), "ttfts") or None, self.at("itls", i)
        if not isinstance(gaps, list):
            gaps = []
        steps = [_ns(gap, "itls") or 0 for gap in gaps]
        offsets = list(accumulate([ttft, *steps])) if ttft is not None else []
        if offsets and offsets[-1] not in DURATIONS:
            raise Bad("its gaps add up to more than any request")
        server = {
            "queue_ns": _ns(self.at("server_queue_times", i), "server_queue_times"),
            # vLLM's own word for it is TTFT, but it counts from the moment of scheduling.
            "prefill_ns": _ns(self.at("server_ttfts", i), "server_ttfts"),
        }
        row = self._client(i, ttft, offsets)
        self.sink.add("request", record, vantage="client", **row)
        if any(one is not None for one in server.values()):
            same = {name: row[name] for name in ("request_id", "model", "start_ns", "clock")}
            self.sink.add("request", record, vantage="engine", timing="stated", **same, **server)
        self.chunk_records += [record] * len(offsets)
        self.chunk_indices += range(len(offsets))
        self.chunk_offsets += offsets

    def _client(self, i: int, ttft: int | None, offsets: list[int]) -> dict[str, Any]:
        text = self.at("errors", i)
        error = error_class(text) if isinstance(text, str) else None
        e2e = _ns(self.at("latencies", i), "latencies") or None
        if e2e is None and offsets and error is None:
            e2e = offsets[-1]
        made = self.at("output_lens", i)
        # A failed request has 0 output tokens and a latency of 0, whatever it had got by then.
        usage = {
            "prompt_tokens": self.at("input_lens", i),
            "completion_tokens": None if error is not None and not made else made,
        }
        return {
            "request_id": f"{self.name}-{i + 1}",
            "model": text_or_none(self.value.get("model_id")),
            "start_ns": None,
            "clock": "monotonic",
            "timing": "stream" if offsets else "stated",
            "hold_ns": _ns(self.at("queue_times", i), "queue_times"),
            "ttft_ns": ttft,
            "e2e_ns": None if error is not None else e2e,
            **token_buckets(usage),
            "chunks": len(offsets) if "itls" in self.columns and offsets else None,
            "streamed": True if len(offsets) > 1 else None,
            "error": error,
        }

    def chunks(self) -> dict[str, pa.Table]:
        """The chunk table, which is too long for rows."""
        if not self.chunk_records:
            return {}
        columns = {
            "record": pa.array(self.chunk_records, pa.int64()),
            "chunk_index": pa.array(self.chunk_indices, pa.int64()),
            "offset_ns": pa.array(self.chunk_offsets, pa.int64()),
            "kind": pa.array(["content"] * len(self.chunk_records)),
        }
        return {"chunk": pa.table(columns)}


def _ns(value: Any, column: str) -> int | None:  # noqa: ANN401
    """Seconds to ns without Decimal: a run has a million gaps, and its floats are no stamps."""
    if value is None:
        return None
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise Bad(f"an entry of {column!r} is no number")
    if not 0 <= value * 1e9 < DURATIONS.stop:
        raise Bad(f"an entry of {column!r} is no duration")
    return round(value * 1e9)


def read(file: InputFile, options: Options) -> Iterator[Batch]:  # noqa: ARG001 - reader contract
    """Request and chunk rows, a batch a run."""
    try:
        text = read_all(file, _MAX_BYTES).decode("utf-8", "replace").lstrip("\ufeff")
    except ValueError as error:
        yield Batch(records=1, problems=(Problem(1, str(error)),))
        return
    stem = PurePosixPath(file.name).name
    for ending in (".gz", ".zst", ".json"):
        stem = stem.removesuffix(ending)
    records = end = 0
    for number, (start, stop, value) in enumerate(each_value(text), 1):
        # Two files of one name must not share ids, so the content is part of them.
        digest = hashlib.sha256(text[start:stop].encode("utf-8", "replace")).hexdigest()[:8]
        batch = _read_run(value, f"{stem}:{digest}#{number}", records, text[start : start + 1000])
        records += batch.records
        end = stop
        yield batch
    if text[end:].strip():
        reason = (
            "the run breaks off or is damaged here: its columns stand at the end, write it anew"
        )
        offset = len(text[:end].encode("utf-8", "replace"))
        problem = Problem(records + 1, reason, excerpt(text[end : end + 1000]), offset)
        yield Batch(records=1, problems=(problem,))


def _read_run(value: Any, name: str, before: int, text: str) -> Batch:  # noqa: ANN401
    run = _Run(value if isinstance(value, dict) else {}, name)
    try:
        count = run.requests()
    except Bad as bad:
        return Batch(records=1, problems=(Problem(before + 1, str(bad), excerpt(text)),))
    for i in range(count):
        try:
            run.take(i, before + i + 1)
        except Bad as bad:
            reason = f"request {i + 1} of its run: {bad}"
            run.sink.problems.append(Problem(before + i + 1, reason))
    chat = "openai-chat" in (run.value.get("endpoint_type"), run.value.get("backend"))
    doubt = chat and "ttfts" in run.columns and "server_queue_times" not in run.columns
    if doubt:
        run.sink.assumed.add(_ROLE_CHUNK)
    batch = run.sink.batch(count)
    return dataclasses.replace(batch, tables={**batch.tables, **run.chunks()})


READER = Reader(
    title="vllm bench serve results (JSON)",
    record_unit="request",
    gives=("request", "chunk"),
    probe=probe,
    read=read,
    docs="https://docs.vllm.ai/en/latest/cli/bench/serve.html",
    cannot="when a request began; with openai-chat up to 0.30, the true first token (the role "
    "chunk is counted as one); before 0.33 its latency ends with the usage chunk; engine decode",
    enable="--save-result --save-detailed; for queue and prefill, 0.33 or later against a server "
    "with --enable-per-request-metrics",
    checked_against="a run of vLLM 0.33.0 against an engine with known times",
)

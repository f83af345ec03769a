"""Result files of ``vllm bench serve --save-result``: columns of numbers, one entry a request.

Several runs may follow one another in one file (``--append-result``). Where the server told its
own times, they make a second row of the same id with the vantage of the engine.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from analyzer.contract.types import Batch
from analyzer.readers._bench import Run, ns_of, read_runs, run_claim
from analyzer.readers._errors import error_class
from analyzer.readers._file import Head, InputFile
from analyzer.readers._reader import Claim, Options, Reader
from analyzer.readers._rows import text_or_none
from analyzer.readers._usage import token_buckets

_SCALARS = (b"date", b"model_id", b"num_prompts", b"request_rate")
_COLUMNS = (
    "input_lens", "output_lens", "ttfts", "itls", "latencies", "queue_times", "errors",
    "server_queue_times", "server_ttfts",
)  # fmt: skip
_ROLE_CHUNK = (
    "openai-chat: vllm bench up to 0.30 takes the empty role chunk for the first token, so TTFT "
    "may be too early and the first gap too long"
)
_SUMMARY = (
    "a summary without requests: run vllm bench serve (InferenceX: benchmark_serving.py) with "
    "--save-result --save-detailed"
)


def probe(head: Head) -> Claim:
    """An object with the scalars of a run and at least one column of per-request numbers."""
    return run_claim(head, _SCALARS, _COLUMNS, _SUMMARY)


def _count(run: Run) -> int:
    count = run.requests(_COLUMNS, {"ttfts", "latencies"}, _SUMMARY)
    chat = "openai-chat" in (run.value.get("endpoint_type"), run.value.get("backend"))
    if chat and "ttfts" in run.columns and "server_queue_times" not in run.columns:
        run.sink.assumed.add(_ROLE_CHUNK)
    return count


def _take(run: Run, i: int, record: int) -> None:
    """Rows of one request."""
    ttft = ns_of(run.at("ttfts", i), "ttfts") or None
    offsets = run.offsets(i, ttft)
    server = {
        "queue_ns": ns_of(run.at("server_queue_times", i), "server_queue_times"),
        # vLLM's own word for it is TTFT, but it counts from the moment of scheduling.
        "prefill_ns": ns_of(run.at("server_ttfts", i), "server_ttfts"),
    }
    row = _client(run, i, ttft, offsets)
    run.sink.add("request", record, vantage="client", **row)
    if any(one is not None for one in server.values()):
        same = {name: row[name] for name in ("request_id", "model", "start_ns", "clock")}
        run.sink.add("request", record, vantage="engine", timing="stated", **same, **server)
    run.chunks(record, offsets)


def _client(run: Run, i: int, ttft: int | None, offsets: list[int]) -> dict[str, Any]:
    text = run.at("errors", i)
    error = error_class(text) if isinstance(text, str) else None
    e2e = ns_of(run.at("latencies", i), "latencies") or None
    if e2e is None and offsets and error is None:
        e2e = offsets[-1]
    made = run.at("output_lens", i)
    # A failed request has 0 output tokens and a latency of 0, whatever it had got by then.
    usage = {
        "prompt_tokens": run.at("input_lens", i),
        "completion_tokens": None if error is not None and not made else made,
    }
    return {
        "request_id": f"{run.name}-{i + 1}",
        "model": text_or_none(run.value.get("model_id")),
        "start_ns": None,
        "clock": "monotonic",
        "timing": "stream" if offsets else "stated",
        "hold_ns": ns_of(run.at("queue_times", i), "queue_times"),
        "ttft_ns": ttft,
        "e2e_ns": None if error is not None else e2e,
        **token_buckets(usage),
        "chunks": len(offsets) if "itls" in run.columns and offsets else None,
        "streamed": True if len(offsets) > 1 else None,
        "error": error,
    }


def read(file: InputFile, options: Options) -> Iterator[Batch]:  # noqa: ARG001 - reader contract
    """Request and chunk rows, a batch a run."""
    return read_runs(file, _count, _take)


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

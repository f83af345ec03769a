"""Result files of SGLang's ``bench_serving --output-file``: one object a run, columns of numbers.

With the backends that speak SGLang's own API the script spreads the gap before a chunk evenly over
the tokens of the chunk, so those gaps add up to the truth but are no chunk times.
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

_SCALARS = (b"backend", b"dataset_name", b"request_rate", b"sharegpt_output_len")
_COLUMNS = ("input_lens", "output_lens", "ttfts", "itls", "errors", "cached_tokens")
_SPREAD = ("sglang", "sglang-native", "sglang-embedding")
_SUMMARY = "a summary without requests: run bench_serving with --output-details"
_EVEN = (
    "backend sglang: bench_serving spreads a chunk's gap over its tokens, so no chunk times were "
    "taken from it"
)


def probe(head: Head) -> Claim:
    """An object with the scalars of a run and at least one column of per-request numbers."""
    return run_claim(head, _SCALARS, _COLUMNS, _SUMMARY)


def _count(run: Run) -> int:
    count = run.requests(_COLUMNS, {"ttfts"}, _SUMMARY)
    if run.value.get("backend") in _SPREAD and "itls" in run.columns:
        run.sink.assumed.add(_EVEN)
    return count


def _take(run: Run, i: int, record: int) -> None:
    """The row of one request, and its chunks where the gaps are those of chunks."""
    text = run.at("errors", i)
    error = error_class(text) if isinstance(text, str) else None
    ttft = ns_of(run.at("ttfts", i), "ttfts") or None
    offsets = run.offsets(i, ttft)
    spread = run.value.get("backend") in _SPREAD
    chunks = offsets if "itls" in run.columns and not spread else []
    # The file has no latencies: the last token is the end, where gaps are told at all.
    ended = offsets and "itls" in run.columns and error is None
    run.sink.add(
        "request",
        record,
        **_row(run, i),
        timing="stream" if chunks else "stated",
        ttft_ns=ttft,
        e2e_ns=offsets[-1] if ended else None,
        chunks=len(chunks) or None,
        streamed=True if len(offsets) > 1 else None,
        error=error,
    )
    run.chunks(record, chunks)


def _row(run: Run, i: int) -> dict[str, Any]:
    made = run.at("output_lens", i)
    failed = bool(run.at("errors", i))
    usage = {
        "prompt_tokens": run.at("input_lens", i),
        # A failed request has 0 output tokens, whatever it had got by then.
        "completion_tokens": None if failed and not made else made,
        "cached_tokens": run.at("cached_tokens", i),
    }
    server = run.value.get("server_info")
    server = server if isinstance(server, dict) else {}
    return {
        "vantage": "client",
        "request_id": f"{run.name}-{i + 1}",
        "model": text_or_none(server.get("served_model_name") or server.get("model_path")),
        "start_ns": None,
        "clock": "monotonic",
        **token_buckets(usage),
    }


def read(file: InputFile, options: Options) -> Iterator[Batch]:  # noqa: ARG001 - reader contract
    """Request and chunk rows, a batch a run."""
    return read_runs(file, _count, _take)


READER = Reader(
    title="SGLang bench_serving results (JSON Lines)",
    record_unit="request",
    gives=("request", "chunk"),
    probe=probe,
    read=read,
    docs="https://docs.sglang.ai/developer_guide/bench_serving.html",
    cannot="when a request began; queue and prefill; with backend sglang the chunk times (gaps are "
    "spread over tokens); what came after the last token",
    enable="--output-details (since 0.4.9), with --cache-report for cached tokens; the server's "
    "--export-metrics-to-file for queue and prefill",
    checked_against="a run of SGLang 0.5.6 (backend vllm) against an engine with known times",
)

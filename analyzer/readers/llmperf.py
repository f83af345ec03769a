"""llmperf's ``*_individual_responses.json``: four numbers a request, without times of day."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from analyzer.contract.types import Batch
from analyzer.readers._errors import error_class
from analyzer.readers._file import Head, InputFile
from analyzer.readers._json_stream import Item
from analyzer.readers._jsonl import Sink
from analyzer.readers._loadgen import Requests, counted, document, duration_ns, object_item, summary
from analyzer.readers._reader import Claim, Options, Reader
from analyzer.readers._rows import int_or_none

_KEYS = ("ttft_s", "end_to_end_latency_s", "number_output_tokens")
_INDIVIDUAL = "read the *_individual_responses.json that llmperf writes beside it"
_TOO_SHORT = -100
# Faster than any model makes tokens: the answer was delivered at once.
_ONE_PIECE_NS, _ONE_PIECE_TOKEN_NS = 5_000_000, 1_000_000
_AT_ONCE = (
    "answers whose last token came within 5 ms of the first, at under 1 ms a token, were delivered "
    "in one piece: their time to first token is left out"
)
_SHORT = (
    "error code -100 with times is llmperf's word for an answer that is shorter than it asked for: "
    "read as an answer, not as a failure"
)
_TOKENIZER = "tokens are counted by llmperf's fixed Llama tokenizer, not by the server"


def probe(head: Head) -> Claim:
    """A list of flat objects with ``ttft_s`` and ``end_to_end_latency_s``."""
    text = document(head)
    if text.startswith("{") and '"results_ttft_s_quantiles_p50"' in text:
        return summary("the *_summary.json of llmperf", _INDIVIDUAL)
    missing = [key for key in _KEYS if f'"{key}"' not in text]
    if missing or not text.startswith("["):
        share = 1 - len(missing) / len(_KEYS)
        return Claim(0.7 * share, f"it lacks {', '.join(missing) or 'a list around its entries'}")
    return Claim(1, "")


def _take(item: Item, record: int, sink: Sink) -> None:
    value = object_item(item)
    ttft = duration_ns(value.get("ttft_s"), 1e9, "ttft_s") or None
    e2e = duration_ns(value.get("end_to_end_latency_s"), 1e9, "end_to_end_latency_s") or None
    made = int_or_none(value.get("number_output_tokens"))
    failed: dict[str, Any] = {}
    code = int_or_none(value.get("error_code"))
    if code == _TOO_SHORT and e2e is not None and made:
        sink.assumed.add(_SHORT)
    elif code is not None:
        status = code if 400 <= code < 600 else None
        message = value.get("error_msg")
        named = error_class(message) if isinstance(message, str) else None
        failed = {
            "status": status,
            "error": f"http {code}" if status is not None else named or "error",
        }
        e2e = None
    if ttft is not None and e2e is not None and made and made > 1:
        rest = e2e - ttft
        if rest <= _ONE_PIECE_NS and rest < _ONE_PIECE_TOKEN_NS * (made - 1):
            sink.assumed.add(_AT_ONCE)
            ttft = None
    usage = {
        "prompt_tokens": value.get("number_input_tokens"),
        "completion_tokens": None if failed and not made else made,
    }
    sink.assumed.add(_TOKENIZER)
    sink.add(
        "request",
        record,
        vantage="client",
        clock="monotonic",
        timing="stated",
        ttft_ns=ttft,
        e2e_ns=e2e,
        **counted(usage, "unknown"),
        **failed,
    )


def read(file: InputFile, options: Options) -> Iterator[Batch]:  # noqa: ARG001 - reader contract
    """One ``request`` row of vantage client an entry."""
    return Requests([()], _take, f"no request in it: {_INDIVIDUAL}").read(file)


READER = Reader(
    title="llmperf individual responses (JSON)",
    record_unit="request",
    gives=("request",),
    probe=probe,
    read=read,
    docs="https://github.com/ray-project/llmperf",
    cannot="when a request began, ids, model, chunks, cached tokens; its inter-token latency holds "
    "the time to first token and is not read; its end waits for the connection to close",
    enable="--results-dir; for chunk times and ids use another load generator, or add the "
    "server's log",
    checked_against="nine public runs (1,840 requests): medians equal the summaries beside them",
)

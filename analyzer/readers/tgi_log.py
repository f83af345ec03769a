"""Log of Hugging Face TGI (and TEI): one line ``Success`` a finished request, text or JSON."""

from __future__ import annotations

import re
from collections.abc import Iterator

import polars as pl
import pyarrow as pa

from analyzer.contract.types import Batch
from analyzer.readers._file import Head, InputFile, Lines
from analyzer.readers._line_log import LineByLine, problem_at, read_log
from analyzer.readers._reader import Claim, Options, Reader
from analyzer.readers._tgi_lines import HOT, lines_of, values_of

_ROUTER = re.compile(rb"text_(?:generation|embeddings)_(?:router|launcher)")
_TELLING = re.compile(
    rb"total_time=\"[\d.]+|\"total_time\":\s*\"[\d.]+|max batch total tokens to \d|Shard ready in"
)
_REQUEST = (
    "record", "vantage", "trace_id", "endpoint", "clock", "timing", "start_ns", "queue_ns",
    "frontend_ns", "e2e_ns", "output_visible_tokens", "max_output_tokens", "streamed", "status",
    "error",
)  # fmt: skip
_ROUNDED = (
    "output tokens are inference_time / time_per_token, which is exact where it gives a whole "
    "number"
)
_DATED = "a refused request is dated by its error line"


def probe(head: Head) -> Claim:
    """Lines that name TGI's or TEI's router or launcher, and times among them."""
    if not any(_ROUTER.search(line) for line in head.lines):
        return Claim(0, "no line names TGI's router or launcher")
    if any(_TELLING.search(line) for line in head.lines):
        return Claim(1, "")
    named = sum(bool(_ROUTER.search(line)) for line in head.lines)
    if 2 * named >= len(head.lines):
        return Claim(1, "")
    return Claim(0.6, "it names TGI's router, but few of its lines are TGI's")


class _Log(LineByLine):
    def take(self, block: Lines) -> Batch:
        lines = lines_of(block)
        hot = lines.filter(pl.col("kind").is_in(HOT))
        cold = lines.filter(~pl.col("kind").is_in(HOT)).group_by("kind").len()
        told = values_of(hot)
        good = told.filter(pl.col("bad").is_null())
        tables: dict[str, pa.Table] = {}
        requests = good.filter(pl.col("kind").is_in(["success", "refused"]))
        if requests.height:
            tables["request"] = requests.select(_REQUEST).to_arrow()
        sizes = good.filter(pl.col("kind") == "capacity").with_columns(clock=pl.lit("wall"))
        if sizes.height:
            tables["engine_sample"] = sizes.select(
                "record", "time_ns", "clock", "capacity_tokens"
            ).to_arrow()
        loads = good.filter(pl.col("kind") == "load").with_columns(kind=pl.lit("load"))
        if loads.height:
            tables["engine_event"] = loads.select(
                "record", "time_ns", "engine", "kind", "dur_ns"
            ).to_arrow()
        problems = tuple(
            problem_at(record, reason, block)
            for record, reason in told.filter(pl.col("bad").is_not_null())
            .select("record", "bad")
            .iter_rows()
        )
        assumed = []
        if requests["output_visible_tokens"].count():
            assumed.append(_ROUNDED)
        if (requests["kind"] == "refused").any():
            assumed.append(_DATED)
        return Batch(
            tables, len(block.lines), told.height - len(problems), dict(cold.iter_rows()), problems,
            tuple(assumed),
        )  # fmt: skip


def read(file: InputFile, options: Options) -> Iterator[Batch]:
    """One ``request`` row a ``Success`` line; size of the KV pool and shard starts besides."""
    return read_log(file, options, _Log())


READER = Reader(
    title="TGI and TEI router log (text or JSON lines)",
    record_unit="line",
    gives=("request", "engine_sample", "engine_event"),
    probe=probe,
    read=read,
    docs="https://huggingface.co/docs/text-generation-inference/reference/metrics",
    cannot="prefill and decode apart (inference_time is both, with the wait inside the running "
    "batch); TTFT; prompt tokens; the model; requests whose client left, which log nothing",
    enable="add a client's stream log for TTFT: network and prefill are then told apart from "
    "queue_time; --json-output loses nothing either",
    checked_against="quoted lines of TGI 1 to 3 and TEI; the JSON layout after lines of TGI 1.4 "
    "and 2.3",
)

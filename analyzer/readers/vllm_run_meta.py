"""``meta.json`` of a vLLM benchmark run: how its engine was set up."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from analyzer.contract.types import Batch, Problem
from analyzer.readers._document import parse, read_all, small_document
from analyzer.readers._file import Head, InputFile
from analyzer.readers._jsonl import Sink
from analyzer.readers._reader import Claim, Options, Reader
from analyzer.readers._rows import int_or_none, text_or_none

_NEEDED = {"model", "vllm_version", "engine_kwargs"}


def probe(head: Head) -> Claim:
    """One small object with ``vllm_version`` and ``engine_kwargs``."""
    value = small_document(head)
    if value is None:
        return Claim(0, "it is no small JSON object")
    missing = _NEEDED - value.keys()
    if not missing:
        return Claim(1, "")
    score = 0.5 if "vllm_version" in value else 0
    return Claim(score, f"it lacks {', '.join(sorted(missing))}")


def _object(value: dict[str, Any], name: str) -> dict[str, Any]:
    inner = value.get(name)
    return inner if isinstance(inner, dict) else {}


def read(file: InputFile, options: Options) -> Iterator[Batch]:  # noqa: ARG001 - reader contract
    """One ``deployment`` row that holds for the whole case: the file names no deployment."""
    try:
        value = parse(read_all(file))
    except ValueError as error:
        yield Batch(records=1, problems=(Problem(1, str(error)),))
        return
    if not isinstance(value, dict) or not isinstance(value.get("engine_kwargs"), dict):
        yield Batch(records=1, problems=(Problem(1, "it lacks 'engine_kwargs'"),))
        return
    engine, cache = value["engine_kwargs"], _object(value, "kv_cache")
    # Each data-parallel engine has its own limit and its own pool; the row is for all of them.
    limit, capacity = (
        int_or_none(engine.get("max_num_seqs")),
        int_or_none(cache.get("num_kv_tokens")),
    )
    engines = int_or_none(engine.get("data_parallel_size")) or 1
    sink = Sink()
    if engines > 1:
        limit = limit * engines if limit is not None else None
        capacity = None
        sink.assumed.add(f"max_num_seqs holds for each of {engines} data-parallel engines")
    sink.add(
        "deployment",
        1,
        model=text_or_none(value.get("model")),
        gpu=text_or_none(_object(value, "hardware").get("device_name")),
        tp=int_or_none(engine.get("tensor_parallel_size")),
        pp=int_or_none(engine.get("pipeline_parallel_size")),
        kv_capacity_tokens=capacity,
        max_running=limit,
    )
    yield sink.batch(1)


READER = Reader(
    title="vLLM benchmark run: engine settings (meta.json)",
    record_unit="document",
    gives=("deployment",),
    probe=probe,
    read=read,
    docs="https://github.com/casys-kaist/LLMServingSim",
    cannot="anything that happened; how many accelerators took part",
    enable="add the run's requests.jsonl and timeseries.csv, or a deployment file",
    checked_against="three runs of vLLM 0.19.0",
)

"""PyTorch profiler (Kineto) chrome traces: device work, its launches, annotations, long operators.

Times are microseconds with decimals, from a base that the trace names (new writers), from 1970
(old ones), or from an unknown moment. A trace is read as far as it goes.
"""

from __future__ import annotations

import gc
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from analyzer.contract.types import Batch, Problem
from analyzer.readers._file import BOM, Head, InputFile
from analyzer.readers._kineto_events import STACKS, Absolute, Picker
from analyzer.readers._kineto_facts import base_of, rank_of, trace_rows
from analyzer.readers._kineto_rows import Rows
from analyzer.readers._kineto_text import ARRAY, Text, tail_facts
from analyzer.readers._reader import Claim, Options, Reader
from analyzer.readers._rows import excerpt, tables_of

_ROWS = 32_768
_EVENT = re.compile(rb'"ph"\s{0,8}:\s{0,8}"[A-Za-z]"')
_CATEGORY = re.compile(rb'"(?:cat|name|ts|pid)"\s{0,8}:')
_FACT = re.compile(rb'"(?:schemaVersion|deviceProperties|distributedInfo|traceName|cupti_version)"')
_NO_ARRAY = "no list of traceEvents in it: export the trace again with prof.export_chrome_trace"
_WALL = "its times count from an unknown moment: no baseTimeNanoseconds, and not from 1970"


def probe(head: Head) -> Claim:
    """An object with traceEvents, or a bare list of events."""
    begin = head.data.removeprefix(BOM).lstrip()
    array = ARRAY.search(begin)
    if begin[:1] == b"{" and array:
        rest = begin[array.end() :]
        if _EVENT.search(rest) or not rest.strip(b" \t\r\n]}") or _FACT.search(begin):
            return Claim(1, "")
        return Claim(0.4, "it has traceEvents, but the first event has no phase (ph)")
    if begin[:1] == b"{" and len(_FACT.findall(begin)) >= 2 and not head.whole:
        return Claim(1, "")  # facts longer than what is looked at
    if begin[:1] == b"[" and _EVENT.search(begin[:4096]) and _CATEGORY.search(begin[:4096]):
        return Claim(1, "")
    return Claim(0, "it has no traceEvents")


def read(file: InputFile, options: Options) -> Iterator[Batch]:  # noqa: ARG001 - as every reader
    """Rows of gpu_event, and one of gpu_trace for each rank."""
    text = Text(file)
    if not text.found:
        if text.begin.strip():
            yield Batch(records=1, problems=(Problem(1, _NO_ARRAY, excerpt(text.begin[:1000])),))
        return
    facts = dict(text.facts)
    rank, base = rank_of(facts, file.name), base_of(facts)
    picker = Picker(text.begin)
    if rank.number is None or (base is None and picker.relative):
        text.close()  # a member of an archive is read by one at a time
        facts |= tail_facts(file)
        text = Text(file)
        rank, base = rank_of(facts, file.name), base_of(facts)
    rows = Rows(base, rank.number, sifted=picker.sifted)
    account = _Account(rows)
    for chunk in text.chunks():
        with _uncollected():
            picked = picker.pick(chunk)
            rows.take(picked, account.records)
        account.add(picked.total, picked.ignored, picked.problems)
        if len(rows) >= _ROWS:
            yield from account.batches()
    yield from account.batches()
    told = trace_rows(
        facts | text.facts, rank, rows, ended=text.closed and file.cut is None,
        stacks=account.stacks, long=picker.kind is Absolute,
    )  # fmt: skip
    assumed = () if rows.wall or not rows.seen else (_WALL,)
    yield Batch(tables=tables_of(gpu_trace=told), assumed=assumed)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Without the collector: it would look through fresh events again and again for cycles."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


class _Account:
    """Records since the last batch, and in all."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self.records = self._told = 0
        self.stacks = False
        self._ignored: Counter[str] = Counter()
        self._problems: list[Problem] = []

    def add(self, total: int, ignored: Counter[str], problems: list[Problem]) -> None:
        """One more chunk."""
        for one in problems:
            self._problems.append(
                Problem(self.records + one.record, one.reason, one.excerpt, one.byte_offset)
            )
        self.records += total
        self._ignored += ignored
        self.stacks = self.stacks or ignored[STACKS] > 0

    def batches(self) -> Iterator[Batch]:
        """What was collected, with its account."""
        rows = self._rows
        tables = rows.tables()
        problems = tuple(self._problems + rows.problems)
        ignored = self._ignored + rows.ignored
        batch = Batch(
            tables={"gpu_event": tables[0]} if tables else {}, records=self.records - self._told,
            used=rows.used, ignored=ignored, problems=problems,
        )  # fmt: skip
        self._told, self._ignored, self._problems = self.records, Counter(), []
        rows.used, rows.ignored, rows.problems = 0, Counter(), []
        yield batch
        for table in tables[1:]:
            yield Batch(tables={"gpu_event": table})


READER = Reader(
    title="PyTorch profiler (Kineto) chrome trace, CUDA and ROCm",
    record_unit="event",
    gives=("gpu_event", "gpu_trace"),
    probe=probe,
    read=read,
    docs="https://pytorch.org/docs/stable/profiler.html and "
    "https://github.com/pytorch/kineto/blob/main/libkineto/src/output_json.cpp",
    cannot="memory bandwidth and clocks; kernels of a graph that the profiler did not record; "
    "which operator launched a kernel inside a graph; Python stacks and operators under 100 us, "
    "which are counted and not kept; work of accelerators other than NVIDIA's and AMD's",
    enable="vLLM: --profiler-config with torch_profiler_dir, then POST /start_profile and "
    "/stop_profile; SGLang: SGLANG_TORCH_PROFILER_DIR and POST /start_profile; a few steps are "
    "enough, without stacks; elsewhere torch.profiler.profile(...).export_chrome_trace(FILE)",
    checked_against="19 public traces of 2022 to 2026 (V100, A100, H100, B200, MI210, MI250, "
    "MI300, MTIA; three layouts, eager and graph replay): counts and nanoseconds of each kind as a "
    "full parse gives",
)

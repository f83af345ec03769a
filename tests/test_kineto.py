"""Kineto traces: cut anywhere, damaged, of several ranks, laid out in any way, and real ones."""

import gzip
import json
import random
from collections import Counter
from decimal import Decimal

import pyarrow as pa
import pytest
from shared import SHARED

import analyzer
from analyzer.readers import _kineto_text, kineto_trace
from analyzer.readers._file import InputFile
from analyzer.readers._kineto_events import Event, kind_of, useful
from analyzer.readers._reader import Options
from analyzer.readers._times import TIMES

REAL = SHARED / "formats/samples/gpu"
TRACES = sorted(
    path for path in (REAL.glob("*.json.gz") if REAL.is_dir() else ()) if "rocprof" not in path.name
)
US = 1_000


def read(path, name=None):
    """Rows of both tables, and the batches, whose account adds up."""
    batches = list(kineto_trace.read(InputFile(path, name or path.name), Options()))
    for one in batches:
        problems = len({problem.record for problem in one.problems})
        assert one.records == one.used + sum(one.ignored.values()) + problems
    tables = {
        name: pa.concat_tables(some, promote_options="permissive").to_pylist() if some else []
        for name in ("gpu_event", "gpu_trace")
        for some in [[one.tables[name] for one in batches if name in one.tables]]
    }
    return tables["gpu_event"], tables["gpu_trace"], batches


def problems_of(batches):
    return [problem for one in batches for problem in one.problems]


def steps(count, base=1_000_000.0):
    """A launch, its kernel, a stack frame and an arrow, again and again."""
    found = []
    for i in range(count):
        at = base + i * 100
        host, gpu = {"pid": 5, "tid": 6}, {"pid": 0, "tid": 7}
        found += [
            {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", **host, "ts": at,
             "dur": 4.5, "args": {"correlation": i}},
            {"ph": "X", "cat": "python_function", "name": f"f{i}", **host, "ts": at, "dur": 90.0},
            {"ph": "X", "cat": "kernel", "name": f"k{i % 3}", **gpu, "ts": at + 10.125,
             "dur": 50.25,
             "args": {"device": 0, "stream": 7, "correlation": i, "grid": [2, 3, 1]}},
            {"ph": "s", "id": i, "cat": "ac2g", "name": "ac2g", **host, "ts": at},
        ]  # fmt: skip
    return found


def document(events, indent=None, **facts):
    return json.dumps({**facts, "traceEvents": events, "traceName": "t.json"}, indent=indent)


@pytest.mark.parametrize("indent", [None, 1, 4])
def test_each_layout_gives_the_same_whatever_the_blocks(indent, tmp_path, monkeypatch):
    file = tmp_path / "a.json"
    file.write_text(document(steps(300), indent))
    rows, (trace,), batches = read(file)
    assert len(rows) == 600
    assert sum(one.records for one in batches) == 1200
    assert trace["device_events"] == trace["launches"] == 300
    assert trace["stacks"]
    assert [row["record"] for row in rows] == [
        n for i in range(300) for n in (4 * i + 1, 4 * i + 3)
    ]
    assert {row["grid_blocks"] for row in rows if row["kind"] == "kernel"} == {6}
    monkeypatch.setattr(_kineto_text, "_BLOCK_BYTES", 997)
    monkeypatch.setattr(_kineto_text, "_HOLD_BYTES", 4_000)
    monkeypatch.setattr(_kineto_text, "LEARN_BYTES", 9_000)
    assert read(file)[0] == rows


def test_a_cut_trace_is_read_up_to_the_cut_and_says_so(tmp_path):
    text = document(steps(50)).encode()
    file = tmp_path / "a.json"
    whole = None
    for cut in sorted(random.Random(3).sample(range(200, len(text) - 40), 60)):
        file.write_bytes(text[:cut])
        rows, (trace,), batches = read(file)
        assert not trace["ended"]
        assert len(problems_of(batches)) <= 1
        file.write_bytes(text)
        whole = whole or read(file)[0]
        assert rows == whole[: len(rows)]
    packed = gzip.compress(text)
    file.write_bytes(packed[: len(packed) // 2])
    rows, (trace,), _ = read(file)
    assert 0 < len(rows) < 100
    assert not trace["ended"]


@pytest.mark.parametrize(
    "pid", ["TP-99999999999999999999 5", "TP-" + "9" * 5000 + " 5", "a " + "9" * 5000]
)
def test_a_number_that_no_rank_has_costs_no_other_event(pid, tmp_path):
    file = tmp_path / "a.json"
    file.write_text(
        document([*steps(5), {**steps(1)[2], "pid": pid}], distributedInfo={"rank": "9" * 5000})
    )
    rows, _, batches = read(file)
    assert len(rows) == 11
    assert not problems_of(batches)


@pytest.mark.parametrize(
    ("name", "rank", "source"),
    [
        ("rank3.pt.trace.json", 3, "file name"), ("1754-TP-2.trace.json.gz", 2, "file name"),
        ("1754-TP-2-DP-1.trace.json", None, None), ("host_dp0_pp0_tp1.17.json", 1, "file name"),
        ("frank7.json", None, None),
    ],
)  # fmt: skip
def test_the_rank_is_in_the_trace_or_in_its_name(name, rank, source, tmp_path):
    file = tmp_path / "a.json"
    file.write_text(document(steps(2)))
    rows, (trace,), _ = read(file, name)
    assert (trace["rank"], trace["rank_source"]) == (rank, source)
    assert {row["rank"] for row in rows} == {rank}
    file.write_text(document(steps(2), distributedInfo={"rank": 5, "world_size": 8}))
    _, (trace,), _ = read(file, name)
    assert (trace["rank"], trace["rank_source"], trace["world_size"]) == (5, "trace", 8)


@pytest.mark.parametrize("packed", [False, True])
def test_a_base_behind_the_events_is_found_before_them(packed, tmp_path):
    base = 1_784_073_600_000_000_000
    text = document(steps(3))[:-1] + f', "baseTimeNanoseconds": {base}}}'
    file = tmp_path / "a.json"
    file.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    rows, (trace,), batches = read(file)
    assert rows[0]["start_ns"] == base + 1_000_000 * US
    assert (trace["clock"], trace["base_ns"]) == ("wall", base)
    assert not any(one.assumed for one in batches)
    file.write_text(document(steps(3)))
    rows, (trace,), batches = read(file)
    assert rows[0]["start_ns"] == 1_000_000 * US
    assert {row["clock"] for row in rows} == {trace["clock"]} == {"relative"}
    assert "unknown moment" in batches[-1].assumed[0]


def test_damage_costs_the_event_it_is_in(tmp_path):
    events = steps(5)
    events[2]["dur"] = 1e15
    events[6]["ts"] = "1000110.125"
    events[10]["ts"] = -5.0
    text = document(events).replace('"name": "k1"', '"name": "k\x02"', 1)
    file = tmp_path / "a.json"
    file.write_text(text.replace('"k0", "pid": 0, "tid": 7, "ts": 1000310', '"k"0", "ts": 1000310'))
    rows, _, batches = read(file)
    kernels = {row["record"]: row for row in rows if row["kind"] == "kernel"}
    assert kernels[3].get("dur_ns") is None
    assert kernels[7]["start_ns"] == 1_000_110_125
    assert kernels.keys() == {3, 7, 19}
    reasons = {one.record: one.reason for one in problems_of(batches)}
    assert reasons.keys() == {3, 11, 15}
    assert "no valid JSON" in reasons[15]


@pytest.mark.parametrize("number", ["1e999999", "9999999999999999.999", "-1e99", '"1\u00b23.456"'])
def test_a_time_beyond_any_trace_costs_its_event_whatever_reads_it(number, tmp_path):
    file = tmp_path / "a.json"
    text = document(steps(5))
    for damage in ("k1", "k\x02"):  # the second is read by the lenient way
        one = text.replace('"name": "k1"', f'"name": "{damage}"', 1)
        file.write_text(one.replace('"ts": 1000110.125', f'"ts": {number}'))
        rows, _, batches = read(file)
        assert len(rows) == 9
        assert [one.record for one in problems_of(batches)] == [7]


def test_a_packed_trace_is_known_again(tmp_path):
    noise = random.Random(1)
    events = steps(30_000)
    for one in events:
        one["name"] += f"{noise.getrandbits(128):x}"
    file = tmp_path / "a.json.gz"
    file.write_bytes(gzip.compress(document(events).encode(), 1))
    db = str(tmp_path / "case.duckdb")
    assert file.stat().st_size > 2**20
    (first,) = analyzer.ingest(db, [str(file)]).files
    assert (first.outcome, first.rows) == ("read", 60_001)
    again = tmp_path / "b.json"
    again.write_bytes(gzip.decompress(file.read_bytes()))
    (second,) = analyzer.ingest(db, [str(again)]).files
    assert second.outcome == "known"
    other = tmp_path / "other.duckdb"
    analyzer.ingest(str(other), [str(again)])
    (third,) = analyzer.ingest(str(other), [str(file)]).files
    assert third.outcome == "known"


@pytest.mark.skipif(not TRACES, reason="the real traces are not on this machine")
@pytest.mark.parametrize("path", TRACES, ids=[path.name for path in TRACES])
def test_real_traces_give_what_a_full_parse_gives(path):
    rows, (trace,), batches = read(path)
    text = gzip.decompress(path.read_bytes()).decode("utf-8", "replace")
    told = json.loads(text, strict=False, parse_float=Decimal)
    want, work = [], Counter()
    for record, event in enumerate(told["traceEvents"], 1):
        kind = kind_of(event.get("cat") or "", event["name"])
        dur = event.get("dur", 0)
        if kind and event["ph"] == "X" and useful(Event(name=event["name"], dur=float(dur)), kind):
            start = round(Decimal(event["ts"]) * US)
            base = 0 if start >= TIMES.start else told.get("baseTimeNanoseconds", 0)
            want.append((record, kind, event["name"], base + start, round(Decimal(dur) * US)))
            work[kind] += 1
    names = ("record", "kind", "name", "start_ns", "dur_ns")
    assert [tuple(row[name] for name in names) for row in rows] == want
    assert not problems_of(batches)
    assert sum(one.records for one in batches) == len(told["traceEvents"])
    assert trace["device_events"] == sum(work[kind] for kind in ("kernel", "memcpy", "memset"))
    assert trace["graph_launches"] == work["graph_launch"]
    assert trace["ended"]

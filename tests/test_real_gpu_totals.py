"""Busy, idle and class totals of public traces, against plain Python over their JSON."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from decimal import Decimal

import pytest
from helpers import engine_of
from shared import SHARED

import analyzer
from analyzer import api
from analyzer.catalogs.kernel_classes import class_of

SAMPLES = SHARED / "formats" / "samples" / "gpu"
KINDS = {"kernel": "kernel", "gpu_memcpy": "memcpy", "gpu_memset": "memset"}
# What Holistic Trace Analysis 0.5.0 says (get_temporal_breakdown with the last step), microseconds:
# compute and other work, of times cut to whole microseconds; None = it fails on the file.
HTA_BUSY_US = {
    "vllm_mi300_decode_fullgraph_step.json.gz": 10_250 + 34,
    "vllm_mi300_mixed_piecewise_step.json.gz": 155_599 + 67,
    "sglang_mi300_qwen3_8b_decode_step.json.gz": 9_205 + 10,
    "vllm_b200_tp8_prefill_eager.json.gz": 10_153 + 664,
    "hf_h100_qwen15_prefill.json.gz": None,
    "kineto_a100_ddp_collective_args.json.gz": 113_012 + 41_026,
    "kineto_v100_absolute_ns_ts.pt.trace.json.gz": 464_915 + 2_971,
}
beside = pytest.mark.skipif(
    not (SAMPLES / next(iter(HTA_BUSY_US))).exists(), reason="the public GPU samples are not there"
)


def raw_work(path):
    """Device work of a trace: (device, stream) -> [(start, end, kind, name)], ns."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        document = json.load(file, parse_float=Decimal)
    out = defaultdict(list)
    for event in document["traceEvents"]:
        kind = KINDS.get(event.get("cat", ""))
        if event.get("ph") != "X" or kind is None:
            continue
        start = int(Decimal(event["ts"]) * 1000)
        dur = int(Decimal(event.get("dur", 0)) * 1000)
        place = event["args"]["device"], event["args"]["stream"]
        out[place].append((start, start + dur, kind, event["name"]))
    return out


def union(events):
    """Nanoseconds with something at work; ends that do not meet are idle."""
    total, until = 0, None
    for start, end, *_ in sorted(events):
        total += max(0, end - max(start, start if until is None else until))
        until = end if until is None else max(until, end)
    return total


def by_class(events):
    """Nanoseconds by class; a moment belongs to whatever began first, so nothing counts twice."""
    out, until = defaultdict(int), None
    for start, end, kind, name in events:
        mine = max(0, end - max(start, start if until is None else until))
        out[class_of(kind, name).name] += mine
        until = end if until is None else max(until, end)
    return out


@beside
@pytest.mark.parametrize("name", HTA_BUSY_US)
def test_totals_agree_with_the_json(name, tmp_path):
    db = str(tmp_path / "case.duckdb")
    analyzer.ingest(db, [str(SAMPLES / name)])
    told = api.gpu(db)
    work = raw_work(SAMPLES / name)
    devices = defaultdict(list)
    for (device, _), events in work.items():
        devices[device] += events
    assert {row["device"] for row in told.idle.rows} == set(devices)
    for row in told.idle.rows:
        events = devices[row["device"]]
        span = max(e[1] for e in events) - min(e[0] for e in events)
        assert row["span_ns"] == span
        assert row["busy_ns"] == union(events)
        assert row["busy_ns"] + row["overlap_ns"] == sum(e[1] - e[0] for e in events)
        if row["idle_ns"] is not None:
            assert row["idle_ns"] == span - row["busy_ns"]
            gaps = ("launch_gap_ns", "host_gap_ns", "device_gap_ns", "unknown_gap_ns")
            assert sum(row[gap] for gap in gaps) == row["idle_ns"]
        assert row["events"] == len(events)
        assert row["streams"] == sum(place[0] == row["device"] for place in work)
    # No stream was at work for longer than it lasted.
    for events in work.values():
        span = max(e[1] for e in events) - min(e[0] for e in events)
        assert union(events) <= span
    _classes_agree(db, told, devices)
    if (hta := HTA_BUSY_US[name]) is not None:
        busy = sum(row["busy_ns"] for row in told.idle.rows)
        # Starts rounded up and ends down lose up to two microseconds an event, never add any.
        events = sum(row["events"] for row in told.idle.rows)
        assert 0 <= busy - hta * 1000 <= 2_000 * events


def _classes_agree(db, told, devices):
    """In the file's order where two begin at once, as rows are numbered."""
    with engine_of(db) as engine:
        order = engine.rows("SELECT device, start_ns, end_ns, kind, name FROM gpu_work ORDER BY nr")
    wanted = defaultdict(int)
    for device, events in devices.items():
        mine = [
            (row["start_ns"], row["end_ns"], row["kind"], row["name"])
            for row in order
            if row["device"] == device
        ]
        assert len(mine) == len(events)
        base = mine[0][0] - min(events)[0]
        assert sorted((s - base, e - base, k, n) for s, e, k, n in mine) == sorted(events)
        for name, ns in by_class(mine).items():
            wanted[name] += ns
    got = {row["class"]: row["busy_ns"] for row in told.classes.rows}
    assert got == dict(wanted)
    assert sum(got.values()) == sum(row["busy_ns"] for row in told.idle.rows)
    assert sum(row["share_ratio"] for row in told.classes.rows) == pytest.approx(1)

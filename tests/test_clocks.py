"""Clocks of several machines: offsets and drift within what causality leaves."""

from __future__ import annotations

import json
import random

import pytest
from deep import deep, some_of
from helpers import case_of, claimed, engine_of

from analyzer.analyses.resolve.clock_fit import rows as fit
from analyzer.analyses.resolve.clock_line import fitted, polygon_of
from analyzer.simulate.run import simulate
from analyzer.simulate.world import from_dict

NS, MS = 1_000_000_000, 1_000_000
T0 = 1_790_000_000 * NS
HOUR = 3_600 * NS


def told(pairs, count=None):
    """Rows as the SELECT hands them on: two clocks and (time, low, high) of each pair."""
    clocks = [
        {"kind": "clock", "clock": name, "vantage": name, "other": None, "time_ns": T0,
         "low_ns": T0 + HOUR, "high_ns": 1, "pairs": len(pairs), "vantage_rank": rank}
        for name, rank in (("client", 1), ("engine", 4))
    ]  # fmt: skip
    return clocks + [
        {"kind": "pair", "clock": "engine", "vantage": "", "other": "client", "time_ns": time,
         "low_ns": low, "high_ns": high, "pairs": count or len(pairs), "vantage_rank": 0}
        for time, low, high in pairs
    ]  # fmt: skip


NAMES = (
    "clock", "vantage", "state", "from_ns", "until_ns", "at_ns", "offset_ns", "low_ns", "high_ns",
    "drift_ppm", "drift_low_ppm", "drift_high_ppm", "differs", "zone_ns", "step_ns", "pairs",
    "refused", "grain_ns",
)  # fmt: skip


def engine_clock(pairs):
    """Stretches of the engine's clock."""
    found = [dict(zip(NAMES, row, strict=True)) for row in fit(told(pairs))]
    return [row for row in found if row["clock"] == "engine"]


def test_bounds_of_three_requests_by_hand():
    # Ahead by at least 80, 85, 70 ms and by at most 120, 130, 95 ms; no drift is needed.
    (row,) = engine_clock(
        [
            (T0, 80 * MS, 120 * MS),
            (T0 + 10 * NS, 85 * MS, 130 * MS),
            (T0 + 20 * NS, 70 * MS, 95 * MS),
        ]
    )
    assert (row["state"], row["pairs"], row["refused"]) == ("known", 3, 0)
    assert row["at_ns"] == T0 + 10 * NS
    assert row["offset_ns"] == 90 * MS  # 85 to 95 without drift
    # With up to 500 ppm (5 ms in 10 s) more is possible, but not below what the middle one says.
    assert row["low_ns"] == 85 * MS
    assert 95 * MS < row["high_ns"] <= 107.5 * MS
    assert row["drift_ppm"] == 0
    assert row["differs"]


def test_a_drift_that_must_be_by_hand():
    # 0 ms at first, at least 9 ms after 100 s: 90 ppm at the least, 110 ppm at the most.
    (row,) = engine_clock(
        [(T0 + at * NS, at * 100_000 - MS // 2, at * 100_000 + MS // 2) for at in range(0, 101, 10)]
    )
    assert row["drift_ppm"] == pytest.approx(100, abs=1)
    assert row["drift_low_ppm"] == pytest.approx(90, abs=0.1)
    assert row["drift_high_ppm"] == pytest.approx(110, abs=0.1)
    assert row["offset_ns"] == pytest.approx(5 * MS, abs=MS // 20)


def test_a_polygon_is_what_no_bound_rules_out():
    assert polygon_of([(0.0, 0.0, 10.0), (1.0, 11.0, 20.0)]).drift()[0] == pytest.approx(1.0)
    assert polygon_of([(0.0, 0.0, 10.0), (0.0, 11.0, 20.0)]) is None
    assert polygon_of([(-5.0, 3.0, 4.0)]).at(-5.0) == (pytest.approx(3.0), pytest.approx(4.0))


def randomly(rng, offset_of, count, span_s, delay_ms, wrong=0.0):
    """Pairs of requests at random times with random ways there and back."""
    pairs = []
    for _ in range(count):
        x = rng.uniform(0, span_s)
        true = offset_of(x)
        low = true - round((0.3 + rng.expovariate(1 / delay_ms)) * MS)
        high = true + round((0.3 + rng.expovariate(1 / delay_ms)) * MS)
        if rng.random() < wrong:
            other = round(rng.choice((-1, 1)) * rng.uniform(0.2, 900) * NS)
            low, high = low + other, high + other
        pairs.append((T0 + round(x * NS), low, high))
    return sorted(pairs)


@pytest.mark.parametrize("seed", some_of(60, 20))
def test_the_truth_is_inside_whatever_skew_drift_and_wrong_joins(seed):
    rng = random.Random(seed)
    skew = round(rng.choice((-1, 0, 1)) * 10 ** rng.uniform(5, 11))
    drift = rng.choice((0, 1)) * rng.uniform(-200, 200)
    span = rng.choice((20, 600, 7_200))
    count = rng.choice((12, 60, 400))
    wrong = rng.choice((0, 0.02)) if count > 12 else 0

    def offset_of(x):
        return skew + round(drift * 1_000 * x)

    found = engine_clock(randomly(rng, offset_of, count, span, rng.uniform(0.5, 30), wrong))
    assert [row["state"] for row in found] == ["known"]
    (row,) = found
    true = offset_of((row["at_ns"] - T0) / NS)
    assert row["low_ns"] - 2 <= true <= row["high_ns"] + 2
    assert row["drift_low_ppm"] - 1e-3 <= drift <= row["drift_high_ppm"] + 1e-3
    if row["differs"]:
        assert abs(true) > 0


@pytest.mark.parametrize("seed", some_of(20, 8))
def test_a_jump_is_recognised(seed):
    rng = random.Random(1_000 + seed)
    jump = round(rng.choice((-1, 1)) * rng.uniform(0.3, 40) * NS)
    at, skew = rng.uniform(0.25, 0.75) * 900, round(rng.uniform(-5, 5) * NS)
    pairs = randomly(rng, lambda x: skew + (jump if x >= at else 0), 120, 900, 10)
    before, behind = engine_clock(pairs)
    assert behind["step_ns"] == pytest.approx(jump, abs=150 * MS)
    assert before["until_ns"] == behind["from_ns"]
    assert (behind["from_ns"] - T0) / NS == pytest.approx(at, abs=60)
    assert before["low_ns"] <= skew <= before["high_ns"]
    assert behind["low_ns"] <= skew + jump <= behind["high_ns"]


def test_ids_that_mean_other_requests_give_no_clock():
    rng = random.Random(7)
    pairs = [
        (T0 + at * NS, shift - MS, shift + MS)
        for at in range(60)
        for shift in [round(rng.uniform(-50, 50) * NS)]
    ]
    (row,) = engine_clock(pairs)
    assert (row["state"], row["offset_ns"], row["differs"]) == ("unsteady", None, False)


def test_one_pair_is_no_clock():
    (row,) = engine_clock([(T0, 300 * NS, 301 * NS)])
    assert row["state"] == "known"
    assert not row["differs"]


def test_hours_are_a_zone():
    (row,) = engine_clock([(T0 + at * NS, -2 * HOUR, -2 * HOUR + 40 * MS) for at in range(9)])
    assert row["zone_ns"] == -2 * HOUR
    assert row["differs"]


def test_few_points_are_never_taken_for_jumps():
    assert (
        fitted([(float(x), 100.0 * NS * (x % 2), 100.0 * NS * (x % 2) + 1) for x in range(6)])
        is None
    )


# --- whole cases ---------------------------------------------------------------------------------


def world(seed, logs):
    rng = random.Random(seed)
    return from_dict(
        {
            "name": "clocks",
            "seed": seed,
            "start": "2026-05-11T08:00:00Z",
            "duration_s": rng.choice([60, 600, 3600]),
            "network": {"latency_ms": rng.uniform(1, 40), "jitter_ms": rng.choice([0, 2, 10])},
            "arrivals": [
                {
                    "most": rng.choice([15, 60, 150]),
                    "rate_per_s": 0.3,
                    "prompt_tokens": {"mean": 500, "cv": 0.8},
                    "output_tokens": {"mean": 30, "cv": 0.6, "least": 2},
                }
            ],
            "logs": logs,
        }
    )


FORMATS = {"client": "stream", "gateway": "gateway", "engine": "spans"}
COMBINATIONS = [
    ("client", "engine"),
    ("client", "gateway"),
    ("gateway", "engine"),
    ("client", "gateway", "engine"),
]


@pytest.mark.parametrize("seed", some_of(12, len(COMBINATIONS)))
def test_the_logs_of_a_world_give_its_clocks(seed, tmp_path):
    rng = random.Random(seed)
    parts = COMBINATIONS[seed % len(COMBINATIONS)]
    skews = {
        name: (
            rng.choice((-1, 0, 1)) * 10 ** rng.uniform(0, 4),
            rng.choice((0, 1)) * rng.uniform(-200, 200),
        )
        for name in parts
    }
    logs = [
        {"format": FORMATS[name], "skew_ms": skew, "drift_ppm": drift, "loss": rng.choice([0, 0.2])}
        for name, (skew, drift) in skews.items()
    ]
    simulated = world(seed, logs)
    simulate(simulated, tmp_path / "logs")
    (tmp_path / "logs" / "truth.jsonl").unlink()
    with engine_of(case_of(tmp_path / "logs", tmp_path / "case.duckdb")) as engine:
        rows = engine.rows("SELECT * FROM resolve_clock WHERE state <> 'reference'")
        ways = engine.rows("SELECT out_ns, loose_ns FROM latency_offset")
    assert {row["vantage"] for row in rows} == set(parts[1:])
    base_skew, base_drift = skews[parts[0]]
    for row in rows:
        skew, drift = skews[row["vantage"]]
        since = (row["at_ns"] - skew * MS - simulated.start_ns) / (1 + drift / 1e6)
        true = (skew - base_skew) * MS + since * (drift - base_drift) / 1e6
        assert row["low_ns"] - 2_000 <= true <= row["high_ns"] + 2_000, (row, true)
        told_drift = drift - base_drift
        assert row["drift_low_ppm"] - 0.2 <= told_drift <= row["drift_high_ppm"] + 0.2
    assert all(way["out_ns"] >= -way["loose_ns"] for way in ways)


def stamped(folder, shift_ns, count=40, reuse=False):
    """Client and engine records of the same requests, the engine's clock ahead."""
    rng = random.Random(3)
    client, engine = [], []
    for k in range(count):
        start = T0 + k * 7 * NS + rng.randrange(NS)
        name = f"r-{k % 10 if reuse else k}"
        whole = round(rng.uniform(0.8, 2.0) * NS)
        way = round(rng.uniform(5, 9) * MS)
        client.append(
            {
                "request_id": name,
                "vantage": "client",
                "started_at": start / NS,
                "e2e_ms": whole / MS,
            }
        )
        engine.append(
            {"request_id": name, "vantage": "engine", "started_at": (start + way + shift_ns) / NS,
             "e2e_ms": (whole - 2 * way) / MS}
        )  # fmt: skip
    for name, records in (("client", client), ("engine", engine)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(one) + "\n" for one in records))


@pytest.mark.parametrize(
    "shift_s", [-40, *(pytest.param(one, marks=deep) for one in (0, 0.5, 5 * 3600, 26 * 3600 / 4))]
)
def test_requests_join_and_network_stays_whatever_the_clock(tmp_path, shift_s):
    logs = tmp_path / "logs"
    logs.mkdir()
    stamped(logs, round(shift_s * NS))
    db = case_of(logs, tmp_path / "case.duckdb")
    with engine_of(db) as engine:
        (row,) = engine.rows(
            "SELECT count(*) AS n, min(network_ns) AS least, max(network_ns) AS most "
            "FROM latency_segment WHERE network_ns IS NOT NULL"
        )
        starts = engine.rows("SELECT server_start_ns, start_ns FROM resolve_server AS s JOIN "
                             "resolve_request AS r ON s.request_key = r.request_key")  # fmt: skip
    assert row["n"] == 40
    assert 10 * MS <= row["least"] <= row["most"] <= 18.1 * MS
    assert all(0 <= one["server_start_ns"] - one["start_ns"] <= 20 * MS for one in starts)
    assert ("trust.clock" in claimed(db)) == (shift_s != 0)


def test_reused_ids_join_by_the_clock(tmp_path):
    logs = tmp_path / "logs"
    logs.mkdir()
    stamped(logs, 90 * NS, reuse=True)
    with engine_of(case_of(logs, tmp_path / "case.duckdb")) as engine:
        rows = engine.rows("SELECT vantages FROM resolve_request")
    assert [row["vantages"] for row in rows] == [2] * 40


def test_whole_seconds_leave_a_second_of_doubt(tmp_path):
    # The engine's log cuts its stamps to the second: up to one second it seems behind, and is not.
    logs = tmp_path / "logs"
    logs.mkdir()
    rng = random.Random(4)
    client, engine = [], []
    for k in range(30):
        start, whole = T0 + k * 5 * NS + rng.randrange(NS), rng.randrange(800, 2_000) * MS
        client.append(
            {"request_id": f"r-{k}", "vantage": "client", "started_at": start / NS,
             "e2e_ms": whole / MS}
        )  # fmt: skip
        engine.append(
            {"request_id": f"r-{k}", "vantage": "engine", "started_at": (start + 8 * MS) // NS,
             "e2e_ms": (whole - 16 * MS) / MS}
        )  # fmt: skip
    for name, records in (("client", client), ("engine", engine)):
        (logs / f"{name}.jsonl").write_text("".join(json.dumps(one) + "\n" for one in records))
    db = case_of(logs, tmp_path / "case.duckdb")
    with engine_of(db) as asked:
        (row,) = asked.rows("SELECT * FROM resolve_clock WHERE vantage = 'engine'")
    assert row["grain_ns"] == NS
    assert row["low_ns"] <= 0 <= row["high_ns"]
    assert not row["differs"]
    assert "trust.clock" not in claimed(db)

"""Segments from little evidence and the linear law: by hand, refused, and against the truth."""

from __future__ import annotations

import json
import random

import pytest
from deep import deep
from helpers import case_of, engine_of

import analyzer
from analyzer.simulate.run import simulate
from analyzer.simulate.world import from_dict

MS = 1_000_000
FLOOR, RATE, STEP, GAP = 40, 0.1, 8, 20
"""ms, ms a token, ms a step of decode, s between requests."""


def _record(k, fresh, *, queue=0.0, output=100, cached=0, at=None, **more):
    ttft = FLOOR + max(STEP, RATE * fresh) + queue
    usage = {
        "prompt_tokens": fresh + cached, "completion_tokens": output,
        "prompt_tokens_details": {"cached_tokens": cached},
    }  # fmt: skip
    return {
        "request_id": f"q{k}", "vantage": "client", "model": "m", "usage": usage,
        "started_at": 1_790_000_000 + (GAP * k if at is None else at),
        "ttft_ms": ttft, "e2e_ms": ttft + STEP * (output - 1),
    } | more  # fmt: skip


def _case(tmp_path, records):
    (tmp_path / "logs").mkdir()
    text = "".join(json.dumps(one) + "\n" for one in records)
    (tmp_path / "logs" / "records.jsonl").write_text(text)
    return case_of(tmp_path / "logs", tmp_path / "case.duckdb")


def _modelled(db):
    sql = (
        "SELECT r.id, m.* FROM latency_modelled AS m JOIN resolve_request AS r "
        "ON m.request_key = r.request_key ORDER BY r.start_ns, r.request_key"
    )
    with engine_of(db) as engine:
        return {row["id"]: row for row in engine.rows(sql)}


def _refused(db):
    rows = _modelled(db)
    (why,) = {row["refused"] for row in rows.values()}
    assert all(row["queue_ns"] is None and row["prefill_ns"] is None for row in rows.values())
    return why


SIZES = [300 + 173 * (7 * k % 23) for k in range(60)]


def test_ttft_splits_into_floor_prefill_and_queue(tmp_path):
    waits = {17: 900.0, 31: 2_500.0, 44: 1_300.0}
    db = _case(tmp_path, [_record(k, u, queue=waits.get(k, 0.0)) for k, u in enumerate(SIZES)])
    for k, row in enumerate(_modelled(db).values()):
        assert row["queue_ns"] + row["prefill_ns"] + row["floor_ns"] == row["ttft_ns"]
        assert row["queue_ns"] == pytest.approx(waits.get(k, 0.0) * MS, abs=3 * MS)
        assert row["prefill_ns"] == pytest.approx(RATE * SIZES[k] * MS, abs=3 * MS)
        for part in ("queue", "prefill", "floor"):
            assert row[f"{part}_low_ns"] <= row[f"{part}_ns"] <= row[f"{part}_high_ns"]
    with engine_of(db) as engine:
        (model,) = engine.rows("SELECT * FROM latency_model")
    assert model["token_low_ns"] <= RATE * MS <= model["token_high_ns"]
    assert model["floor_low_ns"] <= FLOOR * MS <= model["floor_high_ns"]


def test_told_parts_are_kept_and_only_the_missing_one_is_modelled(tmp_path):
    records = [
        _record(k, u, queue=50.0 * (k % 3), queue_ms=50 * (k % 3)) for k, u in enumerate(SIZES)
    ]
    for k, row in enumerate(_modelled(_case(tmp_path, records)).values()):
        assert row["queue_ns"] is None
        assert row["prefill_ns"] == pytest.approx(RATE * SIZES[k] * MS, abs=3 * MS)


def test_requests_with_spans_calibrate_the_others(tmp_path):
    """Their told prefill holds 30 ms that no client could tell from the network."""
    records = []
    for k, u in enumerate(SIZES):
        one = _record(k, u)
        one["ttft_ms"] += 30
        one["e2e_ms"] += 30
        records.append(one | ({"queue_ms": 0, "prefill_ms": RATE * u + 30} if k % 3 == 0 else {}))
    rows = _modelled(_case(tmp_path, records))
    assert len(rows) == 40
    for name, row in rows.items():
        told = RATE * SIZES[int(name[1:])] + 30
        assert row["prefill_ns"] == pytest.approx(told * MS, abs=3 * MS)
        assert row["floor_ns"] == pytest.approx(FLOOR * MS, abs=3 * MS)


def test_a_level_that_changes_is_no_queue(tmp_path):
    """From the middle on another way, 150 ms longer."""
    records = [_record(k, u, queue=150.0 if k >= 30 else 0.0) for k, u in enumerate(SIZES)]
    rows = _modelled(_case(tmp_path, records))
    assert max(row["queue_ns"] for row in rows.values()) < 3 * MS
    later = [row["floor_ns"] for name, row in rows.items() if int(name[1:]) >= 30]
    assert min(later) == pytest.approx((FLOOR + 150) * MS, abs=3 * MS)


def test_too_few_requests_are_refused(tmp_path):
    db = _case(tmp_path, [_record(k, u) for k, u in enumerate(SIZES[:11])])
    assert "fewer than 12" in _refused(db)


def test_one_length_tells_the_queue_but_no_prefill(tmp_path):
    rows = _modelled(_case(tmp_path, [_record(k, 900, queue=400.0 * (k == 9)) for k in range(40)]))
    assert all(row["prefill_ns"] is None for row in rows.values())
    assert rows["q9"]["queue_ns"] == pytest.approx(400 * MS, abs=3 * MS)


def test_a_server_that_never_rests_is_refused(tmp_path):
    """One every 100 ms to a server that needs 150: everybody waits for somebody."""
    free, records = 0.0, []
    for k in range(200):
        sent = 0.1 * k - 4
        begin = max(free, sent)
        free = begin + 0.15
        if sent >= 0:
            one = _record(k, SIZES[k % 60], queue=1e3 * (begin - sent), at=sent)
            records.append(one)
    assert "nobody ahead" in _refused(_case(tmp_path, records))


def test_a_cache_that_may_hide_is_refused(tmp_path):
    """Usage without cached tokens, and times that no length explains."""
    rng = random.Random(4)
    records = []
    for k, u in enumerate(SIZES):
        one = _record(k, u)
        one["ttft_ms"] = FLOOR + RATE * u * rng.uniform(0.05, 1)
        del one["usage"]["prompt_tokens_details"]
        records.append(one)
    why = _refused(_case(tmp_path, records))
    assert "cached tokens are not told" in why or "do not follow" in why


def test_two_levels_at_once_are_refused(tmp_path):
    records = [_record(k, u, queue=1_000.0 * (k % 3 == 1)) for k, u in enumerate(SIZES)]
    assert "several levels" in _refused(_case(tmp_path, records))


def test_modelled_rows_stand_apart_and_say_so(tmp_path):
    db = _case(tmp_path, [_record(k, u) for k, u in enumerate(SIZES)])
    rows = {row["metric"]: row for row in analyzer.latency(db).rows}
    assert rows["queue"]["requests"] == rows["queue"]["modelled"] == 0
    fitted = rows["prefill (modelled)"]
    assert (fitted["modelled"], fitted["measured"], fitted["derived"]) == (60, 0, 0)
    assert fitted["low_ns"] < fitted["mean_ns"] < fitted["high_ns"]
    covered = {row["quantity"]: row for row in analyzer.status(db).coverage.rows}
    assert (covered["prefill"]["modelled"], covered["prefill"]["coverage"]) == (60, 0)
    shown = [row for row in analyzer.show(db, "q5").segments if row["view"] == "model"]
    assert {row["grade"] for row in shown} == {"modelled"}
    assert all(row["low_ns"] <= row["dur_ns"] <= row["high_ns"] for row in shown)


# --- against the simulator ------------------------------------------------------------------------

# seed, requests a second, tokens of a prompt and their variety, noise
WORLDS = [
    (1, 3, 900, 0.5, 0.02), (2, 1.2, 2_600, 0.7, 0.01), (3, 6, 400, 0.9, 0.03),
    (4, 4, 2_000, 0.4, 0),
]  # fmt: skip


@pytest.mark.parametrize(
    ("seed", "rate", "tokens", "cv", "noise"),
    [WORLDS[0], *(pytest.param(*one, marks=deep) for one in WORLDS[1:])],
)
def test_a_client_alone_comes_near_the_truth(seed, rate, tokens, cv, noise, tmp_path):
    simulate(
        from_dict(
            {
                "name": "w", "seed": seed, "duration_s": 200 / rate,
                "network": {"latency_ms": 12, "jitter_ms": 1}, "engine": {"noise": noise},
                "arrivals": [
                    {
                        "rate_per_s": rate, "prompt_tokens": {"mean": tokens, "cv": cv},
                        "output_tokens": {"mean": 60, "cv": 0.5, "least": 2},
                    }
                ],
                "logs": [{"format": "stream"}, {"format": "truth"}],
            }
        ),
        tmp_path / "logs",
    )  # fmt: skip
    truth = tmp_path / "logs" / "truth.jsonl"
    told = {
        one["id"]: one for one in map(json.loads, truth.read_text().splitlines()) if "id" in one
    }
    truth.unlink()
    rows = _modelled(case_of(tmp_path / "logs", tmp_path / "case.duckdb"))
    for part in ("queue", "prefill"):
        name = f"{part}_ns"
        off = [(row[name] - told[key][name]) / row["ttft_ns"] for key, row in rows.items()]
        inside = [
            row[f"{part}_low_ns"] <= told[key][name] <= row[f"{part}_high_ns"]
            for key, row in rows.items()
        ]
        assert sorted(map(abs, off))[len(off) // 2] < 0.1, part
        assert abs(sum(off) / len(off)) < 0.05, part
        assert sum(inside) / len(inside) > 0.85, part


# --- the linear law -------------------------------------------------------------------------------


def test_the_law_of_a_group(tmp_path):
    """e2e = 40 ms + 0.1 ms x prompt + 8 ms x (output - 1): b = 32 ms + prefill, k = 8 ms."""
    outputs = [40 + 31 * (11 * k % 17) for k in range(60)]
    records = [_record(k, u, output=outputs[k]) for k, u in enumerate(SIZES)]
    (row,) = analyzer.latency(_case(tmp_path, records), law=True).rows
    usual = sorted(SIZES)[29:31]
    assert row["why"] is None
    assert row["step_ns"] == pytest.approx(STEP * MS, rel=1e-3)
    assert row["base_ns"] == pytest.approx((FLOOR - STEP + RATE * sum(usual) / 2) * MS, rel=0.01)
    assert row["prompt_ns"] == pytest.approx(RATE * MS, rel=0.01)
    assert row["long_ns"] - row["short_ns"] == pytest.approx(320 * STEP * MS, rel=1e-3)
    assert row["most_tokens_per_s"] == pytest.approx(1_000 / STEP, rel=1e-3)
    assert row["step_low_ns"] <= row["step_ns"] <= row["step_high_ns"]


def test_the_law_is_refused_where_it_does_not_hold(tmp_path):
    rng = random.Random(6)
    records = []
    for k, u in enumerate(SIZES):
        one = _record(k, u, output=50 + 37 * (k % 11))
        one["e2e_ms"] = one["ttft_ms"] + rng.uniform(500, 30_000)
        records.append(one)
    (row,) = analyzer.latency(_case(tmp_path, records), law=True).rows
    assert row["why"]
    assert row["base_ns"] is row["step_ns"] is row["most_tokens_per_s"] is None


def test_answers_of_one_length_have_no_law(tmp_path):
    (row,) = analyzer.latency(_case(tmp_path, [_record(k, 500) for k in range(30)]), law=True).rows
    assert "about as long" in row["why"]

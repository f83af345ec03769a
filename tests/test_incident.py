"""The incident window is found where there is one, and only there."""

from __future__ import annotations

import json
import random

import pytest
from helpers import engine_of

import analyzer
import analyzer.api
from analyzer.contract.types import Filters
from analyzer.questions import timeline

T = 1_790_000_000
NS = 1_000_000_000


def _case(tmp_path, e2e_of, requests=240, step_s=5, **fields):
    """One request every ``step_s``; ``e2e_of(i, rng)`` in ms."""
    rng = random.Random(11)
    path = tmp_path / "records.jsonl"
    with path.open("w") as out:
        for i in range(requests):
            record = {"request_id": f"r{i}", "started_at": T + i * step_s, "status": 200}
            record |= {"e2e_ms": e2e_of(i, rng)} | {k: f(i, rng) for k, f in fields.items()}
            out.write(json.dumps(record) + "\n")
    db = str(tmp_path / "case.duckdb")
    analyzer.ingest(db, [str(path)])
    return db


def _standout(db):
    with engine_of(db) as engine:
        (span,) = engine.rows("SELECT min(start_ns) AS a, max(start_ns) AS b FROM resolve_request")
        bin_ns = timeline.width_ns((span["a"], span["b"]))
        return timeline.standout(engine, bin_ns), bin_ns


def test_a_slow_third_is_the_window(tmp_path):
    db = _case(tmp_path, lambda i, rng: rng.gauss(1_000, 150) * (1.8 if 80 <= i < 160 else 1))
    found, bin_ns = _standout(db)
    assert found.metric == "e2e"
    assert found.inside / found.outside == pytest.approx(1.8, rel=0.1)
    start, end = (T + 80 * 5) * NS, (T + 160 * 5) * NS
    assert abs(found.window[0] - start) <= bin_ns
    assert abs(found.window[1] - end) <= bin_ns


def test_a_burst_of_errors_is_a_window(tmp_path):
    db = _case(
        tmp_path,
        lambda i, rng: rng.gauss(1_000, 100),
        status=lambda i, rng: 503 if 100 <= i < 130 and rng.random() < 0.8 else 200,
    )
    found, bin_ns = _standout(db)
    assert found.metric == "errors"
    assert abs(found.window[0] - (T + 500) * NS) <= 2 * bin_ns


@pytest.mark.parametrize("spread", [0, 20, 300])
def test_ordinary_noise_is_no_incident(tmp_path, spread):
    db = _case(tmp_path, lambda i, rng: max(1, rng.gauss(1_000, spread)))
    assert _standout(db)[0] is None


def test_a_heavy_tail_is_no_incident(tmp_path):
    db = _case(tmp_path, lambda i, rng: rng.lognormvariate(6, 0.8))
    assert _standout(db)[0] is None


def test_a_tiny_case_has_no_incident(tmp_path):
    db = _case(tmp_path, lambda i, rng: 1_000 if i else 9_000, requests=4)
    assert _standout(db)[0] is None
    report = analyzer.api.report(db)
    assert report.incident is None
    assert report.requests == 4


def test_the_report_holds_the_window_against_the_rest(tmp_path):
    db = _case(tmp_path, lambda i, rng: rng.gauss(1_000, 150) * (1.8 if i >= 120 else 1))
    incident = analyzer.api.report(db).incident
    assert incident.why.startswith("end-to-end time was 1.7")
    assert abs(incident.window[0] - (T + 120 * 5) * NS) <= 20 * NS
    mean = next(
        row for row in incident.changes.rows
        if (row["metric"], row["statistic"]) == ("e2e", "mean")
    )  # fmt: skip
    assert mean["beyond_noise"] is True
    assert mean["low"] < mean["change"] < mean["high"]
    assert mean["change"] == pytest.approx(750e6, rel=0.1)


def test_a_window_that_is_given_is_not_searched_for_another(tmp_path):
    db = _case(tmp_path, lambda i, rng: rng.gauss(1_000, 150) * (1.8 if i >= 120 else 1))
    assert analyzer.api.report(db, Filters(since_ns=(T + 100) * NS)).incident is None


def test_intervals_hold_the_true_change_and_leave_noise_alone(tmp_path):
    db = _case(tmp_path, lambda i, rng: rng.gauss(1_000 if i < 120 else 1_300, 200))
    middle = (T + 120 * 5) * NS
    rows = analyzer.compare(db, Filters(until_ns=middle), Filters(since_ns=middle)).rows
    by = {(row["metric"], row["statistic"]): row for row in rows}
    mean = by["e2e", "mean"]
    assert mean["low"] <= 300e6 <= mean["high"]
    assert mean["high"] - mean["low"] < 200e6
    assert by["requests_per_minute", "mean"]["beyond_noise"] is False
    again = analyzer.compare(db, Filters(until_ns=middle), Filters(since_ns=middle)).rows
    assert again == rows


def test_verify_says_met_not_met_or_cannot_say(tmp_path):
    db = _case(
        tmp_path,
        lambda i, rng: 3_000 if i >= 120 else 1_000,
        usage=lambda i, rng: {"completion_tokens": 300 if i >= 120 else 100, "prompt_tokens": 5},
        ttft_ms=lambda i, rng: 100,
    )
    middle = (T + 120 * 5) * NS
    assert "decode.output-growth" in {
        one.rule for one in analyzer.findings(db).found if one.severity != "note"
    }
    outcome = {
        name: analyzer.verify(db, "decode.output-growth", filters).rows[0]["outcome"]
        for name, filters in {
            "before": Filters(until_ns=middle),
            "after": Filters(since_ns=middle),
            "never": Filters(since_ns=(T + 10**6) * NS),
        }.items()
    }
    assert outcome == {"before": "met", "after": "not met", "never": "cannot say"}


def test_verify_takes_a_later_capture(tmp_path):
    db = _case(tmp_path, lambda i, rng: 1_000)
    later = tmp_path / "later.jsonl"
    later.write_text('{"request_id": "z", "started_at": 1790500000, "e2e_ms": 50, "queue_ms": 1}\n')
    rows = analyzer.verify(db, "trust.contradictory-durations", paths=[str(later)]).rows
    assert [row["outcome"] for row in rows] == ["met"]

"""The shared scenarios: right verdict on each, silence on its twin."""

from __future__ import annotations

import pytest
from helpers import case_of, check_verdict
from shared import SHARED, needs_shared

_QUIET = [
    "queue.admission-limit", "queue.saturation", "prefill.long-prompt", "network.slow",
    "network.buffered", "metric.multi-token-chunks", "metric.ttft-misread", "decode.output-growth",
    "trust.contradictory-durations",
]  # fmt: skip


def _right(rule, segment, requests, value, unit):
    return {
        "rule": rule, "segment": segment, "requests": requests, "tolerance": 0.05,
        "magnitude": {"value": value, "unit": unit},
        "must_not": [other for other in _QUIET if other != rule],
    }  # fmt: skip


def _silent(*may):
    return {"must_not": [rule for rule in _QUIET if rule not in may]}


RIGHT = {
    "A1/main": _right("queue.admission-limit", "queue", 32, 5.02, "s"),
    "A1/twin": _silent("prefill.long-prompt"),
    "A4/main": _right("metric.ttft-misread", "none", 24, 8.4, "s"),
    "A4/twin": _silent(),
    "A5/main": _right("network.buffered", "network", 10, 3.99, "s"),
    "A5/twin": _silent(),
    "A8/main": _right("metric.multi-token-chunks", "none", 20, 4.0, "tokens"),
    "A8/twin": _silent(),
}


@needs_shared
@pytest.mark.parametrize("name", RIGHT)
def test_verdict(name, tmp_path):
    check_verdict(case_of(SHARED / "scenarios" / name, tmp_path / "case.duckdb"), RIGHT[name])

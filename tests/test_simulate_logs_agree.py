"""Logs of gateway, agent and provider add up to the truth of the run, to the last cent."""

import json
from collections import defaultdict
from decimal import Decimal

import pytest

from analyzer.simulate.run import simulate
from analyzer.simulate.world import from_dict

MS = 1_000_000
WORLD = {
    "name": "agents",
    "seed": 5,
    "start": "2026-03-11T09:00:00Z",
    "duration_s": 240,
    "client": {"timeout_s": 9, "retries": 2},
    "network": {"latency_ms": 9, "jitter_ms": 3, "loss": 0.002},
    "gateway": {
        "routes": [
            {"name": "default", "failing": 0.2, "fallback": "spare"},
            {"name": "spare", "replicas": ["engine-1"]},
        ]
    },
    "replicas": [{"name": "engine-0"}, {"name": "engine-1"}],
    "arrivals": [{
        "kind": "agent", "rate_per_s": 0.3, "turns": {"mean": 4, "cv": 0.4},
        "think_s": 3, "subagent_share": 0.25, "system_tokens": 4000,
        "prompt_tokens": {"mean": 600, "cv": 0.7}, "reasoning_share": 0.3,
        "output_tokens": {"mean": 400, "cv": 1.2}, "model": "lyra-70b",
    }],
    "prices": {"lyra-70b": {
        "input": "2.5", "cache_read": "0.25", "cache_write_short": "3.125", "output": "12",
    }},
    "logs": [
        {"format": "transcript"},
        {"format": "litellm", "options": {"write_ttl": "5m"}},
        {"format": "nginx", "skew_ms": 40_000},
        {"format": "billing", "options": {"write_ttl": "5m"}},
        {"format": "gateway"},
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("agents")
    simulate(from_dict(WORLD), folder)
    lines = (folder / "truth.jsonl").read_text().splitlines()
    return folder, [one for one in map(json.loads, lines) if "event" not in one]


def read_lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def cost(one):
    whole = one["prompt_tokens"] // 16 * 16
    written = max(0, whole - one["cached_tokens"])
    fresh = one["prompt_tokens"] - one["cached_tokens"] - written
    spent = fresh * Decimal("2.5") + one["cached_tokens"] * Decimal("0.25")
    return (spent + written * Decimal("3.125") + one["output_tokens"] * 12) / 1_000_000


def test_the_world_has_what_is_to_be_tested(logs):
    _, truth = logs
    assert len(truth) > 200
    assert any("parent_session_id" in one for one in truth)
    assert any(len(one["tries"]) > 1 for one in truth)
    assert any(one.get("error") == "timeout" for one in truth)
    assert any(one["cached_tokens"] for one in truth)


def test_litellm_has_the_tokens_and_the_money_of_what_went_well(logs):
    folder, truth = logs
    rows = json.loads((folder / "spend-logs.json").read_text())
    assert len(rows) == sum(len(one["tries"]) for one in truth)
    good = [one for one in truth if "error" not in one]
    told = [row for row in rows if row["status"] == "success"]
    assert len(told) == len(good)
    for mine, name in (("prompt_tokens", "prompt_tokens"), ("completion_tokens", "output_tokens")):
        assert sum(row[mine] for row in told) == sum(one[name] for one in good)
    assert sum(row["spend"] for row in told) == pytest.approx(float(sum(map(cost, good))))
    assert all(row["spend"] == 0 for row in rows if row["status"] == "failure")


def test_the_provider_bills_more_than_the_gateway_tracks(logs):
    folder, truth = logs
    billed = [one for one in truth if "admitted_ns" in one]
    rows = [json.loads(line, parse_float=Decimal) for line in
            (folder / "billing.jsonl").read_text().splitlines()]  # fmt: skip
    assert len(rows) == len(billed)
    assert sum(row["cost_usd"] for row in rows) == sum(map(cost, billed))
    assert any("error" in one for one in billed)


def test_transcripts_without_their_duplicates_are_the_sessions(logs):
    folder, truth = logs
    kept, lines = {}, 0
    for path in (folder / "transcripts").rglob("*.jsonl"):
        for line in read_lines(path):
            if line["type"] != "assistant" or line["message"]["model"] == "<synthetic>":
                continue
            lines += 1
            usage = line["message"]["usage"]
            key = line["message"]["id"]
            if key not in kept or usage["output_tokens"] > kept[key]["output_tokens"]:
                kept[key] = usage
    good = [one for one in truth if "error" not in one and "session_id" in one]
    assert len(kept) == len(good) < lines
    sums = defaultdict(int)
    for usage in kept.values():
        for name in ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"):
            sums["prompt"] += usage[name]
        sums["cached"] += usage["cache_read_input_tokens"]
        sums["output"] += usage["output_tokens"]
    assert sums == {
        "prompt": sum(one["prompt_tokens"] for one in good),
        "cached": sum(one["cached_tokens"] for one in good),
        "output": sum(one["output_tokens"] for one in good),
    }


def test_nginx_has_each_call_on_its_own_clock(logs):
    folder, truth = logs
    rows = {row["x_request_id"]: row for row in read_lines(folder / "access.log")}
    assert len(rows) == len(truth)
    for one in truth:
        row = rows[one["id"]]
        assert row["upstream_status"].count(",") == len(one["tries"]) - 1
        if "gateway_out_ns" in one:
            took = one["gateway_out_ns"] - one["gateway_in_ns"]
            assert abs(row["request_time"] * 1e9 - took) < 1.5 * MS
            assert int(row["msec"].replace(".", "")) == one["gateway_out_ns"] // MS + 40_000
        if one.get("error") == "timeout":
            assert row["request_completion"] == ""
            assert row["status"] == (200 if "gateway_first_ns" in one else 499)


def test_gateway_records_name_the_fallback(logs):
    folder, truth = logs
    rows = {row["request_id"]: row for row in read_lines(folder / "gateway.jsonl")}
    for one in truth:
        row = rows[one["id"]]
        assert row["route"] == one["route"]
        assert ("tags" in row) == (len(one["tries"]) > 1)

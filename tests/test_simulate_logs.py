"""Logs that a world writes give its truth back through ingest, exactly."""

import json
from collections import Counter

import pytest

from analyzer import api
from analyzer.contract.types import Filters
from analyzer.simulate.run import formats, simulate
from analyzer.simulate.world import from_dict

MS = 1_000_000

WORLD = {
    "seed": 3,
    "duration_s": 40,
    "arrivals": [
        {"kind": "chat", "rate_per_s": 2, "turns": {"mean": 2, "cv": 0.5},
         "prompt_tokens": {"mean": 500, "cv": 1}, "output_tokens": {"mean": 90, "cv": 0.6},
         "system_tokens": 400, "think_s": 2, "reasoning_share": 0.3},
        {"kind": "batch", "process": "bursty", "rate_per_s": 1, "max_tokens": 60},
    ],
    "network": {"jitter_ms": 1.5, "loss": 0.002},
    "engine": {"max_running": 6, "status_s": 2},
}  # fmt: skip
CLIENT = {"queue_ns": None, "ttft_ns": "ttft_ns", "e2e_ns": "e2e_ns"}
ENGINE = {
    "queue_ns": "queue_ns", "prefill_ns": "prefill_ns", "decode_ns": "decode_ns",
    "ttft_ns": "engine_ttft_ns", "e2e_ns": "engine_e2e_ns",
}  # fmt: skip


SEGMENTS = "SELECT * FROM latency_segment JOIN resolve_request USING (request_key)"


def case_of(tmp_path, *logs, **changed):
    """Write the world's logs, read them, and give its truth and a way to ask."""
    world = from_dict(WORLD | changed | {"logs": list(logs)})
    folder, db = tmp_path / "logs", str(tmp_path / "case.duckdb")
    simulate(world, folder)
    truth = [json.loads(line) for line in (folder / "truth.jsonl").read_text().splitlines()]
    paths = [str(path) for path in sorted(folder.iterdir()) if path.name != "truth.jsonl"]
    api.ingest(db, paths, year=2026)
    assert not rows(db, "SELECT * FROM problem")
    return [one for one in truth if "id" in one], db


def rows(db, query):
    return api.sql(db, query, Filters()).rows


def told(db, vantage):
    found = rows(db, f"SELECT * FROM request WHERE vantage = '{vantage}'")
    return {(one["request_id"], one["attempt"] or 1): one for one in found}


def agree(truth, found, columns, shift_ns=0):
    assert truth
    assert found.keys() == {(one["id"], one["attempt"]) for one in truth}
    for one in truth:
        row = found[one["id"], one["attempt"]]
        for column, name in columns.items():
            assert row[column] == (one.get(name) if name else None), column
        assert row["start_ns"] == one["sent_ns" if columns is CLIENT else "engine_in_ns"] + shift_ns


def test_spans_give_back_every_segment(tmp_path):
    truth, db = case_of(tmp_path, {"format": "spans"})
    found = told(db, "engine")
    agree(truth, found, ENGINE)
    for one in truth:
        row = found[one["id"], one["attempt"]]
        assert (row["output_visible_tokens"] or 0) + (row["output_reasoning_tokens"] or 0) == (
            one["output_tokens"]
        )


def test_streams_give_back_what_the_client_saw(tmp_path):
    truth, db = case_of(tmp_path, {"format": "stream"})
    found = told(db, "client")
    agree(truth, found, CLIENT)
    chunks = rows(
        db,
        "SELECT request_id, sum(chunk.tokens) AS tokens, max(offset_ns) AS last "
        "FROM chunk JOIN request USING (source_id, record) GROUP BY ALL",
    )
    told_chunks = {one["request_id"]: one for one in chunks}
    for one in truth:
        row = found[one["id"], one["attempt"]]
        assert told_chunks[one["id"]]["tokens"] == one["output_tokens"]
        assert told_chunks[one["id"]]["last"] == one["e2e_ns"]
        assert row["cache_read_tokens"] == one["cached_tokens"]
        assert row["input_fresh_tokens"] == one["prompt_tokens"] - one["cached_tokens"]
        assert row["output_reasoning_tokens"] == one["reasoning_tokens"]
        assert row["session_id"] == one.get("session_id")


def test_both_vantages_make_the_segments_of_truth(tmp_path):
    """Another clock at the engine moves nothing: durations are subtracted, never stamps."""
    truth, db = case_of(
        tmp_path, {"format": "stream"}, {"format": "spans", "skew_ms": 1700.0, "drift_ppm": 40.0}
    )
    found = {one["id"]: one for one in rows(db, SEGMENTS)}
    assert len(found) == len(truth)
    for one in truth:
        row = found[one["id"]]
        for name in ("queue_ns", "prefill_ns", "decode_ns", "network_ns", "e2e_ns", "ttft_ns"):
            assert row[name] == one[name], name


def test_request_records_give_back_either_side(tmp_path):
    truth, db = case_of(
        tmp_path, {"format": "requests"},
        {"format": "requests", "options": {"vantage": "engine"}, "skew_ms": -250.0},
    )  # fmt: skip
    agree(truth, told(db, "client"), CLIENT)
    agree(truth, told(db, "engine"), ENGINE, shift_ns=-250 * MS)


def test_a_lossy_log_lacks_the_same_requests_each_time_and_nothing_else(tmp_path):
    truth, db = case_of(tmp_path, {"format": "spans", "loss": 0.3})
    found = told(db, "engine")
    assert 0.15 < 1 - len(found) / len(truth) < 0.45
    agree([one for one in truth if (one["id"], one["attempt"]) in found], found, ENGINE)


def test_fields_that_a_log_lacks_are_absent(tmp_path):
    truth, db = case_of(
        tmp_path, {"format": "stream", "missing": ["usage", "tokens"]},
        {"format": "spans", "missing": ["queue_ns", "output_tokens"]},
    )  # fmt: skip
    assert truth
    for one in rows(db, "SELECT * FROM request"):
        assert one["queue_ns"] is None
        assert one["output_visible_tokens"] is None


def test_retries_and_timeouts_are_attempts_of_one_operation(tmp_path):
    truth, db = case_of(
        tmp_path, {"format": "stream"},
        client={"timeout_s": 1.2, "retries": 2, "backoff_s": 0.5},
    )  # fmt: skip
    found = told(db, "client")
    assert found.keys() == {(one["id"], one["attempt"]) for one in truth}
    failed = [one for one in truth if one.get("error")]
    assert failed
    for one in truth:
        row = found[one["id"], one["attempt"]]
        assert row["e2e_ns"] == one["e2e_ns"] or one.get("error")
        assert (row["operation_id"] or row["request_id"]) == one["operation_id"]
    assert max(one["attempt"] for one in truth) > 1


def test_a_buffering_proxy_is_held_and_not_network(tmp_path):
    truth, db = case_of(
        tmp_path, {"format": "stream"}, {"format": "spans"}, gateway={"buffer_bytes": 5000},
        network={"latency_ms": 5},
    )  # fmt: skip
    found = {one["id"]: one for one in rows(db, SEGMENTS)}
    late = 0
    for one in truth:
        row = found[one["id"]]
        assert row["network_ns"] == one["network_ns"]
        held = sum(cause["ns"] for cause in one["causes"] if cause["kind"] == "buffered")
        late += held > 0
        # Way of the first token: what the proxy held, and the same way as the last one's.
        way = one["ttft_ns"] - one["engine_ttft_ns"]
        assert abs(way - held - one["network_ns"]) <= MS
    assert late > len(truth) / 2


def test_vllm_lines_tell_the_engine_as_it_was(tmp_path):
    truth, db = case_of(tmp_path, {"format": "vllm_log"})
    samples = rows(db, "SELECT * FROM engine_sample WHERE running IS NOT NULL")
    assert max(one["running"] for one in samples) == 6
    assert max(one["waiting"] for one in samples) > 0
    made = sum(one["generation_tokens_per_s"] * 2 for one in samples)
    # A rate is told to a tenth of a token.
    assert made == pytest.approx(sum(one["output_tokens"] for one in truth), abs=0.1 * len(samples))


def test_sglang_lines_tell_prompts_and_decodes(tmp_path):
    truth, db = case_of(tmp_path, {"format": "sglang_log"})
    text = (tmp_path / "logs" / "sglang-engine-0.log").read_text()
    fresh = sum(one["prompt_tokens"] - one["cached_tokens"] for one in truth)
    new = [int(line.split("#new-token: ")[1].split(",")[0]) for line in text.splitlines()
           if "Prefill batch" in line]  # fmt: skip
    assert sum(new) == fresh
    samples = rows(db, "SELECT * FROM engine_sample WHERE running IS NOT NULL")
    assert max(one["running"] for one in samples) == 6


def test_emits_and_deployment_and_ticks(tmp_path):
    truth, db = case_of(
        tmp_path, {"format": "emit"}, {"format": "stream"}, {"format": "deployment"},
        client={"tick_s": 1, "stall_every_s": 9, "stall_ms": 1200}, network={},
    )  # fmt: skip
    first = {one["request_id"]: one for one in rows(db, "SELECT * FROM request")
             if one["vantage"] == "engine"}  # fmt: skip
    assert len(first) == len(truth)
    ticks = rows(db, "SELECT * FROM client_tick")
    assert len(ticks) >= 40
    (deployed,) = rows(db, "SELECT * FROM deployment")
    assert deployed["max_running"] == 6


def test_the_same_world_writes_the_same_bytes(tmp_path):
    logs = [{"format": name} for name in ("stream", "spans", "vllm_log", "requests")]
    for name in ("a", "b"):
        simulate(from_dict(WORLD | {"logs": logs}), tmp_path / name)
    files = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert len(files) == 5
    for name in files:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_every_format_has_a_recorder():
    assert Counter(formats()) >= Counter(
        ["stream", "spans", "vllm_log", "sglang_log", "requests", "deployment", "truth", "emit"]
    )

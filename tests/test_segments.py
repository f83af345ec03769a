"""The two exact sums of every request, whatever its sources leave out or get wrong."""

from __future__ import annotations

import json
import random

import pytest
from cases._build import MS, answer
from cases._streams import Stream, emit_lines
from helpers import engine_of

import analyzer
from analyzer.simulate.writers import NS, openai_usage, request_record

REQUESTS = 600


def _random_records(rng):
    """Records of up to three vantages per request: parts missing, too long, too short."""
    for i in range(REQUESTS):
        queue, prefill, decode = (rng.randrange(0, 4_000) for _ in range(3))
        server_ttft = queue + prefill + rng.choice([0, 0, 3, -3, 40, -40])
        server_e2e = server_ttft + decode + rng.choice([0, 0, 2, -4, 60, -900])
        outside = rng.choice([0, 15, -3, -300, 250])
        first_outside = rng.choice([0, 15, -3, -300, 2_500])
        engine = {
            "vantage": "engine", "queue_ms": queue, "prefill_ms": prefill, "decode_ms": decode,
            "ttft_ms": max(0, server_ttft), "e2e_ms": max(0, server_e2e),
        }  # fmt: skip
        client = {
            "vantage": "client", "ttft_ms": max(0, server_ttft + first_outside),
            "e2e_ms": max(0, server_e2e + outside),
        }  # fmt: skip
        gateway = {"vantage": "gateway", "e2e_ms": max(0, server_e2e + outside // 2)}
        for told in (engine, client, gateway):
            if rng.random() < 0.25:
                continue
            kept = {
                key: value
                for key, value in told.items()
                if key == "vantage" or rng.random() < 0.8
            }  # fmt: skip
            start = 1_790_000_000 + 10 * i + rng.random()
            yield {"request_id": f"q-{i}", "started_at": start, **kept}


@pytest.fixture(scope="module")
def random_case(tmp_path_factory):
    folder = tmp_path_factory.mktemp("random")
    lines = [json.dumps(one) for one in _random_records(random.Random(20260917))]
    (folder / "records.jsonl").write_text("\n".join(lines) + "\n")
    db = str(folder / "case.duckdb")
    analyzer.ingest(db, [str(folder / "records.jsonl")])
    return db


def _rows(db):
    with engine_of(db) as engine:
        return engine.rows("SELECT * FROM latency_segment ORDER BY request_key")


def test_segments_add_up_to_the_end(random_case):
    rows = [row for row in _rows(random_case) if row["e2e_ns"] is not None]
    assert len(rows) > REQUESTS / 2
    for row in rows:
        parts = ("queue", "prefill", "decode", "network", "unattributed")
        assert sum(row[f"{part}_ns"] or 0 for part in parts) == row["e2e_ns"], row


def test_segments_add_up_to_the_first_token(random_case):
    rows = [row for row in _rows(random_case) if row["ttft_ns"] is not None]
    assert len(rows) > REQUESTS / 2
    for row in rows:
        parts = ("queue_ns", "prefill_ns", "network_ttft_ns", "unattributed_ttft_ns")
        assert sum(row[part] or 0 for part in parts) == row["ttft_ns"], row


def test_no_segment_is_negative(random_case):
    for row in _rows(random_case):
        for name, value in row.items():
            if name.endswith("_ns") and value is not None:
                assert value >= 0, (name, row)


def test_a_missing_part_is_absent_and_never_zero(random_case):
    for row in _rows(random_case):
        for part in ("queue", "prefill", "decode", "network"):
            assert (row[f"{part}_ns"] is None) == (row[f"{part}_grade"] == "absent"), row


def test_contradictions_are_found_and_their_parts_refused(random_case):
    rows = [row for row in _rows(random_case) if row["contradiction"]]
    assert rows
    assert all(row["queue_ns"] is row["prefill_ns"] is row["decode_ns"] is None for row in rows)
    found = {one.rule: one for one in analyzer.findings(random_case).found}
    assert found["trust.contradictory-durations"].requests == len(rows)


def _one(tmp_path, *records):
    path = tmp_path / "records.jsonl"
    path.write_text("".join(json.dumps({"request_id": "a", **r}) + "\n" for r in records))
    db = str(tmp_path / "case.duckdb")
    analyzer.ingest(db, [str(path)])
    (row,) = _rows(db)
    return row


def test_up_to_five_ms_too_much_shrinks_decode(tmp_path):
    row = _one(
        tmp_path,
        {"vantage": "engine", "queue_ms": 100, "prefill_ms": 200, "decode_ms": 704, "e2e_ms": 1000},
    )
    assert (row["decode_ns"], row["shrunk_ns"]) == (700_000_000, 4_000_000)
    assert row["contradiction"] is None


def test_more_than_five_ms_is_a_contradiction(tmp_path):
    row = _one(
        tmp_path,
        {"vantage": "engine", "queue_ms": 100, "prefill_ms": 200, "decode_ms": 706, "e2e_ms": 1000},
    )
    assert row["contradiction"] == "the parts exceed the whole"
    assert row["unattributed_ns"] == row["e2e_ns"] == 1_000_000_000


def test_network_is_a_difference_of_durations_whatever_the_clocks(tmp_path):
    row = _one(
        tmp_path,
        {"vantage": "client", "started_at": 1_790_000_000, "ttft_ms": 350, "e2e_ms": 1_250},
        {
            "vantage": "engine", "started_at": 1_790_000_300, "queue_ms": 50, "prefill_ms": 200,
            "decode_ms": 900, "ttft_ms": 255, "e2e_ms": 1_160,
        },
    )  # fmt: skip
    assert row["network_ns"] == 90_000_000
    assert row["network_ttft_ns"] == 95_000_000
    assert row["held_ns"] == 5_000_000
    assert row["unattributed_ns"] == 10_000_000
    assert row["network_grade"] == "derived"


def test_a_ttft_before_the_servers_own_is_not_used(tmp_path):
    row = _one(
        tmp_path,
        {"vantage": "gateway", "ttft_ms": 40, "e2e_ms": 2_020},
        {
            "vantage": "engine", "queue_ms": 100, "prefill_ms": 800, "decode_ms": 1_095,
            "ttft_ms": 903, "e2e_ms": 2_000,
        },
    )  # fmt: skip
    assert (row["ttft_vantage"], row["ttft_ns"]) == ("engine", 903_000_000)
    assert row["network_ttft_ns"] is None
    assert row["network_ns"] == 20_000_000
    assert row["queue_ns"] == 100_000_000


def test_a_decode_that_only_the_client_tells_varies_with_the_way(tmp_path):
    # 950 ms at the client are more than the gateway's whole: the last token came 60 ms later.
    row = _one(
        tmp_path,
        {"vantage": "client", "ttft_ms": 50, "e2e_ms": 1_000},
        {"vantage": "gateway", "e2e_ms": 920},
    )
    assert row["contradiction"] is None
    assert (row["network_ns"], row["decode_ns"]) == (80_000_000, 920_000_000)
    assert (row["decode_grade"], row["shrunk_ns"]) == ("derived", 30_000_000)


def test_a_stated_part_beats_a_difference_of_stamps(tmp_path):
    stream = Stream("a", 10 * NS, [11 * NS + 20 * MS * k for k in range(11)], 100)
    stated = request_record("a", vantage="engine", durations_ns={"decode": 199 * MS, "e2e": NS})
    (tmp_path / "emits.jsonl").write_text("\n".join(emit_lines([stream])) + "\n")
    (tmp_path / "engine.jsonl").write_text(stated + "\n")
    db = str(tmp_path / "case.duckdb")
    analyzer.ingest(db, [str(tmp_path / "emits.jsonl"), str(tmp_path / "engine.jsonl")])
    (row,) = _rows(db)
    assert (row["decode_ns"], row["decode_grade"]) == (199 * MS, "measured")


@pytest.mark.parametrize(
    ("told", "first", "end", "reading"),
    [
        (900, 1_000, 3_100, "true"),
        (2_000, 1_000, 3_100, "visible"),  # the client had its first token before that
        (900, 1_600, 3_900, "unchecked"),  # 900 ms of way: it may be the first token, or not
    ],
)
def test_how_a_gateways_first_token_is_read(tmp_path, told, first, end, reading):
    visible = first + 1_100 if told > first else first + 150
    chunks = [(first * MS, "reasoning", 4), (visible * MS, "content", 4), (end * MS, "content", 4)]
    usage = openai_usage(10, 3, reasoning=1)
    durations = {"ttft": told * MS, "e2e": 3_000 * MS}
    record = request_record("a", vantage="gateway", durations_ns=durations)
    lines = answer("a", 1_790_000_000 * NS, chunks, usage, model="m")
    (tmp_path / "client.jsonl").write_text("\n".join(lines) + "\n")
    (tmp_path / "gateway.jsonl").write_text(record + "\n")
    db = str(tmp_path / "case.duckdb")
    analyzer.ingest(db, [str(tmp_path / "client.jsonl"), str(tmp_path / "gateway.jsonl")])
    with engine_of(db) as engine:
        (row,) = engine.rows("SELECT reading FROM resolve_ttft WHERE vantage = 'gateway'")
    assert row["reading"] == reading

"""Who is whom: rows of several sources and vantages become one request, or stay apart."""

from __future__ import annotations

import json

import pytest
from helpers import case_of, engine_of

import analyzer

T = 1_790_000_000


@pytest.fixture
def joined(tmp_path):
    """Ingest one file of request records an argument; requests as (vantages, e2e ms, tokens)."""

    def join(*files):
        for i, records in enumerate(files):
            text = "".join(json.dumps(record) + "\n" for record in records)
            (tmp_path / f"{i}.jsonl").write_text(text)
        db = str(tmp_path / "case.duckdb")
        analyzer.ingest(db, [str(tmp_path / "*.jsonl")])
        with engine_of(db) as engine:
            rows = engine.rows(
                "SELECT r.vantages, s.e2e_ns, s.network_ns, r.output_tokens, s.contradiction "
                "FROM resolve_request AS r JOIN latency_segment AS s "
                "ON r.request_key = s.request_key ORDER BY r.start_ns, r.request_key"
            )
        assert not [row for row in rows if row["contradiction"]]
        return [
            (
                row["vantages"],
                None if row["e2e_ns"] is None else row["e2e_ns"] // 1_000_000,
                None if row["network_ns"] is None else row["network_ns"] // 1_000_000,
                row["output_tokens"],
            )
            for row in rows
        ]

    return join


def told(vantage, start, e2e, tokens=None, **more):
    record = {"request_id": "x", "vantage": vantage, "e2e_ms": e2e, **more}
    if start is not None:
        record["started_at"] = T + start
    if tokens is not None:
        record["usage"] = {"prompt_tokens": 9, "completion_tokens": tokens}
    return record


def test_a_quick_retry_under_the_same_id_is_a_request_of_its_own(joined):
    rows = joined([told("client", 0, 100, status=429), told("client", 0.6, 2_000, 50)])
    assert rows == [(1, 100, None, None), (1, 2_000, None, 50)]


def test_an_empty_id_is_none(joined):
    rows = joined([told("client", i, 100, request_id="") for i in range(3)])
    assert len(rows) == 3


def test_an_inner_row_joins_the_outer_one_with_its_tokens(joined):
    rows = joined(
        [told("client", 0, 5_000, 10), told("client", 1, 6_000, 20)],
        [told("engine", 1.1, 5_500, 20)],
    )
    assert rows == [(1, 5_000, None, 10), (2, 6_000, 500, 20)]


def test_attempts_join_in_turn_whatever_the_skew(joined):
    rows = joined(
        [told("client", 0, 900, attempt=1), told("client", 10, 900, attempt=2)],
        [told("engine", 12, 800), told("engine", 22, 850)],
    )
    assert rows == [(2, 900, 100, None), (2, 900, 50, None)]


def test_hedged_attempts_join_in_turn(joined):
    rows = joined(
        [told("client", 0, 3_000, attempt=1), told("client", 1, 2_500, attempt=2)],
        [told("engine", 1.5, 2_900), told("engine", 1.6, 2_400)],
    )
    assert [row[0] for row in rows] == [2, 2]


def test_records_of_one_id_from_several_files_complete_each_other(joined):
    rows = joined(
        [told("client", 0, 900)],
        [
            {
                "request_id": "x",
                "vantage": "client",
                "ttft_ms": 300,
                "usage": {"prompt_tokens": 5, "completion_tokens": 7},
            }
        ],
    )
    assert rows == [(1, 900, None, 7)]


def test_vantages_that_ask_under_ids_of_their_own_join_by_the_answers_id(joined):
    rows = joined(
        [told("client", 9 * i, 900, 50, request_id=f"c-{i}", response_id=f"a-{i}") for i in (0, 1)],
        [
            told("gateway", 9 * i + 0.02, 860, 50, request_id=f"g-{i}", response_id=f"a-{i}")
            for i in (0, 1)
        ],
    )
    assert rows == [(2, 900, 40, 50)] * 2


def test_an_id_that_a_third_vantage_knows_joins_before_the_answers_id(joined):
    rows = joined(
        [told("client", 0, 900, 50, request_id="c", response_id="a")],
        [told("gateway", 0.02, 860, 50, request_id="g", response_id="a")],
        [told("engine", 0.03, 800, 50, request_id="c")],
    )
    assert sorted(row[0] for row in rows) == [1, 2]


def test_two_runs_that_reuse_an_id_stay_apart_though_clocks_differ(joined):
    rows = joined(
        [told("client", 0, 900), told("client", 100, 900)],
        [told("engine", 5, 800), told("engine", 105, 850)],
    )
    assert rows == [(2, 900, 100, None), (2, 900, 50, None)]


def test_runs_of_one_vantage_at_other_times_stay_apart(joined):
    rows = joined(*[[told("engine", start, 900)] for start in (0, 500, 86_400)])
    assert rows == [(1, 900, None, None)] * 3


def test_an_id_reused_a_day_later_is_no_skew(joined):
    rows = joined([told("client", 0, 900)], [told("engine", 86_400, 800)])
    assert [row[0] for row in rows] == [1, 1]


def test_of_several_inner_attempts_the_one_that_ends_with_the_outer_request_answered(joined):
    rows = joined(
        [told("client", 0, 5_000)],
        [told("gateway", 0, 1_000, status=503), told("gateway", 1.2, 3_700, status=200)],
    )
    assert sorted(rows) == [(1, 1_000, None, None), (2, 5_000, 1_300, None)]


@pytest.mark.parametrize(
    ("client", "engine"),
    [
        ({"request_id": "abc"}, {"request_id": "chatcmpl-abc"}),
        ({"request_id": "abc"}, {"request_id": "cmpl-abc-0"}),
        ({"request_id": "mine", "response_id": "chatcmpl-xyz"}, {"request_id": "chatcmpl-xyz"}),
        ({"request_id": "mine", "response_id": "xyz"}, {"request_id": "chatcmpl-xyz"}),
    ],
)
def test_ids_that_engines_make_of_the_clients_join(joined, client, engine):
    rows = joined([told("client", 0, 900) | client], [told("engine", 0.01, 800) | engine])
    assert rows == [(2, 900, 100, None)]


def test_a_client_that_wrote_nothing_is_not_overruled_by_one_that_tells_lifetimes(tmp_path):
    of_client = {
        "input_tokens": 100, "cache_read_input_tokens": 5_000, "cache_creation_input_tokens": 0,
    }  # fmt: skip
    of_gateway = {
        "input_tokens": 1, "cache_read_input_tokens": 2, "cache_creation_input_tokens": 7,
        "cache_creation": {"ephemeral_5m_input_tokens": 7, "ephemeral_1h_input_tokens": 0},
    }  # fmt: skip
    for vantage, usage in (("client", of_client), ("gateway", of_gateway)):
        record = told(vantage, 0, 400) | {"usage": usage | {"output_tokens": 5}}
        (tmp_path / f"{vantage}.jsonl").write_text(json.dumps(record) + "\n")
    with engine_of(case_of(tmp_path, tmp_path / "case.duckdb")) as engine:
        rows = engine.rows("SELECT vantages, input_tokens FROM resolve_request")
    assert rows == [{"vantages": 2, "input_tokens": 5_100}]


def test_one_source_is_believed_for_the_whole_prompt(tmp_path):
    """The client knows no lifetimes, and counts otherwise than the gateway that does."""
    of_client = {
        "input_tokens": 10, "cache_read_input_tokens": 2_000, "cache_creation_input_tokens": 900,
        "output_tokens": 5,
    }  # fmt: skip
    of_gateway = of_client | {
        "cache_creation_input_tokens": 800,
        "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 800},
    }
    for name, vantage, usage, tier in (
        ("a.jsonl", "client", of_client, "standard"), ("b.jsonl", "gateway", of_gateway, "fast"),
    ):  # fmt: skip
        record = told(vantage, 0, 400) | {
            "usage": usage, "service_tier": tier, "model": "m", "session_id": "s",
            "started_at": "2026-04-01T10:00:00Z",
        }  # fmt: skip
        (tmp_path / name).write_text(json.dumps(record) + "\n")
    with engine_of(case_of(tmp_path, tmp_path / "case.duckdb")) as engine:
        (row,) = engine.rows(
            "SELECT q.vantages, q.input_tokens, q.cache_write_tokens, q.service_tier, v.tier, "
            "v.write_short_tokens, v.write_long_tokens, v.write_unknown_tokens "
            "FROM resolve_request AS q "
            "JOIN resolve_conversation AS v ON q.request_key = v.request_key"
        )
    assert row == {
        "vantages": 2, "input_tokens": 10 + 2_000 + 800, "cache_write_tokens": 800,
        "service_tier": "fast", "tier": "fast", "write_short_tokens": 0,
        "write_long_tokens": 800, "write_unknown_tokens": 0,
    }  # fmt: skip

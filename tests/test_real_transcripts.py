"""Real and published Claude Code transcripts: what a correct tool concludes from each."""

from __future__ import annotations

import json

import pytest
from helpers import case_of, check_verdict, engine_of
from shared import SHARED, needs_shared
from test_readers import READERS, read, rows_of, totals

import analyzer
from analyzer.readers._file import InputFile
from analyzer.readers._find import pick

pytestmark = needs_shared
AGENTS = SHARED / "traces" / "3-agents"
VIEWER = AGENTS / "d-kimuson__claude-code-viewer"
SAMPLES = SHARED / "formats" / "samples" / "clients" / "agents"
READER = READERS["claude_code"]
MAIN = VIEWER / "5c0375b4-57a5-4f26-b12d-d022ee4e51b7.jsonl"
SMALL = VIEWER / "1af7fc5e-8455-4414-9ccd-011d40f70b2a.jsonl"
OURS = [
    *VIEWER.glob("*.jsonl"),
    *(AGENTS / "jazzyalex__agent-sessions").glob("claude~*.jsonl"),
    *(AGENTS / "jazzyalex__agent-sessions").glob("subagent*.jsonl"),
    AGENTS / "mag123c__toktrack" / "claude-sample.jsonl",
    *(AGENTS / "ryoppippi__ccusage").glob("session-*.jsonl"),
    AGENTS / "ryoppippi__ccusage" / "test~test-transcript.jsonl",
    *SAMPLES.glob("claude_*.jsonl"),
    *(SHARED / "scenarios").glob("A13/*/*.jsonl"),
    *(SHARED / "scenarios").glob("A13/*/subagents/*.jsonl"),
]
OTHERS = [
    *AGENTS.glob("*/*codex*.jsonl"), *AGENTS.glob("*/*rollout*.jsonl"),
    *AGENTS.glob("*/copilot*.jsonl"), *AGENTS.glob("*/qwen*.jsonl"), *AGENTS.glob("*/kimi*.jsonl"),
    *AGENTS.glob("*/*.ndjson"), *AGENTS.glob("LMCache*/*.jsonl"), *AGENTS.glob("kenn-io*/*.jsonl"),
    *AGENTS.glob("langchain*/*.jsonl"), *SAMPLES.glob("codex*.jsonl"), *SAMPLES.glob("pi_*.jsonl"),
]  # fmt: skip


def rows(path):
    return [row for table, row in rows_of(read(READER, path)) if table == "request"]


def answers(path):
    return [row for row in rows(path) if row.get("usage_records")]


def total(some, *names):
    return sum(row.get(name) or 0 for row in some for name in names)


@pytest.mark.parametrize("path", OURS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_they_are_recognised(path):
    assert pick(InputFile(path, path.name).head).reader.name == "claude_code"


@pytest.mark.parametrize("path", OTHERS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_those_of_other_agents_are_not(path):
    assert not READER.probe(InputFile(path, path.name).head).sure


def test_a_session_with_side_chains():
    told = answers(MAIN)
    assert len(told) == 20
    assert total(told, "usage_records") == 28
    assert sum(row["is_sidechain"] for row in told) == 10
    assert total(told, "cache_read_tokens") == 324_259
    naive = sum(row["cache_read_tokens"] * row["usage_records"] for row in told)
    assert naive == 432_358
    names = ("cache_write_short_tokens", "cache_write_long_tokens", "cache_write_unknown_tokens")
    written = total(told, *names)
    prompt = total(told, "input_fresh_tokens", "cache_read_tokens") + written
    assert total(told, "cache_read_tokens") / prompt == pytest.approx(0.871, abs=5e-4)
    assert written / prompt == pytest.approx(0.128, abs=5e-4)
    main = [row for row in told if not row["is_sidechain"]]
    prompts = [total([row], "input_fresh_tokens", "cache_read_tokens", *names) for row in main]
    assert (prompts[0], prompts[-1]) == (18_768, 26_080)
    assert [row["turn"] for row in main] == list(range(1, 11))
    sides = {row["session_id"] for row in told if row["is_sidechain"]}
    assert len(sides) == 2  # two sub-agents, each with a conversation of its own
    assert {row["parent_session_id"] for row in told if row["is_sidechain"]} == {MAIN.stem}


def test_a_session_whose_lines_grow():
    told = answers(SMALL)
    assert len(told) == 7
    assert total(told, "usage_records") == 15
    assert total(told, "cache_read_tokens") == 103_219
    assert sum(row["cache_read_tokens"] * row["usage_records"] for row in told) == 218_393
    assert [row["output_visible_tokens"] for row in told] == [322, 285, 146, 41, 1, 86, 72]
    shares = [
        row["cache_read_tokens"] / total([row], "input_fresh_tokens", "cache_read_tokens",
            "cache_write_short_tokens", "cache_write_long_tokens", "cache_write_unknown_tokens")
        for row in told
    ]  # fmt: skip
    assert shares[0] == pytest.approx(0.30, abs=0.01)
    assert all(0.965 <= share <= 0.995 for share in shares[1:])
    # From the line that was answered to the answer's last line.
    assert told[0]["e2e_ns"] == 5_359_000_000
    assert "ttft_ns" not in told[0]


def test_an_invalid_line_costs_itself():
    batches = read(READER, AGENTS / "mag123c__toktrack" / "claude-sample.jsonl")
    assert [problem.record for batch in batches for problem in batch.problems] == [3]
    told = [row for table, row in rows_of(batches) if table == "request"]
    assert [row["output_visible_tokens"] for row in told] == [50, 200, 75]  # none is synthetic
    assert str(told[1]["reported_cost_usd"]) == "0.025000000"


def test_issues_made_into_one_file():
    path = SAMPLES / "claude_streaming_duplicates_from_issues.jsonl"
    (row,) = rows(path)
    assert row["output_visible_tokens"] == 159
    assert row["cache_write_long_tokens"] == 8_655
    assert row["is_sidechain"] is False
    ignored = totals(read(READER, path))[2]
    assert ignored["copy of an answer that was read before"] == 1
    assert ignored["written by the program itself, not by a model"] == 1


def test_odd_lines_are_problems_and_the_rest_is_read():
    batches = read(READER, SAMPLES / "claude_edge_cases.jsonl")
    assert len([row for table, row in rows_of(batches) if table == "request"]) == 4
    assert sum(len(batch.problems) for batch in batches) == 4  # three that are no object, "silly"


def test_fixtures_of_newer_versions_are_read_without_a_problem():
    for path in (AGENTS / "jazzyalex__agent-sessions").glob("claude~*.jsonl"):
        reasons = {p.reason for batch in read(READER, path) for p in batch.problems}
        # Their times were replaced by a word.
        assert all("timestamp" in reason for reason in reasons), reasons


def test_real_files_together_count_once(tmp_path):
    db = case_of(VIEWER, tmp_path / "case.duckdb")
    with engine_of(db) as engine:
        assert engine.value("SELECT count(*) FROM resolve_request") == 20 + 7 + 1


# -- the messy log --------------------------------------------------------------------------------

MESSY = SHARED / "scenarios" / "A13"


def test_one_bill_out_of_a_messy_log(tmp_path):
    db = case_of(MESSY / "main", tmp_path / "case.duckdb")
    with engine_of(db) as engine:
        (told,) = engine.rows(
            "SELECT count(*) AS n, sum(output_tokens) AS made FROM resolve_request"
        )
        assert (told["n"], told["made"]) == (70, 24_000)
        day = engine.rows(  # 15:00 UTC is midnight in UTC+9
            "SELECT count(*) AS n, sum(c.usd) AS usd FROM cost_repeat AS c "
            "JOIN resolve_request AS r ON c.request_key = r.request_key WHERE NOT c.is_sidechain "
            "AND r.start_ns >= 1785596400000000000"
        )[0]
        assert (day["n"], float(day["usd"])) == (10, pytest.approx(0.4984))
    check_verdict(
        db,
        {"rule": "trust.duplicate-usage", "segment": "none", "requests": 70, "tolerance": 1e-6,
         "magnitude": {"value": 11_112_270 / 3_604_700, "unit": "times"},
         "must_not": ["cost.hidden-attempts", "queue.rate-limited", "errors.rate"]},
    )  # fmt: skip
    found = {one.rule: one for one in analyzer.findings(db).found}["trust.duplicate-usage"]
    told = {one.label: one.value for one in found.evidence}
    expected = {
        "Cost, each answer once, by the price files": 2.1542,
        "Wrong: all lines": 6.017,
        "Wrong: the first line of an answer wins": 1.756,
        "Wrong: long-lived cache writes at the price of short-lived ones": 2.004,
        "Wrong: without sub-agents": 2.092,
        "Wrong: lines without the vendor's request id not joined": 2.933,
    }
    assert {label: told[label] for label in expected} == pytest.approx(expected, abs=5e-4)


def test_pairs_that_are_merely_alike(tmp_path):
    db = case_of(MESSY / "twin", tmp_path / "case.duckdb")
    with engine_of(db) as engine:
        (told,) = engine.rows("SELECT count(*) AS n, sum(usd) AS usd FROM cost_repeat")
    assert (told["n"], str(told["usd"])) == (10, "0.328400000000000")
    check_verdict(db, {"must_not": ["trust.duplicate-usage"]})
    assert "trust.duplicate-usage" in {one.rule for one in analyzer.findings(db).clear}


@pytest.mark.parametrize(
    ("name", "calls", "read_tokens", "written"),
    [
        # Calls 2 to 30 read 7,552 and write 20,000 + 1,000 (k - 1).
        ("A9/main", 30, 29 * 7_552, 27_552 + 29 * 20_000 + 1_000 * sum(range(1, 30))),
        ("A10/main", 40, None, None),
        ("A10/twin", 40, None, None),
    ],
)
def test_other_scenarios_are_read_whole(name, calls, read_tokens, written):
    told = answers(SHARED / "scenarios" / name / "transcript.jsonl")
    assert len(told) == calls
    if read_tokens is not None:
        assert total(told, "cache_read_tokens") == read_tokens
        assert total(told, "cache_write_short_tokens") == written
    lines = (SHARED / "scenarios" / name / "transcript.jsonl").read_text().splitlines()
    plain = [json.loads(one)["message"]["usage"] for one in lines]
    assert total(told, "output_visible_tokens") == sum(one["output_tokens"] for one in plain)

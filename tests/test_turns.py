"""``analyze turns``: conversations, one of them call by call, and why caches were missed."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest
from click.testing import CliRunner
from helpers import case_of, engine_of

from analyzer import api
from analyzer.cli import cli
from analyzer.contract.outputs import OUTPUTS
from analyzer.contract.types import Filters
from analyzer.errors import AnalyzerError

ODD = "it's <b>\x1b[31m"
T0 = 1_790_000_000
PRICES = {
    "unit": "per_million_tokens",
    "models": {
        "finch-2": {"input": 2, "cache_read": 0.2, "cache_write_short": 2.5, "output": 10},
    },
}


def call(session, k, at, tokens, **more):
    """One request record; ``tokens`` = read, written and fresh prompt, and output."""
    read, written, fresh, output = tokens
    return {
        "request_id": f"{session}-{k}", "vantage": "client", "session_id": session, "turn": k,
        "model": "finch-2", "started_at": T0 + at, "e2e_ms": 4000,
        "usage": {
            "input_tokens": fresh, "cache_read_input_tokens": read,
            "cache_creation_input_tokens": written, "output_tokens": output,
            "cache_creation": {
                "ephemeral_5m_input_tokens": written, "ephemeral_1h_input_tokens": 0,
            },
        },
    } | more  # fmt: skip


CALLS = [
    # Grows by 1,000 a call; the third comes after 400 s and reads nothing.
    call("loom", 1, 0, (0, 20_000, 10, 100)),
    call("loom", 2, 60, (20_000, 1_000, 10, 100)),
    call("loom", 3, 460, (0, 22_000, 10, 100)),
    call("loom", 4, 500, (22_000, 1_000, 10, 100)),
    call("loom/a", 1, 510, (0, 5_000, 10, 50), parent_session_id="loom", is_sidechain=True),
    call(ODD, 1, 1000, (0, 3_000, 10, 20)),
]


@pytest.fixture(scope="module")
def db(tmp_path_factory):
    folder = tmp_path_factory.mktemp("turns")
    logs = folder / "logs"
    logs.mkdir()
    (logs / "calls.jsonl").write_text("".join(json.dumps(one) + "\n" for one in CALLS))
    (logs / "prices.json").write_text(json.dumps(PRICES))
    return case_of(logs, folder / "case.duckdb")


def run(db, *args, width=80):
    return CliRunner(env={"COLUMNS": str(width), "NO_COLOR": "1"}).invoke(
        cli, ["--db", db, "turns", *args]
    )


def test_conversations_add_up(db):
    told = api.turns(db)
    assert [row["session"] for row in told.rows] == ["loom", ODD]
    loom, odd = told.rows
    assert set(loom) == set(OUTPUTS["analyze.turns"].names)
    assert (loom["calls"], loom["threads"], loom["known"]) == (5, 2, "told")
    assert (loom["first_tokens"], loom["last_tokens"], loom["max_tokens"]) == (
        20_010, 23_010, 23_010,
    )  # fmt: skip
    assert loom["input_tokens"] == 20_010 + 21_010 + 22_010 + 23_010 + 5_010
    assert loom["growth_tokens"] == 1_000
    assert (loom["lost_tokens"], loom["losses"], loom["reason"]) == (21_000, 1, "expired")
    assert loom["read_ratio"] == pytest.approx(42_000 / 91_050)
    assert loom["could_ratio"] == pytest.approx(63_000 / 91_050)
    # 50 fresh at 2, 42,000 read at 0.2, 49,000 written at 2.5, 450 out at 10, a million each.
    assert loom["cost_usd"] == Decimal("0.1355")
    assert loom["lost_usd"] == Decimal("0.0483")
    # What is neither lost (0.0483) nor read (0.0084) nor answered (0.0045) is new text.
    assert (loom["part"], loom["part_ratio"]) == ("new", pytest.approx(0.0743 / 0.1355, rel=1e-3))
    assert (odd["calls"], odd["lost_tokens"], odd["lost_usd"]) == (1, 0, None)


def test_one_conversation_has_its_agents_calls_too(db):
    rows = api.turns(db, Filters(session="loom")).rows
    assert [(row["thread"], row["nth"]) for row in rows] == [
        ("loom", 1), ("loom", 2), ("loom", 3), ("loom", 4), ("loom/a", 1),
    ]  # fmt: skip
    assert set(rows[0]) == set(OUTPUTS["analyze.turns.calls"].names)
    lost = rows[2]
    assert (lost["reason"], lost["confidence"], lost["lost_tokens"]) == (
        "expired", "derived", 21_000,
    )  # fmt: skip
    assert lost["idle_ns"] == (460 - 60 - 4) * 10**9
    assert [row["event"] for row in rows] == ["first", None, None, None, "agent"]
    assert [row["thread"] for row in api.turns(db, Filters(session="loom/a")).rows] == ["loom/a"]


def test_reasons_are_summed(db):
    (row,) = api.turns(db, reasons=True).rows
    assert (row["reason"], row["calls"], row["sessions"], row["lost_tokens"]) == (
        "expired", 1, 1, 21_000,
    )  # fmt: skip
    assert row["share"] == pytest.approx(21_000 / (91_050 + 3_010))
    assert row["lost_usd"] == Decimal("0.0483")


@pytest.mark.parametrize("width", [80, 160])
def test_the_terminal_shows_each_in_a_line(db, width):
    shown = run(db, "--session", "loom", width=width).stdout
    assert "lost 21 k: expired" in shown
    assert "a sub-agent begins" in shown
    lines = shown.splitlines()
    assert max(map(len, lines)) <= width
    assert sum("what happened" in line for line in lines) == 1, "one table, not split"
    listed = run(db, width=width).stdout
    assert "21 k expired" in listed
    assert "55 % new text" in listed
    assert "\x1b" not in listed


def test_a_name_is_never_sql_or_a_terminal_command(db):
    assert run(db, "--session", ODD).exit_code == 0
    assert "\x1b" not in run(db, "--session", ODD).stdout
    done = run(db, "--session", "x' OR '1'='1")
    assert done.exit_code == 2
    assert "no session" in done.stderr


def test_an_unknown_session_says_what_is_near(db):
    with pytest.raises(AnalyzerError, match="did you mean loom"):
        api.turns(db, Filters(session="lom"))


def test_the_list_is_cut_and_says_so(db):
    told = api.turns(db, top=1)
    assert [row["session"] for row in told.rows] == ["loom"]
    assert "The first 1 of 2 sessions; --top 0 lists all." in told.notes
    assert len(api.turns(db, top=0).rows) == 2


def test_a_long_conversation_is_cut_to_its_ends_and_what_happened(tmp_path):
    calls = [
        call("long", k, 10 * k, (20_000 + 100 * (k - 1) if k > 1 else 0, 100, 10, 5))
        for k in range(1, 201)
    ]
    calls[99] |= call("long", 100, 1000, (0, 30_000, 10, 5))
    (tmp_path / "calls.jsonl").write_text("".join(json.dumps(one) + "\n" for one in calls))
    db = case_of(tmp_path / "calls.jsonl", tmp_path / "case.duckdb")
    shown = run(db, "--session", "long").stdout
    told = [line.split()[0] for line in shown.splitlines() if line.strip()[:1].isdigit()]
    assert {"1", "10", "100", "191", "200"} <= set(told)
    assert "50" not in told
    assert [line.split() for line in shown.splitlines() if line.strip().startswith("…")] == [
        ["…", "89", "calls"], ["…", "90", "calls"],
    ]  # fmt: skip
    assert "left out; -f csv has every one" in shown
    assert len(run(db, "--session", "long", "-f", "csv").stdout.splitlines()) == 201


@pytest.mark.parametrize("width", [80, 100])
def test_a_long_conversation_with_agents_is_one_table(tmp_path, width):
    calls = []
    for k in range(1, 121):
        read = 0 if k in (1, 70) else 15_000 + 500 * (k - 2)
        written = 15_000 + 500 * (k - 1) - read
        tools = {"tools_count": 12 if k < 70 else 14, "tools_chars": 11_000 if k < 70 else 12_600}
        calls.append(call("mend-the-build-3f9a", k, 30 * k, (read, written, 10, 90), **tools))
        if k % 30 == 5:
            calls += [
                call(
                    f"mend-the-build-3f9a/explore-{k}", a, 30 * k + 2 * a,
                    (0, 6_000, 10, 40) if a == 1 else (6_000, 400, 10, 40),
                    parent_session_id="mend-the-build-3f9a", is_sidechain=True,
                )
                for a in range(1, 9)
            ]  # fmt: skip
    (tmp_path / "calls.jsonl").write_text("".join(json.dumps(one) + "\n" for one in calls))
    (tmp_path / "prices.json").write_text(json.dumps(PRICES))
    db = case_of(tmp_path, tmp_path / "case.duckdb")
    shown = run(db, "--session", "mend-the-build-3f9a", width=width).stdout
    lines = shown.splitlines()
    assert max(map(len, lines)) <= width
    assert sum("what happened" in line for line in lines) == 1, "one table, not split"
    # 6,000 written at 2.5, 7 times 400 too; 42,000 read at 0.2; 80 fresh at 2; 320 out at 10.
    assert shown.count("a sub-agent begins: 8 calls, $0.0338") == 4
    assert "lost 49 k: prompt changed (tools)" in shown
    assert "mend-the-build-3f9a" not in shown, "its name on every line tells nothing"


def test_without_prompt_tokens_it_says_what_to_log(tmp_path):
    bare = {"request_id": "r-1", "started_at": T0, "e2e_ms": 10, "session_id": "s"}
    (tmp_path / "calls.jsonl").write_text(json.dumps(bare) + "\n")
    db = case_of(tmp_path / "calls.jsonl", tmp_path / "case.duckdb")
    assert "log usage" in run(db).stdout.replace("\n", " ")


SPLITS = {
    "short": lambda written: {
        "cache_creation": {"ephemeral_5m_input_tokens": written, "ephemeral_1h_input_tokens": 0}
    },
    "long": lambda written: {
        "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": written}
    },
    "untold": lambda written: {"cache_creation": None},
}


@pytest.mark.parametrize("prices", ["short", "none"])
@pytest.mark.parametrize("split", SPLITS)
def test_a_write_has_one_price_or_none(split, prices, tmp_path):
    """Of unknown lifetime it costs what a short one does; a price that is missing is no other's."""
    told = [
        call("loom", 1, 0, (0, 20_000, 10, 100)),
        call("loom", 2, 4_000, (0, 21_000, 10, 100)),
        call("lone", 1, 10, (0, 8_000, 10, 20)),
        call("late", 1, 20_000, (0, 0, 900, 20)),
    ]
    for one in told:
        usage = one["usage"]
        usage |= SPLITS[split](usage["cache_creation_input_tokens"])
        one["usage"] = {name: value for name, value in usage.items() if value is not None}
    book = json.loads(json.dumps(PRICES))
    if prices == "none":
        del book["models"]["finch-2"]["cache_write_short"]
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "calls.jsonl").write_text("".join(json.dumps(one) + "\n" for one in told))
    (tmp_path / "logs" / "prices.json").write_text(json.dumps(book))
    with engine_of(case_of(tmp_path / "logs", tmp_path / "case.duckdb")) as engine:
        (lost,) = engine.rows(
            "SELECT rewritten_tokens AS n, excess_usd AS usd FROM turns_loss_cost"
        )
        unread = {
            row["n"]: row["usd"]
            for row in engine.rows("SELECT unused_tokens AS n, fee_usd AS usd FROM turns_unused")
        }
        writes = engine.rows("SELECT write_usd AS usd, unpriced_tokens AS n FROM cost_request")
    assert lost["n"] == 20_000
    if split != "long" and prices == "short":
        assert lost["usd"] == Decimal("20000") * (Decimal("2.5") - Decimal("0.2")) / 1_000_000
        assert unread[8_000] == Decimal("8000") * (Decimal("2.5") - 2) / 1_000_000
        assert all(row["n"] == 0 for row in writes)
    else:
        assert lost["usd"] is None
        assert unread[8_000] is None
        assert sorted(row["n"] for row in writes) == [0, 8_000, 20_000, 21_000]

"""Conversations, caches and costs of real files: what the analyses make of them."""

from __future__ import annotations

import json
from collections import Counter
from decimal import Decimal

import pytest
from helpers import case_of, engine_of
from shared import SHARED, needs_shared
from test_real_agent_traces import AGENTS, KV, near
from test_real_bills import FOCUS
from test_real_cursor import AUTO

from analyzer import api

pytestmark = needs_shared

MOONCAKE = SHARED / "traces/1-workload/kvcache-ai__Mooncake/conversation_trace.jsonl"
VIEWER = AGENTS / "d-kimuson__claude-code-viewer"
NS = 1_000_000_000


def rows_of(db, sql):
    with engine_of(db) as engine:
        return engine.rows(sql)


# -- Mooncake -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def mooncake(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mooncake")
    logs = folder / "logs"
    logs.mkdir()
    (logs / MOONCAKE.name).symlink_to(MOONCAKE)
    return case_of(logs, folder / "mooncake.duckdb")


def test_mooncake_ideal_cache(mooncake):
    (row,) = rows_of(
        mooncake,
        "SELECT count(*) AS n, sum(q.input_tokens) AS input, sum(s.seen_tokens) AS seen, "
        "sum(s.short_tokens) AS short, sum(s.seen_tokens - s.seen_tokens % 512) AS whole, "
        "sum(least(greatest(ceil(s.seen_tokens / 512) - 1, 0) * 512, q.input_tokens)) AS beyond, "
        "sum(greatest(s.seen_tokens - s.common_tokens, 0)) AS beyond_tokens, "
        "min(s.common_tokens) AS common_low, max(s.common_tokens) AS common_high, "
        "count(*) FILTER (s.seen_tokens = q.input_tokens) AS full_hits, "
        "median(s.seen_tokens / q.input_tokens) AS middle "
        "FROM turns_seen AS s JOIN resolve_request AS q ON s.request_key = q.request_key",
    )

    def percent(name):
        return 100 * row[name] / row["input"]

    assert (row["n"], row["full_hits"]) == (12_031, 118)
    assert percent("seen") == near(37.36, 2)
    assert percent("whole") == near(37.34, 2)
    assert percent("short") == near(29.34, 2)
    # One block of 512 tokens is everybody's. In blocks, the rest is 33.13 %; in tokens 33.11 %, for
    # the last block of the 118 that were all seen is not a full one.
    assert row["common_low"] == row["common_high"] == 512
    assert percent("beyond") == near(33.13, 2)
    assert percent("beyond_tokens") == near(33.11, 2)
    assert 100 * row["middle"] == near(36.3, 1)


def _stitched(requests):
    """Sizes of the sessions, by the rule of the analysis, one request after the other.

    A request continues the latest one all whose blocks but the last it repeats, and is longer. The
    first to continue it goes on with its session, a second begins one of its own.
    """
    uses = Counter(name for one in requests for name in one["hash_ids"])
    common = {name for name, count in uses.items() if count > 0.01 * len(requests)}
    ended, session, continued, sizes = {}, {}, set(), Counter()
    for i, one in enumerate(requests):
        names = one["hash_ids"]
        known = [name for name in names if name in ended and name not in common]
        before = ended[known[-1]] if known else None
        if before is not None and one["input_length"] <= requests[before]["input_length"]:
            before = None
        if before is None or before in continued:
            session[i] = i
        else:
            session[i] = session[before]
            continued.add(before)
        sizes[session[i]] += 1
        if len(names) > 1:
            ended[names[-2]] = i
    return sizes.values()


def test_mooncake_sessions(mooncake):
    (got,) = rows_of(
        mooncake,
        "WITH t AS (SELECT thread, count(*) AS n FROM turns_thread GROUP BY thread) "
        "SELECT count(*) AS threads, count(*) FILTER (n > 1) AS several, max(n) AS longest FROM t",
    )
    sizes = _stitched([json.loads(line) for line in MOONCAKE.read_text().splitlines()])
    assert (got["threads"], got["several"], got["longest"]) == (8_197, 2_008, 43)
    assert (len(sizes), sum(n > 1 for n in sizes), max(sizes)) == (8_197, 2_008, 43)
    # Others count 8,201 and 2,007: the rule leaves open whose a second continuation of one request
    # is. A session of its own (as here), its first one's, or the next best request's: 8,197, 8,124
    # and 8,190. The longest has 43 turns each time.
    assert got["threads"] == pytest.approx(8_201, rel=0.001)
    assert got["several"] == pytest.approx(2_007, rel=0.001)


def test_mooncake_growth(mooncake):
    rows = rows_of(
        mooncake,
        "WITH c AS (SELECT nth, input_tokens, first_value(input_tokens) OVER (PARTITION BY thread "
        "ORDER BY nth) AS first_tokens FROM turns_call) SELECT nth, count(*) AS n, "
        "median(input_tokens / first_tokens) AS growth FROM c WHERE nth <= 8 GROUP BY nth "
        "ORDER BY nth",
    )
    growth = {row["nth"]: row["growth"] for row in rows}
    assert [growth[nth] for nth in (2, 4, 5, 8)] == [
        near(told, 2) for told in (1.12, 1.25, 1.33, 1.74)
    ]
    assert rows[0]["n"] == 8_197


def test_mooncake_notes(mooncake):
    notes = " ".join(api.turns(mooncake, top=1).notes)
    assert "37.36 %" in notes
    assert "29.34 %" in notes
    assert "have no session id and were joined" in notes
    assert "No call tells what it read from a cache" in notes


# -- kv-cache-tester ------------------------------------------------------------------------------

# Within five minutes of its own last use, of each block.
KV_SHORT = {
    "0024": 93.0, "0032": 66.0, "0091": 89.8, "0105": 87.2, "0176": 94.8, "0277": 69.7,
    "0334": 93.3, "0440": 49.9, "0455": 96.4, "0492": 95.4, "0497": 90.4, "0532": 84.4,
    "0536": 49.9, "0544": 97.4, "0556": 93.5, "0667": 57.7,
}  # fmt: skip
# Within five minutes of the previous request: more in two traces that go from one prompt to another
# and back, where a block's last use is longer ago than the last request.
KV_SHORT_OF_REQUEST = KV_SHORT | {"0497": 91.8, "0532": 84.5}
# Turn, prompt before and after, idle seconds before it.
KV_DROPS = {
    "0024": ((25, 82_782, 83_637, 77_590), (50, 150_030, 60_882, 133)),
    "0176": ((2, 29_914, 30_982, 7), (31, 163_528, 33_102, 145), (74, 152_316, 39_365, 165)),
    "0334": ((2, 11_940, 31_230, 2_040), (11, 92_598, 35_726, 1_151)),
    "0492": ((2, 10_972, 40_393, 3_231),),
    "0497": (
        (34, 56_256, 10_451, 45), (107, 42_320, 132_288, 1_826), (118, 140_858, 54_183, 395),
        (123, 60_420, 142_616, 7), (125, 143_071, 144_010, 220), (136, 150_471, 162_912, 394),
    ),
    "0532": (
        (2, 13_844, 16_740, 2_181), (100, 23_256, 97_722, 581), (108, 103_780, 342_987, 17),
        (113, 349_259, 254_818, 2_125),
    ),
    "0544": ((4, 14_549, 38_706, 5),),
    "0556": ((33, 30_990, 78_995, 3_349),),
}  # fmt: skip


@pytest.fixture(scope="module")
def kv(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kv")
    logs = folder / "logs"
    logs.mkdir()
    for path in (AGENTS / "callanjfox__kv-cache-tester").glob("trace_*.json"):
        (logs / path.name).symlink_to(path)
    db = case_of(logs, folder / "kv.duckdb")
    calls = {}
    for row in rows_of(
        db,
        "SELECT c.*, coalesce(m.same_tokens, 0) AS same_tokens, s.seen_tokens, s.short_tokens "
        "FROM turns_call AS c LEFT JOIN turns_same AS m ON c.request_key = m.request_key "
        "LEFT JOIN turns_seen AS s ON c.request_key = s.request_key "
        "ORDER BY c.session, c.thread, c.nth",
    ):
        calls.setdefault(row["session"].removeprefix("trace_"), []).append(row)
    return calls


def test_kv_sessions(kv):
    assert kv.keys() == KV.keys()
    for name, calls in kv.items():
        n, nested, agents, total, first, last, most, *_ = KV[name]
        main = [row for row in calls if not row["is_agent"]]
        prompts = [row["input_tokens"] for row in main]
        assert (len(prompts), sum(prompts)) == (n, total)
        assert (prompts[0], prompts[-1], max(prompts)) == (first, last, most)
        assert (len(calls) - n, len({row["thread"] for row in calls}) - 1) == (nested, agents)
        assert {row["known"] for row in calls} == {"told"}


def test_kv_ideal_cache(kv):
    for name, calls in kv.items():
        main = [row for row in calls if not row["is_agent"]]
        total = sum(row["input_tokens"] for row in main)
        *_, previous, seen, _, _ = KV[name]
        for told, column in (
            (previous, "same_tokens"), (seen, "seen_tokens"), (KV_SHORT[name], "short_tokens"),
        ):  # fmt: skip
            got = 100 * sum(row[column] for row in main) / total
            assert got == pytest.approx(told, abs=0.06), (name, column)


def test_kv_lifetime_of_a_block_and_of_a_request_differ_where_prompts_alternate(kv):
    for name, calls in kv.items():
        main = [row for row in calls if not row["is_agent"]]
        kept = sum(
            row["seen_tokens"]
            for row in main
            if row["idle_ns"] is not None and row["idle_ns"] < 300 * NS
        )
        got = 100 * kept / sum(row["input_tokens"] for row in main)
        assert got == pytest.approx(KV_SHORT_OF_REQUEST[name], abs=0.06), name


def test_kv_drops(kv):
    for name, calls in kv.items():
        main = [row for row in calls if not row["is_agent"]]
        ratio = [row["same_tokens"] / row["input_tokens"] for row in main]
        found = tuple(
            (row["nth"], row["last_input_tokens"], row["input_tokens"])
            for i, row in enumerate(main)
            if i and ratio[i] < 0.5 and (i == 1 or ratio[i - 1] >= 0.8)
        )
        told = KV_DROPS.get(name, ())
        assert found == tuple(one[:3] for one in told), name
        for turn, *_, gap in told:
            # Their gap is from end to start, too; a request without a duration ends as it starts.
            assert main[turn - 1]["idle_ns"] / NS == pytest.approx(gap, abs=1.01), (name, turn)


def test_kv_events(kv):
    event = {
        (name, row["nth"]): row["event"]
        for name, calls in kv.items()
        for row in calls
        if not row["is_agent"]
    }
    # The same model, a much smaller prompt.
    for one in (("0024", 50), ("0176", 31), ("0176", 74), ("0334", 11)):
        assert event[one] == "compaction", one
    # A small helper's request, then the real one, of another model.
    assert event["0334", 2] == "model switch"
    assert all(event[name, 1] == "first" for name in KV)


# -- Claude Code ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "calls", "naive", "read", "share", "prompts", "agents"),
    [
        ("5c0375b4-57a5-4f26-b12d-d022ee4e51b7", 20, 432_358, 324_259, 0.871, (18_768, 26_080), 10),
        ("1af7fc5e-8455-4414-9ccd-011d40f70b2a", 7, 218_393, 103_219, 0.890, (15_553, 17_437), 0),
    ],
)
def test_claude_code_counts_an_answer_once(
    name, calls, naive, read, share, prompts, agents, tmp_path
):
    db = case_of(VIEWER / f"{name}.jsonl", tmp_path / "cc.duckdb")
    rows = rows_of(db, "SELECT * FROM turns_call ORDER BY thread, nth")
    (told,) = rows_of(db, "SELECT sum(cache_read_tokens * usage_records) AS naive FROM request")
    assert (len(rows), sum(row["is_agent"] for row in rows)) == (calls, agents)
    assert (told["naive"], sum(row["read_tokens"] for row in rows)) == (naive, read)
    assert read / sum(row["input_tokens"] for row in rows) == near(share, 3)
    main = [row["input_tokens"] for row in rows if not row["is_agent"]]
    assert (main[0], main[-1]) == prompts
    (session,) = rows_of(db, "SELECT * FROM turns_conversation")
    assert (session["calls"], session["agent_calls"], session["read_tokens"]) == (
        calls, agents, read,
    )  # fmt: skip
    (cost,) = rows_of(
        db, "SELECT sum(usd) AS usd, bool_and(is_subscription) AS plan FROM cost_request"
    )
    # 3, 0.30, 3.75 and 15 dollars a million; a plan may include it.
    fresh, wrote, out = (
        sum(row[column] for row in rows)
        for column in ("fresh_tokens", "write_tokens", "output_tokens")
    )
    due = Decimal(fresh * 3 + out * 15) + Decimal(read * 30 + wrote * 375) / 100
    assert (cost["usd"], cost["plan"]) == (due / 1_000_000, True)


# -- OpenHands and SWE-agent ----------------------------------------------------------------------


def test_openhands_sends_six_prompts_and_reads_none_of_them_again(tmp_path):
    db = case_of(AGENTS / "OpenHands__software-agent-sdk", tmp_path / "oh.duckdb")
    rows = rows_of(
        db,
        "SELECT c.*, k.usd, k.reported_usd, n.seen_tokens FROM turns_call AS c "
        "JOIN cost_request AS k ON c.request_key = k.request_key "
        "LEFT JOIN turns_same AS m ON c.request_key = m.request_key "
        "LEFT JOIN turns_seen AS n ON c.request_key = n.request_key ORDER BY c.nth",
    )
    assert len({row["thread"] for row in rows}) == 1  # no id; each repeats the one before
    assert [row["read_tokens"] for row in rows] == [0] * 6
    prompts = [row["input_tokens"] for row in rows]
    assert (prompts[0], prompts[-1]) == (4_812, 6_729)
    assert prompts[-1] / prompts[0] == near(1.40, 2)
    assert sum(row["reported_usd"] for row in rows) == Decimal("0.118344")
    assert sum(row["usd"] for row in rows) == Decimal("0.118344")  # and so says the price list
    assert (float(rows[0]["usd"]), float(rows[-1]["usd"])) == (near(0.0166, 4), near(0.0232, 4))


def test_swe_agent_says_twice_the_list_price(tmp_path):
    db = case_of(AGENTS / "multi-swe-bench__experiments", tmp_path / "swe.duckdb")
    (row,) = rows_of(db, "SELECT * FROM cost_reported")
    assert (row["requests"], row["unpriced"]) == (124, 0)
    assert round(row["reported_usd"], 2) == Decimal("12.60")
    # 1,222,939 tokens at 5 dollars a million and 11,152 at 15.
    assert row["usd"] == Decimal("6.281975")
    sessions = rows_of(db, "SELECT * FROM turns_conversation ORDER BY calls DESC")
    assert (len(sessions), sessions[0]["calls"]) == (8, 20)
    assert sessions[0]["last_tokens"] / sessions[0]["first_tokens"] == near(1.21, 2)


# -- bills ----------------------------------------------------------------------------------------


def test_a_cursor_month_is_within_a_plan_and_unpriced(tmp_path):
    db = case_of(AUTO, tmp_path / "cursor.duckdb")
    (row,) = rows_of(
        db,
        "SELECT count(*) AS n, sum(c.reported_usd) AS reported, count(c.usd) AS priced, "
        "bool_and(c.is_subscription) AS plan, sum(c.unpriced_tokens) AS unpriced, "
        "sum(q.input_fresh_tokens) AS fresh, sum(q.cache_write_tokens) AS wrote, "
        "sum(q.cache_read_tokens) AS read, sum(q.output_tokens) AS output "
        "FROM cost_request AS c JOIN resolve_request AS q ON c.request_key = q.request_key",
    )
    assert (row["n"], round(row["reported"], 2), row["plan"]) == (199, Decimal("30.67"), True)
    kinds = (row["wrote"], row["fresh"], row["read"], row["output"])
    assert kinds == (4_444_063, 7_155, 83_544_576, 699_697)
    # "auto" is no model that has a price: nothing is priced, and nothing is free.
    assert (row["priced"], row["unpriced"]) == (0, sum(kinds))


def test_a_focus_bill_without_a_model(tmp_path):
    db = case_of(FOCUS, tmp_path / "focus.duckdb")
    (row,) = rows_of(
        db,
        "SELECT count(*) AS n, sum(amount) AS billed, sum(effective_amount) AS effective, "
        "count(*) FILTER (amount < 0) AS credits, count(model) AS models FROM invoice_line",
    )
    assert (row["n"], row["credits"], row["models"]) == (1_000, 13, 0)
    assert round(row["billed"], 6) == Decimal("20.520227")
    assert round(row["effective"], 6) == Decimal("14.976514")
    assert rows_of(db, "SELECT count(*) AS n FROM cost_request") == [{"n": 0}]

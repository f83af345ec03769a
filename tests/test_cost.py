"""What ``analyze cost`` adds up: totals, groups, days in every zone, parts, waste, notes."""

from __future__ import annotations

import json
import random
import socket
from collections import defaultdict
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest
from cases import b3_hidden_attempts as hidden
from cases import k1_long_context, k3_cache_unpriced
from cases._calls import Call, spend_logs
from click.testing import CliRunner
from deep import one_in, unless
from helpers import case_of, engine_of
from shared import SHARED, needs_shared

from analyzer import api
from analyzer.cli import cli
from analyzer.contract._cost_outputs import COST, COST_GROUPS
from analyzer.errors import AnalyzerError
from analyzer.questions import _zone
from analyzer.simulate.writers import NS, openai_usage, prices, request_record, write_lines

PRICE = {"input": "3.00", "cache_read": "0.30", "output": "12.00"}
T0 = int(datetime(2026, 3, 28, 20, tzinfo=UTC).timestamp()) * NS
BUCKETS = (
    "requests", "input_fresh_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens",
    "reasoning_tokens", "unpriced_tokens", "answers",
)  # fmt: skip


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    """Nothing is fetched: opening a socket fails the test."""

    def refuse(*args, **kwargs):
        raise AssertionError("a socket was opened")

    for name in ("connect", "connect_ex", "sendto"):
        monkeypatch.setattr(socket.socket, name, refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def record(k: int, at_ns: int, **more) -> str:
    """One of many: of two models, three routes, some people, with or without reasoning."""
    usage = openai_usage(
        1_000 + 7 * k, 50 + k % 11, cached=(k % 5) * 100, reasoning=20 if k % 4 == 0 else 0
    )
    told = {
        "model": ("swift-1", "wren-1", "unknown-1")[k % 7 % 3], "route": "abc"[k % 3],
        "session_id": f"s-{k % 13}", "status": 200, "usage": usage,
        "tags": {"user": f"person{k % 6}@example.org", "team": f"t{k % 2}"},
    }  # fmt: skip
    return request_record(f"r-{k}", vantage="client", started_ns=at_ns, **told | more)


BOOK = prices({"swift-1": PRICE, "wren-1": PRICE | {"input": "0.70", "output": "2.10"}})


def case(folder, lines, *more) -> str:
    logs = folder / "logs"
    logs.mkdir()
    if lines:
        write_lines(logs / "usage.jsonl", lines)
    write_lines(logs / "prices.json", [BOOK])
    for name, rows in more:
        write_lines(logs / name, rows)
    return case_of(logs, folder / "case.duckdb")


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """400 requests over four days, in which the clocks of Europe change."""
    pick = random.Random(4)
    span = 4 * 86_400 * NS
    lines = [record(k, T0 + pick.randrange(span)) for k in range(400)]
    return case(tmp_path_factory.mktemp("many"), lines)


@pytest.mark.parametrize(
    "by",
    [
        pytest.param(name, marks=unless(name in ("model", "day")))
        for name in COST_GROUPS
        if name != "part"
    ],
)
def test_splitting_a_group_changes_no_total(many, by):
    total = api.cost(many).total
    for keys in ((by,), (by, "model"), (by, "hour", "user")):
        rows = api.cost(many, by=keys, top=0).rows.rows
        for name in BUCKETS:
            assert sum(row[name] for row in rows) == total[name], (keys, name)
        assert sum(row["cost_usd"] or 0 for row in rows) == total["cost_usd"], keys
        assert set(rows[0]) <= set(COST["analyze.cost"].names)


ZONES = (
    "UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe",
    "Pacific/Chatham", "+09:00", "-03:30", "UTC+9",
)  # fmt: skip


@pytest.mark.parametrize(
    "zone", [pytest.param(zone, marks=unless(one_in(3, zone))) for zone in ZONES]
)
def test_a_day_costs_the_sum_of_its_hours(many, zone):
    days = {row["day"]: row for row in api.cost(many, by=("day",), zone=zone, top=0).rows.rows}
    sums, counts = defaultdict(Decimal), defaultdict(int)
    for row in api.cost(many, by=("hour",), zone=zone, top=0).rows.rows:
        sums[row["hour"][:10]] += row["cost_usd"] or 0
        counts[row["hour"][:10]] += row["requests"]
    assert sums == {day: row["cost_usd"] for day, row in days.items()}
    assert counts == {day: row["requests"] for day, row in days.items()}


@pytest.mark.parametrize("zone", ["Europe/Berlin", "Australia/Lord_Howe", "America/New_York"])
@pytest.mark.parametrize("start", ["2026-03-28", "2026-10-24", "2026-04-04", "2026-10-31"])
def test_every_moment_is_in_its_local_hour(zone, start):
    """Against Python's own time zones, over the hours around a change of the clocks."""
    begin = datetime.fromisoformat(start).replace(tzinfo=UTC)
    # Clocks change at quarters of an hour: at each, and a second before it.
    told = [begin + timedelta(minutes=15 * n, seconds=by) for n in range(1, 240) for by in (-1, 0)]
    ends = [int(one.timestamp()) * NS for one in (told[0], told[-1])]
    where = ZoneInfo(zone)
    sql = _zone.offset_sql(_zone.zone_named(zone), "start_ns", (ends[0], ends[1]))
    offsets = _offsets(sql, [int(one.timestamp()) * NS for one in told])
    for at, offset in zip(told, offsets, strict=True):
        local = at.astimezone(where)
        shifted = int(at.timestamp()) * NS + offset
        assert _zone.day_of(shifted) == f"{local:%Y-%m-%d}"
        hour = _zone.hour_of(shifted, offset)
        assert hour[:13] == f"{local:%Y-%m-%dT%H}"
        assert hour[16:].replace(":", "").replace("Z", "+0000") == f"{local:%z}"


def _offsets(sql: str, moments: list[int]) -> list[int]:
    import duckdb

    listed = ", ".join(f"({at})" for at in moments)
    rows = duckdb.sql(f"SELECT {sql} FROM (VALUES {listed}) AS t(start_ns)").fetchall()
    return [row[0] for row in rows]


def test_the_hour_that_comes_twice_is_two(tmp_path):
    turn = int(datetime(2026, 10, 25, 0, 30, tzinfo=UTC).timestamp()) * NS
    db = case(tmp_path, [record(k, turn + k * 3600 * NS) for k in range(2)])
    rows = api.cost(db, by=("hour",), zone="Europe/Berlin").rows.rows
    assert [row["hour"] for row in rows] == ["2026-10-25T02:00+02:00", "2026-10-25T02:00+01:00"]


@pytest.mark.parametrize("zone", ["Europe/Berlyn", "../../etc/passwd", "+99:00", "\0"])
def test_an_unknown_zone_is_refused(many, zone):
    with pytest.raises(AnalyzerError, match="no time zone"):
        api.cost(many, by=("day",), zone=zone)


def test_an_unknown_group_names_the_near_one(many):
    with pytest.raises(AnalyzerError, match="cannot be grouped by 'modle'") as error:
        api.cost(many, by=("modle",))
    assert "model" in str(error.value.hint)


def test_people_and_keys_are_hashed(tmp_path):
    tags = {"user": "ann@example.org", "api_key": "sk-secret-0123456789"}
    db = case(
        tmp_path, [record(1, T0, tags=tags), record(2, T0 + NS, tags={"user": "0123456789abcdef"})]
    )
    told = json.dumps(api.cost(db, by=("user", "key")).rows.rows, default=str)
    assert "ann@" not in told
    assert "secret" not in told
    assert "0123456789ab" in told, "what is a hash already is cut, not hashed again"
    assert "0123456789abcdef" not in told


def test_a_gateway_names_its_spenders_as_hashes(tmp_path):
    rows = []
    for k in range(9):
        row = json.loads(
            spend_logs([Call(at_ns=T0 + k * NS, session="s", prompt=100, model="swift-1")])[
                "spend.jsonl"
            ][0]
        )
        key = "88dc28d0f030c55ed4ab77ed8faf098196cb1c05df778539800c9f1243fe6b4b"
        rows.append(
            json.dumps(
                row
                | {"request_id": f"c-{k}", "user": f"u{k % 2}@example.org", "end_user": ""}
                | {"api_key": key, "team_id": "team-a"}
            )
        )
    db = case(tmp_path, [], ("spend.jsonl", rows))
    found = api.cost(db, by=("user", "key", "team")).rows.rows
    assert [row["requests"] for row in found] == [5, 4]
    assert {row["team"] for row in found} == {"team-a"}
    with engine_of(db) as engine:
        stored = " ".join(row["value"] for row in engine.rows("SELECT value FROM request_tag"))
    assert "example" not in stored
    assert "88dc28d0f030" not in stored


def test_top_counts_what_is_left_out(many):
    found = api.cost(many, by=("session",), top=5)
    assert len(found.rows.rows) == 5
    assert found.groups == 13
    dearest = [row["cost_usd"] for row in found.rows.rows]
    assert dearest == sorted(dearest, reverse=True)


def test_an_unknown_model_is_unpriced_and_never_zero(many):
    rows = {row["model"]: row for row in api.cost(many).rows.rows}
    lost = rows["unknown-1"]
    assert lost["cost_usd"] is None
    assert (
        lost["unpriced_tokens"]
        == lost["input_fresh_tokens"] + lost["cache_read_tokens"] + lost["output_tokens"]
    )
    assert rows["swift-1"]["unpriced_tokens"] == 0
    assert any("unknown-1" in note and "no known price" in note for note in api.cost(many).notes)


def test_each_row_names_the_source_of_its_price(many):
    row = next(row for row in api.cost(many).rows.rows if row["model"] == "swift-1")
    assert (row["price_source"], row["price_version"]) == ("price file", "prices.json")


def test_cached_tokens_that_are_not_told_make_an_upper_bound(tmp_path):
    bare = {"prompt_tokens": 900, "completion_tokens": 10}
    db = case(tmp_path, [record(k, T0 + k * NS, usage=bare, model="swift-1") for k in range(3)])
    found = api.cost(db)
    assert found.total["cost_usd"] == Decimal("3") * (900 * 3 + 10 * 12) / 1_000_000
    assert any(note.startswith("An upper bound: 3 requests do not tell") for note in found.notes)


@pytest.mark.parametrize("name", ["by_id", "inside_a_library"])
def test_what_the_bill_alone_tells_stands_beside_the_total(name, tmp_path):
    world = hidden.BASE if name == "inside_a_library" else replace(hidden.BASE, ids=True)
    folder = tmp_path / "logs"
    folder.mkdir()
    hidden.CASES[name][0](folder)
    found = api.cost(case_of(folder, tmp_path / "case.duckdb"))
    assert found.reconciliation is not None
    assert found.reconciliation["hidden_usd"] == world.hidden_usd
    assert found.total["cost_usd"] == world.billed_usd - world.hidden_usd
    (lost,) = found.waste.rows
    assert (lost["why"], lost["cost_usd"]) == ("told by the bill alone", world.hidden_usd)


def test_an_answer_costs_what_those_with_a_price_do(tmp_path):
    lines = [
        record(k, T0 + k * NS, model="swift-1" if k < 3 else "unknown-1", tags={}) for k in range(9)
    ]
    db = case(tmp_path, lines)
    found = api.cost(db)
    assert found.total["answers"] == 9
    assert found.total["usd_per_answer"] == round(found.total["cost_usd"] / 3, 15)
    assert "priced_answers" not in {*found.total, *found.rows.rows[0]}
    said = " ".join(run(db, "cost").split())
    assert "for each answered one that has a price" in said
    assert "Not in this cost: " in said


def two_logs(folder, change, every=70 * NS):
    """Twenty calls as a client logs them, and as ``change`` of its rows makes a gateway's log."""
    lines = [record(k, T0 + k * every) for k in range(20)]
    again = [
        json.dumps(row | {"vantage": "gateway"} | change(k, row))
        for k, row in enumerate(json.loads(line) for line in lines)
    ]
    return api.cost(case(folder, lines, ("gateway.jsonl", again)))


def other_id(k, row):
    return {"request_id": f"g-{k}"}


def later(k, row):
    """Two seconds of clock and way, a name with the vendor, and another id."""
    start = datetime.fromisoformat(row["started_at"]) + timedelta(seconds=2)
    return {"request_id": f"g-{k}", "model": f"any/{row['model']}", "started_at": start.isoformat()}


@pytest.mark.parametrize("change", [other_id, later])
def test_calls_that_two_logs_tell_under_other_ids_count_once(change, tmp_path):
    found = two_logs(tmp_path, change)
    (tmp_path / "one").mkdir()
    alone = case(tmp_path / "one", [record(k, T0 + k * 70 * NS) for k in range(20)])
    assert found.total == api.cost(alone).total
    (note,) = [one for one in found.notes if "under ids of their own count once" in one]
    assert note.startswith("20 requests ")
    assert not any("may count twice" in one for one in found.notes)


def a_third_lost(k, row):
    return other_id(k, row) | ({"usage": openai_usage(9_000, 900)} if k % 3 == 0 else {})


def equal_sizes(k, row):
    return other_id(k, row) | {"usage": openai_usage(1_000, 50), "model": "swift-1"}


def test_logs_that_agree_in_part_may_count_twice(tmp_path):
    found = two_logs(tmp_path, a_third_lost)
    assert found.total["requests"] == 40
    assert any("13 requests or more may count twice" in note for note in found.notes)


def test_equal_calls_of_two_places_are_not_taken_for_one(tmp_path):
    """A probe every minute from two places: equal sizes at equal times, and two calls each time."""
    lines = [json.loads(record(k, T0 + k * 60 * NS)) | equal_sizes(k, {}) for k in range(20)]
    again = [row | {"vantage": "gateway", "request_id": f"p-{k}"} for k, row in enumerate(lines)]
    told = [[json.dumps(row) for row in some] for some in (lines, again)]
    found = api.cost(case(tmp_path, told[0], ("gateway.jsonl", told[1])))
    assert found.total["requests"] == 40
    assert any("may count twice" in note for note in found.notes)


def test_calls_that_both_logs_know_by_one_id_are_one(tmp_path):
    found = two_logs(tmp_path, lambda k, row: {})
    assert found.total["requests"] == 20
    assert not any("twice" in note for note in found.notes)


def test_groups_that_are_left_out_are_said_to_cost_less(many):
    assert "1 group that cost less, or have no price, not listed" in run(many, "cost", "--top", "2")


def test_a_bill_of_other_services_is_said_to_be_one(tmp_path):
    columns = "BilledCost,BillingCurrency,ChargePeriodStart,ChargePeriodEnd,ChargeCategory"
    columns += ",ServiceName,ProviderName,BillingAccountId,ChargeDescription"
    day = "2026-03-28T00:00:00Z,2026-03-29T00:00:00Z,Usage"
    rows = [columns, f"1.25,USD,{day},Object Storage,Nimbus,acc-1,Stored bytes"]
    db = case(tmp_path, [record(0, T0, model="swift-1")], ("focus.csv", rows))
    assert any("The bills hold 1 line, none for tokens" in note for note in api.cost(db).notes)


def test_attempts_of_one_operation_bring_one_answer(tmp_path):
    same = {"operation_id": "op-1", "model": "swift-1"}
    lines = [
        record(1, T0, **same | {"attempt": 1, "status": 500, "error": "server_error"}),
        record(2, T0 + NS, **same | {"attempt": 2}),
        record(3, T0 + 2 * NS, model="swift-1"),
    ]
    found = api.cost(case(tmp_path, lines))
    total = found.total
    assert (total["requests"], total["answers"]) == (3, 2)
    assert total["usd_per_answer"] == round(total["cost_usd"] / 2, 15)
    (failed,) = [row for row in found.waste.rows if row["kind"] == "failed attempts"]
    assert failed["requests"] == 1
    assert 0 < failed["cost_usd"] < total["cost_usd"]


def test_no_token_of_the_waste_stands_in_two_lines(many):
    with engine_of(many) as engine:
        twice = engine.rows(
            "SELECT w.request_key FROM cost_waste AS w JOIN cost_request AS c "
            "ON w.request_key = c.request_key WHERE w.usd IS NOT NULL "
            "GROUP BY w.request_key HAVING sum(w.usd) > max(c.usd)"
        )
    assert not twice


# --- parts ---------------------------------------------------------------------------------------


def parts_of(db: str) -> dict[str, dict]:
    found = api.cost(db, by=("part",), top=0)
    rows = found.rows.rows
    for name in BUCKETS[1:6]:
        assert sum(row[name] for row in rows) == found.total[name], name
    assert sum(row["cost_usd"] or 0 for row in rows) == found.total["cost_usd"]
    return {row["part"]: row for row in rows}


def test_the_parts_of_a_prompt_add_up_and_stand_in_its_order(tmp_path):
    """10,000 tokens of 20,000 characters: tools and system first, which the cache holds."""
    made = {
        "tools_chars": 8_000, "system_chars": 4_000, "user_chars": 2_000, "assistant_chars": 2_000,
        "tool_result_chars": 4_000,
    }  # fmt: skip
    usage = openai_usage(10_000, 500, cached=5_000, reasoning=100)
    db = case(tmp_path, [record(1, T0, model="swift-1", usage=usage, **made)])
    parts = parts_of(db)
    asked = {
        name: (row["input_fresh_tokens"], row["cache_read_tokens"]) for name, row in parts.items()
    }
    assert asked["tools"] == (0, 4_000)
    assert asked["system"] == (1_000, 1_000)
    assert asked["user"] == (1_000, 0)
    assert asked["tool results"] == (2_000, 0)
    assert parts["tools"]["cost_usd"] == Decimal("4000") * Decimal("0.30") / 1_000_000
    assert parts["reasoning"]["output_tokens"] == 100
    assert parts["answer"]["output_tokens"] == 400


def test_what_is_told_of_a_prompt_in_part_counts_at_its_usual_length(tmp_path):
    usage = openai_usage(10_000, 500)
    db = case(tmp_path, [record(1, T0, model="swift-1", usage=usage, tools_chars=12_000)])
    parts = parts_of(db)
    assert parts["tools"]["input_fresh_tokens"] == 3_000
    assert parts["prompt not told apart"]["input_fresh_tokens"] == 7_000


def test_parts_add_up_whatever_is_told(tmp_path):
    pick = random.Random(9)
    kinds = ("tools", "system", "user", "assistant", "reasoning", "tool_result")
    lines = []
    for k in range(120):
        made = {
            f"{kind}_chars": pick.choice([0, 1, 37, 50_000, pick.randrange(9_999)])
            for kind in kinds
            if pick.random() < 0.7
        }
        prompt = pick.choice([1, 3, 5_000, 77_777])
        usage = openai_usage(prompt, pick.randrange(1, 300), cached=pick.randrange(prompt))
        lines.append(record(k, T0 + k * NS, usage=usage, **made))
    assert parts_of(case(tmp_path, lines))


# --- the scenarios -------------------------------------------------------------------------------

TOTALS = {
    "A9/main": "5.4818", "A9/twin": "1.1072", "A10/main": "4.6407", "A10/twin": "2.3407",
    "A11/main": "2.7276", "A11/twin": "2.4829", "A12/main": "1.3800", "A12/twin": "1.3800",
    "A13/main": "2.1542", "A13/twin": "0.3284",
}  # fmt: skip
"""Each bucket of each request at its own price, added up apart from this tool's own code."""


@needs_shared
@pytest.mark.parametrize("name", TOTALS)
def test_the_total_of_a_scenario_to_the_cent(name, tmp_path):
    db = case_of(SHARED / "scenarios" / name, tmp_path / "case.duckdb")
    told = json.loads(run(db, "cost", "-f", "json"))
    total = told["total"]
    assert round(Decimal(total["cost_usd"]), 4) == Decimal(TOTALS[name])
    assert total["unpriced_tokens"] == 0
    assert sum(Decimal(row["cost_usd"]) for row in told["rows"]) == Decimal(total["cost_usd"])


def run(db: str, *words: str) -> str:
    result = CliRunner().invoke(cli, ["--db", db, *words], standalone_mode=False)
    assert result.exception is None, result.exception
    return str(result.output)


@needs_shared
def test_a13_falls_on_two_days_of_utc_plus_9(tmp_path):
    db = case_of(SHARED / "scenarios/A13/main", tmp_path / "case.duckdb")
    found = api.cost(db, by=("day", "agent"), zone="+09:00")
    rows = {(row["day"], row["agent"]): row for row in found.rows.rows}
    late = rows["2026-08-02", "main"]
    assert (late["requests"], late["cost_usd"]) == (10, Decimal("0.4984"))
    assert sum(row["cost_usd"] for row in rows.values()) == Decimal("2.1542")
    assert found.total["output_tokens"] == 24_000
    assert any("$6.02 in place of $2.15" in note for note in found.notes)
    assert found.notes[0].startswith("API-equivalent, not a bill")


@needs_shared
def test_a12_counts_what_the_logs_track(tmp_path):
    db = case_of(SHARED / "scenarios/A12/main", tmp_path / "case.duckdb")
    found = api.cost(db)
    assert (found.total["requests"], found.total["answers"]) == (60, 60)
    assert found.total["usd_per_answer"] == Decimal("0.023")
    (lost,) = found.waste.rows
    assert (lost["kind"], lost["requests"]) == ("failed attempts", 45)
    assert (lost["why"], lost["cost_usd"]) == ("told by the bill alone", Decimal("1.035"))
    assert lost["share"] is None
    sums = json.loads(run(db, "cost", "-f", "json"))["reconciliation"]
    told = {name: Decimal(sums[name]) for name in ("billed_usd", "tracked_usd", "hidden_usd")}
    assert told == {
        "billed_usd": Decimal("2.415"),
        "tracked_usd": Decimal("1.38"),
        "hidden_usd": Decimal("1.035"),
    }
    assert (sums["requests_billed"], sums["requests_tracked"]) == (105, 60)
    assert "billed and never tracked  $1.035, 45 requests" in run(db, "cost")


@needs_shared
@pytest.mark.parametrize(
    ("name", "kind", "why", "usd"),
    [
        ("A9/main", "cache losses", "changed", "4.5356"),
        ("A10/main", "cache losses", "expired", "2.3000"),
        ("A11/main", "larger first prompts", "tool definitions", "1.0734"),
    ],
)
def test_the_waste_of_a_scenario(name, kind, why, usd, tmp_path):
    db = case_of(SHARED / "scenarios" / name, tmp_path / "case.duckdb")
    (row,) = api.cost(db).waste.rows
    assert (row["kind"], row["why"], round(row["cost_usd"], 4)) == (kind, why, Decimal(usd))


# --- prices with steps, and of caches ------------------------------------------------------------


def test_exactly_the_step_is_below_it_and_the_parts_of_the_excess_are_right(tmp_path):
    folder = tmp_path / "logs"
    folder.mkdir()
    k1_long_context.CASES["cached"][0](folder)
    db = case_of(folder, tmp_path / "case.duckdb")
    with engine_of(db) as engine:
        rows = engine.rows("SELECT * FROM cost_long_context ORDER BY request_key")
    above = [row for row in rows if row["is_above"]]
    assert len(rows) == 60
    assert {row["step_tokens"] for row in rows} == {k1_long_context.STEP}
    calls = [one for one in k1_long_context.CACHED if one.prompt > k1_long_context.STEP]
    want = k1_long_context.excess(calls, k1_long_context.LOW, k1_long_context.HIGH)
    assert sum(row["excess_usd"] for row in above) == want
    assert all(row["trimmed_usd"] > row["excess_usd"] for row in above)


def test_what_is_charged_at_the_full_price_of_input(tmp_path):
    folder = tmp_path / "logs"
    folder.mkdir()
    k3_cache_unpriced.CASES["main"][0](folder)
    found = api.cost(case_of(folder, tmp_path / "case.duckdb"))
    assert found.total["reported_usd"] > found.total["cost_usd"]
    assert any(note.startswith("The sources themselves say") for note in found.notes)


# --- how it is printed ---------------------------------------------------------------------------


def test_every_format_says_the_same(many):
    whole = json.loads(run(many, "cost", "--by", "route", "-f", "json"))
    assert whole["kind"] == "analyze.cost"
    assert len(whole["rows"]) == 3
    assert run(many, "cost", "--by", "route", "-f", "csv").startswith("route,requests,input_fresh")
    text = run(many, "cost", "--by", "route")
    assert text.startswith("400 requests cost $")
    assert "| route |" in run(many, "cost", "--by", "route", "-f", "md").replace("  ", " ")


def test_one_request_shows_its_cost_and_the_source_of_the_price(many):
    view = api.show(many, "r-7")
    told = dict(view.cost)
    with engine_of(many) as engine:
        usd = engine.value(
            "SELECT c.usd FROM cost_request AS c JOIN resolve_request AS q "
            "ON c.request_key = q.request_key WHERE q.id = 'r-7'"
        )
    assert told["cost_usd"] == usd
    assert told["price_source"] == "price file"
    assert "price source" in run(many, "show", "r-7")


def test_half_a_comparison_is_refused(many):
    result = CliRunner().invoke(cli, ["--db", many, "cost", "--window", "2026-01-01..2026-01-02"])
    assert result.exit_code == 2
    assert "belong together" in result.output


def test_two_windows_add_a_bridge_that_sums_to_their_difference(many):
    asked = ("--baseline", "2026-03-28..2026-03-30", "--window", "2026-03-30..2026-04-01")
    told = json.loads(run(many, "cost", *asked, "-f", "json"))
    gap = Decimal(told["window_usd"]) - Decimal(told["baseline_usd"])
    assert sum(Decimal(row["cost_usd"]) for row in told["bridge"]) == gap
    assert "What changed" in run(many, "cost", *asked)


def test_a_case_without_usage_says_so(tmp_path):
    db = case(tmp_path, [record(1, T0, usage=None)])
    found = api.cost(db)
    assert found.total["requests"] == 0
    assert found.total["cost_usd"] is None
    assert "No request tells its usage" in run(db, "cost")

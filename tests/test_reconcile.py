"""Bills against logs: sums that add up, nothing counted twice, and names that are one model."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from decimal import Decimal

import pytest
from cases import _bills as bills
from cases import b3_hidden_attempts as hidden
from cases import b4_unreconciled as unreconciled
from cases._bills import DAY, HOUR, NS, T0
from helpers import case_of, claimed, engine_of
from shared import SHARED, needs_shared

import analyzer
from analyzer import api
from analyzer.analyses.cost import bill_source
from analyzer.analyses.cost._bill_models import bill_of, key_of, sellers, vendor
from analyzer.analyses.cost._bill_sources import once
from analyzer.questions.reconcile import reconciled
from analyzer.report.billed import matched
from analyzer.simulate.writers import (
    billing_record,
    openai_usage,
    prices,
    request_record,
    write_lines,
)

GPT = unreconciled.GPT


def sums_of(write, tmp_path):
    """Sums and rows of a case that ``write`` makes; its database."""
    folder = tmp_path / "logs"
    folder.mkdir()
    write(folder)
    db = case_of(folder, tmp_path / "case.duckdb")
    with engine_of(db) as engine:
        told, table = reconciled(engine)
    return told, table.rows, db


def classes(rows):
    return Counter(row["class"] for row in rows)


def reasons(rows):
    return {row["reason"] for row in rows if row["class"] != "matched"}


@needs_shared
def test_timeouts_that_were_paid_for(tmp_path):
    db = case_of(SHARED / "scenarios/A12/main", tmp_path / "case.duckdb")
    with engine_of(db) as engine:
        told, _ = reconciled(engine)
        tracked = engine.value(
            "SELECT sum(c.usd) FROM cost_tracked AS t JOIN cost_request AS c "
            "ON t.request_key = c.request_key WHERE t.is_metered"
        )
    assert told["billed_usd"] == Decimal("2.415")
    assert told["tracked_usd"] == tracked == Decimal("1.380")
    assert told["hidden_usd"] == Decimal("1.035")
    assert (told["requests_billed"], told["requests_tracked"]) == (105, 60)
    fired = claimed(db)
    finding = fired["cost.hidden-attempts"]
    assert (finding.segment, finding.requests, finding.cost_usd) == ("none", 45, "1.035000000")
    numbers = {one.label: one.value for one in finding.evidence}
    assert numbers["Billed, as a multiple of what is tracked"] == 1.75
    assert "gave up after 60.0 s" in finding.cause
    assert "took 66.0 s" in finding.cause
    assert "1/2/4 s (starts 61/62/64 s apart)" in finding.cause
    assert "server's error: 0" in finding.cause
    assert not {"queue.rate-limited", "cost.unreconciled", "trust.duplicate-usage"} & fired.keys()


@needs_shared
def test_attempts_that_never_reached_the_provider(tmp_path):
    db = case_of(SHARED / "scenarios/A12/twin", tmp_path / "case.duckdb")
    with engine_of(db) as engine:
        told, _ = reconciled(engine)
    assert told["billed_usd"] == told["tracked_usd"] == Decimal("1.380")
    assert (told["hidden_usd"], told["requests_suspected"]) == (0, 0)
    rules = {one.rule for one in analyzer.findings(db).found}
    assert not {"cost.hidden-attempts", "cost.unreconciled"} & rules


@pytest.mark.parametrize("name", ["main", "inside_a_library", "by_id", "crowded", "no_charge"])
def test_billed_is_tracked_and_hidden(name, tmp_path):
    told, _, _ = sums_of(hidden.CASES[name][0], tmp_path)
    assert told["hidden_usd"] > 0
    assert told["billed_usd"] == told["tracked_usd"] + told["hidden_usd"]
    assert told["requests_billed"] == told["requests_tracked"] + told["requests_hidden"]


def test_without_a_record_of_the_provider_it_is_a_guess(tmp_path):
    told, rows, db = sums_of(lambda folder: _without_bill(folder), tmp_path)
    assert (told, rows) == (None, ())
    (finding,) = [f for f in analyzer.findings(db).found if f.rule == "cost.hidden-attempts"]
    assert (finding.severity, finding.confidence, finding.cost_usd) == ("note", "suspected", None)
    assert finding.requests == len(hidden.BASE.hidden)
    assert "were billed and never" not in finding.brief + finding.symptom
    with engine_of(db) as engine:
        low, high = engine.rows("SELECT sum(low_usd) AS l, sum(high_usd) AS h FROM cost_hidden")[
            0
        ].values()
    assert high == hidden.BASE.hidden_usd
    assert low == sum(one[0] for one in hidden.BASE.hidden) * hidden.IN / 1_000_000


def _without_bill(folder):
    hidden.BASE.write(folder)
    (folder / "billing.jsonl").unlink()


def _one_by_one(folder, *, charge="0.004", lose=(), prompt=1_000):
    """Ten calls, each with the provider's record."""
    logs, records = [], []
    for k in range(10):
        at, name = T0 + k * 60 * NS, f"c-{k}"
        if k not in lose:
            logs.append(
                request_record(
                    name, vantage="client", started_ns=at, durations_ns={"e2e": 3 * NS},
                    model="wren-1", status=200, usage=openai_usage(1_000, 100),
                )
            )  # fmt: skip
        records.append(
            billing_record(
                at + NS // 10, at + 3 * NS, model="wren-1", cost_usd=Decimal(charge),
                usage={"prompt_tokens": prompt, "completion_tokens": 100}, request_id=name,
            )
        )  # fmt: skip
    write_lines(folder / "calls.jsonl", logs)
    write_lines(folder / "billing.jsonl", records)
    write_lines(folder / "prices.json", [prices({"wren-1": {"input": "3.00", "output": "10.00"}})])


def test_single_calls_at_another_price(tmp_path):
    told, rows, db = sums_of(lambda folder: _one_by_one(folder, charge="0.006"), tmp_path)
    assert (told["billed_usd"], told["tracked_usd"]) == (Decimal("0.06"), Decimal("0.04"))
    assert told["price_difference_usd"] == Decimal("0.02")
    assert classes(rows) == {"price difference": 1}
    assert "cost.unreconciled" in claimed(db)


def test_single_calls_with_other_tokens(tmp_path):
    _, rows, db = sums_of(lambda folder: _one_by_one(folder, prompt=1_300), tmp_path)
    assert classes(rows) == {"token difference": 1}
    assert "cost.unreconciled" in claimed(db)


def test_single_calls_that_no_log_tells(tmp_path):
    told, rows, db = sums_of(lambda folder: _one_by_one(folder, lose=(2, 5)), tmp_path)
    assert told["unlogged_usd"] == Decimal("0.008")
    assert told["hidden_usd"] == 0
    assert reasons(rows) == {"no log of this call"}
    fired = claimed(db)
    assert "cost.unreconciled" in fired
    assert "cost.hidden-attempts" not in fired


def test_a_usage_report_and_a_bill_are_not_added(tmp_path):
    told, rows, _ = sums_of(unreconciled.CASES["openai_agrees"][0], tmp_path)
    calls = bills.calls(GPT)
    tokens = sum(getattr(one, kind) for one in calls for kind in bills.KINDS)
    assert told["billed_tokens"] == told["tracked_tokens"] == tokens
    assert told["billed_usd"] == told["tracked_usd"] == sum(one.whole_usd for one in calls)
    assert told["requests_billed"] == told["requests_tracked"] == len(calls)
    assert classes(rows) == {"matched": len(rows)}


def test_money_beside_tokens_is_told_apart(tmp_path):
    told, rows, _ = sums_of(unreconciled.CASES["fees_and_credits"][0], tmp_path)
    assert told["beside_usd"] == Decimal("-0.25")
    assert told["billed_usd"] - told["tracked_usd"] == told["beside_usd"]
    beside = {row["reason"]: row["billed_usd"] for row in rows if row["token_kind"] is None}
    assert beside == {"fee": Decimal("1.75"), "credit": Decimal(-2)}


@pytest.mark.parametrize(
    ("name", "begins"),
    [("days_of_the_west", "08:00"), ("days_of_the_east", "15:00"), ("days_of_india", "18:30")],
)
def test_days_of_another_zone(name, begins, tmp_path):
    _, rows, _ = sums_of(unreconciled.CASES[name][0], tmp_path)
    told = {row["evidence"] for row in rows if row["reason"] == "day of another zone"}
    assert told == {f"its days begin at {begins} UTC"}
    assert reasons(rows) <= {
        "the logs do not cover the whole period", "usage before the logs begin",
        "usage after the logs end", "the bill's last period is not complete yet",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("logs_of_inner_days", "usage before the logs begin"),
        ("logs_of_inner_days", "usage after the logs end"),
        ("logs_from_noon", "the logs do not cover the whole period"),
        ("bill_not_complete", "the bill's last period is not complete yet"),
    ],
)
def test_edges_have_their_reason(name, reason, tmp_path):
    _, rows, _ = sums_of(unreconciled.CASES[name][0], tmp_path)
    assert reason in reasons(rows)


def test_attempts_given_up_explain_a_gap(tmp_path):
    _, rows, _ = sums_of(_given_up, tmp_path)
    assert reasons(rows) == {"attempts given up and billed"}


def _given_up(folder):
    """A tenth of the calls timed out for the client, and stand on the usage report."""
    calls = bills.calls(GPT, writes=False)
    bills.write_log(folder, calls)
    bills.write_bills(folder, {"usage.json": bills.openai_usage(_with_failed(calls), DAY)})
    lines = [
        request_record(
            f"late-{k}", vantage="client", started_ns=one.at_ns, durations_ns={"e2e": 20 * NS},
            model=GPT, error="timeout", bytes_sent=9_000,
        )
        for k, one in enumerate(calls[::10])
    ]  # fmt: skip
    write_lines(folder / "late.jsonl", lines)


def _with_failed(calls):
    return [*calls, *calls[::10]]


def test_cached_tokens_that_the_log_does_not_tell(tmp_path):
    _, rows, db = sums_of(unreconciled._cached_untold().write, tmp_path)
    assert reasons(rows) == {"cached tokens are told apart otherwise"}
    assert "cost.unreconciled" in claimed(db)


def test_free_quota_and_another_tier(tmp_path):
    calls = bills.calls(unreconciled.CLAUDE)
    free = [replace(one, factor=Decimal(0)) for one in calls]
    files = {"u.json": bills.anthropic_usage(calls), "c.json": bills.anthropic_costs(free)}
    _, rows, _ = sums_of(unreconciled.Case(tuple(calls), files).write, tmp_path)
    assert reasons(rows) == {"free quota, or included in a plan"}


def test_a_tier_that_the_bill_alone_tells(tmp_path):
    calls = bills.calls(unreconciled.CLAUDE)
    files = {"c.json": bills.anthropic_costs(bills.dearer(calls, "0.5"))}
    files = {name: text.replace('"standard"', '"batch"') for name, text in files.items()}
    _, rows, _ = sums_of(unreconciled.Case(tuple(calls), files).write, tmp_path)
    assert reasons(rows) == {"billed at batch, which the logs do not tell"}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("us.anthropic.claude-opus-4-6-v1:0", "Claude4.6Opus"),
        ("gpt-4o-mini", "gpt-4o-mini-0718"),
        ("openai/gpt-5-mini", "gpt-5-mini-2025-08-07"),
        ("claude-sonnet-4-5@20250929", "claude-sonnet-4-5"),
        ("gemini-2.5-flash", "models/gemini-2.5-flash"),
        ("claude-opus-4-6[1m]", "claude-opus-4-6"),
    ],
)
def test_two_names_of_one_model(one, other):
    assert key_of(one) == key_of(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("gpt-4o", "gpt-4o-mini"),
        ("gpt-4.5", "gpt-5.4"),
        ("claude-opus-4-6", "claude-sonnet-4-6"),
        ("gemini-2.5-flash", "gemini-2.5-flash-lite"),
        ("o3", "o4"),
    ],
)
def test_two_models(one, other):
    assert key_of(one) != key_of(other)


def test_whose_bill_it_is():
    assert vendor("aws.bedrock") == vendor("Amazon Web Services") == "aws"
    assert "azure" in sellers("gpt-5-mini")
    held = {"anthropic": {key_of("claude-teal-3")}, "openai": {key_of("gpt-heron-2")}}
    assert bill_of("", "claude-teal-3-20260203", held) == "anthropic"
    assert bill_of("openai", "gpt-heron-9", held) == "openai"
    assert bill_of("", "gpt-heron-9", held) == "openai"
    assert bill_of("", "gemini-3", held) is None
    assert bill_of("aws.bedrock", "nova-2", held) is None


# --- one call, told by several -------------------------------------------------------------------


def _invoice(folder, usd, model="wren-1"):
    """A bill of one day, by kind of token, of ``usd`` in all."""
    share = {"input": Decimal("0.75"), "output": Decimal("0.25")}
    results = [
        bills._openai_cost(f"{model}-2026-02-03, {kind}", usd * part)
        for kind, part in share.items()
    ]
    day = {
        "object": "bucket", "start_time": T0 // NS, "end_time": (T0 + DAY) // NS,
        "results": results,
    }  # fmt: skip
    page = {"object": "page", "data": [day], "has_more": False, "next_page": None}
    (folder / "costs.json").write_text(bills._json(page))


def test_an_invoice_of_the_calls_that_records_tell_counts_once(tmp_path):
    def write(folder):
        _one_by_one(folder, charge="0.006")
        _invoice(folder, Decimal("0.06"))

    told, rows, db = sums_of(write, tmp_path)
    assert (told["billed_usd"], told["tracked_usd"]) == (Decimal("0.06"), Decimal("0.04"))
    assert told["price_difference_usd"] == Decimal("0.02")
    assert {row["bill"] for row in rows if row["counts"]} == {"records"}
    assert sum(row["billed_usd"] for row in rows if row["bill"] == "openai") == Decimal("0.06")
    finding = claimed(db)["cost.unreconciled"]
    assert finding.magnitude.value == pytest.approx(0.02)
    assert (finding.cost_usd, finding.share) == ("0.020000000", pytest.approx(1 / 3))
    said = api.cost(db)
    assert "more of calls that these tell too, not counted" in matched(said.reconciled)


def test_a_bill_that_records_explain_is_no_finding(tmp_path):
    """Attempts that were billed and never tracked stand in the records, and in the invoice too."""

    def write(folder):
        hidden.BASE.write(folder)
        _hidden_invoice(folder)

    told, _, db = sums_of(write, tmp_path)
    assert told["billed_usd"] == told["tracked_usd"] + told["hidden_usd"] == hidden.BASE.billed_usd
    fired = claimed(db)
    assert "cost.hidden-attempts" in fired
    assert "cost.unreconciled" not in fired


def _hidden_invoice(folder):
    text = bills.openai_costs([bills.Call(hidden.T0, hidden.MODEL, output=1)])
    page = json.loads(text)
    page["data"][0]["results"] = [
        json.loads(
            bills._json(bills._openai_cost(f"{hidden.MODEL}, output", hidden.BASE.billed_usd))
        )
    ]
    (folder / "costs.json").write_text(json.dumps(page))


def test_a_bill_of_more_calls_than_records_tell_counts(tmp_path):
    calls = bills.calls(GPT)
    logged = calls[::4]

    def write(folder):
        bills.write_log(folder, logged)
        bills.write_bills(folder, {"costs.json": bills.openai_costs(calls)})
        records = [
            billing_record(
                one.at_ns, one.at_ns + 4 * NS, model=GPT, cost_usd=one.whole_usd,
                usage={
                    "prompt_tokens": one.input_fresh + one.cache_read + one.cache_write_short,
                    "completion_tokens": one.output,
                },
                request_id=f"rq-{k:05d}",
            )
            for k, one in enumerate(logged)
        ]  # fmt: skip
        write_lines(folder / "billing.jsonl", records)

    told, rows, db = sums_of(write, tmp_path)
    whole, part = (sum(one.whole_usd for one in some) for some in (calls, logged))
    assert (told["billed_usd"], told["tracked_usd"]) == (whole, part)
    assert {row["bill"] for row in rows if row["counts"]} == {"openai"}
    assert claimed(db)["cost.unreconciled"].magnitude.value == pytest.approx(float(whole - part))


def test_records_of_one_vendor_and_a_bill_of_another_add_up(tmp_path):
    def write(folder):
        _one_by_one(folder)
        calls = bills.calls(GPT, days=1)
        lines = folder / "more"
        lines.mkdir()
        bills.write_log(lines, calls)
        bills.write_bills(lines, {"usage.json": bills.openai_usage(calls),
                                  "costs.json": bills.openai_costs(calls)})  # fmt: skip
        told.append(sum(one.whole_usd for one in calls))

    told: list[Decimal] = []
    sums, rows, _ = sums_of(write, tmp_path)
    assert sums["billed_usd"] == sums["tracked_usd"] == told[0] + Decimal("0.04")
    assert sums["requests_billed"] == sums["requests_tracked"] == 70
    assert {row["class"] for row in rows if not row["counts"]} == {"log only"}


# --- several exports of one vendor ---------------------------------------------------------------


def _focus_of_openai(calls):
    return bills.focus(calls).replace("Acme Models", "OpenAI API").replace("Acme", "OpenAI")


def _notes(db):
    return [note for note in api.cost(db).notes if "not counted" in note]


def test_exports_of_other_days_are_both_used(tmp_path):
    calls = bills.calls(GPT)
    early, late = [[one for one in calls if (one.at_ns < T0 + 4 * DAY) is first]
                   for first in (True, False)]  # fmt: skip
    files = {"costs.json": bills.openai_costs(early), "focus.csv": _focus_of_openai(late)}
    told, _, db = sums_of(unreconciled.Case(tuple(calls), files).write, tmp_path)
    assert told["billed_usd"] == told["tracked_usd"] == sum(one.whole_usd for one in calls)
    assert "cost.unreconciled" not in claimed(db)
    assert _notes(db) == []


def test_of_exports_over_the_same_days_one_is_used_and_the_other_named(tmp_path):
    calls = bills.calls(GPT)
    late = [one for one in calls if one.at_ns >= T0 + 4 * DAY]
    files = {"costs.json": bills.openai_costs(calls), "focus.csv": _focus_of_openai(late)}
    told, _, db = sums_of(unreconciled.Case(tuple(calls), files).write, tmp_path)
    assert told["billed_usd"] == sum(one.whole_usd for one in calls)
    (note,) = _notes(db)
    assert note.startswith(
        "costs.json: 8 lines (2026-03-06 to 2026-03-07) are not counted: focus.csv tells the same"
    )


def test_an_export_that_was_fetched_again_counts_once(tmp_path):
    calls = bills.calls(GPT)
    first = [one for one in calls if one.at_ns < T0 + 4 * DAY]
    again = [one for one in calls if one.at_ns >= T0 + DAY]
    files = {"a.json": bills.openai_usage(first), "b.json": bills.openai_usage(again)}
    told, _, db = sums_of(unreconciled.Case(tuple(calls), files).write, tmp_path)
    tokens = sum(getattr(one, kind) for one in calls for kind in bills.KINDS)
    assert told["billed_tokens"] == told["tracked_tokens"] == tokens
    assert told["requests_billed"] == len(calls)
    assert "cost.unreconciled" not in claimed(db)
    (note,) = _notes(db)
    assert "a.json: " in note
    assert "(2026-03-03 to 2026-03-05) are not counted: b.json tells the same time" in note


def test_parts_of_one_export_add_up(tmp_path):
    calls = bills.calls(GPT)
    files = {f"{k}.json": bills.openai_usage(calls[k::2]) for k in (0, 1)}
    told, _, db = sums_of(unreconciled.Case(tuple(calls), files).write, tmp_path)
    assert told["billed_tokens"] == told["tracked_tokens"]
    assert told["requests_billed"] == len(calls)
    assert _notes(db) == []


def _line(path, kind, quantity, amount=None, begins=T0, item=None):
    rest = dict.fromkeys(("model", "unit", "charge", "service_tier", "is_long", "list_amount"))
    return rest | {
        "told": "bill", "path": path, "reader": "focus_costs", "provider": "Acme",
        "start_ns": begins, "end_ns": begins + DAY, "token_kind": kind, "unit": "tokens",
        "item": item, "currency": "USD", "quantity": quantity, "amount": amount,
    }  # fmt: skip


def test_zeros_in_common_make_no_repeat():
    lines = [
        _line(path, kind, many)
        for path, sizes in (("a", (7, 3, 0, 0, 0)), ("b", (90, 8, 0, 0, 0)))
        for kind, many in zip((*bills.KINDS, "output_reasoning"), sizes, strict=True)
    ]
    assert sum(line["quantity"] for line in once(lines)) == 7 + 3 + 90 + 8


def test_a_repeated_fee_counts_in_the_file_that_has_fees_alone():
    fee = {"kind": None, "quantity": None, "amount": 5, "item": "support of gpt"}
    lines = [
        _line("usage", "output", 1000, 3), _line("usage", **fee), _line("fees", **fee),
        _line("fees", **fee, begins=T0 + 40 * DAY),
    ]  # fmt: skip
    found = {path: (used, left, instead) for _, path, used, left, _, _, instead, _
             in bill_source.rows(lines)}  # fmt: skip
    assert found == {"fees": (2, 0, None), "usage": (1, 1, "fees")}


def test_searches_are_no_calls(tmp_path):
    calls = bills.calls("claude-teal-4")
    told = bills.anthropic_usage(calls).replace(
        '"web_search_requests": 0', '"web_search_requests": 7'
    )
    assert told != bills.anthropic_usage(calls)
    sums, _, _ = sums_of(unreconciled.Case(tuple(calls), {"usage.json": told}).write, tmp_path)
    assert sums["billed_tokens"] == sums["tracked_tokens"]
    assert sums["requests_billed"] is None


def test_hours_and_days_of_one_report_are_not_added(tmp_path):
    calls = bills.calls(GPT)
    files = {f"{k}.json": bills.openai_usage(calls, length) for k, length in ((0, HOUR), (1, DAY))}
    told, _, db = sums_of(unreconciled.Case(tuple(calls), files).write, tmp_path)
    assert told["billed_tokens"] == told["tracked_tokens"]
    (note,) = _notes(db)
    assert note.startswith("1.json: all ")


@pytest.mark.parametrize(
    ("files", "says"),
    [
        (lambda calls: bills.deepseek(calls, "CNY"), "cost-3.csv: 6 amounts in CNY are held"),
        (
            lambda calls: {"costs.json": bills.openai_costs(calls).replace('"usd"', '"eur"')},
            "costs.json: 24 amounts in EUR are held against nothing",
        ),
    ],
)
def test_a_bill_in_another_currency_is_said_to_be_one(files, says, tmp_path):
    calls = bills.calls("deepseek-teal", writes=False)
    _, _, db = sums_of(unreconciled.Case(tuple(calls), files(calls)).write, tmp_path)
    (note,) = [one for one in api.cost(db).notes if "held against nothing" in one]
    assert note.startswith(says)
    assert "convert them to US dollars" in note


def test_a_report_without_a_line_is_said_to_be_one(tmp_path):
    folder = tmp_path / "logs"
    folder.mkdir()
    bills.write_log(folder, bills.calls(GPT, days=1))
    (folder / "costs.json").write_text('{"data": [], "has_more": false, "next_page": null}')
    out = analyzer.ingest(str(tmp_path / "case.duckdb"), [str(folder)])
    (file,) = [one for one in out.files if one.path == "costs.json"]
    assert "a usage or cost report without a line: ask for the days of the logs" in file.why


def test_hours_of_a_report_are_the_grain(tmp_path):
    _, rows, _ = sums_of(unreconciled.CASES["google_agrees"][0], tmp_path)
    assert {row["period_end_ns"] - row["period_start_ns"] for row in rows} == {HOUR}

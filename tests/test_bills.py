"""Bills: exact money, periods, units, kinds of token, and what is refused."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pytest
from helpers import case_of, engine_of
from test_readers import READERS, SAMPLES, read, rows_of

from analyzer.readers._bill import above_usual, exact, moment
from analyzer.readers._bill_words import kind_in, model_in, tokens_in, tokens_told, without_place
from analyzer.readers._file import InputFile
from analyzer.readers._find import pick
from analyzer.readers._jsonl import Bad, Sink


def told(reader, text, tmp_path, name="bill"):
    """Lines, problems and assumptions of a text, which must be claimed by its reader."""
    file = tmp_path / name
    file.write_text(text, encoding="utf-8")
    found = pick(InputFile(file, name).head)
    assert found.reader is READERS[reader], found.why
    batches = read(READERS[reader], file)
    problems = [problem.reason for batch in batches for problem in batch.problems]
    assumed = {note for batch in batches for note in batch.assumed}
    return [row for _, row in rows_of(batches)], problems, assumed


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.1", "0.1"),
        ("5.64902E-05", "0.0000564902"),
        ("1,234.50", "1234.5"),
        ("0,025", "0.025"),
        ("1,5", "1.5"),
        ("-0.000000000001", "-0.000000000001"),
        ("0." + "3" * 30, "0.333333333333"),
        ("123456789012345678", "123456789012345678"),
        ("NULL", None),
        ("", None),
    ],
)
def test_numbers_of_bills(text, value):
    assert exact(text, "x") == (None if value is None else Decimal(value))


@pytest.mark.parametrize(
    "text", ["1,234", "abc", "1e999", "1e30", "NaN", "Infinity", "9" * 5_000, 0.5, True, [1], "$1"]
)
def test_numbers_that_are_none_or_could_be_two(text):
    with pytest.raises(Bad):
        exact(text, "x")


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("2026-01-05", 1_767_571_200),
        ("1/5/2026", 1_767_571_200),
        ("1/5/26", 1_767_571_200),
        ("2026-01-05 00:00:00 UTC", 1_767_571_200),
        ("2026-01-05T01:00:00+01:00", 1_767_571_200),
        ("2026-01-05 00:00:00.000", 1_767_571_200),
        (1_767_571_200, 1_767_571_200),
    ],
)
def test_times_of_bills(text, ns):
    assert moment(text, "x", Sink(zone="Asia/Tokyo")) == ns * 1_000_000_000


@pytest.mark.parametrize("text", ["13/1/2026", "2026-02-30", "05.01.2026", "yesterday", {}, True])
def test_times_that_are_none(text):
    with pytest.raises(Bad):
        moment(text, "x", Sink())


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("gpt 4.1 cached Inp glbl Tokens", "cache_read"),
        ("GPT 5 Mini cchd Inpt Glbl 1M Tokens", "cache_read"),
        ("6-sol ShortCo Cd Wr Std Gl", "cache_write_unknown"),
        ("USE1_CacheWrite1hInputTokenCount_Global-Units", "cache_write_long"),
        ("cache_creation.ephemeral_5m_input_tokens", "cache_write_short"),
        ("input_cache_hit_tokens", "cache_read"),
        ("USE1-Claude4.6Opus-cache-read-input-token-count-x", "cache_read"),
        ("Gemini 2.5 Flash GA Thinking Text Output - Predictions", "output_reasoning"),
        ("gpt-4o-mini-0718-Outp-glbl Tokens", "output"),
        ("gpt 5 opt glbl Tokens", "output"),
        ("Gemini 2.5 Flash GA Caching Storage", None),
        ("Provisioned Managed Global Unit", None),
    ],
)
def test_kinds_of_token(text, kind):
    assert kind_in(text) == kind


def test_names_of_models_and_sizes_of_units():
    assert model_in("Claude4.6Opus-output-tokens-long-context") == "Claude4.6Opus"
    assert model_in("input_tokens_standard-Units") is None
    assert [tokens_in(u) for u in ("1K", "1M Tokens", "1000 tokens", "tokens", "10K")] == [
        1_000, 1_000_000, 1_000, 1, 10_000,
    ]  # fmt: skip
    assert [tokens_in(u) for u in ("Units", "1 Hour", "", None, "GB")] == [None] * 5
    assert tokens_told("$0.003 per 1K input tokens for Claude") == 1_000
    assert tokens_told("AWS Marketplace software usage|us-east-1|Million Input Tokens") == 1_000_000
    assert tokens_told("input tokens") is None
    assert tokens_told("1K input tokens or 1M output tokens") is None
    assert [above_usual(w) for w in ("0-200k", "\u2264 200k", "> 200k", "200k-1M", "", None)] == [
        False, False, True, True, None, None,
    ]  # fmt: skip


PAGES = ("openai_usage", "openai_costs", "anthropic_usage", "anthropic_costs")


@pytest.mark.parametrize("name", PAGES)
def test_blanks_and_the_way_it_was_saved_change_nothing(name, tmp_path):
    text = (SAMPLES / name / "page.json").read_text("utf-8")
    page = json.loads(text, parse_float=lambda digits: f"@{digits}@")
    want = [
        {k: v for k, v in row.items() if k != "record"} for row in told(name, text, tmp_path)[0]
    ]
    assert want
    for saved in (
        json.dumps(page, separators=(",", ":")),
        json.dumps(page, separators=(" , ", " : "), indent=1),
        json.dumps(page) + "\n" + json.dumps(page | {"data": []}) + "\n",
        json.dumps([page, page | {"data": []}]),
        "".join(json.dumps(bucket) + "\n" for bucket in page["data"]),
        json.dumps(page["data"]),
    ):
        digits = saved.replace('"@', "").replace('@"', "")
        rows, problems, _ = told(name, digits, tmp_path)
        assert problems == []
        assert [{k: v for k, v in row.items() if k != "record"} for row in rows] == want


def test_money_never_passes_through_a_float(tmp_path):
    page = (
        '{"object":"page","data":[{"object":"bucket","start_time":1767225600,"end_time":1767312000,'
        '"results":[{"object":"organization.costs.result","amount":{"value":123456789.123456789012,'
        '"currency":"usd"},"line_item":null}]}]}'
    )
    for text in (page, page + "\n" + page + "\n"):
        rows, _, _ = told("openai_costs", text, tmp_path)
        assert {row["amount"] for row in rows} == {Decimal("123456789.123456789012")}


def test_a_page_of_several_says_so(tmp_path):
    text = (SAMPLES / "openai_usage/page.json").read_text("utf-8")
    assert any("has_more" in note for note in told("openai_usage", text, tmp_path)[2])
    text = text.replace('"has_more": true', '"has_more": false')
    assert told("openai_usage", text, tmp_path)[2] == set()


def test_one_bad_result_costs_itself(tmp_path):
    text = (SAMPLES / "anthropic_costs/page.json").read_text("utf-8")
    rows, problems, _ = told("anthropic_costs", text.replace('"123.45"', '"12,345"'), tmp_path)
    assert len(rows) == 2
    (reason,) = problems
    assert "'amount' is no number" in reason


def test_parts_that_are_no_sum_are_a_problem(tmp_path):
    text = (SAMPLES / "openai_usage/page.json").read_text("utf-8")
    rows, problems, _ = told("openai_usage", text.replace("1500", "900"), tmp_path)
    assert len(rows) == 10
    (reason,) = problems
    assert "do not add up" in reason


def test_a_group_s_share_is_left_out():
    batches = read(READERS["anthropic_costs"], SAMPLES / "anthropic_costs/analytics.json")
    assert [reason for batch in batches for reason in batch.ignored] == [
        "the share of a group: groups overlap and do not add up"
    ]


def test_a_meter_that_no_rule_knows_is_named():
    notes = {
        note
        for batch in read(READERS["azure_costs"], SAMPLES / "azure_costs/ea.csv")
        for note in batch.assumed
    }
    assert "meter 'Provisioned Managed Global Unit' names no kind of token that is known" in notes
    assert not any("Class 2" in note for note in notes)


def test_a_unit_that_is_not_told_stays_as_billed(tmp_path):
    batches = read(READERS["aws_cur"], SAMPLES / "aws_cur/cur2.csv")
    (row,) = [row for _, row in rows_of(batches) if row.get("unit") == "Units"]
    assert (row["token_kind"], row["quantity"]) == ("input_fresh", 4)
    assert any("how many its unit holds" in note for batch in batches for note in batch.assumed)


def test_a_bill_of_billions_of_tokens_is_stored_and_adds_up(tmp_path):
    with engine_of(case_of(SAMPLES / "openai_usage", tmp_path / "case.duckdb")) as engine:
        (row,) = engine.rows(
            "SELECT max(quantity) AS most, sum(quantity) AS total, "
            "count(amount) AS priced FROM invoice_line WHERE unit = 'tokens'"
        )
    assert row["most"] == 4_200_000_000
    assert row["total"] == 1510 + 1580 + 4_200_000_007 + 64 + 955
    assert row["priced"] == 0


def test_keys_and_people_are_not_kept():
    for path in (SAMPLES / "deepseek_bill").iterdir():
        stored = str(rows_of(read(READERS["deepseek_bill"], Path(path))))
        assert "sk-1" not in stored
        assert "u1" not in stored


def test_a_unit_beyond_all_bounds_is_a_problem(tmp_path):
    text = (
        (SAMPLES / "focus_costs/focus.csv").read_text("utf-8").replace("1M T", "9999999999999B T")
    )
    rows, problems, _ = told("focus_costs", text, tmp_path)
    assert len(rows) == 2
    assert problems == ["a quantity of tokens beyond any bill"]


def test_focus_of_aws_names_the_model_without_its_region(tmp_path):
    text = (SAMPLES / "focus_costs/focus.csv").read_text("utf-8")
    text = text.replace("SkuMeter", "x_UsageType").replace("lyra-7b", "USE1-Lyra7B")
    rows, _, _ = told("focus_costs", text, tmp_path)
    assert rows[0]["model"] == "Lyra7B"
    assert without_place("META-Llama-input-tokens") == "META-Llama-input-tokens"
    assert without_place("EU-MP:EU_InputTokenCount-Units") == "InputTokenCount-Units"

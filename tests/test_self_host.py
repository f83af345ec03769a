"""The API beside GPUs of one's own: by hand, on few numbers."""

from __future__ import annotations

import json
from decimal import Decimal
from types import SimpleNamespace

import pytest
from click.testing import CliRunner
from helpers import case_of, engine_of

from analyzer.bounds.ask import Ask
from analyzer.bounds.calculate import bounds
from analyzer.bounds.hardware import accelerator, gpu_names
from analyzer.bounds.rent import _offers, offers
from analyzer.bounds.serving import Served, served
from analyzer.bounds.step import prefill_flops
from analyzer.cli import cli
from analyzer.errors import AnalyzerError
from analyzer.questions.self_host import (
    Load,
    Plan,
    break_even,
    fleet,
    per_million,
    self_host,
    slower,
    verdict,
)

START = 1_780_000_000
# A prompt token takes 0.1 ms of a replica, an output token 2 ms: 20 ms for ten at once.
TIME = Served(SimpleNamespace(tokens=1.0), 10, 20, 120e6, 100e6, 20e6, 1_000)
# In ten hours 3,600 requests of 1,500 tokens (500 cached) and 100 of answer; half of it in one.
LOAD = Load(
    3_600, 10.0, 5_400_000, 1_800_000, 360_000,
    ((1_800_000, 180_000), *[(200_000, 20_000)] * 9), Decimal(90),
)  # fmt: skip


def test_times_of_a_token():
    assert (TIME.fresh_ns, TIME.tpot_ns, TIME.output_ns) == (100_000, 20e6, 2e6)
    assert TIME.busy_ns(10, 5) == 11_000_000
    assert LOAD.sizes() == (1_500, 500, 100)
    assert LOAD.tokens == 5_760_000


def test_a_fleet_for_the_busiest_hour():
    own = fleet(LOAD, TIME, 2, Decimal("3.00"), 0.5)
    # 360 s of prompts and 720 s of answers, at half of the bound 2,160 s of 36,000.
    assert own.mean_load == pytest.approx(0.06)
    # The busiest hour has half of it: 1,080 s of 3,600.
    assert own.peak_load == pytest.approx(0.3)
    assert (own.replicas, own.usd_per_hour, own.usd) == (1, Decimal(6), Decimal(60))
    assert own.full_usd == pytest.approx(Decimal("3.6"))
    assert own.used == pytest.approx(0.06)
    assert per_million(own.usd, LOAD.tokens) == Decimal("10.416667")
    assert per_million(LOAD.usd, LOAD.tokens) == Decimal("15.625000")


def test_replicas_are_whole_and_a_full_one_is_one():
    # 540 s of work at the bound in the busiest hour: a whole hour at 15 %.
    assert fleet(LOAD, TIME, 1, Decimal(1), 0.15).replicas == 1
    assert fleet(LOAD, TIME, 1, Decimal(1), 0.149).replicas == 2


def test_break_even():
    own = fleet(LOAD, TIME, 2, Decimal("3.00"), 0.5)
    # 6 dollars an hour at 15.625 a million; a replica fills to 576,000 over 0.3 at these peaks.
    assert break_even(LOAD, own) == pytest.approx(384_000)
    cheap = Load(**{**vars(LOAD), "usd": Decimal(15)})
    # At 2.604 a million it takes 2.304 M tokens an hour, and 1.92 M is what a replica can do.
    assert break_even(cheap, own) is None
    assert break_even(Load(**{**vars(LOAD), "usd": None}), own) is None
    free = Load(**{**vars(LOAD), "usd": Decimal(0)})
    assert break_even(free, own) is None


def test_break_even_is_where_the_costs_meet():
    own = fleet(LOAD, TIME, 2, Decimal("3.00"), 0.5)
    tokens = break_even(LOAD, own)
    api = float(LOAD.usd) / LOAD.tokens * tokens
    assert api == pytest.approx(float(own.usd_per_hour))


def test_less_than_an_hour_has_no_busiest_one():
    short = Load(10, 0.1, 10_000, 0, 1_000, ((10_000, 1_000),), Decimal(1))
    own = fleet(short, TIME, 1, Decimal(1), 1.0)
    assert own.mean_load == own.peak_load == pytest.approx((1 + 2) / 360)


def test_verdicts():
    assert verdict(Decimal(2), Decimal(1)) == "fails"
    assert verdict(Decimal(1), Decimal(1)) == "holds"
    assert verdict(None, Decimal(1)) == "cannot say"
    assert slower((1_600.0, 1_000.0), (None, 10.0)) == "fails"
    assert slower((1_500.0, 1_000.0), (10.0, 10.0)) == "holds"
    assert slower((None, 1.0), (None, 1.0)) == "cannot say"


def test_a_replica_is_the_calculator_s():
    ask = Ask(model="llama-3.1-8b", gpu="h100-sxm5-80gb", count=1, tp=1, prompt=1_000, cached=200)
    time = served(ask, 300)
    told = bounds(Ask(**{**vars(ask), "batch": time.batch, "context": 1_150}))
    assert time.step_ns == told.tpot_ns["expected"]
    assert time.prefill_ns == told.ttft_ns["expected"]
    assert time.batch == 256 < time.fits
    part = accelerator("h100-sxm5-80gb")
    flops = prefill_flops(time.setting.shape, 1_000, 200)
    assert time.compute_ns == pytest.approx(flops / part.flops_16bit * 1e9, rel=1e-6)
    assert time.fresh_tokens == 800


def test_short_prompts_are_computed_beside_others():
    time = served(Ask(model="llama-3.1-8b", gpu="h100-sxm5-80gb", prompt=20), 10)
    # Alone it waits for the weights, which the others' steps read anyway.
    assert time.compute_ns < time.prefill_ns / 5


def test_a_model_that_does_not_fit_is_refused():
    with pytest.raises(AnalyzerError, match="does not fit on 1 x h100-sxm5-80gb"):
        served(Ask(model="llama-3.1-70b", gpu="h100-sxm5-80gb", prompt=1_000), 100)


def test_offers_are_of_catalogued_parts_dated_and_sourced():
    assert set(_offers()) <= set(gpu_names())
    for some in _offers().values():
        assert all(one.usd > 0 and one.as_of >= "2026-01-01" for one in some)
        # A page that can be opened, or words that say what else it is.
        assert all(one.source.startswith("https://") or "(" in one.source for one in some)
        assert [one.usd for one in some] == sorted(one.usd for one in some)
    assert offers("t4") == ()


# --- on a case -----------------------------------------------------------------------------------


def _case(tmp_path, *, priced=True):
    folder = tmp_path / "logs"
    folder.mkdir()
    records = [
        {
            "request_id": f"q{k}", "vantage": "client", "model": "m",
            "started_at": START + 60 * k, "ended_at": START + 60 * k + 90,
            "usage": {
                "prompt_tokens": 2_000, "completion_tokens": 100,
                "prompt_tokens_details": {"cached_tokens": 500},
            },
        }
        for k in range(120)
    ]  # fmt: skip
    (folder / "records.jsonl").write_text("".join(json.dumps(one) + "\n" for one in records))
    if priced:
        price = {"input": "2.00", "cache_read": "0.20", "output": "8.00"}
        (folder / "prices.json").write_text(
            json.dumps({"currency": "USD", "unit": "per_million_tokens", "models": {"m": price}})
        )
    return case_of(folder, tmp_path / "case.duckdb")


PLAN = Plan("h100-sxm5-80gb", "llama-3.1-8b", gpu_usd_per_hour=Decimal("2.50"))


def test_of_a_case(tmp_path):
    with engine_of(_case(tmp_path)) as engine:
        table = self_host(engine, PLAN)
    (row,) = table.rows
    # From the first start to the last end: 119 minutes and 90 s.
    assert row["hours"] == pytest.approx((119 * 60 + 90) / 3_600)
    assert (row["requests"], row["prompt_tokens"], row["cached_tokens"]) == (120, 2_000, 500)
    assert (row["output_tokens"], row["in_flight"], row["replicas"]) == (100, 2, 1)
    # 1,500 at 2 dollars, 500 at 0.20, 100 at 8: 0.0039 for 2,100 tokens.
    assert row["api_usd_per_million"] == Decimal("1.857143")
    usd = Decimal("2.50") * Decimal(119 * 60 + 90) / 3_600 / 252_000 * 1_000_000
    assert row["own_usd_per_million"] == pytest.approx(usd, abs=Decimal("0.000002"))
    assert row["cost"] == "holds"
    assert row["data_boundary"] == "cannot say"
    # 60 dollars a day.
    assert row["break_even_tokens_per_day"] == pytest.approx(60 / 1.857142857e-6, rel=1e-6)
    assert row["mean_load"] <= row["peak_load"] <= 1
    assert any("--gpu-usd-per-hour" in one for one in row["assumed"])
    assert any("--efficiency" in one for one in row["assumed"])
    assert any("less than a day" in note for note in table.notes)


def test_twice_the_efficiency_is_half_the_time(tmp_path):
    with engine_of(_case(tmp_path)) as engine:
        (slow,) = self_host(engine, PLAN).rows
        (fast,) = self_host(engine, Plan(**{**vars(PLAN), "efficiency": 1.0})).rows
    assert slow["mean_load"] == pytest.approx(2 * fast["mean_load"])
    assert slow["own_ttft_ms"] == pytest.approx(2 * fast["own_ttft_ms"])
    assert slow["full_usd_per_million"] == pytest.approx(
        2 * fast["full_usd_per_million"], abs=Decimal("0.00001")
    )


def test_without_a_price_there_is_no_break_even(tmp_path):
    with engine_of(_case(tmp_path, priced=False)) as engine:
        (row,) = self_host(engine, PLAN).rows
    assert row["api_usd_per_million"] is None
    assert row["break_even_tokens_per_day"] is None
    assert row["cost"] == "cannot say"
    assert row["own_usd_per_million"] > 0


def test_the_command(tmp_path):
    db = _case(tmp_path)
    words = ["--db", db, "cost", "--self-host", "h100-sxm5-80gb", "--host-model", "llama-3.1-8b"]
    told = CliRunner().invoke(cli, [*words, "-f", "json"])
    assert told.exit_code == 0, told.output
    row = json.loads(told.output)["self_host"]
    assert row["gpu"] == "h100-sxm5-80gb"
    # The middle of the offers, and their range.
    assert float(row["usd_per_gpu_hour"]) == 3.99
    (rent,) = [one for one in row["assumed"] if "RunPod" in one and "Azure" in one]
    assert "as transcribed in public from https://www.runpod.io/pricing, https://" in rent
    assert "AWS Price List (for programs; no page)" in rent
    shown = CliRunner().invoke(cli, [*words, "--gpu-usd-per-hour", "$1.25", "--gpus", "2"])
    assert shown.exit_code == 0, shown.output
    assert "A replica pays from" in shown.output
    assert "a GPU hour for 1.25 USD (as told)" in " ".join(shown.output.split())


@pytest.mark.parametrize(
    ("price", "days", "said"),
    [
        # 120 calls of 2,000 tokens are 240,000: 28.8 dollars in a day, and the cheapest GPU 28.56.
        ("120", 1, "The API costs $28.80 a day, a rented GPU from $28.56 a day on"),
        ("120", 2, None),
        ("118", 1, None),
        (None, 1, None),
    ],
)
def test_the_report_says_whether_to_ask(tmp_path, price, days, said):
    step = days * 86_400 / 119
    logs = tmp_path / "logs"
    logs.mkdir()
    lines = [
        {
            "request_id": f"q{k}", "vantage": "client", "model": "m", "e2e_ms": 900,
            "started_at": START + step * k,
            "usage": {"prompt_tokens": 2_000, "completion_tokens": 1},
        }
        for k in range(120)
    ]  # fmt: skip
    (logs / "q.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    if price:
        book = {"unit": "per_million_tokens", "models": {"m": {"input": price, "output": 0}}}
        (logs / "prices.json").write_text(json.dumps(book))
    db = case_of(logs, tmp_path / "case.duckdb")
    told = CliRunner().invoke(cli, ["--db", db, "report", "-f", "md"])
    assert told.exit_code == 0, told.output
    assert ("--self-host GPU --host-model MODEL" in told.output) is (said is not None)
    assert (said or "") in told.output


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--gpus", "2"], "--self-host names the GPU"),
        (["--self-host", "h100-sxm5-80gb"], "which model would run on it"),
        (["--self-host", "t4", "--host-model", "qwen3-8b"], "costs is not known"),
        (["--self-host", "h100-sxm5-80gb", "--gpu-usd-per-hour", "much"], "no price"),
    ],
)
def test_what_is_missing_is_said(tmp_path, words, says):
    told = CliRunner().invoke(cli, ["--db", _case(tmp_path), "cost", *words])
    assert told.exit_code != 0
    assert says in told.output

"""The teaching model gives its textbook's numbers to the digit, and its curves hold."""

import heapq
import random

import pytest

from analyzer.cli import _two_stage
from analyzer.contract.outputs import OUTPUTS
from analyzer.errors import AnalyzerError
from analyzer.simulate.two_stage import (
    KIND,
    TwoStage,
    batched_decode,
    decode_cost,
    erlang_c,
    md1_wait,
    mdc_wait,
    step_cost,
    table,
    told,
    total_cost,
)

CACHED, PLAIN = table(TwoStage()).rows


def test_the_textbooks_numbers():
    assert (CACHED["ttft"], PLAIN["ttft"]) == (2_400, 2_400)
    assert (CACHED["decode"], PLAIN["decode"]) == (9_260, 105_840)
    assert (CACHED["total"], PLAIN["total"]) == (11_660, 108_240)
    assert (CACHED["per_token"], PLAIN["per_token"]) == (291.5, 2706)
    steps = [
        [row[f"step_{which}"] for which in ("first", "mid", "last")] for row in (CACHED, PLAIN)
    ]
    assert steps == [[212, 232, 251], [2_412, 2_652, 2_880]]
    assert round(100 * CACHED["saved"], 1) == 89.2
    assert [round(row["tokens_per_1k"], 2) for row in (CACHED, PLAIN)] == [3.43, 0.37]


def test_they_are_printed_as_they_are_written():
    text = _two_stage.render(table(TwoStage()), "md")
    for number in (
        "2,400", "9,260", "105,840", "11,660", "108,240", "291.5", "2706", "212 / 232 / 251",
        "2,412 / 2,652 / 2,880", "89.2 %", "3.43", "0.37",
    ):  # fmt: skip
        assert number in text


def test_rows_have_the_published_keys():
    assert all(list(row) == OUTPUTS[KIND].names for row in (CACHED, PLAIN))


@pytest.mark.parametrize("cache", [True, False])
def test_decode_is_the_sum_of_its_steps(cache):
    rng = random.Random(4)
    for _ in range(50):
        model = TwoStage(
            prompt=rng.randint(1, 900), output=rng.randint(1, 300),
            forward_cost=rng.randint(1, 30), read_cost=rng.randint(0, 5),
        )  # fmt: skip
        steps = [step_cost(model, step, cache=cache) for step in range(model.output)]
        assert decode_cost(model, cache=cache) == sum(steps)


def test_sizes_are_options():
    model = told({"prompt": "1,000", "output": "10"})
    assert (model.prompt, total_cost(model, cache=True)) == (1000, 12_000 + 120 + 10_045)
    for wrong in ({"promt": "3"}, {"prompt": "many"}, {"prompt": "0"}, {"lanes": "0"}):
        with pytest.raises(AnalyzerError) as caught:
            told(wrong)
        assert caught.value.hint


def test_batching_raises_throughput_while_latency_stays_nearly_flat_then_latency_grows():
    model = TwoStage(lanes=16)
    curve = CACHED["batching"]
    below = [one for one in curve if one["batch"] <= model.lanes]
    above = [one for one in curve if one["batch"] > model.lanes]
    assert all(one["slower"] < 1.1 for one in below)
    assert below[-1]["tokens_per_1k"] > 0.9 * model.lanes * below[0]["tokens_per_1k"]
    assert len({round(one["tokens_per_1k"], 6) for one in above}) == 1
    assert above[-1]["slower"] == pytest.approx(above[-1]["batch"] / model.lanes)
    assert batched_decode(model, 1, cache=True) == decode_cost(model, cache=True)


def test_ttft_at_the_peak_is_mostly_queue():
    shares = [one["queue_share"] for one in CACHED["queueing"]]
    assert shares == sorted(shares)
    assert shares[-1] > 0.95 > 0.5 > shares[0]


def wait_of(servers, load, arrivals=200_000):
    """Mean wait of a queue that is really run: service takes 1, arrivals are Poisson."""
    rng = random.Random(servers * 100 + round(load * 10))
    free, now, total = [0.0] * servers, 0.0, 0.0
    for _ in range(arrivals):
        now += rng.expovariate(servers * load)
        start = max(now, heapq.heappop(free))
        heapq.heappush(free, start + 1)
        total += start - now
    return total / arrivals


@pytest.mark.parametrize("load", [0.3, 0.7, 0.9])
def test_one_server_waits_as_the_formula_says(load):
    assert md1_wait(load, 1) == pytest.approx(wait_of(1, load), rel=0.05)


@pytest.mark.parametrize("load", [0.7, 0.9])
def test_several_slots_wait_about_as_the_formula_says(load):
    assert mdc_wait(1, load, 1) == pytest.approx(md1_wait(load, 1))
    assert mdc_wait(16, load, 1) == pytest.approx(wait_of(16, load), rel=0.2)


def test_erlang():
    assert erlang_c(1, 0.6) == pytest.approx(0.6)
    assert erlang_c(2, 0.5) == pytest.approx(1 / 3)
    assert 0 < erlang_c(5000, 0.99) < 1

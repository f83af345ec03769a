"""The textbook's worked examples."""

from __future__ import annotations

import pytest

from analyzer import formulas

MS = 1_000_000


@pytest.mark.parametrize(("tokens", "expected_ms"), [(80, 1_100), (400, 4_300)])
def test_longer_answers_take_longer(tokens, expected_ms):
    assert formulas.linear_ns(300 * MS, 10 * MS, tokens) == expected_ms * MS


def test_ttft_is_queue_and_prefill_and_network():
    assert formulas.ttft_ns(120 * MS, 300 * MS, 30 * MS) == 450 * MS


def test_total_adds_a_step_for_each_token_after_the_first():
    assert formulas.total_ns(450 * MS, 20 * MS, 101) == 2_450 * MS
    assert formulas.total_ns(450 * MS, 20 * MS, 1) == 450 * MS
    with pytest.raises(ValueError, match="at least one token"):
        formulas.total_ns(450 * MS, 20 * MS, 0)


def test_tokens_per_second_approach_the_inverse_of_the_step():
    assert formulas.tokens_per_s(100, 500 * MS, 10 * MS) == pytest.approx(100 / 1.5)
    assert formulas.tokens_per_s(10**9, 500 * MS, 10 * MS) == pytest.approx(100, rel=1e-6)


def test_longer_reasoning_costs_its_steps_and_nothing_else():
    assert formulas.longer_ns(10 * MS, 80, 400) == 3_200 * MS
    before = formulas.linear_ns(300 * MS, 10 * MS, 80)
    assert before + formulas.longer_ns(10 * MS, 80, 400) == 4_300 * MS


def test_the_curve_of_tokens_per_second_rises_to_the_inverse_of_the_step():
    curve = formulas.tokens_per_s_curve(300 * MS, 10 * MS, (1, 30, 300))
    assert [count for count, _ in curve] == [1, 30, 300]
    assert [value for _, value in curve] == pytest.approx([1 / 0.31, 30 / 0.6, 300 / 3.3])


def test_tpot_leaves_out_the_first_chunk():
    assert formulas.tpot_ns(1_090 * MS, 100 * MS, 100) == 10 * MS
    assert formulas.tpot_ns(1_060 * MS, 100 * MS, 100, first_tokens=4) == 10 * MS
    assert formulas.tpot_ns(100 * MS, 100 * MS, 1) is None

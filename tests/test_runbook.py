"""Every play proves what it claims, has three outcomes, and says how it is done."""

from __future__ import annotations

import re

import cases
import pytest
from cases import (
    a1_admission,
    a2_evicted,
    a3_unload,
    a4_ttft_misread,
    a5_buffered,
    a6_interference,
    a7_preemption,
    a8_multi_token,
    a9_prefix_changed,
    a10_expired,
    a11_base_inflation,
    a15_far_from_bound,
    a16_offloaded,
    b1_spike,
    b3_hidden_attempts,
    b4_unreconciled,
    c1_unused_writes,
    c2_below_minimum,
    c3_lost_elsewhere,
    c4_model_switch,
    c5_changed_parts,
    d1_output_growth,
    e1_truncated,
    e2_failures,
    g1_growth,
    g2_compaction_loop,
    m1_client_hold,
    n1_fixed_offset,
    n3_buffered_seen,
    p1_long_prompt,
    s1_process_pause,
    s2_client_stalled,
    t1_clock,
)
from deep import one_in, unless
from helpers import case_of, check_verdict, engine_of, outcomes

import analyzer
from analyzer.contract.types import CONFIDENCES, SEGMENTS, SEVERITIES
from analyzer.errors import AnalyzerError
from analyzer.report.values import quantity
from analyzer.runbook._chart import MOST, chart_of
from analyzer.runbook._evaluate import evaluate, steady
from analyzer.runbook._play import ChartOf, all_plays, parse
from analyzer.store.case import open_case

PLAYS = all_plays()
_CASES = {
    "a1": a1_admission.main,
    "a1-saturation": a1_admission.CASES["saturation"][0],
    "a2": a2_evicted.CASES["main"][0],
    "a3": a3_unload.main,
    "a3-turns": a3_unload.CASES["models_take_turns"][0],
    "a4": a4_ttft_misread.main,
    "a5": a5_buffered.main,
    "a5-slow": a5_buffered.CASES["slow_network"][0],
    "a6": a6_interference.main,
    "a6-others": a6_interference.asked_by_others,
    "a7": a7_preemption.main,
    "a8": a8_multi_token.main,
    "a9": a9_prefix_changed.CASES["main"][0],
    "a10": a10_expired.CASES["main"][0],
    "n1": n1_fixed_offset.main,
    "n3": n3_buffered_seen.main,
    "t1": t1_clock.CASES["drift"][0],
    "a15": a15_far_from_bound.main,
    "a15-too-fast": a15_far_from_bound.CASES["wrong_precision"][0],
    "a16": a16_offloaded.main,
    "a11": a11_base_inflation.CASES["main"][0],
    "b1": b1_spike.CASES["main"][0],
    "b3": b3_hidden_attempts.CASES["main"][0],
    "b4": b4_unreconciled.CASES["main"][0],
    "c1": c1_unused_writes.CASES["main"][0],
    "c2": c2_below_minimum.CASES["engine"][0],
    "c2-below": c2_below_minimum.CASES["below"][0],
    "c3": c3_lost_elsewhere.CASES["spread"][0],
    "c4": c4_model_switch.CASES["main"][0],
    "c5": c5_changed_parts.CASES["main"][0],
    "d1": d1_output_growth.main,
    "e1": e1_truncated.main,
    "e2": e2_failures.CASES["timeouts"][0],
    "g1": g1_growth.CASES["main"][0],
    "g2": g2_compaction_loop.CASES["main"][0],
    "m1": m1_client_hold.main,
    "p1": p1_long_prompt.main,
    "s1": s1_process_pause.main,
    "s2": s2_client_stalled.main,
}


EXPECT = {write: expect for _, write, expect in cases.every()}
# The deep suite asks every rule of every case. The fast one asks every rule of every sixth, and of
# the others those that must fire and those that must not.
whole_cases = [
    pytest.param((name, True), id=name, marks=unless(one_in(6, name))) for name in _CASES
]
some_cases = [
    pytest.param((name, False), id=f"{name}-some") for name in _CASES if not one_in(6, name)
]
every_sixth_case = pytest.mark.parametrize("chosen", whole_cases, indirect=True, scope="module")


@pytest.fixture(scope="module", params=[*whole_cases, *some_cases])
def chosen(request):
    """Name of a case, and whether every rule is asked."""
    return request.param


@pytest.fixture(scope="module")
def case(chosen, tmp_path_factory):
    name, _ = chosen
    folder = tmp_path_factory.mktemp(name)
    logs = folder / "logs"
    logs.mkdir()
    _CASES[name](logs)
    return case_of(logs, folder / "case.duckdb")


@pytest.fixture(scope="module")
def engine(case):
    """One for all questions to a case, so that each analysis is computed once."""
    with engine_of(case) as engine:
        yield engine


@pytest.fixture(scope="module")
def expect(chosen):
    name, _ = chosen
    return EXPECT[_CASES[name]]


@pytest.fixture(scope="module")
def asked(chosen, expect):
    """The rules that are asked."""
    _, whole = chosen
    return set(PLAYS) if whole else cases.judged(expect)


@pytest.fixture(scope="module")
def result(engine, asked):
    return evaluate(engine, quantity) if asked == set(PLAYS) else outcomes(engine, asked)


def test_verdict(case, expect, result):
    assert cases.rules_of(expect)
    check_verdict(case, expect, result.found)


def test_every_rule_has_exactly_one_kind_of_outcome(asked, result):
    rules = (
        {one.rule for one in result.found}
        | {one.rule for one in result.clear}
        | {one.rule for one in result.cannot_say}
    )
    assert rules == asked
    counted = len({one.rule for one in result.found}) + len(result.clear) + len(result.cannot_say)
    assert counted == len(asked)


def test_the_sql_of_every_number_gives_that_number(engine, result):
    found = result.found
    assert found
    for finding in found:
        assert finding.evidence, finding.rule
        for evidence in finding.evidence:
            again = engine.value(evidence.sql)
            if isinstance(again, float):
                assert steady(again) == pytest.approx(evidence.value, rel=1e-9), evidence
            else:
                assert again == evidence.value, evidence
        for criterion in finding.done_when:
            assert engine.value(criterion.sql) is not None, criterion


def test_a_picture_shows_what_its_sql_gives(engine, result):
    for finding in result.found:
        if finding.chart is None:
            assert PLAYS[finding.rule].front.chart is None
            continue
        told = engine.rows(f"SELECT * FROM ({finding.chart.sql}) WHERE x + y IS NOT NULL")
        assert finding.chart.points == len(told), finding.rule
        assert {row["series"] for row in finding.chart.rows} == {row["series"] for row in told}
        assert all(row in told for row in finding.chart.rows)


def test_a_picture_of_many_requests_is_a_sample(tmp_path):
    path = tmp_path / "case.duckdb"
    open_case(path, write=True).close()
    spec = ChartOf(
        title="t", x="x", x_unit="1", y="y", y_unit="ns",
        sql="SELECT range AS x, range % 7 AS y, CASE WHEN range < 3 THEN 'few' ELSE 'many' END "
        "AS series FROM range(100000)",
    )  # fmt: skip
    with engine_of(str(path)) as engine:
        chart = chart_of(spec, engine)
    assert chart is not None
    assert chart.points == 100_000
    series = [row["series"] for row in chart.rows]
    assert series.count("few") == 3
    assert MOST / 2 < series.count("many") <= MOST


def test_findings_name_requests_that_exist(engine, result):
    known = {row["id"] for row in engine.rows("SELECT id FROM resolve_request")}
    for finding in result.found:
        assert finding.examples, finding.rule
        assert known.issuperset(finding.examples), finding.rule


@every_sixth_case
def test_requests_that_findings_name_can_be_shown(case, result):
    for finding in result.found:
        (example, *_) = finding.examples
        assert analyzer.show(case, example).id == example


def test_findings_are_complete(result):
    for finding in result.found:
        assert finding.severity in SEVERITIES
        assert finding.segment in SEGMENTS
        assert finding.confidence in CONFIDENCES
        assert 0 <= finding.share <= 1
        # What is only suspected may rest on attempts whose other side nobody tells.
        assert (0 if finding.confidence == "suspected" else 1e-9) <= finding.coverage <= 1
        assert finding.requests > 0
        assert finding.window
        assert finding.window[0] < finding.window[1]
        assert finding.actions
        assert finding.done_when
        for text in (
            finding.brief,
            finding.symptom,
            finding.cause,
            *(one.do for one in finding.actions),
        ):
            assert text
            assert not re.search(r"\{\w+\}", text), text


@every_sixth_case
def test_same_case_same_findings(case, result):
    again = analyzer.findings(case)
    assert (again.found, again.clear, again.cannot_say) == (
        result.found, result.clear, result.cannot_say,
    )  # fmt: skip


def test_an_empty_case_is_never_healthy(tmp_path):
    path = tmp_path / "case.duckdb"
    open_case(path, write=True).close()
    result = analyzer.findings(str(path))
    assert not result.found
    assert not result.clear
    assert len(result.cannot_say) == len(PLAYS)


def test_without_its_inputs_a_rule_cannot_say(tmp_path):
    logs = tmp_path / "logs"
    logs.mkdir()
    a1_admission.main(logs)
    (logs / "spans.jsonl").unlink()
    result = analyzer.findings(case_of(logs, tmp_path / "case.duckdb"))
    blind = {one.rule: one for one in result.cannot_say}
    assert {"queue.admission-limit", "queue.saturation"} <= blind.keys()
    assert any("llm_request spans" in one.how for one in blind["queue.saturation"].missing)


def test_what_a_case_does_not_hold_is_not_spoken_of(tmp_path):
    logs = tmp_path / "logs"
    logs.mkdir()
    a1_admission.main(logs)
    whole = analyzer.findings(case_of(logs, tmp_path / "whole.duckdb")).found[0]
    assert "KV cache never held" in whole.cause
    (logs / "vllm.log").unlink()
    blind = analyzer.findings(case_of(logs, tmp_path / "blind.duckdb")).found[0]
    assert whole.rule == blind.rule == "queue.admission-limit"
    assert (whole.confidence, blind.confidence) == ("measured", "derived")
    assert "KV" not in blind.cause


@pytest.mark.parametrize("rule", PLAYS)
def test_plays_say_all_they_must(rule):
    front = PLAYS[rule].front
    assert re.fullmatch(r"[a-z]+\.[a-z0-9-]+", rule)
    assert front.evidence
    assert front.actions
    assert front.done_when
    assert front.fires_when.why.endswith(".")
    assert len({one.id for one in front.evidence}) == len(front.evidence)
    assert not {one.id for one in front.evidence} & {"requests", "magnitude", "share", "where"}
    if front.chart:  # a legend has room for so much
        labels = re.findall(r"(?:THEN|ELSE) '([^']*)'", front.chart.sql)
        assert all(len(label) <= 24 for label in labels)
    if rule.startswith("instrument."):
        assert front.fires_when.at_most == "note"
        assert front.record.strip(), "show the lines that would record it"
    else:
        assert front.must_not


def test_a_broken_play_says_what_is_wrong():
    with pytest.raises(AnalyzerError, match="front matter"):
        parse("x.y", "no front matter")
    with pytest.raises(AnalyzerError, match=r"play x\.y: .*title"):
        parse("x.y", '+++\nclaims = "a"\n+++\n')


def test_filters_narrow_the_case(tmp_path):
    logs = tmp_path / "logs"
    logs.mkdir()
    a5_buffered.main(logs)
    db = case_of(logs, tmp_path / "case.duckdb")
    from analyzer.contract.types import Filters

    with engine_of(db) as engine:
        routes = [row["route"] for row in engine.rows("SELECT DISTINCT route FROM resolve_request")]
    fired = {
        route: {
            one.rule
            for one in analyzer.findings(db, Filters(route=route)).found
            if one.severity != "note"
        }
        for route in routes
    }
    assert sorted("network.buffered" in rules for rules in fired.values()) == [False, True]

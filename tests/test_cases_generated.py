"""Every generated case gets the right verdict, and its innocent twin none.

The deep suite asks every rule of each. The fast suite takes the first case of every rule that no
case of ``test_runbook.py`` lets fire, with the rules that must not, and a few of the innocent ones
with all.
"""

from __future__ import annotations

import cases
import pytest
from deep import deep, one_in
from helpers import case_of, check_verdict, engine_of, outcomes
from test_runbook import _CASES as ELSEWHERE
from test_runbook import EXPECT

from analyzer.runbook._play import all_plays

ALL = [pytest.param(write, expect, id=name) for name, write, expect in cases.every()]
FIRED_ELSEWHERE = set().union(*(cases.rules_of(EXPECT[write]) for write in ELSEWHERE.values()))


def _some():
    """Name, writer, expectation and rules of what the fast suite takes."""
    seen = set(FIRED_ELSEWHERE)
    for name, write, expect in cases.every():
        rules = cases.rules_of(expect)
        if rules - seen:
            yield name, write, expect, cases.judged(expect)
        elif not rules and one_in(30, name):
            yield name, write, expect, set(all_plays())
        seen |= rules


SOME = list(_some())


def test_the_fast_suite_lets_every_play_fire_and_stay_silent():
    fired = FIRED_ELSEWHERE.union(*(cases.rules_of(expect) for _, _, expect, _ in SOME))
    # What lacks is told of by the way in most cases; durations are judged in test_segments.py.
    besides = {rule for rule in all_plays() if rule.startswith("instrument.")}
    assert fired == set(all_plays()) - besides - {"trust.contradictory-durations"}
    assert fired == {rule for _, _, expect in cases.every() for rule in cases.rules_of(expect)}
    silent = [rules - cases.rules_of(expect) for _, _, expect, rules in SOME]
    assert set().union(*silent) == set(all_plays())


def judge(write, expect, folder, rules):
    logs = folder / "logs"
    logs.mkdir()
    write(logs)
    db = case_of(logs, folder / "case.duckdb")
    with engine_of(db) as engine:
        check_verdict(db, expect, outcomes(engine, rules).found)


@pytest.mark.parametrize(
    ("write", "expect", "rules"), [pytest.param(*one, id=name) for name, *one in SOME]
)
def test_verdict_of_some_rules(write, expect, rules, tmp_path):
    judge(write, expect, tmp_path, rules)


@deep
@pytest.mark.parametrize(("write", "expect"), ALL)
def test_verdict(write, expect, tmp_path):
    judge(write, expect, tmp_path, all_plays())

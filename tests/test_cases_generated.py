"""Every generated case gets the right verdict, and its innocent twin none.

The fast suite takes the first case of every rule, and of every kind the first where only silence is
right; ``test_runbook.py`` judges some of them on its way.
"""

from __future__ import annotations

import importlib
import pkgutil

import cases
import pytest
from deep import one_in, unless
from helpers import case_of, check_verdict
from test_runbook import _CASES as ELSEWHERE

from analyzer.runbook._play import all_plays


def _rules(expect):
    return {one["rule"] for one in (expect, *expect.get("also", ())) if "rule" in one}


def _all():
    seen = set()
    for module in pkgutil.iter_modules(cases.__path__):
        if not module.name.startswith("_"):
            for name, (write, expect) in importlib.import_module(
                f"cases.{module.name}"
            ).CASES.items():
                rules = _rules(expect)
                kinds = rules or {module.name}
                first = kinds - seen
                seen |= kinds
                # Innocent twins of half the kinds: each looks at every rule.
                told = first and (rules or one_in(2, module.name))
                fast = told and write not in ELSEWHERE.values()
                yield pytest.param(write, expect, id=f"{module.name}-{name}", marks=unless(fast))


@pytest.mark.parametrize(("write", "expect"), list(_all()))
def test_verdict(write, expect, tmp_path):
    for rule in _rules(expect):
        if rule not in all_plays():
            pytest.skip(f"play not there yet: {rule}")
    folder = tmp_path / "logs"
    folder.mkdir()
    write(folder)
    check_verdict(case_of(folder, tmp_path / "case.duckdb"), expect)

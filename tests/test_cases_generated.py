"""Every generated case gets the right verdict, and its innocent twin none."""

from __future__ import annotations

import importlib
import pkgutil

import cases
import pytest
from helpers import case_of, check_verdict


def _all():
    for module in pkgutil.iter_modules(cases.__path__):
        if not module.name.startswith("_"):
            for name, (write, expect) in importlib.import_module(
                f"cases.{module.name}"
            ).CASES.items():
                yield pytest.param(write, expect, id=f"{module.name}-{name}")


@pytest.mark.parametrize(("write", "expect"), list(_all()))
def test_verdict(write, expect, tmp_path):
    folder = tmp_path / "logs"
    folder.mkdir()
    write(folder)
    check_verdict(case_of(folder, tmp_path / "case.duckdb"), expect)

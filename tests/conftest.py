"""Golden files: ``golden("readers/x.jsonl", rows)`` compares with ``tests/golden/readers/x.jsonl``.

``pytest --refresh-golden`` (or ``make golden``) rewrites them instead; then read ``git diff``.
"""

import csv
import difflib
import io
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

GOLDEN = Path(__file__).parent / "golden"


def pytest_addoption(parser):
    parser.addoption("--refresh-golden", action="store_true", help="rewrite tests/golden")


def pytest_configure(config):
    if config.getoption("--refresh-golden") and os.environ.get("CI"):
        raise pytest.UsageError("--refresh-golden is refused in CI: goldens are read by people")


def as_text(path: str, value: str | Iterable[Mapping[str, Any]]) -> str:
    """Text as it is; rows as JSON Lines or CSV, after the name's ending."""
    if isinstance(value, str):
        return value
    rows = list(value)
    if path.endswith(".jsonl"):
        return "".join(json.dumps(row, ensure_ascii=False, default=str) + "\n" for row in rows)
    if path.endswith(".csv"):
        out = io.StringIO()
        writer = csv.DictWriter(out, list(rows[0]) if rows else [], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        return out.getvalue()
    raise ValueError(f"{path}: rows need a name that ends in .jsonl or .csv")


@pytest.fixture
def golden(request):
    """Compares a value with its golden file, or rewrites the file under --refresh-golden."""
    refresh = request.config.getoption("--refresh-golden")

    def compare(path: str, value: str | Iterable[Mapping[str, Any]]) -> None:
        file, got = GOLDEN / path, as_text(path, value)
        if refresh:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(got, encoding="utf-8", newline="\n")
            return
        if not file.exists():
            pytest.fail(f"no tests/golden/{path}; write it with: make golden", pytrace=False)
        want = file.read_bytes().decode("utf-8")
        if got != want:
            lines = difflib.unified_diff(
                want.splitlines(), got.splitlines(), f"tests/golden/{path}", "now", lineterm="", n=1
            )
            diff = "\n".join(list(lines)[:60])
            pytest.fail(f"{diff}\nif that is right: make golden, then read git diff", pytrace=False)

    return compare

"""Generated cases, one module a kind: other numbers than anybody's examples, same kinds of truth.

Each module has ``CASES = {name: (write, expect)}``. ``write(folder)`` writes the files; ``expect``
says what a verdict must claim (``rule``, ``segment``, ``requests``, ``magnitude``, ``tolerance``)
and what it must not (``must_not``); rules in ``may`` are true or arguable and not judged. Without a
``rule`` only the silence is judged. Numbers come from the parameters, never from what is written.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any


def every() -> Iterator[tuple[str, Callable[[Path], None], dict[str, Any]]]:
    """Name, writer and expectation of each case."""
    for module in pkgutil.iter_modules(__path__):
        if not module.name.startswith("_"):
            cases = importlib.import_module(f"cases.{module.name}").CASES
            for name, (write, expect) in cases.items():
                yield f"{module.name}-{name}", write, expect


def rules_of(expect: dict[str, Any]) -> set[str]:
    """What a verdict on it must claim."""
    return {one["rule"] for one in (expect, *expect.get("also", ())) if "rule" in one}


def judged(expect: dict[str, Any]) -> set[str]:
    """What a verdict on it must claim, and what it must not."""
    return rules_of(expect) | set(expect["must_not"])

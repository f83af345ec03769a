"""Names of models in price files that nothing is priced by, and what may be meant by them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import Any

from analyzer.engines.duckdb import Engine
from analyzer.errors import near

_PIECES = re.compile(r"[a-z]+|\d+")
_DATE_DIGITS = 6
_TYPO = 0.75
_LISTED = """SELECT p.model, min(s.path) AS path
FROM price AS p
JOIN source AS s ON p.source_id = s.source_id
WHERE p.model IS NOT NULL AND p.catalog IS NULL
GROUP BY p.model"""
_USED = """SELECT q.model, max(c.price_source) AS source,
  max(CASE WHEN c.price_source = 'price file' THEN 1 ELSE 0 END) AS by_file
FROM cost_tracked AS t
JOIN cost_request AS c ON t.request_key = c.request_key
JOIN resolve_request AS q ON t.request_key = q.request_key
WHERE t.is_metered AND q.model IS NOT NULL
GROUP BY q.model
ORDER BY q.model"""


def listed(engine: Engine) -> dict[str, str]:
    """Models of the case's price files, each with its file."""
    return {row["model"]: row["path"] for row in engine.rows(_LISTED)}


def why(row: dict[str, Any], files: dict[str, str]) -> str:
    """What is said of a model without a price, and the name in a file that may be meant for it."""
    meant = [] if row["model"] in files else near(row["model"], files)[:1]
    hint = [f"{files[one]} has {one}: name it as the log does, if it is the same" for one in meant]
    told = [row["why"]] if row["why"] else []
    return f" ({'; '.join([*told, *hint])})" if told or hint else ""


def misspelt(engine: Engine, files: dict[str, str]) -> Iterator[str]:
    """Names one word off a model that a catalog prices: the file's price is not used."""
    used = engine.rows(_USED) if files else []
    names = {row["model"] for row in used}
    for row in used:
        apart = row["source"] and not row["by_file"]
        for name in sorted(files.keys() - names) if apart else ():
            if is_typo(name, row["model"]):
                yield (
                    f"{files[name]} has {name}, which no request names; {row['model']} is priced "
                    f"by {row['source']}: name it as the log does, if it is the same."
                )


def is_typo(one: str, other: str) -> bool:
    """Whether two names differ in the letters of one word alone, dates left aside."""
    a, b = ([p for p in _PIECES.findall(name.lower()) if not _is_date(p)] for name in (one, other))
    if len(a) != len(b):
        return False
    apart = [(x, y) for x, y in zip(a, b, strict=True) if x != y]
    return len(apart) == 1 and SequenceMatcher(None, *apart[0]).ratio() >= _TYPO


def _is_date(piece: str) -> bool:
    return piece.isdigit() and len(piece) >= _DATE_DIGITS

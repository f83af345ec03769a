"""Words of bills: which kind of token a line is for, which model, and what its unit holds.

Vendors shorten and reorder them at will (``cached Inp``, ``cchd Inpt``, ``CacheReadTokenCount``).
"""

from __future__ import annotations

import re
from decimal import Decimal

_WORD = re.compile(r"\d+[hm](?![a-z])|\d+(?:\.\d+)*|[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_CACHED = {"cached", "cchd", "cd", "caching"}
_WRITTEN = {"write", "writes", "wr", "creation", "written"}
_LONG = {"1h", "12h"}
_SHORT = {"5m", "30m"}
_OUTPUT = {"output", "outp", "outpt", "otpt", "opt", "completion", "response"}
_INPUT = {"input", "inp", "inpt", "prompt"}
_REASONED = {"thinking", "reasoning"}
_AFTER = {
    "cache", "tokens", "token", "batch", "flex", "priority", "glbl", "global", "gl", "dzone",
    "regnl", "regional", "short", "long", "mantle", *_CACHED, *_WRITTEN, *_OUTPUT, *_INPUT,
    *_REASONED,
}  # fmt: skip
"""A word that ends the name of a model."""
_PLACE = re.compile(
    r"(?:(?:US|EU|AP|CA|SA|AF|ME|IL|MX|UG|CN)[A-Z]{0,2}\d-|EU-)?(?:MP:[A-Z]{2,4}\d?_)?"
)
_TIERS = ("batch", "flex", "priority")
_SIZES = {
    "": 1, "k": 1_000, "thousand": 1_000, "m": 1_000_000, "million": 1_000_000,
    "b": 1_000_000_000, "billion": 1_000_000_000,
}  # fmt: skip
_SIZE = r"(\d[\d,]{0,12})?\s*(k|m|b|thousand|million|billion)?"
_UNIT = re.compile(rf"\s*{_SIZE}\s*(tokens?)?\s*", re.IGNORECASE)
_IN_TEXT = re.compile(rf"(?<![\w.]){_SIZE}[ -](?:[a-z-]{{1,12}} ){{0,3}}tokens?\b", re.IGNORECASE)
_MOST_CHARS = 500


def words(text: str) -> list[str]:
    """The words of a name, whether split by case, marks or blanks."""
    return [word.lower() for word in _WORD.findall(text[:_MOST_CHARS])]


def kind_in(text: str) -> str | None:
    """The kind of token a name tells of; None where it tells none."""
    told = set(words(text))
    if "storage" in told:
        return None
    cached = bool(told & _CACHED) or "cache" in told
    if cached and told & _WRITTEN:
        lasts = "long" if told & _LONG else "short" if told & _SHORT else "unknown"
        return f"cache_write_{lasts}"
    if told & _CACHED or (cached and told & {"read", "reads", "hit", "hits"}):
        return "cache_read"
    if told & _OUTPUT:
        return "output_reasoning" if told & _REASONED else "output"
    return "input_fresh" if told & _INPUT else None


def tier_in(text: str | None) -> str | None:
    """The price class that a name tells of, where it is not the usual one."""
    told = set(words(text or ""))
    return next((tier for tier in _TIERS if tier in told), None)


def model_in(text: str, after: frozenset[str] = frozenset()) -> str | None:
    """What stands before the first word on tokens, tiers and places, or of ``after``."""
    for match in _WORD.finditer(text[:_MOST_CHARS]):
        if match[0].lower() in _AFTER or match[0].lower() in after:
            return text[: match.start()].strip(" -_.,:|") or None
    return None


def without_place(usage: str) -> str:
    """A usage type of AWS without its region and Marketplace: ``USE1-``, ``USE1-MP:USE1_``."""
    return _PLACE.sub("", usage, count=1)


def slug(name: str | None) -> str | None:
    """A display name as models are called: ``GPT 5 Mini`` is ``gpt-5-mini``."""
    return re.sub(r"\s+", "-", name.strip().lower()) if name else None


def tokens_in(unit: str | None) -> Decimal | None:
    """How many tokens a unit holds, as ``1K``, ``1M Tokens``; None where it does not say."""
    match = _UNIT.fullmatch(unit or "")
    return _size(match) if match and any(match.groups()) else None


def tokens_told(text: str | None) -> Decimal | None:
    """The same within a description, as in ``$0.30 per 1M input tokens``."""
    found = {_size(match) for match in _IN_TEXT.finditer((text or "")[:_MOST_CHARS])}
    found.discard(None)
    return found.pop() if len(found) == 1 else None


def _size(match: re.Match[str]) -> Decimal | None:
    number, scale = match[1], match[2]
    if number is None and scale is None and match.re is _IN_TEXT:
        return None
    return Decimal((number or "1").replace(",", "")) * _SIZES[(scale or "").lower()]

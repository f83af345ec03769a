"""Counts and their nouns: unit names are plurals, and one of a thing is said in the singular."""

from __future__ import annotations

import re

_ABBREVIATIONS = frozenset({"ms", "us", "ns", "s"})
_VERBS = {
    "are": "is", "were": "was", "have": "has", "do": "does", "take": "takes", "carry": "carries",
    "lack": "lacks", "tell": "tells", "deliver": "delivers", "need": "needs", "differ": "differs",
}  # fmt: skip
# Up to two adjectives, the noun, a remark in brackets, the verb: "streamed answers (route a) were".
_PHRASE = re.compile(
    r"^(\s*(?:(?!of\b)[\w-]+ ){0,2}?)([A-Za-z][\w-]*s)\b(\s*\([^()]*\))?(?:(\s+)([a-z]+)\b)?"
)


def singular(noun: str) -> str:
    """``requests`` -> ``request``; what is no plural stays."""
    if noun in _ABBREVIATIONS or not noun.endswith("s") or noun.endswith("ss"):
        return noun
    if noun.endswith("ies"):
        return noun[:-3] + "y"
    if noun.endswith(("ches", "shes", "sses", "xes")):
        return noun[:-2]
    return noun[:-1]


def agreeing(phrase: str) -> str:
    """What follows the number 1: its noun and the verb after it in the singular.

    ``streamed answers (route a) were late`` becomes ``streamed answer (route a) was late``.
    """

    def put(match: re.Match[str]) -> str:
        before, noun, remark, space, verb = match.groups()
        tail = f"{space}{_VERBS.get(verb, verb)}" if verb else ""
        return f"{before}{singular(noun)}{remark or ''}{tail}"

    return _PHRASE.sub(put, phrase, count=1)

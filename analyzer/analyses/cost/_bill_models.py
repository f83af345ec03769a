"""Names of models and vendors as bills and logs write them, which are seldom the same."""

from __future__ import annotations

import re
from collections.abc import Mapping

_PLACE = re.compile(r"^(?:us|eu|apac|jp|au|global)\.")
_MAKER = re.compile(
    r"^(?:anthropic|amazon|meta|mistral|cohere|openai|ai21|deepseek|qwen|google|moonshot)\."
)
_TAIL = re.compile(r"(?:-v\d+(?::\d+)?|:\d+|:free|\[1m\]|[-@]latest)$")
_DATE = re.compile(r"[-@ ](?:20\d\d-\d\d-\d\d|20\d{6}|(?:0[1-9]|1[0-2])[0-3]\d)(?=$|[-: @])")
_PIECES = re.compile(r"[a-z]+|\d+")
_VENDORS = (
    ("azure", r"azure|microsoft"),
    ("aws", r"bedrock|aws|amazon"),
    ("google", r"vertex|google|gcp|gemini"),
    ("anthropic", r"anthropic"),
    ("openai", r"openai"),
    ("deepseek", r"deepseek"),
    ("openrouter", r"openrouter"),
    ("cursor", r"cursor"),
)
_FAMILIES = (
    (r"claude", frozenset({"anthropic", "aws", "google", "azure"})),
    (r"gpt|^o\d|codex|davinci|whisper|embedding-(?:3|ada)", frozenset({"openai", "azure"})),
    (r"gemini", frozenset({"google"})),
    (r"deepseek", frozenset({"deepseek", "aws", "azure"})),
    (r"nova|titan", frozenset({"aws"})),
)
Key = tuple[tuple[str, ...], tuple[str, ...]]


def key_of(name: str) -> Key:
    """What two spellings of one model have in common: its words, and its numbers in order.

    ``us.anthropic.claude-opus-4-6-v1:0`` and ``Claude4.6Opus`` are one; so are an alias and the
    dated snapshot it stands for.
    """
    bare = _MAKER.sub("", _PLACE.sub("", name.lower().rsplit("/", 1)[-1]))
    bare = _DATE.sub("", _TAIL.sub("", bare))
    pieces = _PIECES.findall(_TAIL.sub("", bare))
    return (
        tuple(one for one in pieces if one.isdigit()),
        tuple(sorted(one for one in pieces if not one.isdigit())),
    )


def vendor(name: str | None) -> str:
    """``aws.bedrock`` and ``Amazon Web Services`` are ``aws``; an unknown one is itself."""
    low = (name or "").lower()
    return next((known for known, words in _VENDORS if re.search(words, low)), low)


def sellers(model: str) -> frozenset[str]:
    """Vendors that can bill a model; empty where its name tells none."""
    low = model.lower().rsplit("/", 1)[-1]
    return next((who for words, who in _FAMILIES if re.search(words, low)), frozenset())


def bill_of(provider: str, model: str | None, bills: Mapping[str, set[Key]]) -> str | None:
    """The bill on which usage of a model should stand; None where none of the bills is its own.

    ``bills``: vendor -> models it names; an empty set means that it names none.
    """
    named = vendor(provider)
    holding = [who for who, keys in bills.items() if model and key_of(model) in keys]
    if named in bills and (named in holding or not holding):
        return named
    if holding:
        return holding[0]
    can = sellers(model or "")
    if can:
        return next((who for who in bills if who in can), None)
    return next(iter(bills)) if len(bills) == 1 and not named else None

"""Reads the names of step annotations: which engine, which phase, how many requests and tokens."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

_VLLM = re.compile(r"^execute_(?:\d+_)?context_(\d+)\(([^()]*)\)_generation_(\d+)\(([^()]*)\)")
_SGLANG = re.compile(r"^step\[([A-Z_]+)\b([^\]]*)")
_ATOM = re.compile(r"^(prefill|decode|mixed)\[(bs=[^\]]*)", re.IGNORECASE)
_TRTLLM = re.compile(
    r"^\[Executor\] _forward_step\b[^:]*:?\s*(\d+) ctx reqs,(?:\s*(\d+) ctx tokens,)?"
    r"\s*(\d+) gen reqs"
)
_PROFILER = re.compile(r"^ProfilerStep#?\d*$")
_SOME = re.compile(
    r"^(?:(?:engine|model|executor|forward|worker|inference|run)[\s_.:-]*)?"
    r"(?:(prefill|extend|decode|generation|mixed)[\s_.:-]*)?"
    r"(?:step|iter(?:ation)?)s?[\s_#:.-]*\d*$|"
    r"^(prefill|extend|decode|generation|mixed)(?:[\s_#:.-]*\d+)?$",
    re.IGNORECASE,
)
_VALUE = re.compile(r"\b([a-z_]+)=(\d+)")
_SUMS = re.compile(r"(sqsq|sqsk|sq|sk)(\d+)")
_PHASES = {"extend": "prefill", "prefill": "prefill", "decode": "decode", "generation": "decode",
           "verify": "decode", "mixed": "mixed", "idle": None}  # fmt: skip
_MOST = 2**62


class Step(NamedTuple):
    """What a name tells; the columns of the analysis behind the name itself."""

    engine: str | None = None
    nearness: int | None = None
    phase: str | None = None
    prefill_requests: int | None = None
    prefill_tokens: int | None = None
    decode_requests: int | None = None
    decode_tokens: int | None = None
    kv_tokens: int | None = None
    is_drafted: bool = False


def rows(told: list[dict[str, Any]]) -> Iterator[tuple[Any, ...]]:
    """One row a name."""
    for one in told:
        step = step_of(one["name"][:2000])
        numbers = (None if n is None or n >= _MOST else n for n in step[3:8])
        yield (one["name"], *step[:3], *numbers, step.is_drafted)


def step_of(name: str) -> Step:
    """What a name tells of a step; nothing where it names none."""
    for read in (_vllm, _sglang, _trtllm, _atom):
        if (step := read(name)) is not None:
            return step
    if _PROFILER.match(name):
        return Step("profiler", 3)
    if (match := _SOME.match(name)) is not None:
        return Step("other", 2, _PHASES.get((match[1] or match[2] or "").lower()))
    return Step()


def _phase(prefill: int, decode: int) -> str | None:
    if prefill and decode:
        return "mixed"
    return "prefill" if prefill else "decode" if decode else None


def _vllm(name: str) -> Step | None:
    match = _VLLM.match(name)
    if match is None:
        return None
    prefill, decode = int(match[1]), int(match[3])
    (prefill_tokens, prefill_kv), (decode_tokens, decode_kv) = map(_sums, (match[2], match[4]))
    known = [one for one in (prefill_kv, decode_kv) if one is not None]
    return Step(
        "vllm", 1, _phase(prefill, decode), prefill, prefill_tokens, decode, decode_tokens,
        sum(known) if known else None, (decode_tokens or 0) > decode,
    )  # fmt: skip


def _sums(text: str) -> tuple[int | None, int | None]:
    """New tokens, and cached ones where told: ``32``, ``888_788544``, ``sq32sk99sqsq32sqsk99``."""
    named = {key: int(n) for key, n in _SUMS.findall(text)}
    if named:
        return named.get("sq"), named.get("sk")
    head = text.partition("_")[0].strip()
    return (int(head) if head.isdigit() else None), None


def _sglang(name: str) -> Step | None:
    match = _SGLANG.match(name)
    if match is None:
        return None
    word = match[1].lower()
    phase = "decode" if word.startswith("draft") else _PHASES.get(word)
    told = {key: int(n) for key, n in _VALUE.findall(match[2])}
    batch, tokens = told.get("bs"), told.get("toks")
    kv = [told[key] for key in ("c_sk", "g_sk", "sk") if key in told]
    prefill, decode = told.get("c"), told.get("g")
    if phase == "prefill":
        prefill, decode = batch, 0
    elif phase == "decode":
        prefill, decode, tokens = 0, batch, None
    elif decode is None and batch is not None and prefill is not None:
        decode = batch - prefill
    return Step(
        "sglang", 1, phase, prefill, told.get("c_sq", tokens if phase == "prefill" else None),
        decode, told.get("g_sq"), sum(kv) if kv else None, word.startswith(("draft", "verify")),
    )  # fmt: skip


def _trtllm(name: str) -> Step | None:
    match = _TRTLLM.match(name)
    if match is None:
        return None
    prefill, decode = int(match[1]), int(match[3])
    tokens = int(match[2]) if match[2] else None
    return Step("trtllm", 1, _phase(prefill, decode), prefill, tokens, decode)


def _atom(name: str) -> Step | None:
    match = _ATOM.match(name)
    if match is None:
        return None
    phase = match[1].lower()
    told = {key: int(n) for key, n in _VALUE.findall(match[2])}
    batch, tokens = told.get("bs"), told.get("tok")
    if phase == "prefill":
        return Step("atom", 1, phase, batch, tokens, 0, None, told.get("sk"))
    if phase == "decode":
        drafted = (tokens or 0) > (batch or 0)
        return Step("atom", 1, phase, 0, None, batch, tokens, told.get("sk"), drafted)
    return Step("atom", 1, phase, kv_tokens=told.get("sk"))

"""The verdict: when, what and what to do first, short enough to read aloud."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from analyzer.contract.types import Finding, Findings, Table
from analyzer.questions.timeline import ENOUGH, UNITS, Standout, no_window

_SEGMENTS = ("queue", "prefill", "decode", "network", "unattributed")
_CAUSED = ("queue", "prefill", "network")
_MOST = 3
_BEFORE_TOO = 1
"""Rank of a finding that holds in the window that stands out and before it."""
_MUCH = 0.25
"""Share of all time from which a segment without a cause is spoken of."""


def verdict(
    findings: Findings,
    latency: Table,
    say: Callable[[Any, str], str],
    standout: Standout | None,
    engines: str = "",
    apart: str = "",
) -> str:
    """When it happened, what was found in that time and besides, and what to do first.

    ``engines``: what the servers' own samples show, for a case without requests. ``apart``: that
    it holds runs far apart.
    """
    serious = [one for one in findings.found if one.severity != "note"]
    if not any(row["requests"] for row in latency.rows):
        silent = "The case holds no requests with a duration, so nothing can be said of latency."
        told = [*_causes(serious[:_MOST], None), *_more(serious), *_first(serious)]
        told = told or [_nothing(findings, say)]
        return " ".join([*told, silent, *filter(None, [engines])])
    blind = _unexplained(findings, latency, say)
    sentences = [f"{apart}."] if apart else []
    if standout:
        then = any(_relation(one.window, standout.window)[0] <= _BEFORE_TOO for one in serious)
        sentences.append(_when(standout, say, explained=then or bool(blind)))
    sentences += _causes(serious[:_MOST], standout)
    sentences += _more(serious)
    sentences += blind
    sentences += _first(serious)
    if len(sentences) == bool(apart):
        sentences.append(_nothing(findings, say))
    requests = max(row["requests"] for row in latency.rows)
    if standout is None and requests < ENOUGH:
        sentences.append(f"{_capital(no_window(requests))}.")
    return " ".join(sentences)


def _nothing(findings: Findings, say: Callable[[Any, str], str]) -> str:
    unseen = len(findings.cannot_say)
    rest = f"; {unseen} could not look for want of data" if unseen else ""
    return f"Nothing was found that needs action: {say(len(findings.clear), 'checks')} clear{rest}."


def _more(serious: list[Finding]) -> list[str]:
    more = len(serious) - _MOST
    return [f"Further findings below: {more}."] if more > 0 else []


def _first(serious: list[Finding]) -> list[str]:
    first = next((one.actions[0] for one in serious if one.actions), None)
    return [] if first is None else [f"First: {first.do}"]


def _when(found: Standout, say: Callable[[Any, str], str], *, explained: bool) -> str:
    unit = UNITS.get(found.metric, "ns")
    start, end = (say(moment, "time_ns") for moment in found.window)
    if start[:10] == end[:10]:
        end = end[11:]
    text = (
        f"From {start} to {end} {found.was} {say(found.inside, unit)} on average, "
        f"{say(found.outside, unit)} otherwise"
    )
    return f"{text}." if explained else f"{text}; the logs at hand do not tell why."


def _causes(serious: list[Finding], standout: Standout | None) -> list[str]:
    """The findings of the time that stands out first, then those of other times."""
    if standout is None:
        return [f"{_capital(_cause(one))}." for one in serious]
    placed = [(*_relation(one.window, standout.window), one) for one in serious]
    placed.sort(key=lambda item: item[0])
    return [f"{when} {_cause(one)}." for _, when, one in placed]


def _relation(window: tuple[int, int] | None, standout: tuple[int, int]) -> tuple[int, str]:
    if window is None:
        return 3, "Besides,"
    if window[0] >= standout[1]:
        return 2, "After it"
    if window[0] >= standout[0]:
        return 0, "In that time"
    return (_BEFORE_TOO, "Before it too,") if window[1] > standout[0] else (2, "Before it")


def _cause(finding: Finding) -> str:
    title = finding.title
    # "KV cache" and "TTFT" keep their capitals.
    if not title[1:2].isupper():
        title = title[:1].lower() + title[1:]
    return f"{title} ({', '.join(filter(None, (finding.brief, finding.where)))})"


def _unexplained(findings: Findings, latency: Table, say: Callable[[Any, str], str]) -> list[str]:
    """Segments that take much of the time while no rule could look for the cause."""
    shares = {row["metric"]: row["share"] or 0 for row in latency.rows}
    told = {one.segment for one in findings.found if one.severity != "note"}
    sentences = []
    for segment in _CAUSED:
        blind = [one for one in findings.cannot_say if one.rule.startswith(f"{segment}.")]
        if shares.get(segment, 0) >= _MUCH and segment not in told and blind:
            # Its own time is known, or it would not stand out: the last need explains it.
            lacking = blind[0].missing[-1]
            sentences.append(
                f"Time in {segment} stands out with {say(shares[segment], 'ratio')} of all time, "
                f"but its cause cannot be said without {lacking.input}. {_capital(lacking.how)}."
            )
    return sentences


def _capital(text: str) -> str:
    return text if text.startswith("vLLM") else text[:1].upper() + text[1:]


def split(latency: Table, say: Callable[[Any, str], str]) -> str:
    """Shares of the summed end-to-end time, as far as it is attributed; empty without any."""
    rows = {row["metric"]: row for row in latency.rows}
    whole = rows.get("e2e")
    if whole is None or not whole["requests"]:
        return ""
    told = [(rows[name]["share"], name) for name in _SEGMENTS if name in rows]
    parts = [f"{name} {say(share, 'ratio')}" for share, name in sorted(told, key=_most) if share]
    mean, requests = say(whole["mean_ns"], "ns"), say(whole["requests"], "requests")
    return f"Where the time went, {requests} of {mean} on average: {', '.join(parts)}."


def _most(pair: tuple[float | None, str]) -> float:
    return -(pair[0] or 0.0)

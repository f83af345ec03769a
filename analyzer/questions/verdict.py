"""The verdict: what was found, and where the time goes, in one paragraph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from analyzer.contract.types import Finding, Findings, Table

_SEGMENTS = ("queue", "prefill", "decode", "network", "unattributed")
_CAUSED = ("queue", "prefill", "network")
_MOST = 3
_MUCH = 0.25
"""Share of all time from which a segment without a cause is spoken of."""


def verdict(
    findings: Findings, latency: Table, say: Callable[[Any, str], str], standout: str = ""
) -> str:
    """The findings that matter, each in its own words; then the split of all time."""
    if not any(row["requests"] for row in latency.rows):
        return "The case holds no requests with a duration, so nothing can be said of latency."
    serious = [one for one in findings.found if one.severity != "note"]
    sentences = [_sentence(one) for one in serious[:_MOST]]
    sentences += _unexplained(findings, latency, say)
    if not serious and standout:
        sentences.append(standout)
    if not sentences:
        blind = len(findings.cannot_say)
        rest = f"; {blind} could not look for want of data" if blind else ""
        sentences.append(
            f"Nothing was found that needs action: {len(findings.clear)} checks are clear{rest}."
        )
    elif len(serious) > _MOST:
        sentences.append(f"{len(serious) - _MOST} more findings follow.")
    return " ".join([*sentences, _split(latency, say)]).strip()


def _sentence(finding: Finding) -> str:
    head = finding.symptom.split("\n\n")[0]
    return f"{finding.title}: {head}"


def _unexplained(findings: Findings, latency: Table, say: Callable[[Any, str], str]) -> list[str]:
    """Segments that take much of the time while no rule could look for the cause."""
    shares = {row["metric"]: row["share"] or 0 for row in latency.rows}
    told = {one.segment for one in findings.found if one.severity != "note"}
    sentences = []
    for segment in _CAUSED:
        blind = [one for one in findings.cannot_say if one.rule.startswith(f"{segment}.")]
        if shares.get(segment, 0) >= _MUCH and segment not in told and blind:
            lacking = blind[0].missing[0]
            sentences.append(
                f"Time in {segment} stands out with {say(shares[segment], 'ratio')} of all time, "
                f"but its cause cannot be said without {lacking.input}. {_capital(lacking.how)}."
            )
    return sentences


def _capital(text: str) -> str:
    return text if text.startswith("vLLM") else text[:1].upper() + text[1:]


def _split(latency: Table, say: Callable[[Any, str], str]) -> str:
    """Shares of the summed end-to-end time, as far as it is attributed."""
    rows = {row["metric"]: row for row in latency.rows}
    whole = rows.get("e2e")
    if whole is None or not whole["requests"]:
        return ""
    parts = [
        f"{name} {say(rows[name]['share'], 'ratio')}"
        for name in _SEGMENTS
        if name in rows and rows[name]["share"]
    ]
    mean = say(whole["mean_ns"], "ns")
    return f"Over all {say(whole['requests'], '')} requests (mean {mean}): {', '.join(parts)}."

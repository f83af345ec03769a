"""What is safe to share names nobody: not in fields, not in sentences, in no format."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import examples_of_results as ex
import pytest
from deep import deep

import analyzer
from analyzer.contract.types import (
    Bar,
    Evidence,
    Incident,
    Lane,
    Mark,
    Report,
    RequestView,
    Table,
)
from analyzer.report import formats, html, share

MODEL = "meta-llama/Llama-3.1-70B"
SECRETS = {
    "id": "req-SECRET-alpha/7",
    "session": "sess SECRET (alice)",
    "user": "alice.SECRET@bank.example",
    "host": "db7.SECRET.internal",
    "deployment": "SECRET-deploy_1",
    "route": "/SECRET/v2/chat, completions",
    "path": "home/SECRET-bob/logs/engine SECRET.log.gz",
    "tag": "team=SECRET",
    "error": "ConnectError: SECRET-host:8443 refused",
    "hostile": "SECRET\x1b[31m<script>",
    "evidence": "tenant SECRET blue",
}


def view(secrets: dict[str, str]) -> RequestView:
    return RequestView(
        id=secrets["id"],
        facts=(
            ("model", MODEL),
            ("provider", "openai"),
            ("route", secrets["route"]),
            ("deployment", secrets["deployment"]),
            ("session_id", secrets["session"]),
            ("host", secrets["host"]),
            ("user", secrets["user"]),
            ("tag team", secrets["tag"]),
            ("error", secrets["error"]),
            ("status", "503"),
            ("label", secrets["hostile"]),
        ),
        e2e_ns=2 * ex.S,
        ttft_ns=ex.S,
        bars=(Bar("client", "whole request", 0, 2 * ex.S, "measured", "none"),),
        segments=({"view": "e2e", "segment": "queue", "dur_ns": ex.S, "grade": "measured"},),
        tokens=(("input_fresh_tokens", 3),),
        records=({"path": secrets["path"], "record": 4, "vantage": "client", "reader": "r"},),
        notes=(f"seen on {secrets['host']} for {secrets['user']}",),
    )


def report_of(secrets: dict[str, str], sha: str = "ab" * 32) -> Report:
    all_of_them = "; ".join(secrets.values())
    finding = replace(
        ex.QUEUE,
        where=f"route {secrets['route']}, model {MODEL}",
        symptom=f"Requests of {MODEL} wait: {all_of_them}",
        cause=f"In {secrets['path']} ({secrets['deployment']}).",
        contradicts=all_of_them,
        evidence=(
            *ex.QUEUE.evidence,
            Evidence("slowest tenant", secrets["evidence"], "", "SELECT 'SECRET-deploy_1'"),
            Evidence("model", MODEL, "", "SELECT 1"),
        ),
        examples=(secrets["id"],),
    )
    row = {**ex.REPORT.slowest[0], "id": secrets["id"], "route": secrets["route"], "model": MODEL}
    source = {
        "path": secrets["path"],
        "reader": "vllm_log",
        "record_unit": "line",
        "records": 3,
        "sha256": sha,
    }
    return replace(
        ex.REPORT,
        title=f"Slow for {secrets['user']}",
        verdict=f"Slow: {all_of_them}. Model {MODEL}.",
        findings=replace(ex.FINDINGS, found=(finding,)),
        slowest=(row,),
        sources=Table("analyze.sources", (source,), (f"{secrets['path']}: no year told",)),
        notes=(f"{secrets['path']}: zone UTC", f"engine SECRET.log.gz by {secrets['user']}"),
        marks=(Mark(ex.START, f"deploy of {secrets['deployment']} at 10.20.30.40"),),
        lanes=(
            Lane(
                *("Requests", "requests", ex.S),
                ({"start_ns": ex.START, "group": secrets["deployment"], "value": 1.0},),
            ),
        ),
        incident=Incident(
            ex.INCIDENT,
            f"{secrets['host']} was slow",
            Table("analyze.compare", (), (f"without {secrets['session']}",)),
        ),
        waterfalls=(view(secrets),),
    )


def printed(report: Report) -> dict[str, str]:
    forms = {form: formats.render(report, form, width=200) for form in formats.FORMATS}
    return forms | {"html": html.render(report)}


def test_no_secret_is_left_in_any_format():
    before, after = report_of(SECRETS), share.safe(report_of(SECRETS))
    assert "SECRET" in html.render(before)
    for form, text in printed(after).items():
        assert "SECRET" not in text, form
        assert "alice" not in text
        assert "10.20.30.40" not in text
        assert "ab" * 6 not in text, "the hash of a file could be looked up elsewhere"
    assert "SECRET" not in repr(after)


def test_models_rules_and_numbers_stay():
    after = share.safe(report_of(SECRETS))
    finding = after.findings.found[0]
    assert finding.rule == "queue.admission-limit"
    assert MODEL in finding.symptom
    assert MODEL in (finding.where or "")
    assert finding.evidence[-1].value == MODEL
    assert finding.evidence[0] == ex.QUEUE.evidence[0]
    assert finding.magnitude == ex.QUEUE.magnitude
    assert after.slowest[0]["model"] == MODEL
    assert after.slowest[0]["e2e_ns"] == ex.REPORT.slowest[0]["e2e_ns"]
    assert dict(after.waterfalls[0].facts)["provider"] == "openai"
    assert after.waterfalls[0].bars == view(SECRETS).bars
    assert after.segments == ex.REPORT.segments
    assert after.timeline == ex.REPORT.timeline
    json.loads(formats.render(after, "json"))


def test_equal_names_stay_equal_and_differ_between_cases():
    one, other = (share.safe(report_of(SECRETS, sha)) for sha in ("ab" * 32, "cd" * 32))
    name = one.slowest[0]["id"]
    assert re.fullmatch(r"request-[0-9a-f]{8}", name)
    assert name == one.findings.found[0].examples[0] == one.waterfalls[0].id
    assert name in one.verdict
    route = dict(one.waterfalls[0].facts)["route"]
    assert one.findings.found[0].where == f"route {route}, model {MODEL}"
    assert one.notes[0].split(":")[0] == one.sources.rows[0]["path"]
    assert name != other.slowest[0]["id"]
    assert share.safe(report_of(SECRETS)) == one


@pytest.mark.parametrize(
    "name",
    ["queue", "12", *(pytest.param(one, marks=deep) for one in ("request", "ns", "prefill"))],
)
def test_names_that_are_words_of_the_tool_break_no_sentence(name):
    after = share.safe(report_of(dict.fromkeys(SECRETS, name)))
    assert after.slowest[0]["id"] != name
    assert after.findings.found[0].segment == "queue"
    assert after.findings.found[0].evidence[0] == ex.QUEUE.evidence[0]
    assert after.findings.found[0].examples[0] != name
    for text in printed(after).values():
        assert text


def test_a_model_that_is_served_from_a_folder_loses_the_folder():
    whole = report_of(SECRETS)
    path = "/home/SECRET/models/llama-70b"
    row = {**whole.slowest[0], "model": path}
    after = share.safe(replace(whole, slowest=(row,), verdict=f"{path} is slow"))
    assert after.slowest[0]["model"] == "llama-70b"
    assert after.verdict == "llama-70b is slow"


def test_an_empty_report_can_be_shared():
    assert share.safe(ex.EMPTY).findings == ex.EMPTY.findings


def test_what_analyses_say_themselves_is_kept():
    text = (Path(analyzer.__file__).parent / "analyses" / "latency" / "segment.sql").read_text(
        encoding="utf-8"
    )
    said = re.findall(r"THEN '((?:[^']|'')* (?:[^']|'')*)'", text)
    assert said
    assert {one.replace("''", "'") for one in said} <= share._OWN

"""Hand-made values for the printers: a rich case, an empty one, and one full of hostile text."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

from examples_over_time import (
    CHANGES,
    HOSTILE,
    INCIDENT,
    LANES,
    MARKS,
    START,
    VIEW,
    WAITS,
    WINDOW,
    S,
    hostile_view,
)

from analyzer.contract.types import (
    Action,
    CannotSay,
    Clear,
    Criterion,
    Evidence,
    Explanation,
    FileRead,
    Finding,
    Findings,
    Incident,
    IngestResult,
    Lane,
    Magnitude,
    Mark,
    Missing,
    Report,
    Series,
    Status,
    Table,
)

MOMENTS = (("mean", 1), ("p50", 1), ("p95", 2), ("p99", 3))

QUEUE = Finding(
    rule="queue.admission-limit",
    severity="critical",
    segment="queue",
    title="Requests wait for admission while the engine has room",
    requests=1412,
    magnitude=Magnitude(4_012_345_678, "ns", "mean wait"),
    share=0.3127,
    confidence="measured",
    coverage=0.9871,
    where="deployment vllm-0",
    window=INCIDENT,
    evidence=(
        Evidence(
            "mean wait in the window",
            4_012_345_678,
            "ns",
            "SELECT CAST(avg(queue_ns) AS BIGINT)\nFROM resolved_request\n"
            "WHERE start_ns >= 1789655400000000000 AND start_ns < 1789656750000000000",
        ),
        Evidence(
            "mean wait outside it",
            182_000_000,
            "ns",
            "SELECT CAST(avg(queue_ns) AS BIGINT) FROM resolved_request\n"
            "WHERE NOT (start_ns >= 1789655400000000000 AND start_ns < 1789656750000000000)",
        ),
        Evidence("KV cache in use, highest", 0.412, "ratio", "SELECT max(kv_used_ratio) FROM s"),
        Evidence("requests running, highest", 64, "requests", "SELECT max(running) FROM s"),
    ),
    actions=(
        Action(
            "Raise the admission limit (--max-num-seqs) from 64 to 128 on one replica",
            *("serving platform", "mean wait below 400 ms; step time up by less than 10 %"),
        ),
        Action(
            "Alert on requests waiting while the KV cache is below 70 %",
            *("serving platform", "the next occurrence is seen within a minute"),
        ),
    ),
    done_when=(
        Criterion(
            *("p95 ttft", "<=", 2.0, "s"),
            "SELECT quantile_cont(ttft_ns, 0.95) / 1e9 FROM resolved_request "
            "WHERE model = 'llama-3.1-70b'",
        ),
    ),
    examples=("req-0412", "req-0977", "req-1033"),
    symptom="From 14:30 to 14:52 the mean wait before the first step rose from 182 ms to 4.01 s "
    "for 1,412 requests, while prompts stayed as long as before.",
    cause="The engine admits at most 64 requests at once. It ran at that limit all through the "
    "window with less than half of its KV cache in use, so requests waited for a slot and not for "
    "memory.",
    contradicts="A KV cache near full, or prompts that grew in the same window.",
    how_computed="Waits are the engine's own; the baseline is the rest of the case.",
    chart=WAITS,
)
CACHE = Finding(
    rule="prefill.cache-miss",
    severity="warning",
    segment="prefill",
    title="Time to first token rose because fewer prompt tokens came from the cache",
    requests=318,
    magnitude=Magnitude(640_000_000, "ns", "extra time to first token"),
    share=0.041,
    confidence="derived",
    coverage=0.94,
    cost_usd="12.418250000",
    where="route /v1/chat",
    window=(START + 1500 * S, START + 3000 * S),
    evidence=(
        Evidence("cached share before", 0.81, "ratio", "SELECT 0.81"),
        Evidence("cached share after", 0.22, "ratio", "SELECT 0.22"),
        Evidence("tokens read again", 4_812_330, "tokens", "SELECT 4812330"),
    ),
    actions=(
        Action(
            "Move the timestamp from the head of the system prompt to its end",
            *("application team", "cached share back above 75 %"),
        ),
    ),
    done_when=(Criterion("cached share", ">=", 0.75, "ratio", "SELECT 0.81"),),
    examples=("req-0501",),
    symptom="The first token came 640 ms later for 318 requests.",
    cause="The first block of the prompt differs on every call since 14:35.",
)
NOTE = Finding(
    rule="instrument.cached-tokens",
    severity="note",
    segment="none",
    title="The gateway does not record cached tokens",
    requests=96,
    magnitude=Magnitude(96, "requests", "without cached tokens"),
    share=0.0,
    confidence="measured",
    coverage=1.0,
    actions=(Action("Log usage.cached_tokens at the gateway", "application team", "known"),),
)
FINDINGS = Findings(
    found=(NOTE, CACHE, QUEUE),
    clear=(
        Clear("queue.saturation", 0.98, "Waiting because capacity is used up"),
        Clear("queue.head-of-line", 0.98, "Short requests behind one long prefill"),
        Clear("prefill.long-prompt", 1.0, "Time to first token follows prompt length"),
        Clear("network.buffered", 0.93, "A hop holds the stream back"),
        Clear("metric.ttft-misread", 0.93, "A reported time to first token is something else"),
        Clear("decode.output-growth", 1.0, "Answers grew longer"),
    ),
    cannot_say=(
        CannotSay(
            "decode.below-bound",
            (Missing("memory bandwidth", "Name the accelerator."), Missing("parameters", "Add.")),
            0.0,
            "Decode runs far below the hardware's bound",
        ),
        CannotSay(
            "cost.spike",
            (Missing("prices", "Pass --prices prices.json, or name a listed model."),),
            *(0.12, "The bill rose"),
        ),
    ),
)


def _timeline() -> Series:
    sizes = {"queue": 0.18, "prefill": 0.42, "decode": 2.6, "network": 0.09, "unattributed": 0.03}
    rows = []
    for index in range(120):
        at = START + index * 30 * S
        for order, (name, size) in enumerate(sizes.items()):
            wave = 1 + 0.15 * (((index * 7 + order * 13) % 11) / 11 - 0.5)
            late = 4.0 * wave if name == "queue" and INCIDENT[0] <= at < INCIDENT[1] else 0.0
            rows.append(
                {"start_ns": at, "segment": name, "mean_ns": round((size * wave + late) * S)}
            )
    title = "Mean time a request by segment, in steps of 30 s"
    return Series(title, "start_ns", "mean_ns", "ns", "segment", tuple(rows))


SEGMENTS = Table(
    "analyze.segments",
    tuple(
        {
            "segment": name,
            "requests": 4218,
            "p50_ns": round(size * S),
            "p95_ns": round(size * 3.1 * S),
            "mean_ns": round(size * 1.2 * S),
            "share": share,
            "measured_share": measured,
            "derived_share": round(1 - measured - absent, 3),
            "absent_share": absent,
        }
        for name, size, share, measured, absent in (
            ("queue", 0.19, 0.36, 0.97, 0.03),
            ("prefill", 0.41, 0.13, 0.97, 0.03),
            ("decode", 2.52, 0.47, 0.61, 0.0),
            ("network", 0.084, 0.03, 0.0, 0.07),
            ("unattributed", 0.011, 0.01, 0.0, 0.0),
        )
    ),
    ("Shares are of the summed end-to-end time; absent parts are summed as nothing.",),
)
SOURCES = Table(
    "analyze.sources",
    tuple(
        {
            "path": path,
            "reader": reader,
            "records": records,
            "used": records - 8,
            "ignored": 8 - problems,
            "problems": problems,
            "first_ns": START,
            "last_ns": WINDOW[1] - S,
            "sha256": digest * 8,
        }
        for path, reader, records, problems, digest in (
            ("logs/engine/vllm-0.log", "vllm_log", 98_412, 3, "9f2c41d0"),
            ("logs/gateway/2026-09-17.jsonl.gz", "request_records", 4_226, 0, "07b1e8aa"),
            ("logs/client/stream.jsonl", "native_stream", 412_007, 1, "c3d95512"),
        )
    ),
)
SLOWEST = tuple(
    {
        "id": f"req-{412 + index * 37:04d}",
        "start_ns": INCIDENT[0] + index * 11 * S,
        "e2e_ns": round((11.2 - index * 0.7) * S),
        "queue_ns": round((6.4 - index * 0.6) * S),
        "prefill_ns": round(0.9 * S),
        "decode_ns": round((3.7 - index * 0.1) * S),
        "network_ns": None if index == 3 else round(0.15 * S),
        "unattributed_ns": round(0.05 * S),
    }
    for index in range(8)
)
REPORT = Report(
    title="Incident 2026-09-17: slow first tokens on llama-3.1-70b",
    verdict="31 % of all time between 14:30 and 14:52 UTC was spent waiting for admission on "
    "vllm-0, because the engine admits 64 requests at once while more than half of its KV cache "
    "is free.",
    window=WINDOW,
    requests=4218,
    findings=FINDINGS,
    segments=SEGMENTS,
    timeline=_timeline(),
    slowest=SLOWEST,
    sources=SOURCES,
    notes=("The engine log names no year: 2026 was assumed from the gateway's records.",),
    version="0.1.0",
    lanes=LANES,
    marks=MARKS,
    incident=Incident(
        INCIDENT,
        "Change point of the time to first token: median 640 ms before, 4.70 s after.",
        CHANGES,
    ),
    waterfalls=(VIEW, replace(VIEW, id="req-0449", e2e_ns=10_500_000_000)),
)
EMPTY = Report(
    title="Incident report",
    verdict="This case holds no requests.",
    window=None,
    requests=0,
    findings=Findings(),
    segments=Table("analyze.segments", ()),
    timeline=Series("Mean time a request by segment", "start_ns", "mean_ns", "ns", "segment", ()),
    slowest=(),
    sources=Table("analyze.sources", ()),
    notes=(),
    version="0.1.0",
)
QUIET = replace(
    EMPTY,
    verdict="Nothing stands out in these 3 requests.",
    window=(START, START + 4 * S),
    requests=3,
    findings=Findings(clear=FINDINGS.clear[:2], cannot_say=FINDINGS.cannot_say[:1]),
    timeline=replace(REPORT.timeline, rows=REPORT.timeline.rows[:3]),
    slowest=SLOWEST[:1],
)


def hostile_finding() -> Finding:
    return replace(
        QUEUE,
        title=HOSTILE,
        where=HOSTILE,
        symptom=HOSTILE,
        cause=HOSTILE,
        contradicts=HOSTILE,
        how_computed=HOSTILE,
        evidence=(Evidence(HOSTILE, HOSTILE, "", f"SELECT '{HOSTILE}'"),),
        actions=(Action(HOSTILE, HOSTILE, HOSTILE),),
        done_when=(Criterion(HOSTILE, "<=", 1.0, HOSTILE, f"SELECT '{HOSTILE}'"),),
        examples=(HOSTILE,),
    )


def hostile_findings() -> Findings:
    return Findings(
        found=(hostile_finding(),),
        clear=(Clear(HOSTILE, 1.0, HOSTILE),),
        cannot_say=(CannotSay(HOSTILE, (Missing(HOSTILE, HOSTILE),), 0.0, HOSTILE),),
    )


def hostile_report() -> Report:
    return replace(
        REPORT,
        title=HOSTILE,
        verdict=HOSTILE,
        findings=hostile_findings(),
        segments=Table("analyze.segments", ({HOSTILE: HOSTILE, "segment": HOSTILE},), (HOSTILE,)),
        timeline=Series(
            *(HOSTILE, "start_ns", "value", HOSTILE, "segment"),
            ({"start_ns": START, "segment": HOSTILE, "value": 1.5},),
        ),
        slowest=({**SLOWEST[0], "id": HOSTILE},),
        sources=Table("analyze.sources", ({"path": HOSTILE, "reader": HOSTILE},), (HOSTILE,)),
        notes=(HOSTILE,),
        lanes=(
            Lane(HOSTILE, HOSTILE, S, ({"start_ns": START, "group": HOSTILE, "value": 1.5},)),
            Lane(HOSTILE, "ratio", S, ({"start_ns": START, "group": HOSTILE, "value": 0.5},)),
        ),
        marks=(Mark(START, HOSTILE), Mark(START + 40 * S, HOSTILE)),
        incident=Incident(
            INCIDENT,
            HOSTILE,
            replace(
                CHANGES,
                rows=({**CHANGES.rows[0], "metric": HOSTILE, "unit": HOSTILE},),
                notes=(HOSTILE,),
            ),
        ),
        waterfalls=(hostile_view(),),
    )


INGESTED = IngestResult(
    db="analyze.duckdb",
    files=(
        FileRead(
            *("logs/engine/vllm-0.log", "read", "vllm_log", "line"),
            *(98_412, 98_404, 5, 3, 1_412, START, WINDOW[1], 14_000_000),
        ),
        FileRead("logs/notes.txt", "unrecognised", why="no reader knows its first lines"),
    ),
    problems=({"path": "logs/engine/vllm-0.log", "record": 812, "reason": "cut off in JSON"},),
    assumed=(("logs/engine/vllm-0.log", "year 2026, from the gateway's records"),),
    next_command="analyze findings",
)
STATUS = Status(
    db="analyze.duckdb",
    sources=SOURCES,
    coverage=Table("analyze.coverage", ({"quantity": "queue", "coverage": 0.97},)),
    problems=Table("analyze.problems", ()),
    assumed=INGESTED.assumed,
    cannot_say=FINDINGS.cannot_say,
    requests=4218,
    window=WINDOW,
    engines=Table(
        "analyze.engines",
        ({"engine": "vllm-0", "samples": 360, "running": 64, "waiting": 31},),
    ),
)
EXPLAINED = Explanation(
    rule=QUEUE.rule,
    title=QUEUE.title,
    outcome=QUEUE,
    others=(),
    claims="Requests wait although the engine has room.",
    fires_when="At least 20 requests wait more than three times the case's own baseline.",
)
METRICS = Table(
    "analyze.latency",
    tuple(
        {
            "model": "llama-3.1-70b-instruct",
            "metric": metric,
            **{f"{name}_ns": size * 1_234_567_890 for name, size in MOMENTS},
            "share": 0.5,
            "requests": 4218,
            "measured": 4218,
            "derived": 0,
            "absent": 12,
        }
        for metric in ("e2e", "ttft", "unattributed")
    ),
)
LATENCY = Table(
    "analyze.latency",
    (
        {
            "model": "llama-3.1-70b",
            "hour_ns": START,
            "metric": "ttft",
            "requests": 4218,
            "ttft_p95_ns": 4_812_000_000,
            "error_ratio": 0.0123456789012,
            "cost_usd": Decimal("12.418250000"),
        },
    ),
)

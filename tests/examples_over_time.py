"""Hand-made values along a time axis: lanes, marks, what changed, and one request's bars."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analyzer.contract.types import Bar, Chart, Lane, Mark, RequestView, Table

if TYPE_CHECKING:
    from collections.abc import Callable

S = 1_000_000_000
START = 1_789_654_200 * S
WINDOW = (START, START + 3600 * S)
INCIDENT = (START + 1200 * S, START + 2550 * S)
HOSTILE = "<script>alert(1)</script>\x1b[31mred\x1b[0m\x1b]0;title\x07\u202eevil\"'&|`"


def lane(
    name: str, unit: str, lines: dict[str, Callable[[int], float]], gap: range = range(0)
) -> Lane:
    """An hour in minutes; in ``gap`` nothing is known."""
    rows = tuple(
        {
            "start_ns": START + minute * 60 * S,
            "group": group,
            "value": None if minute in gap else value(minute),
        }
        for minute in range(60)
        for group, value in lines.items()
    )
    return Lane(name, unit, 60 * S, rows)


WAITS = Chart(
    *("Queue wait of each request", "start", "time_ns", "queue wait", "ns"),
    *("SELECT start_ns AS x, queue_ns AS y, 'others' AS series FROM latency_segment", 480),
    tuple(
        {
            "x": START + minute * 60 * S,
            "y": (4 * S if 20 <= minute < 42 else 80_000_000) + minute * 1_000_000,
            "series": "waited at the limit" if 20 <= minute < 42 else "others",
        }
        for minute in range(60)
    ),
)


def hostile_chart() -> Chart:
    row = {"x": 1.0, "y": 2.0, "series": HOSTILE}
    return Chart(HOSTILE, HOSTILE, HOSTILE, HOSTILE, HOSTILE, HOSTILE, 1, (row,))


def _late(minute: int) -> int:
    return 1 if 20 <= minute < 42 else 0


LANES = (
    lane("Load", "requests/s", {"started": lambda m: 1.1 + ((m * 7) % 5) / 20}),
    lane(
        "Time to first token",
        "ns",
        {
            "p50": lambda m: 640_000_000 + _late(m) * 4_060_000_000 + m * 1_000_000,
            "p95": lambda m: 1_200_000_000 + _late(m) * 6_300_000_000 + m * 2_000_000,
        },
        gap=range(50, 53),
    ),
    lane("Time per output token", "ns", {"p50": lambda m: 21_000_000 + m % 3 * 400_000}),
    lane("KV cache in use", "ratio", {"vllm-0": lambda m: 0.31 + 0.1 * _late(m)}),
    lane("Queue", "requests", {"running": lambda m: 30 + 34 * _late(m), "waiting": _late}),
    lane("Errors", "ratio", {"errors": lambda m: 0.0}),
)
MARKS = (
    Mark(START + 1_140 * S, "roll-out of gateway 2.3 to all of eu-west"),
    Mark(START + 3_000 * S, "rolled back"),
)
CHANGES = Table(
    "analyze.compare",
    tuple(
        {
            "metric": metric,
            "statistic": statistic,
            "baseline": old,
            "window": new,
            "change": new - old,
            "low": None if spread is None else new - old - spread,
            "high": None if spread is None else new - old + spread,
            "unit": unit,
            "change_ratio": None,
            "beyond_noise": None if spread is None else abs(new - old) > spread,
            "baseline_requests": 2806,
            "window_requests": 1412,
        }
        for metric, statistic, old, new, spread, unit in (
            ("ttft", "p50", 640_123_456.5, 4_700_000_000.0, 210_000_000.0, "ns"),
            ("e2e", "mean", 3_310_000_000.0, 7_200_000_000.0, 400_000_000.0, "ns"),
            ("tpot", "p95", 22_000_000.0, 22_100_000.0, 300_000.0, "ns"),
            ("cache_read_share", "mean", 0.81, 0.22, 0.06, "ratio"),
            ("input_tokens", "mean", 1_810.0, 1_805.5, 61.25, "tokens"),
            ("error_rate", "mean", 0.0, 0.0, None, "ratio"),
        )
    ),
)
VIEW = RequestView(
    id="req-0412",
    facts=(("model", "llama-3.1-70b"), ("started", "2026-09-17 14:30:00Z"), ("status", "200")),
    e2e_ns=11_200_000_000,
    ttft_ns=7_450_000_000,
    bars=(
        Bar("client", "e2e", 0, 11_200_000_000, "measured", "none"),
        Bar("client", "ttft", 0, 7_450_000_000, "measured", "none"),
        Bar("engine", "queue", 100_000_000, 6_400_000_000, "measured", "queue"),
        Bar("engine", "prefill", 6_500_000_000, 900_000_000, "measured", "prefill"),
        Bar("engine", "decode", 7_400_000_000, 3_700_000_000, "derived", "decode"),
    ),
    segments=tuple(
        {"view": view, "segment": name, "dur_ns": size, "grade": grade}
        for view, name, size, grade in (
            ("e2e", "queue", 6_400_000_000, "measured"),
            ("e2e", "prefill", 900_000_000, "measured"),
            ("e2e", "decode", 3_700_000_000, "measured"),
            ("e2e", "network", 150_000_000, "derived"),
            ("e2e", "unattributed", 50_000_000, "derived"),
            ("ttft", "queue", 6_400_000_000, "measured"),
            ("ttft", "prefill", 900_000_000, "measured"),
            ("ttft", "network", None, "absent"),
            ("ttft", "unattributed", 150_000_000, "derived"),
        )
    ),
    tokens=(("input, fresh", 1812), ("cache read", None), ("output", 412)),
    records=(
        {"path": "logs/client/stream.jsonl", "record": 88_211, "vantage": "client"},
        {"path": "logs/engine/vllm-0.log", "record": 4_102, "vantage": "engine"},
    ),
)


def hostile_view() -> RequestView:
    return RequestView(
        *(HOSTILE, ((HOSTILE, HOSTILE),), S, S),
        (Bar(HOSTILE, HOSTILE, 0, S, HOSTILE, HOSTILE),),
        ({"view": HOSTILE, "segment": HOSTILE, "dur_ns": S, "grade": HOSTILE},),
        ((HOSTILE, 1),),
        ({"path": HOSTILE, "record": 1, "vantage": HOSTILE},),
        (HOSTILE,),
    )

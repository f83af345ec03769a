"""The first visible token is not the first token, and the role chunk is none.

main: a reasoning model. The gateway tells 5.7 s to first token for the first nine requests (the
first token one can read) and 0.055 s for the other nine (the role chunk). The first token comes
at 0.7 s for all of them; nothing is slow.

twin: no reasoning; the first token really comes after 5.7 s and the gateway says so. Why, this log
cannot tell.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from analyzer.simulate.writers import NS, openai_usage, request_record
from cases._build import MS, answer, at, expect, silent, write_case

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MODEL = "heron-think"
T0 = at("2026-05-19T21:40:00Z")
REQUESTS = 18
ROLE, FIRST, STEP = 55 * MS, 700 * MS, 20 * MS
REASONING, VISIBLE = 250, 60
FIRST_VISIBLE = FIRST + REASONING * STEP
END = FIRST_VISIBLE + (VISIBLE - 1) * STEP
NEARER = 2 * MS
"""The gateway stands before the last hop to the client."""


def _gateway(k: int, ttft_ns: int, output: int, *, whole: bool = True) -> str:
    durations = {"ttft": ttft_ns - NEARER} | ({"e2e": END - NEARER} if whole else {})
    return request_record(
        f"th-{k:03d}",
        vantage="gateway",
        started_ns=T0 + 15 * NS * k + NEARER // 2,
        durations_ns=durations,
        model=MODEL,
        status=200,
        usage={"completion_tokens": output},
    )


def main(folder: Path, *, whole: bool = True) -> None:
    """Two wrong readings of one healthy first token."""
    stream, gateway = [], []
    for k in range(REQUESTS):
        chunks = [(ROLE, "role", 0)]
        chunks += [(FIRST + i * STEP, "reasoning", 5) for i in range(REASONING)]
        chunks += [(FIRST_VISIBLE + i * STEP, "content", 5) for i in range(VISIBLE)]
        output = REASONING + VISIBLE
        usage = openai_usage(1_210, output, reasoning=REASONING)
        stream += answer(f"th-{k:03d}", T0 + 15 * NS * k, chunks, usage, model=MODEL)
        ttft = FIRST_VISIBLE if k < REQUESTS // 2 else ROLE
        gateway.append(_gateway(k, ttft, output, whole=whole))
    write_case(folder, {"client.jsonl": stream, "gateway.jsonl": gateway}, MODEL)


def twin(folder: Path) -> None:
    """The first token is as late as the gateway says."""
    stream, gateway = [], []
    for k in range(REQUESTS):
        chunks = [(ROLE, "role", 0)]
        chunks += [(FIRST_VISIBLE + i * STEP, "content", 5) for i in range(VISIBLE)]
        usage = openai_usage(1_210, VISIBLE)
        stream += answer(f"th-{k:03d}", T0 + 15 * NS * k, chunks, usage, model=MODEL)
        gateway.append(_gateway(k, FIRST_VISIBLE, VISIBLE))
    write_case(folder, {"client.jsonl": stream, "gateway.jsonl": gateway}, MODEL)


_NOT_SLOW = [
    "queue.admission-limit",
    "queue.saturation",
    "queue.mislabelled",
    "queue.head-of-line",
    "queue.imbalance",
    "prefill.long-prompt",
    "prefill.cache-miss",
    "network.slow",
    "network.fixed-offset",
    "network.buffered",
    "metric.multi-token-chunks",
]
TRUE_TTFT_S = FIRST / NS
ROLE_ERROR_S = (FIRST - ROLE) / NS
EXPECT_MAIN = expect(
    "metric.ttft-misread",
    "none",
    REQUESTS,
    (FIRST_VISIBLE - FIRST) / NS,  # what the nine inflated values hold too much
    "s",
    must_not=_NOT_SLOW,
)
EXPECT_TWIN = silent(["metric.ttft-misread", *_NOT_SLOW])

FAR = 260 * MS
"""A client far from the gateway: every chunk reaches it this much later."""


def _far(folder: Path, reported: int) -> None:
    stream, gateway = [], []
    for k in range(REQUESTS):
        chunks = [(ROLE + FAR, "role", 0)]
        chunks += [(FIRST + FAR + i * STEP, "reasoning", 5) for i in range(REASONING)]
        chunks += [(FIRST_VISIBLE + FAR + i * STEP, "content", 5) for i in range(VISIBLE)]
        output = REASONING + VISIBLE
        usage = openai_usage(1_210, output, reasoning=REASONING)
        stream += answer(f"th-{k:03d}", T0 + 15 * NS * k, chunks, usage, model=MODEL)
        gateway.append(_gateway(k, reported, output))
    write_case(folder, {"client.jsonl": stream, "gateway.jsonl": gateway}, MODEL)


def variant_far_role(folder: Path) -> None:
    """The gateway reports the role chunk, and the client sees everything 260 ms later."""
    _far(folder, ROLE)


def variant_far_right(folder: Path) -> None:
    """The gateway reports the true first token, which the client sees 260 ms later."""
    _far(folder, FIRST)


EXPECT_FAR_ROLE = expect(
    "metric.ttft-misread",
    "none",
    REQUESTS,
    ROLE_ERROR_S,  # the way to the client, told by the two end-to-end times, is taken off
    "s",
    must_not=[rule for rule in _NOT_SLOW if rule != "network.slow"],
)
EXPECT_FAR_RIGHT = silent(["metric.ttft-misread", "metric.multi-token-chunks"])


def _one_kind(folder: Path, kind: str, reported: int) -> None:
    """Streams whose only chunks, but for the role, are of one kind."""
    stream, gateway = [], []
    for k in range(REQUESTS):
        chunks = [(ROLE, "role", 0)]
        chunks += [(FIRST + i * STEP, kind, 5) for i in range(REASONING)]
        usage = openai_usage(1_210, REASONING, reasoning=REASONING if kind == "reasoning" else 0)
        stream += answer(f"th-{k:03d}", T0 + 15 * NS * k, chunks, usage, model=MODEL)
        end = FIRST + (REASONING - 1) * STEP
        gateway.append(
            request_record(
                f"th-{k:03d}",
                vantage="gateway",
                started_ns=T0 + 15 * NS * k + NEARER // 2,
                durations_ns={"ttft": reported - NEARER, "e2e": end - NEARER},
                model=MODEL,
                status=200,
            )
        )
    write_case(folder, {"client.jsonl": stream, "gateway.jsonl": gateway}, MODEL)


def variant_only_reasoning(folder: Path) -> None:
    """All tokens went into reasoning; the gateway tells the role chunk."""
    _one_kind(folder, "reasoning", ROLE)


def variant_tool_calls(folder: Path) -> None:
    """The answer is a tool call; the gateway tells the role chunk."""
    _one_kind(folder, "tool_call", ROLE)


def variant_tool_calls_right(folder: Path) -> None:
    """The answer is a tool call; the gateway tells its first part."""
    _one_kind(folder, "tool_call", FIRST)


def variant_does_not_stream(folder: Path) -> None:
    """The gateway measures at the end of the answer, which it passes on as it comes."""
    _one_kind(folder, "content", FIRST + (REASONING - 1) * STEP)


def _wavering(folder: Path, thought: int, late: Callable[[int], int], visible: bool) -> None:
    """``thought`` reasoning chunks; from the first token on all comes late, at the end most."""
    stream, gateway = [], []
    for k in range(REQUESTS):
        kinds = ["reasoning"] * thought + ["content"] * (REASONING - thought)
        way = [late(k) if k % 2 else 40 * MS for _ in kinds]
        way[-1] = 40 * MS if k % 2 else late(k)
        chunks = [(0, "role", 0)]
        for i, kind in enumerate(kinds):
            chunks.append((max(chunks[-1][0], FIRST + i * STEP + way[i]), kind, 5))
        usage = openai_usage(1_210, REASONING, reasoning=thought)
        stream += answer(f"th-{k:03d}", T0 + 15 * NS * k, chunks, usage, model=MODEL)
        told = FIRST + (thought * STEP if visible else 0)
        gateway.append(
            request_record(
                f"th-{k:03d}",
                vantage="gateway",
                started_ns=T0 + 15 * NS * k,
                durations_ns={"ttft": told, "e2e": FIRST + (REASONING - 1) * STEP},
                model=MODEL,
                status=200,
            )
        )
    write_case(folder, {"client.jsonl": stream, "gateway.jsonl": gateway}, MODEL)


def variant_wavering_right(folder: Path) -> None:
    """The way varies by as much as the reasoning takes: values only look like the first visible."""
    _wavering(folder, 25, lambda k: (400 + 20 * k) * MS, visible=False)


def variant_wavering(folder: Path) -> None:
    """The last chunk comes so late that the client's decode exceeds the gateway's whole."""
    _wavering(folder, 200, lambda k: (900 if k in {4, 10} else 40) * MS, visible=True)


EXPECT_ROLE = expect("metric.ttft-misread", "none", REQUESTS, ROLE_ERROR_S, "s", must_not=_NOT_SLOW)
EXPECT_WHOLE = expect(
    "metric.ttft-misread", "none", REQUESTS, (REASONING - 1) * STEP / NS, "s", must_not=_NOT_SLOW
)
EXPECT_WAVERING = expect(
    "metric.ttft-misread",
    "none",
    REQUESTS,
    200 * STEP / NS,
    "s",
    must_not=[*_NOT_SLOW, "trust.contradictory-durations"],
)


def variant_no_end(folder: Path) -> None:
    """The gateway does not tell how long the whole took."""
    main(folder, whole=False)


CASES = {
    "no_end": (variant_no_end, EXPECT_MAIN),
    "wavering_right": (
        variant_wavering_right,
        silent(["metric.ttft-misread", "network.fixed-offset", "trust.contradictory-durations"]),
    ),
    "wavering": (variant_wavering, EXPECT_WAVERING),
    "only_reasoning": (variant_only_reasoning, EXPECT_ROLE),
    "tool_calls": (variant_tool_calls, EXPECT_ROLE),
    "tool_calls_right": (
        variant_tool_calls_right,
        silent(["metric.ttft-misread", "metric.multi-token-chunks"]),
    ),
    "does_not_stream": (variant_does_not_stream, EXPECT_WHOLE),
    "main": (main, EXPECT_MAIN),
    "twin": (twin, EXPECT_TWIN),
    "far_role": (variant_far_role, EXPECT_FAR_ROLE),
    "far_right": (variant_far_right, EXPECT_FAR_RIGHT),
}

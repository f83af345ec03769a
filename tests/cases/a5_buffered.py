"""A hop holds the stream back.

main: two routes to the same engine. Over "proxy-2" all 150 chunks of an answer arrive within 3 ms
at its end, over "lan" as the engine makes them. The total time is the same.

twin: the same routes, answers of three tokens, which the proxy joins into one chunk: no harm.

slow_network: route "far" is 0.9 s longer in both TTFT and total time (0.79 to 1.01 s): the way is
slow, nobody holds anything back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from analyzer.simulate.writers import NS, Served, openai_usage
from cases._build import MS, US, answer, at, expect, mean_seconds, silent, spans, write_case

if TYPE_CHECKING:
    from pathlib import Path

MODEL = "tern-7b"
T0 = at("2026-11-02T16:25:30Z")
STEP = 25 * MS
PROMPT = 730
SKEW = -120 * MS
"""The engine's clock is behind the client's."""


def _engine(request_id: str, arrived_ns: int, tokens: int) -> Served:
    return Served(
        request_id=request_id,
        arrived_ns=arrived_ns + SKEW,
        queue_ns=4 * MS,
        prefill_ns=196 * MS,
        decode_ns=(tokens - 1) * STEP,
        prompt_tokens=PROMPT,
        output_tokens=tokens,
        before_ns=5 * MS,
    )


def _steady(served: Served, network: int) -> list[tuple[int, str | None, int]]:
    first = served.ttft_ns + network
    return [(first + i * STEP, "content", 4) for i in range(served.output_tokens)]


PER_ROUTE, TOKENS = 8, 150
LAN, PROXY, BURST_GAP = 8 * MS, 20 * MS, 20 * US


def _two_routes(folder: Path, tokens: int, *, joined: bool) -> None:
    stream, served = [], []
    usage = openai_usage(PROMPT, tokens)
    for k in range(2 * PER_ROUTE):
        sent, route = T0 + 7 * NS * k, "proxy-2" if k % 2 else "lan"
        one = _engine(f"{route}/{k:02d}", sent + 4 * MS, tokens)
        served.append(one)
        if route == "lan":
            chunks = _steady(one, LAN)
        elif joined:
            chunks = [(one.e2e_ns + PROXY, "content", 4 * tokens)]
        else:
            chunks = [(one.e2e_ns + PROXY + i * BURST_GAP, "content", 4) for i in range(tokens)]
        stream += answer(one.request_id, sent, chunks, usage, model=MODEL, route=route)
    write_case(folder, {"client.jsonl": stream, "spans.jsonl": spans(served)}, MODEL)


def main(folder: Path) -> None:
    """All chunks at the end on one of two routes."""
    _two_routes(folder, TOKENS, joined=False)


# network_ttft: the engine's decode and the proxy's 20 ms; network: those 20 ms and the burst.
HELD = (TOKENS - 1) * (STEP - BURST_GAP)
EXPECT_MAIN = expect(
    "network.buffered",
    "network",
    PER_ROUTE,
    HELD / NS,
    "s",
    must_not=[
        "prefill.long-prompt",
        "prefill.cache-miss",
        "queue.admission-limit",
        "queue.saturation",
        "queue.mislabelled",
        "network.slow",
        "network.fixed-offset",
        "metric.multi-token-chunks",
        "metric.ttft-misread",
        "trust.faster-than-physics",
    ],
)


def twin(folder: Path) -> None:
    """Three tokens in one chunk."""
    _two_routes(folder, 3, joined=True)


EXPECT_TWIN = silent(["network.buffered", "network.slow", "prefill.long-prompt"])


FAR = [900 * MS + (2 * (5 * k % 12) - 11) * 10 * MS for k in range(12)]
NEAR = 15 * MS


def variant_slow_network(folder: Path) -> None:
    """Everything on route "far" is 0.9 s late, the first token and the last."""
    stream, served = [], []
    usage = openai_usage(PROMPT, 90)
    for k in range(2 * len(FAR)):
        sent, route = T0 + 6 * NS * k, "far" if k % 2 else "near"
        network = FAR[k // 2] if k % 2 else NEAR
        one = _engine(f"{route}/{k:02d}", sent + network // 2, 90)
        served.append(one)
        stream += answer(
            one.request_id, sent, _steady(one, network), usage, model=MODEL, route=route
        )
    write_case(folder, {"client.jsonl": stream, "spans.jsonl": spans(served)}, MODEL)


EXPECT_SLOW_NETWORK = expect(
    "network.slow",
    "network",
    len(FAR),
    mean_seconds(FAR),
    "s",
    must_not=[
        "network.buffered",
        "network.fixed-offset",
        "prefill.long-prompt",
        "queue.admission-limit",
        "queue.saturation",
    ],
)
PIECE = 30
"""Tokens the proxy collects before it passes them on."""


def variant_by_pieces(folder: Path) -> None:
    """The proxy passes the answer on in five pieces, each when it is full."""
    stream, served = [], []
    usage = openai_usage(PROMPT, TOKENS)
    for k in range(2 * PER_ROUTE):
        sent, route = T0 + 7 * NS * k, "proxy-2" if k % 2 else "lan"
        one = _engine(f"{route}/{k:02d}", sent + 4 * MS, TOKENS)
        served.append(one)
        chunks = _steady(one, LAN)
        if route != "lan":
            full = [one.ttft_ns + PROXY + (i // PIECE + 1) * PIECE * STEP for i in range(TOKENS)]
            chunks = [(at_ns - STEP + i % PIECE * US, "content", 4) for i, at_ns in enumerate(full)]
        stream += answer(one.request_id, sent, chunks, usage, model=MODEL, route=route)
    write_case(folder, {"client.jsonl": stream, "spans.jsonl": spans(served)}, MODEL)


EXPECT_BY_PIECES = expect(
    "network.buffered",
    "network",
    PER_ROUTE,
    (PIECE - 1) * STEP / NS,
    "s",
    must_not=["network.slow", "metric.ttft-misread", "prefill.long-prompt"],
)


def variant_joined(folder: Path) -> None:
    """The proxy makes one chunk of the whole answer."""
    _two_routes(folder, TOKENS, joined=True)


CASES = {
    "joined": (variant_joined, EXPECT_MAIN),
    "main": (main, EXPECT_MAIN),
    "twin": (twin, EXPECT_TWIN),
    "slow_network": (variant_slow_network, EXPECT_SLOW_NETWORK),
    "by_pieces": (variant_by_pieces, EXPECT_BY_PIECES),
}

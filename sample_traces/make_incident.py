"""Write ``sample_traces/incident/``: one evening of one model server, from a discrete simulation.

The story. The model server of "orion-8b" was restarted at 14:01 with ``--max-num-seqs 6``. From
14:10:00Z on 2026-09-17 traffic triples, in bursts once a minute: agents that all wake up at the
same time. At most six requests run, the others wait for a slot, first come, first served, while
the KV cache is nearly empty. Apart from that, all the time, route "edge-eu" goes through a proxy in
front of the gateway that holds the stream back: every chunk of an answer arrives at its end. Route
"direct" does not. The client's clock is 40 ms ahead of the engine's and the gateway's. One request
fails at the gateway with status 503 and never reaches the engine.

The truth, as this script prints it:

- 120 requests, 24 before 14:10:00Z, 1 refused
- 59 wait for a slot, 4.255 s on average, 2.190 to 7.419 s; the first at 14:10:07Z
- the KV cache is at most 3.5 % full
- 47 answers are held back, 3.555 s on average

Everything adds up: the engine's total is queue + prefill + decode + 4 ms of front end, the client's
is the engine's + 15 to 30 ms of network, the gateway's lies between. Prompts hold the history of
their session; what a turn shares with the one before is cached, in whole blocks of 16 tokens.
"""

from __future__ import annotations

import heapq
import json
import random
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))  # runs from a checkout, installed or not

from analyzer.simulate.writers import (  # noqa: E402
    BLOCK_TOKENS,
    NS,
    Served,
    chunk,
    done,
    error,
    llm_span,
    openai_usage,
    prices,
    request_record,
    send,
    startup_lines,
    status_lines,
    text_of,
)

MODEL = "orion-8b"
MS = 1_000_000
US = 1_000
START = 1_789_653_900 * NS
"""2026-09-17T14:05:00Z"""
ONSET = START + 300 * NS
END = START + 720 * NS
SLOTS = 6
CAPACITY = 218_432
CLIENT_AHEAD = 40 * MS
FRONT_IN, FRONT_OUT = 3 * MS, 1 * MS
SYSTEM_TOKENS = 384
BURSTS = (15, 16, 16, 17, 15, 16)
BURST_EVERY = 65 * NS
PROXY_GAP = 10 * US
"""Between chunks that the proxy lets go."""


@dataclass
class Ask:
    """One request as its client means it. Times are true times, on the engine's clock."""

    id: str
    session: str
    turn: int
    route: str
    sent: int
    prompt: int
    cached: int
    output: int
    to_gateway: int
    to_engine: int
    back_to_gateway: int
    back_to_client: int
    refused: bool = False

    @property
    def arrives(self) -> int:
        """When the engine gets it."""
        return self.sent + self.to_gateway + self.to_engine

    @property
    def inner_network(self) -> int:
        """Between gateway and engine, there and back."""
        return self.to_engine + self.back_to_gateway

    @property
    def network(self) -> int:
        """Between client and engine, there and back."""
        return self.to_gateway + self.back_to_client + self.inner_network


@dataclass
class Session:
    """A conversation: its prompt grows by every answer and every new question."""

    id: str
    route: str
    turns: int
    turn: int = 0
    history: int = 0


class Traffic:
    """Who asks what and when."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.asks: list[Ask] = []
        self.sessions = 0

    def session(self, turns: int) -> Session:
        """Open a new session; two of five come over the edge."""
        self.sessions += 1
        route = "edge-eu" if self.sessions % 5 in (2, 4) else "direct"
        return Session(f"s{self.sessions:02d}", route, turns)

    def ask(self, session: Session, sent: int) -> Ask:
        """Send the next turn of a session."""
        rng = self.rng
        reusable = session.history or (SYSTEM_TOKENS if self.asks else 0)
        fresh = rng.randint(60, 180) if session.turn else rng.randint(200, 500)
        session.turn += 1
        prompt = (session.history or SYSTEM_TOKENS) + fresh
        output = min(160, 40 + int(rng.expovariate(1 / 18)))
        session.history = prompt + output
        inner = rng.randint(2, 4) * MS, rng.randint(2, 4) * MS
        ask = Ask(
            id=f"o8-{len(self.asks):03d}",
            session=session.id,
            turn=session.turn,
            route=session.route,
            sent=sent,
            prompt=prompt,
            cached=reusable // BLOCK_TOKENS * BLOCK_TOKENS,
            output=output,
            to_gateway=rng.randint(5, 11) * MS,
            to_engine=inner[0],
            back_to_gateway=inner[1],
            back_to_client=rng.randint(6, 11) * MS,
        )
        self.asks.append(ask)
        return ask

    def calm(self) -> None:
        """Eight sessions of three turns in the five minutes before the onset."""
        for turn in range(3):
            open_sessions = self.calm_sessions if turn else self._open_calm()
            for place, session in enumerate(open_sessions):
                late = self.rng.randint(0, 6_000) * MS
                self.ask(session, START + (4 + 12 * (8 * turn + place)) * NS + late)

    def _open_calm(self) -> list[Session]:
        self.calm_sessions = [self.session(turns=3) for _ in range(8)]
        return self.calm_sessions

    def bursts(self) -> None:
        """Once a minute, all within 1.2 s; a session takes part in two to four bursts in a row."""
        awake: list[Session] = []
        for number, size in enumerate(BURSTS):
            awake = [one for one in awake if one.turn < one.turns]
            awake += [self.session(turns=self.rng.randint(2, 4)) for _ in range(size - len(awake))]
            begin = ONSET + (7 * NS) + number * BURST_EVERY
            offsets = sorted(self.rng.sample(range(1_200), size))
            for session, offset in zip(awake, offsets, strict=True):
                self.ask(session, begin + offset * MS)
            if number == 3:
                self._refused(begin + 700 * MS)

    def _refused(self, sent: int) -> None:
        self.ask(self.session(turns=1), sent).refused = True


def serve(asks: list[Ask], rng: random.Random) -> dict[str, tuple[Served, int]]:
    """Admit first come, first served to a free slot; each with its wait for the slot."""
    free = [0] * SLOTS
    served = {}
    for ask in sorted((one for one in asks if not one.refused), key=lambda one: one.arrives):
        queued = ask.arrives + FRONT_IN
        scheduled = rng.randint(2, 6) * MS
        wait = max(0, heapq.heappop(free) - queued)
        prefill = (60 + (ask.prompt - ask.cached) * 22 // 100) * MS
        one = Served(
            request_id=ask.id,
            arrived_ns=ask.arrives,
            queue_ns=max(wait, scheduled),
            prefill_ns=prefill,
            decode_ns=(ask.output - 1) * rng.randint(64, 68) * MS,
            prompt_tokens=ask.prompt,
            output_tokens=ask.output,
            cached_tokens=ask.cached,
            before_ns=FRONT_IN,
            after_ns=FRONT_OUT,
        )
        heapq.heappush(free, one.last_token_ns)
        served[ask.id] = one, wait
    return served


def chunk_times(ask: Ask, one: Served) -> list[int]:
    """When the client sees each token, after the send."""
    last = one.e2e_ns + ask.network
    if ask.route == "edge-eu":
        return [last - (ask.output - 1 - i) * PROXY_GAP for i in range(ask.output)]
    step = one.decode_ns // (ask.output - 1)
    first = one.ttft_ns + ask.network
    return [first, *(first + FRONT_OUT + i * step for i in range(1, ask.output))]


def client_lines(ask: Ask, one: Served | None, rng: random.Random) -> list[tuple[int, str]]:
    """Stream events of one request on the client's clock."""
    sent = ask.sent + CLIENT_AHEAD
    events = [
        (
            sent,
            send(
                sent,
                ask.id,
                model=MODEL,
                route=ask.route,
                session_id=ask.session,
                turn=ask.turn,
                max_tokens=256,
                stream=True,
            ),
        )
    ]
    if one is None:
        failed = sent + ask.to_gateway + ask.back_to_client + 2 * MS
        text = "no healthy upstream"
        return [*events, (failed, error(failed, ask.id, text, status=503))]
    for offset in chunk_times(ask, one):
        now = sent + offset
        events.append((now, chunk(now, ask.id, rng.choice((3, 4, 4, 5)))))
    usage = openai_usage(ask.prompt, ask.output, cached=ask.cached)
    return [*events, (now, done(now, ask.id, usage))]


def gateway_line(ask: Ask, one: Served | None) -> str:
    """Write the gateway's record: behind the proxy, in front of the engine."""
    known = {"route": ask.route, "model": MODEL, "started_ns": ask.sent + ask.to_gateway}
    if one is None:
        failed = {"status": 503, "error": "no healthy upstream"}
        durations = {"e2e": 2 * MS}
        return request_record(ask.id, vantage="gateway", durations_ns=durations, **known, **failed)
    durations = {
        "ttft": one.ttft_ns + ask.inner_network,
        "e2e": one.e2e_ns + ask.inner_network,
    }
    return request_record(
        ask.id,
        vantage="gateway",
        durations_ns=durations,
        **known,
        status=200,
        finish_reason="stop",
    )


def simulate() -> tuple[list[Ask], dict[str, tuple[Served, int]]]:
    """Run the evening."""
    rng = random.Random(20260917)
    traffic = Traffic(rng)
    traffic.calm()
    traffic.bursts()
    return traffic.asks, serve(traffic.asks, rng)


def build() -> dict[str, str]:
    """Give the text of every file by its name."""
    asks, served = simulate()
    rng = random.Random(8)
    events = [
        event
        for ask in asks
        for event in client_lines(ask, served[ask.id][0] if ask.id in served else None, rng)
    ]
    events.sort(key=lambda event: event[0])
    ones = [one for one, _ in served.values()]
    finished = sorted(ones, key=lambda one: one.arrived_ns + one.e2e_ns)
    log = startup_lines(
        START - 110 * NS,
        model=MODEL,
        capacity_tokens=CAPACITY,
        arguments={"max_model_len": 8192, "gpu_memory_utilization": 0.9, "max_num_seqs": SLOTS},
    ) + status_lines(
        ones, first_ns=START + 5 * NS, last_ns=END, every_ns=5 * NS, capacity_tokens=CAPACITY
    )
    gateway = [
        gateway_line(ask, served[ask.id][0] if ask.id in served else None)
        for ask in sorted(asks, key=lambda ask: ask.sent + ask.to_gateway)
    ]
    price = {"input": "0.20", "cache_read": "0.02", "output": "0.60"}
    deployment = {
        "model": MODEL, "gpu": "NVIDIA L4", "gpu_count": 1, "params": 7_500_000_000,
        "weight_bytes_per_param": 2, "layers": 32, "kv_heads": 8, "head_dim": 128,
        "kv_bytes_per_value": 2,
    }  # fmt: skip
    return {
        "client-stream.jsonl": text_of(line for _, line in events),
        "deployment.json": json.dumps(deployment, indent=2) + "\n",
        "engine-spans.jsonl": text_of(llm_span(one, max_tokens=256) for one in finished),
        "engine.log": text_of(log),
        "gateway.jsonl": text_of(gateway),
        "prices.json": text_of([prices({MODEL: price})]),
    }


def truth() -> list[str]:
    """Say what a verdict on the incident has to find, from the simulation."""
    asks, served = simulate()
    waiting = [one.queue_ns for one, wait in served.values() if wait]
    held = []
    for ask in asks:
        if ask.route == "edge-eu" and ask.id in served:
            one = served[ask.id][0]
            first, *_, last = chunk_times(ask, one)
            held.append((first - one.ttft_ns) - (last - one.e2e_ns))
    before = sum(ask.sent < ONSET for ask in asks)
    kv = max(
        sum(one.kv_tokens(now) for one, _ in served.values()) for now in range(START, END, NS // 4)
    )
    return [
        f"- {len(asks)} requests, {before} before 14:10:00Z, {len(asks) - len(served)} refused",
        f"- {len(waiting)} wait for a slot, {_mean(waiting)} s on average, "
        f"{min(waiting) / NS:.3f} to {max(waiting) / NS:.3f} s; the first at {_first(served)}",
        f"- the KV cache is at most {100 * kv / CAPACITY:.1f} % full",
        f"- {len(held)} answers are held back, {_mean(held)} s on average",
    ]


def _mean(durations: list[int]) -> str:
    return f"{sum(durations) / len(durations) / NS:.3f}"


def _first(served: dict[str, tuple[Served, int]]) -> str:
    offset = (min(one.arrived_ns for one, wait in served.values() if wait) - START) // NS
    return f"14:{5 + offset // 60:02d}:{offset % 60:02d}Z"


def main() -> None:
    """Write the files and print the truth."""
    folder = HERE / "incident"
    folder.mkdir(exist_ok=True)
    files = build()
    for name, text in files.items():
        (folder / name).write_bytes(text.encode())
    print("\n".join(truth()))
    for name, text in files.items():
        print(f"{len(text.encode()):>9,} bytes  {name}")


if __name__ == "__main__":
    main()

"""A world to simulate: dataclasses, read from a small TOML file.

Names carry their units, as in the files people write: ``_s``, ``_ms``, ``_us``, ``_tokens``. A
number stands for a size that never varies. ``[[change]]`` sets one of these fields at a time, so
that an incident is a change of a mechanism and nothing else.
"""

from __future__ import annotations

import copy
import math
import random
import tomllib
import typing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from analyzer.errors import AnalyzerError
from analyzer.simulate._check import check
from analyzer.simulate._tables import build, put, value_of

NS_PER_S, NS_PER_MS, NS_PER_US = 1_000_000_000, 1_000_000, 1_000


@dataclass
class Sizes:
    """A lognormal size; ``cv`` (deviation / mean) 0 is a constant."""

    mean: float
    cv: float = 0.0
    least: float = 0.0
    most: float = math.inf

    @classmethod
    def of_number(cls, value: float) -> Sizes:
        """A size that never varies."""
        return cls(float(value))

    def draw(self, rng: random.Random) -> float:
        """One size."""
        if self.cv <= 0 or self.mean <= 0:
            value = self.mean
        else:
            spread = math.log1p(self.cv * self.cv)
            value = rng.lognormvariate(math.log(self.mean) - spread / 2, math.sqrt(spread))
        return min(max(value, self.least), self.most)

    def whole(self, rng: random.Random, least: int = 0) -> int:
        """One whole size."""
        return max(least, round(self.draw(rng)))


@dataclass
class Arrivals:
    """A stream of sessions; one of a single turn is a plain request."""

    kind: str = "chat"
    process: str = "poisson"
    """poisson, even, bursty (gamma gaps of deviation ``burst`` x mean) or trace (``file``)."""
    rate_per_s: float = 1.0
    burst: float = 3.0
    from_s: float = 0.0
    until_s: float | None = None
    most: int | None = None
    file: str | None = None
    """JSON Lines of arrival_s, prompt_tokens, output_tokens, and optionally blocks (cumulative
    hashes of whole blocks of the prompt); beside the world's file unless absolute."""
    file_block_tokens: int = 16
    speed: float = 1.0
    """How many times as fast a trace is replayed."""
    scale_prompt: float = 1.0
    scale_output: float = 1.0
    """What the lengths of a trace are multiplied by."""
    route: str = "default"
    model: str | None = None
    prompt_tokens: Sizes = field(default_factory=lambda: Sizes(500, 1.0))
    """New tokens of each turn; what came before is added where ``history`` holds."""
    output_tokens: Sizes = field(default_factory=lambda: Sizes(150, 0.7))
    system_tokens: int = 0
    """Shared by all turns of all sessions of this stream."""
    changing_token: int | None = None
    """Position of a token that differs in every request: what follows it is never cached."""
    history: bool = True
    turns: Sizes = field(default_factory=lambda: Sizes(1))
    think_s: Sizes = field(default_factory=lambda: Sizes(10, 1.0))
    subagent_share: float = 0.0
    """Share of turns that start a session of their own and wait for it."""
    subagent_turns: Sizes = field(default_factory=lambda: Sizes(3))
    reasoning_share: float = 0.0
    max_tokens: int | None = None
    response_format: str | None = None
    schemas: int = 0
    """Distinct grammars; 0 compiles none."""
    tools_count: int | None = None
    streamed: bool = True


@dataclass
class Client:
    """The program that calls: one loop, its connections and its patience."""

    name: str = "client"
    connections: int = 0
    """Most requests in flight; 0 is no limit."""
    timeout_s: float = 0.0
    """From sending to the end; 0 waits for ever."""
    retries: int = 0
    backoff_s: float = 1.0
    stall_every_s: float = 0.0
    """The loop is blocked for ``stall_ms`` so often; 0 never."""
    stall_ms: float = 0.0
    tick_s: float = 0.0
    """Heartbeat; 0 is none."""


@dataclass
class Network:
    """The path between client and gateway, each way."""

    latency_ms: float = 10.0
    jitter_ms: float = 0.0
    loss: float = 0.0
    """Share of messages that are lost once and sent again."""
    stall_ms: float = 250.0
    """What one loss holds its connection up."""
    connect_ms: float = 0.0


@dataclass
class Route:
    """A name that clients ask for, and who serves it."""

    name: str = "default"
    replicas: list[str] = field(default_factory=list)
    """Names; none are all of them."""
    policy: str = "least_busy"
    """least_busy, round_robin, random or session (the same replica for one session)."""
    fallback: str | None = None
    """Route to try next where this one fails or is late."""
    timeout_s: float = 0.0
    """Until the first byte; 0 waits for ever."""
    failing: float = 0.0
    """Share of calls that fail with 503 after ``fail_ms``."""
    fail_ms: float = 20.0
    unreachable: bool = False
    """Connections to it hang until the timeout."""


@dataclass
class Gateway:
    """What stands between the network and the replicas."""

    overhead_ms: float = 1.0
    hop_ms: float = 0.2
    """One way to a replica."""
    buffer_bytes: int = 0
    """A proxy that passes bytes on when it has so many; 0 passes on at once."""
    rate_per_s: float = 0.0
    """Requests it lets pass; 0 is no limit."""
    rate_burst: int = 10
    retry_after_s: float = 1.0
    cancels: bool = True
    """Tells the engine when a client has left; else it computes to the end, for nobody."""
    routes: list[Route] = field(default_factory=lambda: [Route()])


@dataclass
class StepTimes:
    """A step's time from its parts, instead of from the bounds of a model on a part."""

    fixed_ms: float = 0.0
    per_sequence_us: float = 0.0
    per_context_token_ns: float = 0.0
    per_prompt_token_us: float = 0.0
    per_prompt_pair_ns: float = 0.0
    """A pair is a new prompt token and one it looks back at."""


@dataclass
class EngineSetup:
    """An engine with continuous batching over paged memory."""

    kind: str = "vllm"
    model: str = "llama-3.1-8b"
    gpu: str = "h100-sxm5-80gb"
    weights: str | None = None
    kv: str | None = None
    count: int | None = None
    tp: int | None = None
    dp: int | None = None
    efficiency: float = 0.75
    """Share of the bound's speed that steps reach."""
    noise: float = 0.0
    """Deviation of a step's time from what it should be, as a share of it; real ones have 0.02."""
    step: StepTimes | None = None
    host_ms: float = 0.0
    """Added to each step by the host."""
    graph: bool = True
    graph_tokens: int = 512
    """Largest step that a captured graph replays."""
    link_gb_s: float | None = None
    """What exchanges between devices reach; else the catalog's rate times the efficiency."""
    link_us: float = 8.0
    """What the smallest exchange takes."""
    attention_rows: int = 1
    """Rows that attention computes for one token of a decode beside a prompt: its tile, which has
    64 in FlashAttention 2 (what vLLM runs on parts before and after Hopper)."""
    eager_ms: float = 8.0
    """What the host takes to launch a step that no graph replays: no such step is shorter."""
    asynchronous: bool = True
    """The next step is scheduled while one runs: what is admitted waits for the end of it."""
    max_running: int = 256
    max_step_tokens: int = 2048
    chunked: bool = True
    """Prompts in chunks beside decodes; else whole prompts first, and decodes wait."""
    reserve_prompt: bool = True
    """A prompt starts only where all of it fits, not just its first chunk."""
    kv_blocks: int | None = None
    """Default: what weights and activations leave of 90 % of the memory."""
    block_tokens: int = 16
    prefix_cache: bool = True
    cache_lifetime_s: float = 0.0
    """What was not used for so long is forgotten; 0 keeps it until memory is short."""
    frontend_ms: float = 1.0
    tokenize_us_per_token: float = 0.5
    out_ms: float = 0.5
    grammar_ms: float = 0.0
    """Compile of one grammar; the engine keeps it afterwards."""
    drafts: int = 0
    acceptance: float = 0.7
    pause_every_s: float = 0.0
    pause_ms: float = 0.0
    load_s: float = 0.0
    idle_unload_s: float = 0.0
    role_chunk: str = "none"
    """Chunk without a token that opens a stream: none, first_token (with it) or accepted."""
    stream_tokens: int = 1
    """Tokens the front end puts into one chunk."""
    status_s: float = 10.0


@dataclass
class Replica:
    """One engine; ``set`` overrides fields of ``[engine]``."""

    name: str = "engine-0"
    set: dict[str, Any] = field(default_factory=dict)


@dataclass
class Log:
    """One log to write: its format is the name of a module ``write_FORMAT``."""

    format: str = ""
    file: str | None = None
    replica: str | None = None
    """Only what this replica did."""
    skew_ms: float = 0.0
    drift_ppm: float = 0.0
    loss: float = 0.0
    missing: list[str] = field(default_factory=list)
    options: dict[str, Any] = field(default_factory=dict)


@dataclass
class Change:
    """A field of the world that gets another value at a time."""

    at_s: float = 0.0
    key: str = ""
    value: Any = None


@dataclass
class World:
    """Everything that is simulated."""

    name: str = "world"
    seed: int = 1
    start: str = "2026-03-02T09:00:00Z"
    duration_s: float = 600.0
    """No session starts later; what runs then is seen to its end."""
    arrivals: list[Arrivals] = field(default_factory=lambda: [Arrivals()])
    client: Client = field(default_factory=Client)
    network: Network = field(default_factory=Network)
    gateway: Gateway = field(default_factory=Gateway)
    engine: EngineSetup = field(default_factory=EngineSetup)
    replicas: list[Replica] = field(default_factory=lambda: [Replica()])
    change: list[Change] = field(default_factory=list)
    logs: list[Log] = field(default_factory=list)
    prices: dict[str, dict[str, str]] = field(default_factory=dict)
    """Model -> token kind -> price of a million, as text."""
    folder: str = "."
    """Where files that the world names lie."""

    @property
    def start_ns(self) -> int:
        """First moment."""
        return _epoch_ns(self.start)

    def engine_of(self, replica: Replica) -> EngineSetup:
        """Setup of one replica."""
        setup = copy.deepcopy(self.engine)
        for key, value in replica.set.items():
            put(setup, key, value, f"replicas.{replica.name}")
        return setup


def load(path: Path, sets: typing.Sequence[str] = (), seed: int | None = None) -> World:
    """World of a TOML file; ``sets`` are ``key=value`` that beat it."""
    try:
        told = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "no UTF-8"
        raise AnalyzerError(f"cannot read {path}: {reason}", "a world is a TOML file") from None
    except tomllib.TOMLDecodeError as error:
        raise AnalyzerError(f"{path}: {error}", "mend the TOML there") from None
    world = from_dict(told | {"folder": told.get("folder", str(path.parent))})
    return with_sets(world, sets, seed)


def from_dict(told: dict[str, Any]) -> World:
    """World of a table as TOML gives it."""
    world = build(World, told, "")
    check(world)
    return typing.cast("World", world)


def with_sets(world: World, sets: typing.Sequence[str], seed: int | None = None) -> World:
    """A copy with ``key=value`` applied: ``engine.max_running=64``, ``arrivals.0.rate_per_s=2``."""
    changed = copy.deepcopy(world)
    for text in sets:
        key, sign, value = text.partition("=")
        if not sign:
            raise AnalyzerError(f"--set {text} has no value", "--set engine.max_running=64")
        put(changed, key.strip(), value_of(value.strip()))
    if seed is not None:
        changed.seed = seed
    check(changed)
    return changed


def _epoch_ns(text: str) -> int:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    since = moment - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * NS_PER_S + since.microseconds * NS_PER_US

"""What really happened: the outcome of a simulated world, on one true clock.

The simulator makes these, writers turn them into logs, and nothing flows back. Times are whole
nanoseconds since the Unix epoch on a clock that no machine of the world owns: a log's own clock is
this one seen through a :class:`LogView`. A moment that never came is None.
"""

from __future__ import annotations

import random
from array import array
from dataclasses import dataclass, field
from typing import Protocol

ROLE, REASONING, CONTENT, TOOL_CALL = range(4)
CHUNK_KINDS = ("role", "reasoning", "content", "tool_call")
"""Names of the codes in ``RequestOutcome.chunk_kinds``."""

CAUSES = (
    "client_hold",  # waited for a connection or for the client's loop before it was sent
    "client_stall",  # arrived, but the client's loop was blocked
    "network_stall",  # a lost packet held its connection
    "slow_network",  # the path's own latency above the world's base
    "buffered",  # a proxy kept bytes back
    "fallback",  # the gateway tried another route first
    "rate_limited",  # turned away with a status, and told to come again
    "retry",  # the time from a failed attempt to the next
    "timeout",  # given up by the client or the gateway
    "load",  # the model was not in memory
    "admission",  # a limit on sequences kept it out while memory had room
    "capacity",  # KV memory, or the tokens of a step, kept it out
    "head_of_line",  # it stood behind a request that could not start
    "grammar",  # a grammar was compiled before it could start
    "prefill_interference",  # prompts of others in its decode steps
    "preemption",  # put out of memory, and computed again
    "process_pause",  # the engine's process did nothing
)
"""Every kind of cause, in the words of the mechanisms."""


@dataclass(slots=True)
class Cause:
    """One thing that delayed one request: ``ns`` of the time from start to end are its doing."""

    kind: str
    start_ns: int
    end_ns: int
    ns: int
    where: str | None = None
    """Request, route or replica that did it, where there is one."""


@dataclass(slots=True)
class GatewayTry:
    """One upstream call of the gateway for one attempt of the client."""

    route: str
    replica: str | None
    start_ns: int
    end_ns: int
    status: int | None
    """Upstream's status; None where it was given up before there was one."""
    error: str | None = None


@dataclass(slots=True)
class RequestOutcome:
    """One attempt of one request through every machine. Its moments keep their order.

    scheduled <= sent <= gateway_in <= gateway_sent <= engine_in <= queued <= admitted
    < first_token <= finished <= engine_out, and chunks reach the client after they were made.
    """

    request_id: str
    operation_id: str
    attempt: int = 1
    session_id: str | None = None
    turn: int | None = None
    parent_session_id: str | None = None
    kind: str = ""
    """Name of the stream of arrivals it belongs to."""
    route: str = ""
    """Route that answered (the first one, where nothing did)."""
    replica: str | None = None
    model: str = ""

    prompt_tokens: int = 0
    cached_tokens: int = 0
    """Of the prompt, taken from the prefix cache at the first admission."""
    output_tokens: int = 0
    """Made by the engine, reasoning included; an attempt that was given up may have some."""
    reasoning_tokens: int = 0
    max_tokens: int | None = None
    system_tokens: int = 0
    """Of the prompt: system text and tool definitions, the part all turns share."""
    history_tokens: int = 0
    """Of the prompt: earlier turns of its session."""
    response_format: str | None = None
    schema_hash: str | None = None
    payload_hash: str | None = None
    streamed: bool = True
    path: list[tuple[object, int]] = field(default_factory=list)
    """Parts of the prompt: a name for everything up to its end, and that end in tokens."""

    scheduled_ns: int = 0
    """When the user, or the loop of an agent, asked for it."""
    sent_ns: int | None = None
    gateway_in_ns: int | None = None
    gateway_sent_ns: int | None = None
    """When the gateway called the upstream that answered."""
    engine_in_ns: int | None = None
    queued_ns: int | None = None
    """When the scheduler got it; what is loaded or compiled for it is part of its wait there."""
    admitted_ns: int | None = None
    """First time it was scheduled in a step."""
    first_token_ns: int | None = None
    finished_ns: int | None = None
    """Last token made, its place free."""
    engine_out_ns: int | None = None
    """Engine's last bytes left the server."""
    gateway_first_ns: int | None = None
    """Gateway's first response byte that carries content."""
    gateway_out_ns: int | None = None
    first_chunk_ns: int | None = None
    """First chunk with a token, as the client's loop saw it."""
    done_ns: int | None = None
    """The client knows how it ended: last chunk, error or timeout."""

    token_ns: array[int] = field(default_factory=lambda: array("q"))
    """When the engine made each output token; filled only where a log needs it."""
    chunk_ns: array[int] = field(default_factory=lambda: array("q"))
    """When the client's loop saw each chunk; filled only where a log needs it."""
    chunk_tokens: array[int] = field(default_factory=lambda: array("q"))
    chunk_kinds: array[int] = field(default_factory=lambda: array("q"))

    preemptions: int = 0
    status: int | None = None
    """HTTP status as the client saw it; None where there was none."""
    error: str | None = None
    """timeout, rate_limited, aborted, upstream, ...; None where it went well."""
    finish_reason: str | None = None
    retry_after_ns: int | None = None
    tries: list[GatewayTry] = field(default_factory=list)
    causes: list[Cause] = field(default_factory=list)

    # --- the segments, in the words of the tables ---

    @property
    def hold_ns(self) -> int:
        """Wait at the client before it was sent."""
        return 0 if self.sent_ns is None else self.sent_ns - self.scheduled_ns

    @property
    def frontend_ns(self) -> int | None:
        """Engine's front end on the way in: HTTP, tokenizer, and the end of the running step."""
        return _between(self.engine_in_ns, self.queued_ns)

    @property
    def queue_ns(self) -> int | None:
        """Wait in the engine's scheduler."""
        return _between(self.queued_ns, self.admitted_ns)

    @property
    def prefill_ns(self) -> int | None:
        """From the first step it was in to its first token."""
        return _between(self.admitted_ns, self.first_token_ns)

    @property
    def decode_ns(self) -> int | None:
        """From its first token to its last."""
        return _between(self.first_token_ns, self.finished_ns)

    @property
    def engine_ttft_ns(self) -> int | None:
        """First token as the engine sees it."""
        return _between(self.engine_in_ns, self.first_token_ns)

    @property
    def engine_e2e_ns(self) -> int | None:
        """The whole request as the engine sees it."""
        return _between(self.engine_in_ns, self.engine_out_ns)

    @property
    def ttft_ns(self) -> int | None:
        """First token as the client sees it."""
        return _between(self.sent_ns, self.first_chunk_ns)

    @property
    def e2e_ns(self) -> int | None:
        """The whole attempt as the client sees it."""
        return _between(self.sent_ns, self.done_ns)

    @property
    def network_ns(self) -> int | None:
        """What the client's time is longer than the engine's."""
        outer, inner = self.e2e_ns, self.engine_e2e_ns
        if outer is None or inner is None or outer < inner:  # the client left, the engine went on
            return None
        return outer - inner

    @property
    def fresh_tokens(self) -> int:
        """Of the prompt, computed."""
        return self.prompt_tokens - self.cached_tokens


def _between(start: int | None, end: int | None) -> int | None:
    return None if start is None or end is None else end - start


@dataclass(slots=True)
class EngineSample:
    """State of one replica at one moment, rates over the interval that ends there."""

    time_ns: int
    replica: str
    interval_ns: int
    running: int
    waiting: int
    kv_used_blocks: int
    kv_blocks: int
    block_tokens: int
    prompt_tokens: int
    """Fresh prompt tokens computed in the interval."""
    output_tokens: int
    """Output tokens made in the interval."""
    hit_tokens: int
    """Prompt tokens taken from the cache since the start."""
    asked_tokens: int
    """Prompt tokens looked up in the cache since the start."""
    preemptions: int
    """Since the start."""
    graph: bool = True


@dataclass(slots=True)
class EngineEvent:
    """Something an engine did besides steps."""

    time_ns: int
    replica: str
    kind: str
    """start, load, unload, preemption, pause, grammar."""
    duration_ns: int = 0
    request_id: str | None = None


@dataclass(slots=True)
class PrefillBatch:
    """One step of a replica that computed prompts; told only where a log needs it."""

    time_ns: int
    replica: str
    sequences: int
    """Whose first part is in it."""
    new_tokens: int
    cached_tokens: int
    running: int
    waiting: int
    kv_used_ratio: float
    step_ns: int


@dataclass(slots=True)
class ClientTick:
    """A heartbeat of a client's loop: when it was due and when it came."""

    client: str
    due_ns: int
    time_ns: int


class Recorder(Protocol):
    """What takes outcomes as they end: requests in order of their end, samples in order of time."""

    def request(self, outcome: RequestOutcome) -> None:
        """Take one attempt that is over; it is not kept afterwards."""

    def sample(self, sample: EngineSample) -> None:
        """Take the state of a replica."""

    def event(self, event: EngineEvent) -> None:
        """Take what an engine did."""

    def prefill(self, batch: PrefillBatch) -> None:
        """Take a step that computed prompts."""

    def tick(self, tick: ClientTick) -> None:
        """Take a heartbeat of a client."""

    def close(self) -> None:
        """Write what is left; no more comes."""


class Base:
    """A recorder that takes nothing; writers override what their log has."""

    def request(self, outcome: RequestOutcome) -> None:
        """Ignore it."""

    def sample(self, sample: EngineSample) -> None:
        """Ignore it."""

    def event(self, event: EngineEvent) -> None:
        """Ignore it."""

    def prefill(self, batch: PrefillBatch) -> None:
        """Ignore it."""

    def tick(self, tick: ClientTick) -> None:
        """Ignore it."""

    def close(self) -> None:
        """Nothing is left."""


@dataclass(frozen=True)
class LogView:
    """How one log tells what happened: its clock, what it leaves out, what it loses.

    ``drift_ppm`` counts from ``epoch_ns``. ``drops`` says of each record whether the log lost it,
    by its key alone: whatever else the world does, the same records are lost.
    """

    name: str = ""
    skew_ns: int = 0
    drift_ppm: float = 0.0
    epoch_ns: int = 0
    loss: float = 0.0
    missing: frozenset[str] = frozenset()
    seed: str = "0"

    def time(self, true_ns: int) -> int:
        """True time as this log's clock shows it."""
        if not self.drift_ppm:
            return true_ns + self.skew_ns
        return true_ns + self.skew_ns + round((true_ns - self.epoch_ns) * self.drift_ppm / 1e6)

    def drops(self, key: str) -> bool:
        """Whether the record of this key is lost."""
        if not self.loss:
            return False
        return random.Random(f"{self.seed}/{self.name}/{key}").random() < self.loss  # noqa: S311

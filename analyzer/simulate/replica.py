"""One replica: its front end, its engine cores, and what befalls its process.

Ranks of one replica step together, as data-parallel ranks with shared experts do.
"""

from __future__ import annotations

import random
from bisect import bisect_left

from analyzer.simulate.drafting import DraftingEngine
from analyzer.simulate.engine import Engine
from analyzer.simulate.job import Hooks, Job
from analyzer.simulate.loop import Loop
from analyzer.simulate.memory import Memory
from analyzer.simulate.outcome import EngineEvent, EngineSample, Recorder
from analyzer.simulate.steps import blocks_of, cost_of
from analyzer.simulate.world import NS_PER_MS, NS_PER_S, NS_PER_US, EngineSetup

_SPREAD = 12**0.5
"""Width of an even spread over its deviation."""


class Replica:
    """Takes requests at its front end and gives them back through ``finished``."""

    def __init__(
        self, name: str, setup: EngineSetup, loop: Loop, hooks: Hooks, recorder: Recorder,
        *, start_ns: int, tokens: bool, seed: int,
    ) -> None:  # fmt: skip
        self.name, self.setup, self.loop, self.recorder = name, setup, loop, recorder
        self.hooks = Hooks(hooks.first, self._finished, hooks.event, hooks.prefill)
        self._outer_finished = hooks.finished
        blocks, count = blocks_of(setup), max(1, setup.dp or 1)
        kind = DraftingEngine if setup.drafts else Engine
        cost = cost_of(setup)
        self.ranks = [
            kind(
                name if count == 1 else f"{name}/{rank}", setup, cost,
                self._memory(blocks), self.hooks, tokens=tokens, seed=(seed << 8) + rank,
            )
            for rank in range(count)
        ]  # fmt: skip
        self.capacity = blocks * setup.block_tokens
        self.dice = random.Random(seed)  # noqa: S311 - a simulation
        self.active = False
        self.in_flight = 0
        self.grammars: dict[str, int] = {}
        self.loaded = not setup.load_s
        self.ready_ns = self.idle_ns = start_ns
        self.pauses: list[tuple[int, int]] = []
        self.next_pause = start_ns + round(setup.pause_every_s * NS_PER_S)
        self.due_ns = start_ns + self._interval
        self.told = [(0, 0, 0)] * count
        self.was_idle = False

    def _memory(self, blocks: int) -> Memory:
        setup = self.setup
        return Memory(
            blocks, setup.block_tokens, cached=setup.prefix_cache,
            lifetime_ns=round(setup.cache_lifetime_s * NS_PER_S),
        )  # fmt: skip

    @property
    def _interval(self) -> int:
        return max(NS_PER_MS, round(self.setup.status_s * NS_PER_S))

    @property
    def load(self) -> int:
        """Requests it has, those that wait counted four times, as vLLM's balancer does."""
        return sum(4 * (one.queued + len(one.inbox)) + len(one.running) for one in self.ranks)

    def changed(self) -> None:
        """Setup was changed: steps cost something else from now on."""
        cost = cost_of(self.setup)
        for engine in self.ranks:
            engine.cost = cost

    def fits(self, job: Job) -> bool:
        """Whether its memory could ever hold the request."""
        return job.outcome.prompt_tokens + job.output <= self.capacity

    # --- in ---------------------------------------------------------------------------------------

    def enter(self, now: int, job: Job) -> None:
        """A request arrives at the HTTP server."""
        self.in_flight += 1
        job.outcome.engine_in_ns = now
        setup = self.setup
        front = setup.frontend_ms * NS_PER_MS
        front += setup.tokenize_us_per_token * NS_PER_US * job.outcome.prompt_tokens
        self.loop.at(now + round(front), self._core, job)

    def _core(self, now: int, job: Job) -> None:
        outcome = job.outcome
        if job.dropped:
            return
        self._catch_up(now)
        self._load(now)
        if not self.loaded or self.ready_ns > now:
            self.loaded = True
            outcome.queued_ns = now
            job.cause("load", now, self.ready_ns)
        if outcome.schema_hash and self.setup.grammar_ms:
            ready = self.grammars.get(outcome.schema_hash)
            if ready is None:
                took = round(self.setup.grammar_ms * NS_PER_MS)
                ready = self.grammars[outcome.schema_hash] = now + took
                self.hooks.event(EngineEvent(now, self.name, "grammar", took, outcome.request_id))
            job.ready_ns = ready
        job.engine = engine = min(
            self.ranks, key=lambda one: 4 * (one.queued + len(one.inbox)) + len(one.running)
        )
        engine.submit(job)
        self._wake(max(now, self.ready_ns))

    def _load(self, now: int) -> None:
        """Unload what was idle too long, and load what is not there."""
        setup = self.setup
        idle = round(setup.idle_unload_s * NS_PER_S)
        resting = not self.active and self.in_flight == 1 and now - self.idle_ns >= idle
        if setup.load_s and idle and self.loaded and resting:
            self.hooks.event(EngineEvent(self.idle_ns + idle, self.name, "unload"))
            self.loaded = False
            for engine in self.ranks:
                engine.memory = self._memory(engine.memory.blocks)
        if not self.loaded:
            took = round(setup.load_s * NS_PER_S)
            self.ready_ns = now + took
            self.hooks.event(EngineEvent(now, self.name, "load", took))

    def _wake(self, when: int) -> None:
        if not self.active:
            self.active = True
            self.loop.at(when, self._run)

    def abort(self, now: int, job: Job) -> None:
        """Drop a request, wherever it is."""
        job.dropped = True
        self.in_flight -= 1
        if job.engine is not None:
            job.engine.abort(job, now)

    # --- steps ------------------------------------------------------------------------------------

    def _run(self, now: int, _: object = None) -> None:
        """Step until something else happens first."""
        loop, ranks = self.loop, self.ranks
        alone = ranks[0] if len(ranks) == 1 else None
        while True:
            took = alone.begin(now) if alone else self._together(now)
            if not took:
                self._idle(now)
                return
            if self.setup.noise:
                took *= 1 + self.setup.noise * _SPREAD * (self.dice.random() - 0.5)
            end = now + int(took) + 1
            if self.setup.pause_every_s:
                end = self._paused(now, end)
            if end > self.due_ns:
                self._status(end)
            for one in ranks:
                one.end(end)
            now = end
            if loop.next_ns <= now:
                loop.at(now, self._run)
                return

    def _together(self, now: int) -> float:
        """A step of all ranks, or 0 where none has work: a prompt on one delays all of them."""
        loads = [(one, one.plan(now)) for one in self.ranks]
        work = [load for _, load in loads if load]
        if not work:
            return 0.0
        cost = self.ranks[0].cost
        whole = cost.together_ns(work)
        if any(chunks for _, _, chunks in work):
            rest = [(batch, contexts, ()) for batch, contexts, _ in work if batch]
            alone = cost.together_ns(rest) if rest else 0.0
            for engine, _ in loads:
                engine.extra_now = whole - alone if engine.batch else 0.0
        return whole

    def _idle(self, now: int) -> None:
        self.active = False
        self.idle_ns = now
        ready = min((one.compiling[0][0] for one in self.ranks if one.compiling), default=None)
        if ready is not None:
            self.loop.at(ready, self._poke)

    def _poke(self, now: int, _: object = None) -> None:
        """A grammar is ready: go on, if nobody else did."""
        self._wake(now)

    def _paused(self, now: int, end: int) -> int:
        """The process stops in the middle of what it does."""
        every = round(self.setup.pause_every_s * NS_PER_S)
        while self.next_pause < now:
            self.next_pause += every
        while self.next_pause < end:
            took = round(self.setup.pause_ms * NS_PER_MS)
            self.pauses.append((self.next_pause, self.next_pause + took))
            self.hooks.event(EngineEvent(self.next_pause, self.name, "pause", took))
            self.next_pause += every
            end += took
        return end

    # --- out --------------------------------------------------------------------------------------

    def _finished(self, job: Job, now: int) -> None:
        outcome = job.outcome
        outcome.engine_out_ns = now + round(self.setup.out_ms * NS_PER_MS)
        entered = outcome.engine_in_ns or 0
        if self.pauses and self.pauses[-1][1] > entered:
            for start, end in self.pauses[bisect_left(self.pauses, (entered, 0)) :]:
                if start < now:
                    job.cause("process_pause", start, end)
        self.in_flight -= 1
        self._outer_finished(job, now)

    # --- status -----------------------------------------------------------------------------------

    def _status(self, until: int) -> None:
        """Samples that are due before ``until``."""
        interval = self._interval
        while self.due_ns < until:
            for rank, engine in enumerate(self.ranks):
                self._sample(rank, engine, self.due_ns, interval)
            self.due_ns += interval

    def _sample(self, rank: int, engine: Engine, now: int, interval: int) -> None:
        prompt, output, _ = self.told[rank]
        self.told[rank] = (engine.prompt_tokens, engine.output_tokens, 0)
        memory = engine.memory
        self.recorder.sample(
            EngineSample(
                now, engine.name, interval, len(engine.running), engine.queued, memory.used,
                memory.blocks, memory.block_tokens, engine.prompt_tokens - prompt,
                engine.output_tokens - output, engine.hit_tokens, engine.asked_tokens,
                engine.preemptions, self.setup.graph,
            )
        )  # fmt: skip

    def _catch_up(self, now: int) -> None:
        """An idle engine tells once that it is idle, and then nothing until it has work."""
        if not self.active and self.due_ns <= now:
            self._status(self.due_ns + 1)
            interval = self._interval
            self.due_ns += max(0, -(-(now - self.due_ns) // interval)) * interval

    def close(self) -> None:
        """The last sample, so that everything was told once."""
        self._status(self.due_ns + 1)

"""An engine with continuous batching: who is in which step, and what each of them gets from it.

Scheduling follows vLLM V1: running requests first, then the queue in order, within a budget of
tokens and of sequences; prompts in chunks; where memory is short the last one in is put out and
computed again later. A step costs the same work here whatever its batch: requests that decode are
kept as sums, and looked at one by one only when they start, end or are put out.
"""

from __future__ import annotations

import random
from collections import deque
from heapq import heappop, heappush

from analyzer.simulate.decodes import Decodes
from analyzer.simulate.job import WAITS, Hooks, Job
from analyzer.simulate.memory import Memory, whole_blocks
from analyzer.simulate.outcome import EngineEvent, PrefillBatch
from analyzer.simulate.steps import Load, StepCost
from analyzer.simulate.world import EngineSetup

Chunk = tuple[Job, int, int, int]
"""Job, its generation when it was planned, new tokens, tokens before them."""
_NONE: list[Chunk] = []


class Engine(Decodes):
    """One engine core, or one rank of several that step together."""

    def __init__(
        self, name: str, setup: EngineSetup, cost: StepCost, memory: Memory, hooks: Hooks,
        *, tokens: bool, seed: int = 0,
    ) -> None:  # fmt: skip
        super().__init__(memory, tokens=tokens)
        self.name, self.setup, self.cost, self.hooks = name, setup, cost, hooks
        self.dice = random.Random(seed)  # noqa: S311 - a simulation
        self.inbox: list[Job] = []
        self.compiling: list[tuple[int, int, Job]] = []
        self.waiting: deque[Job] = deque()
        self.planned: list[Chunk] = _NONE
        self.current: list[Chunk] = _NONE
        self.stepping = 0
        self.extra_now = 0.0
        self.waited = dict.fromkeys(WAITS, 0)
        self.reason: str | None = None
        self.reason_ns = self.began_ns = 0
        self.blocker: str | None = None
        self.put_out = False
        self.prompt_tokens = self.output_tokens = 0
        self.hit_tokens = self.asked_tokens = self.preemptions = 0

    @property
    def busy(self) -> bool:
        """Whether there is anything to do now."""
        return bool(self.batch or self.prefilling or self.waiting or self.inbox)

    @property
    def queued(self) -> int:
        """Requests that wait, as status lines count them."""
        return len(self.waiting) + len(self.compiling)

    # --- in and out -------------------------------------------------------------------------------

    def submit(self, job: Job) -> None:
        """Hand a request over; the core looks at it before its next step."""
        self.inbox.append(job)

    def _accept(self, now: int) -> None:
        for job in self.inbox:
            job.path = whole_blocks(job.path, self.memory.block_tokens)
            # Whoever waited for a load was in the queue before the core could look.
            if job.outcome.queued_ns is None:
                job.outcome.queued_ns = now
            job.entered_ns = now
            if job.ready_ns > now:
                self.order += 1
                heappush(self.compiling, (job.ready_ns, self.order, job))
            else:
                self._enqueue(job)
        self.inbox.clear()

    def _enqueue(self, job: Job) -> None:
        job.waited = tuple(self.waited.values())
        self.waiting.append(job)

    def _compiled(self, now: int) -> None:
        while self.compiling and self.compiling[0][0] <= now:
            _, _, job = heappop(self.compiling)
            job.cause("grammar", job.entered_ns, now)
            job.entered_ns = now
            self._enqueue(job)

    def abort(self, job: Job, now: int) -> None:
        """Drop a request between two steps, wherever it is."""
        if job in self.running:
            self._stop(job, now)
        elif job in self.waiting:
            self.waiting.remove(job)
        else:
            # In the inbox, compiling or already over: seen when its turn comes.
            self.compiling = [one for one in self.compiling if one[2] is not job]
            self.inbox = [one for one in self.inbox if one is not job]

    # --- one step ---------------------------------------------------------------------------------

    def begin(self, now: int) -> float:
        """Plan and start a step; its time, or 0 where there is nothing to do."""
        load = self.plan(now)
        return self.timed(load) if load else 0.0

    def plan(self, now: int) -> Load | None:
        """Start a step: what is in it, or None where there is nothing to do."""
        self.began_ns = now
        # Whoever comes in now has not waited for what was before.
        if self.reason is not None:
            self.waited[self.reason] += now - self.reason_ns
            self.reason = None
        if self.inbox:
            self._accept(now)
        if self.compiling:
            self._compiled(now)
        current = self.planned
        if not self.setup.asynchronous or not (current or self.batch):
            current = self._plan(now)
        self.planned = self._plan(now) if self.setup.asynchronous else _NONE
        batch = self.batch
        if batch and current and not self.setup.chunked:
            batch = 0
        if batch:
            self._reserve(now)
            batch = self.batch
        if self.put_out:
            current = [one for one in current if one[0].generation == one[1]]
            self.planned = [one for one in self.planned if one[0].generation == one[1]]
            self.put_out = False
        self.current, self.stepping = current, batch
        self.extra_now = 0.0
        if not current:
            return (batch, self.contexts, ()) if batch else None
        return batch, self.contexts, tuple((new, before) for _, _, new, before in current)

    def timed(self, load: Load) -> float:
        """What a step of this load takes, and what its prompts add for those that decode."""
        batch, contexts, chunks = load
        if not chunks:
            return self.cost.decode_ns(batch, contexts)
        whole = self.cost.mixed_ns(batch, contexts, chunks)
        if self.batch:
            alone = self.cost.decode_ns(batch, contexts) if batch else 0.0
            self.extra_now = whole - alone
        return whole

    def end(self, now: int) -> None:
        """Finish the step: everyone in it gets what it made."""
        self.extra_ns += self.extra_now
        if self.stepping:
            self._advance(now)
        if self.current:
            if self.hooks.prefill is not None:
                self.hooks.prefill(self._told(now))
            self._prefilled(now)

    def _told(self, now: int) -> PrefillBatch:
        new = [one for one in self.current if one[3] == one[0].hit]
        return PrefillBatch(
            now, self.name, len(new), sum(one[2] for one in self.current),
            sum(one[3] for one in new), self.batch, self.queued,
            self.memory.used / self.memory.blocks, now - self.began_ns,
        )  # fmt: skip

    def _prefilled(self, now: int) -> None:
        for job, generation, new, _ in self.current:
            if job.generation != generation or job.held is None:
                continue
            self.prompt_tokens += new
            job.computed += new
            self.memory.publish(job.held, job.path, job.computed, now)
            if job.computed < job.target:
                continue
            del self.prefilling[job]
            self._token(job, now)
            if job.made >= job.output:
                self._finish(job, now)
            else:
                self._start(job)

    def _token(self, job: Job, now: int) -> None:
        """A prompt is done, and its last position gave a token."""
        job.made += 1
        self.output_tokens += 1
        outcome = job.outcome
        if self.keeps_tokens:
            outcome.token_ns.append(now)
        if outcome.first_token_ns is None:
            outcome.first_token_ns = now
            self.hooks.first(job, now)
        if job.preempted_ns is not None:
            job.cause("preemption", job.preempted_ns, now)
            job.preempted_ns = None

    # --- planning ---------------------------------------------------------------------------------

    def _plan(self, now: int) -> list[Chunk]:
        """Chunks of prompts for a step: those under way, then the queue."""
        if not self.prefilling and not self.waiting:
            return _NONE
        chunks: list[Chunk] = []
        budget = self.setup.max_step_tokens
        if self.setup.chunked:
            budget -= self.batch * (self.setup.drafts + 1)
        before = self.preemptions
        for job in list(self.prefilling):
            new = min(job.target - job.scheduled, budget)
            if new <= 0 or job not in self.prefilling:
                continue
            if not self._grow(job, job.scheduled + new, now):
                break
            budget -= self._chunk(chunks, job, new)
        if self.preemptions == before:
            self._admit(chunks, budget, now)
        elif self.waiting:
            self._blocked("capacity", chunks, now)
        return chunks

    def _chunk(self, chunks: list[Chunk], job: Job, new: int) -> int:
        chunks.append((job, job.generation, new, job.scheduled))
        job.scheduled += new
        return new

    def _admit(self, chunks: list[Chunk], budget: int, now: int) -> None:
        setup, memory = self.setup, self.memory
        size = memory.block_tokens
        while self.waiting:
            job = self.waiting[0]
            if len(self.running) >= setup.max_running:
                short = memory.free < -(-job.target // size)
                self._blocked("capacity" if short else "admission", chunks, now)
                return
            found, hit = memory.known(job.path, job.target, now)
            new = job.target - hit * size
            if setup.chunked:
                new = min(new, budget)
            elif new > budget and chunks:
                new = 0
            if new <= 0:
                self._blocked("head_of_line", chunks, now)
                return
            need = -(-(hit * size + new) // size) - hit
            whole = -(-job.target // size) - hit if setup.reserve_prompt else need
            if whole > memory.room(found):
                self._blocked("capacity", chunks, now)
                return
            self.waiting.popleft()
            job.held = memory.hold(found, hit)
            memory.take(need)
            job.held.own += need
            self._admitted(job, hit * size, now)
            budget -= self._chunk(chunks, job, new)

    def _admitted(self, job: Job, hit: int, now: int) -> None:
        job.scheduled = job.computed = job.hit = hit
        self.running[job] = self.prefilling[job] = None
        self.hit_tokens += hit
        self.asked_tokens += job.target
        outcome = job.outcome
        if outcome.admitted_ns is not None:
            return
        outcome.admitted_ns = now
        outcome.cached_tokens = hit
        for kind, before in zip(WAITS, job.waited, strict=True):
            spent = self.waited[kind] - before
            job.cause(kind, job.entered_ns, now, spent, self.blocker)

    def _blocked(self, reason: str, chunks: list[Chunk], now: int) -> None:
        self.reason, self.reason_ns = reason, now
        if reason != "head_of_line":
            self.blocker = None
        elif chunks:
            self.blocker = max(chunks, key=lambda one: one[2])[0].outcome.request_id

    # --- memory -----------------------------------------------------------------------------------

    def _grow(self, job: Job, tokens: int, now: int) -> bool:
        """Blocks for so many tokens; others, or itself, are put out for them."""
        held = job.held
        assert held is not None  # noqa: S101 - who is in a step holds memory
        need = -(-tokens // self.memory.block_tokens) - held.shared - held.own - held.named
        while need > 0 and not self.memory.take(need):
            victim = next(reversed(self.running))
            self._preempt(victim, now)
            if victim is job:
                return False
        held.own += max(0, need)
        return True

    def _reserve(self, now: int) -> None:
        """Blocks that the next token of every decode needs."""
        slot = (self.steps + 1) % self.memory.block_tokens
        while self.need[slot] and not self.memory.take(self.need[slot]):
            self._preempt(next(reversed(self.running)), now)

    def _preempt(self, job: Job, now: int) -> None:
        """Put a request out; it goes to the head of the queue with what it has made."""
        self.preemptions += 1
        self.put_out = True
        del self.running[job]
        if job in self.prefilling:
            del self.prefilling[job]
            tokens = job.computed
        else:
            tokens = self._leave(job)
        job.generation += 1
        job.path = whole_blocks(
            [*job.path, (("own", job.outcome.request_id, tokens), tokens)],
            self.memory.block_tokens,
        )
        self._give_back(job, job.path, tokens, now)
        job.target = job.outcome.prompt_tokens + job.made
        job.scheduled = job.computed = 0
        if job.made and job.preempted_ns is None:
            job.preempted_ns = now
        job.outcome.preemptions += 1
        self.waiting.appendleft(job)
        self.hooks.event(EngineEvent(now, self.name, "preemption", 0, job.outcome.request_id))

    def _give_back(self, job: Job, path: list[tuple[object, int]], tokens: int, now: int) -> None:
        if job.held is not None:
            self.memory.publish(job.held, path, tokens, now)
            self.memory.release(job.held, now)
            job.held = None

    # --- ends -------------------------------------------------------------------------------------

    def _advance(self, now: int) -> None:
        """Every decode makes one token."""
        self.steps += 1
        self.contexts += self.stepping
        self.output_tokens += self.stepping
        if self.keeps_tokens:
            self.clock.append(now)
            self._trim()
        ends = self.ends
        while ends and ends[0][0] <= self.steps:
            _, _, generation, job = heappop(ends)
            if job.generation == generation:
                self._finish(job, now, tokens=self._leave(job))

    def _finish(self, job: Job, now: int, tokens: int | None = None) -> None:
        tokens = job.target if tokens is None else tokens
        path = job.path
        if job.result_name is not None:
            path = [*path, (job.result_name, job.outcome.prompt_tokens + job.output)]
        job.outcome.finished_ns = now
        self._over(job, path, tokens, now)
        self.hooks.finished(job, now)

    def _stop(self, job: Job, now: int) -> None:
        """Give up in the middle."""
        if job in self.prefilling:
            del self.prefilling[job]
            tokens = job.computed
        else:
            tokens = self._leave(job)
        self.put_out = True
        self._over(job, job.path, tokens, now)

    def _over(self, job: Job, path: list[tuple[object, int]], tokens: int, now: int) -> None:
        self.running.pop(job, None)
        job.generation += 1
        self._give_back(job, path, tokens, now)
        outcome = job.outcome
        outcome.output_tokens = job.made
        if outcome.first_token_ns is not None:
            start = outcome.first_token_ns
            job.cause("prefill_interference", start, now, min(round(job.extra_ns), now - start))

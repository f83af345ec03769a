"""Requests that decode, kept as sums: a step over all of them costs the same work as over one.

All of them make one token a step, so when each ends and when each needs a block is known as it
starts; the times of steps are kept once, and a request's tokens are a slice of them.
"""

from __future__ import annotations

from array import array
from heapq import heappush

from analyzer.simulate.job import Job
from analyzer.simulate.memory import Memory

_TRIM = 1 << 16


class Decodes:
    """The sums, and the steps so far."""

    def __init__(self, memory: Memory, *, tokens: bool) -> None:
        self.memory, self.keeps_tokens = memory, tokens
        self.running: dict[Job, None] = {}
        self.prefilling: dict[Job, None] = {}
        self.batch = self.contexts = self.steps = self.order = 0
        self.need = [0] * memory.block_tokens
        """How many need a block at a step of this remainder."""
        self.ends: list[tuple[int, int, int, Job]] = []
        self.clock = array("q")
        self.clock_from = 0
        self.extra_ns = 0.0
        """What prompts have added to steps so far."""

    def _start(self, job: Job) -> None:
        size = self.memory.block_tokens
        job.since, job.base = self.steps, job.target
        job.extra_from = self.extra_ns
        self.batch += 1
        self.contexts += job.base
        self.need[(job.since + 1 - job.base) % size] += 1
        self.order += 1
        end = job.since + job.output - job.made
        heappush(self.ends, (end, self.order, job.generation, job))

    def _leave(self, job: Job) -> int:
        """Take it out of the sums; its tokens in memory."""
        size = self.memory.block_tokens
        made = self.steps - job.since
        tokens = job.base + made
        self.batch -= 1
        self.contexts -= tokens
        self.need[(job.since + 1 - job.base) % size] -= 1
        if self.keeps_tokens:
            start = job.since - self.clock_from
            job.outcome.token_ns.extend(self.clock[start : start + made])
        job.made += made
        job.extra_ns += self.extra_ns - job.extra_from
        assert job.held is not None  # noqa: S101 - who decodes holds memory
        job.held.own += -(-tokens // size) - -(-job.base // size)
        return tokens

    def _trim(self) -> None:
        """Forget steps that no request in flight was in."""
        if len(self.clock) <= 2 * _TRIM:
            return
        alive = (job.since for job in self.running if job not in self.prefilling)
        first = min(alive, default=self.steps)
        del self.clock[: max(0, first - self.clock_from)]
        self.clock_from = max(first, self.clock_from)

"""An engine that drafts tokens and verifies them: requests advance each at its own pace."""

from __future__ import annotations

from analyzer.simulate.engine import Engine
from analyzer.simulate.job import Hooks, Job
from analyzer.simulate.memory import Memory
from analyzer.simulate.steps import StepCost
from analyzer.simulate.world import EngineSetup


class DraftingEngine(Engine):
    """Each step commits one token and as many drafts as were right before the first wrong one."""

    def __init__(
        self, name: str, setup: EngineSetup, cost: StepCost, memory: Memory, hooks: Hooks,
        *, tokens: bool, seed: int = 0,
    ) -> None:  # fmt: skip
        super().__init__(name, setup, cost, memory, hooks, tokens=tokens, seed=seed)
        self.decoding: dict[Job, int] = {}
        """Who decodes, and its tokens in memory."""

    def _start(self, job: Job) -> None:
        job.base = job.target
        job.extra_from = self.extra_ns
        self.decoding[job] = job.target
        self.batch += 1
        self.contexts += job.base

    def _leave(self, job: Job) -> int:
        tokens = self.decoding.pop(job)
        self.batch -= 1
        self.contexts -= tokens
        job.extra_ns += self.extra_ns - job.extra_from
        return tokens

    def _reserve(self, now: int) -> None:
        """Blocks for the token and all its drafts, whether or not they will be right."""
        size, memory = self.memory.block_tokens, self.memory
        for job in list(self.decoding):
            held = job.held
            if held is None or job not in self.decoding:
                continue
            most = min(self.setup.drafts + 1, job.output - job.made)
            whole = -(-(self.decoding[job] + most) // size)
            need = whole - held.shared - held.own - held.named
            while need > 0 and not memory.take(need):
                victim = next(reversed(self.running))
                self._preempt(victim, now)
                if victim is job:
                    break
            else:
                held.own += max(0, need)

    def _advance(self, now: int) -> None:
        self.steps += 1
        chance, drafts, draw = self.setup.acceptance, self.setup.drafts, self.dice.random
        for job in list(self.decoding):
            made = 1
            while made <= drafts and draw() < chance:
                made += 1
            made = min(made, job.output - job.made)
            job.made += made
            self.output_tokens += made
            self.contexts += made
            self.decoding[job] += made
            if self.keeps_tokens:
                job.outcome.token_ns.extend([now] * made)
            if job.made >= job.output:
                self._finish(job, now, tokens=self._leave(job))

"""How much of a replica's time requests take at the hardware's bound: what a GPU hour serves."""

from __future__ import annotations

from dataclasses import dataclass, replace

from analyzer.bounds.ask import Ask, Setting, resolve
from analyzer.bounds.calculate import of_setting, sequences_that_fit
from analyzer.bounds.step import expected_prefill
from analyzer.errors import AnalyzerError

MOST_SEQUENCES = 256
"""Sequences that engines decode together by default, where more would fit."""


@dataclass(frozen=True)
class Served:
    """Times of one replica for requests of a mean size, at the expected bound.

    ``prefill_ns`` is a prompt's that is alone there, ``compute_ns`` what it takes beside others.
    """

    setting: Setting
    batch: int
    fits: int | None
    prefill_ns: float
    compute_ns: float
    step_ns: float
    fresh_tokens: int

    @property
    def fresh_ns(self) -> float:
        """Time to compute one prompt token outside the cache; the weights are read anyway."""
        return self.compute_ns / self.fresh_tokens

    @property
    def tpot_ns(self) -> float:
        """Time per output token of one sequence."""
        return self.step_ns / self.setting.tokens

    @property
    def output_ns(self) -> float:
        """A replica's time for one output token: the whole batch shares a step."""
        return self.tpot_ns / self.batch

    def busy_ns(self, fresh_tokens: float, output_tokens: float) -> float:
        """A replica's time for so many tokens of prompts and answers."""
        return fresh_tokens * self.fresh_ns + output_tokens * self.output_ns


def served(ask: Ask, output: int, most: int = MOST_SEQUENCES) -> Served:
    """What a replica needs for prompts as ``ask`` says and answers of ``output`` tokens.

    As many sequences decode together as fit with their whole length, at most ``most``; a step reads
    contexts with half of the answer. Raises :class:`AnalyzerError` where nothing can be said.
    """
    prompt, cached = ask.prompt or 1, ask.cached or 0
    whole = resolve(replace(ask, context=prompt + output))
    fits = sequences_that_fit(whole)
    if fits == 0:
        raise AnalyzerError(
            f"{whole.model.key} with {prompt + output:,} tokens does not fit on "
            f"{whole.layout.devices} x {whole.part.key}",
            "more --gpus, another --self-host part, or a model with fewer bits",
        )
    batch = max(1, min(most, fits if fits is not None else most))
    at = resolve(replace(ask, batch=batch, context=prompt + output // 2))
    told = of_setting(at)
    prefill, step = told.ttft_ns["expected"], told.tpot_ns["expected"]
    alone = expected_prefill(at.shape, at.precision, at.part, at.layout, prompt, cached)
    if prefill is None or step is None or alone.compute_ns is None:
        raise AnalyzerError(
            f"no compute rate of {at.part.key} is known", "name a part whose rate is catalogued"
        )
    return Served(
        at, batch, fits, prefill, alone.compute_ns, step * at.tokens, max(1, prompt - cached)
    )

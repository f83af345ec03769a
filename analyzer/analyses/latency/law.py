"""Fits the linear law of each group, or says why it does not hold there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from analyzer.analyses.latency._lines import fitted, quantile

FEWEST = 12
"""Answers below which a plane through them fits anything."""
SPREAD_OF_OUTPUTS = 1.5
"""Ninth over first decile of output tokens below which a step time is noise."""
GOOD = 0.5
"""Share of the scatter that the law has to explain."""
_EARNS = 0.95
"""A further column has to narrow the scatter to this."""
_Z, _CUT, _BLOCKS, _TURNS = 1.645, 3.5, 6, 10


@dataclass(frozen=True)
class _Answer:
    e2e: float
    output: float
    fresh: float | None
    context: float | None


@dataclass(frozen=True)
class _Law:
    base: float
    step: float
    prompt: float
    context: float
    off: float
    weights: tuple[float, ...]


def rows(told: list[dict[str, Any]]) -> Iterator[tuple[Any, ...]]:
    """One row a group; ``told`` is in order of the group."""
    for (model, route), members in groupby(told, lambda one: (one["model"], one["route"])):
        group = list(members)
        head = (model, route, group[0]["requests"], len(group))
        law = _told([_answer(one) for one in group])
        yield (*head, law, *([None] * 13)) if isinstance(law, str) else (*head, None, *law)


def _answer(one: dict[str, Any]) -> _Answer:
    output, prompt = float(one["output_tokens"]), one["input_tokens"]
    fresh = one["fresh_tokens"]
    return _Answer(
        float(one["e2e_ns"]),
        output,
        None if fresh is None else float(fresh),
        None if prompt is None else prompt + output / 2,
    )


def _told(answers: Sequence[_Answer]) -> str | tuple[float | None, ...]:
    if len(answers) < FEWEST:
        return f"fewer than {FEWEST} answers tell their end and their output tokens"
    outputs = [one.output for one in answers]
    if quantile(outputs, 0.9) < SPREAD_OF_OUTPUTS * quantile(outputs, 0.1):
        return "answers are all about as long: a step time cannot be told from the rest"
    law = _best(answers)
    if law is None or law.step <= 0:
        return "longer answers do not take longer"
    times = [one.e2e for one in answers]
    middle = quantile(times, 0.5)
    scatter = quantile([abs(value - middle) for value in times], 0.5)
    explained = 1 - law.off / scatter if scatter else 0.0
    if explained < GOOD:
        return "end-to-end time follows something else than output tokens"
    fresh = quantile([one.fresh or 0.0 for one in answers], 0.5)
    context = quantile([one.context or 0.0 for one in answers], 0.5)
    base, step = law.base + law.prompt * fresh, law.step + law.context * context
    base_off, step_off = _errors(answers, law, fresh, context)
    return (
        base, max(0.0, base - base_off), base + base_off, step, max(0.0, step - step_off),
        step + step_off, law.prompt or None, law.context or None, fresh, context,
        quantile(outputs, 0.5), law.off, explained,
    )  # fmt: skip


def _best(answers: Sequence[_Answer]) -> _Law | None:
    """Base and step; prompt and context where they are told for all and narrow the scatter."""
    best = _robust(answers, prompt=False, context=False)
    known = all(one.fresh is not None and one.context is not None for one in answers)
    for prompt, context in ((True, False), (False, True), (True, True)) if known else ():
        law = _robust(answers, prompt=prompt, context=context)
        if law and best and law.off < _EARNS * best.off:
            best = law
    return best


def _row(one: _Answer, *, prompt: bool, context: bool) -> list[float]:
    return (
        [1.0, one.output]
        + ([one.fresh or 0.0] if prompt else [])
        + ([one.output * (one.context or 0.0)] if context else [])
    )


def _robust(answers: Sequence[_Answer], *, prompt: bool, context: bool) -> _Law | None:
    """Least squares with outliers cut softly, from the median's side inwards."""
    columns = [_row(one, prompt=prompt, context=context) for one in answers]
    values = [one.e2e for one in answers]
    weights = [1.0] * len(answers)
    found: list[float] | None = None
    off = 0.0
    for _ in range(_TURNS):
        found = fitted(columns, values, weights)
        if found is None:
            return None
        told = found
        gaps = [
            value - sum(a * b for a, b in zip(told, row, strict=True))
            for value, row in zip(values, columns, strict=True)
        ]
        off = quantile([abs(gap) for gap in gaps], 0.5)
        cut = _CUT * max(1.4826 * off, 1e-3 * quantile(values, 0.5))
        weights = [max(0.0, 1 - (gap / cut) ** 2) ** 2 for gap in gaps]
    if found is None:
        return None
    return _Law(
        found[0], found[1], found[2] if prompt else 0.0, found[-1] if context else 0.0, off,
        tuple(weights),
    )  # fmt: skip


def _errors(
    answers: Sequence[_Answer], law: _Law, fresh: float, context: float
) -> tuple[float, float]:
    """Half-widths of base and step, from leaving out every sixth answer in turn."""
    prompt, grows = law.prompt > 0, law.context > 0
    bases, steps = [], []
    for block in range(_BLOCKS):
        rest = [nth for nth in range(len(answers)) if nth % _BLOCKS != block]
        found = fitted(
            [_row(answers[nth], prompt=prompt, context=grows) for nth in rest],
            [answers[nth].e2e for nth in rest],
            [law.weights[nth] for nth in rest],
        )
        if found is not None:
            bases.append(found[0] + (found[2] * fresh if prompt else 0.0))
            steps.append(found[1] + (found[-1] * context if grows else 0.0))
    scale = (_BLOCKS - 1) / _BLOCKS

    def half(values: list[float]) -> float:
        middle = sum(values) / len(values)
        return _Z * float((scale * sum((value - middle) ** 2 for value in values)) ** 0.5)

    return half(bases), half(steps)

"""Which groups of requests drove each factor of a bridge."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

from analyzer.bridging.exact import CALLS, KINDS, MIX, OF, PRICE, TIER, Bridge, Model, Pair, Sums

_Groups = Mapping[str, tuple[Sums, Sums]]


def split(out: Bridge, groups: _Groups) -> dict[tuple[str, str], Fraction]:
    """(factor, group) -> its part; the parts of all groups add up to the factor.

    ``groups`` share all use between them. A figure moves because a group's own figure did, or
    because groups off the mean weigh more than they did: both count for that group.
    """
    told: dict[tuple[str, str], Fraction] = defaultdict(Fraction)
    slope = sum((v for (name, _), v in out.slopes.items() if name == CALLS), Fraction())
    for name, (old, new) in groups.items():
        told[CALLS, name] += slope * (new.operations - old.operations)
    models = sorted({model for _, model in out.slopes})
    for model in models:
        for figure, factor in OF.items():
            _split_figure(out, groups, model, figure, told, factor)
        for kind in KINDS:
            _split_price(out, groups, model, kind, told)
    _split_mix(out, groups, models, told)
    return told


_NONE = Model()


def _sides(groups: _Groups, model: str) -> list[tuple[str, Model, Model]]:
    return [
        (name, old.by_model.get(model, _NONE), new.by_model.get(model, _NONE))
        for name, (old, new) in groups.items()
    ]


def _moves(
    parts: Iterable[tuple[str, Pair, Pair]], whole: tuple[Pair, Pair]
) -> Iterable[tuple[str, Fraction]]:
    """What each group moves of a ratio: over and under of each, and of all, before and after."""
    (over0, under0), (over1, under1) = whole
    if not under0 or not under1:
        return
    mean = (over0 / under0 + over1 / under1) / 2
    for name, (a0, b0), (a1, b1) in parts:
        yield name, a1 / under1 - a0 / under0 - mean * (b1 / under1 - b0 / under0)


def _split_figure(
    out: Bridge, groups: _Groups, model: str, figure: str,
    told: dict[tuple[str, str], Fraction], factor: str,
) -> None:  # fmt: skip
    whole = [one.by_model.get(model, _NONE).parts(figure) for one in (out.before, out.after)]
    parts = [
        (name, old.parts(figure), new.parts(figure)) for name, old, new in _sides(groups, model)
    ]
    for name, move in _moves(parts, (whole[0], whole[1])):
        told[factor, name] += out.slopes[figure, model] * move


def _split_price(
    out: Bridge, groups: _Groups, model: str, kind: str, told: dict[tuple[str, str], Fraction]
) -> None:
    worth = out.worth.get((model, kind))
    all0, all1 = (
        Fraction(one.by_model.get(model, _NONE).tokens[kind]) for one in (out.before, out.after)
    )
    if worth is None or not all0 or not all1:
        return
    sides = _sides(groups, model)
    for lane in sorted({n for m, k, n in out.prices if (m, k) == (model, kind)}):
        old_price, new_price = out.prices[model, kind, lane]
        each = worth[0] * old_price + worth[1] * new_price
        of_lane = [
            (name, _of_lane(old, kind, lane), _of_lane(new, kind, lane)) for name, old, new in sides
        ]
        share = out.shares[model, kind, lane]
        for name, move in _moves(of_lane, ((share[0] * all0, all0), (share[1] * all1, all1))):
            told[TIER, name] += each * move
        rise = new_price - old_price
        for name, (old_part, _), (new_part, _) in of_lane:
            told[PRICE, name] += rise * (worth[0] * old_part / all0 + worth[1] * new_part / all1)


def _split_mix(
    out: Bridge, groups: _Groups, models: Sequence[str], told: dict[tuple[str, str], Fraction]
) -> None:
    old_all, new_all = out.before.operations, out.after.operations
    if not old_all or not new_all:
        return
    level = Fraction(0)
    for model in models:
        old, new = (one.by_model.get(model, _NONE) for one in (out.before, out.after))
        level += out.slopes[MIX, model] * (old.scaled / old_all + new.scaled / new_all) / 2
    for model in models:
        for name, old, new in _sides(groups, model):
            move = new.scaled / new_all - old.scaled / old_all
            told[MIX, name] += (out.slopes[MIX, model] - level) * move


def _of_lane(one: Model, kind: str, lane: str) -> Pair:
    return Fraction(one.lanes.get((kind, lane), 0)), Fraction(one.tokens[kind])

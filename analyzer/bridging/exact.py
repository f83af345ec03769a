"""What changed between two bills, exactly: which factor brings how much of the difference.

A bill is operations x mix of models x attempts an operation x, for each attempt, its prompt (read
from the cache, written to it, or fresh), its answer and its reasoning, each token at its price.
Each factor's part is its Shapley value: its effect, averaged over every order in which the factors
could have changed. For products that is an integral over the straight way from one window to the
other, and a polynomial; fractions keep it exact, so the parts add up to the difference with no
rest, windows swapped give the negative, and what did not change gets nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import lcm

CALLS, RETRIES, MIX = "calls", "retries", "model mix"
INPUT, READ, WRITES = "input per call", "cache-read share", "cache writes"
VISIBLE, REASONING = "visible output per call", "reasoning per call"
PRICE, TIER, TOOLS, MEDIA = "price", "price tier", "server tools", "sound and pictures"
FACTORS = (
    CALLS, RETRIES, MIX, INPUT, READ, WRITES, VISIBLE, REASONING, PRICE, TIER, TOOLS, MEDIA,
)  # fmt: skip
SELDOM = (TIER, TOOLS, MEDIA)
"""Told only where they brought or saved something."""

KINDS = ("fresh", "cached", "short", "long", "visible", "reasoning")
"""Tokens, by what they are billed as: ``short`` and ``long`` are cache writes, by lifetime."""
PROMPT = KINDS[:4]
Pair = tuple[Fraction, Fraction]
"""Before and after."""


@dataclass(frozen=True)
class Use:
    """What one group used of one model at one row of the price list.

    ``operations`` are intents, of which each attempt of several counts its part; ``prices`` are
    dollars a token; ``tools_usd`` is what searches and single requests cost, ``media_usd`` what
    sound and pictures cost beyond their tokens' price. ``lane`` is what a price depends on beside
    its date: vendor, tier, step of prompt sizes, place, speed.
    """

    model: str
    lane: str
    calls: int
    operations: Fraction
    tokens: Mapping[str, int]
    prices: Mapping[str, Fraction]
    tools_usd: Fraction = Fraction(0)
    media_usd: Fraction = Fraction(0)

    @property
    def usd(self) -> Fraction:
        """All it costs."""
        priced = sum((self.tokens[k] * self.prices[k] for k in KINDS if self.tokens[k]), Fraction())
        return priced + self.tools_usd + self.media_usd

    def negative(self) -> Use:
        """What takes it out of a sum."""
        return replace(
            self,
            calls=-self.calls,
            operations=-self.operations,
            tokens={kind: -count for kind, count in self.tokens.items()},
            tools_usd=-self.tools_usd,
            media_usd=-self.media_usd,
        )


class Sums:
    """Uses added up: by model, kind of token and lane."""

    def __init__(self, uses: Iterable[Use], scale: Fraction) -> None:
        """``scale`` turns operations of this window into those of the time that is compared."""
        self.operations = Fraction(0)
        self.by_model: dict[str, Model] = defaultdict(Model)
        for use in uses:
            self.operations += use.operations * scale
            self.by_model[use.model].add(use, scale)


@dataclass
class Model:
    """All use of one model in one window; ``scaled`` operations are those that are compared."""

    calls: int = 0
    operations: Fraction = Fraction(0)
    scaled: Fraction = Fraction(0)
    tokens: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    lanes: dict[tuple[str, str], int] = field(default_factory=lambda: defaultdict(int))
    spent: dict[tuple[str, str], Fraction] = field(default_factory=lambda: defaultdict(Fraction))
    tools_usd: Fraction = Fraction(0)
    media_usd: Fraction = Fraction(0)

    def add(self, use: Use, scale: Fraction) -> None:
        """One more group of it."""
        self.calls += use.calls
        self.operations += use.operations
        self.scaled += use.operations * scale
        self.tools_usd += use.tools_usd
        self.media_usd += use.media_usd
        for kind in KINDS:
            if count := use.tokens[kind]:
                self.tokens[kind] += count
                self.lanes[kind, use.lane] += count
                self.spent[kind, use.lane] += count * use.prices[kind]

    def parts(self, name: str) -> tuple[Fraction, Fraction]:
        """Numerator and denominator of one figure."""
        prompt = sum(self.tokens[kind] for kind in PROMPT)
        told: dict[str, tuple[int | Fraction, int | Fraction]] = {
            RETRIES: (self.calls, self.operations),
            INPUT: (prompt, self.calls),
            READ: (self.tokens["cached"], prompt),
            "short": (self.tokens["short"], prompt - self.tokens["cached"]),
            "long": (self.tokens["long"], prompt - self.tokens["cached"]),
            VISIBLE: (self.tokens["visible"], self.calls),
            REASONING: (self.tokens["reasoning"], self.calls),
            TOOLS: (self.tools_usd, self.calls),
            MEDIA: (self.media_usd, self.calls),
        }
        over, under = told[name]
        return Fraction(over), Fraction(under)


OF = {
    RETRIES: RETRIES, INPUT: INPUT, READ: READ, "short": WRITES, "long": WRITES, VISIBLE: VISIBLE,
    REASONING: REASONING, TOOLS: TOOLS, MEDIA: MEDIA,
}  # fmt: skip
"""Figure of a model -> the factor it is."""


def _two(before: tuple[Fraction, Fraction], after: tuple[Fraction, Fraction]) -> Pair:
    """A ratio in both windows; where one has none, nothing tells that it was another."""
    old = before[0] / before[1] if before[1] else None
    new = after[0] / after[1] if after[1] else None
    if old is None:
        old = new
    if new is None:
        new = old
    return (old or Fraction(0), new or Fraction(0))


@dataclass
class Bridge:
    """The exact parts. ``by_model`` adds up to ``factors``, and by model to what each cost more."""

    before: Sums
    after: Sums
    usd: Pair
    factors: dict[str, Fraction] = field(default_factory=lambda: dict.fromkeys(FACTORS, Fraction()))
    by_model: dict[tuple[str, str], Fraction] = field(default_factory=lambda: defaultdict(Fraction))
    slopes: dict[tuple[str, str], Fraction] = field(default_factory=lambda: defaultdict(Fraction))
    """(figure, model) -> dollars one unit more of it is worth, averaged over the way."""
    prices: dict[tuple[str, str, str], Pair] = field(default_factory=dict)
    """(model, kind, lane) -> dollars a token."""
    shares: dict[tuple[str, str, str], Pair] = field(default_factory=dict)
    """(model, kind, lane) -> its share of the model's tokens of that kind."""
    worth: dict[tuple[str, str], Pair] = field(default_factory=dict)
    """(model, kind) -> tokens over the way, weighted by the beginning and by the end of it."""

    @property
    def difference(self) -> Fraction:
        """What the second window cost more."""
        return self.usd[1] - self.usd[0]


def bridge(
    before: Sequence[Use], after: Sequence[Use], scale: tuple[Fraction, Fraction] | None = None
) -> Bridge:
    """The parts of the difference between two windows.

    ``scale``: what operations of each are multiplied by, where windows of unequal length are
    compared by the day. A model that one window lacks has there the figures of the other, and a
    share of nothing: that it came or went is a change of the mix.
    """
    scales = scale or (Fraction(1), Fraction(1))
    sums = Sums(before, scales[0]), Sums(after, scales[1])
    usd = (
        sum((one.usd for one in before), Fraction()) * scales[0],
        sum((one.usd for one in after), Fraction()) * scales[1],
    )
    out = Bridge(*sums, usd)
    for model in sorted({*sums[0].by_model, *sums[1].by_model}):
        _add_model(out, model, *(one.by_model.get(model, Model()) for one in sums))
    return out


def _add_model(out: Bridge, model: str, old: Model, new: Model) -> None:
    calls = (out.before.operations, out.after.operations)
    mix = _two((old.scaled, calls[0]), (new.scaled, calls[1]))
    figure = {name: _two(old.parts(name), new.parts(name)) for name in OF}
    of_price = {kind: _priced(out, model, kind, old, new) for kind in KINDS}
    base: list[tuple[str, Pair, int]] = [
        (CALLS, calls, 1), (MIX, mix, 1), (RETRIES, figure[RETRIES], 1),
    ]  # fmt: skip
    prompt = (INPUT, figure[INPUT], 1)
    unread = (READ, _rest(figure[READ]), -1)
    written = (figure["short"][0] + figure["long"][0], figure["short"][1] + figure["long"][1])
    unwritten = (WRITES, _rest(written), -1)
    terms: dict[str, list[tuple[str, Pair, int]]] = {
        "fresh": [prompt, unread, unwritten],
        "cached": [prompt, (READ, figure[READ], 1)],
        "short": [prompt, unread, ("short", figure["short"], 1)],
        "long": [prompt, unread, ("long", figure["long"], 1)],
        "visible": [(VISIBLE, figure[VISIBLE], 1)],
        "reasoning": [(REASONING, figure[REASONING], 1)],
        TOOLS: [(TOOLS, figure[TOOLS], 1)],
        MEDIA: [(MEDIA, figure[MEDIA], 1)],
    }
    for term, own in terms.items():
        parts = base + own
        way = [pair for _, pair, _ in parts]
        price = of_price.get(term)
        for place, (name, pair, sign) in enumerate(parts):
            others = way[:place] + way[place + 1 :]
            slope = _mean(others, price)
            for one in ("short", "long") if name == WRITES else (name,):
                out.slopes[one, model] += slope * sign
            _add(out, OF.get(name, name), model, slope * (pair[1] - pair[0]))
        if price is not None:
            worth = (_mean([*way, (Fraction(1), Fraction(0))]), _mean([*way, _UP]))
            out.worth[model, term] = worth
            _add(out, TIER, model, _sum(worth, (price[2] - price[0], price[3] - price[1])))
            _add(out, PRICE, model, _sum(worth, (price[1] - price[0], price[3] - price[2])))


_UP: Pair = (Fraction(0), Fraction(1))
_Prices = tuple[Fraction, Fraction, Fraction, Fraction]


def _add(out: Bridge, factor: str, model: str, usd: Fraction) -> None:
    out.factors[factor] += usd
    out.by_model[factor, model] += usd


def _sum(weights: Pair, values: Pair) -> Fraction:
    return weights[0] * values[0] + weights[1] * values[1]


def _rest(pair: Pair) -> Pair:
    return (1 - pair[0], 1 - pair[1])


def _priced(out: Bridge, model: str, kind: str, old: Model, new: Model) -> _Prices:
    """Mean price of a kind: shares of the lanes and list of before and after, in all four ways.

    Old shares at the old list, old shares at the new list, new at old, new at new. A lane that one
    window lacks has there the price of the other.
    """
    four = [Fraction()] * 4
    lanes = sorted({lane for one in (old, new) for k, lane in one.lanes if k == kind})
    for lane in lanes:
        share = _two(
            (Fraction(old.lanes.get((kind, lane), 0)), Fraction(old.tokens[kind])),
            (Fraction(new.lanes.get((kind, lane), 0)), Fraction(new.tokens[kind])),
        )
        price = _two(
            *(
                (one.spent.get((kind, lane), Fraction()), Fraction(one.lanes.get((kind, lane), 0)))
                for one in (old, new)
            )
        )
        out.shares[model, kind, lane], out.prices[model, kind, lane] = share, price
        for at, (i, j) in enumerate(((0, 0), (0, 1), (1, 0), (1, 1))):
            four[at] += share[i] * price[j]
    return (four[0], four[1], four[2], four[3])


def _mean(pairs: Sequence[Pair], price: _Prices | None = None) -> Fraction:
    """Mean of a product over the straight way: each factor goes evenly from before to after.

    Whole numbers all through, so that no fraction is shortened before the last.
    """
    poly, under = [1], 1
    for old, new in pairs:
        if not old and not new:
            return Fraction(0)
        common = lcm(old.denominator, new.denominator)
        a = old.numerator * (common // old.denominator)
        b = new.numerator * (common // new.denominator) - a
        under *= common
        poly = _times(poly, (a, b))
    if price is not None:
        common = lcm(*(one.denominator for one in price))
        p00, p01, p10, p11 = (one.numerator * (common // one.denominator) for one in price)
        under *= common
        poly = _times(poly, (p00, p01 + p10 - 2 * p00, p00 - p01 - p10 + p11))
    whole = lcm(*range(1, len(poly) + 1))
    return Fraction(
        sum(one * (whole // (power + 1)) for power, one in enumerate(poly)), under * whole
    )


def _times(poly: Sequence[int], by: Sequence[int]) -> list[int]:
    out = [0] * (len(poly) + len(by) - 1)
    for i, one in enumerate(poly):
        for j, other in enumerate(by):
            out[i + j] += one * other
    return out

"""What tokens cost: the user's own prices, then dated overrides, then genai-prices.

A lane is what requests have in common that decides their price: model, provider, tier, speed,
place. It has a quote for each stretch of time, of the day and of prompt sizes in which its prices
stay the same, so that a million requests need no more lookups than there are lanes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, time, timedelta
from decimal import ROUND_HALF_EVEN, Decimal
from itertools import pairwise, product

from analyzer.catalogs import _listed, _names, _price_facts
from analyzer.catalogs._listed import KINDS, PARENTS, Listed, Prices
from analyzer.catalogs._price_facts import Fact
from analyzer.catalogs._price_file import FilePrice, FilePrices, concerning, copied

DAY_NS = 86_400_000_000_000
NANO = Decimal("0.000000001")
"""Prices are kept to a billionth of a dollar a million tokens."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)
_COMPARED = ("input", "cache_read", "cache_write_short", "cache_write_long", "output")
_NOT_TIERS = ("web_search", "request")
"""Counted by the thousand; a tier or a place does not change them."""

FILE, OVERRIDE, LISTED, SECOND = "price file", "override", "genai-prices", "litellm"
"""Where a price is from."""


@dataclass(frozen=True)
class Lane:
    """What decides the price of a request, in the log's words; empty = not told."""

    model: str
    provider: str = ""
    service_tier: str = ""
    speed: str = ""
    geo: str = ""
    is_own: bool = False
    """Served by an engine of one's own: only the user can say what it costs."""


@dataclass(frozen=True)
class Quote:
    """Prices of a lane in US dollars per million tokens (searches, requests: per thousand)."""

    from_ns: int | None
    until_ns: int | None
    from_of_day_ns: int
    until_of_day_ns: int
    above: int | None
    upto: int | None
    prices: Prices = field(default_factory=dict)
    source: str | None = None
    version: str | None = None
    note: str | None = None
    other: Prices = field(default_factory=dict)
    """What the second catalog says where it says something else."""
    other_source: str | None = None

    @property
    def date(self) -> str | None:
        """Day from which the prices hold, None = always."""
        return None if self.from_ns is None else _moment(self.from_ns).date().isoformat()


@dataclass
class _Book:
    """Catalog prices at one moment, and how they came about."""

    prices: Prices
    usual: Prices
    """Without tier and speed."""
    own: frozenset[str]
    """Kinds the catalog lists; the others cost what their parent does."""
    source: str
    notes: list[str]


class PriceBook:
    """Prices by lane; ``rows`` are those of the case's price files."""

    def __init__(self, rows: Sequence[FilePrice] = ()) -> None:
        self._rows = tuple(rows)
        self._copy = copied(rows)

    def quotes(self, lane: Lane) -> list[Quote]:
        """Its prices over all times and prompt sizes, without gap or overlap."""
        return _merged(list(_Priced(lane, self._rows, self._copy).quotes()))

    def at(self, lane: Lane, at_ns: int, tokens: int) -> Quote:
        """The quote for one request."""
        of_day = at_ns % DAY_NS
        return next(
            one
            for one in self.quotes(lane)
            if (one.from_ns is None or at_ns >= one.from_ns)
            and (one.until_ns is None or at_ns < one.until_ns)
            and one.from_of_day_ns <= of_day < one.until_of_day_ns
            and (one.above is None or tokens > one.above)
            and (one.upto is None or tokens <= one.upto)
        )


class _Priced:
    def __init__(
        self,
        lane: Lane,
        rows: Sequence[FilePrice],
        copy: dict[tuple[str, str], _price_facts.Steps],
    ) -> None:
        self.tier = _names.tier_of(lane.service_tier)
        self.speed = _names.speed_of(lane.speed)
        self.model, self.provider = _names.model_of(lane.model, lane.provider)
        self.geo = _names.geo_of(lane.geo)
        self.file: FilePrices = concerning(rows, lane.model, self.model, self.provider)
        own = lane.is_own or _names.is_own(lane.provider)
        vendor = None if own else self.provider
        self.notes: list[str] = []
        if vendor and not _listed.is_known(vendor) and _names.vendor_of(self.model):
            self.notes.append(f"{vendor} is not in the catalogs: list price of the model's vendor")
            vendor = _names.vendor_of(self.model)
        self.listed: Listed | None = _listed.find(self.model, vendor) if vendor else None
        if self.listed is None and vendor and "/" in self.model:
            self.model = self.model.rpartition("/")[2]
            self.listed = _listed.find(self.model, vendor)
        self.facts: list[Fact] = [
            fact
            for fact in _price_facts.facts()
            if vendor and fact.concerns(self.model, vendor, self.tier, self.speed, self.geo)
        ]
        self.second = _price_facts.second(self.model, vendor, copy) if vendor else None
        self.second_name = SECOND if copy else _price_facts.SECOND
        if self.file.foreign:
            told = ", ".join(self.file.foreign)
            self.notes.append(f"prices of {told} are not used: give US dollars")
        self.why_not = "a model server of one's own: give its price in a price file"
        if not own:
            self.why_not = f"no price is known of {self.model or 'a model that is not named'}"
            self.why_not += f" at {vendor}" if vendor else "; the log names no provider"

    def quotes(self) -> Iterator[Quote]:
        moments = {_ns(day) for day in (self.listed.days() if self.listed else ())}
        moments |= {_ns(m) for f in self.facts for m in (f.begins, f.ends) if m is not None}
        moments |= set(self.file.moments())
        hours = {_of_day(edge) for edge in (self.listed.hours() if self.listed else ())}
        steps = set(self.listed.steps() if self.listed else ()) | set(self.file.steps())
        steps |= {fact.above for fact in self.facts if fact.above is not None}
        if self.listed is None and self.second:
            steps |= {above for above in self.second if above >= 0}
        times = pairwise([None, *sorted(moments), None])
        days = pairwise(sorted({0, DAY_NS} | hours))
        sizes = pairwise([None, *sorted(steps), None])
        for (begin, end), (dawn, dusk), (above, upto) in product(
            list(times), list(days), list(sizes)
        ):
            quote = Quote(begin, end, dawn, dusk, above, upto)
            yield self._priced(quote, begin, dawn, 0 if above is None else above + 1)

    def _priced(self, quote: Quote, begin: int | None, of_day: int, tokens: int) -> Quote:
        start = _moment(begin) if begin is not None else _LONG_AGO
        midnight = start.replace(hour=0, minute=0, second=0, microsecond=0)
        at = max(start, midnight + timedelta(microseconds=of_day // 1000))
        if at >= midnight + timedelta(microseconds=quote.until_of_day_ns // 1000):
            at = midnight + timedelta(days=1, microseconds=of_day // 1000)  # the next such hour
        book = self._book(at, tokens)
        priced = self._with_file(quote, book, begin, tokens)
        if book and priced.source in (LISTED, OVERRIDE) and quote.until_ns is None:
            return self._held_against(priced, book, tokens)
        return priced

    def _book(self, at: datetime, tokens: int) -> _Book | None:
        now = [fact for fact in self.facts if fact.holds(at, tokens)]
        told = [fact for fact in now if fact.set]
        if self.listed is None and not told:
            if not self.second:
                return None
            usual, source = dict(_price_facts.at_step(self.second, tokens)), SECOND
        else:
            usual = self.listed.standard(at, tokens) if self.listed else {}
            source = LISTED
        notes = []
        for fact in told:
            usual = usual | fact.set
            notes.append(fact.why)
        own = frozenset(usual)
        for kind, parent in PARENTS.items():
            if kind not in usual and parent in usual:
                usual[kind] = usual[parent]
        prices = self._with_tier(dict(usual), now, notes, at, tokens)
        changed = bool(notes)
        for fact in now:
            if fact.tier is None and fact.speed is None:
                notes += _applied(fact, prices)
                _applied(fact, usual)
                changed |= fact.multiply is not None
        if changed and source == LISTED:
            source = OVERRIDE
        return _Book(prices, usual, own, source, notes)

    def _with_tier(
        self, prices: Prices, now: list[Fact], notes: list[str], at: datetime, tokens: int
    ) -> Prices:
        for name, value in (("tier", self.tier), ("speed", self.speed)):
            if not value:
                continue
            shares = self._shares(name, value, at, tokens)
            if shares is not None:
                prices = {k: p * shares.get(_nearest(k, shares), 1) for k, p in prices.items()}
                continue
            fact = next((one for one in now if getattr(one, name) == value), None)
            if fact is None:
                what = (
                    "capacity paid by the hour" if value == _names.RESERVED else f"{name} {value}"
                )
                notes.append(f"no price is known of {what}")
                return {}
            notes.append(fact.why)
            prices = {
                kind: price if kind in _NOT_TIERS else price * fact.factor(kind)
                for kind, price in prices.items()
            }
        return prices

    def _shares(self, name: str, value: str, at: datetime, tokens: int) -> Prices | None:
        if self.listed is None:
            return None
        when = {"service_tier" if name == "tier" else name: value}
        if value == "batch":
            when = {"processing": "batch"}
        return self.listed.factors(when, at, tokens, _price_facts.checked_days())

    def _with_file(self, quote: Quote, book: _Book | None, begin: int | None, tokens: int) -> Quote:
        at_ns = -1 if begin is None else begin
        tier = self.tier or self.speed or None
        cheaper = self.file.factor(None, at_ns, tokens)
        prices: Prices = {}
        paths: dict[str, None] = {}
        notes = [*self.notes, *(book.notes if book else ())]
        for kind in KINDS:
            row, price = self._from_file(kind, tier, at_ns, tokens, book)
            if price is None and row is None and book and kind in book.prices:
                price, row = book.prices[kind], cheaper
                price *= _share(cheaper)
            if row is not None:
                paths[row.path] = None
            if price is not None:
                prices[kind] = price.quantize(NANO, ROUND_HALF_EVEN)
        _fill(prices)
        if paths and prices:
            source, version = FILE, ", ".join(paths)
            if cheaper is not None:
                notes.append(f"{cheaper.factor} of the list price where the file has none")
        elif prices and book:
            source, version = book.source, _version(book.source, self.second_name)
        else:
            if paths and tier:
                notes.append(f"the price file tells no price of {tier}")
            return replace(quote, note="; ".join(notes) or self.why_not)
        return replace(
            quote, prices=prices, source=source, version=version, note="; ".join(notes) or None
        )

    def _from_file(
        self, kind: str, tier: str | None, at_ns: int, tokens: int, book: _Book | None
    ) -> tuple[FilePrice | None, Decimal | None]:
        """The row that decides, and the price; a row without a price: it cannot be said."""
        usual = self.file.price(kind, None, at_ns, tokens)
        if tier is None or kind in _NOT_TIERS:
            return usual, usual.usd if usual else None
        told = self.file.price(kind, tier, at_ns, tokens)
        if told is not None:
            return told, told.usd
        factor = self.file.factor(tier, at_ns, tokens)
        if factor is not None and factor.factor is not None:
            base = usual.usd if usual else (book.usual.get(kind) if book else None)
            if base is not None and usual is None:
                base *= _share(self.file.factor(None, at_ns, tokens))
            return (factor, base * factor.factor) if base is not None else (None, None)
        if usual is None or usual.usd is None:
            return None, None
        listed = book.usual.get(kind) if book else None
        if book is None or not listed or kind not in book.prices:
            return usual, None
        return usual, usual.usd * book.prices[kind] / listed

    def _held_against(self, quote: Quote, book: _Book, tokens: int) -> Quote:
        """What the second catalog says of today's prices, where it says something else."""
        if not self.second or self.tier or self.speed or self.geo:
            return quote
        theirs = _price_facts.at_step(self.second, tokens)
        differ = {
            kind: theirs[kind].quantize(NANO)
            for kind in _COMPARED
            if kind in theirs and kind in book.own and theirs[kind] != quote.prices[kind]
        }
        if not differ:
            return quote
        return replace(quote, other=differ, other_source=self.second_name)


def _version(source: str, second: str) -> str:
    if source == SECOND:
        return second
    listed = f"genai-prices {_listed.catalog_version()}"
    if source == OVERRIDE:
        return f"overrides {_price_facts.overrides_version()} on {listed}"
    return listed


def _applied(fact: Fact, prices: Prices) -> list[str]:
    """A fact on prices; what it changed, in words."""
    before = dict(prices)
    for kind, share in fact.of_input.items():
        if "input" in prices:
            prices[kind] = prices["input"] * share
    for kind in prices:
        if kind not in _NOT_TIERS:
            prices[kind] *= fact.factor(_nearest(kind, fact.multiply))
    return [fact.why] if prices != before else []


def _share(row: FilePrice | None) -> Decimal:
    """What a row leaves of the list price; nothing, where all of it is taken off."""
    return Decimal(1) if row is None or row.factor is None else row.factor


def _nearest(kind: str, told: object) -> str:
    """The kind itself, else the nearest one above it that is told."""
    while isinstance(told, dict) and kind not in told and kind in PARENTS:
        kind = PARENTS[kind]
    return kind


def _fill(prices: Prices) -> None:
    """Reasoning, audio and images cost what their text does, where nothing else is said."""
    for kind in ("reasoning", "input_audio", "read_audio", "output_audio", "input_image",
                 "read_image", "output_image"):  # fmt: skip
        if kind not in prices and PARENTS[kind] in prices:
            prices[kind] = prices[PARENTS[kind]]


def _merged(quotes: list[Quote]) -> list[Quote]:
    """Neighbours with the same prices become one: in size, in the day, in time."""
    for begins, ends in _SIDES:
        quotes = _joined(quotes, begins, ends)
    return quotes


_SIDES = (("above", "upto"), ("from_of_day_ns", "until_of_day_ns"), ("from_ns", "until_ns"))


def _joined(quotes: list[Quote], begins: str, ends: str) -> list[Quote]:
    others = [name for side in _SIDES if side != (begins, ends) for name in side]
    beside: dict[tuple[int | None, ...], list[Quote]] = {}
    for quote in quotes:  # in the order of their begin
        row = beside.setdefault(tuple(getattr(quote, name) for name in others), [])
        last = row[-1] if row else None
        if last is not None and getattr(last, ends) == getattr(quote, begins):
            longer = {ends: getattr(quote, ends)}
            if replace(last, **longer) == replace(quote, **{begins: getattr(last, begins)}):
                row[-1] = replace(last, **longer)
                continue
        row.append(quote)
    return [quote for row in beside.values() for quote in row]


def _moment(ns: int) -> datetime:
    return _EPOCH + timedelta(microseconds=ns // 1000)


def _ns(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(microseconds=1) * 1000


def _of_day(edge: time) -> int:
    return ((edge.hour * 60 + edge.minute) * 60 + edge.second) * 1_000_000_000

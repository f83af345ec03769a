"""Lines of bills and of logs, laid onto the periods, models and kinds of token both can tell."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from statistics import median

from analyzer.analyses.cost._bill_models import Key, bill_of, key_of, vendor
from analyzer.analyses.cost._bill_sources import HOUR, Line, by_path, once, period, span, taken

DAY = 24 * HOUR
ALL = "all"
NOBODY: Key = ((), ())
"""Key of what names no model."""
_WRITES = ("cache_write_short", "cache_write_long", "cache_write_unknown")
_INPUTS = ("input_fresh", "cache_read", *_WRITES)
_FEE = re.compile(
    r"search|code.?exec|container|storage|grounding|session|hosting|training|tool|image|audio|"
    r"video|speech|embedd|provisioned|guardrail",
    re.IGNORECASE,
)
_OF_MODELS = re.compile(
    r"gemini|claude|gpt|bedrock|token|openai|vertex|llama|mistral|nova", re.IGNORECASE
)
_CLOUDS = frozenset({"aws", "azure", "google"})
_OTHER = "other service"
_CREDITS = re.compile(r"credit|discount|refund|promotion|adjust|rebate", re.IGNORECASE)
_TAXES = re.compile(r"\btax|\bvat\b|^tax$", re.IGNORECASE)


@dataclass
class Cell:
    """One kind of token of one model in one period, on both sides."""

    billed_tokens: Decimal | None = None
    billed_usd: Decimal | None = None
    list_usd: Decimal | None = None
    logged_tokens: int = 0
    logged_usd: Decimal | None = None
    unpriced: int = 0
    tiers: set[str] = field(default_factory=set)
    logged_tiers: set[str] = field(default_factory=set)
    is_long: bool = False
    other_currency: str | None = None

    def bill(self, line: Line, *, tokens: bool, money: bool) -> None:
        """Count a line of the bill in."""
        if tokens and line["quantity"] is not None and line["unit"] == "tokens":
            self.billed_tokens = (self.billed_tokens or Decimal(0)) + line["quantity"]
        if money and line["amount"] is not None:
            if line["currency"] not in (None, "USD"):
                self.other_currency = line["currency"]
            else:
                self.billed_usd = (self.billed_usd or Decimal(0)) + line["amount"]
        if money and line["list_amount"] is not None and line["currency"] in (None, "USD"):
            self.list_usd = (self.list_usd or Decimal(0)) + line["list_amount"]
        if line["service_tier"]:
            self.tiers.add(line["service_tier"])
        self.is_long |= bool(line["is_long"])

    def log(self, line: Line) -> None:
        """Count tokens of the logs in."""
        self.logged_tokens += int(line["quantity"])
        if line["usd"] is not None:
            self.logged_usd = (self.logged_usd or Decimal(0)) + line["usd"]
        self.unpriced += line["logged"] or 0
        if line["service_tier"]:
            self.logged_tiers.add(line["service_tier"])


@dataclass
class Grid:
    """Periods of a bill."""

    periods: list[tuple[int, int]]

    def __post_init__(self) -> None:
        self.starts = [start for start, _ in self.periods]
        self.length = int(median(end - start for start, end in self.periods))

    def at(self, ns: int) -> int | None:
        """Which period holds a moment."""
        index = bisect_right(self.starts, ns) - 1
        return index if index >= 0 and ns < self.periods[index][1] else None


@dataclass
class Bill:
    """One vendor's lines, with what of the logs belongs to them."""

    who: str
    token_lines: list[Line]
    money_lines: list[Line]
    beside: list[tuple[str, Line]]
    """Fees, credits and taxes: (which of these, the line)."""
    requests: list[Line] = field(default_factory=list)
    """Lines that count calls."""
    unused: list[Line] = field(default_factory=list)
    """Lines that count nowhere, for another file tells the same."""
    logs: list[Line] = field(default_factory=list)
    names: dict[Key, set[str]] = field(default_factory=lambda: defaultdict(set))
    """Names that the logs have for a model."""
    own_names: dict[Key, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        lines = [*self.token_lines, *self.money_lines]
        self.grid = Grid(_periods(self.token_lines, self.money_lines, self.beside))
        for line in lines:
            if line["model"]:
                self.own_names.setdefault(key_of(line["model"]), line["model"])
        self.by_model = all(line["model"] for line in self.token_lines or self.money_lines)
        self.money_by_kind = all(line["token_kind"] for line in self.money_lines)
        self.money_by_model = all(line["model"] for line in self.money_lines)
        self.token_times = self._times(self.token_lines)
        self.money_times = self._times(self.money_lines)

    def _times(self, lines: list[Line]) -> set[int]:
        """Periods that an export reaches: what it does not tell there was not."""
        spans = [span(some) for some in by_path(lines).values()]
        return {
            at
            for at, (start, end) in enumerate(self.grid.periods)
            if any(start < last and first < end for first, last in spans)
        }

    @property
    def keys(self) -> set[Key]:
        """Models it names."""
        return set(self.own_names)

    def kind(self, told: str) -> str:
        """A kind of token, as finely as the bill and the logs both tell it."""
        have = self._kinds
        if told in _INPUTS and "input" in have:
            return "input"
        if told in _WRITES:
            return "cache_write" if self._unsplit else told
        if told == "output_reasoning":
            return told if self._reasons else "output"
        return "output" if told == "output_visible" else told

    def settle(self) -> None:
        """Look at which kinds both sides have; after the logs are known."""
        sides = [self.token_lines, self.money_lines if self.money_by_kind else []]
        told = [{line["token_kind"] for line in side} for side in sides if side]
        logged = {line["token_kind"] for line in self.logs if line["quantity"]}
        self._kinds = set().union(*told)
        self._unsplit = "cache_write_unknown" in self._kinds | logged
        self._reasons = all("output_reasoning" in kinds for kinds in (*told, logged))

    def key(self, model: str | None) -> Key:
        """A model's key; one for all where the bill names none."""
        return key_of(model) if model and self.by_model else NOBODY

    def name(self, key: Key) -> str | None:
        """The model as the logs call it, else as the bill does."""
        logged = self.names.get(key, set())
        return min(logged) if logged else self.own_names.get(key)

    def alias(self, key: Key) -> str | None:
        """How the bill calls it, where the logs call it otherwise."""
        own = self.own_names.get(key)
        return own if own and self.names.get(key) and own not in self.names[key] else None

    def cells(self, shift_ns: int = 0) -> dict[tuple[int, Key, str], Cell]:
        """Both sides by period, model and kind; the logs' times ``shift_ns`` later."""
        found: dict[tuple[int, Key, str], Cell] = defaultdict(Cell)
        for line in self.token_lines:
            at = self.grid.at(line["start_ns"])
            if at is not None:
                where = (at, self.key(line["model"]), self.kind(line["token_kind"]))
                found[where].bill(line, tokens=True, money=False)
        for line in self.money_lines:
            at = self.grid.at(line["start_ns"])
            if at is not None:
                key = self.key(line["model"]) if self.money_by_model else NOBODY
                kind = self.kind(line["token_kind"]) if self.money_by_kind else ALL
                found[(at, key, kind)].bill(line, tokens=False, money=True)
        for line in self.logs:
            at = self.grid.at(line["start_ns"] + shift_ns)
            if at is None:
                continue
            for key, kind in self._places(line, at):
                found[(at, key, kind)].log(line)
        return dict(found)

    def _places(self, line: Line, at: int) -> set[tuple[Key, str]]:
        """Where tokens of the logs are held against tokens, and where against money."""
        key, kind = self.key(line["model"]), self.kind(line["token_kind"])
        places = {(key, kind)} if at in self.token_times else set()
        if at in self.money_times:
            places.add(
                (key if self.money_by_model else NOBODY, kind if self.money_by_kind else ALL)
            )
        return places


def bills_of(told: Iterable[Line]) -> list[Bill]:
    """The vendors' bills, each with the logs that belong to it.

    Cursor's events are log and bill in one: nothing can differ.
    """
    lines: dict[str, list[Line]] = defaultdict(list)
    logs: list[Line] = []
    for line in told:
        if line["told"] == "bill" and not (line["reader"] or "").startswith("cursor"):
            lines[vendor(line["provider"] or line["reader"].split("_")[0])].append(line)
        elif line["told"] == "log":
            logs.append(line)
    bills = {who: bill for who in sorted(lines) if (bill := _bill(who, lines[who])) is not None}
    named: Mapping[str, set[Key]] = {who: bill.keys for who, bill in bills.items()}
    for line in logs:
        home = bill_of(line["provider"], line["model"], named)
        if home is not None:
            bills[home].logs.append(line)
            if line["model"]:
                bills[home].names[bills[home].key(line["model"])].add(line["model"])
    for bill in bills.values():
        bill.settle()
    return list(bills.values())


def _bill(who: str, told: list[Line]) -> Bill | None:
    """Parts tokens, money and what is billed beside them; nothing is told twice."""
    lines = once(told)
    beside: list[tuple[str, Line]] = []
    usage: list[Line] = []
    calls: list[Line] = []
    for line in lines:
        which = _beside(who, line)
        if which is None:
            (calls if line["unit"] == "requests" else usage).append(line)
        elif which != _OTHER:
            beside.append((which, line))
    counted = [one for one in usage if one["unit"] == "tokens" and one["token_kind"]]
    priced = [one for one in usage if one["amount"] is not None]
    tokens, money = taken(counted), taken(priced)
    if not tokens and not money:
        return None
    used = {id(line) for line in (*tokens, *money)}
    left = {id(line): line for line in (*counted, *priced) if id(line) not in used}
    kept = {id(line) for line in lines}
    unused = [one for one in told if id(one) not in kept and _beside(who, one) != _OTHER]
    return Bill(who, tokens, money, beside, taken(calls), [*unused, *left.values()])


def _beside(who: str, line: Line) -> str | None:
    """Fee, credit, tax or another service; None for usage of models."""
    item, charge = line["item"] or "", line["charge"] or ""
    if _TAXES.search(charge) or _TAXES.search(item):
        return "tax"
    if _CREDITS.search(charge) or (_CREDITS.search(item) and not line["token_kind"]):
        return "credit"
    if line["token_kind"]:
        return None
    if line["amount"] is None:  # searches are counted in requests too
        return None if line["unit"] == "requests" and not _FEE.search(item) else _OTHER
    if who in _CLOUDS or "focus" in (line["reader"] or ""):
        return "fee" if _OF_MODELS.search(item) else _OTHER
    return "fee" if _FEE.search(item) and who != "cursor" else None


def _periods(
    tokens: list[Line], money: list[Line], beside: list[tuple[str, Line]]
) -> list[tuple[int, int]]:
    """The periods of whichever of tokens and money is told more coarsely."""
    sides = [sorted({period(line) for line in lines}) for lines in (tokens, money) if lines]
    sides.sort(key=lambda side: median(end - start for start, end in side))
    coarse = sides[-1]
    length = int(median(end - start for start, end in coarse))
    anchor = coarse[0][0] % length
    grid = Grid(coarse)
    more = {start for side in sides[:-1] for start, _ in side}
    more |= {line["start_ns"] for _, line in beside}
    added = {
        (start - anchor) // length * length + anchor for start in more if grid.at(start) is None
    }
    known = set(grid.starts)
    periods = coarse + [(start, start + length) for start in added if start not in known]
    return _apart(sorted(periods))


def _apart(periods: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Periods that do not overlap."""
    found: list[tuple[int, int]] = []
    for start, end in periods:
        if found and start < found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return found

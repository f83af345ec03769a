"""Rows of two windows in, rows of their bridge out, and the sentence that says it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from hashlib import sha256
from typing import Any

from analyzer.bridging import exact
from analyzer.bridging.exact import FACTORS, SELDOM, Bridge, Pair, Sums, Use
from analyzer.bridging.groups import split
from analyzer.bridging.money import dollars, in_money, signed, to_money

DAY_NS = 86_400_000_000_000

_TOKENS = {
    "fresh": "fresh_tokens", "cached": "read_tokens", "short": "short_tokens",
    "long": "long_tokens", "visible": "visible_tokens", "reasoning": "reasoning_tokens",
}  # fmt: skip
_PRICES = {
    "fresh": "fresh_usd", "cached": "read_usd", "short": "short_usd", "long": "long_usd",
    "visible": "visible_usd", "reasoning": "reasoning_usd",
}  # fmt: skip
_KINDS = ("model", "route", "user", "key", "team", "session")
SECRET = ("user", "key")
"""Groups that are shown as hashes."""
_HASHED = re.compile(r"[0-9a-f]{12,64}")
_HASH = 12
_WEIGHS, _MOST_KINDS, _MOST_NAMES = Fraction(1, 4), 3, 2
"""A group drove a factor from a quarter of it on; so many kinds, and names of each, are told."""


@dataclass(frozen=True)
class Window:
    """One of the two, as the rows tell it."""

    from_ns: int
    until_ns: int
    usd: Fraction
    requests: int
    unpriced_requests: int
    unpriced_tokens: int

    @property
    def days(self) -> Fraction:
        """Its length."""
        return Fraction(self.until_ns - self.from_ns, DAY_NS)


@dataclass(frozen=True)
class Told:
    """A bridge with its windows, ready to be shown. ``rows`` are the factors, largest first."""

    rows: tuple[dict[str, Any], ...]
    usd: tuple[Decimal, Decimal]
    difference: Decimal
    windows: tuple[Window, Window]
    calls: Pair
    sentence: str


def told(
    rows: Sequence[Mapping[str, Any]],
    spans: tuple[tuple[int, int], tuple[int, int]],
    per: str | None = None,
) -> Told:
    """The bridge between two windows, from rows of ``cost_window``.

    ``per``: None compares the windows as they are, ``day`` what they cost a day, ``window`` the
    second with as long a time of the first.
    """
    uses = _by_group(rows)
    windows = tuple(_window(rows, span, is_window=bool(side)) for side, span in enumerate(spans))
    scale = _scale((windows[0], windows[1]), per)
    mine = uses.get("all", {}).get("", ([], []))
    out = exact.bridge(mine[0], mine[1], scale)
    money = in_money(out.factors)
    parts = _by_kind(out, uses, scale)
    usd = (to_money(out.usd[0]), to_money(out.usd[1]))
    difference = sum(money.values(), Decimal(0))
    levels = _levels(out)
    lines: list[dict[str, Any]] = [
        {
            "factor": name,
            "cost_usd": money[name],
            "share": float(out.factors[name] / out.difference) if out.difference else None,
            "before": levels[name][0],
            "after": levels[name][1],
            "unit": levels[name][2],
            "drivers": _drivers(name, out.factors[name], parts)
            if 100 * abs(out.factors[name]) >= abs(out.difference)
            else None,
        }
        for name in FACTORS
        if money[name] or name not in SELDOM
    ]
    lines.sort(key=lambda row: (-abs(row["cost_usd"]), FACTORS.index(row["factor"])))
    calls = (out.before.operations, out.after.operations)
    return Told(
        tuple(lines), usd, difference, (windows[0], windows[1]), calls,
        sentence(lines, difference, usd[0], calls),
    )  # fmt: skip


def _scale(windows: tuple[Window, Window], per: str | None) -> Pair:
    days = [one.days for one in windows]
    if per is None or not all(days):
        return Fraction(1), Fraction(1)
    return (1 / days[0], 1 / days[1]) if per == "day" else (days[1] / days[0], Fraction(1))


def _window(rows: Sequence[Mapping[str, Any]], span: tuple[int, int], *, is_window: bool) -> Window:
    own = [row for row in rows if row["kind"] == "all" and row["is_window"] == is_window]
    return Window(
        *span,
        sum((Fraction(row["usd"]) for row in own), Fraction()),
        sum(row["requests"] for row in own),
        sum(row["unpriced_requests"] for row in own),
        sum(row["unpriced_tokens"] for row in own),
    )


_Uses = dict[str, dict[str, tuple[list[Use], list[Use]]]]


def _by_group(rows: Iterable[Mapping[str, Any]]) -> _Uses:
    """Kind of group -> group -> its uses before and after; the groups of a kind share all use."""
    out: _Uses = defaultdict(lambda: defaultdict(lambda: ([], [])))
    for row in rows:
        if not row["requests"]:
            continue
        use, kind, side = _use(row), row["kind"], row["is_window"]
        if kind == "all":
            out["all"][""][side].append(use)
            out["model"][use.model or _NOT_TOLD][side].append(use)
        else:
            out[kind][hashed(row["name"]) if kind in SECRET else row["name"]][side].append(use)
    for kind, groups in out.items():
        if kind not in ("all", "model"):
            told = [[use for one in groups.values() for use in one[side]] for side in (0, 1)]
            whole = out["all"][""]
            groups[_OTHERS] = (_less(whole[0], told[0]), _less(whole[1], told[1]))
    return out


_NOT_TOLD, _OTHERS = "(not told)", "(others)"


def _less(whole: Iterable[Use], told: Iterable[Use]) -> list[Use]:
    """All use but what is told: the other groups, and what tells none."""
    return [*whole, *(use.negative() for use in told)]


def hashed(name: str) -> str:
    """Who it is as a short hash; what is one already is cut to the same length."""
    if _HASHED.fullmatch(name):
        return name[:_HASH]
    return sha256(name.encode(errors="replace")).hexdigest()[:_HASH]


def _use(row: Mapping[str, Any]) -> Use:
    tokens = {kind: int(row[column]) for kind, column in _TOKENS.items()}
    prices = {kind: Fraction(row[column] or 0) for kind, column in _PRICES.items()}
    listed = sum((tokens[kind] * prices[kind] for kind in tokens), Fraction())
    tools = Fraction(row["tools_usd"])
    return Use(
        model=row["model"],
        lane=row["lane"],
        calls=row["requests"],
        operations=Fraction(row["requests"], row["attempts"]),
        tokens=tokens,
        prices=prices,
        tools_usd=tools,
        media_usd=Fraction(row["usd"]) - tools - listed,
    )


# --- what moved, and who drove it ----------------------------------------------------------------


_LONG = "long"
_OF_UNREAD, _OF_WRITES = "ratio of what is not read", "ratio of writes, for the longer lifetime"


def _levels(out: Bridge) -> dict[str, tuple[float | None, float | None, str]]:
    """Factor -> its figure before and after, over all models, and the unit."""
    before, after = _overall(out.before), _overall(out.after)
    units = {
        exact.CALLS: "calls", exact.RETRIES: "attempts a call", exact.INPUT: "tokens",
        exact.READ: "ratio", exact.WRITES: _OF_UNREAD, exact.VISIBLE: "tokens",
        exact.REASONING: "tokens", exact.TOOLS: "usd", exact.MEDIA: "usd",
    }  # fmt: skip
    levels: dict[str, tuple[float | None, float | None, str]] = {
        name: (before.get(name), after.get(name), unit) for name, unit in units.items()
    }
    told = [(one.get(_LONG, 0.0), one.get(exact.WRITES, 0.0)) for one in (before, after)]
    if abs(told[1][0] - told[0][0]) > abs(told[1][1] - told[0][1]):
        levels[exact.WRITES] = (before.get(_LONG), after.get(_LONG), _OF_WRITES)
    levels[exact.MIX] = levels[exact.TIER] = (None, None, "")
    levels[exact.PRICE] = (*_list_price(out), "usd a million tokens")
    return levels


def _overall(sums: Sums) -> dict[str, float]:
    all_ = exact.Model()
    for one in sums.by_model.values():
        all_.calls += one.calls
        all_.operations += one.operations
        all_.tools_usd += one.tools_usd
        all_.media_usd += one.media_usd
        for kind, count in one.tokens.items():
            all_.tokens[kind] += count
    told = {exact.CALLS: float(sums.operations)}
    ratios = {name: all_.parts(name) for name in exact.OF}
    (short, unread), (long, _) = ratios.pop("short"), ratios.pop("long")
    ratios |= {exact.WRITES: (short + long, unread), _LONG: (long, short + long)}
    return told | {name: float(over / under) for name, (over, under) in ratios.items() if under}


def _list_price(out: Bridge) -> tuple[float | None, float | None]:
    """A million tokens as both windows together used them, at the list of each."""
    sums, whole = [Fraction(), Fraction()], 0
    for (model, kind, lane), pair in out.prices.items():
        tokens = sum(
            one.by_model[model].lanes.get((kind, lane), 0)
            for one in (out.before, out.after)
            if model in one.by_model
        )
        whole += tokens
        for side in (0, 1):
            sums[side] += tokens * pair[side]
    if not whole:
        return None, None
    return tuple(float(one * 10**6 / whole) for one in sums)  # type: ignore[return-value]


_Parts = dict[str, dict[tuple[str, str], Fraction]]


def _by_kind(out: Bridge, uses: _Uses, scale: Pair) -> _Parts:
    parts: _Parts = {}
    for kind in _KINDS:
        groups = uses.get(kind, {})
        if len(groups) < 2:
            continue
        if kind == "model":
            parts[kind] = {
                (factor, model or _NOT_TOLD): usd for (factor, model), usd in out.by_model.items()
            }
            continue
        sums = {
            name: (Sums(old, scale[0]), Sums(new, scale[1])) for name, (old, new) in groups.items()
        }
        parts[kind] = split(out, sums)
    return parts


def _drivers(factor: str, usd: Fraction, parts: _Parts) -> str | None:
    """The groups that made most of a factor, with their money; None where none stands out."""
    told_kinds = []
    for kind, shares in parts.items():
        own = {name: one for (of, name), one in shares.items() if of == factor and one}
        large = [
            name
            for name in sorted(own, key=lambda name: (-abs(own[name]), name))
            if abs(own[name]) >= abs(usd) * _WEIGHS and not name.startswith("(")
        ][:_MOST_NAMES]
        if large and usd:
            named = ", ".join(f"{name} {signed(own[name])}" for name in large)
            told_kinds.append(f"{kind} {named}")
    return "; ".join(told_kinds[:_MOST_KINDS]) or None


# --- words ---------------------------------------------------------------------------------------

_FLAT = Fraction(1, 20)
"""Calls that moved by less than a twentieth stayed, where the bill did move."""
_ENOUGH, _MOST = Decimal("0.9"), 3
_COUNTS = (exact.INPUT, exact.VISIBLE, exact.REASONING)
_NAMES = {
    exact.CALLS: "the number of calls", exact.RETRIES: "retries", exact.MIX: "the mix of models",
    exact.INPUT: "input per call", exact.READ: "cache-read share",
    exact.WRITES: "cache writes",
    exact.VISIBLE: "visible output per call", exact.REASONING: "reasoning per call",
    exact.PRICE: "list prices", exact.TIER: "tiers, vendors and long prompts",
    exact.TOOLS: "searches and other server tools", exact.MEDIA: "sound and pictures",
}  # fmt: skip


def sentence(
    rows: Sequence[Mapping[str, Any]], difference: Decimal, before: Decimal, calls: Pair
) -> str:
    """What the bill did and why, the largest factors first."""
    if not difference:
        return "The bill did not change."
    rose = difference > 0
    percent = f" ({_percent(difference / before)})" if before > 0 else ""
    head = f"The bill {'rose' if rose else 'fell'} by {dollars(abs(difference))}{percent}"
    if calls[0] and abs(calls[1] / calls[0] - 1) < _FLAT:
        head += " though calls stayed"
    same = [row for row in rows if row["cost_usd"] and (row["cost_usd"] > 0) == rose]
    other = [row for row in rows if row["cost_usd"] and (row["cost_usd"] > 0) != rose]
    chosen, told = [], Decimal(0)
    for row in same[:_MOST]:
        chosen.append(row)
        told += row["cost_usd"]
        if abs(told) >= _ENOUGH * abs(difference):
            break
    text = f"{head}: {_listed([_clause(row) for row in chosen])}"
    against = [row for row in other if abs(row["cost_usd"]) >= abs(difference) / 10][:2]
    if against:
        text += f"; against it {_listed([_clause(row) for row in against])}"
    return f"{text}."


def _clause(row: Mapping[str, Any]) -> str:
    name, usd, before, after = (row[key] for key in ("factor", "cost_usd", "before", "after"))
    words = _NAMES[name]
    if name == exact.WRITES:
        words = f"{words} ({row['unit'].removeprefix('ratio ')})"
    is_up = (usd > 0) != (name == exact.READ)
    old, new = (_figure(name, one) for one in (before, after))
    if old == new or (after > before) != is_up:
        return f"{_NAMES[name]} ({signed(Fraction(usd))})"
    verb = "rose" if after > before else "fell"
    return f"{words} {verb} from {old} to {new} ({signed(Fraction(usd))})"


def _figure(name: str, value: float | None) -> str:
    if value is None:
        return ""
    if name in (exact.READ, exact.WRITES):
        return (
            f"{100 * value:.0f} %"
            if value in (0, 1) or 0.1 <= value <= 0.9
            else f"{100 * value:.1f} %"
        )
    if name in _COUNTS or name == exact.CALLS:
        return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.1f}"
    if name == exact.RETRIES:
        return f"{value:.2f} attempts a call"
    return dollars(Decimal(value)) + (" a million tokens" if name == exact.PRICE else " a call")


def _percent(share: Decimal) -> str:
    value = 100 * share
    return f"{value:+.1f} %" if abs(value) < 10 else f"{value:+,.0f} %"


def _listed(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"

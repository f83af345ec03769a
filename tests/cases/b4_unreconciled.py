"""Bills and usage reports that the logs do not bear out, and those that only seem to differ.

main: an eighth of the calls is in no log (one host of eight is not collected). The innocent ones:
the same bill beside all logs; days of another zone, rounding, edges, fees, credits, tax.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from cases import _bills as bills
from cases._bills import DAY, HOUR, T0, Call
from cases._build import expect, silent

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

GPT, CLAUDE = "gpt-heron-2", "claude-teal-3"
NOT = ["cost.hidden-attempts", "cost.unpriced", "queue.rate-limited", "trust.duplicate-usage"]


@dataclass(frozen=True)
class Case:
    """Calls of the log, and the files of the bill."""

    log: tuple[Call, ...]
    files: dict[str, str]

    def write(self, folder: Path) -> None:
        """All of it."""
        bills.write_log(folder, self.log)
        bills.write_bills(folder, self.files)


def _usd(told: Sequence[Call]) -> Decimal:
    return sum((one.whole_usd for one in told), Decimal(0))


def _fires(case: Case, requests: int, usd: Decimal, reason: str) -> tuple[Any, Any]:
    told = expect("cost.unreconciled", "none", requests, float(usd), "usd", must_not=NOT)
    return case.write, told | {"tolerance": 1e-6, "said": [reason]}


def _silent(case: Case) -> tuple[Any, Any]:
    return case.write, silent(["cost.unreconciled", *NOT])


def _all(model: str, vendor: str) -> tuple[list[Call], Callable[[Sequence[Call]], dict[str, str]]]:
    _, writes, make = bills.VENDORS[vendor]
    return bills.calls(model, writes=writes), make


def _lost(vendor: str, keep: Callable[[int, Call], bool], reason: str, days: int = 6) -> Any:
    """Some calls are in no log; ``days`` of the bill differ, or single hours of it."""
    told, make = _all(bills.VENDORS[vendor][0], vendor)
    log = tuple(one for k, one in enumerate(told) if keep(k, one))
    gone = [one for one in told if one not in log]
    touched = {one.at_ns // DAY for one in gone}
    near = sum(one.at_ns // DAY in touched for one in log) if days else len(log)
    return _fires(Case(log, make(told)), near or len(log), _usd(gone), reason)


def _day(one: Call) -> int:
    return (one.at_ns - T0) // DAY


def _hour(one: Call) -> int:
    return one.at_ns % DAY // HOUR


def _dearer(factor: str, reason: str) -> Any:
    told, make = _all(CLAUDE, "anthropic")
    more = _usd(told) * abs(Decimal(factor) - 1)
    return _fires(Case(tuple(told), make(bills.dearer(told, factor))), len(told), more, reason)


def _days_of(shift_ns: int, *, lost: bool = False) -> Case:
    """A daily report whose days begin later than those of UTC."""
    told = bills.calls(GPT, days=9)
    log = told if not lost else [one for k, one in enumerate(told) if k % 4]
    return Case(tuple(log), {"usage.json": bills.openai_usage(told, DAY, shift_ns)})


def _other_model() -> Any:
    told, make = _all(CLAUDE, "anthropic")
    other = bills.calls("claude-umber-5", per_day=7)
    rates = _usd(other)
    return _fires(
        Case(tuple(told), make([*told, *other])), len(told), rates, "the model is in no log"
    )


def _late() -> Case:
    """Every tenth call is booked an hour later than it began."""
    told = bills.calls(GPT)
    booked = [
        replace(one, at_ns=one.at_ns + HOUR) if k % 10 == 4 else one for k, one in enumerate(told)
    ]
    return Case(tuple(told), {"usage.json": bills.openai_usage(booked)})


def _agrees(vendor: str) -> Any:
    told, make = _all(bills.VENDORS[vendor][0], vendor)
    return _silent(Case(tuple(told), make(told)))


def _beside() -> dict[str, Any]:
    """What stands on a bill beside tokens."""
    gpt, claude = bills.calls(GPT), bills.calls(CLAUDE)
    teal = bills.calls("claude-teal-4-2")
    gemini = bills.calls("gemini-3.1-teal", writes=False)
    searches = {"web search tool calls": Decimal("1.75"), "credit grant": Decimal("-2.00")}
    return {
        "fees_and_credits": _silent(
            Case(tuple(gpt), {"costs.json": bills.openai_costs(gpt, **searches)})
        ),
        "searches": _silent(Case(tuple(claude), {"c.json": bills.anthropic_costs(claude, "250")})),
        "tax": _silent(Case(tuple(teal), {"cur.csv": bills.aws_cur(teal, "0.91")})),
        "promotion": _silent(
            Case(tuple(gemini), {"g.jsonl": bills.google_billing(gemini, "-0.75")})
        ),
    }


def _edges() -> dict[str, Any]:
    """Bills and logs that begin and end on other days."""
    told, make = _all(CLAUDE, "anthropic")
    inner = tuple(one for one in told if 1 <= _day(one) <= 4)
    noon = tuple(one for one in told if one.at_ns >= T0 + DAY + DAY // 2)
    short = [one for one in told if _day(one) < 5]
    half = [one for one in told if one.at_ns < T0 + 5 * DAY + DAY // 3]
    return {
        "logs_of_inner_days": _silent(Case(inner, make(told))),
        "logs_from_noon": _silent(Case(noon, make(told))),
        "bill_ends_before": _silent(Case(tuple(told), make(short))),
        "bill_not_complete": _silent(Case(tuple(told), make(half))),
    }


def _cached_untold() -> Case:
    """The client counts the whole prompt and not what was cached."""
    told = bills.calls(GPT, writes=False)
    flat = [
        replace(one, input_fresh=one.input_fresh + one.cache_read, cache_read=0) for one in told
    ]
    return Case(tuple(flat), {"usage.json": bills.openai_usage(told)})


def _cached_usd() -> Decimal:
    told = bills.calls(GPT, writes=False)
    # Cached tokens that the logs do not tell have no price there; the fresh ones have.
    return sum((Decimal(one.cache_read) for one in told), Decimal(0)) * Decimal("2.5") / 1_000_000


PST = 8 * HOUR
CASES = {
    "main": _lost("anthropic", lambda k, _: k % 8 != 3, "not explained"),
    "twin": _agrees("anthropic"),
    "openai": _lost("openai", lambda k, _: k % 8 != 3, "not explained"),
    "deepseek": _lost("deepseek", lambda k, _: k % 5 != 3, "not explained"),
    "azure": _lost("azure", lambda k, _: k % 5 != 3, "not explained"),
    "no_logs_of_a_day": _lost("azure", lambda _, one: _day(one) != 3, "no logs for this period", 0),
    "a_hole": _lost(
        "anthropic", lambda _, one: not (_day(one) == 2 and 10 <= _hour(one) < 17),
        "a hole in the logs",
    ),
    "a_tenth_more": _dearer("1.1", "surcharge of a tenth, as for a region"),
    "half": _dearer("0.5", "half price, as of batch and flex"),
    "contract": _dearer("0.82", "the same discount on everything"),
    "other_model": _other_model(),
    "openai_agrees": _agrees("openai"),
    "aws_agrees": _agrees("aws"),
    "azure_agrees": _agrees("azure"),
    "google_agrees": _agrees("google"),
    "deepseek_agrees": _agrees("deepseek"),
    "focus_agrees": _agrees("focus"),
    "days_of_the_west": _silent(_days_of(PST)),
    "days_of_the_east": _silent(_days_of(-9 * HOUR)),
    "days_of_india": _silent(_days_of(-11 * HOUR // 2)),
    "booked_late": _silent(_late()),
    "rounding": _silent(
        Case(
            tuple(bills.calls(CLAUDE)),
            {"c.json": bills.anthropic_costs(bills.dearer(bills.calls(CLAUDE), "1.003"))},
        )
    ),
    "yuan": _silent(
        Case(
            tuple(bills.calls("deepseek-teal", writes=False)),
            bills.deepseek(bills.calls("deepseek-teal", writes=False), "CNY"),
        )
    ),
    **_beside(),
    **_edges(),
}  # fmt: skip

"""What the user's own price files say, which beats every catalog."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from analyzer.catalogs._names import model_of, provider_of


@dataclass(frozen=True)
class FilePrice:
    """One row of the ``price`` table: a price, or a factor on others."""

    model: str | None
    """None: every model (of the provider)."""
    token_kind: str | None
    provider: str | None = None
    tier: str | None = None
    """batch, flex, priority or fast; None: the price without a tier."""
    above: int | None = None
    usd: Decimal | None = None
    factor: Decimal | None = None
    """In place of a price: what the price without the tier (None: the list price) is times."""
    valid_from_ns: int | None = None
    catalog: str | None = None
    """A catalog this was copied from; None: the user's own."""
    currency: str = "USD"
    path: str = ""
    order: tuple[int, int] = (0, 0)

    @property
    def rank(self) -> tuple[int, int, int, int, Decimal]:
        """The best comes first: highest step, newest, then as they stand."""
        above = -1 if self.above is None else self.above
        begins = -1 if self.valid_from_ns is None else self.valid_from_ns
        return (-above, -begins, *self.order, self.usd or Decimal(0))


@dataclass(frozen=True)
class FilePrices:
    """The rows that concern one model of one provider."""

    rows: tuple[FilePrice, ...] = field(default=())
    foreign: tuple[str, ...] = ()
    """Files and the other currencies in which they tell its price; nothing converts them."""

    def moments(self) -> Iterator[int]:
        """Times at which one begins."""
        yield from (row.valid_from_ns for row in self.rows if row.valid_from_ns is not None)

    def steps(self) -> Iterator[int]:
        """Prompt sizes above which one holds."""
        yield from (row.above for row in self.rows if row.above is not None)

    def _fitting(self, tier: str | None, at_ns: int, tokens: int) -> list[FilePrice]:
        found = [
            row
            for row in self.rows
            if row.tier == tier
            and (row.above is None or tokens > row.above)
            and (row.valid_from_ns is None or row.valid_from_ns <= at_ns)
        ]
        return sorted(found, key=lambda row: row.rank)

    def price(self, kind: str, tier: str | None, at_ns: int, tokens: int) -> FilePrice | None:
        """The price of a kind of token."""
        fitting = self._fitting(tier, at_ns, tokens)
        return next((r for r in fitting if r.token_kind == kind and r.usd is not None), None)

    def factor(self, tier: str | None, at_ns: int, tokens: int) -> FilePrice | None:
        """What prices are multiplied with: a discount, or the price of a tier.

        What is said of the model comes before what is said of its provider, and that before
        what is said of all.
        """
        fitting = [r for r in self._fitting(tier, at_ns, tokens) if r.factor is not None]
        fitting.sort(key=lambda row: (row.model is None, row.provider is None))
        return next(iter(fitting), None)


def concerning(
    rows: Sequence[FilePrice], spelled: str, model: str, provider: str | None
) -> FilePrices:
    """Rows of a model: by its name as the log spells it, else by the name without prefixes."""
    own = [row for row in rows if row.catalog is None]
    near = [row for row in own if _is_of(row.provider, provider)]
    exact = [row for row in near if row.model == spelled]
    named = exact or [row for row in near if row.model and model_of(row.model, "")[0] == model]
    found = (*named, *(row for row in near if row.model is None))
    foreign = {
        f"{row.path} in {row.currency}"
        for row in found
        if row.usd is not None and row.currency != "USD"
    }
    dollars = tuple(row for row in found if row.usd is None or row.currency == "USD")
    return FilePrices(dollars, tuple(sorted(foreign)))


def _is_of(told: str | None, provider: str | None) -> bool:
    return told is None or (provider is not None and provider_of(told) == provider)


def copied(rows: Iterable[FilePrice]) -> dict[tuple[str, str], dict[int, dict[str, Decimal]]]:
    """The user's copy of another catalog: (provider or empty, model) -> step -> kind -> price."""
    found: dict[tuple[str, str], dict[int, dict[str, Decimal]]] = {}
    for row in rows:
        if row.catalog and row.model and row.token_kind and row.usd is not None and not row.tier:
            name, vendor = model_of(row.model, row.provider or "")
            steps = found.setdefault((vendor or "", name), {})
            steps.setdefault(-1 if row.above is None else row.above, {})[row.token_kind] = row.usd
    return found

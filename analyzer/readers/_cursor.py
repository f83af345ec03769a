"""What Cursor's exports share: kinds of events, and what of them was charged."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from analyzer.readers._jsonl import Bad, Sink, usd
from analyzer.readers._prefix import digest_of
from analyzer.readers._rows import clean

PLAN = (
    "an event of a subscription was not charged: a cost it tells is what it is worth, and makes no "
    "line of a bill"
)
_KIND_CHARS = 60


@dataclass(frozen=True)
class Event:
    """One event of either export; None = not told."""

    start_ns: int
    kind: str
    model: str | None
    session: str | None
    usage: dict[str, int | None]
    cost: Decimal | None
    labels: dict[str, str | None]
    contradiction: str | None = None

    @property
    def planned(self) -> bool:
        """Covered by a subscription."""
        return "included" in self.kind.lower()

    @property
    def failed(self) -> bool:
        """Ended in an error, which nobody pays for."""
        return "errored" in self.kind.lower()

    @property
    def charged(self) -> bool:
        """It stands on a bill."""
        paid = not (self.planned or self.failed or "not charged" in self.kind.lower())
        return paid and self.cost is not None

    def add(self, sink: Sink, record: int) -> None:
        """Its rows: the request, its labels, and a line of the bill where it was charged."""
        if self.planned and self.cost:
            sink.assumed.add(PLAN)
        sink.add(
            "request", record, vantage="provider", provider="cursor", session_id=self.session,
            model=self.model, start_ns=self.start_ns, clock="wall", **self.usage,
            usage_convention="exclusive", usage_final=True,
            usage_contradiction=self.contradiction, error="error" if self.failed else None,
            reported_cost_usd=self.cost,
        )  # fmt: skip
        labels = {"kind": self.kind, **self.labels}
        for name, value in labels.items():
            if value is not None:
                sink.add("request_tag", record, name=name, value=value)
        if self.charged:
            sink.add(
                "invoice_line", record, period_start_ns=self.start_ns, model=self.model,
                quantity=Decimal(1), unit="request", amount=self.cost, currency="USD",
            )  # fmt: skip


def kind_of(value: Any) -> str:  # noqa: ANN401 - foreign JSON
    """The kind as it is told, which is a word of Cursor's; :class:`Bad` where it is none."""
    if not isinstance(value, str) or not value or len(value) > _KIND_CHARS:
        raise Bad("'Kind' tells no kind of event")
    return clean(value)


def person(value: Any) -> str | None:  # noqa: ANN401 - foreign JSON
    """A mail address as a hash: people can be told apart, not named."""
    return digest_of(value)[:12] if isinstance(value, str) and value else None


def dollars(text: str) -> Decimal | None:
    """``$0.02``, ``0.06``; None for a word that stands in place of an amount."""
    bare = text.strip().removeprefix("$").replace(",", "")
    if not bare or not any(char.isdigit() for char in bare):
        return None
    return usd(bare)

"""Attempts that were billed and that no log tracks with their tokens.

main: every fifth operation times out twice, 30 s after its start; the provider finishes those
attempts after 41 s and bills them. The innocent ones: attempts that never reached the provider,
that it refused, or of which nothing shows that they were billed.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from analyzer.simulate.writers import (
    NS,
    billing_record,
    openai_usage,
    prices,
    request_record,
    stream_event,
    write_lines,
)
from cases._build import MS, answer, at, expect, silent

if TYPE_CHECKING:
    from pathlib import Path

MODEL = "heron-2"
T0 = at("2026-05-11T08:00:00Z")
IN, OUT = Decimal("1.80"), Decimal("7.20")
PRICES = {MODEL: {"input": str(IN), "cache_read": "0.18", "output": str(OUT)}}


def price(tokens: tuple[int, int]) -> Decimal:
    """Of one call."""
    return (tokens[0] * IN + tokens[1] * OUT) / 1_000_000


@dataclass(frozen=True)
class World:
    """Operations, of which every ``nth`` fails ``tries`` times before it is answered."""

    operations: int = 40
    every: int = 5
    tries: int = 2
    gap_ns: int = 25 * NS
    patience_ns: int = 30 * NS
    provider_ns: int = 41 * NS
    pauses_ns: tuple[int, ...] = (2 * NS, 5 * NS, 5 * NS)
    first_ns: int = 6 * NS
    spread_ns: int = 137 * MS
    tokens: tuple[int, int] = (5_200, 640)
    varied: bool = True
    failure: dict[str, Any] = field(default_factory=lambda: {"error": "timeout"})
    sent: int | None = 20_800
    failed_are_billed: bool = True
    charged: bool = True
    ids: bool = False
    operation_ids: bool = True
    hashes: bool = True
    bill_model: str = MODEL
    late_ns: int = 150 * MS
    inner: bool = False
    """A library tries again by itself and logs one long request."""

    def size(self, k: int) -> tuple[int, int]:
        fresh, made = self.tokens
        return (fresh + 17 * (k % 13), made + 11 * (k % 7)) if self.varied else self.tokens

    def hit(self, k: int) -> bool:
        return k % self.every == 2

    @property
    def hidden(self) -> list[tuple[int, int]]:
        """Tokens of each attempt that failed."""
        return [self.size(k) for k in range(self.operations) if self.hit(k)] * self.tries

    @property
    def hidden_usd(self) -> Decimal:
        return sum((price(one) for one in self.hidden), Decimal(0))

    @property
    def billed_usd(self) -> Decimal:
        return self.hidden_usd + sum(
            (price(self.size(k)) for k in range(self.operations)), Decimal(0)
        )

    def write(self, folder: Path) -> None:
        """The client's log, the provider's records, and a price list."""
        logs: list[str] = []
        bills: list[str] = []
        for k in range(self.operations):
            self._operation(k, logs, bills)
        write_lines(folder / "calls.jsonl", logs)
        if bills:
            write_lines(folder / "billing.jsonl", bills)
        write_lines(folder / "prices.json", [prices(PRICES)])

    def _operation(self, k: int, logs: list[str], bills: list[str]) -> None:
        begin = start = T0 + k * self.gap_ns
        attempt = 1
        if self.hit(k):
            for nth in range(self.tries):
                if not self.inner:
                    self._log(k, attempt, start, self.patience_ns, logs, self.failure)
                if self.failed_are_billed:
                    self._bill(k, attempt, start, self.provider_ns, bills)
                start += self.patience_ns + self.pauses_ns[nth]
                attempt += 1
        took = self.first_ns + self.spread_ns * (k % 23)
        fields = {"status": 200, "usage": openai_usage(*self.size(k)), "finish_reason": "stop"}
        if self.inner:
            self._log(k, 1, begin, start - begin + took, logs, fields)
        else:
            self._log(k, attempt, start, took, logs, fields)
        self._bill(k, attempt, start, took, bills)

    def _log(
        self, k: int, attempt: int, start: int, took: int, logs: list[str], fields: dict[str, Any]
    ) -> None:
        failed = "error" in fields
        fixed: dict[str, Any] = {"bytes_sent": self.sent if failed else 20_800, "attempt": attempt}
        if self.operation_ids:
            fixed["operation_id"] = f"job-{k:03d}"
        if self.hashes:
            fixed["payload_hash"] = f"{k:08x}"
        logs.append(
            request_record(
                f"job-{k:03d}.{attempt}", vantage="client", started_ns=start,
                durations_ns={"e2e": took}, model=MODEL, **(fixed | fields),
            )
        )  # fmt: skip

    def _bill(self, k: int, attempt: int, start: int, took: int, bills: list[str]) -> None:
        tokens = self.size(k)
        usage = {"prompt_tokens": tokens[0], "completion_tokens": tokens[1]}
        bills.append(
            billing_record(
                start + self.late_ns, start + took, model=self.bill_model, usage=usage,
                cost_usd=price(tokens) if self.charged else None,
                request_id=f"job-{k:03d}.{attempt}" if self.ids else None,
            )
        )  # fmt: skip


NOT = [
    "queue.rate-limited", "trust.duplicate-usage", "cost.unreconciled", "cost.unpriced",
    "trust.contradictory-totals", "trust.clock", "cost.spike",
]  # fmt: skip


def _fires(world: World, **more: Any) -> tuple[Any, Any]:
    told = expect(
        "cost.hidden-attempts", "none", len(world.hidden), float(world.hidden_usd), "usd",
        must_not=NOT,
    )  # fmt: skip
    return world.write, told | {
        "tolerance": 1e-6,
        "cost_usd": world.hidden_usd,
        "told": [len(world.hidden), float(world.billed_usd)],
    } | more


def _silent(world: World) -> tuple[Any, Any]:
    return world.write, silent(["cost.hidden-attempts", *NOT])


LEFT = 9


def aborted(folder: Path, *, billed: bool = True) -> None:
    """Nine readers leave in the middle of a stream, whose usage would have come last."""
    logs: list[str] = []
    bills: list[str] = []
    for k in range(45):
        name, sent, fresh = f"st-{k:03d}", T0 + 20 * NS * k, 2_000 + 13 * k
        leaves = k % 5 == 3
        if leaves:
            logs.append(stream_event(sent, name, "send", model=MODEL))
            for i in range(30):
                at_ns = sent + 400 * MS + i * 50 * MS
                logs.append(stream_event(at_ns, name, "chunk", kind="content", chars=5))
            logs.append(stream_event(sent + 2 * NS, name, "error", error="cancelled"))
        else:
            chunks = [(400 * MS + i * 50 * MS, "content", 5) for i in range(100)]
            logs += answer(name, sent, chunks, openai_usage(fresh, 100), model=MODEL)
        if billed or not leaves:
            made = 38 if leaves else 100
            usage = {"prompt_tokens": fresh, "completion_tokens": made}
            end = sent + 400 * MS + (made - 1) * 50 * MS
            bills.append(
                billing_record(
                    sent + 90 * MS, end, model=MODEL, usage=usage, cost_usd=price((fresh, made))
                )
            )
    write_lines(folder / "client.jsonl", logs)
    write_lines(folder / "billing.jsonl", bills)
    write_lines(folder / "prices.json", [prices(PRICES)])


ABORTED_USD = sum((price((2_000 + 13 * k, 38)) for k in range(45) if k % 5 == 3), Decimal(0))


def _aborted() -> tuple[Any, Any]:
    told = expect("cost.hidden-attempts", "none", LEFT, float(ABORTED_USD), "usd", must_not=NOT)
    return aborted, told | {"tolerance": 1e-6, "cost_usd": ABORTED_USD}


BASE = World()
CONNECT = {"error": "connect_timeout"}
CASES = {
    "main": _fires(BASE, told=[8, 16, 30e9, 41e9]),
    "twin": _silent(replace(BASE, failure=CONNECT, sent=0, failed_are_billed=False)),
    "three_tries": _fires(
        World(operations=33, every=4, tries=3, patience_ns=12 * NS, provider_ns=14 * NS)
    ),
    "crowded": _fires(World(operations=300, every=6, tries=1, gap_ns=700 * MS, varied=False)),
    "crowded_alike": _fires(
        World(operations=200, every=9, tries=2, gap_ns=1_300 * MS, varied=False, spread_ns=0)
    ),
    "inside_a_library": _fires(replace(BASE, inner=True)),
    "by_id": _fires(replace(BASE, ids=True)),
    "by_hash": _fires(replace(BASE, operation_ids=False), told=[8, 16]),
    "nothing_in_common": _fires(replace(BASE, operation_ids=False, hashes=False)),
    "no_charge": _fires(replace(BASE, charged=False)),
    "snapshot": _fires(replace(BASE, bill_model=f"{MODEL}-2026-02-03", ids=False)),
    "other_clock": _fires(replace(BASE, late_ns=3 * NS)),
    "server_errors": _fires(
        replace(BASE, failure={"error": "upstream", "status": 502}, provider_ns=30 * NS)
    ),
    "bytes_not_told": _fires(replace(BASE, sent=None)),
    "aborted": _aborted(),
    "aborted_unbilled": (
        lambda folder: aborted(folder, billed=False),
        silent(["cost.hidden-attempts", *NOT]),
    ),
    "refused": (
        replace(
            BASE, failure={"error": "rate_limit", "status": 429}, patience_ns=40 * MS,
            failed_are_billed=False,
        ).write,
        silent(["cost.hidden-attempts", *NOT[1:]]),
    ),
    "timeouts_unbilled": _silent(replace(BASE, failed_are_billed=False)),
    "all_well": _silent(replace(BASE, tries=0)),
    "one_of_many": _silent(World(operations=150, every=149, tries=1)),
}  # fmt: skip

"""What a provider bills: native billing records, and the prices they follow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analyzer.simulate.money import Billing, billing_of, cost_usd, is_billed, written_tokens
from analyzer.simulate.ordered import OrderedLines
from analyzer.simulate.outcome import Base, LogView, RequestOutcome
from analyzer.simulate.run import view_of
from analyzer.simulate.world import Log, World
from analyzer.simulate.writers import billing_record, openai_usage

if TYPE_CHECKING:
    from pathlib import Path


class BillingRecords(Base):
    """One record a call that the provider began to compute, given up by its caller or not.

    It knows no id of the caller; ``with_ids`` is for providers that hand theirs on.
    """

    def __init__(
        self, path: Path, view: LogView, billing: Billing, *, with_ids: bool = False
    ) -> None:
        self._lines, self._view, self._billing = OrderedLines(path), view, billing
        self._with_ids = with_ids

    def request(self, outcome: RequestOutcome) -> None:
        """Write it where it is billed."""
        one, view = outcome, self._view
        if not is_billed(one) or view.drops(f"{one.request_id}/{one.attempt}"):
            return
        accepted = one.engine_in_ns
        if accepted is None:
            return
        finished = _end_of(one)
        start = view.time(accepted)
        usage = openai_usage(
            one.prompt_tokens, one.output_tokens, cached=one.cached_tokens,
            reasoning=one.reasoning_tokens,
        )  # fmt: skip
        if written := written_tokens(one, self._billing):
            key = "1h" if self._billing.write_ttl == "1h" else "5m"
            usage = {
                "input_tokens": one.prompt_tokens - one.cached_tokens - written,
                "cache_read_input_tokens": one.cached_tokens,
                "cache_creation_input_tokens": written,
                "cache_creation": {f"ephemeral_{key}_input_tokens": written},
                "output_tokens": one.output_tokens,
            }
        cost = None if "cost_usd" in view.missing else cost_usd(one, self._billing)
        ids = {"request_id": one.request_id, "attempt": one.attempt} if self._with_ids else {}
        line = billing_record(
            start, start + finished - accepted, model=one.model, usage=usage, cost_usd=cost, **ids
        )
        self._lines.add(start + finished - accepted, line)

    def close(self) -> None:
        """Write the last records."""
        self._lines.close()


def _end_of(one: RequestOutcome) -> int:
    """When the provider was done with it, which may be after its caller was."""
    stopped = one.tries[-1].end_ns if one.tries else one.done_ns
    ends = (one.engine_out_ns, one.finished_ns, stopped, one.admitted_ns)
    return next(end for end in ends if end is not None)


def recorder(folder: Path, log: Log, world: World) -> BillingRecords:
    """``options``: ``write_ttl`` (5m, 1h) prices cache writes, ``with_ids`` hands ids on."""
    return BillingRecords(
        folder / (log.file or "billing.jsonl"), view_of(log, world),
        billing_of(world, log.options), with_ids=bool(log.options.get("with_ids")),
    )  # fmt: skip

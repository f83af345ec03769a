"""The table of bills, whose amounts and quantities need more digits than those of requests."""

from __future__ import annotations

import pyarrow as pa

from analyzer.contract._fields import column, ns, table, text

BILL = pa.decimal128(38, 12)
"""A day's tokens are beyond 1e9, and an hour's amount can be below 1e-9."""


def invoice_line(provenance: list[pa.Field]) -> pa.Schema:
    """One line of a bill, or of a usage report, which tells quantities and no amounts."""
    return table(
        "One line of a bill.",
        [
            *provenance,
            ns("period_start_ns", "period begins"),
            ns("period_end_ns", "period ends, exclusive"),
            text("model", "model"),
            text(
                "token_kind",
                "input_fresh, cache_read, cache_write_short, cache_write_long, "
                "cache_write_unknown, output, output_reasoning; input = fresh and cached ones "
                "together; NULL = no tokens, or not told which",
            ),
            column("quantity", BILL, "how much"),
            text("unit", "of what"),
            column("amount", BILL, "money; NULL = a usage report, which tells no amounts"),
            column(
                "effective_amount", BILL, "money after spreading prepaid and discounts, where told"
            ),
            column("list_amount", BILL, "money at list prices, where told"),
            text("currency", "ISO 4217"),
            text("provider", "who bills"),
            text("item", "what the bill calls the line; its blanks are _"),
            text("charge", "usage, tax, credit, ..., as the bill says"),
            text("service_tier", "batch, flex, priority, ..., where told"),
            column("long_context", pa.bool_(), "billed at the price of long prompts"),
            text("account", "project, workspace or account it is booked on"),
        ],
    )

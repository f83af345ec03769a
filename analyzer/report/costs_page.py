"""The page's section on cost: the sum, what changed as steps, the bill, what bought nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from analyzer.report import billed, costs
from analyzer.report.charts import waterfall_svg
from analyzer.report.sections import NARROW, WIDE
from analyzer.report.values import money, safe_text

if TYPE_CHECKING:
    from analyzer.contract.costs import Costs
    from analyzer.contract.types import Report


def section(report: Report) -> dict[str, Any] | None:
    """The same for the page; None where nothing is priced and nothing is billed."""
    value = report.costs
    if value is None:
        return None
    left = max(0, value.groups - len(value.rows.rows))
    return {
        "summary": costs.summary(value),
        "notes": [*costs.prices(value), *value.notes],
        "table": costs.groups(value) if value.rows.rows else None,
        "caption": f"Cost by {', '.join(value.by)}",
        "left_out": costs.left_out(left) if left else "",
        "waste": costs.waste(value.waste) if value.waste.rows else None,
        "bridge": _waterfall(value) if value.bridge is not None and value.bridge.rows else None,
        "bridge_notes": _bridge_notes(value),
        "billed": billed.facts(value.reconciliation) if value.reconciliation else [],
        "reconciled": billed.differences(value.reconciled) if value.reconciled else None,
        "reconciled_notes": [billed.matched(value.reconciled)] if value.reconciled else [],
    }


def _bridge_notes(value: Costs) -> list[str]:
    """Its sentence, the sums, what had no part."""
    if value.bridge is None:
        return []
    first, *rest = value.bridge.notes or ("",)
    return [
        text for text in (first, costs.changed(value), costs.unmoved(value.bridge), *rest) if text
    ]


def _waterfall(value: Costs) -> dict[str, Any] | None:
    """The bridge as steps from the sum before to the sum after, and the numbers behind it."""
    table = costs.bridge(value.bridge) if value.bridge is not None else None
    if table is None or value.bridge is None or value.baseline_usd is None:
        return None
    if value.window_usd is None:
        return None
    at = float(value.baseline_usd)
    steps: list[dict[str, Any]] = [{"name": "before", "low": 0.0, "high": at, "kind": "sum"}]
    for row in value.bridge.rows:
        if not row["cost_usd"]:
            continue
        after = at + float(row["cost_usd"])
        kind = "more" if after > at else "less"
        name = safe_text(str(row["factor"]))
        steps.append({"name": name, "low": at, "high": after, "kind": kind})
        at = after
    end = float(value.window_usd)
    steps.append({"name": "after", "low": 0.0, "high": end, "kind": "sum"})
    for step in steps:
        size = step["high"] - step["low"]
        step["text"] = money(size) if step["kind"] == "sum" else costs.signed(size)
    title = "From the cost before to the cost after"
    return {
        "title": title,
        "sampled": "",
        "alt": f"{title}, a bar a factor. The table below holds what it shows.",
        "wide": Markup(waterfall_svg(steps, width=WIDE - 40)),  # noqa: S704 - escaped by the converter
        "narrow": Markup(waterfall_svg(steps, width=NARROW - 12)),  # noqa: S704
        "table": table,
    }

"""One door for every printer: ``table``, ``json``, ``csv`` or ``md`` of any value."""

from __future__ import annotations

import csv
import io
from functools import singledispatch
from typing import Any

from analyzer.contract.costs import Costs
from analyzer.contract.devices import Devices
from analyzer.contract.types import (
    Explanation,
    Finding,
    Findings,
    IngestResult,
    Report,
    RequestView,
    Status,
    Table,
)
from analyzer.report import json, markdown, text
from analyzer.report.answers import blocks
from analyzer.report.blocks import keys_of
from analyzer.report.values import safe_text

FORMATS = ("table", "json", "csv", "md")


def render(value: object, form: str, *, width: int = 80, color: bool = False) -> str:
    """``value`` in the format asked for, with a newline at the end."""
    if form == "json":
        return json.dumps(value)
    if form == "csv":
        return _csv(rows(value))
    if form == "md":
        return markdown.render(blocks(value))
    return text.render(blocks(value), width=width, color=color)


def _csv(table: list[dict[str, Any]]) -> str:
    out = io.StringIO()
    keys = keys_of(table)
    writer = csv.writer(out, lineterminator="\n")
    if keys:
        writer.writerow([_field(key) for key in keys])
    writer.writerows([_field(row.get(key)) for key in keys] for row in table)
    return out.getvalue()


def _field(value: Any) -> Any:  # noqa: ANN401 - a cell of a foreign table
    """CSV field. Foreign text that a spreadsheet would run as a formula is quoted."""
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str):
        return value
    plain = safe_text(value, lines=True)
    if plain[:1] in {"=", "+", "@", "\t"} or (plain[:1] == "-" and not _is_number(plain)):
        return "'" + plain
    return plain


def _is_number(plain: str) -> bool:
    try:
        float(plain)
    except ValueError:
        return plain == "-"
    return True


@singledispatch
def rows(value: object) -> list[dict[str, Any]]:
    """One table that stands for a value in CSV, with the keys of its JSON form."""
    msg = f"no CSV form for {type(value).__name__}"
    raise TypeError(msg)


@rows.register(Table)
@rows.register(Costs)
@rows.register(Devices)
@rows.register(IngestResult)
@rows.register(Status)
@rows.register(RequestView)
def _enveloped(value: object) -> list[dict[str, Any]]:
    out: list[dict[str, Any]] = json.envelope(value)["rows"]
    return [{key: _flat(item) for key, item in row.items()} for row in out]


def _flat(item: Any) -> Any:  # noqa: ANN401 - JSON
    if isinstance(item, dict):
        return "; ".join(f"{key}={part}" for key, part in item.items())
    return "; ".join(str(part) for part in item) if isinstance(item, list) else item


@rows.register(Findings)
def _findings(value: Findings) -> list[dict[str, Any]]:
    return [
        *(_found(item) for item in value.found),
        *({"outcome": "clear", **json.clear(item)} for item in value.clear),
        *(
            {
                "outcome": "cannot say",
                "rule": item.rule,
                "coverage": json.scalar(item.coverage),
                "missing": "; ".join(miss.input for miss in item.missing),
            }
            for item in value.cannot_say
        ),
    ]


def _found(value: Finding) -> dict[str, Any]:
    whole = json.finding(value, full=False)
    size, window = whole.pop("magnitude"), whole.pop("window") or {}
    for name in ("evidence", "actions", "done_when", "examples"):
        del whole[name]
    return {
        "outcome": "found",
        **whole,
        "magnitude": size["value"],
        "unit": size["unit"],
        "of": size["of"],
        "from_at": window.get("from"),
        "to_at": window.get("to"),
    }


@rows.register(Report)
def _report(value: Report) -> list[dict[str, Any]]:
    return _findings(value.findings)


@rows.register(Explanation)
def _explanation(value: Explanation) -> list[dict[str, Any]]:
    if not isinstance(value.outcome, Finding):
        return [_flat_outcome(value)]
    return [json.evidence(item) for item in value.outcome.evidence]


def _flat_outcome(value: Explanation) -> dict[str, Any]:
    whole = json.envelope(value)
    return {"rule": value.rule, "outcome": whole["outcome"], "title": value.title}

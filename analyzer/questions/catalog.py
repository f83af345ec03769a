"""What the tool itself knows: formats it reads, tables and analyses it has."""

from __future__ import annotations

from analyzer.contract.tables import TABLES, doc_of, unit_of
from analyzer.contract.types import Table
from analyzer.engines.analysis import all_analyses
from analyzer.errors import AnalyzerError, hint_of
from analyzer.readers._find import all_readers, reader_named

_TYPES = {
    "int64": "BIGINT",
    "int32": "INTEGER",
    "string": "VARCHAR",
    "double": "DOUBLE",
    "bool": "BOOLEAN",
    "decimal128(38, 12)": "DECIMAL(38,12)",
}


def formats(name: str | None) -> Table:
    """All formats, or what one gives, what it cannot, and how to switch the missing part on."""
    if name is None:
        rows = tuple(
            {"name": r.name, "title": r.title, "gives": ", ".join(r.gives)}
            for r in all_readers().values()
        )
        return Table("analyze.formats", rows)
    reader = reader_named(name)
    facts = {
        "name": reader.name,
        "title": reader.title,
        "gives": ", ".join(reader.gives),
        "cannot give": reader.cannot,
        "switch it on": reader.enable,
        "checked against": reader.checked_against,
        "a record is": f"{_article(reader.record_unit)} {reader.record_unit}",
        "described in": reader.docs,
        "version": str(reader.version),
    }
    told = [{"field": k, "value": v} for k, v in facts.items() if v]
    told += [{"field": name, "value": value} for name, value in reader.facts]
    told += [{"field": "example", "value": line} for line in reader.example.splitlines()]
    return Table("analyze.format", tuple(told))


def _article(word: str) -> str:
    return "an" if word[:1] in "aeio" else "a"


def schema(name: str | None) -> Table:
    """Columns of the tables and analyses, or of one of them."""
    rows = []
    for table, columns in TABLES.items():
        rows += [
            {
                "table": table,
                "column": field.name,
                "type": _TYPES.get(str(field.type), "DECIMAL(18,9)"),
                "unit": unit_of(field),
                "doc": doc_of(field),
            }
            for field in columns
        ]
    for analysis in all_analyses().values():
        rows += [
            {"table": analysis.name, "column": c.name, "type": c.type, "unit": "", "doc": c.doc}
            for c in analysis.returns
        ]
    if name is not None:
        known = sorted({row["table"] for row in rows})
        rows = [row for row in rows if row["table"] == name.lower()]
        if not rows:
            raise AnalyzerError(f"no table or analysis named {name!r}", hint_of(name, known))
    return Table("analyze.schema", tuple(rows))

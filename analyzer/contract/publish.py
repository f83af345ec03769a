"""Writes ``schemas/``: ``python -m analyzer.contract.publish [DIR]``.

The folder is output only. Nothing reads it at run time, so there is no second truth; a test
compares it with what this module would write.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
import pyarrow.types as pt

from analyzer.contract.native import NATIVE
from analyzer.contract.outputs import OUTPUTS
from analyzer.contract.tables import CONTRACT_VERSION, TABLES, doc_of, unit_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

Schema = dict[str, Any]

DIALECT = "https://json-schema.org/draft/2020-12/schema"
GROUPS: dict[str, tuple[str, str]] = {
    "tables": (
        "Tables of a case",
        "Rows of the canonical tables, as `analyze sql` shows them. "
        "Decimals are strings in JSON, so that no digit is lost.",
    ),
    "native": (
        "Native log formats",
        "What your own client, gateway or billing can write; one JSON object a line, except "
        "`deployment` and `prices`, which are one file each (JSON or TOML), and `mapping`, a TOML "
        "file that tells how to read foreign tables. Unknown keys are allowed, but in a mapping.",
    ),
    "output": (
        "Output of the commands",
        "One row of `-f json`, inside the envelope "
        '`{"kind": "analyze.latency", "version": 1, "rows": [...]}`.',
    ),
}
INTRO = """# Schemas

Generated from `analyzer/contract/` by `make schemas`; do not edit. JSON Schema draft 2020-12, one
file for each heading below. `required` means never null; every other column may be null, which
says that the source did not tell, never zero.
"""


def json_type(kind: pa.DataType) -> Schema:
    """JSON Schema of a value of this Arrow type."""
    if pt.is_boolean(kind):
        return {"type": "boolean"}
    if pt.is_integer(kind):
        return {"type": "integer"}
    if pt.is_floating(kind):
        return {"type": "number"}
    if pt.is_decimal(kind):
        whole = kind.precision - kind.scale
        return {"type": "string", "pattern": rf"^-?\d{{1,{whole}}}(\.\d{{1,{kind.scale}}})?$"}
    if pt.is_timestamp(kind):
        return {"type": "string", "format": "date-time"}
    if pt.is_string(kind) or pt.is_large_string(kind):
        return {"type": "string"}
    if pt.is_list(kind) or pt.is_large_list(kind):
        return {"type": "array", "items": field_schema(kind.value_field)}
    if pt.is_map(kind):
        return {"type": "object", "additionalProperties": field_schema(kind.item_field)}
    if pt.is_struct(kind):
        return _object([kind.field(i) for i in range(kind.num_fields)])
    msg = f"no JSON Schema for Arrow type {kind}"
    raise TypeError(msg)


def field_schema(field: pa.Field) -> Schema:
    """Type, meaning and unit of one column; a nullable one may be null."""
    schema = json_type(field.type)
    if field.nullable:
        schema["type"] = [schema["type"], "null"]
    if doc := doc_of(field):
        schema["description"] = doc
    if unit := unit_of(field):
        schema["x-unit"] = unit
    return schema


def _object(fields: Sequence[pa.Field]) -> Schema:
    return {
        "type": "object",
        "properties": {field.name: field_schema(field) for field in fields},
        "required": [field.name for field in fields if not field.nullable],
        "additionalProperties": False,
    }


def _head(group: str, name: str, doc: str) -> Schema:
    head = {"$schema": DIALECT, "$id": f"urn:analyze:{group}:{name}", "title": name}
    return head | ({"description": doc} if doc else {})


def row_schema(group: str, name: str, schema: pa.Schema) -> Schema:
    """JSON Schema of one row."""
    doc = (schema.metadata or {}).get(b"doc", b"").decode()
    version = {"x-contract-version": CONTRACT_VERSION} if group == "tables" else {}
    return _head(group, name, doc) | version | _object(list(schema))


def native_schema(name: str, kind: Any) -> Schema:  # noqa: ANN401 - a Struct or a union of them
    """JSON Schema of one native record, as msgspec checks it."""
    return _head("native", name, "") | msgspec.json.schema(kind)


def schemas() -> dict[str, dict[str, Schema]]:
    """Group -> name -> schema, in the order in which the contract lists them."""
    return {
        "tables": {name: row_schema("tables", name, schema) for name, schema in TABLES.items()},
        "native": {name: native_schema(name, kind) for name, kind in NATIVE.items()},
        "output": {name: row_schema("output", name, schema) for name, schema in OUTPUTS.items()},
    }


def documents() -> dict[str, str]:
    """Every published file: path below ``schemas/`` -> text. The same bytes every time."""
    groups = schemas()
    files = {
        f"{group}/{name}.schema.json": json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
        for group, members in groups.items()
        for name, schema in members.items()
    }
    return files | {"README.md": "\n".join(_readme(groups)).rstrip() + "\n"}


def _readme(groups: Mapping[str, Mapping[str, Schema]]) -> Iterator[str]:
    yield INTRO
    for group, members in groups.items():
        title, intro = GROUPS[group]
        yield f"## {title}\n\n{intro}\n"
        for name, schema in members.items():
            yield f"### [{name}]({group}/{name}.schema.json)\n"
            if doc := schema.get("description"):
                yield f"{doc}\n"
            for part, body in _objects(schema):
                yield from _markdown_table(part, body)


def _objects(schema: Schema) -> Iterator[tuple[str, Schema]]:
    """Yield the schema itself if it describes an object, then every object it defines."""
    if "properties" in schema:
        yield "", schema
    yield from schema.get("$defs", {}).items()


def _markdown_table(part: str, body: Schema) -> Iterator[str]:
    if part:
        yield f"`{part}`: {body.get('description', '')}\n"
    yield "| column | type | unit | meaning |"
    yield "|---|---|---|---|"
    required = body.get("required", ())
    for name, field in body["properties"].items():
        kind = _type_name(field) + (", required" if name in required else "")
        cells = (kind, field.get("x-unit", ""), field.get("description", ""))
        yield f"| `{name}` | {' | '.join(map(_cell, cells))} |"
    yield ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _type_name(field: Schema) -> str:
    """Short name of a type for people; null is left out, for ``required`` tells it."""
    if "$ref" in field:
        return str(field["$ref"]).rsplit("/", 1)[-1]
    if "enum" in field:
        return " or ".join(f"`{value}`" for value in field["enum"] if value is not None)
    if "anyOf" in field:
        names = dict.fromkeys(_type_name(option) for option in field["anyOf"])
        silent = {"null", "integer"} if "number" in names else {"null"}
        return " or ".join(name for name in names if name not in silent)
    kind = field.get("type", "any")
    name = next((k for k in kind if k != "null"), "null") if isinstance(kind, list) else str(kind)
    if name == "string" and "pattern" in field:
        return "decimal string"
    if name == "array" and "items" in field:
        return f"array of {_type_name(field['items'])}"
    if name == "object" and isinstance(field.get("additionalProperties"), dict):
        return f"object of {_type_name(field['additionalProperties'])}"
    return name


def publish(folder: Path) -> None:
    """Write every document, and remove schemas that are no longer published."""
    files = documents()
    for old in sorted(folder.glob("*/*.schema.json")):
        if old.relative_to(folder).as_posix() not in files:
            old.unlink()
    for path, text in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    publish(Path(sys.argv[1] if len(sys.argv) > 1 else "schemas"))

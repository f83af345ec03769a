"""``schemas/`` is what the contract publishes today, and says it in valid JSON Schema."""

import json
from pathlib import Path

import pyarrow as pa
import pytest
from jsonschema import Draft202012Validator, SchemaError

from analyzer.contract import publish

SCHEMAS = Path(__file__).parents[1] / "schemas"


def files_below(folder):
    return {
        p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()
    }


def test_committed_schemas_are_current(tmp_path):
    publish.publish(tmp_path)
    now, committed = files_below(tmp_path), files_below(SCHEMAS)
    stale = sorted(
        name for name in now.keys() | committed.keys() if now.get(name) != committed.get(name)
    )
    assert not stale, "run: make schemas"


def test_publish_removes_what_is_no_longer_published(tmp_path):
    gone = tmp_path / "tables" / "gone.schema.json"
    gone.parent.mkdir()
    gone.write_text("{}")
    publish.publish(tmp_path)
    assert not gone.exists()


def test_every_schema_is_valid_draft_2020_12():
    wrong = {}
    for group, members in publish.schemas().items():
        for name, schema in members.items():
            try:
                Draft202012Validator.check_schema(schema)
            except SchemaError as error:
                wrong[group, name] = error.message
    assert not wrong


@pytest.mark.parametrize("group", ["tables", "output"])
def test_every_row_and_column_says_what_it_means(group):
    for name, schema in publish.schemas()[group].items():
        assert schema.get("description"), name
        for column, field in schema["properties"].items():
            assert field.get("description"), f"{name}.{column}"


def test_numbers_of_a_table_name_their_unit():
    for name, schema in publish.TABLES.items():
        for field in schema:
            if field.name not in {"source_id", "record"} and not pa.types.is_decimal(field.type):
                number = pa.types.is_integer(field.type) or pa.types.is_floating(field.type)
                assert not number or publish.unit_of(field), f"{name}.{field.name} has no unit"


def test_a_row_with_every_kind_of_value():
    schema = publish.row_schema(
        "output",
        "x",
        pa.schema(
            [
                pa.field("id", pa.string(), nullable=False),
                pa.field("n", pa.int64()),
                pa.field("usd", pa.decimal128(18, 9)),
                pa.field("tags", pa.map_(pa.string(), pa.string())),
                pa.field("rows", pa.list_(pa.struct([pa.field("at", pa.timestamp("ns", "UTC"))]))),
            ]
        ),
    )
    check = Draft202012Validator(schema)
    full = {"id": "a", "n": None, "usd": "-1.5", "tags": {"k": "v"}, "rows": [{"at": "2026-01-01"}]}
    assert check.is_valid(full)
    assert check.is_valid({"id": "a"})
    for wrong in ({"id": None}, {}, {"id": "a", "other": 1}, {"id": "a", "usd": 1.5}):
        assert not check.is_valid(wrong), wrong


def test_readme_names_every_schema():
    text = publish.documents()["README.md"]
    for group, members in publish.schemas().items():
        for name, schema in members.items():
            assert f"]({group}/{name}.schema.json)" in text
            assert all(f"| `{column}` |" in text for column in schema.get("properties", ()))


def test_documents_are_deterministic():
    assert json.dumps(publish.documents()) == json.dumps(publish.documents())

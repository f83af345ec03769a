"""Parquet through a mapping: types of its own, damage, and what is recognised by its columns."""

import random

import pyarrow as pa
from pyarrow import parquet
from test_mapping_cells import MAPPING, VANTAGE, S, T, through
from test_readers import read, rows_of, totals

import analyzer
from analyzer.readers._file import InputFile
from analyzer.readers._find import pick


def written(table, path, **options):
    parquet.write_table(table, path, **options)
    return path.read_bytes()


def test_parquet_with_types_of_its_own(tmp_path):
    at = pa.array([T // 1000, T // 1000 + 1, None], pa.timestamp("us", "UTC"))
    table = pa.table(
        {
            "at": at,
            "local": pa.array([T // S, None, T // S], pa.timestamp("s")),
            "took": pa.array([0.25, None, float("nan")], pa.float64()),
            "usage": pa.array([{"in": 5}, {"in": -1}, None], pa.struct([("in", pa.int32())])),
            "model": pa.array(["m", "m", None]).dictionary_encode(),
            "ok": pa.array([True, False, None]),
            "cost": pa.array(["0.1", "2", None]).cast(pa.decimal128(9, 2)),
            "h": pa.array([[1, 2], None, [3]], pa.list_(pa.int64())),
            "big": pa.array([2**64 - 1, 1, None], pa.uint64()),
        }
    )
    columns = (
        'at = {to = "start_ns", unit = "rfc3339"}\ntook = {to = "e2e_ns", unit = "s"}\n'
        '"usage.in" = "input_fresh_tokens"\nmodel = "model"\nok = "streamed"\n'
        'cost = "reported_cost_usd"\nh = "prefix_hashes"\nbig = "turn"\n'
        'absent = {to = "route", optional = true}'
    )
    data = written(table, tmp_path / "made.parquet")
    rows, problems, batches = through(columns, data, tmp_path, name="theirs.parquet")
    assert str(rows[1].pop("reported_cost_usd")) == "0.100000000"
    assert rows[1] == {
        "start_ns": T, "e2e_ns": S // 4, "input_fresh_tokens": 5, "model": "m", "streamed": True,
    }  # fmt: skip
    assert rows[2]["start_ns"] == T + 1000
    assert rows[2]["streamed"] is False
    assert rows[2]["turn"] == 1
    assert set(problems) == {1, 2}
    assert 3 not in rows or rows[3] == {}
    assert sum(table == "prompt_block" for table, _ in rows_of(batches)) >= 2


def test_parquet_of_a_known_kind_is_recognised_and_a_cut_one_is_one_problem(tmp_path):
    table = pa.table(
        {
            "TIMESTAMP": pa.array([T], pa.timestamp("ns")),
            "ContextTokens": [4],
            "GeneratedTokens": [2],
        }
    )
    path = tmp_path / "azure.parquet"
    data = written(table, path)
    assert pick(InputFile(path, path.name).head).reader == MAPPING
    ((_, row),) = rows_of(read(MAPPING, path))
    assert (row["start_ns"], row["input_fresh_tokens"]) == (T, 4)
    path.write_bytes(data[:-20])
    found = pick(InputFile(path, path.name).head)
    assert "cut or damaged" in found.why
    mapping = tmp_path / "mine.toml"
    mapping.write_text(f'[columns]\nx = "model"\n{VANTAGE}')
    result = analyzer.ingest(
        str(tmp_path / "c.duckdb"), [str(path)], reader="mapping", mapping=str(mapping)
    )
    assert (result.files[0].records, result.files[0].problems) == (1, 1)
    assert "copy it again" in result.problems[0]["reason"]


def test_damaged_parquet_never_raises(tmp_path):
    dice = random.Random(5)
    rows = 3_000
    table = pa.table({"a": [str(i) for i in range(rows)], "n": list(range(rows))})
    data = written(table, tmp_path / "made.parquet", row_group_size=500)
    for _ in range(40):
        damaged = bytearray(data)
        for _ in range(dice.choice((1, 3, 20))):
            damaged[dice.randrange(len(damaged))] ^= 1 << dice.randrange(8)
        _, _, batches = through(
            'a = "request_id"\nn = "turn"', bytes(damaged), tmp_path, name="theirs.parquet"
        )
        assert totals(batches)[0] <= rows + 1

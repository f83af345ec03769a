"""Cells of foreign tables: units, numbers, dialects of CSV, JSON Lines and Parquet."""

import gzip

import pytest
import zstandard
from test_readers import OPTIONS, READERS, read, rows_of, totals

from analyzer.readers import _mapping_rows
from analyzer.readers._file import BOM
from analyzer.readers._mapping import plan_of
from analyzer.readers._reader import Options

MAPPING = READERS["mapping"]
VANTAGE = '[constants]\nvantage = "gateway"\n'
S = 1_000_000_000


def plan(columns, rest=VANTAGE, head=""):
    return plan_of("mine.toml", f"{head}\n[columns]\n{columns}\n{rest}".encode())


def through(columns, data, tmp_path, *, rest=VANTAGE, head="", name="theirs.csv", **options):
    """Rows of the request table (record -> columns of theirs that matter) and the problems."""
    file = tmp_path / name
    file.write_bytes(data if isinstance(data, bytes) else data.encode())
    made = Options(today_ns=OPTIONS.today_ns, mapping=plan(columns, rest, head), **options)
    batches = read(MAPPING, file, made)
    own = {"record", "vantage", "clock", "timing", "usage_convention"}
    rows = {
        row["record"]: {key: value for key, value in row.items() if key not in own}
        for table, row in rows_of(batches)
        if table == "request"
    }
    problems = {p.record: p.reason for batch in batches for p in batch.problems}
    return rows, problems, batches


# -- cells --------------------------------------------------------------------------------------

T = 1_700_000_000 * S


@pytest.mark.parametrize(
    ("unit", "cell", "ns"),
    [
        ("epoch_s", "1700000000", T),
        ("epoch_s", "1700000000.123456789", T + 123_456_789),
        ("epoch_s", "1.7e9", T),
        ("epoch_ms", "1700000000250", T + S // 4),
        ("epoch_us", "1700000000000250", T + 250_000),
        ("epoch_ns", "1700000000000000001", T + 1),
        ("rfc3339", "2023-11-14T22:13:20Z", T),
        ("rfc3339", "2023-11-14 22:13:20.1234567", T + 123_456_700),
        ("rfc3339", "2023-11-14T23:13:20+01:00", T),
        ("rfc3339", "2023-11-14T16:43:20.5-0530", T + S // 2),
        ("rfc3339", "2023-11-14t22:13:20,25z", T + S // 4),
        ("rfc3339", "2016-12-31T23:59:60Z", 1_483_228_800 * S),
        ("epoch_s", "1700000000250", None),  # milliseconds, told as seconds
        ("epoch_ms", "1700000000", None),
        ("epoch_s", "-5", None),
        ("epoch_s", "Infinity", None),
        ("epoch_s", "9" * 400, None),
        ("epoch_s", "1_700_000_000", None),
        ("epoch_s", "2023-11-14T22:13:20Z", None),
        ("rfc3339", "1700000000", None),
        ("rfc3339", "2023-02-30T00:00:00Z", None),
        ("rfc3339", "2023-11-14T22:13:20+99:00", None),
        ("rfc3339", "0001-01-01T00:00:00Z", None),
        ("rfc3339", "2023-11-14", None),
    ],
)
def test_a_time_in_its_unit(unit, cell, ns, tmp_path):
    rows, problems, _ = through(
        f'at = {{to = "start_ns", unit = "{unit}"}}\nm = "model"',
        f"at;m\n{cell};a\n",
        tmp_path,
        zone="UTC",
    )
    assert rows[2].get("start_ns") == ns
    assert (2 in problems) == (ns is None)
    if ns is None:
        assert "'at'" in problems[2]
        assert cell not in problems[2]


@pytest.mark.parametrize(
    ("unit", "cell", "ns"),
    [
        ("s", "0.06803417205810547", 68_034_172),
        ("s", "0.0000000015", 2),
        ("ms", "12.5", 12_500_000),
        ("us", "3", 3_000),
        ("ns", "7.0", 7),
        ("s", "1e-3", 1_000_000),
        ("s", "", None),
        ("s", "NULL", None),
        ("s", "NaN", None),
        ("s", "-", None),
    ],
)
def test_a_duration_in_its_unit(unit, cell, ns, tmp_path):
    columns = f'd = {{to = "e2e_ns", unit = "{unit}"}}\nm = "model"'
    rows, problems, _ = through(columns, f"d,m\n{cell},a\n", tmp_path, head='null = ["-"]')
    assert rows[2].get("e2e_ns") == ns
    assert not problems


@pytest.mark.parametrize("cell", ["-1", "abc", "Infinity", "1e300", "320000001", "0x10", "1,5"])
def test_a_duration_that_cannot_be_is_a_problem_of_its_row_only(cell, tmp_path):
    columns = 'd = {to = "e2e_ns", unit = "s"}\nn = "input_fresh_tokens"'
    rows, problems, _ = through(columns, f'd,n\n1,5\n"{cell}",6\n2,7\n', tmp_path)
    assert rows[3] == {"input_fresh_tokens": 6}
    assert list(problems) == [3]
    assert "'d' is no duration in s" in problems[3]


@pytest.mark.parametrize(
    ("cell", "count"),
    [("21073.0", 21073), ("0", 0), ("1e3", 1000), ("", None), ("N/A", None)],
)
def test_counts_and_what_is_missing_is_not_zero(cell, count, tmp_path):
    rows, problems, _ = through(
        'n = "output_visible_tokens"\nm = "model"', f"n,m\n{cell},a\n", tmp_path
    )
    assert rows[2].get("output_visible_tokens") == count
    assert not problems


@pytest.mark.parametrize("cell", ["-1", "1.5", "9" * 20, "9" * 5000, "true", "≤ 200k"])
def test_a_count_that_cannot_be_is_a_problem(cell, tmp_path):
    rows, problems, _ = through('n = "turn"\nm = "model"', f"n,m\n{cell},a\n", tmp_path)
    assert rows == {2: {"model": "a"}}
    assert "whole number" in problems[2]


def test_flags_money_and_errors(tmp_path):
    columns = 's = "streamed"\nc = "reported_cost_usd"\ne = "error"'
    text = "s,c,e\nTrue,$0.02,the user wrote: HTTP status 429\n0,Included,\nmaybe,1.5,x\n"
    rows, problems, _ = through(columns, text, tmp_path, head='null = ["Included"]')
    assert rows[2]["streamed"] is True
    assert str(rows[2]["reported_cost_usd"]) == "0.020000000"
    assert rows[2]["error"] == "http 429"
    assert rows[3] == {"streamed": False}
    assert rows[4]["error"] == "error"
    assert "neither true nor false" in problems[4]


def test_totals_are_split_into_disjoint_buckets(tmp_path):
    columns = (
        'i = "input_fresh_tokens"\nc = "cache_read_tokens"\no = "output_visible_tokens"\n'
        'r = "output_reasoning_tokens"\nt = "total_tokens"'
    )
    text = "i,c,o,r,t\n100,40,20,5,120\n100,,20,,120\n10,40,20,5,30\n100,40,20,5,999\n"
    rows, problems, _ = through(columns, text, tmp_path, head='tokens = "inclusive"')
    assert rows[2] == {
        "input_fresh_tokens": 60, "cache_read_tokens": 40,
        "output_visible_tokens": 15, "output_reasoning_tokens": 5,
    }  # fmt: skip
    assert rows[3] == {"input_fresh_tokens": 100, "output_visible_tokens": 20}
    assert "input_fresh_tokens" not in rows[4]
    assert "exclusive" in problems[4]
    assert "'t' is not the sum" in problems[5]
    assert rows[5]["usage_contradiction"] == "the total of tokens is not the sum of its parts"
    rows, problems, _ = through(columns, text, tmp_path, head='tokens = "exclusive"')
    assert rows[4]["input_fresh_tokens"] == 10


def test_times_of_a_row_give_its_durations(tmp_path):
    columns = "\n".join(
        f'{name} = {{to = "{ours}", unit = "epoch_s"}}'
        for name, ours in (
            ("planned", "scheduled_ns"), ("began", "start_ns"),
            ("token", "first_token_ns"), ("ended", "end_ns"),
        )
    )  # fmt: skip
    text = "planned,began,token,ended\n1700000000,1700000001.5,1700000002,1700000009\n"
    text += "1700000005,1700000001,1700000000,1700000001\n"
    rows, problems, _ = through(columns, text, tmp_path)
    assert rows[2] == {
        "start_ns": T + 3 * S // 2, "hold_ns": 3 * S // 2, "ttft_ns": S // 2,
        "e2e_ns": 15 * S // 2,
    }  # fmt: skip
    assert rows[3] == {"start_ns": T + S, "e2e_ns": 0}
    assert "'planned' is after 'began'" in problems[3]
    assert "'began' is after 'token'" in problems[3]


def test_relative_times_have_no_date_unless_an_origin_gives_one(tmp_path):
    columns = 't = {to = "start_ns", unit = "ms"}'
    _, _, batches = through(columns, "t,x\n1500,1\n", tmp_path)
    ((_, row),) = rows_of(batches)
    assert (row["start_ns"], row["clock"]) == (1_500_000_000, "monotonic")
    assert any("no request of it has a date" in note for note in batches[0].assumed)
    columns = 't = {to = "start_ns", unit = "ms", origin = "2023-11-14T22:13:20Z"}'
    _, _, batches = through(columns, "t,x\n1500,1\n", tmp_path)
    ((_, row),) = rows_of(batches)
    assert (row["start_ns"], row["clock"]) == (T + 1_500_000_000, "wall")
    assert not batches[0].assumed


def test_a_zone_the_times_lack_is_taken_and_told(tmp_path):
    columns = 't = {to = "start_ns", unit = "rfc3339"}'
    text = "t,x\n2023-11-14 23:13:20,1\n2023-11-14T22:13:20Z,1\n"
    for head, options in (('zone = "Europe/Berlin"', {}), ("", {"zone": "Europe/Berlin"})):
        rows, _, batches = through(columns, text, tmp_path, head=head, **options)
        assert {row["start_ns"] for row in rows.values()} == {T}
        noted = any("Europe/Berlin" in note for note in batches[0].assumed)
        assert noted == bool(options)


def test_tags_are_labels_and_no_place_for_prompts(tmp_path):
    text = "m,tenant,note\na,acme,x\nb,,my secret " + "word " * 60 + "\n"
    _, problems, batches = through('m = "model"', text, tmp_path, head='tags = ["tenant", "note"]')
    tags = [row for table, row in rows_of(batches) if table == "request_tag"]
    assert [(t["record"], t["name"], t["value"]) for t in tags] == [
        (2, "tenant", "acme"), (2, "note", "x"),
    ]  # fmt: skip
    assert "'note' is too long for a label" in problems[3]
    assert not any("secret" in p.excerpt for b in batches for p in b.problems)


# -- CSV ----------------------------------------------------------------------------------------

COLUMNS = '"Request Id" = "request_id"\ncount = "input_fresh_tokens"'
ROWS = {2: {"request_id": "a", "input_fresh_tokens": 5}, 3: {"request_id": "b,c"}}


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("bom", [b"", BOM])
@pytest.mark.parametrize("last", [True, False])
def test_dialects_of_csv(delimiter, newline, bom, last, tmp_path):
    lines = [["other", "Request Id", "count"], ["1", "a", "5"], ["2", '"b,c"', ""]]
    text = newline.join(delimiter.join(line) for line in lines) + (newline if last else "")
    rows, problems, batches = through(COLUMNS, bom + text.encode(), tmp_path)
    assert rows == ROWS
    assert not problems
    assert totals(batches) == (3, 2, {"header line": 1})


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress])
def test_packed_csv(pack, tmp_path):
    text = b'other,Request Id,count\n1,a,5\n2,"b,c",\n'
    rows, _, _ = through(COLUMNS, pack(text), tmp_path, name="theirs.csv.x")
    assert rows == ROWS


def test_decimal_commas_and_other_words_for_nothing(tmp_path):
    head = 'decimal = ","\nnull = ["k. A."]'
    rows, problems, _ = through(
        'Dauer = {to = "e2e_ns", unit = "s"}\nAnzahl = "turn"',
        "Anzahl;Dauer\n1;1,5\nk. A.;2\n", tmp_path, head=head,
    )  # fmt: skip
    assert rows == {2: {"turn": 1, "e2e_ns": 3 * S // 2}, 3: {"e2e_ns": 2 * S}}
    assert not problems


def test_a_csv_without_a_header_line(tmp_path):
    rows, _, batches = through(
        'id = "request_id"\nn = "turn"', "a,1\nb,2\n", tmp_path, head='header = ["id", "n"]'
    )
    assert rows == {1: {"request_id": "a", "turn": 1}, 2: {"request_id": "b", "turn": 2}}
    assert totals(batches) == (2, 2, {})


def test_quoted_cells_may_hold_lines_and_a_stray_quote_costs_its_row(tmp_path):
    text = b'Request Id,count\n"a\n\nb",1\nc,2\nd"",3\n"e,4\nf,5\ng""h,6\n"i"",7\nj,8\n'
    rows, problems, _ = through(COLUMNS, text, tmp_path)
    ids = {row["request_id"]: record for record, row in rows.items()}
    assert ids["c"] == 5
    assert {"f", "j"} <= ids.keys()
    assert set(problems) <= {6, 7, 10}
    assert any("never closed" in reason or "cells" in reason for reason in problems.values())


def test_bad_lines_cost_themselves(tmp_path):
    lines = [
        b"Request Id,count", b"a,1", b"b", b"c,3,x", b"d\xff,4", b"e\rf,5", b"", b"g\0,6", b"h,7",
        b"i" * 200_000 + b",8", b'"' + b"k" * 200_000 + b'",9', b"l,10",
    ]  # fmt: skip
    rows, problems, batches = through(COLUMNS, b"\n".join(lines), tmp_path)
    assert {2, 8, 9, 12} <= rows.keys()
    assert {3, 4, 5, 6} <= problems.keys()
    assert problems[4] == "3 cells where the header has 2"
    assert "UTF-8" in problems[5]
    assert totals(batches)[2] == {"header line": 1, "blank line": 1}
    for problem in (p for batch in batches for p in batch.problems):
        assert b"\n".join(lines)[problem.byte_offset :].startswith(lines[problem.record - 1])


def test_many_rows_come_in_many_batches(tmp_path, monkeypatch):
    monkeypatch.setattr(_mapping_rows, "BLOCK_BYTES", 20_000)
    count = 3_000
    text = "Request Id,count\n" + "".join(f"request-number-{i:012},{i}\n" for i in range(count))
    rows, problems, batches = through(COLUMNS, text, tmp_path)
    assert len(batches) > 4
    assert len(rows) == count
    assert not problems
    assert all(row["input_fresh_tokens"] == record - 2 for record, row in rows.items())


def test_a_column_twice_is_refused(tmp_path):
    _, problems, _ = through(COLUMNS, "Request Id,count,count\na,1,2\n", tmp_path)
    assert "'count' twice" in problems[1]


# -- JSON Lines ---------------------------------------------------------------------------------


def test_json_lines_with_keys_inside_keys(tmp_path):
    columns = (
        'id = "request_id"\n"usage.in" = "input_fresh_tokens"\n'
        '"a.b" = {to = "ttft_ns", unit = "s", optional = true}\ne = {to = "e2e_ns", unit = "ms"}'
    )
    lines = [
        '{"id": 7, "usage": {"in": 5}, "e": 1.5}',
        '{"id": "b", "usage": null, "a.b": 0.25, "e": NaN}',
        '{"id": "c", "usage": {"in": [1]}, "e": Infinity}',
        '{"id": {"x": 1}, "usage": {"in": 1' + "0" * 30 + '}, "e": true}',
        '{"id": "\\ud800", "id": "e", "usage": {"in": 2.0}}',
        "[1]", '{"id": "f"', "",
        '{"x": 1}',
        '{"id": "g", "usage": {"in": 1}',
    ]  # fmt: skip
    rows, problems, batches = through(columns, "\n".join(lines), tmp_path, name="theirs.jsonl")
    assert rows == {
        1: {"request_id": "7", "input_fresh_tokens": 5, "e2e_ns": 1_500_000},
        2: {"request_id": "b", "ttft_ns": 250_000_000},
        3: {"request_id": "c"},
        5: {"request_id": "e", "input_fresh_tokens": 2},
    }
    assert set(problems) == {3, 4, 6, 7, 10}
    assert "cut off" in problems[10]
    assert totals(batches)[2] == {"blank line": 1, "row without values": 1}


def test_prefix_hashes_of_every_kind(tmp_path):
    columns = 'h = "prefix_hashes"\nm = "model"'
    lines = [
        '{"m": "a", "h": [1, 2]}', '{"m": "a", "h": []}', '{"m": "a", "h": null}',
        '{"m": "a", "h": ["x", "y"]}', '{"m": "a", "h": [1, [2]]}', '{"m": "a", "h": "x"}',
        '{"m": "a", "h": [99999999999999999999999]}',
    ]  # fmt: skip
    rows, problems, batches = through(columns, "\n".join(lines), tmp_path, name="theirs.jsonl")
    blocks = [
        (row["record"], row["block_index"], row["prefix_hash"])
        for table, row in rows_of(batches)
        if table == "prompt_block"
    ]
    assert blocks[:4] == [(1, 0, "1"), (1, 1, "2"), (4, 0, "x"), (4, 1, "y")]
    assert len(rows) == 7
    assert set(problems) == {5, 6}

"""Readers of network logs against real files, where these lie beside the checkout."""

import json

import pytest
from helpers import engine_of
from shared import SHARED, needs_shared
from test_readers import READERS, read, rows_of

import analyzer
from analyzer.readers._file import InputFile
from analyzer.readers._find import pick

pytestmark = needs_shared

NETWORK = SHARED / "formats/samples/clients/network"
ARCHIVES = SHARED / "formats/samples/clients/har"
BEDROCK = SHARED / "traces/4-otel-http/Arize-ai__openinference"
MS = 1_000_000
UNREAD = "GET, HEAD or OPTIONS: no model call"


def told(path, reader):
    """Rows by table, and what was ignored; one reader claims it and has no problem with it."""
    found = pick(InputFile(path, path.name).head)
    assert found.reader is READERS[reader], found.why
    batches = read(READERS[reader], path)
    assert [problem for batch in batches for problem in batch.problems] == []
    tables = {"request": [], "request_tag": []}
    for table, row in rows_of(batches):
        tables[table].append(row)
    return tables, [pair for batch in batches for pair in batch.ignored.items()]


def test_nginx_lab_lines_say_what_the_experiment_did():
    tables, ignored = told(NETWORK / "nginx_lab_sse_access.log", "nginx_access")
    rows = {row["record"]: row for row in tables["request"]}
    assert ignored == [(UNREAD, 1)]
    # Buffered or not, by header or not: the log is the same, and no row says which it was.
    for record in (1, 2, 3, 5, 6):
        assert abs(rows[record]["upstream_headers_ns"] - 305 * MS) <= 3 * MS
        assert "ttft_ns" not in rows[record]
    assert {rows[record]["upstream_calls"] for record in rows} == {1, 2}
    retried = rows[4]
    assert (retried["upstream_calls"], retried["upstream_failed_ns"]) == (2, 0)
    assert (retried["upstream_headers_ns"], retried["upstream_ns"]) == (302 * MS, 1_317 * MS)
    assert (retried["connect_ns"], retried["route"]) == (1 * MS, "127.0.0.1:35895")
    # The client left in mid-stream: the status is still 200.
    left = [record for record, row in rows.items() if row.get("finish_reason") == "abort"]
    assert left == [8, 9]
    assert {rows[record]["status"] for record in left} == {200}
    # A slow client: seen apart from the upstream only where nginx buffers.
    assert rows[10]["e2e_ns"] - rows[10]["upstream_ns"] == 1_569 * MS
    assert rows[11]["e2e_ns"] - rows[11]["upstream_ns"] == 568 * MS
    # Compressed into one burst: fewer bytes left than came, which is the only hint.
    small = [tag["record"] for tag in tables["request_tag"] if tag["name"] == "compressed_stream"]
    assert small == [12]
    # The stamp is the end.
    assert rows[1]["start_ns"] + rows[1]["e2e_ns"] == 1_795_954_150_913 * MS


def test_nginx_published_lines():
    tables, ignored = told(NETWORK / "nginx_json_access.log", "nginx_access")
    (row,) = tables["request"]
    assert ignored == [(UNREAD, 3)]
    assert (row["request_id"], row["response_id"]) == ("req-fixture-1", "nginx-raw")
    assert (row["e2e_ns"], row["upstream_ns"], row["upstream_headers_ns"], row["connect_ns"]) == (
        350 * MS, 300 * MS, 125 * MS, 25 * MS,
    )  # fmt: skip


def test_nginx_lists_and_dashes_of_the_published_lines(tmp_path):
    text = (NETWORK / "nginx_json_access.log").read_text().replace('"GET"', '"POST"')
    path = tmp_path / "access.log"
    path.write_text(text)
    tables, ignored = told(path, "nginx_access")
    # "-" alone is no upstream; "0.000, 0.110" is a call that failed and one that answered.
    assert ignored == [("answered by the proxy itself", 1)]
    rows = {row["record"]: row for row in tables["request"]}
    assert (rows[2]["upstream_calls"], rows[2]["upstream_ns"]) == (2, 110 * MS)
    assert (rows[3]["upstream_calls"], rows[3]["upstream_ns"]) == (1, 146 * MS)


def test_envoy_and_alb_lines(tmp_path):
    istio = tmp_path / "istio.log"
    lines = (NETWORK / "envoy_istio_json_access.log").read_text().splitlines()
    istio.write_text(lines[0].replace('"GET"', '"POST"') + "\n")
    tables, _ = told(istio, "envoy_access")
    (row,) = tables["request"]
    assert (row["e2e_ns"], row["upstream_headers_ns"], row["status"]) == (1 * MS, 1 * MS, 200)
    assert row["start_ns"] == 1_601_436_162_267 * MS
    assert row["request_id"] == "9bab4f77-f271-9d8b-9cf7-127055663144"
    alb = tmp_path / "alb.log"
    alb.write_text((NETWORK / "alb_access.log").read_text().replace('"GET', '"POST'))
    tables, _ = told(alb, "alb_access")
    (row,) = tables["request"]
    assert (row["e2e_ns"], row["upstream_headers_ns"]) == (440_351_000, 440 * MS)
    assert row["request_id"] == "1-58337262-36d228ad5d99923122bbe354"


def test_curl_phases_add_up():
    for name, connect, total in (
        ("curl_w_json.json", 4_807_000, 1_320_474_000),
        ("curl_w_text.txt", 8_567_000, 1_326_669_000),
    ):
        tables, _ = told(NETWORK / name, "curl_timings")
        (row,) = tables["request"]
        assert (row["connect_ns"], row["e2e_ns"]) == (connect, total)
        assert "tls_ns" not in row
        assert "ttft_ns" not in row
        assert "start_ns" not in row


@pytest.mark.parametrize(
    ("folder", "pattern", "wait"),
    [(ARCHIVES, "bedrock*.har", 4_175), (BEDROCK, "bedrock*.har", 9_198)],
)
def test_a_recorded_bedrock_call_was_not_streamed(folder, pattern, wait, tmp_path):
    (path,) = folder.glob(pattern)
    tables, _ = told(path, "har")
    (row,) = tables["request"]
    assert (row["e2e_ns"], row["streamed"], row["status"]) == (wait * MS, False, 200)
    for name in ("ttft_ns", "dns_ns", "connect_ns", "tls_ns"):
        assert name not in row
    db = str(tmp_path / "case.duckdb")
    analyzer.ingest(db, [str(path)])
    kept = json.dumps(analyzer.sql(db, "SELECT * FROM request").rows, default=str)
    assert "Task decomposition" not in kept
    assert "Microsoft" not in kept


def test_archives_of_browsing_have_no_model_calls():
    for name, entries in (("cnn.har", 145), ("humanssuck.har", 4)):
        tables, ignored = told(ARCHIVES / name, "har")
        assert tables["request"] == []
        assert ignored == [(UNREAD, entries)]


def test_connecting_is_a_named_part_of_the_network(tmp_path):
    path = tmp_path / "browsing.har"
    path.write_text((ARCHIVES / "cnn.har").read_text().replace('"GET"', '"POST"'))
    entries = json.loads(path.read_text())["log"]["entries"]
    db = str(tmp_path / "case.duckdb")
    analyzer.ingest(db, [str(path)])
    with engine_of(db) as engine:
        (found,) = engine.rows(
            "SELECT count(*) AS parts, CAST(SUM(part_ns) AS BIGINT) AS ns FROM resolve_named_part "
            "WHERE part = 'connect'"
        )
    told_ms = [
        one["timings"]["connect"] for one in entries if one["timings"].get("connect", -1) > 0
    ]
    assert (found["parts"], found["ns"]) == (len(told_ms), sum(told_ms) * MS)

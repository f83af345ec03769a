"""Access logs beside other vantages: the way splits into its hops, retries are found, ids join."""

from __future__ import annotations

import gzip
import json
import tomllib
from importlib import resources

import pytest
from helpers import engine_of
from test_readers import READERS, SAMPLES, read, rows_of

import analyzer
from analyzer.readers._file import InputFile
from analyzer.readers._find import pick
from analyzer.simulate.run import simulate
from analyzer.simulate.world import from_dict

MS = 1_000_000
WORLDS = resources.files("analyzer.simulate") / "worlds"
WORLD = {
    "name": "hops",
    "seed": 11,
    "start": "2026-03-11T09:00:00Z",
    "duration_s": 120,
    "client": {"timeout_s": 20, "retries": 0},
    "network": {"latency_ms": 14, "jitter_ms": 3},
    "gateway": {
        "routes": [
            {"name": "default", "failing": 0.15, "fallback": "spare"},
            {"name": "spare", "replicas": ["engine-1"]},
        ]
    },
    "replicas": [{"name": "engine-0"}, {"name": "engine-1"}],
    "arrivals": [{
        "rate_per_s": 0.8, "prompt_tokens": {"mean": 600, "cv": 0.7},
        "output_tokens": {"mean": 120, "cv": 0.6}, "model": "lyra-70b",
    }],
    "logs": [
        {"format": "stream"}, {"format": "nginx", "skew_ms": 250}, {"format": "spans"},
        {"format": "truth"},
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """The folder of a simulated run, its truth by id, and the case of its logs."""
    folder = tmp_path_factory.mktemp("hops")
    simulate(from_dict(WORLD), folder)
    lines = (folder / "truth.jsonl").read_text().splitlines()
    truth = {one["id"]: one for one in map(json.loads, lines) if "event" not in one}
    logs = [str(path) for path in folder.iterdir() if path.name != "truth.jsonl"]
    db = str(folder / "case.duckdb")
    analyzer.ingest(db, logs)
    return folder, truth, db


def gateway_rows(folder):
    batches = read(READERS["nginx_access"], folder / "access.log")
    assert [problem for batch in batches for problem in batch.problems] == []
    requests, tags = {}, {}
    for table, row in rows_of(batches):
        if table == "request":
            requests[row["record"]] = row
        else:
            tags.setdefault(row["record"], {})[row["name"]] = row["value"]
    return {row["request_id"]: (row, tags.get(record, {})) for record, row in requests.items()}


def test_what_the_simulated_gateway_wrote_reads_back_to_the_truth(world):
    folder, truth, _ = world
    rows = gateway_rows(folder)
    assert set(rows) == set(truth)
    assert any(len(one["tries"]) > 1 for one in truth.values())
    for name, one in truth.items():
        row, tags = rows[name]
        calls = one["tries"]
        assert abs(row["start_ns"] - one["gateway_in_ns"] - 250 * MS) <= 1 * MS
        assert abs(row["e2e_ns"] - one["gateway_out_ns"] + one["gateway_in_ns"]) <= 1 * MS
        spent = sum(call["end_ns"] - call["start_ns"] for call in calls)
        assert abs(row["upstream_ns"] - spent) <= len(calls) * MS
        assert row["status"] == one["status"]
        assert row["route"] == f"{calls[-1]['replica'] or calls[-1]['route']}:8000"
        assert row["streamed"] is True
        assert row["upstream_calls"] == len(calls)
        assert ("upstream_failed_ns" in row) == (len(calls) > 1)
        if len(calls) > 1:
            failed = sum((call["end_ns"] - call["start_ns"]) // MS for call in calls[:-1])
            assert row["upstream_failed_ns"] == failed * MS
            assert tags["first_call_ms"] == str(failed)
            assert tags["first_failure"] == str(calls[0]["status"] or 502)


def test_client_gateway_and_engine_are_joined_and_the_way_splits_into_two_hops(world):
    _, truth, db = world
    with engine_of(db) as engine:
        rows = engine.rows(
            "SELECT r.id, r.vantages, s.network_ns, s.contradiction, s.e2e_ns AS client_ns, "
            "g.e2e_ns AS gateway_ns, v.e2e_ns AS engine_ns "
            "FROM resolve_request AS r "
            "JOIN latency_segment AS s ON r.request_key = s.request_key "
            "LEFT JOIN resolve_vantage AS g "
            "ON r.request_key = g.request_key AND g.vantage = 'gateway' "
            "LEFT JOIN resolve_vantage AS v "
            "ON r.request_key = v.request_key AND v.vantage = 'engine'"
        )
        (skew,) = engine.rows("SELECT low_ns, high_ns FROM resolve_clock WHERE vantage = 'gateway'")
    assert len(rows) == len(truth)
    for row in rows:
        one = truth[row["id"]]
        assert row["vantages"] == 3
        assert row["contradiction"] is None
        outer = one["done_ns"] - one["sent_ns"] - one["gateway_out_ns"] + one["gateway_in_ns"]
        assert abs(row["client_ns"] - row["gateway_ns"] - outer) <= 2 * MS
        inner = one["gateway_out_ns"] - one["gateway_in_ns"] - one["engine_e2e_ns"]
        assert abs(row["gateway_ns"] - row["engine_ns"] - inner) <= 2 * MS
        assert row["network_ns"] == row["client_ns"] - row["engine_ns"]
    assert skew["low_ns"] <= 250 * MS <= skew["high_ns"]


def test_retries_of_a_gateway_are_found_inside_one_request(world):
    _, truth, db = world
    hidden = {
        name: sum(call["end_ns"] - call["start_ns"] for call in one["tries"][:-1])
        for name, one in truth.items()
        if len(one["tries"]) > 1 and one["status"] == 200
    }
    with engine_of(db) as engine:
        rows = engine.rows(
            "SELECT r.id, i.vantage, i.tries, i.hidden_ns FROM outcome_inside AS i "
            "JOIN resolve_request AS r ON i.request_key = r.request_key"
        )
    assert {row["id"] for row in rows} == set(hidden)
    for row in rows:
        assert (row["vantage"], row["tries"]) == ("gateway", 2)
        assert abs(row["hidden_ns"] - hidden[row["id"]]) <= 1 * MS


# -- what a line may look like --------------------------------------------------------------------


def only(reader, text, tmp_path, *, problems=0):
    """Request rows of a file; the reader must claim it."""
    file = tmp_path / "some.log"
    file.write_text(text)
    found = pick(InputFile(file, file.name).head)
    assert found.reader is READERS[reader], found.why
    batches = read(READERS[reader], file)
    assert len([problem for batch in batches for problem in batch.problems]) == problems
    return [row for table, row in rows_of(batches) if table == "request"]


LINE = {
    "msec": "1784203205.417", "request": "POST /v1/messages HTTP/1.1", "status": 200,
    "request_time": 2.417, "upstream_addr": "10.0.0.1:80", "upstream_status": "200",
    "upstream_header_time": "0.214", "upstream_response_time": "2.415", "x_request_id": "q",
}  # fmt: skip


@pytest.mark.parametrize(
    "form",
    [
        json.dumps,
        lambda one: json.dumps(one, separators=(",", ":")),
        lambda one: json.dumps(one, separators=(" , ", " : ")),
        lambda one: json.dumps({name: str(value) for name, value in one.items()}),
        lambda one: "2026-07-16T12:00:05.417000001Z stdout F " + json.dumps(one),
        lambda one: "web-1  | " + json.dumps(one),
        lambda one: "Jul 16 12:00:05 host nginx: " + json.dumps(one),
        lambda one: json.dumps(one | {"http_user_agent": "XX"}).replace("XX", r"a \x22b\x22"),
        lambda one: json.dumps(one | {"extra": "XX"}).replace('"XX"', "-"),
    ],
    ids=["spaced", "tight", "wide", "strings", "cri", "compose", "syslog", "escapes", "bare dash"],
)
def test_json_reads_the_same_however_it_is_written(form, tmp_path):
    plain = only("nginx_access", json.dumps(LINE) + "\n", tmp_path)
    assert plain[0]["e2e_ns"] == 2_417 * MS
    assert only("nginx_access", form(LINE) + "\n" + form(LINE) + "\n", tmp_path)[:1] == plain


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"upstream_status": "", "upstream_addr": "", "upstream_header_time": "",
          "upstream_response_time": "", "status": 502}, {"status": 502}),
        ({"upstream_header_time": "-"}, {"upstream_ns": 2_415 * MS}),
        ({"msec": "1784203205417"}, {"start_ns": 1_784_203_203_000 * MS}),
        ({"request_completion": ""}, {"finish_reason": "abort", "status": 200}),
        ({"request_completion": "OK"}, {"status": 200}),
        ({"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"},
         {"trace_id": "4bf92f3577b34da6a3ce929d0e0e4736"}),
        ({"upstream_addr": "[fd00::1]:80, [fd00::2]:80", "upstream_status": "502, 200",
          "upstream_header_time": "-, 0.2", "upstream_response_time": "0.1, 2.3"},
         {"route": "[fd00::2]:80", "upstream_headers_ns": 300 * MS, "upstream_ns": 2_400 * MS}),
        ({"upstream_addr": "unix:/run/a.sock"}, {"route": "unix:/run/a.sock"}),
    ],
)  # fmt: skip
def test_nginx_values_and_what_they_mean(changes, told, tmp_path):
    (row,) = only("nginx_access", json.dumps(LINE | changes) + "\n", tmp_path)
    assert {name: row.get(name) for name in told} == told
    if "finish_reason" not in told:
        assert "finish_reason" not in row


@pytest.mark.parametrize(
    "changes",
    [
        {"request_time": "soon"}, {"request_time": None}, {"msec": "yesterday"}, {"status": "ok"},
        {"upstream_response_time": "x"}, {"request_time": "-1"}, {"msec": {"a": 1}},
    ],
)  # fmt: skip
def test_a_bad_line_costs_itself(changes, tmp_path):
    lines = [LINE, LINE | changes, LINE]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    rows = only("nginx_access", text, tmp_path, problems=1)
    assert [row["record"] for row in rows] == [1, 3]


def test_access_lines_without_times_say_what_to_add(tmp_path):
    file = tmp_path / "access.log"
    file.write_text(
        '10.0.0.1 - - [16/Jul/2026:14:00:05 +0200] "POST /v1/messages HTTP/1.1" 200 9 "-" "x"\n'
    )
    found = pick(InputFile(file, file.name).head)
    assert found.reader is None
    assert "$request_time" in found.why


@pytest.mark.parametrize(
    ("flags", "error"),
    [("UT", "upstream timeout"), ("UO", "upstream overflow"), ("URX", "upstream retries exhausted"),
     ("URX,UF", "upstream connection failure"), ("SI", "stream idle timeout"),
     ("RL", "rate limited"), ("-", None), ("DC", None), ("ZZ", None)],
)  # fmt: skip
def test_flags_of_envoy_become_error_classes(flags, error, tmp_path):
    line = {
        "start_time": "2026-07-16T12:00:05.250Z", "method": "POST", "path": "/v1", "duration": "9",
        "response_code": "503", "response_flags": flags, "upstream_host": "10.0.0.1:80",
        "upstream_service_time": "-",
    }  # fmt: skip
    (row,) = only("envoy_access", json.dumps(line) + "\n", tmp_path)
    assert row.get("error") == error
    assert (row.get("finish_reason") == "abort") == (flags == "DC")


@pytest.mark.parametrize("reader", ["nginx_access", "envoy_access", "har", "curl_timings"])
def test_nothing_private_of_the_samples_is_kept(reader):
    for path in (SAMPLES / reader).iterdir():
        told = json.dumps([row for _, row in rows_of(read(READERS[reader], path))])
        for secret in ("secret", "Hello", "api_key", "tenant=", "OpenAI/Python", "quoted"):
            assert secret not in told


def test_a_gateway_that_asks_a_dead_server_first_is_found_out_by_its_access_log(tmp_path):
    world = tomllib.loads((WORLDS / "fixed-offset.toml").read_text())
    world["logs"] = [{"format": "stream"}, {"format": "spans"}, {"format": "nginx"}]
    simulate(from_dict(world), tmp_path)
    db = str(tmp_path / "case.duckdb")
    analyzer.ingest(db, [str(tmp_path / "*.log*"), str(tmp_path / "*.jsonl")])
    found = analyzer.explain(db, "network.fixed-offset").outcome
    told = {one.label: one.value for one in found.evidence}
    named = told["Of them the gateway itself tells of a first call that failed"]
    assert named == found.requests


ENVOY = {
    "start_time": "2026-07-16T12:00:05.250Z", "method": "POST", "path": "/v1/messages",
    "response_code": 200, "response_flags": "-", "duration": 2817, "upstream_service_time": 312,
    "upstream_host": "10.0.0.1:80", "request_id": "q", "x_forwarded_for": None,
}  # fmt: skip


@pytest.mark.parametrize(
    "form",
    [
        lambda one: json.dumps(one, separators=(",", ":")),
        lambda one: json.dumps(one, separators=(" , ", " : ")),
        lambda one: json.dumps({name: str(value or "-") for name, value in one.items()}),
        lambda one: "2026-07-16T12:00:08.1Z stdout F " + json.dumps(one),
        lambda one: json.dumps({name: value for name, value in one.items() if value is not None}),
    ],
    ids=["tight", "wide", "strings", "cri", "left out"],
)
def test_json_of_envoy_reads_the_same_however_it_is_written(form, tmp_path):
    plain = only("envoy_access", json.dumps(ENVOY) + "\n", tmp_path)
    assert plain[0]["e2e_ns"] == 2_817 * MS
    assert only("envoy_access", form(ENVOY) + "\n" + form(ENVOY) + "\n", tmp_path)[:1] == plain


@pytest.mark.parametrize("packed", [False, True])
def test_lines_of_a_balancer_are_read_as_they_lie_in_the_bucket(packed, tmp_path):
    data = (SAMPLES / "alb_access/alb.log").read_bytes()
    name = "alb.log.gz" if packed else "alb.log"
    (tmp_path / name).write_bytes(gzip.compress(data) if packed else data)
    db = str(tmp_path / "case.duckdb")
    analyzer.ingest(db, [str(tmp_path / name)])
    with engine_of(db) as engine:
        rows = engine.rows(
            "SELECT r.status, a.class FROM outcome_attempt AS a "
            "JOIN resolve_request AS r ON a.request_key = r.request_key ORDER BY r.start_ns"
        )
    assert [(row["status"], row["class"]) for row in rows] == [
        (200, None), (504, "timeout"), (460, "abort"),
    ]  # fmt: skip


def test_a_field_that_one_line_alone_has_is_read(tmp_path):
    lines = [dict(LINE) for _ in range(40)]
    lines[7]["request_completion"] = ""
    lines[8]["unknown"] = {"a": [1, 2]}
    lines[9]["request_time"] = "2.417"
    text = "".join(json.dumps(line) + "\n" for line in lines)
    rows = only("nginx_access", text, tmp_path)
    assert [row["record"] for row in rows if "finish_reason" in row] == [8]
    assert {row["e2e_ns"] for row in rows} == {2_417 * MS}
    assert len(rows) == 40

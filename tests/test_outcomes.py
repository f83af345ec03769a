"""Loads, waits before a send, failures and cut-off answers: numbers worked out by hand."""

from __future__ import annotations

import json

import pytest
from cases import a3_unload, b3_hidden_attempts, e1_truncated, e2_failures, m1_client_hold
from helpers import case_of, engine_of
from shared import SHARED, needs_shared

import analyzer
from analyzer.questions.timeline import lanes
from analyzer.simulate.writers import NS, request_record, rfc3339, write_lines

T0 = 1_780_000_000 * NS
MS = NS // 1000


def finding_of(db, rule):
    found = analyzer.explain(db, rule).outcome
    return found, {one.label: one.value for one in found.evidence}


def written(write, tmp_path):
    logs = tmp_path / "logs"
    logs.mkdir()
    write(logs)
    return case_of(logs, tmp_path / "case.duckdb")


def records(*rows):
    """A writer of native records: (name, seconds after T0, fields)."""

    def write(folder):
        lines = [
            request_record(name, vantage="client", started_ns=T0 + round(at * NS), **fields)
            for name, at, fields in rows
        ]
        write_lines(folder / "calls.jsonl", lines)

    return write


def lasting(seconds, **fields):
    return {"durations_ns": {"e2e": round(seconds * NS)}, **fields}


# --- loads ---------------------------------------------------------------------------------------


@needs_shared
def test_reloads_of_the_scenario(tmp_path):
    db = case_of(SHARED / "scenarios/A3/main", tmp_path / "case.duckdb")
    found, told = finding_of(db, "load.idle-unload")
    assert (found.requests, found.confidence, found.segment) == (5, "measured", "queue")
    assert told["Time requests waited for them, added up"] / NS == pytest.approx(42.0, abs=0.05)
    assert told["Share of those requests' time"] == pytest.approx(0.796, abs=0.0005)
    assert told["Shortest pause that ended in a reload"] / NS == pytest.approx(400, abs=0.1)
    assert told["Longest pause of these models that did not"] / NS == pytest.approx(20, abs=0.1)
    assert told["First starts of a model, which are none of them"] == 1
    first, _ = finding_of(db, "load.cold-start")
    assert (first.severity, first.requests) == ("note", 1)


def test_the_pause_that_parts_reloads_from_the_others(tmp_path):
    db = written(a3_unload.main, tmp_path)
    between = [
        later.start_ns - one.end_ns
        for one, later in zip(a3_unload.MAIN, a3_unload.MAIN[1:], strict=False)
    ]
    cold = [one.load_ns > NS for one in a3_unload.MAIN[1:]]
    with engine_of(db) as engine:
        (row,) = engine.rows(
            "SELECT max(limit_ns) AS limit_ns, min(pause_ns) FILTER (WHERE kind = 'idle') AS least "
            "FROM latency_load"
        )
    assert row["limit_ns"] == max(
        gap for gap, is_cold in zip(between, cold, strict=True) if not is_cold
    )
    assert row["least"] == min(gap for gap, is_cold in zip(between, cold, strict=True) if is_cold)


def test_an_unload_in_the_log_tells_how_long_models_are_kept(tmp_path):
    db = written(a3_unload.CASES["server_log"][0], tmp_path)
    found, told = finding_of(db, "load.idle-unload")
    assert found.confidence == "derived"
    label = "Median time from the last answer to the unload, where the server logs it"
    assert told[label] / NS == pytest.approx(300, abs=1.5)  # calls end at whole seconds


def test_those_who_wait_for_one_reload_are_told_apart_from_reloads(tmp_path):
    db = written(a3_unload.CASES["together"][0], tmp_path)
    found, told = finding_of(db, "load.idle-unload")
    assert told["Reloads after a pause"] == len(a3_unload.reloads(a3_unload.MAIN))
    assert found.requests == 3 * told["Reloads after a pause"]


def test_turns_of_two_models_are_named_as_such(tmp_path):
    db = written(a3_unload.CASES["models_take_turns"][0], tmp_path)
    _, told = finding_of(db, "load.cold-start")
    assert told["First starts of a model on its server"] == 2
    after_another = "Loads of a model after another one was loaded, beside which it was never found"
    assert told[after_another] == len(a3_unload.TURNS) - 2


def test_what_is_only_seen_from_outside_is_suspected(tmp_path):
    found, _ = finding_of(written(a3_unload.CASES["serverless"][0], tmp_path), "load.idle-unload")
    assert found.confidence == "suspected"


# --- waits before a send -------------------------------------------------------------------------


def due(seconds):
    return rfc3339(T0 + round(seconds * NS))


def test_open_requests_and_latency_from_when_it_was_due(tmp_path):
    db = written(
        records(
            ("a", 0, lasting(10, scheduled_at=due(0))),
            ("b", 1, lasting(5, scheduled_at=due(1))),
            ("c", 6, lasting(2, scheduled_at=due(2))),
            ("d", 8, lasting(1, scheduled_at=due(3))),
        ),
        tmp_path,
    )
    with engine_of(db) as engine:
        rows = engine.rows(
            "SELECT h.hold_ns, h.due_e2e_ns, h.open_requests, h.is_held, h.follows_end "
            "FROM latency_hold AS h ORDER BY h.start_ns"
        )
    assert [row["hold_ns"] // NS for row in rows] == [0, 0, 4, 5]
    assert [row["due_e2e_ns"] // NS for row in rows] == [10, 5, 6, 6]
    assert [row["open_requests"] for row in rows] == [1, 2, 2, 2]
    assert [row["is_held"] for row in rows] == [False, False, True, True]
    assert [row["follows_end"] for row in rows] == [False, False, True, True]


@pytest.mark.parametrize(("name", "pool", "ended"), [("main", 6, 1), ("blocked_loop", None, 0.2)])
def test_a_pool_is_told_from_a_blocked_loop(name, pool, ended, tmp_path):
    _, told = finding_of(written(m1_client_hold.CASES[name][0], tmp_path), "metric.client-hold")
    share = told["Share of the waits that ended with so many open, as another request ended"]
    if pool:
        assert told["Most requests that the client ever had open"] == pool
        assert share == pytest.approx(ended, abs=0.02)
    else:
        assert share <= ended


# --- failures ------------------------------------------------------------------------------------


def test_an_operation_lasts_over_its_attempts(tmp_path):
    db = written(e2_failures.CASES["timeouts"][0], tmp_path)
    many = len(e2_failures.TIMED_OUT)
    with engine_of(db) as engine:
        tried = engine.rows("SELECT * FROM outcome_operation WHERE attempts > 1")
    assert len(tried) == many
    assert {row["latency_ns"] for row in tried} == {27 * NS}  # 20 s, a pause of 2, and 5
    assert {(row["lost_ns"], row["wait_ns"], row["answered"]) for row in tried} == {
        (20 * NS, 2 * NS, True)
    }
    _, told = finding_of(db, "errors.rate")
    assert told["Time in attempts that failed, added up"] == many * 20 * NS
    assert told["Operations that ended without an answer"] == 0


def test_what_a_caller_who_left_had_got(tmp_path):
    db = written(e2_failures.CASES["left_early"][0], tmp_path)
    _, told = finding_of(db, "errors.rate")
    got = e2_failures.LEAVE * e2_failures.GOT
    assert told["Output tokens that failed attempts had got"] == got
    assert told["Operations that ended without an answer"] == e2_failures.LEAVE


def test_tries_of_a_gateway_inside_one_request(tmp_path):
    db = written(e2_failures.CASES["hidden_tries"][0], tmp_path)
    with engine_of(db) as engine:
        rows = engine.rows("SELECT vantage, tries, hidden_ns, e2e_ns FROM outcome_inside")
    assert len(rows) == e2_failures.TRIES
    assert {(row["vantage"], row["tries"]) for row in rows} == {("gateway", 2)}
    assert {row["hidden_ns"] for row in rows} == {10_050 * MS}
    assert {row["e2e_ns"] for row in rows} == {14_070 * MS}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"status": 504}, "timeout"), ({"error": "connect_timeout"}, "connection"),
        ({"error": "timeout"}, "timeout"), ({"status": 429}, "rate limit"),
        ({"error": "rate_limited", "status": 429}, "rate limit"), ({"status": 529}, "rate limit"),
        ({"status": 502}, "server"), ({"error": "http 503"}, "server"),
        ({"status": 400}, "refused"), ({"status": 499}, "abort"),
        ({"finish_reason": "abort"}, "abort"), ({"error": "cancelled"}, "abort"),
        ({"error": "oops"}, "error"),
    ],
)  # fmt: skip
def test_classes_of_failures(fields, expected, tmp_path):
    db = written(records(("a", 0, lasting(1, **fields))), tmp_path)
    with engine_of(db) as engine:
        assert engine.value("SELECT class FROM outcome_attempt") == expected


def test_one_id_twice_without_attempts_is_two_operations(tmp_path):
    db = written(records(("a", 0, lasting(1)), ("a", 900, lasting(1))), tmp_path)
    with engine_of(db) as engine:
        assert engine.value("SELECT count(*) FROM outcome_operation") == 2


# --- cut off -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "confidence"),
    [("main", "measured"), ("no_reason", "derived"), ("only_lengths", "suspected")],
)
def test_how_a_cut_is_known(name, confidence, tmp_path):
    found, _ = finding_of(written(e1_truncated.CASES[name][0], tmp_path), "errors.truncated-output")
    assert found.confidence == confidence


def test_since_when_answers_are_cut_off(tmp_path):
    _, told = finding_of(written(e1_truncated.main, tmp_path), "errors.truncated-output")
    cut = [k for k, (*_, is_cut) in enumerate(e1_truncated.LOWERED) if is_cut]
    first = e1_truncated.T0 + e1_truncated.EVERY * cut[0]
    assert told["First answer that was cut off"] == first
    assert told["Answers before that, none of them cut off"] == cut[0]
    assert told["Median limit that was asked for"] == 256
    assert told["Of them with just as many tokens as the limit"] == len(cut)


def test_reasoning_that_takes_the_whole_limit(tmp_path):
    _, told = finding_of(
        written(e1_truncated.CASES["reasoning"][0], tmp_path), "errors.truncated-output"
    )
    label = "Of them without one visible token: reasoning took all"
    assert told[label] == sum(is_cut for *_, is_cut in e1_truncated.ALWAYS)


def test_a_load_test_is_no_more_than_a_note(tmp_path):
    found, _ = finding_of(
        written(e1_truncated.CASES["load_test"][0], tmp_path), "errors.truncated-output"
    )
    assert found.severity == "note"


# --- calls without an id -------------------------------------------------------------------------


def test_answers_and_access_lines_of_one_server_are_the_same_calls(tmp_path):
    db = written(a3_unload.CASES["both"][0], tmp_path)
    with engine_of(db) as engine:
        assert engine.value("SELECT count(*) FROM resolve_request") == len(a3_unload.MAIN)
        assert engine.value("SELECT count(*) FROM request") == 2 * len(a3_unload.MAIN)
        told = engine.rows("SELECT count(load_ns) AS loads, count(e2e_ns) AS n FROM latency_load")
    assert told == [{"loads": len(a3_unload.MAIN), "n": len(a3_unload.MAIN)}]


def test_access_lines_of_another_server_are_other_calls(tmp_path):
    def write(folder):
        later = [
            a3_unload.Call(one.start_ns + 7 * NS, one.load_ns + 300 * MS) for one in a3_unload.MAIN
        ]
        lines = a3_unload.log_of(later, a3_unload.KEEP)
        a3_unload.captures(folder, a3_unload.MAIN, **{"server.log": lines})

    with engine_of(written(write, tmp_path)) as engine:
        assert engine.value("SELECT count(*) FROM resolve_request") == 2 * len(a3_unload.MAIN)


def test_the_bill_of_logged_calls_is_no_second_call(tmp_path):
    world = b3_hidden_attempts.BASE
    db = written(world.write, tmp_path)
    rows = {row["metric"]: row["requests"] for row in analyzer.latency(db).rows}
    assert (rows["e2e"], rows["failed"]) == (world.operations, len(world.hidden))
    told = analyzer.findings(db)
    assert told.verdict.startswith("Attempts that no log tracks are on the bill")
    assert told.split.startswith(f"Where the time went, {world.operations} requests of ")
    slowest = analyzer.latency(db, slowest=500).rows
    assert len(slowest) == world.operations + len(world.hidden)
    assert all(row["id"].startswith("job-") for row in slowest)
    report = analyzer.api.report(db)
    assert report.requests == len(slowest)
    assert [one.id.startswith("job-") for one in report.waterfalls] == [True] * 5
    with engine_of(db) as engine:
        sums = {one.name: sum(row["value"] for row in one.rows) for one in lanes(engine, 60 * NS)}
    assert sums["Requests started"] == world.operations + len(world.hidden)
    assert sums["Failed requests"] == len(world.hidden)


def test_where_logs_tell_no_durations_the_bill_tells_them(tmp_path):
    def write(folder):
        b3_hidden_attempts.BASE.write(folder)
        log = folder / "calls.jsonl"
        calls = [json.loads(line) for line in log.read_text().splitlines()]
        log.write_text("\n".join(json.dumps(call | {"e2e_ms": None}) for call in calls) + "\n")

    db = written(write, tmp_path)
    rows = {row["metric"]: row["requests"] for row in analyzer.latency(db).rows}
    assert rows["e2e"] == b3_hidden_attempts.BASE.operations + len(b3_hidden_attempts.BASE.hidden)


def test_without_a_duration_the_verdict_begins_with_what_was_found(tmp_path):
    def write(folder):
        lines = [
            request_record(
                f"c-{k}", vantage="client", started_ns=T0 + k * NS,
                **({"error": "timeout"} if k % 2 else {"status": 200}),
            )
            for k in range(40)
        ]  # fmt: skip
        write_lines(folder / "calls.jsonl", lines)

    verdict = analyzer.findings(written(write, tmp_path)).verdict
    assert verdict.startswith("Requests fail (20 requests failed")
    assert verdict.endswith("nothing can be said of latency.")

"""Transcripts of coding agents: real files where they lie beside, and the traps of each format."""

import gzip
import json
import sqlite3
import tarfile
from pathlib import Path

import pytest
from shared import SHARED, needs_shared
from test_hostile_records import hold_to_bounds, problems_of
from test_readers import OPTIONS, READERS, read, rows_of, totals

from analyzer.readers._archive import Shelf, members
from analyzer.readers._file import InputFile
from analyzer.readers._find import pick

ROOT = Path(__file__).parents[1]
AGENTS = SHARED / "traces/3-agents"
SESSIONS = AGENTS / "jazzyalex__agent-sessions"
SAMPLES = SHARED / "formats/samples/clients/agents"
MS, S = 1_000_000, 1_000_000_000
NO_SUM = "the total of tokens is not the sum of its parts"
INPUTS = (
    "input_fresh_tokens", "cache_read_tokens", "cache_write_short_tokens",
    "cache_write_long_tokens", "cache_write_unknown_tokens",
)  # fmt: skip


def real(path, reader):
    assert pick(InputFile(path, path.name).head).reader is READERS[reader]
    batches = read(READERS[reader], path)
    rows = [row for table, row in rows_of(batches) if table == "request"]
    hold_to_bounds([("request", row) for row in rows])
    return rows, batches


def made(text, reader, tmp_path, name="file"):
    path = tmp_path / name
    path.write_text(text)
    return real(path, reader)


def jsonl(*lines):
    return "".join(json.dumps(line) + "\n" for line in lines)


def inputs(row):
    return sum(row.get(name, 0) for name in INPUTS)


def outputs(row):
    return row["output_visible_tokens"] + row.get("output_reasoning_tokens", 0)


def notes(batches):
    return " ".join(note for batch in batches for note in batch.assumed)


# -- real files -----------------------------------------------------------------------------------


@needs_shared
def test_kimi_s_steps_have_what_no_other_log_of_an_agent_has():
    rows, batches = real(SESSIONS / "kimi~subagent_agent-0.jsonl", "kimi_wire")
    assert [inputs(row) for row in rows] == [12_774, 14_196, 14_351]
    assert [round(100 * row["cache_read_tokens"] / inputs(row)) for row in rows] == [14, 88, 98]
    assert [row["ttft_ns"] for row in rows] == [3_212 * MS, 1_605 * MS, 1_272 * MS]
    streamed = [row["e2e_ns"] - row["ttft_ns"] for row in rows]
    assert streamed == [2_004 * MS, 3_349 * MS, 3_334 * MS]
    assert [row["decode_ns"] for row in rows] == [2_003 * MS, 3_349 * MS, 3_330 * MS]
    assert all(row["is_sidechain"] for row in rows)
    assert [row["finish_reason"] for row in rows] == ["tool_calls", "tool_calls", "stop"]
    assert totals(batches)[2]["repeats counts that were read"] == 3
    assert problems_of(batches) == []


@needs_shared
def test_codex_turn_with_a_ttft():
    (row,), batches = real(SESSIONS / "codex~small.jsonl", "codex_rollout")
    assert (inputs(row), outputs(row)) == (16_341, 81)
    assert (row["cache_read_tokens"], row["output_reasoning_tokens"]) == (3_584, 63)
    assert (row["ttft_ns"], row["model"], row["service_tier"]) == (
        300 * MS, "gpt-5.6-luna", "default",
    )  # fmt: skip
    # Two lines were trimmed of the time that they needed; 96 others without one are none the worse.
    assert len(problems_of(batches)) == 2
    assert totals(batches)[0] == 118


@needs_shared
@pytest.mark.parametrize("name", ["codex~large.jsonl", "Fixtures~codex_053_rate_limit.jsonl"])
def test_codex_counts_lie_inside_each_other(name):
    rows, batches = real(SESSIONS / name, "codex_rollout")
    row = rows[0]
    assert (inputs(row), row["cache_read_tokens"], outputs(row)) == (12_091, 10_880, 182)
    assert (row["output_reasoning_tokens"], row["usage_convention"]) == (128, "inclusive")
    assert problems_of(batches) == []
    assert [one["error"] for one in rows[1:]] == ["http 429"] * ("053" in name)


@needs_shared
def test_codex_forms_that_tell_no_request_are_refused():
    for name, refused in (("050_legacy", 1), ("051_usage", 2), ("052_raw", 2)):
        rows, batches = real(SESSIONS / f"Fixtures~codex_{name}.jsonl", "codex_rollout")
        assert rows == []
        assert len(problems_of(batches)) == refused


@needs_shared
def test_codex_sub_agent_and_totals_alone():
    (row,), _ = real(AGENTS / "kenn-io__agentsview/rollout_subagent.jsonl", "codex_rollout")
    assert row["parent_session_id"] == "019fbc4a-48b9-7472-a0da-6d92901383db"
    assert (row["is_sidechain"], row["ttft_ns"]) == (True, 1_420 * MS)
    assert (inputs(row), row["cache_read_tokens"], outputs(row)) == (4_200, 3_600, 180)
    rows, batches = real(AGENTS / "mag123c__toktrack/sample-session.jsonl", "codex_rollout")
    assert [(inputs(row), outputs(row), row["model"]) for row in rows] == [
        (150, 75, "o4-mini"), (350, 125, "gpt-4.1"),
    ]  # fmt: skip
    assert len(problems_of(batches)) == 1, "one line that is no JSON costs itself"


@needs_shared
def test_codex_published_samples():
    rows, _ = real(SAMPLES / "codex_ccusage_fixture.jsonl", "codex_rollout")
    # 2500 + 300 are not 3000: the total is no source of any other count.
    assert [(inputs(row), outputs(row)) for row in rows] == [(1_000, 125), (2_500, 300)]
    assert {row["usage_contradiction"] for row in rows} == {NO_SUM}
    assert [row["model"] for row in rows] == ["gpt-5.2-codex", "gpt-5.3-codex"]
    rows, _ = real(SAMPLES / "codex_token_usage_record.jsonl", "codex_rollout")
    assert [(inputs(row), outputs(row)) for row in rows] == [(1_000, 200), (25_088, 6)]
    assert rows[0]["usage_records"] == 2
    assert rows[0]["cache_write_unknown_tokens"] == 50


@needs_shared
def test_gemini_sessions():
    rows, _ = real(SAMPLES / "gemini_standard_session.json", "gemini_cli")
    told = [(inputs(row), row["cache_read_tokens"], outputs(row)) for row in rows]
    assert told == [(1_500, 100, 250), (2_000, 50, 400)]
    # This fixture's totals add what was cached once more.
    assert {row["usage_contradiction"] for row in rows} == {NO_SUM}
    rows, batches = real(SAMPLES / "gemini_session.json", "gemini_cli")
    assert (rows, problems_of(batches)) == ([], [])
    (row,), batches = real(SESSIONS / "gemini~large.json", "gemini_cli")
    assert (inputs(row), outputs(row), row["model"]) == (100, 10, "gemini-3-flash-preview")
    assert problems_of(batches) == []


@needs_shared
def test_pi_session_with_a_broken_line():
    rows, batches = real(SAMPLES / "pi_session.jsonl", "pi_session")
    assert [(inputs(row), outputs(row)) for row in rows] == [(100, 50), (200, 10)]
    assert [str(row["reported_cost_usd"]) for row in rows] == ["0.010000000", "0.005000000"]
    assert {row["parent_session_id"] for row in rows} == {"parent-uuid"}
    assert len(problems_of(batches)) == 2, "no JSON; an entry of a kind that nobody knows"


@needs_shared
def test_copilot_tells_the_output_of_an_answer_and_sums_are_not_added():
    rows, batches = real(SESSIONS / "copilot~small.jsonl", "copilot_cli")
    told = [row.get("output_visible_tokens") for row in rows]
    assert told == [None, 12, 3, 0], "the last is of lines whose values were taken out"
    assert all("input_fresh_tokens" not in row for row in rows)
    assert (rows[0]["status"], rows[0]["error"]) == (400, "http 400")
    assert totals(batches)[2]["sums over requests, some of which stand in the session"] == 3
    assert len(problems_of(batches)) == 1
    rows, batches = real(SESSIONS / "copilot~schema_drift.jsonl", "copilot_cli")
    assert (rows, problems_of(batches)) == ([], [])


@needs_shared
def test_qwen_chat_without_its_values():
    rows, batches = real(SESSIONS / "qwen~system_telemetry.jsonl", "qwen_code")
    assert [row.get("error") for row in rows] == [None, "error"]
    assert all("input_fresh_tokens" not in row for row in rows), "counts of 0 tell nothing"
    assert len(problems_of(batches)) == 2


SPACED = [
    path
    for name in (
        "codex_rollout", "gemini_cli", "pi_session", "kimi_wire", "qwen_code", "copilot_cli",
    )
    for path in sorted((ROOT / "sample_traces" / name).glob("*.jsonl"))
]  # fmt: skip


@pytest.mark.parametrize("path", SPACED, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_spaces_in_the_json_change_nothing(path, tmp_path):
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    whole = rows_of(read(READERS[path.parent.name], path))
    for separators in ((",", ":"), (", ", ": "), (" , ", " : ")):
        text = "".join(json.dumps(line, separators=separators) + "\n" for line in lines)
        made(text, path.parent.name, tmp_path)
        assert rows_of(read(READERS[path.parent.name], tmp_path / "file")) == whole


# -- Codex: replays, resets, repeats --------------------------------------------------------------


def usage(given, made, cached=0):
    return {
        "input_tokens": given, "cached_input_tokens": cached, "output_tokens": made,
        "total_tokens": given + made,
    }  # fmt: skip


def counted(second, total, last=None, **line):
    info = {"total_token_usage": total} | ({"last_token_usage": last} if last else {})
    stamp = f"2026-09-01T10:00:{second:06.3f}Z"
    payload = {"type": "token_count", "info": info}
    return {"timestamp": stamp, "type": "event_msg", "payload": payload} | line


def meta(thread="th-1", **payload):
    stamp = "2026-09-01T10:00:00.000Z"
    return {"timestamp": stamp, "type": "session_meta", "payload": {"id": thread} | payload}


def sums(rows):
    return sum(map(inputs, rows)), sum(map(outputs, rows))


def test_codex_last_usage_told_again_counts_once(tmp_path):
    one, two = usage(1000, 100), usage(2500, 160)
    lines = [counted(5, one, one), counted(6, one, one), counted(9, two, usage(1500, 60))]
    lines += [counted(9.5, two, usage(1500, 60))] * 2
    rows, batches = made(jsonl(meta(), *lines), "codex_rollout", tmp_path)
    assert sums(rows) == (2500, 160)
    assert [row["usage_records"] for row in rows] == [2, 3]
    assert [row["usage_records_output_tokens"] for row in rows] == [200, 180]
    assert problems_of(batches) == []


def test_codex_counter_that_begins_anew(tmp_path):
    lines = [counted(5, usage(9000, 900)), counted(7, usage(400, 40), usage(300, 30))]
    lines += [counted(9, usage(1000, 90))]
    rows, _ = made(jsonl(meta(), *lines), "codex_rollout", tmp_path)
    assert [inputs(row) for row in rows] == [9000, 300, 600]
    assert [outputs(row) for row in rows] == [900, 30, 50]


def test_codex_requests_between_two_totals_stand_in_one_row(tmp_path):
    lines = [counted(5, usage(1000, 10)), counted(9, usage(4000, 40), usage(1800, 20))]
    rows, batches = made(jsonl(meta(), *lines), "codex_rollout", tmp_path)
    assert sums(rows) == (4000, 40)
    assert "requests between two token_count lines" in notes(batches)


def test_codex_file_that_begins_in_the_middle(tmp_path):
    lines = [counted(5, usage(900_000, 9000), usage(2000, 20)), counted(9, usage(903_000, 9050))]
    rows, batches = made(jsonl(meta(), *lines), "codex_rollout", tmp_path)
    assert [inputs(row) for row in rows] == [2000, 3000]
    assert "before the file began" in notes(batches)


REPLAY = [counted(0.1, usage(9000, 90)), counted(0.9, usage(800_000, 900))]
OWN = [counted(4, usage(802_000, 930), usage(2000, 30)), counted(8, usage(805_000, 970))]


@pytest.mark.parametrize(
    "head",
    [
        [meta(forked_from_id="th-0")],
        [meta(parent_thread_id="th-0", thread_source="subagent")],
        [meta(source={"subagent": {"thread_spawn": {"parent_thread_id": "th-0"}}})],
        [meta(source={"subagent": "review"}), meta("th-0")],
        [meta(), meta("th-0")],
    ],
    ids=["fork", "sub-agent", "spawned", "review", "second meta"],
)
def test_codex_replay_of_the_parent_counts_nothing(head, tmp_path):
    rows, batches = made(jsonl(*head, *REPLAY, *OWN), "codex_rollout", tmp_path)
    if len(head) == 2 and "source" not in head[0]["payload"]:
        # Nothing but the parent's own line says it; the replay begins with the file.
        assert rows[0]["parent_session_id"] == "th-0"
    assert sums(rows) == (5000, 70)
    assert totals(batches)[2]["replay of the thread it was forked from"] == 2
    assert {row["parent_session_id"] for row in rows} == {"th-0"}


def test_codex_replay_ends_where_the_ordinal_says(tmp_path):
    head = meta(parent_thread_id="th-0", subagent_history_start_ordinal=3)
    first = counted(0.5, usage(9000, 90), ordinal=2)
    # Quick, but its own.
    second = counted(0.9, usage(9500, 95), usage(500, 5), ordinal=3)
    rows, _ = made(jsonl(head, first, second), "codex_rollout", tmp_path)
    assert sums(rows) == (500, 5)


def test_codex_thread_with_no_replay_is_not_cut_short(tmp_path):
    lines = [counted(0.2, usage(100, 1)), counted(0.4, usage(300, 3))]
    rows, _ = made(jsonl(meta(), *lines), "codex_rollout", tmp_path)
    assert sums(rows) == (300, 3)


def test_codex_records_of_responses_beat_all_totals(tmp_path):
    def record(response, given, made, thread="th-1"):
        payload = {"thread_id": thread, "response_id": response, "usage": usage(given, made)}
        stamp = "2026-09-01T10:00:05.000Z"
        return {"timestamp": stamp, "type": "token_usage_record", "payload": payload}

    lines = [counted(4, usage(9999, 99)), record("r1", 1000, 10), record("r1", 1000, 10)]
    lines += [counted(6, usage(1000, 10)), record("r2", 1500, 20), record("r1", 1000, 10)]
    text = jsonl(meta(), *lines)
    for form in (text, text.replace('": ', '":').replace(", ", ",")):
        rows, _ = made(form, "codex_rollout", tmp_path)
        assert sums(rows) == (2500, 30)
        assert [row["response_id"] for row in rows] == ["r1", "r2"]
    # The words alone, in a prompt, are no record.
    quoted = {"type": "message", "role": "user", "content": '{"type": "token_usage_record"}'}
    talk = {"timestamp": "2026-09-01T10:00:01Z", "type": "response_item", "payload": quoted}
    rows, _ = made(jsonl(meta(), talk, counted(4, usage(70, 7))), "codex_rollout", tmp_path)
    assert sums(rows) == (70, 7)


def test_codex_ttft_is_that_of_the_first_request_of_its_turn(tmp_path):
    def event(second, **payload):
        stamp = f"2026-09-01T10:00:{second:06.3f}Z"
        return {"timestamp": stamp, "type": "event_msg", "payload": payload}

    lines = [
        event(1, type="task_started", turn_id="a"),
        counted(5, usage(100, 10)), counted(9, usage(300, 20)),
        event(10, type="task_complete", turn_id="a", time_to_first_token_ms=1500),
        event(11, type="task_started", turn_id="b"),
        event(12, type="task_complete", turn_id="b", time_to_first_token_ms=9000),
    ]  # fmt: skip
    rows, _ = made(jsonl(meta(), *lines), "codex_rollout", tmp_path)
    assert [row.get("ttft_ns") for row in rows] == [1500 * MS, None]
    assert [row["start_ns"] % (60 * S) for row in rows] == [1 * S, 9 * S]


# -- Gemini CLI -----------------------------------------------------------------------------------


def test_gemini_sums_of_a_run_are_refused(tmp_path):
    api = {"totalRequests": 7, "totalErrors": 0, "totalLatencyMs": 9000}
    model = {"api": api, "tokens": {"prompt": 70, "candidates": 7}}
    stats = {"response": "x", "stats": {"models": {"gemini-demo": model}}}
    rows, batches = made(json.dumps(stats), "gemini_cli", tmp_path)
    assert rows == []
    (problem,) = problems_of(batches)
    assert "7 requests" in problem.reason


def test_gemini_messages_that_a_change_carries_count_once(tmp_path):
    tokens = {"input": 10, "output": 2, "cached": 0, "thoughts": 0, "tool": 0, "total": 12}
    stamp = "2026-09-01T10:00:00Z"
    message = {"id": "g", "type": "gemini", "timestamp": stamp, "model": "m", "tokens": tokens}
    head = {"sessionId": "s", "projectHash": "p", "startTime": stamp, "messages": [message]}
    lines = [head, message, {"$set": {"messages": []}}]
    rows, batches = made(jsonl(*lines), "gemini_cli", tmp_path)
    assert [(row["request_id"], inputs(row), outputs(row)) for row in rows] == [("s/g", 10, 2)]
    assert problems_of(batches) == []


# -- opencode -------------------------------------------------------------------------------------

SCHEMA = """
CREATE TABLE `project` (`id` text PRIMARY KEY, `worktree` text NOT NULL);
CREATE TABLE `session` (`id` text PRIMARY KEY, `project_id` text NOT NULL, `parent_id` text,
  `title` text NOT NULL, `version` text NOT NULL, `time_created` integer NOT NULL);
CREATE TABLE `message` (`id` text PRIMARY KEY, `session_id` text NOT NULL,
  `time_created` integer NOT NULL, `time_updated` integer NOT NULL, `data` text NOT NULL);
CREATE INDEX `message_session_idx` ON `message` (`session_id`, `time_created`, `id`);
INSERT INTO session VALUES ('s1', 'p', NULL, 'a title that is nobody''s', '1.2.0', 1);
INSERT INTO session VALUES ('s2', 'p', 's1', 'another title', '1.2.0', 1);
"""


def tokens(given, made, thought=0, read=0, written=0, total=None):
    told = {"input": given, "output": made, "reasoning": thought}
    told |= {"cache": {"read": read, "write": written}}
    return told if total is None else told | {"total": total}


def answer(told, cost=0.0, **more):
    created = 1_789_000_000_000
    return {
        "role": "assistant", "modelID": "m", "providerID": "p", "cost": cost, "tokens": told,
        "time": {"created": created, "completed": created + 5000}, "finish": "stop",
    } | more  # fmt: skip


def database(path, *messages, before=""):
    with sqlite3.connect(path) as connection:
        connection.executescript(before + SCHEMA)
        for index, (session, data) in enumerate(messages):
            text = data if isinstance(data, str) else json.dumps(data)
            row = (f"msg_{index}", session, 1_789_000_000_000 + index, 0, text)
            connection.execute("INSERT INTO message VALUES (?, ?, ?, ?, ?)", row)
    connection.close()
    return path


def test_opencode_reasoning_by_its_total(tmp_path):
    path = database(
        tmp_path / "opencode.db",
        ("s1", answer(tokens(10, 100, 40, 1000, 200, total=1350))),
        ("s1", answer(tokens(10, 100, 40, 1000, 200, total=1310))),
        ("s1", answer(tokens(10, 100, 40))),
        ("s1", answer(tokens(10, 100, 140))),
        ("s2", answer(tokens(10, 100, 0, total=999), cost=0.25)),
    )
    rows, batches = real(path, "opencode")
    told = [(row["output_visible_tokens"], row["output_reasoning_tokens"]) for row in rows]
    assert told == [(100, 40), (60, 40), (60, 40), (100, 140), (100, 0)]
    assert "without a total" in notes(batches)
    assert [row.get("usage_contradiction") for row in rows] == [None] * 4 + [NO_SUM]
    assert [row.get("reported_cost_usd") is None for row in rows] == [True] * 4 + [False]
    assert [row["turn"] for row in rows] == [1, 2, 3, 4, 1]
    assert [row["is_sidechain"] for row in rows] == [False] * 4 + [True]
    assert [row.get("parent_session_id") for row in rows] == [None] * 4 + ["s1"]
    assert all("e2e_ns" not in row for row in rows), "the times include the tools that it ran"


def test_opencode_broken_message_costs_itself(tmp_path):
    path = database(tmp_path / "db", ("s1", "{broken"), ("s1", answer(tokens(1, 2))), ("s1", "[]"))
    rows, batches = real(path, "opencode")
    assert len(rows) == 1
    assert [problem.record for problem in problems_of(batches)] == [1, 3]


def test_opencode_database_packed_or_in_an_archive_is_the_same(tmp_path):
    path = database(tmp_path / "opencode.db", ("s1", answer(tokens(1, 2))))
    plain = rows_of(read(READERS["opencode"], path))
    packed = tmp_path / "opencode.db.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert rows_of(read(READERS["opencode"], packed)) == plain
    archive = tmp_path / "share.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(path, "opencode/opencode.db")
    shelf, found = Shelf(), 0
    for one in members(InputFile(archive, archive.name), shelf) or ():
        assert pick(one.file.head).reader is READERS["opencode"]
        assert rows_of(list(READERS["opencode"].read(one.file, OPTIONS))) == plain
        found += 1
    shelf.close()
    assert found == 1


def test_opencode_write_ahead_log_is_told_and_nothing_is_written(tmp_path):
    path = tmp_path / "opencode.db"
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
    connection.close()
    database(path, ("s1", answer(tokens(1, 2))))
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    rows, batches = real(path, "opencode")
    assert len(rows) == 1
    assert "VACUUM INTO" in notes(batches)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_opencode_damaged_database_is_one_problem_that_names_the_repair(tmp_path):
    some = [("s1", answer(tokens(index, 2))) for index in range(400)]
    path = database(tmp_path / "whole.db", *some)
    data = path.read_bytes()
    cut = tmp_path / "cut.db"
    cut.write_bytes(data[: len(data) // 2])
    rows, batches = real(cut, "opencode")
    assert len(rows) < 400
    (problem,) = problems_of(batches)
    assert ".recover" in problem.reason


@pytest.mark.parametrize(
    "trick",
    [
        "DROP TABLE message; CREATE VIEW message AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL "
        "SELECT i + 1 FROM n) SELECT i AS id, i AS session_id, i AS time_created, i AS data FROM n",
        "DROP TABLE session; CREATE VIRTUAL TABLE session USING fts5(id, parent_id)",
    ],
    ids=["endless view", "virtual table"],
)
def test_opencode_hostile_schema_does_not_run(trick, tmp_path):
    path = database(tmp_path / "evil.db")
    with sqlite3.connect(path) as connection:
        connection.executescript(trick)
    connection.close()
    batches = read(READERS["opencode"], path)
    assert rows_of(batches) == []
    assert len(problems_of(batches)) == 1


def test_opencode_same_message_in_database_and_file_has_one_id(tmp_path):
    data = answer(tokens(1, 2))
    path = database(tmp_path / "opencode.db", ("s1", data))
    (row,), _ = real(path, "opencode")
    text = json.dumps({"id": "msg_0", "sessionID": "s1"} | data)
    (again,), _ = made(text, "opencode", tmp_path)
    same = set(row) - {"turn", "is_sidechain"}
    assert {name: row[name] for name in same} == {name: again[name] for name in same}


def test_opencode_long_message_of_an_older_version(tmp_path):
    data = answer(tokens(5, 6), system=["You are a parrot. " * 6000])
    (row,), _ = made(json.dumps({"id": "msg_9"} | data | {"sessionID": "s9"}), "opencode", tmp_path)
    assert (row["session_id"], inputs(row), outputs(row)) == ("s9", 5, 6)


# -- pi -------------------------------------------------------------------------------------------


def test_pi_branch_repeats_its_parent_under_the_same_ids(tmp_path):
    def entry(name, at):
        told = {"input": 10, "output": 2, "cacheRead": 3, "cacheWrite": 0, "totalTokens": 15}
        message = {"role": "assistant", "model": "m", "usage": told, "timestamp": at}
        stamp = "2026-09-01T10:00:00Z"
        return {
            "type": "message", "id": name, "parentId": None, "timestamp": stamp,
            "message": message | {"stopReason": "stop"},
        }  # fmt: skip

    head = {"type": "session", "version": 3, "id": "pi-a", "timestamp": "2026-09-01T10:00:00Z"}
    at = 1_789_000_000_000
    first, _ = made(jsonl(head, entry("e1", at)), "pi_session", tmp_path)
    branch = head | {"id": "pi-b", "parentSession": "C:\\pi\\2026-09-01T10-00-00-000Z_pi-a.jsonl"}
    copied = jsonl(branch, entry("e1", at), entry("e1", at + 1))
    second, _ = made(copied, "pi_session", tmp_path)
    assert second[0]["request_id"] == first[0]["request_id"] != second[1]["request_id"]
    assert {row["parent_session_id"] for row in second} == {"pi-a"}

"""What readers tell of the prompts in their logs: parts of whole bodies, sums of transcripts."""

import json
import sqlite3

import pytest
from test_readers import READERS, read, rows_of

TIMES = {"startTime": 1790500000.0, "endTime": 1790500002.0, "completionStartTime": 1790500001.0}
MESSAGES = [
    {"role": "system", "content": "It is 2026-09-27."},
    {"role": "user", "content": "Is the lock open?"},
]
TOOLS = [{"type": "function", "function": {"name": "lock"}}]
BODY = {"model": "m", "messages": MESSAGES, "tools": TOOLS, "reasoning_effort": "low"}
ANTHROPIC = {
    "anthropic_version": "bedrock-2023-05-31", "max_tokens": 9, "system": "It is 2026-09-27.",
    "messages": MESSAGES[1:], "tools": TOOLS,
}  # fmt: skip
LOGS = {
    "litellm_payloads": {
        "id": "a", "response_cost": 0.1, **TIMES, "status": "success", "messages": MESSAGES,
        "model_parameters": {"tools": TOOLS, "reasoning_effort": "low"},
    },
    "litellm_spend_logs": {
        "request_id": "a", "call_type": "acompletion", "spend": 0.1,
        "startTime": "2026-09-27 08:00:00", "endTime": "2026-09-27 08:00:01",
        "messages": {}, "proxy_server_request": json.dumps(BODY),
    },
    "langfuse": {
        "id": "a", "traceId": "t", "parentObservationId": None, "type": "GENERATION",
        "startTime": "2026-09-27T08:00:00Z", "endTime": "2026-09-27T08:00:01Z",
        "input": json.dumps({"messages": MESSAGES, "tools": TOOLS}),
    },
    "helicone": {
        "request_id": "a", "request_created_at": "2026-09-27 08:00:00", "prompt_tokens": 3,
        "completion_tokens": 1, "prompt_cache_read_tokens": 0, "time_to_first_token": 5,
        "request_body": json.dumps(BODY),
    },
    "bedrock_invocation_log": {
        "schemaType": "ModelInvocationLog", "timestamp": "2026-09-27T08:00:00Z", "modelId": "m",
        "requestId": "a", "operation": "InvokeModel", "input": {"inputBodyJson": ANTHROPIC},
        "output": {},
    },
    "openai_proxy_records": {
        "ts": "2026-09-27T08:00:00Z", "response_id": "a", "endpoint": "/v1/chat/completions",
        "latency_ms": 5.0, "prompt_tokens": 3, "completion_tokens": 1, "input": BODY,
    },
    "portkey": {
        "createdAt": "2026-09-27T08:00:00Z", "executionTime": 5, "cacheStatus": "MISS",
        "lastUsedOptionIndex": 0, "requestParams": BODY, "originalResponse": {},
    },
}  # fmt: skip


def rows(reader, tmp_path, *records, name="log.jsonl"):
    file = tmp_path / name
    file.write_text("".join(json.dumps(one) + "\n" for one in records), encoding="utf-8")
    return rows_of(read(READERS[reader], file))


@pytest.mark.parametrize("reader", LOGS)
def test_a_logged_body_has_the_same_parts_in_every_log(reader, tmp_path):
    told = rows(reader, tmp_path, LOGS[reader])
    parts = [row for table, row in told if table == "prompt_part"]
    assert [(row["part_index"], row["kind"], row["chars"]) for row in parts] == [
        (0, "tools", 46), (1, "system", 17), (2, "user", 17),
    ]  # fmt: skip
    assert (parts[1]["volatile"], parts[1]["first_volatile_chars"]) == ("timestamp", 6)
    assert parts[1]["plain_hash"] != parts[1]["part_hash"]
    (row,) = (row for table, row in told if table == "request")
    assert (row["tools_count"], row["tools_chars"], row["system_chars"]) == (1, 46, 17)
    assert (row["user_chars"], row["assistant_chars"], row["images"]) == (17, 0, 0)
    assert row["input_chars"] == 80
    if "reasoning_effort" in json.dumps(LOGS[reader]):
        assert row["effort"] == "low"


def test_hashes_agree_across_logs(tmp_path):
    found = {
        tuple(row["part_hash"] for table, row in told if table == "prompt_part")
        for reader, one in LOGS.items()
        if (told := rows(reader, tmp_path, one))
    }
    assert len(found) == 1


def test_a_posted_body_of_a_http_archive(tmp_path):
    entry = {
        "startedDateTime": "2026-09-27T08:00:00Z", "time": 5,
        "request": {"method": "POST", "url": "https://a.example/v1", "headers": [],
                    "postData": {"text": json.dumps(BODY)}},
        "response": {"status": 200, "headers": [], "content": {"mimeType": "application/json"}},
        "timings": {"send": 1, "wait": 3, "receive": 1},
    }  # fmt: skip
    file = tmp_path / "a.har"
    file.write_text(json.dumps({"log": {"version": "1.2", "creator": {}, "entries": [entry]}}))
    told = rows_of(read(READERS["har"], file))
    kinds = [row["kind"] for table, row in told if table == "prompt_part"]
    assert kinds == ["tools", "system", "user"]


def message(number, role, created, **more):
    told = {"role": role, "time": {"created": 1790500000000 + created}} | more
    return f"msg_{number}", "ses_1", created, json.dumps(told)


def test_opencode_adds_up_the_parts_of_the_messages_before(tmp_path):
    tokens = {"input": 5, "output": 5, "reasoning": 0, "cache": {"read": 0, "write": 0}}
    answer = {"tokens": tokens, "finish": "stop", "modelID": "m"}
    path = tmp_path / "opencode.db"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE session (id text, parent_id text)")
        database.execute("CREATE TABLE message (id text, session_id text, time_created, data text)")
        database.execute("CREATE TABLE part (id text, message_id text, data text)")
        database.execute("INSERT INTO session VALUES ('ses_1', NULL)")
        some = [
            message(1, "user", 1), message(2, "assistant", 2, **answer),
            message(3, "assistant", 3, **answer),
            message(4, "assistant", 4, summary=True, **answer),
            message(5, "assistant", 5, **answer),
        ]  # fmt: skip
        database.executemany("INSERT INTO message VALUES (?, ?, ?, ?)", some)
        parts = [
            ("msg_1", {"type": "text", "text": "Is the lock open?"}), ("msg_1", {"type": "file"}),
            ("msg_2", {"type": "reasoning", "text": "Hm."}),
            ("msg_2", {"type": "tool", "tool": "lock",
                       "state": {"input": {"n": 1}, "output": "It is."}}),
            ("msg_3", {"type": "text", "text": "Yes."}),
            ("msg_4", {"type": "text", "text": "A lock."}),
            ("msg_5", {"type": "text", "text": "Well."}),
        ]  # fmt: skip
        database.executemany(
            "INSERT INTO part VALUES ('p', ?, ?)", [(of, json.dumps(one)) for of, one in parts]
        )
        database.execute("INSERT INTO part VALUES ('p', 'msg_5', 'no JSON')")
    database.close()
    told = [row for table, row in rows_of(read(READERS["opencode"], path)) if table == "request"]
    names = ("user_chars", "assistant_chars", "reasoning_chars", "tool_result_chars", "images")
    assert [tuple(row[name] for name in names) for row in told] == [
        (17, 0, 0, 0, 1), (17, 11, 3, 6, 1), (17, 15, 3, 6, 1), (7, 0, 0, 0, 0),
    ]  # fmt: skip
    assert [row.get("is_compacted") for row in told] == [None, None, None, True]


def claude(kind, content, number, **more):
    message = {"role": kind, "content": content}
    if kind == "assistant":
        usage = {"input_tokens": 1, "output_tokens": number, "speed": "fast"}
        message |= {"id": more.pop("id", f"msg_{number}"), "model": "m", "usage": usage}
    told = {"type": kind, "sessionId": "s", "uuid": f"u{number}", "isSidechain": False}
    return told | {"timestamp": f"2026-09-27T08:00:{number:02}.000Z", "message": message} | more


def test_claude_code_adds_up_what_was_said_in_each_thread(tmp_path):
    result = {"type": "tool_result", "tool_use_id": "t", "content": [
        {"type": "text", "text": "It is."}, {"type": "image", "source": {}}]}  # fmt: skip
    told = rows(
        "claude_code", tmp_path,
        claude("user", "Is the lock open?", 1),
        claude("assistant", [{"type": "thinking", "thinking": "Hm."}], 2, id="msg_a"),
        claude("assistant", [{"type": "tool_use", "id": "t", "name": "lock", "input": {}}], 3,
               id="msg_a"),
        claude("user", [result], 4),
        claude("user", "Look closely.", 5, isSidechain=True, agentId="g"),
        claude("assistant", [{"type": "text", "text": "Yes."}], 6),
        claude("assistant", [{"type": "text", "text": "Aye."}], 7, isSidechain=True, agentId="g"),
        {"type": "system", "subtype": "compact_boundary", "sessionId": "s", "uuid": "u8"},
        claude("user", "A lock was looked at.", 9),
        claude("assistant", [{"type": "text", "text": "Well."}], 10),
    )  # fmt: skip
    found = [row for table, row in told if table == "request"]
    names = ("user_chars", "assistant_chars", "reasoning_chars", "tool_result_chars", "images")
    assert [tuple(row[name] for name in names) for row in found] == [
        (17, 0, 0, 0, 0), (17, 6, 3, 6, 1), (13, 0, 0, 0, 0), (21, 0, 0, 0, 0),
    ]  # fmt: skip
    assert [row.get("is_compacted") for row in found] == [None, None, None, True]
    assert {row["speed"] for row in found} == {"fast"}
    assert "prompt_part" not in {table for table, _ in told}


@pytest.mark.parametrize(
    "content",
    [7, {"type": "text"}, [7, {"type": "text", "text": "Yes."}], [{"type": 7}, {"text": [7]}],
     [{"type": "web_search_tool_result", "content": {"type": "error"}}]],
)  # fmt: skip
def test_odd_content_costs_neither_the_usage_nor_what_else_a_line_tells(content, tmp_path):
    lines = [claude("assistant", content, 2, parent_tool_use_id=None, requestId="r"),
             claude("assistant", "More.", 3)]  # fmt: skip
    lines[0]["message"]["diagnostics"] = {"cache_miss_reason": {"type": "system_changed",
                                          "cache_missed_input_tokens": 9}}  # fmt: skip
    first, second = (
        row for table, row in rows("claude_code", tmp_path, *lines) if table == "request"
    )
    assert (first["output_visible_tokens"], first["request_id"]) == (2, "r")
    assert (first["cache_diagnosis"], first["cache_missed_tokens"]) == ("system_changed", 9)
    assert second["output_visible_tokens"] == 3
    assert second.get("assistant_chars", 0) == (4 if "Yes." in str(content) else 0)

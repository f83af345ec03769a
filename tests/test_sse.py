"""Captured streams: times a line, several answers, what breaks off, what is no stream at all."""

import json

import pytest
from test_readers import OPTIONS, READERS, read, rows_of

from analyzer.readers._file import InputFile
from analyzer.readers._find import pick
from analyzer.readers._reader import Options

MS = 1_000_000
NOON = 1_789_646_400_000 * MS  # 2026-09-17T12:00:00Z


def chunk(answer, text=None, finish=None, **more):
    delta = {} if text is None else {"content": text}
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    event = {"id": answer, "object": "chat.completion.chunk", "choices": [choice], **more}
    return "data: " + json.dumps(event)


def capture(lines, folder, options=OPTIONS):
    """Rows by table, and the reasons of the problems."""
    file = folder / "capture.sse"
    file.write_text("".join(f"{line}\n" for line in lines))
    batches = read(READERS["sse_capture"], file, options)
    rows = rows_of(batches)
    told = {table: [row for name, row in rows if name == table] for table, _ in rows}
    problems = [problem.reason for batch in batches for problem in batch.problems]
    return told, problems, batches


@pytest.mark.parametrize(
    ("times", "start", "ttft", "gap"),
    [
        (("2026-09-17T12:00:00.500Z", "2026-09-17T12:00:00.750Z"), NOON + 500 * MS, None, 250),
        (("[2026-09-17 14:00:00,5+02:00]", "[2026-09-17 14:00:00,75+02:00]"), NOON + 500 * MS,
         None, 250),
        (("1789646400.5", "1789646400.75"), NOON + 500 * MS, None, 250),
        (("1789646400500", "1789646400750"), NOON + 500 * MS, None, 250),
        (("1789646400500000 |", "1789646400750000 |"), NOON + 500 * MS, None, 250),
        (("23:59:59.900:", "00:00:00.150:"), None, None, 250),
        (("+500ms", "+750ms"), None, 500, 250),
        (("0.500000", "0.750000"), None, 500, 250),
        (("0.000000", "0.250000"), None, None, 250),  # zero is the first event, not the send
    ],
)  # fmt: skip
def test_time_prefixes(times, start, ttft, gap, tmp_path):
    lines = [f"{times[0]} {chunk('a', 'one')}", f"{times[1]} {chunk('a', ' two', 'stop')}"]
    told, problems, _ = capture(lines, tmp_path)
    (row,) = told["request"]
    assert problems == []
    assert row.get("start_ns") == start
    assert row.get("ttft_ns") == (None if ttft is None else ttft * MS)
    first, last = (one["offset_ns"] for one in told["chunk"])
    assert last - first == gap * MS
    assert row["clock"] == ("wall" if start else "monotonic")


def test_zone_that_is_not_told_is_assumed(tmp_path):
    lines = [f"2026-09-17 12:00:00.5 {chunk('a', 'one', 'stop')}"]
    told, _, batches = capture(lines, tmp_path, Options(zone="Asia/Tokyo"))
    assert told["request"][0]["start_ns"] == NOON + 500 * MS - 9 * 3_600_000 * MS
    assert "Asia/Tokyo" in " ".join(batches[0].assumed)


def test_without_times_there_is_no_latency_and_no_chunk_row(tmp_path):
    lines = [chunk("a", "one"), "", chunk("a", " two", "stop"), "", "data: [DONE]"]
    told, problems, _ = capture(lines, tmp_path)
    assert problems == []
    assert told.keys() == {"request"}
    (row,) = told["request"]
    assert row["chunks"] == 2
    assert not [name for name in row if name.endswith("_ns")]
    assert "timing" not in row


def test_answers_that_run_side_by_side_keep_apart(tmp_path):
    lines = [
        f"{second}.0 {chunk(answer, answer * 3, finish)}"
        for second, answer, finish in [
            (1, "a", None), (2, "b", None), (3, "a", None), (4, "b", "stop"), (5, "a", "length"),
        ]
    ]  # fmt: skip
    told, problems, _ = capture(lines, tmp_path)
    assert problems == []
    rows = {row["response_id"]: row for row in told["request"]}
    assert {name: row["chunks"] for name, row in rows.items()} == {"a": 3, "b": 2}
    assert rows["a"]["finish_reason"] == "length"
    offsets = [one["offset_ns"] for one in told["chunk"] if one["record"] == 2]
    assert offsets == [2_000 * MS, 4_000 * MS]


def test_tokens_of_a_chunk_are_what_the_running_total_grew_by(tmp_path):
    def usage(made):
        return {"prompt_tokens": 5, "completion_tokens": made, "total_tokens": 5 + made}

    lines = [
        f"{second}.0 {chunk('a', text, finish, usage=usage(made))}"
        for second, text, finish, made in [
            (1, "on", None, 2),
            (2, "e t", None, 5),
            (3, "", "stop", 5),
        ]
    ]
    told, _, _ = capture(lines, tmp_path)
    assert [one["tokens"] for one in told["chunk"]] == [2, 3]
    assert told["request"][0]["first_chunk_tokens"] == 2
    assert told["request"][0]["output_visible_tokens"] == 5


def test_one_event_over_several_data_lines(tmp_path):
    text = chunk("a", "one", "stop")
    half = text.index(', "choices"')
    told, problems, _ = capture([text[:half], f"data:{text[half:]}", ""], tmp_path)
    assert problems == []
    assert told["request"][0]["finish_reason"] == "stop"


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (["data: <html>bad gateway</html>", ""], "no JSON object"),
        ([chunk("a", "one")[:-9]], "cut off"),
        (['data: {"some": "thing"}', ""], "no vendor's stream"),
        (['data: {"type": "response.never_heard_of", "x": 1}', ""], "no vendor's stream"),
        (["what the script printed"], "neither an SSE field"),
        (['{"half": '], "not a whole JSON object"),
    ],
)
def test_what_is_no_event_is_a_problem(lines, reason, tmp_path):
    told, problems, _ = capture([chunk("a", "one"), "", *lines], tmp_path)
    assert [row["chunks"] for row in told["request"]] == [1]
    assert len(problems) == 1
    assert reason in problems[0]


def test_failure_half_way_keeps_the_status_of_the_answer(tmp_path):
    error = {"code": 502, "message": "the prompt was: secret"}
    lines = [
        "> POST /v1/chat/completions HTTP/1.1",
        "< HTTP/1.1 200 OK",
        "< retry-after: 3",
        "< set-cookie: secret",
        "<",
        chunk("a", "one"),
        chunk("a", "", "error", error=error),
    ]
    told, problems, batches = capture(lines, tmp_path)
    (row,) = told["request"]
    assert problems == []
    assert (row["status"], row["error"], row["finish_reason"]) == (200, "http 502", "error")
    assert row["retry_after_ns"] == 3_000 * MS
    assert "secret" not in repr(batches)


def test_refused_request_of_curl_is_a_request_that_failed(tmp_path):
    body = '{"type":"error","error":{"type":"rate_limit_error","message":"no"},"request_id":"r1"}'
    told, problems, _ = capture(["HTTP/2 429", "retry-after: 12", "", body], tmp_path)
    assert problems == []
    (row,) = told["request"]
    assert (row["status"], row["error"], row["request_id"]) == (429, "rate_limit_error", "r1")
    assert row["retry_after_ns"] == 12_000 * MS


def test_a_line_of_a_chunk_may_hold_half_an_event(tmp_path):
    text = chunk("a", "one") + "\n\n" + chunk("a", " two", "stop") + "\n\n"
    lines = [
        json.dumps({"elapsed_ms": at, "data": text[begin:end]})
        for at, begin, end in [(100, 0, 40), (160, 40, 200), (190, 200, len(text))]
    ]
    told, problems, _ = capture(lines, tmp_path)
    assert problems == []
    assert [one["offset_ns"] // MS for one in told["chunk"]] == [160, 190]
    assert told["request"][0]["chunks"] == 2


@pytest.mark.parametrize(
    "lines",
    [
        ["data: 3", "data: 4"],
        ['data: {"temperature": 3}', "", 'data: {"temperature": 4}'],
        ['{"ts": 3, "level": "info", "data": "hello"}'],
        ["2026-09-17T12:00:00Z GET /v1/models 200"],
        ["event: tick", ": note"],
    ],
)
def test_other_streams_are_not_claimed(lines, tmp_path):
    file = tmp_path / "capture.sse"
    file.write_text("\n".join(lines))
    assert not READERS["sse_capture"].probe(InputFile(file, file.name).head).sure


def test_whole_answers_are_no_stream(tmp_path):
    answer = {
        "candidates": [{"content": {"parts": [{"text": "A"}]}, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 1, "totalTokenCount": 4},
        "modelVersion": "gemini-2.5-flash",
    }
    lines = [json.dumps(answer | {"responseId": name}) for name in ("r1", "r2")]
    file = tmp_path / "capture.jsonl"
    file.write_text("\n".join(lines))
    assert pick(InputFile(file, file.name).head).reader.name == "usage_bodies"
    part = json.dumps(
        answer | {"responseId": "r1", "candidates": [{"content": {"parts": [{"text": "A"}]}}]}
    )
    file.write_text("\n".join([part, lines[0]]))
    assert pick(InputFile(file, file.name).head).reader.name == "sse_capture"


def test_answer_that_was_logged_again_counts_once(tmp_path):
    body = {"id": "m1", "type": "message", "role": "assistant", "model": "c", "content": []}
    first = body | {"usage": {"input_tokens": 3, "output_tokens": 1}}
    reused = body | {"usage": {"input_tokens": 4, "output_tokens": 1}}
    file = tmp_path / "bodies.jsonl"
    file.write_text("".join(json.dumps(one) + "\n" for one in (first, first, reused)))
    batches = read(READERS["usage_bodies"], file)
    assert [row["input_fresh_tokens"] for _, row in rows_of(batches)] == [3, 4]
    assert dict(batches[0].ignored) == {"the same answer again": 1}


def test_answer_of_more_than_the_head_is_known_by_its_first_keys(tmp_path):
    body = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "model": "m",
        "choices": [{"index": 0, "message": {"content": "x" * 200_000}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 9, "total_tokens": 12},
    }
    file = tmp_path / "body.json"
    for indent in (None, 2):
        file.write_text(json.dumps(body, indent=indent))
        assert pick(InputFile(file, file.name).head).reader.name == "usage_bodies"
        ((_, row),) = rows_of(read(READERS["usage_bodies"], file))
        assert row["output_visible_tokens"] == 9

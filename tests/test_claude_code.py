"""Claude Code transcripts: what several lines, files and spellings of one answer come to."""

from __future__ import annotations

import json
import random

import msgspec
import pytest
from helpers import engine_of
from test_readers import READERS, read, rows_of, totals

import analyzer
from analyzer.readers._claude_lines import Usage, moment
from analyzer.readers._file import InputFile
from analyzer.readers._find import pick
from analyzer.readers._times import time_to_ns
from analyzer.readers._usage import token_buckets

READER = READERS["claude_code"]
T = "2026-05-11T10:00:{:06.3f}Z"


def line(mid="msg_1", output=10, second=1.0, **more):
    """One assistant line; None leaves a key out."""
    message = {
        "id": mid, "role": "assistant", "model": "m", "stop_reason": "end_turn",
        "usage": {"input_tokens": 5, "output_tokens": output, "cache_read_input_tokens": 100,
                  "cache_creation_input_tokens": 7},
    } | more.pop("message", {})  # fmt: skip
    told = {
        "type": "assistant", "sessionId": "s", "uuid": f"u{mid}{second}", "requestId": f"r-{mid}",
        "isSidechain": False, "timestamp": T.format(second), "message": message,
    } | more  # fmt: skip
    message = {name: value for name, value in message.items() if value is not None}
    return {name: value for name, value in told.items() if value is not None} | {"message": message}


def requests(tmp_path, *lines, name="a.jsonl"):
    """Request rows of one file."""
    file = tmp_path / name
    file.write_text("".join((x if isinstance(x, str) else json.dumps(x)) + "\n" for x in lines))
    return [row for table, row in rows_of(read(READER, file)) if table == "request"]


def test_the_whole_line_with_the_largest_output_counts(tmp_path):
    usage = {"input_tokens": 900, "output_tokens": 40, "cache_read_input_tokens": 0}
    switched = line(second=2, message={"model": "other", "usage": usage})
    (row,) = requests(tmp_path, line(output=3), switched, line(output=3, second=3))
    told = row["model"], row["input_fresh_tokens"], row["cache_read_tokens"]
    assert told == ("other", 900, 0)  # not the maximum of each field
    assert row["output_visible_tokens"] == 40
    assert (row["usage_records"], row["usage_records_output_tokens"]) == (3, 46)


def test_of_equal_outputs_the_latest_counts(tmp_path):
    first = line(message={"stop_reason": None})
    first["message"]["stop_reason"] = None
    (row,) = requests(tmp_path, first, line(second=2))
    assert row["usage_final"] is True


def test_a_line_without_request_id_joins_its_answer(tmp_path):
    (row,) = requests(tmp_path, line(requestId=None), line(second=2, output=4))
    assert row["request_id"] == "r-msg_1"


def test_two_request_ids_under_one_answer_id_are_two_requests(tmp_path):
    rows = requests(tmp_path, line(), line(requestId="other", second=2), line(second=3))
    assert [row["usage_records"] for row in rows] == [2, 1]


@pytest.mark.parametrize("main_first", [True, False])
def test_a_side_chain_copy_is_the_main_request(tmp_path, main_first):
    both = [line(), line(requestId="other", isSidechain=True, second=9)]
    (row,) = requests(tmp_path, *(both if main_first else both[::-1]))
    assert row["is_sidechain"] is False
    assert row["session_id"] == "s"


def test_alike_is_not_the_same(tmp_path):
    assert len(requests(tmp_path, line("msg_1"), line("msg_2", second=1.4))) == 2


def test_without_any_id_each_line_is_a_request(tmp_path):
    lines = [line(None, requestId=None, second=second) for second in (1, 2)]
    assert len(requests(tmp_path, *lines)) == 2


def test_spaces_and_the_order_of_keys_change_nothing(tmp_path):
    plain = requests(tmp_path, line(), line("msg_2", second=5))
    dense = [json.dumps(x, separators=(",", ":")) for x in (line(), line("msg_2", second=5))]
    turned = [json.dumps(dict(reversed(x.items())), separators=(" ,  ", " :\t"))
              for x in (line(), line("msg_2", second=5))]  # fmt: skip
    assert requests(tmp_path, *dense) == plain
    assert requests(tmp_path, *turned) == plain


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ("{not json", "not valid JSON"),
        ('{"type":"assistant","sessionId":"s","uuid":"x","message":{"usage":{"output_tokens":-4}}}',
         "'usage'"),
        ('{"type":"assistant","sessionId":"s","uuid":"x","message":{"usage":[1]}}', "'usage'"),
        ('{"silly": "line"}', "no entry of a session"),
        ("[1, 2]", "no object"),
    ],
)  # fmt: skip
def test_a_bad_line_costs_itself(tmp_path, bad, reason):
    file = tmp_path / "a.jsonl"
    file.write_text(f"{json.dumps(line())}\n{bad}\n{json.dumps(line('msg_2', second=4))}\n")
    batches = read(READER, file)
    (problem,) = [problem for batch in batches for problem in batch.problems]
    assert problem.record == 2
    assert reason in problem.reason
    assert totals(batches)[:2] == (3, 2)
    assert len(rows_of(batches)) == 2


def test_odd_types_of_other_fields_cost_nothing(tmp_path):
    odd = line(agentId=7, version=[1], costUSD="a lot", parentUuid={"a": 1}, isSidechain="no")
    (row,) = requests(tmp_path, odd)
    assert row["output_visible_tokens"] == 10


def test_aggregates_of_a_sub_agent_are_never_added(tmp_path):
    result = {
        "type": "user", "sessionId": "s", "uuid": "u9", "timestamp": T.format(9),
        "toolUseResult": {"totalTokens": 5_000, "usage": {"input_tokens": 9, "output_tokens": 99}},
        "message": {"role": "user", "content": [{"type": "tool_result", "content": "x"}]},
    }  # fmt: skip
    (row,) = requests(tmp_path, line(), result)
    assert row["output_visible_tokens"] == 10


def test_plain_usage_gives_what_the_whole_object_gives():
    dice = random.Random(5)
    names = ("input_tokens", "output_tokens", "cache_read_input_tokens",
             "cache_creation_input_tokens")  # fmt: skip
    for _ in range(2_000):
        usage = {name: dice.randint(0, 90) for name in names if dice.random() < 0.8}
        if dice.random() < 0.5:
            split = ("ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens")
            usage["cache_creation"] = {n: dice.randint(0, 60) for n in split if dice.random() < 0.8}
        if dice.random() < 0.3:
            usage["output_tokens_details"] = {"thinking_tokens": dice.randint(0, 120)}
        if dice.random() < 0.3:
            usage["total_tokens"] = dice.randint(0, 300)
        if dice.random() < 0.3:
            kind = dice.choice(("message", "compaction", "advisor_message"))
            usage["iterations"] = [{"type": kind, "input_tokens": 3, "output_tokens": 4}]
        # Lines of a transcript are Anthropic's, whatever they leave out.
        told = token_buckets({"cache_creation_input_tokens": None} | usage)
        assert clean(msgspec.convert(usage, Usage).buckets()) == clean(told), usage


def clean(buckets):
    return {name: value for name, value in buckets.items() if value is not None}


@pytest.mark.parametrize(
    "text",
    [
        "2026-05-11T10:00:00.123Z", "2024-02-29T23:59:59.999Z", "2026-13-01T10:00:00.123Z",
        "2026-05-11T10:00:00.12Z", "2026-05-11T10:00:00+02:00", "1960-01-01T00:00:00.000Z",
        "2026-05-11 10:00:00.123Z", "soon", "",
    ],
)  # fmt: skip
def test_a_moment_is_the_time_it_says(text):
    assert moment(text) in (None, time_to_ns(text))
    if len(text) == 24 and text[5:7] != "13" and text[:4] != "1960" and "T" in text:
        assert moment(text) is not None


def test_a_first_line_longer_than_the_head_is_recognised(tmp_path):
    file = tmp_path / "a.jsonl"
    user = {"parentUuid": None, "isSidechain": False, "sessionId": "s", "type": "user",
            "message": {"role": "user", "content": "x " * 60_000}, "uuid": "u"}  # fmt: skip
    file.write_text(json.dumps(user) + "\n" + json.dumps(line()) + "\n")
    assert pick(InputFile(file, "a.jsonl").head).reader.name == "claude_code"


def counted(tmp_path, **files):
    """Answers of a case as (session, output), one file an argument."""
    for name, lines in files.items():
        text = "".join(json.dumps(one) + "\n" for one in lines)
        (tmp_path / f"{name}.jsonl").write_text(text)
    db = str(tmp_path / "case.duckdb")
    analyzer.ingest(db, [str(tmp_path / "*.jsonl")])
    with engine_of(db) as engine:
        rows = engine.rows(
            "SELECT session_id, output_tokens FROM resolve_request ORDER BY start_ns, request_key"
        )
        told = engine.value("SELECT count(*) FROM resolve_told")
    assert told == sum(len({one["message"]["id"] for one in some}) for some in files.values())
    return [(row["session_id"], row["output_tokens"]) for row in rows]


def test_a_resumed_session_counts_once_and_keeps_its_owner(tmp_path):
    begun = [line(f"msg_{k}", 10 + k, second=k) for k in range(3)]
    copies = [one | {"sessionId": "other"} for one in begun]
    rows = counted(tmp_path, a=begun, b=[*copies, line("msg_9", 90, 30, sessionId="other")])
    assert rows == [("s", 10), ("s", 11), ("s", 12), ("other", 90)]


def test_of_two_copies_the_finished_one_counts(tmp_path):
    cut = line(output=2)
    cut["message"]["stop_reason"] = None
    assert counted(tmp_path, a=[cut], b=[line(output=50, second=1.5)]) == [("s", 50)]


def test_a_sub_agents_copy_of_its_context_counts_once(tmp_path):
    side = {"isSidechain": True, "agentId": "q", "requestId": "r-side"}
    copies = [line(second=40) | side, line("msg_7", 70, 41) | side]
    assert counted(tmp_path, a=copies, b=[line()]) == [("s", 10), ("s/q", 70)]


def test_answers_of_two_programs_with_one_id_far_apart_are_two(tmp_path):
    other = line(timestamp="2026-06-30T08:00:00.000Z", sessionId="s2", output=33)
    assert counted(tmp_path, a=[line()], b=[other]) == [("s", 10), ("s2", 33)]


def test_usage_of_any_shape_gives_a_row(tmp_path):
    odd = [
        line("msg_2", message={"usage": {}}), line("msg_3", message={"usage": {"speed": "fast"}}),
        line("msg_4", message={"usage": {
            "input_tokens": 1, "output_tokens": 2, "cache_creation_input_tokens": 9,
            "cache_creation": {"ephemeral_5m_input_tokens": 40}}}),
    ]  # fmt: skip
    rows = requests(tmp_path, line(), *odd)
    assert len(rows) == 4
    assert rows[3]["usage_contradiction"]


def test_an_answer_repeated_much_later_in_a_file_counts_once(tmp_path):
    text = [{"type": "text", "text": "x" * 3_000}]
    lines = [line(f"msg_{k}", second=k % 50, message={"content": text}) for k in range(6_000)]
    rows = requests(tmp_path, *lines, lines[0], lines[5_999])
    assert len(rows) == 6_000
    assert [rows[0]["usage_records"], rows[-1]["usage_records"]] == [1, 2]
    assert [row["record"] for row in rows] == list(range(1, 6_001))

"""Prompts as parts: what a change does to their hashes, and what their lengths add up to."""

import hashlib
import json

import pytest

from analyzer.contract.prompts import PART_KINDS, VOLATILE_CLASSES
from analyzer.readers import _parts, _thread
from analyzer.readers._jsonl import Sink
from analyzer.readers._part_bodies import plain_prompt, prompt_in, prompt_of, settings_in
from analyzer.readers._parts import make_up, write_prompt
from analyzer.readers._spans._genai_prompt import prompt_of_span
from analyzer.readers._spans._kind import Span
from analyzer.readers._thread import AnsweredThread, Thread
from analyzer.readers._told_lists import parts_told
from analyzer.readers._volatile import masked

TOOLS = [
    {"type": "function", "function": {"name": "tides", "description": "High and low water."}},
    {"type": "function", "function": {"name": "winds", "description": "Force and direction."}},
]


def chat(system="You answer in one line.", tools=TOOLS, more=()):
    messages = [{"role": "system", "content": system}, {"role": "user", "content": "Is it calm?"}]
    return {"model": "m", "tools": tools, "messages": [*messages, *more]}


def parts(body):
    return prompt_in(body).parts


def hashes(body):
    return [part.part_hash for part in parts(body)]


def plain_hashes(body):
    return [part.plain_hash for part in parts(body)]


def same(one, other):
    return [a == b for a, b in zip(one, other, strict=True)]


def test_a_hash_is_that_of_the_text_alone():
    (part,) = prompt_of([{"role": "user", "content": "Is it calm?"}]).parts
    digest = hashlib.blake2b(b"Is it calm?", digest_size=8).hexdigest()
    assert part == ("user", 11, digest, digest, None, None, None)


@pytest.mark.parametrize(
    ("before", "after", "classes"),
    [
        ("Now: 2026-11-30T10:15:00Z. Go.", "Now: 2026-12-01T09:00:01Z. Go.", "timestamp"),
        ("It is Mon, 30 Nov 2026 10:15:00 GMT", "It is Tue, 1 Dec 2026 09:00:00 GMT", "timestamp"),
        ("Today is November 30, 2026.", "Today is May 1, 2027.", "timestamp"),
        ("At 10:15 it rains", "At 9:05 it rains", "timestamp"),
        ("sent 1764460163 ok", "sent 1764460999 ok", "timestamp"),
        ("sent 1764460163123 ok", "sent 1764460999000 ok", "timestamp"),
        (
            "run 550e8400-e29b-41d4-a716-446655440000",
            "run 123e4567-e89b-12d3-a456-426614174000",
            "id",
        ),
        ("ulid 01ARZ3NDEKTSV4RRFFQ69G5FAV", "ulid 01BX5ZZKBKACTAV9WEVGEMMVRZ", "id"),
        ("commit 9f3c2ab5d1e04f77", "commit 0b1d3f5a7c9e2468", "id"),
        ("call_x8Kq2LmN0pRs7TuV for you", "call_b1Vd9XeZ3fGh5JkM for you", "id"),
        ("attempt 3 of 5", "attempt 4 of 5", "number"),
    ],
)
def test_volatile_values_are_told_by_their_look(before, after, classes):
    one, other = parts(chat(before))[2], parts(chat(after))[2]
    assert one.part_hash != other.part_hash
    assert one.plain_hash == other.plain_hash
    assert one.volatile == other.volatile == classes


def test_what_is_first_is_a_time_or_an_id_before_a_number():
    assert masked("Rule 1 of 2. It is 2026-11-30.").first == 19
    assert masked("Rule 1 of 2.").first == 5
    assert masked("Rules.") == ("Rules.", None, None)
    assert masked("At 10:00 for 3 in 0b1d3f5a7c9e2468").classes == ",".join(VOLATILE_CLASSES)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("You answer in one line.", "You answer in two lines."),
        ("It is 2026-11-30. Be short.", "It is 2026-11-30. Be polite."),
        ("The model is called gpt4turbo", "The model is called gpt4mini"),
    ],
)
def test_other_words_are_another_text_in_both_ways(before, after):
    one, other = parts(chat(before))[2], parts(chat(after))[2]
    assert one.part_hash != other.part_hash
    assert one.plain_hash != other.plain_hash


@pytest.mark.parametrize(
    "words", ["Convolution2D and Transpose", "in May of last year", "version two", "x = y * z"]
)
def test_words_are_no_times_or_ids(words):
    assert masked(words).classes in (None, "number")


def test_tools_that_changed_places_are_told_from_changed_ones():
    one, turned = parts(chat()), parts(chat(tools=TOOLS[::-1]))
    assert [part.kind for part in one][:2] == ["tools", "tools"]
    assert {part.part_hash for part in one} == {part.part_hash for part in turned}
    assert hashes(chat()) != hashes(chat(tools=TOOLS[::-1]))
    changed = [TOOLS[0], {"type": "function", "function": {"name": "winds", "description": "-"}}]
    other = parts(chat(tools=changed))
    assert other[1].name_hash == one[1].name_hash
    assert other[1].part_hash != one[1].part_hash


def test_a_rewritten_history_differs_where_it_was_rewritten():
    answer = [{"role": "assistant", "content": "Yes."}, {"role": "user", "content": "And now?"}]
    cut = [{"role": "assistant", "content": "[shortened]"}, {"role": "user", "content": "And now?"}]
    assert same(hashes(chat(more=answer)), hashes(chat(more=cut))) == [True] * 4 + [False, True]
    assert hashes(chat(more=answer))[:4] == hashes(chat())


def test_marks_for_the_cache_move_without_a_trace():
    mark = {"cache_control": {"type": "ephemeral"}}

    def body(marked):
        def text(words, n):
            return {"type": "text", "text": words} | (mark if marked == n else {})

        return {
            "system": [text("You answer in one line.", 0)],
            "tools": [{"name": "tides", "input_schema": {}} | (mark if marked == 1 else {})],
            "messages": [
                {"role": "user", "content": [text("Is it calm?", 2)]},
                {"role": "assistant", "content": [{"type": "thinking", "thinking": "I look."}]},
                {"role": "user", "content": [text("And now?", 3)]},
            ],
        }

    assert len({tuple(hashes(body(n))) for n in range(4)}) == 1
    bedrock = {"messages": [{"role": "user", "content": [{"text": "Hi"}]}]}
    marked = {"messages": [{"role": "user", "content": [{"text": "Hi"}, {"cachePoint": {}}]}]}
    assert hashes(bedrock)[0] == hashes(marked)[0]


def test_ids_that_tie_results_to_calls_are_no_content():
    def more(call):
        tool = {"id": call, "type": "function", "function": {"name": "tides", "arguments": "{}"}}
        return [
            {"role": "assistant", "content": None, "tool_calls": [tool]},
            {"role": "tool", "tool_call_id": call, "content": "14 and 2"},
        ]

    assert hashes(chat(more=more("call_1"))) == hashes(chat(more=more("call_2")))


WAYS = {
    "chat": {
        "tools": [{"type": "function", "function": {"name": "f"}}],
        "messages": [
            {"role": "system", "content": "S"},
            {"role": "user", "content": [{"type": "text", "text": "Two"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]},
            {"role": "assistant", "content": "An", "reasoning_content": "Thin",
             "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": '{"a":1}'}}]},
            {"role": "tool", "tool_call_id": "1", "content": "result"},
        ],
    },
    "responses": {
        "tools": [{"type": "function", "name": "f"}],
        "instructions": "S",
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "Two"},
                {"type": "input_image", "image_url": "https://a.example/b.png"}]},
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Thin"}]},
            {"type": "message", "role": "assistant",
             "content": [{"type": "output_text", "text": "An"}]},
            {"type": "function_call", "name": "f", "arguments": '{"a":1}', "call_id": "1"},
            {"type": "function_call_output", "call_id": "1", "output": "result"},
        ],
    },
    "anthropic": {
        "tools": [{"name": "f"}],
        "system": "S",
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Two"},
                {"type": "image", "source": {"type": "base64", "data": "AAAA"}}]},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "Thin", "signature": "x"},
                {"type": "text", "text": "An"},
                {"type": "tool_use", "id": "1", "name": "f", "input": {"a": 1}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "1",
                 "content": [{"type": "text", "text": "result"}]}]},
        ],
    },
    "gemini": {
        "tools": [{"functionDeclarations": [{"name": "f"}]}],
        "systemInstruction": {"parts": [{"text": "S"}]},
        "contents": [
            {"role": "user", "parts": [{"text": "Two"}, {"inlineData": {"data": "AAAA"}}]},
            {"role": "model", "parts": [{"text": "Thin", "thought": True}, {"text": "An"},
                {"functionCall": {"name": "f", "args": {"a": 1}}}]},
            {"role": "user", "parts": [
                {"functionResponse": {"name": "f", "response": {"result": "result"}}}]},
        ],
    },
    "converse": {
        "toolConfig": {"tools": [{"toolSpec": {"name": "f"}}]},
        "system": [{"text": "S"}, {"cachePoint": {"type": "default"}}],
        "messages": [
            {"role": "user", "content": [{"text": "Two"}, {"image": {"source": {"bytes": "AA"}}}]},
            {"role": "assistant", "content": [
                {"reasoningContent": {"reasoningText": {"text": "Thin"}}}, {"text": "An"},
                {"toolUse": {"toolUseId": "1", "name": "f", "input": {"a": 1}}}]},
            {"role": "user", "content": [
                {"toolResult": {"toolUseId": "1", "content": [{"text": "result"}]}}]},
        ],
    },
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_every_vendors_body_has_the_same_make_up(way):
    prompt = prompt_in(json.dumps(WAYS[way]))
    assert {part.kind for part in prompt.parts} <= set(PART_KINDS)
    assert [part.kind for part in prompt.parts[:3]] == ["tools", "system", "user"]
    columns = make_up(prompt)
    result = len('{"result":"result"}') if way == "gemini" else 6
    assert columns["input_chars"] == columns["tools_chars"] + 1 + 3 + 4 + 10 + result
    told = {name: columns[name] for name in ("system_chars", "user_chars", "reasoning_chars")}
    assert told == {"system_chars": 1, "user_chars": 3, "reasoning_chars": 4}
    # The answer of 2, and a call: its name and {"a":1}
    assert columns["assistant_chars"] == 2 + 1 + 7
    assert columns["tool_result_chars"] == result
    assert (columns["tools_count"], columns["images"]) == (1, 1)


def test_a_schema_stands_before_the_system():
    body = chat() | {"response_format": {"json_schema": {"name": "s", "schema": {}}}}
    assert [part.kind for part in parts(body)] == ["tools", "tools", "schema", "system", "user"]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"messages": []},
        {"messages": "redacted"},
        {"prompt": [1, 2, 3]},
        {"input": [1, 2, 3]},
        {"previous_response_id": "resp_1", "input": "And now?"},
        {"messages": [{"role": "user", "content": "redacted-by-litellm"}]},
        {"messages": [{"role": "user", "content": "A " * 40 + "(litellm_truncated skipped 9)"}]},
        {"messages": [{}]},
        "[{",
        None,
        7,
    ],
)  # fmt: skip
def test_what_is_not_the_whole_prompt_has_no_parts(body):
    assert prompt_in(body) is None


@pytest.mark.parametrize(
    "message",
    [
        None, [], {"role": 7}, {"role": "user"}, {"role": "user", "content": 7},
        {"role": "user", "content": [None, 7, {"type": 7}, {"type": "text"}, [[]]]},
        {"role": "assistant", "tool_calls": [None, {"function": None}, {"function": {"name": 7}}]},
        {"role": "tool", "content": {"a": {"b": [1]}}}, {"type": "tool_result", "content": [7]},
        {"role": "user", "content": "\ud800"}, {"type": "reasoning", "summary": 7},
    ],
)  # fmt: skip
def test_strange_messages_are_parts_all_the_same(message):
    prompt = prompt_of([message])
    assert {part.kind for part in prompt.parts} <= set(PART_KINDS)
    assert all(part.part_hash for part in prompt.parts)
    sink = Sink()
    columns = write_prompt(sink, 1, prompt)
    assert columns["input_chars"] >= 0
    assert sink.batch(1).tables["prompt_part"].num_rows == len(prompt.parts)


def test_a_prompt_of_one_text_is_cut_alike_where_it_begins_alike():
    line = "One line of a long prompt that has no roles at all.\n"
    short, long = plain_prompt(line * 200), plain_prompt(line * 300)
    assert len(short.parts) > 3
    assert short.parts[:-1] == long.parts[: len(short.parts) - 1]
    assert make_up(short) == {"input_chars": len(line) * 200}
    assert max(part.chars for part in plain_prompt("x" * 10_000).parts) == 4096


def test_the_settings_that_decide_on_a_cache():
    assert settings_in({"reasoning_effort": "low"}) == {"effort": "low"}
    assert settings_in({"reasoning": {"effort": "high"}, "speed": "fast"}) == {
        "effort": "high", "speed": "fast",
    }  # fmt: skip
    assert settings_in('{"output_config": {"effort": "max"}}') == {"effort": "max"}
    assert settings_in({"reasoning_effort": "a sentence of words", "speed": 7}) == {}


def span(attributes, events=()):
    return Span("chat", None, None, None, False, attributes, {}, events=events)


def test_messages_told_as_events_of_a_span():
    events = (
        ("gen_ai.system.message", 1, {"content": "S"}),
        ("gen_ai.user.message", 2, {"content": "Two"}),
        ("gen_ai.choice", 3, {"content": "An"}),
    )
    assert [part.kind for part in prompt_of_span(span({}, events)).parts] == ["system", "user"]
    deep = {f"gen_ai.prompt.0{'.0' * 2_000}": "x", "gen_ai.prompt.1.content": "Two",
            "gen_ai.prompt.1.role": "user"}  # fmt: skip
    assert [part.chars for part in prompt_of_span(span(deep)).parts] == [3]
    assert prompt_of_span(span({"gen_ai.input.messages": '[{"role":"user","parts":[{"ty'})) is None


def test_a_thread_grows_and_is_forgotten():
    thread = Thread()
    assert thread.columns() == {}
    thread.content("system", "S")
    thread.message({"role": "user", "content": "Two"})
    thread.message({"role": "assistant", "content": "An"})
    assert thread.columns() == {
        "user_chars": 3, "assistant_chars": 2, "reasoning_chars": 0, "tool_result_chars": 0,
        "images": 0, "system_chars": 1,
    }  # fmt: skip
    thread.forget()
    thread.content("user", "Sum")
    assert (thread.columns()["user_chars"], thread.columns()["assistant_chars"]) == (3, 0)


@pytest.mark.parametrize("item", WAYS["responses"]["input"])
def test_a_short_way_to_the_lengths_of_an_item_gives_the_same(item, monkeypatch):
    short, long = Thread(), Thread()
    short.message(item)
    monkeypatch.setattr(_thread, "_plain", lambda _: None)
    long.message(item)
    assert short.columns() == long.columns() != {}


def test_an_answer_is_no_part_of_its_own_prompt():
    thread = AnsweredThread()
    thread.content("user", "Two")
    thread.content("assistant", "Answer")
    thread.content("tool_result", "result")
    first = thread.told()
    assert (first["user_chars"], first["assistant_chars"], first["tool_result_chars"]) == (3, 0, 0)
    thread.content("assistant", "An")
    second = thread.told()
    assert (second["assistant_chars"], second["tool_result_chars"]) == (6, 6)
    assert thread.told()["assistant_chars"] == 8


def test_an_answer_that_was_never_told_as_a_request_is_history_too():
    thread = AnsweredThread()
    for words in ("Two", "More"):
        thread.content("user", words)
        thread.content("assistant", "An")
    assert (thread.told()["user_chars"], thread.columns()["assistant_chars"]) == (7, 4)


def test_told_parts_keep_what_can_be():
    told = [
        {"kind": "system", "chars": 5, "hash": "ab", "volatile": "id, timestamp"},
        {"kind": "poem", "chars": -1, "hash": "Two words are no hash"},
        7,
    ]
    assert [tuple(part[:5]) for part in parts_told(told)] == [
        ("system", 5, "ab", None, "timestamp,id"), ("other", None, None, None, None),
    ]  # fmt: skip
    assert parts_told({"kind": "system"}) == []


def test_a_session_that_sends_its_history_again_is_looked_at_once(monkeypatch):
    looked_at = []
    monkeypatch.setattr(_parts, "masked", lambda text: looked_at.append(text) or masked(text))
    monkeypatch.setattr(_parts, "_known", {})
    messages = []
    for turn in range(50):
        messages.append({"role": "user", "content": f"turn {turn}"})
        assert len(prompt_in({"messages": messages}).parts) == turn + 1
    assert looked_at == [f"turn {turn}" for turn in range(50)]

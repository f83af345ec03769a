"""GenAI spans and agents' events: real files where these lie beside the checkout, and each trap."""

import itertools
import json
import random
import re

import pytest
from helpers import case_of, engine_of
from shared import SHARED, needs_shared
from test_readers import READERS, SAMPLES, read, rows_of, totals
from vcr import answers

import analyzer
from analyzer.readers._file import InputFile
from analyzer.readers._find import pick
from analyzer.readers._spans._genai_names import CALL, facts_of, role
from analyzer.readers._spans._kind import Span
from analyzer.readers._spans.genai import KIND

REAL = SHARED / "traces/4-otel-http"
OTEL = SHARED / "formats/samples/clients/otel"
START, SECOND = 1_790_000_000_000_000_000, 1_000_000_000
PROMPTS = (
    "input_fresh_tokens", "cache_read_tokens", "cache_write_short_tokens",
    "cache_write_long_tokens", "cache_write_unknown_tokens",
)  # fmt: skip


def claimed(path, reader="span_exports"):
    found = pick(InputFile(path, path.name).head)
    assert found.reader is READERS[reader], found.why
    batches = read(READERS[reader], path)
    assert [problem for batch in batches for problem in batch.problems] == []
    return [row for table, row in rows_of(batches) if table == "request"], batches


def tokens(rows):
    """Prompt and output tokens of all rows."""
    return (
        sum(row.get(name, 0) for row in rows for name in PROMPTS),
        sum(row.get("output_visible_tokens", 0) for row in rows)
        + sum(row.get("output_reasoning_tokens", 0) for row in rows),
    )


def columns(attributes, name="chat", events=()):
    """What one span tells."""
    span = Span(
        name, "1" * 32, START, START + 9 * SECOND, False, attributes, {}, "2" * 16, None,
        events=events,
    )  # fmt: skip
    _, part = KIND.part(span)
    return part["columns"]


# -- real files -----------------------------------------------------------------------------------


@needs_shared
def test_ai_sdk_stream_is_the_inner_span():
    (row,), _ = claimed(REAL / "Arize-ai__openinference/v6-spans~ai-streamText-doStream.json")
    assert (row["ttft_ns"], row["e2e_ns"]) == (426_853_500, 5_386_307_375)
    assert row["start_ns"] == 1_770_132_000_598_000_000
    assert (row["input_fresh_tokens"], row["output_visible_tokens"]) == (15, 112)
    assert row["streamed"]
    rows, batches = claimed(OTEL / "vercel_ai-streamText.json")
    assert rows == []
    assert totals(batches)[:2] == (1, 0)


@needs_shared
def test_ai_sdk_answers_in_one_piece():
    rows, _ = claimed(REAL / "Arize-ai__openinference/v6-spans~ai-generateText-doGenerate.json")
    assert [(row["input_fresh_tokens"], row["output_visible_tokens"]) for row in rows] == [
        (14, 20), (50, 9),
    ]  # fmt: skip
    assert not any(row["streamed"] for row in rows)


@needs_shared
def test_phoenix_turn_counts_its_model_calls_once():
    path = REAL / "Arize-ai__phoenix/pxi_turn_trace.json"
    rows, batches = claimed(path)
    spans = [one["attributes"] for one in json.loads(path.read_text())]
    calls = [one for one in spans if "llm.token_count.total" in one]
    assert len(rows) == len(calls) == 9
    assert totals(batches)[0] == 18
    assert sum(tokens(rows)) == sum(one["llm.token_count.total"] for one in calls)
    assert (rows[0]["input_fresh_tokens"], rows[0]["cache_read_tokens"]) == (2, 31_559)
    assert {row["session_id"] for row in rows} == {"fixture-session"}


@needs_shared
@pytest.mark.parametrize(
    ("name", "requests", "told"),
    [
        ("code_review_workflow", 15, (0, 0)),
        ("simple_chain", 3, (0, 0)),
        # Each turn of its conversation is the parent of the next, and all are requests.
        ("prefix_sharing_example", 7, (1065, 280)),
    ],
)
def test_turns_that_follow_one_another_are_requests(name, requests, told):
    rows, _ = claimed(REAL / f"kubernetes-sigs__inference-perf/{name}.json")
    assert len(rows) == requests
    assert tokens(rows) == told


@needs_shared
@pytest.mark.parametrize(("name", "told"), [("claude_code", (187, 53)), ("cursor", (412, 118))])
def test_spans_with_ids_of_zeros(name, told):
    (row,), _ = claimed(REAL / f"langwatch__langwatch/{name}.json", "otlp_json")
    assert tokens([row]) == told
    assert not {"request_id", "trace_id"} & row.keys()


@needs_shared
def test_gemini_cli_span():
    one = json.loads((REAL / "langwatch__langwatch/gemini-B.llm_call.json").read_text())
    facts = facts_of(one["attributes"])
    assert role(one["spanName"], one["attributes"], facts) == CALL
    row = columns(one["attributes"], one["spanName"])
    assert (row["input_fresh_tokens"], row["output_visible_tokens"]) == (767, 30)
    assert row["session_id"] == one["attributes"]["gen_ai.conversation.id"]


@needs_shared
@pytest.mark.parametrize("dialect", ["otel_genai", "otel_genai_deprecated", "openinference"])
def test_one_call_in_three_dialects(dialect):
    path = OTEL / f"{dialect}_client_span_tool_calls.attributes.json"
    row = columns(json.loads(path.read_text()))
    assert (row["input_fresh_tokens"], row["output_visible_tokens"]) == (97, 52)
    assert (row["model"], row["provider"]) == ("gpt-4-0613", "openai")
    assert row["max_output_tokens"] == 200


@needs_shared
@pytest.mark.parametrize("inclusive", [True, False])
def test_traceloop_spans_of_a_recorded_cache(inclusive):
    path = REAL / "traceloop__openllmetry/test_prompt_caching~test_anthropic_prompt_caching_legacy"
    told = []
    for body in answers(path.with_name(f"{path.name}.yaml")):
        usage = json.loads(body)["usage"]
        written, got = usage["cache_creation_input_tokens"], usage["cache_read_input_tokens"]
        row = columns(
            {
                "llm.request.type": "chat",
                "gen_ai.system": "Anthropic",
                "gen_ai.usage.input_tokens": usage["input_tokens"] + inclusive * (written + got),
                "gen_ai.usage.output_tokens": usage["output_tokens"],
                "gen_ai.usage.cache_read_input_tokens": got,
                "gen_ai.usage.cache_creation_input_tokens": written,
            }
        )
        told.append([row[name] for name in (*PROMPTS[:2], PROMPTS[-1], "output_visible_tokens")])
    assert told == [[4, 0, 1163, 187], [4, 1163, 0, 202]]


@needs_shared
def test_traceloop_spans_of_a_vendor_that_includes_the_cached():
    path = REAL / "traceloop__openllmetry/test_prompt_caching~test_openai_prompt_caching.yaml"
    told = []
    for body in answers(path):
        usage = json.loads(body)["usage"]
        row = columns(
            {
                "llm.request.type": "chat",
                "gen_ai.system": "OpenAI",
                "gen_ai.usage.prompt_tokens": usage["prompt_tokens"],
                "gen_ai.usage.completion_tokens": usage["completion_tokens"],
                "llm.usage.total_tokens": usage["total_tokens"],
                "gen_ai.usage.cache_read_input_tokens": usage["prompt_tokens_details"][
                    "cached_tokens"
                ],
            }
        )
        told.append((row["input_fresh_tokens"], row["cache_read_tokens"]))
    assert told == [(1149, 0), (125, 1024), (1149, 0), (1149, 0)]


@needs_shared
def test_pydantic_ai_spans_of_a_recorded_cache():
    path = REAL / "pydantic__pydantic-ai"
    text = (path / "test_openai_prompt_cache~test_openai_chat_prompt_cache_e2e.yaml").read_text()
    told = []
    for prompt, given in re.findall(
        r"\n +prompt_tokens: (\d+)\n +prompt_tokens_details:\n((?:.*\n){6})", text
    ):
        counts = {
            name: int(n)
            for name, n in re.findall(r"(cached_tokens|cache_write_tokens): (\d+)", given)
        }
        row = columns(
            {
                "gen_ai.operation.name": "chat",
                "gen_ai.usage.input_tokens": int(prompt),
                "gen_ai.usage.output_tokens": 1,
                "gen_ai.usage.details.cache_read_tokens": counts.get("cached_tokens", 0),
                "gen_ai.usage.details.cache_write_tokens": counts.get("cache_write_tokens", 0),
            }
        )
        told.append(
            tuple(
                row[name]
                for name in (
                    "input_fresh_tokens",
                    "cache_read_tokens",
                    "cache_write_unknown_tokens",
                )
            )
        )
    assert told == [(8, 0, 4012), (8, 4012, 0)]


# -- traps ----------------------------------------------------------------------------------------


def span(number, parent, start_s, end_s, trace=1, name="chat m", **attributes):
    """One span of OTLP/JSON; two underscores in a name are a dot."""
    pairs = {key.replace("__", "."): value for key, value in attributes.items()}
    return {
        "traceId": f"{trace:032x}", "spanId": f"{number:016x}",
        "parentSpanId": f"{parent:016x}" if parent else "", "name": name, "kind": 3,
        "startTimeUnixNano": str(START + int(start_s * SECOND)),
        "endTimeUnixNano": str(START + int(end_s * SECOND)),
        "attributes": [{"key": key, "value": _typed(value)} for key, value in pairs.items()],
        "status": {},
    }  # fmt: skip


def _typed(value):
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    return {"doubleValue": value} if isinstance(value, float) else {"stringValue": value}


def call(number, parent, start_s, end_s, made=5, asked=10, **attributes):
    told = {
        "gen_ai__operation__name": "chat", "gen_ai__provider__name": "openai",
        "gen_ai__request__model": "m", "gen_ai__usage__input_tokens": asked,
        "gen_ai__usage__output_tokens": made,
    }  # fmt: skip
    return span(number, parent, start_s, end_s, **(told | attributes))


def lines_of(*groups):
    """A line each group of spans."""
    return "".join(
        json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": list(group)}]}]}) + "\n"
        for group in groups
    )


def requests(text, tmp_path, name="spans.jsonl", reader="otlp_json"):
    file = tmp_path / name
    file.write_text(text)
    return [row for table, row in rows_of(read(READERS[reader], file)) if table == "request"]


def without_record(rows):
    return sorted(
        ({k: v for k, v in row.items() if k != "record"} for row in rows),
        key=lambda row: json.dumps(row, default=str),
    )


FAMILY = [
    call(1, 0, 0, 9, made=15, asked=30),
    span(2, 1, 0, 9, name="retry loop"),
    call(3, 2, 1, 3),
    call(4, 2, 3, 6),
    span(5, 4, 3.1, 3.2, name="http.dns"),
    call(6, 2, 6, 8),
]


@pytest.mark.parametrize("seed", range(8))
def test_order_and_lines_of_a_trace_do_not_matter(seed, tmp_path):
    want = without_record(requests(lines_of(FAMILY), tmp_path))
    assert len(want) == 3
    assert tokens(want) == (30, 15)
    dice = random.Random(seed)
    mixed = dice.sample(FAMILY, len(FAMILY))
    cuts = sorted(dice.sample(range(1, len(FAMILY)), 2))
    groups = [mixed[a:b] for a, b in itertools.pairwise([0, *cuts, len(FAMILY)])]
    assert without_record(requests(lines_of(*groups), tmp_path)) == want


def test_every_span_of_a_chain_but_the_innermost_is_a_sum(tmp_path):
    chain = [call(n, n - 1, n / 10, 9 - n / 10, made=7) for n in range(1, 6)]
    (row,) = requests(lines_of(chain), tmp_path)
    assert row["request_id"] == f"{5:016x}"


def test_spans_that_are_each_others_parents_end(tmp_path):
    rows = requests(lines_of([call(1, 2, 0, 5), call(2, 1, 1, 4), call(3, 3, 6, 7)]), tmp_path)
    assert tokens(rows)[1] <= 10


def test_exported_twice_counts_once(tmp_path):
    assert len(requests(lines_of(FAMILY, FAMILY), tmp_path)) == 3


def test_other_spans_in_their_thousands_do_not_part_a_trace(tmp_path):
    noise = [span(100 + n, 0, 1, 2, trace=100 + n, name="GET /") for n in range(1_500)]
    rows = requests(lines_of(FAMILY[1:], noise, FAMILY[:1]), tmp_path)
    assert len(rows) == 3


def test_outer_and_inner_span_in_two_files_join_by_the_answer(tmp_path):
    folder = tmp_path / "logs"
    folder.mkdir()
    answer = {"gen_ai__response__id": "chatcmpl-two"}
    (folder / "outer.jsonl").write_text(lines_of([call(1, 0, 0, 9, **answer)]))
    (folder / "inner.jsonl").write_text(lines_of([call(2, 1, 0.5, 8.5, **answer)]))
    with engine_of(case_of(folder, tmp_path / "case.duckdb")) as engine:
        assert engine.rows(
            "SELECT count(*) AS n, sum(output_tokens) AS o FROM resolve_request"
        ) == [{"n": 1, "o": 5}]


def test_spaces_after_colons_change_nothing(tmp_path):
    for path in sorted((SAMPLES / "otlp_json").glob("*.jsonl")):
        values = [json.loads(line) for line in path.read_text().splitlines()]
        wide = "".join(json.dumps(one, separators=(" , ", " : ")) + "\n" for one in values)
        tight = "".join(json.dumps(one, separators=(",", ":")) + "\n" for one in values)
        assert requests(wide, tmp_path) == requests(tight, tmp_path)


def test_jaeger_tells_the_same(tmp_path):
    spans = [
        {
            "traceID": one["traceId"], "spanID": one["spanId"], "operationName": one["name"],
            "references": [{"refType": "CHILD_OF", "spanID": one["parentSpanId"]}],
            "startTime": int(one["startTimeUnixNano"]) // 1000,
            "duration": (int(one["endTimeUnixNano"]) - int(one["startTimeUnixNano"])) // 1000,
            "tags": [
                {
                    "key": pair["key"],
                    "value": int(pair["value"]["intValue"])
                    if "intValue" in pair["value"]
                    else pair["value"]["stringValue"],
                }
                for pair in one["attributes"]
            ],
        }
        for one in FAMILY
    ]  # fmt: skip
    text = json.dumps({"data": [{"traceID": "1", "spans": spans, "processes": {}}]})
    want = without_record(requests(lines_of(FAMILY), tmp_path))
    assert without_record(requests(text, tmp_path, "traces.json", "jaeger_json")) == want


@pytest.mark.parametrize(
    ("given", "ttft"),
    [
        ({"gen_ai.response.time_to_first_chunk": 0.5}, 500_000_000),
        ({"gen_ai.client.operation.time_to_first_chunk": 0.5}, 500_000_000),
        ({"ai.response.msToFirstChunk": 500}, 500_000_000),
        ({"langfuse.observation.completion_start_time": '"2026-09-21T14:13:20.500Z"'}, 500_000_000),
        ({"gen_ai.response.time_to_first_chunk": 11.0}, None),
        ({"gen_ai.response.time_to_first_chunk": -1.0}, None),
        ({"gen_ai.response.time_to_first_chunk": "soon"}, None),
        ({}, None),
    ],
)
def test_time_to_first_token(given, ttft):
    row = columns({"gen_ai.operation.name": "chat"} | given)
    assert row.get("ttft_ns") == ttft


def test_first_of_the_events_that_come_once_a_chunk():
    events = tuple(
        ("llm.content.completion.chunk", START + n * SECOND // 2, {}) for n in range(1, 4)
    )
    row = columns({"llm.request.type": "chat"}, events=events)
    assert (row["ttft_ns"], row["timing"]) == (500_000_000, "stamps")


def test_totals_that_contradict_are_a_problem(tmp_path):
    file = tmp_path / "spans.jsonl"
    file.write_text(lines_of([call(1, 0, 0, 1, gen_ai__usage__total_tokens=99)]))
    (problem,) = [p for batch in read(READERS["otlp_json"], file) for p in batch.problems]
    assert "not the sum" in problem.reason


def test_vendors_that_leave_the_cached_out_are_not_guessed_at():
    told = {
        "ai.operationId": "ai.generateText.doGenerate", "ai.model.provider": "anthropic.messages",
        "ai.usage.inputTokens": 900, "ai.usage.outputTokens": 1, "ai.usage.totalTokens": 901,
        "ai.usage.cachedInputTokens": 800,
    }  # fmt: skip
    assert "input_fresh_tokens" not in columns(told)
    six = told | {"ai.usage.inputTokenDetails.noCacheTokens": 100}
    assert columns(six)["input_fresh_tokens"] == 100


@pytest.mark.parametrize(
    "value", ["soon", -3, 1.5, True, None, [1], {"a": 1}, "9" * 30, float("nan")]
)
def test_counts_that_are_none(value):
    row = columns({"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": value})
    assert "input_fresh_tokens" not in row


def test_metrics_are_never_added_to_the_events(tmp_path):
    path = SAMPLES / "otlp_json/events.jsonl"
    events = [one for one in path.read_text().splitlines(keepends=True) if "resourceLogs" in one]
    rows = requests(path.read_text(), tmp_path)
    assert tokens(rows) == tokens(requests("".join(events), tmp_path))


def test_metrics_alone_say_what_to_export(tmp_path):
    file = tmp_path / "metrics.jsonl"
    file.write_text('{"resourceMetrics":[]}\n')
    found = pick(InputFile(file, file.name).head)
    assert found.reader is None
    assert "export the spans or logs" in found.why


def test_no_text_of_a_conversation_is_stored(tmp_path):
    said = "tell nobody about the heron"
    texts = {
        name.replace(".", "__"): said
        for name in (
            "gen_ai.input.messages", "gen_ai.prompt", "gen_ai.completion.0.content", "input.value",
            "ai.prompt", "gen_ai.response.finish_reasons", "exception.message",
        )
    }  # fmt: skip
    folder = tmp_path / "logs"
    folder.mkdir()
    spans = [call(1, 0, 0, 1, **texts), span(2, 0, 0, 1, name=said)]
    spans[0]["events"] = [
        {"name": "gen_ai.content.prompt", "attributes": [{"key": "c", "value": _typed(said)}]},
        {"name": "exception", "attributes": [{"key": "exception.message", "value": _typed(said)}]},
    ]
    spans[0]["status"] = {"code": 2, "message": said}
    record = {"body": _typed(said), "attributes": [{"key": "prompt", "value": _typed(said)}]}
    logs = json.dumps({"resourceLogs": [{"scopeLogs": [{"logRecords": [record]}]}]})
    (folder / "spans.jsonl").write_text(lines_of(spans) + logs + "\n")
    db = tmp_path / "case.duckdb"
    analyzer.ingest(str(db), [str(folder)])
    with engine_of(str(db)) as engine:
        assert engine.value("SELECT count(*) FROM request") == 1
        assert engine.value("SELECT error FROM request") == "error"
    assert said.encode() not in db.read_bytes()


@pytest.mark.parametrize(
    ("name", "before", "rows"),
    [("readable.json", '"ai.usage.promptTokens"', 3), ("phoenix.jsonl", '"attributes.', 2)],
)
def test_first_span_longer_than_the_head_is_recognised(name, before, rows, tmp_path):
    text = (SAMPLES / "span_exports" / name).read_text()
    file = tmp_path / name
    file.write_text(text.replace(before, f'"ai.prompt": "{"x" * 70_000}", {before}', 1))
    assert len(claimed(file)[0]) == rows

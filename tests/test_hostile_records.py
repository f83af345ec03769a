"""Records nobody should write: each costs itself at most, never the reader, a sum or time."""

import cProfile
import json
import pstats
import tracemalloc

import pytest
from deep import thorough
from test_readers import OPTIONS, READERS, grow, read, rows_of, totals

from analyzer.contract.tables import TABLES
from analyzer.readers import _file
from analyzer.readers._document import parse
from analyzer.readers._file import InputFile
from analyzer.readers._find import pick
from analyzer.readers._jsonl import Bad, usd
from analyzer.readers._rows import COUNTS, excerpt
from analyzer.readers._times import DURATIONS, TIMES

INT64 = 2**63
NINES = "9" * 25
BODY = {
    "native_stream": '{{"ts":1790000000,"request_id":"a","event":"{event}",{extra}}}',
    "request_records": '{{"request_id":"a","vantage":"client",{extra}}}',
    "billing_records": '{{"accepted_at":1790000000,"usage":{{}},{extra}}}',
    "vllm_request_stats": (
        '{{"request_id":"a","input_toks":1,"output_toks":1,"queued_ts":1,"scheduled_ts":2,'
        '"first_token_ts":3,"last_token_ts":4,{extra}}}'
    ),
    "openai_proxy_records": (
        '{{"ts":1790000000,"response_id":"a","endpoint":"e","latency_ms":1,"prompt_tokens":1,'
        '"completion_tokens":1,{extra}}}'
    ),
}
GOOD = '"x":1'
DEEP = '{"a":' * 700 + "1" + "}" * 700
CACHE = '{"ttl":"5m","inputTokens":9223372036854775807}'
HOSTILE = [
    ("native_stream", "done", '"x":NaN'),
    ("native_stream", "error", '"x":[-Infinity,1e400]'),
    ("native_stream", "send", '"x":"\xff\xfe"'),
    ("native_stream", "chunk", '"x":"\xff\xfe"'),
    ("native_stream", "send", f'"x":{"9" * 5000}'),
    ("native_stream", "send", '"x":1e99999999999999999999'),
    ("native_stream", "send", '"model":"\\ud800"'),
    ("native_stream", "send", '"tags":{"\\ud800":"\\udfff","n":1},"prefix_hashes":["\\ud800",{}]'),
    ("native_stream", "send", '"kind":5'),
    ("native_stream", "done", '"kind":{"a":1}'),
    ("native_stream", "tick", '"kind":[1]'),
    ("native_stream", "emit", '"kind":[1]'),
    ("native_stream", "done", f'"usage":{DEEP}'),
    ("native_stream", "send", '"scheduled_at":-9223372036'),
    ("native_stream", "send", f'"max_tokens":{NINES},"turn":{INT64}'),
    ("native_stream", "send", f'"attempt":{INT64}'),
    ("native_stream", "error", f'"status":{INT64},"retry_after_s":1e300'),
    ("native_stream", "chunk", f'"chars":{INT64 - 1},"tokens":{INT64 - 1}'),
    ("native_stream", "chunk", '"chars":-1'),
    ("native_stream", "done", f'"usage":{{"prompt_tokens":{INT64 - 1}}}'),
    (
        "native_stream", "done",
        f'"usage":{{"promptTokenCount":{INT64 - 1},"toolUsePromptTokenCount":{INT64 - 1}}}',
    ),
    ("native_stream", "done", f'"usage":{{"inputTokens":1,"cacheDetails":[{CACHE},{CACHE}]}}'),
    ("native_stream", "done", '"usage":{"prompt_tokens":1e300}'),
    ("request_records", "", f'"status":{INT64}'),
    ("request_records", "", f'"turn":{NINES},"tools_count":{NINES},"max_tokens":{NINES}'),
    ("request_records", "", '"started_at":1790000000,"e2e_ms":9.2e12'),
    ("request_records", "", '"queue_ms":9.2e12,"prefill_ms":9.2e12,"ttft_ms":-1'),
    ("request_records", "", '"started_at":-9223372036,"ended_at":9223372036'),
    ("request_records", "", '"started_at":9223372036,"scheduled_at":-9223372036'),
    ("request_records", "", '"started_at":631152000,"ended_at":1790000000'),
    ("request_records", "", '"retry_after_s":1e300,"cost_usd":"sNaN"'),
    ("request_records", "", '"model":"\\ud800"'),
    ("request_records", "", f'"usage":{{"input_tokens":{INT64 - 1},"output_tokens":{INT64}}}'),
    ("billing_records", "", '"finished_at":9223372036'),
    ("billing_records", "", f'"status":{INT64},"attempt":{INT64}'),
    ("vllm_request_stats", "", '"arrival_time":9223372036'),
    ("vllm_request_stats", "", '"queued_ts":-9223372036,"last_token_ts":9223372036'),
    ("openai_proxy_records", "", '"ttft_ms":9.2e12,"status":1e30'),
    ("openai_proxy_records", "", f'"completion_tokens":{INT64}'),
]  # fmt: skip
# These are no more than odd: they are read in full, or the field is passed over.
HARMLESS = ("NaN", "Infinity", '"kind"', "ud800", 'usage":{"a"')


def file_of(folder, data, name="log.jsonl"):
    path = folder / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode("latin-1"))
    return path


def problems_of(batches):
    return [problem for batch in batches for problem in batch.problems]


MOMENTS = (
    "start_ns", "time_ns", "valid_from_ns", "period_start_ns", "period_end_ns", "base_ns",
)  # fmt: skip


def hold_to_bounds(rows):
    """Every number can be: no sum of an analysis leaves int64."""
    for table, row in rows:
        for name, value in row.items():
            if type(value) is not int or name == "offset_ns":
                continue
            wall = row.get("clock", "wall") == "wall"
            if table == "gpu_event" and name == "start_ns":
                wall = value >= TIMES.start  # gpu_trace tells by which clock
            if wall and name in MOMENTS:
                assert value in TIMES, (table, name)
            else:
                assert value in (DURATIONS if name.endswith("_ns") else COUNTS), (table, name)


@pytest.mark.parametrize(("reader", "event", "extra"), HOSTILE, ids=lambda value: value[:40])
def test_a_hostile_record_costs_itself_at_most(reader, event, extra, tmp_path):
    good = BODY[reader].format(event="send", extra=GOOD).replace('"a"', '"good"')
    bad = BODY[reader].format(event=event, extra=extra)
    path = file_of(tmp_path, f"{good}\n{bad}\n{good}\n")
    batches = read(READERS[reader], path)
    rows = rows_of(batches)
    hold_to_bounds(rows)
    assert {problem.record for problem in problems_of(batches)} <= {2}
    assert {row["record"] for table, row in rows if table == "request"} >= {1, 3}
    if not any(word in extra for word in HARMLESS):
        assert problems_of(batches), "nothing is dropped in silence"


@pytest.mark.parametrize(
    "ts", ["-9223372036", "9223372036", "1e400", "0", '"1789-01-01T00:00:00Z"']
)
def test_a_time_no_log_can_tell_is_a_problem(ts, tmp_path):
    event = BODY["native_stream"].format(event="send", extra=GOOD)
    path = file_of(tmp_path, event.replace("1790000000", ts) + f"\n{event}\n")
    batches = read(READERS["native_stream"], path)
    assert totals(batches)[:2] == (2, 1)
    assert "1990" in problems_of(batches)[0].reason


def test_an_id_may_hold_the_separator_of_our_keys(tmp_path):
    lines = [
        {"ts": 1790000000, "request_id": "a\x1fb", "event": "send"},
        {"ts": 1790000001, "request_id": "a\x1fb", "event": "chunk", "chars": 1},
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    batches = read(READERS["native_stream"], file_of(tmp_path, text))
    ((_, request), _) = rows_of(batches)
    assert request["request_id"] == "a\x1fb"
    assert request["chunks"] == 1


@pytest.mark.parametrize(
    ("document", "reader"),
    [
        ('{"tp":9223372036854775808,"layers":1}', "deployment"),
        (f'gpu="x"\nlayers={NINES}', "deployment"),
        ('{"params":1e308,"memory_bandwidth_gb_s":1e308}', "deployment"),
        ('{"unit":"per_million_tokens","models":{"m":{"input":1}},"valid_from":"bad"}', "prices"),
        (
            '{"unit":"per_million_tokens","models":{"m":{"long_context":'
            f'{{"above_input_tokens":{INT64},"input":1}}}}}}}}', "prices",
        ),
        (
            '{"model":5,"vllm_version":"1","engine_kwargs":'
            f'{{"max_num_seqs":{INT64 - 1},"data_parallel_size":{INT64 - 1}}}}}', "vllm_run_meta",
        ),
    ],
)  # fmt: skip
def test_a_document_with_a_number_beyond_all_bounds_is_a_problem(document, reader, tmp_path):
    batches = read(READERS[reader], file_of(tmp_path, document))
    hold_to_bounds(rows_of(batches))
    assert totals(batches)[:2] == (1, 0)
    assert not any(table == "price" for table, _ in rows_of(batches))


def test_gaps_that_add_up_to_no_request_cost_that_request(tmp_path):
    run = {"date": "x", "backend": "b", "model_id": "m", "num_prompts": 2, "request_rate": 1}
    run |= {"ttfts": [1, 1], "itls": [[3e8] * 40, [1]], "output_lens": [INT64, 1]}
    batches = read(READERS["vllm_bench_serve"], file_of(tmp_path, json.dumps(run)))
    hold_to_bounds(rows_of(batches))
    assert totals(batches)[:2] == (2, 1)


def span(start="1790000000000000000", service="x"):
    return (
        (
            '{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"SERVICE"}}]},'
            '"scopeSpans":[{"spans":[{"name":"llm_request","startTimeUnixNano":START,'
            '"endTimeUnixNano":"1790000001000000000"}]}]}'
        )
        .replace("SERVICE", service)
        .replace("START", start)
    )


@pytest.mark.parametrize("form", ['{"resourceSpans":[SPAN]}\n', '{\n"resourceSpans":[\nSPAN]}'])
def test_half_a_surrogate_pair_is_a_name_all_the_same(form, tmp_path):
    path = file_of(tmp_path, form.replace("SPAN", span(service="\\ud800")))
    batches = read(READERS["otlp_json"], path)
    assert all("\ud800" not in str(row) for _, row in rows_of(batches))


def test_a_span_from_no_time_keeps_its_other_columns(tmp_path):
    path = file_of(tmp_path, '{"resourceSpans":[' + span(start='"99999999999999999999"') + "]}\n")
    batches = read(READERS["otlp_json"], path)
    ((_, row),) = rows_of(batches)
    assert "start_ns" not in row
    assert row["deployment"] == "x"
    assert len(problems_of(batches)) == 1


@pytest.mark.parametrize("data", [b"x = " + b"[" * 5000, b'{"a":' * 20_000])
def test_nesting_ends_no_probe(data, tmp_path):
    with pytest.raises(ValueError, match=r"nested too deeply|not valid"):
        parse(data)
    assert pick(InputFile(file_of(tmp_path, data), "deep").head).reader is None


def test_counts_of_an_engine_log_that_cannot_be_are_a_problem(tmp_path):
    line = (
        "INFO 09-17 10:00:00 [x.py:1] Engine 000: Avg prompt throughput: 1.0 tokens/s, Avg "
        f"generation throughput: nan tokens/s, Running: {NINES} reqs, Waiting: 0 reqs\n"
    )
    batches = read(READERS["vllm_log"], file_of(tmp_path, line + line.replace(NINES, "1"), "e.log"))
    assert totals(batches)[:2] == (2, 1)


# -- one document on one line ---------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["", "\n"])
def test_a_document_on_one_long_line_is_read_whole(ending, tmp_path, monkeypatch):
    monkeypatch.setattr(_file, "MAX_LINE_BYTES", 200_000)
    monkeypatch.setattr(_file.InputFile.lines, "__defaults__", (50_000, 0, 0))
    text = '{"resourceSpans":[' + ",".join([span()] * 2_000) + "]}"
    batches = read(READERS["otlp_json"], file_of(tmp_path, text + ending))
    assert totals(batches)[:2] == (2_000, 2_000)


# -- privacy --------------------------------------------------------------------------------------

SECRETS = [
    "[INFO] user wrote: my password is hunter2",
    "{'prompt': 'my secret hunter2'}",
    '{"a":{"request_id":"hunter2": x hunter2 is my word}}',
    '{"my secret prompt hunter2": tru}',
    '{"hunter2' + "x" * 40 + '": 1}',
    '{"prompt": "hunter2',
    '{"prompt": "a \\"hunter2\\": b", "x": hunter2}',
    '["hunter2", hunter2]',
    '"hunter2": 1',
]


@pytest.mark.parametrize("text", SECRETS)
def test_an_excerpt_shows_keys_and_nothing_else(text):
    assert "hunter2" not in excerpt(text)
    assert "secret" not in excerpt(text.encode())


def test_an_excerpt_still_shows_where_a_record_is_broken():
    told = excerpt('{"request_id": "hunter2", "usage": {"prompt_tokens": 12,}}')
    assert told == '{"request_id": …(7 chars), "usage": {"prompt_tokens": #,}}'


@pytest.mark.parametrize(
    ("reader", "text"),
    [
        ("request_records", '{"request_id":"b","cost_usd":"my hunter2"}'),
        ("request_records", '{"request_id":"b","vantage":"it\'s hunter2"}'),
        ("prices", '{"unit":"hunter2","models":{}}'),
        ("deployment", '{"layers":"hunter2"}'),
    ],
)
def test_a_reason_quotes_no_value(reader, text, tmp_path):
    batches = read(READERS[reader], file_of(tmp_path, text + "\n"))
    (problem,) = problems_of(batches)
    assert "hunter2" not in problem.reason + problem.excerpt


def test_money_that_is_none_is_not_quoted():
    with pytest.raises(Bad) as bad:
        usd("hunter2")
    assert "hunter2" not in str(bad.value)


# -- files that grow ------------------------------------------------------------------------------

EVENTS = [
    '{"ts":1790000000,"request_id":"a","event":"send"}',
    '{"ts":1790000001,"request_id":"a","event":"chunk","chars":3}',
    '{"ts":1790000002,"request_id":"a","event":"done"}',
    '{"ts":1790000003,"request_id":"a","event":"chunk","chars":3}',
    "",
    '{"ts":1790000004,"request_id":"a","event":"done"}',
    '{"ts":1790000005,"request_id":"b","event":"chunk","chars":3}',
    '{"ts":1790000006,"request_id":"b","event":"done"}',
    '{"ts":1790000007,"request_id":"a","event":"send"}',
    '{"ts":1790000008,"request_id":"a","event":"chunk","chars":3}',
]
RECORDS = ['{"request_id":"a","vantage":"client","e2e_ms":1}', "", '{"request_id":"b","e2e_ms":1}']


@pytest.mark.parametrize(
    ("reader", "lines"), [("native_stream", EVENTS), ("request_records", RECORDS)]
)
@pytest.mark.parametrize("newline", ["\n", "\r\n", "  \r\n"])
@pytest.mark.parametrize("bom", [b"", _file.BOM])
@thorough
def test_growth_at_any_cut_counts_as_one_read(reader, lines, newline, bom, thorough, tmp_path):
    data = bom + newline.join([*lines, ""]).encode()
    path = file_of(tmp_path, data)
    whole = read(READERS[reader], path)
    assert problems_of(whole) == []
    assert totals(whole)[0] == len(lines)
    # Every cut around a line end, and every seventh inside the lines; or one in seven of these.
    ends = {
        at for i, byte in enumerate(data) if byte in b"\r\n " for at in (i - 1, i, i + 1, i + 2)
    }
    cuts = ends | set(range(len(bom) + 1, len(data), 7))
    inside = sorted(cut for cut in cuts if len(bom) < cut < len(data))
    for cut in inside if thorough else inside[::7]:
        grow(READERS[reader], path, data, cut, whole, tmp_path)


def test_an_event_after_the_end_makes_no_request(tmp_path):
    text = "\n".join(EVENTS[:4]) + "\n"
    batches = read(READERS["native_stream"], file_of(tmp_path, text))
    assert [table for table, _ in rows_of(batches)] == ["request", "chunk"]
    assert totals(batches)[2] == {"event after the end of its request": 1}


@pytest.mark.parametrize(
    ("reader", "text"),
    [("native_stream", EVENTS[0]), ("deployment", '{"gpu":"H200","tp":1}'), ("deployment", "tp=1")],
)
def test_a_byte_order_mark_is_no_part_of_a_file(reader, text, tmp_path):
    path = file_of(tmp_path, _file.BOM + text.encode() + b"\n")
    assert pick(InputFile(path, path.name).head).reader == READERS[reader]
    assert totals(read(READERS[reader], path))[:2] == (1, 1)


# -- time and memory ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reader", "line"),
    [
        ("native_stream", '{"ts":1790000000,"request_id":"a","event":"chunk","kind":"text"}\n'),
        ("vllm_log", "INFO 09-17 10:00:00 [x.py:1] Avg prompt throughput: x\n"),
    ],
)
def test_many_bad_lines_take_no_quadratic_work(reader, line, tmp_path):
    calls = []
    for count in (1_000, 8_000):
        path = file_of(tmp_path, line * count)
        work = cProfile.Profile()
        batches = work.runcall(list, READERS[reader].read(InputFile(path, "x"), OPTIONS))
        assert totals(batches)[:2] == (count, 0)
        calls.append(pstats.Stats(work).total_calls)
    assert calls[1] < 20 * calls[0]  # eight times the lines; quadratic would be 64


def test_open_requests_take_little_memory(tmp_path):
    count = 20_000
    lines = (
        f'{{"ts":{1790000000 + i},"request_id":"r{i}","event":"send","model":"m"}}\n'
        for i in range(count)
    )
    path = file_of(tmp_path, "".join(lines))
    tracemalloc.start()
    batches = READERS["native_stream"].read(InputFile(path, "x"), OPTIONS)
    state = [batch.resume.state for batch in batches if batch.resume][-1]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(state["open"]) == count
    assert peak / count < 4_000
    assert len(json.dumps(state)) / count < 400


def test_sums_of_what_is_believed_fit_int64():
    assert 6 * DURATIONS.last + TIMES.last < INT64
    assert {"start_ns", "time_ns", "valid_from_ns"} <= {f.name for t in TABLES.values() for f in t}

"""Gateways and observability exports: the simulator's come back, variants read the same."""

import json
import random
import time
import tracemalloc
from decimal import Decimal

import pytest
from deep import deep
from helpers import case_of, engine_of
from test_readers import FILES, OPTIONS, READERS, SAMPLES, read, rows_of, totals
from test_simulate_logs_agree import WORLD, cost

from analyzer.readers._csv_rows import OPEN_QUOTE
from analyzer.readers._file import InputFile
from analyzer.readers._find import pick
from analyzer.readers._reader import Options
from analyzer.simulate.run import simulate
from analyzer.simulate.world import from_dict

NAMES = (
    "litellm_spend_logs", "litellm_payloads", "langfuse", "helicone", "openrouter", "portkey",
    "bedrock_invocation_log", "higress_access",
)  # fmt: skip
MS, US = 1_000_000, 1_000
OWN = [path for path in FILES if path.parent.name in NAMES]
own = pytest.mark.parametrize("path", OWN, ids=[f"{p.parent.name}/{p.name}" for p in OWN])


def requests(reader, path, options=OPTIONS):
    return [
        row for table, row in rows_of(read(READERS[reader], path, options)) if table == "request"
    ]


def written(folder, text, name="log.json"):
    path = folder / name
    path.write_text(text)
    return path


def problems(batches):
    return [problem.reason for batch in batches for problem in batch.problems]


# -- LiteLLM --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def spend(tmp_path_factory):
    folder = tmp_path_factory.mktemp("spend")
    simulate(from_dict(WORLD), folder)
    lines = [json.loads(line) for line in (folder / "truth.jsonl").read_text().splitlines()]
    batches = read(READERS["litellm_spend_logs"], folder / "spend-logs.json", Options())
    assert problems(batches) == []
    rows = [row for table, row in rows_of(batches) if table == "request"]
    return rows, [line for line in lines if "event" not in line]


def test_simulated_spend_logs_come_back_to_what_was_simulated(spend):
    rows, truth = spend
    assert len(rows) == sum(len(one["tries"]) for one in truth)
    by_id = {row["response_id"]: row for row in rows if "response_id" in row}
    good = [one for one in truth if "error" not in one]
    assert len(good) == len(by_id) > 100
    for one in good:
        row, call = by_id[f"chatcmpl-{one['id']}"], one["tries"][-1]
        whole = one["prompt_tokens"] // 16 * 16
        writes = max(0, whole - one["cached_tokens"])
        assert row["cache_read_tokens"] == one["cached_tokens"]
        assert row["cache_write_unknown_tokens"] == writes
        assert row["input_fresh_tokens"] == one["prompt_tokens"] - one["cached_tokens"] - writes
        assert row["output_reasoning_tokens"] == one["reasoning_tokens"]
        made = row["output_visible_tokens"] + row["output_reasoning_tokens"]
        assert made == one["output_tokens"]
        assert abs(row["start_ns"] - call["start_ns"]) < US
        assert abs(row["e2e_ns"] - (call["end_ns"] - call["start_ns"])) <= US
        assert abs(row["ttft_ns"] - (one["gateway_first_ns"] - call["start_ns"])) <= US
        assert (row["model"], row["session_id"]) == (one["model"], one["session_id"])
        assert row["deployment"] == f"{one['replica']}:8000"
        assert "usage_contradiction" not in row
    told = sum((row["reported_cost_usd"] for row in by_id.values()), Decimal(0))
    assert abs(told - sum(map(cost, good))) < Decimal("1e-6")


def test_simulated_answers_join_what_the_client_saw(tmp_path):
    logs = [{"format": "requests"}, {"format": "litellm", "options": {"write_ttl": "5m"}}]
    simulate(from_dict(WORLD | {"logs": logs}), tmp_path / "run")
    folder = tmp_path / "logs"
    folder.mkdir()
    for name in ("client-requests.jsonl", "spend-logs.json"):
        (tmp_path / "run" / name).rename(folder / name)
    with engine_of(case_of(folder, tmp_path / "case.duckdb")) as engine:
        rows = engine.rows("SELECT vantages, failed, input_tokens FROM resolve_request")
    answered = [row for row in rows if not row["failed"]]
    assert len(answered) > 100
    # Fallbacks inside the gateway are no attempts of its caller.
    assert {row["vantages"] for row in answered} == {2}
    assert all(row["input_tokens"] for row in answered)


def test_simulated_failures_have_no_tokens_and_no_money(spend):
    rows, truth = spend
    bad = [row for row in rows if "response_id" not in row]
    assert len(bad) == sum(len(one["tries"]) - ("error" not in one) for one in truth)
    for row in bad:
        assert not {"input_fresh_tokens", "output_visible_tokens", "reported_cost_usd"} & row.keys()
        assert row["error"]
        assert row["status"] >= 400


ROW = {
    "request_id": "chatcmpl-1", "call_type": "acompletion", "spend": 0.5, "prompt_tokens": 100,
    "completion_tokens": 10, "total_tokens": 110, "startTime": "2026-01-02 03:04:05.000006",
    "endTime": "2026-01-02 03:04:07", "completionStartTime": "2026-01-02 03:04:07",
    "model": "m", "custom_llm_provider": "openai", "status": "success", "metadata": {},
}  # fmt: skip


def spent(folder, **changes):
    (row,) = requests("litellm_spend_logs", written(folder, json.dumps([ROW | changes])))
    return row


def test_times_without_a_zone_are_utc_whatever_the_option_says(tmp_path):
    path = written(tmp_path, json.dumps([ROW]))
    batches = read(READERS["litellm_spend_logs"], path, Options(zone="Asia/Tokyo"))
    ((_, row), *_) = rows_of(batches)
    assert row["start_ns"] == 1_767_323_045_000_006_000
    assert not [note for batch in batches for note in batch.assumed]


def test_a_first_token_at_the_end_is_none(tmp_path):
    assert "ttft_ns" not in spent(tmp_path)
    streamed = spent(tmp_path, completionStartTime="2026-01-02 03:04:06.000006")
    assert streamed["ttft_ns"] == 1_000 * MS


def test_the_answers_cache_is_not_the_prompts_cache(tmp_path):
    path = written(tmp_path, json.dumps([ROW | {"cache_hit": "True"}]))
    rows = rows_of(read(READERS["litellm_spend_logs"], path))
    ((_, row),) = [pair for pair in rows if pair[0] == "request"]
    assert "cache_read_tokens" not in row
    assert "response_id" not in row
    assert ("response_cache", "hit") in [
        (one["name"], one["value"]) for table, one in rows if table == "request_tag"
    ]
    for word in ("False", "None", "", None, False):
        assert "response_id" in spent(tmp_path, cache_hit=word)


@pytest.mark.parametrize("split", [(1_000, 2_000), (1_000, 0)])
def test_the_rest_of_the_writes_has_no_known_lifetime(split, tmp_path):
    usage = {
        "prompt_tokens": 4_000, "completion_tokens": 10, "total_tokens": 4_010,
        "cache_creation_input_tokens": 3_000, "cache_read_input_tokens": 500,
        "prompt_tokens_details": {
            "cache_creation_token_details": {
                "ephemeral_5m_input_tokens": split[0], "ephemeral_1h_input_tokens": split[1],
            }
        },
    }  # fmt: skip
    counts = {name: usage[name] for name in ("prompt_tokens", "total_tokens")}
    row = spent(tmp_path, metadata=json.dumps({"usage_object": usage}), **counts)
    assert row["input_fresh_tokens"] == 500
    assert row["cache_write_unknown_tokens"] == 3_000 - sum(split)
    assert ("less than" in row.get("usage_contradiction", "")) == (sum(split) < 3_000)


@pytest.mark.parametrize(
    "money", [1e-10, 0.1, "0.25", 3, None, "free", float("1e12"), [], True, -0.5]
)
def test_money_is_exact_or_not_told(money, tmp_path):
    path = written(tmp_path, json.dumps([ROW | {"spend": money}]))
    batches = read(READERS["litellm_spend_logs"], path)
    told = [row.get("reported_cost_usd") for table, row in rows_of(batches) if table == "request"]
    if money in (0.1, "0.25", 3):
        assert told == [Decimal(str(money))]
    elif isinstance(money, float) and money > 1e9:
        assert "money" in problems(batches)[0]
    else:
        assert told in ([None], [Decimal(0)], [Decimal("-0.5")])


# -- Langfuse -------------------------------------------------------------------------------------


def observation(number, parent=None, kind="GENERATION", **changes):
    return {
        "id": f"o{number}", "traceId": "t", "type": kind, "parentObservationId": parent,
        "name": "n", "startTime": "2026-02-03T04:05:06.000Z", "endTime": "2026-02-03T04:05:08.000Z",
        "level": "DEFAULT", "model": "m",
        "usageDetails": {"input": 10, "output": 2, "total": 12} if kind == "GENERATION" else {},
    } | changes  # fmt: skip


def kept(folder, observations):
    path = written(folder, json.dumps({"data": observations, "meta": {}}))
    return {row["request_id"] for row in requests("langfuse", path)}


def test_only_generations_without_one_inside_them_count(tmp_path):
    tree = [
        observation(1, kind="AGENT"), observation(2, "o1"), observation(3, "o2", "SPAN"),
        observation(4, "o3", "CHAIN"), observation(5, "o4"), observation(6, "o2"),
        observation(7, "o6", "TOOL"), observation(8), observation(9, "gone"),
    ]  # fmt: skip
    for seed in range(4):
        random.Random(seed).shuffle(tree)
        assert kept(tmp_path, tree) == {"o5", "o6", "o8", "o9"}


def test_parents_in_a_circle_end(tmp_path):
    assert (
        kept(tmp_path, [observation(1, "o2"), observation(2, "o1"), observation(3, "o3")]) == set()
    )


def test_the_same_id_in_another_trace_is_another_observation(tmp_path):
    tree = [observation(1), observation(2, "o1", traceId="u")]
    assert kept(tmp_path, tree) == {"o1", "o2"}


@pytest.mark.parametrize(
    ("latency", "first", "ttft", "reason"),
    [
        (2, 0.5, 500, ""), (2_000, 500, 500, ""), (2.0004, 0.5, 500, ""), ("2", "0.5", 500, ""),
        (77, 5, None, "neither"), (None, 0.5, None, ""), (2, 9, None, ""),
    ],
)  # fmt: skip
def test_durations_are_those_of_the_time_stamps(latency, first, ttft, reason, tmp_path):
    one = observation(1, latency=latency, timeToFirstToken=first)
    batches = read(READERS["langfuse"], written(tmp_path, json.dumps([one])))
    ((_, row), *_) = rows_of(batches)
    assert row["e2e_ns"] == 2_000 * MS
    assert row.get("ttft_ns") == (None if ttft is None else ttft * MS)
    assert [text for text in problems(batches) if "neither" in text] == (
        problems(batches) if reason else []
    )


@pytest.mark.parametrize(
    ("details", "told"),
    [
        ({"input": 100, "input_cache_read": 60, "output": 5, "total": 165}, (100, 60, 5, None)),
        ({"input": 100, "input_cached_tokens": 60, "output": 5, "total": 105}, (40, 60, 5, None)),
        ({"input": 10, "cache_read_input_tokens": 60, "output": 5}, (10, 60, 5, None)),
        ({"input": 9, "output": 35, "output_reasoning": 64, "total": 108}, (9, None, 35, 64)),
        ({"input": 6, "output": 50, "completion_details.reasoning": 20, "total": 56},
         (6, None, 30, 20)),
        ({"input": 9, "input_audio_tokens": 4, "output": 5, "total": 18}, (13, None, 5, None)),
        ({"input": 13, "input_audio_tokens": 4, "output": 5, "total": 18}, (13, None, 5, None)),
        ({"input": 0, "output": 0, "total": 0}, (None, None, None, None)),
        ({}, (None, None, None, None)),
    ],
)  # fmt: skip
def test_each_rows_total_says_how_it_was_counted(details, told, tmp_path):
    one = observation(1, usageDetails=details)
    batches = read(READERS["langfuse"], written(tmp_path, json.dumps([one])))
    ((_, row), *_) = rows_of(batches)
    names = (
        "input_fresh_tokens", "cache_read_tokens", "output_visible_tokens",
        "output_reasoning_tokens",
    )  # fmt: skip
    assert tuple(row.get(name) for name in names) == told
    assert problems(batches) == []


def test_pages_of_an_api_one_a_line(tmp_path):
    pages = [{"data": [observation(2 * k), observation(2 * k + 1)], "meta": {}} for k in range(3)]
    path = written(tmp_path, "".join(json.dumps(page) + "\n" for page in pages), "pages.jsonl")
    batches = read(READERS["langfuse"], path)
    assert totals(batches)[:2] == (6, 6)
    records = [row["record"] for table, row in rows_of(batches) if table == "request"]
    assert records == [1, 2, 3, 4, 5, 6]


def test_a_cell_may_be_as_long_as_a_prompt(tmp_path):
    head = "id,traceId,parentObservationId,type,startTime,endTime,level,model,usageDetails,input\n"
    usage = '"{""input"": 3, ""output"": 4, ""total"": 7}"'
    line = 'o{},t,,GENERATION,2026-02-03T04:05:06Z,2026-02-03T04:05:07Z,DEFAULT,m,{},"{}"\n'
    cell = 'said ""x"", then\nwent on, ' * 40_000
    path = written(
        tmp_path, head + line.format(1, usage, cell) + line.format(2, usage, "y"), "a.csv"
    )
    batches = read(READERS["langfuse"], path)
    assert totals(batches)[:2] == (3, 2)
    assert problems(batches) == []


@pytest.mark.parametrize("after", ["", "quoted"])
def test_an_open_quote_costs_its_own_line(after, tmp_path):
    header, row = (SAMPLES / "openrouter" / "activity.csv").read_text().splitlines()
    lines = [header, row, row.replace("qwen", '"qwen', 1), row, row]
    if after:
        lines += [
            row.replace("NovaHost", '"NovaHost"'),
            row.replace("NovaHost", '"Nova\nHost"'),
            row,
        ]
    batches = read(READERS["openrouter"], written(tmp_path, "\n".join(lines), "a.csv"))
    assert problems(batches) == [OPEN_QUOTE]
    assert totals(batches)[1] == len(lines) - 2


# -- Helicone -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cost", "usd"),
    [
        (1_234_567, "0.001234567"),
        ("42", "0.000000042"),
        (0.0042, "0.0042"),
        (0, None),
        (None, None),
    ],
)
def test_helicone_counts_billionths_of_a_dollar(cost, usd, tmp_path):
    (one,) = json.loads((SAMPLES / "helicone" / "requests.json").read_text())["data"][:1]
    (row,) = requests("helicone", written(tmp_path, json.dumps([one | {"cost": cost}])))
    assert row.get("reported_cost_usd") == (None if usd is None else Decimal(usd))


# -- all of them ----------------------------------------------------------------------------------


@own
def test_spaces_in_json_change_nothing(path, tmp_path):
    if path.suffix not in (".json", ".jsonl"):
        pytest.skip("no JSON")
    text = path.read_text()
    reader = path.parent.name
    told = rows_of(read(READERS[reader], path))
    for separators in ((",", ":"), (", ", ": "), (" , ", " : ")):
        if path.suffix == ".jsonl":
            lines = [
                json.dumps(json.loads(line), separators=separators) for line in text.splitlines()
            ]
            spaced = "\n".join(lines) + "\n"
        else:
            spaced = json.dumps(json.loads(text), separators=separators)
        assert rows_of(read(READERS[reader], written(tmp_path, spaced, path.name))) == told
        assert pick(InputFile(tmp_path / path.name, path.name).head).reader is READERS[reader]


@own
def test_no_text_of_prompts_or_answers_is_kept(path):
    batches = read(READERS[path.parent.name], path)
    told = json.dumps([row for _, row in rows_of(batches)], default=str)
    assert "stays" not in told
    assert "what the user wrote" not in told
    assert "two\\nlines" not in told


def test_rows_beyond_the_head_are_recognised_by_their_keys(tmp_path):
    long = "x" * 100_000
    for reader, begin in (
        ("langfuse", {"id": "o1", "traceId": "t", "parentObservationId": None, "startTime": 1}),
        ("litellm_spend_logs", {k: v for k, v in ROW.items() if k != "metadata"}),
        (
            "bedrock_invocation_log",
            {"schemaType": "ModelInvocationLog", "accountId": "0", "modelId": "m"},
        ),
    ):  # fmt: skip
        for text in (json.dumps([begin | {"x": long}]), json.dumps(begin | {"x": long})):
            found = pick(InputFile(written(tmp_path, text), "log.json").head)
            assert found.reader is READERS[reader], (reader, found.why)


def test_a_first_line_beyond_the_head_is_one_of_many(tmp_path):
    long = observation(1) | {"metadata": {"x": "x" * 100_000}}
    path = written(tmp_path, "".join(json.dumps(one) + "\n" for one in (long, observation(2))))
    batches = read(READERS["langfuse"], path)
    assert problems(batches) == []
    assert totals(batches)[:2] == (2, 2)
    spend = ROW | {"metadata": {"x": {"y": "x" * 100_000}}}
    path = written(tmp_path, "".join(json.dumps(one) + "\n" for one in (spend, ROW)))
    assert totals(read(READERS["litellm_spend_logs"], path))[:2] == (2, 2)


@deep
@pytest.mark.parametrize("ending", ["json", "jsonl", "csv"])
def test_memory_and_time_stay_bounded(ending, tmp_path):
    count = 8_000
    if ending == "csv":
        head = "id,traceId,parentObservationId,type,startTime,endTime,level,model,input\n"
        line = "o{0},t,,GENERATION,2026-02-03T04:05:06Z,2026-02-03T04:05:07Z,DEFAULT,m,{1}\n"
        text = head + "".join(line.format(k, "y" * 900) for k in range(count))
    else:
        rows = (json.dumps(observation(k) | {"input": "y" * 900}) for k in range(count))
        text = "\n".join(rows) if ending == "jsonl" else "[" + ",\n".join(rows) + "]"
    path = written(tmp_path, text, f"big.{ending}")
    del text
    begun = time.process_time()
    rows = sum(
        batch.used for batch in READERS["langfuse"].read(InputFile(path, path.name), OPTIONS)
    )
    assert rows == count
    assert time.process_time() - begun < 8
    tracemalloc.start()
    for _ in READERS["langfuse"].read(InputFile(path, path.name), OPTIONS):
        pass
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 60 * 1024 * 1024

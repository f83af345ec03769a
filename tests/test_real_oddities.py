"""What breaks a naive reader of public files: each on a small sample, and on the real file too."""

import copy
import gzip
import json
import statistics
from decimal import Decimal

import pytest
from helpers import engine_of
from shared import SHARED, needs_shared
from test_readers import FILES, OPTIONS, READERS, SAMPLES, read, read_bytes, rows_of, totals
from test_readers_real import SERVERS, SIMULATED, rows
from test_real_data_figures import EDGE, LLMPERF, MEASURED, UPTIME, WORKLOAD, notes, table_of

import analyzer
from analyzer.readers._file import InputFile
from analyzer.readers._find import pick
from analyzer.readers._mapping import plan_of
from analyzer.readers._reader import Options

S, MS = 1_000_000_000, 1_000_000
BILLING = SHARED / "traces/5-billing"
CLIENT = '[constants]\nvantage = "client"\n'


def through(mapping, text, folder, name="theirs.csv"):
    """Rows by record and problems by record of a small table, and its batches."""
    file = folder / name
    file.write_text(text)
    options = Options(today_ns=OPTIONS.today_ns, mapping=plan_of("m.toml", mapping.encode()))
    batches = read(READERS["mapping"], file, options)
    requests = {row["record"]: row for table, row in rows_of(batches) if table == "request"}
    return requests, {p.record: p.reason for b in batches for p in b.problems}, batches


# -- answers without a first token of their own ---------------------------------------------------

TIMES = (
    '[columns]\nfirst = {to = "ttft_ns", unit = "ms"}\nwhole = {to = "e2e_ns", unit = "ms"}\n'
    'n = "output_visible_tokens"\ncode = "status"\n' + CLIENT
)


@pytest.mark.parametrize(
    ("cells", "ttft"),
    [
        ("900,900.004,256,200", None),  # the whole answer at once
        ("900,904,100,200", None),
        ("900,905.1,100,200", 900 * MS),
        ("900,904,20,200", 900 * MS),  # 0.2 ms a token: fast, but it can be
        ("900,900,1,200", 900 * MS),  # one token is first and last
        ("900,900,,200", 900 * MS),  # how many is not told
        ("0,0,0,429", None),  # refused: nothing came
        ("0,120,5,200", None),
    ],
)
def test_a_first_token_that_is_none_is_left_out(cells, ttft, tmp_path):
    requests, problems, batches = through(TIMES, f"first,whole,n,code\n{cells}\n", tmp_path)
    assert problems == {}
    assert requests[2].get("ttft_ns") == ttft
    assert requests[2]["status"] == int(cells.rsplit(",", 1)[1])
    assert "e2e_ns" in requests[2]
    assert bool(notes(batches)) == (ttft is None)


# -- clocks ---------------------------------------------------------------------------------------


def test_an_uptime_is_no_date(tmp_path):
    text = "t,n\n14592657.842332056,5\n"
    as_date = '[columns]\nt = {to = "start_ns", unit = "epoch_s"}\nn = "turn"\n' + CLIENT
    requests, problems, _ = through(as_date, text, tmp_path)
    assert requests[2].get("start_ns") is None
    assert "from 1990 to 2199" in problems[2]
    requests, problems, _ = through(as_date.replace("epoch_s", "s"), text, tmp_path)
    assert problems == {}
    assert (requests[2]["start_ns"], requests[2]["clock"]) == (14_592_657_842_332_056, "monotonic")


@needs_shared
def test_the_uptime_of_a_phone_is_refused_as_a_date():
    requests, _, _ = table_of(EDGE, UPTIME)
    assert {one["clock"] for one in requests} == {"monotonic"}
    as_date = UPTIME.replace('{to = "start_ns", unit = "s"}', '{to = "start_ns", unit = "epoch_s"}')
    requests, _, batches = table_of(EDGE, as_date, clean=False)
    assert not any("start_ns" in one for one in requests)
    assert sum(len(batch.problems) for batch in batches) == 258
    # The rest of each row is read all the same.
    assert sum("e2e_ns" in one for one in requests) == 256


@needs_shared
def test_a_wall_clock_and_a_monotonic_one_in_the_same_row():
    path = SIMULATED / "RTX4090~Llama-3.1-8B~requests.jsonl"
    told = json.loads(path.read_text().splitlines()[0])
    one = rows(path, "request", "vllm_request_stats")[0]
    assert one["clock"] == "wall"
    assert one["start_ns"] == pytest.approx(told["arrival_time"] * S, abs=1_000)
    assert one["e2e_ns"] == pytest.approx(
        (told["last_token_ts"] - told["queued_ts"]) * S, abs=1_000
    )


# -- units ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("unit", "factor"), [("ns", 1e6), ("us", 1e3), ("s", 1e-3)])
def test_a_unit_that_stands_beside_each_value_is_used(unit, factor, tmp_path):
    path = SAMPLES / "aiperf_records/profile_export.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        for metric in line.get("metrics", {}).values():
            if metric.get("unit") == "ms":
                told = metric["value"]
                metric["unit"] = unit
                metric["value"] = (
                    [value * factor for value in told] if isinstance(told, list) else told * factor
                )
    data = "".join(json.dumps(line) + "\n" for line in lines).encode()
    for one, other in zip(
        rows_of(read_bytes(path, data, tmp_path)),
        rows_of(read(READERS["aiperf_records"], path)),
        strict=True,
    ):
        assert one == (other[0], {
            name: pytest.approx(value, abs=2) if name.endswith("_ns") else value
            for name, value in other[1].items()
        })  # fmt: skip


def leaves(value, path=()):
    """Paths of the positive numbers of a document."""
    if isinstance(value, (dict, list)):
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        for key, inner in pairs:
            yield from leaves(inner, (*path, key))
    elif type(value) in (int, float) and value > 0:
        yield path


GENERATORS = (
    "aiperf_records", "genai_bench", "guidellm", "inference_perf", "llmperf", "perf_analyzer",
    "sglang_bench_serving", "vllm_bench_serve", "vllm_request_stats",
)  # fmt: skip
DOCUMENTS = [path for path in FILES if path.parent.name in GENERATORS]


@pytest.mark.parametrize("path", DOCUMENTS, ids=[f"{p.parent.name}/{p.name}" for p in DOCUMENTS])
def test_a_mock_run_with_a_negative_number_gives_nothing_negative(path, tmp_path):
    text = path.read_text()
    try:
        documents = [json.loads(text)]
    except json.JSONDecodeError:
        documents = [json.loads(line) for line in text.splitlines()]
    places = list(leaves(documents))
    assert places
    for place in places:
        changed = copy.deepcopy(documents)
        inner = changed
        for key in place[:-1]:
            inner = inner[key]
        inner[place[-1]] *= -1
        data = "".join(json.dumps(one) + "\n" for one in changed).encode()
        for _, row in rows_of(read_bytes(path, data, tmp_path)):
            numbers = [value for value in row.values() if isinstance(value, (int, float))]
            assert min(numbers) >= 0, place


# -- what stands where a number belongs -----------------------------------------------------------


def test_words_where_numbers_belong(tmp_path):
    mapping = (
        'null = ["Included"]\n[columns]\nt = {to = "start_ns", unit = "rfc3339"}\n'
        'n = "input_fresh_tokens"\nms = {to = "e2e_ns", unit = "ms"}\nusd = "reported_cost_usd"\n'
        + CLIENT
    )
    text = (
        "t,n,ms,usd\n2026-01-05T10:00:00Z,21073.0,12.5,$0.02\n"
        "2026-01-05T10:00:01Z,NULL,Infinity,Included\n"
        "[trimmed for fixture],≤ 200k,7,0.5\n"
    )
    requests, problems, batches = through(mapping, text, tmp_path)
    own = ("input_fresh_tokens", "e2e_ns", "reported_cost_usd")
    assert [[one.get(name) for name in own] for one in requests.values()] == [
        [21_073, 12_500_000, Decimal("0.02")], [None, None, None], [None, 7 * MS, Decimal("0.5")],
    ]  # fmt: skip
    assert problems.keys() == {3, 4}
    assert "'ms'" in problems[3]
    assert "'usd'" not in problems[3]
    assert "'t'" in problems[4]
    assert "'n'" in problems[4]
    assert totals(batches)[:2] == (4, 1)


CURSOR = """tokens = "exclusive"
null = ["Included"]
tags = ["Kind"]
[columns]
Date = {to = "start_ns", unit = "rfc3339"}
Model = "model"
"Input (w/ Cache Write)" = "cache_write_unknown_tokens"
"Input (w/o Cache Write)" = "input_fresh_tokens"
"Cache Read" = "cache_read_tokens"
"Output Tokens" = "output_visible_tokens"
"Total Tokens" = "total_tokens"
Cost = {to = "reported_cost_usd", optional = true}
[constants]
vantage = "provider"
"""


@needs_shared
@pytest.mark.parametrize(
    ("pattern", "count", "priced", "usd", "tokens"),
    [
        # "$0.02" in 500 rows and "Included" in the others.
        ("70hundert__*/*.csv", 604, 500, "47.48", (2_558_924, 424_870, 2_084_208, 1_072_723)),
        ("gerryyang2025__*/*.csv", 199, 199, "30.666", (7_155, 4_444_063, 83_544_576, 699_697)),
        # "Requests" instead of a cost; two failed and were not charged.
        ("mishka-k__*/*.csv", 20, 0, "0", (28_123, 453_788, 6_036_729, 35_752)),
        ("weston-uribe__*/*.csv", 3, 0, "0", (450, 150, 900, 115)),
    ],
)
def test_usage_tables_with_words_for_a_cost(pattern, count, priced, usd, tokens):
    (path,) = BILLING.glob(pattern)
    requests, _, _ = table_of(path, CURSOR)
    assert len(requests) == count
    costs = [one["reported_cost_usd"] for one in requests if "reported_cost_usd" in one]
    assert (len(costs), sum(costs)) == (priced, Decimal(usd))
    names = (
        "input_fresh_tokens", "cache_write_unknown_tokens", "cache_read_tokens",
        "output_visible_tokens",
    )  # fmt: skip
    assert tuple(sum(one[name] for one in requests) for name in names) == tokens


@needs_shared
def test_a_table_that_runs_backwards_in_time(tmp_path):
    """Newest first: the span, the days and a read share of 94.9 % do not care."""
    (path,) = BILLING.glob("gerryyang2025__*/*.csv")
    requests, _, _ = table_of(path, CURSOR)
    starts = [one["start_ns"] for one in requests]
    assert starts == sorted(starts, reverse=True)
    mapping, db = tmp_path / "m.toml", str(tmp_path / "case.duckdb")
    mapping.write_text(CURSOR)
    (file,) = analyzer.ingest(db, [str(path)], mapping=str(mapping)).files
    assert (file.first_ns, file.last_ns) == (starts[-1], starts[0])
    with engine_of(db) as engine:
        (row,) = engine.rows(
            "SELECT round(100.0 * sum(cache_read_tokens) / sum(cache_read_tokens + "
            "input_fresh_tokens + cache_write_unknown_tokens), 1) AS share, count(*) FILTER ("
            "cache_read_tokens + input_fresh_tokens + cache_write_unknown_tokens + "
            "output_visible_tokens = 0) AS empty FROM request"
        )
        day = engine.value(
            "SELECT max(usd) FROM (SELECT sum(reported_cost_usd) AS usd FROM request "
            "GROUP BY start_ns // 86400000000000)"
        )
    assert (float(row["share"]), row["empty"]) == (94.9, 2)
    assert round(day, 2) == Decimal("9.54")


@needs_shared
@pytest.mark.parametrize(
    "path", sorted(MEASURED.glob("TonyLi15__sglang-benchmark/*.jsonl")), ids=lambda p: p.name
)
def test_a_summary_with_an_infinite_rate_is_still_known_as_one(path):
    assert b"Infinity" in path.read_bytes()
    found = pick(InputFile(path, path.name).head)
    assert found.reader is None
    assert "--output-details" in found.why


# -- gaps that hold more than a gap ---------------------------------------------------------------


@needs_shared
def test_a_time_per_token_that_holds_the_first_is_not_believed(tmp_path):
    """llmperf divides the whole time by the tokens; ours starts after the first token."""
    path = LLMPERF / "individual~groq_70b.json"
    theirs = [one["inter_token_latency_s"] for one in json.loads(path.read_text())]
    db = str(tmp_path / "case.duckdb")
    analyzer.ingest(db, [str(path)])
    (ours,) = (row["p50_ns"] / S for row in analyzer.latency(db).rows if row["metric"] == "tpot")
    requests = rows(path, "request", "llmperf")
    expected = statistics.median(
        (one["e2e_ns"] - one["ttft_ns"]) / (one["output_visible_tokens"] - 1) for one in requests
    )
    assert ours == pytest.approx(expected / S)
    assert ours < 0.8 * statistics.median(theirs)


# -- twins, names and noise -----------------------------------------------------------------------


@needs_shared
def test_a_packed_twin_beside_a_table_is_read_once(tmp_path):
    source = WORKLOAD / "kubernetes-sigs__inference-perf/trace.csv"
    (tmp_path / "trace.csv").write_bytes(source.read_bytes())
    (tmp_path / "trace.csv.gz").write_bytes(gzip.compress(source.read_bytes()))
    db = str(tmp_path / "case.duckdb")
    result = analyzer.ingest(db, [str(tmp_path / "trace.csv"), str(tmp_path / "trace.csv.gz")])
    assert sorted(file.outcome for file in result.files) == ["known", "read"]
    with engine_of(db) as engine:
        assert engine.value("SELECT count(*) FROM request") == 20


@needs_shared
def test_a_folder_that_names_another_model_names_none():
    (path,) = SERVERS.glob("*sglang*gptoss*~server.log")
    assert b"model_path='/home/models/deepseek-r1'" in path.read_bytes()
    told = rows_of(read(READERS["sglang_log"], path))
    assert not any("gpt" in str(row.get("model", "")) for _, row in told)


@needs_shared
def test_progress_bars_and_colours_are_no_problem_and_cost_no_line():
    for path in SERVERS.glob("*~server.log"):
        data = path.read_bytes()
        assert data.count(b"%|") > 100
        found = pick(InputFile(path, path.name).head)
        batches = read(found.reader, path)
        assert not any(batch.problems for batch in batches)
        samples = [row for table, row in rows_of(batches) if table == "engine_sample"]
        lines = data.count(b"Prefill batch") + data.count(b"Decode batch") + data.count(b"Running:")
        assert sum("running" in row for row in samples) == lines

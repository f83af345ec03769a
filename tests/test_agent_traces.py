"""What the readers of agent traces and Cursor's exports must not get wrong."""

import json
import zipfile

import pytest
from helpers import case_of, engine_of
from test_readers import READERS, SAMPLES, read, rows_of, totals

import analyzer

NAMES = (
    "kv_cache_tester", "openhands_completions", "swe_agent_traj", "inspect_log", "atif_trajectory",
    "cursor_usage_events", "lmcache_agent_trace", "swe_agent_log", "cursor_usage_csv",
)  # fmt: skip
JSON = [path for name in NAMES[:-2] for path in sorted((SAMPLES / name).iterdir())]


def given(reader, value, folder, name="file.json"):
    path = folder / name
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return read(READERS[reader], path)


def sample(reader):
    (path, *_) = sorted((SAMPLES / reader).iterdir())
    return json.loads(path.read_text())


def problems(batches):
    return [problem.reason for batch in batches for problem in batch.problems]


def requests(batches):
    return [row for table, row in rows_of(batches) if table == "request"]


@pytest.mark.parametrize("path", JSON, ids=lambda path: f"{path.parent.name}/{path.name}")
@pytest.mark.parametrize("form", [{"separators": (",", ":")}, {"separators": (" , ", " : ")}])
def test_blanks_in_json_change_nothing(path, form, tmp_path):
    reader = READERS[path.parent.name]
    text = path.read_text()
    lines = text.splitlines() if path.suffix == ".jsonl" else [text]
    other = tmp_path / path.name
    other.write_text("".join(json.dumps(json.loads(line), **form) + "\n" for line in lines))
    assert rows_of(read(reader, other)) == rows_of(read(reader, path))


def texts(value):
    """Every text of a document that is a sentence: it has blanks."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return {text for one in value for text in texts(one)}
    return {value} if isinstance(value, str) and len(value.split()) > 2 else set()


def test_no_sentence_of_a_sample_is_stored(tmp_path):
    for name in NAMES:
        folder = tmp_path / name
        folder.mkdir()
        for path in (SAMPLES / name).iterdir():
            (folder / path.name).write_bytes(path.read_bytes())
    sentences = {"It says", "I list the files.", "Another one.", "example.com"}
    for path in JSON:
        text = path.read_text()
        lines = text.splitlines() if path.suffix == ".jsonl" else [text]
        sentences |= {one for line in lines for one in texts(json.loads(line))}
    assert len(sentences) > 10
    db = case_of(tmp_path, tmp_path / "case.duckdb")
    with engine_of(db) as engine:
        for table in ("request", "request_tag", "prompt_block", "invoice_line", "problem"):
            stored = json.dumps(engine.rows(f"SELECT * FROM {table}"), default=str)
            assert not [one for one in sentences if one in stored]


# -- kv-cache-tester ------------------------------------------------------------------------------


def test_a_sum_that_is_not_the_requests_is_a_problem(tmp_path):
    trace = sample("kv_cache_tester")
    trace["totals"]["combined_tokens"]["input"] += 1
    batches = given("kv_cache_tester", trace, tmp_path)
    assert problems(batches) == ["its total of input tokens is not the sum over its requests"]
    assert len(requests(batches)) == 3


def test_one_bad_entry_costs_itself(tmp_path):
    trace = sample("kv_cache_tester")
    del trace["totals"]
    trace["requests"] += [
        7,
        {"t": 11, "type": "x"},
        {"t": 12, "type": "subagent"},
        {"type": "n", "hash_ids": [[1]]},
        {"t": -1, "type": "n"},
    ]
    batches = given("kv_cache_tester", trace, tmp_path)
    assert len(problems(batches)) == 5
    assert totals(batches)[:2] == (9, 3)


def test_sub_agents_within_sub_agents_end_somewhere(tmp_path):
    trace = sample("kv_cache_tester")
    entry = {"t": 1, "type": "n", "in": 1, "out": 1}
    for depth in range(40):
        entry = {"t": 1, "type": "subagent", "agent_id": f"a{depth}", "requests": [entry]}
    trace |= {"requests": [entry], "totals": {}}
    batches = given("kv_cache_tester", trace, tmp_path)
    assert problems(batches) == ["sub-agents nested too deeply"]


def test_ids_that_are_not_local_are_the_same_in_every_file(tmp_path):
    trace = sample("kv_cache_tester") | {"hash_id_scope": "global"}
    hashes = []
    for name in ("one", "two"):
        rows = rows_of(given("kv_cache_tester", trace | {"id": name}, tmp_path))
        hashes.append([row["prefix_hash"] for table, row in rows if table == "prompt_block"])
    assert hashes[0] == hashes[1]


# -- LMCache, OpenHands, SWE-agent ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("stamp", "ns"),
    [
        (1_770_000_001, 1_770_000_001_000_000_000),
        (1_770_000_001_125, 1_770_000_001_125_000_000),
        (1_770_000_001_125_000, 1_770_000_001_125_000_000),
        (1_770_000_001_125_000_007, 1_770_000_001_125_000_007),
        (17, None),
        (1.5, None),
        ("1770000001", None),
    ],
)
def test_the_unit_of_a_time_is_proven(stamp, ns, tmp_path):
    line = {"timestamp": stamp, "input": "a", "output": "b", "session_id": "s"}
    batches = given("lmcache_agent_trace", line, tmp_path, "x.jsonl")
    assert [row["start_ns"] for row in requests(batches)] == ([ns] if ns else [])
    assert len(problems(batches)) == (ns is None)


def test_a_call_without_latency_is_dated_by_its_end(tmp_path):
    call = sample("openhands_completions")
    del call["latency_sec"]
    batches = given("openhands_completions", call, tmp_path)
    (row,) = requests(batches)
    assert row["start_ns"] == 1_770_000_010_500_000_000
    assert "e2e_ns" not in row
    assert any("latency" in note for note in batches[0].assumed)


def test_a_call_without_an_answer_is_a_problem(tmp_path):
    call = sample("openhands_completions") | {"response": None}
    batches = given("openhands_completions", call, tmp_path)
    assert requests(batches) == []
    assert "response" in problems(batches)[0]


def test_marks_for_the_cache_do_not_change_the_prompt(tmp_path):
    call = sample("openhands_completions")
    hashes = []
    for marked in (True, False):
        if not marked:
            del call["messages"][1]["content"][0]["cache_control"]
        rows = rows_of(given("openhands_completions", call, tmp_path))
        hashes.append([row["prefix_hash"] for table, row in rows if table == "prompt_block"])
    assert hashes[0] == hashes[1]


def test_a_call_of_a_log_that_began_before_it_has_no_start(tmp_path):
    text = "2026-01-01 12:00:05,500 INFO input_tokens=1,200, output_tokens=40, "
    batches = given("swe_agent_log", text + "instance_cost=0.02, cost=0.02\n", tmp_path, "x.log")
    (row,) = requests(batches)
    assert "start_ns" not in row
    assert "e2e_ns" not in row
    assert row["input_fresh_tokens"] == 1_200
    batches = given("swe_agent_log", text + "cost=?\n", tmp_path, "x.log")
    assert problems(batches) == ["a line of tokens and cost that cannot be read"]


# -- Inspect, ATIF --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("usage", "buckets"),
    [
        ((500, 20, 520, 300, None), (200, 300, "inclusive")),
        ((200, 20, 520, 300, None), (200, 300, "exclusive")),
        ((200, 20, 620, 300, 100), (200, 300, "exclusive")),
        ((500, 20, None, 300, None), (None, 300, "unknown")),
        ((500, 20, 520, None, None), (500, None, "inclusive")),
    ],
)
def test_the_total_says_how_inspect_counted(usage, buckets, tmp_path):
    names = (
        "input_tokens", "output_tokens", "total_tokens", "input_tokens_cache_read",
        "input_tokens_cache_write",
    )  # fmt: skip
    log = sample("inspect_log")
    event = log["samples"][0]["events"][3]
    event["output"]["usage"] = dict(zip(names, usage, strict=True))
    log["samples"][0]["events"] = [event]
    (row,) = requests(given("inspect_log", log, tmp_path))
    names = ("input_fresh_tokens", "cache_read_tokens", "usage_convention")
    assert tuple(row.get(name) for name in names) == buckets


def test_an_eval_archive_is_read_as_it_is(tmp_path):
    log = sample("inspect_log")
    logs = tmp_path / "logs"
    logs.mkdir()
    for name in ("one", "two"):
        with zipfile.ZipFile(logs / f"{name}.eval", "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("start.json", json.dumps({key: log[key] for key in ("eval", "plan")}))
            one = log["samples"][0] | {"target": name}  # not the same bytes
            archive.writestr("samples/1_epoch_1.json", json.dumps(one, indent=2))
    analyzer.ingest(str(tmp_path / "case.duckdb"), [str(logs)])
    with engine_of(str(tmp_path / "case.duckdb")) as engine:
        rows = engine.rows("SELECT session_id, turn FROM request ORDER BY 1, 2")
    assert [row["turn"] for row in rows] == [1, 2, 1, 2]
    assert len({row["session_id"] for row in rows}) == 2


def test_a_step_that_was_copied_is_not_counted_again(tmp_path):
    parts = [
        json.loads(path.read_text()) for path in sorted((SAMPLES / "atif_trajectory").iterdir())
    ]
    counted = sum(
        row["input_fresh_tokens"] + row.get("cache_read_tokens", 0)
        for part in parts
        for row in requests(given("atif_trajectory", part, tmp_path))
    )
    assert counted == 2_600 == parts[0]["final_metrics"]["total_prompt_tokens"]


# -- Cursor ---------------------------------------------------------------------------------------

HEADER = "Date,Kind,Model,Max Mode,Input (w/ Cache Write),Input (w/o Cache Write),Cache Read,"
HEADER += "Output Tokens,Total Tokens,Cost\n"
ROW = "2026-01-02T10:00:00.000Z,{kind},auto,No,1,2,3,4,{total},{cost}\n"


@pytest.mark.parametrize(
    ("kind", "cost", "reported", "billed"),
    [
        ("On-Demand", "$0.02", 0.02, 1),
        ("USAGE", '"$1,234.50"', 1234.5, 1),
        ("USAGE", "Included", None, 0),
        ("Included", "0.06", 0.06, 0),
        ('"Errored, Not Charged"', "0.06", 0.06, 0),
        ("USAGE", "", None, 0),
        ("USAGE", "-", None, 0),
    ],
)
def test_only_what_was_charged_is_on_the_bill(kind, cost, reported, billed, tmp_path):
    text = HEADER + ROW.format(kind=kind, cost=cost, total=10)
    batches = given("cursor_usage_csv", text, tmp_path, "x.csv")
    assert problems(batches) == []
    (row,) = requests(batches)
    assert (float(row["reported_cost_usd"]) if "reported_cost_usd" in row else None) == reported
    assert sum(table == "invoice_line" for table, _ in rows_of(batches)) == billed


def test_rows_that_cannot_be_are_problems(tmp_path):
    bad = [
        ROW.format(kind="USAGE", cost="$0.0.2", total=10),
        ROW.format(kind="USAGE", cost="1", total="x"),
        "2026-01-02,USAGE\n",
    ]
    good = ROW.format(kind="USAGE", cost="1", total=10) + ROW.format(kind="x", cost="1", total=11)
    batches = given("cursor_usage_csv", HEADER + "".join(bad) + good, tmp_path, "x.csv")
    assert len(problems(batches)) == 3
    assert totals(batches)[:2] == (6, 2)
    fits, other = requests(batches)
    assert "usage_contradiction" not in fits
    assert "not the sum" in other["usage_contradiction"]


def test_a_page_of_several_says_so(tmp_path):
    batches = given("cursor_usage_events", sample("cursor_usage_events"), tmp_path)
    assert any("more events" in note for note in batches[-1].assumed)

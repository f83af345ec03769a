"""Mapping files: what they may say, which are recognised, how they are given, and real traces."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from helpers import engine_of
from shared import SHARED, needs_shared
from test_readers import READERS

import analyzer
from analyzer.cli import cli
from analyzer.contract.publish import schemas
from analyzer.errors import AnalyzerError
from analyzer.readers._file import InputFile
from analyzer.readers._find import pick
from analyzer.readers._mapping import load, plan_of, shipped

MAPPING = READERS["mapping"]
VANTAGE = '[constants]\nvantage = "gateway"\n'
S = 1_000_000_000
TRACES = SHARED / "traces" / "1-workload"


# -- the mapping itself -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[columns]\na = "e2e_nss"', ["'a'", "'e2e_nss'", "no column", "near it: 'e2e_ns'"]),
        ('[columns]\na = "ttft_ms"', ["'ttft_ms'", "near it: 'ttft_ns'"]),
        ('[columns]\na = "source_id"', ["'source_id'", "set by analyze itself"]),
        ('[columns]\na = "e2e_ns"', ["'a'", "unit must be s, ms, us or ns"]),
        ('[columns]\na = {to = "e2e_ns", unit = "rfc3339"}', ["unit must be s, ms, us or ns"]),
        ('[columns]\na = "start_ns"', ["rfc3339, epoch_s"]),
        ('[columns]\na = {to = "model", unit = "s"}', ["no unit to choose"]),
        ('[columns]\na = {to = "start_ns", unit = "hours"}', ["hours"]),
        ('[columns]\na = {to = "start_ns", unit = "s", origin = "noon"}', ["origin"]),
        ('[columns]\na = "model"\nb = "model"', ["'a'", "'b'", "model"]),
        ('[columns]\na = {two = "model"}', ["two"]),
        ('[colums]\na = "model"', ["colums", "near it: 'columns'"]),
        ('[columns]\nusage.a = "model"', ["quotes"]),
        ("[columns]", ["no column is mapped"]),
        ('[columns]\na = "model"', ['vantage = "client"']),
        ('[columns]\na = "model"\n[constants]\nvantage = "moon"', ["'moon'", "engine"]),
        ('[columns]\na = "model"\n[constants]\nvantag = "client"', ["near it: 'vantage'"]),
        ('[columns]\na = "model"\n[constants]\nmodel = "m"\nvantage = "client"', ["both"]),
        ('[columns]\na = "model"\n[constants]\nturn = "x"\nvantage = "client"', ["turn"]),
        (
            '[columns]\na = "input_fresh_tokens"\nb = "cache_read_tokens"\n' + VANTAGE,
            ['tokens = "inclusive"', '"exclusive"'],
        ),
        ('[columns]\na = {to = "end_ns", unit = "epoch_s"}\n' + VANTAGE, ["start_ns"]),
        (
            '[columns]\na = {to = "end_ns", unit = "epoch_s"}\nb = {to = "e2e_ns", unit = "s"}\n',
            ["both end_ns and e2e_ns"],
        ),
        ('zone = "Mars"\n[columns]\na = "model"\n' + VANTAGE, ["Mars", "Europe/Berlin"]),
        ('tags = ["t", "t"]\n[columns]\na = "model"\n' + VANTAGE, ["twice"]),
        ("[columns", ["not valid TOML"]),
        ("\xff", ["TOML"]),
    ],
)
def test_what_is_wrong_with_a_mapping_is_named(text, words, tmp_path):
    path = tmp_path / "mine.toml"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(AnalyzerError) as caught:
        load(path)
    assert "mine.toml" in caught.value.message
    for word in words:
        assert word in caught.value.message
    assert "analyze formats mapping" in caught.value.hint


def test_a_column_the_file_lacks_is_named_with_what_is_near(tmp_path):
    mapping, log = tmp_path / "mine.toml", tmp_path / "theirs.csv"
    mapping.write_text(f'[columns]\nLatency = {{to = "e2e_ns", unit = "s"}}\n{VANTAGE}')
    log.write_text("id,latency_s,model\na,1,m\n")
    args = ("--db", str(tmp_path / "c.duckdb"), "ingest", str(log), "--mapping", str(mapping))
    done = CliRunner().invoke(cli, args)
    assert done.exit_code == 2
    said = " ".join(done.stderr.split())
    for word in ("theirs.csv", "'Latency'", "mine.toml", "e2e_ns", "'latency_s'"):
        assert word in said
    assert not (tmp_path / "c.duckdb").exists()


def test_a_mapping_is_published_as_a_schema():
    schema = schemas()["native"]["mapping"]
    text = json.dumps(schema)
    for word in ("columns", "constants", "tags", "tokens", "inclusive", "epoch_ms", "optional"):
        assert word in text


def test_the_example_that_formats_shows_is_a_mapping():
    made = plan_of("example", MAPPING.example.encode())
    assert {one.ours for one in made.targets} >= {"request_id", "start_ns", "e2e_ns"}
    told = CliRunner().invoke(cli, ("formats", "mapping")).stdout
    assert 'started = { to = "start_ns", unit = "epoch_ms" }' in told
    assert "--mapping" in CliRunner().invoke(cli, ("ingest", "--help")).stdout


def test_mappings_that_ship_say_what_they_are():
    assert {one.name for one in shipped()} >= {"azure_llm_inference", "burstgpt", "mooncake"}
    for one in shipped():
        assert one.file.title
        assert str(one.file.source).startswith("https://")


# -- recognising, and ingest --------------------------------------------------------------------


def claim(text, tmp_path, name="theirs"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return pick(InputFile(path, path.name).head)


def test_only_exactly_the_columns_of_a_mapping_that_ships_are_claimed(tmp_path):
    known = "TIMESTAMP,ContextTokens,GeneratedTokens\n"
    assert claim(known, tmp_path).reader == MAPPING
    for other in ("TIMESTAMP,ContextTokens,GeneratedTokens,TTFT\n", "TIMESTAMP,ContextTokens\n"):
        found = claim(other + "1,2,3,4\n", tmp_path)
        assert found.reader is None
        assert "azure_llm_inference" in found.why
        assert "--mapping" in found.why
    six = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
    assert claim(six + "5,m,1,2,3,API log\n", tmp_path).reader == MAPPING


def test_a_headerless_csv_is_refused_as_a_request_log(tmp_path):
    found = claim("0,1.5,0.9,gamma,0.5,2\n600,0.0,,,,\n", tmp_path)
    assert found.reader is None
    assert "without a header line" in found.why


def test_no_text_of_an_unknown_file_is_shown(tmp_path):
    found = claim("dear hunter2, my password, is, secret\n", tmp_path)
    assert "hunter2" not in found.why


def test_a_given_mapping_beats_other_readers_and_leaves_them_the_rest(tmp_path):
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "mine.toml").write_text(
        '[columns]\nwho = "request_id"\nms = {to = "e2e_ns", unit = "ms"}\n'
        '[constants]\nvantage = "client"\n'
    )
    (logs / "a.csv").write_text("who,ms\nx,5\n")
    (logs / "b.jsonl").write_text('{"who": "y", "ms": 6, "request_id": "z", "e2e_ms": 7}\n')
    (logs / "c.jsonl").write_text('{"request_id": "w", "vantage": "client", "e2e_ms": 7}\n')
    (logs / "d.csv").write_text("who,took\nx,5\n")
    db = str(tmp_path / "c.duckdb")
    result = analyzer.ingest(db, [str(logs)], mapping=str(logs / "mine.toml"))
    readers = {file.path: file.reader for file in result.files}
    assert readers == {
        "a.csv": "mapping", "b.jsonl": "mapping", "c.jsonl": "request_records", "d.csv": None,
    }  # fmt: skip
    assert "'ms'" in next(file.why for file in result.files if file.path == "d.csv")
    with engine_of(db) as engine:
        rows = engine.rows("SELECT request_id, e2e_ns FROM request ORDER BY 1")
    assert [(row["request_id"], row["e2e_ns"]) for row in rows] == [
        ("w", 7_000_000), ("x", 5_000_000), ("y", 6_000_000),
    ]  # fmt: skip
    again = analyzer.ingest(db, [str(logs)], mapping=str(logs / "mine.toml"))
    assert {f.outcome for f in again.files} == {"known", "unrecognised"}


def test_a_table_that_grew_is_read_on(tmp_path):
    mapping, log, db = tmp_path / "mine.toml", tmp_path / "a.csv", str(tmp_path / "c.duckdb")
    mapping.write_text(f'[columns]\nwho = "request_id"\nn = "turn"\n{VANTAGE}')
    for text, outcome in (("who,n\na,1", "read"), ("who,n\na,12\nb,3\n", "grown")):
        log.write_text(text)
        (file,) = analyzer.ingest(db, [str(log)], mapping=str(mapping)).files
        assert file.outcome == outcome
    with engine_of(db) as engine:
        rows = engine.rows("SELECT request_id, turn FROM request ORDER BY 1")
    assert rows == [{"request_id": "a", "turn": 12}, {"request_id": "b", "turn": 3}]


def test_relative_times_date_no_source(tmp_path):
    log, db = tmp_path / "a.csv", str(tmp_path / "c.duckdb")
    log.write_text("arrived_at,num_prefill_tokens,num_decode_tokens\n5.0,1,2\n")
    (file,) = analyzer.ingest(db, [str(log)]).files
    assert (file.rows, file.first_ns) == (1, None)


# -- real traces --------------------------------------------------------------------------------


def stored(tmp_path, *paths):
    db = str(tmp_path / "real.duckdb")
    result = analyzer.ingest(db, [str(TRACES / path) for path in paths])
    assert not any(file.problems for file in result.files)
    return db


AZURE = "Azure__AzurePublicDataset/AzureLLMInferenceTrace_code.csv"
CODE = "microsoft__vidur/splitwise_code.csv"
FACTS = """
WITH r AS (
  SELECT *, start_ns - lag(start_ns) OVER (ORDER BY start_ns) AS gap_ns FROM request
  WHERE source_id = {source})
SELECT count(*) AS n, round((max(start_ns) - min(start_ns)) / 1e9, 1) AS span_s,
  round(avg(input_fresh_tokens), 1) AS mean_in, median(input_fresh_tokens) AS p50_in,
  max(input_fresh_tokens) AS max_in, round(avg(output_visible_tokens), 1) AS mean_out,
  median(output_visible_tokens) AS p50_out, round(stddev(gap_ns) / avg(gap_ns), 1) AS cv
FROM r"""


@needs_shared
def test_azure_code_of_2023_and_its_copy_for_vidur(tmp_path):
    # CRLF, no newline at the end, seven digits; the copy is the same traffic in other units.
    db = stored(tmp_path, AZURE, CODE)
    with engine_of(db) as engine:
        azure, copy = (engine.rows(FACTS.format(source=i))[0] for i in (1, 2))
        (peak,) = engine.rows(
            "SELECT max(n) AS n FROM (SELECT count(*) AS n FROM request WHERE source_id = 1 "
            "GROUP BY start_ns // 60000000000)"
        )
        (first,) = engine.rows("SELECT start_ns FROM request WHERE source_id = 1 AND record = 2")
        equal = engine.value(
            "SELECT count(*) FROM request a JOIN request b ON a.record = b.record AND "
            "a.input_fresh_tokens = b.input_fresh_tokens AND a.output_visible_tokens = "
            "b.output_visible_tokens WHERE a.source_id = 1 AND b.source_id = 2"
        )
    assert azure == {
        "n": 8819, "span_s": 3435.9, "mean_in": 2047.8, "p50_in": 1469, "max_in": 7437,
        "mean_out": 27.9, "p50_out": 13, "cv": 13.2,
    }  # fmt: skip
    assert copy == azure
    assert peak["n"] == 585
    assert first["start_ns"] == 1_700_158_623_979_960_000
    assert equal == 8819


@needs_shared
def test_the_smallest_sample_is_the_start_of_azures_conversations(tmp_path):
    db = stored(
        tmp_path, "microsoft__vidur/splitwise_conv.csv", "kubernetes-sigs__inference-perf/trace.csv"
    )
    with engine_of(db) as engine:
        counts = engine.rows(
            "SELECT count(*) AS n FROM request GROUP BY source_id ORDER BY source_id"
        )
        equal = engine.value(
            "SELECT count(*) FROM request a JOIN request b ON a.record = b.record AND "
            "a.input_fresh_tokens = b.input_fresh_tokens AND a.output_visible_tokens = "
            "b.output_visible_tokens WHERE a.source_id = 1 AND b.source_id = 2"
        )
    assert [row["n"] for row in counts] == [19_366, 20]
    assert equal == 20


@needs_shared
def test_mooncake_conversations_and_their_ideal_prefix_hit(tmp_path):
    db = stored(tmp_path, "kvcache-ai__Mooncake/conversation_trace.jsonl")
    hit = """
WITH first AS (SELECT prefix_hash, min(record) AS seen FROM prompt_block GROUP BY 1),
b AS (SELECT p.record, p.block_index, f.seen < p.record AS hit
  FROM prompt_block p JOIN first f USING (prefix_hash)),
n AS (
  SELECT record, coalesce(min(block_index) FILTER (NOT hit), count(*)) AS blocks FROM b GROUP BY 1)
SELECT round(100.0 * sum(least(n.blocks * 512, r.input_fresh_tokens))
  / sum(r.input_fresh_tokens), 2) FROM n JOIN request r USING (record)"""
    with engine_of(db) as engine:
        (facts,) = engine.rows(
            "SELECT count(*) AS n, max(start_ns) / 1e9 AS span_s, "
            "round(avg(input_fresh_tokens)) AS mean_in, median(input_fresh_tokens) AS p50_in, "
            "quantile_disc(input_fresh_tokens, 0.99) AS p99_in, "
            "round(avg(output_visible_tokens), 1) AS mean_out, "
            "round(sum(input_fresh_tokens) / 1e6, 1) AS total_in FROM request"
        )
        whole = engine.value(
            "SELECT count(*) FROM (SELECT record, count(*) AS n FROM prompt_block GROUP BY 1) "
            "JOIN request USING (record) WHERE n = ceil(input_fresh_tokens / 512)"
        )
        chained = engine.value(
            "SELECT count(*) FROM (SELECT prefix_hash FROM prompt_block GROUP BY 1 "
            "HAVING count(DISTINCT block_index) > 1)"
        )
        ratio = engine.value(hit)
    assert facts["n"] == whole == 12_031
    assert round(facts["span_s"]) == 3537
    assert (facts["mean_in"], facts["p50_in"], facts["mean_out"]) == (12_035, 6_909, 342.6)
    assert abs(facts["p99_in"] - 85_401) < 200
    assert facts["total_in"] == 144.8
    assert chained == 0
    assert float(ratio) == 37.36


@needs_shared
@pytest.mark.parametrize("path", sorted(TRACES.glob("alibaba__ServeGen/*")), ids=lambda p: p.name)
def test_servegen_is_no_request_log(path):
    assert pick(InputFile(path, path.name).head).reader is None


@needs_shared
def test_a_wide_german_table_through_a_mapping(tmp_path):
    folder = SHARED / "traces" / "2-measured" / "leonxs2001__benchmarkingLLMPerformance"
    path = min(Path(folder).glob("*.csv"))
    line = path.read_bytes().split(b"\n")[0].decode("utf-8-sig").strip()
    names = line.split(";")
    assert len(names) > 3
    mapping = tmp_path / "mine.toml"
    quoted = json.dumps(names[0], ensure_ascii=False)
    mapping.write_text(f'decimal = ","\n[columns]\n{quoted} = "route"\n{VANTAGE}')
    result = analyzer.ingest(str(tmp_path / "c.duckdb"), [str(path)], mapping=str(mapping))
    assert result.files[0].reader == "mapping"
    assert result.files[0].used > 0


MEASURED = SHARED / "traces" / "2-measured"


def mapped(tmp_path, path, text):
    mapping = tmp_path / "mine.toml"
    mapping.write_text(text)
    db = str(tmp_path / "real.duckdb")
    return db, analyzer.ingest(db, [str(path)], mapping=str(mapping))


@needs_shared
def test_a_zip_of_benchmark_tables_through_a_mapping(tmp_path):
    # Counts told as "21073.0"; six ways to serve at eleven rates, each a member of one archive.
    (path,) = MEASURED.glob("vllm-project__aibrix/*.zip")
    db, result = mapped(
        tmp_path, path,
        'tags = ["question_id"]\n[columns]\nprompt_tokens = "input_fresh_tokens"\n'
        'generation_tokens = "output_visible_tokens"\nttft = {to = "ttft_ns", unit = "s"}\n'
        'launch_time = {to = "start_ns", unit = "epoch_s"}\nuser_id = "session_id"\n'
        'finish_time = {to = "end_ns", unit = "epoch_s"}\n[constants]\nvantage = "client"\n',
    )  # fmt: skip
    assert len(result.files) == 66
    assert {file.outcome for file in result.files} == {"read"}
    assert sum(file.used for file in result.files) == 15_120
    assert not any(file.problems for file in result.files)
    with engine_of(db) as engine:
        rows = engine.rows(
            "SELECT path, median(ttft_ns) / 1e9 AS s FROM request JOIN source USING (source_id) "
            "WHERE path LIKE '%_3.7.csv' GROUP BY path ORDER BY path"
        )
        (container,) = engine.rows("SELECT DISTINCT container FROM source")
    assert container["container"] == "zip"
    told = {row["path"].split("!benchmark_output/")[1]: round(row["s"], 2) for row in rows}
    assert told == {
        "naive_output_3.7.csv": 27.84, "aibrix_naive_output_3.7.csv": 28.89,
        "aibrix_naive_prefix_routing_output_3.7.csv": 28.32,
        "aibrix_kvcache_dram_output_3.7.csv": 0.49,
        "aibrix_kvcache_external_output_3.7.csv": 0.34, "ps_stack_output_3.7.csv": 0.19,
    }  # fmt: skip


@needs_shared
def test_a_table_that_holds_prompts_gives_durations_and_no_text(tmp_path):
    # Cells of many lines; its start is cut to the minute, so only its own duration is believed.
    (path,) = MEASURED.glob("teo-ma__openaiperfdata/*.csv")
    db, result = mapped(
        tmp_path, path,
        '[columns]\nid = "request_id"\nregion = "provider"\n'
        'execution_time = {to = "e2e_ns", unit = "s"}\n[constants]\nvantage = "client"\n',
    )  # fmt: skip
    assert result.files[0].used > 0
    with engine_of(db) as engine:
        (row,) = engine.rows("SELECT e2e_ns, provider FROM request WHERE record = 2")
        problems = engine.rows("SELECT excerpt FROM problem")
    assert row == {"e2e_ns": 16_889_392_000, "provider": "openai"}
    assert all("Azure" not in one["excerpt"] for one in problems)


@needs_shared
def test_a_blank_count_of_cached_tokens_is_not_told_rather_than_zero(tmp_path):
    (path,) = MEASURED.glob("Nyannyan222__*/*.csv")
    db, _ = mapped(
        tmp_path, path,
        'tokens = "inclusive"\ntags = ["condition"]\n[columns]\n'
        'prompt_tokens = "input_fresh_tokens"\ncached_tokens = "cache_read_tokens"\n'
        'completion_tokens = "output_visible_tokens"\nlatency_s = {to = "e2e_ns", unit = "s"}\n'
        '[constants]\nvantage = "client"\n',
    )  # fmt: skip
    with engine_of(db) as engine:
        (row,) = engine.rows(
            "SELECT count(*) AS n, count(*) FILTER (cache_read_tokens IS NULL) AS blank, "
            "max(e2e_ns) AS slowest FROM request"
        )
    assert (row["n"], row["blank"]) == (24, 1)
    assert round(row["slowest"] / S, 2) == 1.77

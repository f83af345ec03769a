"""Every reader, found by listing the folder: samples, account, and what must never raise."""

import gzip
import os
import random
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
import zstandard
from deep import telling_cuts, thorough, unless

from analyzer.contract.tables import TABLES
from analyzer.readers._errors import error_class
from analyzer.readers._file import InputFile
from analyzer.readers._find import all_readers, pick
from analyzer.readers._reader import Options

SAMPLES = Path(__file__).parents[1] / "sample_traces"
READERS = all_readers()
FILES = sorted(
    path
    for name in READERS
    for path in (SAMPLES / name).glob("*")
    if path.is_file() and path.suffix != ".md"
)
TODAY = 1_772_323_200_000_000_000  # 2026-03-01, so that logs without a year always mean the same
OPTIONS = Options(today_ns=TODAY)
# ANALYZE_SEEDS=20 pytest -m deep tests/test_readers.py cuts and damages each sample twenty times
# as often.
SEEDS = int(os.environ.get("ANALYZE_SEEDS", "1"))
CUTS = 20 * SEEDS
FLIPS = 60 * SEEDS
# An open request's row may change when its file grows; what was told beside it is final.
TOLD_ONCE = ("chunk", "prompt_block", "prompt_part", "request_tag")

every_reader = pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
every_file = pytest.mark.parametrize(
    "path", FILES, ids=[f"{path.parent.name}/{path.name}" for path in FILES]
)
FIRST = {path.parent.name: path for path in reversed(FILES)}
# One file of each reader in the fast suite, the others in the deep one.
first_file = pytest.mark.parametrize(
    "path",
    [
        pytest.param(
            path, id=f"{path.parent.name}/{path.name}", marks=unless(path in FIRST.values())
        )
        for path in FILES
    ],
)


def read(reader, path, options=OPTIONS, name=None):
    """All batches, each with an account that adds up and tables the contract knows."""
    batches = list(reader.read(InputFile(path, name or path.name), options))
    for batch in batches:
        problems = len({problem.record for problem in batch.problems})
        assert batch.records == batch.used + sum(batch.ignored.values()) + problems
        for table, rows in batch.tables.items():
            assert table in reader.gives
            for field in rows.schema:
                rows.column(field.name).cast(TABLES[table].field(field.name).type)
    return batches


def rows_of(batches):
    """Every row as (table, columns that are told), in order of table and record."""
    rows = [
        (table, {name: row[name] for name in TABLES[table].names if row.get(name) is not None})
        for batch in batches
        for table, some in batch.tables.items()
        for row in some.to_pylist()
    ]
    order = list(TABLES)
    return sorted(rows, key=lambda row: (order.index(row[0]), row[1]["record"]))


def totals(batches):
    ignored = sum((Counter(batch.ignored) for batch in batches), Counter())
    return sum(b.records for b in batches), sum(b.used for b in batches), ignored


def read_bytes(path, data, folder):
    """A changed sample, read by the reader of the sample, under the sample's own name."""
    file = folder / path.name
    file.write_bytes(data)
    return read(READERS[path.parent.name], file)


@every_reader
def test_reader_says_what_it_is(reader):
    assert reader.title
    assert reader.record_unit
    assert reader.docs
    assert reader.cannot, "say what this format can never show"
    assert reader.enable, "say how to record what is missing"
    assert reader.checked_against
    assert set(reader.gives) <= set(TABLES)


@every_file
def test_sample_is_claimed_by_its_reader_alone(path):
    head = InputFile(path, path.name).head
    claims = {name: reader.probe(head) for name, reader in READERS.items()}
    assert [name for name, claim in claims.items() if claim.sure] == [path.parent.name]
    assert all(claim.why for claim in claims.values() if 0 < claim.score < 1)


@every_file
def test_sample_has_no_problems(path):
    batches = read(READERS[path.parent.name], path)
    assert [problem for batch in batches for problem in batch.problems] == []


@pytest.mark.parametrize("name", sorted({path.parent.name for path in FILES}))
def test_sample_gives_the_rows_it_was_made_from(name, golden):
    rows = [
        {"file": path.name, "table": table, **row}
        for path in FILES
        if path.parent.name == name
        for table, row in rows_of(read(READERS[name], path))
    ]
    golden(f"readers/{name}.jsonl", rows)


def cuts_of(data, *, every):
    """Those that tell most; or every end of a record, and as many places beside them."""
    if not every:
        return telling_cuts(data)
    ends = {at + 1 for at, byte in enumerate(data) if byte == ord("\n")}
    return sorted(ends | set(range(0, len(data), max(1, len(data) // CUTS))))


@thorough
@first_file
def test_any_prefix_is_read_up_to_the_cut(path, thorough, tmp_path):
    data = path.read_bytes()
    whole = rows_of(read(READERS[path.parent.name], path))
    for cut in cuts_of(data, every=thorough):
        rows = rows_of(read_bytes(path, data[:cut], tmp_path))
        assert len(rows) <= len(whole)


@first_file
def test_windows_line_ends_change_nothing(path, tmp_path):
    data = path.read_bytes().replace(b"\n", b"\r\n")
    plain = rows_of(read(READERS[path.parent.name], path))
    assert without_ids(rows_of(read_bytes(path, data, tmp_path))) == without_ids(plain)


def without_ids(rows):
    """Generated ids hold a hash of the bytes."""
    return [
        (table, {k: v for k, v in row.items() if k != "request_id" or "#" not in v})
        for table, row in rows
    ]


@thorough
@first_file
def test_damage_is_counted_and_never_raises(path, thorough, tmp_path):
    data, dice = path.read_bytes(), random.Random(path.name)
    for _ in range(FLIPS if thorough else 4):
        damaged = bytearray(data)
        for _ in range(dice.choice((1, 1, 3, 20))):
            damaged[dice.randrange(len(damaged))] ^= 1 << dice.randrange(8)
        read_bytes(path, bytes(damaged), tmp_path)
        # Whoever forces a reader gets problems, not a traceback; the probes see the same bytes.
        pick(InputFile(tmp_path / path.name, path.name).head)
    for place in (0, len(data) // 2, len(data)):
        read_bytes(path, data[:place] + b"\0" * 40 + data[place:], tmp_path)


NONSENSE = [
    b"", b"\n", b"\n\n\n", b"{}", b"[]", b"null", b"{", b"[" * 100_000, b'{"a":' * 50_000,
    b"\xff\xfe\x00", b"\xef\xbb\xbf", b"1" * 10_000, b'{"resourceSpans":{"a":1}}',
    b'{"resourceSpans":[[1],{"scopeSpans":[{"spans":[{},1,{"name":"llm_request"}]},3]}]}\n{}\n',
]  # fmt: skip


@every_reader
def test_nonsense_never_raises(reader, tmp_path):
    file = tmp_path / "nonsense"
    for data in NONSENSE:
        file.write_bytes(data)
        try:
            reader.probe(InputFile(file, "nonsense").head)
            read(reader, file)
        except BaseException as error:
            error.add_note(f"nonsense: {data[:60]!r}")
            raise


@first_file
@pytest.mark.parametrize("ending", ["gz", "zst"])
def test_compressed_file_gives_the_same(path, ending, tmp_path):
    data = path.read_bytes()
    packed = gzip.compress(data) if ending == "gz" else zstandard.compress(data)
    reader = READERS[path.parent.name]
    file = tmp_path / f"{path.name}.{ending}"
    file.write_bytes(packed)
    assert pick(InputFile(file, file.name).head).reader == reader
    assert rows_of(read(reader, file)) == rows_of(read(reader, path))
    file.write_bytes(packed[: len(packed) * 2 // 3])
    read(reader, file)


@thorough
@first_file
def test_file_that_grew_is_read_on(path, thorough, tmp_path):
    data, reader = path.read_bytes(), READERS[path.parent.name]
    whole = read(reader, path)
    if not any(batch.resume for batch in whole):
        pytest.skip("this reader reads a file that has grown from its start")
    for cut in cuts_of(data, every=thorough):
        grow(reader, path, data, cut, whole, tmp_path)


def grow(reader, path, data, cut, whole, folder):
    """Read up to ``cut``, then on from there, and keep of the first part what the store keeps."""
    file = folder / path.name
    file.write_bytes(data[:cut])
    begun = read(reader, file)
    resume = next((batch.resume for batch in reversed(begun) if batch.resume), None)
    if resume is None:  # the store then reads the file anew
        return
    file.write_bytes(data)
    rest = read(reader, file, Options(today_ns=TODAY, resume=resume))
    kept = [
        (table, row)
        for table, row in rows_of(begun)
        if row["record"] <= resume.records
        and (table in TOLD_ONCE or row["record"] not in resume.provisional)
    ]
    order = list(TABLES)
    joined = sorted(kept + rows_of(rest), key=lambda row: (order.index(row[0]), row[1]["record"]))
    assert joined == rows_of(whole), f"cut at {cut}"
    assert resume.records + totals(rest)[0] == totals(whole)[0]


# -- vLLM spans -----------------------------------------------------------------------------------

SPAN = (
    '{"resourceSpans":[{"scopeSpans":[{"spans":[{"name":"llm_request","startTimeUnixNano":"1770000000000001000",'
    '"endTimeUnixNano":"1770000001000001000","attributes":[{"key":"gen_ai.latency.e2e","value":'
    '{"doubleValue":1.0}},{"key":"gen_ai.latency.time_in_queue","value":{"doubleValue":QUEUE}},'
    '{"key":"gen_ai.latency.time_in_model_prefill","value":{"doubleValue":0.25}}]}]}]}]}\n'
)


@pytest.mark.parametrize("queue", ["-0.001", "481800.5", "1.5", '"NaN"', "1e300"])
def test_latency_that_cannot_be_is_not_told(queue, tmp_path):
    file = tmp_path / "spans.jsonl"
    file.write_text(SPAN.replace("QUEUE", queue))
    batches = read(READERS["otlp_json"], file)
    ((_, row),) = rows_of(batches)
    assert "queue_ns" not in row
    assert row["prefill_ns"] == 250_000_000
    (problem,) = batches[0].problems
    assert "time_in_queue" in problem.reason


def test_cut_document_gives_the_whole_entries_before_the_cut(tmp_path):
    line = SPAN.replace("QUEUE", "0.1").strip()
    entry = line.removeprefix('{"resourceSpans":[').removesuffix("]}")
    file = tmp_path / "document.json"
    file.write_text('{"resourceSpans":[\n' + ",\n".join([entry] * 3)[:-30])
    batches = read(READERS["otlp_json"], file)
    assert totals(batches)[:2] == (3, 2)
    assert len(rows_of(batches)) == 2


# -- vLLM logs ------------------------------------------------------------------------------------

STATUS = (
    "INFO 03-29 02:30:00 [loggers.py:271] Engine 000: Avg prompt throughput: 1.0 tokens/s, "
    "Avg generation throughput: 2.0 tokens/s, Running: 1 reqs, Waiting: 0 reqs, "
    "GPU KV cache usage: 3.0%"
)


def status(text, tmp_path, options=OPTIONS):
    file = tmp_path / "engine.log"
    file.write_text(text)
    batches = read(READERS["vllm_log"], file, options)
    return rows_of(batches), [p.reason for b in batches for p in b.problems], batches


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("Running: 1 reqs", "Running: one reqs"), "cannot be read"),
        (("1.0 tokens/s", "1.0 t"), "cannot be read"),
        (("03-29", "02-30"), "time"),
        (("INFO 03-29 02:30:00 ", ""), "time"),
    ],
)
def test_status_line_that_cannot_be_read_is_a_problem(change, reason, tmp_path):
    rows, problems, _ = status(STATUS.replace(*change) + "\n", tmp_path)
    assert rows == []
    assert len(problems) == 1
    assert reason in problems[0]


@pytest.mark.parametrize(("lost", "counts"), [(0, True), (1, False), (4, False)])
def test_unterminated_status_line_needs_its_last_unit(lost, counts, tmp_path):
    text = STATUS[: len(STATUS) - lost]
    rows, problems, batches = status(STATUS + "\n" + text, tmp_path)
    assert len(rows) == 1 + counts
    assert len(problems) == 1 - counts
    resume = batches[-1].resume
    assert resume.offset == len(STATUS) + 1
    assert resume.provisional == (2,)


def test_year_and_zone_come_from_the_options_and_are_told(tmp_path):
    options = Options(year=2024, zone="Asia/Tokyo", today_ns=TODAY)
    rows, _, batches = status(STATUS + "\n", tmp_path, options)
    assert rows[0][1]["time_ns"] == 1_711_647_000_000_000_000  # 2024-03-28T17:30:00Z
    notes = " ".join(batches[0].assumed)
    assert "2024" in notes
    assert "Asia/Tokyo" in notes


def test_year_fits_the_dated_sources_of_the_case(tmp_path):
    options = Options(reference_ns=1_680_000_000_000_000_000, today_ns=TODAY)  # March 2023
    rows, _, _ = status(STATUS + "\n", tmp_path, options)
    assert rows[0][1]["time_ns"] == 1_680_057_000_000_000_000  # 2023-03-29T02:30:00Z


def test_prompt_text_is_no_status_line(tmp_path):
    prompt = STATUS.replace("Engine 000: ", "note: prompt='Engine 000: ")
    rows, problems, _ = status(prompt + "\n", tmp_path)
    assert rows == []
    assert problems == []


# -- vllm bench serve -----------------------------------------------------------------------------

BENCH = (
    '{"date":"20260101-000000","backend":"vllm","model_id":"m","num_prompts":2,"request_rate":1,'
    '"ttfts":[0.5,TTFT],"itls":[[0.1],[0.2]]}\n'
)


def test_columns_of_different_length_are_one_problem(tmp_path):
    file = tmp_path / "bench.json"
    file.write_text(BENCH.replace("TTFT", "0.5,0.5"))
    batches = read(READERS["vllm_bench_serve"], file)
    assert totals(batches)[:2] == (1, 0)


@pytest.mark.parametrize("ttft", ["-1", "NaN", "Infinity", '"x"', "1e300", "true"])
def test_one_bad_number_costs_one_request(ttft, tmp_path):
    file = tmp_path / "bench.json"
    file.write_text(BENCH.replace("TTFT", ttft))
    batches = read(READERS["vllm_bench_serve"], file)
    assert totals(batches)[:2] == (2, 1)


def test_same_file_name_gives_no_common_ids(tmp_path):
    ids = set()
    for number in ("0.25", "0.75"):
        file = tmp_path / "bench.json"
        file.write_text(BENCH.replace("TTFT", number))
        rows = rows_of(read(READERS["vllm_bench_serve"], file))
        ids |= {row["request_id"] for table, row in rows if table == "request"}
    assert len(ids) == 4


def test_summary_is_no_log_and_says_so(tmp_path):
    file = tmp_path / "bench.json"
    file.write_text(BENCH.replace("ttfts", "x").replace("itls", "y").replace("TTFT", "1"))
    found = pick(InputFile(file, file.name).head)
    assert found.reader is None
    assert "--save-detailed" in found.why


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("", None),
        ("Internal Server Error", "http 500"),
        ("HTTP status 429: slow down", "http 429"),
        ("Traceback\n  in connect(timeout=3)\nValueError: what the user wrote", "error"),
        ("asyncio.exceptions.TimeoutError", "timeout"),
        ("aiohttp.ServerDisconnectedError", "connection"),
        ("asyncio.CancelledError", "cancelled"),
    ],
)
def test_error_texts_become_classes(text, name):
    assert error_class(text) == name


def test_tables_are_arrow():
    reader = READERS["vllm_run_meta"]
    (path,) = (SAMPLES / reader.name).iterdir()
    assert isinstance(read(reader, path)[0].tables["deployment"], pa.Table)

"""Long documents, read item by item: any block size, any cut, never the whole file in memory."""

import json
import tracemalloc

import pytest
from deep import deep
from test_readers import OPTIONS, READERS, SAMPLES, read, rows_of, totals

from analyzer.readers import _json_stream
from analyzer.readers._file import InputFile
from analyzer.readers._json_stream import each_item

DOCUMENTS = ("genai_bench", "guidellm", "inference_perf", "llmperf", "perf_analyzer")
FILES = sorted(path for name in DOCUMENTS for path in (SAMPLES / name).iterdir())


def items(folder, text, lists):
    path = folder / "document.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return list(each_item(InputFile(path, "document.json"), lists))


@pytest.mark.parametrize("size", [1, 7, 4096])
@pytest.mark.parametrize("path", FILES, ids=[f"{path.parent.name}/{path.name}" for path in FILES])
def test_blocks_may_end_anywhere(path, size, monkeypatch):
    reader = READERS[path.parent.name]
    whole = rows_of(read(reader, path))
    monkeypatch.setattr(_json_stream, "BLOCK_BYTES", size)
    assert rows_of(read(reader, path)) == whole


@pytest.mark.parametrize("size", [1, 2, 3, 1000])
def test_items_and_what_stands_between_them(size, tmp_path, monkeypatch):
    monkeypatch.setattr(_json_stream, "BLOCK_BYTES", size)
    text = (
        '\ufeff {"é": 12.5, "runs": [{"name": "ü", "list": [1e3, {"x": []}, "]"]}, 7], "z": null}\n'
    )
    found = items(tmp_path, text, [("runs", "*", "list")])
    assert [(item.path, item.value) for item in found] == [
        (("é",), 12.5),
        (("runs", 0, "name"), "ü"),
        (("runs", 0, "list", 0), 1000.0),
        (("runs", 0, "list", 1), {"x": []}),
        (("runs", 0, "list", 2), "]"),
        (("runs", 1), 7),
        (("z",), None),
    ]
    data = text.encode()
    assert [data[item.offset :][:1] for item in found] == [b"1", b'"', b"1", b"{", b'"', b"7", b"n"]


@pytest.mark.parametrize(
    ("text", "whole", "offset"),
    [
        ('[1, 2, {"a": ', 2, 7),
        ("[1, 2, 3", 3, 8),
        ("[1, 2 3]", 2, 6),
        ("[1, 2,]", 2, 6),
        ("[1, 2] {}", 2, 7),
        ("[1, 2}", 2, 5),
        ("[1, tru]", 1, 4),
        ("[1, " + "[" * 100_000, 1, 4),
        ("", 0, 0),
    ],
)
def test_what_comes_before_the_damage_is_read(text, whole, offset, tmp_path):
    *good, broken = items(tmp_path, text, [()])
    assert len(good) == whole
    assert broken.broken
    assert broken.offset == offset


def test_bytes_that_are_no_text_cost_no_item(tmp_path):
    found = items(tmp_path, b'["\xff", 1, \xff]', [()])
    assert [item.value for item in found[:2]] == ["\udcff", 1]
    assert (found[2].broken != "", found[2].offset) == (True, 9)


def test_a_number_of_ten_thousand_digits_costs_no_document(tmp_path):
    found = items(tmp_path, f'[{{"a": {"9" * 10_000}}}, 1]', [()])
    assert [item.value for item in found] == [{"a": float("inf")}, 1]


def test_a_value_that_never_ends_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(_json_stream, "BLOCK_BYTES", 1000)
    monkeypatch.setattr(_json_stream, "MAX_ITEM_CHARS", 5000)
    *good, broken = items(tmp_path, '[1, "' + "x" * 100_000, [()])
    assert [item.value for item in good] == [1]
    assert "larger than" in broken.broken


EVENT = 'data: {"id":"a","choices":[{"delta":{"content":"' + "x" * 150 + '"}}]}\n\n'


def request(i):
    start = 1_790_000_000_000_000_000 + i
    times = [start + 1_000_000 * n for n in range(1, 21)]
    return {
        "timestamp": start,
        "request_inputs": {"payload": "{}"},
        "response_timestamps": times,
        "response_outputs": [{"response": EVENT}] * 20,
    }


@deep
def test_memory_does_not_grow_with_the_document(tmp_path, monkeypatch):
    monkeypatch.setattr(_json_stream, "BLOCK_BYTES", 256 * 1024)
    monkeypatch.setattr("analyzer.readers._loadgen._BATCH_RECORDS", 200)
    peaks = []
    for count in (500, 2_500):
        path = tmp_path / "profile_export.json"
        requests = ",".join(json.dumps(request(i)) for i in range(count))
        path.write_text(f'{{"experiments":[{{"requests":[{requests}]}}]}}')
        file = InputFile(path, path.name)
        tracemalloc.start()
        records = sum(b.records for b in READERS["perf_analyzer"].read(file, OPTIONS))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert records == count
    assert path.stat().st_size > 10_000_000
    assert peaks[1] < 1.2 * peaks[0] < 5_000_000


HOSTILE = [
    ("llmperf", '[{"ttft_s":BAD,"end_to_end_latency_s":1,"number_output_tokens":5},GOOD]'),
    ("genai_bench", '{"individual_request_metrics":[{"ttft":BAD,"e2e_latency":1},GOOD]}'),
    ("inference_perf", '[{"start_time":1,"end_time":BAD,"request":"{}","info":{}},GOOD]'),
    (
        "perf_analyzer",
        '{"experiments":[{"requests":[{"timestamp":1,"response_timestamps":[BAD]},GOOD]}]}',
    ),
    (
        "guidellm",
        '{"benchmarks":[{"requests":{"successful":[{"scheduler_info":{},"start_time":1790000000,'
        '"first_token_time":BAD},GOOD]}}]}',
    ),
]
GOOD = {
    "llmperf": '{"ttft_s":0.5,"end_to_end_latency_s":1,"number_output_tokens":5}',
    "genai_bench": '{"ttft":0.5,"e2e_latency":1}',
    "inference_perf": '{"start_time":1,"end_time":2,"request":"{}","info":{}}',
    "perf_analyzer": '{"timestamp":1790000000000000000,"response_timestamps":[]}',
    "guidellm": '{"scheduler_info":{},"start_time":1790000000,"end_time":1790000001}',
}
BAD = ['"x"', "-5", "NaN", "Infinity", "1e300", "true", "{}", "9" * 350, "9" * 5000, "[[]]"]


@pytest.mark.parametrize("bad", BAD, ids=lambda value: value[:8])
@pytest.mark.parametrize(("name", "text"), HOSTILE, ids=[name for name, _ in HOSTILE])
def test_a_hostile_entry_costs_itself_at_most(name, text, bad, tmp_path):
    path = tmp_path / "document.json"
    path.write_text(text.replace("BAD", bad).replace("GOOD", GOOD[name]))
    batches = read(READERS[name], path)
    assert totals(batches)[:2] == (2, 1)
    assert [row["record"] for table, row in rows_of(batches) if table == "request"][-1] == 2


@pytest.mark.parametrize("name", DOCUMENTS)
@pytest.mark.parametrize("entry", ["1", "null", "[]", '"x"', "{}"])
def test_an_entry_that_is_no_request_is_a_problem(name, entry, tmp_path):
    text = dict(HOSTILE)[name]
    begin, end = text.index("{", text.rindex("[{") + 1), text.index("},GOOD") + 1
    path = tmp_path / "document.json"
    path.write_text(text.replace(text[begin:end], entry).replace("GOOD", GOOD[name]))
    batches = read(READERS[name], path)
    records, used, _ = totals(batches)
    assert records == 2
    assert used == 1 or (entry == "{}" and name in ("llmperf", "genai_bench"))


def test_events_without_their_blank_line_are_told_apart(tmp_path):
    """Braces in the text, no end of an event, and one event over three responses."""
    chunk = '{"id":"a","choices":[{"delta":{"content":"CONTENT"}}]}'
    texts = [f"data: {chunk.replace('CONTENT', text)}" for text in ("{", "}}", "x")]
    pieces = [texts[0], texts[1], texts[2][:9], texts[2][9:30], texts[2][30:]]
    one = {
        "timestamp": 1_790_000_000_000_000_000,
        "response_timestamps": [1_790_000_000_000_000_000 + i for i in range(1, 6)],
        "response_outputs": [{"response": piece} for piece in pieces],
    }
    path = tmp_path / "profile_export.json"
    path.write_text(json.dumps({"experiments": [{"requests": [one]}]}))
    found = rows_of(read(READERS["perf_analyzer"], path))
    chunks = [(row["offset_ns"], row["chars"]) for table, row in found if table == "chunk"]
    assert chunks == [(1, 1), (2, 2), (5, 1)]

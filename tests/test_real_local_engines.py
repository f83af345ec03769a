"""Readers of TGI, llama.cpp and Ollama against real files, where these lie beside the checkout."""

import json
import re
from itertools import pairwise

import pytest
from shared import SHARED, needs_shared
from test_readers import READERS, read, rows_of

from analyzer.readers._file import InputFile
from analyzer.readers._find import pick

pytestmark = needs_shared

SNIPPETS = SHARED / "formats/samples/engines/snippets"
SCENARIOS = SHARED / "scenarios"
CASSETTES = SHARED / "traces/4-otel-http/traceloop__openllmetry"
MS = 1_000_000


def rows(path, reader):
    """Rows by table; the file must be claimed by ``reader`` and have no problem."""
    found = pick(InputFile(path, path.name).head)
    assert found.reader is READERS[reader], found.why
    batches = read(READERS[reader], path)
    assert [problem for batch in batches for problem in batch.problems] == []
    tables = {}
    for table, row in rows_of(batches):
        tables.setdefault(table, []).append(row)
    return tables


def bodies_of(name, folder):
    """The response body of a recorded call, as it came over the wire."""
    yaml = (CASSETTES / name).read_text()
    quoted = re.search(r"body:\n      string: '(.*?)'\n    headers:", yaml, re.DOTALL)[1]
    # YAML folds lines: one line end is a blank, two are one line end, '' is a quote.
    text = re.sub(r"\n\n\s*", "\0", quoted.replace("''", "'"))
    text = re.sub(r"\n\s+", " ", text).replace("\0", "\n")
    path = folder / "body.jsonl"
    path.write_text(text)
    return path


def test_tgi_and_tei_lines():
    requests = rows(SNIPPETS / "tgi_success_lines.log", "tgi_log")["request"]
    chat, *embeds = requests
    assert chat["e2e_ns"] == 735_200_735
    assert chat["queue_ns"] == 73_176
    assert chat["frontend_ns"] == 955_594
    assert chat["output_visible_tokens"] == 20  # 734.172108 / 36.708605
    assert [one["e2e_ns"] for one in embeds] == [1_207_716_998, 685_148_571]
    for one in requests:
        assert "prefill_ns" not in one
        assert "decode_ns" not in one
        assert "ttft_ns" not in one


@pytest.mark.parametrize(
    ("name", "task"),
    [
        ("llama_server_old_multiline.log", (915.13, 51, 23038.87, 275, 0)),
        ("llama_server_2026_router_prefixed.log", (789.03, 27, 16112.50, 192, None)),
    ],
)
def test_llama_cpp_logs(name, task):
    (one,) = rows(SNIPPETS / name, "llama_cpp_log")["request"]
    prefill_ms, fresh, decode_ms, output, cached = task
    assert one["prefill_ns"] == round(prefill_ms * MS)
    assert one["decode_ns"] == round(decode_ms * MS)
    assert one["input_fresh_tokens"] == fresh
    assert one["output_visible_tokens"] == output
    assert one.get("cache_read_tokens") == cached
    assert not {"queue_ns", "e2e_ns", "ttft_ns"} & one.keys()


def test_router_names_the_port_and_no_date():
    (one,) = rows(SNIPPETS / "llama_server_2026_router_prefixed.log", "llama_cpp_log")["request"]
    assert one["deployment"] == "42027"
    assert one["clock"] == "monotonic"
    # print_timing at 97.495377 s, less 16,901.53 ms
    assert one["start_ns"] == 97_495_377_000 - 16_901_530_000


def test_ollama_final_object():
    (one,) = rows(SNIPPETS / "ollama_chat_final.jsonl", "ollama_responses")["request"]
    parts = one["load_ns"] + one["prefill_ns"] + one["decode_ns"]
    assert one["queue_ns"] == one["load_ns"] == 725_667
    assert round((one["e2e_ns"] - parts) / MS, 1) == 5.3  # 876.557 - 0.726 - 275.489 - 595.078
    assert one["input_fresh_tokens"] == 11
    assert one["output_visible_tokens"] == 39


def test_gin_line():
    (one,) = rows(SNIPPETS / "ollama_gin.log", "ollama_log")["request"]
    assert one["e2e_ns"] == 15_228_580_500
    assert one["status"] == 200
    assert one["start_ns"] + one["e2e_ns"] == 1_730_757_271_000_000_000  # 2024-11-04T21:54:31Z
    assert "queue_ns" not in one


def test_recorded_cold_start(tmp_path):
    path = bodies_of("test_chat~test_ollama_chat_legacy.yaml", tmp_path)
    (one,) = rows(path, "ollama_responses")["request"]
    told = [round(one[f"{name}_ns"] / 1e9, 3) for name in ("e2e", "load", "prefill", "decode")]
    assert told == [10.386, 8.079, 0.176, 2.127]
    rest = one["e2e_ns"] - one["load_ns"] - one["prefill_ns"] - one["decode_ns"]
    assert round(rest / 1e9, 3) == 0.004


def test_recorded_stream(tmp_path):
    path = bodies_of("test_chat~test_ollama_streaming_chat_legacy.yaml", tmp_path)
    tables = rows(path, "ollama_responses")
    (one,) = tables["request"]
    assert round(one["e2e_ns"] / 1e9, 3) == 1.897
    assert one["streamed"]
    assert one["chunks"] == one["output_visible_tokens"] - 1 == len(tables["chunk"]) == 49
    # The first chunk's stamp is the end of load and prefill, as the durations have it.
    assert abs(one["ttft_ns"] - one["load_ns"] - one["prefill_ns"]) < 10 * MS
    stamps = [chunk["offset_ns"] for chunk in tables["chunk"]]
    assert stamps == sorted(stamps)


@pytest.mark.parametrize("case", ["main", "twin"])
def test_idle_unload_scenario(case):
    requests = rows(SCENARIOS / "A3" / case / "ollama.jsonl", "ollama_responses")["request"]
    assert len(requests) == 30
    loads = [index for index, one in enumerate(requests, 1) if one["load_ns"] > 1_000 * MS]
    assert loads == ([1, 6, 11, 16, 21, 26] if case == "main" else [1])
    assert {requests[index - 1]["load_ns"] for index in loads} == {8_400 * MS}
    others = [one["load_ns"] for index, one in enumerate(requests, 1) if index not in loads]
    # Written from floats: 28999999 ns stands for 29 ms.
    assert 22 * MS - 1 <= min(others) <= max(others) <= 41 * MS
    for one in requests:
        assert one["queue_ns"] == one["load_ns"]
        assert one["prefill_ns"] == 150 * MS
        assert one["decode_ns"] == 2_000 * MS
        rest = one["e2e_ns"] - one["queue_ns"] - one["prefill_ns"] - one["decode_ns"]
        assert abs(rest - 4 * MS) <= 1
    if case == "main":
        reloads = [requests[index - 1] for index in loads[1:]]
        share = sum(one["load_ns"] for one in reloads) / sum(one["e2e_ns"] for one in reloads)
        assert round(100 * share, 1) == 79.6
    pauses = [
        later["start_ns"] - one["start_ns"] - one["e2e_ns"] for one, later in pairwise(requests)
    ]
    long = {round(pause / 1e9) for pause in pauses if pause > 100_000 * MS}
    assert long == {400 if case == "main" else 290}


@pytest.mark.parametrize("case", ["A3/main", "A3/twin", "A16/main", "A16/twin"])
def test_start_is_when_the_capture_was_sent(case):
    path = SCENARIOS / case / "ollama.jsonl"
    requests = rows(path, "ollama_responses")["request"]
    sent = [json.loads(line)["sent_at"] for line in path.read_text().splitlines()]
    assert len(requests) == len(sent)
    for one, at in zip(requests, sent, strict=True):
        assert abs(one["start_ns"] - round(at * 1e9)) <= 2 * MS


@pytest.mark.parametrize(
    ("case", "layers", "gpu_mib", "cpu_mib", "tpot_ms"),
    [("main", 44, 17452.00, 2038.66, 55.0), ("twin", 48, 18655.34, 417.66, 24.6)],
)
def test_offload_scenario(case, layers, gpu_mib, cpu_mib, tpot_ms):
    folder = SCENARIOS / "A16" / case
    (load,) = rows(folder / "server.log", "llama_cpp_log")["deployment"]
    assert load["gpu_layers"] == layers
    assert load["offloadable_layers"] == 48
    assert load["layers"] == 47
    assert load["gpu_weight_bytes"] == round(gpu_mib * 2**20)
    assert load["cpu_weight_bytes"] == round(cpu_mib * 2**20)
    told = json.loads((folder / "deployment.json").read_text())
    assert load["input_embedding_bytes"] == told["input_embedding_bytes"] == 437_944_320
    requests = rows(folder / "ollama.jsonl", "ollama_responses")["request"]
    assert len(requests) == 20
    for one in requests:
        assert one["load_ns"] == 30 * MS
        assert one["decode_ns"] / one["output_visible_tokens"] == pytest.approx(tpot_ms * MS)

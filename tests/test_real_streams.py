"""Recorded streams and answers of vendors, where these lie beside the checkout."""

import re

import pytest
from shared import SHARED, needs_shared
from test_readers import READERS, read, rows_of
from vcr import answers

from analyzer.readers._file import InputFile
from analyzer.readers._find import pick

pytestmark = needs_shared

RAW = SHARED / "formats/samples/clients/provider-raw"
TRACES = SHARED / "traces/4-otel-http"
CHUNKS = TRACES / "vercel__ai"
MS = 1_000_000


def rows(path, reader):
    """Rows of a file that its reader alone claims and reads without a problem, by vantage."""
    found = pick(InputFile(path, path.name).head)
    assert found.reader is READERS[reader], found.why
    batches = read(READERS[reader], path)
    assert [problem for batch in batches for problem in batch.problems] == []
    told = [row for table, row in rows_of(batches) if table == "request"]
    return {row["vantage"]: row for row in told}, batches


def recorded(cassette, folder, reader, number=0):
    """The rows of one recorded answer of a cassette."""
    file = folder / "answer.txt"
    file.write_bytes(answers(cassette)[number])
    return rows(file, reader)[0]


def tokens(row):
    """Input, read, written, visible and reasoning tokens."""
    names = (
        "input_fresh_tokens", "cache_read_tokens", "cache_write_unknown_tokens",
        "output_visible_tokens", "output_reasoning_tokens",
    )  # fmt: skip
    return tuple(row.get(name) for name in names)


def without_times(row):
    return not {"ttft_ns", "e2e_ns", "first_content_ns", "first_role_ns"} & row.keys()


def test_groq_states_its_own_queue_prefill_and_decode():
    told, batches = rows(CHUNKS / "groq-text.chunks.txt", "sse_capture")
    assert sum(batch.records for batch in batches) == 663
    client, server = told["client"], told["provider"]
    assert tokens(client) == (45, None, None, 662, None)
    assert client["chunks"] == 661
    assert without_times(client)
    assert [server[f"{name}_ns"] for name in ("queue", "prefill", "decode")] == [
        41_905_864,
        3_940_145,
        2_652_230_333,
    ]


def test_compaction_is_billed_with_the_request_that_caused_it():
    told, _ = rows(CHUNKS / "anthropic-compaction.1.chunks.txt", "sse_capture")
    # 612 in the vendor's own total, 60,385 in the pass before it
    assert tokens(told["client"]) == (60_997, 0, 0, 2_819 + 522, None)
    assert told.keys() == {"client"}


@pytest.mark.parametrize(
    ("name", "counts", "finish"),
    [
        ("deepseek", (13, 0, None, 400, None), "length"),
        ("openai", (16, 0, None, 300, 0), "stop"),
    ],
)
def test_usage_stands_in_the_last_chunk_alone(name, counts, finish):
    told, _ = rows(CHUNKS / f"{name}-text.chunks.txt", "sse_capture")
    assert tokens(told["client"]) == counts
    assert told["client"]["usage_final"]
    assert told["client"]["finish_reason"] == finish
    assert told["client"]["chunks"] == counts[3]
    assert without_times(told["client"])


def test_default_stream_tells_no_usage(tmp_path):
    for number, chunks in enumerate((24, 21, 22)):
        cassette = RAW / "openai_chat_stream.vcr.yaml"
        client = recorded(cassette, tmp_path, "sse_capture", number)["client"]
        assert client["chunks"] == chunks
        assert not [name for name in client if name.endswith("_tokens") or "usage" in name]


@pytest.mark.parametrize(
    ("cassette", "number", "counts"),
    [
        ("anthropic_prompt_caching_stream", 0, (4, 0, 1165, 201, None)),
        ("anthropic_prompt_caching_stream", 1, (4, 1165, 0, 221, None)),
        ("anthropic_thinking_stream", 0, (52, 0, 0, 216, None)),
        ("deepseek_thinking_stream", 0, (6, 0, None, 14, 198)),
        ("gemini_stream_usage", 0, (18, 0, None, 80, 35)),
        ("openai_responses_stream", 0, (15, 0, None, 9, 0)),
    ],
)
def test_recorded_streams(cassette, number, counts, tmp_path):
    client = recorded(RAW / f"{cassette}.vcr.yaml", tmp_path, "sse_capture", number)["client"]
    assert tokens(client) == counts
    assert client["usage_final"]
    assert client["finish_reason"] == "stop"
    assert without_times(client)


@pytest.mark.parametrize("number", [0, 1])
def test_stream_cut_in_the_middle_has_no_final_usage(number, tmp_path):
    data = answers(RAW / "anthropic_prompt_caching_stream.vcr.yaml")[number]
    file = tmp_path / "cut.sse"
    file.write_bytes(data[: len(data) // 2])
    told = [row for table, row in rows_of(read(READERS["sse_capture"], file)) if table == "request"]
    # The placeholder of its first event is no output.
    assert [row["usage_final"] for row in told] == [False]
    assert [tokens(row)[3] for row in told] == [None]


@pytest.mark.parametrize(
    ("cassette", "number", "counts"),
    [
        ("openllmetry/test_prompt_caching~test_anthropic_prompt_caching_legacy", 0, (4, 0, 1163)),
        ("openllmetry/test_prompt_caching~test_anthropic_prompt_caching_legacy", 1, (4, 1163, 0)),
        ("openllmetry/test_prompt_caching~test_openai_prompt_caching", 0, (1149, 0, None)),
        ("openllmetry/test_prompt_caching~test_openai_prompt_caching", 1, (125, 1024, None)),
        ("openllmetry/test_prompt_caching~test_openai_prompt_caching", 2, (1149, 0, None)),
    ],
)
def test_recorded_bodies(cassette, number, counts, tmp_path):
    path = TRACES / f"traceloop__{cassette}.yaml"
    provider = recorded(path, tmp_path, "usage_bodies", number)["provider"]
    assert tokens(provider)[:3] == counts
    assert provider["usage_final"]


@pytest.mark.parametrize(
    ("number", "latency", "read", "written"), [(0, 7275, 0, 18131), (1, 1859, 18131, 0)]
)
def test_bedrock_tells_the_same_in_its_headers(number, latency, read, written, tmp_path):
    """A warm prefix answers four times as fast; models without a usage tell it there alone."""
    cassette = RAW / "bedrock_invoke_prompt_cache.vcr.yaml"
    file = tmp_path / "body.json"
    file.write_bytes(body := answers(cassette)[number])
    told, _ = rows(file, "usage_bodies")
    assert tokens(told["provider"])[:4] == (4, read, written, 50)
    half = cassette.read_text().split("- request:")[number + 1]
    headers = re.findall(r"(X-Amzn-Bedrock-[\w-]+):\s*- '?(\d+)", half)
    assert len(headers) == 5
    plain = body[: body.index(b'"usage"')].rstrip(b", ") + b"}"
    lines = ["HTTP/1.1 200 OK", *(f"{name}: {value}" for name, value in headers), "", ""]
    file = tmp_path / "with_headers.txt"
    file.write_bytes("\r\n".join(lines).encode() + plain + b"\n")
    told, _ = rows(file, "sse_capture")
    assert tokens(told["client"])[:4] == (4, read, written, 50)
    assert told["provider"]["e2e_ns"] == latency * MS

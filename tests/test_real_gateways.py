"""Recorded exports of gateways and observability tools, where these lie beside the checkout."""

import json

import pytest
from shared import SHARED, needs_shared
from test_readers import READERS, read, rows_of, totals

from analyzer.readers._file import InputFile
from analyzer.readers._find import pick
from analyzer.readers._langfuse import unit_of
from analyzer.readers._times import time_to_ns

pytestmark = needs_shared

TRACES = SHARED / "traces/4-otel-http/langfuse__langfuse"
SAMPLES = SHARED / "formats/samples/clients"
LANGFUSE = sorted([*TRACES.glob("*.json"), *(SAMPLES / "langfuse").glob("*.json")])
MS = 1_000_000


def requests(path, reader):
    """Rows of a file that its reader alone claims and reads without a problem."""
    found = pick(InputFile(path, path.name).head)
    assert found.reader is READERS[reader], found.why
    batches = read(READERS[reader], path)
    assert [problem for batch in batches for problem in batch.problems] == []
    return [row for table, row in rows_of(batches) if table == "request"], batches


def observations(path):
    return json.loads(path.read_text())["observations"]


def summed(rows, name):
    return sum(row.get(name) or 0 for row in rows)


@pytest.mark.parametrize("path", LANGFUSE, ids=lambda path: path.name)
def test_every_trace_is_read_and_no_first_token_is_made_up(path):
    rows, batches = requests(path, "langfuse")
    told = observations(path)
    assert totals(batches)[0] == len(told)
    assert 0 < len(rows) <= sum(one["type"] == "GENERATION" for one in told)
    assert not [row for row in rows if "ttft_ns" in row]
    for row in rows:
        one = next(one for one in told if one["id"] == row["request_id"])
        assert row["e2e_ns"] == time_to_ns(one["endTime"]) - time_to_ns(one["startTime"])


@pytest.mark.parametrize("path", LANGFUSE, ids=lambda path: path.name)
def test_the_latency_of_every_observation_fits_its_time_stamps_in_one_unit(path):
    units = set()
    for one in observations(path):
        took = time_to_ns(one["endTime"]) - time_to_ns(one["startTime"])
        if took > 10 * MS:  # below, one unit is as near as the other
            units.add(unit_of(one["latency"], took))
    assert len(units) == 1
    assert units <= {"s", "ms"}


@pytest.mark.parametrize("name", ["pydantic-ai-tools-2025-12-04.trace.json"])
def test_a_latency_in_milliseconds(name):
    rows, batches = requests(TRACES / name, "langfuse")
    assert sorted(row["e2e_ns"] // MS for row in rows) == [1_283, 1_707, 2_050, 2_362]
    assert any("milliseconds" in note for batch in batches for note in batch.assumed)


def test_an_agents_generation_does_not_count_its_calls_again():
    path = TRACES / "agno-2025-06-11.trace.json"
    naive = sum(one["usageDetails"].get("input", 0) for one in observations(path))
    rows, batches = requests(path, "langfuse")
    assert naive == 2_936
    assert sorted(row["input_fresh_tokens"] for row in rows) == [163, 663]
    assert totals(batches)[2] == {
        "observation that is no call of a model": 2,
        "generation that repeats the usage of those inside it": 2,
    }


def test_reasoning_beside_the_output_and_in_it():
    rows, _ = requests(TRACES / "langgraph-js-2025-10-30.trace.json", "langfuse")
    assert summed(rows, "output_visible_tokens") == 35 + 24
    assert summed(rows, "output_reasoning_tokens") == 64
    ((row,), _) = requests(TRACES / "google-gemini-2025-08-01.trace.json", "langfuse")
    assert (row["output_visible_tokens"], row["output_reasoning_tokens"]) == (2_055 - 1_104, 1_104)


def test_litellm_of_its_own_test_suite():
    ((row,), _) = requests(SAMPLES / "litellm/spend_logs_payload.json", "litellm_spend_logs")
    assert row["e2e_ns"] == 4_583_000
    assert "ttft_ns" not in row
    assert (row["input_fresh_tokens"], row["output_visible_tokens"]) == (10, 20)
    assert str(row["reported_cost_usd"]) == "0.000225000"
    ((row,), _) = requests(SAMPLES / "litellm/standard_logging_payload.json", "litellm_payloads")
    # Streamed, but its first token is said to have come with the end: it was not seen.
    assert row["streamed"]
    assert "ttft_ns" not in row


def test_openrouters_own_example():
    path = SAMPLES / "provider-raw/openrouter_generation_example.json"
    ((row,), _) = requests(path, "openrouter")
    assert row["e2e_ns"] == 1_250 * MS
    names = ("input_fresh_tokens", "cache_read_tokens", "output_visible_tokens",
             "output_reasoning_tokens")  # fmt: skip
    assert [row[name] for name in names] == [7, 3, 20, 5]
    assert str(row["reported_cost_usd"]) == "0.001500000"


def test_a_published_line_of_higress(tmp_path):
    lines = (SAMPLES / "network/envoy_istio_json_access.log").read_text().splitlines()
    path = tmp_path / "higress.log"
    path.write_text("".join(line + "\n" for line in lines if "ai_log" in line))
    ((row,), _) = requests(path, "higress_access")
    assert (row["model"], row["e2e_ns"], row["upstream_headers_ns"]) == ("qwen", 17 * MS, 15 * MS)
    assert row["endpoint"] == "/v1/chat"


def test_no_text_of_the_samples_is_kept():
    for path in LANGFUSE:
        told = json.dumps([row for _, row in rows_of(read(READERS["langfuse"], path))], default=str)
        for one in observations(path):
            for text in (one.get("input"), one.get("output"), one.get("statusMessage")):
                for sentence in _sentences(text):
                    assert sentence not in told


def _sentences(text):
    """Pieces of a text that nothing but a copy of it has."""
    flat = text if isinstance(text, str) else json.dumps(text)
    return [flat[at : at + 40] for at in range(0, max(0, len(flat) - 40), 40)]

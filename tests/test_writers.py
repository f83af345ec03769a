"""What the generators write is what they mean."""

from __future__ import annotations

import importlib
import importlib.util
import json
import pkgutil
import re
import sys
from collections import defaultdict
from decimal import Decimal
from pathlib import Path

import cases
import pytest
from deep import unless

from analyzer.simulate import writers
from analyzer.simulate.writers import NS, Served

ROOT = Path(__file__).parent.parent
MODULES = sorted(
    one.name for one in pkgutil.iter_modules(cases.__path__) if not one.name.startswith("_")
)
EACH_CASE = [
    pytest.param(write, expect, id=f"{name}-{case}", marks=unless(number == 0))
    for name in MODULES
    for number, (case, (write, expect)) in enumerate(
        importlib.import_module(f"cases.{name}").CASES.items()
    )
]


def _lines(path):
    return path.read_text(encoding="utf-8").splitlines()


def _exact(line):
    return json.loads(line, parse_float=Decimal)


def _attributes(line):
    (resource,) = _exact(line)["resourceSpans"]
    (span,) = resource["scopeSpans"][0]["spans"]
    values = {one["key"]: next(iter(one["value"].values())) for one in span["attributes"]}
    return span, values


@pytest.fixture(scope="module")
def incident():
    spec = importlib.util.spec_from_file_location(
        "make_incident", ROOT / "sample_traces" / "make_incident.py"
    )
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.path", list(sys.path))
        patch.setitem(sys.modules, spec.name, module)
        spec.loader.exec_module(module)
        yield module


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (1_785_585_600_000_000_000, "2026-08-01T12:00:00.000Z"),
        (1_785_585_600_250_000_000, "2026-08-01T12:00:00.250Z"),
        (1_785_585_600_000_010_000, "2026-08-01T12:00:00.000010Z"),
        (1_785_585_600_000_000_001, "2026-08-01T12:00:00.000000001Z"),
    ],
)
def test_times_are_exact_to_the_nanosecond(ns, text):
    assert writers.rfc3339(ns) == text
    event = _exact(writers.chunk(ns, "a", 4))
    assert Decimal(event["ts"]) * NS == ns
    record = _exact(writers.request_record("a", vantage="client", durations_ns={"e2e": ns}))
    assert Decimal(record["e2e_ms"]) * 1_000_000 == ns


def test_fields_that_are_not_given_are_left_out():
    assert _exact(writers.send(NS, "a", model="m", route=None, turn=2)) == {
        "ts": 1, "request_id": "a", "event": "send", "model": "m", "turn": 2,
    }  # fmt: skip


def test_usage_and_prices_keep_their_digits():
    line = writers.billing_record(
        NS, 2 * NS, model="m", usage=writers.openai_usage(10, 5, cached=8), cost_usd=Decimal("0.10")
    )
    assert '"cost_usd":0.10}' in line
    assert _exact(line)["usage"]["total_tokens"] == 15
    assert '"input":1.50' in writers.prices({"m": {"input": "1.50"}})


def test_hostile_text_stays_one_json_line():
    line = writers.error(NS, 'a"\n</script>', "no\r\nroute", status=502)
    assert len(line.splitlines()) == 1
    assert json.loads(line)["request_id"] == 'a"\n</script>'


def test_a_span_adds_up():
    served = Served(
        request_id="a",
        arrived_ns=1_785_585_600_000_000_007,
        queue_ns=4,
        prefill_ns=110_000_000,
        decode_ns=1_905_000_001,
        prompt_tokens=1_000,
        output_tokens=128,
        before_ns=6_000_000,
        after_ns=9,
    )
    span, values = _attributes(writers.llm_span(served, max_tokens=256))
    seconds = {k.removeprefix("gen_ai.latency."): v for k, v in values.items() if "latency" in k}
    assert seconds["time_in_queue"] == Decimal("0.000000004")
    assert seconds["time_to_first_token"] == Decimal("0.116000004")
    assert seconds["e2e"] - seconds["time_to_first_token"] == Decimal("1.905000010")
    assert int(span["endTimeUnixNano"]) - int(span["startTimeUnixNano"]) == served.e2e_ns
    assert values["gen_ai.usage.prompt_tokens"] == "1000"


def test_status_lines_agree_with_the_requests():
    common = {"prefill_ns": NS, "decode_ns": 9 * NS, "prompt_tokens": 100, "output_tokens": 10}
    first = Served(request_id="a", arrived_ns=0, queue_ns=0, **common)
    second = Served(request_id="b", arrived_ns=0, queue_ns=10 * NS, cached_tokens=64, **common)
    lines = writers.status_lines(
        [first, second], first_ns=5 * NS, last_ns=20 * NS, every_ns=5 * NS, capacity_tokens=1_120
    )
    assert lines[0] == (
        "(APIServer pid=411) INFO 01-01 00:00:05 [loggers.py:271] Engine 000: "
        "Avg prompt throughput: 20.0 tokens/s, Avg generation throughput: 1.0 tokens/s, "
        "Running: 1 reqs, Waiting: 1 reqs, GPU KV cache usage: 10.0%, Prefix cache hit rate: 0.0%"
    )
    assert [re.findall(r"(?:Running|Waiting|rate): ([\d.]+)", line) for line in lines] == [
        ["1", "1", "0.0"], ["1", "0", "32.0"], ["1", "0", "32.0"], ["0", "0", "32.0"],
    ]  # fmt: skip


def test_cases_are_found():
    assert {"a1_admission", "a4_ttft_misread", "a5_buffered", "a8_multi_token"} <= set(MODULES)


@pytest.mark.parametrize(("write", "expect"), EACH_CASE)
def test_a_case_is_whole_and_repeats(tmp_path, write, expect):
    for name in ("once", "twice"):
        (tmp_path / name).mkdir()
        write(tmp_path / name)
    for path in (one for one in (tmp_path / "once").rglob("*") if one.is_file()):
        again = tmp_path / "twice" / path.relative_to(tmp_path / "once")
        assert path.read_bytes() == again.read_bytes()
        if path.suffix == ".jsonl":
            assert all(isinstance(json.loads(one), dict) for one in _lines(path))
    assert expect["must_not"]
    assert expect.get("rule") not in expect["must_not"] + expect["may"]
    assert expect.get("requests", 1) > 0


def _files_of(module, case, folder):
    importlib.import_module(f"cases.{module}").CASES[case][0](folder)
    return importlib.import_module(f"cases.{module}").CASES[case][1]


@pytest.mark.parametrize("case", ["main", "saturation"])
def test_the_admission_cases_wait_as_they_say(tmp_path, case):
    expect = _files_of("a1_admission", case, tmp_path)
    spans = [_attributes(one)[1] for one in _lines(tmp_path / "spans.jsonl")]
    queues = [float(one["gen_ai.latency.time_in_queue"]) for one in spans]
    waits = [one for one in queues if one > 0.1]
    assert len(waits) == expect["requests"]
    assert sum(waits) / len(waits) == pytest.approx(expect["magnitude"]["value"])
    assert max(one for one in queues if one not in waits) < 0.01
    busy = [
        (int(running), float(kv))
        for running, waiting, kv in re.findall(
            r"Running: (\d+) reqs, Waiting: (\d+) reqs, GPU KV cache usage: ([\d.]+)%",
            (tmp_path / "vllm.log").read_text(),
        )
        if int(waiting)
    ]
    assert len(busy) >= 3
    assert {running for running, _ in busy} == {5}
    low, high = (96, 99) if case == "saturation" else (0, 2)
    assert all(low <= kv <= high for _, kv in busy)


def test_the_long_prompts_keep_running_low_and_moving(tmp_path):
    _files_of("a1_admission", "long_prompts", tmp_path)
    found = re.findall(
        r"Running: (\d+) reqs, Waiting: (\d+) reqs, GPU KV cache usage: ([\d.]+)%",
        (tmp_path / "vllm.log").read_text(),
    )
    busy = [(int(running), float(kv)) for running, waiting, kv in found if int(waiting)]
    assert {running for running, _ in busy} == {1, 2, 3}
    assert max(kv for _, kv in busy) < 31


def _client(path):
    """Per request: send, chunks, done."""
    requests = defaultdict(list)
    for line in _lines(path):
        event = _exact(line)
        requests[event["request_id"]].append(event)
    return requests


def test_the_proxy_holds_what_it_says(tmp_path):
    expect = _files_of("a5_buffered", "main", tmp_path)
    engine = {
        one["gen_ai.request.id"]: one
        for one in (_attributes(line)[1] for line in _lines(tmp_path / "spans.jsonl"))
    }
    held = []
    for request, events in _client(tmp_path / "client.jsonl").items():
        send, first, *_, last, done = events
        assert last["ts"] == done["ts"]
        values = engine[request]
        ttft = first["ts"] - send["ts"] - values["gen_ai.latency.time_to_first_token"]
        if send["route"] == "proxy-2":
            held.append(ttft - (last["ts"] - send["ts"] - values["gen_ai.latency.e2e"]))
    assert len(held) == expect["requests"]
    assert float(sum(held) / len(held)) == pytest.approx(expect["magnitude"]["value"])


def test_answers_grow_as_they_say(tmp_path):
    expect = _files_of("d1_output_growth", "main", tmp_path)
    totals = [
        float(events[-1]["ts"] - events[0]["ts"])
        for events in _client(tmp_path / "client.jsonl").values()
    ]
    half = expect["requests"]
    assert sum(totals[:half]) / half == pytest.approx(1.1)
    assert sum(totals[half:]) / half - 1.1 == pytest.approx(expect["magnitude"]["value"])


def test_the_incident_is_what_its_script_writes(incident):
    folder = ROOT / "sample_traces" / "incident"
    files = incident.build()
    assert {path.name for path in folder.iterdir()} == set(files)
    for name, text in files.items():
        assert (folder / name).read_bytes() == text.encode(), f"run make_incident.py: {name}"
    assert sum(map(len, files.values())) < 700_000


def test_the_incident_states_its_truth(incident):
    assert all(line in incident.__doc__ for line in incident.truth())


def test_the_incident_adds_up_over_its_vantages(incident):
    files = incident.build()
    gateway = {one["request_id"]: one for one in map(_exact, files["gateway.jsonl"].splitlines())}
    spans = [_attributes(one) for one in files["engine-spans.jsonl"].splitlines()]
    engine = {values["gen_ai.request.id"]: (span, values) for span, values in spans}
    client = defaultdict(list)
    for event in map(_exact, files["client-stream.jsonl"].splitlines()):
        client[event["request_id"]].append(event)
    assert client.keys() == gateway.keys()
    (refused,) = client.keys() - engine.keys()
    assert (gateway[refused]["status"], client[refused][-1]["status"]) == (503, 503)
    for request, (span, values) in engine.items():
        send, *chunks, done = client[request]
        ns = {name: Decimal(value) * NS for name, value in values.items() if "latency" in name}
        parts = [ns[f"gen_ai.latency.time_in_{one}"] for one in ("queue", "model_prefill")]
        decode = ns["gen_ai.latency.time_in_model_decode"]
        inner = ns["gen_ai.latency.e2e"]
        assert ns["gen_ai.latency.time_to_first_token"] - sum(parts) == 3_000_000
        assert inner - sum(parts) - decode == 4_000_000
        middle = gateway[request]["e2e_ms"] * 1_000_000
        outer = (done["ts"] - send["ts"]) * NS
        assert inner < middle < outer
        assert 15_000_000 <= outer - inner <= 30_000_000
        assert done["ts"] == chunks[-1]["ts"]
        assert len(chunks) == done["usage"]["completion_tokens"]
        assert str(done["usage"]["prompt_tokens"]) == values["gen_ai.usage.prompt_tokens"]
        arrived = int(span["startTimeUnixNano"]) - (send["ts"] * NS - 40_000_000)
        assert 7_000_000 <= arrived <= 15_000_000


def test_the_incident_runs_at_most_six(incident):
    log = incident.build()["engine.log"]
    found = re.findall(r"Running: (\d+) reqs, Waiting: (\d+) reqs, GPU KV.*?: ([\d.]+)%", log)
    assert max(int(running) for running, _, _ in found) == 6
    assert {int(running) for running, waiting, _ in found if int(waiting)} == {6}
    assert max(float(kv) for _, _, kv in found) < 6
    assert "GPU KV cache size: 218,432 tokens" in log

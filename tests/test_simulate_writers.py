"""Logs of gateways, agents, providers and Ollama tell exactly what the outcome says."""

import json
from decimal import Decimal

import pytest
from test_readers import READERS, read, rows_of

from analyzer.readers._reader import Options
from analyzer.simulate.money import Billing, cost_usd, prices_of
from analyzer.simulate.ordered import OrderedLines
from analyzer.simulate.outcome import Cause, EngineEvent, GatewayTry, LogView, RequestOutcome
from analyzer.simulate.write_billing import BillingRecords
from analyzer.simulate.write_gateway import GatewayRecords
from analyzer.simulate.write_litellm import LiteLlmSpend
from analyzer.simulate.write_nginx import NginxLog
from analyzer.simulate.write_ollama import OllamaCaptures
from analyzer.simulate.write_ollama_log import OllamaLog, Placement, go_duration
from analyzer.simulate.write_transcript import Transcripts

MS, NS = 1_000_000, 1_000_000_000
T0 = 1_772_442_000 * NS
SKEW = LogView(name="skewed", skew_ns=5 * NS)
PRICES = prices_of(
    {"lyra-70b": {"input": "2.50", "cache_read": "0.25", "cache_write_short": "3.00",
                  "cache_write_long": "5.00", "output": "10"}}
)  # fmt: skip
PLAIN, SHORT = Billing(PRICES), Billing(PRICES, write_ttl="5m")


def outcome(**changes):
    start = changes.pop("start", T0)
    one = RequestOutcome(
        request_id="q-1", operation_id="op-1", session_id="s-1", turn=2, route="blue",
        replica="engine-0", model="lyra-70b", prompt_tokens=1_000, cached_tokens=640,
        output_tokens=120, reasoning_tokens=20, scheduled_ns=start, sent_ns=start + 2 * MS,
        gateway_in_ns=start + 12 * MS, gateway_sent_ns=start + 13 * MS,
        engine_in_ns=start + 13_500_000, queued_ns=start + 15 * MS, admitted_ns=start + 45 * MS,
        first_token_ns=start + 145 * MS, finished_ns=start + 2_145 * MS,
        engine_out_ns=start + 2_146 * MS, gateway_first_ns=start + 146 * MS,
        gateway_out_ns=start + 2_147 * MS, first_chunk_ns=start + 157 * MS,
        done_ns=start + 2_158 * MS, status=200, finish_reason="stop",
        tries=[GatewayTry("blue", "engine-0", start + 13 * MS, start + 2_147 * MS, 200)],
    )  # fmt: skip
    for name, value in changes.items():
        setattr(one, name, value)
    return one


def failed(**changes):
    """Given up by the client while the engine was at it."""
    return outcome(
        request_id="q-2", attempt=1, status=None, error="timeout", finish_reason=None,
        done_ns=T0 + 1_002 * MS, gateway_out_ns=T0 + 1_012 * MS, **changes,
    )  # fmt: skip


def written(recorder, *outcomes):
    for one in outcomes:
        recorder.request(one)
    recorder.close()


def rows_from(reader, path):
    rows = rows_of(read(READERS[reader], path, Options()))
    return [row for table, row in rows if table == "request"]


def test_gateway_records_come_back_exactly(tmp_path):
    path = tmp_path / "gateway.jsonl"
    fallback = outcome(request_id="q-3", start=T0 + NS)
    fallback.tries.insert(0, GatewayTry("red", None, T0 + NS, T0 + 3 * NS, None, "timeout"))
    written(GatewayRecords(path, SKEW), outcome(), fallback)
    first, second = rows_from("request_records", path)
    assert first["vantage"] == "gateway"
    assert first["start_ns"] == T0 + 5 * NS + 12 * MS
    assert (first["ttft_ns"], first["e2e_ns"]) == (134 * MS, 2_135 * MS)
    assert (first["input_fresh_tokens"], first["cache_read_tokens"]) == (360, 640)
    assert (first["output_visible_tokens"], first["output_reasoning_tokens"]) == (100, 20)
    assert second["route"] == "blue"
    tags = json.loads(path.read_text().splitlines()[1])["tags"]
    assert tags == {
        "upstream_calls": "2", "first_route": "red", "first_failure": "timeout",
        "first_call_ms": "2000",
    }  # fmt: skip


def test_billing_has_every_attempt_that_was_computed(tmp_path):
    path = tmp_path / "billing.jsonl"
    refused = outcome(request_id="q-4", admitted_ns=None, first_token_ns=None, error="rate_limited")
    written(BillingRecords(path, LogView(), PLAIN), outcome(), failed(), refused)
    rows = rows_from("billing_records", path)
    assert len(rows) == 2
    assert {row["e2e_ns"] for row in rows} == {2_146 * MS - 13_500_000}
    assert {row["vantage"] for row in rows} == {"provider"}
    assert {row.get("request_id") for row in rows} == {None}
    spent = (360 * Decimal("2.50") + 640 * Decimal("0.25") + 120 * 10) / 1_000_000
    assert {row["reported_cost_usd"] for row in rows} == {spent}


def test_money_counts_each_token_once_and_knows_what_it_lacks():
    one = outcome()
    spent = (8 * Decimal("2.50") + 640 * Decimal("0.25") + 352 * 3 + 120 * 10) / 1_000_000
    assert cost_usd(one, SHORT) == spent
    assert cost_usd(outcome(model="other"), SHORT) is None
    assert cost_usd(one, Billing({"lyra-70b": {"input": Decimal(1), "output": Decimal(1)}})) is None


def test_nginx_tells_milliseconds_and_every_upstream(tmp_path):
    path = tmp_path / "access.log"
    fallback = outcome(request_id="q-3", start=T0 + NS)
    fallback.tries.insert(0, GatewayTry("red", None, T0 + NS, T0 + NS + 20 * MS, 503))
    late = failed(gateway_first_ns=None)
    late.tries = [GatewayTry("blue", "engine-0", T0 + 13 * MS, T0 + 1_012 * MS, None, "aborted")]
    written(NginxLog(path, LogView()), outcome(), late, fallback)
    gone, good, second = (json.loads(line) for line in path.read_text().splitlines())
    assert (gone["status"], gone["request_completion"]) == (499, "")
    assert gone["upstream_header_time"] == gone["upstream_status"] == "-"
    assert (good["request_time"], good["msec"]) == (2.135, "1772442002.147")
    assert (good["upstream_header_time"], good["upstream_response_time"]) == ("0.132", "2.134")
    assert second["upstream_status"] == "503, 200"
    assert second["upstream_response_time"] == "0.020, 2.134"
    assert second["upstream_addr"] == "red:8000, engine-0:8000"


def test_a_hop_that_holds_back_is_in_no_field_of_nginx(tmp_path):
    held = outcome(gateway_first_ns=T0 + 2_147 * MS, first_chunk_ns=T0 + 2_158 * MS)
    for name, one in (("prompt", outcome()), ("held", held)):
        written(NginxLog(tmp_path / name, LogView()), one)
    assert (tmp_path / "prompt").read_text() == (tmp_path / "held").read_text()


def test_litellm_has_a_row_for_each_upstream_call(tmp_path):
    path = tmp_path / "spend.json"
    fallback = outcome()
    fallback.tries.insert(0, GatewayTry("red", None, T0, T0 + 12 * MS, 429))
    written(LiteLlmSpend(path, LogView(), SHORT), fallback, failed())
    bad, good, late = json.loads(path.read_text())
    assert (bad["status"], bad["spend"], bad["prompt_tokens"]) == ("failure", 0.0, 0)
    assert json.loads(bad["metadata"])["error_information"]["error_code"] == "429"
    assert (good["prompt_tokens"], good["completion_tokens"]) == (1_000, 120)
    assert good["startTime"] == "2026-03-02 09:00:00.013000"
    assert good["completionStartTime"] == "2026-03-02 09:00:00.146000"
    assert good["endTime"] == "2026-03-02 09:00:02.147000"
    usage = json.loads(good["metadata"])["usage_object"]
    assert (usage["cache_read_input_tokens"], usage["cache_creation_input_tokens"]) == (640, 352)
    assert good["spend"] == pytest.approx(float(cost_usd(outcome(), SHORT)))
    assert late["completionStartTime"] == late["endTime"]


def test_an_empty_spend_log_is_an_empty_array(tmp_path):
    written(LiteLlmSpend(tmp_path / "spend.json", LogView(), SHORT))
    assert json.loads((tmp_path / "spend.json").read_text()) == []


def test_transcripts_repeat_usage_and_only_the_last_line_has_the_output(tmp_path):
    child = outcome(
        request_id="q-5", session_id="a-1", parent_session_id="s-1", finish_reason="length"
    )
    written(Transcripts(tmp_path, LogView(), SHORT), outcome(), child, failed())
    lines = [json.loads(line) for line in (tmp_path / "s-1.jsonl").read_text().splitlines()]
    asked, thought, said, _, lost = lines
    assert (asked["type"], thought["type"], said["type"]) == ("user", "assistant", "assistant")
    assert thought["message"]["id"] == said["message"]["id"]
    assert thought["requestId"] == said["requestId"]
    assert [one["message"]["usage"]["output_tokens"] for one in (thought, said)] == [2, 120]
    assert [one["message"]["stop_reason"] for one in (thought, said)] == [None, "end_turn"]
    usage = said["message"]["usage"]
    assert (usage["input_tokens"], usage["cache_read_input_tokens"]) == (8, 640)
    assert usage["cache_creation"] == {
        "ephemeral_5m_input_tokens": 352, "ephemeral_1h_input_tokens": 0,
    }  # fmt: skip
    assert said["timestamp"] == "2026-03-02T09:00:02.158Z"
    assert (lost["message"]["model"], lost["isApiErrorMessage"]) == ("<synthetic>", True)
    assert [one["parentUuid"] for one in lines[1:]] == [one["uuid"] for one in lines[:-1]]
    agent = tmp_path / "s-1" / "subagents" / "agent-a-1.jsonl"
    last = json.loads(agent.read_text().splitlines()[-1])
    assert (last["sessionId"], last["isSidechain"], last["agentId"]) == ("s-1", True, "a-1")
    assert last["message"]["stop_reason"] == "max_tokens"


def test_ollama_captures_come_back(tmp_path):
    path = tmp_path / "captures.jsonl"
    loaded = outcome(causes=[Cause("load", T0 + 15 * MS, T0 + 6_013_500_000, 5_998_500_000)],
                     admitted_ns=T0 + 6_020 * MS,
                     first_token_ns=T0 + 6_120 * MS, finished_ns=T0 + 8_120 * MS,
                     engine_out_ns=T0 + 8_125 * MS)  # fmt: skip
    written(OllamaCaptures(path, LogView(), SKEW), loaded, failed())
    bad, good = sorted(rows_from("ollama_responses", path), key=lambda row: "error" not in row)
    assert (good["load_ns"], good["prefill_ns"], good["decode_ns"]) == (6 * NS, 100 * MS, 2 * NS)
    assert good["e2e_ns"] == 8_125 * MS - 13_500_000
    assert good["start_ns"] == T0 + 13_500_000
    assert bad["error"]


def test_ollamas_log_has_calls_loads_and_what_lies_where(tmp_path):
    path = tmp_path / "server.log"
    placed = Placement(layers=40, on_gpu=36, gpu_bytes=9_000 << 20, cpu_bytes=1_200 << 20,
                       embedding="q4_K     [  4096, 128000,     1,     1 ]")  # fmt: skip
    log = OllamaLog(path, LogView(), "lyra:13b", placed)
    log.event(EngineEvent(T0, "engine-0", "load", 4_250 * MS))
    log.request(outcome())
    log.event(EngineEvent(T0 + 400 * NS, "engine-0", "unload"))
    log.close()
    rows = rows_of(read(READERS["ollama_log"], path, Options()))
    (call,) = [row for table, row in rows if table == "request"]
    assert call["e2e_ns"] == 2_146 * MS - 13_500_000
    events = {row["kind"]: row for table, row in rows if table == "engine_event"}
    assert events["load"]["dur_ns"] == 4_250 * MS
    assert events["unload"]["time_ns"] == T0 + 400 * NS
    (place,) = [row for table, row in rows if table == "deployment"]
    assert (place["gpu_layers"], place["gpu_weight_bytes"]) == (36, 9_000 << 20)


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0ns"), (850, "850ns"), (20_400, "20.4µs"), (340_100_000, "340.1ms"),
        (15_228_580_500, "15.2285805s"), (62_500_000_000, "1m2.5s"), (120 * NS, "2m0s"),
        (3_600_500_000_000, "1h0m0.5s"),
    ],
)  # fmt: skip
def test_durations_as_go_prints_them(ns, text):
    assert go_duration(ns) == text


def test_lines_stand_in_the_order_of_their_times(tmp_path):
    path = tmp_path / "log"
    lines = OrderedLines(path, horizon_ns=10)
    for at in (5, 3, 30, 21, 50):
        lines.add(at, str(at))
    assert [int(one) for one in path.read_text().splitlines()] == []  # not written out yet
    lines.close()
    assert path.read_text().splitlines() == ["3", "5", "21", "30", "50"]


def test_what_a_log_leaves_out_or_loses_is_not_there(tmp_path):
    view = LogView(missing=frozenset({"ttft_ms", "usage"}))
    written(GatewayRecords(tmp_path / "a", view), outcome())
    record = json.loads((tmp_path / "a").read_text())
    assert "ttft_ms" not in record
    assert "usage" not in record
    written(NginxLog(tmp_path / "b", LogView(loss=1.0)), outcome())
    assert (tmp_path / "b").read_text() == ""

"""The rule of a prompt cache is the one of the vendor, the platform or the engine that holds it."""

from __future__ import annotations

import json

import pytest
from helpers import case_of, engine_of

from analyzer.analyses.resolve.cache_rule import catalog, plain, rows
from analyzer.engines.analysis import all_analyses

S = 1_000_000_000
COLUMNS = [column.name for column in all_analyses()["resolve_cache_rule"].returns]


def rule_of(model: str, provider: str = "", *logs: tuple[str, str | None], **seen):
    pair = {
        "provider": provider, "model": model, "by_engine": 0, "exclusive": 0, "apart_tokens": None,
        "written_tokens": None,
    } | seen  # fmt: skip
    lines = [pair | {"reader": r, "deployed": d} for r, d in logs or [(None, None)]]
    (row,) = rows(lines)
    return dict(zip(COLUMNS, row, strict=True))


@pytest.mark.parametrize(
    ("model", "provider", "minimum"),
    [
        ("claude-opus-5-5", "", 512),
        ("claude-opus-5", "anthropic", 512),
        ("claude-haiku-5-5-20260801", "", 512),
        ("claude-fable-5-2", "", 512),
        ("claude-mythos-5-2", "", 512),
        ("claude-opus-4-8", "", 1024),
        ("claude-sonnet-5", "", 1024),
        ("anthropic/claude-sonnet-4.6", "openrouter", 1024),
        ("claude-4.5-sonnet", "cursor", 1024),
        ("claude-sonnet-4-5@20250929", "", 1024),
        ("claude-sonnet-4-20250514", "", 1024),
        ("claude-4-sonnet", "", 1024),
        ("claude-opus-4-1-20250805", "", 1024),
        ("claude-opus-4-0", "", 1024),
        ("claude-opus-4-7", "", 2048),
        ("claude-3-5-haiku-20241022", "", 2048),
        ("claude-opus-4-6[1m]", "", 4096),
        ("claude-opus-4-5-20251101", "", 4096),
        ("claude-haiku-4-5", "", 4096),
        ("claude-3-7-sonnet-latest", "", 1024),
        ("claude-next-9", "", None),
        ("gpt-4o-2024-08-06", "", 1024),
        ("gpt-5.6-sol", "openai", 1024),
        ("ft:gpt-4o-mini-2024-07-18:acme::x1", "", 1024),
        ("gemini-2.5-pro", "gcp.gemini", 2048),
        ("google/gemini-3.1-pro-preview", "openrouter", 4096),
        ("us.anthropic.claude-opus-4-5-20251101-v1:0", "aws.bedrock", 4096),
        ("anthropic.claude-opus-4-7-v1:0", "bedrock", 4096),
        ("anthropic.claude-sonnet-4-20250514-v1:0", "aws.bedrock", 1024),
        ("global.anthropic.claude-opus-5", "aws.bedrock", 512),
        ("claude-opus-4-5@20251101", "gcp.vertex_ai", None),
    ],
)
def test_shortest_prefix_is_keyed_on_platform_and_model(model, provider, minimum):
    assert rule_of(model, provider)["min_tokens"] == minimum


@pytest.mark.parametrize(
    ("model", "read"),
    [
        ("gpt-4o", 0.5), ("gpt-4.1-mini", 0.25), ("o3", 0.25), ("o3-mini", 0.5),
        ("gpt-5-mini", 0.1),
        ("gpt-5.2", 0.1), ("gpt-5.6-terra", 0.1), ("gpt-6.1-sol", 0.05), ("claude-opus-4-6", 0.1),
        ("claude-opus-5-5", 0.05), ("claude-sonnet-5-5", 0.05), ("claude-fable-5", 0.1),
        ("claude-fable-5-1", 0.025), ("claude-mythos-5-2", 0.025), ("gemini-2.0-flash", 0.25),
        ("gemini-2.5-flash", 0.1), ("deepseek-v4-flash", 0.02), ("deepseek-chat", 0.25),
    ],
)  # fmt: skip
def test_price_of_a_read(model, read):
    assert rule_of(model)["read_factor"] == read


def test_anthropic_promises_lifetimes_and_refreshes_them():
    rule = rule_of("claude-opus-4-5-20251101")
    assert (rule["vendor"], rule["family"]) == ("anthropic", "claude-opus-4-5")
    assert (rule["short_life_ns"], rule["long_life_ns"]) == (300 * S, 3600 * S)
    assert (rule["life_unknown"], rule["refreshed_by_hit"]) == (False, True)
    assert (rule["short_write_factor"], rule["long_write_factor"]) == (1.25, 2.0)
    assert (rule["max_breakpoints"], rule["look_back_blocks"]) == (4, 20)
    assert rule["source"]
    assert rule["as_of"] == "2026-08-22"


def test_openai_changed_its_rules_with_a_family():
    old, new = rule_of("gpt-5.4"), rule_of("gpt-5.6-sol")
    assert (old["step_tokens"], new["step_tokens"]) == (128, 1)
    assert (old["short_write_factor"], new["short_write_factor"]) == (1.0, 1.25)
    assert (new["short_life_ns"], new["long_life_ns"]) == (1_800 * S, 43_200 * S)
    assert (old["life_unknown"], new["life_unknown"]) == (True, False)
    assert old["short_life_ns"] == 300 * S
    only_long = rule_of("gpt-5.5")
    assert (only_long["short_life_ns"], only_long["long_life_ns"]) == (None, 86_400 * S)


def test_what_promises_nothing_says_so():
    for model in ("gemini-3-pro", "deepseek-chat", "zeta-large"):
        rule = rule_of(model)
        assert (rule["short_life_ns"], rule["life_unknown"]) == (None, True), model


def test_a_platform_has_rules_of_its_own():
    claude = "anthropic.claude-3-7-sonnet-20250219-v1:0"
    rule = rule_of(claude, "aws.bedrock")
    assert (rule["vendor"], rule["short_life_ns"], rule["long_life_ns"]) == (
        "bedrock", 300 * S, None,
    )  # fmt: skip
    assert rule_of("claude-opus-4-6", "gcp.vertex_ai")["vendor"] == "vertex"
    assert rule_of("gemini-2.5-pro", "gcp.vertex_ai")["vendor"] == "google"
    azure = rule_of("prod-chat", "azure")
    assert (azure["vendor"], azure["min_tokens"]) == ("azure", 1024)
    assert rule_of("amazon.nova-pro-v1:0", "aws.bedrock")["read_factor"] == 0.25


def test_a_model_nobody_knows_is_judged_by_how_its_log_counts():
    beside = rule_of("zeta-large", apart_tokens=0, exclusive=1)
    assert (beside["vendor"], beside["short_life_ns"]) == ("unknown", 300 * S)
    assert (beside["long_life_ns"], beside["refreshed_by_hit"]) == (3600 * S, True)
    within = rule_of("zeta-large", apart_tokens=4_000)
    assert (within["short_life_ns"], within["life_unknown"]) == (300 * S, True)
    relayed = rule_of("zeta-large", "anthropic", apart_tokens=4_000)
    assert (relayed["vendor"], relayed["life_unknown"]) == ("anthropic", False)
    named = rule_of("zeta-large", "anthropic", written_tokens=900, exclusive=1)
    assert (named["vendor"], named["short_life_ns"]) == ("anthropic", 300 * S)
    assert rule_of("zeta-large", written_tokens=0, exclusive=1)["vendor"] == "unknown"


def test_engines_keep_what_there_is_room_for():
    for rule in (
        rule_of("gpt-oss-120b", "hosted_vllm"),
        rule_of("m-7", "", ("vllm_log", None)),
        rule_of("m-7", "openai", ("deployment", None), ("vllm_log", "x")),
        rule_of("deepseek-chat", "", ("vllm_log", "/models/deepseek-chat")),
        rule_of("gpt-4o", "", ("vllm_log", None), by_engine=1),
    ):
        assert (rule["vendor"], rule["family"], rule["step_tokens"]) == ("engine", "vllm", 16)
        assert (rule["short_life_ns"], rule["life_unknown"], rule["scope"]) == (
            None, False, "engine",
        )  # fmt: skip
    assert rule_of("m-7", "", ("sglang_log", None))["step_tokens"] == 1
    assert rule_of("m-7", "", ("trtllm_perf_metrics", None))["step_tokens"] == 32
    assert rule_of("m-7", "", ("deployment", None))["step_tokens"] is None
    assert rule_of("m-7", "", ("sglang_log", None), ("vllm_log", None))["step_tokens"] is None
    assert rule_of("gpt-4o", "", ("vllm_log", None))["vendor"] == "openai"


def test_every_rule_says_where_it_stands():
    book = catalog()
    for part in ("vendor", "platform", "counting", "engine"):
        assert all(one["source"] for one in book[part]), part
    assert (
        plain("arn:aws:bedrock:eu-west-1:1:inference-profile/eu.anthropic.claude-x") == "claude-x"
    )


def test_a_case_tells_its_rules(tmp_path):
    usage = {
        "input_tokens": 5, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 40,
        "output_tokens": 3,
        "cache_creation": {"ephemeral_5m_input_tokens": 40, "ephemeral_1h_input_tokens": 0},
    }  # fmt: skip
    chat = {
        "prompt_tokens": 50, "completion_tokens": 3, "total_tokens": 53,
        "prompt_tokens_details": {"cached_tokens": 0},
    }  # fmt: skip
    told = {"started_at": "2026-05-05T05:05:05Z", "vantage": "client"}
    lines = [
        told | {"request_id": "a", "model": "zeta-large", "usage": usage},
        told | {"request_id": "b", "model": "omega-1", "usage": chat},
        told | {"request_id": "c", "model": "gpt-5.4", "provider": "openai", "usage": chat},
    ]
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "usage.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))
    with engine_of(case_of(folder, tmp_path / "case.duckdb")) as engine:
        got = engine.rows("SELECT * FROM resolve_cache_rule")
    told = {one["model"]: (one["vendor"], one["short_life_ns"]) for one in got}
    assert told == {
        "zeta-large": ("unknown", 300 * S),
        "omega-1": ("unknown", None),
        "gpt-5.4": ("openai", 300 * S),
    }

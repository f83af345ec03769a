"""What tokens cost: the price book, its overrides, price files, and the join in SQL."""

from __future__ import annotations

import json
import socket
from collections import Counter
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import genai_prices
import pytest
from helpers import case_of, engine_of
from shared import SHARED, needs_shared

import analyzer
from analyzer import api
from analyzer.catalogs._price_file import FilePrice
from analyzer.catalogs.price_book import DAY_NS, Lane, PriceBook, Quote
from analyzer.readers._usage import token_buckets, usage_contradiction
from analyzer.readers._vendor_media import media_tags

BOOK = PriceBook()
MILLION = 1_000_000
CORPUS = SHARED / "formats/samples/clients/provider-raw/genai_prices_usages.json"


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    """No price is fetched: opening a socket fails the test."""

    def refuse(*args, **kwargs):
        raise AssertionError("a socket was opened")

    for name in ("connect", "connect_ex", "sendto"):
        monkeypatch.setattr(socket.socket, name, refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def ns(text: str) -> int:
    moment = datetime.fromisoformat(text).replace(tzinfo=UTC)
    return int(moment.timestamp()) * 10**9


def cost(quote: Quote, *, fresh=0, read=0, short=0, long=0, out=0, thought=0) -> Decimal | None:
    kinds = {
        "input": fresh, "cache_read": read, "cache_write_short": short, "cache_write_long": long,
        "output": out, "reasoning": thought,
    }  # fmt: skip
    used = {kind: tokens for kind, tokens in kinds.items() if tokens}
    if not quote.prices.keys() >= used.keys():
        return None
    return sum((quote.prices[k] * n for k, n in used.items()), Decimal(0)) / MILLION


NOV, AUG = "2026-11-15", "2026-08-20"
TABLE = [
    # the cases that were tried on genai-prices 0.2.3, those it has wrong included
    (Lane("gpt-4o"), NOV, {"fresh": 86, "read": 1920, "out": 300}, "0.005615"),
    (Lane("gpt-5"), NOV, {"fresh": 2000, "read": 8000, "out": 1000}, "0.0135"),
    *(
        (Lane("gpt-5", service_tier=tier), day, {"fresh": 2000, "read": 8000, "out": 1000}, usd)
        for day in (NOV, AUG)
        for tier, usd in (
            ("flex", "0.00675"), ("priority", "0.027"), ("fast", "0.027"), ("batch", "0.00675"),
            ("default", "0.0135"), ("on_demand", "0.0135"),
        )
    ),
    (Lane("claude-sonnet-4-5", service_tier="batch"), AUG, {"fresh": 1000, "out": 500}, "0.00525"),
    (
        Lane("claude-sonnet-4-5"), NOV,
        {"fresh": 100, "short": 1000, "long": 2000, "read": 50_000, "out": 500}, "0.03855",
    ),
    (
        Lane("claude-sonnet-4-5"), NOV,
        {"fresh": 100, "short": 3000, "read": 50_000, "out": 500}, "0.03405",
    ),
    (Lane("claude-sonnet-4-5"), NOV, {"fresh": 1000, "read": 250_000, "out": 500}, "0.16725"),
    (Lane("claude-sonnet-4-0"), NOV, {"fresh": 1000, "read": 250_000, "out": 500}, "0.16725"),
    (Lane("claude-sonnet-4-20250514"), NOV, {"fresh": 1000, "read": 250_000}, "0.156"),
    (Lane("us.anthropic.claude-sonnet-4-5-20250929-v1:0"), NOV, {"fresh": 300_000}, "1.98"),
    (Lane("gemini-2.5-pro"), NOV, {"fresh": 150_000, "read": 100_000, "out": 1000, "thought": 2000},
     "0.445"),
    (Lane("gemini-2.5-pro"), NOV, {"fresh": 200_000}, "0.25"),
    (Lane("gemini-2.5-pro"), NOV, {"fresh": 200_001}, "0.5000025"),
    (Lane("gpt-5.5"), NOV, {"fresh": 272_000}, "1.36"),
    (Lane("gpt-5.5"), NOV, {"fresh": 272_001}, "2.72001"),
    (Lane("gpt-5.6"), NOV, {"fresh": 1000, "read": 6000, "short": 3000}, "0.0214"),
    (Lane("gpt-5.6"), AUG, {"fresh": 1000, "read": 6000, "short": 3000}, "0.02675"),
    (Lane("gpt-5.6"), NOV, {"long": 1000}, "0.01"),
    (Lane("o3"), "2025-05-10", {"fresh": 1_000}, "0.01"),
    (Lane("o3"), "2025-07-10", {"fresh": 1_000}, "0.002"),
    (Lane("claude-opus-4-8", speed="fast"), NOV, {"fresh": 1000, "out": 100}, "0.015"),
    (Lane("claude-opus-4-6", speed="fast"), NOV, {"fresh": 1000, "out": 100}, "0.045"),
    (Lane("claude-opus-4-6", geo="us"), NOV, {"fresh": 1000, "read": 1000, "out": 100}, "0.0088"),
    (Lane("claude-opus-4-6", geo="global"), NOV, {"fresh": 1000, "out": 100}, "0.0075"),
    (Lane("deepseek-chat", "deepseek"), NOV, {"fresh": 1000, "read": 1000, "out": 1000},
     "0.000728"),
    # names with prefixes are looked up without
    *((Lane(name), NOV, {"fresh": 1000}, usd) for name, usd in (
        ("openai/gpt-4o", "0.0025"), ("azure/gpt-4o", "0.0025"),
        ("models/gemini-2.5-pro", "0.00125"), ("claude-opus-4-6[1m]", "0.005"),
        ("ft:gpt-4o-2024-08-06:org::id", "0.00375"), ("gpt-5-codex", "0.00125"),
        ("global.anthropic.claude-sonnet-4-5-20250929-v1:0", "0.003"),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "0.0033"),
    )),
    (Lane("claude-sonnet-4-5@20250929", "google"), NOV, {"fresh": 1000}, "0.003"),
    (Lane("arn:aws:bedrock:us-east-1:123456789012:inference-profile/"
          "us.anthropic.claude-sonnet-4-5-20250929-v1:0"), NOV, {"fresh": 1000}, "0.0033"),
]  # fmt: skip


@pytest.mark.parametrize(("lane", "day", "usage", "usd"), TABLE)
def test_what_was_tried_on_the_catalog_comes_out_right(lane, day, usage, usd):
    tokens = sum(usage.get(kind, 0) for kind in ("fresh", "read", "short", "long"))
    quote = BOOK.at(lane, ns(day), max(tokens, 1))
    assert cost(quote, **usage) == Decimal(usd), quote
    assert quote.source
    assert "genai-prices 0." in (quote.version or "")


@pytest.mark.parametrize(
    "lane",
    [
        Lane("gpt-9-unknown"), Lane("claude-opus-9-9"), Lane("gpt-oss-20b"), Lane(""),
        Lane("meta-llama/Llama-3.1-8B-Instruct"), Lane("deepseek-ai/DeepSeek-V3"),
        Lane("mistral:7b"), Lane("gpt-5", "vllm"), Lane("gpt-5", is_own=True),
        Lane("gpt-4o", "localhost"), Lane("claude-opus-4-8", service_tier="priority"),
        Lane("gpt-5", service_tier="scale"), Lane("claude-haiku-4-5", speed="fast"),
        Lane("gpt-4", service_tier="some-new-tier"),
    ],
)  # fmt: skip
def test_what_is_not_known_is_not_priced_and_says_why(lane):
    (quote,) = BOOK.quotes(lane)
    assert (quote.prices, quote.source) == ({}, None)
    assert quote.note


def test_usage_is_reconciled_before_it_is_priced():
    split = {"input_tokens": 3, "output_tokens": 1, "cache_creation_input_tokens": 0,
             "cache_creation": {"ephemeral_5m_input_tokens": 100}}  # fmt: skip
    assert token_buckets(split)["cache_write_short_tokens"] == 100
    hits = {"prompt_cache_hit_tokens": 900, "prompt_cache_miss_tokens": 100, "completion_tokens": 5}
    assert token_buckets(hits)["cache_read_tokens"] == 900
    assert token_buckets(hits)["input_fresh_tokens"] == 100
    much = {"prompt_tokens": 10, "completion_tokens": 1, "total_tokens": 11,
            "prompt_tokens_details": {"cached_tokens": 20}}  # fmt: skip
    assert usage_contradiction(much)


@pytest.mark.parametrize(
    "lane", [Lane("deepseek-chat"), Lane("deepseek-v4-flash", "deepseek"), Lane("gpt-5.6"),
             Lane("claude-opus-4-6", speed="fast"), Lane("gemini-2.5-pro")],
)  # fmt: skip
def test_quotes_leave_no_gap_and_do_not_overlap(lane):
    quotes = BOOK.quotes(lane)
    edges = {0, 1, ns("2099-01-01")}
    for one in quotes:
        edges |= {e + d for e in (one.from_ns, one.until_ns) if e for d in (-1, 0, 1)}
    sizes = {0} | {one.above + d for one in quotes if one.above for d in (0, 1)}
    days = {one.from_of_day_ns for one in quotes} | {DAY_NS - 1}
    for at in edges:
        for of_day in {at % DAY_NS} | days:
            moment = at - at % DAY_NS + of_day
            for size in sizes:
                fitting = [
                    one
                    for one in quotes
                    if (one.from_ns is None or moment >= one.from_ns)
                    and (one.until_ns is None or moment < one.until_ns)
                    and one.from_of_day_ns <= of_day < one.until_of_day_ns
                    and (one.above is None or size > one.above)
                    and (one.upto is None or size <= one.upto)
                ]
                assert len(fitting) == 1, (lane, moment, size)


def test_a_price_of_the_hour_and_one_that_began_in_the_middle_of_a_day():
    lane = Lane("deepseek-chat")

    def price(at: str) -> Decimal:
        return BOOK.at(lane, ns(at), 1).prices["input"]

    assert price("2025-08-01T12:00:00") == Decimal("0.27")
    assert price("2025-08-01T16:29:59") == Decimal("0.27")
    assert price("2025-08-01T16:30:00") == Decimal("0.135")
    assert price("2025-09-05T15:59:59") == Decimal("0.27")
    assert price("2025-09-05T16:00:00") == Decimal("0.56")
    assert price("2025-09-05T17:00:00") == Decimal("0.56")
    assert price("2025-09-29T00:00:00") == Decimal("0.28")


def test_a_tier_before_it_was_checked_follows_the_price_of_its_day():
    now = BOOK.at(Lane("gpt-5.6", service_tier="priority"), ns(NOV), 1).prices["input"]
    then = BOOK.at(Lane("gpt-5.6", service_tier="priority"), ns("2026-08-01"), 1).prices["input"]
    standard = BOOK.at(Lane("gpt-5.6"), ns("2026-08-01"), 1).prices["input"]
    assert (now, then) == (Decimal(8), 2 * standard)
    # The day on which somebody looked is none from which a price holds.
    assert [one.from_ns for one in BOOK.quotes(Lane("gpt-5", service_tier="batch"))] == [None]


def test_price_files_beat_the_book_and_their_terms_apply():
    at = ns("2026-10-20")
    rows = [
        FilePrice("gpt-5", "input", usd=Decimal("1.1"), path="contract.json"),
        FilePrice("gpt-5", "input", usd=Decimal("0.9"), valid_from_ns=at, path="contract.json"),
        FilePrice(None, None, provider="anthropic", factor=Decimal("0.875"), path="contract.json"),
        FilePrice(None, None, provider="anthropic", tier="batch", factor=Decimal("0.4"),
                  path="contract.json"),
        FilePrice("zeta", "input", usd=Decimal(4), path="contract.json"),
        FilePrice("zeta", "output", usd=Decimal(20), path="contract.json"),
        FilePrice("zeta", "output", usd=Decimal(30), above=1000, path="contract.json"),
        FilePrice("zeta", None, tier="flex", factor=Decimal("0.6"), path="contract.json"),
        FilePrice("zeta", "input", tier="priority", usd=Decimal(7), path="contract.json"),
    ]  # fmt: skip
    book = PriceBook(rows)

    def price(lane: Lane, kind: str, when: int = at, tokens: int = 1) -> Decimal | None:
        return book.at(lane, when, tokens).prices.get(kind)

    assert price(Lane("gpt-5"), "input", at - 1) == Decimal("1.1")
    assert price(Lane("gpt-5"), "input") == Decimal("0.9")
    assert price(Lane("openai/gpt-5"), "input") == Decimal("0.9")
    assert price(Lane("gpt-5"), "output") == Decimal(10)  # the file tells none
    assert price(Lane("gpt-5", service_tier="batch"), "input") == Decimal("0.45")
    assert price(Lane("claude-sonnet-4-5"), "input") == Decimal("2.625")
    assert price(Lane("claude-sonnet-4-5", service_tier="batch"), "input") == Decimal("1.05")
    assert price(Lane("zeta", is_own=True), "input") == 4
    assert price(Lane("zeta"), "output", tokens=1000) == 20
    assert price(Lane("zeta"), "output", tokens=1001) == 30
    assert price(Lane("zeta", service_tier="flex"), "input") == Decimal("2.4")
    assert price(Lane("zeta", service_tier="priority"), "input") == 7
    assert price(Lane("zeta", service_tier="priority"), "output") is None
    assert price(Lane("zeta"), "cache_read") is None
    quote = book.at(Lane("claude-sonnet-4-5"), at, 1)
    assert (quote.source, quote.version) == ("price file", "contract.json")
    assert "no price of batch" in (book.quotes(Lane("zeta", service_tier="batch"))[0].note or "")


def test_the_second_catalog_is_held_against_the_first():
    newest = [one for one in BOOK.quotes(Lane("claude-sonnet-4-5")) if one.until_ns is None]
    assert {one.above: bool(one.other) for one in newest} == {None: False, 200_000: True}
    long = next(one for one in newest if one.above)
    assert long.other["input"] == 3
    assert long.prices["input"] == 6
    assert long.other_source == "litellm 1.110.2"
    own = [FilePrice("deepseek/deepseek-chat", "input", usd=Decimal("0.5"), catalog="litellm",
                     provider="deepseek")]  # fmt: skip
    (*_, today) = PriceBook(own).quotes(Lane("deepseek-chat"))
    assert (today.other, today.prices["input"]) == ({"input": Decimal("0.5")}, Decimal("0.28"))


def test_a_model_that_only_the_second_catalog_has_says_so():
    rows = [FilePrice("nova-unheard", "input", usd=Decimal(2), catalog="litellm", provider="aws")]
    (quote,) = PriceBook(rows).quotes(Lane("nova-unheard", "bedrock"))
    assert (quote.source, quote.prices["input"]) == ("litellm", 2)


# The recorded corpus.


def _corpus_cost(quote: Quote, used: dict[str, int]) -> tuple[Decimal, Decimal]:
    zero = Decimal(0)
    count = Counter(used)
    sound, picture = count["cache_audio_read_tokens"], count["cache_image_read_tokens"]
    long = count["cache_write_1h_tokens"]
    parts = {
        "read_audio": sound, "read_image": picture,
        "input_audio": count["input_audio_tokens"] - sound,
        "input_image": count["input_image_tokens"] - picture,
        "cache_read": count["cache_read_tokens"] - sound - picture,
        "cache_write_short": count["cache_write_tokens"] - long, "cache_write_long": long,
    }  # fmt: skip
    parts["input"] = count["input_tokens"] - sum(parts.values())
    made = {name: count[f"output_{name}_tokens"] for name in ("audio", "image")}
    out = {f"output_{name}": tokens for name, tokens in made.items()}
    out["output"] = count["output_tokens"] - sum(made.values())

    def total(kinds: dict[str, int]) -> Decimal:
        return sum((quote.prices.get(k, zero) * n for k, n in kinds.items()), zero) / MILLION

    return total(parts), total(out)


@needs_shared
def test_recorded_prices_of_usage_bodies_agree_or_the_difference_is_explained():
    at = datetime(2026, 8, 20, 12, tzinfo=UTC)
    seen: Counter[str] = Counter()
    unexplained = []
    for body in json.loads(CORPUS.read_bytes()):
        model = body.get("model") or body["body"].get("model")
        for told in body["extracted"]:
            for recorded in told["extractors"]:
                if not {"input_price", "output_price"} & recorded.keys():
                    continue
                lane = Lane(model or "", recorded["provider_id"])
                quote = BOOK.at(
                    lane, ns("2026-08-20T12:00:00"), told["usage"].get("input_tokens", 0)
                )
                ours = _corpus_cost(quote, told["usage"])
                theirs = tuple(
                    Decimal(recorded.get(f"{s}_price", "0")) for s in ("input", "output")
                )
                why = "agrees" if quote.source and ours == theirs else ""
                why = why or _explained(quote, ours, lane, told["usage"], at)
                seen[why] += 1
                if not why:
                    unexplained.append((lane, ours, theirs, quote.note))
    assert not unexplained
    # The overrides: DeepSeek, whose price the catalog has stale, and sound it counts as text.
    assert seen == {"agrees": 3412, "changed by the catalog": 54, "listed without a price": 3,
                    "override": 5}  # fmt: skip


def _explained(quote, ours, lane, usage, at) -> str:
    now = genai_prices.calc_price(
        genai_prices.Usage(**usage), lane.model, provider_id=lane.provider,
        genai_request_timestamp=at,
    )  # fmt: skip
    if not quote.source:  # which the catalog counts as zero, and we do not
        return "" if now.total_price else "listed without a price"
    if ours == (now.input_price, now.output_price):
        return "changed by the catalog"
    return "override" if quote.source == "override" else ""


@needs_shared
def test_our_own_buckets_of_the_bodies_cost_the_same():
    """The whole way: the vendor's usage object, our disjoint buckets, our prices."""
    vendors = {"anthropic": "default", "openai": "responses", "google": "default"}
    compared: Counter[str] = Counter()
    for body in json.loads(CORPUS.read_bytes()):
        model = body.get("model")
        usage = body["body"].get("usage") or body["body"].get("usageMetadata")
        for told in body["extracted"]:
            for recorded in told["extractors"]:
                vendor = recorded["provider_id"]
                if vendors.get(vendor) != recorded["api_flavor"] or "input_price" not in recorded:
                    continue
                got = token_buckets(usage)
                # Passes of a compaction are billed beside the totals, and the record lacks them.
                if media_tags(usage) or got.get("usage_contradiction") or "iterations" in usage:
                    continue
                n = {name.removesuffix("_tokens"): value or 0 for name, value in got.items()
                     if name.endswith("_tokens")}  # fmt: skip
                inputs = n["input_fresh"] + n["cache_read"] + n["cache_write_short"]
                inputs += n["cache_write_long"] + n["cache_write_unknown"]
                quote = BOOK.at(Lane(model, vendor), ns("2026-08-20T12:00:00"), inputs)
                if quote.source == "override":
                    continue
                ours = cost(
                    quote, fresh=n["input_fresh"], read=n["cache_read"],
                    short=n["cache_write_short"] + n["cache_write_unknown"],
                    long=n["cache_write_long"], out=n["output_visible"],
                    thought=n["output_reasoning"],
                )  # fmt: skip
                theirs = Decimal(recorded["input_price"]) + Decimal(recorded.get("output_price", 0))
                assert ours == theirs, (model, usage)
                compared[vendor] += 1
    assert compared["anthropic"] > 150
    assert compared["openai"] > 150
    assert compared["google"] > 300


# In SQL.


def records(folder: Path, rows: list[dict], prices: dict | None = None) -> Path:
    folder.mkdir()
    lines = [json.dumps({"request_id": f"r{i}", **row}) for i, row in enumerate(rows)]
    (folder / "requests.jsonl").write_text("\n".join(lines) + "\n")
    if prices:
        (folder / "prices.json").write_text(json.dumps({"unit": "per_million_tokens", **prices}))
    return folder


def priced(tmp_path: Path, rows: list[dict], prices: dict | None = None) -> list[dict]:
    db = case_of(records(tmp_path / "in", rows, prices), tmp_path / "case.duckdb")
    with engine_of(db) as engine:
        return engine.rows(
            "SELECT q.id, c.* FROM cost_request AS c JOIN resolve_request AS q "
            "ON c.request_key = q.request_key ORDER BY q.id"
        )


def chat(prompt: int, out: int = 0, cached: int = 0) -> dict:
    details = {"prompt_tokens_details": {"cached_tokens": cached}} if cached else {}
    return {
        "prompt_tokens": prompt,
        "completion_tokens": out,
        "total_tokens": prompt + out,
    } | details


def test_requests_are_priced_part_by_part_and_exactly(tmp_path):
    rows = [
        {"model": "gpt-5.5", "started_at": "2026-11-01T00:00:00Z", "usage": chat(272_000, 7)},
        {"model": "gpt-5.5", "started_at": "2026-11-01T00:00:00Z", "usage": chat(272_001, 7)},
        {"model": "no-such-model", "started_at": "2026-11-01T00:00:00Z", "usage": chat(100, 5)},
        {"model": "gpt-5", "started_at": "2026-11-01T00:00:00Z", "status": 500},
        {"model": "gpt-5", "started_at": "2026-08-01T00:00:00Z", "usage": chat(3, 1, cached=1),
         "service_tier": "flex", "cost_usd": "0.5"},
        {"model": "claude-opus-4-6", "started_at": "2026-11-01T00:00:00Z",
         "usage": {"input_tokens": 10, "output_tokens": 1, "cache_creation_input_tokens": 7,
                   "cache_read_input_tokens": 0, "inference_geo": "us",
                   "server_tool_use": {"web_search_requests": 3}},
         "tags": {"inference_geo": "us", "web_search_requests": "3"}},
        {"model": "gpt-5", "usage": chat(1000)},
    ]  # fmt: skip
    got = priced(tmp_path, rows)
    at, above, unknown, failed, flex, claude, undated = got
    assert (at["fresh_usd"], at["visible_usd"]) == (Decimal("1.36"), Decimal("0.00021"))
    assert (at["is_long_context"], above["is_long_context"]) == (False, True)
    assert above["fresh_usd"] == Decimal("2.72001")
    assert at["usd"] == at["fresh_usd"] + at["visible_usd"]
    assert (unknown["usd"], unknown["unpriced_tokens"], unknown["price_source"]) == (
        None,
        105,
        None,
    )
    assert (unknown["fresh_usd"], unknown["visible_usd"]) == (None, None)
    assert "no price is known of no-such-model" in unknown["price_note"]
    assert (failed["usd"], failed["unpriced_tokens"], failed["has_usage"]) == (None, 0, False)
    assert flex["usd"] == Decimal("0.0000063125")  # 2 x 0.625 + 1 x 0.0625 + 1 x 5, a million
    assert flex["reported_usd"] == Decimal("0.5")
    # 10 x 5.5 + 7 x 6.875 + 1 x 27.5, a million, and three searches
    assert claude["usd"] == Decimal("0.000130625") + Decimal("0.03")
    assert (claude["is_lower_bound"], claude["tools_usd"]) == (True, Decimal("0.03"))
    assert claude["price_source"] == "override"
    assert (undated["usd"], undated["is_dated"]) == (Decimal("0.00125"), False)
    assert not any(row["is_subscription"] for row in got)
    parts = ("fresh_usd", "read_usd", "write_usd", "visible_usd", "reasoning_usd", "tools_usd")
    for row in got:
        if row["usd"] is not None:
            assert row["usd"] == sum(row[part] or 0 for part in parts)


def test_sound_and_pictures_cost_otherwise(tmp_path):
    usage = {
        "prompt_tokens": 1000, "completion_tokens": 100,
        "prompt_tokens_details": {"audio_tokens": 400, "cached_tokens": 0},
        "completion_tokens_details": {"audio_tokens": 60},
    }  # fmt: skip
    tags = media_tags(usage)
    assert tags == {"input_audio_tokens": "400", "output_audio_tokens": "60"}
    gemini = {"promptTokensDetails": [{"modality": "TEXT", "tokenCount": 5},
                                      {"modality": "AUDIO", "tokenCount": 7}],
              "cacheTokensDetails": [{"modality": "AUDIO", "tokenCount": 2}],
              "candidatesTokensDetails": [{"modality": "IMAGE", "tokenCount": 1290}]}  # fmt: skip
    assert media_tags(gemini) == {
        "input_audio_tokens": "7", "read_audio_tokens": "2", "output_image_tokens": "1290",
    }  # fmt: skip
    rows = [
        {"model": "gpt-4o-audio-preview", "started_at": "2025-06-01T00:00:00Z", "usage": usage,
         "tags": tags},
        {"model": "gpt-4o-audio-preview", "started_at": "2025-06-01T00:00:00Z", "usage": usage},
    ]  # fmt: skip
    sound, text = priced(tmp_path, rows)
    quote = BOOK.at(Lane("gpt-4o-audio-preview"), ns("2025-06-01"), 1000).prices
    assert quote["input_audio"] > quote["input"]
    expected = 600 * quote["input"] + 400 * quote["input_audio"]
    assert sound["fresh_usd"] == expected / MILLION
    expected = 40 * quote["output"] + 60 * quote["output_audio"]
    assert sound["visible_usd"] == expected / MILLION
    assert text["fresh_usd"] == 1000 * quote["input"] / MILLION


def test_reported_costs_stand_beside_ours(tmp_path):
    rows = [
        {
            "model": "gpt-5",
            "started_at": "2026-11-01T00:00:00Z",
            "usage": chat(1000),
            "cost_usd": usd,
        }
        for usd in ("0.00125", "0.0013", "0.00125")
    ] + [{"model": "what", "usage": chat(1), "cost_usd": "1"}]
    folder = records(tmp_path / "in", rows)
    with engine_of(case_of(folder, tmp_path / "case.duckdb")) as engine:
        told = engine.rows("SELECT * FROM cost_reported ORDER BY model")
    assert [(r["model"], r["requests"], r["differ"], r["unpriced"]) for r in told] == [
        ("gpt-5", 3, 1, 0), ("what", 1, 0, 1),
    ]  # fmt: skip
    assert (told[0]["usd"], told[0]["reported_usd"]) == (Decimal("0.00375"), Decimal("0.0038"))


def test_a_price_file_with_dates_and_terms(tmp_path):
    prices = {
        "providers": {"openai": {"discount": 0.2, "batch": 0.25}},
        "models": {
            "zeta": [
                {"input": 4, "output": 20},
                {"valid_from": "2026-07-01T00:00:00Z", "input": 3,
                 "long_context": {"above_input_tokens": 1000, "input": 6}},
            ]
        },
    }  # fmt: skip
    rows = [
        {"model": "zeta", "started_at": "2026-06-30T23:59:59.999999Z", "usage": chat(2000, 1)},
        {"model": "zeta", "started_at": "2026-07-01T00:00:00Z", "usage": chat(1000, 1)},
        {"model": "zeta", "started_at": "2026-07-01T00:00:00Z", "usage": chat(1001, 1)},
        {"model": "gpt-5", "started_at": "2026-07-01T00:00:00Z", "usage": chat(1000)},
        {"model": "gpt-5", "started_at": "2026-07-01T00:00:00Z", "usage": chat(1000),
         "service_tier": "batch"},
        {"model": "zeta", "started_at": "2026-07-01T00:00:00Z", "usage": chat(1000, 0, cached=400)},
    ]  # fmt: skip
    got = priced(tmp_path, rows, prices)
    assert [row["usd"] for row in got] == [
        Decimal("0.00802"), Decimal("0.00302"), Decimal("0.006026"), Decimal("0.001"),
        Decimal("0.00025"), Decimal("0.0018"),
    ]  # fmt: skip
    assert {row["price_source"] for row in got} == {"price file"}
    assert got[-1]["unpriced_tokens"] == 400  # the file has no price of the cache
    assert got[1]["price_date"] == "2026-07-01"


@pytest.mark.parametrize(("off", "usd"), [(0.2, "0.001"), (1, "0")])
def test_a_discount_may_be_all_of_the_price(tmp_path, off, usd):
    rows = [{"model": "gpt-5", "started_at": "2026-07-01T00:00:00Z", "usage": chat(1000)}]
    (row,) = priced(tmp_path, rows, {"providers": {"openai": {"discount": off}}})
    assert (row["usd"], row["price_source"]) == (Decimal(usd), "price file")


def test_prices_in_another_currency_are_named_and_not_taken_for_dollars(tmp_path):
    rows = [
        {"model": model, "started_at": "2026-11-01T00:00:00Z", "usage": chat(1000)}
        for model in ("gpt-5", "zeta")
    ]
    prices = {"currency": "EUR", "models": {"gpt-5": {"input": 1}, "zeta": {"input": 1}}}
    known, own = priced(tmp_path, rows, prices)
    assert (known["usd"], known["price_source"]) == (Decimal("0.00125"), "genai-prices")
    assert (own["usd"], own["unpriced_tokens"]) == (None, 1000)
    assert "EUR" in known["price_note"]
    assert "EUR" in own["price_note"]


@needs_shared
def test_a_messy_transcript_costs_what_it_costs(tmp_path):
    db = case_of(SHARED / "scenarios/A13/main", tmp_path / "case.duckdb")
    with engine_of(db) as engine:
        (row,) = engine.rows(
            "SELECT count(*) AS n, sum(usd) AS usd, sum(unpriced_tokens) AS unpriced, "
            "min(price_version) AS version, min(CAST(is_subscription AS INTEGER)) AS plan "
            "FROM cost_request"
        )
    assert (row["n"], row["usd"], row["unpriced"]) == (70, Decimal("2.1542"), 0)
    assert (row["version"], row["plan"]) == ("prices.json", 1)


def test_only_lanes_pass_through_python(tmp_path):
    rows = [
        {"model": "gpt-5", "started_at": f"2026-{1 + i % 12:02}-{1 + i % 28:02}T00:00:00Z",
         "usage": chat(1000 + i)}
        for i in range(300)
    ]  # fmt: skip
    folder = records(tmp_path / "in", rows)
    with engine_of(case_of(folder, tmp_path / "case.duckdb")) as engine:
        assert engine.value("SELECT count(*) FROM resolve_unit_price") == 1
        assert engine.value("SELECT count(*) FROM cost_request WHERE usd > 0") == 300
        check = engine.rows("SELECT * FROM cost_price_check")
    assert check == []


@needs_shared
def test_a_copy_of_the_second_catalog_is_read_and_held_against_ours(tmp_path):
    catalog = SHARED / "formats/samples/clients/prices/litellm_model_prices_subset_1.110.2.json"
    rows = [
        {"model": model, "started_at": "2026-11-01T00:00:00Z", "usage": chat(300_000, 10)}
        for model in ("claude-sonnet-4-5", "gpt-5", "claude-sonnet-4-6")
    ]
    folder = records(tmp_path / "in", rows)
    (folder / "model_prices.json").write_bytes(catalog.read_bytes())
    with engine_of(case_of(folder, tmp_path / "case.duckdb")) as engine:
        source = engine.rows("SELECT * FROM source WHERE reader = 'litellm_prices'")[0]
        gold = engine.rows("SELECT * FROM price WHERE model = 'gpt-5.6' ORDER BY ALL")
        told = engine.rows("SELECT * FROM cost_price_check ORDER BY token_kind")
    assert (source["records"], source["problems"]) == (955, 0)
    long = {r["token_kind"]: r for r in gold if r["above_input_tokens"] == 272_000}
    assert long["cache_write_short"]["usd_per_million_tokens"] == 10
    assert long["cache_write_long"]["usd_per_million_tokens"] is not None
    assert [(r["model"], r["token_kind"], r["other_source"]) for r in told] == [
        ("claude-sonnet-4-5", "input", "litellm"), ("claude-sonnet-4-5", "output", "litellm"),
    ]  # fmt: skip
    assert told[0]["difference_usd"] < 0


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("prices.json", '{"unit": "per_million_tokens", "valid_from": "2026-03-09", "models": '
         '{"a": {"input": 1}}}'),
        ("prices.toml", 'unit = "per_million_tokens"\nvalid_from = 2026-03-09\n'
         '[models.a]\ninput = 1\n'),
    ],
)  # fmt: skip
def test_a_date_alone_is_its_first_moment(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    with engine_of(case_of(tmp_path / name, tmp_path / "case.duckdb")) as engine:
        assert engine.value("SELECT min(valid_from_ns) FROM price") == 1_773_014_400_000_000_000


# --- price files that are wrong ------------------------------------------------------------------


GOOD = {"unit": "per_million_tokens", "models": {"zeta": {"input": "1.5", "output": 6}}}


def ingested(tmp_path, text):
    """What is said of a price file beside one request: outcome or reason, problems, assumptions."""
    folder = records(
        tmp_path / "in",
        [{"model": "zeta", "started_at": "2026-07-01T00:00:00Z", "usage": chat(1000, 10)}],
    )
    (folder / "prices.json").write_text(text)
    out = analyzer.ingest(str(tmp_path / "case.duckdb"), [str(folder)])
    (file,) = [one for one in out.files if one.path.endswith("prices.json")]
    assumed = [note for path, note in out.assumed if path.endswith("prices.json")]
    return file.why, [problem["reason"] for problem in out.problems], assumed


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda text: text[:-20], "not valid JSON at line "),
        (lambda text: text.replace('"1.5",', '"1.5"'), "not valid JSON at line 6"),
        (lambda text: text.replace("1.5", "1,5"), "zeta: 'input' is no amount of money"),
        (lambda text: text.replace('"input": "1.5",', "").replace('"output": 6', ""), "no price"),
    ],
)
def test_a_wrong_price_file_is_a_problem_that_says_where(tmp_path, change, says):
    _, problems, _ = ingested(tmp_path, change(json.dumps(GOOD, indent=1)))
    assert len(problems) == 1
    assert says in problems[0]


def test_a_log_that_talks_about_price_files_is_none(tmp_path):
    said = "models: input, " + json.dumps(GOOD, indent=1)
    lines = [
        {"model": "zeta", "started_at": "2026-07-01T00:00:00Z", "usage": chat(1000, 10)}
        | {"id": str(number), "tags": {"said": said}}
        for number in range(2)
    ]
    out = analyzer.ingest(str(tmp_path / "case.duckdb"), [str(records(tmp_path / "in", lines))])
    assert [(one.outcome, one.reader) for one in out.files] == [("read", "request_records")]


def test_a_price_file_in_another_unit_is_said_to_be_one(tmp_path):
    why, _, _ = ingested(tmp_path, json.dumps(GOOD | {"unit": "per_token"}))
    assert "a price file has to say 'unit': 'per_million_tokens'" in why


def test_a_key_that_means_nothing_is_named(tmp_path):
    wrong = {"input": 1, "ouput": 6, "_why": "a contract", "long_context": {
        "above_input_tokens": 9, "inptu": 2,
    }}  # fmt: skip
    _, problems, assumed = ingested(tmp_path, json.dumps(GOOD | {"models": {"zeta": wrong}}))
    assert problems == []
    assert assumed == [
        "the key 'inptu' of zeta is not known, and not used: did you mean 'input'?",
        "the key 'ouput' of zeta is not known, and not used: did you mean 'output'?",
    ]


@pytest.mark.parametrize(
    ("listed", "used", "says"),
    [
        ("zetta", "zeta", "prices.json has zetta: name it as the log does, if it is the same"),
        ("gpt-4o-mimi", "gpt-4o-mini", "prices.json has gpt-4o-mimi, which no request names; gpt"),
        ("claude-sonet-4-5", "claude-sonnet-4-5-20250929", "which no request names; claude-sonnet"),
        ("gpt-4o", "gpt-4o-mini", None),
        ("claude-opus-4-5", "claude-sonnet-4-5", None),
        ("gpt-5", "gpt-5-mini", None),
    ],
)
def test_a_misspelt_model_is_asked_about(tmp_path, listed, used, says):
    rows = [{"model": used, "started_at": "2026-07-01T00:00:00Z", "usage": chat(1000, 10)}]
    folder = records(tmp_path / "in", rows, {"models": {listed: {"input": 1, "output": 2}}})
    notes = " ".join(api.cost(case_of(folder, tmp_path / "case.duckdb")).notes)
    assert ("prices.json has" in notes) is (says is not None)
    assert (says or "") in notes


def test_prices_in_another_currency_are_named_with_their_file(tmp_path):
    rows = [{"model": "zeta", "started_at": "2026-07-01T00:00:00Z", "usage": chat(1000, 10)}]
    book = {"currency": "EUR", "models": {"zeta": {"input": 1, "output": 2}}}
    db = case_of(records(tmp_path / "in", rows, book), tmp_path / "case.duckdb")
    (note,) = [one for one in api.cost(db).notes if "EUR" in one]
    assert "prices of prices.json in EUR are not used: give US dollars" in note

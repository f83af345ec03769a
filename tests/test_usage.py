"""Usage objects as disjoint buckets: 1,577 recorded bodies, and the traps of each vendor."""

import json
from functools import cache

import pytest
from shared import SHARED, needs_shared
from test_readers import READERS, read, rows_of

from analyzer.readers._file import InputFile
from analyzer.readers._find import pick
from analyzer.readers._usage import (
    BUCKETS,
    merged_usage,
    token_buckets,
    usage_contradiction,
)

CORPUS = SHARED / "formats/samples/clients/provider-raw/genai_prices_usages.json"
INPUTS, WRITES, OUTPUTS = BUCKETS[:5], BUCKETS[2:5], BUCKETS[5:]

# Where our answer is another than the recorded one: how many bodies, and why ours is the better.
EXCEPTIONS = {
    "num_cached_tokens": (
        29,
        "Mistral's count of the cached part of prompt_tokens, which the recorder did not read",
    ),
    "compaction": (
        2,
        "the vendor's totals leave out the compaction pass of the same request, which is billed: "
        "the recorded answer has 180 of 55,376 prompt tokens",
    ),
}


@cache
def corpus():
    return json.loads(CORPUS.read_text())


def usage_of(body):
    return next(body[name] for name in ("usage", "usageMetadata", "meta") if name in body)


def recorded(entry):
    """The usage that the extractor of the body's own vendor gave; the others misread it."""
    usage = usage_of(entry["body"])
    if "usageMetadata" in entry["body"]:
        wanted = ["google/default"]
    elif "inputTokens" in usage:
        wanted = ["aws/default"]
    elif "billed_units" in usage:
        wanted = ["cohere/tokens", "cohere/embeddings"]
    elif "prompt_tokens" in usage:
        wanted = ["openai/chat", "openai/embeddings"]
    elif "cache_creation_input_tokens" in usage:
        wanted = ["anthropic/default"]
    else:
        wanted = ["openai/responses"]
    names = {
        f"{one['provider_id']}/{one['api_flavor']}": some["usage"]
        for some in entry["extracted"]
        for one in some["extractors"]
    }
    return next(names[name] for name in wanted if name in names)


def summed(buckets, names):
    return sum(buckets.get(name) or 0 for name in names)


def ours(buckets):
    """Our buckets in the recorder's words; it leaves out what is 0."""
    told = {
        "input_tokens": summed(buckets, INPUTS),
        "output_tokens": summed(buckets, OUTPUTS),
        "cache_read_tokens": buckets.get("cache_read_tokens"),
        "cache_write_tokens": summed(buckets, WRITES),
        "output_reasoning_tokens": buckets.get("output_reasoning_tokens"),
    }
    return {name: tokens for name, tokens in told.items() if tokens}


def exception(usage):
    """Name of the exception a body falls under."""
    if usage.get("num_cached_tokens"):
        return "num_cached_tokens"
    passes = usage.get("iterations") or ()
    return "compaction" if any(one["type"] == "compaction" for one in passes) else None


@needs_shared
def test_recorded_bodies_give_the_usage_recorded_with_them():
    assert len(corpus()) == 1_577
    other = dict.fromkeys(EXCEPTIONS, 0)
    names = ours(dict.fromkeys(BUCKETS, 1))
    for entry in corpus():
        usage = usage_of(entry["body"])
        buckets = token_buckets(usage)
        want = {name: tokens for name, tokens in recorded(entry).items() if name in names}
        if (why := exception(usage)) is not None:
            other[why] += 1
            assert ours(buckets) != want, f"{why} is no exception any more"
        else:
            assert ours(buckets) == want, usage
        assert all(tokens is None or tokens >= 0 for tokens in map(buckets.get, BUCKETS))
    assert other == {name: count for name, (count, _) in EXCEPTIONS.items()}


@needs_shared
def test_recorded_cache_writes_keep_their_lifetime():
    lived = 0
    for entry in corpus():
        want = recorded(entry)
        if "cache_write_5m_tokens" not in want or exception(usage_of(entry["body"])):
            continue
        buckets = token_buckets(usage_of(entry["body"]))
        assert buckets["cache_write_short_tokens"] == want["cache_write_5m_tokens"]
        assert buckets["cache_write_long_tokens"] == buckets["cache_write_unknown_tokens"] == 0
        lived += 1
    assert lived == 12


@needs_shared
def test_only_two_recorded_totals_contradict_their_parts():
    bad = [one["body"] for one in corpus() if usage_contradiction(usage_of(one["body"]))]
    # Gemini behind the chat API: its thoughts are in the total only, and nothing says so.
    assert [body["usage"]["total_tokens"] for body in bad] == [109, 100]


@needs_shared
def test_recorded_bodies_as_a_file(tmp_path):
    bodies = [{k: v for k, v in one["body"].items() if k != "file"} for one in corpus()]
    file = tmp_path / "bodies.jsonl"
    file.write_text("".join(json.dumps(body) + "\n" for body in bodies))
    assert pick(InputFile(file, file.name).head).reader is READERS["usage_bodies"]
    batches = read(READERS["usage_bodies"], file)
    rows = [row for table, row in rows_of(batches) if table == "request"]
    assert len(rows) == 1_577
    assert sum(len(batch.problems) for batch in batches) == 2
    for row, body in zip(rows, bodies, strict=True):
        assert ours(row) == ours(token_buckets(usage_of(body)))
        assert row.get("model") == body.get("model", body.get("modelVersion"))
    costs = [row["reported_cost_usd"] for row in rows if "reported_cost_usd" in row]
    assert len(costs) == sum("cost" in usage_of(body) for body in bodies)
    queues = [row["queue_ns"] for row in rows if "queue_ns" in row]
    assert len(queues) == sum("queue_time" in usage_of(body) for body in bodies)


def buckets(**told):
    return {name: told.pop(name, None) for name in BUCKETS} | told


INCLUSIVE, EXCLUSIVE = {"usage_convention": "inclusive"}, {"usage_convention": "exclusive"}


@pytest.mark.parametrize(
    ("usage", "told"),
    [
        (  # what was written is a part of the prompt, and keeps its lifetime
            {
                "prompt_tokens": 1000,
                "completion_tokens": 5,
                "prompt_tokens_details": {
                    "cached_tokens": 100,
                    "cache_write_tokens": 800,
                    "cache_write_tokens_details": {"ttl_30m_tokens": 500},
                },
            },
            buckets(
                input_fresh_tokens=100, cache_read_tokens=100, cache_write_short_tokens=500,
                cache_write_unknown_tokens=300, output_visible_tokens=5, **INCLUSIVE,
            ),
        ),
        (  # old relays of DeepSeek tell hits and misses alone
            {"prompt_cache_hit_tokens": 900, "prompt_cache_miss_tokens": 100},
            buckets(input_fresh_tokens=100, cache_read_tokens=900, **INCLUSIVE),
        ),
        (  # reasoning beside the completion (xAI): the total shows it
            {
                "prompt_tokens": 50, "completion_tokens": 400, "total_tokens": 650,
                "completion_tokens_details": {"reasoning_tokens": 200},
            },
            buckets(
                input_fresh_tokens=50, output_visible_tokens=400, output_reasoning_tokens=200,
                **INCLUSIVE,
            ),
        ),
        (  # ... or that there is more of it than of the completion
            {
                "prompt_tokens": 50, "completion_tokens": 40,
                "completion_tokens_details": {"reasoning_tokens": 200},
            },
            buckets(
                input_fresh_tokens=50, output_visible_tokens=40, output_reasoning_tokens=200,
                **INCLUSIVE,
            ),
        ),
        (  # a relay that adds what was cached to the prompt (LiteLLM)
            {
                "prompt_tokens": 1000, "completion_tokens": 10, "total_tokens": 1010,
                "cache_read_input_tokens": 700, "cache_creation_input_tokens": 200,
            },
            buckets(
                input_fresh_tokens=100, cache_read_tokens=700, cache_write_unknown_tokens=200,
                output_visible_tokens=10, **INCLUSIVE,
            ),
        ),
        (  # a relay that does not: the total shows it
            {
                "prompt_tokens": 1000, "completion_tokens": 10, "total_tokens": 1910,
                "cache_read_input_tokens": 700, "cache_creation_input_tokens": 200,
            },
            buckets(
                input_fresh_tokens=1000, cache_read_tokens=700, cache_write_unknown_tokens=200,
                output_visible_tokens=10, **EXCLUSIVE,
            ),
        ),
        (  # ... or that more was cached than asked
            {"prompt_tokens": 4, "completion_tokens": 10, "cache_read_input_tokens": 700},
            buckets(
                input_fresh_tokens=4, cache_read_tokens=700, output_visible_tokens=10, **EXCLUSIVE
            ),
        ),
        (  # a total that fits neither: nobody can say what was fresh
            {
                "prompt_tokens": 1000, "completion_tokens": 10, "total_tokens": 1500,
                "cache_read_input_tokens": 700,
            },
            buckets(
                cache_read_tokens=700, output_visible_tokens=10, usage_convention="unknown",
                usage_contradiction="the total of tokens is not the sum of its parts",
            ),
        ),
        (  # Anthropic's names with inclusive counts, as some agents log OpenAI's models
            {
                "input_tokens": 1000, "output_tokens": 10, "total_tokens": 1010,
                "cache_read_input_tokens": 700,
            },
            buckets(
                input_fresh_tokens=300, cache_read_tokens=700, output_visible_tokens=10,
                **INCLUSIVE,
            ),
        ),
        (  # a creation total of 0 beside a split of 100: the split was written
            {
                "input_tokens": 7, "output_tokens": 1, "cache_creation_input_tokens": 0,
                "cache_creation": {"ephemeral_5m_input_tokens": 100},
            },
            buckets(
                input_fresh_tokens=7, cache_write_short_tokens=100, cache_write_unknown_tokens=0,
                output_visible_tokens=1, **EXCLUSIVE,
                usage_contradiction="the cache writes by lifetime exceed their total",
            ),
        ),
        (  # a compaction that is in the totals already is not added again
            {
                "input_tokens": 30, "output_tokens": 3,
                "iterations": [
                    {"type": "compaction", "input_tokens": 20, "output_tokens": 2},
                    {"type": "message", "input_tokens": 10, "output_tokens": 1},
                ],
            },
            buckets(input_fresh_tokens=30, output_visible_tokens=3, **EXCLUSIVE),
        ),
        (  # the AI SDK hands on what the vendor counted; without a total nobody can say
            {"inputTokens": 1000, "outputTokens": 10, "cachedInputTokens": 600},
            buckets(cache_read_tokens=600, output_visible_tokens=10, usage_convention="unknown"),
        ),
        (
            {
                "inputTokens": 1000, "outputTokens": 10, "totalTokens": 1010,
                "cachedInputTokens": 600, "reasoningTokens": 4,
            },
            buckets(
                input_fresh_tokens=400, cache_read_tokens=600, output_visible_tokens=6,
                output_reasoning_tokens=4, **INCLUSIVE,
            ),
        ),
        (
            {
                "input_tokens": 900, "cached_input_tokens": 500, "output_tokens": 70,
                "reasoning_output_tokens": 50, "total_tokens": 970,
            },
            buckets(
                input_fresh_tokens=400, cache_read_tokens=500, output_visible_tokens=20,
                output_reasoning_tokens=50, **INCLUSIVE,
            ),
        ),
        (  # counts of 0 are left out by Gemini: the total shows that they are 0
            {"promptTokenCount": 10, "thoughtsTokenCount": 5, "totalTokenCount": 15},
            buckets(
                input_fresh_tokens=10, cache_read_tokens=0, output_visible_tokens=0,
                output_reasoning_tokens=5, **INCLUSIVE,
            ),
        ),
        (  # ... and where it shows nothing they are not told
            {"promptTokenCount": 10},
            buckets(input_fresh_tokens=10, **INCLUSIVE),
        ),
        (  # two names of one count are not added
            {
                "inputTokens": 433, "outputTokens": 16, "totalTokens": 3201,
                "cacheReadInputTokens": 2752, "cacheReadInputTokenCount": 2752,
            },
            buckets(
                input_fresh_tokens=433, cache_read_tokens=2752, output_visible_tokens=16,
                **EXCLUSIVE,
            ),
        ),
        (
            {"inputTokenCount": 4, "outputTokenCount": 9, "cacheReadInputTokenCount": 18},
            buckets(
                input_fresh_tokens=4, cache_read_tokens=18, output_visible_tokens=9, **EXCLUSIVE
            ),
        ),
    ],
)  # fmt: skip
def test_conventions(usage, told):
    assert token_buckets(usage) == told


@pytest.mark.parametrize(
    "usage", [None, {}, [], "usage", 3, {"prompt_tokens_details": {}}, {"input": 3, "output": 4}]
)
def test_no_usage_gives_no_columns(usage):
    assert token_buckets(usage) == {}


@pytest.mark.parametrize("count", [-1, 1.5, True, "7", None, [], float("inf")])
def test_what_is_no_count_is_not_told(count):
    told = token_buckets({"prompt_tokens": count, "completion_tokens": 2})
    assert told["input_fresh_tokens"] is None
    assert told["output_visible_tokens"] == 2


def test_running_totals_keep_their_last_word():
    start = {"input_tokens": 12, "cache_read_input_tokens": 9, "output_tokens": 1}
    usage = merged_usage(start, {"output_tokens": 40})
    usage = merged_usage(usage, {"output_tokens": 64, "cache_read_input_tokens": None})
    usage = merged_usage(usage, None)
    assert usage == {"input_tokens": 12, "cache_read_input_tokens": 9, "output_tokens": 64}
    assert merged_usage(None, {}) is None


@pytest.mark.parametrize(
    ("usage", "wrong"),
    [
        ({"prompt_tokens": 5, "completion_tokens": 5, "total_tokens": 10}, ""),
        ({"prompt_tokens": 5, "completion_tokens": 5, "total_tokens": 11}, "total"),
        (
            {
                "input_tokens": 5,
                "cache_creation_input_tokens": 0,
                "cache_creation": {"ephemeral_1h_input_tokens": 3},
            },
            "lifetime",
        ),
        (  # half of the split is told: the rest was written for a lifetime nobody names
            {
                "input_tokens": 5,
                "cache_creation_input_tokens": 9,
                "cache_creation": {"ephemeral_5m_input_tokens": 3},
            },
            "",
        ),
        (
            {
                "input_tokens": 5,
                "cache_creation_input_tokens": 9,
                "cache_creation": {
                    "ephemeral_5m_input_tokens": 3,
                    "ephemeral_1h_input_tokens": 0,
                },
            },
            "less than their total",
        ),
        (  # a split of zeros was never filled in
            {
                "input_tokens": 5,
                "cache_creation_input_tokens": 9,
                "cache_creation": {
                    "ephemeral_5m_input_tokens": 0,
                    "ephemeral_1h_input_tokens": 0,
                },
            },
            "",
        ),
        (
            {
                "prompt_tokens": 5,
                "completion_tokens": 1,
                "total_tokens": 6,
                "prompt_tokens_details": {"cached_tokens": 9},
            },
            "more tokens are cached",
        ),
        (  # the total says that the prompt leaves out what was cached
            {
                "prompt_tokens": 5,
                "completion_tokens": 1,
                "total_tokens": 15,
                "prompt_tokens_details": {"cached_tokens": 9},
            },
            "",
        ),
        ({"input_tokens": 4, "output_tokens": 1, "cache_read_input_tokens": 9_000}, ""),
        (
            {
                "inputTokens": 433,
                "cacheReadInputTokens": 2_752,
                "outputTokens": 16,
                "totalTokens": 3_201,
            },
            "",
        ),
        (
            {
                "promptTokenCount": 5,
                "candidatesTokenCount": 2,
                "thoughtsTokenCount": 4,
                "totalTokenCount": 11,
            },
            "",
        ),
        (None, ""),
    ],
)
def test_contradictions_are_named(usage, wrong):
    found = usage_contradiction(usage)
    assert (wrong in found) if wrong else found == ""

"""Row keys of ``analyze cost``."""

from __future__ import annotations

import pyarrow as pa

from analyzer.contract._columns import INT as _I
from analyzer.contract._columns import MONEY as _U
from analyzer.contract._columns import REAL as _F
from analyzer.contract._columns import TEXT as _S
from analyzer.contract._columns import row as _row

COST_GROUPS = (
    "model", "provider", "route", "user", "key", "team", "session", "agent", "tier", "source",
    "day", "hour", "part",
)  # fmt: skip
"""What ``analyze cost --by`` takes; ``part`` is the make-up of the prompt and the answer."""

_HOW = {
    "user": "as a hash",
    "key": "API key, as a hash",
    "agent": "main, or a sub-agent's thread",
    "day": "date in the zone asked for",
    "hour": "hour in that zone, with its offset from UTC",
    "part": "tools, system, user, ...; output, reasoning",
}

_LISTED = pa.list_(pa.field("item", _S, nullable=False))
COST: dict[str, pa.Schema] = {
    "analyze.cost": _row(
        "One group of requests, or all of them: what they used, and what it costs.",
        *(
            (name, _S, "", f"group: {_HOW.get(name, name)} (with --by); NULL = not told")
            for name in COST_GROUPS
        ),
        ("requests", _I, "requests", "requests with their usage"),
        ("input_fresh_tokens", _I, "tokens", "prompt outside the cache"),
        ("cache_read_tokens", _I, "tokens", "prompt read from the cache"),
        ("cache_write_tokens", _I, "tokens", "prompt written to the cache"),
        ("output_tokens", _I, "tokens", "answers, reasoning included"),
        ("reasoning_tokens", _I, "tokens", "of it reasoning, where told"),
        ("cost_usd", _U, "usd", "what is priced of it; NULL = nothing is"),
        ("share", _F, "ratio", "of all cost"),
        ("unpriced_tokens", _I, "tokens", "tokens without a known price, in no cost"),
        ("answers", _I, "1", "operations that were answered, each counted once over its attempts"),
        ("usd_per_answer", _U, "usd", "cost over those of them that have a price"),
        ("api_equivalent_usd", _U, "usd", "of the cost: included in a plan, never billed so"),
        ("reported_usd", _U, "usd", "what the sources themselves say it cost, where they do"),
        ("price_source", _S, "", "price file, override, genai-prices or litellm"),
        ("price_version", _S, "", "version of the catalog, or path of the file"),
        ("price_date", _S, "", "newest day from which one of these prices holds; NULL = always"),
    ),
    "analyze.cost.waste": _row(
        "Money that bought nothing, or could have been less; no token stands in two lines.",
        ("kind", _S, "", "what it went for"),
        ("why", _S, "", "reason, as the analyses of turns and outcomes tell it"),
        ("requests", _I, "requests", "requests it concerns"),
        ("tokens", _I, "tokens", "tokens paid for too much; NULL = not told"),
        ("cost_usd", _U, "usd", "what they cost too much; NULL = a price or the usage is missing"),
        ("share", _F, "ratio", "of all cost; NULL = on a bill alone, so no part of it"),
        ("confidence", _S, "", "measured, derived or suspected"),
    ),
    "analyze.cost.bridge": _row(
        "What changed between two windows, the largest part first; the parts add up exactly.",
        ("factor", _S, "", "calls, retries, model mix, input per call, cache-read share, ..."),
        ("cost_usd", _U, "usd", "what it added; negative = saved"),
        ("share", _F, "ratio", "of the difference; NULL = the windows cost the same"),
        ("before", _F, "", "its figure in the baseline, over all models; NULL = no single figure"),
        ("after", _F, "", "in the window"),
        ("unit", _S, "", "of these figures"),
        ("drivers", _S, "", "groups that made most of it, with their money"),
    ),
    "analyze.cost.self_host": _row(
        "What the API took for these requests, beside GPUs of one's own at an attained efficiency.",
        ("model", _S, "", "model that would run there"),
        ("gpu", _S, "", "part of the catalog"),
        ("gpus", _I, "1", "of them a replica"),
        ("weights", _S, "", "format of the weights"),
        ("requests", _I, "requests", "requests that tell their time and their prompt"),
        ("hours", _F, "h", "from the first to the end of the last"),
        ("tokens_per_day", _I, "tokens", "prompts and answers, at the observed rate"),
        ("prompt_tokens", _I, "tokens", "mean prompt"),
        ("cached_tokens", _I, "tokens", "of it read from a cache"),
        ("output_tokens", _I, "tokens", "mean answer"),
        ("in_flight", _I, "requests", "most at one moment; NULL = durations are not told"),
        ("api_usd_per_million", _U, "usd", "a million tokens at the API; NULL = no price"),
        ("own_usd_per_million", _U, "usd", "with replicas for the busiest hour, all the time"),
        (
            "full_usd_per_million",
            _U,
            "usd",
            "with replicas that never idle: no fleet is cheaper",
        ),
        ("usd_per_gpu_hour", _U, "usd", "rent of one GPU"),
        ("efficiency", _F, "ratio", "of the hardware's bound, attained"),
        ("batch", _I, "sequences", "sequences that decode together"),
        ("mean_load", _F, "replicas", "busy on average"),
        ("peak_load", _F, "replicas", "busy in the busiest hour"),
        ("replicas", _I, "replicas", "rented"),
        ("used", _F, "ratio", "of the rented time"),
        ("break_even_tokens_per_day", _I, "tokens", "a replica pays from here on; NULL = never"),
        ("api_ttft_ms", _F, "ms", "median time to first token, observed"),
        ("own_ttft_ms", _F, "ms", "prefill alone, no queue"),
        ("api_tpot_ms", _F, "ms", "median time per output token, observed"),
        ("own_tpot_ms", _F, "ms", "with that batch"),
        ("cost", _S, "", "of the API: fails, holds or cannot say"),
        ("latency", _S, "", "likewise: fails where a median is 1.5 times one's own"),
        ("data_boundary", _S, "", "cannot say: it stands in no log"),
        ("assumed", _LISTED, "", "what was taken for granted, with the option that changes it"),
    ),
    "analyze.cost.reconciliation": _row(
        "One line of a bill held against the logs: period, model and kind of token.",
        ("bill", _S, "", "who bills; records = a provider's records of single calls"),
        ("period_start_ns", _I, "ns", "the bill's period begins, UTC"),
        ("period_end_ns", _I, "ns", "it ends, exclusive"),
        ("model", _S, "", "model as the logs call it, else as the bill; NULL = not told apart"),
        ("token_kind", _S, "", "kind of token; all = not told apart; NULL = a fee, credit or tax"),
        ("logged_tokens", _I, "tokens", "by the logs"),
        ("billed_tokens", _I, "tokens", "by the bill; NULL = it tells none"),
        ("difference_tokens", _I, "tokens", "billed less logged"),
        ("logged_usd", _U, "usd", "the logs' tokens by our prices; NULL = not priced"),
        ("billed_usd", _U, "usd", "by the bill; NULL = it tells none, or another currency"),
        ("difference_usd", _U, "usd", "billed less logged; without an amount, by our prices"),
        ("class", _S, "", "matched, log only, bill only, price difference, token difference"),
        ("reason", _S, "", "why, as far as found; NULL = no difference"),
        ("evidence", _S, "", "what shows it"),
        (
            "harmless",
            pa.bool_(),
            "",
            "the bill itself tells why, or it is no difference of usage or price",
        ),
        ("counts", pa.bool_(), "", "in the sums: no finer bill tells the same calls"),
        ("material", pa.bool_(), "", "what shares its reason makes a percent of the bill"),
    ),
}

"""What the sums of money leave out, and what they rest on."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from analyzer.engines.duckdb import Engine
from analyzer.questions import price_names

_NAMED = 5
_CENT = Decimal("0.005")

_STATE = """SELECT
  count(CASE WHEN NOT t.is_tracked AND NOT t.is_repeat THEN 1 END) AS billed_only,
  sum(CASE WHEN NOT t.is_tracked AND NOT t.is_repeat THEN c.usd END) AS billed_usd,
  count(CASE WHEN t.is_repeat THEN 1 END) AS repeats,
  sum(CASE WHEN t.is_repeat THEN c.usd END) AS repeats_usd,
  count(CASE WHEN t.is_tracked AND NOT t.is_metered THEN 1 END) AS unmetered,
  count(CASE WHEN t.is_tracked AND NOT t.is_metered AND q.failed THEN 1 END) AS unmetered_failed,
  count(CASE WHEN t.is_metered AND c.is_lower_bound THEN 1 END) AS lower,
  count(CASE WHEN t.is_metered AND c.is_subscription THEN 1 END) AS included,
  sum(CASE WHEN t.is_metered AND c.is_subscription THEN c.usd END) AS included_usd,
  count(CASE WHEN t.is_metered AND NOT c.is_dated AND c.price_source IS NOT NULL THEN 1 END)
    AS undated,
  sum(CASE WHEN t.is_metered THEN c.unpriced_searches END) AS searches
FROM cost_tracked AS t
JOIN cost_request AS c ON t.request_key = c.request_key
JOIN resolve_request AS q ON t.request_key = q.request_key"""
# Calls that two vantages log under ids with nothing in common would count twice.
_TWICE = """WITH told AS (
  SELECT q.outer_vantage AS vantage, q.model, q.input_fresh_tokens AS fresh,
    q.cache_read_tokens AS cached, q.cache_write_tokens AS written, q.output_tokens AS made,
    q.start_ns - q.start_ns % 60000000000 AS minute, count(*) AS n, min(c.usd) AS usd
  FROM cost_tracked AS t
  JOIN cost_request AS c ON t.request_key = c.request_key
  JOIN resolve_request AS q ON t.request_key = q.request_key
  WHERE t.is_metered AND q.vantages = 1 AND q.start_ns IS NOT NULL AND q.output_tokens > 0
  GROUP BY 1, 2, 3, 4, 5, 6, 7
),
alike AS (
  SELECT sum(n) - max(n) AS twice, min(usd) AS usd
  FROM told
  GROUP BY model, fresh, cached, written, made, minute
  HAVING min(vantage) <> max(vantage)
)
SELECT sum(twice) AS requests, sum(twice * usd) AS usd,
  (SELECT min(n) FROM (SELECT sum(n) AS n FROM told GROUP BY vantage) AS sides) AS fewer
FROM alike"""
_FEWEST_TWICE = 5
_UNPRICED = """SELECT coalesce(q.model, 'a model that is not named') AS model,
  min(c.price_note) AS why, count(*) AS requests,
  CAST(sum(c.unpriced_tokens) AS BIGINT) AS tokens
FROM cost_tracked AS t
JOIN cost_request AS c ON t.request_key = c.request_key
JOIN resolve_request AS q ON t.request_key = q.request_key
WHERE t.is_metered AND c.unpriced_tokens > 0
GROUP BY coalesce(q.model, 'a model that is not named')
ORDER BY tokens DESC, model"""
_UPPER = """SELECT count(*) AS requests, CAST(sum(q.input_tokens) AS BIGINT) AS tokens,
  sum(c.fresh_usd) AS usd
FROM cost_tracked AS t
JOIN cost_request AS c ON t.request_key = c.request_key
JOIN resolve_request AS q ON t.request_key = q.request_key
JOIN resolve_unit_price AS u ON c.price_id = u.price_id
WHERE t.is_metered AND q.input_tokens > 0 AND q.cache_read_tokens IS NULL
  AND u.read_usd < u.fresh_usd"""
_REPEATED = """SELECT count(CASE WHEN records > 1 THEN 1 END) AS requests,
  sum(records_usd) AS records_usd, sum(usd) AS usd
FROM cost_repeat WHERE usd IS NOT NULL"""
_REPORTED = """SELECT sum(requests) AS requests, sum(differ) AS differ, sum(usd) AS usd,
  sum(reported_usd) AS reported_usd
FROM cost_reported WHERE usd IS NOT NULL"""
_SAID = """SELECT sum(unpriced) AS requests, sum(unpriced_usd) AS usd FROM cost_reported"""
_SECOND = """SELECT count(DISTINCT model) AS models, min(other_source) AS other_source,
  sum(difference_usd) AS usd
FROM cost_price_check"""


def notes(engine: Engine, total: dict[str, Any], by: tuple[str, ...]) -> tuple[str, ...]:
    """One sentence each, the weightiest first."""
    return tuple(_told(engine, total, by))


def _told(engine: Engine, total: dict[str, Any], by: tuple[str, ...]) -> Iterator[str]:
    (state,) = engine.rows(_STATE)
    if state["included"]:
        yield (
            f"API-equivalent, not a bill: {_requests(state['included'])} may be included in a plan"
            f"{_worth(state['included_usd'])}."
        )
    files = price_names.listed(engine)
    yield from _unpriced(engine, files)
    yield from price_names.misspelt(engine, files)
    if state["searches"]:
        yield f"{state['searches']:,} searches have no known price and are in no sum."
    if state["repeats"]:
        yield (
            f"{_requests(state['repeats'])} that logs of two places (client, gateway, ...) tell "
            f"under ids of their own count{_s(state['repeats'])} once, not twice"
            f"{_worth(state['repeats_usd'])}: models, sizes and starts of nearly all calls of both "
            "logs agree, one to one."
        )
    yield from _twice(engine)
    yield from _upper(engine)
    if state["lower"]:
        yield (
            f"A lower bound: {_requests(state['lower'])} wrote to the cache without telling for "
            f"how long, and count{_s(state['lower'])} as short-lived writes."
        )
    if state["unmetered"]:
        failed = state["unmetered_failed"]
        told = f", {failed:,} of them failed" if failed else ""
        yield (
            f"{_requests(state['unmetered'])} tell{_s(state['unmetered'])} no usage{told}: what "
            "they cost is in no sum."
        )
    if state["billed_only"]:
        yield (
            f"{_records(state['billed_only'])} of the provider beside these logs"
            f"{_worth(state['billed_usd'])} {_are(state['billed_only'])} its bill, and no part of "
            "the total."
        )
    if state["undated"]:
        yield f"{_requests(state['undated'])} tell no time: the case's newest prices are used."
    yield from _checked(engine)
    if "part" in by:
        yield (
            "Parts of a prompt share its tokens by their characters (4 a token where not all of "
            "it is told); the cache is taken to hold the beginning of the prompt."
        )
    if not total["requests"]:
        yield (
            "No request tells its usage, so nothing can be priced: log it with each (OpenAI "
            "streams: stream_options.include_usage), or ingest transcripts."
        )


def _unpriced(engine: Engine, files: dict[str, str]) -> Iterator[str]:
    rows = engine.rows(_UNPRICED)
    if not rows:
        return
    tokens = sum(row["tokens"] for row in rows)
    named = "; ".join(
        f"{row['model']}, {row['tokens']:,} tokens" + price_names.why(row, files)
        for row in rows[:_NAMED]
    )
    more = f"; and {len(rows) - _NAMED} more models" if len(rows) > _NAMED else ""
    yield (
        f"{tokens:,} tokens have no known price and are in no sum: {named}{more}. A price file "
        "(analyze ingest --prices FILE) gives them one."
    )


def _twice(engine: Engine) -> Iterator[str]:
    (row,) = engine.rows(_TWICE)
    if (row["requests"] or 0) >= _FEWEST_TWICE and 2 * row["requests"] >= row["fewer"]:
        yield (
            f"{_requests(row['requests'])} or more may count twice{_worth(row['usd'])}: logs of "
            "two places (client, gateway, ...) tell as many with equal models and tokens in the "
            "same minutes, and no id that both know."
        )


def _upper(engine: Engine) -> Iterator[str]:
    (row,) = engine.rows(_UPPER)
    if row["requests"]:
        do = "does" if row["requests"] == 1 else "do"
        yield (
            f"An upper bound: {_requests(row['requests'])} {do} not tell what was read from a "
            f"cache, so that their {row['tokens']:,} prompt tokens count at the full price."
        )


def _checked(engine: Engine) -> Iterator[str]:
    """Other ways to come by a sum, where they give another one."""
    (again,) = engine.rows(_REPEATED)
    if again["requests"] and abs(again["records_usd"] - again["usd"]) >= _CENT:
        yield (
            f"{_requests(again['requests'])} {_are(again['requests'])} told more than once, and "
            f"{'counts' if again['requests'] == 1 else 'count'} once: adding up all "
            f"records would give ${again['records_usd']:,.2f} in place of ${again['usd']:,.2f}."
        )
    (own,) = engine.rows(_REPORTED)
    if own["differ"]:
        yield (
            f"The sources themselves say {_money(own['reported_usd'])} of "
            f"{_requests(own['requests'])} that cost {_money(own['usd'])} here; "
            f"{own['differ']:,} differ{_s(own['differ'])} by more than 0.5 %."
        )
    (said,) = engine.rows(_SAID)
    if said["requests"]:
        yield (
            f"{_requests(said['requests'])} without a known price here tell{_s(said['requests'])} "
            f"a cost of {'its' if said['requests'] == 1 else 'their'} own{_worth(said['usd'])}: it "
            "stands beside the sums, and in none."
        )
    (second,) = engine.rows(_SECOND)
    if second["models"] and abs(second["usd"]) >= _CENT:
        models = "1 model" if second["models"] == 1 else f"{second['models']:,} models"
        sign = "more" if second["usd"] > 0 else "less"
        yield (
            f"{second['other_source']} has other prices of {models}, by which all would cost "
            f"${abs(second['usd']):,.2f} {sign} (analyze sql 'SELECT * FROM cost_price_check')."
        )


def _requests(number: int) -> str:
    return f"{number:,} request" + ("" if number == 1 else "s")


def _records(number: int) -> str:
    return f"{number:,} record" + ("" if number == 1 else "s")


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


def _s(number: int) -> str:
    return "s" if number == 1 else ""


def _worth(usd: Decimal | None) -> str:
    return "" if usd is None else f" ({_money(usd)})"


def _money(usd: Decimal) -> str:
    return f"${usd:,.2f}" if abs(usd) >= 1 else f"${usd:,.4f}"

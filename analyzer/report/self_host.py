"""The API beside GPUs of one's own, as people read it on a terminal and in Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from analyzer.report.blocks import Block, Grid, Heading, Items, Words
from analyzer.report.turns import shortly
from analyzer.report.values import (
    NONE,
    duration,
    money,
    percent,
    plural,
    raw,
    safe_text,
    significant,
)

if TYPE_CHECKING:
    from analyzer.contract.types import Table

_WORDS = {
    "fails": "the API fails",
    "holds": "the API holds",
    "cannot say": "the log cannot say",
}


def blocks(table: Table) -> list[Block]:
    """What was asked, both sides, the break-even, and everything that was assumed."""
    (row,) = table.rows
    out: list[Block] = [Heading("The API, or GPUs of one's own"), Words(_asked(row))]
    out += [_beside(row), Words(_even(row))]
    out += [Words(note) for note in table.notes]
    return [*out, Heading("assumed", 3), Items(tuple(safe_text(one) for one in row["assumed"]))]


def _asked(row: dict[str, Any]) -> str:
    share = percent(row["cached_tokens"] / row["prompt_tokens"])
    flight = f", at most {row['in_flight']:,} in flight" if row["in_flight"] else ""
    return safe_text(
        f"{row['model']} ({row['weights']}) on {row['replicas']:,} x {row['gpus']} {row['gpu']}, "
        f"for {plural(row['requests'], 'request')} in {significant(row['hours'])} h{flight}: "
        f"prompts of {row['prompt_tokens']:,} tokens ({share} cached), answers of "
        f"{row['output_tokens']:,}."
    )


def _beside(row: dict[str, Any]) -> Grid:
    # The verdict on latency is on both times together: one of them may be the faster at the API.
    lines = (
        ("a million tokens", "usd_per_million", _WORDS[row["cost"]], _usd),
        ("time to first token", "ttft_ms", NONE, _time),
        ("time per output token", "tpot_ms", NONE, _time),
    )
    told = [
        (name, shown(row[f"api_{key}"]), shown(row[f"own_{key}"]), so)
        for name, key, so, shown in lines
    ]
    told += [
        (name.replace("_", " "), NONE, NONE, _WORDS[row[name]])
        for name in ("latency", "data_boundary")
    ]
    return Grid(
        header=("of", "the API", "one's own", "so"),
        rows=tuple(told),
        right=(False, True, True, False),
        keep=(True,) * 4,
        raw=(("", *(raw(row[f"{who}_usd_per_million"], "usd") for who in ("api", "own")), ""),)
        + (("",) * 4,) * 4,
    )


def _even(row: dict[str, Any]) -> str:
    daily = shortly(row["tokens_per_day"])
    peak = significant(row["peak_load"] / row["mean_load"]) if row["mean_load"] else "1"
    used = (
        f"The busiest hour takes {peak} times the mean, so {percent(row['used'])} of the rented "
        f"time is used; filled all the time, a million tokens cost "
        f"{_usd(row['full_usd_per_million'])}."
    )
    if row["api_usd_per_million"] is None:
        return f"{used} The API's price is not known, so there is no break-even."
    if row["break_even_tokens_per_day"] is None:
        return f"{used} At this price and these peaks no volume pays for a replica."
    even = shortly(row["break_even_tokens_per_day"])
    return f"{used} A replica pays from {even} tokens a day on; there are {daily}."


def _usd(value: Any) -> str:  # noqa: ANN401 - DECIMAL or None
    return NONE if value is None else money(value)


def _time(value_ms: float | None) -> str:
    return NONE if value_ms is None else duration(value_ms * 1e6)

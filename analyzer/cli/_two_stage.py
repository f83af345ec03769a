"""The two-stage model as people read it: one request, then the two curves it stops short of."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from analyzer.cli import _console
from analyzer.report import markdown, text
from analyzer.report.blocks import Block, Grid, Heading, Words
from analyzer.report.values import percent

if TYPE_CHECKING:
    from analyzer.contract.types import Table

_BAR = 24
_CURVES = ("batching", "queueing")


def render(table: Table, form: str) -> str:
    """The answer for a terminal or as Markdown."""
    shown = blocks(table)
    if form == "md":
        return markdown.render(shown)
    return text.render(shown, width=_console.width(), color=_console.color())


def flat(table: Table) -> Table:
    """The same rows without their curves, for cells that hold one value."""
    rows = tuple(
        {key: value for key, value in row.items() if key not in _CURVES} for row in table.rows
    )
    return replace(table, rows=rows)


def blocks(table: Table) -> list[Block]:
    """Blocks of the two rows."""
    cached, plain = table.rows
    sizes = f"prompt {cached['prompt_tokens']:,}, output {cached['output_tokens']:,} tokens"
    out: list[Block] = [Words(f"A two-stage server in units of cost: {sizes}.")]
    out += [_one(cached, plain), *(Words(note) for note in table.notes)]
    out += [Heading("Requests that share steps"), Words(_shared(cached)), _batching(cached)]
    out += [Heading("Requests that wait"), Words(_waiting(cached)), _queueing(cached)]
    return out


def _one(cached: dict[str, Any], plain: dict[str, Any]) -> Grid:
    lines = (
        ("TTFT (prefill)", lambda row: f"{row['ttft']:,}"),
        ("decode", lambda row: f"{row['decode']:,}"),
        ("total", lambda row: f"{row['total']:,}"),
        ("average per output token", lambda row: f"{row['per_token']:.1f}".removesuffix(".0")),
        ("step cost first / mid / last", _steps),
        ("throughput, tokens per 1k units", lambda row: f"{row['tokens_per_1k']:.2f}"),
    )
    return Grid(
        ("", "with KV cache", "without"),
        tuple((name, told(cached), told(plain)) for name, told in lines),
        right=(False, True, True),
        keep=(True, True, True),
    )


def _steps(row: dict[str, Any]) -> str:
    return " / ".join(f"{row[f'step_{which}']:,}" for which in ("first", "mid", "last"))


def _shared(row: dict[str, Any]) -> str:
    return (
        f"A batch shares its steps (with KV cache). Up to {row['lanes']} sequences a request "
        "hardly notices; then compute is saturated: throughput stays and latency grows."
    )


def _batching(row: dict[str, Any]) -> Grid:
    most = max(one["tokens_per_1k"] for one in row["batching"])
    return Grid(
        ("batch", "step", "decode", "slower", "tokens/1k", "throughput"),
        tuple(
            (
                f"{one['batch']:,}", f"{one['step']:,.1f}", f"{one['decode']:,.0f}",
                f"{one['slower']:.2f}x", f"{one['tokens_per_1k']:.2f}",
                _bar(one["tokens_per_1k"] / most),
            )
            for one in row["batching"]
        ),
        right=(True,) * 5 + (False,),
        keep=(True,) * 5 + (False,),
    )  # fmt: skip


def _waiting(row: dict[str, Any]) -> str:
    return (
        "Requests arrive at random. The nearer the load comes to capacity, the more of TTFT is "
        f"queue: of a server that takes one at a time, and (approximately) of one with "
        f"{row['lanes']} slots. At or above 100 % the queue never ends."
    )


def _queueing(row: dict[str, Any]) -> Grid:
    return Grid(
        ("load", "queue", "TTFT", "queue share", f"TTFT, {row['lanes']} slots", "queue in TTFT"),
        tuple(
            (
                percent(one["load"]), f"{one['queue']:,.0f}", f"{one['ttft']:,.0f}",
                percent(one["queue_share"]), f"{one['batched_ttft']:,.0f}",
                _bar(one["queue_share"]),
            )
            for one in row["queueing"]
        ),
        right=(True,) * 5 + (False,),
        keep=(True,) * 5 + (False,),
    )  # fmt: skip


def _bar(share: float) -> str:
    return "█" * max(1, round(share * _BAR))

"""The two-stage server as a teaching model: prefill, then decode, in abstract units of cost.

A forward pass of one token costs ``forward_cost``, a read of one cached token ``read_cost``.
Prefill runs the prompt through once. Decode makes one step a token: with a KV cache it forwards
one token and reads what is cached, without one it forwards the whole context again.

Such a model knows one request at a time. :func:`batching` and :func:`queueing` go on where it
stops: what happens when requests share steps, and when they wait for each other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

from analyzer.contract.types import Table
from analyzer.errors import AnalyzerError, near

KIND = "analyze.simulate.two-stage"
LOADS = (0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98)
"""Shares of the capacity that the queueing curve is shown at."""
_LARGEST = 10_000_000
_MORE_THAN_LANES = 8


@dataclass(frozen=True, kw_only=True)
class TwoStage:
    """Sizes of the model; the defaults are the textbook's example."""

    prompt: int = 200
    """Prompt tokens."""
    output: int = 40
    """Output tokens: as many decode steps."""
    forward_cost: int = 12
    """Units to forward one token."""
    read_cost: int = 1
    """Units to read one cached token."""
    lanes: int = 16
    """Sequences whose step the device computes side by side at the price of one."""
    host_cost: int = 1
    """Units that each further sequence adds to a step all the same: scheduling, sampling."""

    def __post_init__(self) -> None:
        least = {"prompt": 1, "output": 1, "forward_cost": 1, "read_cost": 0, "lanes": 1}
        for field in fields(self):
            value, low = getattr(self, field.name), least.get(field.name, 0)
            if not low <= value <= _LARGEST:
                raise AnalyzerError(
                    f"{field.name} = {value:,} is out of range",
                    f"whole numbers from {low:,} to {_LARGEST:,} are taken",
                )


def told(settings: dict[str, str]) -> TwoStage:
    """Sizes from ``key=value`` texts; a key or number that makes no sense is refused."""
    known = [field.name for field in fields(TwoStage)]
    values = {}
    for key, text in settings.items():
        if key not in known:
            meant = near(key, known) or known
            raise AnalyzerError(f"two-stage has no {key!r}", f"it has {', '.join(meant)}")
        try:
            values[key] = int(text.replace(",", "").replace("_", ""))
        except ValueError:
            raise AnalyzerError(
                f"{key} = {text!r} is no whole number", "as in prompt=400"
            ) from None
    return TwoStage(**values)


# --- one request ---------------------------------------------------------------------------------


def ttft(model: TwoStage) -> int:
    """Cost of the prefill; a KV cache does not change it."""
    return model.prompt * model.forward_cost


def step_cost(model: TwoStage, step: int, *, cache: bool) -> int:
    """Cost of decode step ``step``, the first being 0."""
    context = model.prompt + step
    if cache:
        return model.forward_cost + context * model.read_cost
    return (context + 1) * model.forward_cost


def decode_cost(model: TwoStage, *, cache: bool) -> int:
    """Cost of all decode steps: an arithmetic series."""
    first = step_cost(model, 0, cache=cache)
    last = step_cost(model, model.output - 1, cache=cache)
    return (first + last) * model.output // 2


def total_cost(model: TwoStage, *, cache: bool) -> int:
    """Cost of the whole request."""
    return ttft(model) + decode_cost(model, cache=cache)


def saved(model: TwoStage) -> float:
    """Share of the total that the KV cache saves."""
    return 1 - total_cost(model, cache=True) / total_cost(model, cache=False)


# --- beyond it: many requests --------------------------------------------------------------------


def batched_decode(model: TwoStage, batch: int, *, cache: bool) -> float:
    """Units of time that a request's decode takes in a batch of its like.

    Below ``lanes`` a step takes as long as one sequence's, and ``host_cost`` for each further one;
    beyond, the device has no more room and the work of all sequences takes its turn.
    """
    alone = decode_cost(model, cache=cache)
    shared = alone + (batch - 1) * model.host_cost * model.output
    return max(float(shared), batch * alone / model.lanes)


def batching(model: TwoStage, *, cache: bool) -> list[dict[str, Any]]:
    """Batch size against what one request waits and what the device makes."""
    alone = batched_decode(model, 1, cache=cache)
    sizes, size = [], 1
    while size < model.lanes:
        sizes.append(size)
        size *= 2
    size, most = model.lanes, model.lanes * _MORE_THAN_LANES
    while size <= most:
        sizes.append(size)
        size *= 2
    out = []
    for batch in sizes:
        decode = batched_decode(model, batch, cache=cache)
        out.append({
            "batch": batch,
            "step": decode / model.output,
            "decode": decode,
            "slower": decode / alone,
            "tokens_per_1k": 1000 * batch * model.output / decode,
        })  # fmt: skip
    return out


def md1_wait(load: float, service: float) -> float:
    """Mean wait for a server that takes one at a time, always for as long (Pollaczek, Khinchine).

    Arrivals are Poisson; ``load`` is below 1.
    """
    return load * service / (2 * (1 - load))


def erlang_c(servers: int, load: float) -> float:
    """Chance to find all of ``servers`` busy at ``load`` < 1 of their capacity."""
    offered = servers * load
    # Erlang's recursion for the loss: no factorials, so thousands of servers are no trouble.
    blocked = 1.0
    for count in range(1, servers + 1):
        blocked = offered * blocked / (count + offered * blocked)
    return blocked / (1 - load * (1 - blocked))


def mdc_wait(servers: int, load: float, service: float) -> float:
    """Mean wait for one of several slots: half of Erlang's, for the service does not vary."""
    return erlang_c(servers, load) * service / (servers * (1 - load)) / 2


def queueing(model: TwoStage, *, cache: bool) -> list[dict[str, Any]]:
    """Load against TTFT: of a server that takes one at a time, and of one that batches.

    The batching server has ``lanes`` slots, each as fast as its full batch lets it be; its wait is
    an approximation.
    """
    prefill = ttft(model)
    alone = total_cost(model, cache=cache)
    slot = prefill + batched_decode(model, model.lanes, cache=cache)
    out = []
    for load in LOADS:
        wait, shared = md1_wait(load, alone), mdc_wait(model.lanes, load, slot)
        out.append({
            "load": load,
            "queue": wait,
            "ttft": wait + prefill,
            "queue_share": wait / (wait + prefill),
            "batched_queue": shared,
            "batched_ttft": shared + prefill,
        })  # fmt: skip
    return out


def table(model: TwoStage) -> Table:
    """Give one row with a KV cache and one without, curves in them."""
    rows = []
    for cache in (True, False):
        total = total_cost(model, cache=cache)
        steps = (0, model.output // 2, model.output - 1)
        first, mid, last = (step_cost(model, step, cache=cache) for step in steps)
        rows.append({
            "kv_cache": cache,
            "prompt_tokens": model.prompt,
            "output_tokens": model.output,
            "ttft": ttft(model),
            "decode": total - ttft(model),
            "total": total,
            "per_token": total / model.output,
            "step_first": first,
            "step_mid": mid,
            "step_last": last,
            "tokens_per_1k": 1000 * model.output / total,
            "saved": saved(model) if cache else 0.0,
            "lanes": model.lanes,
            "batching": batching(model, cache=cache),
            "queueing": queueing(model, cache=cache),
        })  # fmt: skip
    return Table(KIND, tuple(rows), notes=(_saving(model),))


def _saving(model: TwoStage) -> str:
    share = math.floor(saved(model) * 1000 + 0.5) / 10
    if share < 0:
        return f"At these sizes a KV cache costs {-share:.1f} % more than it saves."
    return f"The KV cache saves {share:.1f} % of the cost, all of it in decode."

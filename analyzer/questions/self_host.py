"""Whether serving the same requests oneself would cost less than the API did, and from when on.

What is observed: volume, sizes of prompts and answers, what a cache served, the busiest hour, the
API's price. What is modelled: how long a replica needs at the hardware's bound and an efficiency.
Everything assumed is listed with the option that changes it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from statistics import median_low
from typing import Any

from analyzer.bounds.ask import Ask
from analyzer.bounds.hardware import accelerator
from analyzer.bounds.rent import cheapest, offers
from analyzer.bounds.serving import MOST_SEQUENCES, Served, served
from analyzer.contract.types import Table
from analyzer.engines.duckdb import Engine
from analyzer.errors import AnalyzerError

KIND = "analyze.cost.self_host"
EFFICIENCY = 0.5
"""Share of the bound that a replica keeps up over an hour of mixed requests. Single kernels reach
0.8 to 0.9; prefills beside decodes, uneven lengths and scheduling take the rest."""
SLOWER = 1.5
"""The API is slower where it takes so many times as long: the model leaves out queues and ways."""
MOSTLY_PRICED = 0.9
_HOUR_NS = 3_600_000_000_000
_DAY_HOURS = 24
_MILLION = 1_000_000
_DIGITS = Decimal("0.000001")


@dataclass(frozen=True)
class Plan:
    """What is asked: a part, the model on it, and what can be assumed otherwise."""

    gpu: str
    model: str | None = None
    gpus: int = 1
    gpu_usd_per_hour: Decimal | None = None
    efficiency: float = EFFICIENCY


@dataclass(frozen=True)
class Load:
    """What was observed. The busiest hour is by tokens of prompts outside the cache and of answers.

    ``usd`` is what the API costs for it; None = no price. ``ttft_ns`` and ``tpot_ns`` are medians.
    """

    requests: int
    hours: float
    prompt_tokens: int
    cached_tokens: int
    output_tokens: int
    hourly: tuple[tuple[int, int], ...]
    usd: Decimal | None = None
    unpriced_tokens: int = 0
    in_flight: int | None = None
    ttft_ns: float | None = None
    tpot_ns: float | None = None
    is_cache_told: bool = True

    @property
    def tokens(self) -> int:
        """Prompts and answers."""
        return self.prompt_tokens + self.output_tokens

    @property
    def fresh_tokens(self) -> int:
        """Prompt tokens that have to be computed."""
        return self.prompt_tokens - self.cached_tokens

    def sizes(self) -> tuple[int, int, int]:
        """Mean prompt, of it cached, and mean answer; of a prompt one token is always computed."""
        prompt = max(1, round(self.prompt_tokens / self.requests))
        cached = min(round(self.cached_tokens / self.requests), prompt - 1)
        return prompt, cached, max(1, round(self.output_tokens / self.requests))


@dataclass(frozen=True)
class Fleet:
    """Replicas that are rented all the time, enough for the busiest hour, and their cost."""

    mean_load: float
    peak_load: float
    replicas: int
    usd_per_hour: Decimal
    usd: Decimal
    full_usd: Decimal

    @property
    def used(self) -> float:
        """Share of the rented time that is needed."""
        return self.mean_load / self.replicas


def fleet(load: Load, time: Served, gpus: int, usd: Decimal, efficiency: float) -> Fleet:
    """What the load takes at ``usd`` a GPU hour.

    ``mean_load`` and ``peak_load`` count replicas that are busy, on average and in the busiest
    hour. ``full_usd`` is what their busy time alone would cost: no fleet is cheaper.
    """

    def busy(fresh: float, output: float, hours: float) -> float:
        return time.busy_ns(fresh, output) / efficiency / (hours * _HOUR_NS)

    mean = busy(load.fresh_tokens, load.output_tokens, load.hours)
    # In less than an hour there is no busiest one; else an hour of the log is a whole one.
    hourly = load.hourly if load.hours >= 1 else ()
    peak = max((busy(fresh, output, 1.0) for fresh, output in hourly), default=mean)
    peak = max(peak, mean)
    replicas = max(1, math.ceil(peak - 1e-9))
    hourly_usd = gpus * usd
    hours = Decimal(repr(load.hours))
    return Fleet(
        mean, peak, replicas, replicas * hourly_usd, replicas * hourly_usd * hours,
        Decimal(repr(mean)) * hours * hourly_usd,
    )  # fmt: skip


def break_even(load: Load, own: Fleet) -> float | None:
    """Tokens an hour from which one replica costs less than the API; None = no volume does it.

    Peaks stand to the mean as observed, so a replica can be filled to the mean over the peak only.
    """
    if not load.usd or load.usd <= 0 or not own.mean_load:
        return None
    api_usd_per_token = float(load.usd) / load.tokens
    tokens = float(own.usd_per_hour) / own.replicas / api_usd_per_token
    fills = load.tokens / load.hours / own.peak_load
    return tokens if tokens <= fills else None


def per_million(usd: Decimal | None, tokens: int) -> Decimal | None:
    """Dollars a million tokens, prompts and answers together."""
    return None if usd is None or not tokens else (usd * _MILLION / tokens).quantize(_DIGITS)


# --- what was observed ---------------------------------------------------------------------------

_FROM = """FROM cost_tracked AS t
JOIN cost_request AS c ON t.request_key = c.request_key
JOIN resolve_request AS q ON t.request_key = q.request_key
LEFT JOIN latency_segment AS s ON t.request_key = s.request_key
LEFT JOIN latency_token AS k ON t.request_key = k.request_key
WHERE t.is_metered AND q.start_ns IS NOT NULL AND q.input_tokens IS NOT NULL"""
_TOTAL = f"""SELECT count(*) AS requests, min(q.start_ns) AS first_ns,
  max(q.start_ns + coalesce(s.e2e_ns, 0)) AS last_ns,
  CAST(sum(q.input_tokens) AS BIGINT) AS prompt_tokens,
  CAST(sum(coalesce(q.cache_read_tokens, 0)) AS BIGINT) AS cached_tokens,
  CAST(sum(coalesce(q.output_tokens, 0)) AS BIGINT) AS output_tokens,
  count(q.cache_read_tokens) AS told,
  CAST(sum(c.usd) AS DECIMAL(38,15)) AS usd, CAST(sum(c.unpriced_tokens) AS BIGINT) AS unpriced,
  max(CASE WHEN c.is_subscription THEN 1 ELSE 0 END) = 1 AS is_plan,
  percentile_cont(0.5) WITHIN GROUP (ORDER BY s.ttft_ns) AS ttft_ns,
  percentile_cont(0.5) WITHIN GROUP (ORDER BY k.tpot_ns) AS tpot_ns
{_FROM}"""
_HOURLY = f"""SELECT
  CAST(sum(q.input_tokens - coalesce(q.cache_read_tokens, 0)) AS BIGINT) AS fresh_tokens,
  CAST(sum(coalesce(q.output_tokens, 0)) AS BIGINT) AS output_tokens
{_FROM}
GROUP BY (q.start_ns - {{first}}) - (q.start_ns - {{first}}) % {_HOUR_NS}"""
_IN_FLIGHT = f"""WITH told AS (
  SELECT q.start_ns, q.start_ns + s.e2e_ns AS end_ns
  {_FROM} AND s.e2e_ns > 0
),
steps AS (
  SELECT start_ns AS at_ns, 1 AS step FROM told UNION ALL SELECT end_ns, -1 FROM told
)
SELECT max(running) FROM (
  SELECT sum(step) OVER (ORDER BY at_ns, step ROWS UNBOUNDED PRECEDING) AS running FROM steps
)"""


def _observed(engine: Engine) -> tuple[Load, bool]:
    """The load, and whether a plan may include some of it."""
    (row,) = engine.rows(_TOTAL)
    if not row["requests"] or not row["prompt_tokens"]:
        raise AnalyzerError(
            "no request tells both its time and its prompt tokens",
            "log usage with each request: without its sizes nothing can be said of a GPU",
        )
    hours = max(row["last_ns"] - row["first_ns"], 1_000_000_000) / _HOUR_NS
    hourly = engine.rows(_HOURLY.format(first=row["first_ns"]))
    in_flight = engine.value(_IN_FLIGHT)
    load = Load(
        row["requests"], hours, row["prompt_tokens"], row["cached_tokens"], row["output_tokens"],
        tuple((one["fresh_tokens"], one["output_tokens"]) for one in hourly),
        row["usd"], row["unpriced"] or 0, None if in_flight is None else int(in_flight),
        row["ttft_ns"], row["tpot_ns"], bool(row["told"]),
    )  # fmt: skip
    return load, bool(row["is_plan"])


_A_DAY = """SELECT sum(c.usd) AS usd, max(q.start_ns) - min(q.start_ns) AS span_ns
FROM cost_tracked AS t
JOIN cost_request AS c ON t.request_key = c.request_key
JOIN resolve_request AS q ON t.request_key = q.request_key
WHERE t.is_metered AND NOT c.is_subscription AND q.inner_vantage <> 'engine'
  AND q.start_ns IS NOT NULL"""


def worth_asking(engine: Engine) -> Iterator[str]:
    """One sentence where the API costs more a day than the cheapest GPU does; a day at least."""
    (row,) = engine.rows(_A_DAY)
    days = max(Decimal(row["span_ns"] or 0) / (_DAY_HOURS * _HOUR_NS), Decimal(1))
    daily, rent = (row["usd"] or 0) / days, cheapest() * _DAY_HOURS
    if daily > rent:
        yield (
            f"The API costs ${daily:,.2f} a day, a rented GPU from ${rent:,.2f} a day on: 'analyze "
            "cost --self-host GPU --host-model MODEL' asks whether these requests would cost less "
            "on one's own."
        )


# --- the answer ----------------------------------------------------------------------------------


def self_host(engine: Engine, plan: Plan) -> Table:
    """One row of ``analyze.cost.self_host``: the API beside GPUs of one's own."""
    if plan.model is None:
        raise AnalyzerError(
            "which model would run on it is not told",
            "--host-model NAME, such as llama-3.1-70b, or a config.json",
        )
    part = accelerator(plan.gpu)
    usd, price = _rent(plan, part.key)
    load, is_plan = _observed(engine)
    prompt, cached, output = load.sizes()
    ask = Ask(
        model=plan.model, gpu=plan.gpu, count=plan.gpus, tp=plan.gpus, prompt=prompt, cached=cached
    )
    time = served(ask, output)
    own = fleet(load, time, plan.gpus, usd, plan.efficiency)
    row = _row(plan, load, time, own, (usd, price))
    return Table(KIND, (row,), _notes(load, time, own, is_plan=is_plan))


def _rent(plan: Plan, key: str) -> tuple[Decimal, str]:
    """Dollars a GPU hour, and where that is from."""
    if plan.gpu_usd_per_hour is not None:
        return plan.gpu_usd_per_hour, "as told"
    known = offers(key)
    if not known:
        raise AnalyzerError(
            f"what an hour of {key} costs is not known", "--gpu-usd-per-hour tells it"
        )
    middle = median_low(one.usd for one in known)
    days = sorted(one.as_of for one in known)
    sources = ", ".join(dict.fromkeys(one.source for one in known))
    return middle, (
        f"middle of {len(known)} offers on demand, {known[0].usd} ({known[0].vendor}) to "
        f"{known[-1].usd} ({known[-1].vendor}), {days[0]} to {days[-1]}, as transcribed in public "
        f"from {sources}"
    )


def _row(
    plan: Plan, load: Load, time: Served, own: Fleet, rent: tuple[Decimal, str]
) -> dict[str, Any]:
    at = time.setting
    prompt, cached, output = load.sizes()
    even = break_even(load, own)
    priced = load.unpriced_tokens <= (1 - MOSTLY_PRICED) * load.tokens
    api = per_million(load.usd, load.tokens) if priced else None
    mine = per_million(own.usd, load.tokens)
    ttft, tpot = time.prefill_ns / plan.efficiency, time.tpot_ns / plan.efficiency
    return {
        "model": at.model.key,
        "gpu": at.part.key,
        "gpus": plan.gpus,
        "weights": at.precision.name,
        "requests": load.requests,
        "hours": load.hours,
        "tokens_per_day": round(load.tokens / load.hours * _DAY_HOURS),
        "prompt_tokens": prompt,
        "cached_tokens": cached,
        "output_tokens": output,
        "in_flight": load.in_flight,
        "api_usd_per_million": api,
        "own_usd_per_million": mine,
        "full_usd_per_million": per_million(own.full_usd, load.tokens),
        "usd_per_gpu_hour": rent[0],
        "efficiency": plan.efficiency,
        "batch": time.batch,
        "mean_load": own.mean_load,
        "peak_load": own.peak_load,
        "replicas": own.replicas,
        "used": own.used,
        "break_even_tokens_per_day": round(even * _DAY_HOURS) if even and api else None,
        "api_ttft_ms": _ms(load.ttft_ns),
        "own_ttft_ms": _ms(ttft),
        "api_tpot_ms": _ms(load.tpot_ns),
        "own_tpot_ms": _ms(tpot),
        "cost": verdict(api, mine),
        "latency": slower((load.ttft_ns, ttft), (load.tpot_ns, tpot)),
        "data_boundary": "cannot say",
        "assumed": _assumed(plan, load, time, rent),
    }


def verdict(api: Decimal | None, own: Decimal | None) -> str:
    """Whether the API fails on cost: dearer than the fleet, as it would really be rented."""
    if api is None or own is None:
        return "cannot say"
    return "fails" if api > own else "holds"


def slower(*pairs: tuple[float | None, float]) -> str:
    """Whether the API fails on latency: a median far above what the replica would take."""
    told = [(seen, own) for seen, own in pairs if seen is not None]
    if not told:
        return "cannot say"
    return "fails" if any(seen > SLOWER * own for seen, own in told) else "holds"


def _ms(time_ns: float | None) -> float | None:
    return None if time_ns is None else time_ns / 1e6


def _assumed(plan: Plan, load: Load, time: Served, rent: tuple[Decimal, str]) -> list[str]:
    fits = "" if time.fits is None else f"; {time.fits:,} fit"
    cache = (
        "the prefix cache serves as many prompt tokens as the API's did"
        if load.is_cache_told
        else "no prompt token is served by a cache: the log tells of none"
    )
    return [
        f"a GPU hour for {rent[0]} USD ({rent[1]}): --gpu-usd-per-hour",
        f"{100 * plan.efficiency:g} % of the hardware's bound is attained: --efficiency",
        f"{plan.gpus} GPU{'s' if plan.gpus > 1 else ''} a replica, tensor parallel: --gpus",
        f"{time.batch} sequences decode together, at most {MOST_SEQUENCES}{fits}",
        cache,
        "all requests have the mean size; longer ones cost more than shorter ones save",
        "the model's answers are as good and as long, and its tokens as many: --host-model",
        "replicas for the busiest hour stand all the time; no spare one",
        "rent alone: no people, network, storage, nor time to load a model",
        "times to first token without queues and network",
        *(one.partition("; --")[0] for one in time.setting.assumed),
    ]


def _notes(load: Load, time: Served, own: Fleet, *, is_plan: bool) -> tuple[str, ...]:
    out = []
    if load.hours < _DAY_HOURS:
        span = f"{load.hours:.1f} h" if load.hours >= 1 else f"{load.hours * 60:.1f} min"
        out.append(f"The log covers {span}, less than a day: other hours' load is not in it.")
    seats = own.replicas * time.batch
    if load.in_flight is not None and load.in_flight > seats:
        out.append(
            f"Up to {load.in_flight:,} requests were in flight at once, {seats:,} decode together: "
            "the others would wait."
        )
    if load.unpriced_tokens:
        out.append(f"{load.unpriced_tokens:,} tokens have no known price at the API.")
    if is_plan:
        out.append("Some requests may be included in a plan: the API's cost is what it would be.")
    out.append("Whether data may leave one's own boundary stands in contracts and laws, in no log.")
    return tuple(out)

"""What the metrics of model servers are called, over engines and versions, and how to read a line.

Names are looked up without the ``_total`` of counters, and with ``_`` for ``:``, as some exporters
write them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal

from analyzer.readers._times import TIMES

# name -> column of engine_sample
_GAUGES = {
    "vllm_num_requests_running": "running",
    "vllm_num_requests_waiting": "waiting",
    "vllm_num_requests_swapped": "swapped",
    "vllm_kv_cache_usage_perc": "kv_used_ratio",
    "vllm_gpu_cache_usage_perc": "kv_used_ratio",  # up to 0.10
    "vllm_gpu_prefix_cache_hit_rate": "prefix_hit_ratio",  # engine V0
    "vllm_avg_prompt_throughput_toks_per_s": "prompt_tokens_per_s",  # up to 0.6
    "vllm_avg_generation_throughput_toks_per_s": "generation_tokens_per_s",
    "sglang_num_running_reqs": "running",
    "sglang_num_queue_reqs": "waiting",
    "sglang_token_usage": "kv_used_ratio",
    "sglang_gen_throughput": "generation_tokens_per_s",
    "sglang_cache_hit_rate": "prefix_hit_ratio",
    "sglang_max_total_num_tokens": "capacity_tokens",
    "tgi_batch_current_size": "running",
    "tgi_queue_size": "waiting",
    "llamacpp_requests_processing": "running",
    "llamacpp_requests_deferred": "waiting",
    "llamacpp_kv_cache_usage_ratio": "kv_used_ratio",  # older builds
    "vllm_generation_tokens_created": "created",
    "sglang_generation_tokens_created": "created",
}
# name -> what it counts
_TOTALS = {
    "vllm_prompt_tokens": "prompt",
    "vllm_prompt_tokens_cached": "cached",
    "vllm_generation_tokens": "generated",
    "vllm_prefix_cache_queries": "queried",
    "vllm_prefix_cache_hits": "hit",
    "vllm_gpu_prefix_cache_queries": "queried",  # up to 0.11
    "vllm_gpu_prefix_cache_hits": "hit",
    "vllm_num_preemptions": "preempted",
    "vllm_request_success": "finished",
    "sglang_prompt_tokens": "prompt",
    "sglang_cached_tokens": "cached",
    "sglang_generation_tokens": "generated",
    "sglang_num_retracted_requests": "preempted",
    "sglang_num_requests": "finished",
    "tgi_request_success": "finished",
    "llamacpp_prompt_tokens": "prompt",
    "llamacpp_tokens_predicted": "generated",
}
# (name, label, its value) -> what it counts
_LABELLED = {
    ("vllm_prompt_tokens_by_source", "source", "local_compute"): ("computed",),
    ("sglang_realtime_tokens", "mode", "prefill_compute"): ("computed", "queried"),
    ("sglang_realtime_tokens", "mode", "prefill_cache"): ("hit", "queried"),
    ("sglang_realtime_tokens", "mode", "decode"): ("made",),
}
_CHOOSING = {name: label for name, label, _ in _LABELLED}
_HISTOGRAMS = {
    "vllm_time_to_first_token_seconds": "ttft",
    "vllm_e2e_request_latency_seconds": "e2e",
    "vllm_request_queue_time_seconds": "queue",
    "vllm_request_prefill_time_seconds": "prefill",
    "vllm_request_decode_time_seconds": "decode",
    "sglang_time_to_first_token_seconds": "ttft",
    "sglang_e2e_request_latency_seconds": "e2e",
    "sglang_queue_time_seconds": "queue",
    "tgi_request_duration": "e2e",
    "tgi_request_queue_duration": "queue",
}
COUNTS = ("running", "waiting", "swapped", "capacity_tokens")
RATIOS = ("kv_used_ratio", "prefix_hit_ratio")
AT_FINISH = ("sglang", "llamacpp")
"""Engines that count a request's tokens when it is over."""
# Ranks other than the first repeat what the first says.
_RANKS = ("tp_rank", "pp_rank", "moe_ep_rank")
_PLACES = ("instance", "pod", "server")

SERVER_LINE = re.compile(
    rb"^(?:# (?:HELP|TYPE) )?(?:vllm|sglang|llamacpp|tgi)[:_]\w+(?:[{ ]|\s*$)", re.MULTILINE
)
EXPOSITION = re.compile(rb"^# (?:HELP|TYPE) [a-zA-Z_:][\w:]* ", re.MULTILINE)
SAMPLE = re.compile(
    rb'([a-zA-Z_:][\w:.]*)(\{(?:[^"{}]|"(?:[^"\\]|\\.)*")*\})?'
    rb"[ \t]+([+-]?(?:[\d.][\d.eE+-]*|[Ii]nf|[Nn]a[Nn]))"
    rb"(?:[ \t]+(-?[\d.eE+]+))?[ \t]*(?:# .*)?"
)
_LABEL = re.compile(r'([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True)
class Slot:
    """Where the values of one series belong: a server's engine, and what they measure."""

    place: str | None
    engine: str | None
    model: str | None
    family: str
    measures: tuple[str, ...]
    constant: float | None = None
    """A figure that stands in a label."""


def slot_of(name: str, labels: str) -> Slot | str:
    """The slot of a series, or the reason why it is ignored."""
    name = name.replace(":", "_", 1)
    if name.endswith("_bucket"):
        return "histogram bucket"
    told = dict(_LABEL.findall(labels))
    measures = _measures(name, told)
    constant = None
    if name == "vllm_cache_config_info":
        measures, constant = ("capacity_tokens",), _capacity(told)
    if not measures or (name == "vllm_cache_config_info" and constant is None):
        return "metric that is not used"
    if any(told.get(rank, "0") != "0" for rank in _RANKS) or told.get("priority"):
        return "part of a figure that is told whole"
    place = next((told[label] for label in _PLACES if told.get(label)), None)
    engine = told.get("engine") or told.get("dp_rank")
    family = name.partition("_")[0]
    if engine is not None and family == "vllm" and engine.isdecimal():
        engine = engine.zfill(3)  # as the engine's own log writes it
    model = told.get("model_name") or told.get("model")
    return Slot(place, engine, model, family, measures, constant)


def _measures(name: str, labels: dict[str, str]) -> tuple[str, ...]:
    if name in _GAUGES:
        return (_GAUGES[name],)
    for part in ("_sum", "_count"):
        if name.endswith(part) and name.removesuffix(part) in _HISTOGRAMS:
            return (_HISTOGRAMS[name.removesuffix(part)] + part,)
    bare = name.removesuffix("_total")
    if bare in _TOTALS:
        return (_TOTALS[bare],)
    label = _CHOOSING.get(bare)
    return () if label is None else _LABELLED.get((bare, label, labels.get(label, "")), ())


def _capacity(labels: dict[str, str]) -> float | None:
    """Tokens of the KV pool: newer versions say so, older ones tell blocks and their size."""
    if (size := labels.get("kv_cache_size_tokens", "")).isdecimal():
        return float(size)
    blocks, size = labels.get("num_gpu_blocks", ""), labels.get("block_size", "")
    return float(int(blocks) * int(size)) if blocks.isdecimal() and size.isdecimal() else None


def moment_ns(text: str) -> int | None:
    """A number as time: seconds, ms, us or ns since the epoch, by its size."""
    try:
        value = Decimal(text)
    except ArithmeticError:
        return None
    if not value.is_finite() or not 0 < value < 10**20:
        return None
    power = next((p for p, least in ((0, 17), (3, 14), (6, 11)) if value > 10**least), 9)
    ns = int(value * 10**power)
    return ns if ns in TIMES else None

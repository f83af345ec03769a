"""How fast a model can be on a part: the calculator's answer as one published row."""

from __future__ import annotations

from typing import Any

from analyzer import formulas
from analyzer.bounds.ask import Ask, Setting, resolve
from analyzer.bounds.calculate import (
    LINES,
    Bounds,
    context_that_fits,
    levers,
    ridge_batch,
    sequences_that_fit,
)
from analyzer.bounds.calculate import bounds as lines_of
from analyzer.bounds.capacity import weights_held_bytes
from analyzer.bounds.hardware import gpu_names
from analyzer.bounds.models import names as model_names
from analyzer.bounds.precision import BITS
from analyzer.bounds.step import ATTAINABLE_BANDWIDTH, ATTAINABLE_FLOPS, HOP_NS
from analyzer.contract.outputs import OUTPUTS
from analyzer.contract.types import Table
from analyzer.errors import AnalyzerError

__all__ = ["bounds", "catalogued"]

_KIND = "analyze.bounds"
_MS = 1e6
_UTILISATION = 0.6
"""Share of the peak that the textbook's prefill reaches."""


def bounds(*, simple: bool = False, **asked: Any) -> Table:  # noqa: ANN401 - the fields of Ask
    """How fast a model can be on a part, without data: ``asked`` are fields of ``bounds.ask.Ask``.

    One row of ``analyze.bounds``; ``simple`` uses the textbook's formulas.
    """
    ask = Ask(**asked)
    if simple:
        return Table(_KIND, (_in_order(_textbook(resolve(ask))),))
    told = lines_of(ask)
    return Table(_KIND, (_in_order(_row(told)),), tuple(_missing(told)))


def _in_order(row: dict[str, Any]) -> dict[str, Any]:
    """Every published key; what a form does not tell is None."""
    return {name: row.get(name) for name in OUTPUTS[_KIND].names}


def _missing(told: Bounds) -> list[str]:
    """What to add for the lines that could not be drawn."""
    at, out = told.setting, []
    if not at.layout.known:
        out.append(
            "Only strict can be said: how the GPUs share the model is not told (--tp, --pp)."
        )
    elif not at.ask.batch:
        out.append("Only strict can be said of TPOT: --batch tells how many decode together.")
    if not at.ask.prompt:
        out.append("No TTFT: --prompt tells how many tokens there are to process.")
    elif told.ttft_ns["expected"] is None and at.layout.known:
        out.append("TTFT is strict only: no compute rate of this part is known.")
    room = context_that_fits(at)
    if room == 0:
        out.append(
            "The weights and one token of every sequence do not fit into 90 % of the memory."
        )
    return out


def _row(told: Bounds) -> dict[str, Any]:
    at, step = told.setting, told.step
    return (
        _head(at)
        | {
            "weight_bytes": round(step.weight_bytes),
            "checkpoint_bytes": round(weights_held_bytes(at.shape, at.precision, at.layout)),
            "kv_bytes_per_token": at.shape.kv_elements_per_token * at.precision.kv_bytes,
            "kv_bytes": round(step.kv_bytes),
            "state_bytes": round(at.shape.state_bytes()),
            "flops_per_step": step.flops,
            "tpot_ms": _by_line(told.tpot_ns),
            "ttft_ms": _by_line(told.ttft_ns),
            "tokens_per_s": told.tokens_per_s,
            "limited_by": step.limited_by,
            "flops_per_byte": step.flops / step.bytes_read if step.bytes_read else None,
            "ridge_batch": ridge_batch(at),
            "sequences_that_fit": sequences_that_fit(at),
            "context_that_fits": context_that_fits(at),
            "lever_line": told.line,
            "levers": [
                {
                    "change": one.name,
                    "tpot_ms": _ms(one.tpot_ns),
                    "ttft_ms": _ms(one.ttft_ns),
                    "tokens_per_s": one.tokens_per_s,
                    "sequences_that_fit": one.sequences,
                }
                for one in levers(told)
            ],
            "assumed": [*at.assumed, *_of_lines(told)],
        }
        | _sources(at)
    )


def _of_lines(told: Bounds) -> list[str]:
    out = ["strict: own KV only, all GPUs' bandwidth, the fastest dtype, no communication"]
    if told.tpot_ns["attainable"] is None and told.ttft_ns["attainable"] is None:
        return out
    share = f"{_percent(ATTAINABLE_BANDWIDTH)} of the bandwidth"
    share += f", {_percent(ATTAINABLE_FLOPS)} of the dense peak"
    hops = 2 * len(told.setting.shape.layers) if told.setting.layout.split > 1 else 0
    waits = f", {hops} all-reduces of at least {HOP_NS / 1000:g} us" if hops else ""
    return [*out, f"attainable: {share}{waits}"]


def _head(at: Setting) -> dict[str, Any]:
    inline = at.ask.params is not None
    return {
        "model": at.model.key,
        "gpu": at.part.key,
        "gpus": at.layout.devices,
        "layout": at.layout_name,
        "weights": at.precision.name,
        "kv_bits": 8 * at.precision.kv_bytes,
        "batch": at.ask.batch,
        "context": at.context,
        "prompt": at.ask.prompt,
        "cached": at.ask.cached,
        "tokens_per_step": at.tokens,
        "total_params": None if inline else at.shape.total_params,
        "read_params_decode": at.shape.read_params_decode,
    }


def _sources(at: Setting) -> dict[str, Any]:
    def told(source: str, confidence: str) -> str:
        return f"{source} ({confidence} confidence)" if confidence != "given" else source

    part, options = at.part, at.ask.memory_bandwidth_bytes_s or at.ask.memory_bytes
    catalog = told(part.sources, part.confidence)
    beaten = f"options, else {catalog}" if part.sources else "options"
    return {
        "model_source": told(at.model.source, at.model.confidence),
        "gpu_source": beaten if options else catalog,
        "memory_bandwidth_bytes_s": part.bandwidth_bytes_s,
    }


def _by_line(times: dict[str, float | None]) -> dict[str, float | None]:
    return {name: _ms(times[name]) for name in LINES}


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _ms(time_ns: float | None) -> float | None:
    return None if time_ns is None else time_ns / _MS


def _textbook(at: Setting) -> dict[str, Any]:
    """Parameters x bytes over bandwidth, 2 x batch x tokens x parameters over peak."""
    ask, part, shape = at.ask, at.part, at.shape
    devices, batch = at.layout.devices, ask.batch or 1
    params = shape.read_params_decode
    size = formulas.weight_bytes(params, at.precision.dense_bytes)
    each = shape.kv_elements_per_token * at.precision.kv_bytes
    kv = batch * (ask.context or 0) * each
    tpot = formulas.read_ns(size + kv, part.bandwidth_bytes_s * devices) / at.tokens
    flops = formulas.forward_flops(batch, (ask.prompt or 0) - (ask.cached or 0), params)
    ttft: dict[str, float | None] = dict.fromkeys(LINES)
    if ask.prompt:
        if not part.flops_16bit:
            raise AnalyzerError(
                "no compute rate of this part is known", "name a --gpu that has one"
            )
        peak = part.flops_16bit * devices
        rate = formulas.effective_flops_s(peak, _UTILISATION)
        ttft["strict"] = formulas.compute_ns(flops, peak)
        ttft["attainable"] = formulas.compute_ns(flops, rate)
    lines: dict[str, float | None] = dict.fromkeys(LINES)
    return (
        _head(at)
        | {
            "weight_bytes": round(size),
            "kv_bytes_per_token": each,
            "kv_bytes": round(kv),
            "tpot_ms": _by_line(lines | {"strict": tpot}),
            "ttft_ms": _by_line(ttft),
            "prefill_flops": flops if ask.prompt else None,
            "assumed": [
                "parameters x bytes / bandwidth, 2 x batch x tokens x parameters / peak",
                "textbook: no attention term, no windows, only the experts of one token",
                f"attainable: {_percent(_UTILISATION)} of the 16-bit peak",
            ],
        }
        | _sources(at)
    )


def catalogued(kind: str) -> list[str]:
    """Names that the catalogs know: of ``models``, ``gpus`` or ``weights`` (formats)."""
    if kind == "models":
        return model_names()
    return gpu_names() if kind == "gpus" else sorted(BITS)

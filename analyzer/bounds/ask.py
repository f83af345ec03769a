"""What the calculator is asked, and the model, part and layout that this means."""

from __future__ import annotations

from dataclasses import dataclass, replace

from analyzer.bounds.hardware import Accelerator, accelerator, custom, with_figures
from analyzer.bounds.hf_config import MOST_LAYERS
from analyzer.bounds.models import Model, model
from analyzer.bounds.precision import Precision, uniform
from analyzer.bounds.shape import Attention, FeedForward, Layer, Shape
from analyzer.bounds.step import Layout, drafts_of, tokens_per_step
from analyzer.errors import AnalyzerError

_LARGEST = 1e18
_PLAIN = 2.0
"""Bytes an element of an embedding that nobody quantised."""


@dataclass(frozen=True)
class Ask:
    """Everything that can be said; None is not told. Sizes in bytes, rates in bytes/s.

    ``params`` are the parameters read a step, with ``layers``, ``kv_heads``, ``head_dim`` and
    ``hidden`` beside them where no model is named. ``tp`` devices share a layer, ``pp`` stages
    follow each other, ``dp`` groups attend on their own: tp x pp x dp devices hold the model once.
    """

    model: str | None = None
    weights: str | None = None
    kv: str | None = None
    gpu: str | None = None
    memory_bandwidth_bytes_s: float | None = None
    memory_bytes: float | None = None
    count: int | None = None
    tp: int | None = None
    pp: int | None = None
    dp: int | None = None
    batch: int | None = None
    context: int | None = None
    prompt: int | None = None
    cached: int | None = None
    drafts: int | None = None
    acceptance: float | None = None
    tokens_per_step: float | None = None
    params: float | None = None
    layers: int | None = None
    kv_heads: int | None = None
    head_dim: int | None = None
    hidden: int | None = None
    weight_bytes: float | None = None
    cpu_weight_bytes: float | None = None
    cpu_bandwidth_bytes_s: float | None = None


@dataclass(frozen=True)
class Setting:
    """An ask whose names are resolved. ``strict_precision`` is the least it can be."""

    ask: Ask
    model: Model
    precision: Precision
    strict_precision: Precision
    part: Accelerator
    layout: Layout
    replicas: int
    context: int
    tokens: float
    drafts: int
    assumed: tuple[str, ...]

    @property
    def shape(self) -> Shape:
        """The model's shape."""
        return self.model.shape

    @property
    def layout_name(self) -> str | None:
        """``tp2 pp2``, ``one device``, or None where it is not told."""
        layout = self.layout
        if not layout.known:
            return None
        parts = [
            ("tp", layout.attention_tensor),
            ("pp", layout.pipeline),
            ("dp", layout.attention_data),
        ]
        return " ".join(f"{name}{size}" for name, size in parts if size > 1) or "one device"


def resolve(ask: Ask, known: Model | None = None) -> Setting:
    """Names to facts; :class:`AnalyzerError` says which option is missing or contradicts.

    ``known``: the model, where it was looked up already.
    """
    _check(ask)
    found = known or _model(ask)
    precision, strict = _precision(ask, found)
    layout, replicas = _layout(ask)
    tokens, drafts = _speculation(ask)
    return Setting(
        ask, found, precision, strict, _part(ask), layout, replicas,
        ask.context if ask.context is not None else ask.prompt or 0, tokens, drafts,
        tuple(_assumed(ask, found, precision, layout, replicas)),
    )  # fmt: skip


def _check(ask: Ask) -> None:
    for name, value in vars(ask).items():
        if isinstance(value, int | float) and not 0 <= value <= _LARGEST:
            raise AnalyzerError(f"{name} = {value} is out of range", "give a figure that exists")
    if ask.model is not None and ask.params is not None:
        raise AnalyzerError("--model and --params both say what is read", "give one of them")
    if (ask.cached or 0) and (ask.cached or 0) >= (ask.prompt or 0):
        raise AnalyzerError(
            f"--cached {ask.cached} leaves nothing of the prompt to process",
            "--cached is less than --prompt: the last token is never taken from a cache",
        )
    if (ask.cpu_weight_bytes is None) != (ask.cpu_bandwidth_bytes_s is None):
        raise AnalyzerError(
            "weights in the host's memory need their size and its bandwidth",
            "--cpu-weight-bytes 20GB --cpu-memory-bandwidth 80GB/s",
        )


def _model(ask: Ask) -> Model:
    if ask.model is not None:
        return model(ask.model)
    if ask.params is None:
        raise AnalyzerError("no model", "--model NAME or config.json, or --params N")
    read = FeedForward(round(ask.params))
    layers: list[Layer] = [Layer(None, read, 0)]
    if (ask.layers or 0) > MOST_LAYERS:
        raise AnalyzerError(f"{ask.layers} layers are no model", "--layers is the number of layers")
    if ask.layers and ask.kv_heads and ask.head_dim:
        heads = ask.hidden // ask.head_dim if ask.hidden else ask.kv_heads
        cached = 2 * ask.kv_heads * ask.head_dim
        one = Attention(0, cached, heads, ask.head_dim, ask.head_dim, shards=ask.kv_heads)
        layers = [Layer(one, None, 0)] * (ask.layers - 1) + [Layer(one, read, 0)]
    shape = Shape("inline", ask.hidden or 0, 0, tied=True, layers=tuple(layers), final_norm=0)
    return Model("inline", shape, uniform("bf16"), "options", "given")


def _precision(ask: Ask, found: Model) -> tuple[Precision, Precision]:
    own = found.precision(ask.weights)
    if ask.kv is not None:
        own = own.with_kv(ask.kv)
    if ask.weight_bytes is None:
        return own, own
    # The embedding of a quantised file may be quantised or not; a bound takes what leaves less.
    each = ask.weight_bytes / found.shape.total_params
    if ask.weights is None:
        own = replace(own, name=f"{8 * each:.3g}bpw")
    small = own.of_file(found.shape, ask.weight_bytes, max(each, _PLAIN))
    return own.of_file(found.shape, ask.weight_bytes, each), small


def _part(ask: Ask) -> Accelerator:
    if ask.gpu is not None:
        return with_figures(accelerator(ask.gpu), ask.memory_bandwidth_bytes_s, ask.memory_bytes)
    if ask.memory_bandwidth_bytes_s is None:
        raise AnalyzerError("no GPU", "--gpu NAME, or --memory-bandwidth 3350GB/s [--memory 80GB]")
    return custom(ask.memory_bandwidth_bytes_s, ask.memory_bytes)


def _layout(ask: Ask) -> tuple[Layout, int]:
    """Layout of one replica, and how many there are."""
    if ask.tp is None and ask.pp is None and ask.dp is None:
        return Layout(ask.count or 1), 1
    pipeline, groups = ask.pp or 1, ask.dp or 1
    tensor = ask.tp
    if tensor is None:
        tensor = max(1, (ask.count or pipeline * groups) // (pipeline * groups))
    devices = tensor * pipeline * groups
    count = ask.count or devices
    if count == tensor * pipeline and groups > 1 and tensor % groups == 0:
        # Some engines count the groups within tp: tp 8 with dp 8 is 8 devices.
        return Layout(count, tensor=tensor, pipeline=pipeline, attention_data=groups), 1
    if count % devices:
        raise AnalyzerError(
            f"{count} GPUs cannot hold tp {tensor} x pp {pipeline} x dp {groups}",
            "--count is a multiple of tp x pp x dp",
        )
    layout = Layout(devices, tensor=tensor * groups, pipeline=pipeline, attention_data=groups)
    return layout, count // devices


def _speculation(ask: Ask) -> tuple[float, int]:
    """Tokens a step commits, and the drafts it verifies."""
    if ask.tokens_per_step is not None:
        drafts = ask.drafts if ask.drafts is not None else drafts_of(ask.tokens_per_step)
        if ask.tokens_per_step > drafts + 1:
            raise AnalyzerError(
                f"{ask.tokens_per_step:g} tokens a step need more than {drafts} drafts",
                "a step commits one token and the drafts it accepts",
            )
        return ask.tokens_per_step, drafts
    if (ask.drafts is None) != (ask.acceptance is None):
        raise AnalyzerError(
            "speculation needs drafts and their acceptance",
            "--drafts 4 --acceptance 0.8, or --tokens-per-step 3.36",
        )
    if ask.drafts is None or ask.acceptance is None:
        return 1.0, 0
    return tokens_per_step(ask.acceptance, ask.drafts), ask.drafts


def _assumed(
    ask: Ask, found: Model, precision: Precision, layout: Layout, replicas: int
) -> list[str]:
    out = list(precision.assumed)
    if ask.weights is None and ask.weight_bytes is None and not precision.assumed:
        out.append(f"weights {precision.name}, as the model is published")
    if ask.weight_bytes is not None:
        out.append("the file's bytes are spread as the parameters are, the embedding left out")
    if not precision.kv_told:
        out.append("KV cache: 8 bits in strict, 16 in the others; --kv tells")
    if ask.params is not None and ask.layers is None:
        out.append("no KV cache: --layers, --kv-heads and --head-dim tell its size")
    if ask.context is None:
        told = f"the prompt's {ask.prompt:,} tokens" if ask.prompt else "0: no KV is read"
        out.append(f"context {told}")
    if ask.tokens_per_step is None and ask.drafts is None:
        out.append("one token a step: no speculation")
    elif ask.drafts is None:
        out.append("as few drafts as can commit so many tokens; drafting itself takes no time")
    else:
        out.append("drafting itself takes no time")
    if replicas > 1:
        out.append(f"{replicas} replicas of {layout.devices} GPUs; batch and times are of one")
    if found.shape.expert_params:
        out.append("strict: all tokens share their experts; expected: uniform routing")
    if ask.cpu_weight_bytes is not None:
        out.append("the host's share is read there, experts first, and adds to the step")
    return out

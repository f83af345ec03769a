"""How many bytes a weight and a cached element take, by part of the model.

Bits a weight count the scales stored with it. Parts that a checkpoint leaves unquantised stay at
16 bits: what the config excludes by name is looked up here, not assumed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from analyzer.bounds.shape import Shape
from analyzer.errors import AnalyzerError, hint_of

BITS: dict[str, float] = {
    "fp32": 32.0,
    "bf16": 16.0,
    "fp8": 8.0,  # one scale a tensor
    "fp8-block": 8.0 + 32 / (128 * 128),  # one fp32 scale a block of 128 x 128
    "int8": 8.0,
    "mxfp4": 4.25,  # 32 values and one shared exponent of 8 bits
    "nvfp4": 4.5,  # 16 values and one scale of 8 bits
    "int4": 4.125,  # groups of 128, fp16 scale, symmetric
    "int4-g32": 4.5,  # groups of 32, fp16 scale
    "awq": 4.15625,  # groups of 128, fp16 scale and 4-bit zero
    "int4-g32-zero": 5.0,  # groups of 32, 16-bit scale and zero
    "q8_0": 8.5,
    "q6_k": 6.5625,
    "q4_k": 4.5,
    "q4_0": 4.5,
    # Files that mix formats: bits a weight of a Llama 3.1 8B, as llama.cpp prints them.
    "q5_k_m": 5.7036,
    "q5_k_s": 5.5704,
    "q4_k_m": 4.8944,
    "q4_k_s": 4.6672,
    "q3_k_m": 3.9960,
}
"""Weight formats and their bits a weight, scales included."""

_SAME = {
    "fp16": "bf16", "f16": "bf16", "float16": "bf16", "bfloat16": "bf16", "half": "bf16",
    "float32": "fp32", "f32": "fp32", "fp8_e4m3": "fp8", "fp8_block": "fp8-block",
    "gptq": "int4", "int4_wo": "int4", "w4a16": "int4", "w8a8": "int8", "fp4": "nvfp4",
    "w8": "int8", "w4": "int4", "8bit": "int8", "4bit": "int4",
}  # fmt: skip

_CACHE_BYTES = {
    "fp16": 2.0, "bf16": 2.0, "auto": 2.0, "fp8": 1.0, "fp8_e4m3": 1.0, "fp8_e5m2": 1.0,
    "int8": 1.0, "q8_0": 1.0625, "q4_0": 0.5625, "f16": 2.0,
}  # fmt: skip


@dataclass(frozen=True)
class Precision:
    """Bytes a weight by part, and bytes a cached element. ``assumed`` says what was not told.

    ``kv_told``: the format of the cache is known. ``head_told``: so is that of the head, which many
    quantised checkpoints leave at 16 bits.
    """

    name: str
    attention_bytes: float
    dense_bytes: float
    expert_bytes: float
    head_bytes: float
    other_bytes: float = 2.0
    kv_bytes: float = 2.0
    kv_told: bool = False
    head_told: bool = True
    assumed: tuple[str, ...] = ()

    @property
    def least_bits(self) -> float:
        """Bits a weight of the smallest format among the large parts."""
        return 8 * min(self.attention_bytes, self.dense_bytes, self.expert_bytes)

    @property
    def quantised(self) -> bool:
        """Whether any large part takes less than 16 bits."""
        return self.least_bits < BITS["bf16"]

    @property
    def four_bit_kernels(self) -> bool:
        """Whether its kernels can multiply in 4 bits, and not only store the weights so."""
        return self.name in {"nvfp4", "mxfp4", "fp4"}

    def least(self) -> Precision:
        """The smallest it can be: what is not told is taken as small as anybody serves it."""
        kv = self.kv_bytes if self.kv_told else min(1.0, self.kv_bytes)
        head = self.head_bytes if self.head_told else min(self.head_bytes, self.least_bits / 8)
        return replace(self, kv_bytes=kv, head_bytes=head)

    def of_file(self, shape: Shape, file_bytes: float, embedding_bytes: float) -> Precision:
        """Scaled so that all weights but the input embedding take what the file leaves for them.

        ``embedding_bytes``: bytes an element of the embedding has in the file.
        """
        lookup = 0.0 if shape.tied else shape.embedding_params * embedding_bytes
        inner = self.fixed_bytes(shape) + shape.expert_params * self.expert_bytes
        factor = (file_bytes - lookup) / inner
        if factor <= 0:
            raise AnalyzerError(
                f"weights of {file_bytes:.3g} bytes are smaller than the model's embedding",
                "--weight-bytes is the size of the whole checkpoint or GGUF file",
            )
        return replace(
            self,
            attention_bytes=self.attention_bytes * factor,
            dense_bytes=self.dense_bytes * factor,
            expert_bytes=self.expert_bytes * factor,
            head_bytes=self.head_bytes * factor,
            other_bytes=self.other_bytes * factor,
        )

    def fixed_bytes(self, shape: Shape) -> float:
        """Weights that every step reads, experts aside."""
        return (
            shape.mixer_params * self.attention_bytes
            + shape.dense_params * self.dense_bytes
            + shape.norm_params * self.other_bytes
            + shape.head_params * self.head_bytes
        )

    def checkpoint_bytes(self, shape: Shape) -> float:
        """All weights, the input embedding at the precision of what is not quantised."""
        embedding = 0.0 if shape.tied else shape.embedding_params * self.other_bytes
        return self.fixed_bytes(shape) + shape.expert_params * self.expert_bytes + embedding

    def with_kv(self, name: str) -> Precision:
        """The same weights with the KV cache in another format."""
        return replace(
            self, kv_bytes=kv_bytes(name), kv_told=name.strip().lower() != "auto",
            assumed=tuple(text for text in self.assumed if not text.startswith("KV")),
        )  # fmt: skip


def kv_bytes(name: str) -> float:
    """Bytes of a cached element; raises :class:`AnalyzerError` for an unknown format."""
    told = _CACHE_BYTES.get(name.strip().lower())
    if told is None:
        raise AnalyzerError(f"no KV cache format {name!r}", f"one of {', '.join(_CACHE_BYTES)}")
    return told


def bits_of(name: str) -> float:
    """Bits a weight of a format, by any of its names, or of a number such as ``4.5bpw``."""
    told = name.strip().lower().replace(" ", "")
    if found := re.fullmatch(r"(\d+(?:\.\d+)?)(?:bpw|bits?)", told):
        if not 1 <= float(found[1]) <= BITS["fp32"]:
            raise AnalyzerError(f"no weight format of {found[1]} bits", "from 1bpw to 32bpw")
        return float(found[1])
    told = _SAME.get(told, told)
    if told not in BITS:
        near = hint_of(told, [*BITS, *_SAME])
        raise AnalyzerError(f"no weight format {name!r}", near or f"one of {', '.join(BITS)}")
    return BITS[told]


def format_name(name: str) -> str:
    """The one spelling of a weight format that has several."""
    told = name.strip().lower().replace(" ", "")
    return _SAME.get(told, told)


def uniform(name: str, *, kv: str = "auto", head: str | None = None) -> Precision:
    """One format for all matrices, the head included unless ``head`` says otherwise."""
    size = bits_of(name) / 8
    head_size = bits_of(head) / 8 if head else size
    return Precision(
        format_name(name), size, size, size, head_size, other_bytes=max(2.0, size),
        kv_bytes=kv_bytes(kv), kv_told=kv != "auto",
    )  # fmt: skip


def from_config(config: Mapping[str, Any], quant: Mapping[str, Any] | None = None) -> Precision:
    """Precision a checkpoint has by its ``config.json`` and, if any, ``hf_quant_config.json``."""
    inner = config.get("text_config")
    told = config.get("quantization_config")
    if told is None and isinstance(inner, Mapping):
        told = inner.get("quantization_config")
    if quant is not None:
        told = quant.get("quantization", quant)
    if not isinstance(told, Mapping):
        return uniform(_dtype(config))
    name = _format_of(told)
    kept = _kept(told)
    size, plain = bits_of(name) / 8, 2.0
    scheme = told.get("kv_cache_scheme")
    cache = str(told.get("kv_cache_quant_algo") or "").lower()
    eight = isinstance(scheme, Mapping) and scheme.get("num_bits") == 8
    return Precision(
        name,
        attention_bytes=plain if "attention" in kept else size,
        dense_bytes=plain if "dense" in kept else size,
        expert_bytes=size,
        head_bytes=plain if "head" in kept else size,
        kv_bytes=1.0 if "fp8" in cache or eight else 2.0,
        kv_told=bool(cache) or eight,
    )


def _dtype(config: Mapping[str, Any]) -> str:
    inner = config.get("text_config")
    for part in (config, inner if isinstance(inner, Mapping) else {}):
        for key in ("torch_dtype", "dtype"):
            if isinstance(part.get(key), str) and part[key] in {"float32", "bfloat16", "float16"}:
                return str(part[key])
    return "bf16"


def _format_of(told: Mapping[str, Any]) -> str:
    """Our name of the checkpoint's format."""
    algo = str(told.get("quant_algo") or told.get("quant_method") or "").lower()
    if algo == "compressed-tensors":
        groups = told.get("config_groups")
        first = next(iter(groups.values()), None) if isinstance(groups, Mapping) else None
        weights = (first.get("weights") if isinstance(first, Mapping) else None) or {}
        return _of_weights(weights.get("num_bits"), weights.get("group_size"), weights.get("type"))
    if algo in {"gptq", "awq", "w4a16_awq", "bitsandbytes"}:
        bits = told.get("bits") or (8 if told.get("load_in_8bit") else 4)
        if "awq" in algo:
            return "awq"
        return _of_weights(bits, told.get("group_size"), "int")
    if algo == "fp8":
        return "fp8-block" if told.get("weight_block_size") else "fp8"
    if "nvfp4" in algo or "mxfp4" in algo:
        return "nvfp4" if "nvfp4" in algo else "mxfp4"
    raise AnalyzerError(
        f"quantisation {algo or 'without a name'!r} is not known", "name it with --weights"
    )


def _of_weights(bits: object, group: object, kind: object) -> str:
    if bits == 8:
        return "fp8" if kind == "float" else "int8"
    return "int4-g32" if group == 32 else "int4"


_WHOLE = r"(?:\.\*|\*|$|[^.\w])"
_PARTS = (
    ("head", re.compile(r"lm_head|output_layer")),
    # Small projections are often left alone; where the large last one is not, a bound takes all of
    # attention to be quantised.
    (
        "attention",
        re.compile(
            rf"self_attn(?:{_WHOLE}|\.o_proj)|linear_attn(?:{_WHOLE}|\.out_proj)"
            rf"|mixer(?:{_WHOLE}|\.o(?:ut)?_proj)"
        ),
    ),
    (
        "dense",
        re.compile(
            r"shared_experts?(?!_gate|\w)|mlp\.router|mlp\\?\.\(?(?:gate\||up|down|gate_up|gate_proj)"
        ),
    ),
)
"""Names of modules -> the part of a model that they are."""


def _kept(told: Mapping[str, Any]) -> set[str]:
    """Parts left at 16 bits. A few layers named one by one are not the part: half are needed."""
    names: Iterable[Any] = ()
    for key in ("modules_to_not_convert", "ignore", "exclude_modules"):
        if isinstance(told.get(key), list):
            names = told[key]
    texts = [str(name) for name in names]
    layers = {found[1] for name in texts if (found := re.search(r"layers\.(\d+)\.", name))}
    kept = set()
    for part, pattern in _PARTS:
        hits = [name for name in texts if pattern.search(name)]
        single = {found[1] for name in hits if (found := re.search(r"layers\.(\d+)\.", name))}
        if hits and (part == "head" or not single or 2 * len(single) >= max(len(layers), 8)):
            kept.add(part)
    return kept if texts else {"head"}

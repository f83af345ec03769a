"""A model's shape from its Hugging Face ``config.json``.

Families differ in names and in what they add; each has a function here that says what its layers
hold. A key that a family cannot do without raises :class:`AnalyzerError` and names it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from analyzer.bounds._families import FAMILIES
from analyzer.bounds._fields import Fields
from analyzer.bounds.shape import Layer, Shape
from analyzer.errors import AnalyzerError

MOST_LAYERS = 2_000
"""More than any model has; a config may come from anybody."""


def shape_of(config: Mapping[str, Any], name: str = "") -> Shape:
    """Shape of the text decoder that the config describes."""
    inner = config.get("text_config") or config.get("llm_config") or config
    if not isinstance(inner, Mapping):
        raise AnalyzerError("text_config is no object", "pass a Hugging Face config.json")
    # What the outer object says of the whole stands where the inner one is silent.
    fields = Fields({**{k: v for k, v in config.items() if k != "text_config"}, **inner})
    family = fields.text("model_type")
    build: Callable[[Fields, int], Layer] | None = FAMILIES.get(family or "")
    if build is None:
        known = ", ".join(sorted(FAMILIES))
        raise AnalyzerError(f"model_type {family!r} is not known", f"known: {known}")
    count = len(fields.pattern) or fields.need("num_hidden_layers")
    if count > MOST_LAYERS:
        raise AnalyzerError(f"the config has {count} layers", "pass the model's own config.json")
    tied = fields.flag("tie_word_embeddings", default=(family or "").startswith("gemma"))
    vocab = fields.whole("vocab_size") or _default_vocab(family)
    hidden = fields.need("hidden_size")
    bias = family == "phimoe"
    return Shape(
        name=name or fields.text("_name_or_path") or str(family),
        hidden=hidden,
        vocab=vocab,
        tied=tied,
        layers=_layers(build, fields, count),
        final_norm=hidden * (2 if bias else 1),
        head_bias=vocab if bias and fields.flag("lm_head_bias") else 0,
        max_context=fields.whole("max_position_embeddings"),
    )


def _layers(build: Callable[[Fields, int], Layer], fields: Fields, count: int) -> tuple[Layer, ...]:
    """All layers; lists that are too short or hold the wrong things are the config's fault."""
    try:
        layers = tuple(build(fields, index) for index in range(count))
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise AnalyzerError(
            f"the config contradicts itself ({type(error).__name__}: {error})",
            "pass the model's full config.json",
        ) from None
    if any(one.ffn is not None and one.ffn.topk > one.ffn.experts for one in layers):
        raise AnalyzerError("the config uses more experts than it has", "pass the full config.json")
    return layers


def _default_vocab(family: str | None) -> int:
    """Sparse Gemma 3 configs leave the class default out."""
    if family in {"gemma3", "gemma3_text"}:
        return 262_208
    raise AnalyzerError("the config lacks vocab_size", "pass the model's full config.json")

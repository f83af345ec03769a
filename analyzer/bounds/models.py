"""Which model a name means: a key of the catalog, an alias, a Hugging Face id, or a config file.

Names are compared whole and without case, never by likeness. What people append for the precision
(``-FP8``, ``-AWQ``, ``-q4_K_M``) and for tuning (``-Instruct``, ``-it``) is taken off where what is
left names one model only; a precision found so is told.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from analyzer.bounds.hf_config import shape_of
from analyzer.bounds.precision import Precision, bits_of, format_name, from_config, uniform
from analyzer.bounds.shape import Shape
from analyzer.errors import AnalyzerError, near

_LARGEST_BYTES = 16_000_000
"""A config.json is a few kB; hf_quant_config.json lists modules and has some hundred."""

# What is appended to a name -> weight format. The longest is tried first.
_FORMATS = {
    "fp8": "fp8", "fp8-dynamic": "fp8", "fp8-kv": "fp8", "fp8-block": "fp8-block", "w8a8": "int8",
    "quantized.w8a8": "int8", "int8": "int8", "8bit": "int8", "gptq-int8": "int8",
    "awq": "awq", "awq-int4": "awq", "gptq": "int4", "gptq-int4": "int4", "int4": "int4",
    "w4a16": "int4", "quantized.w4a16": "int4", "4bit": "int4", "bnb-4bit": "int4",
    "nvfp4": "nvfp4", "fp4": "nvfp4", "mxfp4": "mxfp4", "bf16": "bf16", "fp16": "bf16",
    "q8_0": "q8_0", "q6_k": "q6_k", "q5_k_m": "q5_k_m", "q5_k_s": "q5_k_s", "q4_k_m": "q4_k_m",
    "q4_k_s": "q4_k_s", "q4_0": "q4_0", "q3_k_m": "q3_k_m",
}  # fmt: skip
_TUNED = ("instruct", "chat", "it", "hf", "base", "thinking", "gguf", "text", "pt", "latest")
_OLLAMA = re.compile(r"[\w.-]+:[\w.-]+")
_OLLAMA_FORMAT = "q4_k_m"
_OF_GGUF = frozenset(name for name in _FORMATS if name.startswith("q") and "_" in name)


@dataclass(frozen=True)
class Model:
    """A shape, the precision that name or checkpoint tells, and how that is known."""

    key: str
    shape: Shape
    own: Precision
    source: str
    confidence: str

    def precision(self, weights: str | None) -> Precision:
        """The checkpoint's own precision, or the one that somebody names instead of it."""
        if weights is None:
            return self.own
        named = format_name(weights)
        if named == self.own.name or {named, self.own.name} == {"fp8", "fp8-block"}:
            return self.own
        return uniform(weights)


@cache
def models() -> dict[str, dict[str, Any]]:
    """Key -> entry of the catalog that ships with the package."""
    text = files("analyzer.catalogs").joinpath("models.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def model(name: str) -> Model:
    """Model of a catalog name, or of a ``config.json`` or its folder.

    Raises :class:`AnalyzerError` where nothing, or more than one thing, is meant.
    """
    path = Path(name)
    if name.endswith(".json") or (path / "config.json").is_file():
        return _of_file(path)
    return catalogued(name)


def catalogued(name: str) -> Model:
    """Model of a catalog name; never a file, so that a name out of a log is no path."""
    key, weights = _found(name)
    entry = models()[key]
    own = from_config(entry["config"])
    if weights is not None and weights != own.name:
        own = _named(weights)
    elif weights is None and _OLLAMA.fullmatch(name.strip()) and not own.quantised:
        told = "weights Q4_K_M: an Ollama tag that names none has it"
        own = replace(uniform(_OLLAMA_FORMAT), assumed=(told,))
    return Model(
        key, shape_of(entry["config"], key), own, str(entry["source"]), str(entry["confidence"])
    )


def _named(weights: str) -> Precision:
    """Checkpoints named after their format mostly leave the head as it was; GGUF files do not."""
    told = (f"weights {weights}, as the name says",)
    if weights in _OF_GGUF or bits_of(weights) >= 16:
        return replace(uniform(weights), assumed=told)
    kept = "output head at 16 bits, as checkpoints of this kind mostly keep it"
    return replace(uniform(weights, head="bf16"), head_told=False, assumed=(*told, kept))


def _found(name: str) -> tuple[str, str | None]:
    """Key, and the weight format that the name tells."""
    wanted = name.strip().lower()
    rest = wanted.rpartition("/")[2]
    keys = _index().get(wanted) or _index().get(rest, frozenset())
    weights: str | None = None
    while not keys:
        cut, told = _without_ending(rest)
        if cut == rest:
            raise _unknown(name)
        weights = _better(weights, told)
        rest = cut
        keys = _index().get(rest, frozenset())
    if len(keys) > 1:
        raise AnalyzerError(
            f"{name!r} means several models", f"name one: {', '.join(sorted(keys))}"
        )
    (key,) = keys
    return key, weights


def _without_ending(name: str) -> tuple[str, str | None]:
    """The name without one thing appended, and the format if it was one."""
    for ending in sorted((*_FORMATS, *_TUNED), key=len, reverse=True):
        for mark in ("-", ":", "."):
            if name.endswith(f"{mark}{ending}"):
                return name.removesuffix(f"{mark}{ending}"), _FORMATS.get(ending)
    return name, None


def _better(one: str | None, other: str | None) -> str | None:
    """Of two formats the more telling: ``AWQ-INT4`` is AWQ."""
    return other if other and one in {None, "int4", "int8"} else one or other


@cache
def _index() -> dict[str, frozenset[str]]:
    """Every spelling without case -> the keys it stands for."""
    out: dict[str, set[str]] = {}
    for key, entry in models().items():
        for name in (key, *entry["aliases"]):
            lower = name.lower()
            for spelled in (lower, lower.rpartition("/")[2]):
                out.setdefault(spelled, set()).add(key)
                cut, told = _without_ending(spelled)
                # What the checkpoint of another name is served in must not be lost.
                if cut != spelled and told is None:
                    out.setdefault(cut, set()).add(key)
    return {name: frozenset(keys) for name, keys in out.items()}


def _unknown(name: str) -> AnalyzerError:
    meant = near(name.lower().rpartition("/")[2], [*models(), *_index()])
    keys = list(dict.fromkeys(key for one in meant for key in sorted(_index().get(one, ()))))
    did = f"did you mean {' or '.join(keys)}? Or pass" if keys else "pass"
    return AnalyzerError(
        f"no model {name!r} in the catalog",
        f"{did} its config.json, or to analyze bounds its figures: --params, --layers, --kv-heads, "
        "--head-dim",
    )


def _of_file(path: Path) -> Model:
    file = path / "config.json" if path.is_dir() else path
    config = _read(file)
    beside = file.with_name("hf_quant_config.json")
    if not beside.exists() and file.name.endswith(".config.json"):
        beside = file.with_name(file.name.replace(".config.json", ".hf_quant_config.json"))
    quant = _read(beside) if beside.exists() else None
    try:
        own = from_config(config, quant)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise AnalyzerError(
            f"{file}: its quantisation cannot be read ({error})", "name it with --weights"
        ) from None
    told = str(config.get("_name_or_path") or "")
    name = told or (file.parent.name if file.name == "config.json" else file.name)
    return Model(name, shape_of(config, name), own, str(file), "given")


def _read(file: Path) -> Mapping[str, Any]:
    try:
        if file.stat().st_size > _LARGEST_BYTES:
            raise AnalyzerError(f"{file} is too large for a config.json", "pass the right file")
        value = json.loads(file.read_bytes())
    except OSError as error:
        raise AnalyzerError(
            f"cannot read {file}: {error.strerror}",
            "a model is a name of the catalog, or a config.json",
        ) from None
    except (ValueError, RecursionError):
        raise AnalyzerError(f"{file} is no JSON", "pass a Hugging Face config.json") from None
    if not isinstance(value, Mapping):
        raise AnalyzerError(f"{file} holds no object", "pass a Hugging Face config.json")
    return value


def names() -> list[str]:
    """Every key and alias, for completion."""
    return sorted({*models(), *(alias for one in models().values() for alias in one["aliases"])})

"""What vLLM says of itself while it starts, as a deployment row."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from analyzer.readers._rows import COUNTS

_ARGUMENTS = re.compile(r"(?:non-default args: \{|args: Namespace\()")
_CONFIG = re.compile(r"Initializing an? (?:\w+ )?LLM engine \(")
# The first name of each is that of the configuration, the others those of the arguments.
_INTS = {
    "tp": ("tensor_parallel_size",),
    "pp": ("pipeline_parallel_size",),
    "dp": ("data_parallel_size",),
    "pcp": ("prefill_context_parallel_size",),
    "max_context_tokens": ("max_seq_len", "max_model_len"),
    "max_step_tokens": ("max_num_batched_tokens",),
    "max_running": ("max_num_seqs",),
    "block_tokens": ("block_size",),
}
_BOOLS = {
    "prefix_caching": ("enable_prefix_caching",),
    "chunked_prefill": ("enable_chunked_prefill", "chunked_prefill_enabled"),
}
_WORDS = {
    "model": ("model",),
    "dtype": ("dtype",),
    "quantization": ("quantization",),
    "kv_dtype": ("kv_cache_dtype",),
    "device_kind": ("device_config",),
}
_PLAIN = (
    ("max_context_tokens", re.compile(r"^Using max model len (\d{1,12})$")),
    (
        "max_context_tokens",
        re.compile(r"^Maximum concurrency for ([\d,]{1,15}) tokens per request"),
    ),
    ("max_step_tokens", re.compile(r"max_num_batched_tokens=(\d{1,12})")),
)
_BLOCKS = re.compile(r"# (?:GPU|cuda|rocm) blocks: (\d{1,12}),")
_DEVICE = re.compile(r"device_name=([\w-]{1,80}?)(?:,[\w,=\[\]-]*)?\.json")
_SIZE = re.compile(r"KV cache size: ([\d,]{1,20}) tokens")
_BYTES = {"float32": 4.0, "float": 4.0, "float16": 2.0, "half": 2.0, "bfloat16": 2.0}
_KV_BYTES = {**_BYTES, "fp8": 1.0, "fp8_e4m3": 1.0, "fp8_e5m2": 1.0, "fp8_inc": 1.0}
_CACHED = re.compile(r"models--(.+?)/snapshots/")


@dataclass
class Setup:
    """One start under way: ``record`` is its first line, ``facts`` what it said so far."""

    record: int | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    configured: str | None = None
    """Model of the configuration, of which each data-parallel engine prints one."""

    def take(self, record: int, message: str) -> tuple[bool, tuple[int, dict[str, Any]] | None]:
        """Whether the line told something, and the row of the start that it ends."""
        facts = _facts_of(message)
        if not facts:
            return False, None
        done = None
        again = _CONFIG.match(message) and self.configured not in (None, facts.get("model"))
        if (_ARGUMENTS.search(message) and self.facts) or again:
            done = self.close()
        if _CONFIG.match(message):
            self.configured = facts.get("model")
        if self.record is None:
            self.record = record
        self.facts |= facts
        return True, done

    def size(self, message: str) -> None:
        """A line that tells the pool; it makes a sample too, so it begins no row of its own."""
        told = _SIZE.search(message)
        if told and self.record is not None:
            tokens = int(told[1].replace(",", "") or 0)
            self.facts["kv_capacity_tokens"] = max(tokens, self.facts.get("kv_capacity_tokens", 0))

    def row(self) -> tuple[int, dict[str, Any]] | None:
        """Record and columns."""
        if self.record is None:
            return None
        row = {name: value for name, value in _columns(self.facts).items() if value is not None}
        return (self.record, row) if row else None

    def close(self) -> tuple[int, dict[str, Any]] | None:
        """The row; the next line begins another."""
        row = self.row()
        self.record, self.facts, self.configured = None, {}, None
        return row

    @property
    def engines(self) -> int:
        """Data-parallel engines that are told."""
        return int(self.facts.get("dp") or 1)


def _facts_of(message: str) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    if _ARGUMENTS.search(message) or _CONFIG.match(message):
        for column, names in _INTS.items():
            facts[column] = _number(_told(message, names, r"(\d{1,12})\b"))
        for column, names in _BOOLS.items():
            flag = _told(message, names, r"(True|False)\b")
            facts[column] = None if flag is None else flag == "True"
        for column, names in _WORDS.items():
            facts[column] = _told(message, names, r"['\"]?([\w./:@+-]{1,300})")
    for column, pattern in _PLAIN:
        if told := pattern.search(message):
            facts.setdefault(column, None)
            facts[column] = facts[column] or _number(told[1].replace(",", ""))
    if message.startswith("Chunked prefill is enabled"):
        facts["chunked_prefill"] = True
    if told := _BLOCKS.search(message):
        facts["blocks"] = _number(told[1])
    if told := _DEVICE.search(message):
        facts["gpu"] = told[1].replace("_", " ")
    return {name: value for name, value in facts.items() if value is not None}


def _told(message: str, names: tuple[str, ...], value: str) -> str | None:
    """A value by its name, as a keyword argument or as an entry of a dictionary."""
    for name in names:
        found = re.search(rf"(?:[({{ ,]'?){name}'?(?:=|: ){value}", message)
        if found and found[1] != "None":
            return found[1]
    return None


def _number(text: str | None) -> int | None:
    return int(text) if text and int(text) in COUNTS else None


def _columns(facts: dict[str, Any]) -> dict[str, Any]:
    tp, pp, dp = (facts.get(name) for name in ("tp", "pp", "dp"))
    engines, limit = dp or 1, facts.get("max_running")
    kind = str(facts.get("device_kind", ""))
    return {
        "model": _name_of(facts["model"]) if "model" in facts else None,
        "gpu": facts.get("gpu"),
        "gpu_count": tp * pp * engines * facts.get("pcp", 1)
        if tp and pp and kind.startswith(("cuda", "rocm"))
        else None,
        "tp": tp,
        "pp": pp,
        "weight_format": facts.get("quantization") or _type_of(facts),
        "weight_bytes_per_param": _weight_bytes(facts),
        "kv_bytes_per_value": _kv_bytes(facts),
        # Each data-parallel engine has its own pool and its own limit; the row is for all of them.
        "kv_capacity_tokens": _capacity(facts) if engines == 1 else None,
        "max_running": limit * engines if limit else None,
        "max_context_tokens": facts.get("max_context_tokens"),
        "max_step_tokens": facts.get("max_step_tokens"),
        "prefix_caching": facts.get("prefix_caching"),
        "chunked_prefill": facts.get("chunked_prefill"),
    }


def _name_of(model: str) -> str:
    """A model's id; of a local folder its name, which may be an id as the hub's tools write it."""
    cached = _CACHED.search(model)
    if cached:
        return cached[1].replace("--", "/")
    if not model.startswith(("/", "./", "../", "~")):
        return model
    return model.rstrip("/").rpartition("/")[2].replace("--", "/")


def _type_of(facts: dict[str, Any]) -> str | None:
    kind = facts.get("dtype")
    return str(kind).removeprefix("torch.") if kind and kind != "auto" else None


def _is_plain(facts: dict[str, Any]) -> bool:
    """Whether the configuration was told, and it has no quantisation."""
    return "device_kind" in facts and "quantization" not in facts


def _weight_bytes(facts: dict[str, Any]) -> float | None:
    return _BYTES.get(_type_of(facts) or "") if _is_plain(facts) else None


def _kv_bytes(facts: dict[str, Any]) -> float | None:
    kind = str(facts.get("kv_dtype", "")).removeprefix("torch.")
    if kind == "auto":  # the model's own, unless a quantised checkpoint says otherwise
        return _weight_bytes(facts)
    return _KV_BYTES.get(kind)


def _capacity(facts: dict[str, Any]) -> int | None:
    if facts.get("kv_capacity_tokens"):
        tokens = facts["kv_capacity_tokens"]
    else:
        tokens = facts.get("blocks", 0) * facts.get("block_tokens", 0)
    return tokens if tokens and tokens in COUNTS else None

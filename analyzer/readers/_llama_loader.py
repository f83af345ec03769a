"""llama.cpp's model loader, as it talks while it loads: what lies where, as a deployment row."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from analyzer.readers._rows import COUNTS

LINE = (
    r"(?:llama_model_loader|llama_model_load\w*|llm_load_print_meta|print_info|llm_load_tensors"
    r"|load_tensors|llama_kv_cache\w*|llama_context|llama_new_context_with_model"
    r"|llama_init_from_model): "
    r"|initializing slots, n_slots = |msg=\"(?:model weights|offloaded \d+/\d+ layers)"
)
QUIET = "model loader line without a size we use"

_MIB = 1 << 20
_SIZES = {"B": 1, "KiB": 1 << 10, "MiB": _MIB, "GiB": 1 << 30, "TiB": 1 << 40}
# ggml type -> (values in a block, bytes of a block)
_TYPES = {
    "f32": (1, 4), "f16": (1, 2), "bf16": (1, 2), "q4_0": (32, 18), "q4_1": (32, 20),
    "q5_0": (32, 22), "q5_1": (32, 24), "q8_0": (32, 34), "q8_1": (32, 36), "q2_k": (256, 84),
    "q3_k": (256, 110), "q4_k": (256, 144), "q5_k": (256, 176), "q6_k": (256, 210),
    "q8_k": (256, 292), "iq4_nl": (32, 18), "iq4_xs": (256, 136), "mxfp4": (32, 17),
}  # fmt: skip
_BEGIN = re.compile(r"llama_model_loader: loaded meta data|msg=\"(?:starting|loading model)")
_EMBEDDING = re.compile(r"- tensor +\d+: +token_embd\.weight +(\w+) +\[ *(\d{1,12}), *(\d{1,12})")
_OFFLOADED = re.compile(r"offloaded (\d{1,6})/(\d{1,6}) layers to GPU")
_BUFFER = re.compile(r"load_tensors: +(\S+) +(?:model )?buffer size = *([\d.]+) MiB")
_WEIGHTS = re.compile(r'msg="model weights" device=(\S+) size="([\d.]+) (\w+)"')
_CELLS = re.compile(r"\( *(\d{1,12}) cells, .*?\d+/(\d{1,6}) seqs\), *K \((\w+)\)")
_KV_TYPE = re.compile(r"KV self size += .*?K \((\w+)\)")
_KV_SIZE = re.compile(r"llama_kv_cache_init: kv_size = (\d{1,12})")
_NUMBERS = {
    "layers": re.compile(r"(?:print_info|print_meta): n_layer += (\d{1,6})$"),
    "kv_heads": re.compile(r"(?:print_info|print_meta): n_head_kv += (\d{1,6})$"),
    "head_dim": re.compile(r"(?:print_info|print_meta): n_embd_head_k += (\d{1,6})$"),
    "max_running": re.compile(r"(?:n_seq_max +=|initializing slots, n_slots =) (\d{1,6})$"),
}
_NAME = re.compile(r"(?:general\.name +str|print_(?:info|meta): general\.name) += (.{1,120})$")
_IN_MAIN_MEMORY = re.compile(r"^(?:CPU|BLAS|AMX)|_Host$")
_WEIGHTS_OF = ("gpu_weight_bytes", "cpu_weight_bytes")
_PLACED = (*_WEIGHTS_OF, "gpu_layers", "kv_capacity_tokens")


@dataclass
class Loader:
    """One load under way: ``record`` is its first line, ``last`` what the load before it gave."""

    record: int | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    last: dict[str, Any] = field(default_factory=dict)
    rough: bool = False
    """The weights so far are those a newer Ollama rounds; the loader's own lines replace them."""

    def take(self, record: int, text: str) -> tuple[bool, tuple[int, dict[str, Any]] | None]:
        """Whether the line told something, and the row of the load that it ends."""
        facts = _facts_of(text)
        done = None
        again = "gpu_layers" in facts and "gpu_layers" in self.facts
        if _BEGIN.search(text) or again:
            done = self.close()
        if not facts:
            return False, done
        if self.record is None:
            self.record = record
        if any(name in facts for name in _WEIGHTS_OF) and not self._settled(text):
            return False, done
        for name, value in facts.items():
            if name in _WEIGHTS_OF:  # one line a device
                value += self.facts.get(name, 0)
            elif name == "kv_capacity_tokens":  # a model with two caches tells the larger first
                value = max(value, self.facts.get(name, 0))
            self.facts[name] = value
        return True, done

    def _settled(self, text: str) -> bool:
        """Whether the weights of this line count: one kind of line does, the exact one."""
        rough = _WEIGHTS.search(text) is not None
        told = any(name in self.facts for name in _WEIGHTS_OF)
        if told and rough and not self.rough:
            return False
        if told and self.rough and not rough:
            for name in _WEIGHTS_OF:
                self.facts.pop(name, None)
        self.rough = rough
        return True

    def row(self) -> tuple[int, dict[str, Any]] | None:
        """Record and columns, where the load says what lies where and not what the last one did.

        A size that no machine has is not told.
        """
        if self.record is None or self.facts == self.last:
            return None
        facts = {
            name: value
            for name, value in self.facts.items()
            if not isinstance(value, int) or value in COUNTS
        }
        return (self.record, facts) if any(name in facts for name in _PLACED) else None

    def close(self) -> tuple[int, dict[str, Any]] | None:
        """The row, and nothing carried over but what it was."""
        row = self.row()
        if row is not None:
            self.last = dict(self.facts)
        self.record, self.facts, self.rough = None, {}, False
        return row


def _facts_of(text: str) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    for name, pattern in _NUMBERS.items():
        if told := pattern.search(text):
            facts[name] = int(told[1])
    if told := _NAME.search(text):
        facts["model"] = told[1].strip()
    if told := _EMBEDDING.search(text):
        facts |= _embedding(told[1], int(told[2]), int(told[3]))
    if told := _OFFLOADED.search(text):
        facts["gpu_layers"], facts["offloadable_layers"] = int(told[1]), int(told[2])
    if told := _BUFFER.search(text):
        facts[_place(told[1])] = _bytes(told[2], _MIB)
    elif (told := _WEIGHTS.search(text)) and told[3] in _SIZES:
        facts[_place(told[1])] = _bytes(told[2], _SIZES[told[3]])
    if told := _CELLS.search(text):
        # Each stream of sequences has that many cells of its own.
        facts["kv_capacity_tokens"] = int(told[1]) * int(told[2])
        facts |= _per_value(told[3])
    elif told := _KV_TYPE.search(text):
        facts |= _per_value(told[1])
    elif told := _KV_SIZE.search(text):
        facts["kv_capacity_tokens"] = int(told[1])
    return {name: value for name, value in facts.items() if value is not None}


def _place(device: str) -> str:
    return "cpu_weight_bytes" if _IN_MAIN_MEMORY.search(device) else "gpu_weight_bytes"


def _bytes(number: str, unit: int) -> int | None:
    try:
        return round(float(number) * unit)
    except (ValueError, OverflowError):
        return None


def _embedding(kind: str, width: int, rows: int) -> dict[str, int]:
    values, size = _TYPES.get(kind.lower(), (0, 0))
    if not values or width * rows % values:
        return {}
    return {"input_embedding_bytes": width * rows // values * size}


def _per_value(kind: str) -> dict[str, float]:
    values, size = _TYPES.get(kind.lower(), (0, 0))
    return {"kv_bytes_per_value": size / values} if values else {}

"""A step kernel by kernel, as kernels follow each other: what a simulator adds up.

A bound takes the larger of all bytes and all products. A step that runs waits for each kind of
kernel in turn, and near the ridge a kernel hides neither its reads nor its products: it takes the
root of the sum of their squares, which is how grouped expert kernels of published tables go
(RTX PRO 6000, 64 experts of Qwen3-30B-A3B: 426 us for 64 tokens, 591 for 2,048, 781 for 4,096).
Data-parallel ranks with shared experts step together: each reads attention weights of its own,
their tokens meet at the experts, and each layer exchanges them twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import hypot

from analyzer.bounds.hardware import Accelerator
from analyzer.bounds.precision import Precision
from analyzer.bounds.shape import Shape
from analyzer.bounds.step import HOP_NS, Layout
from analyzer.errors import AnalyzerError

_NS = 1e9
_ACTIVATION_BYTES = 2.0
_GRAPH_SMALL, _GRAPH_FINE = (1, 2, 4), 256


@dataclass(frozen=True)
class Link:
    """Exchanges between devices: what one takes at least, and bytes a second beyond that."""

    latency_ns: float = HOP_NS
    bytes_s: float | None = None


class Kernels:
    """Times in ns on one device of a layout; ``tokens`` are a rank's, ``total`` those of all."""

    def __init__(
        self, shape: Shape, precision: Precision, part: Accelerator, layout: Layout
    ) -> None:
        self.shape, self.layout = shape, layout
        self.groups, tensor = max(1, layout.attention_data), layout.attention_tensor
        per_byte = _NS / part.bandwidth_bytes_s
        fixed = precision.fixed_bytes(shape)
        self.fixed_ns = fixed / tensor * per_byte
        """Everything but experts, read once: each rank holds it."""
        self.state_ns = 2 * shape.state_bytes() / tensor * per_byte
        self.expert_byte_ns = precision.expert_bytes / layout.split * per_byte

        def product_ns(params: float, size: float, devices: int) -> float:
            rate = part.usual(8 * size, four_bit=precision.four_bit_kernels)
            if rate is None:
                raise AnalyzerError(f"no compute rate of {part.key} is known", "name another GPU")
            return 2.0 * params / rate / devices * _NS if params else 0.0

        self.tiled = all(
            one.kv_elements == one.shards * (one.qk_dim + one.v_dim) for one in shape.attention
        )
        dense = shape.dense_params + shape.norm_params
        self.token_ns = product_ns(shape.mixer_params, precision.attention_bytes, tensor)
        self.token_ns += product_ns(dense, precision.dense_bytes, tensor)
        self.row_ns = product_ns(shape.head_params, precision.head_bytes, tensor)
        self.routed_ns = product_ns(shape.routed_params, precision.expert_bytes, layout.split)

    def linear_ns(self, tokens: float, rows: float, sequences: float, total: float) -> float:
        """Matrix products of a step: ``rows`` get logits, ``sequences`` have a state."""
        products = self.token_ns * tokens + self.row_ns * rows
        spent = hypot(self.fixed_ns + self.state_ns * sequences, products)
        if self.routed_ns:
            read = self.shape.experts_read(total, strict=False) * self.expert_byte_ns
            spent += hypot(read, self.routed_ns * total)
        return spent

    def attention_ns(self, read_ns: float, products_ns: float, rows: int) -> float:
        """Attention of one query a sequence: ``rows`` are computed for it where heads have tiles.

        Beside a prompt FlashAttention 2 neither packs the heads of a group into a tile, as it does
        in steps of decodes alone, nor splits the cache: a tile of 64 rows is computed for one.
        A latent's kernels take decodes apart from prompts.
        """
        return hypot(read_ns, products_ns * (rows if self.tiled else 1))

    def exchange_ns(self, tokens: float, link: Link) -> float:
        """All-reduces of a layer that devices share; gather and scatter of tokens for experts."""
        size = tokens * self.shape.hidden * _ACTIVATION_BYTES
        each = size / link.bytes_s * _NS if link.bytes_s else 0.0
        tensor, spent = self.layout.attention_tensor, 0.0
        meeting = sum(count for _, count in self.shape.expert_kinds) if self.groups > 1 else 0
        if tensor > 1:
            ring = link.latency_ns + 2 * (tensor - 1) / tensor * each
            spent += (2 * len(self.shape.layers) - meeting) * ring
        return spent + 2 * meeting * (link.latency_ns + (self.groups - 1) * each)


def captured(tokens: int) -> int:
    """Tokens of the graph that replays so many: vLLM captures 1, 2, 4, then each 8, then 16."""
    for size in _GRAPH_SMALL:
        if tokens <= size:
            return size
    step = 8 if tokens <= _GRAPH_FINE else 16
    return -(-tokens // step) * step

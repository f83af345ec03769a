"""Some layers stay in main memory, and each token waits for them.

The input embedding, 430,940,160 bytes of Q6_K, always lies there; one row a token is read of it.

main: 53 of 65 layers on the GPU. 11.74 GB at 504 GB/s and 2.71 GB at 76.8 GB/s: 58.7 ms, and
answers take 63 ms a token. With all weights on the GPU it would be 28.7 ms: 46 %, which misleads.

twin: 65 of 65, and 33.5 ms a token; the embedding in main memory costs nothing, for reading it
whole would make 34.3 ms, more than was observed.

no_embedding_told: neither file nor log says how large the embedding is; layers are alike.

twin_no_embedding_told: all layers on the GPU: what is left is taken for the embedding.

experts_in_main_memory: all layers count as on the GPU, but half the weights are not there.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from analyzer.simulate.writers import NS, rfc3339, seconds, to_json
from cases._build import MS, US, at, expect, silent, write_case

if TYPE_CHECKING:
    from pathlib import Path

MODEL = "siskin:24b"
T0 = at("2026-02-20T17:30:00Z")
MIB = 1 << 20
EMBEDDING = 430_940_160
REQUESTS, OUTPUT = 14, 150
GPU, HOST = 504e9, 76.8e9
FILE = {"memory_bandwidth_gb_s": 504, "cpu_memory_bandwidth_gb_s": 76.8}
TENSOR = (
    "llama_model_loader: - tensor    0:                token_embd.weight q6_K     "
    "[  4096, 128256,     1,     1 ]"
)


def _capture(index: int, tpot: int) -> str:
    start = T0 + 20 * NS * index
    parts = {"load": 25 * MS, "prompt_eval": 180 * MS, "eval": OUTPUT * tpot}
    response = {
        "model": MODEL,
        "created_at": rfc3339(start + sum(parts.values())),
        "done": True,
        "total_duration": sum(parts.values()),
        **{f"{name}_duration": value for name, value in parts.items()},
        "prompt_eval_count": 350,
        "eval_count": OUTPUT,
    }
    return to_json({"sent_at": seconds(start), "response": response})


def _write(
    folder: Path, tpot: int, layers: int, gpu_mib: float, host_mib: float, *, embedding: bool = True
) -> None:
    log = [
        *([TENSOR] if embedding else []),
        "print_info: n_layer          = 64",
        f"load_tensors: offloaded {layers}/65 layers to GPU",
        f"load_tensors:        CUDA0 model buffer size = {gpu_mib:.2f} MiB",
        f"load_tensors:   CPU_Mapped model buffer size = {host_mib:.2f} MiB",
    ]
    files = {
        "server.log": log,
        "ollama.jsonl": [_capture(k, tpot) for k in range(REQUESTS)],
        "deployment.json": [json.dumps(FILE)],
    }
    write_case(folder, files, MODEL)


_ALL = ["decode.below-bound", "decode.offloaded", "trust.faster-than-physics", "load.cold-start"]
_OTHERS = [rule for rule in _ALL if rule != "decode.offloaded"]
PLACED, HELD = 11_200.0, 3_000.0
READ = HELD * MIB - EMBEDDING


def main(folder: Path) -> None:
    """Twelve layers are read from main memory."""
    _write(folder, 63_000 * US, 53, PLACED, HELD)


EXPECT_MAIN = expect(
    "decode.offloaded", "decode", REQUESTS, READ / HOST * 1e3, "ms", must_not=_OTHERS
)


def twin(folder: Path) -> None:
    """Only the embedding lies in main memory."""
    _write(folder, 33_500 * US, 65, PLACED + READ / MIB, EMBEDDING / MIB)


EXPECT_TWIN = silent(_ALL)


def variant_no_embedding_told(folder: Path) -> None:
    """The size of the embedding has to be taken from the layers."""
    _write(folder, 63_000 * US, 53, PLACED, HELD, embedding=False)


def variant_twin_no_embedding_told(folder: Path) -> None:
    """All layers on the GPU."""
    _write(folder, 33_500 * US, 65, PLACED + READ / MIB, EMBEDDING / MIB, embedding=False)


def variant_experts_in_main_memory(folder: Path) -> None:
    """Counting layers does not tell where the experts lie."""
    _write(folder, 125_000 * US, 65, 6_000.0, 8_200.0)


EXPECT_EXPERTS = expect(
    "decode.offloaded", "decode", REQUESTS, (8_200 * MIB - EMBEDDING) / HOST * 1e3, "ms",
    must_not=_OTHERS,
)  # fmt: skip

CASES = {
    "main": (main, EXPECT_MAIN),
    "twin": (twin, EXPECT_TWIN),
    "no_embedding_told": (variant_no_embedding_told, EXPECT_MAIN),
    "twin_no_embedding_told": (variant_twin_no_embedding_told, EXPECT_TWIN),
    "experts_in_main_memory": (variant_experts_in_main_memory, EXPECT_EXPERTS),
}

"""Some layers stay in main memory, and each token waits for them.

The input embedding, 430,940,160 bytes of Q6_K, always lies there; one row a token is read of it.

main: 53 of 65 layers on the GPU. 11.74 GB at 504 GB/s and 2.71 GB at 76.8 GB/s: 58.7 ms, and
answers take 63 ms a token. With all weights on the GPU it would be 28.7 ms: 46 %, which misleads.

twin: 65 of 65, and 33.5 ms a token; the embedding in main memory costs nothing, for reading it
whole would make 34.3 ms, more than was observed.

no_embedding_told: neither file nor log says how large the embedding is; layers are alike.

twin_no_embedding_told: all layers on the GPU: what is left is taken for the embedding.

experts_in_main_memory: all layers count as on the GPU, but half the weights are not there.

main_memory_untold: nobody says how fast main memory is, so nobody can call the answers slow.

most_in_main_memory: six of 65 layers on the GPU. few_requests: three answers. fast_host: four
channels, and the same placement makes two fifths of the floor. one_layer: 9 % of it are within
the spread of engines.

two_devices, two_told: the GPU's share lies on two, which a token passes in turn; told or not.

named_part: the GPU by its name, main memory by its bandwidth. loaded_twice: the same load again.

refitted: a first load with layers in main memory, then one with all on the GPU: the last counts.

unified: Metal's buffer is main memory, and all of it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from analyzer.simulate.writers import NS, rfc3339, seconds, to_json
from cases._build import MS, US, at, expect, silent, write_case

if TYPE_CHECKING:
    from collections.abc import Mapping
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


def _load(layers: int, buffers: dict[str, float], *, embedding: bool = True) -> list[str]:
    """What the loader prints."""
    return [
        *([TENSOR] if embedding else []),
        "print_info: n_layer          = 64",
        f"load_tensors: offloaded {layers}/65 layers to GPU",
        *(
            f"load_tensors: {name:>12} model buffer size = {size:.2f} MiB"
            for name, size in buffers.items()
        ),
    ]


def _write(
    folder: Path, tpot: int, layers: int, gpu_mib: float, host_mib: float, *, embedding: bool = True
) -> None:
    buffers = {"CUDA0": gpu_mib, "CPU_Mapped": host_mib}
    _files(folder, tpot, _load(layers, buffers, embedding=embedding), FILE)


def _files(
    folder: Path, tpot: int, log: list[str], file: Mapping[str, object], requests: int = REQUESTS
) -> None:
    files = {
        "server.log": log,
        "ollama.jsonl": [_capture(k, tpot) for k in range(requests)],
        "deployment.json": [json.dumps(file)],
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


def _floor_ms(placed_mib: float, read: float, gpu: float = GPU, host: float = HOST) -> float:
    """Both memories, one after the other."""
    return (placed_mib * MIB / gpu + read / host) * 1e3


def _offloaded(read: float, host: float = HOST, requests: int = REQUESTS) -> dict[str, object]:
    return expect(
        "decode.offloaded", "decode", requests, read / host * 1e3, "ms", must_not=_OTHERS
    )  # fmt: skip


def variant_main_memory_untold(folder: Path) -> None:
    """At the GPU's speed the weights would take 28.7 ms: 36 % of what is seen."""
    log = _load(53, {"CUDA0": PLACED, "CPU_Mapped": HELD})
    _files(folder, 79 * MS, log, {"memory_bandwidth_gb_s": 504})


def variant_most_in_main_memory(folder: Path) -> None:
    """The GPU hardly matters."""
    _write(folder, round(_floor_ms(1_300, 12_900 * MIB - EMBEDDING) / 0.8 * MS), 6, 1_300, 12_900)


def variant_few_requests(folder: Path) -> None:
    """Three answers make it a setting."""
    log = _load(53, {"CUDA0": PLACED, "CPU_Mapped": HELD})
    _files(folder, 63 * MS, log, FILE, requests=3)


FAST = 153.6e9


def variant_fast_host(folder: Path) -> None:
    """17.7 of 41 ms."""
    log = _load(53, {"CUDA0": PLACED, "CPU_Mapped": HELD})
    file = FILE | {"cpu_memory_bandwidth_gb_s": FAST / 1e9}
    _files(folder, round(_floor_ms(PLACED, READ, host=FAST) / 0.85 * MS), log, file)


def variant_one_layer(folder: Path) -> None:
    """215 MiB are read there, 2.9 of 31.7 ms."""
    tpot = _floor_ms(13_800, 215 * MIB) / 0.87
    _write(folder, round(tpot * MS), 64, 13_800, EMBEDDING / MIB + 215)


def variant_two_devices(folder: Path) -> None:
    """Each has layers of its own."""
    log = _load(53, {"CUDA0": PLACED / 2, "CUDA1": PLACED / 2, "CPU_Mapped": HELD})
    _files(folder, 63 * MS, log, FILE)


def variant_two_told(folder: Path) -> None:
    """Two devices read no faster than one where a token passes them in turn."""
    log = _load(53, {"CUDA0": PLACED / 2, "CUDA1": PLACED / 2, "CPU_Mapped": HELD})
    _files(folder, 63 * MS, log, FILE | {"gpu_count": 2})


def variant_named_part(folder: Path) -> None:
    """1,008 GB/s by the catalog."""
    log = _load(53, {"CUDA0": PLACED, "CPU_Mapped": HELD})
    file = {"gpu": "NVIDIA GeForce RTX 4090", "cpu_memory_bandwidth_gb_s": HOST / 1e9}
    _files(folder, round(_floor_ms(PLACED, READ, gpu=1008e9) / 0.9 * MS), log, file)


def variant_loaded_twice(folder: Path) -> None:
    """A reload adds nothing to what a step reads."""
    one = _load(53, {"CUDA0": PLACED, "CPU_Mapped": HELD})
    _files(folder, 63 * MS, [*one, *one], FILE)


def variant_refitted(folder: Path) -> None:
    """Answers are of the last load."""
    before = _load(53, {"CUDA0": PLACED, "CPU_Mapped": HELD})
    after = _load(65, {"CUDA0": PLACED + READ / MIB, "CPU_Mapped": EMBEDDING / MIB})
    _files(folder, 33_500 * US, [*before, *after], FILE)


def variant_unified(folder: Path) -> None:
    """Nothing lies elsewhere."""
    log = _load(65, {"Metal_Mapped": 14_000, "CPU_Mapped": EMBEDDING / MIB})
    _files(
        folder, round(14_000 * MIB / 400e9 * 1e3 / 0.85 * MS), log, {"memory_bandwidth_gb_s": 400}
    )


CASES = {
    "main": (main, EXPECT_MAIN),
    "twin": (twin, EXPECT_TWIN),
    "no_embedding_told": (variant_no_embedding_told, EXPECT_MAIN),
    "twin_no_embedding_told": (variant_twin_no_embedding_told, EXPECT_TWIN),
    "experts_in_main_memory": (variant_experts_in_main_memory, EXPECT_EXPERTS),
    "main_memory_untold": (variant_main_memory_untold, silent(_ALL)),
    "most_in_main_memory": (variant_most_in_main_memory, _offloaded(12_900 * MIB - EMBEDDING)),
    "few_requests": (variant_few_requests, _offloaded(READ, requests=3)),
    "fast_host": (variant_fast_host, _offloaded(READ, host=FAST)),
    "one_layer": (variant_one_layer, silent(_ALL)),
    "two_devices": (variant_two_devices, EXPECT_MAIN),
    "two_told": (variant_two_told, EXPECT_MAIN),
    "named_part": (variant_named_part, EXPECT_MAIN),
    "loaded_twice": (variant_loaded_twice, EXPECT_MAIN),
    "refitted": (variant_refitted, silent(_ALL)),
    "unified": (variant_unified, silent(_ALL)),
}

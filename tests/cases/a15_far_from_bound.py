"""A third of what the memory's bandwidth allows, for no reason that the logs show.

The deployment reads 13.8 GB of weights at 2,000 GB/s, 6.90 ms, and 57,344 bytes a cached token.

main: six single answers of 300 tokens at 19.3 ms a token: 36 % of the bound.

twin: ten answers at once, 20,000 tokens each: their caches are 11.5 GB, which the bound counts; at
15.2 ms a token 84 % of it is reached.

wrong_precision: the file says 2 bytes a parameter, the engine runs one: 4.4 ms a token is faster
than 13.8 GB can be read.

speculation: 2.6 tokens a step make 3.3 ms a token.

layout_unknown: four GPUs, and nobody says how they share the model: only strict is known.

interference: eight streams at 33 ms a token, while long prompts are in work for most of the time.

seen_in_part: one request in ten is logged; the engine says that 44 run, and 24 ms is near their
bound. alone_by_its_log: the engine says that one runs, so the answers are as slow as they look.

two_devices: Llama 70B by name, tp 2: 35.0 ms of weights, 112 ms a token. grouped_long: twelve
answers of 24,000 tokens at 45 ms. latent: sixteen answers of DeepSeek-V3 on eight H200 at 95 ms.

experts_launches: gpt-oss-20b on a B200 at 3.15 ms, as vLLM publishes it: 15 % of the bound, but
launches of 24 layers with experts are most of so small a step. experts_slow: the same at 12 ms.

chunks_of_four: four tokens a chunk, and still 17 ms a token. released: a hop holds answers and lets
them go in 3 ms, which is no speed of a GPU. half_precision_cache: one byte a cached value.
"""

from __future__ import annotations

import json
from decimal import Decimal
from typing import TYPE_CHECKING

from analyzer.simulate.writers import (
    NS,
    engine_line,
    openai_usage,
    request_record,
    status_message,
    write_lines,
)
from cases._build import MS, US, answer, at, expect, silent, write_case

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

MODEL = "dunlin-7b"
T0 = at("2026-02-11T09:00:00Z")
FILE = {
    "memory_bandwidth_gb_s": 2000,
    "params": 6.9e9,
    "weight_bytes_per_param": 2,
    "layers": 28,
    "kv_heads": 4,
    "head_dim": 128,
    "kv_bytes_per_value": 2,
}
OUTPUT = 300


def bound_ms(batch: int, context: float) -> float:
    """By hand: bytes over bandwidth."""
    return (6.9e9 * 2 + batch * context * 2 * 28 * 4 * 128 * 2) / 2000e9 * 1e3


def _stream(
    folder: Path,
    starts: list[int],
    prompt: int,
    first: int,
    tpot: int,
    chunk: int = 1,
    **file: object,
) -> None:
    lines = []
    for k, start in enumerate(starts):
        chunks = [(first, None, 5)]
        chunks += [
            (first + tpot * min(chunk * (i + 1), OUTPUT - 1), None, 5 * chunk)
            for i in range(-(-(OUTPUT - 1) // chunk))
        ]
        usage = openai_usage(prompt, OUTPUT)
        lines += answer(f"q{k:02d}", T0 + start, chunks, usage, model=MODEL)
    told = json.dumps(FILE | file)
    write_case(folder, {"client.jsonl": lines, "deployment.json": [told]}, MODEL)


SINGLE = [15 * NS * k for k in range(6)]
_ALL = ["decode.below-bound", "decode.offloaded", "trust.faster-than-physics"]


def main(folder: Path) -> None:
    """Single answers far from the bound."""
    _stream(folder, SINGLE, 800, 120 * MS, 19_300 * US)


EXPECT_MAIN = expect(
    "decode.below-bound", "decode", 6, bound_ms(1, 950) / 19.3, "ratio",
    must_not=["decode.offloaded", "trust.faster-than-physics", "metric.multi-token-chunks"],
)  # fmt: skip


def twin(folder: Path) -> None:
    """A batch with long contexts."""
    _stream(folder, [0] * 10, 20_000, 4 * NS, 15_200 * US)


EXPECT_TWIN = silent(_ALL)


def variant_wrong_precision(folder: Path) -> None:
    """Faster than the file's bytes can be read."""
    _stream(folder, SINGLE, 800, 120 * MS, 4_400 * US)


EXPECT_WRONG_PRECISION = expect(
    "trust.faster-than-physics", "none", 6, bound_ms(1, 950) / 4.4, "times",
    must_not=["decode.below-bound", "decode.offloaded"],
)  # fmt: skip


def variant_speculation(folder: Path) -> None:
    """Three tokens a chunk and step."""
    _stream(folder, SINGLE, 800, 120 * MS, 3_300 * US, chunk=3)


EXPECT_SPECULATION = expect(
    "trust.faster-than-physics", "none", 6, bound_ms(1, 950) / 3.3, "times",
    must_not=["decode.below-bound", "decode.offloaded"],
)  # fmt: skip


def variant_layout_unknown(folder: Path) -> None:
    """Strict alone, over four GPUs, is no ground to call anything slow."""
    _stream(folder, SINGLE, 800, 120 * MS, 19_300 * US, gpu_count=4)


EXPECT_LAYOUT_UNKNOWN = silent(_ALL)


def variant_interference(folder: Path) -> None:
    """Eight streams, and beside them ten prompts of 0.9 s each, one after the other."""
    lines = [_record(f"s{k}", 0, 600, 320, prefill=20 * MS, decode=319 * 33 * MS) for k in range(8)]
    lines += [
        _record(f"p{k}", (1 + k) * NS, 30_000, 4, prefill=900 * MS, decode=60 * MS)
        for k in range(10)
    ]
    told = json.dumps(FILE)
    write_case(folder, {"records.jsonl": lines, "deployment.json": [told]}, MODEL)


def _record(name: str, start: int, prompt: int, output: int, *, prefill: int, decode: int) -> str:
    durations = {"queue": 0, "prefill": prefill, "decode": decode, "e2e": prefill + decode}
    return request_record(
        name, vantage="engine", started_ns=T0 + start, durations_ns=durations, model=MODEL,
        usage=openai_usage(prompt, output),
    )  # fmt: skip


EXPECT_INTERFERENCE = silent(_ALL)


def _by_name(folder: Path, tpot: int, model: str, n: int = 6, **file: object) -> None:
    """Single records of a model that the catalog knows."""
    lines = [
        _record(f"n{k}", 15 * NS * k, 900, OUTPUT, prefill=200 * MS, decode=299 * tpot)
        for k in range(n)
    ]
    write_case(
        folder, {"records.jsonl": lines, "deployment.json": [json.dumps({"model": model, **file})]},
        MODEL,
    )  # fmt: skip


def _batch(folder: Path, count: int, prompt: int, tpot: int, file: Mapping[str, object]) -> None:
    """Answers that decode together."""
    lines = [
        _record(f"b{k:02d}", 0, prompt, OUTPUT, prefill=5 * NS, decode=299 * tpot)
        for k in range(count)
    ]
    write_case(folder, {"records.jsonl": lines, "deployment.json": [json.dumps(file)]}, MODEL)


def _engine_log(running: int) -> list[str]:
    """Status lines every five seconds."""
    message = status_message(
        prompt_rate=Decimal(400), generation_rate=Decimal(900), running=running, waiting=0,
        kv_percent=Decimal(31), hit_percent=Decimal(0),
    )  # fmt: skip
    return [engine_line(T0 + 5 * NS * k, message) for k in range(20)]


def variant_seen_in_part(folder: Path) -> None:
    """Nobody knows the batch but the engine."""
    _stream(folder, SINGLE, 6_000, 300 * MS, 24_000 * US)
    write_lines(folder / "engine.log", _engine_log(44))


def variant_alone_by_its_log(folder: Path) -> None:
    """The engine's own count agrees."""
    main(folder)
    write_lines(folder / "engine.log", _engine_log(1))


def variant_two_devices(folder: Path) -> None:
    """Each reads half of the weights."""
    _by_name(
        folder, 112 * MS, "llama-3.1-70b", gpu="NVIDIA A100-SXM4-80GB", gpu_count=2, tp=2
    )  # fmt: skip


# 70,553,706,496 parameters less the rows of the embedding, 2 bytes; 80 layers x 8 heads x 128 x 2.
_BIG_MS = ((70_553_706_496 - 128_256 * 8192) * 2 + 1_050 * 80 * 2 * 8 * 128 * 2) / 2 / 2039e9 * 1e3
EXPECT_TWO_DEVICES = expect(
    "decode.below-bound", "decode", 6, _BIG_MS / 112, "ratio", must_not=_ALL[1:]
)


def variant_grouped_long(folder: Path) -> None:
    """Caches are most of the bytes."""
    _batch(folder, 12, 24_000, 45 * MS, FILE)


EXPECT_GROUPED_LONG = expect(
    "decode.below-bound", "decode", 12, bound_ms(12, 24_150) / 45, "ratio", must_not=_ALL[1:]
)


def variant_half_precision_cache(folder: Path) -> None:
    """The same answers with a cache of one byte a value are as near to the bound as the twin."""
    _batch(folder, 12, 24_000, 14_500 * US, FILE | {"kv_bytes_per_value": 1})


def variant_latent(folder: Path) -> None:
    """576 elements a token and layer are cached, not 128 heads of them."""
    file = {"model": "deepseek-v3", "gpu": "NVIDIA H200", "gpu_count": 8, "tp": 8}
    _batch(folder, 16, 8_000, 95 * MS, file)


# 16 tokens reach 39.8 % of 256 experts in 58 layers, 3 x 7168 x 2048 bytes each; 16.2 GB are always
# read; the eight share them, and each of them has all of the cache.
_LATENT_MS = (
    ((256 * (1 - (31 / 32) ** 16) * 58 * 3 * 7168 * 2048 + 16.2e9) / 8 + 16 * 8_150 * 70_272)
    / 4800e9 * 1e3
)  # fmt: skip
EXPECT_LATENT = expect(
    "decode.below-bound", "decode", 16, _LATENT_MS / 95, "ratio", must_not=_ALL[1:]
)


def variant_experts_launches(folder: Path) -> None:
    """Published with captured graphs: nothing is slow about it."""
    _by_name(folder, 3_150 * US, "gpt-oss-20b", gpu="NVIDIA B200")


def variant_experts_slow(folder: Path) -> None:
    """Four times as long as that."""
    _by_name(folder, 12 * MS, "gpt-oss-20b", gpu="NVIDIA B200")


EXPECT_EXPERTS_SLOW = expect(
    "decode.below-bound", "decode", 6, 0.47 / 12, "ratio", must_not=_ALL[1:]
)


def variant_chunks_of_four(folder: Path) -> None:
    """What a chunk carries changes nothing of the time per token."""
    _stream(folder, SINGLE, 800, 120 * MS, 17 * MS, chunk=4)


EXPECT_CHUNKS_OF_FOUR = expect(
    "decode.below-bound", "decode", 6, bound_ms(1, 950) / 17, "ratio", must_not=_ALL[1:]
)


def variant_released(folder: Path) -> None:
    """All chunks in 3 ms at the end."""
    _stream(folder, SINGLE, 800, 5_900 * MS, 10 * US)


CASES = {
    "main": (main, EXPECT_MAIN),
    "twin": (twin, EXPECT_TWIN),
    "wrong_precision": (variant_wrong_precision, EXPECT_WRONG_PRECISION),
    "speculation": (variant_speculation, EXPECT_SPECULATION),
    "layout_unknown": (variant_layout_unknown, EXPECT_LAYOUT_UNKNOWN),
    "interference": (variant_interference, EXPECT_INTERFERENCE),
    "seen_in_part": (variant_seen_in_part, silent(_ALL)),
    "alone_by_its_log": (variant_alone_by_its_log, EXPECT_MAIN),
    "two_devices": (variant_two_devices, EXPECT_TWO_DEVICES),
    "grouped_long": (variant_grouped_long, EXPECT_GROUPED_LONG),
    "half_precision_cache": (variant_half_precision_cache, silent(_ALL)),
    "latent": (variant_latent, EXPECT_LATENT),
    "experts_launches": (variant_experts_launches, silent(_ALL)),
    "experts_slow": (variant_experts_slow, EXPECT_EXPERTS_SLOW),
    "chunks_of_four": (variant_chunks_of_four, EXPECT_CHUNKS_OF_FOUR),
    "released": (variant_released, silent(_ALL)),
}

"""A model that goes while nobody asks, and is loaded again on the next request's path.

main: blocks of questions, the pauses between blocks are longer than the server keeps the model. Six
reloads; the first start is none of them. The innocent ones: the same blocks with shorter pauses, a
model that is kept for ever, slow first tokens that keep to no pause.

Two models that take turns in one memory are no idle unload: each puts the other out.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from analyzer.simulate.write_ollama_log import go_duration
from analyzer.simulate.writers import (
    NS,
    engine_line,
    openai_usage,
    rfc3339,
    seconds,
    startup_lines,
    to_json,
)
from cases._build import MS, answer, at, expect, mean_seconds, silent, write_case

if TYPE_CHECKING:
    from pathlib import Path

MODEL = "tern:14b"
T0 = at("2026-06-11T06:20:00Z")
MINUTE = 60 * NS
REST = 6 * MS
NO_QUEUE = ["queue.admission-limit", "queue.saturation", "queue.mislabelled", "queue.head-of-line"]
NOT_SLOW = [*NO_QUEUE, "prefill.long-prompt", "network.slow", "decode.output-growth"]


@dataclass(frozen=True)
class Call:
    """One answer of the local server."""

    start_ns: int
    load_ns: int
    prefill_ns: int = 210 * MS
    decode_ns: int = 3_100 * MS
    model: str = MODEL

    @property
    def total_ns(self) -> int:
        """As the server's final object has it."""
        return self.load_ns + self.prefill_ns + self.decode_ns + REST

    @property
    def end_ns(self) -> int:
        """When it was over."""
        return self.start_ns + self.total_ns

    def capture(self, *, tells_load: bool = True) -> str:
        """What a client keeps of it."""
        response = {
            "model": self.model, "created_at": rfc3339(self.end_ns),
            "message": {"role": "assistant", "content": ""}, "done": True, "done_reason": "stop",
            "total_duration": self.total_ns, "load_duration": self.load_ns,
            "prompt_eval_count": 310, "prompt_eval_duration": self.prefill_ns,
            "eval_count": 124, "eval_duration": self.decode_ns,
        }  # fmt: skip
        if not tells_load:
            del response["load_duration"]
        return to_json({"sent_at": seconds(self.start_ns - MS), "response": response})

    def gin(self, extra_ns: int = 400_000) -> str:
        """Its line in the server's log, a little longer than the object says."""
        stamp = rfc3339((self.end_ns + extra_ns) // NS * NS)
        day, clock = stamp[:10].replace("-", "/"), stamp[11:19]
        latency = go_duration(self.total_ns + extra_ns)
        return f'[GIN] {day} - {clock} | 200 | {latency:>12} | 10.1.0.4 | POST     "/api/chat"'


def warm(k: int) -> int:
    """A model that is there is found in 18 to 31 ms."""
    return (18 + 7 * k % 14) * MS


def calls(pauses: list[int], load: list[int], **rest: object) -> list[Call]:
    """One after the other, each ``pauses[k]`` after the end of the one before."""
    made: list[Call] = []
    now = T0
    for pause, took in zip(pauses, load, strict=True):
        made.append(Call(now + pause, took, **rest))
        now = made[-1].end_ns
    return made


def by_keep_alive(
    pauses: list[int], keep_ns: int, rng: random.Random, about: float = 6.2
) -> list[Call]:
    """Loads where a pause is longer than the server keeps a model; 5 to 7 s here."""
    cold = [k == 0 or pause > keep_ns for k, pause in enumerate(pauses)]
    load = [
        round(about * NS * (1 + 0.12 * (rng.random() - 0.5))) if is_cold else warm(k)
        for k, is_cold in enumerate(cold)
    ]
    return calls(pauses, load)


def log_of(made: list[Call], keep_ns: int, *, logged: bool = True) -> list[str]:
    """The server's own lines: calls, loads and unloads."""
    told: list[tuple[int, str]] = []
    for k, one in enumerate(made):
        told.append((one.end_ns, one.gin()))
        if one.load_ns < NS:
            continue
        line = 'level=INFO source=server.go:431 msg="starting runner" cmd="/usr/bin/ollama runner"'
        told.append((one.start_ns, f"time={rfc3339(one.start_ns)} {line}"))
        took = f"{one.load_ns / NS:.2f}"
        line = f'level=INFO source=server.go:1390 msg="llama runner started in {took} seconds"'
        stamp = rfc3339(one.start_ns + one.load_ns)
        told.append((one.start_ns + one.load_ns, f"time={stamp} {line}"))
        if k and logged:
            gone = made[k - 1].end_ns + keep_ns
            line = 'level=INFO source=sched.go:380 msg="runner released" runner.name=x'
            told.append((gone, f"time={rfc3339(gone)} {line}"))
    return [line for _, line in sorted(told)]


def blocks(rng: random.Random, sizes: list[int], between: tuple[int, int]) -> list[int]:
    """Pauses of 8 to 30 s inside a block, and of ``between`` seconds before it."""
    pauses = []
    for block, size in enumerate(sizes):
        pauses.append(0 if block == 0 else rng.randint(*between) * NS)
        pauses += [rng.randint(8, 30) * NS for _ in range(size - 1)]
    return pauses


def captures(folder: Path, made: list[Call], **files: list[str]) -> None:
    """What the client kept, and other files beside it."""
    write_case(folder, {"answers.jsonl": [one.capture() for one in made], **files}, MODEL)


def reloads(made: list[Call], *, first: bool = False) -> list[int]:
    """Loads that take seconds, without the first start."""
    return [one.load_ns for one in made[0 if first else 1 :] if one.load_ns > NS]


def _idle(loads: list[int], requests: int | None = None) -> dict[str, object]:
    return expect(
        "load.idle-unload", "queue", requests or len(loads), mean_seconds(loads), "s",
        must_not=[*NOT_SLOW, "load.cold-start"],
    )  # fmt: skip


CLEAN = silent(["load.idle-unload", "load.cold-start", *NOT_SLOW])
SIZES = [5, 4, 7, 3, 5, 4, 6]
KEEP = 5 * MINUTE
MAIN = by_keep_alive(blocks(random.Random(3), SIZES, (330, 2_400)), KEEP, random.Random(4))
TWIN = by_keep_alive(blocks(random.Random(3), SIZES, (200, 296)), KEEP, random.Random(4))
SHORT = by_keep_alive(blocks(random.Random(9), [6] * 9, (41, 200)), 35 * NS, random.Random(2), 2.4)
FOREVER = by_keep_alive(
    blocks(random.Random(5), [3] * 8, (3_000, 40_000)), 10**18, random.Random(1)
)
NEVER_KEPT = by_keep_alive(
    [0, *(random.Random(8).randint(2, 50) * NS for _ in range(14))], 0, random.Random(7), 3.3
)


def main(folder: Path) -> None:
    """Six reloads after pauses of over five minutes."""
    captures(folder, MAIN)


def twin(folder: Path) -> None:
    """The same blocks, pauses of up to 4 min 56 s."""
    captures(folder, TWIN)


def variant_keeps_half_a_minute(folder: Path) -> None:
    """A server that keeps a model for 35 s, and loads it in 2.4 s."""
    captures(folder, SHORT)


def variant_keeps_for_ever(folder: Path) -> None:
    """Pauses of hours, and the model is there."""
    captures(folder, FOREVER)


def variant_never_kept(folder: Path) -> None:
    """Every request loads: keep_alive is 0."""
    captures(folder, NEVER_KEPT)


def variant_only_part_tells(folder: Path) -> None:
    """Somebody cut load_duration from every third object."""
    lines = [one.capture(tells_load=k % 3 != 1) for k, one in enumerate(MAIN)]
    write_case(folder, {"answers.jsonl": lines}, MODEL)


PART = [one.load_ns for k, one in enumerate(MAIN) if k and k % 3 != 1 and one.load_ns > NS]


def variant_server_log(folder: Path) -> None:
    """Nobody kept the answers; the server's log has whole seconds, loads and unloads."""
    write_case(folder, {"server.log": log_of(MAIN, KEEP)}, MODEL)


def variant_server_log_twin(folder: Path) -> None:
    """The log of the server that kept its model."""
    write_case(folder, {"server.log": log_of(TWIN, KEEP)}, MODEL)


def variant_both(folder: Path) -> None:
    """Answers and the server's log of the same calls."""
    captures(folder, MAIN, **{"server.log": log_of(MAIN, KEEP)})


def _together() -> list[Call]:
    """Two more questions come while the model is loaded, and wait for the same load."""
    made = list(MAIN)
    for one in [one for one in MAIN[1:] if one.load_ns > NS]:
        made += [
            replace(one, start_ns=one.start_ns + late, load_ns=one.load_ns - late)
            for late in (700 * MS, 2_900 * MS)
        ]
    return sorted(made, key=lambda one: one.start_ns)


def variant_together(folder: Path) -> None:
    """Three requests wait for each reload; it is one reload all the same."""
    captures(folder, _together())


OTHER = "auk:7b"


def _two_models(*, fit: bool) -> list[Call]:
    """Blocks of one model, then of the other; both fit, or each puts the other out."""
    rng = random.Random(12)
    made: list[Call] = []
    now, used, resident = T0, {}, None
    for block in range(10):
        model = (MODEL, OTHER)[block % 2]
        for k in range(4):
            start = now + rng.randint(6, 25) * NS
            idle = start - used[model] > KEEP if model in used else True
            cold = idle if fit else model != resident
            load = round((5.1 + rng.random()) * NS) if cold else warm(block + k)
            made.append(Call(start, load, model=model))
            now, resident = made[-1].end_ns, model
            used[model] = now
        if fit:
            now += rng.choice([rng.randint(5, 40), rng.randint(110, 400)]) * NS
    return made


BOTH_FIT, TAKE_TURNS = _two_models(fit=True), _two_models(fit=False)


def _after_first(made: list[Call]) -> list[int]:
    seen: set[str] = set()
    loads = []
    for one in made:
        if one.model in seen and one.load_ns > NS:
            loads.append(one.load_ns)
        seen.add(one.model)
    return loads


def variant_two_models_idle(folder: Path) -> None:
    """Two models in one memory; each goes while the other's users ask."""
    captures(folder, BOTH_FIT)


def variant_models_take_turns(folder: Path) -> None:
    """Only one of them fits: each load puts the other out, seconds after its last use."""
    captures(folder, TAKE_TURNS)


TURNS = [one.load_ns for one in TAKE_TURNS if one.load_ns > NS]
EXPECT_TURNS = expect(
    "load.cold-start", "queue", len(TURNS), mean_seconds(TURNS), "s",
    must_not=[*NOT_SLOW, "load.idle-unload"],
)  # fmt: skip


def _options() -> list[Call]:
    """Every fifth call asks for another context length: the model is loaded again, and back."""
    pauses = blocks(random.Random(6), [30], (1, 2))
    return calls(pauses, [round(4.4 * NS) if k % 5 in (0, 1) else warm(k) for k in range(30)])


OPTIONS = _options()


def variant_other_options(folder: Path) -> None:
    """Reloads after pauses no longer than those without."""
    captures(folder, OPTIONS)


EXPECT_OPTIONS = expect(
    "load.cold-start", "queue", len(reloads(OPTIONS, first=True)),
    mean_seconds(reloads(OPTIONS, first=True)), "s", must_not=[*NOT_SLOW, "load.idle-unload"],
)  # fmt: skip

# --- logs that tell no load ----------------------------------------------------------------------

COLD = 9_300 * MS
STEP = 25 * MS


def _streams(folder: Path, pauses: list[int], slow: set[int], prompts: list[int], **files) -> None:
    rng = random.Random(31)
    now, lines = T0, []
    for k, pause in enumerate(pauses):
        now += pause
        first = round((380 + 120 * rng.random()) * MS) + (COLD if k in slow else 0)
        chunks = [(first + i * STEP, "content", 4) for i in range(90)]
        usage = openai_usage(prompts[k], 90)
        lines += answer(f"fn-{k:03d}", now, chunks, usage, model="curlew-9b")
        now += chunks[-1][0]
    write_case(folder, {"client.jsonl": lines, **files}, "curlew-9b")


FUNCTION = blocks(random.Random(14), [6, 8, 5, 7, 6], (700, 3_000))
AFTER_PAUSES = {k for k, pause in enumerate(FUNCTION) if pause > 600 * NS}


def variant_serverless(folder: Path) -> None:
    """First tokens are 9 s late after long pauses, and never else: suspected."""
    _streams(folder, FUNCTION, {0, *AFTER_PAUSES}, [400] * len(FUNCTION))


def variant_slow_at_random(folder: Path) -> None:
    """As many slow first tokens, after pauses of any length: no unload."""
    slow = set(random.Random(2).sample(range(len(FUNCTION)), len(AFTER_PAUSES)))
    _streams(folder, FUNCTION, slow, [400] * len(FUNCTION))


def variant_long_prompts_after_pauses(folder: Path) -> None:
    """Each block begins with a long document: its prompt takes the time."""
    prompts = [30_000 if k in AFTER_PAUSES else 400 for k in range(len(FUNCTION))]
    _streams(folder, FUNCTION, AFTER_PAUSES, prompts)


# --- a server that starts anew -------------------------------------------------------------------

READY = 48 * NS


def variant_restart(folder: Path) -> None:
    """vLLM starts anew while clients ask: who comes then waits until it is ready."""
    began = T0 + 200 * NS
    log = startup_lines(T0 - 600 * NS, model="curlew-9b", capacity_tokens=300_000, arguments={})
    for end, text in (
        (began + 30 * NS, "Model loading took 15.08 GiB memory and 30.000000 seconds"),
        (began + 37 * NS, "torch.compile takes 7.00 s in total"),
        (began + READY, "Graph capturing finished in 10 secs, took 0.50 GiB"),
    ):
        log.append(engine_line(end, text, where="gpu_model_runner.py:5132"))
    lines = []
    for k, sent in enumerate(RESTART_SENT):
        first = 300 * MS + max(0, began + READY - sent if sent >= began else 0)
        chunks = [(first + i * STEP, "content", 4) for i in range(50)]
        usage = openai_usage(700, 50)
        lines += answer(f"rs-{k:03d}", sent, chunks, usage, model="curlew-9b")
    write_case(folder, {"client.jsonl": lines, "vllm.log": log}, "curlew-9b")


RESTART_SENT = [T0 + 5 * NS * k for k in range(80)]
RESTART_WAITS = [
    T0 + 200 * NS + READY - sent
    for sent in RESTART_SENT
    if T0 + 200 * NS <= sent < T0 + 200 * NS + READY
]
EXPECT_RESTART = expect(
    "load.cold-start", "queue", len(RESTART_WAITS), mean_seconds(RESTART_WAITS), "s",
    must_not=[*NO_QUEUE, "network.slow", "load.idle-unload"],
)  # fmt: skip

_ALL_WAIT = [one.load_ns for one in _together()[1:] if one.load_ns > NS]
EXPECT_TOGETHER = _idle(reloads(MAIN), requests=len(_ALL_WAIT))
EXPECT_SUSPECTED = expect(
    "load.idle-unload", "queue", len(AFTER_PAUSES), COLD / NS, "s",
    must_not=[*NOT_SLOW, "load.cold-start"],
)  # fmt: skip
CASES = {
    "main": (main, _idle(reloads(MAIN))),
    "twin": (twin, CLEAN),
    "keeps_half_a_minute": (variant_keeps_half_a_minute, _idle(reloads(SHORT))),
    "keeps_for_ever": (variant_keeps_for_ever, CLEAN),
    "never_kept": (variant_never_kept, _idle(reloads(NEVER_KEPT))),
    "only_part_tells": (variant_only_part_tells, _idle(PART)),
    "server_log": (variant_server_log, _idle(reloads(MAIN))),
    "server_log_twin": (variant_server_log_twin, CLEAN),
    "both": (variant_both, _idle(reloads(MAIN))),
    "together": (variant_together, EXPECT_TOGETHER),
    "two_models_idle": (variant_two_models_idle, _idle(_after_first(BOTH_FIT))),
    "models_take_turns": (variant_models_take_turns, EXPECT_TURNS),
    "other_options": (variant_other_options, EXPECT_OPTIONS),
    "serverless": (variant_serverless, EXPECT_SUSPECTED),
    "slow_at_random": (variant_slow_at_random, CLEAN),
    "long_prompts_after_pauses": (
        variant_long_prompts_after_pauses,
        silent(["load.idle-unload", "load.cold-start", *NO_QUEUE]),
    ),
    "restart": (variant_restart, EXPECT_RESTART),
}

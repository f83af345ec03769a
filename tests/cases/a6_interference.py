"""A long prompt is processed beside streams that were running well.

main: seven streams at 22 ms a token; at 4 s a prompt of 36,000 tokens is computed in twelve steps
of 350 ms. Each stream loses 12 x 328 ms.

twin: the same prompt, all but 400 tokens of it cached: one step of 60 ms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from analyzer.simulate.writers import NS, Served, llm_span
from cases._build import MS, at, expect, silent, write_case
from cases._streams import Stream, client_lines, made, read, status_log, tick_lines

if TYPE_CHECKING:
    from pathlib import Path

MODEL = "heron-70b"
T0 = at("2026-02-11T13:20:00Z")
COUNT, GAP, TOKENS = 7, 22 * MS, 500
FIRST = 400 * MS
ASKED = 4 * NS
MUST_NOT = [
    "decode.preemption", "decode.process-pause", "client.stalled", "network.slow",
    "network.buffered", "queue.saturation", "queue.admission-limit",
]  # fmt: skip
OWN = ["decode.prefill-interference", *MUST_NOT]


def _case(
    prompts: list[tuple[int, int, int, int]], gap: int = GAP, count: int = COUNT
) -> tuple[list[Stream], list[Stream], list[tuple[int, int, int]]]:
    """Streams, long prompts (from, to, step, tokens) beside them, and all work on prompts."""
    slow = [(T0 + begin, T0 + end, step) for begin, end, step, _ in prompts]
    streams = [
        Stream(f"chat-{k}", T0 + k * MS, made(T0 + FIRST + k * MS, gap, TOKENS, slow), 640)
        for k in range(count)
    ]
    long = [
        Stream(f"doc-{k}", T0 + begin, [T0 + end, T0 + end + gap], tokens)
        for k, (begin, end, _, tokens) in enumerate(prompts)
    ]
    work = [(T0, T0 + FIRST, 640 * count)]
    work += [(T0 + begin, T0 + end, tokens) for begin, end, _, tokens in prompts]
    return streams, long, work


def _log(streams: list[Stream], work: list[tuple[int, int, int]], every: int = NS) -> list[str]:
    last = max(one.made_ns[-1] for one in streams)
    return status_log(
        streams, first_ns=T0 + every, last_ns=last + every, every_ns=every, capacity=400_000,
        prompts=work,
    )  # fmt: skip


def _lost(streams: list[Stream], gap: int = GAP) -> float:
    """Mean seconds beyond an even pace."""
    lost = [one.made_ns[-1] - one.made_ns[0] - (TOKENS - 1) * gap for one in streams]
    return sum(lost) / len(lost) / NS


STEP = 350 * MS
LONG = (ASKED, ASKED + 12 * STEP, STEP, 36_000)


def main(folder: Path) -> None:
    """Streams and the engine's log."""
    streams, long, work = _case([LONG])
    files = {
        "client.jsonl": client_lines(streams + long, MODEL),
        "vllm.log": _log(streams + long, work),
    }
    write_case(folder, files, MODEL)


def _right(requests: int, value: float) -> dict[str, object]:
    return expect("decode.prefill-interference", "decode", requests, value, "s", MUST_NOT)


EXPECT_MAIN = _right(COUNT, _lost(_case([LONG])[0]))


def twin(folder: Path) -> None:
    """Nearly all of the prompt was cached."""
    streams, long, work = _case([(ASKED, ASKED + 60 * MS, 60 * MS, 36_000)])
    long[0].cached = 35_600
    work[-1] = (*work[-1][:2], 400)
    files = {
        "client.jsonl": client_lines(streams + long, MODEL),
        "vllm.log": _log(streams + long, work),
    }
    write_case(folder, files, MODEL)


TWO = [
    (ASKED, ASKED + 6 * STEP, STEP, 18_000),
    (ASKED + 3 * NS, ASKED + 3 * NS + 9 * STEP, STEP, 27_000),
]


def two_prompts(folder: Path) -> None:
    """Two prompts one after the other, as the client alone saw it."""
    streams, long, _ = _case(TWO)
    write_case(folder, {"client.jsonl": client_lines(streams + long, MODEL)}, MODEL)


SMALL = (ASKED, ASKED + 160 * 48 * MS, 48 * MS, 80_000)


def small_steps(folder: Path) -> None:
    """A small budget of tokens a step: no gap is long, but 160 of them are slow."""
    streams, long, work = _case([SMALL], count=4)
    files = {
        "client.jsonl": client_lines(streams + long, MODEL),
        "vllm.log": _log(streams + long, work),
    }
    write_case(folder, files, MODEL)


WHOLE = (ASKED, ASKED + 2_600 * MS, 0, 24_000)


def whole_prompt(folder: Path) -> None:
    """Not chunked: one gap as long as the prompt takes."""
    streams, long, work = _case([WHOLE], count=3)
    files = {
        "client.jsonl": client_lines(streams + long, MODEL),
        "vllm.log": _log(streams + long, work),
    }
    write_case(folder, files, MODEL)


def asked_by_others(folder: Path) -> None:
    """The prompt is another client's: only the engine's log tells of it."""
    streams, long, work = _case([LONG])
    files = {"client.jsonl": client_lines(streams, MODEL), "vllm.log": _log(streams + long, work)}
    write_case(folder, files, MODEL)


def nobody_tells(folder: Path) -> None:
    """The streams alone: what slowed them down cannot be said."""
    streams, _, _ = _case([LONG])
    write_case(folder, {"client.jsonl": client_lines(streams, MODEL)}, MODEL)


def several_a_chunk(folder: Path) -> None:
    """Four tokens a chunk."""
    streams, long, work = _case([LONG])
    files = {
        "client.jsonl": client_lines(streams, MODEL, 4) + client_lines(long, MODEL),
        "vllm.log": _log(streams + long, work),
    }
    write_case(folder, files, MODEL)


def _span(one: Stream, service: str) -> str:
    first, last = one.made_ns[0], one.made_ns[-1]
    served = Served(
        request_id=one.name, arrived_ns=one.sent_ns, queue_ns=2 * MS,
        prefill_ns=first - one.sent_ns - 2 * MS, decode_ns=last - first,
        prompt_tokens=one.prompt, output_tokens=len(one.made_ns),
    )  # fmt: skip
    return llm_span(served, service=service)


def two_engines(folder: Path) -> None:
    """Half of the streams run on another engine, and go on; spans say which is which."""
    streams, long, _ = _case([LONG])
    others, _, _ = _case([])
    for one in others:
        one.name = f"other-{one.name}"
    spans = [_span(one, "engine-a") for one in streams + long]
    spans += [_span(one, "engine-b") for one in others]
    files = {"client.jsonl": client_lines(streams + long + others, MODEL), "spans.jsonl": spans}
    write_case(folder, files, MODEL)


def pause_meanwhile(folder: Path) -> None:
    """The server stood still for 3 s; a short prompt happened to be in work all that time."""
    pause = (ASKED, ASKED + 3 * NS, 0, 640)
    streams, long, _ = _case([pause])
    more = [
        Stream(
            f"late-{k}", T0 + k * NS, read([T0 + k * NS + FIRST, T0 + k * NS + FIRST + GAP]), 640
        )
        for k in range(8, 16)
    ]
    ticks = tick_lines(T0, T0 + 30 * NS, 200 * MS)
    write_case(folder, {"client.jsonl": client_lines(streams + long + more, MODEL) + ticks}, MODEL)


def growing_context(folder: Path) -> None:
    """Each token takes a little longer than the one before, up to 2.4 times as long."""
    streams = []
    for k in range(COUNT):
        times = [T0 + FIRST]
        for i in range(TOKENS - 1):
            times.append(times[-1] + GAP + GAP * 14 * i // (10 * TOKENS))
        streams.append(Stream(f"chat-{k}", T0, times, 640))
    prompt = Stream("doc-0", T0 + 12 * NS, [T0 + 15 * NS], 30_000, cached=29_000)
    write_case(folder, {"client.jsonl": client_lines([*streams, prompt], MODEL)}, MODEL)


CASES = {
    "main": (main, EXPECT_MAIN),
    "twin": (twin, silent(OWN)),
    "two_prompts": (two_prompts, _right(COUNT, _lost(_case(TWO)[0]))),
    "small_steps": (small_steps, _right(4, _lost(_case([SMALL], count=4)[0]))),
    "whole_prompt": (whole_prompt, _right(3, _lost(_case([WHOLE], count=3)[0]))),
    "asked_by_others": (asked_by_others, EXPECT_MAIN),
    "nobody_tells": (nobody_tells, silent(OWN)),
    "several_a_chunk": (several_a_chunk, EXPECT_MAIN | {"tolerance": 0.1}),
    "two_engines": (two_engines, EXPECT_MAIN),
    "pause_meanwhile": (pause_meanwhile, silent(["decode.prefill-interference", "client.stalled"])),
    "growing_context": (growing_context, silent(OWN)),
}

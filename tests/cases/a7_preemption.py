"""A KV cache runs full and requests are put out of it.

main: eight streams hold a pool to the brim; two that came last are put out, at 2.5 s and at 4.4 s,
and come back at 6.8 s, when another has ended. The others go on at 25 ms a token.

twin: the same requests in a larger pool: high, steady, nobody pauses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from analyzer.simulate.writers import NS, engine_line
from cases._build import MS, at, expect, silent, write_case
from cases._streams import Stream, client_lines, emit_lines, made, read, status_log

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

MODEL = "bittern-32b"
T0 = at("2026-05-19T06:40:00Z")
GAP, FIRST = 25 * MS, 600 * MS
BACK = 6_800 * MS
POOL, LARGER = 21_700, 24_000
MUST_NOT = [
    "decode.prefill-interference", "decode.process-pause", "client.stalled", "network.slow",
    "network.buffered",
]  # fmt: skip
OWN = ["decode.preemption", *MUST_NOT]
Out = dict[str, list[tuple[int, int]]]


def _streams(out: Mapping[str, Sequence[tuple[int, int]]]) -> list[Stream]:
    streams = []
    for k in range(8):
        name, prompt, tokens = f"job-{k}", 3_200 if k < 6 else 900, 246 if k == 2 else 320 + 3 * k
        slow = [(T0 + begin, T0 + end, 0) for begin, end in out.get(name, ())]
        streams.append(Stream(name, T0 + k * MS, made(T0 + FIRST, GAP, tokens, slow), prompt))
    return streams


def _log(streams: list[Stream], out: Out, pool: int = POOL, every: int = NS) -> list[str]:
    last = max(one.made_ns[-1] for one in streams)
    away = {name: [(T0 + b, T0 + e) for b, e in spans] for name, spans in out.items()}
    return status_log(
        streams, first_ns=T0 + every, last_ns=last + every, every_ns=every, capacity=pool,
        prompts=[(T0, T0 + FIRST, 21_000)], out=away,
    )  # fmt: skip


ONCE: Out = {"job-7": [(2_500 * MS, BACK)], "job-6": [(4_400 * MS, BACK)]}


def _mean(out: Out) -> float:
    lost = [
        one.made_ns[-1] - one.made_ns[0] - (len(one.made_ns) - 1) * GAP
        for one in _streams(out)
        if one.name in out
    ]
    return sum(lost) / len(lost) / NS


def _right(requests: int, value: float) -> dict[str, object]:
    return expect("decode.preemption", "decode", requests, value, "s", MUST_NOT)


def main(folder: Path) -> None:
    """Streams and the engine's log."""
    streams = _streams(ONCE)
    files = {"client.jsonl": client_lines(streams, MODEL), "vllm.log": _log(streams, ONCE)}
    write_case(folder, files, MODEL)


def twin(folder: Path) -> None:
    """Room for all."""
    streams = _streams({})
    files = {"client.jsonl": client_lines(streams, MODEL), "vllm.log": _log(streams, {}, LARGER)}
    write_case(folder, files, MODEL)


TWICE: Out = {
    "job-7": [(2_500 * MS, 4_000 * MS), (5_000 * MS, BACK)],
    "job-6": [(4_200 * MS, BACK)],
}


def twice(folder: Path) -> None:
    """One of them is put out again soon after it came back."""
    streams = _streams(TWICE)
    files = {"client.jsonl": client_lines(streams, MODEL), "vllm.log": _log(streams, TWICE)}
    write_case(folder, files, MODEL)


BRIEF: Out = {"job-7": [(2_500 * MS, BACK)], "job-6": [(6_450 * MS, BACK)]}


def brief(folder: Path) -> None:
    """The second is out for a moment only; it was put out all the same."""
    streams = _streams(BRIEF)
    files = {"client.jsonl": client_lines(streams, MODEL), "vllm.log": _log(streams, BRIEF)}
    write_case(folder, files, MODEL)


def seldom_status(folder: Path) -> None:
    """A status line every five seconds: one falls into the pauses."""
    streams = _streams(ONCE)
    files = {
        "client.jsonl": client_lines(streams, MODEL),
        "vllm.log": _log(streams, ONCE, every=5 * NS),
    }
    write_case(folder, files, MODEL)


def emitted(folder: Path) -> None:
    """The engine's own emission instead of a client, its clock a minute ahead."""
    streams = _streams(ONCE)
    skewed = [
        engine_line(T0 + 60 * NS + k * NS, line.split("] ", 1)[1])
        for k, line in enumerate(_log(streams, ONCE), start=1)
    ]
    files = {"emits.jsonl": emit_lines(streams, 60 * NS), "vllm.log": skewed}
    write_case(folder, files, MODEL)


def _sglang(message: str, at_ns: int) -> str:
    whole, rest = divmod(at_ns // NS, 60)
    return f"[2026-05-19 {whole // 60 % 24:02d}:{whole % 60:02d}:{rest:02d}] {message}"


def sglang(folder: Path) -> None:
    """SGLang says itself that it put requests out."""
    streams = _streams(ONCE)
    lines = []
    for second in range(1, 12):
        now = T0 + second * NS
        running = sum(one.made_ns[0] <= now < one.made_ns[-1] for one in streams)
        gone = sum(b <= now - T0 < e for spans in ONCE.values() for b, e in spans)
        lines.append((now, f"Decode batch, #running-req: {running - gone}, #token: 24100, "
                      f"token usage: 0.97, cuda graph: True, gen throughput (token/s): "
                      f"{40 * (running - gone)}.00, #queue-req: {gone}"))  # fmt: skip
    lines += [
        (T0 + begin, "KV cache pool is full. Retract requests. #retracted_reqs: 1, "
         "#new_token_ratio: 0.4413 -> 0.5127")
        for spans in ONCE.values() for begin, _ in spans
    ]  # fmt: skip
    log = [_sglang(message, now) for now, message in sorted(lines)]
    write_case(folder, {"client.jsonl": client_lines(streams, MODEL), "sglang.log": log}, MODEL)


def no_log(folder: Path) -> None:
    """Two streams pause and nothing tells why."""
    write_case(folder, {"client.jsonl": client_lines(_streams(ONCE), MODEL)}, MODEL)


def one_connection(folder: Path) -> None:
    """The pool is as full, but what paused is a connection: its tokens had piled up."""
    streams = _streams({})
    streams[7].seen_ns = read(streams[7].made_ns, [(T0 + 2_500 * MS, T0 + BACK)])
    files = {"client.jsonl": client_lines(streams, MODEL), "vllm.log": _log(streams, {}, LARGER)}
    write_case(folder, files, MODEL)


CASES = {
    "main": (main, _right(2, _mean(ONCE))),
    "twin": (twin, silent(OWN)),
    "twice": (twice, _right(2, _mean(TWICE))),
    "brief": (brief, _right(2, _mean(BRIEF))),
    "seldom_status": (seldom_status, _right(2, _mean(ONCE))),
    "emitted": (emitted, _right(2, _mean(ONCE))),
    "sglang": (sglang, _right(2, _mean(ONCE))),
    "no_log": (no_log, silent(OWN)),
    "one_connection": (one_connection, silent(OWN)),
}

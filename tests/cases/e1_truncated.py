"""Answers that end at the limit on output instead of by themselves.

main: at one moment somebody lowers max_tokens; from then on many answers end with length. The
innocent ones: long answers under a high limit, an odd cut-off in hundreds, and a load test whose
lengths are what it asks for.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from analyzer.simulate.writers import NS, openai_usage, request_record, stream_event
from cases._build import MS, at, expect, silent, write_case

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MODEL = "godwit-22b"
T0 = at("2026-07-05T10:00:00Z")
EVERY, STEP, FIRST = 4 * NS, 12 * MS, 200 * MS
LEFT_ALONE = ["errors.rate", "queue.admission-limit", "network.slow"]


def wants(seed: int, count: int) -> list[int]:
    """Tokens that answers need, 60 to 900."""
    rng = random.Random(seed)
    return [min(900, max(60, round(rng.lognormvariate(5.5, 0.6)))) for _ in range(count)]


def cut(tokens: list[int], limit: Callable[[int], int]) -> list[tuple[int, int, bool]]:
    """(output, limit, cut off) of each answer."""
    return [(min(need, limit(k)), limit(k), need > limit(k)) for k, need in enumerate(tokens)]


def _expect(answers: list[tuple[int, int, bool]]) -> dict[str, object]:
    many = sum(is_cut for *_, is_cut in answers)
    share = many / len(answers)
    return expect("errors.truncated-output", "none", many, share, "ratio", must_not=LEFT_ALONE)


CLEAN = silent(["errors.truncated-output", *LEFT_ALONE])


def _records(
    folder: Path, answers: list[tuple[int, int, bool]], missing: tuple[str, ...] = (),
    reasoning: Callable[[int], int] = lambda _output: 0,
) -> None:  # fmt: skip
    lines = []
    for k, (output, limit, is_cut) in enumerate(answers):
        fields = {
            "model": MODEL, "status": 200, "max_tokens": limit,
            "finish_reason": "length" if is_cut else "stop",
            "usage": openai_usage(500, output, reasoning=reasoning(output)),
        }  # fmt: skip
        lines.append(
            request_record(
                f"an-{k:04d}", vantage="gateway", started_ns=T0 + EVERY * k,
                durations_ns={"ttft": FIRST, "e2e": FIRST + (output - 1) * STEP},
                **{name: value for name, value in fields.items() if name not in missing},
            )
        )  # fmt: skip
    write_case(folder, {"gateway.jsonl": lines}, MODEL)


LOWERED = cut(wants(1, 150), lambda k: 2_048 if k < 60 else 256)
HIGH = cut(wants(1, 150), lambda _: 2_048)
ALWAYS = cut(wants(5, 90), lambda _: 400)
FEW = cut(wants(9, 240), lambda k: 64 if k == 100 else 1_024)
TEST = [(128, 128, True)] * 60
STREAMED = cut(wants(4, 40), lambda _: 320)
SHORT_TEST = [(64 + k % 50, 64 + k % 50, True) for k in range(60)]


def main(folder: Path) -> None:
    """256 tokens instead of 2,048 from the 61st answer on."""
    _records(folder, LOWERED)


def twin(folder: Path) -> None:
    """The same answers under 2,048 tokens."""
    _records(folder, HIGH)


def variant_always(folder: Path) -> None:
    """400 tokens from the first answer on."""
    _records(folder, ALWAYS)


def variant_no_reason(folder: Path) -> None:
    """Only the limit and the usage are logged."""
    _records(folder, LOWERED, missing=("finish_reason",))


def variant_no_limit(folder: Path) -> None:
    """Only the finish reason and the usage are logged."""
    _records(folder, ALWAYS, missing=("max_tokens",))


def variant_only_lengths(folder: Path) -> None:
    """Neither is logged: many answers of just 400 tokens and none longer are suspected."""
    _records(folder, ALWAYS, missing=("max_tokens", "finish_reason"))


def variant_only_lengths_twin(folder: Path) -> None:
    """Neither is logged, and nothing was cut."""
    _records(folder, HIGH, missing=("max_tokens", "finish_reason"))


def variant_reasoning(folder: Path) -> None:
    """Reasoning takes the whole limit of those that are cut off."""
    _records(folder, ALWAYS, reasoning=lambda output: output if output == 400 else output // 2)


def variant_streams(folder: Path) -> None:
    """A client's streams."""
    lines = []
    for k, (output, limit, is_cut) in enumerate(STREAMED):
        name, sent = f"an-{k:04d}", T0 + EVERY * k
        lines.append(stream_event(sent, name, "send", model=MODEL, max_tokens=limit))
        for i in range(output):
            at_ns = sent + FIRST + i * STEP
            lines.append(stream_event(at_ns, name, "chunk", kind="content", chars=4))
        end = sent + FIRST + (output - 1) * STEP
        reason = "length" if is_cut else "stop"
        usage = openai_usage(500, output)
        lines.append(stream_event(end, name, "done", finish_reason=reason, usage=usage))
    write_case(folder, {"client.jsonl": lines}, MODEL)


def variant_one_in_hundreds(folder: Path) -> None:
    """One call with a limit of its own."""
    _records(folder, FEW)


def variant_load_test(folder: Path) -> None:
    """Every answer has the 128 tokens that were asked for."""
    _records(folder, TEST)


def variant_replayed_lengths(folder: Path) -> None:
    """Every answer has the length that the trace has."""
    _records(folder, SHORT_TEST)


EXPECT_SUSPECTED = _expect(ALWAYS)
CASES = {
    "main": (main, _expect(LOWERED)),
    "twin": (twin, CLEAN),
    "always": (variant_always, _expect(ALWAYS)),
    "no_reason": (variant_no_reason, _expect(LOWERED)),
    "no_limit": (variant_no_limit, _expect(ALWAYS)),
    "only_lengths": (variant_only_lengths, EXPECT_SUSPECTED),
    "only_lengths_twin": (variant_only_lengths_twin, CLEAN),
    "reasoning": (variant_reasoning, _expect(ALWAYS)),
    "streams": (variant_streams, _expect(STREAMED)),
    "one_in_hundreds": (variant_one_in_hundreds, CLEAN),
    "load_test": (variant_load_test, CLEAN),
    "replayed_lengths": (variant_replayed_lengths, CLEAN),
}

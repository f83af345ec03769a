"""What one more ``token_count`` of a Codex thread adds to the running total before it."""

from __future__ import annotations

from typing import Any

from analyzer.readers._transcript import count
from analyzer.readers._usage import token_buckets

FIELDS = (
    "input_tokens",
    "cached_input_tokens",
    "cache_write_input_tokens",
    "output_tokens",
    "reasoning_output_tokens",
)
Counts = dict[str, int | None]
"""One usage object; None = not told."""
SEVERAL = (
    "the total grew by more than the last request: requests between two token_count lines stand "
    "in one row"
)
BEGUN_BEFORE = (
    "the first total is larger than its last request: what was counted before the file began is "
    "left out"
)


def counts_of(usage: Any) -> Counts | None:  # noqa: ANN401 - foreign JSON
    """The counts of a usage object; None where it has neither input nor output."""
    told: Counts = {name: count(usage, name) for name in FIELDS}
    whole = told["input_tokens"] is not None or told["output_tokens"] is not None
    return told if whole else None


def is_contradicted(usage: Any) -> bool:  # noqa: ANN401
    """Whether the total contradicts input and output, of which all other counts are parts."""
    total, given, made = (
        count(usage, name) for name in ("total_tokens", "input_tokens", "output_tokens")
    )
    return None not in (total, given, made) and total != (given or 0) + (made or 0)


def buckets_of(counts: Counts) -> dict[str, Any]:
    """Columns of ``request``. No total goes in: it is only a check, and some fixtures' is wrong."""
    return token_buckets({name: value for name, value in counts.items() if value is not None})


class Running:
    """The running total of a thread, and what each next one adds to it."""

    def __init__(self) -> None:
        """Nothing was counted yet."""
        self.base: Counts | None = None

    def added(self, total: Counts | None, last: Counts | None) -> tuple[Counts | None, str]:
        """What this line counts, None where it repeats the one before; and what was assumed."""
        if total is None:
            return last, ""
        before, self.base = self.base, total
        if before is None:
            if last is not None and _size(last) < _size(total):
                return last, BEGUN_BEFORE
            return total, ""
        if any(
            (total[name] or 0) < (before[name] or 0) for name in ("input_tokens", "output_tokens")
        ):
            return (last or total) if _size(last or total) else None, ""  # the counter was reset
        grown = _size(total) - _size(before)
        if not grown:
            return None, ""
        more = last is not None and grown > _size(last)
        return _difference(total, before, last), SEVERAL if more else ""


def _size(counts: Counts) -> int:
    return (counts["input_tokens"] or 0) + (counts["output_tokens"] or 0)


def _difference(total: Counts, before: Counts, last: Counts | None) -> Counts:
    grown: Counts = {}
    for name in FIELDS:
        now = total[name]
        grown[name] = None if now is None else now - (before[name] or 0)
        if now is None or now < (before[name] or 0):  # a part that shrank tells nothing
            grown[name] = last[name] if last is not None else None
    return grown

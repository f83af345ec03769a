"""The only place that writes to the terminal: results to stdout, everything else to stderr."""

from __future__ import annotations

import os
import shutil
import sys
import time
from typing import TYPE_CHECKING, TextIO

from analyzer.report.values import safe_text, size

if TYPE_CHECKING:
    from collections.abc import Callable

_PLAIN = str.maketrans("█·…▁▂▃▄▅▆▇", "#.~_.:-=+*") | str.maketrans(dict.fromkeys("▏▎▍▌▋▊▉", "#"))
_PER_SECOND = 10
"""Redraws of the progress line; more would cost more than it tells."""


def out(text: str) -> None:
    """Print a result. A reader that has gone away (``| head``) is no error."""
    if not _speaks(sys.stdout, text):
        text = text.translate(_PLAIN)
    try:
        # What the terminal's encoding lacks is shown as an escape instead of failing.
        coding = sys.stdout.encoding or "utf-8"
        sys.stdout.write(text.encode(coding, "backslashreplace").decode(coding))
        sys.stdout.flush()
    except BrokenPipeError:
        _close_stdout()


def _speaks(stream: TextIO, text: str) -> bool:
    try:
        text.encode(stream.encoding or "utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _close_stdout() -> None:
    """Point stdout at nothing, so that the exit's own flush does not fail a second time."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, sys.stdout.fileno())
    os.close(nothing)


def note(text: str) -> None:
    """Print something that is no result."""
    coding = sys.stderr.encoding or "utf-8"
    line = safe_text(text, lines=True).encode(coding, "backslashreplace").decode(coding)
    try:
        sys.stderr.write(line + "\n")
        sys.stderr.flush()
    except BrokenPipeError:
        pass


def error(message: str, hint: str | None = None) -> None:
    """Print what went wrong and what to do next."""
    note(f"error: {message}")
    if hint:
        note(f"hint: {hint}")


def width() -> int:
    """Columns of the terminal, or what ``COLUMNS`` says; 80 where there is none."""
    return shutil.get_terminal_size((80, 24)).columns


def color() -> bool:
    """Whether to colour results: on a terminal, unless ``NO_COLOR`` is set to anything."""
    dumb = os.environ.get("TERM") == "dumb"
    return sys.stdout.isatty() and not dumb and not os.environ.get("NO_COLOR")


def progress() -> Callable[[str, int, int], None] | None:
    """Give a progress line by bytes on stderr, or None where nobody looks at it."""
    return _Progress() if sys.stderr.isatty() else None


def end_progress() -> None:
    """Wipe the progress line."""
    if sys.stderr.isatty():
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()


class _Progress:
    def __init__(self) -> None:
        self._last = 0.0

    def __call__(self, path: str, done: int, total: int) -> None:
        now = time.monotonic()
        if now - self._last < 1 / _PER_SECOND and done < total:
            return
        self._last = now
        share = f"{min(100, 100 * done // total):3d} %" if total > 0 else "     "
        amount = f"{size(done)} of {size(total)}" if total > 0 else size(done)
        name = safe_text(path)[-max(10, width() - len(amount) - 12) :]
        coding = sys.stderr.encoding or "utf-8"
        line = f"\r\x1b[K{share}  {amount}  {name}".encode(coding, "backslashreplace")
        sys.stderr.write(line.decode(coding))
        sys.stderr.flush()

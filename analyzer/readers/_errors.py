"""Failures as short classes: an error text may quote the prompt, so it is never kept."""

from __future__ import annotations

import re
from http import HTTPStatus

_BY_PHRASE = {status.phrase.lower(): status.value for status in HTTPStatus if status.value >= 400}
_STATUS = re.compile(r"\b(?:HTTP|status|code)\D{0,12}([45]\d\d)\b", re.IGNORECASE)
_WORDS = (
    ("timeout", re.compile(r"time.?out|timed out", re.IGNORECASE)),
    ("cancelled", re.compile(r"cancel", re.IGNORECASE)),
    ("connection", re.compile(r"connect|disconnect|broken pipe|reset by peer|payload", re.I)),
)


def error_class(text: str) -> str | None:
    """``http 503``, ``timeout``, ``cancelled``, ``connection`` or ``error``; None without a text.

    Of a traceback only the last line is looked at: it names what went wrong.
    """
    lines = text.strip().splitlines()
    if not lines:
        return None
    last = lines[-1].strip()
    if last.lower() in _BY_PHRASE:
        return f"http {_BY_PHRASE[last.lower()]}"
    if status := _STATUS.search(last):
        return f"http {status[1]}"
    return next((name for name, words in _WORDS if words.search(last)), "error")

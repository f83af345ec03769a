"""Answers of recorded HTTP exchanges (VCR cassettes): the text of each ``string:`` scalar."""

from __future__ import annotations

import base64
import gzip
import json
import re
from pathlib import Path

_SCALAR = re.compile(r"^( +)string: (.*)$", re.MULTILINE)


def answers(path: Path) -> list[bytes]:
    """Bodies of the answers in order; of YAML only the four styles of scalar are read."""
    text = path.read_text()
    return [_scalar(text, match) for match in _SCALAR.finditer(text)]


def _scalar(text: str, match: re.Match[str]) -> bytes:
    begin = match[2]
    if begin.startswith("!!binary"):
        data = base64.b64decode("".join(_indented(text, match)))
        return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    if begin.startswith("|"):
        return "\n".join(_indented(text, match)).encode()
    if begin.startswith("'"):
        quoted = re.compile(r"'((?:[^']|'')*)'").match(text, match.start(2))
        return _folded(quoted[1]).replace("''", "'").encode()
    if begin.startswith('"'):
        quoted = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL).match(text, match.start(2))
        joined = re.sub(r"\\\n\s*(\\(?= ))?", "", quoted[1])
        plain = re.sub(r"\\(\\|x..|U.{8}|[e0_ ])", _escape, _folded(joined))
        return json.loads('"' + plain + '"', strict=False).encode()
    return begin.encode()


def _indented(text: str, match: re.Match[str]) -> list[str]:
    lines, depth = [], None
    for line in text[match.end() + 1 :].split("\n"):
        indent = len(line) - len(line.lstrip(" "))
        if depth is None:
            depth = indent
        if line.strip() and indent < depth:
            break
        lines.append(line[depth:])
    return lines


def _folded(text: str) -> str:
    """A line break is a space; n blank lines are n line breaks."""
    return re.sub(r"[ \t]*\n((?:[ \t]*\n)*)[ \t]*", _fold, text)


def _escape(match: re.Match[str]) -> str:
    """What JSON cannot escape the way YAML does."""
    name = match[1]
    if name[0] in "xU":
        return chr(int(name[1:], 16)) if name[0] == "U" else f"\\u00{name[1:]}"
    return {"\\": "\\\\", "e": "\\u001b", "0": "\\u0000", "_": "\\u00a0", " ": " "}[name]


def _fold(match: re.Match[str]) -> str:
    blank = match[1].count("\n")
    return "\n" * blank if blank else " "

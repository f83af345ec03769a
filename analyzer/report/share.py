"""A report that can leave the house: every name in it becomes a short hash, keyed per case.

Names are taken from where the report states them (ids, sessions, hosts, routes, files, tags) and
then replaced wherever they stand, sentences included. What always has one of these shapes (mail and
network addresses, UUIDs, paths, URLs) goes too. Models, rules and the tool's own words stay.
"""

from __future__ import annotations

import hmac
import re
from dataclasses import fields, is_dataclass, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from analyzer.contract.types import CONFIDENCES, SEGMENTS, SEVERITIES, Evidence, RequestView
from analyzer.report.values import safe_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from analyzer.contract.types import Report

_KINDS = (
    {"id": "request", "path": "file", "examples": "request", "excerpt": "excerpt"}
    | {f"{name}_id": name for name in ("request", "response", "operation", "trace", "session")}
    | {"parent_session_id": "session", "user_id": "user", "hostname": "host", "file": "file"}
    | {
        name: name
        for name in (
            *("session", "user", "host", "client", "engine", "deployment", "route", "endpoint"),
            *("source", "tag", "operation", "payload_hash", "schema_hash", "sha256"),
            *("agent", "team"),
        )
    }
)
"""Keys whose text is a name, and the word its hash starts with."""

_STRUCTURE = frozenset(
    {
        *("kind", "rule", "severity", "segment", "confidence", "unit", "op", "x", "y", "version"),
        *("grade", "vantage", "view", "metric", "statistic", "reader", "record_unit", "quantity"),
        *("cost_usd", "input", "segments"),
    }
)
"""Keys whose text is the tool's own."""

_SQL_KEYS = frozenset({"sql", "how_computed"})
_FACTS = frozenset({"provider", "turn", "attempt", "status", "finish_reason", "service_tier"})
"""Facts of a request that name nobody; of the others the values are hashed."""

_OWN = frozenset(
    {
        *(*SEGMENTS, *SEVERITIES, *CONFIDENCES),
        *("client", "gateway", "provider", "engine", "absent", "unattributed", "e2e", "ttft"),
        *("tpot", "itl", "p50", "p95", "p99", "mean", "true", "early", "role", "visible"),
        *("unknown", "unchecked", "capacity", "prefill work", "admission limit", "yes", "no"),
        "a duration is negative",
        "the first token comes after the end",
        "the server took longer than the whole request",
        "the server's first token comes later than the client's",
        "queue and prefill exceed the time to first token",
        "the parts exceed the whole",
    }
)
"""What analyses themselves say as text."""

_PLACES = "route|deployment|host|user|session|engine|client|model|provider"
_WHERE = re.compile(rf"(?:^|, )({_PLACES}) (.+?)(?=, (?:{_PLACES}) |$)", re.DOTALL)
_CLASS = re.compile(r"[A-Za-z_][A-Za-z_]{0,60}|\d{3}")
"""An error's or an outcome's name, as ``ReadTimeout``; what is more may quote anything."""

_SHAPES = re.compile(
    r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+"  # mail
    r"|\b[a-z][a-z0-9+.-]*://[^\s'\"<>]+"  # URL
    r"|(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?(?![\w.]*\d)"  # IPv4
    r"|(?<![\w:])(?:[0-9a-f]{1,4}:){3,7}[0-9a-f:]*[0-9a-f](?![\w:])"  # IPv6
    r"|\b[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}\b"  # UUID, trace id
    r"|(?<![\w/.])(?:~|[A-Za-z]:)?[/\\](?:[\w.@+-]+[/\\])+[\w.@+-]*"  # path
    r"|\b[\w-]+(?:\.[\w-]+)*\.(?:internal|local|lan|corp|svc|example|com|net|org|io)\b",  # host
    re.IGNORECASE,
)
_LITERAL = re.compile(r"'(?:[^']|'')*'")
_SHORTEST = 3
"""Shorter names, and numbers of up to ``_DIGITS`` digits, are hashed where they stand as such but
not looked for in sentences: there they would mostly be something else."""
_DIGITS = 5
_HASH = 8


def safe(report: Report) -> Report:
    """Report without names; equal names have equal hashes in it, and others in other reports."""
    out: Report = _Names(report).walk(report)
    return out


class _Names:
    """Every name of one report, its hash, and the pattern that finds it in text."""

    def __init__(self, report: Report) -> None:
        told = sorted(str(row.get("sha256") or row) for row in report.sources.rows)
        basis = "\n".join(told) or f"{report.window} {report.requests}"
        self._salt = sha256(f"analyze share\n{basis}".encode(errors="replace")).digest()
        self._hashes: dict[str, str] = {}
        self._models = {name: _model(name) for name in _models(report)}
        for kind, name in _told(report):
            self._hash(kind, name)
        self._pattern = self._of_names()

    def _hash(self, kind: str, name: str) -> str:
        """Hash of a name, always the same whatever the kind it is met as later."""
        if name not in self._hashes:
            digest = hmac.new(self._salt, name.encode(errors="replace"), "sha256").hexdigest()
            self._hashes[name] = (
                digest[:12] if kind.endswith(("hash", "sha256")) else f"{kind}-{digest[:_HASH]}"
            )
        return self._hashes[name]

    def _of_names(self) -> re.Pattern[str] | None:
        """One pattern, longest names first; models stand in it so that they are left whole."""
        self._found = {
            form: new
            for name, new in (*self._hashes.items(), *self._models.items())
            for form in _forms(name)
            if _is_findable(form) and (name in self._models or form not in _OWN)
        }
        self._found |= {f: new for name, new in self._models.items() for f in _forms(name)}
        longest = sorted(filter(None, self._found), key=len, reverse=True)
        return re.compile("|".join(map(_whole, longest))) if longest else None

    def walk(self, value: Any, key: str = "") -> Any:  # noqa: ANN401 - any part of a report
        """Copy of a part of the report, its texts replaced by what their key says they are."""
        if isinstance(value, RequestView):
            facts = tuple((name, self._fact(name, text)) for name, text in value.facts)
            value = replace(value, facts=())
            return replace(self._fields(value), facts=facts)
        if isinstance(value, Evidence) and isinstance(value.value, str):
            told = value.value
            kept = told in self._models or told in _OWN or not _is_findable(told)
            new = self._models.get(told, told) if kept else self._hash("name", told)
            return replace(self._fields(value), value=new)
        if is_dataclass(value) and not isinstance(value, type):
            return self._fields(value)
        if isinstance(value, dict):
            return {name: self.walk(item, str(name)) for name, item in value.items()}
        if isinstance(value, list | tuple):
            return type(value)(self.walk(item, key) for item in value)
        if key in _KINDS and isinstance(value, str | int) and not isinstance(value, bool):
            return self._hash(_KINDS[key], str(value))
        return self._text(value, key) if isinstance(value, str) else value

    def _fields(self, value: Any) -> Any:  # noqa: ANN401 - any dataclass of a report
        parts = {one.name: self.walk(getattr(value, one.name), one.name) for one in fields(value)}
        return replace(value, **parts)

    def _fact(self, name: str, text: str) -> str:
        if name == "model":
            return self._models.get(text, text)
        if name == "error":
            return text if _CLASS.fullmatch(text) else self._hash("error", text)
        if name in _FACTS:
            return text if _CLASS.fullmatch(text) or text.isdigit() else self.sentence(text)
        return self._hash(_KINDS.get(name, "name"), text)

    def _text(self, text: str, key: str) -> str:
        if key in _STRUCTURE:
            return text
        if key == "model":
            return self._models.get(text, text)
        if key in _SQL_KEYS:
            # Outside its literals SQL names tables and columns, which may be called as a route is.
            return _LITERAL.sub(lambda match: self.sentence(match[0]), text)
        return self.sentence(text)

    def sentence(self, text: str) -> str:
        """Text with every known name, and whatever has the shape of one, replaced."""
        if self._pattern is None:
            return self._shaped(text)
        out, end = [], 0
        for match in self._pattern.finditer(text):
            out += [self._shaped(text[end : match.start()]), self._found[match[0]]]
            end = match.end()
        return "".join([*out, self._shaped(text[end:])])

    def _shaped(self, text: str) -> str:
        return _SHAPES.sub(lambda match: self._hash("name", match[0]), text)


def _forms(name: str) -> set[str]:
    """How a name may stand in a sentence: as it is, and as printers clean it."""
    return {name, safe_text(name), safe_text(name, lines=True), name.strip()} - {""}


def _is_findable(name: str) -> bool:
    if len(name) < _SHORTEST:
        return False
    return not (re.fullmatch(r"[\d.,:+-]+", name) and sum(map(str.isdigit, name)) <= _DIGITS)


def _whole(name: str) -> str:
    """Pattern of a name that is no part of a longer word."""
    first = r"(?<!\w)" if re.match(r"\w", name) else ""
    last = r"(?!\w)" if re.search(r"\w\Z", name) else ""
    return f"{first}{re.escape(name)}{last}"


def _model(name: str) -> str:
    """Name of a model; one that is served from a folder loses the folder."""
    return re.split(r"[/\\]", name.rstrip("/\\"))[-1] if re.match(r"[/~\\]|\w:\\", name) else name


def _models(report: Report) -> Iterator[str]:
    for key, text in _strings(report):
        if key == "model":
            yield text
    for finding in report.findings.found:
        yield from (name for kind, name in _places(finding.where) if kind == "model")


def _told(report: Report) -> Iterator[tuple[str, str]]:
    """Names that the report states as such, with their kind."""
    for key, text in _strings(report):
        if key in _KINDS:
            yield _KINDS[key], text
        if key == "error" and not _CLASS.fullmatch(text):
            yield "error", text
        if key == "path" and "." in (last := re.split(r"[/\\]", text)[-1]):
            yield "file", last
    for finding in report.findings.found:
        yield from (pair for pair in _places(finding.where) if pair[0] not in {"model", "provider"})


def _places(where: str | None) -> list[tuple[str, str]]:
    return _WHERE.findall(where or "")


def _strings(value: Any, key: str = "") -> Iterator[tuple[str, str]]:  # noqa: ANN401 - any part
    """Every text of a report with the key it stands under; a request's facts under their own."""
    if isinstance(value, str):
        yield key, value
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from _strings(item, str(name))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _strings(item, key)
    elif is_dataclass(value) and not isinstance(value, type):
        for one in fields(value):
            yield from _strings(getattr(value, one.name), one.name)
        if isinstance(value, RequestView):
            for name, text in value.facts:
                known = name in _KINDS or name == "model" or name in _FACTS or name == "error"
                yield (name if known else "tag"), text
        if isinstance(value, Evidence) and isinstance(value.value, str):
            evidence = value.value
            if evidence not in _OWN and _is_findable(evidence):
                yield "tag", evidence

"""Log content is hostile input: any text of any table is inert in every command and format."""

from __future__ import annotations

import csv
import io
import json
import re
import unicodedata
from html.parser import HTMLParser
from importlib import resources
from itertools import pairwise

import pyarrow as pa
import pytest
from click.testing import CliRunner
from deep import deep, thorough, unless

from analyzer.cli import cli
from analyzer.contract.tables import TABLES
from analyzer.store.case import open_case

PAYLOADS = (
    "<script>alert('{c}')</script>",
    '"><img src=x onerror=alert(1)>{c}',
    "\x1b[2J\x1b]0;title {c}\x07\x1b]8;;http://evil.example\x07link\x1b]8;;\x07\x9b31m",
    "\u202eevil\u2066{c}\u200f\u2028\u2029\x00\x08\r\nSet-Cookie: x\ttab",
    "=cmd|' /C calc'!A0 {c}",
    "+1+1 {c}",
    "-2+3+cmd {c}",
    "@SUM(A1:A9) {c}",
    "\t=1+1 {c}",
    "# {c}\n| a | b |\n```\n[x](javascript:alert(1)) ![i](http://evil.example/i.png)",
    "</script></style></title>--> {{{{ 7*7 }}}} {{% raw %}} '; DROP TABLE request; -- {c}",
    "{c} " + "long" * 25_000,
)
S = 1_000_000_000
START = 1_789_654_200 * S
PLAIN = {
    "vantage": "client", "timing": "stated", "clock": "wall", "kind": "content", "model": "m",
    "provider": "p", "route": "direct", "deployment": "d", "container": "plain",
    "record_unit": "line", "reader": "native_stream", "token_kind": "input", "currency": "USD",
    "finish_reason": "stop", "usage_convention": "exclusive", "engine": "0", "unit": "tokens",
}  # fmt: skip
HALVES = ("2026-09-17..2026-09-17T14:12:00Z", "2026-09-17T14:12:00Z..2026-09-18")
FORMATS = ("table", "json", "csv", "md")


def texts(payload: str | None, column: str, number: int) -> str | None:
    """Hostile text, unlike every other so that ids stay ids; the plain one where there is none."""
    if payload is not None:
        return payload.format(c=f"{column}{number}")
    return PLAIN.get(column)


def row_of(name: str, schema: pa.Schema, number: int, bad: str, payload: str) -> dict:
    """One row whose column ``bad`` (or every text, for ``*``) is the payload."""
    row: dict = {}
    for field in schema:
        hostile = payload if bad in (field.name, "*") else None
        if pa.types.is_string(field.type):
            row[field.name] = texts(hostile, field.name, number)
        elif field.name == "start_ns" or field.name in ("time_ns", "first_ns", "last_ns"):
            row[field.name] = START + number * S
        elif field.name.endswith("_ns"):
            row[field.name] = (1 + number % 7) * S // 10
        elif pa.types.is_boolean(field.type):
            row[field.name] = True
        elif pa.types.is_decimal(field.type) or pa.types.is_floating(field.type):
            row[field.name] = None
        else:
            row[field.name] = 200 if field.name == "status" else number % 90 + 1
    if "e2e_ns" in row:
        row |= {"e2e_ns": 3 * S, "decode_ns": S, "retry_after_ns": None, "hold_ns": None}
    if row.get("request_id", "") is None:
        row["request_id"] = f"r{number}"
    return row


def filled(name: str, schema: pa.Schema) -> pa.Table:
    strings = [field.name for field in schema if pa.types.is_string(field.type)]
    rows = []
    for bad in [*strings, "*"]:
        for payload in PAYLOADS:
            number = len(rows)
            row = row_of(name, schema, number, bad, payload)
            row["source_id"] = number + 1 if name == "source" else 1
            if "record" in row:
                row["record"] = number + 1
            if name == "source":
                row["sha256"] = row["sha256"] or f"{number:064x}"
                row["path"] = row["path"] or f"logs/{number}.log"
                row["resume"] = None if bad != "resume" else row["resume"]
            rows.append(row)
    for row in rows:
        for field in schema:
            if row[field.name] is None and not field.nullable:
                row[field.name] = "x" if pa.types.is_string(field.type) else 0
            if pa.types.is_decimal(field.type) and not field.nullable:
                row[field.name] = 1
    return pa.Table.from_pylist(rows, schema=schema)


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    db = str(tmp_path_factory.mktemp("hostile") / "hostile.duckdb")
    made = open_case(db, write=True)
    try:
        for name, schema in TABLES.items():
            made.insert(name, filled(name, schema))
    finally:
        made.close()
    return db


def run(*args: str) -> str:
    done = CliRunner().invoke(cli, args)
    assert done.exit_code == 0, (args, done.stderr[:500])
    assert not done.stderr
    return done.stdout


def request_ids(case: str) -> list[str]:
    rows = json.loads(run("--db", case, "sql", "SELECT id FROM resolve_request", "-f", "json"))
    return [row["id"] for row in rows["rows"]]


def check_text(text: str) -> None:
    bad = {f"U+{ord(c):04X}" for c in set(text) - {"\n"} if unicodedata.category(c) in _CONTROL}
    assert not bad


_CONTROL = {"Cc", "Cf", "Cs", "Zl", "Zp"}


def check_json(text: str) -> None:
    value = json.loads(text)
    assert value["version"] == 1
    check_text(text)


def check_csv(text: str) -> None:
    rows = list(csv.reader(io.StringIO(text, newline="")))
    assert rows
    assert len({len(row) for row in rows}) == 1, "a cell broke out of its row"
    for row in rows:
        for cell in row:
            number = re.fullmatch(r"-?[\d.]+(e-?\d+)?|-", cell)
            assert number or cell[:1] not in {"=", "+", "-", "@", "\t", "\r"}, cell[:80]
    check_text(text.replace("\t", ""))


def check_md(text: str) -> None:
    check_text(text.replace("\t", ""))
    open_fence, free = None, []
    for line in text.split("\n"):
        fence = re.fullmatch(r"(`{3,}).*", line)
        if open_fence is None and fence:
            open_fence = fence[1]
        elif open_fence is not None:
            open_fence = None if line == open_fence else open_fence
        else:
            free.append(line)
    assert open_fence is None
    prose = "\n".join(free)
    assert not re.search(r"(?<!\\)<[A-Za-z/!?@#]", prose)
    assert not re.search(r"(?<!\\)\]\(", prose)
    assert "http://evil" not in prose
    tables = [line for line in free if line.startswith("|")]
    for before, after in pairwise(tables):
        if re.match(r"\| (---|--:)", after):
            width = len(re.split(r"(?<!\\)\|", after))
            assert len(re.split(r"(?<!\\)\|", before)) == width


CHECKS = {"table": check_text, "json": check_json, "csv": check_csv, "md": check_md}
COMMANDS = (
    ("status",),
    ("findings",),
    ("latency",),
    *(("latency", "--by", key) for key in ("model", "route", "provider", "deployment", "session")),
    ("latency", "--by", "source,minute"),
    ("latency", "--slowest", "50"),
    ("report",),
    ("schema",),
    ("verify", "--window", "2026-09-17..2026-09-18"),
    ("compare", "--baseline", HALVES[0], "--window", HALVES[1]),
    *(("sql", f"SELECT * FROM {name}") for name in TABLES),
)


def test_the_hostile_text_is_really_there(case):
    rows = json.loads(run("--db", case, "sql", "SELECT * FROM request", "-f", "json"))["rows"]
    strings = [field.name for field in TABLES["request"] if pa.types.is_string(field.type)]
    for column in strings:
        told = {row[column] for row in rows} - {PLAIN.get(column)}
        assert len(told) >= len(PAYLOADS), column
    assert "alert(1)" in run("--db", case, "latency", "--by", "model")


# Each command in one format in the fast suite, so that every format has its share of them.
@pytest.mark.parametrize(
    ("command", "form"),
    [
        pytest.param(
            command,
            form,
            id=f"{' '.join(command)}-{form}",
            marks=unless((i + j) % len(FORMATS) == 0),
        )
        for i, command in enumerate(COMMANDS)
        for j, form in enumerate(FORMATS)
    ],
)
def test_every_command_is_inert(case, command, form):
    done = CliRunner().invoke(cli, ("--db", case, *command, "-f", form))
    assert done.exit_code == (1 if command[0] == "verify" and done.stdout else 0), done.stderr
    CHECKS[form](done.stdout)


@thorough
def test_every_request_is_shown_inert(case, thorough):
    ids = request_ids(case)
    assert len(ids) > len(PAYLOADS)
    hostile = [one for one in ids if not re.fullmatch(r"r\d+", one)]
    shown = [*hostile[: len(PAYLOADS)], *ids[::200]]
    every = [(one, form) for one in shown for form in FORMATS]
    for one, form in every if thorough else every[::29]:  # all formats in turn
        if "\x00" not in one:  # no shell could pass it
            done = CliRunner().invoke(cli, ("--db", case, "show", "-f", form, "--", one))
            assert done.exit_code in (0, 2), done.stderr[:300]
            check_text(done.stderr)
            if done.exit_code == 0:
                CHECKS[form](done.stdout)


@thorough
def test_rules_are_explained_inert(case, thorough):
    found = json.loads(run("--db", case, "findings", "-f", "json"))["findings"]
    assert found, "the case should make at least one rule fire"
    rules = sorted({one["rule"] for one in found})
    every = [(rule, form) for rule in rules for form in FORMATS]
    for rule, form in every if thorough else every[::9]:
        text = run("--db", case, "explain", rule, "-f", form)
        (check_json if form == "json" else CHECKS[form])(text)


class Tags(HTMLParser):
    """Tags and attributes of a page, and its text outside style and data."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[tuple[str, str]] = set()
        self.links: set[str] = set()
        self.scripts: list[str] = []
        self.data: list[str] = []
        self.runs = ""
        self._in: str | None = None

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self._in = tag
        for name, value in attrs:
            self.attributes.add((tag, name))
            if name in ("href", "src", "xlink:href", "action", "formaction"):
                self.links.add(value or "")
        if tag == "script":
            self.scripts.append(dict(attrs).get("type") or "run")

    def handle_data(self, data):
        if self._in == "script" and self.scripts[-1] == "run":
            self.runs += data
        elif self._in == "script":
            self.data.append(data)

    def handle_endtag(self, tag):
        self._in = None


def check_html(text: str) -> Tags:
    check_text(text.replace("\t", ""))
    page = Tags()
    page.feed(text)
    # The page's own script is part of the tool: nothing of a log gets into it.
    ours = resources.files("analyzer.report").joinpath("templates/report.js").read_text("utf-8")
    assert page.scripts in (["application/json"], ["application/json", "run"])
    assert page.runs in ("", ours)
    assert not page.tags & {"img", "iframe", "object", "embed", "form", "base", "audio", "video"}
    assert not [name for _, name in page.attributes if name.startswith("on")]
    outside = {link for link in page.links if not link.startswith(("#", "data:,"))}
    assert not outside
    assert "Content-Security-Policy" in text
    json.loads("".join(page.data))
    return page


@pytest.mark.parametrize(
    "safe", [(), pytest.param(("--share-safe",), marks=deep)], ids=["full", "share-safe"]
)
def test_report_is_inert(case, tmp_path, safe):
    path = tmp_path / "report.html"
    mark = f"2026-09-17T14:11:00Z {PAYLOADS[0]}{PAYLOADS[2]}"
    title = f"{PAYLOADS[1]}{PAYLOADS[3]}".replace("\x00", "")
    run("--db", case, "report", "-o", str(path), "--title", title, "--mark", mark, *safe)
    check_html(path.read_text(encoding="utf-8"))


def test_pages_are_inert(case, tmp_path):
    path = tmp_path / "page.html"
    run("--db", case, "compare", "--baseline", HALVES[0], "--window", HALVES[1], "-o", str(path))
    page = check_html(path.read_text(encoding="utf-8"))
    assert "table" in page.tags
    args = ("--db", case, "verify", "--window", HALVES[1], "-o", str(path), "--force")
    assert CliRunner().invoke(cli, args).exit_code in (0, 1)
    check_html(path.read_text(encoding="utf-8"))

"""Every sample of every reader, spoiled in every way files are: problems, never an error or a wait.

What ``test_readers.py`` tries already (cuts, bit flips, NULs, line ends) is not tried again here.
``ANALYZE_SEEDS=20 pytest -m deep tests/test_robust.py`` spoils each sample twenty times as often.
"""

import dataclasses
import io
import os
import random
import re
import resource
import signal
import zipfile
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner
from deep import deep, one_in, unless
from helpers import engine_of
from test_hostile_records import hold_to_bounds
from test_readers import FILES, READERS, SAMPLES, read_bytes, rows_of, totals, without_ids

import analyzer
from analyzer.cli import cli
from analyzer.contract.tables import TABLES
from analyzer.readers._file import BOM, MAX_LINE_BYTES, InputFile
from analyzer.readers._find import pick

SEEDS = int(os.environ.get("ANALYZE_SEEDS", "1"))
SECONDS = 20
MB = 1024 * 1024

_NUMBER = re.compile(rb"(?<![\w.\"-])-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?(?![\w.\"])")
_STRING = re.compile(rb'"(?:[^"\\\n]|\\.)*"')
_PAIR = re.compile(rb'"(?:[^"\\\n]|\\.)*"\s*:\s*(?:"(?:[^"\\\n]|\\.)*"|[-+\w.]+)')

NUMBERS = [
    b"-1", b"-9223372036854775809", b"9223372036854775808", b"1" + b"0" * 30, b"9" * 5_000, b"0",
    b"NaN", b"-Infinity", b"Infinity", b"1e400", b"-1e300", b"1e-400", b"1.5", b"253402300800",
    b"-62135596801", b"99999999999999", b"true", b"null", b'"x"', b"[]", b"{}", b"",
    b"0x10", b"1,2",
]  # fmt: skip
STRINGS = [
    rb'"\ud800"', rb'"\udfff\ud800"', rb'"\u0000"', b'""', b'"\xff\xfe"', b'"\xc3\x28"', b"1",
    b"null", b'"NaN"', b'"' + b"x" * 3_000 + b'"', b'"\x1b[2J"', b'"9999-99-99T99:99:99Z"', b"[[]]",
    b'"1e9999"', b'{"a":{"a":1}}', "\u202e日".encode().join([b'"', b'"']),
]  # fmt: skip
DEEP = [b"[" * 3_000, b'{"a":' * 3_000, b"[" * 900 + b"]" * 900, b'{"a":' * 900 + b"1" + b"}" * 900]
BYTES = [
    b"\xff",
    b"\xc3",
    b"\xed\xa0\x80",
    b"\xf4\x90\x80\x80",
    b"\x00",
    b"\r",
    b"\x85",
    b"\x1b[31m",
]


def is_text(path):
    try:
        path.read_bytes().decode()
    except UnicodeDecodeError:
        return False
    return True


TEXTS = [path for path in FILES if is_text(path)]
seeds = pytest.mark.parametrize("seed", range(SEEDS))
every_text = pytest.mark.parametrize(
    "path", TEXTS, ids=[f"{path.parent.name}/{path.name}" for path in TEXTS]
)
FIRST = {path.parent.name: path for path in reversed(TEXTS)}
first_text = pytest.mark.parametrize(
    "path",
    [
        pytest.param(
            path, id=f"{path.parent.name}/{path.name}", marks=unless(path in FIRST.values())
        )
        for path in TEXTS
    ],
)


@contextmanager
def in_time():
    """Fail where something takes longer than any such file may."""

    def late(signum, frame):
        raise TimeoutError(f"longer than {SECONDS} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def hold(path, data, folder):
    """Whoever forces the reader gets rows that can be and an account that adds up; probes too."""
    with in_time():
        batches = read_bytes(path, data, folder)
        head = InputFile(folder / path.name, path.name).head
        for reader in READERS.values():
            reader.probe(head)
    rows = rows_of(batches)
    hold_to_bounds(rows)
    for table, row in rows:
        for column in TABLES[table]:
            assert column.nullable or column.name == "source_id" or column.name in row
    for problem in (problem for batch in batches for problem in batch.problems):
        assert problem.record >= 1
        assert problem.reason
        assert len(problem.excerpt) <= 161
    return batches, rows


def swapped(pattern, values):
    """Some tokens of a text become something else."""

    def spoil(data, dice):
        found = list(pattern.finditer(data))
        for match in sorted(dice.sample(found, min(len(found), dice.choice((1, 2, 8)))), key=_end):
            data = data[: match.start()] + dice.choice(values) + data[match.end() :]
        return data

    return spoil


def _end(match):
    return -match.end()


def doubled_keys(data, dice):
    """A key twice in its object, with another value."""
    found = list(_PAIR.finditer(data))
    for match in sorted(dice.sample(found, min(len(found), 3)), key=_end):
        key = match[0].partition(b":")[0]
        other = dice.choice((b"1", b'"x"', b"null", b"{}"))
        data = data[: match.end()] + b"," + key + b":" + other + data[match.end() :]
    return data


def stray_bytes(data, dice):
    """Bytes that are no UTF-8, or no text, anywhere."""
    for _ in range(dice.choice((1, 3, 20))):
        place = dice.randrange(len(data) + 1)
        data = data[:place] + dice.choice(BYTES) + data[place:]
    return data


def mixed_lines(data, dice):
    """Lines lost, doubled, out of order, joined and split."""
    lines = data.split(b"\n")
    for _ in range(4):
        i, j = dice.randrange(len(lines)), dice.randrange(len(lines))
        what = dice.randrange(4)
        if what == 0:
            lines[i], lines[j] = lines[j], lines[i]
        elif what == 1:
            lines.insert(i, lines[j])
        elif what == 2:
            lines[i] = lines[i][: len(lines[i]) // 2]
        else:
            lines[i] += lines[j]
    return b"\n".join(lines)


SPOILERS = {
    "numbers": swapped(_NUMBER, NUMBERS),
    "texts": swapped(_STRING, STRINGS),
    "nesting": swapped(_NUMBER, DEEP),
    "nested texts": swapped(_STRING, DEEP),
    "doubled keys": doubled_keys,
    "stray bytes": stray_bytes,
    "mixed lines": mixed_lines,
}


SPOILED = [pytest.param(path, "once", id=f"{name}-once") for name, path in FIRST.items()] + [
    pytest.param(path, seed, id=f"{path.parent.name}/{path.name}-{seed}", marks=deep)
    for path in TEXTS
    for seed in range(SEEDS)
]


@pytest.mark.parametrize(("path", "seed"), SPOILED)
def test_spoiled_content_costs_itself(path, seed, tmp_path):
    data = path.read_bytes()
    for name, spoil in SPOILERS.items():
        dice = random.Random(f"{path.name} {name} {seed}")
        for _ in range(1 if seed == "once" else 3):
            spoiled = spoil(data, dice)
            try:
                hold(path, spoiled, tmp_path)
            except BaseException as error:
                kept = os.environ.get("ANALYZE_KEEP")
                if kept:
                    Path(kept, f"{path.parent.name}~{name}~{path.name}").write_bytes(spoiled)
                error.add_note(f"spoiled by {name}")
                raise


@first_text
def test_a_byte_order_mark_changes_nothing(path, tmp_path):
    plain = rows_of(read_bytes(path, path.read_bytes(), tmp_path))
    _, marked = hold(path, BOM + path.read_bytes(), tmp_path)
    assert without_ids(marked) == without_ids(plain)
    assert pick(InputFile(tmp_path / path.name, path.name).head).reader.name == path.parent.name


@every_text
def test_the_name_of_a_file_does_not_matter(path, tmp_path):
    for name in ("x.parquet", "x.csv", "no ending", "x.jsonl.gz"):
        file = tmp_path / name
        file.write_bytes(path.read_bytes())
        assert pick(InputFile(file, name).head).reader.name == path.parent.name


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=unless(one_in(6, name))) for name in sorted(FIRST)]
)
def test_a_line_of_ten_megabytes_costs_itself(name, tmp_path):
    path = FIRST[name]
    data = path.read_bytes()
    assert 10 * MB < MAX_LINE_BYTES
    dice = random.Random(name)
    place = data.find(b"\n", len(data) // 2) + 1
    fill = dice.choice((b"x", b"{", b'"a":', b"1", b" ", b"[", b"a,", b"INFO 09-17 10:00:00 "))
    long = (fill * (10 * MB // len(fill)))[: 10 * MB] + b"\n"
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    batches, _ = hold(path, data[:place] + long + data[place:], tmp_path)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown * 1024 < 600 * MB
    assert totals(batches)[0] >= 1


# -- a folder of everything ---------------------------------------------------------------------

GOOD = '{"request_id":"good","vantage":"client","e2e_ms":1}\n'


def spoiled_folder(folder, seed):
    """Every sample spoiled in one way, beside what folders hold that is no log."""
    dice = random.Random(seed)
    folder.mkdir()
    for number, path in enumerate(FILES):
        data = path.read_bytes()
        spoil = SPOILERS[dice.choice(sorted(SPOILERS))]
        data = spoil(data, dice) if path in TEXTS and dice.random() < 0.7 else data
        data = data[: dice.randrange(len(data) + 1)] if dice.random() < 0.3 else data
        (folder / f"{number:03} {path.parent.name} {path.name}").write_bytes(data)
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("bomb.jsonl", b"\n" * (300 * MB))
    (folder / "bomb.zip").write_bytes(bomb.getvalue())
    (folder / "half.zip").write_bytes(bomb.getvalue()[: len(bomb.getvalue()) // 2])
    (folder / "empty.log").write_bytes(b"")
    (folder / "denied.jsonl").write_text(GOOD)
    (folder / "loop").symlink_to("loop")
    (folder / "up").symlink_to(folder)
    (folder / "gone.jsonl").symlink_to("nowhere")
    os.mkfifo(folder / "pipe.jsonl")
    for number, name in enumerate(
        ("a\nb", "-rf", "ünï", "a b'\"$(x)`", "%s{0}", "x" * 200, "…\x1b")
    ):
        (folder / f"{name}.jsonl").write_text(GOOD.replace("good", f"good{number}"))
    (folder / os.fsdecode(b"\xff\xfe.jsonl")).write_text(GOOD.replace("good", "good9"))
    return 8


@seeds
def test_other_files_are_read_whatever_lies_beside_them(seed, tmp_path, monkeypatch):
    good = spoiled_folder(tmp_path / "logs", seed)
    genuine = InputFile.open_raw

    def denied(self):  # whoever is root can read anything
        if self.path.name == "denied.jsonl":
            raise PermissionError(13, "Permission denied")
        return genuine(self)

    monkeypatch.setattr(InputFile, "open_raw", denied)
    db = str(tmp_path / "case.duckdb")
    with in_time_long():
        result = analyzer.ingest(db, [str(tmp_path / "logs")])
    told = {file.path: file for file in result.files}
    broken = {p: f.why for p, f in told.items() if "failed:" in f.why or "lost count" in f.why}
    assert not broken
    assert "Permission denied" in told["denied.jsonl"].why
    assert "as a bomb does" in told["bomb.zip!bomb.jsonl"].why
    assert "zip -FF" in told["half.zip"].why
    assert told["empty.log"].why == "the file is empty"
    for file in result.files:
        assert file.records == file.used + file.ignored + file.problems
        assert file.why or file.outcome in ("read", "known", "grown", "replaced")
    with engine_of(db) as engine:
        assert engine.value("SELECT count(*) FROM request WHERE request_id LIKE 'good%'") == good
        off = engine.rows("SELECT path FROM source WHERE records != used + ignored + problems")
        lost = engine.rows(
            "SELECT path, problems, n FROM source JOIN (SELECT source_id, count(DISTINCT record) "
            "AS n FROM problem GROUP BY 1) USING (source_id) WHERE n != problems"
        )
    assert not off
    assert not lost
    for command in (("status",), ("findings",), ("latency",)):
        done = CliRunner().invoke(cli, ("--db", db, *command))
        assert done.exit_code == 0, (command, done.stderr, done.exception)


@contextmanager
def in_time_long():
    """Enough for a folder of hundreds of files on a busy machine."""
    global SECONDS
    short, SECONDS = SECONDS, 240
    try:
        with in_time():
            yield
    finally:
        SECONDS = short


def test_the_samples_are_all_there():
    assert {path.parent.name for path in FILES} == set(READERS)
    assert SAMPLES.is_dir()


def test_a_reader_that_fails_over_a_file_keeps_nobody_from_it(tmp_path, monkeypatch):
    def broken(head):
        raise TypeError("unhashable type: 'dict'")

    readers = {**READERS, "prices": dataclasses.replace(READERS["prices"], probe=broken)}
    monkeypatch.setattr("analyzer.readers._find.all_readers", lambda: readers)
    (tmp_path / "a.jsonl").write_text(GOOD)
    (tmp_path / "b.txt").write_text("nothing")
    result = analyzer.ingest(str(tmp_path / "case.duckdb"), [str(tmp_path)])
    assert [file.reader for file in result.files] == ["request_records", None]
    assert "please report it" in result.files[1].why

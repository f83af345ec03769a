"""Archives: every member is a file like any other, whatever is wrong with the archive."""

import gzip
import io
import os
import random
import shlex
import tarfile
import zipfile

import pytest
import zstandard
from helpers import engine_of
from shared import SHARED, needs_shared
from test_readers import OPTIONS, READERS, read, rows_of

import analyzer
from analyzer.readers._archive import Shelf, members
from analyzer.readers._file import InputFile

LINE = '{{"request_id":"{0}","vantage":"client","e2e_ms":{1}}}\n'
FILES = {
    "a/client.jsonl": "".join(LINE.format(f"c{i}", i) for i in range(400)),
    "b.jsonl": "".join(LINE.format(f"d{i}", i) for i in range(90)),
    "prices.json": '{"unit":"per_million_tokens","models":{"m":{"input":"1"}}}',
}
SEEDS = int(os.environ.get("ANALYZE_SEEDS", "1"))
PACKERS = {
    "tar": bytes, "tar.gz": gzip.compress, "tgz": gzip.compress, "tar.zst": zstandard.compress,
}  # fmt: skip


def zipped(files, method=zipfile.ZIP_DEFLATED):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return out.getvalue()


def tarred(files, form=tarfile.PAX_FORMAT):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            data = data.encode() if isinstance(data, str) else data
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def packed(ending, files=FILES):
    return zipped(files) if ending == "zip" else PACKERS[ending](tarred(files))


def ingest(tmp_path, data, name="logs.zip", db="case.duckdb", **options):
    file = tmp_path / name
    file.write_bytes(data)
    return analyzer.ingest(str(tmp_path / db), [str(file)], **options)


def found(tmp_path, data, name="logs.zip"):
    """Name behind the ``!`` -> bytes or the reason against it."""
    file = tmp_path / name
    file.write_bytes(data)
    shelf = Shelf()
    out = {}
    for one in members(InputFile(file, name), shelf) or ():
        key = one.file.name.partition("!")[2]
        out[key] = one.why or b"".join(one.file.blocks(1000))
        if not one.why and one.file.cut:
            out[key] = (out[key], one.file.cut)
    shelf.close()
    return out


@pytest.mark.parametrize("ending", ["zip", *PACKERS])
def test_members_are_sources_and_nothing_is_stored_twice(ending, tmp_path):
    result = ingest(tmp_path, packed(ending), f"logs.{ending}")
    assert {file.path: (file.reader, file.used) for file in result.files} == {
        f"logs.{ending}!a/client.jsonl": ("request_records", 400),
        f"logs.{ending}!b.jsonl": ("request_records", 90),
        f"logs.{ending}!prices.json": ("prices", 1),
    }
    db = str(tmp_path / "case.duckdb")
    with engine_of(db) as engine:
        once = engine.rows("SELECT * FROM request ORDER BY ALL")
        containers = {row["container"] for row in engine.rows("SELECT container FROM source")}
    kind = {"zip": "zip", "tar": "tar", "tar.zst": "tar+zstd"}.get(ending, "tar+gzip")
    assert containers == {kind}
    # The same content in any other form adds nothing.
    (tmp_path / "b.jsonl").write_text(FILES["b.jsonl"])
    for other in ("zip", "tar.gz"):
        again = ingest(tmp_path, packed(other), f"other.{other}")
        assert {file.outcome for file in again.files} == {"known"}
    assert analyzer.ingest(db, [str(tmp_path / "b.jsonl")]).files[0].outcome == "known"
    with engine_of(db) as engine:
        assert engine.rows("SELECT * FROM request ORDER BY ALL") == once


def test_an_archive_whose_member_has_grown_is_read_on(tmp_path):
    short = FILES | {"b.jsonl": FILES["b.jsonl"][:1000]}
    ingest(tmp_path, packed("tar.gz", short), "logs.tar.gz")
    result = ingest(tmp_path, packed("tar.gz"), "logs.tar.gz")
    assert [file.outcome for file in result.files] == ["known", "grown", "known"]
    with engine_of(str(tmp_path / "case.duckdb")) as engine:
        assert engine.value("SELECT count(*) FROM request") == 490


def test_archives_are_found_in_folders_and_on_stdin(tmp_path, monkeypatch):
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "one.bin").write_bytes(packed("zip"))
    (logs / "two").write_bytes(packed("tar.zst", {"x.jsonl": LINE.format("x", 1)}))
    result = analyzer.ingest(str(tmp_path / "c.duckdb"), [str(logs)])
    assert [file.path for file in result.files] == [
        "one.bin!a/client.jsonl", "one.bin!b.jsonl", "one.bin!prices.json", "two!x.jsonl",
    ]  # fmt: skip

    class Stdin:
        buffer = io.BytesIO(packed("tar.gz"))

    monkeypatch.setattr("sys.stdin", Stdin)
    result = analyzer.ingest(str(tmp_path / "d.duckdb"), ["-"])
    assert result.files[0].path == "stdin!a/client.jsonl"


def test_a_member_may_be_compressed_itself(tmp_path):
    files = {
        "x.jsonl.gz": gzip.compress(FILES["b.jsonl"].encode()),
        "y.jsonl.zst": zstandard.compress(FILES["a/client.jsonl"].encode()),
    }
    result = ingest(tmp_path, zipped(files))
    assert [file.used for file in result.files] == [90, 400]
    with engine_of(str(tmp_path / "case.duckdb")) as engine:
        rows = engine.rows("SELECT container FROM source ORDER BY 1")
    assert [row["container"] for row in rows] == ["zip+gzip", "zip+zstd"]


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_methods_of_zip(method, tmp_path):
    assert found(tmp_path, zipped(FILES, method))["b.jsonl"] == FILES["b.jsonl"].encode()


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_other_forms_of_tar_and_long_names(form, tmp_path):
    long = "/".join(["d" * 40] * (3 if form == tarfile.USTAR_FORMAT else 9)) + "/ä.jsonl"
    files = {"short": b"1\n", long: b"2\n" * 700, "": b"", "end": b"3\n"}
    got = found(tmp_path, tarred(files, form), "logs.tar")
    assert got[long] == b"2\n" * 700
    assert got["end"] == b"3\n"


# -- cut and damaged ----------------------------------------------------------------------------


def test_a_cut_zip_is_one_problem_that_names_the_repair(tmp_path):
    data, cut_zip = packed("zip"), "it's cut.zip"
    (tmp_path / "good.jsonl").write_text(FILES["b.jsonl"])
    for cut in (5, len(data) // 2, len(data) - 1):
        (tmp_path / cut_zip).write_bytes(data[:cut])
        db = str(tmp_path / f"{cut}.duckdb")
        result = analyzer.ingest(db, [str(tmp_path)])
        told = {file.path: file for file in result.files}
        assert told["good.jsonl"].outcome == "read"
        assert told[cut_zip].outcome == "failed"
        command = f"zip -FF {shlex.quote(str(tmp_path / cut_zip))} --out repaired.zip"
        assert command in told[cut_zip].why
        assert not result.clean


@pytest.mark.parametrize("ending", list(PACKERS))
def test_a_cut_tar_is_read_up_to_the_cut_and_said_to_be(ending, tmp_path):
    dice = random.Random(ending)
    noise = {f"{i}.jsonl": "".join(LINE.format(dice.random(), i) for i in range(60)) for i in "abc"}
    data = PACKERS[ending](tarred(noise))
    whole = found(tmp_path, data, "logs.x")
    for cut in sorted(dice.choices(range(600, len(data)), k=12 * SEEDS)):
        got = found(tmp_path, data[:cut], "logs.x")
        fault = got.pop("", "")
        for name, told in got.items():
            content, why = told if isinstance(told, tuple) else (told, "")
            assert whole[name].startswith(content)
            assert why or content == whole[name]
        if got:
            assert fault or got == whole  # the padding after the end mark may be missing


def test_a_cut_tar_gz_gives_its_records_and_problems(tmp_path):
    data = packed("tar.gz")
    result = ingest(tmp_path, data[: len(data) * 2 // 3], "logs.tar.gz")
    assert any(file.used > 0 for file in result.files)
    assert any("middle" in (file.why or "") for file in result.files)
    assert not result.clean


@pytest.mark.parametrize("ending", ["zip", *PACKERS])
def test_flipped_bits_never_raise_and_lose_no_other_file(ending, tmp_path):
    dice = random.Random(ending)
    data = packed(ending, {name: text[:3000] for name, text in FILES.items()})
    for _ in range(60 * SEEDS):
        damaged = bytearray(data)
        for _ in range(dice.choice((1, 1, 4, 30))):
            damaged[dice.randrange(len(damaged))] ^= 1 << dice.randrange(8)
        file = tmp_path / "logs.x"
        file.write_bytes(damaged)
        shelf = Shelf()
        inside = members(InputFile(file, "logs.x"), shelf)
        for one in inside or ():
            if not one.why:
                head = one.file.head
                list(one.file.lines())
                assert head.path.startswith("logs.x!")
        shelf.close()


def test_damage_inside_a_zip_member_is_told_and_what_came_before_is_read(tmp_path):
    noise = os.urandom(40_000).hex().encode()
    lines = b"".join(
        LINE.format(noise[i * 40 : i * 40 + 40].decode(), i).encode() for i in range(900)
    )
    data = bytearray(zipped({"x.jsonl": lines, "y.jsonl": FILES["b.jsonl"]}))
    data[len(lines) // 4] ^= 0xFF
    result = ingest(tmp_path, bytes(data))
    first, second = result.files
    assert first.problems >= 1
    assert second.used == 90
    with engine_of(str(tmp_path / "case.duckdb")) as engine:
        rows = engine.rows("SELECT reason FROM problem WHERE reason LIKE '%archive is damaged%'")
    assert len(rows) == 1


# -- readers see no difference ------------------------------------------------------------------


def test_a_reader_that_needs_a_path_gets_one(tmp_path):
    (tmp_path / "l.zip").write_bytes(packed("zip"))
    shelf = Shelf()
    first, *_ = members(InputFile(tmp_path / "l.zip", "l.zip"), shelf)
    assert first.file.path.read_text() == FILES["a/client.jsonl"]
    assert first.file.size == len(FILES["a/client.jsonl"])
    shelf.close()


def test_members_of_two_archives_may_be_read_in_turns(tmp_path):
    shelf = Shelf()
    some = []
    for ending in ("tar.gz", "zip", "tar.zst"):
        (tmp_path / f"l.{ending}").write_bytes(packed(ending))
        some.append(list(members(InputFile(tmp_path / f"l.{ending}", ending), shelf)))
    reader = READERS["request_records"]
    for trio in zip(*some, strict=True):
        if "jsonl" in trio[0].file.name:
            assert len({str(rows_of(list(reader.read(one.file, OPTIONS)))) for one in trio}) == 1
    shelf.close()
    assert read(reader, _written(tmp_path))


def _written(tmp_path):
    path = tmp_path / "plain.jsonl"
    path.write_text(FILES["b.jsonl"])
    return path


@needs_shared
def test_a_real_zip_hides_what_a_mac_left_in_it(tmp_path):
    (path,) = (SHARED / "traces" / "2-measured").glob("vllm-project__aibrix/*.zip")
    shelf = Shelf()
    inside = list(members(InputFile(path, path.name), shelf))
    shelf.close()
    assert len(inside) == 66
    assert not any(one.why for one in inside)

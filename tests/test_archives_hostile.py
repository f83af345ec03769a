"""Archives nobody should make: names, links, locks, nesting and bombs cost themselves at most."""

import bz2
import gzip
import io
import struct
import tarfile

import pytest
import zstandard
from test_archives import FILES, LINE, found, ingest, packed, tarred, zipped

from analyzer.errors import AnalyzerError
from analyzer.readers import _archive, _file
from analyzer.readers._file import InputFile


def test_names_that_play_tricks_are_only_names(tmp_path):
    names = [
        "../../etc/evil.jsonl", "/abs/evil.jsonl", "c:\\win\\evil.jsonl", "a\x1b[2J.jsonl",
        "ä/日.jsonl", "x" * 3000 + ".jsonl", "con.jsonl", "-rf.jsonl", "a!b!c.jsonl",
    ]  # fmt: skip
    before = set(tmp_path.rglob("*"))
    for name, data in (
        ("l.zip", zipped({n: LINE.format(i, i) for i, n in enumerate(names)})),
        ("l.tar", tarred({n: LINE.format(i, i) for i, n in enumerate(names)})),
    ):
        result = ingest(tmp_path, data, name, db=f"{name}.duckdb")
        assert [file.used for file in result.files] == [1] * len(names)
        assert result.files[0].path == f"{name}!../../etc/evil.jsonl"
        assert max(len(file.path) for file in result.files) < 600
        made = set(tmp_path.rglob("*")) - before
        assert {path.name for path in made} <= {
            "l.zip", "l.tar", "l.zip.duckdb", "l.tar.duckdb", "l.zip.duckdb.wal",
            "l.tar.duckdb.wal",
        }  # fmt: skip


def test_what_folders_hide_archives_hide_too(tmp_path):
    files = {
        "__MACOSX/._b.jsonl": "x", ".hidden/x.jsonl": "x", "b/.DS_Store": "x",
        "b.jsonl": FILES["b.jsonl"], "./c.jsonl": LINE.format("c", 1),
    }  # fmt: skip
    for data, name in ((zipped(files), "l.zip"), (tarred(files), "l.tar")):
        assert set(found(tmp_path, data, name)) == {"b.jsonl", "./c.jsonl"}


def test_links_and_devices_of_a_tar_are_told_and_not_followed(tmp_path):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, kind, target in (
            ("passwd", tarfile.SYMTYPE, "/etc/passwd"), ("loop", tarfile.SYMTYPE, "loop"),
            ("hard", tarfile.LNKTYPE, "b.jsonl"), ("null", tarfile.CHRTYPE, ""),
            ("folder", tarfile.DIRTYPE, ""),
        ):  # fmt: skip
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, target
            archive.addfile(info)
        info = tarfile.TarInfo("b.jsonl")
        info.size = len(FILES["b.jsonl"])
        archive.addfile(info, io.BytesIO(FILES["b.jsonl"].encode()))
    result = ingest(tmp_path, out.getvalue(), "l.tar")
    told = {file.path.partition("!")[2]: file for file in result.files}
    assert told["b.jsonl"].used == 90
    assert set(told) == {"passwd", "loop", "hard", "null", "b.jsonl"}
    assert {told[name].outcome for name in ("passwd", "loop", "hard", "null")} == {"unrecognised"}
    assert "a link" in told["passwd"].why


def test_an_encrypted_member_is_a_clear_problem_and_the_others_are_read(tmp_path):
    data = bytearray(zipped({"secret.jsonl": "x", "b.jsonl": FILES["b.jsonl"]}))
    for mark, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        place = data.index(mark) + at
        data[place] |= 1
    result = ingest(tmp_path, bytes(data))
    assert result.files[0].outcome == "failed"
    assert "encrypted" in result.files[0].why
    assert result.files[1].used == 90


def test_an_unknown_method_of_zip_is_a_clear_problem(tmp_path):
    data = bytearray(zipped({"odd.jsonl": "x", "b.jsonl": FILES["b.jsonl"]}))
    struct.pack_into("<H", data, data.index(b"PK\x01\x02") + 10, 9)
    result = ingest(tmp_path, bytes(data))
    assert "method 9" in result.files[0].why
    assert result.files[1].used == 90


@pytest.mark.parametrize("inner", ["zip", "tar", "tar.gz"])
def test_an_archive_inside_an_archive_is_a_clear_problem(inner, tmp_path):
    files = {f"in.{inner}": packed(inner), "b.jsonl": FILES["b.jsonl"]}
    result = ingest(tmp_path, zipped(files))
    assert "archive inside an archive" in result.files[0].why
    assert result.files[1].used == 90


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (bz2.compress(b"x"), "bzcat"), (b"\xfd7zXZ\0", "xz -dc"), (b"7z\xbc\xaf\x27\x1c", "7z"),
        (b"Rar!\x1a\x07\1", "rar"), ("a,b\n".encode("utf-16"), "UTF-8"),
        (gzip.compress(zipped({"a": "b"})), "archive inside"),
        (zipped({"[Content_Types].xml": "x", "xl/a.xml": "y"}), "CSV"),
        (zipped({}), "no file"), (zipped({"d/": ""}), "no file"),
    ],
    ids=["bz2", "xz", "7z", "rar", "utf-16", "zip.gz", "xlsx", "empty", "folder"],
)  # fmt: skip
def test_what_cannot_be_opened_says_what_to_do(data, what, tmp_path):
    with pytest.raises(AnalyzerError) as caught:
        ingest(tmp_path, data)
    assert what in caught.value.message


# -- bombs --------------------------------------------------------------------------------------


@pytest.fixture
def small_limits(monkeypatch):
    monkeypatch.setattr(_archive, "MOST_FOR_FREE", 100_000)
    monkeypatch.setattr(_file, "MOST_FOR_FREE", 100_000)
    monkeypatch.setattr(_file, "MOST_RATIO", 300)


@pytest.mark.parametrize("ending", ["zip", "tar.gz", "tar.zst"])
def test_a_bomb_is_named_and_the_other_members_are_read(ending, tmp_path, small_limits):
    files = {"b.jsonl": FILES["b.jsonl"], "bomb.jsonl": b"\0" * 30_000_000}
    result = ingest(tmp_path, packed(ending, files), f"l.{ending}")
    assert result.files[0].used == 90
    assert any("as a bomb does" in (file.why or "") for file in result.files)
    assert sum(file.bytes for file in result.files) < 12_000_000


def test_overlapping_members_are_a_bomb_too(tmp_path, small_limits):
    bomb = {f"{i}.jsonl": "0" * 90_000 for i in range(50)}
    result = found(tmp_path, zipped(bomb))
    refused = [name for name, told in result.items() if isinstance(told, str)]
    assert 0 < len(refused) < 50


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress])
def test_a_compressed_file_can_be_a_bomb_as_well(pack, tmp_path, small_limits):
    data = pack(FILES["b.jsonl"].encode() + b"\n" * 100_000_000)
    file = InputFile(tmp_path / "b.gz", "b.gz")
    file.path.write_bytes(data)
    read_bytes = sum(len(block) for block in file.blocks())
    assert read_bytes <= max(100_000, 300 * len(data))
    assert "bomb" in file.cut


def test_one_step_of_zstd_unpacks_little(tmp_path):
    file = InputFile(tmp_path / "b.zst", "b.zst")
    file.path.write_bytes(zstandard.compress(b"\0" * 300_000_000))
    assert max(len(block) for block in file.blocks()) < 64_000_000


def test_too_many_members_are_a_clear_problem(tmp_path, monkeypatch):
    monkeypatch.setattr(_archive, "MOST_MEMBERS", 2)
    result = ingest(tmp_path, packed("zip"))
    assert [file.outcome for file in result.files] == ["read", "read", "failed"]
    assert "more than 2 members" in result.files[2].why


def test_a_tar_header_that_claims_the_world(tmp_path):
    def header(name, size, kind=b"0"):
        block = bytearray(512)
        block[: len(name)] = name
        block[124:136] = size
        block[156:157] = kind
        block[148:156] = b" " * 8
        block[148:156] = b"%06o\0 " % sum(block)
        return bytes(block)

    huge = b"\x80" + b"\xff" * 11
    for tar in (
        header(b"x", huge), header(b"x", huge, b"x"), header(b"x", b"77777777777\0", b"L"),
        header(b"x", b"77777777777\0") + b"1\n", header(b"x", b"zzz"),
        header(b"x", b"0" * 11, b"S"),
        header(b"x", b"00000000014\0", b"x") + b"99999999 a=b".ljust(512, b"\0"),
    ):  # fmt: skip
        for data in (tar, gzip.compress(tar)):
            got = found(tmp_path, data, "l.tar")
            assert sum(len(one) for one in got.values()) < 2_000


def test_no_room_to_unpack_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(_archive.tempfile, "SpooledTemporaryFile", _Full)
    with pytest.raises(AnalyzerError) as caught:
        ingest(tmp_path, packed("tar.gz"), "l.tar.gz")
    assert "No space left on device" in caught.value.message
    assert "TMPDIR" in caught.value.message


class _Full(io.BytesIO):
    def __init__(self, **options):
        super().__init__()

    def write(self, data):
        raise OSError(28, "No space left on device")

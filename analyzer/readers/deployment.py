"""``deployment.json`` or ``.toml``: what a model runs on, as far as its operator says."""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.contract.native import Deployment
from analyzer.contract.types import Batch, Problem
from analyzer.readers._document import parse, read_all, small_document
from analyzer.readers._file import Head, InputFile
from analyzer.readers._jsonl import Sink, converted
from analyzer.readers._reader import Claim, Options, Reader

_KNOWN = set(Deployment.__struct_fields__)
_TELLING = _KNOWN - {"name", "model"}
_GIGABYTE = 1e9


def probe(head: Head) -> Claim:
    """One small object with nothing but our fields, and one of them telling."""
    value = small_document(head)
    if value is None:
        return Claim(0, "it is no small JSON or TOML object")
    strange = value.keys() - _KNOWN
    if strange or not _TELLING & value.keys():
        why = f"it also has {', '.join(sorted(strange)[:3])}" if strange else "it names no hardware"
        return Claim(0.5 if _TELLING & value.keys() else 0, why)
    return Claim(1, "")


def read(file: InputFile, options: Options) -> Iterator[Batch]:  # noqa: ARG001 - reader contract
    """One ``deployment`` row."""
    try:
        one = converted(parse(read_all(file)), Deployment)
    except ValueError as error:
        yield Batch(records=1, problems=(Problem(1, str(error)),))
        return
    row = {
        **{name: getattr(one, name) for name in _KNOWN if not name.endswith("_gb_s")},
        "memory_bandwidth_bytes_per_s": _bytes(one.memory_bandwidth_gb_s),
        "cpu_memory_bandwidth_bytes_per_s": _bytes(one.cpu_memory_bandwidth_gb_s),
    }
    sink = Sink()
    sink.add("deployment", 1, **row)
    yield sink.batch(1)


def _bytes(gigabytes: float | None) -> float | None:
    return None if gigabytes is None else gigabytes * _GIGABYTE


READER = Reader(
    title="Deployment file (JSON or TOML)",
    record_unit="document",
    gives=("deployment",),
    probe=probe,
    read=read,
    docs="schemas/native/deployment.schema.json",
    cannot="anything that happened",
    enable="add logs",
    checked_against="generated files",
)

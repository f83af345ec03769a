"""Prompt and answer text stays out of the case: no sentence of a sample is in its database."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import analyzer
from analyzer.contract.tables import TABLES
from analyzer.readers._find import all_readers
from analyzer.store.case import open_case

SAMPLES = Path(__file__).parents[1] / "sample_traces"
_STRING = re.compile(rb'"((?:[^"\\]|\\.)*)"')
_WORDS = 4
"""So many words in a row are a sentence, not a name."""


def sentences(data: bytes) -> set[str]:
    """Every part of a JSON string that reads as a sentence, however deep it lies."""
    found: set[str] = set()
    waiting = [data]
    while waiting:
        for match in _STRING.finditer(waiting.pop()):
            try:
                text = json.loads(match[0])
            except ValueError:
                continue
            if '"' in text:  # JSON within JSON
                waiting.append(text.encode())
            parts = re.split(r"[.?!:;\n]+", text)
            found |= {part.strip() for part in parts if len(part.split()) >= _WORDS}
    return found


def transcripts() -> list[str]:
    """Readers whose samples hold sentences in JSON strings; names of kernels are no prompts."""
    return [
        name
        for name, reader in all_readers().items()
        if not {"gpu_event", "gpu_kernel_total"} & set(reader.gives)
        and any(sentences(path.read_bytes()) for path in files_of(name))
    ]


def files_of(name: str) -> list[Path]:
    return [p for p in (SAMPLES / name).rglob("*") if p.is_file() and p.suffix != ".md"]


@pytest.mark.parametrize("name", transcripts())
def test_no_sentence_of_a_sample_is_stored(name, tmp_path):
    db = tmp_path / "case.duckdb"
    analyzer.ingest(str(db), [str(SAMPLES / name)], reader=name)
    case = open_case(str(db))
    try:
        # Pages of the file are compressed, so its bytes alone prove little.
        stored = [
            str(value)
            for table in TABLES
            for row in case.run(f"SELECT * FROM {table}")
            for value in row
            if isinstance(value, str)
        ]
    finally:
        case.close()
    raw = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    text = "\n".join(stored)
    for path in files_of(name):
        for sentence in sentences(path.read_bytes()):
            assert sentence not in text
            assert sentence.encode() not in raw


def test_a_sentence_would_be_found():
    inner = json.dumps({"c": "Weave one more row. Then stop here please"})
    found = sentences(json.dumps({"a": [{"b": inner}]}).encode())
    assert found >= {"Weave one more row", "Then stop here please"}

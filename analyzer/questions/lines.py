"""The records behind a request, read again from disk: only while the bytes are still the same."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from analyzer.engines.duckdb import Engine
from analyzer.readers._file import InputFile
from analyzer.readers._rows import excerpt

_ITEMS = 5
_LINE = 2_000
"""Characters of a quoted line; a prompt of a megabyte is masked long before."""


def quoted(engine: Engine, key: int, folders: Sequence[Path]) -> tuple[dict[str, Any], ...]:
    """Each record with its ``line``, or ``why`` it is not quoted.

    What the case holds of the request anyway stands as it is; all other text is masked, for it may
    be a prompt or an answer.
    """
    rows = engine.rows(
        f"""SELECT s.path, s.sha256, s.bytes, s.record_unit, t.record
FROM resolve_instance AS i
JOIN resolve_told AS t ON i.row_id = t.row_id
JOIN source AS s ON t.source_id = s.source_id
WHERE i.request_key = {key} ORDER BY t.vantage_rank, s.source_id, t.record"""
    )
    request = engine.rows(f"SELECT * FROM resolve_request WHERE request_key = {key}")[0]
    known = frozenset(value for value in request.values() if isinstance(value, str))
    return tuple(
        {"path": row["path"], "record": row["record"], **_told(row, known, folders)} for row in rows
    )


def _told(row: dict[str, Any], known: frozenset[str], folders: Sequence[Path]) -> dict[str, str]:
    if row["record_unit"] != "line":
        return {"why": f"it is a {row['record_unit']} inside a document, no line"}
    file = _same(row, folders)
    if file is None:
        looked = ", ".join(str(folder) for folder in folders)
        return {
            "why": f"no file below {looked} holds the bytes that were ingested; --logs FOLDER "
            "says where the logs lie"
        }
    for block in file.lines():
        if block.first_record <= row["record"] <= block.last_record:
            return {"line": shown(block.lines[row["record"] - block.first_record], known)}
    return {"why": "the file has fewer lines now"}


def _same(row: dict[str, Any], folders: Iterable[Path]) -> InputFile | None:
    """The file whose bytes, or whose beginning where it has grown, are those that were read."""
    path = PurePosixPath(row["path"])
    # A case may come from anybody: its paths lead nowhere but below the folders given.
    names = [path.name] if path.is_absolute() or ".." in path.parts else [str(path), path.name]
    for folder in folders:
        for name in dict.fromkeys(names):
            place = folder / name
            try:
                if not place.is_file():
                    continue
                file = InputFile(place, name)
                _, _, prefixes = file.fingerprint(frozenset({row["bytes"]}))
            except OSError:
                continue
            if prefixes.get(row["bytes"]) == row["sha256"]:
                return file
    return None


def shown(line: bytes, known: frozenset[str]) -> str:
    """A line as it may be shown: JSON with foreign text masked, anything else as an excerpt."""
    text = line.decode("utf-8", "replace")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return excerpt(line)
    if not isinstance(value, dict):
        return excerpt(line)
    told = json.dumps(_masked(value, known), ensure_ascii=False)
    return told if len(told) <= _LINE else told[:_LINE] + "…"


def _masked(value: Any, known: frozenset[str], depth: int = 0) -> Any:  # noqa: ANN401 - JSON
    if isinstance(value, str):
        return value if value in known else f"…({len(value)} chars)"
    if isinstance(value, dict):
        if depth > _ITEMS:
            return f"…({len(value)} keys)"
        return {key: _masked(item, known, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        # A list of numbers may be the tokens of a prompt.
        return f"…({len(value)} items)"
    return value

"""Puts a rendered answer where it is wanted, whole or not at all."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import TYPE_CHECKING

from analyzer.errors import AnalyzerError

if TYPE_CHECKING:
    from collections.abc import Iterable


def may_write(path: str | Path | None, *, force: bool) -> None:
    """A file that someone names may be someone's work."""
    if path is not None and Path(path).exists() and not force:
        raise AnalyzerError(f"{path} exists", "--force overwrites it")


def write(path: str | Path, content: str | bytes) -> Path:
    """Write in one piece, and make the folder where there is none."""
    target = Path(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        # A full disk must not leave half a report where a whole one stood.
        draft = target.with_name(f".{target.name}.draft")
        draft.write_bytes(content.encode() if isinstance(content, str) else content)
        draft.replace(target)
    except OSError as error:
        raise AnalyzerError(
            f"cannot write {target}: {error.strerror}", "-o FILE names another"
        ) from None
    return target


def write_parts(path: str | Path, parts: Iterable[bytes]) -> Path:
    """The same for what is too long to be held in one piece; a name in ``.gz`` is compressed."""
    target = Path(path)
    draft = target.with_name(f".{target.name}.draft")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            # No name and no time in it: the same events give the same bytes.
            with (
                draft.open("wb") as plain,
                gzip.GzipFile("", "wb", 6, plain, mtime=0)
                if target.suffix == ".gz"
                else plain as out,
            ):
                out.writelines(parts)
            draft.replace(target)
        finally:
            draft.unlink(missing_ok=True)
    except OSError as error:
        raise AnalyzerError(
            f"cannot write {target}: {error.strerror}", "give the name of another file"
        ) from None
    return target

"""Puts a rendered answer where it is wanted, whole or not at all."""

from __future__ import annotations

from pathlib import Path

from analyzer.errors import AnalyzerError


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

"""How much memory DuckDB may take, and where it puts what does not fit."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import gettempdir

_MOST = 4 * 2**30
"""A million requests with a hundred chunks each are analysed within half of it; more is quicker."""
_LEAST = 2**29
_SMALL = 4 * 2**20
"""Bytes of a case that one thread reads as fast as several: its rows fit into few row groups."""
_CGROUP = Path("/sys/fs/cgroup/memory.max")


def limits(path: Path, *, write: bool = False) -> dict[str, str]:
    """Settings of a process: half of the memory at most, and a spill folder of its own.

    DuckDB would take four fifths of the machine, which is not ours alone. It would also spill into
    one folder for every process that has the case open, where they overwrite each other's files.
    The folder is beside the case, where there is room, unless that cannot be written; DuckDB makes
    it when it has to, and takes it away.

    Hundreds of short queries are put to a small case: waking other threads for each takes longer
    than what they could do in the meantime. What is written may grow large.
    """
    bytes_ = max(_LEAST, min(_MOST, _memory() // 2))
    settings = {"memory_limit": f"{bytes_ // 2**20}MiB", "temp_directory": str(_spill(path))}
    if not write and path.exists() and path.stat().st_size < _SMALL:
        settings["threads"] = "1"
    return settings


def _spill(path: Path) -> Path:
    name = f"{path.name}.{os.getpid()}.tmp"
    beside = path.absolute().parent
    return (beside if os.access(beside, os.W_OK) else Path(gettempdir())) / name


def _memory() -> int:
    """Bytes of memory of the machine, or of the container."""
    try:
        whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return 2 * _MOST
    try:
        told = _CGROUP.read_text(encoding="ascii").strip()
    except (OSError, UnicodeError):
        return whole
    return min(whole, int(told)) if told.isdigit() else whole

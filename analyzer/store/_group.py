"""Small files that wait to be stored together: a transaction each would cost more than reading."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from analyzer.contract.tables import TABLES

_ROWS = 100_000
_FILES = 250
_TIMED = {
    "request": ("start_ns", True), "engine_sample": ("time_ns", False),
    "engine_step": ("time_ns", False), "engine_event": ("time_ns", True),
    "client_tick": ("time_ns", True), "gpu_sample": ("time_ns", True),
}  # fmt: skip
"""Table -> its moment, and whether rows without a clock are on the wall's."""


class Group:
    """Whole files, in the order they were read."""

    def __init__(self) -> None:
        self.sources: list[int] = []
        self.tables: dict[str, list[pa.Table]] = {}
        self._rows = 0

    def add(self, source_id: int, tables: Mapping[str, pa.Table]) -> None:
        """One file's rows, with those of its account."""
        self.sources.append(source_id)
        for name, table in tables.items():
            if "source_id" not in table.column_names:
                ids = pa.repeat(pa.scalar(source_id, pa.int32()), table.num_rows)
                table = table.append_column(TABLES[name].field("source_id"), ids)
            self.tables.setdefault(name, []).append(table)
            self._rows += table.num_rows

    @property
    def full(self) -> bool:
        """Whether it is time to store them."""
        return self._rows >= _ROWS or len(self.sources) >= _FILES


def span(tables: Mapping[str, pa.Table]) -> tuple[int | None, int | None]:
    """First and last moment that a file's rows tell, on the wall's clock."""
    begins, ends = [], []
    for name, (moment, unsaid) in _TIMED.items():
        table = tables.get(name)
        if table is None or moment not in table.column_names:
            continue
        if "clock" in table.column_names:
            on_wall = pc.fill_null(pc.equal(table["clock"], "wall"), unsaid)
            table = table.filter(on_wall)
        elif not unsaid:
            continue
        start = end = table[moment]
        if "e2e_ns" in table.column_names:
            end = pc.add(start, pc.fill_null(table["e2e_ns"], 0))
        begins.append(pc.min(start).as_py())
        ends.append(pc.max(end).as_py())
    first = min((one for one in begins if one is not None), default=None)
    return first, max((one for one in ends if one is not None), default=None)

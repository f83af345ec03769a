"""Small files that wait to be stored together: a transaction each would cost more than reading."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from analyzer.contract.tables import TABLES

_ROWS = 100_000
_FILES = 500
_TIMED = {
    "request": ("start_ns", True), "engine_sample": ("time_ns", False),
    "engine_step": ("time_ns", False), "engine_event": ("time_ns", True),
    "client_tick": ("time_ns", True), "gpu_sample": ("time_ns", True),
    "gpu_trace": ("start_ns", False),
}  # fmt: skip
"""Table -> its moment, and whether rows without a clock are on the wall's."""
# Made once: pyarrow takes as long to make one of these as to look through a small table.
_WALL, _SAID = pa.scalar("wall"), {yes: pa.scalar(yes) for yes in (True, False)}
_NO_TIME, _NO_NS = pa.scalar(None, pa.int64()), pa.scalar(0, pa.int64())


class Group:
    """Whole files, in the order they were read."""

    def __init__(self) -> None:
        self.sources: list[int] = []
        self._tables: dict[str, list[tuple[int, pa.Table]]] = {}
        self._account: dict[str, list[Mapping[str, Any]]] = {}
        self._rows = 0

    def add(
        self,
        source_id: int,
        tables: Mapping[str, pa.Table],
        account: Mapping[str, Sequence[Mapping[str, Any]]],
    ) -> None:
        """One file's rows, which have no ``source_id`` yet, and the rows of its account."""
        self.sources.append(source_id)
        for name, table in tables.items():
            self._tables.setdefault(name, []).append((source_id, table))
            self._rows += table.num_rows
        for name, rows in account.items():
            self._account.setdefault(name, []).extend(rows)

    @property
    def full(self) -> bool:
        """Whether it is time to store them."""
        return self._rows >= _ROWS or len(self.sources) >= _FILES

    def tables(self) -> Iterator[tuple[str, pa.Table]]:
        """Everything, a table after the other."""
        for name, some in self._tables.items():
            rows = pa.concat_tables([table for _, table in some], promote_options="permissive")
            ids = [source_id for source_id, table in some for _ in range(table.num_rows)]
            field = TABLES[name].field("source_id")
            # One piece: DuckDB takes as long over a piece of ten rows as over one of thousands.
            yield name, rows.combine_chunks().append_column(field, pa.array(ids, field.type))
        for name, account in self._account.items():
            if account:
                yield name, pa.Table.from_pylist(account, schema=TABLES[name])


def span(tables: Mapping[str, pa.Table]) -> tuple[int | None, int | None]:
    """First and last moment that a file's rows tell, on the wall's clock."""
    begins, ends = [], []
    for name, (moment, unsaid) in _TIMED.items():
        table = tables.get(name)
        if table is None or moment not in table.column_names:
            continue
        start = table[moment]
        if "clock" in table.column_names:
            on_wall = pc.coalesce(pc.equal(table["clock"], _WALL), _SAID[unsaid])
            start = pc.if_else(on_wall, start, _NO_TIME)
        elif not unsaid:
            continue
        end = start
        length = "dur_ns" if name == "gpu_trace" else "e2e_ns"
        if length in table.column_names:
            end = pc.add(start, pc.coalesce(table[length], _NO_NS))
        begins.append(pc.min(start).as_py())
        ends.append(pc.max(end).as_py())
    first = min((one for one in begins if one is not None), default=None)
    return first, max((one for one in ends if one is not None), default=None)

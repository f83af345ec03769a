"""What a reader told of one file, before it is stored: rows, and an account of every record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import pyarrow as pa

from analyzer.contract.types import Batch, Resume
from analyzer.errors import AnalyzerError
from analyzer.store._conform import conform, problem_table
from analyzer.store._group import span


class Gathered:
    """Batch after batch of one file, held to the contract; knows nothing of a case."""

    def __init__(self, path: str, reader: str) -> None:
        self.path, self.reader = path, reader
        self.counts: Counter[str] = Counter()
        self.ignored: Counter[str] = Counter()
        self.assumed: list[str] = []
        self.resume: Resume | None = None
        self.tables: dict[str, list[pa.Table]] = {}
        self.rows = 0
        self._ended = False
        self.span: tuple[int | None, int | None] = (None, None)
        """First and last time it tells, once :meth:`end` was called."""
        self.in_part = 0
        """Records with a problem that gave a request all the same; known as ``span`` is."""

    def append(self, batch: Batch) -> None:
        """One more batch; raises where it breaks the contract or its account does not add up."""
        problems = len({problem.record for problem in batch.problems})
        ignored = sum(batch.ignored.values())
        if batch.records != batch.used + ignored + problems:
            msg = (
                f"reader {self.reader} lost count in {self.path}: {batch.records} "
                f"records, {batch.used} used, {ignored} ignored, {problems} problems"
            )
            raise AnalyzerError(msg, "this is a bug in the reader; please report it")
        self.counts.update(records=batch.records, used=batch.used)
        self.ignored.update(batch.ignored)
        self.assumed += [note for note in batch.assumed if note not in self.assumed]
        self.resume = batch.resume or self.resume
        for name, table in batch.tables.items():
            self._take(name, table)
        if batch.problems:
            self._take("problem", problem_table(batch.problems))

    def _take(self, name: str, table: pa.Table) -> None:
        if table.num_rows:
            self.tables.setdefault(name, []).append(conform(name, table, self.reader))
            self.rows += table.num_rows if name != "problem" else 0

    def waiting(self, name: str) -> int:
        """Rows of a table that are still here."""
        return sum(one.num_rows for one in self.tables.get(name, ()))

    def pop(self, name: str) -> pa.Table:
        """All rows of a table, which are no longer here then."""
        return joined(self.tables.pop(name))

    def end(self) -> None:
        """The file is read: each table is in one piece, and ``span`` and ``in_part`` are known."""
        if self._ended:
            return
        self._ended = True
        whole = {name: joined(some) for name, some in self.tables.items()}
        self.tables = {name: [table] for name, table in whole.items()}
        self.span = span(whole)
        if "problem" in whole and "request" in whole:
            doubted = set(whole["problem"]["record"].to_pylist())
            self.in_part = len(doubted.intersection(whole["request"]["record"].to_pylist()))

    def account(self) -> Mapping[str, int]:
        """records, used, ignored, problems so far."""
        ignored = sum(self.ignored.values())
        records, used = self.counts["records"], self.counts["used"]
        return {
            "records": records, "used": used, "ignored": ignored,
            "problems": records - used - ignored,
        }  # fmt: skip


def joined(tables: list[pa.Table]) -> pa.Table:
    """One table below the other; a column that one of them lacks is NULL there."""
    return tables[0] if len(tables) == 1 else pa.concat_tables(tables, promote_options="permissive")

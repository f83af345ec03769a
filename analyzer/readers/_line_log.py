"""Text logs line by line: what every reader of one does around the lines themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

import polars as pl
import pyarrow as pa

from analyzer.contract.types import Batch, Problem, Resume
from analyzer.readers._file import InputFile, Lines
from analyzer.readers._reader import Options
from analyzer.readers._rows import excerpt

BLANK = "blank line"
FOREIGN = "banner or foreign line"
_ANSI = r"\x1b\[[0-9;]*[A-Za-z]"


class Log(Protocol):
    """A log under way. What it carries from line to line must survive JSON."""

    def take(self, block: Lines) -> Batch:
        """Rows and account of one block."""

    def memory(self) -> Any:  # noqa: ANN401 - the reader's own
        """What the next block needs to know."""

    def open_records(self) -> tuple[int, ...]:
        """Records whose rows may still change."""

    def rest(self) -> Mapping[str, pa.Table]:
        """Rows of what is still open at the end of the file."""


class LineByLine:
    """A :class:`Log` whose lines stand alone: nothing is carried over."""

    def memory(self) -> None:
        """Nothing to know."""

    def open_records(self) -> tuple[int, ...]:
        """No row may still change."""
        return ()

    def rest(self) -> Mapping[str, pa.Table]:
        """Nothing is open."""
        return {}


def read_log(file: InputFile, options: Options, log: Log) -> Iterator[Batch]:
    """A batch a block; the last one says where reading goes on when the file has grown."""
    resume = options.resume
    offset, before = (resume.offset, resume.records) if resume else (0, 0)
    end = resume
    for block in file.lines(offset=offset, records_before=before):
        memory, unsettled = log.memory(), log.open_records()
        batch = log.take(block)
        yield batch
        last = block.last_record
        if not block.unterminated:
            end = Resume(block.end, last, log.open_records(), log.memory())
        elif batch.ignored:  # nobody can tell what this line becomes: the file is read anew
            end = None
        else:
            end = Resume(block.offset, last - 1, (*unsettled, last), memory)
    yield Batch(log.rest(), resume=end)


def texts(block: Lines) -> pl.DataFrame:
    """Record and text of each line, without colours and trailing blanks."""
    data = b"\n".join(block.lines)
    text = pl.Series("text", data.decode("utf-8", "replace").split("\n"))
    if b"\x1b" in data:
        text = text.str.replace_all(_ANSI, "")
    frame = pl.DataFrame({"text": text.str.strip_chars_end()})
    return frame.with_columns(record=pl.int_range(pl.len(), dtype=pl.Int64) + block.first_record)


def with_kinds(frame: pl.DataFrame, kinds: Mapping[str, str], other: str) -> pl.DataFrame:
    """``kind`` of each line: the first whose pattern its text has."""
    return frame.with_columns(
        kind=pl.coalesce(
            pl.when(pl.col("text").str.contains(words)).then(pl.lit(name))
            for name, words in kinds.items()
        ).fill_null(other)
    )


def problem_at(record: int, reason: str, block: Lines) -> Problem:
    """A line that cannot be read; one that the file ends in is cut off, whatever it says."""
    index = record - block.first_record
    if block.unterminated:
        reason = f"cut off: the file ends inside it ({reason})"
    return Problem(record, reason, excerpt(block.lines[index]), block.starts[index])

"""Works on the next blocks of a file while the ones before are stored."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain, islice
from typing import TypeVar

_T = TypeVar("_T")
_R = TypeVar("_R")
_WORKERS = 2
"""Polars lets go of the interpreter; what is left of Python takes turns."""
_AHEAD = 3
"""Blocks in memory at a time, whatever the size of the file."""
_GIVEN = 8
"""The same of a generator, which goes on while hundreds of thousands of rows are stored."""


def ahead(work: Callable[[_T], _R], items: Iterable[_T]) -> Iterator[_R]:
    """``map`` in order, some items ahead, in threads; a single item needs none."""
    rest = iter(items)
    first = list(islice(rest, 2))
    if len(first) < 2:
        yield from map(work, first)
        return
    waiting: deque[Future[_R]] = deque()
    with ThreadPoolExecutor(_WORKERS, "read-ahead") as pool:
        try:
            for item in chain(first, rest):
                waiting.append(pool.submit(work, item))
                if len(waiting) >= _AHEAD:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for one in waiting:
                one.cancel()


def ahead_of(items: Generator[_T]) -> Generator[_T]:
    """What a generator gives, some items ahead; it runs and ends in a thread of its own."""
    waiting: deque[Future[_T | None]] = deque()
    with ThreadPoolExecutor(1, "read-ahead") as pool:
        try:
            waiting.extend(pool.submit(next, items, None) for _ in range(_GIVEN))
            while (item := waiting.popleft().result()) is not None:
                waiting.append(pool.submit(next, items, None))
                yield item
        finally:
            for one in waiting:
                one.cancel()
            pool.submit(items.close)

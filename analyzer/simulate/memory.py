"""Paged KV memory of one engine, and the prefix cache in its free blocks.

Blocks that nobody uses stay in one queue, oldest first; a new block is taken from its head, which
is how a cached prefix is lost, its tail first. A prompt is a path of parts, each named by the hash
of everything up to its end, so an equal name is an equal prefix.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict

Path = list[tuple[object, int]]
"""Parts of a prompt: name, and tokens of the prompt up to its end."""


def whole_blocks(path: Path, block_tokens: int) -> Path:
    """The path without parts that complete no block; what follows them covers their tokens."""
    kept: Path = []
    blocks = 0
    for name, end in path:
        if end // block_tokens > blocks:
            blocks = end // block_tokens
            kept.append((name, end))
    return kept


def block_hashes(path: Path, block_tokens: int) -> list[str]:
    """A hash of each whole block's prefix: equal where the prompts are equal up to its end."""
    hashes: list[str] = []
    for name, end in path:
        digest = hashlib.sha256(str(name).encode()).hexdigest()[:10]
        # A part's name stands for everything up to its end, so for the blocks inside it too.
        blocks = range(len(hashes) + 1, end // block_tokens + 1)
        hashes += [f"{digest}{block:06x}" for block in blocks]
    return hashes


class Part:
    """Blocks of one part that are in memory: always its first ones."""

    __slots__ = ("have", "name", "refs", "size", "used_ns")

    def __init__(self, name: object, size: int, used_ns: int) -> None:
        self.name, self.size, self.used_ns = name, size, used_ns
        self.have = self.refs = 0


class Held:
    """What one request holds: shared parts, and blocks of its own."""

    __slots__ = ("named", "own", "parts", "shared")

    def __init__(self) -> None:
        self.parts: list[Part] = []
        self.shared = self.own = self.named = 0
        """Blocks found in the cache, blocks of its own, and those it has named since."""


class Memory:
    """All blocks of one engine."""

    def __init__(self, blocks: int, block_tokens: int, *, cached: bool, lifetime_ns: int) -> None:
        self.blocks = self.free = blocks
        self.block_tokens = block_tokens
        self.cached, self.lifetime_ns = cached, lifetime_ns
        self.parts: dict[object, Part] = {}
        self.unused: OrderedDict[object, int] = OrderedDict({-1: blocks})
        self.last_plain: object = -1
        self.plain = -1

    def known(self, path: Path, tokens: int, now_ns: int) -> tuple[list[Part], int]:
        """Parts of a prompt that are cached, and how many blocks; the last token never is."""
        found: list[Part] = []
        if not self.cached:
            return found, 0
        most = (tokens - 1) // self.block_tokens
        blocks = 0
        for name, _ in path:
            part = self.parts.get(name)
            if part is None or blocks >= most:
                break
            if self.lifetime_ns and not part.refs and now_ns - part.used_ns > self.lifetime_ns:
                self._forget(part)
                break
            found.append(part)
            blocks += part.have
            if part.have < part.size:
                break
        return found, min(blocks, most)

    def room(self, found: list[Part]) -> int:
        """Blocks that a request which uses these parts could still take."""
        return self.free - sum(part.have for part in found if not part.refs)

    def hold(self, found: list[Part], blocks: int) -> Held:
        """Use cached parts: nobody takes their blocks away."""
        held = Held()
        for part in found:
            if not part.refs:
                self.free -= part.have
                self.unused.pop(part.name, None)
            part.refs += 1
        held.parts.extend(found)
        held.shared = blocks
        return held

    def take(self, count: int) -> bool:
        """Take blocks from the head of the queue, if there are so many."""
        if count > self.free:
            return False
        self.free -= count
        unused = self.unused
        while count:
            name = next(iter(unused))
            size = unused[name]
            if size > count:
                unused[name] = size - count
                self._shrink(name, size - count)
                return True
            count -= size
            del unused[name]
            self._shrink(name, 0)
        return True

    def _shrink(self, name: object, left: int) -> None:
        part = self.parts.get(name)
        if part is not None:
            part.have = left
            if not left:
                del self.parts[name]

    def _forget(self, part: Part) -> None:
        count = self.unused.pop(part.name, 0)
        del self.parts[part.name]
        part.have = 0
        self._plain(count)

    def publish(self, held: Held, path: Path, tokens: int, now_ns: int) -> None:
        """Name blocks that are computed up to ``tokens``, so that others find them."""
        if not self.cached:
            return
        done = tokens // self.block_tokens
        start = 0
        for index, (name, end) in enumerate(path):
            stop = end // self.block_tokens
            have = min(stop, done) - start
            if have <= 0 and stop > start:
                break
            part = held.parts[index] if index < len(held.parts) else None
            if part is None:
                if name in self.parts:
                    # Someone else computed it at the same time: this copy stays nameless.
                    break
                part = self.parts[name] = Part(name, stop - start, now_ns)
                part.refs = 1
                held.parts.append(part)
            if part.name != name:
                break
            more = have - part.have
            if 0 < more <= held.own:
                part.have += more
                held.own -= more
                held.named += more
            if part.have < part.size:
                break
            start = stop

    def release(self, held: Held, now_ns: int) -> None:
        """Give everything back: own blocks first in the queue, then parts, the last first."""
        self.free += held.own
        self._plain(held.own)
        for part in reversed(held.parts):
            part.refs -= 1
            part.used_ns = now_ns
            if not part.refs:
                self.free += part.have
                if part.have:
                    self.unused[part.name] = part.have
                elif self.parts.get(part.name) is part:
                    del self.parts[part.name]
        held.own = 0
        held.parts = []

    def _plain(self, count: int) -> None:
        """Put nameless blocks at the end of the queue."""
        if not count:
            return
        if self.unused and next(reversed(self.unused)) == self.last_plain:
            self.unused[self.last_plain] += count
            return
        self.plain -= 1
        self.last_plain = self.plain
        self.unused[self.plain] = count

    @property
    def used(self) -> int:
        """Blocks in use, as engines report it: cached ones that nobody uses are free."""
        return self.blocks - self.free

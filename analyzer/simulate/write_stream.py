"""The native stream log of a client: what its loop saw, chunk by chunk.

Lines of one request stand together and are written when it is over, as a client does that keeps
them until then; heartbeats stand between.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TextIO

from analyzer.simulate.memory import block_hashes
from analyzer.simulate.outcome import CHUNK_KINDS, Base, ClientTick, LogView, RequestOutcome
from analyzer.simulate.run import view_of
from analyzer.simulate.world import Log, World

NEEDS_CHUNKS = True
_CHARS = 4
"""Characters a token has."""


def seconds(ns: int) -> str:
    """Unix seconds, to the ns."""
    return f"{ns // 1_000_000_000}.{ns % 1_000_000_000:09d}"


class Stream(Base):
    """send, chunk, done, error, tick lines on the client's clock.

    ``missing`` may name tokens (of chunks), usage, cached_tokens, scheduled_at, session_id,
    prefix_hashes, kind. A lost record is a whole request: its client died before it wrote.
    """

    def __init__(self, file: TextIO, view: LogView, block_tokens: int, *, prefixes: bool) -> None:
        self.file, self.view = file, view
        self.block_tokens, self.prefixes = block_tokens, prefixes

    def request(self, outcome: RequestOutcome) -> None:
        """All lines of one attempt."""
        one, view = outcome, self.view
        if one.sent_ns is None or view.drops(f"{one.request_id}/{one.attempt}"):
            return
        write = self.file.write
        name = json.dumps(one.request_id)
        attempt = f',"attempt":{one.attempt}' if one.attempt > 1 else ""
        write(self._send(one, name, attempt))
        self._chunks(one, name + attempt)
        write(self._end(one, name, attempt))

    def _chunks(self, one: RequestOutcome, name: str) -> None:
        """By far the most lines: text that differs in time, kind and tokens only."""
        told = "tokens" not in self.view.missing
        kinds = "kind" not in self.view.missing
        middle = f',"request_id":{name},"event":"chunk"'
        ends: dict[tuple[int, int], str] = {}
        time = self.view.time
        lines = []
        for at, count, kind in zip(one.chunk_ns, one.chunk_tokens, one.chunk_kinds, strict=True):
            end = ends.get((count, kind))
            if end is None:
                shown = f',"kind":"{CHUNK_KINDS[kind]}"' if kinds else ""
                tokens = f',"tokens":{count}' if told else ""
                end = ends[count, kind] = f'{middle}{shown},"chars":{_CHARS * count}{tokens}}}\n'
            ns = time(at)
            lines.append(f'{{"ts":{ns // 1_000_000_000}.{ns % 1_000_000_000:09d}{end}')
        self.file.write("".join(lines))

    def _send(self, one: RequestOutcome, name: str, attempt: str) -> str:
        missing, time = self.view.missing, self.view.time
        head = f'{{"ts":{seconds(time(one.sent_ns or 0))},"request_id":{name},"event":"send"'
        told: dict[str, object] = {
            "operation_id": one.operation_id if one.attempt > 1 else None, "model": one.model,
            "route": one.tries[0].route if one.tries else one.route,
            "session_id": one.session_id, "turn": one.turn,
            "parent_session_id": one.parent_session_id, "max_tokens": one.max_tokens,
            "response_format": one.response_format, "schema_hash": one.schema_hash,
            "payload_hash": one.payload_hash, "stream": one.streamed,
        }  # fmt: skip
        if self.prefixes and "prefix_hashes" not in missing:
            told["prefix_hashes"] = block_hashes(one.path, self.block_tokens)
            told["prefix_block_tokens"] = self.block_tokens
        fields = {
            key: value for key, value in told.items() if value is not None and key not in missing
        }
        if one.scheduled_ns != one.sent_ns and "scheduled_at" not in missing:
            head += f',"scheduled_at":{seconds(time(one.scheduled_ns))}'
        return f"{head}{attempt},{json.dumps(fields, separators=(',', ':'))[1:]}\n"

    def _end(self, one: RequestOutcome, name: str, attempt: str) -> str:
        event = "done" if one.error is None else "error"
        head = f'{{"ts":{seconds(self.view.time(one.done_ns or 0))},"request_id":{name}'
        told: dict[str, object] = {"status": one.status, "finish_reason": one.finish_reason}
        if one.error is not None:
            told["error"] = one.error
            if one.retry_after_ns is not None:
                told["retry_after_s"] = one.retry_after_ns / 1e9
        elif "usage" not in self.view.missing:
            told["usage"] = self._usage(one)
        fields = {key: value for key, value in told.items() if value is not None}
        return (
            f'{head}{attempt},"event":"{event}",{json.dumps(fields, separators=(",", ":"))[1:]}\n'
        )

    def _usage(self, one: RequestOutcome) -> dict[str, object]:
        usage: dict[str, object] = {
            "prompt_tokens": one.prompt_tokens, "completion_tokens": one.output_tokens,
            "total_tokens": one.prompt_tokens + one.output_tokens,
            "completion_tokens_details": {"reasoning_tokens": one.reasoning_tokens},
        }  # fmt: skip
        if "cached_tokens" not in self.view.missing:
            usage["prompt_tokens_details"] = {"cached_tokens": one.cached_tokens}
        return usage

    def tick(self, tick: ClientTick) -> None:
        """A heartbeat when it came, not when it was due."""
        ts = seconds(self.view.time(tick.time_ns))
        name = json.dumps(tick.client)
        self.file.write(f'{{"ts":{ts},"request_id":"","event":"tick","client":{name}}}\n')

    def close(self) -> None:
        """No more comes."""
        self.file.close()


def recorder(folder: Path, log: Log, world: World) -> Stream:
    """``options.prefix_hashes`` adds the hashes of each prompt's blocks."""
    path = folder / (log.file or "client.jsonl")
    return Stream(
        path.open("w", encoding="utf-8", newline="\n"), view_of(log, world),
        world.engine.block_tokens, prefixes=bool(log.options.get("prefix_hashes")),
    )  # fmt: skip

"""Transcripts of coding agents, one file a session, sub-agents in files of their own."""

from __future__ import annotations

import hashlib
import json
import uuid
from typing import TYPE_CHECKING, Any

from analyzer.simulate.money import Billing, billing_of, written_tokens
from analyzer.simulate.outcome import Base, LogView, RequestOutcome
from analyzer.simulate.run import view_of
from analyzer.simulate.world import Log, World
from analyzer.simulate.writers import rfc3339

if TYPE_CHECKING:
    from pathlib import Path

MS = 1_000_000
VERSION = "2.0.14"
_STOPS = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}
_FIRST_OUTPUT = 2
"""Output tokens that lines before the last one tell: a placeholder, not a count."""


class Transcripts(Base):
    """Lines in the form of Claude Code's sessions, below ``folder``.

    A request is a user line and then an assistant line for each block of its answer. Those share
    ``message.id``; only the last has the whole output, so neither the first line nor the sum of
    them is right. Times are those of writing, in ms; there is no time to first token.
    """

    def __init__(self, folder: Path, view: LogView, billing: Billing) -> None:
        self._folder, self._view, self._billing = folder, view, billing
        self._last: dict[str, str] = {}
        folder.mkdir(parents=True, exist_ok=True)

    def request(self, outcome: RequestOutcome) -> None:
        """Append what one request of a session leaves; attempts that failed leave an error line."""
        one, view = outcome, self._view
        key = f"{one.request_id}/{one.attempt}"
        if one.session_id is None or one.done_ns is None or view.drops(key):
            return
        path = self._path(one)
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = self._lines(one, key)
        with path.open("a", encoding="utf-8", newline="\n") as file:
            file.writelines(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)

    def _path(self, one: RequestOutcome) -> Path:
        if one.parent_session_id is None:
            return self._folder / f"{one.session_id}.jsonl"
        agents = self._folder / one.parent_session_id / "subagents"
        return agents / f"agent-{one.session_id}.jsonl"

    def _lines(self, one: RequestOutcome, key: str) -> list[dict[str, Any]]:
        asked = self._line(one, f"user/{key}", one.scheduled_ns, "user")
        asked["message"] = {"role": "user", "content": ""}
        out = [asked] if one.attempt == 1 else []
        if one.error is not None:
            return [*out, self._failed(one, key)]
        blocks = ["thinking"] if one.reasoning_tokens else []
        blocks += ["tool_use"] if one.finish_reason == "tool_calls" else ["text"]
        for index, block in enumerate(blocks):
            last = index == len(blocks) - 1
            at = one.done_ns if last else self._thought_ns(one)
            line = self._line(one, f"{key}/{index}", at or 0, "assistant")
            if "requestId" not in self._view.missing:
                line["requestId"] = f"req_{_short(key)}"
            line["message"] = {
                "id": f"msg_{_short(one.request_id)}",
                "type": "message",
                "role": "assistant",
                "model": one.model,
                "content": [{"type": block}],
                "stop_reason": _STOPS.get(one.finish_reason or "") if last else None,
                "usage": self._usage(one, last=last),
            }
            out.append(line)
        return out

    def _line(self, one: RequestOutcome, key: str, at_ns: int, kind: str) -> dict[str, Any]:
        session = one.session_id or ""
        line: dict[str, Any] = {
            "parentUuid": self._last.get(session),
            "isSidechain": one.parent_session_id is not None,
            "userType": "external",
            "cwd": "/srv/project",
            "sessionId": one.parent_session_id or session,
            "version": VERSION,
            "type": kind,
            "uuid": _uuid(f"{session}/{key}"),
            "timestamp": rfc3339(self._view.time(at_ns) // MS * MS),
        }
        if one.parent_session_id is not None:
            line["agentId"] = session
        self._last[session] = line["uuid"]
        return line

    def _failed(self, one: RequestOutcome, key: str) -> dict[str, Any]:
        line = self._line(one, f"{key}/error", one.done_ns or 0, "assistant")
        line["isApiErrorMessage"] = True
        line["message"] = {
            "id": _uuid(f"error/{key}"),
            "role": "assistant",
            "model": "<synthetic>",
            "content": [{"type": "text"}],
            "stop_reason": "stop_sequence",
            "usage": {"input_tokens": 0, "output_tokens": 0},
        }
        return line

    def _thought_ns(self, one: RequestOutcome) -> int:
        """When the thinking block was whole: the share of its tokens between first and last."""
        first, end = one.first_chunk_ns, one.done_ns
        if first is None or end is None:
            return end or one.scheduled_ns
        return first + (end - first) * one.reasoning_tokens // max(1, one.output_tokens)

    def _usage(self, one: RequestOutcome, *, last: bool) -> dict[str, Any]:
        """Anthropic's form: input is what was neither read from the cache nor written to it."""
        written = written_tokens(one, self._billing)
        long = self._billing.write_ttl == "1h"
        return {
            "input_tokens": one.prompt_tokens - one.cached_tokens - written,
            "cache_creation_input_tokens": written,
            "cache_read_input_tokens": one.cached_tokens,
            "cache_creation": {
                "ephemeral_5m_input_tokens": 0 if long else written,
                "ephemeral_1h_input_tokens": written if long else 0,
            },
            "output_tokens": one.output_tokens if last else min(_FIRST_OUTPUT, one.output_tokens),
            "service_tier": "standard",
        }


def _short(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()[:24]


def _uuid(key: str) -> str:
    return str(uuid.UUID(bytes=hashlib.sha256(key.encode()).digest()[:16], version=4))


def recorder(folder: Path, log: Log, world: World) -> Transcripts:
    """``log.file`` names the folder; ``options.write_ttl`` is the lifetime of cache writes."""
    options = {"write_ttl": "5m"} | log.options
    target = folder / (log.file or "transcripts")
    return Transcripts(target, view_of(log, world), billing_of(world, options))

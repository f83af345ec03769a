"""Calls of conversations with what they say of the prompt cache, as several kinds of logs."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from analyzer.simulate.writers import (
    NS,
    openai_usage,
    prices,
    request_record,
    rfc3339,
    to_json,
    write_lines,
)
from cases._build import MS, answer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

STEP_NS = 15 * MS
Files = dict[str, list[str]]

LARGE, SMALL, OTHER = "rook-large", "rook-small", "plover-2"
CLAUDE, GPT = "claude-sonnet-4-5-20250929", "gpt-5.6-terra"
PRICES: dict[str, dict[str, str]] = {
    LARGE: {
        "input": "3.20", "cache_read": "0.32", "cache_write_short": "4.00",
        "cache_write_long": "6.40", "output": "16.00",
    },
    SMALL: {
        "input": "0.90", "cache_read": "0.09", "cache_write_short": "1.125",
        "cache_write_long": "1.80", "output": "4.50",
    },
    OTHER: {"input": "1.40", "cache_read": "0.14", "output": "7.00"},
    CLAUDE: {
        "input": "3.00", "cache_read": "0.30", "cache_write_short": "3.75",
        "cache_write_long": "6.00", "output": "15.00",
    },
    GPT: {
        "input": "2.00", "cache_read": "0.20", "cache_write_short": "2.50",
        "cache_write_long": "5.00", "output": "12.00",
    },
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Call:
    """One call. ``prompt`` is all of it; what is not ``read`` or ``written`` is plain input."""

    at_ns: int
    session: str
    prompt: int
    read: int = 0
    written: int = 0
    long: bool = False
    output: int = 24
    model: str = LARGE
    turn: int | None = None
    parent: str | None = None
    woken: bool = False
    """A person asked; else a tool's result came back."""
    ttft_ns: int = 400 * MS
    content: tuple[tuple[str, int], ...] = ()
    """Pieces of the prompt and their tokens, for logs that tell hashes."""
    told: tuple[tuple[str, Any], ...] = ()
    """More fields of a native log: tools_count, route, ..."""

    @property
    def fresh(self) -> int:
        return self.prompt - self.read - self.written

    @property
    def end_ns(self) -> int:
        return self.at_ns + self.ttft_ns + (self.output - 1) * STEP_NS

    def more(self) -> dict[str, Any]:
        """What a native log tells of it beside usage and time."""
        given = {
            "model": self.model, "session_id": self.session, "turn": self.turn,
            "parent_session_id": self.parent, "is_sidechain": True if self.parent else None,
        }  # fmt: skip
        return {name: value for name, value in (given | dict(self.told)).items() if value}


def in_order(calls: Iterable[Call]) -> list[Call]:
    """By time."""
    return sorted(calls, key=lambda one: (one.at_ns, one.session))


def usd(tokens: int, model: str, dear: str, cheap: str = "cache_read") -> Decimal:
    """What tokens cost more at one price than at another."""
    price = PRICES[model]
    return (Decimal(price[dear]) - Decimal(price[cheap])) * tokens / 1_000_000


# --- usage as vendors tell it --------------------------------------------------------------------


def openai_form(one: Call) -> dict[str, Any]:
    """Inclusive, no fee for writes."""
    return openai_usage(one.prompt, one.output, cached=one.read)


def openai_write_form(one: Call) -> dict[str, Any]:
    """Inclusive, with writes of 30 minutes."""
    usage = openai_usage(one.prompt, one.output, cached=one.read)
    details = {
        "cached_tokens": one.read, "cache_write_tokens": one.written,
        "cache_write_tokens_details": {"ttl_30m_tokens": one.written, "ttl_12h_tokens": 0},
    }  # fmt: skip
    return usage | {"prompt_tokens_details": details}


def anthropic_form(one: Call) -> dict[str, Any]:
    """Exclusive, writes split by lifetime."""
    return anthropic_plain_form(one) | {
        "cache_creation": {
            "ephemeral_5m_input_tokens": 0 if one.long else one.written,
            "ephemeral_1h_input_tokens": one.written if one.long else 0,
        }
    }


def anthropic_plain_form(one: Call) -> dict[str, Any]:
    """Exclusive, as older versions tell it: no lifetime."""
    return {
        "input_tokens": one.fresh, "cache_read_input_tokens": one.read,
        "cache_creation_input_tokens": one.written, "output_tokens": one.output,
    }  # fmt: skip


def gemini_form(one: Call) -> dict[str, Any]:
    """Inclusive; counts of 0 are left out."""
    told = {
        "promptTokenCount": one.prompt, "cachedContentTokenCount": one.read,
        "candidatesTokenCount": one.output, "totalTokenCount": one.prompt + one.output,
    }  # fmt: skip
    return {name: value for name, value in told.items() if value}


# --- kinds of logs -------------------------------------------------------------------------------


def transcripts(calls: Iterable[Call], *, asked: bool = True) -> Files:
    """Claude Code: one file a session, sub-agents in a folder of theirs. ``asked``: with the
    lines of users and tools in between."""
    files: Files = defaultdict(list)
    last: dict[str, str] = {}
    for k, one in enumerate(in_order(calls)):
        root = one.parent or one.session
        name = f"{root}/subagents/agent-{one.session}.jsonl" if one.parent else f"{root}.jsonl"
        base: dict[str, Any] = {
            "sessionId": root, "isSidechain": one.parent is not None, "parentUuid": None,
            **({"agentId": one.session} if one.parent else {}),
        }  # fmt: skip
        if asked:
            text = "go on" if one.woken else [{"type": "tool_result", "tool_use_id": f"t{k}"}]
            user = {"type": "user", "uuid": f"u-{k}", "timestamp": rfc3339(one.at_ns)}
            base["parentUuid"] = last.get(name)
            files[name].append(
                json.dumps(base | user | {"message": {"role": "user", "content": text}})
            )
            base["parentUuid"] = f"u-{k}"
        last[name] = f"a-{k}"
        stop = "end_turn" if one.woken else "tool_use"
        line = base | {
            "type": "assistant", "uuid": f"a-{k}", "requestId": f"req_{k}",
            "timestamp": rfc3339(one.end_ns if asked else one.at_ns),
            "message": {
                "id": f"msg_{k}", "type": "message", "role": "assistant", "model": one.model,
                "content": [{"type": "text"}], "stop_reason": stop, "usage": anthropic_form(one),
            },
        }  # fmt: skip
        files[name].append(json.dumps(line))
    return dict(files)


def rollouts(calls: Iterable[Call], provider: str | None = None) -> Files:
    """Codex: one file a session, counts of the last call and running totals, both inclusive."""
    files: Files = {}
    for session, own in _by_session(calls).items():
        meta = {"id": session, "cwd": "/srv/app", "cli_version": "0.120.0", "source": "cli"}
        meta |= {"model_provider": provider} if provider else {}
        lines = [_event(own[0].at_ns - NS, "session_meta", meta)]
        total: dict[str, int] = defaultdict(int)
        for k, one in enumerate(own):
            if one.woken or not k:
                context = {"turn_id": f"t{k}", "model": one.model}
                lines.append(_event(one.at_ns - 20 * MS, "turn_context", context))
                said = {
                    "type": "message",
                    "role": "user",
                    "content": [{"type": "input_text", "text": "go"}],
                }
                lines.append(_event(one.at_ns, "response_item", said))
            else:
                out = {"type": "function_call_output", "call_id": f"c{k}", "output": "ok"}
                lines.append(_event(one.at_ns, "response_item", out))
            last = {
                "input_tokens": one.prompt, "cached_input_tokens": one.read,
                "output_tokens": one.output, "reasoning_output_tokens": 0,
                "total_tokens": one.prompt + one.output,
            }  # fmt: skip
            for name, count in last.items():
                total[name] += count
            info = {"total_token_usage": dict(total), "last_token_usage": last}
            counted = {"type": "token_count", "info": info, "rate_limits": None}
            lines.append(_event(one.end_ns, "event_msg", counted))
        files[f"rollout-{session}.jsonl"] = lines
    return files


def _event(at_ns: int, kind: str, payload: Mapping[str, Any]) -> str:
    return json.dumps({"timestamp": rfc3339(at_ns), "type": kind, "payload": payload})


def streams(
    calls: Iterable[Call], *, block: int | None = None, usage: Callable[[Call], Any] = openai_form
) -> Files:
    """Native stream events of a client; ``block``: with hashes of the prompt's prefixes."""
    lines: list[tuple[int, int, int, str]] = []
    for k, one in enumerate(in_order(calls)):
        told = one.more()
        if block:
            told |= {"prefix_hashes": hashes(one.content, block), "prefix_block_tokens": block}
        chunks = [(one.ttft_ns + i * STEP_NS, "content", 4) for i in range(one.output)]
        events = answer(f"call-{k:05d}", one.at_ns, chunks, usage(one), **told)
        offsets = [0, *(offset for offset, _, _ in chunks), chunks[-1][0]]
        lines += [
            (one.at_ns + at, k, i, x) for i, (at, x) in enumerate(zip(offsets, events, strict=True))
        ]
    return {"stream.jsonl": [line for *_, line in sorted(lines)]}


def records(
    calls: Iterable[Call], usage: Callable[[Call], Any] = openai_form, *, ttft: bool = False,
    provider: str | None = None,
) -> Files:  # fmt: skip
    """Native request records of a client."""
    lines = []
    for k, one in enumerate(in_order(calls)):
        took = {"ttft": one.ttft_ns, "e2e": one.end_ns - one.at_ns} if ttft else None
        told = one.more() | {"usage": usage(one), "provider": provider, "status": 200}
        lines.append(
            request_record(
                f"call-{k:05d}", vantage="client", started_ns=one.at_ns, durations_ns=took, **told
            )
        )
    return {"usage.jsonl": lines}


def spend_logs(calls: Iterable[Call], provider: str = "anthropic") -> Files:
    """LiteLLM's rows: inclusive counts, what was written beside them where the vendor tells it."""
    lines = []
    for k, one in enumerate(in_order(calls)):
        usage = openai_usage(one.prompt, one.output, cached=one.read)
        if provider == "anthropic":
            split = anthropic_form(one)["cache_creation"]
            usage |= {
                "cache_read_input_tokens": one.read, "cache_creation_input_tokens": one.written,
                "prompt_tokens_details": {
                    "cached_tokens": one.read, "cache_creation_token_details": split,
                },
            }  # fmt: skip
        row = {
            "request_id": f"chatcmpl-{k:05d}", "call_type": "acompletion", "spend": None,
            "total_tokens": one.prompt + one.output, "prompt_tokens": one.prompt,
            "completion_tokens": one.output, "startTime": rfc3339(one.at_ns),
            "completionStartTime": rfc3339(one.at_ns + one.ttft_ns),
            "endTime": rfc3339(one.end_ns), "model": one.model, "custom_llm_provider": provider,
            "session_id": one.session, "cache_hit": "False", "status": "success",
            "metadata": {"usage_object": usage},
        }  # fmt: skip
        lines.append(json.dumps(row))
    return {"spend.jsonl": lines}


def traces(calls: Iterable[Call], block: int = 64) -> Files:
    """kv-cache-tester: one file a session, prompts as ids of blocks, no counts of a cache."""
    files: Files = {}
    for session, own in _by_session(calls).items():
        ids: dict[str, int] = {}
        requests = []
        for one in own:
            keys = pieces(one.content, block, whole=False)
            requests.append({
                "t": (one.at_ns - own[0].at_ns) / NS, "type": "s", "model": one.model,
                "in": one.prompt, "out": one.output,
                "hash_ids": [ids.setdefault(key, len(ids) + 1) for key in keys],
                "input_types": ["text"] if one.woken else ["tool_result"],
                "output_types": ["text"], "stop": "end_turn",
                "api_time": (one.end_ns - one.at_ns) / NS, "ttft": one.ttft_ns / NS,
            })  # fmt: skip
        trace = {
            "id": session, "models": [own[0].model], "block_size": block, "hash_id_scope": "local",
            "tool_tokens": 0, "system_tokens": 0, "requests": requests,
        }  # fmt: skip
        files[f"{session}.json"] = [json.dumps(trace)]
    return files


def _by_session(calls: Iterable[Call]) -> dict[str, list[Call]]:
    sessions: dict[str, list[Call]] = defaultdict(list)
    for one in in_order(calls):
        sessions[one.session].append(one)
    return sessions


# --- content -------------------------------------------------------------------------------------


def pieces(content: Sequence[tuple[str, int]], block: int, *, whole: bool = True) -> list[str]:
    """What stands in each block of a prompt; ``whole``: only blocks that are full."""
    blocks: list[list[str]] = [[]]
    room = block
    for name, tokens in content:
        at = 0
        while at < tokens:
            take = min(room, tokens - at)
            blocks[-1].append(f"{name}[{at}:{at + take}]")
            at, room = at + take, room - take
            if not room:
                blocks.append([])
                room = block
    full = blocks[:-1] if whole or not blocks[-1] else blocks
    return ["+".join(one) for one in full]


def hashes(content: Sequence[tuple[str, int]], block: int) -> list[str]:
    """One a full block, of the prefix up to and including it."""
    digest = hashlib.sha256()
    told = []
    for piece in pieces(content, block):
        digest.update(piece.encode())
        told.append(digest.hexdigest()[:12])
    return told


def size(content: Iterable[tuple[str, int]]) -> int:
    """Tokens of a prompt."""
    return sum(tokens for _, tokens in content)


# --- cases ---------------------------------------------------------------------------------------


def write_logs(
    folder: Path, files: Mapping[str, Sequence[str]], models: Sequence[str] = tuple(PRICES)
) -> None:
    """All files, and a price list."""
    for name, lines in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        write_lines(folder / name, lines)
    write_lines(folder / "prices.json", [prices({name: PRICES[name] for name in models})])


def writer(files: Mapping[str, Sequence[str]]) -> Callable[[Path], None]:
    """What a case needs to write them."""
    return lambda folder: write_logs(folder, files)


def deployment(**facts: object) -> list[str]:
    """A deployment file."""
    return [to_json(facts)]

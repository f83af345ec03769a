"""kv-cache-tester traces: one coding-agent session a file, prompts as ids of 64-token blocks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from analyzer.contract.types import Batch, Problem
from analyzer.readers._document import top_level
from analyzer.readers._file import Head, InputFile
from analyzer.readers._json_stream import each_item, is_entry
from analyzer.readers._jsonl import Bad, Sink
from analyzer.readers._loadgen import duration_ns, number
from analyzer.readers._prefix import Chain, add_blocks, stem_of
from analyzer.readers._reader import Claim, Options, Reader
from analyzer.readers._rows import excerpt, int_or_none, text_or_none

_KEYS = ("block_size", "requests", "hash_id_scope")
_LISTS = [("requests",)]
_BATCH_RECORDS, _BATCH_BLOCKS = 5_000, 500_000
_DEEPEST, _MOST_BLOCKS = 16, 1_000_000
_STREAMED = {"s": True, "n": False}
_SUBAGENT = "sub-agent: its requests are records of their own"
_ORIGIN = "its times count from the start of the session: sessions cannot be put beside each other"
_NOTHING = "no request in it: it is empty or cut off"


def probe(head: Head) -> Claim:
    """An object with ``block_size``, ``hash_id_scope`` and ``requests`` with ``hash_ids``."""
    before, _, after = head.data.partition(b'"hash_ids"')
    if not after or b'"block_size"' not in before:
        return Claim(0, "it has no blocks of hash_ids")
    top = top_level(before)
    missing = [key for key in _KEYS if key not in top]
    if missing:
        share = 1 - len(missing) / len(_KEYS)
        return Claim(0.7 * share, f"it lacks {', '.join(missing)} beside its hash_ids")
    return Claim(1, "")


@dataclass
class _Session:
    """The agent, or one of its sub-agents."""

    name: str
    told: dict[str, Any]
    parent: str | None = None
    base_ns: int = 0
    depth: int = 0
    turns: int = 0


@dataclass
class _Trace:
    """A file under way; ``told`` holds its values beside the requests."""

    name: str
    told: dict[str, Any] = field(default_factory=dict)
    sink: Sink = field(default_factory=Sink)
    records: int = 0
    done: int = 0
    input_tokens: int = 0
    chain: Chain | None = None
    ready: list[Batch] = field(default_factory=list)

    def entry(self, value: Any, session: _Session, offset: int) -> None:  # noqa: ANN401
        """One entry of a list of requests; a sub-agent's holds such a list itself."""
        self.records += 1
        record = self.records
        try:
            one = _object(value)
            if one.get("type") != "subagent":
                self._request(one, record, session)
                self._settle()
                return
            nested, child = _subagent(one, session)
            self.sink.ignored[_SUBAGENT] += 1
            for inner in nested:
                self.entry(inner, child, offset)
        except Bad as bad:
            self.sink.problems.append(Problem(record, str(bad), _keys(value), offset))

    def _request(self, value: dict[str, Any], record: int, session: _Session) -> None:
        streamed = _STREAMED.get(text_or_none(value.get("type")) or "")
        if streamed is None:
            raise Bad("'type' is none of n, s and subagent")
        t = duration_ns(value.get("t"), 1e9, "t")
        told = int_or_none(value.get("in"))
        row = {
            "session_id": session.name,
            "parent_session_id": session.parent,
            "is_sidechain": session.parent is not None,
            "model": text_or_none(value.get("model")),
            "start_ns": None if t is None else session.base_ns + t,
            "ttft_ns": duration_ns(value.get("ttft"), 1e9, "ttft"),
            "e2e_ns": duration_ns(value.get("api_time"), 1e9, "api_time"),
            "input_fresh_tokens": told,
            "output_visible_tokens": int_or_none(value.get("out")),
            "streamed": streamed,
            "finish_reason": text_or_none(value.get("stop")),
            "prefix_block_tokens": int_or_none(self.told.get("block_size")),
        }
        hashes = self._hashes(value.get("hash_ids"))
        session.turns += 1
        self.input_tokens += told or 0
        self.sink.add(
            "request", record, vantage="gateway", clock="monotonic", timing="stated",
            turn=session.turns, usage_convention="inclusive", **row,
        )  # fmt: skip
        add_blocks(self.sink, record, hashes)
        for name, text in _tags(value, session):
            self.sink.add("request_tag", record, name=name, value=text)

    def _hashes(self, ids: Any) -> list[str]:  # noqa: ANN401 - foreign JSON
        """Ids are numbered anew in each file unless it says otherwise."""
        if not isinstance(ids, list):
            return []
        if not all(type(one) in (int, str) for one in ids):
            raise Bad("'hash_ids' holds what is no id")
        if len(ids) > _MOST_BLOCKS:
            raise Bad("'hash_ids' holds more blocks than any prompt")
        if self.chain is None:
            scope = self.told.get("hash_id_scope")
            self.chain = Chain(self.name if scope in (None, "local") else str(scope))
        return self.chain.of(ids)

    def _settle(self) -> None:
        blocks = len(self.sink.columns.get("prompt_block", {}).get("record", ()))
        if self.records - self.done >= _BATCH_RECORDS or blocks >= _BATCH_BLOCKS:
            self.flush()

    def flush(self) -> None:
        """What was read so far becomes a batch."""
        self.ready.append(self.sink.batch(self.records - self.done))
        self.sink, self.done = Sink(), self.records

    def check(self) -> None:
        """The file's own total tells whether something is missing from it."""
        totals = self.told.get("totals")
        sums = totals.get("combined_tokens") if isinstance(totals, dict) else None
        stated = int_or_none(sums.get("input")) if isinstance(sums, dict) else None
        if not self.records:
            self._problem(_NOTHING)
        elif stated is not None and stated != self.input_tokens:
            self._problem("its total of input tokens is not the sum over its requests")

    def _problem(self, reason: str, text: str = "", offset: int | None = None) -> None:
        self.records += 1
        self.sink.problems.append(Problem(self.records, reason, text, offset))

    def broken(self, reason: str, text: str, offset: int) -> None:
        """The document ends here."""
        self._problem(reason, excerpt(text), offset)


def _tags(value: dict[str, Any], session: _Session) -> Iterator[tuple[str, str]]:
    if (think := number(value.get("think_time"))) is not None and think >= 0:
        yield "think_time_s", str(think)
    kinds = value.get("input_types")
    if isinstance(kinds, list) and all(isinstance(kind, str) for kind in kinds):
        yield "input_types", "+".join(text_or_none(kind) or "" for kind in kinds)
    if session.turns > 1:
        return
    for name in ("tool_tokens", "system_tokens", "subagent_type"):
        if (text := text_or_none(session.told.get(name))) is not None:
            yield name, text


def _object(value: Any) -> dict[str, Any]:  # noqa: ANN401 - foreign JSON
    if not isinstance(value, dict):
        raise Bad("an entry that is no object")
    return value


def _subagent(value: dict[str, Any], parent: _Session) -> tuple[list[Any], _Session]:
    """Its requests, whose times count from its own start, and whom they belong to."""
    nested, start = value.get("requests"), duration_ns(value.get("t"), 1e9, "t")
    if not isinstance(nested, list):
        raise Bad("a sub-agent without a list of requests")
    if start is None:
        raise Bad("a sub-agent without its start 't'")
    if parent.depth >= _DEEPEST:
        raise Bad("sub-agents nested too deeply")
    agent = text_or_none(value.get("agent_id")) or f"{parent.turns}"
    return nested, _Session(
        name=f"{parent.name}/{agent}", told=value, parent=parent.name,
        base_ns=parent.base_ns + start, depth=parent.depth + 1,
    )  # fmt: skip


def _keys(value: Any) -> str:  # noqa: ANN401 - foreign JSON
    """An excerpt of an entry; its ids would only fill it."""
    if not isinstance(value, dict):
        return ""
    return excerpt("{" + ", ".join(f'"{str(key)[:40]}": 0' for key in list(value)[:16]) + "}")


def read(file: InputFile, options: Options) -> Iterator[Batch]:  # noqa: ARG001 - reader contract
    """One ``request`` row a request, with the hashes of its prefixes."""
    trace = _Trace(stem_of(file))
    whole = True
    session: _Session | None = None
    for item in each_item(file, _LISTS):
        if item.broken:
            whole = False
            trace.broken(item.broken, item.value, item.offset)
        elif not is_entry(item.path, _LISTS):
            if len(item.path) == 1:
                trace.told[str(item.path[0])] = item.value
        else:
            if session is None:
                trace.name = text_or_none(trace.told.get("id")) or trace.name
                session = _Session(trace.name, trace.told)
            trace.entry(item.value, session, item.offset)
        yield from trace.ready
        trace.ready.clear()
    if whole:
        trace.check()
    if session is not None:
        trace.sink.assumed.add(_ORIGIN)
    trace.flush()
    yield from trace.ready


READER = Reader(
    title="kv-cache-tester traces (coding-agent sessions as block hashes)",
    record_unit="request",
    gives=("request", "prompt_block", "request_tag"),
    probe=probe,
    read=read,
    docs="https://github.com/callanjfox/kv-cache-tester",
    cannot="at what time of day a session ran, so that sessions cannot be put beside each other; "
    "what the provider's cache really served (the hashes show what it could have); TTFT of answers "
    "that were not streamed",
    enable="record sessions with claude-code-proxy in streaming mode before converting them; keep "
    "the provider's usage for what its cache served",
    checked_against="16 published traces with 810 requests: their totals, hit ratios by previous "
    "request, drops and TTFT shares",
    facts=(
        ("vantage", "gateway: recorded by a proxy between agent and provider"),
        ("prefix_hash", "ids name blocks, so each hash covers all ids up to its block"),
    ),
)

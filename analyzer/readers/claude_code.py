"""Claude Code transcripts: the sessions it keeps on disk, and the output of its headless runs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from analyzer.contract.types import Batch, Problem
from analyzer.readers._claude_lines import NOT_ANSWERS, Line, line_of
from analyzer.readers._claude_requests import OPEN, Requests
from analyzer.readers._file import Head, InputFile, Lines
from analyzer.readers._jsonl import Bad, Sink, each_object, objects
from analyzer.readers._reader import Claim, Options, Reader
from analyzer.readers._rows import excerpt

_SESSION = ("sessionId", "session_id")
_CUT_LINE = re.compile(rb'\{\s*"(?:parentUuid|type|isSidechain|sessionId)"\s*:')
_CUT_NEEDED = (
    re.compile(rb'"sessionId"\s*:\s*"'),
    re.compile(rb'"isSidechain"\s*:\s*(?:true|false)'),
)
_ENTRIES = frozenset({"user", "assistant", "system", "attachment", "progress"})
_HEADLESS = frozenset({"assistant", "user", "result", "stream_event"})
_OTHERS_OWN = frozenset({"payload", "usageMetadata", "systemPayload", "data", "parts"})
"""Keys of other agents' transcripts, which are laid out alike."""


def probe(head: Head) -> Claim:
    """Lines of a session (``sessionId``, ``uuid``, ``type``), or answers with Anthropic's usage."""
    if any(map(_ours, each_object(head))):
        return Claim(1, "")
    some = objects(head)
    if not some and _CUT_LINE.match(head.data) and all(n.search(head.data) for n in _CUT_NEEDED):
        return Claim(1, "")  # its first line alone is longer than what a probe sees
    if not some:
        return Claim(0, "its first lines are not JSON objects")
    near = any("sessionId" in one for one in some)
    return Claim(0.4 if near else 0, "its JSON lines are no entries of a Claude Code session")


def _ours(one: dict[str, Any]) -> bool:
    kind, message = one.get("type"), one.get("message")
    if _OTHERS_OWN & one.keys():
        return False
    if (
        isinstance(kind, str)
        and kind in _ENTRIES
        and "uuid" in one
        and ("sessionId" in one or "timestamp" in one)
    ):
        return not isinstance(message, dict) or "parts" not in message
    if kind == "summary":
        return "leafUuid" in one
    if kind == "file-history-snapshot":
        return "messageId" in one
    if isinstance(one.get("session_id"), str) and (
        (kind in _HEADLESS and ("parent_tool_use_id" in one or "total_cost_usd" in one))
        or (kind == "system" and one.get("subtype") == "init")
    ):
        return True
    usage = message.get("usage") if isinstance(message, dict) else None
    if not isinstance(usage, dict) or "input_tokens" not in usage or "output_tokens" not in usage:
        return False
    # Reduced lines, as tools that collect them write.
    return ("sessionId" in one or kind == "assistant") and (
        "timestamp" in one or "cache_creation_input_tokens" in usage
    )


def read(file: InputFile, options: Options) -> Iterator[Batch]:
    """One ``request`` row an answer, however many lines tell it."""
    requests = Requests()
    for block in file.lines():
        sink = Sink(zone=options.zone)
        for index, line in enumerate(block.lines):
            _take(line, index, block, requests, sink)
        requests.close(sink, OPEN)
        yield sink.batch(block.count)
    sink = Sink()
    requests.close(sink)
    yield sink.batch(0)


def _take(text: bytes, index: int, block: Lines, requests: Requests, sink: Sink) -> None:
    record, told = block.first_record + index, len(sink.problems)
    try:
        if not (text := text.strip()):
            reason = "blank line"
        else:
            reason = _used(line_of(text), record, requests, sink)
        if reason:
            sink.ignored[reason] += 1
    except Bad as bad:
        cut = block.unterminated and index == block.count - 1
        why = f"cut off: the file ends inside it ({bad})" if cut else str(bad)
        sink.problems.append(Problem(record, why))
    if len(sink.problems) > told:
        where = excerpt(text), block.starts[index]
        some = sink.problems[told:]
        sink.problems[told:] = [Problem(one.record, one.reason, *where) for one in some]


def _used(line: Line, record: int, requests: Requests, sink: Sink) -> str:
    """What a line is ignored for; empty where it told something."""
    kind, message = line.type, line.message
    usage = message.usage if message is not None else None
    if message is not None and usage is not None and kind in ("assistant", None):
        if message.model == "<synthetic>":
            return "written by the program itself, not by a model"
        return requests.answer(line, usage, record, sink)
    if kind == "assistant":
        return "answer without usage"
    if kind == "system":
        if line.subtype == "compact_boundary":
            requests.compaction(line)
        elif line.subtype == "api_error":
            requests.failed(line, record, sink)
            return ""
        elif line.subtype == "init":
            requests.begin(line)
    elif kind == "stream_event":
        return (
            "" if requests.event(line) else "stream event that is not the last word on its answer"
        )
    elif kind == "result" and line.session_id is not None:
        return "sums of a run whose answers are counted"
    if kind in NOT_ANSWERS:
        requests.other(line)
        return "no answer of a model"
    if kind is None or (line.uuid is None and line.sessionId is None and line.session_id is None):
        raise Bad("no entry of a session: it has neither type nor session")
    return "a kind of entry that this version does not know"


READER = Reader(
    title="Claude Code transcripts and stream-json output",
    record_unit="line",
    gives=("request", "request_tag"),
    probe=probe,
    read=read,
    docs="https://code.claude.com/docs/en/headless",
    cannot="time to first token: it keeps blocks, not tokens. e2e is the time from the line that "
    "was answered to the answer's last line, retries included: never less than the request took. "
    "Deleted sessions (30 days by default), so sums are a lower bound. Without a stop reason the "
    "output may be cut off. stream-json has no times, and its output counts are those of the "
    "answer's begin unless partial messages are included",
    enable="for real durations and retries also collect its OpenTelemetry events "
    "(CLAUDE_CODE_ENABLE_TELEMETRY=1); claude -p --output-format stream-json --verbose "
    "--include-partial-messages for headless runs; ingest ~/.claude/projects with its folders, in "
    "which the sub-agents lie",
    checked_against="public sessions of 1.0.98 and 1.0.108, fixtures of 2.0.28 to 2.1.220, and the "
    "sums of ccusage 20.0.24 over a generated folder",
    facts=(
        ("sub-agents", "session_id is <session>/<agent>, parent_session_id the session"),
        ("compaction", "tags compaction and compacted_from_tokens on the session's next request"),
        ("repeats", "usage_records lines told a request; the one with the largest output counts"),
    ),
)

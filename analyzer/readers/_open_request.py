"""One request of a stream log that is under way: a few numbers, whatever its length."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, field, fields
from typing import Any

from analyzer.readers._times import DURATIONS


@dataclass(slots=True)
class OpenRequest:
    """What is known so far. Times are ns since the epoch, on the clock of the log."""

    record: int
    request_id: str
    vantage: str
    start_ns: int
    sent: bool
    attempt: int | None = None
    next_index: int = 0
    role_ns: int | None = None
    reasoning_ns: int | None = None
    content_ns: int | None = None
    last_token_ns: int | None = None
    chunks: int = 0
    chars: int | None = None
    first_chars: int | None = None
    first_tokens: int | None = None
    end_ns: int | None = None
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def first_token_ns(self) -> int | None:
        """The first reasoning token is a first token; a role chunk is none."""
        seen = [t for t in (self.reasoning_ns, self.content_ns) if t is not None]
        return min(seen, default=None)

    def row(self, *, trust_last_chunk: bool) -> dict[str, Any]:
        """The request row. Without the send its start, and so TTFT and e2e, are unknown."""
        first, last = self.first_token_ns, self.last_token_ns
        # e2e ends at the last chunk. Who logs the first one only, or none, tells the end by "done".
        end = last
        whole = self.facts.get("streamed") is False  # its one chunk is the answer
        lone = self.chunks == 1 and not whole and "error" not in self.facts
        if self.end_ns is not None and (last is None or lone):
            end = max(self.end_ns, last or 0)
        if self.end_ns is None and not trust_last_chunk:
            end = None
        streamed = self.facts.get("streamed")
        if streamed is None and self.chunks > 1:
            streamed = True
        row = {
            "record": self.record,
            "vantage": self.vantage,
            "request_id": self.request_id,
            "attempt": self.attempt,
            "clock": "wall",
            "timing": "stream",
            "start_ns": self.start_ns,
            "chunks": self.chunks,
            "chunk_chars": self.chars,
            "first_chunk_chars": self.first_chars,
            "first_chunk_tokens": self.first_tokens,
            **self.facts,
            "streamed": streamed,
        }
        if self.vantage == "engine":
            row["decode_ns"] = _since(last, first)
        if self.sent:
            row["e2e_ns"] = _since(end, self.start_ns)
            if streamed is not False:
                row["ttft_ns"] = _since(first, self.start_ns)
                row["first_role_ns"] = _since(self.role_ns, self.start_ns)
                row["first_reasoning_ns"] = _since(self.reasoning_ns, self.start_ns)
                row["first_content_ns"] = _since(self.content_ns, self.start_ns)
        return row


_DEFAULTS = {
    one.name: None if one.default is MISSING else one.default for one in fields(OpenRequest)
}


def memory_of(one: OpenRequest) -> dict[str, Any]:
    """What differs from a fresh request: hundreds of thousands may be open."""
    values = ((name, getattr(one, name)) for name in _DEFAULTS)
    return {name: value for name, value in values if value != _DEFAULTS[name]}


def _since(later: int | None, earlier: int | None) -> int | None:
    # A clock that was set anew inside one request gives no duration.
    if later is None or earlier is None or later - earlier not in DURATIONS:
        return None
    return later - earlier

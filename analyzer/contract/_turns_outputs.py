"""Row keys of ``analyze turns``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analyzer.contract._columns import INT as _I
from analyzer.contract._columns import MONEY as _U
from analyzer.contract._columns import REAL as _F
from analyzer.contract._columns import TEXT as _S
from analyzer.contract._columns import row as _row

if TYPE_CHECKING:
    import pyarrow as pa

TURNS: dict[str, pa.Schema] = {
    "analyze.turns": _row(
        "One conversation: how its prompts grew, what the prompt cache kept, what it cost.",
        ("session", _S, "", "conversation: its outermost thread"),
        ("known", _S, "", "told by ids; hashes, size (suspected) where stitched; alone"),
        ("model", _S, "", "model of most of its calls"),
        ("start_ns", _I, "ns", "start of its first call; NULL = on a clock of its own"),
        ("dur_ns", _I, "ns", "from there to the start of its last call"),
        ("threads", _I, "1", "threads of calls: itself, and its agents and forks"),
        ("calls", _I, "requests", "calls over all of them"),
        ("first_tokens", _I, "tokens", "first prompt of its main thread"),
        ("last_tokens", _I, "tokens", "last prompt of it"),
        ("max_tokens", _I, "tokens", "longest prompt of it"),
        ("input_tokens", _I, "tokens", "prompts of all calls added up"),
        ("state", _S, "", "of the main thread: short, compacted, plateau, growing or flat"),
        ("growth_tokens", _F, "tokens", "mean growth a turn, or a call where turns are not told"),
        ("compactions", _I, "1", "compactions and cuts, all threads"),
        ("resent_ratio", _F, "ratio", "of the prompts, sent by the call before, too"),
        ("read_ratio", _F, "ratio", "of them read from the cache; NULL = not told"),
        ("could_ratio", _F, "ratio", "of them that could have been read"),
        ("lost_tokens", _I, "tokens", "read less than they could"),
        ("losses", _I, "requests", "calls that lost tokens"),
        ("reason", _S, "", "why most of those were lost"),
        ("output_tokens", _I, "tokens", "answers added up"),
        ("cost_usd", _U, "usd", "what it cost; NULL = a price is missing"),
        ("lost_usd", _U, "usd", "of it, beyond reading what was lost"),
        (
            "part",
            _S,
            "",
            "what most of it is (of the prompts, without a price): lost, read, again, new, answers",
        ),
        ("part_ratio", _F, "ratio", "of it that this is"),
    ),
    "analyze.turns.calls": _row(
        "One call of a conversation, in order.",
        ("nth", _I, "1", "call of its thread, from 1"),
        ("turn", _I, "1", "turn, as told"),
        ("thread", _S, "", "thread of calls"),
        ("id", _S, "", "request"),
        ("start_ns", _I, "ns", "start; NULL = on a clock of its own"),
        ("idle_ns", _I, "ns", "since the thread's call before ended"),
        ("model", _S, "", "model"),
        ("input_tokens", _I, "tokens", "prompt"),
        ("read_tokens", _I, "tokens", "of it read from the cache"),
        ("fresh_tokens", _I, "tokens", "of it neither read nor written"),
        ("write_tokens", _I, "tokens", "of it written to the cache"),
        ("could_tokens", _I, "tokens", "of it that could have been read"),
        ("lost_tokens", _I, "tokens", "read less than it could"),
        ("output_tokens", _I, "tokens", "answer"),
        ("ttft_ns", _I, "ns", "time to first token"),
        ("cost_usd", _U, "usd", "what it cost; NULL = a price is missing"),
        ("lost_usd", _U, "usd", "of it, beyond reading what was lost"),
        ("event", _S, "", "first, agent, fork, side call, compaction, shrunk, model switch"),
        ("reason", _S, "", "why it lost tokens"),
        ("confidence", _S, "", "measured, derived or suspected"),
        ("at_token", _I, "tokens", "where its prompt differs from the one it continues"),
        (
            "changed",
            _S,
            "",
            "what is another there, by what is logged: tools, timestamp, history, ...",
        ),
        ("diagnosis", _S, "", "the provider's own reason"),
    ),
    "analyze.turns.reasons": _row(
        "Why tokens were not read from the cache that could have been.",
        ("reason", _S, "", "compaction, changed, expired, evicted, ..."),
        ("confidence", _S, "", "measured, derived or suspected"),
        ("calls", _I, "requests", "calls that lost tokens so"),
        ("sessions", _I, "1", "conversations they belong to"),
        ("lost_tokens", _I, "tokens", "tokens lost"),
        ("share", _F, "ratio", "of all prompt tokens"),
        ("extra_ns", _I, "ns", "time to first token that this added, all in all"),
        ("lost_usd", _U, "usd", "money beyond reading them; NULL = a price is missing"),
    ),
}

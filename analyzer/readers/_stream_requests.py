"""Requests of a stream log that are under way: a few numbers each, whatever their length."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NewType

import polars as pl

from analyzer.contract.types import Problem
from analyzer.readers._hints import no_time
from analyzer.readers._open_request import OpenRequest, memory_of
from analyzer.readers._rows import believed, int_or_none, text_or_none
from analyzer.readers._stream_lines import MANY
from analyzer.readers._times import seconds_to_ns, time_to_ns
from analyzer.readers._told_lists import Lists
from analyzer.readers._usage import token_buckets

Key = NewType("Key", str)
"""Whose side tells it, request id, and which send of that id it is (retries reuse ids)."""

_SEND_TEXT = (
    "operation_id", "model", "provider", "endpoint", "route", "session_id", "parent_session_id",
    "response_format", "schema_hash", "payload_hash", "effort", "speed",
)  # fmt: skip
_SEND_INT = (
    "turn", "tools_count", "tools_chars", "system_chars", "user_chars", "assistant_chars",
    "reasoning_chars", "tool_result_chars", "images", "prefix_block_tokens",
)  # fmt: skip
_SEND_TRUTH = (
    ("streamed", "stream"), ("is_sidechain", "is_sidechain"), ("is_compacted", "is_compacted"),
)  # fmt: skip
_SEPARATOR = "\x1f"
_PAST = 1_000
_ROWS = 20_000


def _parts(key: Key) -> tuple[str, str]:
    """Base (side and request id) and number of a key; an id may hold the separator."""
    base, _, number = key.rpartition(_SEPARATOR)
    return base, number


class OpenRequests:
    """All requests under way, by key."""

    def __init__(self, zone: str | None = None) -> None:
        self._zone = zone
        self._open: dict[Key, OpenRequest] = {}
        self._sends: dict[str, int] = {}
        self._attempts: dict[str, int] = {}
        """Base and attempt -> which send of the base that was."""
        self._ended: dict[Key, None] = {}
        # The last requests that ended: their rows are written, so a chunk logged late changes
        # nothing any more. It must not become a request of its own.
        self._past: dict[Key, None] = {}
        self._problems: list[Problem] = []
        self._closed: list[dict[str, Any]] = []
        self._lists = Lists()
        self._saw_done = False

    # -- over the end of the file ---------------------------------------------------------------

    @classmethod
    def restore(cls, state: Any, zone: str | None = None) -> OpenRequests:  # noqa: ANN401 - JSON
        """Continue with the requests that were open where the file ended last time."""
        requests = cls(zone)
        if state:
            requests._open = {Key(key): OpenRequest(**one) for key, one in state["open"].items()}
            requests._past = {Key(key): None for key in state.get("past", ())}
            requests._sends = dict(state["sends"])
            requests._attempts = dict(state["attempts"])
            requests._saw_done = state["saw_done"]
        return requests

    def state(self) -> dict[str, Any]:
        """JSON-able memory of the open requests."""
        bases = dict.fromkeys(_parts(key)[0] for keys in (self._open, self._past) for key in keys)
        return {
            "open": {key: memory_of(one) for key, one in self._open.items()},
            "past": list(self._past),
            "sends": {base: self._sends[base] for base in bases if base in self._sends},
            "attempts": {
                tried: nth
                for tried, nth in self._attempts.items()
                if _parts(Key(tried))[0] in bases
            },
            "saw_done": self._saw_done,
        }

    def open_records(self) -> tuple[int, ...]:
        """Records of the requests whose rows may still change."""
        return tuple(one.record for one in self._open.values())

    def finish(self) -> Iterator[list[dict[str, Any]]]:
        """Rows of the requests that are still open at the end of the file, some at a time."""
        still_open = list(self._open.values())
        for start in range(0, len(still_open), _ROWS):
            # A log that never writes 'done' ends a request with its last chunk.
            yield [
                one.row(trust_last_chunk=not self._saw_done)
                for one in still_open[start : start + _ROWS]
            ]

    # -- a block --------------------------------------------------------------------------------

    def take_block(
        self, events: pl.DataFrame, objects: Mapping[int, dict[str, Any]]
    ) -> tuple[pl.DataFrame, int]:
        """Takes all events of a block; gives its ``chunk`` rows and the events told too late."""
        few, chunks, late = events.filter(_is_few()), _chunks_of(events), 0
        by = ["event", "request_id"]
        sums = chunks.group_by(by, maintain_order=True).agg(*_sums())
        keys = self._plain_keys(few, sums)
        if keys is None:
            events, late = self.assign(events)
            few, chunks, by = events.filter(_is_few()), _chunks_of(events), ["key"]
            sums = chunks.group_by(by, maintain_order=True).agg(*_sums())
            keys = few["key"].to_list(), sums["key"].to_list()
        told = few.select("event", "ts_ns", "record").iter_rows()
        for key, (event, ts_ns, record) in zip(keys[0], told, strict=True):
            self.take(key, event, ts_ns, record, objects[record])
        return self._take_chunks(chunks, sums, keys[1], by), late

    def _plain_keys(
        self, few: pl.DataFrame, sums: pl.DataFrame
    ) -> tuple[list[Key], list[Key]] | None:
        """Keys of a block in which no request is sent twice, or told of before or after its time.

        None where there is one: then each event must find its own send.
        """
        if few["attempt"].null_count() < few.height or (sums["attempts"] > 0).any():
            return None
        seen: dict[str, tuple[int, int]] = {}
        for event, request_id, first, last in sums.select(
            "event", "request_id", "record", "last"
        ).iter_rows():
            seen[_base(event, request_id)] = first, last
        sent: dict[str, int] = {}
        ended: set[str] = set()
        bases = []
        for event, request_id, record in few.select("event", "request_id", "record").iter_rows():
            base = _base(event, request_id)
            first, last = seen.get(base, (record, record))
            if base in ended or (event == "send" and (base in sent or first < record)):
                return None
            if event == "send":
                sent[base] = self._sends.get(base, 0) + 1
            elif event in ("done", "error"):
                if last > record:
                    return None
                ended.add(base)
            seen[base] = min(first, record), max(last, record)
            bases.append(base)
        keys = {
            base: Key(f"{base}{_SEPARATOR}{sent.get(base, self._sends.get(base, 0))}")
            for base in seen
        }
        if not self._past.keys().isdisjoint(keys.values()):
            return None
        self._sends |= sent
        pairs = sums.select("event", "request_id").iter_rows()
        return [keys[base] for base in bases], [keys[_base(*pair)] for pair in pairs]

    def assign(self, events: pl.DataFrame) -> tuple[pl.DataFrame, int]:
        """Adds ``key``: a send starts a new request, even if its id was used before.

        Events of a request that has ended are left out, and counted.
        """
        if events.is_empty():
            return events.with_columns(key=pl.lit(None, dtype=pl.String)), 0
        side = pl.when(pl.col("event") == "emit").then(pl.lit("engine")).otherwise(pl.lit("client"))
        base = pl.concat_str(side, pl.col("request_id"), separator=_SEPARATOR)
        sent = pl.col("event") == "send"
        events = events.with_columns(base=base).with_columns(
            nth=sent.cast(pl.Int64).cum_sum().over("base")
        )
        heads = events.filter(sent).group_by("base").agg(n=pl.len())
        earlier = {base: self._sends.get(base, 0) for base in events["base"].unique() if base}
        offset = pl.col("base").replace_strict(
            list(earlier), list(earlier.values()), default=0, return_dtype=pl.Int64
        )
        events = self._by_attempt(events.with_columns(nth=pl.col("nth") + offset))
        events = events.with_columns(
            key=pl.concat_str("base", pl.col("nth").cast(pl.String), separator=_SEPARATOR)
        )
        for base_id, count in heads.iter_rows():
            self._sends[base_id] = self._sends.get(base_id, 0) + count
        timely = self._timely(events)
        return timely, events.height - timely.height

    def _by_attempt(self, events: pl.DataFrame) -> pl.DataFrame:
        """Events that tell their attempt belong to its send, even if a later one was made since."""
        if events["attempt"].null_count() == events.height:
            return events
        told = events.with_columns(
            tried=pl.concat_str("base", pl.col("attempt").cast(pl.String), separator=_SEPARATOR)
        ).with_columns(
            of_send=pl.when(pl.col("event") == "send")
            .then(pl.col("nth"))
            .forward_fill()
            .over("tried")
        )
        before = pl.col("tried").replace_strict(
            list(self._attempts), list(self._attempts.values()), default=None, return_dtype=pl.Int64
        )
        sends = told.filter((pl.col("event") == "send") & pl.col("tried").is_not_null())
        nth = pl.when(pl.col("tried").is_not_null()).then(
            pl.coalesce("of_send", before if self._attempts else pl.lit(None), "nth")
        )
        told = told.with_columns(nth=nth.otherwise(pl.col("nth"))).drop("tried", "of_send")
        self._attempts |= dict(sends.select("tried", "nth").iter_rows())
        return told

    def _timely(self, events: pl.DataFrame) -> pl.DataFrame:
        """Without the events of requests that ended before: in this block, or in an earlier one."""
        ended = events.filter(pl.col("event").is_in(["done", "error"]))
        ends = dict(ended.group_by("key").agg(pl.col("record").min()).iter_rows())
        ends |= dict.fromkeys(self._past, 0)
        if not ends:
            return events
        end = pl.col("key").replace_strict(
            list(ends), list(ends.values()), default=None, return_dtype=pl.Int64
        )
        return events.filter((pl.col("record") > end).not_().fill_null(value=True))

    def take(self, key: Key, event: str, ts_ns: int, record: int, value: dict[str, Any]) -> None:
        """One send, headers, done or error event."""
        one = self._get(key, ts_ns, record)
        facts: dict[str, Any] = {}
        if event == "send":
            # A log whose lines are out of order can tell a chunk before its send.
            one.start_ns, one.sent = ts_ns, True
            one.attempt = int_or_none(value.get("attempt"))
            facts = self._send_facts(one, record, value)
        if event in ("done", "error"):
            one.end_ns = ts_ns
            self._ended[key] = None
            self._saw_done = True
        for name in ("response_id", "finish_reason", "service_tier"):
            if (text := text_or_none(value.get(name))) is not None:
                facts[name] = text
        if (status := int_or_none(value.get("status"))) is not None:
            facts["status"] = status
        if event == "error":
            facts["error"] = text_or_none(value.get("error")) or "error"
        if (wait := seconds_to_ns(value.get("retry_after_s"))) is not None:
            facts["retry_after_ns"] = wait
        if buckets := token_buckets(value.get("usage")):
            facts.update(buckets, usage_final=event == "done")
        if strange := believed(facts):
            self._problems.append(Problem(record, strange))
        one.facts |= facts

    def _send_facts(self, one: OpenRequest, record: int, value: dict[str, Any]) -> dict[str, Any]:
        self._lists.take(one.record, value)
        facts: dict[str, Any] = {n: text_or_none(value[n]) for n in _SEND_TEXT if n in value}
        facts |= {n: int_or_none(value[n]) for n in _SEND_INT if n in value}
        for ours, theirs in _SEND_TRUTH:
            if isinstance(value.get(theirs), bool):
                facts[ours] = value[theirs]
        facts["max_output_tokens"] = int_or_none(value.get("max_tokens"))
        scheduled = time_to_ns(value.get("scheduled_at"), self._zone)
        if scheduled is None and value.get("scheduled_at") is not None:
            self._problems.append(
                Problem(record, f"'scheduled_at' {no_time(value['scheduled_at'])}")
            )
        if scheduled is not None and scheduled <= one.start_ns:
            facts["hold_ns"] = one.start_ns - scheduled
        return facts

    def _get(self, key: Key, ts_ns: int, record: int) -> OpenRequest:
        one = self._open.get(key)
        if one is None:
            side, _, request_id = _parts(key)[0].partition(_SEPARATOR)
            one = OpenRequest(record, request_id, side, ts_ns, sent=False)
            self._open[key] = one
        return one

    def _take_chunks(
        self, chunks: pl.DataFrame, sums: pl.DataFrame, keys: list[Key], by: list[str]
    ) -> pl.DataFrame:
        """Adds the sums of a block's chunks to their requests, and gives their ``chunk`` rows."""
        heads = []
        for key, row in zip(keys, sums.iter_rows(named=True), strict=True):
            one = self._get(key, row["first_ns"], row["record"])
            if row["record"] < one.record:  # the other events of a block are taken before these
                one.record, one.start_ns = row["record"], row["first_ns"]
            heads.append((one.record, one.start_ns, one.next_index))
            _add(one, row)
        schema = {"request_record": pl.Int64, "start_ns": pl.Int64, "seen": pl.Int64}
        told = sums.select(by).hstack(pl.DataFrame(heads, schema=schema, orient="row"))
        return chunks.join(told, on=by, how="left", maintain_order="left").select(
            record="request_record",
            chunk_index=pl.col("seen") + pl.int_range(pl.len(), dtype=pl.Int64).over(by),
            offset_ns=pl.col("ts_ns") - pl.col("start_ns"),
            kind="kind",
            chars="chars",
            tokens="tokens",
        )

    def closed(self) -> list[dict[str, Any]]:
        """Rows of the requests that ended in this block."""
        rows = [self._open.pop(key).row(trust_last_chunk=True) for key in self._ended]
        self._past |= self._ended
        for key in list(self._past)[:-_PAST]:
            del self._past[key]
        self._ended = {}
        return rows

    def problems(self) -> list[Problem]:
        """Events of this block that told what cannot be; their other fields were read."""
        found, self._problems = self._problems, []
        return found

    def lists(self) -> dict[str, list[dict[str, Any]]]:
        """Rows of prompt blocks, prompt parts and tags told in this block."""
        return self._lists.fetch()


def _base(event: str, request_id: str) -> str:
    return f"{'engine' if event == 'emit' else 'client'}{_SEPARATOR}{request_id}"


def _is_few() -> pl.Expr:
    return ~pl.col("event").is_in(MANY)


def _chunks_of(events: pl.DataFrame) -> pl.DataFrame:
    """The chunks of a block, with what a chunk carries where its line need not say it."""
    emitted = pl.col("event") == "emit"
    return (
        events.filter(emitted | (pl.col("event") == "chunk"))
        .with_columns(
            kind=pl.col("kind").fill_null("content"),
            tokens=pl.when(emitted).then(pl.lit(1)).otherwise(pl.col("tokens")),
        )
        .with_columns(carries=_carries())
    )


def _carries() -> pl.Expr:
    """Whether a chunk carries a token: a role chunk and an empty one do not."""
    empty = (pl.col("chars").fill_null(1) == 0) & (pl.col("tokens").fill_null(0) == 0)
    return (pl.col("kind") != "role") & (~empty | (pl.col("kind") == "tool_call"))


def _sums() -> list[pl.Expr]:
    ts, carries = pl.col("ts_ns"), pl.col("carries")
    reasoning = pl.col("kind") == "reasoning"
    return [
        pl.col("record").first(),
        pl.col("record").last().alias("last"),
        pl.col("attempt").count().alias("attempts"),
        ts.min().alias("first_ns"),
        ts.filter(~carries).min().alias("role_ns"),
        ts.filter(carries & reasoning).min().alias("reasoning_ns"),
        ts.filter(carries & ~reasoning).min().alias("content_ns"),
        ts.filter(carries).max().alias("last_token_ns"),
        carries.sum().cast(pl.Int64).alias("chunks"),
        pl.len().cast(pl.Int64).alias("all_chunks"),
        # The sum of nothing told is not told.
        pl.when(pl.col("chars").filter(carries).count() > 0)
        .then(pl.col("chars").filter(carries).sum())
        .alias("chars"),
        pl.col("chars").filter(carries).first().alias("first_chars"),
        pl.col("tokens").filter(carries).first().alias("first_tokens"),
    ]


def _add(one: OpenRequest, row: dict[str, Any]) -> None:
    for name in ("role_ns", "reasoning_ns", "content_ns"):
        if getattr(one, name) is None:
            setattr(one, name, row[name])
    if one.chunks == 0 and row["chunks"]:
        one.first_chars, one.first_tokens = row["first_chars"], row["first_tokens"]
    if row["last_token_ns"] is not None:
        one.last_token_ns = max(row["last_token_ns"], one.last_token_ns or row["last_token_ns"])
    if row["chars"] is not None:
        one.chars = (one.chars or 0) + row["chars"]
    one.chunks += row["chunks"]
    one.next_index += row["all_chunks"]

"""The program that calls: one loop, its connections, its patience, and sessions that go on."""

from __future__ import annotations

import hashlib
import zlib
from array import array
from collections import deque

from analyzer.simulate.call import Ask, Call
from analyzer.simulate.gateway import Gateway
from analyzer.simulate.loop import Loop
from analyzer.simulate.network import dice, is_plain, one_way
from analyzer.simulate.outcome import Cause, ClientTick, Recorder, RequestOutcome
from analyzer.simulate.sessions import Session
from analyzer.simulate.world import NS_PER_MS, NS_PER_S, World

_TRANSIENT = ("rate_limited", "upstream", "timeout")


class Client:
    """Sends what sessions ask, tries again, and tells the recorder how each attempt ended."""

    def __init__(self, world: World, loop: Loop, gateway: Gateway, recorder: Recorder) -> None:
        self.world, self.loop, self.gateway, self.recorder = world, loop, gateway, recorder
        self.held: deque[Call] = deque()
        self.in_flight = 0
        self.random_path = not is_plain(world.network) or any(
            one.key in ("network.jitter_ms", "network.loss") for one in world.change
        )
        gateway.reply, gateway.abandoned = self._replied, self._tell

    def seen(self, time_ns: int) -> int:
        """When the loop gets to what happens at a time: at once, unless it is blocked."""
        setup = self.world.client
        every = round(setup.stall_every_s * NS_PER_S)
        if not every:
            return time_ns
        since = time_ns - self.world.start_ns
        blocked = round(setup.stall_ms * NS_PER_MS)
        # The first blocked stretch is one period after the start.
        return time_ns + max(0, blocked - since % every) if since >= every else time_ns

    def ticks(self, now: int, until: int) -> None:
        """Heartbeats, as long as anyone may still ask."""
        due = now + round(self.world.client.tick_s * NS_PER_S)
        if due < until or self.in_flight or self.held:
            self.loop.at(due, self.ticks, until)
        name = self.world.client.name
        self.recorder.tick(ClientTick(name, now, self.seen(now)))

    # --- sessions ---------------------------------------------------------------------------------

    def begin(self, now: int, session: Session) -> None:
        """Ask the next turn of a session."""
        stream, turn = session.stream, session.turns[session.at]
        history = session.history_tokens
        prompt = stream.system_tokens + history + turn.new_tokens
        number = session.at
        label = f"{session.name}-{number}" if len(session.turns) > 1 else session.name
        path = self._path(session, label, prompt)
        result = f"{label}:answer" if stream.history and number + 1 < len(session.turns) else None
        ask = Ask(session, number, label, prompt, turn.output_tokens, history, path, result, now)
        if stream.history:
            session.path = path
        self._attempt(now, ask, 1)

    def _path(self, session: Session, label: str, prompt: int) -> list[tuple[object, int]]:
        stream, turn = session.stream, session.turns[session.at]
        if turn.blocks:
            size = stream.file_block_tokens
            whole = [(f"b{one}", size * (at + 1)) for at, one in enumerate(turn.blocks)]
            return [one for one in whole if one[1] <= prompt]
        if stream.changing_token is not None:
            at = min(stream.changing_token, prompt)
            return [(f"{stream.kind}:head", at), (f"{label}:rest", prompt)]
        if session.path and stream.history:
            return [*session.path, (label, prompt)]
        system = [(f"{stream.kind}:system", stream.system_tokens)] if stream.system_tokens else []
        return [*system, (label, prompt)]

    def _go_on(self, now: int, ask: Ask, outcome: RequestOutcome) -> None:
        """What a session does when it has its answer, or gives up."""
        session = ask.session
        turn = session.turns[session.at]
        failed = outcome.error is not None
        session.at += 1
        if not failed and session.stream.history:
            session.history_tokens += turn.new_tokens + outcome.output_tokens
            end = ask.prompt_tokens + outcome.output_tokens
            session.path = [*session.path, (f"{ask.operation_id}:answer", end)]
        if failed or session.at >= len(session.turns):
            if session.parent is not None:
                self._resume(now, session.parent)
            return
        if turn.child is not None:
            self.loop.at(now + turn.think_ns, self.begin, turn.child)
        else:
            self.loop.at(now + turn.think_ns, self.begin, session)

    def _resume(self, now: int, session: Session) -> None:
        if session.at < len(session.turns):
            self.loop.at(now + session.turns[session.at - 1].think_ns, self.begin, session)

    # --- attempts ---------------------------------------------------------------------------------

    def _attempt(self, now: int, ask: Ask, number: int) -> None:
        session, stream = ask.session, ask.session.stream
        several = len(session.turns) > 1 or session.parent is not None
        schema = None
        if stream.schemas:
            which = zlib.crc32(ask.operation_id.encode()) % stream.schemas
            schema = hashlib.sha256(f"{stream.kind}/{which}".encode()).hexdigest()[:16]
        one = RequestOutcome(
            ask.operation_id if number == 1 else f"{ask.operation_id}-retry{number - 1}",
            ask.operation_id, number,
            session.name if several else None, ask.turn + 1 if several else None,
            session.parent.name if session.parent else None,
            stream.kind, stream.route, None, stream.model or self.world.engine.model,
            ask.prompt_tokens,
        )  # fmt: skip
        one.reasoning_tokens = min(
            ask.output_tokens - 1, round(ask.output_tokens * stream.reasoning_share)
        )
        one.max_tokens, one.response_format = stream.max_tokens, stream.response_format
        one.schema_hash, one.streamed = schema, stream.streamed
        one.system_tokens, one.history_tokens = stream.system_tokens, ask.history_tokens
        one.path = ask.path
        one.payload_hash = hashlib.sha256(ask.operation_id.encode()).hexdigest()[:16]
        one.scheduled_ns = now
        if number > 1:
            one.causes.append(Cause("retry", ask.first_due_ns, now, now - ask.first_due_ns))
        rng = dice(self.world.seed, one.request_id) if self.random_path else None
        call = Call(ask, one, rng)
        limit = self.world.client.connections
        if limit and self.in_flight >= limit:
            self.held.append(call)
        else:
            self._send(now, call)

    def _send(self, now: int, call: Call) -> None:
        self.in_flight += 1
        one, client = call.outcome, self.world.client
        sent = self.seen(now)
        one.sent_ns = sent
        if sent > one.scheduled_ns:
            one.causes.append(Cause("client_hold", one.scheduled_ns, sent, sent - one.scheduled_ns))
        network = self.world.network
        way = one_way(network, call.rng) + round(network.connect_ms * NS_PER_MS)
        self.loop.at(sent + way, self.gateway.receive, call)
        if client.timeout_s:
            self.loop.at(sent + round(client.timeout_s * NS_PER_S), self._timed_out, call)

    def _replied(self, now: int, call: Call) -> None:
        """The last byte is at the socket; the loop sees it when it can."""
        if call.over:
            return
        seen = self.seen(now)
        if seen > now:
            self.loop.at(seen, self._done, call)
        else:
            self._done(now, call)

    def _done(self, now: int, call: Call) -> None:
        if call.over:
            return
        if call.arrivals:
            self._observe(call, now)
        self._over(now, call)

    def _observe(self, call: Call, until: int) -> None:
        """Chunks as the loop saw them, up to a time."""
        one = call.outcome
        seen = array("q", call.arrivals)
        if self.world.client.stall_every_s:
            seen = array("q", map(self.seen, call.arrivals))
        kept = len(seen)
        while kept and seen[kept - 1] > until:
            kept -= 1
        del seen[kept:], one.chunk_tokens[kept:], one.chunk_kinds[kept:]
        one.chunk_ns = seen
        if not one.streamed:
            # One body: what came first nobody can tell.
            return
        first = next((at for at, count in enumerate(one.chunk_tokens) if count), None)
        if first is None:
            return
        one.first_chunk_ns = seen[first]
        held = seen[first] - call.arrivals[first]
        last = seen[-1] - call.arrivals[kept - 1]
        if held or last:
            one.causes.append(
                Cause("client_stall", call.arrivals[first], seen[-1], max(held, last))
            )

    def _timed_out(self, now: int, call: Call) -> None:
        if call.over:
            return
        one = call.outcome
        # The engine may be a step ahead: what it would have said is never heard.
        self.gateway.cancel(now, call)
        one.error, one.finish_reason, one.status = "timeout", None, None
        one.causes.append(Cause("timeout", one.sent_ns or now, now, now - (one.sent_ns or now)))
        if call.arrivals:
            self._observe(call, now)
        self._over(now, call)

    def _over(self, now: int, call: Call) -> None:
        """Tell how it ended, let the next one go, and go on."""
        call.over = True
        one, ask, client = call.outcome, call.ask, self.world.client
        one.done_ns = now
        self.in_flight -= 1
        if not call.orphan:
            self._tell(now, call)
        call.job = None
        if self.held and (not client.connections or self.in_flight < client.connections):
            self._send(now, self.held.popleft())
        if one.error in _TRANSIENT and one.attempt <= client.retries:
            wait = round(client.backoff_s * NS_PER_S) << (one.attempt - 1)
            if one.retry_after_ns is not None:
                wait = max(wait, one.retry_after_ns)
            self.loop.at(now + wait, self._again, call)
            return
        self._go_on(now, ask, one)

    def _tell(self, _now: int, call: Call) -> None:
        """Nobody works on the attempt any more."""
        one = call.outcome
        if one.output_tokens < one.reasoning_tokens:
            one.reasoning_tokens = one.output_tokens
        if not self.gateway.detail:
            one.chunk_ns = one.chunk_tokens = one.chunk_kinds = one.token_ns = array("q")
        self.recorder.request(one)

    def _again(self, now: int, call: Call) -> None:
        self._attempt(now, call.ask, call.outcome.attempt + 1)

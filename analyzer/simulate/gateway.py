"""The gateway: limits, routes with fallbacks, a replica for each call, and the way back."""

from __future__ import annotations

from array import array
from collections.abc import Callable

from analyzer.simulate.call import Call
from analyzer.simulate.chunks import chunks_of
from analyzer.simulate.job import Job
from analyzer.simulate.loop import Loop
from analyzer.simulate.network import buffered, delivered, dice, is_plain
from analyzer.simulate.outcome import Cause, GatewayTry, RequestOutcome
from analyzer.simulate.replica import Replica
from analyzer.simulate.world import NS_PER_MS, NS_PER_S, Route, World

_RATE_LIMITED, _UNAVAILABLE, _TIMEOUT, _TOO_LONG = 429, 503, 504, 400

Reply = Callable[[int, Call], None]


class Gateway:
    """Between the network and the replicas; ``reply`` takes calls that reached the client."""

    def __init__(self, world: World, loop: Loop, *, detail: bool) -> None:
        self.world, self.loop, self.detail = world, loop, detail
        self.routes = {one.name: one for one in world.gateway.routes}
        self.replicas: dict[str, Replica] = {}
        self.reply: Reply = lambda _now, _call: None
        self.abandoned: Reply = lambda _now, _call: None
        self.turns: dict[str, int] = {}
        self.tokens = float(world.gateway.rate_burst)
        self.filled_ns = world.start_ns

    # --- in ---------------------------------------------------------------------------------------

    def receive(self, now: int, call: Call) -> None:
        """A request arrives from the network."""
        call.outcome.gateway_in_ns = now
        setup = self.world.gateway
        if setup.rate_per_s and not self._passes(now):
            wait = round(setup.retry_after_s * NS_PER_S)
            call.outcome.retry_after_ns = wait
            self._refuse(now, call, _RATE_LIMITED, "rate_limited")
            return
        route = self.routes[call.outcome.route]
        self.loop.at(now + round(setup.overhead_ms * NS_PER_MS), self._upstream, (call, route))

    def _passes(self, now: int) -> bool:
        setup = self.world.gateway
        gained = (now - self.filled_ns) / NS_PER_S * setup.rate_per_s
        self.tokens = min(float(setup.rate_burst), self.tokens + gained)
        self.filled_ns = now
        if self.tokens < 1:
            return False
        self.tokens -= 1
        return True

    def _upstream(self, now: int, what: tuple[Call, Route]) -> None:
        call, route = what
        if call.over:
            return
        call.tries += 1
        call.try_start_ns = now
        call.outcome.route = route.name
        patience = round(route.timeout_s * NS_PER_S)
        if patience:
            self.loop.at(now + patience, self._late, (call, route, call.tries))
        if route.unreachable:
            return
        key = f"{call.outcome.request_id}/{call.outcome.attempt}/{call.tries}"
        if route.failing and dice(self.world.seed, key).random() < route.failing:
            self.loop.at(now + round(route.fail_ms * NS_PER_MS), self._failed, (call, route))
            return
        replica = self._pick(call, route)
        call.replica, call.outcome.replica = replica, replica.name
        call.outcome.gateway_sent_ns = now
        call.job = job = Job(
            call.outcome, call.ask.output_tokens, call.ask.path, call.ask.result_name
        )
        job.call = call
        if not replica.fits(job):
            self._refuse(now, call, _TOO_LONG, "context_length")
            return
        self.loop.at(now + round(self.world.gateway.hop_ms * NS_PER_MS), self._enter, (call, job))

    def _enter(self, now: int, what: tuple[Call, Job]) -> None:
        call, job = what
        if call.job is job and call.replica is not None and not job.dropped:
            call.replica.enter(now, job)

    def _pick(self, call: Call, route: Route) -> Replica:
        names = route.replicas or list(self.replicas)
        if len(names) == 1:
            return self.replicas[names[0]]
        if route.policy == "round_robin":
            turn = self.turns[route.name] = self.turns.get(route.name, -1) + 1
            return self.replicas[names[turn % len(names)]]
        if route.policy in ("session", "random"):
            key = call.outcome.session_id if route.policy == "session" else call.outcome.request_id
            return self.replicas[dice(self.world.seed, f"{key}").choice(names)]
        return min((self.replicas[name] for name in names), key=lambda one: one.load)

    # --- what goes wrong --------------------------------------------------------------------------

    def _late(self, now: int, what: tuple[Call, Route, int]) -> None:
        call, route, number = what
        first = call.outcome.first_token_ns
        if call.over or call.tries != number or (first is not None and first <= now):
            return
        self._drop(now, call)
        self._next(now, call, route, None, "timeout")

    def _failed(self, now: int, what: tuple[Call, Route]) -> None:
        call, route = what
        if not call.over:
            self._next(now, call, route, _UNAVAILABLE, "upstream")

    def _next(self, now: int, call: Call, route: Route, status: int | None, error: str) -> None:
        """Note a failed try, and go to the fallback, if there is one."""
        one = call.outcome
        one.tries.append(GatewayTry(route.name, one.replica, call.try_start_ns, now, status, error))
        one.causes.append(
            Cause("fallback", call.try_start_ns, now, now - call.try_start_ns, route.name)
        )
        if route.fallback is None:
            self._refuse(now, call, status or _TIMEOUT, error, tried=True)
            return
        self._upstream(now, (call, self.routes[route.fallback]))

    def _drop(self, now: int, call: Call) -> None:
        """Abandon what the engine does; its part of the outcome belongs to nobody."""
        job = call.job
        if job is None:
            return
        call.job = None
        if call.replica is not None and call.outcome.engine_in_ns is not None:
            call.replica.abort(now, job)
        job.dropped = True
        one = call.outcome
        job.outcome = RequestOutcome(one.request_id, one.operation_id)
        one.replica = one.gateway_sent_ns = None
        one.engine_in_ns = one.queued_ns = one.admitted_ns = one.first_token_ns = None
        one.finished_ns = one.engine_out_ns = None
        one.output_tokens = one.cached_tokens = one.preemptions = 0
        one.token_ns = array("q")
        kept = ("client_hold", "retry", "fallback", "network_stall")
        one.causes = [cause for cause in one.causes if cause.kind in kept]

    def cancel(self, now: int, call: Call) -> None:
        """The client is gone: stop the engine, and keep what it had done."""
        if call.job is not None and call.replica is not None and not call.job.dropped:
            runs = call.outcome.engine_in_ns is not None and call.outcome.finished_ns is None
            call.orphan = runs and not self.world.gateway.cancels
            if runs and not call.orphan:
                call.replica.abort(now, call.job)
            call.job.dropped = not call.orphan
        one = call.outcome
        if one.status is not None or not call.tries:
            return
        one.tries.append(
            GatewayTry(one.route, one.replica, call.try_start_ns, now, None, "aborted")
        )
        if one.streamed and one.token_ns:
            self._send(call, whole=False)

    def _refuse(
        self, now: int, call: Call, status: int, error: str, *, tried: bool = False
    ) -> None:
        """Answer with an error; it takes the way back like any answer."""
        one = call.outcome
        one.error, one.gateway_out_ns = error, now
        if not tried and call.tries:
            one.tries.append(
                GatewayTry(one.route, one.replica, call.try_start_ns, now, status, error)
            )
        arrived, stalls = delivered([now], self.world.network, call.rng)
        one.causes += stalls
        one.status = status
        self.loop.at(arrived[-1], self.reply, call)

    # --- back -------------------------------------------------------------------------------------

    def first(self, job: Job, now: int) -> None:
        """Nothing yet: chunks are followed when the answer is whole."""

    def finished(self, job: Job, now: int) -> None:
        """An engine is done at ``now``, which may be a step ahead of the loop."""
        self.loop.at(job.outcome.engine_out_ns or now, self._answered, job)

    def _answered(self, now: int, job: Job) -> None:
        """Follow the answer through gateway and network to the client's socket."""
        call: Call = job.call
        if call.orphan:
            self.abandoned(now, call)
            return
        if job.dropped or call.job is not job:
            return
        one = call.outcome
        self._send(call, whole=True)
        one.status = 200
        one.finish_reason = self._reason(call)
        end = now + round(self.world.gateway.hop_ms * NS_PER_MS)
        one.tries.append(GatewayTry(one.route, one.replica, call.try_start_ns, end, 200))
        self.loop.at(call.arrivals[-1], self.reply, call)

    def _send(self, call: Call, *, whole: bool) -> None:
        """Chunks through buffers and network; what is not ``whole`` leaves a buffer half full."""
        one, world = call.outcome, self.world
        hop = round(world.gateway.hop_ms * NS_PER_MS)
        times, one.chunk_tokens, one.chunk_kinds = self._made(call, hop)
        if world.gateway.buffer_bytes and one.streamed:
            left = buffered(times, one.chunk_tokens, world.gateway.buffer_bytes, whole=whole)
            del one.chunk_tokens[len(left) :], one.chunk_kinds[len(left) :]
            if left and left[0] > times[0]:
                one.causes.append(Cause("buffered", times[0], left[0], left[0] - times[0]))
            times = left
        if not times:
            return
        if whole:
            one.gateway_out_ns = times[-1]
        one.gateway_first_ns = next(
            (at for at, count in zip(times, one.chunk_tokens, strict=True) if count), None
        )
        call.arrivals, stalls = delivered(times, world.network, call.rng)
        one.causes += stalls

    def _made(self, call: Call, hop: int) -> tuple[list[int], array[int], array[int]]:
        """When chunks reach the gateway, and what is in them."""
        one = call.outcome
        if one.streamed and (self.detail or one.token_ns):
            assert call.replica is not None  # noqa: S101 - somebody answered
            setup = call.replica.setup
            later = round(setup.out_ms * NS_PER_MS) + hop
            return chunks_of(one, setup, later)
        later = (one.engine_out_ns or 0) + hop
        if not one.streamed or one.output_tokens == 1:
            return [later], array("q", [one.output_tokens]), array("q", [2])
        first = later - (one.finished_ns or 0) + (one.first_token_ns or 0)
        # Enough for every moment anyone asks for: the first and the last.
        return [first, later], array("q", [1, one.output_tokens - 1]), array("q", [2, 2])

    @staticmethod
    def _reason(call: Call) -> str:
        one = call.outcome
        return "length" if one.max_tokens and one.output_tokens >= one.max_tokens else "stop"


def needs_tokens(world: World) -> bool:
    """Whether chunks take ways of their own, so that each of them has to be followed."""
    changed = {one.key for one in world.change}
    plain = is_plain(world.network) and not {"network.jitter_ms", "network.loss"} & changed
    buffers = world.gateway.buffer_bytes or "gateway.buffer_bytes" in changed
    client = world.client.timeout_s or world.client.stall_every_s
    return (
        not plain
        or bool(buffers)
        or bool(client)
        or any("client." in key or "stream_tokens" in key for key in changed)
    )

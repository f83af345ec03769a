"""The simulator's laws: nothing lost, nothing twice, and more load is never faster."""

import random
from itertools import pairwise

import pytest

from analyzer.errors import AnalyzerError
from analyzer.simulate.memory import Memory, block_hashes, whole_blocks
from analyzer.simulate.outcome import CAUSES, Base
from analyzer.simulate.run import run, shipped, world_named
from analyzer.simulate.world import World, from_dict, with_sets

MS, S = 1_000_000, 1_000_000_000
MOMENTS = (
    "scheduled_ns", "sent_ns", "gateway_in_ns", "gateway_sent_ns", "engine_in_ns", "queued_ns",
    "admitted_ns", "first_token_ns", "finished_ns", "engine_out_ns", "gateway_out_ns", "done_ns",
)  # fmt: skip


class Kept(Base):
    """Keeps what a run tells."""

    def __init__(self):
        self.requests, self.samples, self.events, self.ticks = [], [], [], []

    def request(self, outcome):
        self.requests.append(outcome)

    def sample(self, sample):
        self.samples.append(sample)

    def event(self, event):
        self.events.append(event)

    def tick(self, tick):
        self.ticks.append(tick)

    def causes(self, kind):
        return [one for request in self.requests for one in request.causes if one.kind == kind]


def ran(told, *, detail=True):
    world = told if isinstance(told, World) else from_dict(told)
    kept = Kept()
    return kept, run(world, kept, detail=detail)


def a_world(dice):
    """Any world: every mechanism may be there."""
    turns = dice.choice([1, 1, 3])
    return {
        "seed": dice.randrange(1000),
        "duration_s": 40,
        "arrivals": [{
            "rate_per_s": dice.choice([0.5, 2, 6]),
            "process": dice.choice(["poisson", "bursty", "even"]),
            "prompt_tokens": {"mean": dice.choice([50, 700, 2500]), "cv": dice.choice([0, 1])},
            "output_tokens": {"mean": dice.choice([1, 20, 150]), "cv": 0.5},
            "turns": turns, "think_s": {"mean": 1, "cv": 1},
            "system_tokens": dice.choice([0, 300]),
            "subagent_share": dice.choice([0, 0.3]) if turns > 1 else 0,
            "reasoning_share": dice.choice([0, 0.5]),
            "schemas": dice.choice([0, 3]), "streamed": dice.random() < 0.8,
        }],
        "client": {
            "connections": dice.choice([0, 4]), "timeout_s": dice.choice([0, 6]),
            "retries": dice.choice([0, 2]), "stall_every_s": dice.choice([0, 5]), "stall_ms": 900,
            "tick_s": dice.choice([0, 1]),
        },
        "network": {"jitter_ms": dice.choice([0, 3]), "loss": dice.choice([0, 0.01])},
        "gateway": {
            "buffer_bytes": dice.choice([0, 4000]), "rate_per_s": dice.choice([0, 0, 3]),
            "routes": [
                {"name": "default", "failing": dice.choice([0, 0.2]), "fallback": "spare",
                 "policy": dice.choice(["least_busy", "round_robin", "random", "session"])},
                {"name": "spare"},
            ],
        },
        "engine": {
            "max_running": dice.choice([2, 16, 128]), "max_step_tokens": dice.choice([512, 2048]),
            "kv_blocks": dice.choice([1200, 20000]), "chunked": dice.random() < 0.7,
            "asynchronous": dice.random() < 0.5, "prefix_cache": dice.random() < 0.7,
            "cache_lifetime_s": dice.choice([0, 3]), "grammar_ms": 200,
            "drafts": dice.choice([0, 0, 3]), "pause_every_s": dice.choice([0, 4]),
            "pause_ms": 300, **dice.choice([{}, {"load_s": 2}, {"load_s": 2, "idle_unload_s": 3}]),
            "stream_tokens": dice.choice([1, 4]), "status_s": 1,
            "role_chunk": dice.choice(["none", "first_token", "accepted"]),
        },
        "replicas": [{"name": "a"}, {"name": "b"}][: dice.choice([1, 2])],
    }  # fmt: skip


@pytest.mark.parametrize("number", range(40))
def test_any_world_keeps_its_tokens_blocks_and_requests(number):
    kept, counts = ran(a_world(random.Random(number)))
    requests = kept.requests
    assert counts.attempts == len(requests) > 0
    keys = [(one.request_id, one.attempt) for one in requests]
    assert len(set(keys)) == len(keys)
    first = {one.operation_id for one in requests if one.attempt == 1}
    assert first == {one.operation_id for one in requests}, "a retry has a first attempt"
    # Tokens: what samples tell is what engines made, and requests cannot have more.
    made = sum(one.output_tokens for one in requests)
    told = sum(one.output_tokens for one in kept.samples)
    dropped = any(one.tries and one.tries[-1].error for one in requests) or counts.failed
    assert told == made if not dropped else told >= made
    # Blocks and places: at the end all are free.
    last = {one.replica: one for one in kept.samples}
    assert all((one.running, one.waiting, one.kv_used_blocks) == (0, 0, 0) for one in last.values())
    assert all(0 <= one.kv_used_blocks <= one.kv_blocks for one in kept.samples)
    for one in requests:
        holds(one)


def holds(one):
    """Moments in order, parts that add up, chunks that carry all tokens, causes in their place."""
    times = [getattr(one, name) for name in MOMENTS]
    if one.error is None:
        assert None not in times
        assert times == sorted(times)
        assert one.queue_ns + one.prefill_ns + one.decode_ns <= one.engine_e2e_ns <= one.e2e_ns
        assert sum(one.chunk_tokens) == one.output_tokens == len(one.token_ns)
        assert one.output_tokens <= (one.max_tokens or one.output_tokens)
        assert one.cached_tokens < one.prompt_tokens
        if one.streamed:
            assert one.first_chunk_ns >= one.first_token_ns
            assert one.chunk_ns[-1] == one.done_ns
    assert all(a <= b for a, b in pairwise(one.chunk_ns))
    assert all(a <= b for a, b in pairwise(one.token_ns))
    for cause in one.causes:
        assert cause.kind in CAUSES
        assert 0 < cause.ns <= cause.end_ns - cause.start_ns


def test_the_same_seed_is_the_same_world_and_another_is_not():
    told = a_world(random.Random(5))
    (one, _), (two, _), (other, _) = ran(told), ran(told), ran(told | {"seed": 77})
    assert one.requests == two.requests
    assert one.samples == two.samples
    assert [x.sent_ns for x in one.requests] != [x.sent_ns for x in other.requests]


def test_following_chunks_changes_nothing_else():
    told = {"duration_s": 60, "arrivals": [{"rate_per_s": 3}], "engine": {"max_running": 4}}
    names = ("sent_ns", "queued_ns", "admitted_ns", "first_token_ns", "first_chunk_ns", "done_ns")
    (plain, _), (followed, _) = ran(told, detail=False), ran(told)
    rows = [
        [tuple(getattr(one, name) for name in names) for one in kept.requests]
        for kept in (plain, followed)
    ]
    assert rows[0] == rows[1]
    assert not plain.requests[0].chunk_ns


# --- laws of queues ------------------------------------------------------------------------------


def busy(**engine):
    return {
        "duration_s": 900,
        "arrivals": [{
            "rate_per_s": 3, "prompt_tokens": {"mean": 900, "cv": 0.8},
            "output_tokens": {"mean": 160, "cv": 0.5},
        }],
        "engine": {"max_running": 24, "status_s": 0.25, **engine},
    }  # fmt: skip


@pytest.mark.parametrize("max_running", [3, 4, 24])
def test_littles_law(max_running):
    """Requests in the engine are their rate times their time, seen by samples of the engine."""
    kept, counts = ran(busy(max_running=max_running), detail=False)
    span = counts.last_ns - counts.first_ns
    inside = sum(one.finished_ns - one.queued_ns for one in kept.requests) / span
    weights = [one for one in kept.samples if one.time_ns <= counts.last_ns]
    seen = sum(one.running + one.waiting for one in weights) * 0.25 * S / span
    assert seen == pytest.approx(inside, rel=0.03)


def mean(values):
    values = list(values)
    return sum(values) / len(values)


def test_more_load_is_never_faster():
    waits, wholes, steps = [], [], []
    for rate in (1, 2, 4, 8, 16, 32):
        told = busy() | {"duration_s": 120}
        told["arrivals"][0]["rate_per_s"] = rate
        kept, _ = ran(told, detail=False)
        waits.append(mean(one.queue_ns for one in kept.requests))
        wholes.append(mean(one.engine_e2e_ns for one in kept.requests))
        steps.append(
            mean(x.decode_ns / (x.output_tokens - 1) for x in kept.requests if x.output_tokens > 1)
        )
    for grown in (waits, wholes, steps):
        assert grown == sorted(grown)
    assert waits[-1] > 100 * max(waits[0], MS)


@pytest.mark.parametrize(
    ("key", "values"),
    [("engine.max_running", (4, 8, 32)), ("engine.efficiency", (0.3, 0.5, 0.9))],
)
def test_more_room_or_speed_is_never_slower(key, values):
    world = from_dict(busy() | {"duration_s": 200})
    wholes = []
    for value in values:
        kept, _ = ran(with_sets(world, [f"{key}={value}", "arrivals.0.rate_per_s=6"]), detail=False)
        wholes.append(mean(one.engine_e2e_ns for one in kept.requests))
    assert wholes == sorted(wholes, reverse=True)


def test_a_second_replica_halves_the_load():
    world = from_dict(busy(max_running=6) | {"duration_s": 200})
    one, _ = ran(world, detail=False)
    two, _ = ran(with_sets(world, ['replicas=[{name="a"},{name="b"}]']), detail=False)
    assert mean(x.queue_ns for x in two.requests) < mean(x.queue_ns for x in one.requests) / 2
    served = {name: sum(x.replica == name for x in two.requests) for name in ("a", "b")}
    assert min(served.values()) > 0.3 * len(two.requests)


# --- mechanisms ----------------------------------------------------------------------------------


def test_admission_waits_while_there_is_memory_and_capacity_where_there_is_none():
    told = {
        "duration_s": 30,
        "arrivals": [{"rate_per_s": 8, "prompt_tokens": 800, "output_tokens": 200}],
    }
    few, _ = ran(told | {"engine": {"max_running": 3}})
    assert few.causes("admission")
    assert not few.causes("capacity")
    short, _ = ran(told | {"engine": {"kv_blocks": 200}})
    assert short.causes("capacity")
    assert not short.causes("admission")
    for kept in (few, short):
        for one in kept.requests:
            waited = sum(x.ns for x in one.causes if x.kind in ("admission", "capacity"))
            # What is not blamed on anyone is the end of the step it arrived in.
            assert one.queue_ns * 0.9 - 60 * MS <= waited <= one.queue_ns


def test_a_long_prompt_stands_in_front_and_in_between():
    long = {"kind": "long", "rate_per_s": 0.1, "prompt_tokens": 30000, "output_tokens": 10}
    short = {"kind": "short", "rate_per_s": 4, "prompt_tokens": 60, "output_tokens": 80}
    kept, _ = ran({"duration_s": 60, "arrivals": [short, long]})
    behind = kept.causes("head_of_line")
    assert behind
    assert all(one.where.startswith("long") for one in behind)
    hit = [one for one in kept.causes("prefill_interference") if one.ns > 300 * MS]
    alone, _ = ran({"duration_s": 60, "arrivals": [short]})
    assert hit
    assert not [one for one in alone.causes("prefill_interference") if one.ns > 300 * MS]


def test_short_memory_puts_out_the_last_one_in_and_computes_it_again():
    told = {
        "duration_s": 20,
        "arrivals": [{"process": "even", "rate_per_s": 5, "prompt_tokens": 300,
                      "output_tokens": 900, "most": 20}],
        "engine": {"kv_blocks": 400, "status_s": 1},
    }  # fmt: skip
    kept, _ = ran(told)
    out = [one for one in kept.requests if one.preemptions]
    assert sum(one.preemptions for one in out) == len(kept.causes("preemption")) or out
    assert {one.kind for one in kept.events} == {"preemption"}
    assert kept.samples[-1].preemptions == len(kept.events)
    assert not any(one.request_id == kept.requests[0].request_id for one in out), "first in stays"
    # Its gap is in its tokens too.
    one = max(out, key=lambda x: max(c.ns for c in x.causes if c.kind == "preemption"))
    gap = max(b - a for a, b in pairwise(one.token_ns))
    assert gap >= max(cause.ns for cause in one.causes if cause.kind == "preemption")


def test_a_shared_prefix_is_computed_once_and_forgotten():
    stream = {"process": "even", "rate_per_s": 0.2, "system_tokens": 4000, "prompt_tokens": 50,
              "output_tokens": 5}  # fmt: skip
    told = {"duration_s": 60, "arrivals": [stream]}
    kept, _ = ran(told)
    assert [one.cached_tokens for one in kept.requests][:3] == [0, 4000, 4000]
    forgot, _ = ran(told | {"engine": {"cache_lifetime_s": 3}})
    assert not any(one.cached_tokens for one in forgot.requests)
    changing, _ = ran(told | {"arrivals": [stream | {"changing_token": 160}]})
    assert {one.cached_tokens for one in changing.requests[1:]} == {160}


def test_a_session_finds_its_own_history_in_the_cache():
    told = {"duration_s": 5, "arrivals": [{
        "rate_per_s": 1, "most": 1, "turns": 4, "prompt_tokens": 320, "output_tokens": 100,
        "think_s": 1}]}  # fmt: skip
    kept, _ = ran(told)
    prompts = [one.prompt_tokens for one in kept.requests]
    assert prompts == [320, 740, 1160, 1580]
    # Whole blocks of everything before; the last token of an answer was never computed.
    assert [one.cached_tokens for one in kept.requests[1:]] == [416, 832, 1248]
    hashes = [block_hashes(one.path, 16) for one in kept.requests]
    for before, after in pairwise(hashes):
        assert after[: len(before)] == before


def test_an_idle_model_is_unloaded_and_loaded_again():
    told = {
        "duration_s": 100,
        "arrivals": [{"process": "even", "rate_per_s": 0.04, "output_tokens": 5}],
        "engine": {"load_s": 4, "idle_unload_s": 10},
    }
    kept, _ = ran(told)
    assert [one.kind for one in kept.events] == ["load"] + ["unload", "load"] * 3
    assert {one.ns for one in kept.causes("load")} == {4 * S}
    assert all(one.queue_ns >= 4 * S for one in kept.requests)


def test_grammar_is_compiled_once_while_others_pass():
    plain = {"kind": "plain", "process": "even", "rate_per_s": 5, "output_tokens": 5}
    strict = plain | {"kind": "strict", "schemas": 2, "from_s": 0.05}
    told = {"duration_s": 3, "arrivals": [plain, strict], "engine": {"grammar_ms": 500}}
    kept, _ = ran(told)
    assert sum(one.kind == "grammar" for one in kept.events) == 2
    waited = [one.queue_ns for one in kept.requests if one.kind == "strict"]
    assert max(waited) > 400 * MS
    assert max(one.queue_ns for one in kept.requests if one.kind == "plain") < 30 * MS


def test_a_paused_process_stops_everyone_at_once():
    told = {
        "duration_s": 30,
        "arrivals": [{"rate_per_s": 2, "output_tokens": 400, "prompt_tokens": 50}],
        "engine": {"pause_every_s": 5, "pause_ms": 700},
    }
    kept, _ = ran(told)
    pauses = {(one.time_ns, one.duration_ns) for one in kept.events if one.kind == "pause"}
    assert pauses
    for one in kept.requests:
        for start, took in pauses:
            inside = one.token_ns[0] < start and start + took < one.token_ns[-1]
            made = [at for at in one.token_ns if start < at < start + took]
            assert not (inside and made)


def test_drafts_that_are_right_come_together():
    told = {"duration_s": 20, "arrivals": [{"rate_per_s": 1, "output_tokens": 300}]}
    plain, _ = ran(told)
    drafted, _ = ran(told | {"engine": {"drafts": 3, "acceptance": 0.8}})
    sizes = [count for one in drafted.requests for count in one.chunk_tokens]
    assert set(sizes) == {1, 2, 3, 4}
    assert mean(sizes) == pytest.approx(2.95, abs=0.15)  # (1 - 0.8^4) / (1 - 0.8)
    faster = mean(x.decode_ns for x in plain.requests) / mean(x.decode_ns for x in drafted.requests)
    assert faster > 2


def test_a_dead_route_costs_every_request_its_patience():
    routes = [
        {"name": "default", "unreachable": True, "timeout_s": 3, "fallback": "good"},
        {"name": "good"},
    ]
    kept, _ = ran({"duration_s": 20, "gateway": {"routes": routes}})
    assert {one.route for one in kept.requests} == {"good"}
    assert {len(one.tries) for one in kept.requests} == {2}
    assert {one.ns for one in kept.causes("fallback")} == {3 * S}
    assert all(one.network_ns > 3 * S for one in kept.requests)


def test_timeouts_are_tried_again_and_the_engine_stops():
    told = {
        "duration_s": 10,
        "arrivals": [{"rate_per_s": 1, "output_tokens": 3000, "most": 3}],
        "client": {"timeout_s": 4, "retries": 1, "backoff_s": 1},
    }
    kept, counts = ran(told)
    assert counts.failed == counts.attempts == 6
    assert [one.attempt for one in sorted(kept.requests, key=lambda x: x.scheduled_ns)][-1] == 2
    for one in kept.requests:
        assert one.error == "timeout"
        assert one.e2e_ns == 4 * S
        assert 0 < one.output_tokens < 3000
        assert one.chunk_ns[-1] <= one.done_ns
        assert len(one.chunk_ns) <= one.output_tokens


def test_a_buffering_proxy_moves_chunks_and_not_the_end():
    told = {"duration_s": 20, "arrivals": [{"rate_per_s": 1, "output_tokens": 100}]}
    plain, _ = ran(told)
    held, _ = ran(told | {"gateway": {"buffer_bytes": 1_000_000}})
    for one, two in zip(plain.requests, held.requests, strict=True):
        assert one.done_ns == two.done_ns
        assert two.first_chunk_ns == two.done_ns
        cause = next(x for x in two.causes if x.kind == "buffered")
        assert two.ttft_ns - one.ttft_ns == cause.ns


def test_a_blocked_loop_and_few_connections_hold_requests_back():
    stalls, _ = ran({
        "duration_s": 30, "arrivals": [{"rate_per_s": 3, "output_tokens": 200}],
        "client": {"stall_every_s": 5, "stall_ms": 1500, "tick_s": 0.5},
    })  # fmt: skip
    assert stalls.causes("client_stall")
    late = [one.time_ns - one.due_ns for one in stalls.ticks]
    assert max(late) <= 1500 * MS
    assert sum(x > 0 for x in late) >= 15
    few, _ = ran({
        "duration_s": 30, "arrivals": [{"rate_per_s": 5, "output_tokens": 200}],
        "client": {"connections": 2},
    })  # fmt: skip
    assert mean(one.hold_ns for one in few.requests) > S


def test_a_limited_gateway_turns_away_and_says_when_to_come_again():
    kept, counts = ran({
        "duration_s": 20, "arrivals": [{"rate_per_s": 6, "output_tokens": 3}],
        "gateway": {"rate_per_s": 2, "rate_burst": 2, "retry_after_s": 2},
        "client": {"retries": 5, "backoff_s": 0.1},
    })  # fmt: skip
    refused = [one for one in kept.requests if one.status == 429]
    assert refused
    assert all(one.engine_in_ns is None and one.retry_after_ns == 2 * S for one in refused)
    good = sum(one.error is None for one in kept.requests)
    assert good + counts.failed == counts.attempts


def test_a_change_is_a_change_of_a_mechanism_at_its_time():
    told = {
        "duration_s": 40, "arrivals": [{"rate_per_s": 4, "output_tokens": 5}],
        "change": [{"at_s": 20, "key": "network.latency_ms", "value": 200.0}],
    }  # fmt: skip
    kept, _ = ran(told)
    start = from_dict(told).start_ns
    for one in kept.requests:
        slow = one.sent_ns >= start + 20 * S
        assert (one.network_ns > 300 * MS) == slow or abs(one.sent_ns - start - 20 * S) < S


# --- memory and worlds ---------------------------------------------------------------------------


@pytest.mark.parametrize("number", range(30))
def test_blocks_are_never_lost_nor_doubled(number):
    dice = random.Random(number)
    memory = Memory(300, 16, cached=True, lifetime_ns=dice.choice([0, 40]))
    alive = []
    for now in range(400):
        if dice.random() < 0.6:
            path = whole_blocks([
                (f"s{dice.randrange(4)}", 160), (f"t{dice.randrange(30)}", dice.randrange(160, 900))
            ], 16)  # fmt: skip
            tokens = path[-1][1]
            found, hit = memory.known(path, tokens, now)
            need = -(-tokens // 16) - hit
            if need <= memory.room(found):
                held = memory.hold(found, hit)
                assert memory.take(need)
                held.own = need
                alive.append((held, path, tokens))
                memory.publish(held, path, dice.randrange(tokens + 1), now)
        elif alive:
            held, path, tokens = alive.pop(dice.randrange(len(alive)))
            memory.publish(held, path, tokens, now)
            memory.release(held, now)
        used = sum(held.own for held, _, _ in alive)
        used += sum(part.have for part in memory.parts.values() if part.refs)
        assert used + memory.free == memory.blocks
        assert sum(memory.unused.values()) == memory.free
    for held, _, _ in alive:
        memory.release(held, 1000)
    assert memory.free == memory.blocks


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ("engine.max_runing=3", "did you mean max_running"),
        ("engine.max_running=many", "it takes int"),
        ("arrivals.none.burst=2", "by position from 0"),
        ("nothing", "--set engine.max_running=64"),
        ("engine.max_step_tokens=8", "raise max_step_tokens"),
        ("engine.status_s.x=8", "set engine.status_s"),
        ("start=soon", "start ="),
        ("arrivals.0.process=tidal", "known: poisson, even, bursty, trace"),
        ("arrivals.0.file=3", "it takes str"),
        ("engine.efficiency=0", "give more than 0"),
        ("network.loss=2", "between 0 and 1"),
        ("client.timeout_s=-1", "give 0 or more"),
        ("network.latency_ms=nan", "give 0 or more"),
        ("engine.idle_unload_s=60", "set engine.load_s"),
        ('gateway.routes=[{name="default",fallback="default"}]', "the last fallback has none"),
        ('change=[{at_s=1,key="engine.kv_blocks",value=9}]', "a route each"),
        ('change=[{at_s=1,key="engine.max_running",value=0}]', "give 1 or more"),
        ('change=[{at_s=1,key="network.latency",value=0}]', "latency_ms"),
        ('logs=[{format="spans",replica="x"}]', "known: engine-0"),
    ],
)
def test_a_world_that_makes_no_sense_says_what_to_do(key, reason):
    with pytest.raises(AnalyzerError) as caught:
        with_sets(from_dict({}), [key])
    assert reason in f"{caught.value.message} {caught.value.hint}"


def test_worlds_that_ship_can_be_loaded():
    for name in shipped():
        assert world_named(name).arrivals
    with pytest.raises(AnalyzerError, match="there is no world"):
        world_named("nowhere")

"""The simulator against real vLLM 0.19 runs: arrivals and lengths in, the three segments out.

One number is fitted, the efficiency; everything else is the runs' own configuration. A segment is
right within 15 % or 20 ms, whichever is more, at p50 and p90, on requests that the fit did not see.
"""

import json
from dataclasses import dataclass
from functools import cache

import pytest
from deep import deep
from shared import SHARED

from analyzer.simulate.outcome import Base
from analyzer.simulate.run import run
from analyzer.simulate.world import from_dict

RUNS = SHARED / "traces" / "2-measured" / "casys-kaist__LLMServingSim"
pytestmark = pytest.mark.skipif(not RUNS.exists(), reason="the measured runs are not here")

S = 1_000_000_000
RUNS_EACH = 4
SEGMENTS = {
    "queue": ("queued_ts", "scheduled_ts"),
    "prefill": ("scheduled_ts", "first_token_ts"),
    "decode": ("first_token_ts", "last_token_ts"),
}
PRO_LLAMA = ("RTXPRO6000~Llama-3.1-8B", {"model": "llama-3.1-8b", "gpu": "rtx-pro-6000-bw"})
PRO_QWEN = (
    "RTXPRO6000~Qwen3-30B-A3B-Instruct-2507",
    {"model": "qwen3-30b-a3b", "gpu": "rtx-pro-6000-bw", "count": 2, "tp": 1, "dp": 2},
)
PRO_LINK = {"link_gb_s": 16, "link_us": 20}
"""casys-kaist/LLMServingSim, bench/examples/configs/Qwen3-30B-A3B-Instruct-2507.json: link_bw 16,
link_latency 20000; NCCL over PCIe without peer access. The same two figures stand in all cluster
descriptions there for this machine, of dense models too."""
RTX4090 = ("RTX4090~Llama-3.1-8B", {"model": "llama-3.1-8b", "gpu": "rtx4090"})


@dataclass
class Measured:
    rows: list
    engine: dict


@cache
def measured(name):
    lines = (RUNS / f"{name}~requests.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    meta = json.loads((RUNS / f"{name}~meta.json").read_text())
    told = meta["engine_kwargs"]
    engine = {
        "max_running": told["max_num_seqs"], "max_step_tokens": told["max_num_batched_tokens"],
        "frontend_ms": 0, "tokenize_us_per_token": 0, "out_ms": 0,
        # What a graph replays at most: twice the sequences, 512 at most.
        "graph_tokens": min(2 * told["max_num_seqs"], 512),
        # FlashAttention 2, as on all parts but Hopper: kBlockM of its kernels over a paged cache.
        "attention_rows": 64,
    }  # fmt: skip
    if "kv_cache" in meta:
        engine["kv_blocks"] = meta["kv_cache"]["num_gpu_blocks"]
    return Measured(rows, engine)


def simulated(case, efficiency, tmp_path):
    """Outcomes of the run's requests, in their order, of a few runs with steps of some noise.

    Where memory is full, who is put out hangs on a hair: percentiles are those of all runs.
    """
    return [_simulated(case, efficiency, tmp_path, seed) for seed in range(RUNS_EACH)]


def _simulated(case, efficiency, tmp_path, seed):
    name, hardware = case
    told = measured(name)
    first = told.rows[0]["arrival_time"]
    trace = tmp_path / "trace.jsonl"
    trace.write_text("".join(
        json.dumps({
            "arrival_s": one["arrival_time"] - first,
            "prompt_tokens": one["input_toks"], "output_tokens": one["output_toks"],
        }) + "\n"
        for one in told.rows
    ))  # fmt: skip
    kept = {}

    class Keep(Base):
        def request(self, outcome):
            kept[outcome.request_id] = outcome

    world = from_dict({
        "seed": seed,
        "arrivals": [{"process": "trace", "file": str(trace), "kind": "r"}],
        "network": {"latency_ms": 0}, "gateway": {"overhead_ms": 0, "hop_ms": 0},
        "engine": {**told.engine, **hardware, "efficiency": efficiency, "noise": 0.02},
    })  # fmt: skip
    run(world, Keep())
    return [kept[f"r-{index:06d}"] for index in range(len(told.rows))]


def percentile(values, share):
    return sorted(values)[int(len(values) * share)]


def errors(case, runs, part):
    """Segment and percentile -> measured s, simulated s, and the error in units of what may be."""
    rows = measured(case[0]).rows[part]
    found = {}
    for segment, (start, end) in SEGMENTS.items():
        real = [one[end] - one[start] for one in rows]
        ours = [getattr(one, f"{segment}_ns") / S for kept in runs for one in kept[part]]
        for share in (0.5, 0.9):
            was, now = percentile(real, share), percentile(ours, share)
            allowed = max(0.15 * abs(was), 0.020)
            found[f"{segment} p{share * 100:.0f}"] = (was, now, (now - was) / allowed)
    return found


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    """The efficiency of the whole Llama run."""
    return fitted(PRO_LLAMA, slice(None), tmp_path_factory.mktemp("llama"))


def fitted(case, part, tmp_path):
    """The efficiency (two digits) of least squares on these requests."""

    def off(percent):
        found = errors(case, simulated(case, percent / 100, tmp_path), part)
        return sum(one[2] ** 2 for one in found.values())

    return min(range(44, 96, 2), key=off) / 100


def wrong(found):
    return {
        name: f"measured {was:.3f} s, simulated {now:.3f} s"
        for name, (was, now, error) in found.items()
        if abs(error) > 1
    }


@deep
def test_the_second_half_of_a_run_from_an_efficiency_of_the_first(tmp_path):
    """RTX 4090: memory is full for three minutes, requests wait up to two and are put out."""
    first, second = slice(0, 150), slice(150, None)
    efficiency = fitted(RTX4090, first, tmp_path)
    assert 0.75 <= efficiency <= 0.85
    runs = simulated(RTX4090, efficiency, tmp_path)
    assert not wrong(errors(RTX4090, runs, second))
    assert sum(one.preemptions for one in runs[0]) > 20


def test_one_efficiency_explains_a_whole_run(llama, tmp_path):
    """RTX PRO 6000, Llama: one number for queue, prefill and decode."""
    everything = slice(None)
    assert 0.6 <= llama <= 0.68
    assert not wrong(errors(PRO_LLAMA, simulated(PRO_LLAMA, llama, tmp_path), everything))


def test_that_efficiency_carries_to_shared_experts_on_two_devices(llama, tmp_path):
    """RTX PRO 6000, Qwen over two ranks: nothing of this run is fitted.

    The efficiency is that of the other run; the link is what the authors state for the machine in
    the cluster description beside the run. Experts are exchanged over PCIe twice a layer, and ranks
    wait for each other: without that the next test is what comes out.
    """
    case = (PRO_QWEN[0], {**PRO_QWEN[1], **PRO_LINK})
    assert not wrong(errors(case, simulated(case, llama, tmp_path), slice(None)))


@deep
def test_a_link_at_the_rate_of_its_data_sheet_is_not_that_machine(llama, tmp_path):
    """PCIe 5 promises four times what its exchanges reach: then queue and prefill come too short.

    The link is the one quantity that model, part and the other run do not tell.
    """
    found = errors(PRO_QWEN, simulated(PRO_QWEN, llama, tmp_path), slice(None))
    assert {"queue p90", "prefill p90"} <= set(wrong(found))
    for name in ("decode p50", "decode p90"):
        was, now, _ = found[name]
        assert -0.2 < now / was - 1 < 0

"""Traces that must not mislead: short kernels behind slow launches, replays in part, training."""

from __future__ import annotations

import json

import pytest
from helpers import case_of, claimed, engine_of

from analyzer.engines.analysis import all_analyses
from analyzer.runbook._play import all_plays


class Trace:
    """A trace in the making; times in microseconds."""

    def __init__(self):
        self.events = []
        self.launched = 0

    def _add(self, cat, name, ts, dur, **args):
        where = {"pid": 0, "tid": 7} if cat == "kernel" else {"pid": 1, "tid": 1}
        one = {"ph": "X", "cat": cat, "name": name, "ts": ts, "dur": dur, "args": args}
        self.events.append(one | where)

    def step(self, name, ts, dur):
        self._add("user_annotation", name, ts, dur)

    def launch(self, ts, dur, name="cudaLaunchKernel"):
        self.launched += 1
        self._add("cuda_runtime", name, ts, dur, correlation=self.launched)

    def kernel(self, name, ts, dur, device=0):
        self._add("kernel", name, ts, dur, device=device, stream=7, correlation=self.launched)

    def case(self, folder):
        made = folder / "in"
        made.mkdir()
        text = json.dumps({"schemaVersion": 1, "traceEvents": self.events})
        (made / "rank0.pt.trace.json").write_text(text)
        return case_of(made, folder / "case.duckdb")


def _eager(kernel_us, name="gemv_{}", steps=20, count=200, every=20):
    trace = Trace()
    for step in range(steps):
        begin = 1_000_000 + step * count * every
        trace.step(f"step_{step}", begin, count * every - 10)
        for at in range(count):
            trace.launch(begin + 1 + at * every, 8)
            trace.kernel(name.format(at % 9), begin + 10 + at * every, kernel_us)
    return trace


def _graphs(kernels, step_us=20_000, kernel_us=180):
    trace = Trace()
    for step, count in enumerate(kernels):
        begin = 1_000_000 + step * step_us
        trace.step(f"step_{step}", begin, step_us - 100)
        trace.launch(begin + 100, 40, "cudaGraphLaunch")
        for at in range(count):
            trace.kernel(f"k_{at}", begin + 200 + at * kernel_us, kernel_us)
    return trace


@pytest.mark.parametrize(("kernel_us", "gap_ms"), [(14, 1.2), (12, 1.6), (8, 2.4)])
def test_a_launch_that_is_under_way_is_not_done(kernel_us, gap_ms, tmp_path):
    found = claimed(_eager(kernel_us).case(tmp_path))
    assert found.keys() == {"decode.launch-bound"}
    assert found["decode.launch-bound"].requests == 20
    assert found["decode.launch-bound"].magnitude.value == pytest.approx(gap_ms, rel=0.03)


def test_a_device_that_is_nearly_full_is_left_alone(tmp_path):
    assert not claimed(_eager(18).case(tmp_path))


def test_steps_with_a_backward_pass_are_no_decode_steps(tmp_path):
    db = _eager(8, "flash_bwd_dkv_{}").case(tmp_path)
    assert not claimed(db)
    with engine_of(db) as engine:
        assert {row["phase"] for row in engine.rows("SELECT phase FROM gpu_step")} == {"training"}


def test_replays_that_were_recorded_in_part_from_some_time_on(tmp_path):
    found = claimed(_graphs([100] * 10 + [8] * 50).case(tmp_path))
    assert found.keys() == {"trust.graph-coverage"}
    assert found["trust.graph-coverage"].requests == 50


def test_two_models_in_turn_are_no_loss(tmp_path):
    db = _graphs([100, 30] * 20, kernel_us=190).case(tmp_path)
    assert "trust.graph-coverage" not in claimed(db)


def test_a_step_after_a_lost_one_has_no_begin(tmp_path):
    db = _graphs([100 if step % 5 == 2 else 0 for step in range(50)]).case(tmp_path)
    assert claimed(db)["trust.graph-coverage"].magnitude.value == pytest.approx(0.2)
    with engine_of(db) as engine:
        assert engine.value("SELECT count(*) FROM gpu_step WHERE is_whole") == 0


def test_what_one_device_lost_stands_before_the_next_step_of_all(tmp_path):
    trace = Trace()
    for step in range(6):
        begin = 1_000_000 + step * 1_000
        trace.step(f"step_{step}", begin, 990)
        for device in range(2):
            trace.launch(begin + 10 + device * 20, 5)
            if (step, device) != (3, 1):
                trace.kernel("gemv", begin + 100, 800, device)
    with engine_of(trace.case(tmp_path)) as engine:
        rows = engine.rows("SELECT step, device FROM gpu_step WHERE is_whole ORDER BY step, device")
    assert [(row["step"], row["device"]) for row in rows] == [
        (step, device) for step in (2, 3, 6) for device in range(2)
    ]


# --- the end of a record -------------------------------------------------------------------------


def _ahead(until_ms, lost_from_ms=10**6, steps=40):
    """A host 120 ms ahead of the device launches 100 kernels of 100 us every 3 ms."""
    trace, launched = Trace(), []
    for k in range(steps * 100):
        called = 1_000_000 + (k // 100) * 3_000 + (k % 100) * 20
        launched.append((called, 1_120_000 + k * 100))
    for called, begins in launched:
        if called > 1_000_000 + until_ms * 1_000:
            continue
        trace.launch(called, 8)
        if begins < 1_000_000 + 1_000 * min(until_ms, lost_from_ms):
            trace.kernel("gemv", begins, 99)
    return trace


def _trust(trace, tmp_path):
    with engine_of(trace.case(tmp_path)) as engine:
        return engine.rows("SELECT * FROM gpu_trust")[0]


def test_launches_that_wait_where_the_record_ends_are_no_loss(tmp_path):
    """The last recorded kernel waited for longer than all that is left of the record."""
    row = _trust(_ahead(200), tmp_path)
    assert (row["launches"], row["launch_coverage_ratio"]) == (800, 1.0)
    assert row["late_launches"] == 4_000 - 800
    assert row["can_idle"]


def test_a_full_buffer_is_no_end_of_the_record(tmp_path):
    """The same, but nothing is recorded after 140 ms of 400: what follows had its turn by then."""
    row = _trust(_ahead(400, lost_from_ms=140, steps=130), tmp_path)
    assert row["launch_coverage_ratio"] < 0.1
    assert row["lacks_launches"]
    assert not row["can_idle"]


def test_losses_among_what_was_recorded_are_losses(tmp_path):
    trace = _ahead(200)
    kernels = [one for one in trace.events if one["cat"] == "kernel"]
    for one in kernels[100:300]:
        trace.events.remove(one)
    row = _trust(trace, tmp_path)
    assert (row["launches"], row["launch_coverage_ratio"]) == (800, 0.75)
    assert not row["can_idle"]


def _asked_at_once():
    """Forty replays are asked for at once, and ten of them are recorded."""
    trace = Trace()
    for k in range(40):
        trace.launch(1_000_000 + k * 50, 8, "cudaGraphLaunch")
        for at in range(100 if k < 10 else 0):
            trace.kernel(f"k_{at}", 1_000_100 + k * 2_000 + at * 20, 19)
    return trace


def test_replays_that_wait_where_the_record_ends_are_no_loss(tmp_path):
    row = _trust(_asked_at_once(), tmp_path)
    assert (row["graph_launches"], row["graphs_covered"], row["late_launches"]) == (10, 10, 30)
    assert row["can_idle"]


def test_a_record_that_goes_on_would_have_had_them(tmp_path):
    """The host waits for all forty: they ran before the record ended."""
    trace = _asked_at_once()
    trace.launch(1_003_000, 78_000, "cudaDeviceSynchronize")
    row = _trust(trace, tmp_path)
    assert (row["graph_launches"], row["graphs_covered"], row["late_launches"]) == (40, 10, 0)
    assert not row["can_idle"]


# --- training ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "bwd_kernel_fuse", "void cuComputeGradGammaBeta<float>", "sm80_xmma_wgrad_implicit_gemm",
        "void at::native::fused_dropout_kernel_vec<float>", "multi_tensor_apply_kernel<FusedAdam>",
    ],
)  # fmt: skip
def test_no_verdict_on_decoding_speaks_of_training(name, tmp_path):
    """Slow launches, and one kernel in nine that only training has."""
    trace = _eager(8, "gemv_{}")
    for event in trace.events:
        if event["name"] == "gemv_0":
            event["name"] = name
    db = trace.case(tmp_path)
    assert not claimed(db)
    with engine_of(db) as engine:
        assert engine.value("SELECT count(*) FROM gpu_decode") == 0


# --- one home ------------------------------------------------------------------------------------


def test_what_the_play_asks_for_is_what_trust_needs():
    """The share of launches beyond which idle time can be said stands in one analysis."""
    (enough,) = [one for one in all_analyses()["gpu_trust"].params if one.name == "enough"]
    front = all_plays()["trust.graph-coverage"].front
    assert str(front.done_when[0].value) == enough.value
    queries = [front.touched, front.magnitude.sql, *(one.sql for one in front.evidence)]
    assert not [sql for sql in queries if enough.value in sql]
    assert not [sql for sql in (all_analyses()["gpu_damage"].sql,) if enough.value in sql]

"""What-if: a change moves the segments that it should, and a world like a case is like it."""

import json
import math
import tomllib

import pytest
from click.testing import CliRunner
from deep import deep
from helpers import case_of
from shared import SHARED, needs_shared

from analyzer import api
from analyzer.cli import cli
from analyzer.contract.outputs import OUTPUTS
from analyzer.errors import AnalyzerError
from analyzer.simulate.fit import load_of, nonnegative
from analyzer.simulate.like import toml
from analyzer.simulate.run import simulate, world_named
from analyzer.simulate.what_if import changed, expand
from analyzer.simulate.world import from_dict

BUSY = {
    "name": "busy",
    "seed": 3,
    "duration_s": 150,
    "network": {"latency_ms": 12},
    "gateway": {"overhead_ms": 0.0, "hop_ms": 0.0},
    "arrivals": [{
        "rate_per_s": 2.5, "system_tokens": 320,
        "prompt_tokens": {"mean": 900, "cv": 0.6}, "output_tokens": {"mean": 120, "cv": 0.6},
    }],
    "engine": {
        "max_running": 6, "kv_blocks": 20_000, "frontend_ms": 2.0, "out_ms": 0.0,
        "tokenize_us_per_token": 0.0,
        "step": {"fixed_ms": 14.0, "per_sequence_us": 300.0, "per_prompt_token_us": 40.0},
    },
    "prices": {"llama-3.1-8b": {"input": "1", "cache_read": "0.1", "output": "4"}},
    "logs": [{"format": "spans"}, {"format": "requests"}],
}  # fmt: skip


def busy(**engine):
    told = json.loads(json.dumps(BUSY))
    told["engine"] |= engine
    return told


@pytest.fixture(scope="module")
def world_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("world") / "busy.toml"
    path.write_text(toml(BUSY), encoding="utf-8")
    return path


def moves(path, *alternatives):
    rows = api.what_if(str(path), alternatives).rows
    return {(row["what_if"], row["metric"]): row for row in rows}


def test_each_lever_moves_its_own_segment(world_file):
    levers = ("batch=24", "replicas=2", "cap=60", "prompt=2x", "cache=off")
    moved = moves(world_file, *levers)
    assert moved["batch=24", "queue"]["change"] < -0.9
    assert moved["batch=24", "tpot"]["change"] > 0
    assert moved["replicas=2", "queue"]["change"] < -0.9
    assert moved["replicas=2", "GPU per 1k output"]["change"] > 0.5
    assert moved["cap=60", "decode"]["change"] < -0.2
    assert moved["cap=60", "cost"]["change"] < -0.1
    assert moved["prompt=2x", "prefill"]["change"] > 0.3
    assert moved["prompt=2x", "cost"]["change"] > 0.3
    assert moved["cache=off", "prefill"]["change"] > 0.1
    assert moved["cache=off", "cost"]["change"] > 0
    assert all(moved[lever, "requests"]["change"] == 0 for lever in levers)
    assert all(moved[lever, "network"]["change"] == 0 for lever in levers)


def test_no_change_moves_nothing(world_file):
    moved = moves(world_file, "engine.max_running=6")
    assert all(row["before"] == row["after"] for row in moved.values())


def test_quantisation_moves_decode_where_the_step_follows_from_bytes():
    moved = moves("slow-network", "weights=fp8")
    assert -0.6 < moved["weights=fp8", "decode"]["change"] < -0.3
    with pytest.raises(AnalyzerError, match="changes nothing"):
        expand(from_dict(busy()), "weights=fp8")


def test_short_names_and_factors():
    world = from_dict(busy())
    assert expand(world, "chunk=4096") == ["engine.max_step_tokens=4096"]
    assert expand(world, "cache=off") == ["engine.prefix_cache=false"]
    assert expand(world, "rate=2x") == ["arrivals.0.rate_per_s=5.0"]
    assert changed(world, ["replicas=3", "batch=2x"]).engine.max_running == 12
    assert len(changed(world, ["replicas=3"]).replicas) == 3
    assert changed(world, ["seed=9"]).seed == 9
    for wrong in ("batch", "replicas=0", "replicas=many", "cache=2x", "bach=3", "prompt="):
        with pytest.raises(AnalyzerError):
            changed(world, [wrong])


def test_several_changes_are_one_alternative(world_file):
    moved = moves(world_file, "batch=24,cap=60")
    assert moved["batch=24,cap=60", "queue"]["change"] < -0.9
    assert moved["batch=24,cap=60", "decode"]["change"] < -0.2


# --- a world like a case -------------------------------------------------------------------------


@pytest.fixture(
    scope="module", params=[True, pytest.param(False, marks=deep)], ids=["asynchronous", "in turn"]
)
def case(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("case")
    simulate(from_dict(busy(asynchronous=request.param)), folder / "logs")
    (folder / "logs" / "truth.jsonl").unlink()
    return request.param, case_of(folder / "logs", folder / "case.duckdb"), folder


def test_a_world_like_a_case_has_its_segments_and_its_steps(case):
    asynchronous, db, folder = case
    table = api.simulate_like(db, folder / "like")
    rows = {row["metric"]: row for row in table.rows}
    for name, least in (("queue", 0.2), ("prefill", 0.15), ("decode", 0.06), ("e2e", 0.15)):
        assert abs(rows[name]["change"]) < least, rows[name]
    assert rows["requests"]["change"] == 0
    assert rows["network"]["change"] == pytest.approx(0, abs=0.01)
    assert rows["cache share"]["after"] == pytest.approx(rows["cache share"]["before"], abs=0.02)
    world = tomllib.loads((folder / "like" / "world.toml").read_text())
    assert world["engine"]["max_running"] == 6
    assert world["engine"]["asynchronous"] == asynchronous
    step = world["engine"]["step"]
    assert step["fixed_ms"] == pytest.approx(14, rel=0.1)
    assert step["per_prompt_token_us"] == pytest.approx(40, rel=0.25)
    assert (folder / "like" / "spans.jsonl").stat().st_size > 0


def test_what_if_of_a_case_agrees_with_what_really_comes(case):
    """The fitted world foresees what the true world does with a larger batch."""
    asynchronous, db, folder = case
    path = folder / "true.toml"
    path.write_text(toml(busy(asynchronous=asynchronous)), encoding="utf-8")
    true = moves(path, "batch=24")
    rows = api.what_if_like(db, ("batch=24",)).rows
    said = {row["metric"]: row for row in rows}
    for name, least in (("decode", 0.1), ("e2e", 0.1), ("prefill", 0.2)):
        assert said[name]["after"] == pytest.approx(true["batch=24", name]["after"], rel=least)


def test_a_trace_can_be_scaled_but_not_set(case):
    _, db, _ = case
    rows = api.what_if_like(db, ("rate=0.5x", "output=0.5x")).rows
    moved = {(row["what_if"], row["metric"]): row["change"] for row in rows}
    assert moved["rate=0.5x", "queue"] < -0.9
    assert moved["output=0.5x", "decode"] < -0.4
    with pytest.raises(AnalyzerError, match="trace"):
        api.what_if_like(db, ("rate=3",))


def test_too_little_to_fit_is_refused(tmp_path):
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "a.jsonl").write_text('{"request_id":"a","e2e_ms":3}\n')
    db = case_of(tmp_path / "logs", tmp_path / "case.duckdb")
    with pytest.raises(AnalyzerError, match="0 requests"):
        api.simulate_like(db, tmp_path / "out")


def test_least_squares_without_negative_parts():
    rows = [[1, n, n * n % 7] for n in range(1, 40)]
    wanted = [5 + 2 * row[1] + 3 * row[2] for row in rows]
    assert nonnegative(rows, wanted) == pytest.approx([5, 2, 3], rel=1e-3)
    down = nonnegative([[1, n] for n in range(1, 20)], [30 - n for n in range(1, 20)])
    assert down[1] == 0
    assert down[0] > 0


def test_load_over_time():
    load = load_of([(0, 10, 1.0), (5, 10, 1.0), (20, 30, 4.0)])
    assert load.mean(0, 10) == pytest.approx(1.5)
    assert load.mean(-10, 0) == 0
    assert load.mean(10, 20) == pytest.approx(0)
    assert load.mean(0, 40) == pytest.approx((10 + 5 + 40) / 40)


# --- the command ---------------------------------------------------------------------------------


def call(*args):
    done = CliRunner().invoke(cli, ["simulate", *map(str, args)])
    return done.exit_code, done.stdout


def test_the_command_prints_moves_as_table_and_as_published_rows(world_file):
    code, text = call(world_file, "--what-if", "batch=24")
    assert code == 0
    assert "batch=24" in text
    assert max(map(len, text.splitlines())) <= 100
    code, text = call(world_file, "--what-if", "batch=24", "-f", "json")
    told = json.loads(text)
    assert told["kind"] == "analyze.simulate.what-if"
    assert set(told["rows"][0]) == set(OUTPUTS["analyze.simulate.what-if"].names)


def test_two_stage_in_every_format():
    for form in ("table", "json", "csv", "md"):
        code, text = call("two-stage", "-f", form)
        assert code == 0
        assert "105" in text
    code, text = call("two-stage", "--set", "prompt=400", "-f", "json")
    assert json.loads(text)["rows"][0]["ttft"] == 4800


def test_one_of_scenario_and_like(case, tmp_path):
    assert call()[0] != 0
    assert call("buffered", "--like", case[1], "-o", tmp_path)[0] != 0
    assert call("buffered", "--model", "x", "-o", tmp_path)[0] != 0
    code, text = call("--like", case[1], "-o", tmp_path / "out")
    assert code == 0
    assert "assumed" in text


def test_worlds_are_written_as_they_are_read(tmp_path):
    path = tmp_path / "again.toml"
    path.write_text(toml(BUSY), encoding="utf-8")
    assert tomllib.loads(path.read_text()) == BUSY
    assert world_named(str(path)).engine.step is not None
    assert math.isinf(world_named(str(path)).arrivals[0].prompt_tokens.most)


# --- measured runs -------------------------------------------------------------------------------

MEASURED = SHARED / "traces" / "2-measured" / "casys-kaist__LLMServingSim"
RUNS = {
    "RTXPRO6000~Llama-3.1-8B": 0.06,
    "RTXPRO6000~Qwen3-30B-A3B-Instruct-2507": 0.06,
    "RTX4090~Llama-3.1-8B": 0.12,
}
"""Run of vLLM -> how far the means of its world may be off; the last one's memory overflows."""


@needs_shared
@pytest.mark.parametrize("run", RUNS)
def test_a_world_like_a_measured_run_has_its_segments(run, tmp_path):
    (tmp_path / "logs").mkdir()
    for file in MEASURED.glob(f"{run}~*"):
        if not file.name.endswith("summary.txt"):
            (tmp_path / "logs" / file.name).symlink_to(file)
    db = case_of(tmp_path / "logs", tmp_path / "case.duckdb")
    rows = {row["metric"]: row for row in api.simulate_like(db, tmp_path / "like").rows}
    for name in ("queue", "decode", "ttft", "tpot", "e2e"):
        assert abs(rows[name]["change"]) < RUNS[run], rows[name]
    gap = abs(rows["prefill"]["after"] - rows["prefill"]["before"])
    assert gap < 0.15 * rows["prefill"]["before"] or gap < 0.005 * rows["e2e"]["before"]

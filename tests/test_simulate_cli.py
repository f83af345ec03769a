"""``analyze simulate``: worlds that ship, changed ones, and what is refused."""

import json

import pytest
from click.testing import CliRunner

from analyzer.cli import cli


def said(*args, code=0):
    done = CliRunner().invoke(cli, ["simulate", *map(str, args)], standalone_mode=False)
    if code == 0:
        assert done.exception is None, done.exception
    return done


def test_a_world_that_ships_is_written_with_its_truth(tmp_path):
    out = tmp_path / "logs"
    told = json.loads(said("buffered", "-o", out, "-f", "json").stdout)
    (row,) = told["rows"]
    assert told["kind"] == "analyze.simulate"
    assert row["world"] == "buffered"
    assert row["attempts"] > 0
    truth = [json.loads(line) for line in (out / "truth.jsonl").read_text().splitlines()]
    assert sum("id" in one for one in truth) == row["attempts"]
    assert "truth" in row["logs"]


def test_a_folder_with_something_in_it_is_not_written_into(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    refused = said("buffered", "-o", tmp_path, code=2)
    assert "is not empty" in str(refused.exception)
    said("buffered", "-o", tmp_path, "--force")
    assert (tmp_path / "mine.txt").read_text() == "mine"
    assert (tmp_path / "truth.jsonl").exists()


def test_sets_and_seeds_change_the_world(tmp_path):
    world = tmp_path / "small.toml"
    world.write_text('duration_s = 20\n[[arrivals]]\nrate_per_s = 2\n[[logs]]\nformat = "spans"\n')
    rows = {}
    for name, more in (
        ("as-is", ()), ("again", ()), ("busy", ("--set", "arrivals.0.rate_per_s=8")),
        ("short", ("--set", "rate=8", "--seed", "9")),
    ):  # fmt: skip
        done = said(world, "-o", tmp_path / name, "-f", "json", *more)
        rows[name] = json.loads(done.stdout)["rows"][0]
    assert rows["as-is"]["attempts"] == rows["again"]["attempts"]
    assert (tmp_path / "as-is/spans.jsonl").read_bytes() == (
        tmp_path / "again/spans.jsonl"
    ).read_bytes()
    assert rows["busy"]["attempts"] > 2 * rows["as-is"]["attempts"]
    assert rows["short"]["seed"] == 9


def test_what_if_compares_without_writing(tmp_path):
    world = tmp_path / "tight.toml"
    world.write_text(
        "duration_s = 30\n[engine]\nmax_running = 2\n[[arrivals]]\nrate_per_s = 4\n"
        "output_tokens = 200\n"
    )
    done = said(world, "--what-if", "batch=64", "-f", "json")
    rows = {row["metric"]: row for row in json.loads(done.stdout)["rows"]}
    assert rows["queue"]["after"] < rows["queue"]["before"] / 10
    assert [path.name for path in tmp_path.iterdir()] == ["tight.toml"]


@pytest.mark.parametrize(
    ("args", "reason"),
    [
        (("bufferd", "-o", "x"), "there is no world"),
        (("buffered",), "give -o DIR"),
        (("buffered", "-o", "x", "--set", "engine.modl=a"), "a world has no engine.modl"),
        (("buffered", "-o", "x", "--set", "engine.gpu=abacus"), "no accelerator 'abacus'"),
        (("missing.toml", "-o", "x"), "cannot read missing.toml"),
    ],
)
def test_what_cannot_be_run_says_so(args, reason, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert reason in str(said(*args, code=2).exception)


def test_a_run_that_fails_in_the_middle_leaves_no_open_file(tmp_path):
    world = tmp_path / "w.toml"
    world.write_text(
        'duration_s = 20\n[[arrivals]]\nprocess = "trace"\nfile = "t.jsonl"\n'
        '[[logs]]\nformat = "spans"\n'
    )
    (tmp_path / "t.jsonl").write_text(
        '{"arrival_s": 0, "prompt_tokens": 9, "output_tokens": 2}\n{"arrival_s": 1}\n'
    )
    failed = said(world, "-o", tmp_path / "x", code=2)
    assert "t.jsonl, line 2: no arrival" in str(failed.exception)


def test_a_world_that_is_no_toml_names_the_place(tmp_path):
    bad = tmp_path / "bad.toml"
    bad.write_text("name = \n")
    assert "line 1" in str(said(bad, "-o", tmp_path / "x", code=2).exception)

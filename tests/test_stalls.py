"""Pace, stalls and their causes, computed by hand on streams of a few chunks."""

from __future__ import annotations

import pytest
from cases._build import MS, at
from cases._streams import Stream, client_lines, emit_lines, tick_lines
from helpers import case_of, engine_of

from analyzer.questions import request
from analyzer.simulate.writers import NS, write_lines

T0 = at("2026-01-05T03:00:00Z")


def times_of(*gaps_ms):
    """Token times from gaps; the first token comes after 100 ms."""
    times = [T0 + 100 * MS]
    for gap in gaps_ms:
        times.append(times[-1] + round(gap * MS))
    return times


def stream(name, *gaps_ms, prompt=100):
    return Stream(name, T0, times_of(*gaps_ms), prompt)


@pytest.fixture
def ask(tmp_path):
    """Ask a case of these files something."""

    def asked(sql, **files):
        folder = tmp_path / "logs"
        folder.mkdir()
        for name, lines in files.items():
            write_lines(folder / f"{name}.jsonl", lines)
        with engine_of(case_of(folder, tmp_path / "case.duckdb")) as engine:
            return engine.rows(sql)

    return asked


def test_the_pace_is_the_median_and_its_spread_is_taken_from_below(ask):
    # Sorted gaps: 16 18 18 20 20 20 20 20 900; the quarter lies at 18, the median at 20.
    one = stream("a", 20, 18, 20, 900, 20, 16, 20, 18, 20)
    (row,) = ask("SELECT * FROM stream_pace", client=client_lines([one], "m"))
    assert row["median_gap_ns"] == row["usual_gap_ns"] == 20 * MS
    deviation = 2 * MS / 0.6745
    assert row["slow_gap_ns"] == pytest.approx(20 * MS + 4 * deviation)
    assert row["long_gap_ns"] == 60 * MS, "three usual gaps are more than eight deviations"
    assert (row["gaps"], row["longest_gap_ns"], row["in_bursts"]) == (9, 900 * MS, False)


def test_a_stall_costs_what_its_gaps_take_beyond_the_usual(ask):
    one = stream("a", *[20] * 10, 420, 20, 320, *[20] * 10)
    (row,) = ask("SELECT * FROM stream_stall", client=client_lines([one], "m"))
    # Three gaps of 760 ms in all, with one at the usual pace between two slow ones.
    assert (row["gaps"], row["excess_ns"]) == (3, 760 * MS - 3 * 20 * MS)
    assert (row["start_ns"] - T0, row["end_ns"] - row["start_ns"]) == (300 * MS, 760 * MS)
    assert (row["chunks_before"], row["caught_ratio"]) == (11, 0.0)


def test_what_had_piled_up_comes_at_once(ask):
    # 100 ms are lost and five of the next eight chunks come with the first: 8 x 20 - 3 x 20 = 100.
    one = stream("a", *[20] * 10, 120, 0, 0, 0, 0, 0, *[20] * 10)
    (row,) = ask("SELECT * FROM stream_stall", client=client_lines([one], "m"))
    assert (row["excess_ns"], row["caught_ratio"]) == (100 * MS, 1.0)


def test_slow_gaps_in_a_row_are_one_stall_though_none_is_long(ask):
    one = stream("a", *[20] * 30, *[45] * 12, *[20] * 30)
    (row,) = ask("SELECT * FROM stream_stall", client=client_lines([one], "m"))
    assert (row["gaps"], row["excess_ns"], row["longest_gap_ns"]) == (12, 12 * 25 * MS, 45 * MS)


@pytest.mark.parametrize(
    "gaps",
    [
        pytest.param([20] * 60 + [45] * 20, id="slow to its end"),
        pytest.param([45] * 20 + [20] * 60, id="slow from its beginning on"),
        pytest.param([20, 20, 20, 20, 31] * 12, id="uneven"),
        pytest.param([60] * 40, id="slow all the time"),
        pytest.param(([0.01] * 9 + [300]) * 12, id="in bursts"),
        pytest.param([20] * 30 + [68] + [20] * 30, id="less than anybody reads"),
    ],
)
def test_what_is_no_stall(ask, gaps):
    assert not ask("SELECT * FROM stream_stall", client=client_lines([stream("a", *gaps)], "m"))


def test_a_pause_among_bursts_is_one(ask):
    gaps = ([0.01] * 9 + [300]) * 10 + [0.01] * 9 + [2_300] + ([0.01] * 9 + [300]) * 10
    (row,) = ask(
        "SELECT p.in_bursts, p.usual_gap_ns, s.excess_ns, s.caught_ratio FROM stream_pace AS p "
        "JOIN stream_stall AS s ON p.request_key = s.request_key",
        client=client_lines([stream("a", *gaps)], "m"),
    )
    assert row["in_bursts"]
    assert row["usual_gap_ns"] == pytest.approx(300 * MS)
    assert row["excess_ns"] == pytest.approx(2_000 * MS, rel=1e-3)
    assert row["caught_ratio"] is None, "behind a burst comes a burst anyhow"


def test_what_the_others_did_meanwhile(ask):
    # a stalls for 1 s; b stalls in its first half; c goes on; d is over before.
    a = stream("a", *[20] * 20, 1_000, *[20] * 20)
    b = stream("b", *[20] * 20, 500, *[20] * 60)
    c = stream("c", *[20] * 100)
    d = stream("d", *[20] * 12)
    (row,) = ask(
        "SELECT b.* FROM stream_beside AS b JOIN resolve_request AS r "
        "ON b.request_key = r.request_key WHERE r.id = 'a'",
        client=client_lines([a, b, c, d], "m"),
    )
    assert row["client_others"] == row["server_others"] == 2.0
    assert row["client_stopped_ratio"] == pytest.approx(0.25)
    assert not row["has_ticks"]


SAME = [20] * 20 + [800] + [20] * 20
PILED = [20] * 20 + [800] + [0] * 39 + [20] * 20
STEADY = [20] * 80


@pytest.mark.parametrize(
    ("seen", "engine", "ticks", "cause"),
    [
        pytest.param([SAME, SAME], [SAME, SAME], None, "process pause", id="emission stopped"),
        pytest.param([SAME, SAME], None, [], "process pause", id="ticks on time, nothing piled up"),
        pytest.param([SAME, SAME], None, None, "unexplained", id="either end"),
        pytest.param([PILED, PILED], None, None, "delivery", id="piled up on all"),
        pytest.param([PILED, STEADY], None, None, "connection", id="piled up on one"),
        pytest.param([PILED, PILED], None, [(500, 1_300)], "client blocked", id="ticks late"),
        pytest.param([SAME, SAME], [SAME, SAME], [(500, 1_300)], "process pause", id="both"),
        pytest.param(
            [PILED, STEADY], None, [(500, 1_300)], "connection", id="one beside late ticks"
        ),
        pytest.param([SAME, STEADY], None, None, "unexplained", id="one, and no log"),
    ],
)
def test_causes(ask, seen, engine, ticks, cause):
    streams = [stream(f"s{k}", *gaps) for k, gaps in enumerate(seen)]
    files = {"client": client_lines(streams, "m")}
    if engine:
        made = [stream(f"s{k}", *gaps) for k, gaps in enumerate(engine)]
        files["emits"] = emit_lines(made, -3 * NS)
    if ticks is not None:
        blocked = [(T0 + begin * MS, T0 + end * MS) for begin, end in ticks]
        files["ticks"] = tick_lines(T0, T0 + 3 * NS, 50 * MS, blocked)
    rows = ask("SELECT DISTINCT cause FROM stream_cause", **files)
    assert [row["cause"] for row in rows] == [cause]


def test_moments_and_their_period(ask):
    gaps = [20] * 20 + ([800] + [20] * 60) * 3
    streams = [stream("a", *gaps), stream("b", *gaps)]
    rows = ask(
        "SELECT * FROM stream_moment ORDER BY start_ns",
        client=client_lines(streams, "m"),
        emits=emit_lines(streams),
    )
    assert [row["since_ns"] for row in rows] == [None, 2_000 * MS, 2_000 * MS]
    assert {(row["cause"], row["stalls"], row["lost_ns"]) for row in rows} == {
        ("process pause", 2, 780 * MS)
    }


def test_a_request_shows_its_stalls(tmp_path):
    streams = [stream("a", *[20] * 10, 420, *[20] * 10)]
    write_lines(tmp_path / "client.jsonl", client_lines(streams, "m"))
    with engine_of(case_of(tmp_path, tmp_path / "case.duckdb")) as engine:
        notes = request.view(engine, "a").notes
    (note,) = [note for note in notes if note.startswith("stalled")]
    assert note == "stalled 0.300 s after its start, 0.400 s beyond its pace: cause not known"

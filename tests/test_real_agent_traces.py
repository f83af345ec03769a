"""Agent traces and run logs against real files, where these lie beside the checkout."""

from itertools import pairwise

import pytest
from helpers import case_of, engine_of
from shared import SHARED, needs_shared
from test_readers import READERS, read, rows_of

from analyzer.readers._file import InputFile
from analyzer.readers._find import pick

pytestmark = needs_shared

AGENTS = SHARED / "traces/3-agents"
S = 1_000_000_000


def requests(path, reader):
    """Request rows of a file that is claimed by ``reader`` and has no problem."""
    found = pick(InputFile(path, path.name).head)
    assert found.reader is READERS[reader], found.why
    batches = read(READERS[reader], path)
    assert [problem for batch in batches for problem in batch.problems] == []
    return [row for table, row in rows_of(batches) if table == "request"]


def near(value, places):
    return pytest.approx(value, abs=0.5001 * 10**-places)


# -- kv-cache-tester ------------------------------------------------------------------------------

# trace: requests, of sub-agents, sub-agents, input, first, last, most, hit by the previous request,
# by any before, answers with a TTFT, its median and share of the time, turns at which the hit drops
KV = {
    "0024": (50, 0, 0, 4_005_863, 15_459, 60_882, 150_030, 93.3, 93.3, None, (25, 50)),
    "0032": (3, 0, 0, 383_525, 123_058, 130_299, 130_299, 66.0, 66.0, (1, 4.07, 0.056), ()),
    "0091": (10, 0, 0, 1_284_267, 126_751, 130_042, 130_042, 89.8, 89.8, (3, 3.28, 0.566), ()),
    "0105": (
        16, 0, 0, 13_279_195, 782_605, 880_502, 880_502, 93.3, 93.3, (14, 11.07, 0.487), (),
    ),
    "0176": (
        95, 0, 0, 8_064_484, 29_914, 115_453, 163_528, 94.8, 94.8, (70, 2.38, 0.38), (2, 31, 74),
    ),
    "0277": (9, 44, 4, 591_380, 19_560, 92_614, 92_614, 84.3, 84.3, None, ()),
    "0334": (
        90, 0, 0, 8_329_274, 11_940, 150_540, 150_540, 96.9, 96.9, (43, 2.3, 0.28), (2, 11),
    ),
    "0440": (4, 0, 0, 430_579, 102_088, 113_132, 113_132, 73.7, 73.7, None, ()),
    "0455": (51, 0, 0, 2_099_358, 12_968, 60_614, 60_614, 96.8, 96.8, (43, 1.54, 0.385), ()),
    "0492": (68, 0, 0, 5_552_541, 10_972, 149_487, 149_487, 96.6, 96.6, None, (2,)),
    "0497": (
        156, 0, 0, 10_501_126, 9_777, 212_567, 212_567, 92.2, 93.6, (5, 1.86, 0.063),
        (34, 107, 118, 123, 125, 136),
    ),
    "0532": (
        114, 0, 0, 8_039_440, 13_844, 255_904, 349_259, 89.3, 89.3, (77, 1.66, 0.293),
        (2, 100, 108, 113),
    ),
    "0536": (4, 0, 0, 430_579, 102_088, 113_132, 113_132, 73.7, 73.7, (2, 3.83, 0.168), ()),
    "0544": (78, 0, 0, 5_197_777, 13_848, 133_816, 133_816, 97.4, 97.4, (53, 1.95, 0.413), (4,)),
    "0556": (51, 0, 0, 2_284_705, 13_921, 101_822, 101_822, 94.5, 94.5, (40, 1.61, 0.416), (33,)),
    "0667": (7, 0, 0, 370_385, 18_135, 102_959, 102_959, 72.2, 72.2, None, ()),
}  # fmt: skip

# Every prefix is named by one hash, so what two prompts share is the hashes they have in common.
HITS = """
WITH r AS (
  SELECT source_id, record, session_id, turn, input_fresh_tokens AS input,
         lag(record) OVER (PARTITION BY session_id ORDER BY turn) AS before
  FROM request WHERE parent_session_id IS NULL
), b AS (
  SELECT r.session_id, r.turn, p.prefix_hash, p.source_id, p.record
  FROM prompt_block p JOIN r USING (source_id, record)
), first AS (SELECT session_id, prefix_hash, min(turn) AS turn FROM b GROUP BY ALL),
prev AS (
  SELECT r.source_id, r.record, count(*) AS n
  FROM r JOIN prompt_block p USING (source_id, record)
  JOIN prompt_block q ON q.source_id = r.source_id AND q.record = r.before
    AND q.prefix_hash = p.prefix_hash
  GROUP BY ALL
), seen AS (
  SELECT b.source_id, b.record, count(*) AS n
  FROM b JOIN first f USING (session_id, prefix_hash) WHERE f.turn < b.turn GROUP BY ALL
)
SELECT session_id, turn, input, least(64 * coalesce(prev.n, 0), input) AS hit_prev,
       least(64 * coalesce(seen.n, 0), input) AS hit_seen
FROM r LEFT JOIN prev USING (source_id, record) LEFT JOIN seen USING (source_id, record)
ORDER BY session_id, turn
"""


@pytest.fixture(scope="module")
def traces(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kv")
    logs = folder / "logs"
    logs.mkdir()
    for path in (AGENTS / "callanjfox__kv-cache-tester").glob("trace_*.json"):
        (logs / path.name).symlink_to(path)
    return case_of(logs, folder / "kv.duckdb")


def test_kv_traces_are_all_there(traces):
    with engine_of(traces) as engine:
        rows = engine.rows(
            "SELECT session_id, count(*) AS n, sum(input_fresh_tokens) AS input, "
            "min_by(input_fresh_tokens, turn) AS first, max_by(input_fresh_tokens, turn) AS last, "
            "max(input_fresh_tokens) AS most FROM request WHERE NOT is_sidechain GROUP BY 1"
        )
        subs = {
            row["parent"]: (row["n"], row["agents"], row["input"])
            for row in engine.rows(
                "SELECT parent_session_id AS parent, count(*) AS n, "
                "count(DISTINCT session_id) AS agents, sum(input_fresh_tokens) AS input "
                "FROM request WHERE is_sidechain GROUP BY 1"
            )
        }
    told = {row["session_id"].removeprefix("trace_"): row for row in rows}
    assert told.keys() == KV.keys()
    for name, row in told.items():
        n, nested, agents, total, first, last, most, *_ = KV[name]
        assert (row["n"], row["input"], row["first"], row["last"], row["most"]) == (
            n, total, first, last, most,
        )  # fmt: skip
        assert subs.get(f"trace_{name}", (0, 0, 0))[:2] == (nested, agents)
    assert subs == {"trace_0277": (44, 4, 1_985_030)}


def test_kv_traces_hits_and_drops(traces):
    with engine_of(traces) as engine:
        rows = engine.rows(HITS)
    sessions = {}
    for row in rows:
        sessions.setdefault(row["session_id"].removeprefix("trace_"), []).append(row)
    for name, turns in sessions.items():
        *_, prev, seen, _, drops = KV[name]
        total = sum(row["input"] for row in turns)
        for told, name_of in ((prev, "hit_prev"), (seen, "hit_seen")):
            got = 100 * sum(row[name_of] for row in turns) / total
            assert got == pytest.approx(told, abs=0.06), (name, name_of)
        ratio = [row["hit_prev"] / row["input"] for row in turns]
        found = tuple(
            i + 1
            for i in range(1, len(ratio))
            if ratio[i] < 0.5 and (i == 1 or ratio[i - 1] >= 0.8)
        )
        assert found == drops, name


def test_kv_traces_time_to_first_token(traces):
    with engine_of(traces) as engine:
        rows = engine.rows(
            "SELECT session_id, count(ttft_ns) AS n, median(ttft_ns) / 1e9 AS p50, "
            "sum(ttft_ns) / sum(e2e_ns) FILTER (ttft_ns IS NOT NULL) AS share "
            "FROM request WHERE NOT is_sidechain GROUP BY 1"
        )
    for row in rows:
        told = KV[row["session_id"].removeprefix("trace_")][9]
        if told is None:
            assert row["n"] == 0
        else:
            assert row["n"] == told[0]
            assert row["p50"] == near(told[1], 2)
            assert row["share"] == near(told[2], 3)


def test_the_same_ids_of_two_traces_are_not_the_same_prompt(traces):
    with engine_of(traces) as engine:
        shared = engine.value(
            "SELECT count(*) FROM (SELECT prefix_hash FROM prompt_block GROUP BY 1 "
            "HAVING count(DISTINCT source_id) > 1)"
        )
    assert shared == 0


# -- LMCache --------------------------------------------------------------------------------------


SHARES = """
WITH r AS (SELECT *, lag(record) OVER w AS before FROM request
           WINDOW w AS (PARTITION BY session_id ORDER BY {order})),
hit AS (SELECT r.source_id, r.record, 64 * count(*) AS chars FROM r
        JOIN prompt_block p USING (source_id, record)
        JOIN prompt_block q ON q.source_id = r.source_id AND q.record = r.before
          AND q.prefix_hash = p.prefix_hash GROUP BY ALL)
SELECT session_id, count(*) AS n, sum(hit.chars) / sum(input_chars) AS share,
       min_by(input_chars, start_ns) AS first, max_by(input_chars, start_ns) AS last,
       min(start_ns) AS begin
FROM r LEFT JOIN hit USING (source_id, record) GROUP BY 1 ORDER BY 1
"""


def test_lmcache_traces(tmp_path):
    db = case_of(AGENTS / "LMCache__lmcache-agent-trace", tmp_path / "lm.duckdb")
    with engine_of(db) as engine:
        rows = engine.rows(SHARES.format(order="start_ns"))
        unsorted = engine.rows(SHARES.format(order="record"))
    assert [row["n"] for row in rows] == [30, 30, 41, 30]
    assert (rows[0]["first"], rows[0]["last"]) == (5_561, 32_680)
    assert rows[0]["begin"] == 1_760_428_436_442_742_000
    # By characters 93.8, 93.8, 54.6 and 92.0 %; the blocks of 64 lose half a block a prompt.
    shares = [row["share"] for row in rows]
    assert shares == [pytest.approx(told, abs=0.004) for told in (0.938, 0.938, 0.546, 0.920)]
    # As the lines lie in the file, which is in no order, the shares are lower.
    shares = [row["share"] for row in unsorted]
    assert shares == [pytest.approx(told, abs=0.004) for told in (0.911, 0.929, 0.477, 0.908)]


# -- OpenHands ------------------------------------------------------------------------------------


def test_openhands_calls(tmp_path):
    db = case_of(AGENTS / "OpenHands__software-agent-sdk", tmp_path / "oh.duckdb")
    with engine_of(db) as engine:
        rows = engine.rows(
            "SELECT *, input_fresh_tokens AS input, reported_cost_usd::DOUBLE AS cost "
            "FROM request ORDER BY start_ns"
        )
        shared = engine.rows(
            "WITH b AS (SELECT r.start_ns, p.prefix_hash FROM request r JOIN prompt_block p "
            "USING (source_id, record)) SELECT start_ns, count(*) AS blocks, "
            "count(*) FILTER (prefix_hash IN (SELECT prefix_hash FROM b AS c "
            "WHERE c.start_ns < b.start_ns)) AS known FROM b GROUP BY 1 ORDER BY 1"
        )
    assert len(rows) == 6
    assert (rows[0]["input"], rows[-1]["input"]) == (4_812, 6_729)
    assert [row["cache_read_tokens"] for row in rows] == [0] * 6
    assert sum(row["cost"] for row in rows) == near(0.1183, 4)
    assert (rows[0]["cost"], rows[-1]["cost"]) == (near(0.0166, 4), near(0.0232, 4))
    times = [row["e2e_ns"] / S for row in rows]
    assert (min(times), max(times)) == (near(3.1, 1), near(5.6, 1))
    # Each call begins after the one before has ended: the stamp is that of the end.
    for before, now in pairwise(rows):
        assert now["start_ns"] >= before["start_ns"] + before["e2e_ns"]
    # The prompt of each call begins with the whole of the one before.
    for before, now in pairwise(shared):
        assert now["known"] >= before["blocks"] - 1


# -- SWE-agent ------------------------------------------------------------------------------------


def test_swe_agent_run_log(tmp_path):
    db = case_of(AGENTS / "multi-swe-bench__experiments", tmp_path / "swe.duckdb")
    with engine_of(db) as engine:
        (row,) = engine.rows(
            "SELECT count(*) AS n, count(DISTINCT session_id) AS instances, "
            "sum(input_fresh_tokens) AS input, sum(output_visible_tokens) AS output, "
            "sum(reported_cost_usd)::DOUBLE AS cost, count(e2e_ns) AS timed, min(model) AS model, "
            "max(turn) AS longest FROM request"
        )
        (growth,) = engine.rows(
            "SELECT session_id, count(*) AS n, max_by(input_fresh_tokens, turn) / "
            "min_by(input_fresh_tokens, turn) AS grown FROM request GROUP BY 1 "
            "ORDER BY n DESC LIMIT 1"
        )
        fits = engine.value(
            "SELECT max(abs(reported_cost_usd::DOUBLE - (input_fresh_tokens * 10 + "
            "output_visible_tokens * 30) / 1e6)) FROM request"
        )
    assert (row["n"], row["instances"], row["longest"]) == (124, 8, 20)
    assert (row["input"], row["output"]) == (1_222_939, 11_152)
    assert row["cost"] == near(12.60, 2)
    assert row["timed"] == 124
    assert row["model"] == "gpt-4o-2024-05-13"
    assert growth["n"] == 20
    assert growth["grown"] == near(1.21, 2)
    assert fits < 0.006  # 10 and 30 dollars a million tokens, rounded to cents


def test_swe_agent_trajectory():
    path = AGENTS / "SWE-agent__SWE-agent/pydicom__pydicom-1458.traj"
    rows = requests(path, "swe_agent_traj")
    assert len(rows) == 12
    assert all("input_fresh_tokens" not in row and "reported_cost_usd" not in row for row in rows)
    tags = [row for table, row in rows_of(read(READERS["swe_agent_traj"], path)) if "value" in row]
    told = {row["name"]: row["value"] for row in tags}
    assert told["session_tokens_sent"] == "122612"
    assert told["session_tokens_received"] == "1369"
    assert told["session_api_calls"] == "12"


# -- Inspect and ATIF -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "calls", "tokens", "own_s", "wall_s"),
    [
        ("2025-05-12T20-28-13-04-00_popularity.json", 3, (192, 6), 2.71, 3.07),
        ("2025-05-12T20-28-26-04-00_security-guide.json", 6, (959, 1_033), 21.21, 21.61),
    ],
)
def test_inspect_logs(name, calls, tokens, own_s, wall_s):
    rows = requests(AGENTS / "UKGovernmentBEIS__inspect_ai" / name, "inspect_log")
    assert len(rows) == calls
    names = ("input_fresh_tokens", "output_visible_tokens")
    assert tuple(sum(row[column] for row in rows) for column in names) == tokens
    own = sum(row["e2e_ns"] for row in rows) / S
    assert own == near(own_s, 2)
    assert own + sum(row["hold_ns"] for row in rows) / S == near(wall_s, 2)
    assert all(row["cache_read_tokens"] == 0 for row in rows)


def test_harbor_trajectories():
    folder = AGENTS / "Arize-ai__phoenix"
    rows = requests(folder / "multi_tool_trajectory.json", "atif_trajectory")
    read_tokens = [row["cache_read_tokens"] for row in rows]
    asked = [row["input_fresh_tokens"] + row["cache_read_tokens"] for row in rows]
    assert (asked, read_tokens) == ([1_850, 3_200, 4_100], [512, 1_850, 3_200])
    assert sum(read_tokens) / sum(asked) == near(0.608, 3)
    assert [row["e2e_ns"] / S for row in rows] == [2.84, 1.95, 4.2]
    for path in folder.glob("harbor_*.json"):
        assert all("cache_read_tokens" not in row for row in requests(path, "atif_trajectory"))
    parts = [
        requests(folder / f"harbor_terminus2_continuation{part}.json", "atif_trajectory")
        for part in ("", "_cont1")
    ]
    asked = [sum(row["input_fresh_tokens"] for row in part) for part in parts]
    assert asked == [682 + 750 + 820, 1_700 + 3 * 850]

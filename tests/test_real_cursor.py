"""Cursor's exports against real files, where these lie beside the checkout."""

import pytest
from helpers import case_of, engine_of
from shared import SHARED, needs_shared
from test_readers import READERS, read, rows_of

from analyzer.readers._file import InputFile
from analyzer.readers._find import pick

pytestmark = needs_shared

BILLS = SHARED / "traces/5-billing"
AUTO = BILLS / "gerryyang2025__my-tools"
DEMO = BILLS / "70hundert__cursor-usage-analytics"
USERS = BILLS / "mishka-k__cursor-usage-analytics/usage.csv"
AGENTS = BILLS / "weston-uribe__p-dev-harness-runner/sample-usage.csv"
PAGES = (
    SHARED / "traces/3-agents/kenn-io__agentsview/admin_usage_page.json",
    SHARED / "formats/samples/clients/agents/cursor_admin_usage_page.json",
)
SUMS = """
SELECT count(*) AS n, sum(cache_write_unknown_tokens) AS written, sum(input_fresh_tokens) AS fresh,
       sum(cache_read_tokens) AS read, sum(output_visible_tokens) AS output,
       sum(reported_cost_usd)::DOUBLE AS cost, count(reported_cost_usd) AS priced,
       count(*) FILTER (cache_write_unknown_tokens + input_fresh_tokens + cache_read_tokens
                        + output_visible_tokens = 0) AS empty,
       (SELECT count(*) FROM invoice_line) AS billed,
       (SELECT sum(amount)::DOUBLE FROM invoice_line) AS amount
FROM request
"""


def rows(path, reader):
    """Every row by table; the file must be claimed by ``reader`` and have no problem."""
    found = pick(InputFile(path, path.name).head)
    assert found.reader is READERS[reader], found.why
    batches = read(READERS[reader], path)
    assert [problem for batch in batches for problem in batch.problems] == []
    tables = {}
    for table, row in rows_of(batches):
        tables.setdefault(table, []).append(row)
    return tables


def test_a_month_within_a_plan(tmp_path):
    with engine_of(case_of(AUTO, tmp_path / "auto.duckdb")) as engine:
        (row,) = engine.rows(SUMS)
        (top,) = engine.rows(
            "SELECT strftime(make_timestamp(start_ns // 1000), '%m-%d') AS day, "
            "sum(reported_cost_usd)::DOUBLE AS cost FROM request GROUP BY 1 ORDER BY 2 DESC LIMIT 1"
        )
        kinds = engine.rows("SELECT DISTINCT value FROM request_tag WHERE name = 'kind'")
    assert (row["n"], row["empty"]) == (199, 2)
    assert (row["written"], row["fresh"]) == (4_444_063, 7_155)
    assert (row["read"], row["output"]) == (83_544_576, 699_697)
    asked = row["written"] + row["fresh"] + row["read"]
    assert row["read"] / asked == pytest.approx(0.949, abs=0.0005)
    assert row["cost"] == pytest.approx(30.67, abs=0.005)
    assert (top["day"], round(top["cost"], 2)) == ("11-28", 9.54)
    assert kinds == [{"value": "Included"}]
    assert row["billed"] == 0  # a subscription: these amounts were not charged


def test_words_in_place_of_an_amount(tmp_path):
    with engine_of(case_of(DEMO, tmp_path / "demo.duckdb")) as engine:
        (row,) = engine.rows(SUMS)
    assert (row["n"], row["priced"], row["billed"]) == (604, 500, 500)
    assert row["cost"] == pytest.approx(47.48, abs=0.005)
    assert row["amount"] == pytest.approx(47.48, abs=0.005)
    millions = [round(row[name] / 1e6, 2) for name in ("written", "fresh", "read")]
    assert millions == [0.42, 2.56, 2.08]


def test_requests_instead_of_costs():
    told = rows(USERS, "cursor_usage_csv")
    assert len(told["request"]) == 20
    assert sum(row.get("error") == "error" for row in told["request"]) == 2
    assert all("reported_cost_usd" not in row for row in told["request"])
    assert "invoice_line" not in told
    people = {row["value"] for row in told["request_tag"] if row["name"] == "user"}
    assert len(people) == 3
    assert not any("@" in name for name in people)


def test_agents_of_the_cloud():
    told = rows(AGENTS, "cursor_usage_csv")
    sessions = [row["session_id"] for row in told["request"]]
    assert sessions == ["bc-agent-planning-001"] * 2 + ["bc-agent-planreview-001"]
    assert "invoice_line" not in told


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_page_of_the_admin_api(path):
    told = rows(path, "cursor_usage_events")
    paid, planned = told["request"]
    assert paid["start_ns"] == 1_748_700_000_000_000_000
    assert (paid["input_fresh_tokens"], paid["cache_read_tokens"]) == (1_234, 8_901)
    assert float(paid["reported_cost_usd"]) == 0.1566
    assert (planned["cache_write_unknown_tokens"], planned["reported_cost_usd"]) == (4, 0)
    (line,) = told["invoice_line"]
    assert (line["record"], float(line["amount"])) == (1, 0.1566)

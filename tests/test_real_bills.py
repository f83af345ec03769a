"""Bills against real files, where these lie beside the checkout."""

from decimal import Decimal

import pytest
from helpers import engine_of
from shared import SHARED, needs_shared
from test_readers import READERS, read, rows_of

import analyzer
from analyzer.readers._file import InputFile
from analyzer.readers._find import pick

pytestmark = needs_shared

BILLS = SHARED / "traces/5-billing"
FOCUS = BILLS / "FinOps-Open-Cost-and-Usage-Spec__FOCUS-Sample-Data/focus_sample.csv"
VIRTUAL = (
    BILLS / "FinOps-Open-Cost-and-Usage-Spec__FOCUS_Spec/virtual_currency_pricing_model_a2.csv"
)
EA = BILLS / "finopsfoundation__focus_converters/sample-anonymous-ea-export-dataset.csv"
HEADERS = BILLS / "opencost__opencost"
CUR = BILLS / "project-koku__koku/data~test_cur.csv"
CUR_2 = BILLS / "project-koku__koku/aws~2022-07-01-alt-columns.csv"


def lines(path, reader):
    """Every line of the bill, and what was assumed; the file is ``reader``'s, without a problem."""
    found = pick(InputFile(path, path.name).head)
    assert found.reader is READERS[reader], found.why
    batches = read(READERS[reader], path)
    assert [problem for batch in batches for problem in batch.problems] == []
    assumed = {note for batch in batches for note in batch.assumed}
    return [row for table, row in rows_of(batches) if table == "invoice_line"], assumed


def total(rows, name="amount"):
    return sum((row.get(name, Decimal(0)) for row in rows), Decimal(0))


def near(value):
    return pytest.approx(Decimal(value), abs=Decimal("0.0000005"))


def test_focus_sample():
    rows, assumed = lines(FOCUS, "focus_costs")
    assert len(rows) == 1_000
    assert total(rows) == near("20.520227")
    assert total(rows, "effective_amount") == near("14.976514")
    assert sum(row["amount"] < 0 for row in rows) == 13
    assert {row["currency"] for row in rows} == {"USD"}
    assert not any(row.get("token_kind") or row.get("model") for row in rows)
    assert not any("NULL" in map(str, row.values()) for row in rows)
    assert assumed == set()


def test_a_price_in_a_currency_of_the_vendor_is_no_money():
    rows, assumed = lines(VIRTUAL, "focus_costs")
    assert (len(rows), total(rows), total(rows, "effective_amount")) == (3, 0, 1_230)
    assert {row["currency"] for row in rows} == {"USD"}
    assert rows[0]["period_start_ns"] == 1_743_465_600_000_000_000  # 4/1/25
    assert any("currency of the vendor's own" in note for note in assumed)
    assert any("month first" in note for note in assumed)


def test_azure_ea_export():
    rows, _ = lines(EA, "azure_costs")
    assert len(rows) == 27
    assert total(rows) == near("1.261369")
    assert {row["currency"] for row in rows} == {"CAD"}
    assert not any(row.get("token_kind") for row in rows)


@pytest.mark.parametrize(
    ("name", "amount", "currency", "item"),
    [
        ("Enterprise.csv", "0", "CAD", "E4_v3/E4s_v3"),
        ("EnterpriseCamel.csv", "0.012", "USD", "Dynamic_Public_IP"),
        ("German.csv", "0.075", "USD", "Included_LB_Rules_and_Outbound_Rules"),
    ],
)
def test_azure_headers(name, amount, currency, item):
    (row,), _ = lines(HEADERS / name, "azure_costs")
    assert (row["amount"], row["currency"], row["item"]) == (Decimal(amount), currency, item)
    assert row["period_start_ns"] == 1_612_224_000_000_000_000 or name == "EnterpriseCamel.csv"


def test_cur_of_both_spellings():
    rows, _ = lines(CUR, "aws_cur")
    assert len(rows) == 19
    assert total(rows) == near("0.08275")
    assert {row["charge"] for row in rows} == {"usage"}
    (first, second), _ = lines(CUR_2, "aws_cur")
    assert first["item"] == second["item"] == "SoftwareUsage:t2.nano"
    assert second["period_start_ns"] - first["period_start_ns"] == 3_600_000_000_000


def test_a_packed_twin_counts_once(tmp_path):
    db = tmp_path / "cur.duckdb"
    files = analyzer.ingest(str(db), [str(CUR.parent)]).files
    assert [file.outcome for file in files] == ["read", "read", "known"]
    with engine_of(str(db)) as engine:
        (row,) = engine.rows("SELECT count(*) AS n, sum(amount) AS amount FROM invoice_line")
    assert row["n"] == 19 + 2
    assert row["amount"] == near("0.08275")

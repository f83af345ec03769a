"""The committed sample report is what this commit makes of the sample incident."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import analyzer

ROOT = Path(__file__).parents[1]
SAMPLE = ROOT / "reports" / "sample-incident.html"
_PICTURE = re.compile(r"<svg.*?</svg>", re.DOTALL)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sample")
    db = str(folder / "case.duckdb")
    analyzer.ingest(db, [str(ROOT / "sample_traces" / "incident")])
    return analyzer.write_report(db, folder / "report.html").read_text(encoding="utf-8")


def _without_pictures(text):
    # Text in pictures is measured with the machine's fonts; everything else is the same bytes.
    return _PICTURE.sub("<svg/>", text)


def test_sample_report_is_current(page, request):
    if request.config.getoption("--refresh-golden"):
        SAMPLE.write_text(page, encoding="utf-8")
    assert _without_pictures(SAMPLE.read_text(encoding="utf-8")) == _without_pictures(page), (
        "run `make golden` and look at the report"
    )


def test_report_is_small_and_holds_its_own_data(page):
    assert len(page) < 3_000_000
    (data,) = re.findall(
        r'<script type="application/json" id="report-data">(.*?)</script>', page, re.S
    )
    assert json.loads(data)


def test_report_tells_the_incident(page):
    data = json.loads(re.search(r'id="report-data">(.*?)</script>', page, re.S).group(1))
    text = json.dumps(data)
    # Truth of the generator, printed by sample_traces/make_incident.py.
    assert "59 requests waited 4.25 s" in text
    assert "47 streamed answers (route edge-eu)" in text

"""The report in a real browser: quiet console, phone width, readable in the dark."""

from __future__ import annotations

import json
import os
from itertools import pairwise
from pathlib import Path

import examples_of_results as ex
import pytest
from browser import Browser, chromium

from analyzer.report.html import render

pytestmark = pytest.mark.skipif(chromium() is None, reason="no chromium on this machine")

REPORTS = {"rich": ex.REPORT, "empty": ex.EMPTY, "quiet": ex.QUIET, "evil": ex.hostile_report()}

# Contrast of every element that holds text of its own against the nearest painted background.
CONTRAST = """
(() => {
  const rgb = text => String(text).match(/[\\d.]+/g).map(Number);
  const light = c => c.slice(0, 3).map(v => v / 255)
    .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = e => {
    for (; e; e = e.parentElement) {
      const c = rgb(getComputedStyle(e).backgroundColor);
      if (c.length < 4 || c[3] > 0) return c;
    }
    return [255, 255, 255];
  };
  let worst = [99, ""];
  for (const e of document.querySelectorAll("body *:not(script, svg)")) {
    if (![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim())) continue;
    const style = getComputedStyle(e);
    const ink = e instanceof SVGElement ? style.fill : style.color;
    const [a, b] = [light(rgb(ink)), light(behind(e))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < worst[0]) worst = [ratio, e.tagName + " " + e.className + " " + e.textContent];
  }
  return worst;
})()
"""


@pytest.fixture(scope="module")
def browser():
    with Browser() as page:
        yield page


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reports")
    for name, report in REPORTS.items():
        (folder / f"{name}.html").write_text(render(report), encoding="utf-8")
    return folder


@pytest.mark.parametrize("name", REPORTS)
@pytest.mark.parametrize("width", [390, 768, 1200])
def test_no_error_no_request_no_overflow(browser, pages, name, width):
    browser.errors.clear()
    browser.requests.clear()
    browser.open(pages / f"{name}.html", width)
    browser.value("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert browser.value("document.documentElement.scrollWidth") <= width
    assert browser.errors == []
    assert [url for url in browser.requests if not url.startswith(("file:", "data:"))] == []
    assert browser.value("typeof JSON.parse(document.getElementById('report-data').text)")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_text_stands_out(browser, pages, dark):
    browser.open(pages / "rich.html", 1200, dark=dark)
    ratio, where = browser.value(CONTRAST)
    assert ratio >= 4.5, where
    page = browser.value("getComputedStyle(document.body).backgroundColor")
    assert (page == "rgb(255, 255, 255)") is not dark


def test_the_narrow_picture_replaces_the_wide_one(browser, pages):
    shown = "[...document.querySelectorAll('#time .chart')].map(e => e.offsetWidth > 0)"
    browser.open(pages / "rich.html", 1200)
    assert browser.value(shown) == [True, False]
    browser.open(pages / "rich.html", 390)
    assert browser.value(shown) == [False, True]


def test_only_the_shown_picture_is_read_out(browser, pages):
    """The hidden picture is hidden from a screen reader too."""
    browser.open(pages / "rich.html", 390)
    pictures = browser.value(
        "[...document.querySelectorAll('#time .chart')].filter(e => e.checkVisibility()).length"
    )
    assert pictures == 1


def test_headings_are_in_order(browser, pages):
    for name in REPORTS:
        browser.open(pages / f"{name}.html", 1200)
        levels = browser.value(
            "[...document.querySelectorAll('h1,h2,h3,h4')].map(e => Number(e.tagName[1]))"
        )
        assert levels[0] == 1
        assert all(b - a <= 1 for a, b in pairwise(levels))


def test_the_page_is_complete_without_scripts(browser, pages):
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(pages / "rich.html", 1200)
    finally:
        browser.call("Emulation.setScriptExecutionDisabled", value=False)
    text = browser.value("document.body.innerText")
    for words in ("The incident", "What to do now", "Checked and clear", "Sources and method"):
        assert words in text
    assert browser.value("document.querySelectorAll('#time .chart svg').length") == 2
    assert browser.value("document.querySelectorAll('.finding .chart svg').length") == 2


def test_pointing_reads_a_time_and_dragging_gives_its_command(browser, pages):
    browser.open(pages / "rich.html", 1200)
    browser.value("document.querySelector('#time .chart svg').scrollIntoView({block: 'end'})")
    left, top, scale = browser.value(
        "(() => { const s = document.querySelector('#time .chart svg');"
        "const b = s.getBoundingClientRect();"
        "return [b.left, b.bottom, b.width / s.viewBox.baseVal.width] })()"
    )
    # The picture spans an hour from 14:10 on; its axis is 828 pixels from 56 on.
    at = [left + scale * (56 + 828 * minute / 60) for minute in (20.5, 42.5)]

    def mouse(kind: str, x: float) -> None:
        told = {"x": x, "y": top - 40, "button": "left", "clickCount": 1}
        browser.call("Input.dispatchMouseEvent", type=kind, **told)

    mouse("mouseMoved", at[0])
    read = browser.value("document.querySelector('.readout').innerText")
    assert "From\n2026-09-17T14:30:00Z" in read
    assert "p50 4.72 s" in read
    mouse("mousePressed", at[0])
    mouse("mouseMoved", at[1])
    mouse("mouseReleased", at[1])
    command = browser.value("document.querySelector('.picked').innerText")
    window = "--since 2026-09-17T14:30:00Z --until 2026-09-17T14:53:00Z"
    assert command == f"For the marked window alone: analyze report {window}"
    assert browser.errors == []


def _axe() -> Path | None:
    named = os.environ.get("AXE_JS")
    beside = Path(__file__).parents[1] / "node_modules" / "axe-core" / "axe.min.js"
    return next((path for path in (Path(named or ""), beside) if path.is_file()), None)


@pytest.mark.parametrize("name", REPORTS)
@pytest.mark.parametrize(("width", "dark"), [(1200, False), (1200, True), (390, False)])
def test_axe_finds_no_serious_fault(browser, pages, name, width, dark):
    axe = _axe()
    if axe is None:
        pytest.skip("no axe-core: npm install axe-core, or AXE_JS=/path/to/axe.min.js")
    browser.open(pages / f"{name}.html", width, dark=dark)
    browser.value("document.querySelectorAll('details').forEach(d => d.open = true)")
    browser.value(axe.read_text(encoding="utf-8") + "; 0")
    told = browser.later("axe.run(document).then(r => JSON.stringify(r.violations))")
    faults = [
        (item["id"], item["impact"], [node["html"][:200] for node in item["nodes"]][:3])
        for item in json.loads(told)
        if item["impact"] in {"serious", "critical"}
    ]
    assert faults == []


def test_prints_as_light_pages_with_its_picture(browser, pages):
    browser.open(pages / "rich.html", 1200, dark=True)
    pdf = browser.pdf()
    assert pdf.startswith(b"%PDF")
    assert 2 <= pdf.count(b"/Type /Page\n") + pdf.count(b"/Type /Page ") <= 30
    browser.media("print")
    try:
        page = browser.value("getComputedStyle(document.body).backgroundColor")
        shown = browser.value(
            "[...document.querySelectorAll('#time .chart')].map(e => e.offsetWidth > 0)"
        )
    finally:
        browser.media("")
    assert page == "rgb(255, 255, 255)"
    assert shown == [True, False]

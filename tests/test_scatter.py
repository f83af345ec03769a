"""The picture of a finding: points in the units that read best, sampled, and said in numbers."""

from __future__ import annotations

import re
from dataclasses import replace

import examples_of_results as ex
import pytest
from examples_over_time import START, WAITS, S, hostile_chart
from test_report import page_of

from analyzer.report.charts import points_svg
from analyzer.report.html import render
from analyzer.report.scatter import scatter, summary


def test_points_stand_in_the_unit_that_reads_best():
    picture = scatter(WAITS)
    assert picture is not None
    assert picture.y.title == "Queue wait, seconds"
    assert picture.x.timed
    # The rest is drawn first, what was found on top of it.
    assert [name for name, _ in picture.series] == ["others", "waited at the limit"]
    found = [row for row in picture.rows if row["series"] == 1]
    assert len(found) == 22
    assert found[0]["y"] == pytest.approx(4.02)
    assert found[0]["x"] == (START + 1200 * S) / 1e6


def test_a_series_is_a_shape_and_a_word():
    picture = scatter(WAITS)
    assert picture is not None
    svg = points_svg(picture, width=600)
    drawn = re.findall(r">([^<>]+)</text>", svg)
    assert {"others", "waited at the limit", "Queue wait, seconds", "UTC"} <= set(drawn)


def test_numbers_say_what_the_picture_shows():
    table = summary(WAITS)
    assert table.rows[0][:2] == ("waited at the limit", "22")
    assert table.rows[0][4:] == ("4.02 s", "4.03 s", "4.04 s")
    assert table.raw[0][4] == "4020000000 ns"


def test_a_sample_says_that_it_is_one():
    text = " ".join(page_of(ex.REPORT).text.split())
    assert "Queue wait of each request; a sample of 60 of 480" in text


def test_nothing_to_draw_draws_nothing():
    assert scatter(replace(WAITS, rows=())) is None
    gone = replace(WAITS, rows=({"x": 1.0, "y": None, "series": "others"},))
    assert scatter(gone) is None


def test_one_point_and_hostile_names():
    picture = scatter(hostile_chart())
    assert picture is not None
    points_svg(picture, width=300)
    finding = replace(ex.QUEUE, chart=hostile_chart())
    report = replace(ex.REPORT, findings=replace(ex.FINDINGS, found=(finding,)))
    assert "<script>alert" not in render(report)

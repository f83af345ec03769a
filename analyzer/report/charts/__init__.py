"""Static pictures: the only package that knows altair and vl-convert."""

from analyzer.report.charts.device import device_bars_svg, device_lanes_svg
from analyzer.report.charts.lanes import plot_of, timeline_png, timeline_svg
from analyzer.report.charts.points import points_svg
from analyzer.report.charts.stack import stack_svg
from analyzer.report.charts.waterfall import waterfall_svg

__all__ = [
    "device_bars_svg", "device_lanes_svg", "plot_of", "points_svg", "stack_svg", "timeline_png",
    "timeline_svg", "waterfall_svg",
]  # fmt: skip

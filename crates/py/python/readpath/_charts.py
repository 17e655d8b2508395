# SPDX-License-Identifier: MIT OR Apache-2.0
"""Charts of a result document: as tables, and drawn."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from . import _frame

if TYPE_CHECKING:
    from ._frame import Library

#: Columns of a chart as a table.
_COLUMNS = ("series", "style", "x", "y", "low", "high")
#: Colours of series in the report, on paper.
_COLOURS = ("#0072b2", "#c94f00", "#007f5f", "#a8487f", "#856600", "#555b61", "#4b5fd0", "#7a3b12")
#: A series with more points than this has no markers.
_MARKED = 40
#: Names along an axis of a heat map, at most.
_TICKS = 8


class Chart:
    """A chart of results, as the report draws it."""

    def __init__(self, chart: dict[str, Any]) -> None:
        #: Name of the chart in its document.
        self.id: str = chart["id"]
        #: Heading.
        self.title: str = chart["title"]
        #: ``bars``, ``lines``, ``step`` (a value that holds until the next point), or ``heat`` (a row of cells for each
        #: series, the first lowest).
        self.kind: str = chart["kind"]
        #: Names of the axes with their units.
        self.x_label: str = chart["x_label"]
        self.y_label: str = chart["y_label"]
        #: What the rows of a heat map are, with its unit; ``y_label`` is what the colours say. Empty for others.
        self.series_label: str = chart.get("series_label", "")
        #: Whether they are logarithmic.
        self.x_log: bool = chart["x_log"]
        self.y_log: bool = chart["y_log"]
        #: Each with ``name``, ``style`` (``published``, ``simulated`` or ``plain``) and ``points``: ``x``, ``y``, and
        #: in some ``interval`` with ``low`` and ``high``.
        self.series: list[dict[str, Any]] = chart["series"]
        #: A sentence or two below the chart.
        self.caption: str = chart["caption"]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """A row for each point: series, style, x, y, and the ends of its interval, if it has one."""
        rows = []
        for series in self.series:
            for point in series["points"]:
                interval = point.get("interval") or {"low": None, "high": None}
                rows.append({"series": series["name"], "style": series["style"], **point, **interval})
        return rows

    def to_frame(self, library: Library | None = None) -> Any:
        """The points as a table of pandas, or else of polars: series, style, x, y, low, high."""
        return _frame.of_rows(self.rows, _COLUMNS, library)

    def plot(self, axes: Any = None) -> Any:
        """Draws it with matplotlib, on ``axes`` or on a figure of its own. Returns the axes."""
        if axes is None:
            try:
                from matplotlib import pyplot
            except ModuleNotFoundError:
                raise ImportError("plot() needs matplotlib: pip install matplotlib") from None
            # As wide for its height as in the report.
            axes = pyplot.subplots(figsize=(7.2, 3.9), layout="constrained")[1]
        if self.kind == "heat":
            self._by_cell(axes)
            return axes
        named = any(isinstance(point["x"], str) for series in self.series for point in series["points"])
        if self.kind == "bars" or named:
            self._by_name(axes)
        else:
            self._by_number(axes)
        axes.set_title(self.title)
        axes.set_xlabel(self.x_label)
        axes.set_ylabel(self.y_label)
        if self.y_log:
            axes.set_yscale("log")
        elif self.kind == "bars":
            axes.axhline(0.0, color="#50565c", linewidth=0.8)
        axes.grid(axis="y", color="#e4e7ea")
        axes.set_axisbelow(True)
        if any(series["name"] for series in self.series):
            axes.legend()
        return axes

    def _by_name(self, axes: Any) -> None:
        names = list(dict.fromkeys(_name(point["x"]) for series in self.series for point in series["points"]))
        width = 0.8 / max(len(self.series), 1)
        for i, (series, look) in enumerate(zip(self.series, self._looks(), strict=True)):
            bars = self.kind == "bars"
            offset = (i - (len(self.series) - 1) / 2) * width if bars else 0.0
            x = [names.index(_name(point["x"])) + offset for point in series["points"]]
            y = [point["y"] for point in series["points"]]
            if bars:
                hollow = {"facecolor": "white", "hatch": "///"} if look["published"] else {"facecolor": look["color"]}
                axes.bar(x, y, width, edgecolor=look["color"], label=series["name"], **hollow)
            else:
                self._curve(axes, x, y, series, look)
            _intervals(axes, x, series)
        axes.set_xticks(range(len(names)), names)

    def _by_number(self, axes: Any) -> None:
        for series, look in zip(self.series, self._looks(), strict=True):
            x = [point["x"] for point in series["points"]]
            self._curve(axes, x, [point["y"] for point in series["points"]], series, look)
            _intervals(axes, x, series)
        if self.x_log:
            axes.set_xscale("log")

    def _by_cell(self, axes: Any) -> None:
        names = list(dict.fromkeys(_name(point["x"]) for series in self.series for point in series["points"]))
        cells = [[float("nan")] * len(names) for _ in self.series]
        for row, series in zip(cells, self.series, strict=True):
            for point in series["points"]:
                row[names.index(_name(point["x"]))] = point["y"]
        drawn = axes.pcolormesh(range(len(names) + 1), range(len(cells) + 1), cells, cmap="Blues")
        axes.figure.colorbar(drawn, ax=axes, label=self.y_label)
        step = -(-len(names) // _TICKS)
        axes.set_xticks([at + 0.5 for at in range(0, len(names), step)], names[::step])
        step = -(-len(cells) // _TICKS)
        axes.set_yticks(
            [at + 0.5 for at in range(0, len(cells), step)], [series["name"] for series in self.series][::step]
        )
        axes.set_title(self.title)
        axes.set_xlabel(self.x_label)
        axes.set_ylabel(self.series_label)

    def _curve(self, axes: Any, x: list[float], y: list[float], series: dict[str, Any], look: dict[str, Any]) -> None:
        drawn: dict[str, Any] = {"color": look["color"], "label": series["name"]}
        if self.kind == "step":
            drawn["drawstyle"] = "steps-post"
        elif len(x) <= _MARKED:
            drawn |= {"marker": "o", "markerfacecolor": "white" if look["published"] else look["color"]}
        axes.plot(x, y, linestyle=look["line"], **drawn)

    def _looks(self) -> list[dict[str, Any]]:
        """The n-th published and the n-th simulated series have one colour, and others those behind."""
        count = Counter(series["style"] for series in self.series)
        behind = max(count["published"], count["simulated"])
        place = {"published": 0, "simulated": 0, "plain": behind, "points": behind + count["plain"]}
        looks = []
        for style in (series["style"] for series in self.series):
            line = {"published": "--", "points": "none"}.get(style, "-")
            color = _COLOURS[place[style] % len(_COLOURS)]
            looks.append({"color": color, "published": style == "published", "line": line})
            place[style] += 1
        return looks

    def __repr__(self) -> str:
        return f"<readpath.Chart {self.id!r}: {self.title}>"


def _name(x: str | float) -> str:
    return x if isinstance(x, str) else f"{x:g}"


def _intervals(axes: Any, x: list[float], series: dict[str, Any]) -> None:
    found = [(at, point) for at, point in zip(x, series["points"], strict=True) if point.get("interval")]
    if found:
        y = [point["y"] for _, point in found]
        below = [point["y"] - point["interval"]["low"] for _, point in found]
        above = [point["interval"]["high"] - point["y"] for _, point in found]
        axes.errorbar([at for at, _ in found], y, [below, above], fmt="none", color="#1b1d1f", capsize=3)

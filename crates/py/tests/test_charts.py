# SPDX-License-Identifier: MIT OR Apache-2.0
"""Charts as tables and drawn, pages, and tables in Parquet."""

import sys
from pathlib import Path
from typing import Any

import matplotlib
import pandas
import polars
import pytest
import readpath
from conftest import LIBRARIES, Command

matplotlib.use("agg")

CHART: dict[str, Any] = {
    "id": "both",
    "title": "Published and simulated",
    "kind": "lines",
    "x_label": "range, MiB",
    "y_label": "throughput, MiB/s",
    "x_log": True,
    "y_log": False,
    "series": [
        {"name": "paper", "style": "published", "points": [{"x": 1.0, "y": 2.0}, {"x": 10.0, "y": 3.0}]},
        {"name": "bound", "style": "plain", "points": [{"x": 1.0, "y": 4.0}]},
        {"name": "model", "style": "simulated",
         "points": [{"x": 1.0, "y": 2.5, "interval": {"low": 2.0, "high": 3.5}}, {"x": 10.0, "y": 3.0}]},
    ],
    "caption": "",
}


def test_distributions_of_latency_as_tables() -> None:
    results = readpath.fio("small.fio")
    assert [chart.id for chart in results.charts][:3] == [
        "mean_read_latency_mean", "latency", "throughput_over_time: small"
    ]
    for library in LIBRARIES:
        frame = results.latency(library)
        assert type(frame).__module__.startswith(library)
        assert list(frame.columns) == ["chart", "variant", "latency_us", "percent"]
        for variant in "HPB off", "HPB dcm":
            of = [row for row in results.chart("latency").rows if row["series"] == variant]
            assert of[-1]["y"] == 100.0 and all(a["x"] < b["x"] and a["y"] < b["y"] for a, b in zip(of, of[1:]))
            median = next(row["x"] for row in of if row["y"] >= 50.0)
            assert median == pytest.approx(results.value("read_latency_p50", variant=variant), rel=0.02)
            assert [row["x"] for row in of] == list(frame["latency_us"][[v == variant for v in frame["variant"]]]
                                                    if library == "pandas" else
                                                    frame.filter(polars.col("variant") == variant)["latency_us"])
    with pytest.raises(readpath.Error, match="^speed: there is no such chart; there are: mean_read_latency_mean, "):
        results.chart("speed")


def test_a_heat_map_is_drawn_cell_by_cell() -> None:
    point = {"x": 1.0, "y": 5.0}
    rows = [{"name": "low", "style": "plain", "points": [point, {"x": 2.0, "y": 7.0}]},
            {"name": "high", "style": "plain", "points": [point]}]
    chart = readpath.Chart(CHART | {"kind": "heat", "series_label": "address, GiB", "series": rows})
    axes = chart.plot()
    (cells,) = axes.collections
    assert cells.get_array().filled(-1).tolist() == [[5.0, 7.0], [5.0, -1]]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["low", "high"]
    assert axes.get_ylabel() == "address, GiB"


def test_a_chart_as_a_table() -> None:
    frame = readpath.Chart(CHART).to_frame()
    assert list(frame.columns) == ["series", "style", "x", "y", "low", "high"]
    assert list(frame["series"]) == ["paper", "paper", "bound", "model", "model"]
    assert list(frame["low"].fillna(-1)) == [-1, -1, -1, 2.0, -1]


def test_charts_are_drawn_as_in_the_report() -> None:
    axes = readpath.Chart(CHART).plot()
    assert (axes.get_title(), axes.get_xlabel(), axes.get_xscale()) == (CHART["title"], CHART["x_label"], "log")
    paper, bound, model = axes.get_lines()[:3]
    # The pair has one colour, and what is published is dashed and hollow.
    assert (paper.get_color(), bound.get_color(), model.get_color()) == ("#0072b2", "#c94f00", "#0072b2")
    assert (paper.get_linestyle(), model.get_linestyle(), paper.get_markerfacecolor()) == ("--", "-", "white")
    assert [list(line.get_ydata()) for line in (paper, model)] == [[2.0, 3.0], [2.5, 3.0]]
    [bar] = axes.containers
    assert bar.has_yerr
    axes.figure.savefig("chart.svg")
    bars = readpath.Chart({**CHART, "kind": "bars"})
    axes = bars.plot(matplotlib.pyplot.subplots()[1])
    assert [text.get_text() for text in axes.get_xticklabels()] == ["1", "10"]
    assert [patch.get_height() for patch in axes.patches] == [2.0, 3.0, 4.0, 2.5, 3.0]
    assert axes.patches[0].get_hatch() and not axes.patches[4].get_hatch()
    step = readpath.fio("small.fio").chart("latency").plot()
    assert [line.get_drawstyle() for line in step.get_lines()] == ["steps-post"] * 2
    names = [{**series, "points": [{"x": "1 GB", "y": 1.0}]} for series in CHART["series"]]
    axes = readpath.Chart({**CHART, "series": names}).plot()
    assert [text.get_text() for text in axes.get_xticklabels()] == ["1 GB"]


def test_pages_are_those_of_the_command(command: Command) -> None:
    results = readpath.fio("small.fio")
    results.to_json("result.json")
    results.report("ours.html")
    command("report", "result.json", "--output", "theirs.html")
    assert Path("ours.html").read_bytes() == Path("theirs.html").read_bytes()
    study = readpath.sweep("small.toml", out="study")
    assert study.results is not None
    study.results.report("ours.html")
    assert Path("study/report.html").read_bytes() == Path("ours.html").read_bytes()
    assert Path("study/result.json").read_text() == study.results._text


def test_tables_in_parquet(monkeypatch: pytest.MonkeyPatch) -> None:
    results, study = readpath.fio("small.fio"), readpath.sweep("small.toml")
    results.to_parquet("rows.parquet")
    study.to_parquet("points.parquet")
    assert pandas.read_parquet("rows.parquet").equals(results.to_frame("pandas"))
    assert pandas.read_parquet("points.parquet").equals(study.to_frame("pandas"))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    study.to_parquet("other.parquet")
    assert polars.read_parquet("other.parquet").equals(study.to_frame("polars"))
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(ImportError, match=r"^to_parquet\(\) needs pandas with pyarrow, or polars: pip install "):
        results.to_parquet("none.parquet")
    assert not Path("none.parquet").exists()
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"^plot\(\) needs matplotlib: pip install matplotlib$"):
        results.charts[0].plot()

# SPDX-License-Identifier: MIT OR Apache-2.0
"""What functions of this package return."""

from __future__ import annotations

import json
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _frame, _readpath
from ._charts import Chart
from ._readpath import Error

if TYPE_CHECKING:
    from ._frame import Library
    from ._given import PathLike
    from ._readpath import MapCurve, Requests, Swept

#: Columns of a table of results.
_COLUMNS = ("case", "variant", "metric", "unit", "simulated", "published", "error_percent", "origin")


class Device(dict[str, Any]):
    """The keys of a device file, in nested dictionaries. :func:`readpath.fio` takes it as a device."""

    #: The device file as a text.
    toml: str

    def __init__(self, keys: dict[str, Any], toml: str, given: tuple[str, dict[str, Any]]) -> None:
        super().__init__(keys)
        self.toml = toml
        self._given = given


class Results:
    """The results of runs: a `result document <docs/formats/results.md>`_ and views of it."""

    def __init__(self, text: str) -> None:
        self._text = text

    @cached_property
    def document(self) -> dict[str, Any]:
        """The whole document."""
        document: dict[str, Any] = json.loads(self._text)
        return document

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The numbers: a row for each metric of each case and variant."""
        rows: list[dict[str, Any]] = self.document["rows"]
        return rows

    @property
    def verdict(self) -> str:
        """The answer in one to three sentences, a line each; empty where nothing was asked."""
        return "\n".join(note["text"] for note in self.document.get("verdict", []))

    @property
    def notes(self) -> list[str]:
        """What a reader must know to understand the numbers."""
        return [note["text"] for note in self.document["notes"]]

    def value(self, metric: str, *, case: str | None = None, variant: str | None = None) -> float:
        """The value of a metric, in the unit of its row. Case and variant need not be said where there is only one."""
        found = [
            row
            for row in self.rows
            if row["metric"] == metric and case in (None, row["case"]) and variant in (None, row["variant"])
        ]
        if len(found) == 1:
            return float(found[0]["simulated"])
        if found:
            there = "; ".join(f"case={row['case']!r}, variant={row['variant']!r}" for row in found)
            raise Error(f"{metric}: there are {len(found)} rows; choose one: {there}")
        raise Error(f"{metric}: there is no such row")

    def to_frame(self, library: Library | None = None) -> Any:
        """The rows as a table of pandas, or else of polars."""
        return _frame.of_rows(self.rows, _COLUMNS, library)

    @cached_property
    def charts(self) -> list[Chart]:
        """The charts of the report."""
        return [Chart(chart) for chart in self.document["charts"]]

    def chart(self, id: str) -> Chart:
        """The chart with this name."""
        for chart in self.charts:
            if chart.id == id:
                return chart
        raise Error(f"{id}: there is no such chart; there are: {', '.join(chart.id for chart in self.charts)}")

    def latency(self, library: Library | None = None) -> Any:
        """Distributions of latency, as a table of pandas or else of polars: percent of requests that took no longer."""
        rows = [
            {"chart": chart.title, "variant": row["series"], "latency_us": row["x"], "percent": row["y"]}
            for chart in self.charts
            if chart.id == "latency" or chart.id.removeprefix("latency_").isdigit()
            for row in chart.rows
        ]
        return _frame.of_rows(rows, ("chart", "variant", "latency_us", "percent"), library)

    def to_parquet(self, path: PathLike) -> None:
        """Writes the rows as a table in Parquet, with pandas and pyarrow, or else with polars."""
        _frame.to_parquet(self.to_frame, path)

    def report(self, path: PathLike) -> None:
        """Writes the page that the command writes as ``report.html``."""
        Path(path).write_text(_readpath.page(self._text), encoding="utf-8", newline="\n")

    def to_csv(self, path: PathLike) -> None:
        """Writes the rows as a table, as ``--csv`` of the command."""
        Path(path).write_text(_readpath.csv(self._text), encoding="utf-8", newline="\n")

    def to_json(self, path: PathLike) -> None:
        """Writes the document, as ``result.json`` of the command."""
        Path(path).write_text(self._text, encoding="utf-8", newline="\n")

    def __repr__(self) -> str:
        return f"<readpath.Results {self.document['title']!r}: {len(self.rows)} rows, {len(self.notes)} notes>"


class Sweep:
    """What a folder holds of a study."""

    def __init__(self, swept: Swept) -> None:
        #: Name of the study.
        self.study: str = swept["study"]
        #: The folder.
        self.out: Path = swept["out"]
        #: Points of the study.
        self.count: int = swept["count"]
        #: Points that the folder holds, those that failed included.
        self.done: int = swept["done"]
        #: Points that this call made.
        self.made: int = swept["made"]
        #: Points that failed.
        self.failed: int = swept["failed"]
        #: ``points.csv``, the table of points with figures; None while points are missing.
        self.points: Path | None = swept["points"]
        #: ``failed.csv``, the table of those that failed, and why; None if none did.
        self.failures: Path | None = swept["failures"]
        #: What the study shows as a whole, and how much each factor matters; None while points are missing, and of
        #: :func:`readpath.merge`.
        self.results: Results | None = None if swept["json"] is None else Results(swept["json"])

    def to_frame(self, library: Library | None = None) -> Any:
        """The points as a table of pandas, or else of polars."""
        if self.points is None:
            raise Error(f"{self.out}: holds {self.done} of {self.count} points; merge() makes a table of all shards")
        return _frame.of_csv(self.points, library)

    def to_parquet(self, path: PathLike) -> None:
        """Writes the points as a table in Parquet, with pandas and pyarrow, or else with polars."""
        _frame.to_parquet(self.to_frame, path)

    def __repr__(self) -> str:
        return f"<readpath.Sweep {self.study!r}: {self.done} of {self.count} points, {self.failed} failed>"


class Trace:
    """A block trace as NumPy arrays, a value for each request, in order of time."""

    def __init__(self, requests: Requests) -> None:
        numpy = numpy_for("trace()")
        #: The format that it has.
        self.format: str = requests["format"]
        #: Remarks on reading it, with its format.
        self.notes: list[str] = requests["notes"]
        #: Nanoseconds since the first request.
        self.time_ns = numpy.frombuffer(requests["time_ns"], dtype=numpy.int64).copy()
        #: ``R`` for reads, ``W`` for writes, ``D`` for trims, ``F`` for flushes; ``WF`` is a write with force unit
        #: access, ``FW`` one with a flush before it.
        self.op = numpy.frombuffer(requests["op"], dtype="S3").astype("U3")
        #: The first byte.
        self.offset_bytes = numpy.frombuffer(requests["offset_bytes"], dtype=numpy.int64).copy()
        #: Length in bytes.
        self.size_bytes = numpy.frombuffer(requests["size_bytes"], dtype=numpy.int64).copy()
        #: The process; -1 where the trace has none.
        self.process = numpy.frombuffer(requests["process"], dtype=numpy.int64).copy()
        #: How long it took, in nanoseconds; NaN where the trace has none.
        self.latency_ns = numpy.frombuffer(requests["latency_ns"], dtype=numpy.float64).copy()

    def to_frame(self, library: Library | None = None) -> Any:
        """The requests as a table of pandas, or else of polars. As CSV it is a trace that is recognised."""
        columns = {name: getattr(self, name) for name in ("time_ns", "op", "offset_bytes", "size_bytes")}
        known = ~numpy_for("to_frame()").isnan(self.latency_ns)
        columns["process"] = _frame.integers(self.process, self.process >= 0, library)
        columns["latency_ns"] = _frame.integers(self.latency_ns, known, library)
        return _frame.of_columns(columns, library)

    def __len__(self) -> int:
        return len(self.time_ns)

    def __repr__(self) -> str:
        return f"<readpath.Trace of {len(self)} requests, format {self.format}>"


class Curve:
    """How often a map of any size would hit: at each point where that rises, memory and hits."""

    def __init__(self, curve: MapCurve) -> None:
        numpy = numpy_for("mrc()")
        #: The kind of map, in words.
        self.map: str = curve["map"]
        #: Memory of one of its pages, in bytes.
        self.page_bytes: int = curve["page_bytes"]
        #: Accesses to map pages.
        self.accesses: int = curve["accesses"]
        #: Different map pages.
        self.pages: int = curve["pages"]
        #: The smallest map beyond which no doubling of memory gains a point, in bytes; None if nothing hits.
        self.knee: int | None = curve["knee"]
        #: Memory in bytes.
        self.memory = numpy.frombuffer(curve["memory"], dtype=numpy.int64).copy()
        #: Share of accesses that hit so much memory, in percent.
        self.hits = numpy.frombuffer(curve["hits"], dtype=numpy.float64).copy()

    def __repr__(self) -> str:
        return f"<readpath.Curve {self.map!r}: {self.accesses} accesses to {self.pages} pages>"


def numpy_for(caller: str) -> Any:
    """NumPy, or an error that says who needs it."""
    try:
        import numpy
    except ModuleNotFoundError:
        raise ImportError(f"{caller} needs NumPy: pip install numpy") from None
    return numpy

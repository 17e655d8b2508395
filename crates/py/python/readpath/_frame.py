# SPDX-License-Identifier: MIT OR Apache-2.0
"""Tables of pandas or polars, whichever is there."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any, Literal

#: A library of tables.
Library = Literal["pandas", "polars"]


def _library(name: Library | None) -> Any:
    for one in [name] if name else ["pandas", "polars"]:
        try:
            return import_module(one)
        except ModuleNotFoundError:
            continue
    wanted = name or "pandas or polars"
    raise ImportError(f"to_frame() needs {wanted}: pip install {name or 'pandas'}")


def of_rows(rows: list[dict[str, Any]], columns: tuple[str, ...], name: Library | None) -> Any:
    """A table of rows, with these columns."""
    return _library(name).DataFrame({column: [row[column] for row in rows] for column in columns})


def of_csv(path: Path, name: Library | None) -> Any:
    """A table of a file."""
    library = _library(name)
    # A column may begin with numbers and go on with words.
    return library.read_csv(path, infer_schema_length=None) if library.__name__ == "polars" else library.read_csv(path)

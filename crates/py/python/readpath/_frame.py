# SPDX-License-Identifier: MIT OR Apache-2.0
"""Tables of pandas or polars, whichever is there."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from ._given import PathLike

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
    return of_columns({column: [row[column] for row in rows] for column in columns}, name)


def of_columns(columns: dict[str, Any], name: Library | None) -> Any:
    """A table of columns."""
    return _library(name).DataFrame(columns)


def integers(values: Any, there: Any, name: Library | None) -> Any:
    """A column of whole numbers, some of which are not there."""
    library = _library(name)
    whole = values.copy()
    whole[~there] = 0
    whole = whole.astype("int64")
    if library.__name__ == "pandas":
        return library.arrays.IntegerArray(whole, ~there)
    column = library.DataFrame({"there": there, "whole": whole})
    return column.select(library.when(library.col("there")).then(library.col("whole"))).to_series()


def of_csv(path: Path, name: Library | None) -> Any:
    """A table of a file."""
    library = _library(name)
    # A column may begin with numbers and go on with words.
    return library.read_csv(path, infer_schema_length=None) if library.__name__ == "polars" else library.read_csv(path)


def to_parquet(table: Callable[[Library], Any], path: PathLike) -> None:
    """Writes a table with pandas or polars, whichever can."""
    if _has("pandas") and _has("pyarrow"):
        # Names of columns are all that tells them apart; rows have their order.
        table("pandas").to_parquet(path, engine="pyarrow", index=False)
    elif _has("polars"):
        table("polars").write_parquet(path)
    else:
        raise ImportError("to_parquet() needs pandas with pyarrow, or polars: pip install pandas pyarrow")


def _has(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ValueError:
        # Importing it has failed before.
        return False

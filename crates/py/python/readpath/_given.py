# SPDX-License-Identifier: MIT OR Apache-2.0
"""Arguments of the functions of this package, as the extension module takes them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import TYPE_CHECKING, SupportsFloat, SupportsIndex

from ._readpath import Error

if TYPE_CHECKING:
    from ._readpath import Source

#: A value of a key: a number, a word, a truth, or a list of these.
Value = str | SupportsIndex | SupportsFloat | Sequence["Value"]
#: Keys, as after ``--set`` of the command, with their values.
Set = Mapping[str, Value]
#: A path.
PathLike = str | os.PathLike[str]


def _literal(value: Value, in_list: bool = False) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        # Elsewhere a bare word is a text too.
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"' if in_list else value
    if isinstance(value, Integral):
        return str(int(value))
    if isinstance(value, Real):
        return repr(float(value))
    if isinstance(value, Sequence):
        return "[" + ", ".join(_literal(one, in_list=True) for one in value) + "]"
    raise TypeError(f"{value!r} is no value of a key; expected a number, a text, a truth or a list of these")


def pairs(keys: Set | None) -> list[str]:
    """Keys with their values, as ``--set`` of the command has them."""
    return [f"{key}={_literal(value)}" for key, value in (keys or {}).items()]


def source(given: PathLike, kind: str) -> Source:
    """A text, if it has a line break; else a path or a name."""
    if isinstance(given, str) and "\n" in given:
        return {"name": kind, "text": given, "is_path": False}
    return {"name": os.fspath(given), "text": None, "is_path": not isinstance(given, str)}


def count(given: int | None, name: str) -> int | None:
    """A number from 1, if one is given."""
    if given is not None and given < 1:
        raise Error(f"{name}: is {given}; expected a whole number from 1")
    return given

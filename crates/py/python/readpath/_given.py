# SPDX-License-Identifier: MIT OR Apache-2.0
"""Arguments of the functions of this package, as the extension module takes them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
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


def literal(value: Value, in_list: bool = False) -> str:
    """The text of a value."""
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
        return "[" + ", ".join(literal(one, in_list=True) for one in value) + "]"
    raise TypeError(f"{value!r} is no value of a key; expected a number, a text, a truth or a list of these")


def pairs(keys: Set | None) -> list[str]:
    """Keys with their values, as ``--set`` of the command has them."""
    return [f"{key}={literal(value)}" for key, value in (keys or {}).items()]


def keys(given: Set | str | None) -> str | None:
    """Keys with their values, as one word."""
    return given if given is None or isinstance(given, str) else ",".join(pairs(given))


def words(name: str, inputs: Sequence[PathLike], options: Mapping[str, object]) -> list[str]:
    """A question with its options, as the extension module takes it: the words of a command line."""
    paths = [os.fspath(path) for path in inputs]
    said = [name, *(f"./{path}" if path.startswith("-") else path for path in paths)]
    for key, value in options.items():
        option = f"--{key.replace('_', '-')}"
        if isinstance(value, bool):
            said += [option] if value else []
        elif isinstance(value, str | os.PathLike | Real):
            said.append(f"{option}={value}")
        elif isinstance(value, Mapping):
            said += [f"{option}={pair}" for pair in pairs(value)]
        elif isinstance(value, Iterable):
            said += [f"{option}={one}" for one in value]
        elif value is not None:
            raise TypeError(f"{key}: {value!r} is no value of an option")
    return said


def source(given: PathLike, kind: str) -> Source:
    """A text, if it has a line break; else a path or a name."""
    if isinstance(given, str) and "\n" in given:
        return {"name": kind, "text": given}
    return {"name": os.fspath(given), "text": None}


def count(given: int | None, name: str) -> int | None:
    """A number from 1, if one is given."""
    if given is not None and given < 1:
        raise Error(f"{name}: is {given}; expected a whole number from 1")
    return given

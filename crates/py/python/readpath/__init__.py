# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs and studies of modelled flash devices, as the command ``readpath`` makes them.

>>> import readpath
>>> job = '''[job]
... filename=/dev/sda
... rw=randread
... bs=4k
... size=2g
... io_size=8m
... iodepth=4
... ioengine=libaio
... '''
>>> results = readpath.fio(job, device="ufs31-256g", hpb="dcm")
>>> round(results.value("read_latency_mean"), 1)
111.4

Texts and files
    Jobs, experiments and studies are given as a path, or as the text itself: a string with a line break is a text.
Changed keys
    ``set`` changes keys: ``{"map_cache.size_kib": 512}``, as ``--set map_cache.size_kib=512`` of the command.
Threads
    Runs are made on ``threads`` threads, one for each processor if nothing is said. Results do not depend on it. Other
    threads of Python go on meanwhile, and Ctrl-C stops what is running.
Errors
    Mistakes in the arguments and failed runs raise :class:`Error`, with the text of the command.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Unpack

from . import _readpath, ubi
from ._charts import Chart
from ._given import PathLike, Set, count, pairs, source
from ._questions import (
    Choosing,
    Making,
    Reading,
    Replaying,
    attack,
    break_even,
    compare,
    fio,
    fit,
    hmb,
    policies,
    power,
    probe,
    reading as _reading,
    replay,
    reproduce,
)
from ._readpath import Error, __version__
from ._results import Curve, Device, Results, Sweep, Trace, numpy_for

if TYPE_CHECKING:
    from distributed import Client

__all__ = [
    "Chart",
    "Choosing",
    "Curve",
    "Device",
    "Error",
    "Making",
    "Reading",
    "Replaying",
    "Results",
    "Sweep",
    "Trace",
    "__version__",
    "attack",
    "break_even",
    "compare",
    "device",
    "devices",
    "examples",
    "fio",
    "fit",
    "hmb",
    "merge",
    "mrc",
    "policies",
    "power",
    "probe",
    "replay",
    "reproduce",
    "sweep",
    "trace",
    "ubi",
]


def __getattr__(name: str) -> object:
    if name == "run":
        raise AttributeError("readpath.run is now readpath.reproduce")
    raise AttributeError(f"module 'readpath' has no attribute {name!r}")


def devices() -> list[str]:
    """Names of the device presets.

    >>> readpath.devices()[0]
    'ufs21-64g'
    """
    return _readpath.devices()


def examples(dir: PathLike) -> dict[str, Path]:
    """Writes inputs to try into a folder, as ``readpath examples``: their paths by name."""
    return {path.name: path for path in _readpath.examples(Path(dir))}


def device(name: PathLike, set: Set | None = None) -> Device:
    """A device: a preset by its name, or a device file by its path, with keys that are changed.

    >>> small = readpath.device("ufs21-64g", set={"map_cache.size_kib": 512})
    >>> small["map_cache"]
    {'size_kib': 512, 'page_bytes': 16384}
    """
    import tomllib

    path = os.fspath(name)
    toml = _readpath.device(path, pairs(set))
    return Device(tomllib.loads(toml), toml, (path, dict(set or {})))


def sweep(
    study: PathLike,
    *,
    out: PathLike | None = None,
    threads: int | None = None,
    set: Set | None = None,
    shard: str | tuple[int, int] | None = None,
    retry_failed: bool = False,
    client: Client | str | None = None,
    traces: Literal["path", "content"] = "path",
    timeout: float = 30.0,
) -> Sweep:
    """Makes a study: the points that the folder ``out`` lacks, by default ``out/NAME``.

    Ctrl-C keeps what is there, and the same call goes on from there. ``shard=(2, 8)`` makes the second of eight parts;
    :func:`merge` joins them. Points that fail do not stop the others; there is a warning then, and ``retry_failed``
    makes them again.

    ``client``, a client of Dask.distributed or the address of its scheduler, has workers of a cluster make the points.
    Workers read traces at the path that the study has, or are sent them with ``traces="content"``. A cluster that has
    no scheduler or no worker for ``timeout`` seconds is an error.
    """
    if isinstance(shard, tuple):
        shard = f"{shard[0]}/{shard[1]}"
    task: _readpath.Task = {
        "out": None if out is None else Path(out),
        "threads": count(threads, "threads"),
        "set": pairs(set),
        "shard": shard,
        "retry_failed": retry_failed,
    }
    again = "what it held was made again"
    if client is None:
        return _swept(_readpath.sweep(source(study, "study"), task), again)
    if threads is not None:
        raise Error("threads: is for this machine; workers of a cluster have their own number")
    if traces not in ("path", "content"):
        raise Error(f'traces: is {traces!r}; expected "path" or "content"')
    from . import _cluster

    return _swept(_cluster.sweep(source(study, "study"), task, client, traces, timeout), again)


def merge(folders: Iterable[PathLike], out: PathLike) -> Sweep:
    """Makes the tables of what several folders hold of one study, such as those of shards."""
    return _swept(_readpath.merge([Path(folder) for folder in folders], Path(out)), "what it held is not in the table")


def trace(path: PathLike, *, requests: int | None = None, **reading: Unpack[Reading]) -> Trace:
    """Reads a block trace into NumPy arrays, or the first ``requests`` of it.

    A request takes 52 bytes, and twice that while it is read. ``format`` and what follows it in :class:`Reading` say
    how it is read. Up to 4,096 rows behind the last request are looked at too: if one of them is wrong, that is an
    error.
    """
    numpy_for("trace()")
    most = count(requests, "requests")
    return Trace(_readpath.trace(Path(path), _reading(reading, "trace"), most and min(most, 1 << 63)))


def mrc(
    trace: PathLike,
    *,
    of: Literal["reads", "writes", "all"] = "reads",
    page_kib: Sequence[int] = (4, 16),
    region_mib: Sequence[int] = (16,),
    sample: int | None = None,
    **reading: Unpack[Reading],
) -> list[Curve]:
    """How often a map of any size would hit under a block trace: a curve for each kind of map, in NumPy arrays.

    Maps are of pages of ``page_kib`` KiB, and of HPB regions of ``region_mib`` MiB. ``sample`` follows at most so many
    pages of each. ``format`` and what follows it in :class:`Reading` say how the trace is read. ``readpath trace mrc``
    has more options, and shows what is odd about the trace.
    """
    maps: _readpath.Maps = {
        "of": of,
        "page_kib": list(page_kib),
        "region_mib": list(region_mib),
        "sample": count(sample, "sample"),
    }
    numpy_for("mrc()")
    return [Curve(curve) for curve in _readpath.mrc(Path(trace), _reading(reading, "mrc"), maps)]


def _swept(swept: _readpath.Swept, damage: str) -> Sweep:
    for what in swept["damaged"]:
        warnings.warn(f"{what}; {damage}", RuntimeWarning, stacklevel=3)
    if swept["failed"]:
        first = f"; {swept['first_failure']}" if swept["first_failure"] else ""
        table = f"; all are in {swept['failures']}" if swept["failures"] else ""
        text = f"{swept['failed']} of {swept['count']} points failed{first}{table}"
        warnings.warn(text, RuntimeWarning, stacklevel=3)
    return Sweep(swept)

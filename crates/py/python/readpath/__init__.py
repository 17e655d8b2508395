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
    What cannot be is an :class:`Error`, with the text of the command.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypedDict, Unpack

from . import _readpath
from ._charts import Chart
from ._given import PathLike, Set, Value, count, pairs, source
from ._readpath import Error, __version__
from ._results import Curve, Device, Results, Sweep, Trace, numpy_for

if TYPE_CHECKING:
    from distributed import Client

__all__ = [
    "Chart",
    "Curve",
    "Device",
    "Error",
    "Results",
    "Sweep",
    "Trace",
    "__version__",
    "device",
    "devices",
    "fio",
    "merge",
    "mrc",
    "replay",
    "run",
    "sweep",
    "trace",
]

#: Whether and how the host uses HPB.
Hpb = Literal["off", "dcm", "hcm", "both", "all", "prototype-host", "prototype-device", "prototype"]


class Reading(TypedDict, total=False):
    """How a block trace is read, as the options of the command say it."""

    #: Its format, where that is not recognised: ``"oracle-general"``.
    format: str | None
    #: The columns of a table: ``"time=0:us,op=1,offset=2:bytes,size=3:sectors"``.
    columns: str | None
    #: Bytes by which the numbers of objects count, where a trace has objects.
    object_bytes: int | None
    #: The device of the trace whose requests are taken.
    trace_device: str | None
    #: Whether requests to all its devices are taken as requests to one.
    merge_devices: bool
    #: Whether rows that cannot be read are left out and counted.
    lenient: bool


def devices() -> list[str]:
    """Names of the device presets.

    >>> readpath.devices()[0]
    'ufs21-64g'
    """
    return _readpath.devices()


def device(name: PathLike, set: Set | None = None) -> Device:
    """A device: a preset by its name, or a device file by its path, with keys that are changed.

    >>> small = readpath.device("ufs21-64g", set={"map_cache.size_kib": 512})
    >>> small["map_cache"]
    {'size_kib': 512, 'page_bytes': 16384}
    """
    import tomllib

    toml = _readpath.device({"name": _path(name), "set": pairs(set)})
    return Device(tomllib.loads(toml), toml, (_path(name), dict(set or {})))


def run(
    experiment: PathLike,
    *,
    set: Set | None = None,
    case: str | None = None,
    variant: str | None = None,
    threads: int | None = None,
) -> Results:
    """Runs an experiment: a built-in one by its name, or an experiment file; all of it, or one case or variant.

    >>> results = readpath.run("iozone", case="1 GB", variant="HPB off")
    >>> [(row["metric"], row["published"]) for row in results.rows][0]
    ('random_read_throughput', 300.87)
    """
    choice = _choice(set, threads, case, variant)
    return _shown(_readpath.run(source(experiment, "experiment"), choice))


def fio(
    job: PathLike,
    *,
    device: PathLike | Device = "ufs21-64g",
    hpb: Hpb = "both",
    set: Set | None = None,
    precondition: Literal["sequential", "random", "none"] = "sequential",
    seed: int = 1,
    threads: int | None = None,
) -> Results:
    """Runs a fio job file, or the text of one, on a device: a variant for each mode of HPB.

    ``precondition`` says in which order the files of the job were written before the run, if they were.

    >>> results = readpath.fio("[job]\\nfilename=/dev/sda\\nrw=randread\\nbs=4k\\nsize=2g\\nio_size=1m\\n")
    >>> [round(results.value("read_iops", variant=variant)) for variant in ("HPB off", "HPB dcm")]
    [6791, 6718]
    """
    name, keys = _target(device, set)
    return _shown(_readpath.fio(source(job, "job"), name, _host(hpb, precondition, seed), _choice(keys, threads)))


def replay(
    trace: PathLike,
    *,
    device: PathLike | Device = "ufs21-64g",
    hpb: Hpb = "both",
    set: Set | None = None,
    map_cache_kib: Sequence[int] = (),
    precondition: Iterable[PathLike] = (),
    iodepth: int | None = None,
    speed: float | None = None,
    max_idle_ms: float | None = None,
    spread_ties: bool = False,
    fold: bool = False,
    preload: Literal["sequential", "random"] = "sequential",
    seed: int = 1,
    threads: int | None = None,
    **reading: Unpack[Reading],
) -> Results:
    """Replays a block trace: a variant for each mode of HPB and each size of the map cache.

    Requests come at their times, or with ``iodepth`` in order, so many at once. ``precondition`` are traces that are
    replayed before, and measured apart. ``fold`` puts addresses beyond the device onto it. ``preload`` is the physical
    order of blocks that are read before they are written. ``format`` and what follows it in :class:`Reading` say how
    traces are read. ``readpath replay`` has more options.
    """
    if preload not in ("sequential", "random"):
        raise Error(f'preload: is {preload!r}; expected "sequential" or "random"')
    name, keys = _target(device, set)
    how: _readpath.How = {
        "before": [Path(path) for path in precondition],
        "iodepth": count(iodepth, "iodepth"),
        "speed": speed,
        "max_idle_ms": max_idle_ms,
        "fold": fold,
        "spread_ties": spread_ties,
        "map_cache_kib": list(map_cache_kib),
        "reading": _reading(reading, "replay"),
    }
    host = _host(hpb, preload, seed)
    return _shown(_readpath.replay(Path(trace), name, how, host, _choice(keys, threads)))


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


def _reading(given: Reading, caller: str) -> _readpath.Reading:
    for name in given:
        if name not in Reading.__annotations__:
            raise TypeError(f"{caller}() has no argument {name!r}")
    for name in ("format", "columns", "trace_device"):
        if not isinstance(given.get(name), str | None):
            raise TypeError(f"{name}: is {given.get(name)!r}; expected a text")
    object_bytes = given.get("object_bytes")
    if object_bytes is not None and not 1 <= object_bytes <= 1 << 20:
        raise Error(f"object_bytes: is {object_bytes}; expected a whole number from 1 to 1048576")
    return {
        "format": given.get("format"),
        "columns": given.get("columns"),
        "object_bytes": object_bytes,
        "trace_device": given.get("trace_device"),
        "merge_devices": given.get("merge_devices", False),
        "lenient": given.get("lenient", False),
    }


def _path(given: PathLike) -> str:
    return os.fspath(given)


def _target(device: PathLike | Device, set: Set | None) -> tuple[str, Set | None]:
    if isinstance(device, Device):
        name, keys = device._given
        return name, {**keys, **(set or {})}
    return _path(device), set


def _host(hpb: Hpb, precondition: str, seed: int) -> _readpath.Host:
    if not 0 <= seed < 1 << 64:
        raise Error(f"seed: is {seed}; expected a whole number from 0 to {(1 << 64) - 1}")
    return {"hpb": hpb, "precondition": precondition, "seed": seed}


def _choice(
    set: Set | None, threads: int | None, case: str | None = None, variant: str | None = None
) -> _readpath.Choice:
    return {"set": pairs(set), "case": case, "variant": variant, "threads": count(threads, "threads")}


def _shown(shown: _readpath.Shown) -> Results:
    if shown["missing"] is not None:
        warnings.warn(shown["missing"], RuntimeWarning, stacklevel=3)
    return Results(shown["json"])


def _swept(swept: _readpath.Swept, damage: str) -> Sweep:
    for what in swept["damaged"]:
        warnings.warn(f"{what}; {damage}", RuntimeWarning, stacklevel=3)
    if swept["failed"]:
        first = f"; {swept['first_failure']}" if swept["first_failure"] else ""
        table = f"; all are in {swept['failures']}" if swept["failures"] else ""
        text = f"{swept['failed']} of {swept['count']} points failed{first}{table}"
        warnings.warn(text, RuntimeWarning, stacklevel=3)
    return Sweep(swept)

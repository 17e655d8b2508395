# SPDX-License-Identifier: MIT OR Apache-2.0
"""Questions: their options become the words of a command line, so that each has the meaning that it has there."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, TypedDict, Unpack

from . import _readpath
from ._given import PathLike, Set, Value, count, keys, literal, source, words
from ._readpath import Error
from ._results import Device, Results

if TYPE_CHECKING:
    from distributed import Client

#: Whether and how the host uses HPB.
Hpb = Literal["off", "dcm", "hcm", "prototype-host", "prototype-device"]
#: A mode of HPB, or several of them.
Modes = Hpb | Sequence[Hpb]
#: Keys with their values, which are combined; or names of variants with their keys.
Vary = Mapping[str, Sequence[Value] | Set]
#: The state of a device before the first request.
Fill = Literal["sequential", "random", "none"]


class Reading(TypedDict, total=False):
    """How a block trace is read, as the options of the command say it."""

    #: Its format, where that is not recognised: ``"oracle-general"``.
    format: str | None
    #: The columns of a table: ``"time=0:us,op=1,offset=2:bytes,size=3:sectors"``.
    columns: str | None
    #: Bytes by which the numbers of objects count, where a trace has objects.
    object_bytes: int | None
    #: Bytes in which a trace of the UFS driver counts addresses: 4096, or 512 before Linux 5.14.
    ufs_block_bytes: Literal[512, 4096] | None
    #: The device of the trace whose requests are taken.
    trace_device: str | None
    #: Whether requests to all its devices are taken as requests to one.
    merge_devices: bool
    #: Whether rows that cannot be read are left out and counted.
    lenient: bool


class Replaying(Reading, total=False):
    """How a block trace is replayed, as the options of the command say it."""

    #: Requests that are outstanding; without it they come at their times.
    iodepth: int | None
    #: Recorded times are divided by this.
    speed: float | None
    #: Longer pauses between requests are shortened to this, in milliseconds.
    max_idle_ms: float | None
    #: Whether requests with equal times are spread up to the next time.
    spread_ties: bool
    #: Whether addresses beyond the device are folded onto it.
    fold: bool
    #: Sectors of 512 bytes that are added to every address.
    shift_sectors: int
    #: Logical units of devices of the trace: ``["sda=0", "sdb=1"]``.
    units: Sequence[str]


class Making(TypedDict, total=False):
    """How runs are made."""

    #: Runs that are made at once, one for each processor by default.
    threads: int | None
    #: A folder for what each run shows: the same call goes on from there after an end.
    keep: PathLike | None
    #: A client of Dask.distributed, or the address of its scheduler: its workers make the runs. They read device files,
    #: traces and lists of events at the same paths; jobs and experiments are sent.
    client: Client | str | None
    #: Seconds that a cluster may have no scheduler or no worker.
    timeout: float


class Choosing(Making, total=False):
    """Which runs are made, and how."""

    #: Only this case.
    case: str | None
    #: Only this variant.
    variant: str | None
    #: Whether every request is encoded as a UPIU and parsed again: slower, same results.
    wire: bool


def reproduce(experiment: PathLike, *, set: Set | None = None, **choosing: Unpack[Choosing]) -> Results:
    """Runs an experiment: a built-in one by its name, or that of a file; all of it, or one case or variant.

    Keywords are those of :class:`Choosing`.

    >>> results = readpath.reproduce("iozone", case="1 GB", variant="HPB off")
    >>> [(row["metric"], row["published"]) for row in results.rows][0]
    ('random_read_throughput', 300.87)
    """
    return _ask("reproduce", [source(experiment, "experiment.toml")], {"set": set}, choosing)


def fio(
    job: PathLike,
    *,
    device: PathLike | Device = "ufs21-64g",
    hpb: Modes = (),
    policy: Sequence[str] = (),
    vary: Vary | None = None,
    host_memory: str | int | None = None,
    set: Set | None = None,
    fill: Fill = "sequential",
    events: PathLike | None = None,
    seed: int = 1,
    **choosing: Unpack[Choosing],
) -> Results:
    """Runs a fio job file, or the text of one, on a device: a variant for each mode of HPB, policy and varied key.

    ``vary`` is that of :func:`compare`. ``fill`` is the order in which the files of the job were written before the
    run, if they were. ``host_memory`` limits all memory for HPB, in bytes or as ``"8M"``. ``events`` is a file of
    events. Other keywords are those of :class:`Choosing`.

    >>> results = readpath.fio("[job]\\nfilename=/dev/sda\\nrw=randread\\nbs=4k\\nsize=2g\\nio_size=1m\\n")
    >>> [round(results.value("read_iops", variant=variant)) for variant in ("HPB off", "HPB dcm")]
    [6791, 6718]
    """
    options = {
        **_target(device, set),
        **_host(hpb, policy, vary, host_memory),
        "fill": fill,
        "events": events,
        "seed": _seed(seed),
    }
    return _ask("fio", [source(job, "job")], options, choosing)


def replay(
    trace: PathLike,
    *,
    device: PathLike | Device = "ufs21-64g",
    hpb: Modes = (),
    policy: Sequence[str] = (),
    vary: Vary | None = None,
    host_memory: str | int | None = None,
    set: Set | None = None,
    precondition: Iterable[PathLike] = (),
    events: PathLike | None = None,
    fill: Literal["sequential", "random"] = "sequential",
    seed: int = 1,
    client: Client | str | None = None,
    threads: int | None = None,
    keep: PathLike | None = None,
    **replaying: Unpack[Replaying],
) -> Results:
    """Replays a block trace: a variant for each mode of HPB, policy and varied key.

    Requests come at their times, or with ``iodepth`` in order, so many at once. ``precondition`` are traces that
    are replayed before, and measured apart. ``vary`` is that of :func:`compare`. ``fill`` is the physical order of
    blocks that are read before they are written. ``host_memory`` limits all memory for HPB, in bytes or as
    ``"8M"``. ``client`` and ``keep`` are those of :class:`Making`; other keywords are those of :class:`Replaying`.
    """
    options = {
        **_target(device, set),
        **_host(hpb, policy, vary, host_memory),
        **_replaying(replaying, "replay"),
        "precondition": precondition,
        "events": events,
        "fill": fill,
        "seed": _seed(seed),
    }
    return _ask("replay", [source(trace, "trace")], options, {"client": client, "threads": threads, "keep": keep})


def compare(
    workload: PathLike,
    *,
    hpb: Modes = (),
    policy: Sequence[str] = (),
    vary: Vary | None = None,
    host_memory: str | int | None = None,
    base: str | None = None,
    seeds: int | None = None,
    seed: int | None = None,
    device: PathLike | Device | None = None,
    set: Set | None = None,
    fill: Fill | None = None,
    case: str | None = None,
    precondition: Iterable[PathLike] = (),
    client: Client | str | None = None,
    threads: int | None = None,
    keep: PathLike | None = None,
    **replaying: Unpack[Replaying],
) -> Results:
    """Compares variants under the same workload and seeds, with confidence intervals.

    The workload is a fio job, an experiment (``*.toml``, or a built-in name), or a block trace.
    ``vary`` has keys with values that are combined, ``{"hpb": ["off", "dcm"], "map_cache.size_kib":
    [64, 512]}``, or names of variants with their keys, ``{"small": {"map_cache.size_kib": 64}}``. ``base`` is the
    variant against which differences are taken. ``fill`` is the order in which the files of a job were written, or
    blocks of a trace that are read first. ``client`` and ``keep`` are those of :class:`Making`; other keywords, for
    traces, are those of :class:`Replaying`.

    >>> job = "[job]\\nfilename=/dev/sda\\nrw=randread\\nbs=4k\\nsize=2g\\nio_size=8m\\n"
    >>> results = readpath.compare(job, device="ufs31-256g", hpb=["off", "dcm"], seeds=2)
    >>> results.value("read_iops", variant="HPB dcm") > results.value("read_iops", variant="HPB off")
    True
    """
    given = source(workload, "job.fio")
    options = {
        **(_target(device, set) if device is not None else {"set": set}),
        **_replaying(replaying, "compare"),
        **_host(hpb, policy, vary, host_memory),
        "base": base,
        "seeds": count(seeds, "seeds"),
        "seed": None if seed is None else _seed(seed),
        "fill": fill,
        "case": case,
        "precondition": precondition,
    }
    return _ask("compare", [given], options, {"client": client, "threads": threads, "keep": keep})


def break_even(
    workload: PathLike,
    *,
    key: str = "map_cache.size_kib",
    least: int | None = None,
    most: int | None = None,
    step: int | None = None,
    against: Set | str | None = None,
    having: Set | str | None = None,
    metric: str = "read_latency_mean",
    within: float = 0.0,
    seeds: int = 1,
    seed: int = 1,
    device: PathLike | Device = "ufs21-64g",
    set: Set | None = None,
    fill: Fill = "sequential",
    precondition: Iterable[PathLike] = (),
    client: Client | str | None = None,
    threads: int | None = None,
    keep: PathLike | None = None,
    **replaying: Unpack[Replaying],
) -> Results:
    """Finds the least value of a key with which a workload is served as well as by another variant.

    Values from ``least`` to ``most``, ``step`` apart, are tried (``--from`` and ``--to`` of the command), with the keys
    ``having`` (``--with``), ``{"hpb": "off"}`` by default. The variant to be as good as has the keys ``against``,
    ``{"hpb": "dcm"}`` by default; ``metric`` may be worse than its by ``within`` percent. Other keywords are those of
    :func:`compare`.
    """
    options = {
        **_target(device, set),
        **_replaying(replaying, "break_even"),
        "key": key,
        "from": least,
        "to": most,
        "step": step,
        "against": keys(against),
        "with": keys(having),
        "metric": metric,
        "within": within,
        "seeds": count(seeds, "seeds"),
        "seed": _seed(seed),
        "fill": fill,
        "precondition": precondition,
    }
    given = source(workload, "job.fio")
    return _ask("break-even", [given], options, {"client": client, "threads": threads, "keep": keep})


def power(
    workload: PathLike,
    *,
    cuts: int = 10,
    loses: Literal["everything", "device"] = "everything",
    off_ms: int = 100,
    faults: PathLike | None = None,
    device: PathLike | Device = "ufs21-64g",
    hpb: Modes = (),
    policy: Sequence[str] = (),
    vary: Vary | None = None,
    host_memory: str | int | None = None,
    set: Set | None = None,
    fill: Fill = "sequential",
    seed: int = 1,
    client: Client | str | None = None,
    threads: int | None = None,
    keep: PathLike | None = None,
    **replaying: Unpack[Replaying],
) -> Results:
    """Cuts the power at random moments of a fio job, or of a block trace, and checks all data after each recovery.

    ``cuts`` is the number of cuts, ``off_ms`` the time without power in milliseconds, ``faults`` a file of rules for
    requests. Other keywords are those of :func:`fio`, and for traces those of :class:`Replaying`.
    """
    options = {
        **_target(device, set),
        **_host(hpb, policy, vary, host_memory),
        **_replaying(replaying, "power"),
        "cuts": cuts,
        "loses": loses,
        "off": f"{off_ms}ms",
        "faults": faults,
        "fill": fill,
        "seed": _seed(seed),
    }
    return _ask("power", [source(workload, "job.fio")], options, {"client": client, "threads": threads, "keep": keep})


def hmb(
    files: PathLike | Sequence[PathLike],
    *,
    device: PathLike | Device = "nvme-dramless-512g",
    sizes: Sequence[int] = (0, 4, 8, 16, 32, 64, 128),
    set: Set | None = None,
    client: Client | str | None = None,
    threads: int | None = None,
    keep: PathLike | None = None,
    **replaying: Unpack[Replaying],
) -> Results:
    """How much of the host's memory a DRAM-less SSD should get for block traces and fio jobs, or folders of them.

    ``sizes`` are in MiB. Keywords of :class:`Replaying` say how traces are read and replayed. The experiment ``hmb`` of
    the program is ``reproduce("hmb")``.
    """
    options = {**_target(device, set), **_replaying(replaying, "hmb"), "sizes": ",".join(str(size) for size in sizes)}
    given = [files] if isinstance(files, (str, os.PathLike)) else list(files)
    words = [source(one, f"trace {at}") for at, one in enumerate(given, 1)]
    return _ask("hmb", words, options, {"client": client, "threads": threads, "keep": keep})


def policies(traces: PathLike | None = None, *, set: Set | None = None, **choosing: Unpack[Choosing]) -> Results:
    """Every host memory policy with every size of memory: the experiment ``policies``, and a folder of traces.

    Keywords are those of :class:`Choosing`.
    """
    return _ask("reproduce", [source("policies", "")], {"traces": traces, "set": set}, choosing)


def attack(
    *,
    device: PathLike | Device = "ufs21-64g",
    set: Set | None = None,
    seed: int = 1,
    **making: Unpack[Making],
) -> Results:
    """What a dishonest host gains by HPB entries, by protection, on a small device with the times of ``device``.

    Keywords are those of :class:`Making`.
    """
    return _ask("attack", [], {**_target(device, set), "seed": _seed(seed)}, making)


def fit(
    measurements: PathLike,
    *,
    device: PathLike = "ufs21-64g",
    params: Sequence[str] = (),
    ios: int = 20_000,
    threads: int | None = None,
) -> Results:
    """Fits a device to a table of measurements (CSV), and says which parameters they identify.

    ``params`` are the keys to fit, ``ios`` the requests that are simulated for each measurement.
    """
    options = {"device": os.fspath(device), "params": params, "ios": ios}
    return _ask("fit", [source(measurements, "")], options, {"threads": threads})


def probe(
    results: PathLike | Iterable[PathLike],
    *,
    plan: PathLike,
    params: Sequence[str] = (),
    ios: int = 4000,
    threads: int | None = None,
) -> Results:
    """Fits a device to the results (json+) of the jobs of ``readpath device probe plan``, in whose folder ``plan`` is.

    ``params`` are the keys to fit, ``ios`` the requests that are simulated for each job.
    """
    files = [results] if isinstance(results, str | os.PathLike) else list(results)
    options = {"plan": os.fspath(plan), "params": params, "ios": ios}
    return _ask("probe", [source(file, "") for file in files], options, {"threads": threads})


def _unknown(caller: str, name: str) -> TypeError:
    """An argument that a function does not have, with the one that has its place now."""
    now = {"precondition": "fill", "preload": "fill", "map_cache_kib": "vary", "variant": "vary"}.get(name)
    return TypeError(f"{caller}() has no argument {name!r}" + (f"; it is now {now!r}" if now else ""))


def _ask(
    name: str, inputs: Sequence[_readpath.Source], options: Mapping[str, object], choosing: Choosing | Making
) -> Results:
    for key in choosing:
        if key not in Choosing.__annotations__:
            raise _unknown(name.replace("-", "_"), key)
    client = choosing.get("client")
    if client is not None and choosing.get("threads") is not None:
        raise Error("threads: is for this machine; workers of a cluster have their own number")
    count(choosing.get("threads"), "threads")
    more = {key: value for key, value in choosing.items() if key not in ("client", "timeout", "keep")}
    kept = choosing.get("keep")
    keep = [] if kept is None else [f"--keep={os.fspath(kept)}"]
    said = words(name, [one["name"] for one in inputs], {**options, **more})
    texts = [(one["name"], one["text"]) for one in inputs if one["text"] is not None]
    if client is None:
        shown = _readpath.ask([*said, *keep], texts)
    else:
        from . import _cluster

        shown = _cluster.ask(said, texts, client, choosing.get("timeout", 30.0), keep)
    if shown["missing"] is not None:
        warnings.warn(shown["missing"], RuntimeWarning, stacklevel=3)
    return Results(shown["json"])


def reading(given: Reading, caller: str) -> _readpath.Reading:
    for name in given:
        if name not in Reading.__annotations__:
            raise _unknown(caller, name)
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
        "ufs_block_bytes": given.get("ufs_block_bytes"),
        "trace_device": given.get("trace_device"),
        "merge_devices": given.get("merge_devices", False),
        "lenient": given.get("lenient", False),
    }


def _replaying(given: Replaying, caller: str) -> dict[str, object]:
    for name in given:
        if name not in Replaying.__annotations__:
            raise _unknown(caller, name)
    options = {key: value for key, value in given.items() if value is not None}
    if (speed := options.get("speed")) is not None:
        options["speed"] = repr(speed).removesuffix(".0")
    if (idle := given.get("max_idle_ms")) is not None:
        if not 0 <= idle <= 1e9:
            raise Error(f"max_idle_ms: is {idle:g}; expected 0 to 1000000000")
        options["max_idle"] = f"{int(idle)}ms" if idle == int(idle) else f"{int(idle * 1e6)}ns"
        del options["max_idle_ms"]
    return options


def target(device: PathLike | Device, set: Set | None) -> tuple[str, Set | None]:
    """The name of a device, and its changed keys."""
    if isinstance(device, Device):
        name, own = device._given
        return name, {**own, **(set or {})}
    return os.fspath(device), set


def _target(device: PathLike | Device, set: Set | None) -> dict[str, object]:
    name, changed = target(device, set)
    return {"device": name, "set": changed}


def _host(hpb: Modes, policy: Sequence[str], vary: Vary | None, host_memory: str | int | None) -> dict[str, object]:
    varied = [
        f"{key}:{keys(values)}" if isinstance(values, Mapping) else f"{key}={','.join(map(literal, values))}"
        for key, values in (vary or {}).items()
    ]
    return {"hpb": _modes(hpb), "policy": policy, "vary": varied, "host_memory": host_memory}


def _modes(hpb: Modes) -> Sequence[str]:
    return [hpb] if isinstance(hpb, str) else hpb


def _seed(seed: int) -> int:
    if not 0 <= seed < 1 << 64:
        raise Error(f"seed: is {seed}; expected a whole number from 0 to {(1 << 64) - 1}")
    return seed

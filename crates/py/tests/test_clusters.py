# SPDX-License-Identifier: MIT OR Apache-2.0
"""Studies on Dask.distributed: real schedulers and workers, some of which are lost; the bytes are those of one run."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from types import FrameType
from typing import Any

import pytest
import readpath
from conftest import JOB, STUDY, Command, without_process
from distributed import Client
from readpath import _cluster

SCHEDULER = """
import asyncio
from distributed import Scheduler
async def main():
    async with Scheduler(host="127.0.0.1", port=0, dashboard=False) as scheduler:
        print(scheduler.address, flush=True)
        await scheduler.finished()
asyncio.run(main())
"""
WORKER = """
import asyncio, sys
from distributed import Worker
async def main():
    async with Worker(sys.argv[1], nthreads=int(sys.argv[2]), local_directory=sys.argv[3]) as worker:
        print(worker.address, flush=True)
        await worker.finished()
asyncio.run(main())
"""

#: Thirty points, two of which cannot be made.
POINTS = STUDY.replace("[64, 1024, 4096]", f"{[0, *range(64, 64 * 15, 64)]}")
#: A point of this study takes hours.
ENDLESS = STUDY.replace("io_size=16m", "io_size=4000g")


class Process:
    """A scheduler or a worker, with its address."""

    def __init__(self, script: str, *arguments: str | Path) -> None:
        command = [sys.executable, "-c", script, *map(str, arguments)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().strip()
        assert self.address.startswith("tcp://")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


class Cluster:
    """A scheduler with workers."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.workers: list[Process] = []
        self.scheduler = Process(SCHEDULER)
        self.address = self.scheduler.address

    def start(self, threads: int = 1, prelude: str = "") -> Process:
        place = self.folder / f"worker{len(self.workers)}"
        self.workers.append(Process(prelude + WORKER, self.address, str(threads), place))
        return self.workers[-1]

    def stop(self) -> None:
        for process in [*self.workers, self.scheduler]:
            process.kill()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path)
    try:
        yield cluster
    finally:
        cluster.stop()


def until(what: Callable[[], bool]) -> None:
    """Waits until a condition holds."""
    end = time.monotonic() + 60
    while not what():
        assert time.monotonic() < end
        time.sleep(0.05)


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Fails after some seconds instead of waiting for ever."""

    def end(_number: int, _frame: FrameType | None) -> None:
        raise AssertionError(f"not within {seconds:g} s")

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def after_batch(number: int, act: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
    """Does something when a batch goes out: others are being made then."""
    submit, out = _cluster._Farm._submit, 0

    def counting(farm: _cluster._Farm, job: bytes, batch: list[int]) -> None:
        nonlocal out
        submit(farm, job, batch)
        out += 1
        if out == number:
            act()

    monkeypatch.setattr(_cluster._Farm, "_submit", counting)


def lines(folder: str) -> list[bytes]:
    """What segments hold of points, in no order."""
    return sorted(line for path in Path(folder).glob("*.seg") for line in path.read_bytes().splitlines()[1:])


def assert_same(ours: str, theirs: str) -> None:
    for table in "points.csv", "failed.csv":
        assert Path(ours, table).read_bytes() == Path(theirs, table).read_bytes()
    shown = [without_process(Path(folder, "result.json").read_text()) for folder in (ours, theirs)]
    assert shown[0] == shown[1]


@pytest.mark.filterwarnings("ignore:. of 30 points failed")
def test_a_study_on_a_cluster_is_that_of_the_command(command: Command, cluster: Cluster) -> None:
    Path("points.toml").write_text(POINTS)
    command("sweep", "points.toml", "--out", "theirs", status=1)
    cluster.start()
    cluster.start(threads=2)
    study = readpath.sweep("points.toml", out="ours", client=cluster.address)
    assert (study.count, study.made, study.failed) == (30, 30, 2)
    assert_same("ours", "theirs")
    # Lines of points are those of the command too, in another order.
    assert lines("ours") == lines("theirs")
    with Client(cluster.address, set_as_default=False) as client:
        assert len(client.nthreads()) == 2
        # What is there is not made again.
        assert readpath.sweep("points.toml", out="theirs", client=client).made == 0
        # Parts, and a text with keys that are set.
        given = {"seed": 5}
        for i in 1, 2:
            readpath.sweep(POINTS, out="parts", shard=(i, 2), set=given, client=client)
        readpath.sweep(POINTS, out="one", set=given)
    assert_same("parts", "one")


@pytest.mark.filterwarnings("ignore:. of 30 points failed")
def test_points_of_a_worker_that_is_lost_are_made_again(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.start()
    lost = cluster.start()
    with Client(cluster.address, set_as_default=False) as client:
        after_batch(8, lost.kill, monkeypatch)
        study = readpath.sweep(POINTS, out="ours", client=client)
        assert (study.made, study.done) == (30, 30)
        assert list(client.nthreads()) == [cluster.workers[0].address]
    readpath.sweep(POINTS, out="theirs")
    assert_same("ours", "theirs")


#: A worker that dies when it is asked for what it has made, for the second time.
STINGY = """
import os
from distributed import Worker
asked, give = 0, Worker.get_data
async def get_data(worker, comm, **asks):
    global asked
    asked += 1
    if asked == 2:
        os._exit(9)
    return await give(worker, comm, **asks)
Worker.get_data = get_data
"""


def test_a_last_worker_that_is_lost_with_what_it_made(cluster: Cluster) -> None:
    cluster.start(prelude=STINGY)
    why = "^client: tcp://.*: no worker came within 1 s; points that were made are kept"
    with within(30), pytest.raises(readpath.Error, match=why):
        readpath.sweep("small.toml", out="ours", client=cluster.address, timeout=1.0)
    # What it had given before is there.
    kept = len(lines("ours"))
    assert 0 < kept < 6
    # Another comes, and makes what the second took with it.
    lost = cluster.start(prelude=STINGY)

    def replace() -> None:
        lost.process.wait()
        cluster.start()

    coming = Thread(target=replace)
    coming.start()
    with within(60):
        study = readpath.sweep("small.toml", out="ours", client=cluster.address)
        coming.join()
    assert (study.made, study.done) == (6 - kept, 6)
    assert len(lines("ours")) == 6
    readpath.sweep("small.toml", out="theirs")
    assert Path("ours/points.csv").read_bytes() == Path("theirs/points.csv").read_bytes()


#: Point 5 fails once the others are made; all but the first of them are given when the client knows.
ONE_FAILS = """
import asyncio, pickle, threading, time
from pathlib import Path
import readpath._cluster as c
from distributed import Worker
asked, make, made, give = threading.Event(), c.make, [], Worker.get_data
def one_fails(job, points):
    [point] = pickle.loads(points)
    if point == 5:
        while len(made) < 5:
            time.sleep(0.01)
        raise RuntimeError("no such luck")
    if point:
        asked.wait()
    lines = make(job, points)
    made.append(point)
    return lines
async def get_data(worker, comm, **asks):
    first = not asked.is_set()
    asked.set()
    while not (Path("told").exists() or first and any(task.state == "error" for task in worker.state.tasks.values())):
        await asyncio.sleep(0.01)
    return await give(worker, comm, **asks)
c.make, Worker.get_data = one_fails, get_data
"""


def test_a_batch_that_fails_takes_no_other_with_it(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    error = _cluster._Farm._error

    def telling(farm: _cluster._Farm, *given: Any) -> Exception | None:
        told = error(farm, *given)
        if told is not None:
            Path("told").touch()
        return told

    monkeypatch.setattr(_cluster._Farm, "_error", telling)
    # All points at once.
    cluster.start(threads=6, prelude=ONE_FAILS)
    with within(30), pytest.raises(readpath.Error, match=r"^client: tcp://.*: RuntimeError: no such luck$"):
        readpath.sweep("small.toml", out="ours", client=cluster.address)
    assert len(lines("ours")) == 5


#: What is asked first fails.
FAILS_ONCE = """
import readpath._cluster as c
make, failed = c.make, []
def fails_once(job, points):
    if not failed:
        failed.append(points)
        raise RuntimeError("no such luck")
    return make(job, points)
c.make = fails_once
"""


def test_a_batch_that_failed_can_be_made_again_by_the_same_client(cluster: Cluster) -> None:
    cluster.start(prelude=FAILS_ONCE)
    with Client(cluster.address) as client, within(60):
        with pytest.raises(readpath.Error, match="RuntimeError: no such luck$"):
            readpath.sweep("small.toml", out="ours", client=client)
        assert readpath.sweep("small.toml", out="ours", client=client).done == 6


@pytest.mark.filterwarnings("ignore:. of 30 points failed")
def test_ctrl_c_keeps_points_and_the_command_goes_on(
    command: Command, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("points.toml").write_text(POINTS)
    cluster.start()
    with Client(cluster.address, set_as_default=False) as client:
        with monkeypatch.context() as patch:
            after_batch(6, lambda: os.kill(os.getpid(), signal.SIGINT), patch)
            with pytest.raises(KeyboardInterrupt):
                readpath.sweep("points.toml", out="ours", client=client)
        until(lambda: not any(client.processing().values()))
    printed = command("sweep", "points.toml", "--out", "ours", status=1).stdout
    there = int(printed.split(" points (cross), ")[1].split()[0])
    assert 0 < there < 30
    readpath.sweep("points.toml", out="theirs")
    assert_same("ours", "theirs")


def test_workers_give_up_what_nobody_wants(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster.start()
    with Client(cluster.address, set_as_default=False) as client:

        def executing() -> int:
            counts = client.run(lambda dask_worker: dask_worker.state.executing_count)
            return sum(counts.values())

        def interrupt() -> None:
            until(lambda: executing() == 1)
            os.kill(os.getpid(), signal.SIGINT)

        after_batch(2, interrupt, monkeypatch)
        with pytest.raises(KeyboardInterrupt):
            readpath.sweep(ENDLESS, out="ours", client=client)
        until(lambda: executing() == 0)


TRACE = "\n".join(
    ["time_ns,op,offset_bytes,size_bytes,process,latency_ns"]
    + [f"{i * 1000},{'RW'[i % 3 == 0]},{(i * i % 61) << 22},4096,," for i in range(2000)]
    + [""]
)
TRACED = """schema = "readpath-study/1"
name = "traced"
title = "A trace"
seed = 3
device = "own.toml"
set = { hpb = "dcm" }

[trace]
file = "trace.csv"
mode = "closed"
iodepth = 4

[[factor]]
key = "map_cache.size_kib"
values = [64, 4096]
"""


def test_traces_and_files_by_path_or_by_content(cluster: Cluster, tmp_path: Path) -> None:
    # Of another folder than the client, in which no such file is.
    cluster.start()
    here = tmp_path / "here"
    here.mkdir()
    os.chdir(here)
    Path("trace.csv").write_text(TRACE)
    Path("own.toml").write_text(readpath.device("ufs21-64g").toml)
    Path("traced.toml").write_text(TRACED)
    theirs = readpath.sweep("traced.toml", out="theirs")
    why = "^client: tcp://.*: worker tcp://.* has other files than the client: a trace that is not there, or not the "
    with pytest.raises(readpath.Error, match=why):
        readpath.sweep("traced.toml", out="ours", client=cluster.address)
    ours = readpath.sweep("traced.toml", out="ours", client=cluster.address, traces="content")
    assert ours.made == 2 and ours.points is not None and theirs.points is not None
    assert ours.points.read_bytes() == theirs.points.read_bytes()
    [kept] = (tmp_path / "worker0").rglob("readpath-*")
    assert kept.read_text() == TRACE
    # Where both see it, its path is enough.
    Path("traced.toml").write_text(TRACED.replace('"trace.csv"', f'"{here / "trace.csv"}"'))
    by_path = readpath.sweep("traced.toml", out="by_path", client=cluster.address)
    assert by_path.points is not None and by_path.points.read_bytes() == theirs.points.read_bytes()


@pytest.mark.parametrize("fails", [0, 1, 2])
def test_traces_are_no_plugins_of_a_cluster_for_ever(
    fails: int, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    sender, sent = _cluster._sender, 0

    def failing(sha256: str, content: bytes) -> Any:
        nonlocal sent
        sent += 1
        if sent == fails:
            raise OSError("not sent")
        return sender(sha256, content)

    monkeypatch.setattr(_cluster, "_sender", failing)
    cluster.start()
    Path("trace.csv").write_text(TRACE)
    Path("same.csv").write_text(TRACE)
    Path("other.csv").write_text(TRACE.replace(",4096,", ",8192,"))
    Path("own.toml").write_text(readpath.device("ufs21-64g").toml)
    files = 'key = "trace.file"\nvalues = ["trace.csv", "same.csv", "other.csv"]'
    Path("traced.toml").write_text(TRACED.replace('key = "map_cache.size_kib"\nvalues = [64, 4096]', files))
    with Client(cluster.address, set_as_default=False) as client:
        if fails:
            with pytest.raises(OSError, match="^not sent$"):
                readpath.sweep("traced.toml", out="ours", client=client, traces="content")
        else:
            assert readpath.sweep("traced.toml", out="ours", client=client, traces="content").made == 3
            assert sent == 2
        names = client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.worker_plugins))
        assert not [name for name in names if name.startswith("readpath")]


def test_schedulers_that_are_not_there(cluster: Cluster) -> None:
    with socket.socket() as taken:
        # It takes connections, and says nothing.
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        deaf = f"tcp://127.0.0.1:{taken.getsockname()[1]}"
        began = time.monotonic()
        for address in "tcp://127.0.0.1:9", deaf:
            with pytest.raises(readpath.Error, match=f"^client: {address}: no scheduler answered within 0.5 s$"):
                readpath.sweep("small.toml", out="ours", client=address, timeout=0.5)
        assert time.monotonic() - began < 30
    with pytest.raises(readpath.Error, match="^client: tcp://127.0.0.1:.*: no worker came within 1 s"):
        readpath.sweep("small.toml", out="ours", client=cluster.address, timeout=1.0)
    with pytest.raises(readpath.Error, match="^client: nonsense://x: is no address of a scheduler"):
        readpath.sweep("small.toml", out="ours", client="nonsense://x")
    assert readpath.sweep("small.toml", out="ours").made == 6


def test_a_scheduler_that_is_lost_costs_nothing_that_was_made(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.start()
    with monkeypatch.context() as patch:
        after_batch(8, cluster.scheduler.kill, patch)
        with pytest.raises(readpath.Error, match="the same call goes on from there$"):
            readpath.sweep(POINTS, out="ours", client=cluster.address, timeout=5.0)
    with pytest.warns(RuntimeWarning, match="^2 of 30 points failed"):
        assert 0 < readpath.sweep(POINTS, out="ours").made < 30


@pytest.mark.parametrize(
    ("prelude", "reason"),
    [
        ("import readpath._cluster as c; c.__version__ = '0.0.9'\n", "has readpath 0.0.9, the client 0"),
        ("import sys; sys.modules['readpath'] = None\n", "a worker cannot import readpath 0"),
    ],
)
def test_workers_with_another_package(cluster: Cluster, prelude: str, reason: str) -> None:
    cluster.start(prelude=prelude)
    with pytest.raises(readpath.Error, match=f"^client: tcp://.*{reason}"):
        readpath.sweep("small.toml", out="ours", client=cluster.address)


def test_a_point_that_ends_its_workers_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # One worker for a task, where there are four.
    monkeypatch.setenv("DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES", "0")
    cluster = Cluster(tmp_path)
    try:
        deadly = "import os, readpath._cluster as c; c._study = lambda job, worker: os.kill(os.getpid(), 9)\n"
        cluster.start(prelude=deadly)
        with pytest.raises(readpath.Error, match=r": points \d to \d: every worker that made them was lost"):
            readpath.sweep("small.toml", out="ours", client=cluster.address)
    finally:
        cluster.stop()


def test_what_is_no_cluster(cluster: Cluster) -> None:
    cluster.start()
    for given in "traces", "threads":
        with pytest.raises(readpath.Error, match=f"^{given}: is "):
            readpath.sweep("small.toml", client=cluster.address, **{given: 2})  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="expected a distributed.Client or an address such as tcp://host:8786"):
        readpath.sweep("small.toml", client=3)  # type: ignore[arg-type]
    with pytest.raises(readpath.Error, match="^none.toml: cannot be read"):
        readpath.sweep("none.toml", client=cluster.address)


def test_records_that_come_back_damaged_are_not_kept() -> None:
    study = readpath._readpath.Study({"name": "small.toml", "text": None}, [], None)
    pending = study.begin({"out": Path("ours"), "threads": None, "set": [], "shard": None, "retry_failed": False})
    lines = study.make([0, 1], lambda: None)
    pending.keep([0, 1], lines)
    flipped = bytes([lines[20] ^ 1])
    for points, wrong in ([1], lines), ([0, 1], lines[:-1]), ([0, 1], lines[:20] + flipped + lines[21:]), ([0], b""):
        with pytest.raises(readpath.Error, match="came back damaged; nothing of them is kept$"):
            pending.keep(points, wrong)
    pending.sync()
    assert readpath.sweep("small.toml", out="ours").made == 4


def test_questions_have_the_same_documents_on_a_cluster(cluster: Cluster) -> None:
    """Workers are given jobs that they do not have as files; a search has rounds."""
    cluster.start()
    cluster.start()
    short = JOB.replace("io_size=16m", "io_size=2m")

    def compare(**where: Any) -> readpath.Results:
        return readpath.compare(short, seeds=4, hpb=["off", "dcm"], **where)

    def search(**where: Any) -> readpath.Results:
        return readpath.break_even(short, least=64, most=2048, within=5, device="ufs31-256g", **where)

    for ask in compare, search:
        ask().to_json("here.json")
        with within(120):
            ask(client=cluster.address).to_json("there.json")
        here, there = (without_process(Path(name).read_text()) for name in ("here.json", "there.json"))
        assert here == there
    # Runs that a cluster made are there for a call without one, and the other way round.
    with within(120):
        first, again = search(client=cluster.address, keep="search"), compare(keep="compare")
    made = {path: path.stat().st_size for path in sorted(Path().glob("*/**/*.seg"))}
    assert search(keep="search").rows == first.rows
    with within(120):
        assert compare(client=cluster.address, keep="compare").rows == again.rows
    assert {path: path.stat().st_size for path in sorted(Path().glob("*/**/*.seg"))} == made
    # Another question of as many points, with the same inputs, is not that one.
    other: list[readpath.Results] = [
        readpath.compare(short, seeds=4, hpb=["off", "dcm"], set={"map_cache.size_kib": kib}, client=client)
        for kib in (64, 4096)
        for client in (None, cluster.address)
    ]
    assert other[0].rows == other[1].rows and other[2].rows == other[3].rows
    assert other[0].rows != other[2].rows
    with pytest.raises(readpath.Error, match="^client: the question has no points that workers could make$"):
        readpath.reproduce("ubi", client=cluster.address)

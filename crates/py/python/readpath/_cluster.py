# SPDX-License-Identifier: MIT OR Apache-2.0
"""Studies and questions on Dask.distributed: the client has the plan and what was made, workers make points.

A task is a batch of points. It holds all that they depend on, so every worker makes the same lines, and Dask gives
it to another worker if one is lost. Few tasks are out at a time. A batch takes about two seconds, and more on a large
cluster; how many points that are is known once the first have come back. Batches become smaller towards the end, so
that all workers end together.
"""

from __future__ import annotations

import asyncio
import pickle
import queue
import threading
import time
import uuid
import zlib
from collections import deque
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from . import _readpath
from ._readpath import Error, __version__

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent import futures

    from ._readpath import Pending, Question, Shown, Source, Study, Swept, Task

#: How traces get to workers.
Traces = Literal["path", "content"]

#: What a batch of points is to take at least.
_BATCH_SECONDS = 2.0
#: Tasks that a cluster is to end in a second at most. One costs its scheduler, which has one thread, 2 ms.
_TASKS_PER_SECOND = 100
#: Points of a batch at most; what a lost worker has to be asked for again.
_BATCH_POINTS = 1000
#: Batches that are out for each thread of the cluster: one that is made, and one that waits.
_AHEAD = 2
#: How often cluster and task are looked at.
_LOOK_SECONDS = 0.5
#: Traces beyond this do not go through a scheduler's memory.
_MOST_TRACE_BYTES = 1 << 30
#: Studies that a worker keeps.
_KEPT = 4
_KEPT_POINTS = "; points that were made are kept, and the same call goes on from there"


class _Job(TypedDict):
    """What every task says: plain values, since a worker may have another version of this package."""

    version: str
    header: str
    #: A study: source, changed keys and texts. Or a question: words, texts and lines of its first points.
    study: tuple[Source, list[str], list[tuple[str, str | None, int | None]]] | None
    question: tuple[list[str], list[tuple[str, str]], list[bytes]] | None
    #: Path and SHA-256 of traces that were sent.
    sent: list[tuple[str, str]]


# At a worker.

_studies: dict[str, Study | Question] = {}
_planning = threading.Lock()


def make(job: bytes, points: bytes) -> tuple[bytes, float]:
    """The lines of some points, and the seconds that they took."""
    import distributed.worker

    worker: Any = distributed.worker.get_worker()
    wanted: _Job = pickle.loads(zlib.decompress(job))
    if wanted["version"] != __version__:
        raise Error(f"worker {worker.address} has readpath {__version__}, the client {wanted['version']}")
    study = _study(wanted, worker)
    state: Any = vars(distributed.worker)["thread_state"]
    key = state.key

    def go_on() -> None:
        task = worker.state.tasks.get(key)
        if task is None or task.state == "cancelled":
            raise Error("these points were cancelled")

    began = time.perf_counter()
    lines = study.make(pickle.loads(points), go_on)
    return lines, time.perf_counter() - began


def _task() -> Any:
    """What workers are given. It goes by value, so that one without this package has an error, and is not lost."""

    def points(job: bytes, numbers: bytes) -> tuple[bytes, float]:
        from readpath import _cluster

        return _cluster.make(job, numbers)

    return points


def _study(job: _Job, worker: Any) -> Study | Question:
    with _planning:
        if job["header"] in _studies:
            return _studies[job["header"]]
        study = _planned(job, worker)
        if study.header() != job["header"]:
            what = "has other files than the client: a trace that is not there, or not the same"
            raise Error(f"worker {worker.address} {what}; traces='content' sends traces")
        while len(_studies) >= _KEPT:
            del _studies[next(iter(_studies))]
        _studies[job["header"]] = study
        return study


def _planned(job: _Job, worker: Any) -> Study | Question:
    if job["question"] is not None:
        return _readpath.Question(*job["question"])
    assert job["study"] is not None
    source, set, texts = job["study"]
    traces = {path: _place(worker, sha256) for path, sha256 in job["sent"]}
    return _readpath.Study(source, set, {"texts": texts, "traces": traces})


def _place(worker: Any, sha256: str) -> Path:
    return Path(worker.local_directory) / f"readpath-{sha256}"


def _sender(sha256: str, content: bytes) -> Any:
    """What puts a trace into the folder of every worker, those that come later included."""
    from distributed import WorkerPlugin

    class Trace(WorkerPlugin):
        def setup(self, worker: Any) -> None:
            import os

            place = os.path.join(worker.local_directory, f"readpath-{sha256}")
            if not os.path.exists(place):
                # Several workers may have one folder.
                part = f"{place}.{os.getpid()}"
                with open(part, "wb") as file:
                    file.write(content)
                os.replace(part, place)

    return Trace()


# At the client.


def sweep(source: Source, task: Task, given: Any, traces: Traces, timeout: float) -> Swept:
    """Makes the points that a folder lacks on a cluster."""
    study = _readpath.Study(source, task["set"], None)
    pending = study.begin(task)
    missing = pending.missing()
    if missing:
        # By its text, since a worker has no such file.
        sent: Source = {**source, "text": source["text"] or Path(source["name"]).read_text(encoding="utf-8")}
        job: _Job = {
            "version": __version__,
            "header": study.header(),
            "study": (sent, task["set"], study.texts()),
            "question": None,
            "sent": study.traces() if traces == "content" else [],
        }
        with _client(given, timeout) as client:
            _Farm(client, job, timeout, _KEPT_POINTS).make(pending, missing)
    return pending.finish()


def ask(words: list[str], texts: list[tuple[str, str]], given: Any, timeout: float, keep: list[str]) -> Shown:
    """Makes the points of a question on a cluster, round by round, and answers it. ``keep`` are words for this side."""
    question = _readpath.Question([*words, *keep], texts, [])
    with _client(given, timeout) as client:
        more = True
        while more:
            job: _Job = {
                "version": __version__,
                "header": question.header(),
                "study": None,
                "question": (words, question.texts(), question.kept()),
                "sent": [],
            }
            if missing := question.missing():
                _Farm(client, job, timeout, _KEPT_POINTS if keep else "").make(question, missing)
            more = question.more()
    return question.answer()


@contextmanager
def _client(given: Any, timeout: float) -> Iterator[Any]:
    distributed = _distributed()
    if isinstance(given, distributed.Client):
        yield given
        return
    if not isinstance(given, str):
        raise TypeError(f"client: {given!r}: expected a distributed.Client or an address such as tcp://host:8786")
    client = _connected(distributed, given, timeout)
    try:
        yield client
    finally:
        client.close(timeout=timeout)


def _connected(distributed: Any, address: str, timeout: float) -> Any:
    """A client of a scheduler."""
    connected: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def connect() -> None:
        try:
            connected.put(distributed.Client(address, timeout=timeout, set_as_default=False))
        except Exception as error:
            connected.put(error)

    # Dask waits for ever for a peer that takes a connection and sends nothing.
    threading.Thread(target=connect, name="readpath connects", daemon=True).start()
    try:
        # Its own error says more.
        client = connected.get(timeout=timeout + 1)
    except queue.Empty:
        client = TimeoutError()
    if isinstance(client, (OSError, TimeoutError)):
        raise Error(f"client: {address}: no scheduler answered within {timeout:g} s")
    if isinstance(client, Exception):
        raise Error(f"client: {address}: is no address of a scheduler: {client}")
    return client


def _distributed() -> Any:
    try:
        import distributed
    except ModuleNotFoundError:
        raise ImportError("client needs Dask.distributed: pip install distributed") from None
    return distributed


class _Farm:
    """A client's side of a cluster."""

    def __init__(self, client: Any, job: _Job, timeout: float, kept: str) -> None:
        if client.asynchronous:
            raise Error("client: is asynchronous; expected one that waits")
        self.client, self.job, self.timeout = client, job, timeout
        #: What an error says of points that were made.
        self.kept = kept
        self.address: str = client.scheduler.address if client.scheduler is not None else "the scheduler"
        # New for each call: a scheduler may still know those of an earlier one, and answer with what came of it.
        self.key = f"readpath-{uuid.uuid4().hex}"
        self.task = _task()
        #: Batches that came, or failed, with what came.
        self.done: queue.SimpleQueue[tuple[Any, futures.Future[Any]]] = queue.SimpleQueue()
        #: Batches that are out.
        self.out: dict[Any, list[int]] = {}
        #: Plugins that the cluster has for this study alone.
        self.names: list[str] = []

    def _send(self) -> None:
        # One content is sent once, whatever paths it has.
        traces = {sha256: path for path, sha256 in self.job["sent"]}
        for path in traces.values():
            size = Path(path).stat().st_size
            if size > _MOST_TRACE_BYTES:
                most = _MOST_TRACE_BYTES >> 20
                limit = f"traces='content' sends {most} MiB at most; put it where workers see it"
                raise Error(f"{path}: has {size} bytes; {limit}")
        for sha256, path in traces.items():
            content = Path(path).read_bytes()
            # A cluster has it even if a worker then cannot take it.
            self.names.append(f"readpath-{sha256}-{uuid.uuid4()}")
            self.client.register_plugin(_sender(sha256, content), name=self.names[-1])

    def make(self, pending: Pending | Question, missing: list[int]) -> None:
        """Has points made, and keeps them as they come."""
        try:
            self._send()
            self._make(pending, deque(missing))
        finally:
            try:
                pending.sync()
            finally:
                self._clean()

    def _clean(self) -> None:
        if self.client.status != "running":
            return
        self.client.cancel(list(self.out))
        unregister = self.client.scheduler.unregister_worker_plugin
        for name in self.names:
            # A worker may be lost just now, or the scheduler not have it: no error beside that of the work.
            try:
                self.client.sync(unregister, name=name, callback_timeout=self.timeout)
            except TimeoutError:
                return
            except (OSError, ValueError):
                continue

    def _make(self, pending: Pending | Question, missing: deque[int]) -> None:
        job = zlib.compress(pickle.dumps(self.job))
        threads, looked, alive = self._threads(), time.monotonic(), time.monotonic()
        seconds, points = 0.0, 0
        failure: Exception | None = None
        failed = 0.0
        while missing or self.out:
            while failure is None and missing and len(self.out) < _AHEAD * max(threads, 1):
                wanted = max(_BATCH_SECONDS, threads / _TASKS_PER_SECOND)
                size = int(wanted * points / seconds) if seconds else 1
                size = max(1, min(size, _BATCH_POINTS, len(missing) // (2 * _AHEAD * max(threads, 1))))
                self._submit(job, [missing.popleft() for _ in range(min(size, len(missing)))])
            for future, given in self._ended():
                if error := self._error(future, given):
                    del self.out[future]
                    future.release()
                    if failure is None:
                        failure, failed = error, time.monotonic()
                    continue
                batch, [(lines, took)] = self.out.pop(future), given.result()
                pending.keep(batch, lines)
                # Else the workers hold it until Python collects what refers to it.
                future.release()
                seconds, points, alive = seconds + took, points + len(batch), time.monotonic()
            if failure is not None:
                # What has ended is kept first.
                coming = any(future.status == "finished" for future in self.out)
                if coming and time.monotonic() - failed < self.timeout:
                    continue
                raise failure
            if time.monotonic() - looked >= _LOOK_SECONDS:
                threads, looked = self._threads(), time.monotonic()
                if threads:
                    alive = looked
                elif looked - alive > self.timeout:
                    raise Error(f"client: {self.address}: no worker came within {self.timeout:g} s{self.kept}")

    def _submit(self, job: bytes, batch: list[int]) -> None:
        numbers = pickle.dumps(batch)
        future = self.client.submit(self.task, job, numbers, key=f"{self.key}-{batch[0]}")
        self.out[future] = batch
        # It waits for as long as it takes, and again if a worker is lost before it gives the batch up: so not here.
        gathered: Any = self.client.gather([future], asynchronous=True)
        given = asyncio.run_coroutine_threadsafe(gathered, self.client.loop.asyncio_loop)
        given.add_done_callback(lambda _: self.done.put((future, given)))

    def _ended(self) -> Iterator[tuple[Any, futures.Future[Any]]]:
        """Batches that came or failed since, or do so soon."""
        try:
            yield self.done.get(timeout=_LOOK_SECONDS)
            while True:
                yield self.done.get_nowait()
        except queue.Empty:
            pass

    def _error(self, future: Any, given: futures.Future[Any]) -> Exception | None:
        """Why a batch failed, if it did."""
        error = None if given.cancelled() else given.exception()
        if error is None and not given.cancelled():
            return None
        batch = self.out[future]
        if future.status != "error":
            return Error(f"client: {self.address}: the scheduler was lost, or its work was cancelled{self.kept}")
        if isinstance(error, Error):
            return Error(f"client: {self.address}: {error}")
        if isinstance(error, _distributed().scheduler.KilledWorker):
            lost = "every worker that made them was lost, perhaps for want of memory"
            return Error(f"client: {self.address}: points {batch[0]} to {batch[-1]}: {lost}{self.kept}")
        if isinstance(error, ImportError):
            return Error(f"client: {self.address}: a worker cannot import readpath {__version__}: {error}")
        return Error(f"client: {self.address}: {type(error).__name__}: {error}")

    def _threads(self) -> int:
        """Threads of all workers."""
        if self.client.scheduler is None or self.client.status != "running":
            raise Error(f"client: {self.address}: the scheduler was lost{self.kept}")
        try:
            ncores = self.client.scheduler.ncores
            found: dict[str, int] = self.client.sync(ncores, workers=None, callback_timeout=self.timeout)
        except (OSError, TimeoutError):
            what = f"the scheduler did not answer within {self.timeout:g} s"
            raise Error(f"client: {self.address}: {what}{self.kept}") from None
        return sum(found.values())

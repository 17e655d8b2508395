# SPDX-License-Identifier: MIT OR Apache-2.0
"""The extension module: src/lib.rs. It is not for users."""

from collections.abc import Callable
from pathlib import Path
from typing import TypedDict

__version__: str

class Error(ValueError): ...

class Source(TypedDict):
    name: str
    text: str | None

class Reading(TypedDict):
    format: str | None
    columns: str | None
    object_bytes: int | None
    ufs_block_bytes: int | None
    trace_device: str | None
    merge_devices: bool
    lenient: bool

class Requests(TypedDict):
    format: str
    notes: list[str]
    time_ns: bytes
    op: bytes
    offset_bytes: bytes
    size_bytes: bytes
    process: bytes
    latency_ns: bytes

class Shown(TypedDict):
    json: str
    missing: str | None

class Question:
    def __new__(cls, words: list[str], texts: list[tuple[str, str]], kept: list[bytes]) -> Question: ...
    def header(self) -> str: ...
    def texts(self) -> list[tuple[str, str]]: ...
    def missing(self) -> list[int]: ...
    def make(self, points: list[int], go_on: Callable[[], None]) -> bytes: ...
    def keep(self, points: list[int], lines: bytes) -> None: ...
    def sync(self) -> None: ...
    def kept(self) -> list[bytes]: ...
    def more(self) -> bool: ...
    def answer(self) -> Shown: ...

class Task(TypedDict):
    out: Path | None
    threads: int | None
    set: list[str]
    shard: str | None
    retry_failed: bool

class Swept(TypedDict):
    study: str
    out: Path
    count: int
    done: int
    made: int
    failed: int
    first_failure: str | None
    points: Path | None
    failures: Path | None
    json: str | None
    damaged: list[str]

class Sent(TypedDict):
    texts: list[tuple[str, str | None, int | None]]
    traces: dict[str, Path]

class Study:
    def __new__(cls, source: Source, set: list[str], sent: Sent | None) -> Study: ...
    def header(self) -> str: ...
    def texts(self) -> list[tuple[str, str | None, int | None]]: ...
    def traces(self) -> list[tuple[str, str]]: ...
    def make(self, points: list[int], go_on: Callable[[], None]) -> bytes: ...
    def begin(self, task: Task) -> Pending: ...

class Pending:
    def missing(self) -> list[int]: ...
    def keep(self, points: list[int], lines: bytes) -> None: ...
    def sync(self) -> None: ...
    def finish(self) -> Swept: ...

class Maps(TypedDict):
    of: str
    page_kib: list[int]
    region_mib: list[int]
    sample: int | None

class MapCurve(TypedDict):
    map: str
    page_bytes: int
    accesses: int
    pages: int
    knee: int | None
    memory: bytes
    hits: bytes

def devices() -> list[str]: ...
def examples(dir: Path) -> list[Path]: ...
def device(name: str, set: list[str]) -> str: ...
def csv(document: str) -> str: ...
def page(document: str) -> str: ...
def ask(words: list[str], texts: list[tuple[str, str]]) -> Shown: ...
def sweep(study: Source, task: Task) -> Swept: ...
def merge(folders: list[Path], out: Path) -> Swept: ...
def mrc(trace: Path, how: Reading, maps: Maps) -> list[MapCurve]: ...
def trace(trace: Path, how: Reading, most: int | None) -> Requests: ...

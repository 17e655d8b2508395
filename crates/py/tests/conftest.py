# SPDX-License-Identifier: MIT OR Apache-2.0
"""What tests share: the command, and files to run."""

import json
import os
import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest

ROOT = Path(__file__).resolve().parents[3]
COMMAND = os.environ.get("READPATH", str(ROOT / "target/release/readpath"))

LIBRARIES: tuple[Literal["pandas"], Literal["polars"]] = ("pandas", "polars")

# A shell starts jobs in the background with SIGINT ignored; tests of Ctrl-C need it.
signal.signal(signal.SIGINT, signal.default_int_handler)

Command = Callable[..., subprocess.CompletedProcess[str]]

JOB = """[job]
filename=/dev/sda
rw=randread
bs=4k
size=1g
io_size=16m
iodepth=8
ioengine=libaio
"""

STUDY = f"""schema = "readpath-study/1"
name = "small"
title = "A small study"
seed = 3
device = "ufs21-64g"

[workload]
kind = "fio"
text = '''
{JOB}'''

[[factor]]
key = "hpb"
values = ["off", "dcm"]

[[factor]]
key = "map_cache.size_kib"
values = [64, 1024, 4096]
"""


@pytest.fixture
def command() -> Command:
    """Runs the program."""

    def run(*arguments: str | Path, status: int = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run([COMMAND, *map(str, arguments)], capture_output=True, text=True)
        assert done.returncode == status, done.stderr
        return done

    return run


@pytest.fixture(autouse=True)
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of its own to run in, with a job and a study."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.fio").write_text(JOB)
    (tmp_path / "small.toml").write_text(STUDY)
    return tmp_path


def as_arguments(text: str) -> str:
    """An error of the command with its options as arguments: ``--max-idle`` is ``max_idle``."""
    return re.sub(r"(?<![^ ('])--([a-z][a-z-]*)", lambda option: option[1].replace("-", "_"), text)


def without_process(text: str) -> dict[str, Any]:
    """A document without what depends on the machine."""
    document: dict[str, Any] = json.loads(text)
    assert document.pop("process")["cpu_seconds"] > 0
    return document

# SPDX-License-Identifier: MIT OR Apache-2.0
"""Calls beside the interpreter: other threads go on, and Ctrl-C ends them."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import readpath
from conftest import STUDY, Command

#: A device that takes longer to fill than a user waits, and a job that never ends.
LARGE = "[job]\nfilename=/dev/sda\nrw=randread\nbs=4k\nsize=900g\nio_size=900g\n"
LONG = "[job]\nfilename=/dev/sda\nrw=randread\nbs=4k\nsize=1g\nio_size=4000g\niodepth=4\nioengine=libaio\n"


def test_the_package_is_that_of_the_command(command: Command) -> None:
    assert command("--version").stdout == f"readpath {readpath.__version__}\n"


def test_import_is_quick(capsys: pytest.CaptureFixture[str]) -> None:
    code = "import time; t = time.perf_counter(); import readpath; print(time.perf_counter() - t)"
    times = [float(subprocess.check_output([sys.executable, "-c", code])) for _ in range(5)]
    with capsys.disabled():
        print(f"\nimport readpath: {1000 * min(times):.0f} ms")
    # Libraries of tables are imported by those who use them.
    code = "import readpath, sys; print(sorted({'distributed', 'matplotlib', 'numpy', 'pandas'} & set(sys.modules)))"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "[]\n"


def test_other_threads_go_on() -> None:
    turns, done = 0, threading.Event()

    def count() -> None:
        nonlocal turns
        while not done.is_set():
            turns += 1
            time.sleep(0.001)

    counter = threading.Thread(target=count)
    counter.start()
    try:
        before = turns
        readpath.fio(LONG.replace("4000g", "8g"), hpb="off", threads=1)
        during = turns - before
    finally:
        done.set()
        counter.join()
    # One at most if the call kept the lock of the interpreter.
    assert during > 10


def test_runs_in_several_threads() -> None:
    results: list[list[dict[str, object]]] = []
    threads = [threading.Thread(target=lambda: results.append(readpath.fio("small.fio").rows)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4 and all(rows == results[0] for rows in results)


@pytest.mark.parametrize("call", ["run", "fill", "study"])
def test_ctrl_c_ends_a_call(call: str) -> None:
    study = STUDY.replace("io_size=16m", "io_size=400g")
    calls: dict[str, Callable[[], object]] = {
        "run": lambda: readpath.fio(LONG),
        "fill": lambda: readpath.fio(LARGE, device="nvme-dramless-1t", fill="random", hpb="off"),
        "study": lambda: readpath.sweep(study, out="here"),
    }
    # None of these calls ends by itself within the patience of a test.
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        calls[call]()


def test_a_study_goes_on_after_ctrl_c() -> None:
    study = STUDY.replace("io_size=16m", "io_size=8g")
    ended = threading.Event()

    def interrupt() -> None:
        # A segment begins with a line of its own; the second line is the first point.
        while not any(segment.read_bytes().count(b"\n") > 1 for segment in Path("here").glob("*.seg")):
            if ended.wait(0.005):
                return
        os.kill(os.getpid(), signal.SIGINT)

    watcher = threading.Thread(target=interrupt)
    watcher.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            readpath.sweep(study, out="here", threads=1)
    finally:
        ended.set()
        watcher.join()
    kept = sum(segment.read_bytes().count(b"\n") - 1 for segment in Path("here").glob("*.seg"))
    made = readpath.sweep(study, out="here")
    assert 1 <= kept < 6 and made.done == 6
    whole = readpath.sweep(study, out="whole")
    assert whole.points is not None and made.points is not None
    assert made.points.read_bytes() == whole.points.read_bytes()


@pytest.mark.parametrize("call", [repr(LONG), f"{LARGE!r}, device='nvme-dramless-1t', fill='random'"])
def test_a_script_ends_by_ctrl_c(call: str) -> None:
    Path("script.py").write_text(f"import readpath\nprint('begun', flush=True)\nreadpath.fio({call})\n")
    script = subprocess.Popen([sys.executable, "script.py"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert script.stdout is not None and script.stdout.readline() == "begun\n"
    time.sleep(0.3)
    script.send_signal(signal.SIGINT)
    _, printed = script.communicate()
    assert printed.endswith("KeyboardInterrupt\n") and script.returncode == -signal.SIGINT

# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs and their results: those of the command."""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pytest
import readpath
from conftest import JOB, LIBRARIES, ROOT, Command, as_arguments, without_process


@pytest.mark.parametrize("hpb", ["off", "dcm", "hcm", "off,dcm,hcm", "prototype-host"])
def test_a_job_has_the_results_of_the_command(command: Command, hpb: Any) -> None:
    printed = command("fio", "small.fio", "--hpb", hpb, "--set", "map_cache.size_kib=512", "--json").stdout
    results = readpath.fio("small.fio", hpb=hpb, set={"map_cache.size_kib": 512})
    results.to_json("result.json")
    assert without_process(Path("result.json").read_text()) == without_process(printed)
    # The text as such differs only there.
    assert Path("result.json").read_text().split('"process"')[0] == printed.split('"process"')[0]


def test_options_of_a_job(command: Command) -> None:
    options = ["--device", "ufs31-256g", "--fill", "random", "--seed", "7", "--json"]
    printed = json.loads(command("fio", "small.fio", *options).stdout)
    results = readpath.fio(Path("small.fio"), device="ufs31-256g", fill="random", seed=7, threads=1)
    assert results.rows == printed["rows"]
    assert results.document["configuration"] == printed["configuration"]


def test_a_job_that_is_a_text() -> None:
    text, file = readpath.fio(JOB, hpb="off"), readpath.fio("small.fio", hpb="off")
    assert [row["simulated"] for row in text.rows] == [row["simulated"] for row in file.rows]
    assert text.document["title"] == "fio job"
    assert text.document["inputs"][0]["text"] == JOB


def test_inputs_to_try_are_those_of_the_command(command: Command) -> None:
    command("examples", "theirs")
    made = readpath.examples("mine")
    assert sorted(made) == sorted(path.name for path in Path("theirs").iterdir())
    assert all(path.read_bytes() == (Path("theirs") / name).read_bytes() for name, path in made.items())
    made["phone.fio"].write_text("other")
    with pytest.raises(readpath.Error, match="mine/phone.fio: has other contents; give another folder"):
        readpath.examples("mine")


def test_no_command_line_makes_a_result_of_python_again() -> None:
    results = readpath.fio("small.fio", hpb="off")
    assert "command" not in results.document["process"]
    results.report("page.html")
    assert 'class="command"' not in Path("page.html").read_text()


def test_an_experiment_has_the_results_of_the_command(command: Command) -> None:
    text = (ROOT / "docs/examples/map_cache.toml").read_text()
    small = text.replace("total_gib = 4 ", "total_gib = 1 ").replace("total_gib = 16 ", "total_gib = 2 ")
    Path("own.toml").write_text(small)
    printed = command("reproduce", "own.toml", "--set", "queue_depth=16", "--json").stdout
    results = readpath.reproduce("own.toml", set={"queue_depth": 16})
    results.to_json("result.json")
    assert without_process(Path("result.json").read_text()) == without_process(printed)
    variant = results.rows[0]["variant"]
    one = readpath.reproduce(Path("own.toml"), set={"queue_depth": 16}, variant=variant, threads=1)
    assert one.rows == [row for row in results.rows if row["variant"] == variant]
    as_text = readpath.reproduce(Path("own.toml").read_text(), set={"queue_depth": 16})
    assert as_text.rows == results.rows


@pytest.mark.skipif("READPATH_LONG" not in os.environ, reason="takes minutes; READPATH_LONG=1 runs it")
def test_attacks_belong_to_the_experiment_on_verification(command: Command) -> None:
    printed = command("reproduce", "verification", "--json").stdout
    results = readpath.reproduce("verification")
    results.to_json("result.json")
    assert without_process(Path("result.json").read_text()) == without_process(printed)


def test_a_device_with_changed_keys(command: Command) -> None:
    device = readpath.device("ufs21-64g", set={"map_cache.size_kib": 64, "lu[0].hpb": True})
    assert device["map_cache"]["size_kib"] == 64
    Path("own.toml").write_text(device.toml)
    assert readpath.device(Path("own.toml")).toml == device.toml
    command("device", "check", "own.toml")
    as_keys = readpath.fio("small.fio", hpb="dcm", set={"map_cache.size_kib": numpy.int64(64)})
    as_device = readpath.fio("small.fio", hpb="dcm", device=device)
    assert as_device.rows == as_keys.rows
    changed_again = readpath.fio("small.fio", hpb="off", device=device, set={"map_cache.size_kib": 4096})
    assert changed_again.value("map_hit_ratio") > 90


def test_rows_as_tables(command: Command) -> None:
    results = readpath.fio("small.fio")
    for library in LIBRARIES:
        frame = results.to_frame(library)
        assert type(frame).__module__.startswith(library)
        assert list(frame["simulated"]) == [row["simulated"] for row in results.rows]
    results.to_csv("rows.csv")
    command("fio", "small.fio", "--csv", "theirs.csv")
    assert Path("rows.csv").read_bytes() == Path("theirs.csv").read_bytes()


def test_a_value_by_its_name() -> None:
    results = readpath.fio("small.fio")
    [row] = [row for row in results.rows if row["metric"] == "read_iops" and row["variant"] == "HPB dcm"]
    assert results.value("read_iops", variant="HPB dcm", case="small") == row["simulated"]
    assert readpath.fio("small.fio", hpb="dcm").value("read_iops") == row["simulated"]
    choose = "read_iops: there are 2 rows; choose one: case='small', variant='HPB off'; "
    with pytest.raises(readpath.Error, match=choose):
        results.value("read_iops")
    with pytest.raises(readpath.Error, match="^reads: there is no such row$"):
        results.value("reads")


def test_libraries_that_are_missing_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    results = readpath.fio("small.fio", hpb="off")
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert type(results.to_frame()).__module__.startswith("polars")
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(ImportError, match=r"^to_frame\(\) needs pandas or polars: pip install pandas$"):
        results.to_frame()
    with pytest.raises(ImportError, match="needs polars: pip install polars"):
        results.to_frame("polars")
    monkeypatch.setitem(sys.modules, "numpy", None)
    Path("trace.csv").write_text("time_ns,op,offset_bytes,size_bytes,process,latency_ns\n0,R,0,4096,,\n")
    with pytest.raises(ImportError, match="needs NumPy"):
        readpath.mrc("trace.csv")


def test_a_run_that_ends_early_has_results_and_a_warning(command: Command) -> None:
    reads, writes = "[reads]\nrw=randread\nbs=4k\nio_size=4m\n", "[writes]\nstonewall\nrw=write\nbs=1m\nio_size=8g\n"
    Path("full.fio").write_text("[global]\nfilename=/dev/sda\nsize=128m\n" + reads + writes)
    worn = {
        "faults.program_failures_ppm": 100_000,
        "faults.erase_failures_ppm": 100_000,
        "lu[0].capacity_gib": 1,
        "geometry.blocks_per_plane": 60,
    }
    options = [f"--set={key}={value}" for key, value in worn.items()]
    failed = command("fio", "full.fio", "--hpb", "off", *options, "--json", status=1)
    with pytest.warns(RuntimeWarning, match="^results are incomplete: full, HPB off: ") as warned:
        results = readpath.fio("full.fio", hpb="off", set=worn)
    assert failed.stderr == f"readpath: {warned[0].message}\n"
    assert results.rows == json.loads(failed.stdout)["rows"]
    assert warned[0].filename == __file__


#: Arguments of the command, and the call that has the same error.
MISTAKES: list[tuple[list[str], Callable[[], object]]] = [
    (["fio", "none.fio"], lambda: readpath.fio("none.fio")),
    (["fio", "small.fio", "--device", "ufs21"], lambda: readpath.fio("small.fio", device="ufs21")),
    (["fio", "small.fio", "--set", "map_cache.size=1"], lambda: readpath.fio("small.fio", set={"map_cache.size": 1})),
    (["fio", "small.fio", "--set", "queue_depth=[1"], lambda: readpath.fio("small.fio", set={"queue_depth": "[1"})),
    (["fio", "wrong.fio"], lambda: readpath.fio("wrong.fio")),
    (["reproduce", "none.toml"], lambda: readpath.reproduce("none.toml")),
    (["reproduce", "small.toml"], lambda: readpath.reproduce("small.toml")),
    (["sweep", "none.toml"], lambda: readpath.sweep("none.toml")),
    (["sweep", "small.toml", "--set", "job.iodept=1"], lambda: readpath.sweep("small.toml", set={"job.iodept": 1})),
    (["sweep", "merge", "none", "--out", "o"], lambda: readpath.merge(["none"], "o")),
    (["sweep", "merge", ".", "--out", "o"], lambda: readpath.merge(["."], "o")),
    (["trace", "mrc", "small.fio"], lambda: readpath.mrc("small.fio")),
    (["trace", "mrc", "none.csv"], lambda: readpath.mrc("none.csv")),
]


@pytest.mark.parametrize(("arguments", "call"), MISTAKES, ids=[" ".join(arguments) for arguments, _ in MISTAKES])
def test_mistakes_are_those_of_the_command(
    command: Command, arguments: list[str], call: Callable[[], object]
) -> None:
    Path("wrong.fio").write_text("[job]\nfilename=/dev/sda\nrw=randreed\n")
    printed = as_arguments(command(*arguments, status=2).stderr.removeprefix("readpath: "))
    with pytest.raises(readpath.Error) as error:
        call()
    assert f"{error.value}\n" == printed
    assert isinstance(error.value, ValueError)


def test_mistakes_that_only_python_can_have() -> None:
    # What a type checker would say.
    wrong: Any = "on"
    mistakes: list[tuple[Callable[[], object], str]] = [
        (lambda: readpath.fio("small.fio", hpb=wrong), "invalid value 'on' for 'hpb' [possible values: off, "),
        (lambda: readpath.fio("small.fio", fill=wrong), "invalid value 'on' for 'fill' ["),
        (lambda: readpath.sweep("small.toml", shard=(3, 2)), 'shard "3/2": expected I/N with I from 1 to N'),
        (lambda: readpath.mrc("small.fio", of=wrong), 'of: is "on"; expected "reads", "writes" or "all"'),
        (lambda: readpath.fio("small.fio", seed=-1), "seed: is -1; expected a whole number from 0 to 1844674407370955"),
        (lambda: readpath.fio("small.fio", threads=0), "threads: is 0; expected a whole number from 1"),
        (lambda: readpath.reproduce("iozone", case="3 GB"), "case '3 GB' is not one of: 1 GB, 4 GB, "),
        (lambda: readpath.mrc("small.fio", page_kib=[3]), "page_kib: 3: expected a power of two"),
        (lambda: readpath.reproduce("no\nTOML"), "experiment.toml:1:3: this is not TOML"),
    ]
    for call, text in mistakes:
        with pytest.raises(readpath.Error) as error:
            call()
        assert str(error.value).startswith(text)
    with pytest.raises(TypeError, match="is no value of a key"):
        readpath.fio("small.fio", set={"queue_depth": None})  # type: ignore[dict-item]
    with pytest.raises(TypeError):
        readpath.fio(3)  # type: ignore[arg-type]

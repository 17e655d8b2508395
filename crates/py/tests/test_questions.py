# SPDX-License-Identifier: MIT OR Apache-2.0
"""Questions: their documents are those of the command."""

import json
import os
import shlex
import shutil
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import readpath
from conftest import JOB, ROOT, Command, as_arguments, without_process
from readpath import ubi
from test_traces import TRACE

#: A job that is over at once.
SHORT = JOB.replace("io_size=16m", "io_size=2m")
#: The same on a device of a few blocks.
FEW = SHORT.replace("\nsize=1g", "\nsize=100m")
#: A device of a few blocks, so that a power cut finds its map soon.
SMALL = {"lu[0].blocks": 40_000, "geometry.blocks_per_plane": 60}
SET = [f"--set={key}={value}" for key, value in SMALL.items()]
MEASURED = "range_gib,queue_depth,hpb,metric,value\n0.5,31,off,throughput_mib_s,260\n4,31,off,throughput_mib_s,160\n"
#: What fio printed of the jobs of a plan.
RECORDED = ROOT / "crates/cli/tests/golden/probe/reads-1.json"
PLAN = "device probe plan --target=/data/probe.bin --size=512M --seconds=2 --out=p"

#: Words of the command, and the call that has the same document.
QUESTIONS: list[tuple[str, Callable[[], readpath.Results]]] = [
    ("compare short.fio --seeds=2 --hpb=off,dcm", lambda: readpath.compare("short.fio", seeds=2, hpb=["off", "dcm"])),
    (
        "compare short.fio --seeds=2 --vary=map_cache.size_kib=64,4096 --vary=a:hpb=off "
        "'--base=a, map_cache.size_kib=64'",
        lambda: readpath.compare(
            "short.fio",
            seeds=2,
            vary={"map_cache.size_kib": [64, 4096], "a": {"hpb": "off"}},
            base="a, map_cache.size_kib=64",
        ),
    ),
    (
        "compare play.csv --policy=lru,exclusive --vary=map_cache.size_kib=64 --fill=random --seeds=2 --iodepth=4",
        lambda: readpath.compare(
            "play.csv",
            policy=["lru", "exclusive"],
            vary={"map_cache.size_kib": [64]},
            fill="random",
            seeds=2,
            iodepth=4,
        ),
    ),
    (
        "break-even short.fio --from=64 --to=1024 --within=5 --device=ufs31-256g",
        lambda: readpath.break_even("short.fio", least=64, most=1024, within=5, device="ufs31-256g"),
    ),
    (
        f"power few.fio --cuts=3 --off=5ms --hpb=dcm {' '.join(SET)}",
        lambda: readpath.power("few.fio", cuts=3, off_ms=5, hpb="dcm", set=SMALL),
    ),
    (
        f"power play.csv --fold --cuts=2 --policy=cost-aware --host-memory=8M {' '.join(SET)}",
        lambda: readpath.power(
            "play.csv", fold=True, cuts=2, policy=["cost-aware"], host_memory="8M", set=SMALL
        ),
    ),
    (
        "replay play.csv --policy=lru --host-memory=1M --max-idle=1ms --events=events.csv",
        lambda: readpath.replay("play.csv", policy=["lru"], host_memory=1 << 20, max_idle_ms=1, events="events.csv"),
    ),
    (
        "hmb play.csv --fold --sizes=0,8,16",
        lambda: readpath.hmb("play.csv", fold=True, sizes=[0, 8, 16]),
    ),
    (
        "ubi replay find.csv --cache=none,lru --lines=4,8",
        lambda: ubi.replay("find.csv", cache=["none", "lru"], lines=[4, 8]),
    ),
    ("reproduce ubi --out=ubi", lambda: ubi.reproduce()),
    (
        "device fit measured.csv --ios=1000 --params=firmware.flash_op_us",
        lambda: readpath.fit("measured.csv", ios=1000, params=["firmware.flash_op_us"]),
    ),
    (
        "device probe fit reads.json --plan=p --ios=500 --params=firmware.flash_op_us",
        lambda: readpath.probe("reads.json", plan="p", ios=500, params=["firmware.flash_op_us"]),
    ),
]


@pytest.fixture(autouse=True)
def inputs(room: Path, command: Command) -> None:
    """Files that the questions name."""
    command(*PLAN.split())
    shutil.copy(RECORDED, "reads.json")
    Path("events.csv").write_text("20,suspend\n30,resume\n40,pressure,512K\n")
    Path("short.fio").write_text(SHORT)
    Path("few.fio").write_text(FEW)
    Path("play.csv").write_text(TRACE)
    Path("measured.csv").write_text(MEASURED)
    Path("find.csv").write_text("".join(f"R,{i % 7},{i % 5 * 2048},512,,find\n" for i in range(200)))


@pytest.mark.parametrize(("words", "ask"), QUESTIONS, ids=[words for words, _ in QUESTIONS])
def test_a_question_has_the_document_of_the_command(
    command: Command, words: str, ask: Callable[[], readpath.Results]
) -> None:
    printed = command(*shlex.split(words), "--json").stdout
    results = ask()
    results.to_json("result.json")
    assert without_process(Path("result.json").read_text()) == without_process(printed)
    assert len(results.to_frame()) == len(results.rows) > 0
    assert results.verdict == "\n".join(note["text"] for note in json.loads(printed).get("verdict", []))


@pytest.mark.skipif("READPATH_LONG" not in os.environ, reason="takes minutes; READPATH_LONG=1 runs it")
def test_experiments_on_traces_are_those_of_the_command(command: Command) -> None:
    Path("block").mkdir()
    Path("play.csv").rename("block/play.csv")
    printed = command("reproduce", "policies", "--traces=.", "--case=play.csv", "--json").stdout
    readpath.policies(".", case="play.csv").to_json("result.json")
    assert without_process(Path("result.json").read_text()) == without_process(printed)


def test_workloads_that_are_texts() -> None:
    file, text = readpath.compare("short.fio", seeds=2), readpath.compare(SHORT, seeds=2)
    assert [row["simulated"] for row in text.rows] == [row["simulated"] for row in file.rows]
    cut = readpath.power(FEW, cuts=2, hpb="off", set=SMALL)
    assert cut.value("power_cuts") == 2 and cut.value("blocks_wrong") == 0


def test_only_encrypted_entries_give_nothing_away() -> None:
    leaked: dict[str, float] = {}
    for row in readpath.attack(seed=3).rows:
        if row["metric"] == "leaked":
            leaked[row["variant"]] = leaked.get(row["variant"], 0.0) + row["simulated"]
    assert leaked["encrypted"] == 0 and max(leaked.values()) > 0


def ubi_image() -> bytes:
    """Four erase blocks of 16 KiB: two with an empty volume table, two free ones."""

    def sealed(header: bytes) -> bytes:
        return header + struct.pack(">I", zlib.crc32(header) ^ 0xFFFF_FFFF)

    counter = sealed(struct.pack(">4sB3xQIII32x", b"UBI#", 1, 1, 512, 1024, 7))
    table = sealed(bytes(168)) * 89
    blocks = []
    for number in range(4):
        block = counter.ljust(512, b"\xff")
        if number < 2:
            volume = struct.pack(">4sBBBBII4xIIII4xQ12x", b"UBI!", 1, 1, 0, 5, 0x7FFF_EFFF, number, 0, 0, 0, 0, number)
            block += sealed(volume).ljust(512, b"\xff") + table
        blocks.append(block.ljust(16384, b"\xff"))
    return b"".join(blocks)


def test_an_attach(command: Command) -> None:
    Path("nand.img").write_bytes(ubi_image())
    words = ["ubi", "attach", "nand.img", "--peb-size=16384", "--page-size=512", "--json"]
    printed = json.loads(command(*words).stdout)
    results = ubi.attach("nand.img", peb_size=16384, page_size=512)
    assert results.document["configuration"]["streams"] == printed
    seconds = results.value("other_seconds", variant="none")
    assert seconds == pytest.approx(printed["attach"]["seconds"]) and printed["attach"]["reads"] > 4


MISTAKES: list[tuple[str, Callable[[], object]]] = [
    ("compare none.fio", lambda: readpath.compare("none.fio")),
    ("compare short.fio --base=none", lambda: readpath.compare("short.fio", base="none")),
    ("break-even short.fio --key=queue_depth", lambda: readpath.break_even("short.fio", key="queue_depth")),
    ("power short.fio --fold", lambda: readpath.power("short.fio", fold=True)),
    ("power play.csv --off=2000s", lambda: readpath.power("play.csv", off_ms=2_000_000)),
    ("device fit none.csv", lambda: readpath.fit("none.csv")),
    ("ubi replay find.csv --cache=best", lambda: ubi.replay("find.csv", cache=["best"])),
    ("fio short.fio --policy=best", lambda: readpath.fio("short.fio", policy=["best"])),
]


@pytest.mark.parametrize(("words", "ask"), MISTAKES, ids=[words for words, _ in MISTAKES])
def test_mistakes_are_those_of_the_command(command: Command, words: str, ask: Callable[[], object]) -> None:
    said = as_arguments(command(*words.split(), status=2).stderr.removeprefix("readpath: "))
    with pytest.raises(readpath.Error) as error:
        ask()
    assert f"{error.value}\n".replace("2000000ms", "2000s") == said


def test_a_value_that_clap_refuses() -> None:
    wrong: Any = "maybe"
    with pytest.raises(readpath.Error, match=r"^invalid value 'maybe' for 'hpb'"):
        readpath.fio("short.fio", hpb=wrong)


def test_runs_are_kept() -> None:
    def compare(seeds: int, **kept: Any) -> list[dict[str, Any]]:
        return readpath.compare("short.fio", hpb=["off", "dcm"], seeds=seeds, **kept).rows

    expected = compare(2)
    assert compare(2, keep="runs") == expected
    segments = sorted(Path("runs").iterdir())
    assert compare(2, keep=Path("runs"), threads=1) == expected
    assert sorted(Path("runs").iterdir()) == segments
    with pytest.raises(readpath.Error, match="belongs to another plan"):
        compare(3, keep="runs")


def test_arguments_that_a_question_does_not_have() -> None:
    wrong: Any = {"case": "x"}
    with pytest.raises(TypeError, match=r"^power\(\) has no argument 'case'$"):
        readpath.power("short.fio", **wrong)
    wrong = {"map_cache_kib": [64]}
    with pytest.raises(TypeError, match=r"^replay\(\) has no argument 'map_cache_kib'; it is now 'vary'$"):
        readpath.replay("play.csv", **wrong)
    with pytest.raises(TypeError, match=r"^attack\(\) has no argument 'fold'$"):
        readpath.attack(fold=True)  # type: ignore[call-arg]
    with pytest.raises(readpath.Error, match="^threads: is for this machine"):
        readpath.compare("short.fio", threads=2, client="tcp://127.0.0.1:1")

# SPDX-License-Identifier: MIT OR Apache-2.0
"""Traces: as arrays, replayed, and the maps that they need. All as the command has them."""

import csv
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy
import pytest
import readpath
from conftest import LIBRARIES, Command


TRACE = "\n".join(
    ["time_ns,op,offset_bytes,size_bytes,process,latency_ns"]
    + [f"{i * 40_000},{'RRW'[i % 3]},{(i * i * 7 % 1009) << 22},4096,," for i in range(3000)]
    + [""]
)


@pytest.mark.parametrize(
    ("options", "given"),
    [
        ([], {}),
        (["--iodepth", "8", "--hpb", "dcm"], {"iodepth": 8, "hpb": "dcm"}),
        (
            ["--vary", "map_cache.size_kib=64,2048", "--speed", "4"],
            {"vary": {"map_cache.size_kib": [64, 2048]}, "speed": 4},
        ),
        (
            ["--precondition", "before.csv", "--max-idle", "1ms", "--fill", "random", "--seed", "7"],
            {"precondition": ["before.csv"], "max_idle_ms": 1, "fill": "random", "seed": 7},
        ),
        (["--fold", "--set", "lu[0].capacity_gib=2"], {"fold": True, "set": {"lu[0].capacity_gib": 2}}),
    ],
    ids=["plain", "closed", "caches", "precondition", "fold"],
)
def test_a_replay_is_that_of_the_command(command: Command, options: list[str], given: dict[str, Any]) -> None:
    Path("play.csv").write_text(TRACE)
    Path("before.csv").write_text(TRACE.replace(",R,", ",W,"))
    printed = json.loads(command("replay", "play.csv", *options, "--json").stdout)
    results = readpath.replay("play.csv", **given)
    assert results.rows == printed["rows"]
    assert results.document["charts"] == printed["charts"]
    assert results.document["notes"] == printed["notes"]
    assert any("FOLDED" in str(note) for note in results.notes) == ("fold" in given)


def test_mistakes_of_a_replay() -> None:
    Path("play.csv").write_text(TRACE)
    wrong: Any = "none"
    mistakes: list[tuple[Callable[[], object], str]] = [
        (lambda: readpath.replay("none.csv"), "none.csv: cannot be read: No such file"),
        (lambda: readpath.replay("play.csv", iodepth=70_000), "invalid value '70000' for 'iodepth': "),
        (lambda: readpath.replay("play.csv", iodepth=1, speed=2.0), "speed, max_idle and spread_ties change times"),
        (lambda: readpath.replay("play.csv", fill=wrong), "fill none is for jobs: "),
        (lambda: readpath.replay("play.csv", speed=0.0), "speed: "),
        (lambda: readpath.replay("play.csv", max_idle_ms=-1.0), "max_idle_ms: is -1; expected 0 to 1000000000"),
        (lambda: readpath.replay("small.fio"), "small.fio: "),
    ]
    for call, text in mistakes:
        with pytest.raises(readpath.Error) as error:
            call()
        assert str(error.value).startswith(text)


def test_map_hits_of_a_trace(command: Command) -> None:
    lines = [f"{i * 1000},{'RW'[i % 3 == 0]},{(i * i % 61) << 22},4096,," for i in range(2000)]
    head = "time_ns,op,offset_bytes,size_bytes,process,latency_ns"
    Path("trace.csv").write_text("\n".join([head, *lines, ""]))
    printed = json.loads(command("trace", "mrc", "trace.csv", "--json").stdout)
    counted = {(row["variant"], row["metric"]): row["simulated"] for row in printed["rows"]}
    kinds: list[Literal["reads", "writes", "all"]] = ["reads", "writes", "all"]
    for of in kinds:
        for curve in readpath.mrc("trace.csv", of=of):
            variant = f"{curve.map}, {of}"
            assert curve.pages == counted[variant, "map_pages_touched"]
            assert curve.knee == counted[variant, "map_knee"]
            assert curve.memory[-1] == counted[variant, "map_enough"]
            for kib in 16, 64, 128, 1024:
                expected = counted.get((variant, f"map_hits_at_{kib}_kib"))
                hits = curve.hits[curve.memory <= kib << 10]
                assert expected is None or expected == pytest.approx(hits[-1] if len(hits) else 0.0)
    [one] = readpath.mrc("trace.csv", page_kib=[4], region_mib=[])
    assert one.memory.dtype == numpy.int64 and one.hits.flags.writeable


MSR_LIKE = "3,R,4096,4096,10\n7,W,0,512,30\n4,W,8192,512,20\n"

#: Text of a trace, and how it is read: for Python, and for the command.
READ: list[tuple[str, readpath.Reading]] = [
    (TRACE, {}),
    ("0,R,0,4096\n5,D,8192,4096\n9,F,0,0\n", {"columns": "time=0:ns,op=1,offset=2:bytes,size=3:bytes"}),
    (
        "".join(f"{i},{op},{i * 4096},4096\n" for i, op in enumerate(["R", "W", "WF", "FW", "FWF", "D"])),
        {"columns": "time=0:ns,op=1,offset=2:bytes,size=3:bytes"},
    ),
    (
        "when;what;where;sectors\n5;w;8;16\n7;r;0;8\n",
        {"columns": "time=when:ms,op=what:r/w,offset=where:sectors,size=sectors:sectors,sep=semicolon"},
    ),
    (
        "0,R,0,4096,1,\n10,W,4096,x,2,\n20,WF,8192,512,3,77\n",
        {
            "columns": "time=0:ns,op=1,offset=2:bytes,size=3:bytes,process=4,latency=5:ns",
            "format": "csv",
            "lenient": True,
        },
    ),
    (MSR_LIKE, {"format": "alibaba", "trace_device": "7"}),
    (MSR_LIKE, {"format": "alibaba", "merge_devices": True}),
]


@pytest.mark.parametrize(("text", "how"), READ)
def test_a_trace_as_arrays_is_that_of_the_command(command: Command, text: str, how: readpath.Reading) -> None:
    Path("trace.txt").write_text(text)
    options = [f"--{key.replace('_', '-')}" + ("" if value is True else f"={value}") for key, value in how.items()]
    said = command("trace", "convert", "trace.txt", "--output", "out.csv", *options).stdout
    with open("out.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    trace = readpath.trace("trace.txt", **how)
    assert len(trace) == len(rows) > 0
    assert trace.notes and all(note in said for note in trace.notes)
    for i, row in enumerate(rows):
        assert trace.op[i] == row["op"]
        numbers = [trace.time_ns[i], trace.offset_bytes[i], trace.size_bytes[i], trace.process[i]]
        assert numbers == [int(row[key] or -1) for key in ("time_ns", "offset_bytes", "size_bytes", "process")]
        assert trace.latency_ns[i] == float(row["latency_ns"]) if row["latency_ns"] else math.isnan(trace.latency_ns[i])
    for library in LIBRARIES:
        frame = trace.to_frame(library)
        if library == "pandas":
            frame.to_csv("again.csv", index=False)
        else:
            frame.write_csv("again.csv")
        assert Path("again.csv").read_bytes() == Path("out.csv").read_bytes()
    trace.time_ns[0] = 3


def test_the_first_of_a_trace() -> None:
    Path("play.csv").write_text(TRACE)
    whole, part = readpath.trace("play.csv"), readpath.trace("play.csv", requests=1234)
    assert (len(whole), len(part)) == (3000, 1234)
    assert numpy.array_equal(whole.offset_bytes[:1234], part.offset_bytes)
    # More than are read at a time.
    assert len(readpath.trace("play.csv", requests=10**9)) == 3000


def test_options_say_how_replays_and_curves_read(command: Command) -> None:
    Path("bare.txt").write_text("".join(f"{i * 50},{(i * i * 7 % 1009) << 10},r,8\n" for i in range(9000)))
    columns = "time=0:us,op=2:r/w,offset=1:sectors,size=3:sectors"
    printed = json.loads(command("replay", "bare.txt", "--columns", columns, "--json").stdout)
    results = readpath.replay("bare.txt", columns=columns)
    assert (results.rows, results.document["notes"]) == (printed["rows"], printed["notes"])
    command("trace", "convert", "bare.txt", "--output", "own.csv", "--columns", columns)
    by_columns, converted = readpath.mrc("bare.txt", columns=columns), readpath.mrc("own.csv")
    assert [curve.hits.tolist() for curve in by_columns] == [curve.hits.tolist() for curve in converted]
    trace = readpath.trace("bare.txt", columns=columns, requests=5000)
    assert trace.offset_bytes[4999] == (4999 * 4999 * 7 % 1009) << 19


def test_mistakes_of_reading() -> None:
    Path("play.csv").write_text(TRACE)
    Path("huge.csv").write_text("0,R,9223372036854775808,4096\n")
    columns = "time=0:ns,op=1,offset=2:bytes,size=3:bytes"
    mistakes: list[tuple[Callable[[], object], str]] = [
        (lambda: readpath.trace("none.csv"), "none.csv: cannot be read: No such file"),
        (lambda: readpath.trace("small.fio"), "small.fio: "),
        (lambda: readpath.trace("play.csv", format="cvs"), 'format: "cvs" is not a format; there are msr, '),
        (lambda: readpath.trace("play.csv", format="csv", columns="time=0"), 'columns: "op" is missing'),
        (lambda: readpath.trace("huge.csv", format="csv"), "format: csv needs columns"),
        (lambda: readpath.trace("huge.csv", columns=columns), "huge.csv: has a number beyond 2^63 - 1"),
        (lambda: readpath.trace("play.csv", requests=0), "requests: is 0; expected a whole number from 1"),
        (lambda: readpath.mrc("play.csv", object_bytes=0), "object_bytes: is 0; expected a whole number"),
        (lambda: readpath.mrc("play.csv", object_bytes=1 << 33), "object_bytes: is 8589934592; expected "),
        (lambda: readpath.trace("play.csv", trace_device="0", merge_devices=True), "trace_device and merge_devices"),
        (lambda: readpath.replay("play.csv", object_bytes=512), "play.csv: "),
    ]
    for call, text in mistakes:
        with pytest.raises(readpath.Error) as error:
            call()
        assert str(error.value).startswith(text), error.value
    with pytest.raises(TypeError, match=r"^trace\(\) has no argument 'column'$"):
        readpath.trace("play.csv", column="")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="^trace_device: is 7; expected a text$"):
        readpath.trace("play.csv", trace_device=7)  # type: ignore[arg-type]


def test_what_is_odd_is_noted() -> None:
    Path("seconds.csv").write_text("".join(f"{i // 300},R,{i * 4096},4096\n" for i in range(3000)))
    columns = "time=0:s,op=1,offset=2:bytes,size=3:bytes"
    coarse, *others = readpath.trace("seconds.csv", columns=columns).notes
    assert coarse.endswith("spread_ties of replay() spreads them")
    assert others == ["seconds.csv: format csv, not compressed, 3000 requests over 9.000 s"]

# SPDX-License-Identifier: MIT OR Apache-2.0
"""Studies: segments and tables are those of the command, to the byte."""

from pathlib import Path

import pytest
import readpath
from conftest import LIBRARIES, STUDY, Command, without_process


def segments(folder: str | Path) -> list[bytes]:
    """What each segment holds; their names have the number of the process."""
    return sorted(path.read_bytes() for path in Path(folder).glob("*.seg"))


@pytest.mark.parametrize("given", [{}, {"seed": 1}, {"job.iodepth": 2, "flash.read_us": 41.5}])
def test_a_study_is_that_of_the_command(command: Command, given: dict[str, int | float]) -> None:
    options = [f"--set={key}={value}" for key, value in given.items()]
    command("sweep", "small.toml", "--out", "theirs", "--threads", "1", *options)
    study = readpath.sweep("small.toml", out="ours", threads=1, set=given)
    assert (study.study, study.count, study.done, study.made, study.failed) == ("small", 6, 6, 6, 0)
    assert segments("ours") == segments("theirs")
    assert study.points == Path("ours/points.csv")
    assert study.points.read_bytes() == Path("theirs/points.csv").read_bytes()
    two = readpath.sweep(Path("small.toml"), out=Path("two"), threads=2, set=given)
    assert two.points is not None and two.points.read_bytes() == study.points.read_bytes()
    assert study.results is not None
    study.results.to_json("result.json")
    shown = without_process(Path("result.json").read_text())
    assert shown == without_process(Path("theirs/result.json").read_text())
    for library in LIBRARIES:
        assert list(study.to_frame(library)["map_cache.size_kib"]) == [64, 1024, 4096] * 2


def test_one_goes_on_where_the_other_stopped(command: Command) -> None:
    command("sweep", "small.toml", "--shard", "1/2")
    study = readpath.sweep("small.toml")
    assert (study.out, study.made, study.done) == (Path("out/small"), 3, 6)
    assert "6 of them made before" in command("sweep", "small.toml").stdout


def test_shards_are_merged(command: Command) -> None:
    for i in 1, 2:
        part = readpath.sweep("small.toml", out=f"part{i}", shard=f"{i}/2")
        assert (part.done, part.points) == (3, None)
        why = r"^part\d: holds 3 of 6 points; merge\(\) makes a table of all shards$"
        with pytest.raises(readpath.Error, match=why):
            part.to_frame()
    study = readpath.merge(["part1", "part2"], "all")
    assert repr(study) == "<readpath.Sweep 'small': 6 of 6 points, 0 failed>"
    command("sweep", "merge", "part1", "part2", "--out", "theirs")
    assert study.points is not None
    assert study.points.read_bytes() == Path("theirs/points.csv").read_bytes()
    assert readpath.merge(["part1"], "some").points is None


def test_points_that_fail_are_reported(command: Command) -> None:
    text = STUDY.replace("[64, 1024, 4096]", "[64, 1024, 0]")
    Path("bad.toml").write_text(text)
    failed = command("sweep", "bad.toml", "--out", "theirs", status=1)
    with pytest.warns(RuntimeWarning, match="^2 of 6 points failed; point 2 ") as warned:
        study = readpath.sweep(Path("bad.toml"), out="ours")
    assert f"readpath: {warned[0].message}\n" == failed.stderr.replace("theirs", "ours")
    assert warned[0].filename == __file__
    assert (study.done, study.failed, study.failures) == (6, 2, Path("ours/failed.csv"))
    assert study.failures is not None
    assert study.failures.read_bytes() == Path("theirs/failed.csv").read_bytes()
    assert len(study.to_frame()) == 4
    with pytest.warns(RuntimeWarning, match="^2 of 6 points failed"):
        assert readpath.sweep(Path("bad.toml"), out="ours", retry_failed=True).made == 2


def test_a_study_that_is_a_text_and_its_damage() -> None:
    study = readpath.sweep(STUDY, out="here", threads=1)
    [segment] = Path("here").glob("*.seg")
    segment.write_bytes(segment.read_bytes()[:-10])
    with pytest.warns(RuntimeWarning, match="what it held was made again"):
        again = readpath.sweep(STUDY, out="here", threads=1)
    assert (again.made, again.done) == (1, 6)
    with pytest.raises(readpath.Error, match='belongs to another plan of "'):
        readpath.sweep(STUDY.replace("4096", "2048"), out="here")
    assert study.to_frame().equals(again.to_frame())

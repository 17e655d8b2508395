# SPDX-License-Identifier: MIT OR Apache-2.0
"""Shards of a study as tasks of HyperQueue: a real server and a worker, and the bytes of one machine."""

from pathlib import Path

from conftest import COMMAND, STUDY, Command
from hyperqueue import Job, LocalCluster
from hyperqueue.cluster import WorkerConfig


def test_shards_of_hyperqueue_are_merged(command: Command, tmp_path: Path) -> None:
    shards = 4
    Path("study.toml").write_text(STUDY.replace("[64, 1024, 4096]", f"{list(range(64, 64 * 12, 64))}"))
    command("sweep", "study.toml", "--out", "whole")
    job = Job(default_workdir=str(tmp_path))
    for i in range(1, shards + 1):
        sweep = [COMMAND, "sweep", "study.toml", "--threads", "1", "--shard", f"{i}/{shards}", "--out", f"part{i}"]
        job.program(sweep, stdout=f"{i}.out", stderr=f"{i}.err")
    with LocalCluster(server_dir=str(tmp_path / "server"), worker_config=WorkerConfig(cores=2)) as cluster:
        client = cluster.client()
        assert client.wait_for_jobs([client.submit(job)])
    parts = [f"part{i}" for i in range(1, shards + 1)]
    assert all(list(Path(part).glob("*.seg")) and not Path(part, "points.csv").exists() for part in parts)
    command("sweep", "merge", "--out", "merged", *parts)
    assert Path("merged/points.csv").read_bytes() == Path("whole/points.csv").read_bytes()

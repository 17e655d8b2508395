# SPDX-License-Identifier: MIT OR Apache-2.0
"""Which map cache is worth its SRAM, with HPB and without? Optuna asks for points, Readpath tells what they come to.

    pip install optuna
    python docs/examples/optuna_search.py
"""

import optuna
import readpath

JOB = """[job]
filename=/dev/sda
rw=randread
bs=4k
size=2g
io_size=16m
iodepth=8
ioengine=libaio
"""


def point(trial: optuna.Trial) -> tuple[float, float, float]:
    """Mean latency of reads in us, SRAM of the map cache in KiB, and host memory in KiB."""
    sram_kib = trial.suggest_int("map_cache.size_kib", 64, 4096, step=64)
    hpb = trial.suggest_categorical("hpb", ["off", "dcm"])
    results = readpath.fio(JOB, hpb=hpb, set={"map_cache.size_kib": sram_kib})
    return results.value("read_latency_mean"), sram_kib, results.value("host_memory") / 1024


def main(trials: int = 40) -> optuna.Study:
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    # All three should be small.
    study = optuna.create_study(directions=["minimize"] * 3, sampler=optuna.samplers.TPESampler(seed=1))
    for _ in range(trials):
        trial = study.ask()
        study.tell(trial, point(trial))
    return study


if __name__ == "__main__":
    print("What nothing else beats in all of latency, SRAM and host memory:")
    for best in sorted(main().best_trials, key=lambda trial: trial.values):
        latency_us, sram_kib, host_kib = best.values
        print(f"{latency_us:6.1f} us, {sram_kib:4.0f} KiB of SRAM, {host_kib:6.0f} KiB of host memory")

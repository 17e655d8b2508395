# SPDX-License-Identifier: MIT OR Apache-2.0
"""Examples and notebooks run as they are."""

import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest
from conftest import ROOT
from nbclient import NotebookClient

NOTEBOOKS = sorted((ROOT / "docs/notebooks").glob("*.ipynb"))


def test_optuna_asks_for_points_and_gets_their_figures() -> None:
    script: dict[str, Any] = runpy.run_path(str(ROOT / "docs/examples/optuna_search.py"))
    study = script["main"](trials=6)
    assert len(study.trials) == 6
    for trial in study.trials:
        latency_us, sram_kib, host_kib = trial.values
        assert latency_us > 0 and sram_kib == trial.params["map_cache.size_kib"]
        assert (host_kib > 0) == (trial.params["hpb"] == "dcm")
    # The smallest SRAM is beaten by nothing that has more.
    least = min(trial.values[1] for trial in study.trials)
    assert least in [trial.values[1] for trial in study.best_trials]


def test_there_are_notebooks() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["first_run", "sensitivity", "trace"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=[path.stem for path in NOTEBOOKS])
def test_a_notebook(path: Path, room: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A kernel that is there without being installed for the user.
    prefix = room / "kernels"
    subprocess.run([sys.executable, "-m", "ipykernel", "install", "--prefix", prefix], check=True, capture_output=True)
    monkeypatch.setenv("JUPYTER_PATH", str(prefix / "share/jupyter"))
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(room / "runtime"))
    notebook: Any = nbformat.read(path, as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    # What stands in it is what was written, not what one machine made of it.
    assert code and all(not cell.outputs and cell.execution_count is None for cell in code)
    NotebookClient(notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(room)}}).execute()
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))

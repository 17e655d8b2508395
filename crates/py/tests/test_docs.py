# SPDX-License-Identifier: MIT OR Apache-2.0
"""What documentation shows is what happens; types are those of the code."""

import doctest
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import readpath
from conftest import ROOT
from readpath import _charts, _cluster, _given, _questions, _readpath, _results, ubi

FLAGS = doctest.NORMALIZE_WHITESPACE


@pytest.mark.parametrize("module", [readpath, _charts, _cluster, _given, _questions, _results, ubi])
def test_docstrings(module: object) -> None:
    result = doctest.testmod(module, extraglobs={"readpath": readpath}, optionflags=FLAGS)  # type: ignore[arg-type]
    assert result.failed == 0
    assert result.attempted > 0 or module is not readpath


def test_the_chapter(room: Path) -> None:
    shutil.copytree(ROOT / "docs/examples", room / "docs/examples")
    chapter = (ROOT / "docs/python.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```pycon\n(.*?)^```$", chapter, re.MULTILINE | re.DOTALL)
    # What else is Python in it needs a cluster.
    assert set(re.findall(r"^```(\w+)$", chapter, re.MULTILINE)) == {"console", "pycon", "python"}
    assert chapter.count("```python\n") == 1
    test = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, "docs/python.md", "docs/python.md", 0)
    result = doctest.DocTestRunner(optionflags=FLAGS).run(test)
    assert (result.failed, result.attempted > 20) == (0, True)


def test_types() -> None:
    folders = [ROOT / "crates/py/python/readpath", ROOT / "crates/py/tests"]
    options = ["--config-file", ROOT / "pyproject.toml", "--cache-dir", "cache", *folders]
    checked = subprocess.run([sys.executable, "-m", "mypy", *map(str, options)], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_the_stub_has_what_the_module_has() -> None:
    stub = (ROOT / "crates/py/python/readpath/_readpath.pyi").read_text(encoding="utf-8")
    functions = set(re.findall(r"^def (\w+)", stub, re.MULTILINE)) | {"Pending", "Question", "Study"}
    for kind in _readpath.Study, _readpath.Pending, _readpath.Question:
        body = stub.split(f"class {kind.__name__}:\n")[1].split("\n\n")[0]
        methods = set(re.findall(r"^    def (\w+)", body, re.MULTILINE))
        assert methods - {"__new__"} == {name for name in vars(kind) if not name.startswith("_")}
    assert functions == {name for name in vars(_readpath) if not name.startswith("_")} - {"Error"}
    assert readpath.Error.__module__ == "readpath"
    for name in readpath.__all__:
        assert hasattr(readpath, name)
        assert name == "__version__" or getattr(readpath, name).__doc__

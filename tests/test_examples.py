"""The examples run, as programs of their own."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from tests.documents import ROOT
from tests.waiting import PATIENCE

EXAMPLES = ROOT / "examples"
# The last line that each prints.
SAID = {
    "attention": "4 heads, 60 positions: as NumPy computes them",
    "embedding_bag": "refused: embedding_bag: an index into dimension 0 of table is outside of 0:1000 (statement S0); "
    "the results are undefined",
    "layer": "a batch of 32: as PyTorch computes it",
    "stencil": "temperatures below the hot edge: [91.1 82.3 73.8 65.5 57.7]",
}
# These start processes, which must have the cache and nothing of this one.
SAID_BY_PROCESSES = {
    "from_c": "4 5 6 15",
    "serve": "served 8 queries; of the compiler, nothing was loaded",
}


def test_every_example_is_run() -> None:
    assert sorted(path.stem for path in EXAMPLES.glob("*.py")) == sorted({*SAID, *SAID_BY_PROCESSES})


@pytest.mark.parametrize("name", SAID)
def test_an_example_does_what_it_says(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    assert capsys.readouterr().out.splitlines()[-1] == SAID[name]


@pytest.mark.parametrize("name", SAID_BY_PROCESSES)
def test_an_example_with_processes_does_what_it_says(name: str, tmp_path: Path) -> None:
    command = [sys.executable, str(EXAMPLES / f"{name}.py")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == SAID_BY_PROCESSES[name]
    assert list(tmp_path.iterdir()) == []

"""The examples run, as programs of their own."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

from tests.documents import ROOT

EXAMPLES = ROOT / "examples"
# The last line that each prints.
SAID = {
    "attention": "4 heads, 60 positions: as NumPy computes them",
    "embedding_bag": "refused: embedding_bag: an index into dimension 0 of table is outside of 0:1000 (statement S0); "
    "the results are undefined",
    "from_c": "4 5 6 15",
    "layer": "a batch of 32: as PyTorch computes it",
    "serve": "served 8 queries; of the compiler, nothing was loaded",
    "stencil": "temperatures below the hot edge: [91.1 82.3 73.8 65.5 57.7]",
}


def test_every_example_is_run() -> None:
    assert sorted(path.stem for path in EXAMPLES.glob("*.py")) == sorted(SAID)


@pytest.mark.usefixtures("brief_searches")
@pytest.mark.parametrize("name", SAID)
def test_an_example_does_what_it_says(
    name: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Some start processes, which print, too."""
    program = str(EXAMPLES / f"{name}.py")
    monkeypatch.setattr(sys, "argv", [program])
    monkeypatch.chdir(tmp_path)
    runpy.run_path(program, run_name="__main__")
    assert capfd.readouterr().out.splitlines()[-1] == SAID[name]
    assert list(tmp_path.iterdir()) == []

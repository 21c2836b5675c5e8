"""Temporary folders go with their processes."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tc.runtime.host.scratch import clear_abandoned, scratch_folder
from tests.programs import ROOT


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def test_a_folder_lives_as_long_as_its_block(place: Path) -> None:
    with scratch_folder("tc-tune-") as folder:
        (folder / "file").write_bytes(b"x")
        clear_abandoned()
        assert list(place.iterdir()) == [folder]
        assert (folder / "file").read_bytes() == b"x"
    assert list(place.iterdir()) == []


def test_what_a_killed_process_leaves_goes_when_the_next_one_begins(place: Path) -> None:
    program = f"""
import os, signal, tempfile
from tc.runtime.host.scratch import scratch_folder
tempfile.tempdir = {str(place)!r}
with scratch_folder("tc-tune-") as one, scratch_folder("tc-123-") as other:
    (one / "arrays").write_bytes(b"x" * 1000)
    (other / "kernel.c").write_bytes(b"x")
    os.kill(os.getpid(), signal.SIGKILL)
"""
    assert subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=False).returncode == -signal.SIGKILL
    assert len(list(place.iterdir())) == 2
    clear_abandoned()
    assert list(place.iterdir()) == []


def test_nothing_else_is_removed(place: Path) -> None:
    """What is kept for a person to read, what others made, and what a link leads to."""
    for name in ("tc-refused-1", "tc-other-1", "folder"):
        (place / name).mkdir()
        (place / name / "file").touch()
    (place / "tc-tune-link").symlink_to(place / "folder")
    (place / "tc-tune-file").touch()
    clear_abandoned()
    assert {path.name for path in place.rglob("*")} == {
        *("tc-refused-1", "tc-other-1", "folder", "tc-tune-link", "tc-tune-file", "file")
    }

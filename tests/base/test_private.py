"""Folders and files of ours are this user's alone, whatever the mask and whoever made them first."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

import tc
from tc.base.environment import Environment
from tc.base.private import make_folder, reclaim, write_file
from tests.programs import run

ALPHA = "\N{GREEK SMALL LETTER ALPHA}"


@pytest.fixture(params=[0o000, 0o002, 0o022, 0o077])
def mask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def write(path: Path) -> Path:
    write_file(path, ALPHA)
    return path


@pytest.mark.usefixtures("mask")
def test_all_folders_that_are_made_have_the_mode(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    for _ in range(2):
        make_folder(tmp_path / "a" / "b" / "c")
    assert [mode(tmp_path / name) for name in (".", "a", "a/b", "a/b/c")] == [0o755, 0o700, 0o700, 0o700]
    with pytest.raises(NotADirectoryError):
        make_folder(write(tmp_path / "file"))
    with pytest.raises(NotADirectoryError):
        make_folder(tmp_path / "file" / "c")


@pytest.mark.usefixtures("mask")
def test_files_are_private_and_no_links(tmp_path: Path) -> None:
    file = write(tmp_path / "file")
    assert (mode(file), file.read_text(encoding="utf-8")) == (0o600, ALPHA)
    file.chmod(0o666)
    assert mode(write(file)) == 0o600
    (tmp_path / "link").symlink_to(file)
    with pytest.raises(OSError, match="symbolic links"):
        write(tmp_path / "link")


def test_only_the_right_to_write_is_taken_back(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    for before, after in ((0o2777, 0o2755), (0o775, 0o755), (0o750, 0o750)):
        folder.chmod(before)
        reclaim(folder)
        assert mode(folder) == after
    (tmp_path / "link").symlink_to(folder)
    folder.chmod(0o777)
    reclaim(tmp_path / "link")
    assert mode(folder) == 0o777
    reclaim(tmp_path / "none")


@pytest.mark.usefixtures("mask")
def test_dumps_are_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tc.api.kernels.environment", lambda: Environment(dump=str(tmp_path / "dump")))
    tc.define("def f(float(N) x) -> (y) { y(i) = x(i) + 1 }").f.compile((4,))
    found = list((tmp_path / "dump").rglob("*"))
    assert len(found) > 3
    assert {mode(path) for path in found if path.is_file()} == {0o600}
    assert {mode(path) for path in (tmp_path / "dump", *found) if path.is_dir()} == {0o700}


FIRST = """
import os, warnings
warnings.simplefilter("error")
os.umask(0o002)
import numpy as np, tc
x = np.arange(5, dtype=np.float32)
assert tc.define("def f(float(N) x) -> (y) { y(i) = x(i) + 1 }")(x)[4] == 5
"""
AGAIN = f"""{FIRST}
import sys
assert "islpy" not in sys.modules
"""


def test_a_new_home_under_mask_002_keeps_kernels(tmp_path: Path) -> None:
    """Also where an earlier release has left the folder open to others."""
    settings = {"HOME": str(tmp_path), "XDG_CACHE_HOME": "", "TC_CACHE": "", "TC_CACHE_MODE": ""}
    run(FIRST, environment=settings)
    own = tmp_path / ".cache" / "tc"
    assert {mode(path) for path in (own.parent, own, own / "runtime")} == {0o700}
    assert {mode(path) for path in own.rglob("*") if path.is_file()} == {0o600}
    own.chmod(0o777)
    run(AGAIN, environment=settings)
    assert mode(own) == 0o755

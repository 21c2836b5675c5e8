"""Rebuildable files: remembered across processes, never trusted blindly."""

from __future__ import annotations

import fcntl
import hashlib
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tc.runtime.host.disk import remembered, temporary_folder
from tests.programs import ROOT


class Maker:
    """Makes ``content`` and counts how often."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.calls = 0

    def __call__(self) -> bytes:
        self.calls += 1
        return self.content


def test_made_once_and_then_read(tmp_path: Path) -> None:
    maker, folder = Maker(b"binary"), tmp_path / "a" / "b"
    assert [remembered(folder, ("x", "y"), maker) for _ in range(3)] == [b"binary"] * 3
    assert maker.calls == 1
    assert len(list(folder.iterdir())) == 1


def test_every_ingredient_counts(tmp_path: Path) -> None:
    for ingredients in (("x", "y"), ("x", "z"), ("xy",), ("x", "y", "")):
        content = repr(ingredients).encode()
        assert remembered(tmp_path / "c", ingredients, Maker(content)) == content


@pytest.mark.parametrize("damage", [b"", b"short", b"\0" * 100])
def test_a_damaged_file_is_made_anew(tmp_path: Path, damage: bytes) -> None:
    folder = tmp_path / "c"
    remembered(folder, ("x",), Maker(b"binary"))
    (file,) = folder.iterdir()
    file.write_bytes(damage)
    maker = Maker(b"binary")
    assert remembered(folder, ("x",), maker) == b"binary"
    assert remembered(folder, ("x",), maker) == b"binary"
    assert maker.calls == 1


def test_a_folder_open_to_others_is_not_used(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    remembered(folder, ("x",), Maker(b"planted"))
    folder.chmod(0o777)
    assert remembered(folder, ("x",), Maker(b"own")) == b"own"


@pytest.mark.parametrize("mask", [0o000, 0o002, 0o077])
def test_folders_and_files_are_this_users_alone(tmp_path: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        remembered(tmp_path / "a" / "tc" / "runtime", ("x",), Maker(b"binary"))
        with temporary_folder() as folder:
            assert folder.stat().st_mode & 0o777 == 0o700
    finally:
        os.umask(before)
    modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "a").rglob("*") if path.is_dir()}
    assert modes == {"tc": 0o700, "runtime": 0o700}
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o700
    (file,) = (tmp_path / "a" / "tc" / "runtime").iterdir()
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_cache_folder_that_an_earlier_release_opened_to_others_is_closed(tmp_path: Path) -> None:
    folder = tmp_path / "tc"
    folder.mkdir()
    folder.chmod(0o775)
    maker = Maker(b"binary")
    assert [remembered(folder / "runtime", ("x",), maker) for _ in range(2)] == [b"binary"] * 2
    assert (maker.calls, folder.stat().st_mode & 0o777) == (1, 0o755)


def test_a_link_is_not_followed_to_a_folder(tmp_path: Path) -> None:
    remembered(tmp_path / "planted", ("x",), Maker(b"planted"))
    (tmp_path / "tc").mkdir()
    (tmp_path / "tc" / "runtime").symlink_to(tmp_path / "planted")
    assert remembered(tmp_path / "tc" / "runtime", ("x",), Maker(b"own")) == b"own"


def test_a_folder_of_another_user_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "c"
    remembered(folder, ("x",), Maker(b"planted"))
    owner = folder.stat().st_uid
    monkeypatch.setattr("os.geteuid", lambda: owner + 1)
    assert remembered(folder, ("x",), Maker(b"own")) == b"own"


def test_without_a_usable_folder_everything_is_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    for folder in (None, tmp_path / "file" / "c", tmp_path / "file"):
        assert remembered(folder, ("x",), Maker(b"own")) == b"own"


def test_many_at_once_agree_and_leave_one_file(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda _: remembered(folder, ("x",), Maker(b"binary" * 1000)), range(32)))
    assert set(found) == {b"binary" * 1000}
    assert len(list(folder.iterdir())) == 1


def test_what_a_killed_process_was_writing_goes_when_the_next_one_begins(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    program = f"""
import os, signal
from pathlib import Path
from tc.runtime.host.disk import remembered
Path.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
remembered(Path({str(folder)!r}), ("x",), lambda: b"binary")
"""
    assert subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=False).returncode == -signal.SIGKILL
    (left,) = folder.iterdir()
    assert left.name.startswith("new-")
    # A file that is being written stays.
    with (folder / "new-other").open("wb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        assert remembered(folder, ("x",), Maker(b"binary")) == b"binary"
        assert not left.exists()
        assert {path.name[:4] for path in folder.iterdir()} == {"new-", hashlib.sha256(b"x").hexdigest()[:4]}
    assert remembered(folder, ("x",), Maker(b"other")) == b"binary"
    assert len(list(folder.iterdir())) == 1

"""Files that are written elsewhere, or were, read where nothing can be written."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tc.base.errors import CacheError
from tc.cache.content.integrity import verify
from tc.cache.content.lookup import Reader
from tc.cache.content.ship import ship
from tc.cache.content.store import Store
from tests.cache.content_support import content
from tests.cache.samples import filled, text


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
    try:
        yield
    finally:
        subprocess.run(["mount", "-o", "remount,rw", str(folder)], check=True)


def test_a_live_cache_on_a_read_only_disk_is_read(disk: Callable[[str], Path], tmp_path: Path) -> None:
    folder = disk("size=2m")
    path = filled(folder / "cache.db")
    expected = content(path)
    with read_only(folder):
        assert content(path) == expected
        assert verify(path) == ()
        ship(path, tmp_path / "shipped.db")
        with pytest.raises(CacheError) as caught:
            Store.open(path)
        assert [file.name for file in folder.iterdir()] == ["cache.db"]
    assert str(caught.value) == (
        f"{path} cannot be written: its folder can only be read by this process; name a cache in another one"
    )
    assert Reader.open(tmp_path / "shipped.db").manifest()


def test_a_log_that_was_left_there_says_what_to_do(disk: Callable[[str], Path], tmp_path: Path) -> None:
    source, folder = filled(tmp_path / "cache.db"), disk("size=2m")
    path = folder / "cache.db"
    with Reader.open(source).database.session():
        Store.open(source).add_text(text(99))
        for file in tmp_path.glob("cache.db*"):
            shutil.copy(file, folder)
    with read_only(folder):
        assert Reader.open(path).text(text(99).key) == text(99)
    path.with_name("cache.db-shm").unlink()
    with read_only(folder), pytest.raises(CacheError) as caught:
        Reader.open(path)
    assert str(caught.value) == (
        f"{path} is not complete: cache.db-wal beside it holds transactions that are not merged into it, and its "
        "folder can only be read; wait until its writer has ended, or run `tc-cache verify` where it is written"
    )
    # What the message says mends it.
    assert verify(path) == ()
    with read_only(folder):
        assert Reader.open(path).text(text(99).key) == text(99)


def test_a_cache_that_others_write_meanwhile_is_read_as_it_is(disk: Callable[[str], Path], tmp_path: Path) -> None:
    """A folder that is mounted twice: its writer sees the one that can be written."""
    folder, view = disk("size=2m"), tmp_path / "view"
    view.mkdir()
    path = filled(folder / "cache.db")
    subprocess.run(["mount", "--bind", str(folder), str(view)], check=True)
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", str(view)], check=True)
        reader = Reader.open(view / "cache.db")
        with Reader.open(path).database.session():
            Store.open(path).add_text(text(77))
            assert reader.text(text(77).key) == text(77)
        assert reader.text(text(77).key) == text(77)
    finally:
        subprocess.run(["umount", "-l", str(view)], check=True)

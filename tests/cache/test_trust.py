"""Files that others may write are refused, and seals are made with the key only."""

from __future__ import annotations

import hashlib
import hmac
import os
import re
from pathlib import Path

import pytest

from tc.cache.lookup import Reader
from tc.cache.store import Store
from tc.cache.trust import COMPANIONS, require_trusted, seal_of, sealed
from tc.errors import CacheError
from tests.cache.samples import filled

STRANGER = 12345


@pytest.fixture
def file(tmp_path: Path) -> Path:
    folder = tmp_path / "folder"
    folder.mkdir(mode=0o755)
    return filled(folder / "cache.db", count=1)


def refused(path: Path, message: str) -> None:
    """Nobody opens such a file."""
    for use in (Reader.open, Store.open, lambda where: Reader.open(where, immutable=True)):
        with pytest.raises(CacheError, match=re.escape(message)):
            use(path)


def test_files_of_ours_are_opened(file: Path) -> None:
    require_trusted(file)
    file.chmod(0o444)
    require_trusted(file)
    Reader.open(file)


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_files_that_others_may_write_are_refused(file: Path, mode: int) -> None:
    file.chmod(mode)
    refused(file, f"{file} can be written by other users, who could change the code in it; run chmod go-w on it")


@pytest.mark.parametrize("mode", [0o770, 0o707])
def test_folders_that_others_may_write_are_refused(file: Path, mode: int) -> None:
    file.parent.chmod(mode)
    refused(file, f"{file.parent} can be written by other users, who could replace the cache; run chmod go-w on it")
    file.parent.chmod(0o1777)
    require_trusted(file)


@pytest.mark.usefixtures("root")
def test_files_of_strangers_are_refused(file: Path) -> None:
    os.chown(file, STRANGER, -1)
    refused(file, f"{file} belongs to another user, who could change the code in it; use a copy of your own")


@pytest.mark.usefixtures("root")
def test_folders_of_strangers_are_refused(file: Path) -> None:
    os.chown(file.parent, STRANGER, -1)
    for mode in (0o755, 0o1777):
        file.parent.chmod(mode)
        refused(
            file, f"{file.parent} belongs to another user, who could replace the cache in it; use a folder of yours"
        )


@pytest.mark.parametrize("ending", COMPANIONS)
def test_what_sqlite_reads_beside_a_file_counts_too(file: Path, ending: str) -> None:
    companion = file.with_name(file.name + ending)
    companion.touch()
    companion.chmod(0o666)
    refused(file, f"{companion} can be written by other users")
    companion.unlink()
    companion.symlink_to(file)
    refused(file, f"{companion} is a symbolic link, which SQLite never makes; delete it")


def test_links_are_judged_by_what_they_lead_to(file: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.db"
    link.symlink_to(file)
    Reader.open(link)
    file.chmod(0o666)
    refused(link, f"{file} can be written by other users")


def test_folders_and_devices_are_no_caches(tmp_path: Path) -> None:
    refused(tmp_path, f"{tmp_path} is a folder, not a cache; name a file in it")
    os.mkfifo(tmp_path / "pipe")
    refused(tmp_path / "pipe", f"{tmp_path / 'pipe'} is not a regular file; name another one")


def test_new_files_are_ours_whatever_the_mask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        Store.open(tmp_path / "a" / "b" / "cache.db")
    finally:
        os.umask(before)
    require_trusted(tmp_path / "a" / "b" / "cache.db")
    assert (tmp_path / "a" / "b" / "cache.db").stat().st_mode & 0o777 == 0o600


def test_seals_are_made_with_the_key() -> None:
    assert seal_of("digest", None) == ""
    assert seal_of("digest", b"key") == hmac.new(b"key", b"digest", hashlib.sha256).hexdigest()
    assert sealed("digest", seal_of("digest", b"key"), b"key")
    for wrong in ("", seal_of("digest", b"yek"), seal_of("other", b"key"), "\u1234", "\udc80"):
        assert not sealed("digest", wrong, b"key")


def test_an_empty_key_is_none() -> None:
    with pytest.raises(CacheError, match="the key of a cache is empty; give one of 32 random bytes, or none at all"):
        seal_of("digest", b"")

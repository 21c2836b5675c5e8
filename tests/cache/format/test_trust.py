"""Files that others may write are refused, and seals are made with the key only."""

from __future__ import annotations

import hashlib
import hmac
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tc.base.errors import CacheError
from tc.cache.content.integrity import verify
from tc.cache.content.lookup import Reader
from tc.cache.content.ship import ship
from tc.cache.content.store import Store
from tc.cache.format.trust import COMPANIONS, require_trusted, seal_of, sealed
from tests.cache.samples import filled, text
from tests.programs import run as run_program

STRANGER = 12345
KEY = b"0123456789abcdef"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    folder = tmp_path / "folder"
    folder.mkdir(mode=0o755)
    return filled(folder / "cache.db", count=1)


@pytest.fixture
def sealed_file(tmp_path: Path) -> Path:
    folder = tmp_path / "sealed"
    folder.mkdir(mode=0o755)
    return filled(folder / "cache.db", count=1, key=KEY)


@pytest.fixture
def volume() -> Iterator[Path]:
    """A folder that every user can reach."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture
def shared_group(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every group has further members."""
    monkeypatch.setattr("tc.cache.format.private_group.is_private_group", lambda _group: False)


def refused(path: Path, message: str) -> None:
    """Such a file is not opened without a key."""
    for use in (Reader.open, Store.open, lambda where: Reader.open(where, immutable=True)):
        with pytest.raises(CacheError) as caught:
            use(path)
        assert str(caught.value).startswith(message)


def accepted(path: Path) -> None:
    """A file whose records are sealed is read and written, whoever may write it."""
    for immutable in (True, False):
        assert Reader.open(path, immutable=immutable, key=KEY).runs()
    Store.open(path, key=KEY).add_text(text(3))
    assert verify(path, key=KEY) == ()


SEAL = "or seal the cache with a secret (TC_CACHE_KEY)"


def test_files_of_ours_are_opened(file: Path) -> None:
    require_trusted(file, sealed=False)
    file.chmod(0o444)
    require_trusted(file, sealed=False)
    Reader.open(file)


@pytest.mark.usefixtures("shared_group")
@pytest.mark.parametrize("mode", [0o660, 0o606, 0o666])
def test_files_that_others_may_write_are_refused_without_seals(file: Path, sealed_file: Path, mode: int) -> None:
    file.chmod(mode)
    refused(
        file,
        f"{file} can be written by other users, who could change the code in it; run `chmod go-w {file}`, {SEAL}",
    )
    mend(file)
    sealed_file.chmod(mode)
    accepted(sealed_file)


@pytest.mark.usefixtures("shared_group")
@pytest.mark.parametrize("mode", [0o775, 0o707, 0o777, 0o2775])
def test_folders_that_others_may_write_are_refused_without_seals(file: Path, sealed_file: Path, mode: int) -> None:
    """Those of a project with the mask 002, a volume of Kubernetes (emptyDir, fsGroup), and others."""
    folder = file.parent
    folder.chmod(mode)
    file.chmod(0o660)
    refused(
        file,
        f"{folder} and {file} can be written by other users, who could change the code in it; "
        f"run `chmod go-w {folder} {file}`, {SEAL}",
    )
    with pytest.raises(CacheError, match=rf"run `chmod go-w {folder}`, or seal the cache"):
        Store.open(folder / "new.db")
    assert not (folder / "new.db").exists()
    mend(file)
    sealed_file.parent.chmod(mode)
    sealed_file.chmod(0o660)
    accepted(sealed_file)
    file.parent.chmod(0o1777)
    require_trusted(file, sealed=False)


def mend(file: Path) -> None:
    """The command that the message names is all that is needed, whatever the names."""
    with pytest.raises(CacheError) as caught:
        Reader.open(file)
    command = str(caught.value).split("`")[1]
    subprocess.run(command, shell=True, check=True)
    Reader.open(file)


@pytest.mark.usefixtures("shared_group")
def test_the_command_that_mends_quotes_names(tmp_path: Path) -> None:
    file = filled(tmp_path / "a b; echo 'x'.db", count=1)
    file.chmod(0o666)
    mend(file)


def test_a_group_without_other_members_shares_nothing(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What systems with a group for each user, and the mask 002, make of a project's folder."""
    monkeypatch.setattr("tc.cache.format.private_group.is_private_group", lambda group: group == file.stat().st_gid)
    file.parent.chmod(0o775)
    file.chmod(0o664)
    Store.open(file)
    Reader.open(file)
    file.chmod(0o666)
    refused(file, f"{file} can be written by other users")
    file.chmod(0o664)
    # A list of further users has its rights where those of the group stand.
    monkeypatch.setattr("tc.cache.format.private_group.has_access_list", lambda path: path == str(file))
    refused(file, f"{file} can be written by other users")


@pytest.mark.usefixtures("root")
def test_what_belongs_to_strangers_is_refused_without_seals(file: Path, sealed_file: Path) -> None:
    os.chown(file, STRANGER, STRANGER)
    refused(
        file,
        f"{file} belongs to another user, who could change the code in it; run `chown root {file}`, {SEAL}",
    )
    mend(file)
    for mode in (0o755, 0o1777):
        os.chown(file.parent, STRANGER, STRANGER)
        os.chown(file, STRANGER, STRANGER)
        file.parent.chmod(mode)
        file.chmod(0o664)
        refused(file, f"{file.parent} and {file} belong to another user, who could change the code in it; run `chown")
        mend(file)
    os.chown(sealed_file.parent, STRANGER, STRANGER)
    os.chown(sealed_file, STRANGER, STRANGER)
    accepted(sealed_file)


@pytest.mark.usefixtures("root")
def test_a_user_reads_what_is_sealed_whoever_has_it(volume: Path) -> None:
    """A volume of a group (fsGroup): a process that is neither root nor the owner, in strict mode and otherwise."""
    sealed_file = filled(volume / "cache.db", count=1, key=KEY)
    volume.chmod(0o2775)
    sealed_file.chmod(0o660)
    for path in (sealed_file, sealed_file.parent):
        os.chown(path, 4321, STRANGER)
    assert as_user(sealed_file, KEY) == "read, and written"
    without = as_user(sealed_file, None)
    assert without.startswith(f"{sealed_file.parent} and {sealed_file} belong to another user, who could change the")
    assert f"; run `install -m 600 {sealed_file} ~` and name the copy, {SEAL}" in without


def as_user(path: Path, key: bytes | None) -> str:
    """What becomes of a cache that another user opens."""
    return run_program(
        f"""
import grp, hashlib, hmac, os, pwd, shlex, sqlite3, sqlalchemy.dialects.sqlite
from tc.cache.content.lookup import Reader
from tc.cache.content.ship import ship
from tc.cache.content.store import Store
from tc.base.errors import CacheError
from tests.cache.samples import text
os.setgroups([{STRANGER}])
os.setgid({STRANGER + 1})
os.setuid({STRANGER + 1})
try:
    assert Reader.open({str(path)!r}, immutable=True, key={key!r}).runs()
    assert Reader.open({str(path)!r}, key={key!r}).runs()
    Store.open({str(path)!r}, key={key!r}).add_text(text(7))
    print("read, and written", end="")
except CacheError as error:
    print(error, end="")
"""
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


@pytest.mark.parametrize("mask", [0o000, 0o002, 0o022, 0o077])
def test_new_files_are_ours_whatever_the_mask(tmp_path: Path, mask: int) -> None:
    file = tmp_path / "a" / "b" / "cache.db"
    before = os.umask(mask)
    try:
        store = Store.open(file)
        with store.reader.database.session():
            store.add_text(text(1))
            made = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "a").rglob("*")}
        ship(file, tmp_path / "production" / "cache.db")
    finally:
        os.umask(before)
    assert made == {"b": 0o700} | dict.fromkeys(("cache.db", "cache.db-shm", "cache.db-wal"), 0o600)
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o700
    require_trusted(file, sealed=False)
    # This one is for all users to read, and for no other user to write.
    shipped = tmp_path / "production" / "cache.db"
    assert (shipped.stat().st_mode & 0o777, shipped.parent.stat().st_mode & 0o777) == (0o644, 0o755 & ~mask)


def test_seals_are_made_with_the_key() -> None:
    assert seal_of("digest", None) == ""
    assert seal_of("digest", b"key") == hmac.new(b"key", b"digest", hashlib.sha256).hexdigest()
    assert sealed("digest", seal_of("digest", b"key"), b"key")
    for wrong in ("", seal_of("digest", b"yek"), seal_of("other", b"key"), "\u1234", "\udc80"):
        assert not sealed("digest", wrong, b"key")


def test_an_empty_key_is_none() -> None:
    with pytest.raises(CacheError, match="the key of a cache is empty; give one of 32 random bytes, or none at all"):
        seal_of("digest", b"")

"""Caches on file systems that several hosts share, as their mounts say; the tests bring mounts of their own."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tc.base.environment import Environment
from tc.base.errors import CacheError
from tc.cache.content.configured import configured
from tc.cache.content.integrity import verify
from tc.cache.content.lookup import Reader
from tc.cache.content.merge import merge
from tc.cache.content.ship import ship
from tc.cache.content.store import Store
from tc.cache.database.file_systems import host_name, is_of_this_host, of_this_host, sharing, sharing_in
from tests.cache.samples import filled, text

MOUNTS = """\
22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard
40 27 0:50 / /home rw,relatime shared:1 - autofs /etc/auto.home rw
41 27 0:51 / /home rw,relatime shared:1 master:2 - nfs4 server:/home rw,vers=4.2
42 41 254:0 /scratch /home/me/local rw - xfs /dev/vdb rw
43 27 0:52 / /mnt/with\\040space rw - cifs //server/share rw
44 27 0:53 / /data rw - fuse.sshfs me@server: rw
45 27 0:54 / /usb rw - fuseblk /dev/sdb1 rw
46 27 0:55 / /pack ro - fuse.squashfuse image rw
47 27 0:56 / /work rw - lustre 10.0.0.1@tcp:/work rw
48 27 0:57 / /vm rw - virtiofs host rw
49 27 0:58 / /old rw - nfs server:/old rw
50 27 254:9 / /old rw - ext4 /dev/vdc rw
51 27 0:59 / /fuse rw - fuse something rw
nonsense
"""


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/tmp/k.db", None),
        ("/home/me/k.db", "nfs4 at /home"),
        ("/home", "nfs4 at /home"),
        ("/homes/k.db", None),
        ("/home/me/local/k.db", None),
        ("/mnt/with space/k.db", "cifs at /mnt/with space"),
        ("/data/k.db", "fuse.sshfs at /data"),
        ("/usb/k.db", None),
        ("/pack/k.db", None),
        ("/work/group/k.db", "lustre at /work"),
        ("/vm/k.db", "virtiofs at /vm"),
        ("/old/k.db", None),
        ("/fuse/k.db", "fuse at /fuse"),
    ],
)
def test_the_mount_of_a_path_says_who_shares_it(path: str, expected: str | None) -> None:
    assert sharing_in(MOUNTS, Path(path)) == expected


@pytest.mark.parametrize(
    "kind", ["nfs", "nfs4", "smb3", "9p", "ceph", "gpfs", "beegfs", "afs", "fuse.ceph", "fuse.s3fs"]
)
def test_file_systems_of_networks_are_known(kind: str) -> None:
    assert sharing_in(f"1 0 0:1 / /x rw - {kind} what rw\n", Path("/x/k.db")) == f"{kind} at /x"


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs", "zfs", "tmpfs", "overlay", "f2fs", "fuse.fuse-overlayfs"])
def test_disks_of_this_host_are_known(kind: str) -> None:
    assert sharing_in(f"1 0 0:1 / /x rw - {kind} what rw\n", Path("/x/k.db")) is None


def test_the_root_of_a_sandbox_is_its_own() -> None:
    assert sharing_in("1 0 0:1 / / rw - 9p root rw\n", Path("/k.db")) is None
    assert sharing_in("1 0 0:1 / / rw - nfs4 server:/root rw\n", Path("/k.db")) == "nfs4 at /"
    assert sharing_in("", Path("/k.db")) is None


def test_a_host_has_names_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    assert host_name().startswith(os.uname().nodename)
    file = of_this_host(Path("/a/tuned.db"))
    assert file == f"/a/tuned@{host_name()}.db"
    assert is_of_this_host(file)
    for other in ("/a/tuned.db", f"/a/{host_name()}.db", "/a/tuned@.db", f"/a/tuned@x{host_name()}.db"):
        assert not is_of_this_host(Path(other))
    monkeypatch.setattr("tc.cache.database.file_systems._HOST_NUMBER", Path("/nowhere"))
    assert host_name().startswith(os.uname().nodename)


@pytest.fixture
def mounted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that the system calls a mount of NFS."""
    (tmp_path / "mounts").write_text(f"1 0 0:1 / / rw - ext4 disk rw\n2 1 0:2 / {tmp_path}/nfs rw - nfs4 server:/ rw\n")
    monkeypatch.setattr("tc.cache.database.file_systems._MOUNTS", tmp_path / "mounts")
    (tmp_path / "nfs").mkdir(mode=0o755)
    assert sharing(tmp_path / "nfs" / "k.db") == f"nfs4 at {tmp_path}/nfs"
    assert sharing(tmp_path / "k.db") is None
    return tmp_path / "nfs"


def test_a_live_cache_is_written_on_one_host_only(mounted: Path, tmp_path: Path) -> None:
    path = mounted / "tuned.db"
    own = of_this_host(path)
    with pytest.raises(CacheError) as caught:
        Store.open(path)
    assert str(caught.value) == (
        f"{path} cannot be written: nfs4 at {mounted} has it, which several hosts may share, and its log works on one "
        "host only; name a server (postgresql://...), a file on a disk of this host, or a file for each host (here "
        f"{str(own)!r}) and join these with `tc-cache merge`"
    )
    assert list(mounted.iterdir()) == []
    # Each remedy works.
    filled(tmp_path / "here.db", 1)
    filled(Path(own), 2)
    elsewhere = mounted / "tuned@another-host.db"
    shutil.copy(filled(tmp_path / "there.db", 3), elsewhere)
    with pytest.raises(CacheError, match="cannot be written"):
        Store.open(elsewhere)
    merge(tmp_path / "here.db", [own, elsewhere])
    assert verify(tmp_path / "here.db") == ()
    with pytest.raises(CacheError, match="cannot be written"):
        merge(path, [own])


def test_what_is_shipped_goes_there_and_is_read_from_there(mounted: Path, tmp_path: Path) -> None:
    source = filled(tmp_path / "here.db")
    ship(source, mounted / "production" / "k.db")
    assert [file.name for file in (mounted / "production").iterdir()] == ["k.db"]
    expected = Reader.open(mounted / "production" / "k.db", immutable=True).manifest()
    assert Reader.open(mounted / "production" / "k.db").manifest() == expected


def test_what_another_host_writes_is_read_when_it_has_ended(mounted: Path, tmp_path: Path) -> None:
    path = tmp_path / "k.db"
    store = Store.open(path)
    store.add_text(text(1))
    elsewhere = mounted / "k.db"
    shutil.copy(path, elsewhere)
    reader = Reader.open(elsewhere)
    assert reader.text(text(1).key) == text(1)
    assert [file.name for file in mounted.iterdir()] == ["k.db"]
    with closing(sqlite3.connect(elsewhere)) as connection:
        message = (
            f"{elsewhere} is not complete: k.db-wal beside it holds transactions that are not merged into it, and nfs4 "
            f"at {mounted} has it, which several hosts may share; wait until its writer has ended, or run `tc-cache "
            "verify` where it is written"
        )

        def write() -> None:
            with reader.database.session():
                connection.execute("DELETE FROM texts")
                connection.commit()

        with pytest.raises(CacheError, match=re.escape(message)):
            write()
        with pytest.raises(CacheError, match=re.escape(message)):
            reader.text(text(1).key)
        with pytest.raises(CacheError, match=re.escape(message)):
            Reader.open(elsewhere)
    assert reader.text(text(1).key) is None
    with (
        pytest.raises(CacheError, match=r"k\.db was written while it was read, and nfs4 .*; try again"),
        reader.database.session(),
    ):
        Path(filled(tmp_path / "other.db")).replace(elsewhere)


def test_the_users_own_cache_is_one_for_each_host(mounted: Path, tmp_path: Path) -> None:
    shared, local = configured(Environment(cache_home=str(mounted))), configured(Environment(cache_home=str(tmp_path)))
    assert shared is not None
    assert local is not None
    assert shared.where == str(mounted / "tc" / f"kernels@{host_name()}.db")
    assert local.where == str(tmp_path / "tc" / "kernels.db")
    Store.open(shared.where)

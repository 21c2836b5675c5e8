"""Which file systems several hosts share: SQLite's write-ahead log works among the processes of one host only."""

from __future__ import annotations

import os
import re
from typing import Final

_MOUNTS: Final = "/proc/self/mountinfo"
_HOST_NUMBER: Final = "/etc/machine-id"

_SHARED: Final = frozenset(
    (
        "nfs",
        "nfs3",
        "nfs4",
        "cifs",
        "smb2",
        "smb3",
        "smbfs",
        "ncpfs",
        "afs",
        "openafs",
        "auristorfs",
        "coda",
        "ceph",
        "lustre",
        "gpfs",
        "beegfs",
        "panfs",
        "pvfs2",
        "orangefs",
        "glusterfs",
        "gfs",
        "gfs2",
        "ocfs2",
        "acfs",
        "wekafs",
        "davfs",
        "vboxsf",
        "vmhgfs",
        "prl_fs",
        "drvfs",
    )
)
# A virtual machine gets folders of its host through these, and so may others; its own root is not shared.
_FROM_HOST: Final = frozenset(("9p", "virtiofs", "fuse.grpcfuse", "fuse.osxfs"))
# Every other file system of a program (FUSE) counts as shared: most are, sshfs and s3fs for example, and some show what
# lies on another one.
_LOCAL_PROGRAMS: Final = frozenset(
    (
        "fuse.fuse-overlayfs",
        "fuse.ntfs",
        "fuse.ntfs-3g",
        "fuse.exfat",
        "fuse.apfs",
        "fuse.zfs",
        "fuse.squashfuse",
        "fuse.squashfuse_ll",
        "fuse.snapfuse",
        "fuse.lxcfs",
        "fuse.portal",
    )
)
_ESCAPED: Final = r"\\([0-7]{3})"


def sharing(path: str | os.PathLike[str]) -> str | None:
    """The file system of a path and where it is mounted, as in ``nfs4 at /home``, if other hosts may share it.

    None where they do not, and where the system does not tell.  ``path``: absolute; it need not exist.
    """
    try:
        with open(_MOUNTS, encoding="utf-8", errors="surrogateescape") as stream:
            mounts = stream.read()
    except OSError:
        return None
    return sharing_in(mounts, path)


def sharing_in(mounts: str, path: str | os.PathLike[str]) -> str | None:
    """The same, for the text of Linux's ``/proc/self/mountinfo``."""
    inside = os.path.join(path, "")
    found: tuple[str, str] | None = None
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        fields, kinds = before.split(" "), after.split(" ")
        if len(fields) < 5 or not kinds[0]:
            continue
        point = re.sub(_ESCAPED, lambda code: chr(int(code[1], 8)), fields[4])
        # Of several in one place, the last one covers the others.
        if inside.startswith(os.path.join(point, "")) and (found is None or len(point) >= len(found[1])):
            found = kinds[0], point
    if found is None:
        return None
    kind, point = found
    return f"{kind} at {point}" if _is_shared(kind, point) else None


def _is_shared(kind: str, point: str) -> bool:
    if kind in _FROM_HOST:
        return point != os.sep
    program = kind == "fuse" or kind.startswith("fuse.")
    return kind in _SHARED or (program and kind not in _LOCAL_PROGRAMS)


def host_name() -> str:
    """The name of this host, as ``hostname`` prints it; what many hosts are called gets this one's number behind it."""
    name = os.uname().nodename
    if name.partition(".")[0] in ("", "localhost"):
        try:
            with open(_HOST_NUMBER, encoding="ascii") as stream:
                return f"{name}-{stream.read().strip()[:12]}"
        except (OSError, ValueError):
            return name
    return name


def is_of_this_host(file: str | os.PathLike[str]) -> bool:
    """Whether a file is named as this host's own: ``tuned@node17.db``."""
    stem = os.path.splitext(os.path.basename(file))[0]
    return stem.rpartition("@")[2] == host_name() and "@" in stem


def of_this_host(file: str | os.PathLike[str]) -> str:
    """The name that makes a file this host's own."""
    stem, suffix = os.path.splitext(file)
    return f"{stem}@{host_name()}{suffix}"

"""Which cache files are opened: a cache is code, so nobody else may be able to write it.

Ownership and permissions keep other users of the machine out.  A key keeps out whoever could change a file on its
way here: every record then carries a seal, an HMAC-SHA256 of its digest, that only holders of the key can make.
Seals do not tell whether records are missing.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import stat
from pathlib import Path

from tc.cache.faults import told
from tc.errors import CacheError

COMPANIONS = ("-wal", "-shm", "-journal")
"""What SQLite keeps beside a database and reads as a part of it: endings of the file's name."""


def seal_of(digest: str, key: bytes | None) -> str:
    """The seal of a digest, in hexadecimal; empty without a key."""
    if key is None:
        return ""
    if not key:
        raise CacheError("the key of a cache is empty; give one of 32 random bytes, or none at all")
    return hmac.new(key, digest.encode("ascii"), hashlib.sha256).hexdigest()


def sealed(digest: str, seal: str, key: bytes) -> bool:
    """Whether ``seal`` was made from ``digest`` by a holder of ``key``."""
    return hmac.compare_digest(seal_of(digest, key).encode("ascii"), seal.encode("utf-8", "surrogatepass"))


def require_trusted(path: Path) -> None:
    """CacheError unless only this user or root can change the file at ``path``, which is free of symbolic links.

    The file must exist.  Its folder counts too, because whoever may write into it can replace the file.  The folders
    above are the user's own affair.
    """
    with told(str(path)):
        _require_ours(path, path.stat())
        _require_folder(path.parent)
        for ending in COMPANIONS:
            companion = path.with_name(path.name + ending)
            if companion.is_symlink():
                raise CacheError(f"{companion} is a symbolic link, which SQLite never makes; delete it")
            if (status := _status(companion)) is not None:
                _require_ours(companion, status)


def require_trusted_folder(folder: Path) -> None:
    """CacheError unless only this user or root can change what lies in ``folder``, or its files are safe in it."""
    with told(str(folder)):
        _require_folder(folder)


def _status(path: Path) -> os.stat_result | None:
    # Other processes make and remove these files at any time.
    try:
        return path.stat()
    except FileNotFoundError:
        return None


def _require_ours(path: Path, status: os.stat_result) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise CacheError(f"{path} is a folder, not a cache; name a file in it")
    if not stat.S_ISREG(status.st_mode):
        raise CacheError(f"{path} is not a regular file; name another one")
    if status.st_uid not in (0, os.geteuid()):
        raise CacheError(f"{path} belongs to another user, who could change the code in it; use a copy of your own")
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise CacheError(f"{path} can be written by other users, who could change the code in it; run chmod go-w on it")


def _require_folder(folder: Path) -> None:
    status = folder.stat()
    if status.st_uid not in (0, os.geteuid()):
        raise CacheError(f"{folder} belongs to another user, who could replace the cache in it; use a folder of yours")
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not status.st_mode & stat.S_ISVTX:
        raise CacheError(f"{folder} can be written by other users, who could replace the cache; run chmod go-w on it")

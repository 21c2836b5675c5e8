"""Which cache files are opened: a cache is code, so no other user may be able to write it.

Ownership and permissions keep other users of the machine out.  A key keeps out whoever could change a file, here or
on its way: every record then carries a seal, an HMAC-SHA256 of its digest, that only holders of the key can make.
Seals do not tell whether records are missing.  With a key, therefore, owners and permissions do not count.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence

from tc.base.errors import CacheError
from tc.base.frozen import frozen
from tc.cache.format.database_errors import told

COMPANIONS = ("-wal", "-shm", "-journal")
"""What SQLite keeps beside a database and reads as a part of it: endings of the file's name."""


def seal_of(digest: str, key: bytes | None) -> str:
    """The seal of a digest, in hexadecimal; empty without a key."""
    if key is None:
        return ""
    if not key:
        raise CacheError("the key of a cache is empty; give one of 32 random bytes, or none at all")
    import hmac

    return hmac.new(key, digest.encode("ascii"), "sha256").hexdigest()


def sealed(digest: str, seal: str, key: bytes) -> bool:
    """Whether ``seal`` was made from ``digest`` by a holder of ``key``."""
    import hmac

    return hmac.compare_digest(seal_of(digest, key).encode("ascii"), seal.encode("utf-8", "surrogatepass"))


@frozen
class _Piece:
    """A file, or the folder in which it lies, with what the system says of it."""

    path: str
    status: os.stat_result

    @property
    def is_ours(self) -> bool:
        """Whether it belongs to this user or to root."""
        return self.status.st_uid in (0, os.geteuid())

    @property
    def is_open(self) -> bool:
        """Whether others may write it: into a folder, where the files of each are not safe from the others."""
        mode = self.status.st_mode
        if stat.S_ISDIR(mode) and mode & stat.S_ISVTX:
            return False
        return bool(mode & stat.S_IWOTH) or (bool(mode & stat.S_IWGRP) and self._is_open_to_a_group())

    def _is_open_to_a_group(self) -> bool:
        from tc.cache.format.private_group import has_access_list, is_private_group

        return has_access_list(self.path) or not is_private_group(self.status.st_gid)


def require_trusted(path: str | os.PathLike[str], *, sealed: bool) -> None:
    """CacheError unless only this user or root can change the file at ``path``, or every record in it is ``sealed``.

    The file must exist, and its path is free of symbolic links.  Its folder counts too, because whoever may write into
    it can replace the file.  The folders above are the user's own affair.
    """
    path = os.fspath(path)
    with told(path):
        pieces = [_Piece(path, os.stat(path))]
        for ending in COMPANIONS:
            companion = path + ending
            if os.path.islink(companion):
                raise CacheError(f"{companion} is a symbolic link, which SQLite never makes; delete it")
            if (status := _status(companion)) is not None:
                pieces.append(_Piece(companion, status))
        for piece in pieces:
            _require_file(piece)
        if not sealed:
            folder = os.path.dirname(path)
            _require_private((_Piece(folder, os.stat(folder)), *pieces), path)


def require_trusted_folder(folder: str | os.PathLike[str], *, sealed: bool) -> None:
    """CacheError unless only this user or root can change what lies in ``folder``, its files are safe in it, or every
    record in them is ``sealed``.
    """
    folder = os.fspath(folder)
    with told(folder):
        if not sealed:
            _require_private((_Piece(folder, os.stat(folder)),), None)


def _status(path: str) -> os.stat_result | None:
    # Other processes make and remove these files at any time.
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None


def _require_file(piece: _Piece) -> None:
    mode = piece.status.st_mode
    if stat.S_ISDIR(mode):
        raise CacheError(f"{piece.path} is a folder, not a cache; name a file in it")
    if not stat.S_ISREG(mode):
        raise CacheError(f"{piece.path} is not a regular file; name another one")


def _require_private(pieces: Sequence[_Piece], file: str | None) -> None:
    """CacheError, with the one command that mends it, where others own or may write any of the pieces.

    ``file``: which can be copied, if it is there.
    """
    foreign = [piece for piece in pieces if not piece.is_ours]
    opened = [piece for piece in pieces if piece.is_open]
    if foreign and os.geteuid() != 0:
        copy = f"run `install -m 600 {_quoted(file)} ~` and name the copy" if file is not None else "name one of yours"
        raise CacheError(f"{_belongs(foreign)}; {copy}, {_OR_SEAL}")
    commands = [f"chown root {_listed(foreign)}"] if foreign else []
    if opened:
        # Only the owner may say who writes.
        rights = "" if all(piece.status.st_uid == os.geteuid() for piece in opened) or os.geteuid() == 0 else "sudo "
        commands.append(f"{rights}chmod go-w {_listed(opened)}")
    if commands:
        what = _belongs(foreign) if foreign else f"{_named(opened)} can be written by other users, {_DANGER}"
        raise CacheError(f"{what}; run `{' && '.join(commands)}`, {_OR_SEAL}")


_DANGER = "who could change the code in it"
_OR_SEAL = "or seal the cache with a secret (TC_CACHE_KEY)"


def _belongs(pieces: Sequence[_Piece]) -> str:
    verb = "belongs" if len(pieces) == 1 else "belong"
    return f"{_named(pieces)} {verb} to another user, {_DANGER}"


def _named(pieces: Sequence[_Piece]) -> str:
    return " and ".join(piece.path for piece in pieces)


def _listed(pieces: Sequence[_Piece]) -> str:
    return " ".join(_quoted(piece.path) for piece in pieces)


def _quoted(path: str) -> str:
    import shlex

    return shlex.quote(path)

"""Translates errors of databases into errors of ``tc``."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from tc.base.errors import CacheError

_COMPLAINTS: tuple[type[Exception], ...] = (sqlite3.Error, OSError, OverflowError, UnicodeError, MemoryError)


@contextmanager
def told(place: str, *more: type[Exception]) -> Iterator[None]:
    """Raises CacheError for whatever a database, the file system, or one of ``more`` complains about inside.

    ``place``: the file or the server, for the message.
    """
    try:
        yield
    except (*_COMPLAINTS, *more) as error:
        # SQLAlchemy wraps the driver's own error, which knows the reason.
        cause = getattr(error, "orig", None) or error
        raise CacheError(f"{place} {_complaint(cause)}") from error


def damaged(place: str, part: str, what: str) -> CacheError:
    """The error for content that is not what it was when it was stored."""
    return CacheError(f"{place} is damaged: {part}: {what}; restore the file from a copy or run `tc-cache verify`")


def _complaint(error: BaseException) -> str:
    match error:
        case sqlite3.Error():
            return _of_sqlite(error)
        case OverflowError() | UnicodeError():
            return f"cannot hold such a value: {error}; store 64-bit integers and valid Unicode"
        case MemoryError():
            return "holds more than fits into memory; prune it or give the process more"
        case OSError():
            return f"cannot be used: {error.strerror or error}; check the path and its permissions"
        case ImportError():
            return f"needs a driver that is not installed ({error}); pip install 'tensor-comprehensions[postgres]'"
        case _ if getattr(error, "sqlstate", None) == "23503":
            return _UNKNOWN
        case _:
            return f"cannot be used: {' '.join(str(error).split())}; check that the server runs and lets you in"


_UNKNOWN = "does not hold the kernel or variant that a record refers to; add that first"


def _of_sqlite(error: sqlite3.Error) -> str:
    # Not every error has a code: what Python itself finds wrong has none.
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)
    if code == sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY:
        return _UNKNOWN
    remedy = _REMEDIES.get(code & 0xFF, "cannot be used: {}; run `tc-cache verify`")
    return remedy.format(error)


_REMEDIES = {
    sqlite3.SQLITE_ERROR: "belongs to another application, or lost a part ({}); name another file",
    sqlite3.SQLITE_NOTADB: "is not a cache of tc ({}); name another file",
    sqlite3.SQLITE_CORRUPT: "is damaged ({}); restore the file from a copy or run `tc-cache verify`",
    sqlite3.SQLITE_FULL: "cannot grow, so nothing of this write was kept ({}); free some space or run `tc-cache prune`",
    sqlite3.SQLITE_TOOBIG: "holds a value too big to be real ({}); restore the file from a copy",
    sqlite3.SQLITE_BUSY: "is kept busy by another process ({}); try again when it has finished",
    sqlite3.SQLITE_LOCKED: "is kept busy by another process ({}); try again when it has finished",
    sqlite3.SQLITE_READONLY: "cannot be written ({}); check its permissions and those of its folder, "
    "or make a copy for a read-only place with `tc-cache export --ship`",
    sqlite3.SQLITE_PERM: "may not be opened ({}); check its permissions and those of its folder",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened ({}); check its permissions and those of its folder, "
    "or make a copy for a read-only place with `tc-cache export --ship`",
    sqlite3.SQLITE_IOERR: "cannot be read or written ({}); check the disk and the free space on it",
}

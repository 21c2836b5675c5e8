"""Whatever a database complains about becomes an error that says what to do."""

from __future__ import annotations

import sqlite3

import pytest

from tc.base.errors import CacheError
from tc.cache.format.database_errors import told


class ServerError(Exception):
    """Stands for what a driver raises."""

    def __init__(self, message: str, sqlstate: str | None) -> None:
        super().__init__(message)
        self.sqlstate = sqlstate


class WrappedError(Exception):
    """Stands for what SQLAlchemy raises."""

    def __init__(self, orig: Exception) -> None:
        super().__init__("wrapped")
        self.orig = orig


def of_sqlite(code: int) -> sqlite3.Error:
    error = sqlite3.OperationalError("reason")
    error.sqlite_errorcode = code
    return error


CASES = [
    (of_sqlite(sqlite3.SQLITE_ERROR), "belongs to another application, or lost a part (reason); name another file"),
    (of_sqlite(sqlite3.SQLITE_NOTADB), "is not a cache of tc (reason); name another file"),
    (of_sqlite(sqlite3.SQLITE_CORRUPT), "is damaged (reason); restore the file from a copy or run `tc-cache verify`"),
    (of_sqlite(sqlite3.SQLITE_CORRUPT_INDEX), "is damaged (reason); restore"),
    (of_sqlite(sqlite3.SQLITE_FULL), "cannot grow, so nothing of this write was kept (reason); free some space"),
    (of_sqlite(sqlite3.SQLITE_TOOBIG), "holds a value too big to be real (reason); restore the file from a copy"),
    (of_sqlite(sqlite3.SQLITE_BUSY), "is kept busy by another process (reason); try again when it has finished"),
    (of_sqlite(sqlite3.SQLITE_LOCKED), "is kept busy by another process (reason); try again"),
    (of_sqlite(sqlite3.SQLITE_READONLY_DIRECTORY), "cannot be written (reason); check its permissions and those of"),
    (of_sqlite(sqlite3.SQLITE_PERM), "may not be opened (reason); check its permissions and those of its folder"),
    (of_sqlite(sqlite3.SQLITE_CANTOPEN), "cannot be opened (reason); check its permissions and those of its folder"),
    (of_sqlite(sqlite3.SQLITE_IOERR_READ), "cannot be read or written (reason); check the disk and the free space"),
    (of_sqlite(sqlite3.SQLITE_NOLFS), "cannot be used: reason; run `tc-cache verify`"),
    (of_sqlite(sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY), "does not hold the kernel or variant that a record refers to"),
    (sqlite3.OperationalError("Could not decode to UTF-8"), "is damaged (Could not decode to UTF-8); restore"),
    (WrappedError(of_sqlite(sqlite3.SQLITE_NOTADB)), "is not a cache of tc (reason)"),
    (WrappedError(ServerError("broken", "23503")), "does not hold the kernel or variant that a record refers to; add"),
    (WrappedError(ServerError("no\n  route", None)), "cannot be used: no route; check that the server runs and lets"),
    (ModuleNotFoundError("No module 'x'"), "needs a driver that is not installed (No module 'x'); pip install"),
    (PermissionError(13, "Permission denied"), "cannot be used: Permission denied; check the path and its permissions"),
    (OverflowError("too large"), "cannot hold such a value: too large; store 64-bit integers and valid Unicode"),
    (MemoryError(), "holds more than fits into memory; prune it or give the process more"),
]


@pytest.mark.parametrize(("error", "message"), CASES, ids=lambda value: value if isinstance(value, str) else "")
def test_every_complaint_says_where_it_comes_from_and_what_to_do(error: Exception, message: str) -> None:
    with pytest.raises(CacheError) as caught, told("/a/file.db", WrappedError, ImportError):
        raise error
    assert str(caught.value).startswith(f"/a/file.db {message}")
    assert caught.value.__cause__ is error


def test_what_is_no_complaint_passes() -> None:
    for error in (CacheError("ours"), ValueError("a mistake"), KeyboardInterrupt()):
        with pytest.raises(type(error)) as caught, told("here"):
            raise error
        assert caught.value is error

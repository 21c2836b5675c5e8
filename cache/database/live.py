"""Reading a cache file that others may be writing."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager

from tc.base.errors import CacheError
from tc.base.frozen import frozen
from tc.cache.database.connection import connect
from tc.cache.database.database import UNCHANGING, FileSession, Session, unmerged
from tc.cache.database.file_systems import is_of_this_host, sharing
from tc.cache.database.forks import inside_sqlite
from tc.cache.format.database_errors import told


@frozen
class LiveFile:
    """A file that others may be writing.  Every session has a connection of its own: SQLite's do not survive a fork.

    ``shared``: the file system, where other hosts may be those who write.  SQLite's locks and its write-ahead log keep
    processes of one host apart, and the log needs a folder that can be written.  Elsewhere a file is read as it is
    while no process writes; CacheError where one does, or has not finished.
    """

    path: str
    shared: str | None

    @staticmethod
    def open(path: str) -> LiveFile:
        """The file at an absolute path."""
        return LiveFile(path, None if is_of_this_host(path) else sharing(path))

    @property
    def place(self) -> str:
        """As the protocol says."""
        return self.path

    @contextmanager
    def session(self) -> Iterator[Session]:
        """As the protocol says."""
        if self.shared is not None:
            with self._unchanged(f"{self.shared} has it, which several hosts may share") as session:
                yield session
            return
        try:
            connection = connect(self.path, "mode=rw")
        except CacheError as error:
            if not _needs_log(error) or can_write(os.path.dirname(self.path)):
                raise
            connection = None
        if connection is None:
            with self._unchanged("its folder can only be read") as session:
                yield session
            return
        with self._reading(connection) as session:
            yield session

    @contextmanager
    def _reading(self, connection: sqlite3.Connection) -> Iterator[Session]:
        try:
            with told(self.place), inside_sqlite():
                connection.execute("PRAGMA query_only = ON")
                connection.execute("PRAGMA temp_store = MEMORY")
                connection.execute("BEGIN")
            with closing(FileSession(self.place, connection)) as session:
                yield session
        finally:
            with inside_sqlite():
                connection.close()

    @contextmanager
    def _unchanged(self, why: str) -> Iterator[Session]:
        """Reads the file as it is; CacheError if it is not whole, or was changed meanwhile."""
        before = self._state(why)

        def check() -> None:
            if self._state(why) != before:
                raise CacheError(f"{self.path} was written while it was read, and {why}; try again")

        try:
            with self._reading(connect(self.path, UNCHANGING)) as session:
                yield session
        except CacheError:
            # What seems to be damage may be a concurrent write.
            check()
            raise
        check()

    def _state(self, why: str) -> tuple[int, int, int]:
        with told(self.place):
            if (log := unmerged(self.path)) is not None:
                raise CacheError(
                    f"{self.path} is not complete: {os.path.basename(log)} beside it holds transactions that are not "
                    f"merged into it, and {why}; wait until its writer has ended, or run `tc-cache verify` where it is "
                    "written"
                )
            status = os.stat(self.path)
            return status.st_ino, status.st_size, status.st_mtime_ns


def can_write(folder: str | os.PathLike[str]) -> bool:
    """Whether this process may make files in a folder."""
    return os.access(folder, os.W_OK | os.X_OK, effective_ids=os.access in os.supports_effective_ids)


def _needs_log(error: CacheError) -> bool:
    """Whether SQLite has refused a file because it could not make the log beside it."""
    cause = error.__cause__
    code = cause.sqlite_errorcode if isinstance(cause, sqlite3.OperationalError) else sqlite3.SQLITE_OK
    return code & 0xFF in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)

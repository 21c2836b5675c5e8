"""Reading a cache, wherever it is: sessions that see one state of it and take plain SQL."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import field
from typing import Final, Protocol
from weakref import WeakSet

from tc.base.errors import CacheError
from tc.base.frozen import frozen
from tc.base.once import Once
from tc.cache.database.connection import connect
from tc.cache.database.forks import inside_sqlite
from tc.cache.format.database_errors import told
from tc.cache.format.rows import Row

UNCHANGING: Final = "mode=ro&immutable=1"
"""How SQLite opens a file that does not change: it locks nothing, and writes nothing, not even beside the file."""


class Session(Protocol):
    """A view of the cache that does not change while it lasts."""

    def rows(self, sql: str, **parameters: str | int) -> Iterator[Row]:
        """What a statement of ``tables`` selects, one row at a time, by the names of the columns."""


class Database(Protocol):
    """A cache that is open for reading, from any thread and after a fork."""

    @property
    def place(self) -> str:
        """The file or server, for messages."""

    def session(self) -> AbstractContextManager[Session]:
        """Begins to read; CacheError where that is impossible."""


@frozen
class FileSession:
    """A session on a connection of the standard library."""

    place: str
    connection: sqlite3.Connection
    cursors: WeakSet[sqlite3.Cursor] = field(default_factory=WeakSet)

    def close(self) -> None:
        """Ends what is still being read: a cursor that has met damage would keep the file open, and locked."""
        with inside_sqlite():
            for cursor in tuple(self.cursors):
                cursor.close()

    def rows(self, sql: str, **parameters: str | int) -> Iterator[Row]:
        """As the protocol says."""
        with told(self.place):
            with inside_sqlite():
                found = self.connection.execute(sql, parameters)
            self.cursors.add(found)
            names = [column[0] for column in found.description]
            while True:
                with inside_sqlite():
                    values = next(found, None)
                if values is None:
                    return
                yield dict(zip(names, values, strict=True))


@frozen
class FrozenFile:
    """A file that does not change: no locks, nothing is written, not even beside it.

    Each process keeps one connection, which its threads take in turn: what was opened stays, whatever is put in its
    place.  The child of a fork opens the file again, and it must be the same.
    """

    path: str
    inode: tuple[int, int]
    connections: Once[int, tuple[threading.Lock, sqlite3.Connection]] = field(default_factory=Once)

    @staticmethod
    def open(path: str) -> FrozenFile:
        """CacheError if transactions lie beside the file that were not merged into it."""
        with told(path):
            if (log := unmerged(path)) is not None:
                raise CacheError(
                    f"{path} is not complete: {os.path.basename(log)} beside it holds transactions that are not merged "
                    "into it; make a file for read-only use with `tc-cache export --ship`"
                )
            return FrozenFile(path, _inode(path))

    @property
    def place(self) -> str:
        """As the protocol says."""
        return self.path

    @contextmanager
    def session(self) -> Iterator[Session]:
        """As the protocol says."""
        lock, connection = self.connections.get(os.getpid(), self._connect)
        with lock, closing(FileSession(self.place, connection)) as session:
            yield session

    def _connect(self) -> tuple[threading.Lock, sqlite3.Connection]:
        connection = connect(self.path, UNCHANGING)
        with told(self.place), inside_sqlite():
            # There may be no folder for temporary files.
            connection.execute("PRAGMA temp_store = MEMORY")
        if _inode(self.path) != self.inode:
            raise CacheError(f"{self.path} was replaced while this program runs; start the program again")
        return threading.Lock(), connection


def unmerged(path: str) -> str | None:
    """The log or journal beside a database that holds transactions, without which the file alone is not whole."""
    for ending in ("-wal", "-journal"):
        log = path + ending
        try:
            if os.stat(log).st_size:
                return log
        except FileNotFoundError:  # logs come and go with their writers
            continue
    return None


def is_empty(path: str) -> bool:
    """Whether a file is still empty."""
    with told(path):
        return os.stat(path).st_size == 0


def _inode(path: str) -> tuple[int, int]:
    with told(path):
        status = os.stat(path)
        return status.st_dev, status.st_ino

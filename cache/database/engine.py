"""Connections through SQLAlchemy: to a file for writing, and to a server."""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import assert_never

from sqlalchemy import Connection, Engine, NullPool, create_engine, event
from sqlalchemy.exc import SQLAlchemyError

from tc.base.errors import CacheError
from tc.base.private import make_folder
from tc.cache.database.connection import BUSY_SECONDS, connect
from tc.cache.database.file_systems import is_of_this_host, of_this_host, sharing
from tc.cache.database.live import can_write
from tc.cache.database.place import File, Place, Server
from tc.cache.format.database_errors import told
from tc.cache.format.trust import require_trusted, require_trusted_folder


def engine_at(place: Place, *, sealed: bool) -> Engine:
    """An engine whose every connection is new, so that threads and forks share none; a file is made if need be.

    ``sealed``: nothing is used of it but records whose seals are checked.  CacheError for a file that others may write,
    for what is no file, where none can be written, and for a URL or driver that cannot serve.
    """
    match place:
        case File(path):
            _make(Path(path), sealed=sealed)
            engine = create_engine("sqlite://", creator=lambda: _connect(path), poolclass=NullPool)
            event.listen(engine, "begin", _begin)
            return engine
        case Server(url):
            with told(str(place), SQLAlchemyError, ImportError):
                return create_engine(url, poolclass=NullPool)
        case _:
            assert_never(place)


def require_one_host(path: Path) -> None:
    """CacheError where other hosts may write a file, too: a write-ahead log serves the processes of one host."""
    where = None if is_of_this_host(path) else sharing(path)
    if where is not None:
        raise CacheError(
            f"{path} cannot be written: {where} has it, which several hosts may share, and its log works on one host "
            "only; name a server (postgresql://...), a file on a disk of this host, or a file for each host (here "
            f"{str(of_this_host(path))!r}) and join these with `tc-cache merge`"
        )


def write_ahead(path: Path) -> None:
    """Lets others read a file while one process writes; CacheError if it stays busy."""
    deadline = time.monotonic() + BUSY_SECONDS
    with told(str(path)), closing(_connect(path)) as connection:
        while connection.execute("PRAGMA journal_mode").fetchone() != ("wal",):
            try:
                connection.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError as error:
                # For this one statement SQLite does not wait for others by itself.
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
                time.sleep(0.01)


def _connect(path: str | os.PathLike[str]) -> sqlite3.Connection:
    connection = connect(path, "mode=rw")
    connection.execute("PRAGMA foreign_keys = ON")
    # With a write-ahead log, a crash of the machine may lose the last transactions; it damages nothing.
    connection.execute("PRAGMA synchronous = NORMAL")
    return connection


def _begin(connection: Connection) -> None:
    # A transaction that begins by reading could find, when it comes to write, that another one was faster.
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def _make(path: Path, *, sealed: bool) -> None:
    """Makes an empty file, which no other user can write whatever the process's mask, unless there is one."""
    with told(str(path)):
        make_folder(path.parent)
        if path.exists():
            require_trusted(path, sealed=sealed)
        else:
            require_trusted_folder(path.parent, sealed=sealed)
        if not can_write(path.parent):
            raise CacheError(
                f"{path} cannot be written: its folder can only be read by this process; name a cache in another one"
            )
        if not path.exists():
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
    require_trusted(path, sealed=sealed)

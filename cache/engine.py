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

from tc.cache.connection import BUSY_SECONDS, connect
from tc.cache.faults import told
from tc.cache.place import File, Place, Server
from tc.cache.trust import require_trusted, require_trusted_folder


def engine_at(place: Place) -> Engine:
    """An engine whose every connection is new, so that threads and forks share none; a file is made if need be.

    CacheError for a file that others may write, for what is no file, and for a URL or driver that cannot serve.
    """
    match place:
        case File(path):
            _make(path)
            engine = create_engine("sqlite://", creator=lambda: _connect(path), poolclass=NullPool)
            event.listen(engine, "begin", _begin)
            return engine
        case Server(url):
            with told(str(place), SQLAlchemyError, ImportError):
                return create_engine(url, poolclass=NullPool)
        case _:
            assert_never(place)


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


def _connect(path: Path) -> sqlite3.Connection:
    connection = connect(path, "mode=rw")
    connection.execute("PRAGMA foreign_keys = ON")
    # With a write-ahead log, a crash of the machine may lose the last transactions; it damages nothing.
    connection.execute("PRAGMA synchronous = NORMAL")
    return connection


def _begin(connection: Connection) -> None:
    # A transaction that begins by reading could find, when it comes to write, that another one was faster.
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def _make(path: Path) -> None:
    """Makes an empty file, which nobody else can write whatever the process's mask, unless there is one."""
    with told(str(path)):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        require_trusted_folder(path.parent)
        if not path.exists():
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))
    require_trusted(path)

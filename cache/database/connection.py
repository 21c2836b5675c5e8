"""Connections of the standard library to an SQLite file."""

from __future__ import annotations

import os
import sqlite3
from typing import Final

from tc.base.errors import CacheError
from tc.cache.database.forks import inside_sqlite
from tc.cache.format.database_errors import told

BUSY_SECONDS: Final = 60.0
"""How long to wait for another process to finish its transaction."""

# No record of ours comes near it, and a hostile file shall not fill the memory.
_LARGEST_VALUE: Final = 1 << 28

# Views, triggers and virtual tables run code; a cache has none, and they have no page of their own.
_CODE: Final = "SELECT type, name FROM sqlite_master WHERE type NOT IN ('table', 'index') OR coalesce(rootpage, 0) = 0"

# Of a path in a URI.  (Importing ``urllib`` takes longer than opening the file.)
_PLAIN: Final = frozenset(b"/-._~ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")


def connect(path: str | os.PathLike[str], mode: str) -> sqlite3.Connection:
    """A connection to an existing file, in which transactions begin and end only when told to.

    ``mode``: parameters of SQLite's URI.  CacheError for a file that runs code when it is read.
    """
    with told(str(path)), inside_sqlite():
        uri = f"file:{_quoted(path)}?{mode}"
        connection = sqlite3.connect(uri, uri=True, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        try:
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LARGEST_VALUE)
            # What SQLite advises for files of untrusted origin.
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.execute("PRAGMA cell_size_check = ON")
            code = connection.execute(_CODE).fetchone()
        except BaseException:
            connection.close()
            raise
        if code is not None:
            connection.close()
            raise CacheError(f"{path} is not a cache of tc: it holds the {code[0]} {code[1]!r}; do not use this file")
        return connection


def _quoted(path: str | os.PathLike[str]) -> str:
    """A path as it stands in a URI: what is no letter, digit or slash is written as the numbers of its bytes."""
    return "".join(chr(byte) if byte in _PLAIN else f"%{byte:02X}" for byte in os.fsencode(path))

"""Opens the cache at a place for reading."""

from __future__ import annotations

import os
from typing import assert_never

from tc.base.errors import CacheError
from tc.cache.database.database import Database, FrozenFile, is_empty
from tc.cache.database.place import File, Place, Server
from tc.cache.format.database_errors import told
from tc.cache.format.trust import require_trusted


def database_at(place: Place, *, immutable: bool, sealed: bool) -> Database:
    """The cache at a place, after its trustworthiness was checked; CacheError where there is none.

    ``immutable``: the file does not change while we read, and we may not write anything at all.  ``sealed``: nothing is
    used of it but records whose seals are checked.
    """
    match place:
        case File(path):
            with told(path):
                if not os.path.exists(path):
                    raise CacheError(f"{path} does not exist; make a cache with tc-tune, or name another file")
            require_trusted(path, sealed=sealed)
            if is_empty(path):
                raise CacheError(f"{path} is empty; make a cache with tc-tune, or name another file")
            if immutable:
                return FrozenFile.open(path)
            from tc.cache.database.live import LiveFile

            return LiveFile.open(path)
        case Server():
            # SQLAlchemy costs more than all the rest of a process that runs cached kernels.
            from tc.cache.database.server import LiveServer

            return LiveServer.open(place)
        case _:
            assert_never(place)

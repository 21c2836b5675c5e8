"""Checks that a database is a cache of a version that this package supports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tc.base.errors import CacheError

APPLICATION: Final = "tc kernel cache"
"""What the table ``meta`` calls its application."""

VERSION: Final = 3
"""Of the tables; every migration adds one."""


class OlderVersionError(CacheError):
    """The tables are of an older version, to which writing puts an end."""


def version_of(meta: Mapping[object, object], place: str, newest: int = VERSION) -> int:
    """The version of the tables, from what the table ``meta`` says; CacheError unless it is from 0 to ``newest``."""
    if meta.get("application") != APPLICATION:
        raise CacheError(f"{place} belongs to another application; name another file or database")
    version = str(meta.get("version"))
    if not version.isascii() or not version.isdigit() or len(version) > 9:
        raise CacheError(f"{place} is damaged: it has no version; restore the file from a copy")
    if int(version) > newest:
        raise CacheError(
            f"{place} was written by a newer tc: its tables have version {version}, and this tc knows {newest}; "
            "install the newer tc, or name another file"
        )
    return int(version)


def require_readable(meta: Mapping[object, object], place: str) -> None:
    """CacheError unless the tables have the version that this package reads: OlderVersionError for an older one."""
    version = version_of(meta, place)
    if version < VERSION:
        raise OlderVersionError(
            f"{place} was written by an older tc: its tables have version {version}, and this tc reads {VERSION}; "
            "open it once for writing, for example with `tc-cache prune`, which brings it up to date"
        )

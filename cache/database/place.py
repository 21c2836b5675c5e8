"""Where a cache is: a file, or a server that a URL names."""

from __future__ import annotations

import os
import re
from typing import TypeAlias

from tc.base.errors import CacheError
from tc.base.frozen import frozen
from tc.cache.format.database_errors import told


@frozen
class File:
    """An SQLite file; ``path`` is absolute and free of symbolic links."""

    path: str

    def __str__(self) -> str:
        return self.path


@frozen
class Server:
    """A database that SQLAlchemy reaches by ``url``."""

    url: str

    def __str__(self) -> str:
        # A password has no place in a message.
        return re.sub(r"(?<=://)([^:/@]*):[^/]*@|(?<=[?&])(password=)[^&]*", _hidden, self.url)


Place: TypeAlias = File | Server


def place_of(where: str | os.PathLike[str]) -> Place:
    """The place that a path or a URL of SQLAlchemy names; CacheError for a URL that cannot serve."""
    if not isinstance(where, str) or "://" not in where:
        return _file(os.fspath(where))
    scheme, _, rest = where.partition("://")
    match scheme.partition("+")[0]:
        case "sqlite":
            name = rest.removeprefix("/")
            if not rest.startswith("/") or not name or name.startswith(":") or "?" in name:
                raise CacheError(f"{where} names no file; write sqlite:///relative/path or sqlite:////absolute/path")
            return _file(name)
        case "postgresql" | "postgres":
            driver = scheme if "+" in scheme else "postgresql+psycopg"
            return Server(f"{driver}://{rest}")
        case other:
            raise CacheError(f"a cache cannot live in {other}; name a file, or a URL of sqlite or postgresql")


def _hidden(found: re.Match[str]) -> str:
    user, parameter = found.groups()
    return f"{user}:***@" if parameter is None else f"{parameter}***"


def _file(path: str) -> File:
    with told(path):
        try:
            found = os.path.realpath(path)
        except ValueError as error:
            raise CacheError(f"{path!r} cannot be the name of a file ({error}); name another one") from error
    if os.path.islink(found):
        raise CacheError(f"{path!r} cannot be the name of a file (a symbolic link leads to itself); name another one")
    return File(found)

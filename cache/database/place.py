"""Where a cache is: a file, or a server that a URL names."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TypeAlias

from tc.base.errors import CacheError
from tc.base.frozen import frozen
from tc.cache.format.faults import told


@frozen
class File:
    """An SQLite file; ``path`` is absolute and free of symbolic links."""

    path: Path

    def __str__(self) -> str:
        return str(self.path)


@frozen
class Server:
    """A database that SQLAlchemy reaches by ``url``."""

    url: str

    def __str__(self) -> str:
        # A password has no place in a message.
        return re.sub(r"(?<=://)([^:/@]*):[^/]*@|(?<=[?&])(password=)[^&]*", _hidden, self.url)


Place: TypeAlias = File | Server


def place_of(where: str | Path) -> Place:
    """The place that a path or a URL of SQLAlchemy names; CacheError for a URL that cannot serve."""
    if isinstance(where, Path) or "://" not in where:
        return _file(Path(where))
    scheme, _, rest = where.partition("://")
    match scheme.partition("+")[0]:
        case "sqlite":
            name = rest.removeprefix("/")
            if not rest.startswith("/") or not name or name.startswith(":") or "?" in name:
                raise CacheError(f"{where} names no file; write sqlite:///relative/path or sqlite:////absolute/path")
            return _file(Path(name))
        case "postgresql" | "postgres":
            driver = scheme if "+" in scheme else "postgresql+psycopg"
            return Server(f"{driver}://{rest}")
        case other:
            raise CacheError(f"a cache cannot live in {other}; name a file, or a URL of sqlite or postgresql")


def _hidden(found: re.Match[str]) -> str:
    user, parameter = found.groups()
    return f"{user}:***@" if parameter is None else f"{parameter}***"


def _file(path: Path) -> File:
    with told(str(path)):
        try:
            return File(path.resolve())
        except (ValueError, RuntimeError) as error:
            raise CacheError(f"{str(path)!r} cannot be the name of a file ({error}); name another one") from error

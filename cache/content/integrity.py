"""Verifies the integrity of a whole cache."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final

from tc.base.errors import CacheError
from tc.cache.content.lookup import Reader
from tc.cache.database.database import FileSession, Session
from tc.cache.format.rows import Row, ingredients_of, record_of
from tc.cache.format.tables import KERNELS, TABLES, where

# What refers to something that is not there, by what it is.
_ORPHANS: Final = {
    "variant without its kernel": "SELECT identity AS name FROM variants WHERE kernel NOT IN (SELECT key FROM kernels)",
    "trial without its kernel": "SELECT identity AS name FROM trials WHERE kernel NOT IN (SELECT key FROM kernels)",
    "measurement without its variant": (
        "SELECT identity AS name FROM measurements WHERE variant NOT IN (SELECT identity FROM variants)"
    ),
    "kernel without its compiler": (
        "SELECT key AS name FROM kernels WHERE NOT EXISTS (SELECT 1 FROM compilers WHERE "
        "compilers.target = kernels.target AND compilers.architecture = kernels.architecture "
        "AND compilers.compiler = kernels.compiler)"
    ),
}


def verify(cache: str | Path, *, key: bytes | None = None) -> tuple[str, ...]:
    """Everything that is wrong with a cache; empty if nothing is.

    Looks at its structure, at the hash of every record, at every seal if there is a ``key``, and for references to
    what is not there.
    """
    try:
        reader = Reader.open(cache, key=key)
        with reader.database.session() as session:
            return tuple(_complaints(session, reader.database.place, key))
    except CacheError as error:
        return (str(error),)


def _complaints(session: Session, place: str, key: bytes | None) -> Iterator[str]:
    if isinstance(session, FileSession):
        yield from _of_structure(session)
    yield from _of_rows(session, KERNELS, partial(ingredients_of, place=place))
    for table in TABLES:
        yield from _of_rows(session, where(table), partial(record_of, table, key=key, place=place))
    for what, sql in _ORPHANS.items():
        yield from (f"{place} is damaged: {what}: {row['name']}" for row in session.rows(sql))


def _of_structure(session: FileSession) -> Iterator[str]:
    for row in session.rows("PRAGMA integrity_check"):
        (complaint,) = row.values()
        if complaint != "ok":
            yield f"{session.place} is damaged: {complaint}"


def _of_rows(session: Session, sql: str, check: Callable[[Row], object]) -> Iterator[str]:
    """Complaints about single rows; where the next row cannot be found, about that."""
    rows = session.rows(sql)
    while True:
        try:
            row = next(rows, None)
            if row is None:
                return
            check(row)
        except CacheError as error:
            yield str(error)

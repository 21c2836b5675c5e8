"""Ships a cache: a small sealed copy for production, put in place atomically."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from tc.base.errors import CacheError
from tc.base.file_draft import draft_of
from tc.base.private import make_folder
from tc.cache.content.contents import Contents
from tc.cache.content.copy_records import copy_records
from tc.cache.content.lookup import Reader
from tc.cache.content.plan_needs import plan_needs, served_by
from tc.cache.content.store import Store
from tc.cache.database.connection import connect
from tc.cache.database.place import File, place_of
from tc.cache.format.database_errors import told
from tc.cache.format.ingredients import Ingredients
from tc.cache.format.records import (
    Constant,
    LibraryTrial,
    Measurement,
    ModelInterface,
    Native,
    Plan,
    Record,
    Run,
    Text,
    Trial,
    Variant,
)
from tc.cache.format.tables import TRIED, UNMEASURED, VARIANT_KERNELS
from tc.cache.format.trust import COMPANIONS


def ship(
    source: str | Path,
    target: str | Path,
    *,
    key: bytes | None = None,
    seal: bytes | None = None,
    trials: bool = False,
) -> None:
    """Writes what production needs of a cache into a new file that everybody may read, in the place of an old one.

    That is: every variant that wins on some machine with some number of threads, every variant that was never
    measured, and the kernels, measurements, texts and helpers that belong to them; plans of graphs that need no other
    kernels; trials of libraries, by which nodes of graphs go to them; with ``trials``, also how variants were found.
    ``key``: every record of the source must bear its seal, and so does the copy.  ``seal``: seals the copy anew.
    CacheError, with the old file untouched, if the source is damaged or the target cannot be written.
    """
    path = _target(source, target)
    reader = Reader.open(source, key=key)
    with told(str(path)):
        # Everybody may read the file, so everybody finds it; what is there already stays as it is.
        make_folder(path.parent, 0o755)
    with told(str(path)), draft_of(path) as draft:
        store = Store.open(draft, key=key if seal is None else seal, alone=True)
        with reader.database.session() as session:
            contents = Contents(session, reader.database.place, key)
            wanted = _selection(contents, trials=trials)
            with store.transaction() as connection:
                copy_records(contents, connection, wanted, seal)
        _close(draft)
        draft.replace(path)
        _synchronize(path.parent)


def _target(source: str | Path, target: str | Path) -> Path:
    place = place_of(target)
    if not isinstance(place, File):
        raise CacheError(f"only files are shipped, not {place}; name a file, or merge into the server")
    if place == place_of(source):
        raise CacheError(f"{place} cannot be shipped in its own place, where trials would be lost; name another file")
    with told(str(place)):
        for ending in COMPANIONS:
            if Path(place.path + ending).exists():
                raise CacheError(f"{place} is being written by another process; name another file")
    return Path(place.path)


def _selection(contents: Contents, *, trials: bool) -> Callable[[Ingredients | Record], bool]:
    """What to ship."""
    variants = {identity for places in contents.chosen_variants().values() for identity in places.values()}
    variants |= {str(row["identity"]) for row in contents.session.rows(UNMEASURED)}
    of_variants = contents.session.rows(VARIANT_KERNELS)
    kernels = {str(row["kernel"]) for row in of_variants if row["identity"] in variants}
    kept = served_by(frozenset(kernels), plan_needs(contents.session))
    if trials:
        kernels |= {str(row["kernel"]) for row in contents.session.rows(TRIED)}

    def wanted(record: Ingredients | Record) -> bool:
        match record:
            case Ingredients():
                return record.key in kernels
            case Variant():
                return record.identity in variants
            case Measurement():
                return record.variant in variants
            case Trial() | Run():
                return trials
            case Text() | Native() | LibraryTrial():
                return True
            case Plan():
                return record.identity in kept.plans
            case Constant():
                return record.identity in kept.constants
            case ModelInterface():
                return record.model in kept.models

    return wanted


def _close(path: Path) -> None:
    """Makes one file of the database and its log, with nothing beside it, and sees to it that the disk has it."""
    with told(str(path)):
        with closing(connect(path, "mode=rw")) as connection:
            connection.execute("VACUUM")
            connection.execute("PRAGMA journal_mode = DELETE")
        path.chmod(0o644)
        _synchronize(path)


def _synchronize(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

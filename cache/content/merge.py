"""Merges several caches into one, independent of their order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from tc.base.errors import CacheError
from tc.base.frozen import frozen
from tc.cache.content.contents import Contents
from tc.cache.content.copy_records import copy_records, counts
from tc.cache.content.integrity import verify
from tc.cache.content.lookup import Reader
from tc.cache.content.store import Store
from tc.cache.database.place import File, place_of


@frozen
class MergeReport:
    """How many rows each table has gained, by the name of the table."""

    added: Mapping[str, int]


def merge(target: str | Path, sources: Sequence[str | Path], *, key: bytes | None = None) -> MergeReport:
    """Adds all that the sources hold to the target, which is made if need be.

    The result does not depend on the order of the sources, nor on how often one is merged.  Where two caches have
    different variants for the same options and threads, the one with the smaller hash stays.  ``key``: every record
    must bear its seal.  CacheError, with nothing merged, if any of the caches is damaged, of another application or of
    a newer version.
    """
    for where in (target, *sources) if _exists(target) else sources:
        if complaints := verify(where, key=key):
            more = f" (and {len(complaints) - 1} more)" if len(complaints) > 1 else ""
            raise CacheError(f"nothing was merged: {complaints[0]}{more}")
    store = Store.open(target, key=key)
    with ExitStack() as stack:
        readers = [Reader.open(where, key=key) for where in sources]
        sessions = [stack.enter_context(reader.database.session()) for reader in readers]
        connection = stack.enter_context(store.transaction())
        before = counts(connection)
        for reader, session in zip(readers, sessions, strict=True):
            copy_records(Contents(session, reader.database.place, key), connection)
        after = counts(connection)
    return MergeReport({name: after[name] - before[name] for name in after})


def _exists(target: str | Path) -> bool:
    match place_of(target):
        case File(path):
            file = Path(path)
            return file.exists() and file.stat().st_size > 0
        case _:
            return False

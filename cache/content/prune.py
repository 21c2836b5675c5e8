"""Prunes a cache without losing a winner."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from sqlalchemy import Connection, Table, bindparam, delete, select

from tc.base.errors import CacheError
from tc.base.frozen import frozen
from tc.cache.content.contents import Contents
from tc.cache.content.copy_records import counts
from tc.cache.content.plan_needs import plan_needs, served_by
from tc.cache.content.store import Store, iso_time
from tc.cache.database.connection import connect
from tc.cache.database.place import File, Place, place_of
from tc.cache.database.server import ConnectionSession
from tc.cache.format import schema
from tc.cache.format.database_errors import damaged, told
from tc.cache.format.ingredients import definition_in
from tc.cache.format.tables import CONSTANTS_AND_MODELS, OLDEST, PROGRAMS, TEXTS, VARIANT_KERNELS, where
from tc.cache.format.texts import programs_of

# A cache that was over its limit is made this much smaller than the limit, so that not every write prunes it.
_ROOM: Final = 0.8
# A search may be about to store its first trial of a kernel.
_GRACE: Final = timedelta(days=1)


@frozen
class PruneReport:
    """How many rows went, by the name of their table, and the bytes of the file before and after (0 on a server)."""

    removed: Mapping[str, int]
    before: int
    after: int


def prune(
    cache: str | Path,
    *,
    older_than: timedelta | None = None,
    largest: int | None = None,
    key: bytes | None = None,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> PruneReport:
    """Removes what was stored longer ago than ``older_than``, then the oldest plans and the oldest variants until the
    file has at most ``largest`` bytes, and gives the space back.

    Variants that win on some machine with some number of threads stay, so a file can stay larger than asked for;
    nothing else has that right.  What a variant needs stays as long as the variant: its kernel, its measurements and
    their runs, the texts in which its kernel stands, and the helpers of ours.  A plan of a graph stays as long as all
    its kernels.  ``now``: the clock, with its time zone.
    CacheError, with nothing removed, if the cache cannot be written, if a measurement is damaged or, with a ``key``,
    not sealed, and for ``largest`` on a server.
    """
    place = place_of(cache)
    if largest is not None and not isinstance(place, File):
        raise CacheError(f"{place} has no size of its own that could be limited; prune a server by age")
    store = Store.open(cache, key=key)
    before = _bytes(place)
    with store.transaction() as connection:
        rows = counts(connection)
        session = ConnectionSession(store.place, connection)
        chosen_variants = Contents(session, store.place, key).chosen_variants().values()
        winners = {identity for places in chosen_variants for identity in places.values()}
        grace = iso_time(now() - _GRACE)
        if older_than is not None:
            old = iso_time(now() - older_than)
            _remove_older(connection, old, winners)
            _remove_needless(connection, session, min(old, grace), grace)
        if largest is not None and _used(connection) > largest:
            _remove_needless(connection, session, grace, grace)
            _remove_plans_until(connection, session, largest)
            _remove_until(connection, session, largest, winners)
            _remove_needless(connection, session, grace, grace)
        left = counts(connection)
    if isinstance(place, File):
        _compact(place)
    return PruneReport({name: rows[name] - left[name] for name in rows}, before, _bytes(place))


def limit(cache: str | Path, largest: int, *, key: bytes | None = None) -> PruneReport | None:
    """Prunes a file of more than ``largest`` bytes down to 80 % of that; None, at once, for any other."""
    place = place_of(cache)
    if not isinstance(place, File) or _bytes(place) <= largest:
        return None
    return prune(cache, largest=int(_ROOM * largest), key=key)


def _remove_older(connection: Connection, time: str, winners: set[str]) -> None:
    variants = schema.VARIANTS.c
    old = connection.execute(select(variants.identity).where(variants.created < time)).scalars()
    _remove_variants(connection, [identity for identity in old if identity not in winners])
    for table in (schema.TRIALS, schema.LIBRARY_TRIALS):
        connection.execute(delete(table).where(table.c.created < time))
    runs = schema.RUNS.c
    named = (select(table.c.run).where(table.c.run == runs.name) for table in (schema.MEASUREMENTS, schema.TRIALS))
    connection.execute(delete(schema.RUNS).where(runs.created < time, *(~found.exists() for found in named)))


def _remove_until(connection: Connection, session: ConnectionSession, largest: int, winners: set[str]) -> None:
    """Removes the oldest variants that do not win until the used pages of a file have at most ``largest`` bytes."""
    while (excess := _used(connection) - largest) > 0:
        chosen = list(_oldest(session, excess, winners))
        if not chosen:
            return
        _remove_variants(connection, chosen)


def _remove_plans_until(connection: Connection, session: ConnectionSession, largest: int) -> None:
    """Removes the oldest plans, which are quicker to make again than kernels, until the file is small enough."""
    for oldest in list(plan_needs(session)):
        if _used(connection) <= largest:
            return
        _delete(connection, schema.PLANS, [oldest.plan])
        _remove_what_no_plan_needs(connection, session)


def _oldest(session: ConnectionSession, size: int, winners: set[str]) -> Iterator[str]:
    """Just enough variants to hold ``size`` bytes; CacheError for a row that is none of ours."""
    for row in session.rows(OLDEST):
        if size <= 0:
            return
        match row:
            case {"identity": str(identity), "size": int(held)}:
                if identity not in winners:
                    size -= held
                    yield identity
            case _:
                raise damaged(session.place, "table variants", "a record has no name or no content")


def _remove_variants(connection: Connection, identities: Iterable[str]) -> None:
    names = [{"gone": identity} for identity in identities]
    if names:
        connection.execute(delete(schema.MEASUREMENTS).where(schema.MEASUREMENTS.c.variant == bindparam("gone")), names)
        connection.execute(delete(schema.VARIANTS).where(schema.VARIANTS.c.identity == bindparam("gone")), names)


def _remove_needless(connection: Connection, session: ConnectionSession, time: str, grace: str) -> None:
    """Removes what is from before ``time`` and nothing needs: texts in which no kernel stands that is here, and helpers
    where no variant is; and plans that lack a kernel.  ``grace``: how old kernels are, at least, that go because
    nothing refers to them.
    """
    _remove_kernels(connection, grace)
    kernels = frozenset(str(row["kernel"]) for row in session.rows(VARIANT_KERNELS))
    needs = list(plan_needs(session))
    kept = served_by(kernels, needs).plans
    _delete(connection, schema.PLANS, [one.plan for one in needs if one.plan not in kept])
    _remove_what_no_plan_needs(connection, session)
    programs = {definition_in(str(row["program"])) for row in session.rows(PROGRAMS)}
    rows = session.rows(where(TEXTS))
    gone = [
        str(row["identity"])
        for row in rows
        if str(row["created"]) < time and programs.isdisjoint(programs_of(str(row["definitions"])))
    ]
    _delete(connection, schema.TEXTS, gone)
    # Which of them a variant was made beside, nothing says; they are few, and small.
    none_left = ~select(schema.VARIANTS.c.identity).exists()
    connection.execute(delete(schema.NATIVES).where(schema.NATIVES.c.created < time, none_left))


def _remove_what_no_plan_needs(connection: Connection, session: ConnectionSession) -> None:
    """Removes constants and interfaces of models that belong to no plan; they are stored together with one."""
    needs = list(plan_needs(session))
    needed = {constant for one in needs for constant in one.constants} | {one.model for one in needs}
    rows = [row for row in session.rows(CONSTANTS_AND_MODELS) if row["needed"] not in needed]
    for table in (schema.CONSTANTS, schema.MODELS):
        _delete(connection, table, [str(row["identity"]) for row in rows if row["name"] == table.name])


def _delete(connection: Connection, table: Table, identities: Sequence[str]) -> None:
    if identities:
        gone = [{"gone": identity} for identity in identities]
        connection.execute(delete(table).where(table.c.identity == bindparam("gone")), gone)


def _remove_kernels(connection: Connection, time: str) -> None:
    """Removes kernels from before ``time`` that nothing refers to, and compilers that made none of those left."""
    kernels, compilers = schema.KERNELS, schema.COMPILERS
    used = (select(table.c.kernel).where(table.c.kernel == kernels.c.key) for table in (schema.VARIANTS, schema.TRIALS))
    connection.execute(delete(kernels).where(kernels.c.created < time, *(~found.exists() for found in used)))
    same = (kernels.c[name] == compilers.c[name] for name in ("target", "architecture", "compiler"))
    connection.execute(delete(compilers).where(~select(kernels.c.key).where(*same).exists()))


def _used(connection: Connection) -> int:
    """The bytes of all pages of an SQLite file that are not free."""
    pages, free, size = (
        int(connection.exec_driver_sql(f"PRAGMA {name}").scalar_one())
        for name in ("page_count", "freelist_count", "page_size")
    )
    return (pages - free) * size


def _compact(place: File) -> None:
    with told(str(place)), closing(connect(place.path, "mode=rw")) as connection:
        connection.execute("VACUUM")


def _bytes(place: Place) -> int:
    """The bytes of a file and its log; 0 for a server and for no file."""
    if not isinstance(place, File):
        return 0
    with told(str(place)):
        files = (Path(place.path + ending) for ending in ("", "-wal"))
        return sum(_size(file) for file in files)


def _size(file: Path) -> int:
    # The log comes and goes with its writers.
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return 0

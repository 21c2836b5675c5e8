"""Writes into a cache, in short transactions that are safe for concurrent processes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import SQLAlchemyError

from tc.base.errors import CacheError
from tc.base.frozen import frozen
from tc.cache.content.insertion import Conflict, insert_kernels, insert_records
from tc.cache.content.lookup import Reader
from tc.cache.database.database import Database
from tc.cache.database.engine import engine_at, require_one_host, write_ahead
from tc.cache.database.opening import database_at
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
    Run,
    Text,
    Trial,
    Variant,
)
from tc.cache.format.rows import row_of
from tc.cache.format.schema import migrate
from tc.cache.format.tables import (
    CONSTANTS,
    LIBRARY_TRIALS,
    MEASUREMENTS,
    MODELS,
    NATIVES,
    PLANS,
    RUNS,
    TEXTS,
    TRIALS,
    VARIANTS,
    Kept,
    Table,
)


def iso_time(time: datetime) -> str:
    """A time in ISO 8601, UTC, to the microsecond; as text, later is greater."""
    return time.astimezone(UTC).isoformat(timespec="microseconds")


def utc_now() -> str:
    """The present as ``iso_time``."""
    return iso_time(datetime.now(UTC))


@frozen
class Store:
    """A cache that is open for writing; many threads may share one, also after a fork.

    Each method is one transaction: when it returns, what it was given is committed, and when it raises CacheError,
    nothing of it was stored.  What is stored already is kept, and adding it again does nothing.
    """

    place: str
    engine: Engine
    database: Database
    key: bytes | None
    now: Callable[[], str]

    @staticmethod
    def open(
        where: str | Path, *, key: bytes | None = None, now: Callable[[], str] = utc_now, alone: bool = False
    ) -> Store:
        """Opens the cache at a path or a URL of SQLAlchemy, which is made, or brought up to date, if need be.

        ``key``: seals what is written; owners and permissions of the file do not count then.  ``now``: the clock.
        ``alone``: no other process knows of the file, which may lie where other hosts could write it, too.  CacheError
        for a file that others may write, that is not a cache, is of a newer version, is damaged, or cannot be written.
        """
        place, sealed = place_of(where), key is not None
        if isinstance(place, File) and not alone:
            require_one_host(Path(place.path))
        engine = engine_at(place, sealed=sealed)
        with told(str(place), SQLAlchemyError), engine.begin() as connection:
            migrate(connection, str(place))
        if isinstance(place, File) and not alone:
            write_ahead(Path(place.path))
        return Store(str(place), engine, database_at(place, immutable=False, sealed=sealed), key, now)

    def add_kernel(self, ingredients: Ingredients) -> None:
        """Stores a kernel, which trials may refer to from now on."""
        with self.transaction() as connection:
            insert_kernels(connection, ((ingredients, self.now()),))

    def add_variant(self, ingredients: Ingredients, variant: Variant, *, replace: bool = False) -> None:
        """Stores a variant with its kernel; ``replace``: also where there is one with the same options and threads."""
        _require_own(ingredients, variant)
        created = self.now()
        row = row_of(VARIANTS, variant, self.key, created)
        with self.transaction() as connection:
            insert_kernels(connection, ((ingredients, created),))
            insert_records(connection, VARIANTS, (row,), Conflict.REPLACE if replace else Conflict.KEEP)

    def add_executable(
        self, ingredients: Ingredients, variant: Variant, text: Text | None, natives: Iterable[Native]
    ) -> None:
        """``add_variant`` with what the text that it comes from means, and with the helpers that run it."""
        _require_own(ingredients, variant)
        with self.transaction() as connection:
            if text is not None:
                self._insert(connection, TEXTS, (text,))
            self._insert(connection, NATIVES, natives)
            insert_kernels(connection, ((ingredients, self.now()),))
            self._insert(connection, VARIANTS, (variant,))

    def add_text(self, text: Text) -> None:
        """Stores what a raw text means."""
        self._add(TEXTS, (text,))

    def add_native(self, native: Native) -> None:
        """Stores a helper."""
        self._add(NATIVES, (native,))

    def add_library_trial(self, trial: LibraryTrial, *, replace: bool = False) -> None:
        """Stores how long a library takes; ``replace``: also where there is a trial of the same."""
        row = row_of(LIBRARY_TRIALS, trial, self.key, self.now())
        with self.transaction() as connection:
            insert_records(connection, LIBRARY_TRIALS, (row,), Conflict.REPLACE if replace else Conflict.KEEP)

    def add_run(self, run: Run) -> None:
        """Stores that a search has begun."""
        self._add(RUNS, (run,))

    def add_trial(self, trial: Trial) -> None:
        """Stores a trial of a kernel that is stored."""
        self._add(TRIALS, (trial,))

    def add_trials(self, trials: Iterable[Trial]) -> None:
        """Stores trials of kernels that are stored."""
        self._add(TRIALS, trials)

    def add_measurement(self, measurement: Measurement) -> None:
        """Stores a measurement of a variant that is stored."""
        self._add(MEASUREMENTS, (measurement,))

    def add_measurements(self, measurements: Iterable[Measurement]) -> None:
        """Stores measurements of variants that are stored."""
        self._add(MEASUREMENTS, measurements)

    def add_plan(self, interface: ModelInterface, constants: Iterable[Constant], plan: Plan) -> None:
        """Stores a plan with all that it needs but its kernels, in the place of one for the same."""
        created = self.now()
        rows = [row_of(CONSTANTS, constant, self.key, created) for constant in constants]
        with self.transaction() as connection:
            insert_records(connection, MODELS, (row_of(MODELS, interface, self.key, created),), Conflict.KEEP)
            insert_records(connection, CONSTANTS, rows, Conflict.KEEP)
            insert_records(connection, PLANS, (row_of(PLANS, plan, self.key, created),), Conflict.REPLACE)

    @property
    def reader(self) -> Reader:
        """The same cache for reading."""
        return Reader(self.database, self.key)

    def trials(self, kernel: str, machine: str, threads: int) -> tuple[Trial, ...]:
        """What was tried for a kernel on such a machine with so many threads, in the order of time."""
        return self.reader.trials(kernel, machine, threads)

    def runs(self) -> tuple[Run, ...]:
        """Every search, in the order in which they began."""
        return self.reader.runs()

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """A transaction that commits when the block ends and leaves nothing when it raises."""
        with told(self.place, SQLAlchemyError), self.engine.begin() as connection:
            yield connection

    def _add(self, table: Table[Kept], records: Iterable[Kept]) -> None:
        with self.transaction() as connection:
            self._insert(connection, table, records)

    def _insert(self, connection: Connection, table: Table[Kept], records: Iterable[Kept]) -> None:
        created = self.now()
        rows = tuple(row_of(table, record, self.key, created) for record in records)
        insert_records(connection, table, rows, Conflict.KEEP)


def _require_own(ingredients: Ingredients, variant: Variant) -> None:
    if variant.kernel != ingredients.key:
        raise CacheError("a variant cannot be stored under the ingredients of another kernel; give its own")

"""Lookups in a cache, which import only the standard library unless the cache is on a server."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict

from tc.base.digest import sha256_hex
from tc.base.frozen import frozen
from tc.cache.content.choice import winner_of, winning
from tc.cache.database.database import Database, Session
from tc.cache.database.opening import database_at
from tc.cache.database.place import place_of
from tc.cache.format.database_errors import damaged
from tc.cache.format.ingredients import Ingredients
from tc.cache.format.records import (
    Constant,
    LibraryTrial,
    ModelInterface,
    Native,
    Plan,
    Run,
    Text,
    Trial,
    Variant,
    library_trial_identity,
    native_identity,
    variant_identity,
)
from tc.cache.format.rows import ingredients_of, record_of
from tc.cache.format.schema_version import require_readable
from tc.cache.format.tables import (
    COMPILERS,
    CONSTANTS,
    DECIDING,
    FEWEST_THREADS,
    LIBRARY_TRIALS,
    MEASURED_SHAPES,
    MEASUREMENTS,
    META,
    MODELS,
    NATIVES,
    NEAREST_OF_ALL,
    NEAREST_OF_PROGRAM,
    PLANS,
    PLANS_FOR,
    RUNS,
    SYMBOLIC,
    TEXTS,
    TRIALS,
    VARIANTS,
    Kept,
    Table,
    where,
)


@frozen
class _Held:
    """A database whose sessions are the one that is open."""

    place: str
    open: Session

    @contextmanager
    def session(self) -> Iterator[Session]:
        """As the protocol says."""
        yield self.open


@frozen
class Reader:
    """A cache that is open for reading; many threads may share one, also after a fork.

    Everything that it returns was checked against its hash, and against its seal if there is a key.  All methods
    raise CacheError for damage, for a missing or wrong seal, and where the cache cannot be read.
    """

    database: Database
    key: bytes | None

    @staticmethod
    def open(where: str | os.PathLike[str], *, immutable: bool = False, key: bytes | None = None) -> Reader:
        """Opens the cache at a path or a URL of SQLAlchemy; CacheError if there is none that can be trusted and read.

        ``immutable``: the file does not change; it may be on a read-only file system; for files that
        ``tc-cache export --ship`` has made.  ``key``: refuse what does not bear the seal of this key.
        """
        database = database_at(place_of(where), immutable=immutable, sealed=key is not None)
        with database.session() as session:
            require_readable({row["name"]: row["value"] for row in session.rows(META)}, database.place)
        return Reader(database, key)

    @contextmanager
    def held(self) -> Iterator[Reader]:
        """The cache in one state, for many lookups of one thread; sessions cost more than most of these."""
        with self.database.session() as session:
            yield Reader(_Held(self.database.place, session), self.key)

    def winner(self, kernel: str, machine: str, threads: int) -> Variant | None:
        """The fastest variant of a kernel that was measured; None if none was.  ``choice`` has the rules."""
        with self.database.session() as session:
            return self._winner(session, kernel, machine, threads)

    def best(self, kernel: str, machine: str, threads: int, otherwise: str, needed: int | None) -> Variant | None:
        """The ``winner``, or the ``variant`` with the options ``otherwise`` and ``needed`` threads, in one session."""
        with self.database.session() as session:
            found = self._winner(session, kernel, machine, threads)
            return self._variant(session, kernel, otherwise, needed) if found is None else found

    def variant(self, kernel: str, options: str, threads: int | None = None) -> Variant | None:
        """The variant with these options; without ``threads``, the one for the fewest threads."""
        with self.database.session() as session:
            return self._variant(session, kernel, options, threads)

    def text(self, key: str) -> Text | None:
        """What a raw text means; ``key`` is ``records.text_key`` of it."""
        with self.database.session() as session:
            return self._one(session, TEXTS, key)

    def native(self, name: str, machine: str, source: str) -> Native | None:
        """A helper that was compiled on such a machine from a source with this hash."""
        with self.database.session() as session:
            return self._one(session, NATIVES, native_identity(name, machine, source))

    def interfaces(self, model: str, generator: str) -> tuple[ModelInterface, ...]:
        """What callers must know of the model with this digest, by the readers that were asked."""
        with self.database.session() as session:
            rows = session.rows(where(MODELS, "model", "generator"), model=model, generator=generator)
            return tuple(record_of(MODELS, row, self.key, self.database.place) for row in rows)

    def plans(
        self, model: str, wanted: str, target: str, architecture: str, generator: str
    ) -> tuple[tuple[str, str, int], ...]:
        """The plans for the same: identity, reader and threads of each, those for the fewest threads first."""
        with self.database.session() as session:
            rows = session.rows(
                PLANS_FOR, model=model, wanted=wanted, target=target, architecture=architecture, generator=generator
            )
            return tuple((str(row["identity"]), str(row["reader"]), int(str(row["threads"]))) for row in rows)

    def plan(self, identity: str) -> Plan | None:
        """One of the plans."""
        with self.database.session() as session:
            return self._one(session, PLANS, identity)

    def constant(self, identity: str) -> Constant | None:
        """The contents of a constant that plans share."""
        with self.database.session() as session:
            return self._one(session, CONSTANTS, identity)

    def library_trial(self, work: str, machine: str, threads: int, library: str, generator: str) -> LibraryTrial | None:
        """How long a library takes for some work on such a machine, beside our kernels with so many threads."""
        with self.database.session() as session:
            identity = library_trial_identity(work, machine, threads, library, generator)
            return self._one(session, LIBRARY_TRIALS, identity)

    def compilers(self, target: str, architecture: str) -> tuple[str, ...]:
        """The versions of the compiler that kernels in this cache were made with, sorted."""
        with self.database.session() as session:
            rows = session.rows(COMPILERS, target=target, architecture=architecture)
            return tuple(sorted(str(row["compiler"]) for row in rows))

    def symbolic(self, program_hash: str, settled: str) -> tuple[str, ...]:
        """What stays symbolic in kernels of a program; ``settled`` stands for nothing."""
        with self.database.session() as session:
            rows = session.rows(SYMBOLIC, program_hash=program_hash, settled=settled)
            return tuple(str(row["symbolic"]) for row in rows)

    def trials(self, kernel: str, machine: str, threads: int) -> tuple[Trial, ...]:
        """What was tried for a kernel on such a machine with so many threads, in the order of time."""
        with self.database.session() as session:
            sql = where(TRIALS, "kernel", "machine", "threads", order="at, run, number, identity")
            rows = session.rows(sql, kernel=kernel, machine=machine, threads=threads)
            return tuple(record_of(TRIALS, row, self.key, self.database.place) for row in rows)

    def times(self, kernels: Mapping[str, str]) -> dict[str, dict[tuple[str, int], tuple[float, float]]]:
        """By kernel, and by machine and number of threads, the seconds of a call there, of the winner and of the
        default options beside it; those of a trial of the default options where no winner is known.

        ``kernels``: the default options by kernel.
        """
        with self.database.session() as session:
            return {kernel: self._times(session, kernel, default) for kernel, default in kernels.items()}

    def measured_shapes(self, target: str, architecture: str, generator: str) -> frozenset[str]:
        """The ingredients ``shapes`` of all kernels for a target that were measured."""
        with self.database.session() as session:
            rows = session.rows(MEASURED_SHAPES, target=target, architecture=architecture, generator=generator)
            return frozenset(str(row["shapes"]) for row in rows)

    def runs(self) -> tuple[Run, ...]:
        """Every search, in the order in which they began."""
        with self.database.session() as session:
            rows = session.rows(where(RUNS, order="started, identity"))
            return tuple(record_of(RUNS, row, self.key, self.database.place) for row in rows)

    def ended_runs(self, kernel: str, machine: str, threads: int) -> tuple[Run | None, ...]:
        """The searches that have measured variants of a kernel on such a machine when they ended; None for one that is
        not in the cache any more.
        """
        with self.database.session() as session:
            rows = session.rows(where(MEASUREMENTS, "kernel"), kernel=kernel)
            measured = [record_of(MEASUREMENTS, row, self.key, self.database.place) for row in rows]
            names = {one.run for one in measured if one.run and (one.machine, one.threads) == (machine, threads)}
            if not names:
                return ()
            runs = [record_of(RUNS, row, self.key, self.database.place) for row in session.rows(where(RUNS))]
            known = {run.name: run for run in runs}
            return tuple(known.get(name) for name in sorted(names))

    def nearest(self, ingredients: Ingredients) -> tuple[Ingredients, tuple[tuple[str, str, str], ...]] | None:
        """The kernel that differs in the fewest ingredients, if possible of the same program, for explaining a miss.

        With it comes what differs: (ingredient, asked for, found).  None if the cache is empty.
        """
        with self.database.session() as session:
            wanted = asdict(ingredients)
            rows = [*session.rows(NEAREST_OF_PROGRAM, program_hash=ingredients.program_hash, **wanted)] or [
                *session.rows(NEAREST_OF_ALL, **wanted)
            ]
            if not rows:
                return None
            found = ingredients_of(rows[0], self.database.place)
            return found, ingredients.difference(found)

    def manifest(self) -> str:
        """One hash over all that decides which kernel runs, for processes that must agree.

        It depends on kernels, variants, measurements, texts and helpers, not on the order in which they came, and
        not on trials and runs.  It is made of the stored hashes; ``verify`` checks those against the contents.
        """
        with self.database.session() as session:
            lines = sorted(f"{row['name']} {row['digest']}\n" for row in session.rows(DECIDING))
        return sha256_hex("".join(lines).encode("utf-8", "surrogatepass"))

    def _winner(self, session: Session, kernel: str, machine: str, threads: int) -> Variant | None:
        rows = session.rows(where(MEASUREMENTS, "kernel"), kernel=kernel)
        measured = tuple(record_of(MEASUREMENTS, row, self.key, self.database.place) for row in rows)
        identity = winner_of(measured, machine, threads)
        if identity is None:
            return None
        found = self._one(session, VARIANTS, identity)
        if found is None:
            raise damaged(self.database.place, f"kernel {kernel}", "a variant that was measured is missing")
        return found

    def _times(self, session: Session, kernel: str, default: str) -> dict[tuple[str, int], tuple[float, float]]:
        rows = session.rows(where(MEASUREMENTS, "kernel"), kernel=kernel)
        found = winning(record_of(MEASUREMENTS, row, self.key, self.database.place) for row in rows)
        if found:
            return {place: (one.seconds, one.default_seconds) for place, one in found.items()}
        rows = session.rows(where(TRIALS, "kernel", "options", order="at"), kernel=kernel, options=default)
        trials = [record_of(TRIALS, row, self.key, self.database.place) for row in rows]
        return {(one.machine, one.threads): (one.seconds, one.seconds) for one in trials if one.seconds is not None}

    def _variant(self, session: Session, kernel: str, options: str, threads: int | None) -> Variant | None:
        if threads is not None:
            return self._one(session, VARIANTS, variant_identity(kernel, options, threads))
        for row in session.rows(FEWEST_THREADS, kernel=kernel, options=options):
            return self._one(session, VARIANTS, str(row["identity"]))
        return None

    def _one(self, session: Session, table: Table[Kept], identity: str) -> Kept | None:
        rows = session.rows(where(table, "identity"), identity=identity)
        return next((record_of(table, row, self.key, self.database.place) for row in rows), None)

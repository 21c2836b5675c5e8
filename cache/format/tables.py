"""Which record lives in which table, and the text of the statements that read them.

The statements are plain SQL with named ``:parameters``, which the standard library's sqlite3 and SQLAlchemy both
take, on SQLite and on PostgreSQL.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Final, Generic, TypeVar

from tc.base.frozen import frozen
from tc.cache.format.ingredients import FIELDS
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

Kept = TypeVar("Kept", bound=Record)


@frozen
class Table(Generic[Kept]):
    """A table of records of one class: a column for every field, and the columns of ``KEPT``.

    ``derived``: properties of the record that have a column too, by which it refers to other tables.
    """

    name: str
    record: type[Kept]
    derived: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of all columns."""
        fields = (field.name for field in dataclasses.fields(self.record))
        return *fields, *self.derived, *KEPT


KEPT: Final = ("identity", "digest", "seal", "created")
"""Beside its fields, every record has its primary key, its hash, its seal, and when it was stored."""

VARIANTS: Final = Table("variants", Variant)
MEASUREMENTS: Final = Table("measurements", Measurement, derived=("variant",))
TRIALS: Final = Table("trials", Trial)
RUNS: Final = Table("runs", Run)
TEXTS: Final = Table("texts", Text)
NATIVES: Final = Table("natives", Native)
MODELS: Final = Table("models", ModelInterface)
CONSTANTS: Final = Table("constants", Constant)
PLANS: Final = Table("plans", Plan)
LIBRARY_TRIALS: Final = Table("library_trials", LibraryTrial)

# Every table comes after those that it refers to.
TABLES: Final[tuple[Table[Any], ...]] = (
    VARIANTS,
    MEASUREMENTS,
    TRIALS,
    RUNS,
    TEXTS,
    NATIVES,
    MODELS,
    CONSTANTS,
    PLANS,
    LIBRARY_TRIALS,
)

_KERNEL: Final = ", ".join(FIELDS)
_DIFFERING: Final = " + ".join(f"CASE WHEN {name} = :{name} THEN 0 ELSE 1 END" for name in FIELDS)

META: Final = "SELECT name, value FROM meta"
KERNELS: Final = f"SELECT key, program_hash, {_KERNEL}, created FROM kernels ORDER BY key"
NEAREST_OF_PROGRAM: Final = (
    f"SELECT key, program_hash, {_KERNEL} FROM kernels WHERE program_hash = :program_hash "
    f"ORDER BY {_DIFFERING}, key LIMIT 1"
)
NEAREST_OF_ALL: Final = f"SELECT key, program_hash, {_KERNEL} FROM kernels ORDER BY {_DIFFERING}, key LIMIT 1"
DECIDING: Final = " UNION ALL ".join(
    (
        "SELECT 'kernels' AS name, key AS digest FROM kernels",
        *(
            f"SELECT '{table.name}', digest FROM {table.name}"
            for table in (VARIANTS, MEASUREMENTS, TEXTS, NATIVES, MODELS, CONSTANTS, PLANS, LIBRARY_TRIALS)
        ),
    )
)
FEWEST_THREADS: Final = (
    "SELECT identity FROM variants WHERE kernel = :kernel AND options = :options ORDER BY threads LIMIT 1"
)
PROGRAMS: Final = "SELECT DISTINCT program FROM kernels"
DIGESTS: Final = "SELECT identity, digest FROM variants"
VARIANT_KERNELS: Final = "SELECT identity, kernel FROM variants"
TRIED: Final = "SELECT DISTINCT kernel FROM trials"
TRIAL_COUNTS: Final = "SELECT kernel, count(*) AS trials FROM trials GROUP BY kernel"
OUTCOMES: Final = (
    "SELECT outcome, count(*) AS trials FROM trials WHERE kernel = :kernel GROUP BY outcome ORDER BY outcome"
)
UNMEASURED: Final = (
    "SELECT identity FROM variants WHERE NOT EXISTS (SELECT 1 FROM measurements WHERE variant = variants.identity)"
)
MEASURED_SHAPES: Final = (
    "SELECT DISTINCT shapes FROM kernels WHERE target = :target AND architecture = :architecture AND "
    "generator = :generator AND key IN (SELECT kernel FROM measurements UNION SELECT kernel FROM trials)"
)
OLDEST: Final = (
    'SELECT identity, length(source) + length("binary") + length(executable) + length(options) AS size '
    "FROM variants ORDER BY created, identity"
)
SYMBOLIC: Final = (
    "SELECT DISTINCT symbolic FROM kernels WHERE program_hash = :program_hash AND symbolic <> :settled "
    "ORDER BY symbolic"
)
COMPILERS: Final = "SELECT compiler FROM compilers WHERE target = :target AND architecture = :architecture"
PLANS_FOR: Final = (
    "SELECT identity, reader, threads FROM plans WHERE model = :model AND wanted = :wanted AND target = :target "
    "AND architecture = :architecture AND generator = :generator ORDER BY threads, identity"
)
# What plans need, without the plans.
PLAN_NEEDS: Final = "SELECT identity, model, kernels, constants FROM plans ORDER BY created, identity"
PLAN_TITLES: Final = (
    "SELECT title, target, architecture, threads, kernels, length(steps) + length(contents) AS size FROM plans"
)
# By what plans name them.
CONSTANTS_AND_MODELS: Final = (
    "SELECT 'constants' AS name, identity, identity AS needed FROM constants "
    "UNION ALL SELECT 'models', identity, model FROM models"
)


def where(table: Table[Kept], *columns: str, order: str = "identity") -> str:
    """Selects the whole rows whose ``columns`` equal the parameters of the same names."""
    condition = " AND ".join(f"{column} = :{column}" for column in columns) or "1 = 1"
    # Some names mean something else in PostgreSQL.
    selected = ", ".join(f'"{column}"' for column in table.columns)
    return f"SELECT {selected} FROM {table.name} WHERE {condition} ORDER BY {order}"

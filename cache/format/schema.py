"""The schema of a cache, and the migrations from older versions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Double,
    ForeignKey,
    Index,
    LargeBinary,
    MetaData,
    Table,
    Text,
    inspect,
    select,
    text,
    update,
)

from tc.base.errors import CacheError
from tc.cache.format.ingredients import FIELDS
from tc.cache.format.schema_version import APPLICATION, version_of

METADATA: Final = MetaData()


def _text(name: str, *constraints: ForeignKey) -> Column[Any]:
    return Column(name, Text, *constraints, nullable=False)


def _kept() -> tuple[Column[Any], ...]:
    """The columns that every record has beside its fields."""
    return Column("identity", Text, primary_key=True), _text("digest"), _text("seal"), _text("created")


META: Final = Table("meta", METADATA, Column("name", Text, primary_key=True), _text("value"))

KERNELS: Final = Table(
    "kernels",
    METADATA,
    Column("key", Text, primary_key=True),
    _text("program_hash"),
    _text("created"),
    *(_text(name) for name in FIELDS),
    Index("kernels_of_program", "program_hash"),
)

# What the table of kernels says too, but at once.
COMPILERS: Final = Table(
    "compilers",
    METADATA,
    Column("target", Text, primary_key=True),
    Column("architecture", Text, primary_key=True),
    Column("compiler", Text, primary_key=True),
)

# Large columns come last: SQLite reads a row from its start.
VARIANTS: Final = Table(
    "variants",
    METADATA,
    *_kept(),
    _text("kernel", ForeignKey("kernels.key")),
    Column("threads", BigInteger, nullable=False),
    _text("options"),
    _text("resources"),
    _text("proof"),
    _text("numerics"),
    _text("features"),
    _text("libc"),
    _text("origin"),
    _text("executable"),
    _text("source"),
    Column("binary", LargeBinary, nullable=False),
    Index("variants_of_kernel", "kernel"),
)

MEASUREMENTS: Final = Table(
    "measurements",
    METADATA,
    *_kept(),
    _text("variant", ForeignKey("variants.identity")),
    _text("kernel"),
    Column("threads", BigInteger, nullable=False),
    _text("machine"),
    _text("policy"),
    Column("seconds", Double, nullable=False),
    Column("low", Double, nullable=False),
    Column("high", Double, nullable=False),
    Column("default_seconds", Double, nullable=False),
    Column("samples", BigInteger, nullable=False),
    _text("run"),
    _text("at"),
    _text("options"),
    Index("measurements_of_kernel", "kernel"),
    Index("measurements_of_variant", "variant"),
)

TRIALS: Final = Table(
    "trials",
    METADATA,
    *_kept(),
    _text("kernel", ForeignKey("kernels.key")),
    Column("threads", BigInteger, nullable=False),
    _text("machine"),
    _text("outcome"),
    _text("reason"),
    _text("origin"),
    _text("source"),
    _text("numerics"),
    Column("seconds", Double),
    _text("run"),
    Column("number", BigInteger, nullable=False),
    Column("generation", BigInteger, nullable=False),
    _text("at"),
    _text("options"),
    _text("samples"),
    Index("trials_of_kernel", "kernel", "machine", "threads"),
)

RUNS: Final = Table("runs", METADATA, *_kept(), _text("name"), _text("machine"), _text("started"), _text("settings"))

TEXTS: Final = Table("texts", METADATA, *_kept(), _text("key"), _text("definitions"))

NATIVES: Final = Table(
    "natives",
    METADATA,
    *_kept(),
    _text("name"),
    _text("machine"),
    _text("source"),
    Column("binary", LargeBinary, nullable=False),
)

MODELS: Final = Table(
    "models",
    METADATA,
    *_kept(),
    _text("model"),
    _text("generator"),
    _text("reader"),
    _text("interface"),
    Index("models_of_digest", "model"),
)

CONSTANTS: Final = Table("constants", METADATA, *_kept(), Column("contents", LargeBinary, nullable=False))

PLANS: Final = Table(
    "plans",
    METADATA,
    *_kept(),
    _text("model"),
    _text("target"),
    _text("architecture"),
    Column("threads", BigInteger, nullable=False),
    _text("generator"),
    _text("reader"),
    _text("title"),
    _text("wanted"),
    _text("kernels"),
    _text("constants"),
    _text("steps"),
    Column("contents", LargeBinary, nullable=False),
    Index("plans_of_model", "model"),
)

LIBRARY_TRIALS: Final = Table(
    "library_trials",
    METADATA,
    *_kept(),
    _text("work"),
    _text("machine"),
    Column("threads", BigInteger, nullable=False),
    _text("library"),
    _text("generator"),
    _text("outcome"),
    Column("ours", Double),
    Column("theirs", Double),
    _text("at"),
)

Migration: TypeAlias = Callable[[Connection], None]


def _create(connection: Connection) -> None:
    METADATA.create_all(connection)
    connection.execute(
        META.insert(), [{"name": "application", "value": APPLICATION}, {"name": "version", "value": "0"}]
    )


def _add_plans(connection: Connection) -> None:
    # A new cache has them already.
    METADATA.create_all(connection, [MODELS, CONSTANTS, PLANS])


def _add_library_trials(connection: Connection) -> None:
    # A new cache has them already.
    METADATA.create_all(connection, [LIBRARY_TRIALS])


MIGRATIONS: Final[tuple[Migration, ...]] = (_create, _add_plans, _add_library_trials)
"""The step from each version to the next, from nothing on; ``version.VERSION`` counts them."""

# Any number that has no other use: only one process at a time creates or migrates.
_LOCK: Final = 0x7463_6B63


def migrate(connection: Connection, place: str, migrations: tuple[Migration, ...] = MIGRATIONS) -> None:
    """Brings the tables to the newest version, within the transaction of ``connection``.

    CacheError for tables of another application or of a newer version, which stay as they are.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
    tables = inspect(connection).get_table_names()
    if not tables:
        version = 0
    elif META.name in tables:
        version = version_of(dict(tuple(row) for row in connection.execute(select(META))), place, len(migrations))
    else:
        raise CacheError(f"{place} belongs to another application; name another file or database")
    if version == len(migrations):
        return
    for step in migrations[version:]:
        step(connection)
    connection.execute(update(META).where(META.c.name == "version").values(value=str(len(migrations))))

"""Inserts rows into tables, and resolves conflicts between rows of the same name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from enum import Enum, auto
from typing import Any, Final, assert_never

import sqlalchemy
from sqlalchemy import ColumnElement, Connection, and_, or_
from sqlalchemy.dialects import postgresql, sqlite

from tc.cache.format import schema
from tc.cache.format.encoding import Value
from tc.cache.format.ingredients import Ingredients
from tc.cache.format.tables import Kept, Table

_COMPILER: Final = ("target", "architecture", "compiler")


class Conflict(Enum):
    """KEEP what is there, REPLACE it, or MERGE: keep the one that comes first in an order that all caches share."""

    KEEP = auto()
    REPLACE = auto()
    MERGE = auto()


def insert_kernels(connection: Connection, kernels: Iterable[tuple[Ingredients, str]]) -> None:
    """Adds kernels with the time when they were first stored; of the same kernel, the earliest time stays."""
    for ingredients, created in kernels:
        fields = asdict(ingredients)
        row = {"key": ingredients.key, "program_hash": ingredients.program_hash, "created": created, **fields}
        insert = _insert(connection, schema.KERNELS)
        earlier = insert.excluded.created < schema.KERNELS.c.created
        update = insert.on_conflict_do_update(
            index_elements=["key"], set_={"created": insert.excluded.created}, where=earlier
        )
        connection.execute(update, row)
        compilers = _insert(connection, schema.COMPILERS).on_conflict_do_nothing()
        connection.execute(compilers, {name: fields[name] for name in _COMPILER})


def insert_records(
    connection: Connection, table: Table[Kept], rows: Sequence[Mapping[str, Value]], conflict: Conflict
) -> None:
    """Adds rows that ``rows.row_of`` made, or that another cache holds."""
    if not rows:
        return
    into = schema.METADATA.tables[table.name]
    insert = _insert(connection, into)
    match conflict:
        case Conflict.KEEP:
            connection.execute(insert.on_conflict_do_nothing(), rows)
        case Conflict.REPLACE | Conflict.MERGE:
            values = {column.name: insert.excluded[column.name] for column in into.c}
            first = _comes_first(insert.excluded, into) if conflict is Conflict.MERGE else None
            connection.execute(
                insert.on_conflict_do_update(index_elements=["identity"], set_=values, where=first), rows
            )
        case _:
            assert_never(conflict)


def _comes_first(new: Any, old: sqlalchemy.Table) -> ColumnElement[bool]:
    """Whether the new row goes before the old: by its digest, then with a seal, then by its age."""
    return or_(
        new.digest < old.c.digest,
        and_(new.digest == old.c.digest, new.seal > old.c.seal),
        and_(new.digest == old.c.digest, new.seal == old.c.seal, new.created < old.c.created),
    )


def _insert(connection: Connection, table: sqlalchemy.Table) -> sqlite.Insert | postgresql.Insert:
    return sqlite.insert(table) if connection.dialect.name == "sqlite" else postgresql.insert(table)

"""Copies records from one cache to another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from sqlalchemy import Connection, func, select

from tc.cache.content.contents import Contents
from tc.cache.content.insertion import Conflict, insert_kernels, insert_records
from tc.cache.format import schema
from tc.cache.format.encoding import Value
from tc.cache.format.ingredients import Ingredients
from tc.cache.format.records import Record
from tc.cache.format.rows import Row
from tc.cache.format.tables import TABLES
from tc.cache.format.trust import seal_of

# Rows hold whole binaries.
_BATCH: Final = 32


def everything(_: Ingredients | Record) -> bool:
    """Selects every record."""
    return True


def copy_records(
    source: Contents,
    into: Connection,
    wanted: Callable[[Ingredients | Record], bool] = everything,
    seal: bytes | None = None,
) -> None:
    """Merges the ``wanted`` records of a cache into another one, within the transaction of ``into``.

    Of two records with the same name, the one that stays does not depend on which of them came first.  Seals come
    along, or are made with the key ``seal``.
    """
    insert_kernels(into, (found for found in source.kernels() if wanted(found[0])))
    for table in TABLES:
        batch: list[dict[str, Value]] = []
        for record, row in source.records(table):
            if wanted(record):
                batch.append(_values(row, seal))
            if len(batch) == _BATCH:
                insert_records(into, table, batch, Conflict.MERGE)
                batch.clear()
        insert_records(into, table, batch, Conflict.MERGE)


def counts(connection: Connection) -> dict[str, int]:
    """How many rows each table has, by its name."""
    tables = (schema.KERNELS, *(schema.METADATA.tables[table.name] for table in TABLES))
    return {table.name: connection.execute(select(func.count()).select_from(table)).scalar_one() for table in tables}


def _values(row: Row, seal: bytes | None) -> dict[str, Value]:
    values: dict[str, Value] = {
        name: value for name, value in row.items() if isinstance(value, str | int | float | bytes | None)
    }
    return values if seal is None else values | {"seal": seal_of(str(row["digest"]), seal)}

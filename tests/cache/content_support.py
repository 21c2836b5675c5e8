"""All rows of a cache, for comparing whole caches."""

from __future__ import annotations

from typing import TypeAlias

from tc.cache.content.contents import Contents
from tc.cache.content.lookup import Reader
from tc.cache.format.tables import COMPILERS, TABLES

Content: TypeAlias = dict[str, list[object]]


def content(where: object, key: bytes | None = None) -> Content:
    """The records of every table with their seals and ages, in an order that does not depend on history."""
    reader = Reader.open(str(where), key=key)
    with reader.database.session() as session:
        contents = Contents(session, reader.database.place, key)
        found: Content = {"kernels": [(kernel.key, created) for kernel, created in contents.kernels()]}
        for table in TABLES:
            records = contents.records(table)
            found[table.name] = [(record, row["seal"], row["created"]) for record, row in records]
        compilers = session.rows(COMPILERS, target="cpu", architecture="x86-64-v3")
        found["compilers"] = [*sorted(str(row["compiler"]) for row in compilers)]
    return found

"""All that a cache holds, one record at a time."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from tc.base.frozen import frozen
from tc.cache.content.choice import chosen_variants
from tc.cache.database.database import Session
from tc.cache.format.ingredients import Ingredients
from tc.cache.format.records import Measurement
from tc.cache.format.rows import Row, ingredients_of, record_of
from tc.cache.format.tables import KERNELS, MEASUREMENTS, Kept, Table, where


@frozen
class Contents:
    """What a session sees of the cache at ``place``; all methods raise CacheError for damage and for bad seals."""

    session: Session
    place: str
    key: bytes | None

    def kernels(self) -> Iterator[tuple[Ingredients, str]]:
        """Every kernel and when it was first stored, in the order of the keys."""
        for row in self.session.rows(KERNELS):
            yield ingredients_of(row, self.place), str(row["created"])

    def records(self, table: Table[Kept], order: str = "identity") -> Iterator[tuple[Kept, Row]]:
        """Every record of a table, and its row."""
        for row in self.session.rows(where(table, order=order)):
            yield record_of(table, row, self.key, self.place), row

    def chosen_variants(self) -> dict[str, dict[tuple[str, int], str]]:
        """By kernel, machine and number of threads, the identity of the variant that wins."""
        measured: Iterator[Measurement] = (record for record, _ in self.records(MEASUREMENTS, "kernel, identity"))
        return {kernel: chosen_variants(group) for kernel, group in groupby(measured, lambda one: one.kernel)}

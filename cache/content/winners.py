"""The winners of all kernels in a cache, with whose options other searches may begin."""

from __future__ import annotations

from collections.abc import Iterator

from tc.cache.content.contents import Contents
from tc.cache.content.lookup import Reader
from tc.cache.format.ingredients import Ingredients
from tc.cache.format.records import Variant
from tc.cache.format.rows import record_of
from tc.cache.format.tables import VARIANTS, where


def winners(reader: Reader, target: str, machine: str) -> Iterator[tuple[Ingredients, Variant]]:
    """Kernels for a target with the variants that were quickest, on such a machine where they were measured there.

    CacheError for damage.
    """
    with reader.database.session() as session:
        place, key = reader.database.place, reader.key
        contents = Contents(session, place, key)
        chosen_variants = contents.chosen_variants()
        for ingredients, _ in contents.kernels():
            chosen = chosen_variants.get(ingredients.key, {}) if ingredients.target == target else {}
            own = {identity for (where_measured, _), identity in chosen.items() if where_measured == machine}
            for identity in sorted(own or set(chosen.values())):
                for row in session.rows(where(VARIANTS, "identity"), identity=identity):
                    yield ingredients, record_of(VARIANTS, row, key, place)

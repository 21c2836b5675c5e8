"""The differences between two caches."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

from tc.base.frozen import frozen
from tc.cache.content.contents import Contents
from tc.cache.content.lookup import Reader
from tc.cache.format.ingredients import Ingredients
from tc.cache.format.tables import DIGESTS

# By machine and number of threads: the identity and the digest of the variant that wins.
_Winners: TypeAlias = Mapping[tuple[str, int], tuple[str, str]]


@frozen
class OtherWinner:
    """A kernel of both caches for which, on some machine with so many threads, another variant wins.

    ``first`` and ``second``: the identities of the variants, None where none was measured.  Equal identities mean
    that the variants have the same options but another content.
    """

    kernel: Ingredients
    machine: str
    threads: int
    first: str | None
    second: str | None


@frozen
class Difference:
    """Kernels of only one of two caches, and kernels of both with other winners; empty if they run the same."""

    only_first: tuple[Ingredients, ...]
    only_second: tuple[Ingredients, ...]
    other_winners: tuple[OtherWinner, ...]


def diff(first: str | Path, second: str | Path, *, key: bytes | None = None) -> Difference:
    """Compares two caches; CacheError if one of them is damaged or cannot be read."""
    ours, our_winners = _read(first, key)
    theirs, their_winners = _read(second, key)
    return Difference(
        tuple(ours[kernel] for kernel in sorted(ours.keys() - theirs.keys())),
        tuple(theirs[kernel] for kernel in sorted(theirs.keys() - ours.keys())),
        tuple(
            change
            for kernel in sorted(ours.keys() & theirs.keys())
            for change in _changes(ours[kernel], our_winners.get(kernel, {}), their_winners.get(kernel, {}))
        ),
    )


def _changes(kernel: Ingredients, ours: _Winners, theirs: _Winners) -> tuple[OtherWinner, ...]:
    nothing = (None, None)
    return tuple(
        OtherWinner(kernel, *place, ours.get(place, nothing)[0], theirs.get(place, nothing)[0])
        for place in sorted(ours.keys() | theirs.keys())
        if ours.get(place) != theirs.get(place)
    )


def _read(where: str | Path, key: bytes | None) -> tuple[dict[str, Ingredients], dict[str, _Winners]]:
    reader = Reader.open(where, key=key)
    with reader.database.session() as session:
        contents = Contents(session, reader.database.place, key)
        kernels = {ingredients.key: ingredients for ingredients, _ in contents.kernels()}
        digests = {str(row["identity"]): str(row["digest"]) for row in session.rows(DIGESTS)}
        winners: dict[str, _Winners] = {
            kernel: {place: (identity, digests.get(identity, "")) for place, identity in chosen_variants.items()}
            for kernel, chosen_variants in contents.chosen_variants().items()
        }
    return kernels, winners

"""The frame of a statement: tensors accessed by iterators alone, which give the iterators their ranges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tests.fuzz.body import Body, whole
from tests.fuzz.model import Extent, Iterator, Tensor, Term, reading

_MOST_ITERATORS = 6


@dataclass(frozen=True, slots=True)
class Skeleton:
    """``terms`` read ``tensors`` with the iterators as subscripts."""

    iterators: tuple[Iterator, ...]
    terms: tuple[Term, ...]
    read: frozenset[str]


def draw_skeleton(body: Body, tensors: int, without: str | None = None) -> Skeleton | None:
    """Accesses of so many tensors; None if that would be too many instances."""
    source = body.source
    names = body.names.iterators(_MOST_ITERATORS)
    iterators: list[Iterator] = []
    terms: list[Term] = []
    read: set[str] = set()
    for tensor in _choose(body, tensors, without):
        subscripts: list[str] = []
        for extent in tensor.extents:
            same = [i for i in iterators if i.end.value == extent.value and i.name not in subscripts]
            shorter = [i for i in iterators if i.end.value <= extent.value]
            if same and source.chance(0.6):
                subscripts.append(source.choice(same).name)
            elif shorter and source.chance(0.05):
                subscripts.append(source.choice(shorter).name)
            elif len(iterators) == len(names):
                return None
            else:
                iterators.append(whole(names[len(iterators)], extent, bound=True))
                subscripts.append(iterators[-1].name)
        terms.append(reading(tensor, subscripts))
        read.add(tensor.name)
    if not body.fits(iterators):
        return None
    return Skeleton(tuple(iterators), tuple(terms), frozenset(read))


def _choose(body: Body, count: int, without: str | None) -> list[Tensor]:
    tensors = [t for t in body.readable(without) if t.below is None]
    return [body.source.choice(tensors) for _ in range(count)] if tensors else []


def broadcast(body: Body, iterators: Sequence[Iterator]) -> Iterator | None:
    """One more iterator, over a size of the definition, that no access bounds."""
    taken = {i.name for i in iterators}
    free = [name for name in body.names.iterators(_MOST_ITERATORS) if name not in taken]
    if not free:
        return None
    iterator = whole(free[0], body.known_extent())
    return iterator if body.fits([*iterators, iterator]) else None


def clauses(body: Body, iterators: Sequence[Iterator]) -> list[str]:
    """The ranges that a ``where`` must give, and some that it may."""
    return [i.clause for i in iterators if not i.bound or body.source.chance(0.2)]


def narrowed(body: Body, reduced: Iterator, kept: Sequence[Iterator]) -> Iterator:
    """A reduced iterator over a part of its range: without its ends, or triangular."""
    source, end = body.source, reduced.end
    forms: list[tuple[Extent, Extent]] = []
    if end.value > 1:
        forms.append((Extent(1, "1"), end))
        forms.append((reduced.begin, Extent(end.value - 1, f"{end.text} - 1")))
        forms.append((reduced.begin, Extent(end.value // 2, f"{end.text} / 2")))
    for other in kept:
        if other.end.value <= end.value:
            # The ranges of these two depend on another iterator; what is known of them is their hull.
            forms.append((reduced.begin, Extent(other.end.value, f"{other.name} + 1")))
            forms.append((reduced.begin, Extent(max(other.end.value - 1, 0), other.name)))
            forms.append((Extent(0, other.name), end))
    if not forms:
        return reduced
    begin, stop = source.choice(forms)
    return replace(reduced, begin=begin, end=stop, bound=False)

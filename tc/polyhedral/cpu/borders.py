"""Conditions between iterators of a reduction: those of windows that leave an image, of triangles, of strides."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from itertools import product
from typing import Final

import islpy as isl

from tc.base.frozen import frozen

# Points of an iteration domain that are counted.
_MOST_COUNTED: Final = 1024
# Conditions that more than this part of all points meet are those of borders.  In a tile, they cost what they save.
_AT_BORDERS: Final = 0.8
# Choices of the other iterators, such as elements of a window, for which the range of one is looked at.
_MOST_CHOICES: Final = 64


@frozen
class Conditions:
    """``parts``: by iterator whose values depend on those of others, the part of these that are in the domain;
    ``density``: the part of all of them.  ``ranges``: of an iterator with conditions, its first and last value for
    every choice of the others, counted from its least one.  ``together``: the iterators of a condition that has it.
    ``borders``: those of conditions that nearly all points meet.
    """

    parts: Mapping[str, float]
    density: float
    ranges: Mapping[str, tuple[tuple[int, int], ...]]
    together: Mapping[str, frozenset[str]]
    borders: frozenset[str]

    def cut(self, name: str, size: int, extent: int) -> float:
        """The part of the pieces of so many values of an iterator that a border cuts, over all choices of others."""
        ranges = self.ranges.get(name, ())
        if size == 1 or not ranges or name not in self.borders:
            return 0.0
        found = sum(_cut_pieces(first, last, size, extent) for first, last in ranges)
        return found / (len(ranges) * -(-extent // size))

    def copies(self, name: str, size: int, extent: int) -> int | None:
        """How many pieces of so many values there are, over all choices of others, where some choice leaves out a
        value; None where that is not known.
        """
        ranges = self.ranges.get(name)
        if not ranges:
            return None
        first, last = max(least for least, _ in ranges), min(most for _, most in ranges)
        begins = range(0, extent, size)
        return len(ranges) * sum(own < first or min(own + size, extent) > last + 1 for own in begins)


def _cut_pieces(first: int, last: int, size: int, extent: int) -> int:
    below, above = first % size != 0, (last + 1) % size != 0 and last + 1 != extent
    return 1 if below and above and first // size == last // size else below + above


def conditions_of(domain: isl.Set, names: Sequence[str]) -> Conditions:
    """The conditions of a domain whose dimensions are called so."""
    parts: dict[str, float] = {}
    ranges: dict[str, tuple[tuple[int, int], ...]] = {}
    borders: set[str] = set()
    density = 1.0
    groups = _dependent(domain)
    together = {names[n]: frozenset(names[own] for own in group) for group in groups for n in group}
    for group in groups:
        apart = isl.dim_type.set
        others = [n for n in range(domain.dim(apart)) if n not in group]
        own = reduce(lambda points, n: points.project_out(apart, n, 1), reversed(others), domain)
        values = [
            range(int(own.dim_min_val(n).to_python()), int(own.dim_max_val(n).to_python()) + 1)
            for n in range(len(group))
        ]
        whole = math.prod(map(len, values))
        # Of open sizes there are too many points to count.
        counted = whole <= _MOST_COUNTED and not own.involves_dims(isl.dim_type.param, 0, own.dim(isl.dim_type.param))
        count = _count(own) if counted else whole
        for position, n in enumerate(group if counted else ()):
            found = tuple(_ranges(own, position, values))
            if sum(last - first + 1 for first, last in found) == count:
                ranges[names[n]] = found
        density *= count / whole
        if count >= _AT_BORDERS * whole:
            parts |= {names[n]: count / whole for n in group}
            borders |= {names[n] for n in group}
            continue
        for position, n in enumerate(group):
            parts[names[n]] = count / (_count(own.project_out(apart, position, 1)) * len(values[position]))
    return Conditions(parts, density, ranges, together, frozenset(borders))


def _ranges(points: isl.Set, position: int, values: Sequence[range]) -> Iterator[tuple[int, int]]:
    """The range of one dimension for every choice of the others, if there are not too many."""
    others = [n for n in range(len(values)) if n != position]
    if math.prod(len(values[n]) for n in others) > _MOST_CHOICES:
        return
    for chosen in product(*(values[n] for n in others)):
        own = points
        for n, value in zip(others, chosen, strict=True):
            own = own.fix_val(isl.dim_type.set, n, isl.Val.int_from_si(own.get_ctx(), value))
        if not own.is_empty():
            least = values[position].start
            ends = own.dim_min_val(position), own.dim_max_val(position)
            yield int(ends[0].to_python()) - least, int(ends[1].to_python()) - least


def _count(points: isl.Set) -> int:
    return int(points.count_val().to_python())


def _dependent(domain: isl.Set) -> list[list[int]]:
    """The dimensions whose values depend on those of other dimensions, together with these."""
    groups: list[set[int]] = []
    for part in () if domain.is_box() else domain.get_basic_sets():
        for own in part.get_constraints():
            involved = {n for n in range(domain.dim(isl.dim_type.set)) if own.involves_dims(isl.dim_type.set, n, 1)}
            if len(involved) > 1:
                touched = [group for group in groups if group & involved]
                groups = [group for group in groups if not group & involved]
                groups.append(involved.union(*touched))
    return [sorted(group) for group in groups]

"""Conditions between iterators of a reduction: those of windows that leave an image, of triangles, of strides."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Final

import islpy as isl

from tc.base.frozen import frozen

# Points of an iteration domain that are counted.
_MOST_COUNTED: Final = 1024
# Conditions that more than this part of all points meet are those of borders, which cost as much as they save.
_AT_BORDERS: Final = 0.8


@frozen
class Conditions:
    """``parts``: by iterator whose values depend on those of others, the part of these that are in the domain;
    ``density``: the part of all of them.
    """

    parts: Mapping[str, float]
    density: float


def conditions_of(domain: isl.Set, names: Sequence[str]) -> Conditions:
    """The conditions of a domain whose dimensions are called so."""
    parts: dict[str, float] = {}
    density = 1.0
    for group in _dependent(domain):
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
        if count >= _AT_BORDERS * whole:
            parts |= {names[n]: 1.0 for n in group}
            continue
        density *= count / whole
        for position, n in enumerate(group):
            parts[names[n]] = count / (_count(own.project_out(apart, position, 1)) * len(values[position]))
    return Conditions(parts, density)


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

"""How many iterations loops and statements have, as far as bounding boxes tell, and which ones come later."""

from __future__ import annotations

import math

import islpy as isl

from tc.language.isl.pieces import sets_of


def extent_of(function: isl.UnionPwAff, domain: isl.UnionSet) -> int:
    """Number of values between the least and the greatest of the function on the domain."""
    values = isl.UnionPwAff.intersect_domain(function, domain)
    return int(values.max_val().to_python()) - int(values.min_val().to_python()) + 1


def volume(domain: isl.UnionSet) -> int:
    """Number of points in the bounding boxes of the sets: an upper bound of the number of instances."""
    total = 0
    pieces = sets_of(domain)
    for piece in pieces:
        extents = (
            int(piece.dim_max_val(i).to_python()) - int(piece.dim_min_val(i).to_python()) + 1
            for i in range(piece.dim(isl.dim_type.set))
        )
        total += math.prod(extents)
    return total


def with_all_values(points: isl.Set, position: int, last: isl.Val) -> isl.Set:
    """The points, and all that differ from one of them in this dimension, whose values then go from 0 to ``last``."""
    found = points.project_out(isl.dim_type.set, position, 1).insert_dims(isl.dim_type.set, position, 1)
    found = found.lower_bound_val(isl.dim_type.set, position, isl.Val.zero(points.get_ctx()))
    return found.upper_bound_val(isl.dim_type.set, position, last)


def outermost(points: isl.Set, count: int) -> isl.Set:
    """The points of a space without a name, of so many of the first dimensions."""
    return points.project_out(isl.dim_type.set, count, points.dim(isl.dim_type.set) - count).reset_tuple_id()


def later_in(space: isl.Space, position: int) -> isl.Map:
    """``{ values -> values }``: the first dimension in which they differ is this one, where the second are greater."""
    later = isl.Map.universe(space.map_from_set())
    for outer in range(position):
        later = later.equate(isl.dim_type.in_, outer, isl.dim_type.out, outer)
    return later.order_lt(isl.dim_type.in_, position, isl.dim_type.out, position)

"""Over-approximation of copies: more than is used is copied, where that is simpler.

The footprint of ``X(2 * h + 3 * w)`` has holes and ragged edges.  To exclude them, threads would test every place of a
buffer, and proofs would have to follow these tests.
"""

from __future__ import annotations

import islpy as isl

from tc.language.isl.pieces import basic_sets_of
from tc.polyhedral.analysis.box import Box


def fill(places: isl.Set, elements: isl.Map, box: Box) -> isl.Set:
    """The places of a buffer, or all in the box of it whose elements the tensor has for sure, if the places are several
    pieces, or lie between quotients, or between bounds of several subscripts at a time, as those of a band do.

    ``elements``: ``{ place -> element }``.
    """
    if _is_plain(places, box.depth):
        return places
    # The tensor is a box, too, so it has whatever lies between two of its elements.
    filled = elements.intersect_range(_between(places.apply(elements))).domain()
    for dimension, extent in enumerate(box.extents, box.depth):
        filled = filled.lower_bound_val(isl.dim_type.set, dimension, isl.Val.zero(places.get_ctx()))
        last = isl.Val.int_from_si(places.get_ctx(), extent - 1)
        filled = filled.upper_bound_val(isl.dim_type.set, dimension, last)
    width = len(box.extents)
    reached = places.project_out(isl.dim_type.set, box.depth, width).insert_dims(isl.dim_type.set, box.depth, width)
    filled = filled.intersect(reached.set_tuple_name(places.get_tuple_name())).coalesce()
    return filled if _is_plain(filled, box.depth) else places


def _between(used: isl.Set) -> isl.Set:
    """All elements that lie, in every dimension, between two that are used."""
    context, dimensions = used.get_ctx(), used.dim(isl.dim_type.set)
    above, below = (isl.Map.read_from_str(context, f"{{ [a] -> [x] : {order} }}") for order in ("a <= x", "x <= a"))
    inside = isl.Set.universe(used.get_space())
    for dimension in range(dimensions):
        behind = dimensions - dimension - 1
        own = used.project_out(isl.dim_type.set, dimension + 1, behind).project_out(isl.dim_type.set, 0, dimension)
        hull = own.apply(above).intersect(own.apply(below)).coalesce()
        hull = hull.insert_dims(isl.dim_type.set, 1, behind).insert_dims(isl.dim_type.set, 0, dimension)
        inside = inside.intersect(hull.set_tuple_name(used.get_tuple_name()))
    return inside


def _is_plain(places: isl.Set, depth: int) -> bool:
    """Whether it is one piece, between bounds that are no quotients, and of one subscript each; subscripts are the
    dimensions from ``depth`` on, and distances between places may be regular.
    """
    pieces = basic_sets_of(places)
    return len(pieces) <= 1 and all(
        constraint.is_equality() or _is_plain_bound(constraint, depth)
        for piece in pieces
        for constraint in piece.get_constraints()
    )


def _is_plain_bound(bound: isl.Constraint, depth: int) -> bool:
    subscripts = range(depth, bound.dim(isl.dim_type.set))
    return (
        not bound.involves_dims(isl.dim_type.div, 0, bound.dim(isl.dim_type.div))
        and sum(bound.involves_dims(isl.dim_type.set, subscript, 1) for subscript in subscripts) <= 1
    )

"""Copying more than is used, where that is simpler.

What loops touch may have holes and ragged edges: ``X(2 * h + 3 * w)`` touches few of the elements between the first and
the last one.  Threads would have to find out for every place of a buffer whether it is one of those, and proofs would
have to show that they do.
"""

from __future__ import annotations

import islpy as isl

from tc.polyhedral.box import Box


def fill(places: isl.Set, elements: isl.Map, box: Box) -> isl.Set:
    """The places of a buffer, or all in the box of it whose elements the tensor has for sure, if the places are several
    pieces, or lie between quotients.

    ``elements``: ``{ place -> element }``.
    """
    if _is_plain(places) or places.involves_dims(isl.dim_type.param, 0, places.dim(isl.dim_type.param)):
        return places  # for an open size, the greatest element is one of the largest tensor
    used = places.apply(elements)
    # The tensor is a box, too, so it has whatever lies between two of its elements.
    inside = isl.Set.universe(used.get_space())
    for dimension in range(inside.dim(isl.dim_type.set)):
        least, most = used.dim_min_val(dimension), used.dim_max_val(dimension)
        if not (least.is_int() and most.is_int()):
            return places
        inside = inside.lower_bound_val(isl.dim_type.set, dimension, least)
        inside = inside.upper_bound_val(isl.dim_type.set, dimension, most)
    filled = elements.intersect_range(inside).domain()
    for dimension, extent in enumerate(box.extents, box.depth):
        filled = filled.lower_bound_val(isl.dim_type.set, dimension, isl.Val.zero(places.get_ctx()))
        last = isl.Val.int_from_si(places.get_ctx(), extent - 1)
        filled = filled.upper_bound_val(isl.dim_type.set, dimension, last)
    width = len(box.extents)
    reached = places.project_out(isl.dim_type.set, box.depth, width).insert_dims(isl.dim_type.set, box.depth, width)
    filled = filled.intersect(reached.set_tuple_name(places.get_tuple_name())).coalesce()
    return filled if _is_plain(filled) else places


def _is_plain(places: isl.Set) -> bool:
    """Whether it is one piece, between bounds that are no quotients; distances may be regular."""
    pieces: list[isl.BasicSet] = []
    places.foreach_basic_set(pieces.append)
    return len(pieces) <= 1 and not any(
        constraint.involves_dims(isl.dim_type.div, 0, piece.dim(isl.dim_type.div))
        for piece in pieces
        for constraint in piece.get_constraints()
        if not constraint.is_equality()
    )

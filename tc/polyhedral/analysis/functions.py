"""Functions of points, and the maps that several of them make."""

from __future__ import annotations

from collections.abc import Sequence as Items
from typing import TypeAlias

import islpy as isl

# Of points: without pieces where it is the same one for all of them, of which isl makes relations in half the time.
Function: TypeAlias = isl.Aff | isl.PwAff


def vector_map(values: Items[Function], points: isl.Set) -> isl.Map:
    """``{ point -> [values] }``."""
    return function_map(values, points.get_space()).intersect_domain(points)


def function_map(values: Items[Function], space: isl.Space) -> isl.Map:
    """``{ point -> [values] }``, wherever in the space the values are defined."""
    function = _multi_function(values, space)
    if isinstance(function, isl.MultiAff):
        return isl.Map.from_multi_aff(function)
    return isl.Map.from_multi_pw_aff(function)


def points_with(values: Items[Function], found: isl.Set, space: isl.Space) -> isl.Set:
    """The points of the space at which the values are found in a set."""
    function = _multi_function(values, space)
    if isinstance(function, isl.MultiAff):
        return found.preimage_multi_aff(function)
    return found.preimage_multi_pw_aff(function)


def _multi_function(values: Items[Function], space: isl.Space) -> isl.MultiAff | isl.MultiPwAff:
    """The functions as one; isl takes a third of the time where it need not look for pieces."""
    space = space.from_domain().add_dims(isl.dim_type.out, len(values))
    every = [value.as_aff() if isinstance(value, isl.PwAff) and value.isa_aff() else value for value in values]
    plain = isl.AffList.alloc(space.get_ctx(), len(values))
    for value in every:
        if not isinstance(value, isl.Aff):
            break
        plain = plain.add(value)
    else:
        return isl.MultiAff.from_aff_list(space, plain)
    pieces = isl.PwAffList.alloc(space.get_ctx(), len(values))
    for value in every:
        pieces = pieces.add(isl.PwAff.from_aff(value) if isinstance(value, isl.Aff) else value)
    return isl.MultiPwAff.from_pw_aff_list(space, pieces)

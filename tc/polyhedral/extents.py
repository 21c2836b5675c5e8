"""How many iterations loops and statements have, as far as bounding boxes tell."""

from __future__ import annotations

import math

import islpy as isl


def extent_of(function: isl.UnionPwAff, domain: isl.UnionSet) -> int:
    """Number of values between the least and the greatest of the function on the domain."""
    values = isl.UnionPwAff.intersect_domain(function, domain)
    return int(values.max_val().to_python()) - int(values.min_val().to_python()) + 1


def volume(domain: isl.UnionSet) -> int:
    """Number of points in the bounding boxes of the sets: an upper bound of the number of instances."""
    total = 0
    pieces: list[isl.Set] = []
    domain.foreach_set(pieces.append)
    for piece in pieces:
        extents = (
            int(piece.dim_max_val(i).to_python()) - int(piece.dim_min_val(i).to_python()) + 1
            for i in range(piece.dim(isl.dim_type.set))
        )
        total += math.prod(extents)
    return total

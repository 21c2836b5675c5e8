"""How many iterations loops and statements have, as far as bounding boxes tell, and which ones come later."""

from __future__ import annotations

import math

import islpy as isl

from tc.language.isl.pieces import functions_of, sets_of


def extent_of(function: isl.UnionPwAff, domain: isl.UnionSet) -> int:
    """Number of values between the least and the greatest of the function on the domain."""
    ranges = [_range_of(own, domain.extract_set(own.get_domain_space())) for own in functions_of(function)]
    ends = [own for own in ranges if own is not None]
    return max(most for _, most in ends) - min(least for least, _ in ends) + 1


def _range_of(function: isl.PwAff, domain: isl.Set) -> tuple[int, int] | None:
    """The least and the greatest value of the function on the domain; None where it is nowhere defined."""
    if not function.isa_aff():
        values = function.intersect_domain(domain).floor()
        if values.domain().is_empty():
            return None
        return int(values.min_val().to_python()), int(values.max_val().to_python())
    plain = function.as_aff()
    divided = _divided(plain)
    if divided is None:
        return _extremes(plain, domain)
    # Quotients are the greater, the greater the dividend is: to say so saves isl an integer variable.
    dividend, divisor, constant = divided
    found = _extremes(dividend, domain)
    return None if found is None else (found[0] // divisor + constant, found[1] // divisor + constant)


def _extremes(function: isl.Aff, domain: isl.Set) -> tuple[int, int] | None:
    least, most = domain.min_val(function), domain.max_val(function)
    return None if least.is_nan() else (int(least.to_python()), int(most.to_python()))


def _divided(function: isl.Aff) -> tuple[isl.Aff, int, int] | None:
    """Dividend, divisor and constant of ``dividend // divisor + constant``; None where the function is no such one."""
    if function.dim(isl.dim_type.div) != 1 or not function.get_coefficient_val(isl.dim_type.div, 0).is_one():
        return None
    if any(
        not function.get_coefficient_val(kind, position).is_zero()
        for kind in (isl.dim_type.in_, isl.dim_type.param)
        for position in range(function.dim(kind))
    ):
        return None
    quotient, constant = function.get_div(0), function.get_constant_val()
    divisor = quotient.get_denominator_val()
    return quotient.scale_val(divisor), int(divisor.to_python()), int(constant.to_python())


def volume(domain: isl.UnionSet) -> int:
    """Number of points in the bounding boxes of the sets: an upper bound of the number of instances."""
    return sum(math.prod(sides_of(piece)) for piece in sets_of(domain))


def sides_of(points: isl.Set) -> tuple[int, ...]:
    """Those of the bounding box, outermost dimension first."""
    return tuple(
        int(points.dim_max_val(i).to_python()) - int(points.dim_min_val(i).to_python()) + 1
        for i in range(points.dim(isl.dim_type.set))
    )


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

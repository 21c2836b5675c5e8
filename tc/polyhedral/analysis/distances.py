"""Distance vectors between the times of two instances: positive where the second one is later.

Which instance is first, and whether both run at the same time, depends on the distance alone.  A set of distances has
half the dimensions of a relation between times, so that isl answers in less than half the time.
"""

from __future__ import annotations

import islpy as isl


def distances_of(pairs: isl.Map) -> isl.Set:
    """``{ [second - first] }`` for pairs of times."""
    return pairs.deltas()


def first_earlier(distances: isl.Set, position: int) -> isl.Set:
    """Those at which the first end comes before the second one in this dimension."""
    return distances.lower_bound_val(isl.dim_type.set, position, isl.Val.one(distances.get_ctx()))


def first_later(distances: isl.Set, position: int) -> isl.Set:
    """Those at which the first end comes after the second one in this dimension."""
    return distances.upper_bound_val(isl.dim_type.set, position, isl.Val.negone(distances.get_ctx()))


def equal(distances: isl.Set, position: int) -> isl.Set:
    """Those at which both ends have one value in this dimension."""
    return distances.fix_val(isl.dim_type.set, position, isl.Val.zero(distances.get_ctx()))


def fixed_values(times: isl.Map) -> tuple[int | None, ...]:
    """Of every dimension, the value that all times are to be seen to have there without a search."""
    values = (times.plain_get_val_if_fixed(isl.dim_type.out, n) for n in range(times.dim(isl.dim_type.out)))
    return tuple(int(value.to_python()) if value.is_int() else None for value in values)


def is_plainly_zero(distances: isl.Set, position: int) -> bool:
    """Whether it is to be seen without a search that both ends have one value in this dimension."""
    return bool(distances.plain_get_val_if_fixed(isl.dim_type.set, position).is_zero())


def times_at(distances: isl.Set) -> isl.Map:
    """All pairs of times that are so far apart."""
    return distances.translation()

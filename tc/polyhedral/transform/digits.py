"""Tiles whose points are numbered in a mixed radix: which digits say the thread, and which are loops of each thread.

The lanes of a warp have the elements of a matrix instruction in such an order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import islpy as isl

from tc.base.frozen import frozen
from tc.polyhedral.ir.tree import Member


@frozen
class Digit:
    """A digit of the number of a point in its tile: one of ``size`` values.

    ``axis``: the dimension of a block, 0 for x, each thread along which has one of them; None where every thread goes
    through all.
    """

    size: int
    axis: int | None = None


def digits_of(point: isl.UnionPwAff, digits: tuple[Digit, ...]) -> list[isl.UnionPwAff]:
    """The digits of the number of a point, the lowest one first; the highest one is whatever is left."""
    found: list[isl.UnionPwAff] = []
    for digit in digits[:-1]:
        size = isl.Val.int_from_si(point.get_ctx(), digit.size)
        found.append(point.mod_val(size))
        point = point.scale_down_val(size).floor()
    return [*found, point]


def loops_over_digits(point: Member, digits: tuple[Digit, ...]) -> Iterator[Member]:
    """The loops of each thread, over the highest digit first."""
    highest = True
    for digit, function in reversed(list(zip(digits, digits_of(point.function, digits), strict=True))):
        if digit.axis is None and digit.size > 1:
            yield replace(point, function=function, in_group=not highest, digit=True)
            highest = False


def threads_along(digits: tuple[Digit, ...]) -> dict[int, int]:
    """By dimension of the block, how many threads have the digits."""
    return {digit.axis: digit.size for digit in digits if digit.axis is not None}

"""Recovers loop iterators from the subscripts of an instance, digit by digit.

Loops over tiles and their points produce subscripts like ``96 * a + 12 * b + c``, with c below 12 and b below 8, from
which a, b and c follow.  Without that, the set of instances has a, b and c as existentially quantified variables, and
isl solves an integer problem for them in every operation.

Skewed loops divide: the instances of ``y(2 * f + l)`` are ``((c - l) / 2, l)``; c follows from the schedule, if the
loops are those that it asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence as Items
from dataclasses import dataclass
from functools import reduce

import islpy as isl

from tc.polyhedral.analysis.ranges import Range


@dataclass(frozen=True)
class Inverse:
    """``iteration``: ``{ instance -> loop iterators }``; ``runs``: the instances that there are iterations for."""

    iteration: isl.MultiAff
    runs: isl.Set


def find_inverse(
    arguments: Items[isl.PwAff],
    points: isl.Set,
    ranges: Items[Range],
    instances: isl.Space,
    guess: Callable[[], Items[isl.Aff] | None] = lambda: None,
) -> Inverse | None:
    """The inverse of ``{ loop iterators -> arguments }`` on the points; None where it is not read off the arguments.

    ``ranges``: of the iterators.  They, and the digits, are only a guess, which is then proven.  ``guess``: another
    one, the iterators as functions of the instance, where the arguments do not tell.  ``instances``: their space.
    """
    if not all(argument.isa_aff() for argument in arguments):
        return None
    subscripts = [argument.as_aff() for argument in arguments]
    digits = _Digits(subscripts, ranges, instances).read()
    for find in (lambda: digits, guess):
        found = find()
        if found is not None and (inverse := _proven(found, subscripts, points, instances)) is not None:
            return inverse
    return None


def _proven(
    iterators: Items[isl.Aff], subscripts: Items[isl.Aff], points: isl.Set, instances: isl.Space
) -> Inverse | None:
    """The inverse, if the iterators of every point are these functions of the instance that it writes."""
    loops = points.get_space()
    iteration = _function(instances, loops, iterators)
    written = _function(loops, instances, subscripts)
    if not points.is_subset(_unchanged(iteration.pullback_multi_aff(written))):
        return None
    found = points.preimage_multi_aff(iteration).intersect(_unchanged(written.pullback_multi_aff(iteration)))
    return Inverse(iteration, found)


def _function(space: isl.Space, values: isl.Space, functions: Items[isl.Aff]) -> isl.MultiAff:
    every = isl.AffList.alloc(space.get_ctx(), len(functions))
    for function in functions:
        every = every.add(function)
    return isl.MultiAff.from_aff_list(space.map_from_domain_and_range(values), every)


def _unchanged(function: isl.MultiAff) -> isl.Set:
    """The points that a function maps to themselves."""
    space = function.get_domain_space()
    local = isl.LocalSpace.from_space(space)
    places = range(function.dim(isl.dim_type.out))
    own = (function.get_aff(n).eq_set(isl.Aff.var_on_domain(local, isl.dim_type.set, n)) for n in places)
    return reduce(isl.Set.intersect, own, isl.Set.universe(space))


class _Digits:
    """The iterators as functions of the instance, as far as they are found."""

    def __init__(self, subscripts: Items[isl.Aff], ranges: Items[Range], instances: isl.Space) -> None:
        self._subscripts = subscripts
        self._ranges = ranges
        self._local = isl.LocalSpace.from_space(instances)
        self._found: dict[int, isl.Aff] = {
            n: self._constant(int(own.least)) for n, own in enumerate(ranges) if own.least == own.most
        }

    def read(self) -> list[isl.Aff] | None:
        """All of them; None if the subscripts do not tell."""
        waiting = list(enumerate(self._subscripts))
        while waiting:
            left = [(place, subscript) for place, subscript in waiting if not self._solve(place, subscript)]
            if len(left) == len(waiting):
                break
            waiting = left
        numbers = range(len(self._ranges))
        return [self._found[n] for n in numbers] if all(n in self._found for n in numbers) else None

    def _solve(self, place: int, subscript: isl.Aff) -> bool:
        """Whether the subscript tells the iterators in it that are not known yet."""
        if subscript.dim(isl.dim_type.div) or subscript.involves_dims(
            isl.dim_type.param, 0, subscript.dim(isl.dim_type.param)
        ):
            return False
        rest = isl.Aff.var_on_domain(self._local, isl.dim_type.set, place)
        rest = rest.sub(self._constant(_integer(subscript.get_constant_val())))
        open: list[tuple[int, int]] = []
        for number in range(len(self._ranges)):
            factor = _integer(subscript.get_coefficient_val(isl.dim_type.in_, number))
            if number in self._found:
                rest = rest.sub(self._scaled(self._found[number], factor))
            elif factor:
                open.append((factor, number))
        open.sort(key=lambda digit: -abs(digit[0]))
        for position, (factor, number) in enumerate(open):
            lower = [self._products(*digit) for digit in open[position + 1 :]]
            least, most = sum(own.least for own in lower), sum(own.most for own in lower)
            if not most - least < abs(factor):
                return False
            # What is left is factor * iterator + a number from least to most.
            moved = rest.sub(self._constant(int(least))) if factor > 0 else self._constant(int(most)).sub(rest)
            digit = moved.scale_down_val(self._value(abs(factor))).floor()
            self._found[number] = digit
            rest = rest.sub(self._scaled(digit, factor))
        return True

    def _products(self, factor: int, number: int) -> Range:
        ends = (factor * self._ranges[number].least, factor * self._ranges[number].most)
        return Range(min(ends), max(ends))

    def _constant(self, value: int) -> isl.Aff:
        return isl.Aff.val_on_domain(self._local, self._value(value))

    def _scaled(self, function: isl.Aff, factor: int) -> isl.Aff:
        return function.scale_val(self._value(factor))

    def _value(self, number: int) -> isl.Val:
        return isl.Val.int_from_si(self._local.get_ctx(), number)


def _integer(value: isl.Val) -> int:
    return int(value.to_python())

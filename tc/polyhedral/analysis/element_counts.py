"""The greatest number of instances that update one element: the length of its longest chain of additions."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from collections.abc import Sequence as Items
from dataclasses import field
from itertools import accumulate
from typing import Final, TypeAlias

from tc.base.frozen import frozen
from tc.language.program.program import iterators_in
from tc.language.program.specialization import Layout
from tc.polyhedral.analysis.offsets import Forms, LinearForm, index_form, recombined, subscript_form
from tc.polyhedral.analysis.ranges import Range, Ranges, iterator_range, most_iterations, range_of
from tc.polyhedral.ir.loops import (
    LANES,
    IndexExpression,
    IndexLiteral,
    IndexOperation,
    IndexOperator,
    IndexVariable,
    Loop,
    LoopKind,
    Scheduled,
    StatementBody,
    variables,
)

# A number of iterations; infinite where no bound is known.
Count: TypeAlias = int | float
# Elements, by the ranges of the iterators that choose them.
Elements: TypeAlias = tuple[Range, ...]
# As good as infinite, and still a number that can be subtracted.
_MANY: Final = 1 << 62
_AT_ONCE: Final = (LoopKind.BLOCK, LoopKind.THREAD, LoopKind.PARALLEL, LoopKind.VECTOR)
_QUOTIENTS: Final = (IndexOperator.FLOOR_DIVIDE, IndexOperator.NONNEGATIVE_DIVIDE)


@frozen
class Path:
    """Loops one inside the other, outermost first, with the most iterations of each; ``ranges``: of all iterators."""

    ranges: Ranges
    trips: Mapping[str, Count] = field(default_factory=dict)
    _bodies: dict[object, Path] = field(default_factory=dict, compare=False, repr=False)

    def inside(self, loop: Loop) -> Path:
        """The path to the body of the loop: one object for all copies of it, which is remembered by its identity."""
        key = loop.iterator, loop.lower, loop.upper, loop.step, loop.kind
        found = self._bodies.get(key)
        if found is None:
            found = self._bodies[key] = self._inside(loop)
        return found

    def _inside(self, loop: Loop) -> Path:
        ranges = {**self.ranges, loop.iterator: iterator_range(loop, self.ranges)}
        # What runs at once does not come to one element: that is proven of every schedule.  Lanes exchange theirs in
        # halves.
        trips = 1 if loop.kind in _AT_ONCE else most_trips(loop, self.ranges)
        if loop.kind is LoopKind.LANES:
            trips = LANES.bit_length() - 1
        return Path(ranges, {**self.trips, loop.iterator: trips})

    def from_here(self) -> Path:
        """The empty path at the same place."""
        return Path(self.ranges)


def most_trips(loop: Loop, ranges: Ranges) -> Count:
    """The most iterations of one run of the loop, also where it begins at another iterator and ends soon after."""
    known = most_iterations(loop, ranges)
    return _trips_of_run(loop) if known is None else min(_trips_of_run(loop), known)


def goes_on(loop: Loop) -> bool:
    """Whether the loop is a run of a longer one, of which an iteration begins where this does."""
    return isinstance(loop.lower, IndexVariable) and not math.isinf(_trips_of_run(loop))


def _trips_of_run(loop: Loop) -> Count:
    ends: tuple[IndexExpression, ...] = (loop.upper,)
    match loop.upper:
        case IndexOperation(IndexOperator.MINIMUM, operands):
            ends = operands
    lengths: list[Count] = [math.inf]
    for end in ends:
        match end:
            case IndexOperation(IndexOperator.ADD, (begin, IndexLiteral(length))) if begin == loop.lower:
                lengths.append(length // loop.step + 1)
    return min(lengths)


@frozen
class Moving:
    """How loops choose an element.

    ``choosing``: those of which it is known that, while all others stand still, only so many iterations choose the same
    element.  ``others``: further ones that it depends on.
    """

    choosing: Mapping[str, Count]
    others: frozenset[str]

    def repeated(self, trips: Mapping[str, Count], inside: Mapping[str, Count]) -> Count:
        """How many iterations of some loops, and of what is inside of them, come to one element at most.

        What is inside counts as one, where it does not move the element.
        """
        own = math.prod(min(count, self.choosing.get(iterator, count)) for iterator, count in trips.items())
        return own * math.prod(count for iterator, count in inside.items() if iterator in self.others)


def moving_loops(
    instance: Scheduled,
    body: StatementBody,
    layout: Layout,
    path: Path,
    known: Forms | None = None,
    anew: Items[IndexExpression] = (),
) -> Moving:
    """How the loops on the path choose the element that the statement writes, and the sum that it holds.

    The number of the element in a dimension is one in a mixed radix of the loops that choose it: every factor is
    greater than what all smaller ones add up to.  Where a loop takes part in several dimensions, the offset of the
    element is looked at instead.  ``known``: forms of arguments, where many instances have the same.  ``anew``: each
    value of these begins another sum.
    """
    arguments = dict(zip(body.iterators, instance.arguments, strict=True))
    forms: list[LinearForm] = []
    for subscript in body.subscripts:
        own = subscript_form(subscript, arguments, path.ranges, known)
        if own is None:
            used = (variables(arguments[name]) for name in iterators_in(body.subscripts))
            return Moving(_steps_of(anew, path, known), frozenset().union(*used))
        forms.append(own)
    mentioned = [frozenset[str]().union(*(variables(term) for term in form.factors)) for form in forms]
    if sum(map(len, mentioned)) > len(frozenset().union(*mentioned)):
        whole = LinearForm()
        for form, stride in zip(forms, layout.strides, strict=True):
            whole = whole.plus(form, stride)
        forms = [recombined(whole)]
    choosing: dict[str, Count] = {}
    for form in forms:
        choosing |= _mixed_radix(form, path)
    for iterator, shared in _steps_of(anew, path, known).items():
        choosing[iterator] = min(shared, choosing.get(iterator, shared))
    return Moving(choosing, frozenset().union(*mentioned) - choosing.keys())


def _steps_of(anew: Items[IndexExpression], path: Path, known: Forms | None) -> dict[str, Count]:
    """The loops that choose one of several sums, with how many iterations of each have the same one."""
    found: dict[str, Count] = {}
    for expression in anew:
        form = index_form(expression) if known is None else known.of(expression)
        found |= _mixed_radix(form, path)
    return found


def _mixed_radix(form: LinearForm, path: Path) -> dict[str, Count]:
    """The loops that choose the value of a form, with how many iterations of each have the same one."""
    terms = [
        (abs(factor), extent, iterator, shared)
        for term, factor in form.factors.items()
        if (found := _chosen_by(term, path)) is not None
        for iterator, extent, shared in (found,)
    ]
    kept: list[tuple[int, Count, str, Count]] = []
    for candidate in sorted(terms, key=lambda term: -term[1]):
        if candidate[2] not in {own[2] for own in kept} and _is_mixed_radix([*kept, candidate]):
            kept.append(candidate)
    return {iterator: shared for _, _, iterator, shared in kept}


def _chosen_by(term: IndexExpression, path: Path) -> tuple[str, Count, Count] | None:
    """The loop whose iterations a term tells apart, how many values it has, and how many iterations have one of them.

    None where it tells none apart.
    """
    own = variables(term) & path.trips.keys()
    if len(own) != 1:
        return None
    (iterator,) = own
    values = range_of(term, path.ranges)
    extent = values.most - values.least + 1
    match term:
        case IndexVariable():
            return iterator, extent, 1
        case IndexOperation(operator, (IndexVariable(), IndexLiteral(divisor))) if operator in _QUOTIENTS:
            return iterator, extent, divisor
        case IndexOperation(IndexOperator.NONNEGATIVE_REMAINDER, (IndexVariable(), IndexLiteral(divisor))):
            trips = path.trips[iterator]
            return iterator, extent, trips if math.isinf(trips) else -(-int(trips) // divisor)
        case _:
            return None


def _is_mixed_radix(terms: Items[tuple[int, Count, str, Count]]) -> bool:
    reach: Count = 0
    for factor, extent, _, _ in sorted(terms):
        if factor <= reach:
            return False
        reach += factor * (extent - 1)
    return True


def most_met(counts: Mapping[Elements, Count]) -> Count:
    """The most instances that come to one element; of copies of unrolled loops, there are thousands of elements."""
    dimensions = len(next(iter(counts), ()))
    for dimension in range(dimensions):
        parts = list(_apart(counts, dimension))
        if len(parts) > 1:
            return max(map(most_met, parts))
    # Whoever meets another element does so in every dimension.
    met = [_met_along(counts, dimension) for dimension in range(dimensions)]
    return max(map(min, zip(*met, strict=True)), default=0) if met else sum(counts.values())


def _met_along(counts: Mapping[Elements, Count], dimension: int) -> list[Count]:
    """For each of the elements, the instances of those that have values of a dimension in common with it."""
    begins = sorted((own[dimension].least, min(count, _MANY)) for own, count in counts.items())
    ends = sorted((own[dimension].most, min(count, _MANY)) for own, count in counts.items())
    begun, ended = ([0, *accumulate(count for _, count in ordered)] for ordered in (begins, ends))
    first, last = ([place for place, _ in ordered] for ordered in (begins, ends))
    return [
        begun[bisect_right(first, own[dimension].most)] - ended[bisect_left(last, own[dimension].least)]
        for own in counts
    ]


def _apart(counts: Mapping[Elements, Count], dimension: int) -> Iterator[dict[Elements, Count]]:
    """Parts that have no value of a dimension in common."""
    part: dict[Elements, Count] = {}
    most: Count = -math.inf
    for elements in sorted(counts, key=lambda own: own[dimension].least):
        if part and elements[dimension].least > most:
            yield part
            part = {}
        part[elements] = counts[elements]
        most = max(most, elements[dimension].most)
    if part:
        yield part

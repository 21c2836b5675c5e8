"""Bounds of loops over ranges that read tensors: what lies outside of all the ranges is left out."""

from __future__ import annotations

from functools import reduce

from tc.codegen.printer.context import Context, Scope
from tc.codegen.printer.expressions import Site
from tc.codegen.text.fragment import Fragment, call, cast, infix
from tc.polyhedral.ir.loops import Loop, ReadRange


def range_bounds(
    context: Context, loop: Loop, scope: Scope, lower: Fragment, end: Fragment
) -> tuple[Fragment, Fragment]:
    """The first iteration and the end, of a loop that would run from ``lower`` to before ``end``.

    The first one is a whole number of steps behind ``lower``.
    """
    pairs = [_bounds(context, own, scope) for own in loop.ranges]
    first = reduce(lambda one, other: call("tc_min_int64", one, other), (first for first, _ in pairs))
    last = reduce(lambda one, other: call("tc_max_int64", one, other), (last for _, last in pairs))
    index, step = context.dialect.index, Fragment(str(loop.step))
    begun = call("tc_first_iteration", lower, step, first)
    return cast(index, begun), cast(index, call("tc_min_int64", end, last))


def _bounds(context: Context, own: ReadRange, scope: Scope) -> tuple[Fragment, Fragment]:
    """Iterations from the first to before the second one are all that have an index inside of the range."""
    arguments = dict(zip(context.bodies[own.statement].iterators, own.arguments, strict=True))
    site = Site(own.statement, arguments, scope.variables, scope.offsets, scope.ranges)
    begin = context.expressions.bound(own.inside, own.inside.begin, site)
    end = context.expressions.bound(own.inside, own.inside.end, site)
    first, last = infix("-", begin, context.index(own.high, scope)), infix("-", end, context.index(own.low, scope))
    if own.factor == 1:
        return first, last
    factor = Fragment(str(own.factor))
    # Rounded up; what is negative comes out at most one iteration too long, whose instances ask for themselves.
    first, last = (infix("/", infix("+", bound, Fragment(str(own.factor - 1))), factor) for bound in (first, last))
    return first, last

"""Steps of a scan that add several terms: what each step adds is reduced first, and then over the steps so far.

``y(i,j) +=! x(k,l) where k in 0:i+1, l in 0:j+1`` becomes ``s(i,j) +=! x(i,l) where l in 0:j+1`` and
``y(i,j) +=! s(k,j) where k in 0:i+1``, in which every step adds one term: both are scans.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import islpy as isl

from tc.base.frozen import frozen
from tc.grammar.syntax import BinaryOperator
from tc.language.algebra.rewriting import fresh_name
from tc.language.program.program import (
    INDEX_TYPE,
    Binary,
    DerivedOrigin,
    Expression,
    IterationVariable,
    IteratorReference,
    Literal,
    Read,
    Statement,
    Tensor,
    in_terms_of,
    iterators_in,
)
from tc.polyhedral.schedule.growing_points import Points, from_zero


@frozen
class Summed:
    """``each`` reduces the terms of every step, ``total`` these sums; both have the name of their statement.

    ``values``: of the reduced iterators that every step determines, in ``each``.
    """

    each: Statement
    total: Statement
    values: Mapping[str, Expression]


def sum_steps(statement: Statement, points: Points, sums: Tensor, term: Expression) -> Summed | None:
    """What stands for the statement; None where a loop has no ends, or an element may have no step at all.

    ``sums`` has an element for each that the statement writes; ``term``: its value, in the type of the sums.
    """
    growth = points.growth
    loops, values = points.loops(points.written), points.determined(growth.added)
    free = tuple(name for name in points.reduced if name not in values)
    added = growth.added
    for position in reversed(range(len(points.reduced))):
        if points.reduced[position] in values:
            added = added.project_out(isl.dim_type.out, position, 1)
    terms, names = added.wrap().flatten(), (*points.written, *free)
    reduced = points.loops_of(terms, names, free)
    if len(loops) != len(points.written) or len(reduced) != len(free):
        return None
    origin = DerivedOrigin("the sums of steps", statement.origin)
    places = tuple(map(from_zero, loops))
    each = replace(
        statement,
        iterators=(*loops, *reduced),
        conditions=points.conditions_in(terms, names, (*loops, *reduced)),
        target=sums.name,
        subscripts=places,
        initialize=True,
        value=in_terms_of(term, values),
        required=(),
        origin=origin,
    )
    own = next(loop for loop in loops if loop.name == growth.iterator)
    earlier = _so_far(
        own, fresh_name(f"{own.name}_step", {i.name for i in statement.iterators}), backward=growth.backward
    )
    at = {own.name: IteratorReference(earlier.name)}
    have_terms = points.conditions(growth.added.domain(), points.written)
    if any(own.name not in iterators_in((condition,)) for condition in have_terms):
        return None  # it would keep elements from being initialized
    total = replace(
        statement,
        iterators=(*loops, earlier),
        conditions=(*points.conditions(growth.elements, points.written), *(in_terms_of(c, at) for c in have_terms)),
        value=Read(sums.name, tuple(in_terms_of(place, at) for place in places), sums.type),
        required=(),
        origin=origin,
    )
    return Summed(each, total, values)


def _so_far(own: IterationVariable, name: str, *, backward: bool) -> IterationVariable:
    """A loop over the steps of a scan up to one of them."""
    this = IteratorReference(own.name)
    if backward:
        return IterationVariable(name, this, own.end)
    return IterationVariable(name, own.begin, Binary(BinaryOperator.ADD, this, Literal(1, INDEX_TYPE), INDEX_TYPE))

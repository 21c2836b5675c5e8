"""A reduction that goes on with a value, in two statements: what it adds, and both together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import assert_never

from tc.gradient.terms import call
from tc.grammar.syntax import BinaryOperator
from tc.language.program.program import (
    Binary,
    Expression,
    Read,
    Reduction,
    Statement,
    iterators_in,
)
from tc.language.program.written_elements import over_elements


def goes_on(
    statement: Statement,
    shape: Sequence[Expression],
    before: Callable[[tuple[Expression, ...]], Expression],
    new: str,
) -> list[Statement]:
    """The statements that take the place of a reduction.

    ``shape``: of its target.  ``before``: the value that it goes on with, of the element with these subscripts.
    ``new``: a tensor like the target, for what it adds.
    """
    assert statement.reduction is not None
    elements = over_elements(statement, shape)
    value = before(elements.subscripts)
    own = Read(new, elements.subscripts, value.type)
    return [
        replace(statement, target=new, initialize=True),
        replace(
            elements,
            reduction=None,
            initialize=False,
            value=_combined(statement.reduction, value, own),
            required=(),
            distinct=(),
        ),
    ]


def over_written(statement: Statement) -> Statement:
    """The statement over its steps and the elements that it writes."""
    names = iterators_in(statement.subscripts) | {iterator.name for iterator in statement.sequence}
    return replace(statement, iterators=tuple(i for i in statement.iterators if i.name in names))


def _combined(reduction: Reduction, left: Expression, right: Expression) -> Expression:
    match reduction:
        case Reduction.ADD:
            return Binary(BinaryOperator.ADD, left, right, left.type)
        case Reduction.MULTIPLY:
            return Binary(BinaryOperator.MULTIPLY, left, right, left.type)
        case Reduction.MINIMUM:
            return call("fmin" if left.type.is_floating else "min", left, right)
        case Reduction.MAXIMUM:
            return call("fmax" if left.type.is_floating else "max", left, right)
        case _:
            assert_never(reduction)

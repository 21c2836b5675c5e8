"""Statements with numbers for their sizes and scalars, whose instances are still those of the iterators."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from tc.base.types import ScalarType
from tc.grammar.syntax import BinaryOperator
from tc.language.algebra.fold import fold_constants, substitute
from tc.language.algebra.rewriting import map_statement
from tc.language.program.program import (
    INDEX_TYPE,
    Binary,
    Expression,
    IterationVariable,
    IteratorReference,
    Literal,
    Read,
    Select,
    Statement,
    iterators_in,
    reads_in,
)


def specialized(statement: Statement, values: Mapping[Expression, Expression]) -> Statement:
    """The statement for given sizes.

    Iterators stay in subscripts and conditions from which a remainder by 1, say, would drop them: where one has no
    value, nothing is written, and what is initialized depends on which iterators a condition has.  A statement that
    changes a value in place still reads it where a condition that is known drops that: it would be another value.
    """
    found = map_statement(statement, lambda e: substitute(e, values) if values else fold_constants(e))
    conditional = iterators_in(statement.conditions)
    needed = frozenset(i.name for i in found.iterators if i.name in conditional or not _has_values(i, found))
    everything = frozenset(iterator.name for iterator in found.iterators)
    return replace(
        found,
        value=_reading(statement, found),
        subscripts=tuple(map(partial(_keeping, needed), statement.subscripts, found.subscripts)),
        conditions=tuple(map(partial(_keeping, everything), statement.conditions, found.conditions)),
    )


def _reading(before: Statement, after: Statement) -> Expression:
    """The value of ``after``, which reads its own element if that of ``before`` does."""
    own = next(
        (r for r in reads_in(before.value) if (r.tensor, r.subscripts) == (before.target, before.subscripts)), None
    )
    if own is None or any(read.tensor == after.target for read in reads_in(after.value)):
        return after.value
    read = Read(after.target, after.subscripts, own.type)
    return Select(Literal(True, ScalarType.BOOL), after.value, read, after.value.type)


def _has_values(iterator: IterationVariable, statement: Statement) -> bool:
    """Whether the range of an iterator is not empty, and no other one depends on it, as far as the form tells."""
    match iterator.begin, iterator.end:
        case Literal(int() as begin), Literal(int() as end):
            bounds = (bound for other in statement.iterators for bound in (other.begin, other.end))
            return begin < end and iterator.name not in iterators_in(bounds)
        case _:
            return False


def _keeping(names: frozenset[str], before: Expression, after: Expression) -> Expression:
    """``after``, with those of these iterators which ``before`` has and it has not, times 0.

    Iterators that no sizes bring back (``i%1``) are not part of what was written.
    """
    if after == Literal(True, ScalarType.BOOL):
        return after
    lost = (iterators_in((before,)) - iterators_in((after,))) & names
    for name in sorted(lost and lost & iterators_in((fold_constants(before),))):
        nothing = Binary(BinaryOperator.MULTIPLY, IteratorReference(name), Literal(0, INDEX_TYPE), INDEX_TYPE)
        if after.type is ScalarType.BOOL:
            holds = Binary(BinaryOperator.EQUAL, nothing, Literal(0, INDEX_TYPE), ScalarType.BOOL)
            after = Binary(BinaryOperator.AND, holds, after, ScalarType.BOOL)
        else:
            after = Binary(BinaryOperator.ADD, after, nothing, INDEX_TYPE)
    return after

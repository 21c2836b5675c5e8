"""Products of two matrices in definitions that nothing else is known of."""

from __future__ import annotations

from tc.grammar.syntax import BinaryOperator
from tc.language.program.program import (
    Binary,
    Expression,
    IteratorReference,
    Literal,
    Program,
    Read,
    Reduction,
    Statement,
)


def is_product(program: Program) -> bool:
    """Whether a definition is ``C(m,n) +=! A(m,k) * B(k,n)``, over all of both matrices, which come in this order."""
    if len(program.statements) != 1 or len(program.results) != 1 or len(program.arguments) != 2:
        return False
    (statement,) = program.statements
    plain = statement.reduction is Reduction.ADD and statement.initialize and not statement.conditions
    match statement.value:
        case Binary(BinaryOperator.MULTIPLY, Read(left, first), Read(right, second)) if plain:
            a, b, c = _names(first), _names(second), _names(statement.subscripts)
            ordered = (left, right) == program.arguments
            fits = len(a) == len(b) == len(c) == 2 and (a[0], b[1]) == c and a[1] == b[0] and len({*a, *b}) == 3
            return ordered and fits and statement.blocks == () and _is_whole(program, statement)
        case _:
            return False


def _names(subscripts: tuple[Expression, ...]) -> tuple[str, ...]:
    """The iterators; fewer of them where some subscript is none."""
    return tuple(own.name for own in subscripts if isinstance(own, IteratorReference))


def _is_whole(program: Program, statement: Statement) -> bool:
    """Whether the iterators run through all rows and columns."""
    shapes = {tensor.name: tensor.shape for tensor in program.tensors}
    (rows, inner), (other, columns) = (shapes[name] for name in program.arguments)
    wanted = dict(zip(_names(statement.subscripts), (rows, columns), strict=True))
    ends = {iterator.name: iterator.end for iterator in statement.iterators}
    begun = all(isinstance(own.begin, Literal) and own.begin.value == 0 for own in statement.iterators)
    return begun and inner == other and all(wanted.get(name, inner) == end for name, end in ends.items())

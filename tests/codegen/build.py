"""Short spellings for hand-made loop programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tc.base.types import ScalarType
from tc.grammar.syntax import BinaryOperator, UnaryOperator
from tc.language.program.program import (
    Binary,
    Expression,
    IteratorReference,
    Literal,
    Read,
    Unary,
)
from tc.language.program.specialization import Layout, contiguous_strides
from tc.polyhedral.ir.loops import (
    Block,
    Buffer,
    IndexExpression,
    IndexLiteral,
    IndexOperation,
    IndexOperator,
    IndexVariable,
    Instance,
    Loop,
    LoopKind,
    LoopProgram,
    LoopTree,
    StatementBody,
)

BOOLEAN_OPERATORS = ("==", "!=", "<", "<=", ">", ">=", "&&", "||")


def buffer(
    name: str, type: ScalarType, *shape: int, writable: bool = False, strides: tuple[int, ...] | None = None
) -> Buffer:
    return Buffer(name, Layout(type, shape, contiguous_strides(shape) if strides is None else strides), writable)


def read(tensor: str, type: ScalarType, *subscripts: Expression | str) -> Read:
    return Read(tensor, tuple(IteratorReference(s) if isinstance(s, str) else s for s in subscripts), type)


def binary(operator: str, left: Expression, right: Expression) -> Binary:
    return Binary(
        BinaryOperator(operator), left, right, ScalarType.BOOL if operator in BOOLEAN_OPERATORS else left.type
    )


def negate(operand: Expression) -> Unary:
    return Unary(UnaryOperator.NEGATE, operand, operand.type)


def integer(value: int) -> Literal:
    return Literal(value, ScalarType.INT64)


def pointwise(values: Mapping[str, Expression], inputs: Sequence[Buffer], extent: int) -> LoopProgram:
    """``name(i) = value`` for every named value and ``i`` below ``extent``."""
    bodies = [
        StatementBody(f"S_{name}", ("i",), name, (IteratorReference("i"),), None, value)
        for name, value in values.items()
    ]
    outputs = [buffer(name, value.type, extent, writable=True) for name, value in values.items()]
    nests = [loops([("c0", extent, LoopKind.VECTOR)], instance(body.name, "c0")) for body in bodies]
    return LoopProgram("pointwise", (*inputs, *outputs), (), (), tuple(bodies), Block(tuple(nests)), checked=True)


def loops(kinds: Sequence[tuple[str, int, LoopKind]], inside: LoopTree) -> LoopTree:
    """A nest of loops from 0, outermost first: iterator, trip count and kind."""
    for iterator, extent, kind in reversed(kinds):
        inside = Loop(iterator, IndexLiteral(0), IndexLiteral(extent - 1), 1, kind, inside)
    return inside


def instance(statement: str, *arguments: IndexExpression | str | int) -> Instance:
    return Instance(statement, tuple(index(argument) for argument in arguments))


def operation(operator: IndexOperator, *operands: IndexExpression | str | int) -> IndexOperation:
    return IndexOperation(operator, tuple(index(operand) for operand in operands))


def index(expression: IndexExpression | str | int) -> IndexExpression:
    """Names stand for variables, numbers for literals."""
    match expression:
        case str():
            return IndexVariable(expression)
        case int():
            return IndexLiteral(expression)
        case _:
            return expression

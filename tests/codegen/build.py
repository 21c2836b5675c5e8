"""Short spellings for hand-made loop programs."""

from __future__ import annotations

from collections.abc import Sequence

from tc.grammar.syntax import BinaryOperator

from tc.language.program import (
    Binary,
    Expression,
    IteratorReference,
    Literal,
    Read,
)
from tc.language.specialization import Layout, contiguous_strides
from tc.polyhedral.loops import (
    Buffer,
    IndexExpression,
    IndexLiteral,
    IndexVariable,
    Instance,
    Loop,
    LoopKind,
    LoopProgram,
    LoopTree,
    StatementBody,
)
from tc.types import ScalarType

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


def integer(value: int) -> Literal:
    return Literal(value, ScalarType.INT64)


def pointwise(
    value: Expression, inputs: Sequence[Buffer], output: ScalarType, extent: int, checked: bool = True
) -> LoopProgram:
    """``out(i) = value`` for ``i`` below ``extent``."""
    body = StatementBody("S0", ("i",), "out", (IteratorReference("i"),), None, value)
    root = loops([("c0", extent, LoopKind.VECTOR)], instance("S0", "c0"))
    buffers = (*inputs, buffer("out", output, extent, writable=True))
    return LoopProgram("pointwise", buffers, (), (), (body,), root, checked)


def loops(kinds: Sequence[tuple[str, int, LoopKind]], inside: LoopTree) -> LoopTree:
    """A nest of loops from 0, outermost first: iterator, trip count and kind."""
    for iterator, extent, kind in reversed(kinds):
        inside = Loop(iterator, IndexLiteral(0), IndexLiteral(extent - 1), 1, kind, inside)
    return inside


def instance(statement: str, *arguments: str | int | IndexExpression) -> Instance:
    return Instance(statement, tuple(_index(argument) for argument in arguments))


def _index(argument: str | int | IndexExpression) -> IndexExpression:
    match argument:
        case str():
            return IndexVariable(argument)
        case int():
            return IndexLiteral(argument)
        case _:
            return argument

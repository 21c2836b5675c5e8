"""Specialized programs by hand, for tests that must not depend on the front end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from tc.base.errors import Span
from tc.base.types import ScalarType
from tc.grammar.syntax import BinaryOperator, UnaryOperator
from tc.language.program.program import (
    Binary,
    Call,
    Cast,
    Expression,
    IterationVariable,
    IteratorReference,
    Literal,
    Program,
    Read,
    Reduction,
    Role,
    Scalar,
    Select,
    Statement,
    Tensor,
    TextOrigin,
    Unary,
)
from tc.language.program.specialization import ArraySpec, Layout, Signature, Specialization, contiguous_strides
from tc.reference.evaluate import Result, evaluate

NOWHERE = TextOrigin(Span(0, 0))
LOGIC = (BinaryOperator.AND, BinaryOperator.OR)
COMPARISONS = (
    BinaryOperator.EQUAL,
    BinaryOperator.NOT_EQUAL,
    BinaryOperator.LESS,
    BinaryOperator.LESS_EQUAL,
    BinaryOperator.GREATER,
    BinaryOperator.GREATER_EQUAL,
)

Operand = Expression | str | bool | int | float


def index(value: Operand) -> Expression:
    """An INT64 expression: names are iterators, numbers are literals."""
    if isinstance(value, str):
        return IteratorReference(value)
    return Literal(value, ScalarType.INT64) if isinstance(value, (int, float)) else value


def tensor(name: str, type: str, shape: Sequence[int], role: Role = Role.INPUT) -> Tensor:
    extents = tuple(Literal(n, ScalarType.INT64) for n in shape)
    return Tensor(name, ScalarType(type), extents, role, NOWHERE)


def read(source: Tensor, *subscripts: Operand) -> Read:
    return Read(source.name, tuple(index(s) for s in subscripts), source.type)


def literal(value: bool | int | float, type: str) -> Literal:
    return Literal(value, ScalarType(type))


def binary(left: Operand, operator: str, right: Operand) -> Binary:
    """Numbers take the type of the other operand; names are iterators."""
    symbol = BinaryOperator(operator)
    if isinstance(left, (bool, int, float)) and not isinstance(right, (bool, int, float, str)):
        left = Literal(left, right.type)
    first = index(left)
    second = Literal(right, first.type) if isinstance(right, (bool, int, float)) else index(right)
    type = ScalarType.BOOL if symbol in LOGIC + COMPARISONS else first.type
    return Binary(symbol, first, second, type)


def unary(operator: str, operand: Expression) -> Unary:
    return Unary(UnaryOperator(operator), operand, operand.type)


def select(condition: Expression, then: Expression, otherwise: Expression) -> Select:
    return Select(condition, then, otherwise, then.type)


def cast(operand: Expression, type: str) -> Cast:
    return Cast(operand, ScalarType(type))


def call(name: str, *arguments: Expression) -> Call:
    return Call(name, arguments, arguments[0].type)


def statement(
    target: Tensor,
    subscripts: Sequence[Operand],
    ranges: Mapping[str, tuple[Operand, Operand]],
    value: Expression,
    reduction: str | None = None,
    initialize: bool = False,
    conditions: Sequence[Expression] = (),
    blocks: Sequence[int] = (),
    name: str | None = None,
) -> Statement:
    """``target(subscripts) reduction= value``, with ``ranges`` in order."""
    return Statement(
        name=name or f"S_{target.name}",
        iterators=tuple(IterationVariable(n, index(b), index(e)) for n, (b, e) in ranges.items()),
        conditions=tuple(conditions),
        target=target.name,
        subscripts=tuple(index(s) for s in subscripts),
        reduction=None if reduction is None else Reduction(reduction),
        initialize=initialize,
        value=value,
        required=(),
        origin=NOWHERE,
        blocks=tuple(blocks),
    )


def specialize(
    tensors: Sequence[Tensor],
    statements: Sequence[Statement],
    scalars: Sequence[Scalar] = (),
    source: str | None = None,
) -> Specialization:
    """The program ``f`` over these tensors."""
    layouts: dict[str, Layout] = {}
    for declared in tensors:
        shape = tuple(int(extent.value) for extent in declared.shape if isinstance(extent, Literal))
        layouts[declared.name] = Layout(declared.type, shape, contiguous_strides(shape))
    program = Program(
        name="f",
        sizes=(),
        scalars=tuple(scalars),
        tensors=tuple(tensors),
        arguments=tuple(t.name for t in tensors if t.role is Role.INPUT) + tuple(s.name for s in scalars),
        results=tuple(t.name for t in tensors if t.role in (Role.OUTPUT, Role.IN_OUT)),
        statements=tuple(statements),
        preconditions=(),
        source=source,
    )
    arguments = tuple((t.name, ArraySpec(layouts[t.name].shape, t.type)) for t in tensors if t.role is Role.INPUT)
    return Specialization(program, Signature(arguments), layouts)


def pointwise(formula: Callable[..., Expression], *arrays: npt.ArrayLike) -> Result:
    """``O(i) = formula(A0(i), A1(i), ...)`` of one-dimensional arrays of one length."""
    given = {f"A{position}": np.asarray(array) for position, array in enumerate(arrays)}
    inputs = [tensor(name, array.dtype.name, array.shape) for name, array in given.items()]
    value = formula(*(read(source, "i") for source in inputs))
    size = len(given["A0"])
    output = tensor("O", value.type.value, (size,), Role.OUTPUT)
    written = statement(output, ["i"], {"i": (0, size)}, value)
    return evaluate(specialize([*inputs, output], [written]), given)["O"]


def reduced(reduction: str, *arrays: npt.ArrayLike, formula: Callable[..., Expression] | None = None) -> Result:
    """``O(i) reduction=! formula(A0(i,k), ...)`` of two-dimensional arrays of one shape."""
    given = {f"A{position}": np.asarray(array) for position, array in enumerate(arrays)}
    inputs = [tensor(name, array.dtype.name, array.shape) for name, array in given.items()]
    reads = [read(source, "i", "k") for source in inputs]
    value = reads[0] if formula is None else formula(*reads)
    rows, columns = given["A0"].shape
    output = tensor("O", value.type.value, (rows,), Role.OUTPUT)
    written = statement(output, ["i"], {"i": (0, rows), "k": (0, columns)}, value, reduction, initialize=True)
    return evaluate(specialize([*inputs, output], [written]), given)["O"]

"""Pointwise operators, whose operands are broadcast as NumPy does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tc.base.errors import GraphError
from tc.base.frozen import frozen
from tc.base.types import ScalarType
from tc.graph.ir.builder import Builder
from tc.graph.ir.sizes import Dimension, Shape, shape_text
from tc.graph.ir.values import Value
from tc.graph.operators.texts import LETTERS, access, definition, iterators, parameter, sizes

# x tanh(log(1 + e)) for e = e^x: tanh(log(1 + e)) is n / (n + 2) for n = (1 + e)^2 - 1, and 1 from x = 20 on in every
# type.  Misra, *Mish: A self regularized non-monotonic activation function* (arXiv 1908.08681).
_MISH_POWER: Final = "exp(min({0}, 20)) * (exp(min({0}, 20)) + 2)"
MISH: Final = f"{{0}} * ({_MISH_POWER} / ({_MISH_POWER} + 2))"


def broadcast_shape(shapes: Sequence[Shape], what: str) -> Shape:
    """The shape to which NumPy broadcasts some; an open size beside a number other than 1 is that number."""
    rank = max((len(shape) for shape in shapes), default=0)
    found: list[Dimension] = [1] * rank
    for shape in shapes:
        for axis, extent in enumerate(shape, rank - len(shape)):
            known = found[axis]
            if extent == 1 or extent == known:
                continue
            if known == 1 or not isinstance(known, int):
                found[axis] = extent
            elif isinstance(extent, int):
                given = " and ".join(f"({shape_text(one)})" for one in shapes)
                raise GraphError(f"{what}: the shapes {given} cannot be broadcast to one")
    return tuple(found)


@frozen
class Pointwise:
    """An element of the result for each of the operands: ``{0}`` in the expression is that of the first operand.

    ``type``: of the result, to which the expression is cast; None leaves it as the language has it.
    """

    name: str
    expression: str
    type: ScalarType | None = None

    def text(self, operands: Sequence[Value]) -> str:
        """The definition; dimensions of one element that others repeat are read at 0."""
        shape = broadcast_shape([operand.shape for operand in operands], self.name)
        rank = len(shape)
        names, extents = iterators(rank), sizes(rank)
        parameters, reads = [], []
        for operand, letter in zip(operands, LETTERS, strict=False):
            first = rank - len(operand.shape)
            whole = [operand.shape[axis - first] != 1 or shape[axis] == 1 for axis in range(first, rank)]
            own = [extents[axis] if keep else 1 for axis, keep in enumerate(whole, first)]
            subscripts = [names[axis] if keep else 0 for axis, keep in enumerate(whole, first)]
            parameters.append(parameter(operand.type, own, letter))
            reads.append(access(letter, subscripts))
        value = self.expression.format(*reads)
        value = value if self.type is None else f"{self.type}({value})"
        return definition(self.name, parameters, ["Y"], [f"{access('Y', names)} = {value}"])


def pointwise(
    builder: Builder, name: str, expression: str, operands: Sequence[Value], type: ScalarType | None = None
) -> Value:
    """The result of ``Pointwise``; GraphError where the shapes cannot be broadcast."""
    broadcast_shape([operand.shape for operand in operands], builder.origin or name)
    return builder.apply(Pointwise(name, expression, type), *operands)


def cast(builder: Builder, operand: Value, type: ScalarType) -> Value:
    """The operand as another type: integers wrap, floats saturate."""
    return operand if operand.type is type else pointwise(builder, f"to_{type}", "{0}", [operand], type)

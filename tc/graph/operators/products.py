"""Matrix products, with batches that are broadcast."""

from __future__ import annotations

from collections.abc import Sequence

from tc.base.errors import GraphError
from tc.base.frozen import frozen
from tc.graph.ir.builder import Builder
from tc.graph.ir.sizes import Shape
from tc.graph.ir.values import Value
from tc.graph.operators.pointwise import broadcast_shape
from tc.graph.operators.texts import access, definition, parameter


@frozen
class Product:
    """NumPy's ``matmul``: the last two dimensions are multiplied, those before are broadcast.

    ``bias``: a third operand, a number for each column, is added.
    """

    name: str = "matmul"
    bias: bool = False

    def text(self, operands: Sequence[Value]) -> str:
        """The definition, for operands of one dimension or more."""
        left, right = operands[:2]
        batch = broadcast_shape([left.shape[:-2], right.shape[:-2]], self.name)
        (left_extents, left_at), (right_extents, right_at) = _batched(left, batch), _batched(right, batch)
        rows = ["M"] if len(left.shape) > 1 else []
        columns = ["N"] if len(right.shape) > 1 else []
        row, column = [size.lower() for size in rows], [size.lower() for size in columns]
        a, b = access("A", [*left_at, *row, "k"]), access("B", [*right_at, "k", *column])
        parameters = [
            parameter(left.type, [*left_extents, *rows, "K"], "A"),
            parameter(right.type, [*right_extents, "K", *columns], "B"),
        ]
        at = [*(f"b{axis}" for axis in range(len(batch))), *row, *column]
        statements = [f"{access('Y', at)} +=! {a} * {b}"]
        if self.bias:
            parameters.append(parameter(operands[2].type, columns, "C"))
            statements.append(f"{access('Y', at)} += {access('C', column)}")
            statements = [
                f"{access('S', at)} +=! {a} * {b}",
                f"{access('Y', at)} = {access('S', at)} + {access('C', column)}",
            ]
        return definition(self.name, parameters, ["Y"], statements)


def _batched(operand: Value, batch: Shape) -> tuple[list[object], list[object]]:
    """Extents and subscripts of an operand's batches; those of one element are read at 0 where others have more."""
    own = operand.shape[:-2]
    first = len(batch) - len(own)
    whole = [extent != 1 or batch[axis] == 1 for axis, extent in enumerate(own, first)]
    extents: list[object] = [f"B{axis}" if keep else 1 for axis, keep in enumerate(whole, first)]
    return extents, [f"b{axis}" if keep else 0 for axis, keep in enumerate(whole, first)]


def product(builder: Builder, left: Value, right: Value) -> Value:
    """The matrix product; GraphError where an operand has no dimension."""
    if not left.shape or not right.shape:
        raise GraphError(f"{builder.origin or 'matmul'}: a product takes tensors with one dimension at least")
    return builder.apply(Product(), left, right)

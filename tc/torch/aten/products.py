"""Products of matrices and vectors."""

from __future__ import annotations

from typing import Final

import torch

from tc.base.types import ScalarType
from tc.graph.ir.values import Value
from tc.graph.operators.einsum import Equation, einsum, equation_of
from tc.graph.operators.pointwise import pointwise
from tc.graph.operators.products import product
from tc.graph.operators.texts import literal
from tc.torch.fx.operation import Operation, Rule, Rules, UnclaimedError

aten: Final = torch.ops.aten


def _product(left: str, right: str) -> Rule:
    """The product of two arguments."""

    def rule(operation: Operation) -> Value:
        return _multiplied(operation, left, right)

    return rule


def _with_addend(left: str, right: str) -> Rule:
    """``beta * self + alpha * product``; where ``beta`` is 0, NaN in ``self`` is no matter."""

    def rule(operation: Operation) -> Value:
        return _added(operation, _multiplied(operation, left, right))

    return rule


def _added(operation: Operation, found: Value) -> Value:
    added, type = operation.value("self"), operation.type
    factors = [operation[name] if operation[name] is not None else 1 for name in ("alpha", "beta")]
    alpha, beta = ("" if one == 1 else f"{literal(one, type)} * " for one in factors)
    if factors[1] == 0:
        return pointwise(operation.builder, "scaled", f"{alpha}{{0}}", [found], type) if alpha else found
    return pointwise(operation.builder, "add", f"{alpha}{{0}} + {beta}{{1}}", [found, added], type)


def _sum_of_products(operation: Operation) -> Value:
    """The sum of the products of a batch, as one product, with an addend."""
    left, right = operation.value("batch1"), operation.value("batch2")
    found = einsum(operation.builder, equation_of("bmk,bkn->mn", (3, 3), "addbmm"), [left, right])
    return _added(operation, found)


def _trilinear(operation: Operation) -> Value:
    """The products of three tensors that miss some dimensions, summed over others."""
    values = [operation.value(name) for name in ("i1", "i2", "i3")]
    missing = [operation.integers(name) for name in ("expand1", "expand2", "expand3")]
    summed = operation.integers("sumdim")
    symbols = [f"s{axis}" for axis in range(len(values[0].shape) + len(missing[0]))]
    operands = tuple(tuple(s for axis, s in enumerate(symbols) if axis not in own) for own in missing)
    result = tuple(symbol for axis, symbol in enumerate(symbols) if axis not in summed)
    return einsum(operation.builder, Equation(operands, result), values)


def _multiplied(operation: Operation, left: str, right: str) -> Value:
    if operation.type is ScalarType.BOOL:
        raise UnclaimedError("multiplies truth values")
    return product(operation.builder, operation.value(left), operation.value(right))


RULES: Final[Rules] = {
    aten.mm.default: _product("self", "mat2"),
    aten.bmm.default: _product("self", "mat2"),
    aten.mv.default: _product("self", "vec"),
    aten.dot.default: _product("self", "tensor"),
    aten.addmm.default: _with_addend("mat1", "mat2"),
    aten.addmv.default: _with_addend("mat", "vec"),
    aten.addbmm.default: _sum_of_products,
    aten._trilinear.default: _trilinear,
    aten.baddbmm.default: _with_addend("batch1", "batch2"),
}

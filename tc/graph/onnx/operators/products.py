"""Matrix products."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tc.graph.ir.values import Value
from tc.graph.onnx.operation import Operation, Rule
from tc.graph.operators.products import product
from tc.graph.operators.texts import access, definition, literal, parameter


def _matmul(operation: Operation) -> Sequence[Value]:
    return [product(operation.builder, operation.operand(0), operation.operand(1))]


def _gemm(operation: Operation) -> Sequence[Value]:
    a, b, c = operation.operand(0), operation.operand(1), operation.optional(2)
    type = a.type
    by_rows, by_columns = operation.integer("transA", 0), operation.integer("transB", 0)
    alpha, beta = operation.number("alpha", 1.0), operation.number("beta", 1.0)
    parameters = [
        parameter(type, ["K", "M"] if by_rows else ["M", "K"], "A"),
        parameter(type, ["N", "K"] if by_columns else ["K", "N"], "B"),
    ]
    left, right = "A(k, m)" if by_rows else "A(m, k)", "B(n, k)" if by_columns else "B(k, n)"
    if c is None:
        scaled = "S(m, n)" if alpha == 1 else f"{literal(alpha, type)} * S(m, n)"
        statements = [f"S(m, n) +=! {left} * {right}", f"Y(m, n) = {type}({scaled})"]
        return [operation.one(definition("gemm", parameters, ["Y"], statements), a, b)]
    rows = a.shape[1 if by_rows else 0]
    own = ["M", "N"][2 - len(c.shape) :]
    names = ["m", "n"][2 - len(c.shape) :]
    wanted = (rows, b.shape[0 if by_columns else 1])[2 - len(c.shape) :]
    whole = [extent != 1 or all_of == 1 for extent, all_of in zip(c.shape, wanted, strict=True)]
    parameters.append(parameter(type, [size if keep else 1 for size, keep in zip(own, whole, strict=True)], "C"))
    added = access("C", [name if keep else 0 for name, keep in zip(names, whole, strict=True)])
    added = added if beta == 1 else f"{literal(beta, type)} * {added}"
    scaled = "S(m, n)" if alpha == 1 else f"{literal(alpha, type)} * S(m, n)"
    statements = [f"S(m, n) +=! {left} * {right}", f"Y(m, n) = {type}({scaled} + {added})"]
    return [operation.one(definition("gemm", parameters, ["Y"], statements), a, b, c)]


RULES: Final[dict[str, Rule]] = {"Gemm": _gemm, "MatMul": _matmul}

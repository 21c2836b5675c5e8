"""Matrices and vectors made by formulas, triangles, determinants and repetition."""

from __future__ import annotations

from collections.abc import Sequence

from tc.base.types import ScalarType
from tc.graph.ir.builder import Builder
from tc.graph.ir.sizes import Dimension, elements
from tc.graph.ir.values import Value
from tc.graph.operators.extents import extents_of
from tc.graph.operators.texts import access, declared, definition, iterators, literal, parameter


def counted(builder: Builder, start: Value, step: Value, count: Dimension) -> Value:
    """``start``, ``start + step`` and so on: so many numbers."""
    extents = extents_of(builder, [count])
    parameters = [parameter(start.type, [], "S"), parameter(step.type, [], "D"), *extents.parameters]
    text = definition("range", parameters, ["Y"], [f"Y(i) = S + i * D where i in 0:{extents.texts[0]}"])
    (found,) = builder.call(text, start, step, *extents.operands)
    return found


def identity_like(builder: Builder, operand: Value, diagonal: int, type: ScalarType) -> Value:
    """A matrix of the shape of the operand with ones on a diagonal: 0 is the main one, those above it are greater."""
    statement = f"Y(i, j) = {type}(j - i == {diagonal}) where exists X(i, j)"
    (found,) = builder.call(definition("eye", [declared(operand, "X")], ["Y"], [statement]), operand)
    return found


def triangle(builder: Builder, operand: Value, diagonal: Value | int, *, upper: bool) -> Value:
    """The last two dimensions on and above a diagonal, or on and below it, and zeros elsewhere.

    ``diagonal``: its number, 0 for the main one and greater above it; it may be a tensor of one element.
    """
    names = iterators(len(operand.shape))
    row, column = names[-2:]
    parameters, operands = [declared(operand, "X")], [operand]
    if isinstance(diagonal, Value):
        parameters.append(parameter(diagonal.type, [], "K"))
        operands.append(builder.reshape(diagonal, ()))
    kept = f"{column} - {row} {'>=' if upper else '<='} {'K' if isinstance(diagonal, Value) else diagonal}"
    zero = literal(0, operand.type)
    statement = f"{access('Y', names)} = {kept} ? {access('X', names)} : {zero}"
    (found,) = builder.call(definition("triu" if upper else "tril", parameters, ["Y"], [statement]), *operands)
    return found


def tiled(builder: Builder, operand: Value, repeats: Sequence[Dimension]) -> Value:
    """The operand so many times along each axis."""
    parts, whole = [], []
    for extent, count in zip(operand.shape, repeats, strict=True):
        parts += [1, extent]
        whole += [count, extent]
    repeated = builder.expand(builder.reshape(operand, tuple(parts)), tuple(whole))
    return builder.reshape(
        repeated, tuple(count * extent for extent, count in zip(operand.shape, repeats, strict=True))
    )


def determinant(builder: Builder, operand: Value) -> Value:
    """The determinants of the matrices in the last two dimensions.

    They are the products of the pivots of Gaussian elimination, each of which is the greatest of its column.
    """
    batches = operand.shape[:-2]
    matrices = builder.reshape(operand, (elements(batches), *operand.shape[-2:]))
    wide = ScalarType.FLOAT64 if operand.type is ScalarType.FLOAT64 else ScalarType.FLOAT32
    statements = [
        f"A(b, i, j) = {wide}(X(b, i, j))",
        f"V(b) = {literal(1, wide)} where b in 0:B",
        "for k in 0:M {",
        "    (G(b), P(b)) max=! (abs(A(b, i, k)), i) where i in k:M",
        "    R(b, j) = A(b, P(b), j)",  # the row of the pivot, which row k takes the place of
        "    F(b, i) = i == P(b) ? A(b, k, k) : A(b, i, k) where i in k+1:M",
        "    F(b, i) = R(b, k) == 0 ? 0 : F(b, i) / R(b, k) where i in k+1:M",
        "    A(b, i, j) = (i == P(b) ? A(b, k, j) : A(b, i, j)) - F(b, i) * R(b, j) where i in k+1:M, j in k:M",
        "    V(b) = V(b) * (P(b) == k ? R(b, k) : -R(b, k))",
        "}",
        f"Y(b) = {operand.type}(V(b))",
    ]
    text = definition("determinant", [parameter(operand.type, ["B", "M", "M"], "X")], ["Y"], statements)
    (found,) = builder.call(text, matrices)
    return builder.reshape(found, batches)

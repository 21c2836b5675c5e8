"""Distances of points: norms of differences, and their gradients."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
import torch

from tc.base.frozen import frozen
from tc.base.types import ScalarType, computation_type
from tc.graph.ir.values import Value
from tc.graph.operators.pointwise import broadcast_shape, pointwise
from tc.graph.operators.reductions import reduced
from tc.graph.operators.texts import definition, literal, parameter
from tc.torch.fx.operation import Operation, Rules, UnclaimedError, extents

aten: Final = torch.ops.aten


@frozen
class Norm:
    """The root of a sum of powers of magnitudes: ``operator`` over ``term`` of ``{x}``, and ``result`` of it, ``{s}``.

    Of order 0 it is how many are not 0, of infinite order the extreme.
    """

    operator: str
    term: str
    result: str = "{s}"

    @staticmethod
    def of(order: float, type: ScalarType) -> Norm:
        """The norm of an order, of numbers of a type in which it can be computed."""
        match order:
            case 0.0:
                return Norm("+=!", f"{type}({{x}} != 0)")
            case 1.0:
                return Norm("+=!", "abs({x})")
            case 2.0:
                return Norm("+=!", "{x} * {x}", "sqrt({s})")
            case math.inf:
                return Norm("max=!", "abs({x})")
            case _ if order == -math.inf:
                return Norm("min=!", "abs({x})")
            case _:
                inverse = literal(1 / order, type)
                return Norm("+=!", f"pow(abs({{x}}), {literal(order, type)})", f"pow({{s}}, {inverse})")


def norm(operation: Operation, own: Value, order: float, axes: Sequence[int], *, keep: bool) -> Value:
    """The norm over axes, computed and returned in the type of the result."""
    type = operation.type
    wide = computation_type(type)
    how = Norm.of(order, wide)
    element = "{x}" if own.type is wide else f"{wide}({{x}})"
    return reduced(
        operation.builder,
        "norm",
        own,
        axes,
        keep=keep,
        operator=how.operator,
        term=how.term.format(x=element),
        result=how.result,
        type=type,
    )


def _distance(operation: Operation) -> Value:
    one, other = operation.value("self"), operation.value("other")
    difference = pointwise(operation.builder, "difference", "{0} - {1}", [one, other], operation.type)
    axes = tuple(range(len(difference.shape)))
    return norm(operation, difference, float(operation.number("p")), axes, keep=False)


def _between_all(operation: Operation) -> Value:
    """The distances of all points of one set from all of another, in each batch."""
    type, one, other = _wide(operation), operation.value("x1"), operation.value("x2")
    batch = broadcast_shape([one.shape[:-2], other.shape[:-2]], "cdist")
    one, other = (operation.builder.expand(own, (*batch, *own.shape[-2:])) for own in (one, other))
    sets = [operation.builder.reshape(own, (math.prod(batch), *own.shape[-2:])) for own in (one, other)]
    how = Norm.of(float(operation.number("p")), type)
    difference = "(A(b, i, k) - B(b, j, k))"
    statements = [
        f"S(b, i, j) {how.operator} {how.term.format(x=difference)}",
        f"Y(b, i, j) = {how.result.format(s='S(b, i, j)')}",
    ]
    if how.operator == "max=!":  # points of no dimension are at one place
        statements[1] = f"Y(b, i, j) = max(S(b, i, j), {literal(0, type)})"
    parameters = [parameter(type, extents, name) for extents, name in (("BMK", "A"), ("BNK", "B"))]
    found = operation.one(definition("cdist", parameters, ["Y"], statements), *sets)
    return operation.builder.reshape(found, (*batch, one.shape[-2], other.shape[-2]))


def _from_all(operation: Operation) -> Value:
    """What each point of the first set gets of the gradient of its distances; those of no length have none."""
    type, order = _wide(operation), float(operation.number("p"))
    names = ("grad", "x1", "x2", "cdist")
    values = [operation.value(name) for name in names]
    batch = broadcast_shape([own.shape[:-2] for own in values], "cdist")
    values = [operation.builder.expand(own, (*batch, *own.shape[-2:])) for own in values]
    flat = [operation.builder.reshape(own, (math.prod(batch), *own.shape[-2:])) for own in values]
    x, distance = "(A(b, i, k) - B(b, j, k))", "D(b, i, j)"
    sign = f"({x} > 0 ? 1 : {x} < 0 ? -1 : 0)"
    match order:
        case 0.0:
            slope = "0"
        case 1.0:
            slope = sign
        case 2.0:
            slope = f"({distance} == 0 ? 0 : {x} / {distance})"
        case math.inf:
            slope = f"(abs({x}) == {distance} ? {sign} : 0)"
        case _:
            power = literal(order - 1, type)
            slope = f"({distance} == 0 || {x} == 0 ? 0 : {sign} * pow(abs({x}), {power}) / pow({distance}, {power}))"
    extents = (("BMN", "G"), ("BMK", "A"), ("BNK", "B"), ("BMN", "D"))
    text = definition(
        "cdist_backward",
        [parameter(type, own, name) for own, name in extents],
        ["Y"],
        [f"Y(b, i, k) +=! G(b, i, j) * {slope} where exists A(b, i, k)"],
    )
    found = operation.builder.reshape(operation.one(text, *flat), values[1].shape)
    # Without any batches, PyTorch has no dimensions of batches, either, where the first set has none.
    missing = tuple(range(len(found.shape) - len(operation.shape)))
    return reduced(operation.builder, "sum", found, missing, keep=False) if missing else found


def _within(operation: Operation) -> Value:
    """The distances of all pairs of points of one set, in the order of the first of the two."""
    type, own = _wide(operation), operation.value("self")
    how = Norm.of(float(operation.number("p")), type)
    first, second = (operation.builder.constant(found) for found in np.triu_indices(extents(own)[0], 1))
    statements = [
        f"S(p) {how.operator} {how.term.format(x='(X(I(p), k) - X(J(p), k))')}",
        f"Y(p) = {how.result.format(s='S(p)')}",
    ]
    parameters = [parameter(type, "NK", "X"), parameter(first.type, "P", "I"), parameter(second.type, "P", "J")]
    return operation.one(definition("pdist", parameters, ["Y"], statements), own, first, second)


def _wide(operation: Operation) -> ScalarType:
    if operation.type.is_half:
        raise UnclaimedError("computes distances of halves")
    return operation.type


RULES: Final[Rules] = {
    aten.dist.default: _distance,
    aten._cdist_forward.default: _between_all,
    aten._cdist_backward.default: _from_all,
    aten._pdist_forward.default: _within,
}

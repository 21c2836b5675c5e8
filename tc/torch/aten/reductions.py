"""Reductions over dimensions: sums, products, extremes, norms and moments."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import torch

from tc.base.types import ScalarType
from tc.graph.ir.values import Value
from tc.graph.operators.gathers import arg_reduced, extreme_with_index
from tc.graph.operators.moments import moments
from tc.graph.operators.pointwise import cast
from tc.graph.operators.reductions import reduced
from tc.torch.aten.distances import norm
from tc.torch.fx.operation import Operation, Rule, Rules

aten: Final = torch.ops.aten


def axes_of(operation: Operation, own: Value, *, empty_is_all: bool = True) -> tuple[int, ...]:
    """The dimensions that ``dim`` names: all of them where it is left out.  A number has none."""
    rank = len(own.shape)
    if not operation.has("dim") or (empty_is_all and operation["dim"] == []):
        return tuple(range(rank))
    return tuple(sorted({axis % rank for axis in operation.integers("dim")})) if rank else ()


def _reduction(operator: str, term: str = "{x}", result: str = "{s}") -> Rule:
    """Terms and sums have the type of the result."""

    def rule(operation: Operation) -> Value:
        own, type = operation.value("self"), operation.type
        # Sums of halves are held in float32.
        element = "{x}" if own.type is type else f"{type}({{x}})"
        return reduced(
            operation.builder,
            operation.name.split(".")[1],
            own,
            axes_of(operation, own),
            keep=bool(operation["keepdim"]),
            operator=operator,
            term=term.format(x=element),
            result=result,
            type=type,
        )

    return rule


def _truth(operator: str) -> Rule:
    """Whether any element is other than 0, or all are; NaN is other than 0."""

    def rule(operation: Operation) -> Value:
        own = operation.value("self")
        return reduced(
            operation.builder,
            "any" if operator == "max=!" else "all",
            own,
            axes_of(operation, own, empty_is_all=False),
            keep=bool(operation["keepdim"]),
            operator=operator,
            term="int32({x} != 0)",
            result="{s} > 0",
            type=operation.type,
        )

    return rule


def _extreme(operator: str) -> Rule:
    """NaN where an element is NaN; of truth values whether any is true, or all are."""

    def rule(operation: Operation) -> Value:
        own = operation.value("self")
        truths = own.type is ScalarType.BOOL
        return reduced(
            operation.builder,
            operation.name.split(".")[1],
            own,
            axes_of(operation, own),
            keep=bool(operation["keepdim"]),
            operator=operator,
            term="int32({x})" if truths else "{x}",
            result="{s} != 0" if truths else "{s}",
        )

    return rule


def _extreme_with_index(operation: Operation) -> Sequence[Value | None]:
    """The first of the greatest elements along a dimension, or of the least, and its index; NaN counts as either."""
    own = operation.value("self")
    if not own.shape:
        own = operation.builder.reshape(own, (1,))
    axis = operation.integer("dim") % len(own.shape)
    shape = tuple(1 if at == axis else extent for at, extent in enumerate(own.shape))
    shape = shape if operation["keepdim"] and operation.value("self").shape else (*shape[:axis], *shape[axis + 1 :])
    greatest = ".max." in operation.name
    whole = cast(operation.builder, own, ScalarType.UINT8) if own.type is ScalarType.BOOL else own
    found, index = extreme_with_index(operation.builder, whole, axis, greatest=greatest)
    found = cast(operation.builder, found, own.type)
    return [operation.builder.reshape(one, shape) for one in (found, index)]


def _index_of_extreme(operation: Operation) -> Value:
    own, keep = operation.value("self"), bool(operation["keepdim"])
    rank = len(own.shape)
    if not operation.has("dim") or not rank:
        flat = operation.builder.reshape(own, (math.prod(own.shape),))
        found = arg_reduced(operation.builder, flat, 0, greatest="argmax" in operation.name)
        return operation.builder.reshape(found, (1,) * rank) if keep else found
    return arg_reduced(operation.builder, own, operation.axis("dim"), greatest="argmax" in operation.name, keep=keep)


def _moments(operation: Operation) -> Sequence[Value]:
    """The variance, and the mean if that is a result, too."""
    own = operation.value("self")
    correction = operation.number("correction") if operation.has("correction") else 1
    return moments(
        operation.builder,
        own,
        axes_of(operation, own),
        correction,
        keep=bool(operation["keepdim"]),
        mean=len(operation.types) > 1,
    )


def _variance(operation: Operation) -> Value:
    (found,) = _moments(operation)
    return found


def _norm(operation: Operation) -> Value:
    own = operation.value("self")
    order = float(operation.number("ord"))
    return norm(operation, own, order, axes_of(operation, own), keep=bool(operation["keepdim"]))


RULES: Final[Rules] = {
    aten.sum.default: _reduction("+=!"),
    aten.sum.dim_IntList: _reduction("+=!"),
    aten.mean.default: _reduction("+=!", result="{s} / {n}"),
    aten.mean.dim: _reduction("+=!", result="{s} / {n}"),
    aten.prod.default: _reduction("*=!"),
    aten.prod.dim_int: _reduction("*=!"),
    aten.amax.default: _extreme("max=!"),
    aten.amin.default: _extreme("min=!"),
    aten.max.default: _extreme("max=!"),
    aten.min.default: _extreme("min=!"),
    aten.max.dim: _extreme_with_index,
    aten.min.dim: _extreme_with_index,
    aten.argmax.default: _index_of_extreme,
    aten.argmin.default: _index_of_extreme,
    aten.any.default: _truth("max=!"),
    aten.any.dim: _truth("max=!"),
    aten.any.dims: _truth("max=!"),
    aten.all.default: _truth("min=!"),
    aten.all.dim: _truth("min=!"),
    aten.all.dims: _truth("min=!"),
    aten.var.correction: _variance,
    aten.var_mean.correction: _moments,
    aten.linalg_vector_norm.default: _norm,
}

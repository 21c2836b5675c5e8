"""Operators that write where indices say."""

from __future__ import annotations

import math
from typing import Any, Final

import torch

from tc.base.types import ScalarType
from tc.graph.ir.sizes import Shape
from tc.graph.ir.values import Value
from tc.graph.operators.indexed import written
from tc.graph.operators.pointwise import pointwise
from tc.graph.operators.scatters import scattered_elements
from tc.torch.aten.indexing import indices_of
from tc.torch.aten.layout import flagged_replaced
from tc.torch.aten.views import converted
from tc.torch.fx.operation import Operation, Rules, UnclaimedError, extents
from tc.torch.fx.types import array_as

aten: Final = torch.ops.aten
_REDUCTIONS: Final = {"sum": "add", "prod": "mul", "amax": "max", "amin": "min", "add": "add", "multiply": "mul"}


def _index_put(operation: Operation) -> Value:
    reduction = "add" if operation["accumulate"] else None
    own, values = operation.value("self"), operation.value("values")
    if reduction and own.type is ScalarType.BOOL:
        raise UnclaimedError("adds truth values")
    flags = [(at, one) for at, one in enumerate(operation["indices"]) if one and one.type is ScalarType.BOOL]
    if flags and all(one is None for one in operation["indices"][1:]):
        return _flagged_put(operation, flags[0][1], values, reduction)
    return written(operation.builder, own, indices_of(operation), values, reduction)


def _flagged_put(operation: Operation, mask: Value, values: Value, reduction: str | None) -> Value:
    """Values in the place of what is flagged of the first dimensions: the same for all, or one after the other."""
    builder, own = operation.builder, operation.value("self")
    rest = len(own.shape) - len(mask.shape)
    if len(values.shape) <= rest or values.shape[0] == 1:
        same = values if len(values.shape) <= rest else builder.reshape(values, values.shape[1:])
        flags = builder.reshape(mask, (*mask.shape, *[1] * rest))
        text = "{0} ? {1} : {2}" if reduction is None else "{0} ? {1} + {2} : {2}"
        return pointwise(builder, "flagged_put", text, [flags, converted(operation, same, own.type), own], own.type)
    if rest or reduction is not None:
        raise UnclaimedError("puts in as many elements as are flagged")
    return flagged_replaced(operation, mask, values)


def _put(operation: Operation) -> Value:
    builder, own = operation.builder, operation.value("self")
    flat, index = (builder.reshape(one, (math.prod(extents(one)),)) for one in (own, operation.value("index")))
    source = builder.reshape(operation.value("source"), index.shape)
    found = written(builder, flat, [index], source, "add" if operation["accumulate"] else None)
    return builder.reshape(found, own.shape)


def _scattered(
    operation: Operation, updates: Value, reduction: str | None, own: Value | None = None, index: Value | None = None
) -> Value:
    """``self``, or what is in its place, with updates; those of the indices, of which there may be fewer."""
    builder = operation.builder
    index = operation.value("index") if index is None else index
    target = operation.value("self") if own is None else own
    if target.type is ScalarType.BOOL and reduction in ("add", "mul"):
        raise UnclaimedError("adds or multiplies truth values")
    if 0 in index.shape:  # it may have other dimensions
        return target
    flat = [one if one.shape else builder.reshape(one, (1,)) for one in (target, index, updates)]
    first = builder.slice(flat[2], [0] * len(flat[1].shape), [1] * len(flat[1].shape), flat[1].shape)
    found = scattered_elements(builder, flat[0], flat[1], first, operation.axis("dim"), reduction, wraps=False)
    return builder.reshape(found, target.shape)


def _filled(operation: Operation, number: Any, type: ScalarType, shape: Shape) -> Value:
    constant = operation.builder.constant(array_as(number, type), "number")
    return operation.builder.expand(constant, shape)


def _scatter(operation: Operation) -> Value:
    return _scattered(operation, operation.value("src"), None)


def _scatter_value(operation: Operation) -> Value:
    shape = operation.value("index").shape
    value = _filled(operation, operation.number("value"), operation.type, shape)
    return _scattered(operation, value, _named_reduction(operation))


def _scatter_named(operation: Operation) -> Value:
    return _scattered(operation, operation.value("src"), _named_reduction(operation))


def _named_reduction(operation: Operation) -> str | None:
    return _REDUCTIONS[operation["reduce"]] if operation.has("reduce") else None


def _scatter_add(operation: Operation) -> Value:
    return _scattered(operation, operation.value("src"), "add")


def _scatter_reduced(operation: Operation) -> Value:
    return _reduced(operation, operation.value("src"), operation.value("index"))


def _index_reduced(operation: Operation) -> Value:
    builder, index, source = operation.builder, operation.value("index"), operation.value("source")
    axis = operation.axis("dim")
    alone = tuple(extent if at == axis else 1 for at, extent in enumerate(source.shape))
    spread = builder.expand(builder.reshape(index, alone), source.shape)
    return _reduced(operation, source, spread)


def _reduced(operation: Operation, updates: Value, index: Value) -> Value:
    """``self`` reduced with updates; what is not part of its own reduction begins with what changes nothing."""
    own, how, included = operation.value("self"), str(operation["reduce"]), operation["include_self"] is not False
    if not included:
        neutral = _filled(operation, _neutral(how, own.type), own.type, index.shape)
        own = _scattered(operation, neutral, None, own, index)
    if how != "mean":
        return _scattered(operation, updates, _REDUCTIONS[how], own, index)
    total = _scattered(operation, updates, "add", own, index)
    counts, one = (
        _filled(operation, int(n), ScalarType.INT32, s) for n, s in ((included, own.shape), (1, index.shape))
    )
    counts = _scattered(operation, one, "add", counts, index)
    mean = "{0} / max({1}, 1)" if own.type.is_floating else _FLOORED
    return pointwise(operation.builder, "mean", mean, [total, counts], own.type)


_FLOORED: Final = "({0} - ({0} % max({1}, 1) + max({1}, 1)) % max({1}, 1)) / max({1}, 1)"


def _neutral(how: str, type: ScalarType) -> Any:
    if how in ("amax", "amin"):
        if type.is_floating:
            return -math.inf if how == "amax" else math.inf
        return type.minimum if how == "amax" else type.maximum
    return 1 if how == "prod" else 0


RULES: Final[Rules] = {
    aten.index_put.default: _index_put,
    aten._unsafe_index_put.default: _index_put,
    aten.put.default: _put,
    aten.scatter.src: _scatter,
    aten.scatter.value: _scatter_value,
    aten.scatter.reduce: _scatter_named,
    aten.scatter.value_reduce: _scatter_value,
    aten.scatter_add.default: _scatter_add,
    aten.scatter_reduce.two: _scatter_reduced,
    aten.index_reduce.default: _index_reduced,
}

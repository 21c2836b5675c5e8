"""Operators whose results are as large as data say.

Comprehensions find what is chosen and how much it is; the host cuts it off there, before what comes next is planned.
What is different, and which boxes are kept, the host finds itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from tc.base.types import ScalarType
from tc.graph.ir.sizes import elements, number
from tc.graph.ir.values import Value
from tc.graph.onnx.operation import Operation, Rule
from tc.graph.operators.extents import extents_of
from tc.graph.operators.gathers import flagged, gathered
from tc.graph.operators.hosted import suppressed, unique
from tc.graph.operators.pointwise import pointwise
from tc.graph.operators.texts import definition


def _places(operation: Operation, flags: Value) -> Value:
    """The places of flags that hold, in order: as many as there are."""

    def cut(arrays: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
        places, count = arrays
        return (places[: int(count)],)

    known = operation.builder.array_of(flags)
    if known is not None:
        return operation.builder.constant(np.flatnonzero(known), "places")
    return operation.on_host(cut, flagged(operation.builder, flags))[0]


def _compress(operation: Operation) -> Sequence[Value]:
    operand, flags = operation.operand(0), operation.operand(1)
    if len(flags.shape) != 1:
        raise operation.error(f"the condition has {len(flags.shape)} dimensions; give one")
    if "axis" not in operation.attributes:
        operand = operation.builder.reshape(operand, (elements(operand.shape),))
    axis = operation.axis(operation.integer("axis", 0), len(operand.shape))
    return [gathered(operation.builder, operand, _places(operation, flags), axis, "compress")]


def _nonzero(operation: Operation) -> Sequence[Value]:
    builder, operand = operation.builder, operation.operand(0)
    flags = operand if operand.type is ScalarType.BOOL else pointwise(builder, "flags", "{0} != 0", [operand])
    places = _places(operation, builder.reshape(flags, (elements(operand.shape),)))
    if not operand.shape:
        return [builder.constant(np.zeros((0, number(places.shape[0], places.name)), np.int64), "nonzero")]
    extents = extents_of(builder, operand.shape)
    statements = []
    for axis, extent in enumerate(extents.texts):
        inner = " * ".join(extents.texts[axis + 1 :])
        inner = f"({inner})" if " " in inner else inner
        place = f"P(k) / {inner}" if inner else "P(k)"
        statements.append(f"Y({axis}, k) = {f'{place} % {extent}' if axis else place}")
    text = definition("nonzero", ["int64(K) P", *extents.parameters], ["Y"], statements)
    return [operation.one(text, places, *extents.operands)]


def _unique(operation: Operation) -> Sequence[Value]:
    operand, axis = operation.operand(0), None
    if "axis" in operation.attributes:
        axis = operation.axis(operation.integer("axis"), len(operand.shape))
    ascending = bool(operation.integer("sorted", 1))

    def compute(arrays: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
        return unique(arrays[0], axis, ascending=ascending)

    return operation.on_host(compute, [operand], 4)


def _suppressed(operation: Operation) -> Sequence[Value]:
    boxes, scores = operation.operand(0), operation.operand(1)
    given = {name: operation.optional(place) for place, name in enumerate(("most", "overlap", "least"), 2)}
    limits = {name: value for name, value in given.items() if value is not None and elements(value.shape) != 0}
    centers = bool(operation.integer("center_point_box", 0))

    def compute(arrays: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
        values = dict(zip(limits, (array.reshape(-1)[0] for array in arrays[2:]), strict=True))
        most, overlap = int(values.get("most", 0)), values.get("overlap", 0.0)
        return (suppressed(arrays[0], arrays[1], most, overlap, values.get("least"), centers=centers),)

    return operation.on_host(compute, [boxes, scores, *limits.values()])


RULES: Final[dict[str, Rule]] = {
    "Compress": _compress,
    "NonMaxSuppression": _suppressed,
    "NonZero": _nonzero,
    "Unique": _unique,
}

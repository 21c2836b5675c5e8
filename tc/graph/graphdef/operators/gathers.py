"""Operators whose indices are data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from tc.base.frozen import frozen
from tc.base.types import ScalarType
from tc.graph.graphdef.operation import MOST_FOLDED, Operation, Operator
from tc.graph.ir.sizes import elements, number
from tc.graph.ir.values import Value
from tc.graph.operators.extents import extents_of
from tc.graph.operators.joining import concatenated
from tc.graph.operators.texts import access, definition, iterators, parameter, sizes


@frozen
class Gathered:
    """Elements of the first operand along an axis, by the second, for each place in the first ``batch`` dimensions."""

    axis: int
    batch: int = 0

    def text(self, operands: Sequence[Value]) -> str:
        """The definition; an index that is out of range raises ArgumentError."""
        table, indices = operands
        rank, own = len(table.shape), len(indices.shape)
        names, extents = iterators(rank), sizes(rank)
        shared, places = names[: self.batch], iterators(own - self.batch, "j")
        widths = [*extents[: self.batch], *sizes(own - self.batch, "E")]
        before, after = names[: self.axis], names[self.axis + 1 :]
        index = access("I", [*shared, *places])
        statement = f"{access('Y', [*before, *places, *after])} = {access('A', [*before, index, *after])}"
        parameters = [parameter(table.type, extents, "A"), parameter(indices.type, widths, "I")]
        return definition("gather", parameters, ["Y"], [statement])


def _gather(operation: Operation) -> Sequence[Value]:
    table, indices = operation.operand(0), operation.operand(1)
    rank, own = len(table.shape), len(indices.shape)
    axis = operation.axis(operation.whole(2) if len(operation.operands) > 2 else 0, rank)
    batch = operation.integer("batch_dims", 0)
    batch = batch + own if batch < 0 else batch
    if not 0 <= batch <= min(axis, own):
        raise operation.error(f"batch_dims must be from 0 to {min(axis, own)}, and is {batch}")
    return [operation.builder.apply(Gathered(axis, batch), table, indices)]


def _one_hot(operation: Operation) -> Sequence[Value]:
    indices, depth = operation.operand(0), operation.sizes(1)
    if len(depth) != 1:
        raise operation.error(f"the depth must have one element, and has {len(depth)}")
    on, off = operation.operand(2, rank=0), operation.operand(3, rank=0)
    rank = len(indices.shape)
    axis = operation.axis(operation.integer("axis", -1), rank + 1)
    names, extents = iterators(rank), sizes(rank)
    target = access("Y", [*names[:axis], "d", *names[axis:]])
    more = extents_of(operation.builder, depth)
    statement = f"{target} = int64({access('I', names)}) == d ? A : B where d in 0:{more.texts[0]}"
    parameters = [parameter(indices.type, extents, "I"), parameter(on.type, [], "A"), parameter(off.type, [], "B")]
    text = definition("one_hot", [*parameters, *more.parameters], ["Y"], [statement])
    return [operation.one(text, indices, on, off, *more.operands)]


def stitch_sources(indices: Sequence[np.ndarray]) -> np.ndarray:
    """Which row of all operands, one after the other, each row of the result is; -1 where none is."""
    flat = np.concatenate([array.reshape(-1) for array in indices]).astype(np.int64)
    source = np.full(int(flat.max()) + 1 if flat.size else 0, -1, np.int64)
    source[flat] = np.arange(flat.size)  # of several with one index, the last
    return source


def _stitch(operation: Operation) -> Sequence[Value]:
    """Rows at the places that indices say; as these say how many rows there are, they are contents."""
    count, builder = len(operation.operands) // 2, operation.builder
    indices = [np.array(operation.integers(place), np.int64) for place in range(count)]
    if any((array < 0).any() for array in indices):
        raise operation.error("an index is negative")
    parts = [
        builder.reshape(data, (elements(index.shape), *data.shape[len(index.shape) :]))
        for index, data in zip(operation.operands[:count], operation.operands[count:], strict=True)
    ]
    given, most = (
        sum(array.size for array in indices),
        max((int(array.max()) for array in indices if array.size), default=0),
    )
    if most > 2 * given + MOST_FOLDED:
        raise operation.error(f"an index is {most}, and there are {given} rows")
    source = stitch_sources(indices)
    rows = concatenated(builder, [part for part in parts if part.shape[0] != 0] or parts[:1], 0)
    if np.array_equal(source, np.arange(number(rows.shape[0], "the number of rows"))):
        return [rows]
    names, extents = iterators(len(rows.shape) - 1), sizes(len(rows.shape) - 1)
    parameters = [parameter(ScalarType.INT64, ["R"], "I"), parameter(rows.type, ["K", *extents], "A")]
    read = access("A", ["max(I(r), 0)", *names])
    statement = f"{access('Y', ['r', *names])} = I(r) < 0 ? {rows.type}(0) : {read}"
    text = definition("stitch", parameters, ["Y"], [statement])
    return [operation.one(text, builder.constant(source, "rows"), rows)]


def _inverse(operation: Operation) -> Sequence[Value]:
    operand = operation.operand(0, rank=1)
    parameters = [parameter(operand.type, ["N"], "P")]
    statement = f"Y(P(i)) +=! {operand.type}(i) where P(i) in 0:N"
    return [operation.one(definition("invert_permutation", parameters, ["Y"], [statement]), operand)]


OPERATORS: Final = {
    "DynamicStitch": Operator(_stitch, 0, lists=2),
    "Gather": Operator(_gather, 2),
    "GatherV2": Operator(_gather, 3),
    "InvertPermutation": Operator(_inverse, 1),
    "OneHot": Operator(_one_hot, 4),
    "ParallelDynamicStitch": Operator(_stitch, 0, lists=2),
}

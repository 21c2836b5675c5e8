"""Branches and loops: what is taken, and how often, is settled before anything of them runs.

Conditions and trip counts are contents: known, or computed by the nodes before.  The graphs inside are added to the one
around, as often as they run; loops whose steps compute the conditions run between two graphs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from tc.base.types import ScalarType
from tc.graph.ir.sizes import number
from tc.graph.ir.values import Value
from tc.graph.onnx.operation import Operation, Rule
from tc.graph.operators.joining import concatenated

# Longer loops have one body, which is called again and again.
_MOST_UNROLLED: Final = 64


def _branch(operation: Operation) -> Sequence[Value]:
    holds = _truth(operation, operation.operand(0))
    return operation.inline(operation.graph("then_branch" if holds else "else_branch"), [])


def _truth(operation: Operation, condition: Value) -> bool:
    contents = operation.contents(condition)
    if contents.size != 1:
        raise operation.error(f"a condition has one element, got {contents.shape}")
    return bool(contents.reshape(())[()])


def _loop(operation: Operation) -> Sequence[Value]:
    trips, condition, body = operation.optional(0), operation.optional(1), operation.graph("body")
    count = None if trips is None else max(operation.integers(trips)[0], 0)
    carried = [operation.operand(index) for index in range(2, len(operation.operands))]
    goes_on = condition is None or _truth(operation, condition)
    if goes_on and count != 0:
        return operation.repeated(body, carried, count, lambda: _unrolled(operation, carried, count))
    # What a step would have given says what nothing of it looks like.
    results = operation.inline(body, [*_heads(operation, 0), *carried]) if len(body.output) > 1 + len(carried) else ()
    return [*carried, *(_nothing(operation, value) for value in results[1 + len(carried) :])]


def _unrolled(operation: Operation, carried: Sequence[Value], count: int | None) -> Sequence[Value] | None:
    """The steps one after the other; None where they are too many."""
    if count is not None and count > _MOST_UNROLLED:
        return None
    body = operation.graph("body")
    scanned: list[list[Value]] = [[] for _ in range(len(body.output) - 1 - len(carried))]
    step, goes_on = 0, True
    while goes_on and step != count:
        if step == _MOST_UNROLLED:
            return None
        results = operation.inline(body, [*_heads(operation, step), *carried])
        carried, found = [*results[1 : 1 + len(carried)]], results[1 + len(carried) :]
        for values, value in zip(scanned, found, strict=True):
            values.append(value)
        goes_on = _truth(operation, results[0])
        step += 1
    return [*carried, *(_stacked(operation, values, 0) for values in scanned)]


def _heads(operation: Operation, step: int) -> list[Value]:
    """The number of the step, and a condition that holds."""
    builder = operation.builder
    return [builder.constant(np.array(step, np.int64), "step"), builder.constant(np.array(True), "holds")]


def _nothing(operation: Operation, value: Value) -> Value:
    shape = (0, *(number(extent, value.name) for extent in value.shape))
    from tc.graph.onnx.tensors import dtype_of

    return operation.builder.constant(np.zeros(shape, dtype_of(value.type)), "nothing")


def _stacked(operation: Operation, values: Sequence[Value], axis: int) -> Value:
    """The values along a new axis."""
    builder = operation.builder
    shape = values[0].shape
    rows = [builder.reshape(value, (*shape[:axis], 1, *shape[axis:])) for value in values]
    return concatenated(builder, rows, axis)


def _scan(operation: Operation) -> Sequence[Value]:
    if operation.opset >= 9:
        return _scanned(
            operation, list(map(operation.operand, range(len(operation.operands)))), directions="scan_input_directions"
        )
    if operation.optional(0) is not None:
        raise operation.error("lengths of sequences are not supported; use a Scan of version 9 or later")
    operands = [operation.operand(index) for index in range(1, len(operation.operands))]
    batches = number(operands[0].shape[0], "the number of sequences")
    found = [
        _scanned(operation, [_part(operation, operand, 0, batch) for operand in operands], directions="directions")
        for batch in range(batches)
    ]
    return [_stacked(operation, parts, 0) for parts in zip(*found, strict=True)]


def _scanned(operation: Operation, operands: Sequence[Value], *, directions: str) -> list[Value]:
    body, inputs = operation.graph("body"), operation.integer("num_scan_inputs")
    states, sequences = list(operands[: len(operands) - inputs]), operands[len(operands) - inputs :]
    outputs = len(body.output) - len(states)
    axes = _axes(operation, "scan_input_axes", inputs)
    backwards = operation.list(directions) or (0,) * inputs
    along = [operation.axis(axis, len(value.shape)) for axis, value in zip(axes, sequences, strict=True)]
    length = number(sequences[0].shape[along[0]], "the length of a sequence")
    scanned: list[list[Value]] = [[] for _ in range(outputs)]
    for step in range(length):
        places = [length - 1 - step if back else step for back in backwards]
        rows = [_part(operation, v, axis, at) for v, axis, at in zip(sequences, along, places, strict=True)]
        results = operation.inline(body, [*states, *rows])
        states = [*results[: len(states)]]
        for values, value in zip(scanned, results[len(states) :], strict=True):
            values.append(value)
    if not length and outputs:
        raise operation.error("a scan of no steps has outputs of an unknown shape")
    back = operation.list("scan_output_directions") or (0,) * outputs
    target = _axes(operation, "scan_output_axes", outputs)
    stacks = []
    for values, reverse, axis in zip(scanned, back, target, strict=True):
        at = operation.axis(axis, len(values[0].shape) + 1)
        stacks.append(_stacked(operation, values[::-1] if reverse else values, at))
    return [*states, *stacks]


def _axes(operation: Operation, name: str, count: int) -> tuple[int, ...]:
    return operation.list(name) or (0,) * count


def _part(operation: Operation, value: Value, axis: int, place: int) -> Value:
    """One row along an axis, which goes."""
    rank = len(value.shape)
    starts = [place if at == axis else 0 for at in range(rank)]
    shape = [1 if at == axis else extent for at, extent in enumerate(value.shape)]
    row = operation.builder.slice(value, starts, [1] * rank, shape)
    return operation.builder.reshape(row, (*value.shape[:axis], *value.shape[axis + 1 :]))


BOOL: Final = ScalarType.BOOL
RULES: Final[dict[str, Rule]] = {"If": _branch, "Loop": _loop, "Scan": _scan}

"""Resizing: one axis after the other, in one definition."""

from __future__ import annotations

from collections.abc import Sequence

from tc.graph.ir.builder import Builder
from tc.graph.ir.values import Value
from tc.graph.operators.extents import extents_of
from tc.graph.operators.neural.rounding import real_type, rounded
from tc.graph.operators.neural.stretches import Axis, Interpolation, Stretch
from tc.graph.operators.neural.windows import spatial_sizes, where
from tc.graph.operators.texts import access, definition, iterators, parameter, sizes


def resized(
    builder: Builder, x: Value, stretches: Sequence[Stretch], how: Interpolation, region: Value | None = None
) -> Value:
    """The tensor with other extents along some axes; ``region``: the fractions that stretches refer to."""
    rank = len(x.shape)
    own = ["N", "C", *spatial_sizes(rank - 2)] if 3 <= rank <= 5 else sizes(rank)
    names = [size.lower() for size in own] if 3 <= rank <= 5 else iterators(rank)
    counts = extents_of(builder, [stretch.count for stretch in stretches])
    axes = [
        Axis(own[s.axis], names[s.axis], x.shape[s.axis], count, s, how, real_type(x.type))
        for s, count in zip(stretches, counts.texts, strict=True)
    ]
    statements = [line for axis in axes for line in axis.tables()]
    value = _nearest(axes, names) if how.mode == "nearest" else _interpolated(axes, names, statements)
    if how.positions == "tf_crop_and_resize":
        beyond = round(how.beyond) if x.type.is_integer else how.beyond
        value = f"{' && '.join(axis.within for axis in axes)} ? {value} : {beyond!r}"
    clauses, target = [], list(names)
    for axis in axes:
        if axis.repeats is not None:
            clauses.append(f"r{axis.place} in 0:{axis.repeats}")
            target[axis.stretch.axis] = f"{axis.repeats} * {axis.place} + r{axis.place}"
    if how.mode != "nearest" and x.type.is_integer:
        statements.append(f"{access('V', names)} = {value}{where(clauses)}")
        value, clause = rounded(access("V", names), x.type)
        clauses = [clause]
    else:
        value = f"{x.type}({value})"
    statements.append(f"{access('Y', target)} = {value}{where(clauses)}")
    parameters, operands = [parameter(x.type, own, "X")], [x]
    if region is not None:
        parameters.append(parameter(region.type, ["R"], "region"))
        operands.append(region)
    text = definition("resize", [*parameters, *counts.parameters], ["Y"], statements)
    return builder.call(text, *operands, *counts.operands)[0]


def _nearest(axes: Sequence[Axis], names: Sequence[str]) -> str:
    """The nearest element."""
    found = list(names)
    for axis in axes:
        if axis.repeats is None:
            found[axis.stretch.axis] = f"I{axis.size}({axis.place})"
    return access("X", found)


def _interpolated(axes: Sequence[Axis], names: Sequence[str], statements: list[str]) -> str:
    """What an element is; statements before it make tensors on the way.

    There is less to do where axes that shrink come first.  Of others, the last is the first, as it has the most places
    beside each other.
    """
    shrinking = [axis for axis in axes if axis.shrinks]
    read, value = "X", access("X", names)
    for step, axis in enumerate([*shrinking, *(axis for axis in reversed(axes) if not axis.shrinks)], 1):
        if step > 1 and value != access(read, names):
            read = f"T{step - 1}"
            statements.append(f"{access(read, names)} = {value}")
        value, is_term = axis.combined(read, list(names))
        if is_term:
            read = f"T{step}"
            statements.append(f"{access(read, names)} +=! {value}")
            value = access(read, names)
    return value

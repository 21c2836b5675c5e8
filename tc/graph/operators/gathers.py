"""Elements that indices choose; indices of the greatest and the least; one-hot rows.

Indices below 0 count from the end of their dimension, unless it is said that they do not wrap.  One that is out of
range raises ``ArgumentError`` when the comprehension runs.
"""

from __future__ import annotations

from collections.abc import Sequence

from tc.base.types import ScalarType
from tc.graph.ir.builder import Builder
from tc.graph.ir.sizes import Dimension
from tc.graph.ir.values import Value
from tc.graph.operators.texts import access, declared, definition, iterators, parameter, sizes


def from_end(index: str, extent: object) -> str:
    """An index, where one below 0 counts from the end of a dimension."""
    return f"{index} < 0 ? {index} + {extent} : {index}"


def gathered(
    builder: Builder, operand: Value, indices: Value, axis: int, name: str = "gather", *, wraps: bool = True
) -> Value:
    """The elements at indices along an axis, in whose place the dimensions of the indices come."""
    names, extents = iterators(len(operand.shape)), sizes(len(operand.shape))
    own = iterators(len(indices.shape), "j")
    index = access("I", own)
    place = access("J", own) if wraps else index
    chosen = [*names[:axis], place, *names[axis + 1 :]]
    statements = [f"{place} = {from_end(index, extents[axis])}"] if wraps else []
    statements.append(f"{access('Y', [*names[:axis], *own, *names[axis + 1 :]])} = {access('X', chosen)}")
    parameters = [declared(operand, "X"), declared(indices, "I", "E")]
    (result,) = builder.call(definition(name, parameters, ["Y"], statements), operand, indices)
    return result


def gathered_elements(builder: Builder, operand: Value, indices: Value, axis: int, *, wraps: bool = True) -> Value:
    """For each index an element: it stands along the axis for the place of the index, whose others are its own."""
    rank = len(operand.shape)
    names, extents, own = iterators(rank), sizes(rank), sizes(rank, "E")
    index = access("I", names)
    place = access("J", names) if wraps else index
    chosen = [place if at == axis else name for at, name in enumerate(names)]
    ranges = ", ".join(
        f"{name} in 0:{extent}" for at, (name, extent) in enumerate(zip(names, own, strict=True)) if at != axis
    )
    where = f" where {ranges}" if ranges else ""
    statements = [f"{place} = {from_end(index, extents[axis])}"] if wraps else []
    statements.append(f"{access('Y', names)} = {access('X', chosen)}{where}")
    parameters = [declared(operand, "X"), declared(indices, "I", "E")]
    (result,) = builder.call(definition("gather_elements", parameters, ["Y"], statements), operand, indices)
    return result


def gathered_points(builder: Builder, operand: Value, indices: Value, batches: int = 0) -> Value:
    """The last dimension of the indices holds points: places along as many dimensions, after the batches.

    The result has the batches, the other dimensions of the indices, and what dimensions of the operand are left.
    """
    *outer, width = indices.shape
    count = point_width(width)
    names, extents = iterators(len(operand.shape)), sizes(len(operand.shape))
    own = [*names[:batches], *iterators(len(outer) - batches, "j")]
    lead = [*extents[:batches], *sizes(len(outer) - batches, "E")]
    statements, chosen = [], list(names)
    for place in range(count):
        index = access("I", [*own, place])
        statements.append(f"{access(f'J{place}', own)} = {from_end(index, extents[batches + place])}")
        chosen[batches + place] = access(f"J{place}", own)
    statements.append(f"{access('Y', [*own, *names[batches + count :]])} = {access('X', chosen)}")
    parameters = [declared(operand, "X"), parameter(indices.type, [*lead, count], "I")]
    (result,) = builder.call(definition("gather_points", parameters, ["Y"], statements), operand, indices)
    return result


def arg_reduced(
    builder: Builder,
    operand: Value,
    axis: int,
    *,
    greatest: bool,
    last: bool = False,
    keep: bool = False,
    type: ScalarType = ScalarType.INT64,
) -> Value:
    """The least index along an axis of the greatest or the least value, or the last index of it.

    A value that is NaN counts as the greatest, and as the least.
    """
    rank = len(operand.shape)
    names, extents = iterators(rank), sizes(rank)
    kept = [*names[:axis], *names[axis + 1 :]]
    name, operator = ("argmax", "max=!") if greatest else ("argmin", "min=!")
    # The least distance from the end is the last index.
    place = f"{extents[axis]} - 1 - {names[axis]}" if last else names[axis]
    found = access("K", kept)
    statements = [
        f"({access('M', kept)}, {found}) {operator} ({access('X', names)}, {place})",
        f"{access('Y', kept)} = {type}({f'{extents[axis]} - 1 - {found}' if last else found})",
    ]
    (result,) = builder.call(definition(name, [declared(operand, "X")], ["Y"], statements), operand)
    return builder.reshape(result, _with_one(operand, axis)) if keep else result


def extreme_with_index(builder: Builder, operand: Value, axis: int, *, greatest: bool) -> tuple[Value, ...]:
    """The greatest or the least value along an axis, and its least index as int64; NaN is both.  The axis goes."""
    names = iterators(len(operand.shape))
    kept = [*names[:axis], *names[axis + 1 :]]
    name, operator = ("max", "max=!") if greatest else ("min", "min=!")
    statements = [
        f"({access('Y', kept)}, {access('K', kept)}) {operator} ({access('X', names)}, {names[axis]})",
        f"{access('I', kept)} = int64({access('K', kept)})",
    ]
    return builder.call(definition(name, [declared(operand, "X")], ["Y", "I"], statements), operand)


def _with_one(operand: Value, axis: int) -> tuple[Dimension, ...]:
    return tuple(1 if at == axis else extent for at, extent in enumerate(operand.shape))


def one_hot(builder: Builder, indices: Value, depth: int, axis: int, values: Value) -> Value:
    """A new axis with so many elements: ``values[1]`` where its place is the index, and ``values[0]`` elsewhere.

    An index that is out of range stands for no place.
    """
    own = iterators(len(indices.shape), "j")
    place = f"int64({access('I', own)})"
    result = access("Y", [*own[:axis], "d", *own[axis:]])
    statements = [
        f"{access('J', own)} = {from_end(place, depth)}",
        f"{result} = {access('J', own)} == d ? V(1) : V(0) where d in 0:{depth}",
    ]
    parameters = [declared(indices, "I", "E"), parameter(values.type, [2], "V")]
    (made,) = builder.call(definition("one_hot", parameters, ["Y"], statements), indices, values)
    return made


def point_width(width: Dimension) -> int:
    """How many dimensions the points of indices choose from."""
    from tc.graph.ir.sizes import number

    return number(width, "the last dimension of the indices")


def flagged(builder: Builder, flags: Value) -> Sequence[Value]:
    """The places of flags that hold, in order, then zeros; and how many hold."""
    statements = [
        "C(i) +=! int64(A(j)) where i in 0:N, j in 0:i",
        "P(C(i)) +=! A(i) ? int64(i) : 0",  # what adds nothing comes to a later place
        "K +=! int64(A(i))",
    ]
    text = definition("flagged", [parameter(flags.type, ["N"], "A")], ["int64(N) P", "K"], statements)
    return builder.call(text, flags)

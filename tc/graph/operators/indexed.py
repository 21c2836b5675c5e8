"""Reading and writing where several tensors of indices say, each for one dimension, as NumPy does.

The indices are broadcast to one shape.  Those below 0 count from the end of their dimension; one that is out of range
raises ``ArgumentError`` when the comprehension runs.
"""

from __future__ import annotations

from collections.abc import Sequence

from tc.graph.ir.builder import Builder
from tc.graph.ir.sizes import Shape, elements
from tc.graph.ir.values import Value
from tc.graph.operators.broadcasts import spread
from tc.graph.operators.gathers import from_end
from tc.graph.operators.pointwise import broadcast_shape
from tc.graph.operators.scatters import REDUCTIONS
from tc.graph.operators.texts import access, declared, definition, iterators, parameter, sizes


def indexed(builder: Builder, operand: Value, indices: Sequence[Value | None]) -> Value:
    """The elements at the indices; None for all of a dimension, as of those behind the last index.

    The dimensions of the indices come in the place of theirs where these are neighbours, and else first.
    """
    chosen, shape = _chosen(builder, indices)
    names, own = iterators(len(operand.shape)), iterators(len(shape), "j")
    extents, parameters, statements = sizes(len(operand.shape)), [declared(operand, "X")], []
    places = list(names)
    for axis, index in chosen.items():
        given, at = spread(index, shape, f"I{axis}", own, sizes(len(shape), "E"))
        parameters.append(given)
        # The axes of one index may be fewer than those of the result, where another one repeats it.
        held = [name for name in at if name != 0]
        places[axis] = access(f"J{axis}", held)
        statements.append(f"{places[axis]} = {from_end(access(f'I{axis}', at), extents[axis])}")
    first = _place(list(chosen))
    kept = [name for axis, name in enumerate(names) if axis not in chosen]
    result = [*kept[:first], *own, *kept[first:]]
    statements.append(f"{access('Y', result)} = {access('X', places)}")
    (found,) = builder.call(definition("index", parameters, ["Y"], statements), operand, *chosen.values())
    return found


def written(
    builder: Builder,
    operand: Value,
    indices: Sequence[Value | None],
    updates: Value,
    reduction: str | None = None,
) -> Value:
    """The operand with updates at the indices; their shape is broadcast to that of what ``indexed`` reads there.

    ``reduction``: what becomes of an element and its updates; None where the last of them replaces it.
    """
    chosen, shape = _chosen(builder, indices)
    axes, count = list(chosen), elements(shape)
    rest = [axis for axis in range(len(operand.shape)) if axis not in chosen]
    order = [*axes, *rest]
    moved = builder.permute(operand, order)
    others = moved.shape[len(axes) :]
    if count == 0 or elements(operand.shape) == 0:
        return operand
    first = _place(axes)
    spread_updates = builder.expand(updates, (*others[:first], *shape, *others[first:]))
    outer = range(first, first + len(shape))
    front = builder.permute(
        spread_updates, [*outer, *(at for at in range(len(spread_updates.shape)) if at not in outer)]
    )
    flat = [builder.reshape(builder.expand(index, shape), (count,)) for index in chosen.values()]
    text = _writing(moved, flat, updates, reduction)
    (found,) = builder.call(text, moved, builder.reshape(front, (count, *others)), *flat)
    return builder.permute(found, [order.index(axis) for axis in range(len(order))])


def _writing(moved: Value, indices: Sequence[Value], updates: Value, reduction: str | None) -> str:
    """The definition for indices of one dimension, which choose along the first dimensions."""
    rank = len(moved.shape)
    names, extents = iterators(rank), sizes(rank)
    rest, chosen = names[len(indices) :], [f"J{axis}(n)" for axis in range(len(indices))]
    parameters = [declared(moved, "X"), parameter(updates.type, ["N", *extents[len(indices) :]], "U")]
    parameters += [parameter(index.type, ["N"], f"I{axis}") for axis, index in enumerate(indices)]
    statements = [f"{place} = {from_end(f'I{axis}(n)', extents[axis])}" for axis, place in enumerate(chosen)]
    update = access("U", ["n", *rest])
    if reduction is not None:
        statements.append(f"{access('Y', names)} = {access('X', names)}")
        statements.append(f"{access('Y', [*chosen, *rest])} {REDUCTIONS[reduction]} {update}")
    else:
        ranges = ", ".join(f"{place} in 0:{extents[axis]}" for axis, place in enumerate(chosen))
        last = access("L", names[: len(indices)])
        statements.append(f"{access('L', chosen)} max=! int32(n) where {ranges}")
        update = access("U", [f"max({last}, 0)", *rest])
        statements.append(f"{access('Y', names)} = {last} >= 0 ? {update} : {access('X', names)}")
    return definition("index_put", parameters, [declared(moved, "Y")], statements)


def _chosen(builder: Builder, indices: Sequence[Value | None]) -> tuple[dict[int, Value], Shape]:
    """The indices by their dimensions, and the shape to which they are broadcast."""
    chosen = {axis: index for axis, index in enumerate(indices) if index is not None}
    return chosen, broadcast_shape([index.shape for index in chosen.values()], builder.origin or "index")


def _place(axes: Sequence[int]) -> int:
    """Before how many of the other dimensions those of the indices come."""
    neighbours = all(axis == axes[0] + at for at, axis in enumerate(axes))
    return axes[0] if axes and neighbours else 0

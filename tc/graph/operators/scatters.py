"""Copies of tensors in which indices say what is written.

Indices below 0 count from the end of their dimension, unless it is said that they do not wrap.  One that is out of
range raises ``ArgumentError`` when the comprehension runs.  Where several updates come to one element and none is added
to the other, the last one counts: the greatest place that writes there is found first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tc.graph.ir.builder import Builder
from tc.graph.ir.sizes import elements
from tc.graph.ir.values import Value
from tc.graph.operators.gathers import from_end, point_width
from tc.graph.operators.texts import access, declared, definition, iterators, parameter, sizes

# What becomes of an element and its updates, as a reduction of the language.
REDUCTIONS: Final = {"add": "+=", "mul": "*=", "max": "max=", "min": "min="}


def scattered_elements(
    builder: Builder,
    operand: Value,
    indices: Value,
    updates: Value,
    axis: int,
    reduction: str | None = None,
    *,
    wraps: bool = True,
) -> Value:
    """For each index an update: it goes to the index along the axis, and along the others to its own place."""
    if elements(indices.shape) == 0:
        return operand
    rank = len(operand.shape)
    names, extents = iterators(rank), sizes(rank)
    # Where there are as many indices as elements, no place lies outside of them.
    fewer = [at for at in range(rank) if at != axis and indices.shape[at] != operand.shape[at]]
    own = [f"E{at}" if at in fewer or at == axis else extents[at] for at in range(rank)]
    index = access("I", names)
    places = access("J", names) if wraps else index
    target = [places if at == axis else name for at, name in enumerate(names)]
    statements = [f"{places} = {from_end(index, extents[axis])}"] if wraps else []
    if reduction is not None:
        statements.append(f"{access('Y', names)} = {access('X', names)}")
        statements.append(f"{access('Y', target)} {REDUCTIONS[reduction]} {access('U', names)}")
    else:
        statements.append(f"{access('L', target)} max=! int32({names[axis]}) where {places} in 0:{extents[axis]}")
        last = access("L", names)
        update = access("U", [f"max({last}, 0)" if at == axis else name for at, name in enumerate(names)])
        chosen = f"{last} >= 0 ? {update} : {access('X', names)}"
        for at in fewer:
            chosen = f"{names[at]} < {own[at]} ? ({chosen}) : {access('X', names)}"
        ranges = ", ".join(f"{name} in 0:{extent}" for name, extent in zip(names, extents, strict=True))
        statements.append(f"{access('Y', names)} = {chosen} where {ranges}")
    parameters = [declared(operand, "X"), parameter(indices.type, own, "I"), parameter(updates.type, own, "U")]
    (result,) = builder.call(
        definition("scatter", parameters, [declared(operand, "Y")], statements), operand, indices, updates
    )
    return result


def scattered_points(
    builder: Builder, operand: Value, indices: Value, updates: Value, reduction: str | None = None
) -> Value:
    """The last dimension of the indices holds points, each of which chooses what an update goes to."""
    if elements(indices.shape) == 0 or elements(updates.shape) == 0:
        return operand
    *outer, width = indices.shape
    count, points = point_width(width), elements(outer)
    indices = builder.reshape(indices, (points, count))
    updates = builder.reshape(updates, (points, *operand.shape[count:]))
    names, extents = iterators(len(operand.shape)), sizes(len(operand.shape))
    rest, chosen = names[count:], [f"J{place}(n)" for place in range(count)]
    statements = [f"{index} = {from_end(f'I(n, {place})', extents[place])}" for place, index in enumerate(chosen)]
    if reduction is not None:
        statements.append(f"{access('Y', names)} = {access('X', names)}")
        statements.append(f"{access('Y', [*chosen, *rest])} {REDUCTIONS[reduction]} {access('U', ['n', *rest])}")
    else:
        ranges = ", ".join(f"{index} in 0:{extents[place]}" for place, index in enumerate(chosen))
        last = access("L", names[:count])
        statements.append(f"{access('L', chosen)} max=! int32(n) where {ranges}")
        update = access("U", [f"max({last}, 0)", *rest])
        statements.append(f"{access('Y', names)} = {last} >= 0 ? {update} : {access('X', names)}")
    parameters = [
        declared(operand, "X"),
        parameter(indices.type, ["N", count], "I"),
        parameter(updates.type, ["N", *extents[count:]], "U"),
    ]
    (result,) = builder.call(
        definition("scatter_points", parameters, [declared(operand, "Y")], statements), operand, indices, updates
    )
    return result


def scattered_rows(
    builder: Builder, operand: Value, updates: Value, starts: Value | None, axis: int, *, wraps: bool
) -> Value:
    """For each of the batches, which are the first dimension, rows in a line along an axis, from its start on.

    ``starts``: where those of each batch begin; None for 0.  ``wraps``: what comes after the last row is the first.
    """
    if elements(updates.shape) == 0:
        return operand
    names, extents = iterators(len(operand.shape)), sizes(len(operand.shape))
    own = ["S" if at == axis else extent for at, extent in enumerate(extents)]
    first = "0" if starts is None else "W(i0)"
    place = f"({first} + s) % {extents[axis]}" if wraps else f"{first} + s"
    last = f"L(i0, {names[axis]})"
    update = access("U", [f"max({last}, 0)" if at == axis else name for at, name in enumerate(names)])
    statements = [
        f"J(i0, s) = {place} where i0 in 0:D0, s in 0:S",
        f"L(i0, J(i0, s)) max=! int32(s) where J(i0, s) in 0:{extents[axis]}",
        f"{access('Y', names)} = {last} >= 0 ? {update} : {access('X', names)}",
    ]
    parameters = [declared(operand, "X"), parameter(updates.type, own, "U")]
    operands: Sequence[Value] = [operand, updates]
    if starts is not None:
        parameters.append(parameter(starts.type, ["D0"], "W"))
        operands = [*operands, starts]
    (result,) = builder.call(definition("scatter_rows", parameters, ["Y"], statements), *operands)
    return result

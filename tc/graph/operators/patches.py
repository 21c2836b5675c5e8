"""Parts of tensors that are read or replaced: diagonals, overlapping windows, elements by strides, flags."""

from __future__ import annotations

from collections.abc import Sequence

from tc.graph.ir.builder import Builder
from tc.graph.ir.sizes import Shape, elements
from tc.graph.ir.values import Value
from tc.graph.operators.texts import access, declared, definition, iterators, literal, parameter, sizes


def with_slice(builder: Builder, operand: Value, updates: Value, axis: int, start: int, step: int) -> Value:
    """The operand with updates at every ``step``-th place along an axis from ``start`` on."""
    names, extents = iterators(len(operand.shape)), sizes(len(operand.shape))
    place, count = names[axis], updates.shape[axis]
    own = ["E" if at == axis else extent for at, extent in enumerate(extents)]
    moved = f"{place} - {start}" if start else place
    inside = [f"{place} >= {start}"] if start else []
    inside.append(f"{place} < {start + step * count}")
    if step > 1:
        inside.append(f"({moved}) % {step} == 0")
        moved = f"({moved}) / {step}"
    update = access("U", [moved if at == axis else name for at, name in enumerate(names)])
    ranges = ", ".join(f"{name} in 0:{extent}" for name, extent in zip(names, extents, strict=True))
    value = f"{' && '.join(inside)} ? {update} : {access('X', names)}"
    text = definition(
        "slice_scatter",
        [declared(operand, "X"), parameter(updates.type, own, "U")],
        ["Y"],
        [f"{access('Y', names)} = {value} where {ranges}"],
    )
    (found,) = builder.call(text, operand, updates)
    return found


def diagonal(builder: Builder, operand: Value, offset: int) -> Value:
    """A diagonal of the matrices in the last two dimensions; ``offset``: 0 for the main one, greater above it."""
    names = iterators(len(operand.shape) - 2)
    row, column, count = _corner(operand.shape, offset)
    read = access("X", [*names, f"k + {row}", f"k + {column}"])
    statement = f"{access('Y', [*names, 'k'])} = {read} where k in 0:{count}"
    (found,) = builder.call(definition("diagonal", [declared(operand, "X")], ["Y"], [statement]), operand)
    return found


def with_diagonal(builder: Builder, operand: Value, updates: Value, offset: int) -> Value:
    """The operand with updates on a diagonal of the matrices in its last two dimensions."""
    names, extents = iterators(len(operand.shape)), sizes(len(operand.shape))
    row, _, count = _corner(operand.shape, offset)
    *lead, i, j = names
    update = access("U", [*lead, f"{i} - {row}"])
    ranges = ", ".join(f"{name} in 0:{extent}" for name, extent in zip(names, extents, strict=True))
    inside = f"{j} - {i} == {offset} && {i} >= {row} && {i} < {row + count}"
    statement = f"{access('Y', names)} = {inside} ? {update} : {access('X', names)} where {ranges}"
    parameters = [declared(operand, "X"), parameter(updates.type, [*extents[:-2], "E"], "U")]
    (found,) = builder.call(definition("diagonal_scatter", parameters, ["Y"], [statement]), operand, updates)
    return found


def _corner(shape: Shape, offset: int) -> tuple[int, int, int]:
    """Where a diagonal begins, and how many elements it has."""
    rows, columns = (int(extent) for extent in shape[-2:])  # type: ignore[arg-type]  # they are numbers here
    row, column = max(-offset, 0), max(offset, 0)
    return row, column, max(min(rows - row, columns - column), 0)


def windows_along(builder: Builder, operand: Value, axis: int, size: int, step: int, count: int) -> Value:
    """Windows of neighbours along an axis, whose elements are a new last dimension."""
    names = iterators(len(operand.shape))
    read = access("X", [f"{step} * {name} + k" if at == axis else name for at, name in enumerate(names)])
    statement = f"{access('Y', [*names, 'k'])} = {read} where {names[axis]} in 0:{count}, k in 0:{size}"
    (found,) = builder.call(definition("unfold", [declared(operand, "X")], ["Y"], [statement]), operand)
    return found


def windows_summed(builder: Builder, windows: Value, axis: int, step: int, extent: int) -> Value:
    """The adjoint of ``windows_along``: what comes to each of so many places along the axis."""
    names, extents = iterators(len(windows.shape) - 1), sizes(len(windows.shape) - 1)
    place = names[axis]
    source = f"({place} - k) / {step}"
    read = access("G", [*(source if at == axis else name for at, name in enumerate(names)), "k"])
    clauses = [f"{place} in 0:{extent}", f"({place} - k) % {step} == 0"]
    clauses.append(f"{place} - k in 0:{step} * {extents[axis]} - {step - 1}")
    statement = f"{access('Y', names)} +=! {read} where {', '.join(clauses)}"
    parameters = [parameter(windows.type, [*extents, "K"], "G")]
    (found,) = builder.call(definition("unfold_gradient", parameters, ["Y"], [statement]), windows)
    return found


def strided(builder: Builder, flat: Value, shape: Sequence[int], strides: Sequence[int], first: int) -> Value:
    """Elements of a tensor of one dimension, so many of them apart along each dimension of the result."""
    names = iterators(len(shape))
    place = " + ".join([str(first), *(f"{stride} * {name}" for stride, name in zip(strides, names, strict=True))])
    ranges = ", ".join(f"{name} in 0:{extent}" for name, extent in zip(names, shape, strict=True))
    where = f" where {ranges}" if ranges else ""
    text = definition("as_strided", [declared(flat, "X")], ["Y"], [f"{access('Y', names)} = X({place}){where}"])
    (found,) = builder.call(text, flat)
    return found


def with_flagged(builder: Builder, operand: Value, flags: Value, updates: Value) -> Value:
    """A tensor of one dimension, in which updates take the place of flagged elements in order; there are enough."""
    statements = [*_PLACES, "Y(i) = F(i) ? U(P(i)) : X(i)"]
    parameters = [parameter(operand.type, ["N"], "X"), parameter(flags.type, ["N"], "F")]
    parameters.append(parameter(updates.type, ["M"], "U"))
    (found,) = builder.call(definition("masked_scatter", parameters, ["Y"], statements), operand, flags, updates)
    return found


def flagged_first(builder: Builder, operand: Value, flags: Value, count: int) -> Value:
    """The flagged elements of a tensor of one dimension in order, and zeros behind them, so many in all."""
    zero = literal(0, operand.type)
    statements = [*_PLACES, f"Y(P(i)) +=! F(i) ? X(i) : {zero} where P(i) in 0:{count}"]
    parameters = [parameter(operand.type, ["N"], "X"), parameter(flags.type, ["N"], "F")]
    (found,) = builder.call(definition("flagged_first", parameters, ["Y"], statements), operand, flags)
    return found


# How many flags hold before each element; 0 for one without.
_PLACES = (
    "C(i) +=! int64(F(j)) where i in 0:N, j in 0:i",
    "P(i) = F(i) ? C(i) : 0",
)


def tensor_of_one(builder: Builder, value: Value) -> Value:
    """The elements in one dimension."""
    return builder.reshape(value, (elements(value.shape),))

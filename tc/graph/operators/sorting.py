"""The greatest or the least elements along an axis, in order.

Of equal elements the first comes first.  NaN counts as infinity by ``top``, and is greater by ``first_sorted``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeVar

from tc.base.types import ScalarType
from tc.graph.ir.builder import Builder
from tc.graph.ir.values import Value
from tc.graph.operators.gathers import gathered_elements
from tc.graph.operators.radix import argsorted, ordered
from tc.graph.operators.texts import access, declared, definition, iterators, literal, sizes

T = TypeVar("T")
# Where so many elements or more are there for each that is wanted, a few are found one after the other.
_FEW: Final = 8
_MOST_TURNS: Final = 128
# More elements than these are not all compared with all.
_MOST_RANKED: Final = 512


def top(builder: Builder, operand: Value, count: int, axis: int, *, largest: bool) -> Sequence[Value]:
    """The first elements in descending order, or in ascending order, and their indices."""
    extent, rank = operand.shape[axis], len(operand.shape)
    if count <= _MOST_TURNS and (not isinstance(extent, int) or count * _FEW <= extent):
        order = _by_turns(rank, axis, count, operand.type, largest)
    elif isinstance(extent, int) and extent <= _MOST_RANKED:
        order = _by_ranks(rank, axis, largest)
    else:
        indices = argsorted(builder, operand, axis, descending=largest)
        first = builder.slice(indices, [0] * rank, [1] * rank, _along(operand.shape, axis, count))
        return gathered_elements(builder, operand, first, axis), first
    names = iterators(rank)
    key = access("X", names)
    wanted = _along(names, axis, "r")
    picked = _along(names, axis, access("O", wanted))
    statements = [
        f"{access('K', names)} = {_without_nan(key, operand.type)}",
        *order,
        f"{access('Y', wanted)} = {access('X', picked)} where r in 0:{count}",
        f"{access('I', wanted)} = int64({access('O', wanted)}) where r in 0:{count}",
    ]
    name = "largest" if largest else "smallest"
    return builder.call(definition(name, [declared(operand, "X")], ["Y", "I"], statements), operand)


def first_sorted(builder: Builder, operand: Value, count: int, axis: int, *, largest: bool) -> tuple[Value, Value]:
    """The first elements in descending order, or in ascending order, and their indices; NaN is the greatest."""
    if operand.type.is_integer:
        values, indices = top(builder, operand, count, axis, largest=largest)
        return values, indices
    _, indices = top(builder, ordered(builder, operand), count, axis, largest=largest)
    return gathered_elements(builder, operand, indices, axis, wraps=False), indices


def median(builder: Builder, operand: Value, axis: int, *, ignores_nan: bool) -> tuple[Value, Value]:
    """The middle element along an axis that has elements, the lesser of two, and its index; the axis has one.

    NaN is the median where there is one; ``ignores_nan``: only where there is nothing else.
    """
    rank = len(operand.shape)
    names, extents = iterators(rank), sizes(rank)
    _, order = first_sorted(builder, operand, int(operand.shape[axis]), axis, largest=False)  # type: ignore[arg-type]
    one = _along(names, axis, "r")
    kept = [name for at, name in enumerate(names) if at != axis]
    count, place, index = (access(letter, kept) for letter in "CPJ")
    # The first NaN comes after all numbers.
    found = f"max({count} - 1, 0) / 2" if ignores_nan else f"{count} < {extents[axis]} ? {count} : ({count} - 1) / 2"
    element = access("X", names)
    statements = [
        f"{count} +=! int32({element} == {element})",
        f"{place} = {found}",
        f"{index} = {access('O', _along(names, axis, place))}",
        f"{access('I', one)} = {index} where r in 0:1",
        f"{access('Y', one)} = {access('X', _along(names, axis, index))} where r in 0:1",
    ]
    parameters = [declared(operand, "X"), declared(order, "O")]
    values, indices = builder.call(definition("median", parameters, ["Y", "I"], statements), operand, order)
    return values, indices


def _along(names: Sequence[T], axis: int, other: T) -> list[T]:
    """The names or sizes, with another one for the axis."""
    return [*names[:axis], other, *names[axis + 1 :]]


def _without_nan(element: str, type: ScalarType) -> str:
    if not type.is_floating:
        return element
    return f"{element} == {element} ? {element} : {literal(float('inf'), type)}"


def _before(one: str, place: str, other: str, after: str, *, largest: bool) -> str:
    """Whether the element at a place comes before another one."""
    return f"{one} {'>' if largest else '<'} {other} || {one} == {other} && {place} < {after}"


def _by_ranks(rank: int, axis: int, largest: bool) -> list[str]:
    """The rank of an element is how many come before it: all are compared with all."""
    names, extents = iterators(rank), sizes(rank)
    other = access("K", _along(names, axis, "j"))
    before = _before(other, "j", access("K", names), names[axis], largest=largest)
    ranks = access("R", names)
    return [
        f"{ranks} +=! int32({before})",
        f"{access('O', _along(names, axis, ranks))} +=! int64({names[axis]}) where {ranks} in 0:{extents[axis]}",
    ]


def _by_turns(rank: int, axis: int, count: int, type: ScalarType, largest: bool) -> list[str]:
    """In each turn the first of those that come after the last one."""
    names, extents = iterators(rank), sizes(rank)
    key, place, extent = access("K", names), names[axis], extents[axis]
    found, index = (access(name, _along(names, axis, "t")) for name in "MO")
    last, last_index = (access(name, _along(names, axis, "t - 1")) for name in "MO")
    after = _before(last, last_index, key, place, largest=largest)
    neutral = literal(_neutral(type, largest), type)
    ranges = ", ".join(f"{name} in 0:{size}" for name, size in zip(names, extents, strict=True))
    waits = access("W", names)
    return [
        f"for t in 0:{count} {{",
        f"    {waits} = t == 0 ? bool(1) : {after} where {ranges}",
        f"    {found} {'max=!' if largest else 'min=!'} {waits} ? {key} : {neutral}",
        f"    {index} min=! {waits} && {key} == {found} ? int64({place}) : int64({extent})",
        "}",
    ]


def _neutral(type: ScalarType, largest: bool) -> float:
    if type.is_floating:
        return float("-inf" if largest else "inf")
    return type.minimum if largest else type.maximum

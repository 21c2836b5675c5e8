"""Running reductions along an axis, and sequences that are reversed."""

from __future__ import annotations

from tc.base.types import ScalarType
from tc.graph.ir.builder import Builder
from tc.graph.ir.values import Value
from tc.graph.operators.texts import access, declared, definition, iterators, parameter, sizes


def scanned(
    builder: Builder,
    operand: Value,
    axis: int,
    operator: str = "+=!",
    *,
    exclusive: bool = False,
    reverse: bool = False,
) -> Value:
    """Each element, reduced with those before it along an axis.

    ``exclusive``: without the element itself.  ``reverse``: with those after it.
    """
    names, extents = iterators(len(operand.shape)), sizes(len(operand.shape))
    place, extent = names[axis], extents[axis]
    first, last = (
        (f"{place} + 1" if exclusive else place, extent) if reverse else ("0", place if exclusive else f"{place} + 1")
    )
    term = access("X", [*names[:axis], "j", *names[axis + 1 :]])
    statement = f"{access('Y', names)} {operator} {term} where {place} in 0:{extent}, j in {first}:{last}"
    name = {"+=!": "cumsum", "*=!": "cumprod"}.get(operator, "scan")
    result = parameter(operand.type, extents, "Y")
    (found,) = builder.call(definition(name, [declared(operand, "X")], [result], [statement]), operand)
    return found


def scanned_with_places(builder: Builder, operand: Value, axis: int, operator: str) -> tuple[Value, ...]:
    """The greatest element so far along an axis, or the least by ``min=!``, and the last place that has it.

    From the first NaN on, it is NaN.
    """
    names, extents = iterators(len(operand.shape)), sizes(len(operand.shape))
    ranges = f"{names[axis]} in 0:{extents[axis]}, j in 0:{names[axis]} + 1"
    term, found = (access(letter, [*names[:axis], "j", *names[axis + 1 :]]) for letter in "XY")
    statements = [
        f"{access('Y', names)} {operator} {term} where {ranges}",
        f"{access('I', names)} max=! {term} == {found} || {term} != {term} ? int64(j) : 0 where {ranges}",
    ]
    text = definition(
        f"cum{operator[:3]}", [declared(operand, "X")], ["Y", f"int64({','.join(extents)}) I"], statements
    )
    return builder.call(text, operand)


def log_sum_scanned(builder: Builder, operand: Value, axis: int) -> Value:
    """The logarithm of the running sum of exponentials along an axis that has elements, carried in float64."""
    names, extents = iterators(len(operand.shape)), sizes(len(operand.shape))
    wide = ScalarType.FLOAT64

    def at(letter: str, place: str) -> str:
        return access(letter, [*names[:axis], place, *names[axis + 1 :]])

    both = f"p = {at('S', 't - 1')}, q = {wide}({at('X', 't')})"
    # Two equal infinities have no difference.
    more = "p == q ? p + 0.6931471805599453 : max(p, q) + log1p(exp(min(p, q) - max(p, q)))"
    statements = [
        f"{at('S', '0')} = {wide}({at('X', '0')})",
        f"for t in 1:{extents[axis]} {{ {at('S', 't')} = {more} where {both} }}",
        f"{access('Y', names)} = {operand.type}({access('S', names)})",
    ]
    (found,) = builder.call(definition("logcumsumexp", [declared(operand, "X")], ["Y"], statements), operand)
    return found


def reversed_sequences(builder: Builder, operand: Value, lengths: Value, *, along: int, batches: int) -> Value:
    """Each of the batches with its first elements along an axis, as many as its length, in the opposite order."""
    names = iterators(len(operand.shape))
    place, batch = names[along], names[batches]
    extent, count = sizes(len(operand.shape))[along], sizes(len(operand.shape))[batches]
    index = f"J({batch}, {place})"
    chosen = [index if at == along else name for at, name in enumerate(names)]
    statements = [
        f"{index} = {place} < L({batch}) ? L({batch}) - 1 - {place} : {place} where {place} in 0:{extent}",
        f"{access('Y', names)} = {access('X', chosen)}",
    ]
    parameters = [declared(operand, "X"), parameter(lengths.type, [count], "L")]
    (found,) = builder.call(definition("reverse_sequence", parameters, ["Y"], statements), operand, lengths)
    return found

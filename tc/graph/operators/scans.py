"""Running reductions along an axis, and sequences that are reversed."""

from __future__ import annotations

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

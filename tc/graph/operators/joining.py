"""Concatenation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tc.base.frozen import frozen
from tc.graph.ir.builder import Builder
from tc.graph.ir.values import Value
from tc.graph.operators.texts import access, definition, iterators, parameter, sizes

# That parts do not overlap is proven of all pairs of them.
MOST_PARTS: Final = 32


@frozen
class Concatenated:
    """The operands one after the other along an axis."""

    axis: int

    def text(self, operands: Sequence[Value]) -> str:
        """The definition, which writes each operand behind those before it."""
        rank = len(operands[0].shape)
        names, extents = iterators(rank), sizes(rank)
        parameters, statements, before = [], [], ""
        for number, operand in enumerate(operands):
            own = [f"E{number}" if at == self.axis else extent for at, extent in enumerate(extents)]
            parameters.append(parameter(operand.type, own, f"A{number}"))
            target = [f"{name}{before}" if at == self.axis else name for at, name in enumerate(names)]
            statements.append(f"{access('Y', target)} = {access(f'A{number}', names)}")
            before += f" + E{number}"
        return definition("concat", parameters, ["Y"], statements)


def concatenated(builder: Builder, operands: Sequence[Value], axis: int) -> Value:
    """The operands along an axis; a single one is itself.  Many are first concatenated to some, which takes a copy."""
    if len(operands) == 1:
        return operands[0]
    if len(operands) <= MOST_PARTS:
        return builder.apply(Concatenated(axis), *operands)
    starts = range(0, len(operands), MOST_PARTS)
    return concatenated(builder, [concatenated(builder, operands[at : at + MOST_PARTS], axis) for at in starts], axis)

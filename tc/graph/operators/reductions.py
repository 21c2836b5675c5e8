"""Reductions over any axes."""

from __future__ import annotations

from collections.abc import Sequence

from tc.base.frozen import frozen
from tc.base.types import ScalarType
from tc.graph.ir.builder import Builder
from tc.graph.ir.values import Value
from tc.graph.operators.texts import access, definition, iterators, parameter, sizes


@frozen
class Reduced:
    """``operator`` over the axes of ``term``, where ``{x}`` is an element; the axes go.

    ``result``: what becomes of it, where ``{s}`` is the reduction and ``{n}`` how many elements it has.  ``type``:
    of the result.
    """

    name: str
    axes: tuple[int, ...]
    operator: str
    term: str
    result: str
    type: ScalarType

    def text(self, operands: Sequence[Value]) -> str:
        """The definition; where nothing is reduced, each element is the only term."""
        (operand,) = operands
        names, extents = iterators(len(operand.shape)), sizes(len(operand.shape))
        kept = [name for axis, name in enumerate(names) if axis not in self.axes]
        value = self.term.format(x=access("A", names))
        count = " * ".join(extents[axis] for axis in self.axes) or "1"
        # Where the reduction has the type of the result, it takes its place: a register holds both.
        in_place = self.term == "{x}" and operand.type is self.type and (self.result == "{s}" or not self.type.is_half)
        reduction = access("Y" if in_place else "S", kept)
        statements = [f"{reduction} {self.operator if self.axes else '='} {value}"]
        if not in_place or self.result != "{s}":
            final = self.result.format(s=reduction, n=f"({count})")
            statements.append(f"{access('Y', kept)} = {self.type}({final})")
        return definition(self.name, [parameter(operand.type, extents, "A")], ["Y"], statements)


def reduced(
    builder: Builder,
    name: str,
    operand: Value,
    axes: Sequence[int],
    *,
    keep: bool,
    operator: str = "+=!",
    term: str = "{x}",
    result: str | None = None,
    type: ScalarType | None = None,
) -> Value:
    """The result of ``Reduced``.  ``keep``: the axes stay, with one element."""
    own = operand.type if type is None else type
    found = builder.apply(Reduced(name, tuple(sorted(axes)), operator, term, result or "{s}", own), operand)
    if not keep:
        return found
    return builder.reshape(found, tuple(1 if axis in axes else extent for axis, extent in enumerate(operand.shape)))

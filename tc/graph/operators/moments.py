"""Mean and variance over any axes."""

from __future__ import annotations

from collections.abc import Sequence

from tc.base.frozen import frozen
from tc.graph.ir.builder import Builder
from tc.graph.ir.values import Value
from tc.graph.operators.texts import access, definition, iterators, parameter, sizes, widened


@frozen
class Moments:
    """The mean of squares of differences from the mean, over the axes, which go.

    ``correction`` is taken off the count; where nothing is left the variance is infinite or NaN.  ``mean``: the mean is
    a result, too.
    """

    axes: tuple[int, ...]
    correction: float
    mean: bool

    def text(self, operands: Sequence[Value]) -> str:
        """The definition, whose results are ``Y`` and ``T``: two passes, so that nothing cancels."""
        (operand,) = operands
        names, extents = iterators(len(operand.shape)), sizes(len(operand.shape))
        kept = [name for axis, name in enumerate(names) if axis not in self.axes]
        sum_of = "+=!" if self.axes else "="
        count = " * ".join(extents[axis] for axis in self.axes) or "1"
        x, (total, mean, squares) = widened(access("A", names), operand.type), (access(one, kept) for one in "SMQ")
        left = f"({count})" if self.correction == 0 else f"max({count} - {self.correction}, 0)"
        statements = [
            f"{total} {sum_of} {x}",
            f"{mean} = {total} / ({count})",
            f"{squares} {sum_of} ({x} - {mean}) * ({x} - {mean})",
            f"{access('Y', kept)} = {operand.type}({squares} / {left})",
        ]
        if self.mean:
            statements.append(f"{access('T', kept)} = {operand.type}({mean})")
        results = ["Y", "T"] if self.mean else ["Y"]
        return definition("variance", [parameter(operand.type, extents, "A")], results, statements)


def moments(
    builder: Builder, operand: Value, axes: Sequence[int], correction: float, *, keep: bool, mean: bool
) -> list[Value]:
    """The results of ``Moments``: the variance, and the mean.  ``keep``: the axes stay, with one element."""
    operator = Moments(tuple(sorted(axes)), correction, mean)
    found = builder.call(operator.text([operand]), operand, operator=operator)
    if not keep:
        return list(found)
    shape = tuple(1 if axis in axes else extent for axis, extent in enumerate(operand.shape))
    return [builder.reshape(one, shape) for one in found]

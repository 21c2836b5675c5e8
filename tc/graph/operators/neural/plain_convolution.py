"""Convolutions of two axes without groups and dilation, which other forms of them start from."""

from __future__ import annotations

import math

from tc.base.frozen import frozen
from tc.base.types import ScalarType
from tc.graph.ir.values import Value
from tc.graph.operators.neural.windows import offset
from tc.graph.operators.texts import definition


@frozen
class PlainConvolution:
    """Of an image (N, C, H, W) with weights (F, C, R, S), of dilation 1.

    ``before``: how many rows and columns of padding come first.  ``result``: the rows and columns of the result.
    """

    image: tuple[int, int, int, int]
    weights: tuple[int, int, int, int]
    before: tuple[int, int]
    result: tuple[int, int]
    strides: tuple[int, int] = (1, 1)

    @property
    def cost(self) -> int:
        """In multiply-adds."""
        return self.image[0] * math.prod(self.weights) * math.prod(self.result)

    def is_within(self, padded: tuple[int, int]) -> bool:
        """Whether so many rows and columns hold the whole image."""
        inside = zip(self.before, self.image[2:], padded, strict=True)
        return all(before + extent <= whole for before, extent, whole in inside)

    def padding(self, type: ScalarType, padded: tuple[int, int], *, last: bool) -> str:
        """The definition of the image with zeros around it, of so many rows and columns; ``last``: with channels last.

        Each part of the border is a statement, so that no element is chosen by a condition.
        """
        (top, left), (rows, columns), (_, _, height, width) = self.before, padded, self.image
        every, below, right = "n in 0:N, c in 0:C", top + height, left + width
        parts = [
            (top > 0, f"h in 0:{top}, w in 0:{columns}"),
            (below < rows, f"h in {below}:{rows}, w in 0:{columns}"),
            (left > 0, f"h in {top}:{below}, w in 0:{left}"),
            (right < columns, f"h in {top}:{below}, w in {right}:{columns}"),
        ]
        target = "P(n, h, w, c)" if last else "P(n, c, h, w)"
        statements = [f"{target} = 0 where {every}, {ranges}" for there, ranges in parts if there]
        place = f"X(n, c, h{offset(-top)}, w{offset(-left)})"
        statements.append(f"{target} = {place} where h in {top}:{below}, w in {left}:{right}")
        return definition("pad", [f"{type}(N,C,{height},{width}) X"], ["P"], statements)


def with_bias(
    name: str, parameters: list[str], statements: list[str], place: str, bias: list[Value], filters: str = "f"
) -> str:
    """The definition of Y, with the addition of a bias by filter if there is one."""
    sizes = filters.upper().replace(" ", "")
    biases = [f"{value.type}({sizes}) B" for value in bias]
    added = [f"Y({place}) = Y({place}) + B({filters})" for _ in bias]
    return definition(name, [*parameters, *biases], ["Y"], [*statements, *added])

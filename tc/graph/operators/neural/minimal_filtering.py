"""Convolutions by minimal filtering along the first of two spatial axes: fewer multiplications, more additions.

``F(m, r)`` computes ``m`` results of ``r`` taps with ``m + r - 1`` products instead of ``m * r``: of transformed rows
of the image and transformed weights, whose sums are transformed back (Winograd, *Arithmetic Complexity of
Computations*, 1980; Lavin and Gray, *Fast Algorithms for Convolutional Neural Networks*, CVPR 2016, Section 4).  Along
one axis alone it gains less than along both, and rounds little more than the sum itself: transforms read whole rows,
and the products are a convolution along rows that lie end to end.
"""

from __future__ import annotations

import functools
from fractions import Fraction
from typing import Final

import numpy as np

from tc.base.frozen import frozen
from tc.graph.ir.builder import Builder
from tc.graph.ir.values import Value
from tc.graph.operators.neural.windows import offset, where
from tc.graph.operators.texts import definition

# Where polynomials are evaluated; the last point is at infinity.  Small ones keep the transforms exact in binary.
_POINTS: Final = tuple(map(Fraction, ("0", "1", "-1", "2", "-2", "1/2", "-1/2")))
# Multiply-adds that take as long as to write or to read one element of a temporary, and one of the weights, which come
# from memory in each call: of two cores that do 110 of them a nanosecond, with 12 and 5 elements a nanosecond.
_TEMPORARY: Final = 9
_WEIGHT: Final = 3


@frozen
class Transforms:
    """``image`` (n, n), ``weights`` (n, r) and ``back`` (m, n), where n is m + r - 1, in float64."""

    image: np.ndarray
    weights: np.ndarray
    back: np.ndarray


@functools.lru_cache(maxsize=32)
def transforms(m: int, r: int) -> Transforms:
    """The transforms of F(m, r), of Toom and Cook."""
    n = m + r - 1
    points = _POINTS[: n - 1]
    image, weights = np.zeros((n, n)), np.zeros((n, r))
    back = np.array([[float(point**row) for point in points] + [float(row == m - 1)] for row in range(m)])
    for row, point in enumerate(points):
        others = [other for other in points if other != point]
        image[row, : n - 1] = _coefficients(others)
        scale = functools.reduce(lambda held, other: held * (point - other), others, Fraction(1))
        weights[row] = [float(point**tap / scale) for tap in range(r)]
    image[-1], weights[-1, -1] = _coefficients(points), 1.0
    return Transforms(image, weights, back)


def _coefficients(roots: tuple[Fraction, ...] | list[Fraction]) -> list[float]:
    """Of the monic polynomial with these roots, from the constant one on."""
    found = [Fraction(1)]
    for root in roots:
        shifted = [Fraction(0), *found]
        found = [high - root * low for high, low in zip(shifted, [*found, Fraction(0)], strict=True)]
    return [float(value) for value in found]


@frozen
class Filtering:
    """A convolution of an image (N, C, H, W) with weights (F, C, R, S), of stride and dilation 1, as F(m, R).

    ``before``: how many rows and columns of padding come first.  ``result``: the rows and columns of the result.
    """

    image: tuple[int, int, int, int]
    weights: tuple[int, int, int, int]
    before: tuple[int, int]
    result: tuple[int, int]
    m: int

    @property
    def groups(self) -> int:
        """How many groups of m rows the result has; the last one may reach beyond it."""
        return -(-self.result[0] // self.m)

    @property
    def products(self) -> int:
        """How many products there are for a group of rows."""
        return self.m + self.weights[2] - 1

    @property
    def padded(self) -> tuple[int, int]:
        """Rows and columns of the image that the transform reads."""
        return self.m * self.groups + self.weights[2] - 1, self.result[1] + self.weights[3] - 1

    @property
    def cost(self) -> int:
        """In multiply-adds: those of the products, and what temporaries and larger weights take."""
        count, channels, _, _ = self.image
        filters, _, taps, columns = self.weights
        rows, width = self.padded
        line = self.products * self.groups * width
        summed = count * filters * channels * columns * line
        moved = 2 * count * (channels * rows * width + (channels + filters) * line)
        return summed + _TEMPORARY * moved + _WEIGHT * filters * channels * columns * (self.products - taps)

    @property
    def direct_cost(self) -> int:
        """Of the sum as it is."""
        filters, channels, taps, columns = self.weights
        return self.image[0] * filters * channels * taps * columns * self.result[0] * self.result[1]

    def build(self, builder: Builder, x: Value, weights: np.ndarray, bias: Value | None) -> Value:
        """The convolution with these weights, and a bias (F) if there is one."""
        found, type = transforms(self.m, self.weights[2]), weights.dtype
        transformed = np.einsum("pr,fcrs->pfcs", found.weights, weights.astype(np.float64))
        read = [builder.constant(array.astype(type), "transform") for array in (found.image, found.back)]
        rows, width = self.padded
        padded = x if (rows, width) == self.image[2:] else builder.call(self._padding(x), x)[0]
        (lines,) = builder.call(self._transform(x), padded, read[0])
        count, channels = self.image[:2]
        flat = builder.reshape(lines, (count, self.products, channels, self.groups * width))
        (sums,) = builder.call(self._products(x), flat, builder.constant(transformed.astype(type), "weights"))
        operands = [sums, read[1]] + ([] if bias is None else [bias])
        return builder.call(self._back(x, biased=bias is not None), *operands)[0]

    def _padding(self, x: Value) -> str:
        """Each part of the border is a statement, so that no element is chosen by a condition."""
        (top, left), (rows, width), (_, _, height, inner) = self.before, self.padded, self.image
        every, below, right = "n in 0:N, c in 0:C", top + height, left + inner
        parts = [
            (top > 0, f"h in 0:{top}, w in 0:{width}"),
            (below < rows, f"h in {below}:{rows}, w in 0:{width}"),
            (left > 0, f"h in {top}:{below}, w in 0:{left}"),
            (right < width, f"h in {top}:{below}, w in {right}:{width}"),
        ]
        statements = [f"P(n, c, h, w) = 0 where {every}, {ranges}" for there, ranges in parts if there]
        place = f"X(n, c, h{offset(-top)}, w{offset(-left)})"
        statements.append(f"P(n, c, h, w) = {place} where h in {top}:{below}, w in {left}:{right}")
        return definition("pad", [f"{x.type}(N,C,{height},{inner}) X"], ["P"], statements)

    def _transform(self, x: Value) -> str:
        rows, _ = self.padded
        n = self.products
        statement = f"V(n, p, c, i, w) +=! B(p, a) * P(n, c, {self.m} * i + a, w)"
        parameters = [f"{x.type}(N,C,{rows},W) P", f"{x.type}({n},{n}) B"]
        return definition("filter_rows", parameters, ["V"], [f"{statement}{where([f'i in 0:{self.groups}'])}"])

    def _products(self, x: Value) -> str:
        n, columns = self.products, self.weights[3]
        parameters = [f"{x.type}(N,{n},C,L) V", f"{x.type}({n},F,C,{columns}) K"]
        return definition("conv", parameters, ["M"], ["M(n, p, f, l) +=! V(n, p, c, l + s) * K(p, f, c, s)"])

    def _back(self, x: Value, *, biased: bool) -> str:
        """The rows of each group; columns between two rows that lie end to end are left out."""
        (height, inner), (_, width), m = self.result, self.padded, self.m
        parameters = [f"{x.type}(N,{self.products},F,L) M", f"{x.type}({m},{self.products}) A"]
        place = f"M(n, p, f, {width} * (h / {m}) + w)"
        statements = [f"Y(n, f, h, w) +=! A(h % {m}, p) * {place} where h in 0:{height}, w in 0:{inner}"]
        if biased:
            parameters.append(f"{x.type}(F) B")
            statements.append("Y(n, f, h, w) = Y(n, f, h, w) + B(f)")
        return definition("filtered", parameters, ["Y"], statements)

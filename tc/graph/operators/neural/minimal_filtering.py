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
from tc.graph.ir.constants import Contents
from tc.graph.ir.values import Value
from tc.graph.operators.neural.windows import offset
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

    def build(self, builder: Builder, x: Value, weights: Contents, bias: Value | None) -> Value:
        """The convolution with these weights, of the type of the image, and a bias (F) if there is one."""
        found, type = transforms(self.m, self.weights[2]), np.dtype(x.type.value)
        filters, channels, _, columns = self.weights
        flat = self.padded[1] == 1

        def transformed() -> np.ndarray:
            # (P,R) times (F,C,R,S), as one product.
            products = np.tensordot(found.weights, weights().astype(np.float64), ((1,), (2,))).astype(type)
            return products[:, :, :, 0].transpose(0, 2, 1) if flat else products

        shape = (self.products, channels, filters) if flat else (self.products, filters, channels, columns)
        held = builder.constant_later(transformed, x.type, shape, "weights")
        image, back = (builder.constant(array.astype(type), "transform") for array in (found.image, found.back))
        last = [] if bias is None else [bias]
        return (self._sequence if flat else self._rows)(builder, x, image, back, held, last)

    def _rows(self, builder: Builder, x: Value, image: Value, back: Value, weights: Value, bias: list[Value]) -> Value:
        """Columns are innermost, and rows lie end to end: the products are a convolution along them."""
        n, m, (rows, width) = self.products, self.m, self.padded
        padded = x if (rows, width) == self.image[2:] else builder.call(self._padding(x), x)[0]
        type = x.type
        (lines,) = builder.call(
            f"""def filter_rows({type}(N,C,{rows},W) P, {type}({n},{n}) B) -> (V) {{
    V(n, p, c, i, w) +=! B(p, a) * P(n, c, {m} * i + a, w) where i in 0:{self.groups}
}}""",
            padded,
            image,
        )
        flat = builder.reshape(lines, (self.image[0], n, self.image[1], self.groups * width))
        (sums,) = builder.call(
            f"""def conv({type}(N,{n},C,L) V, {type}({n},F,C,{self.weights[3]}) K) -> (M) {{
    M(n, p, f, l) +=! V(n, p, c, l + s) * K(p, f, c, s)
}}""",
            flat,
            weights,
        )
        (height, inner) = self.result
        # Columns between two rows that lie end to end are left out.
        place = f"M(n, p, f, {width} * (h / {m}) + w)"
        statements = [f"Y(n, f, h, w) +=! A(h % {m}, p) * {place} where h in 0:{height}, w in 0:{inner}"]
        text = _with_bias("filtered", [f"{type}(N,{n},F,L) M", f"{type}({m},{n}) A"], statements, "n, f, h, w", bias)
        return builder.call(text, sums, back, *bias)[0]

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

    def _sequence(
        self, builder: Builder, x: Value, image: Value, back: Value, weights: Value, bias: list[Value]
    ) -> Value:
        """Of images with one column: channels are innermost, so that no transform reads every m-th element."""
        n, m, rows, (count, channels, height, _) = self.products, self.m, self.padded[0], self.image
        type, filters, groups = x.type, self.weights[0], self.groups
        place = builder.permute(builder.reshape(x, (count, channels, height)), (0, 2, 1))
        if rows != height:
            top, below = self.before[0], self.before[0] + height
            ends = [f"h in 0:{top}"] * (top > 0) + [f"h in {below}:{rows}"] * (below < rows)
            statements = [f"P(n, h, c) = 0 where n in 0:N, c in 0:C, {end}" for end in ends]
            statements.append(f"P(n, h, c) = X(n, h{offset(-top)}, c) where h in {top}:{below}")
            (place,) = builder.call(definition("pad", [f"{type}(N,{height},C) X"], ["P"], statements), place)
        (lines,) = builder.call(
            f"""def filter_rows({type}(N,{rows},C) P, {type}({n},{n}) B) -> (V) {{
    V(n, p, i, c) +=! B(p, a) * P(n, {m} * i + a, c) where i in 0:{groups}
}}""",
            place,
            image,
        )
        (sums,) = builder.call(
            f"def conv({type}(N,P,I,C) V, {type}(P,C,F) K) -> (M) {{ M(n, p, i, f) +=! V(n, p, i, c) * K(p, c, f) }}",
            lines,
            weights,
        )
        statements = ["Y(n, i, r, f) +=! A(r, p) * M(n, p, i, f)"]
        text = _with_bias("filtered", [f"{type}(N,{n},I,F) M", f"{type}({m},{n}) A"], statements, "n, i, r, f", bias)
        (found,) = builder.call(text, sums, back, *bias)
        whole = builder.reshape(found, (count, groups * m, filters))
        kept = builder.slice(whole, (0, 0, 0), (1, 1, 1), (count, self.result[0], filters))
        return builder.reshape(builder.permute(kept, (0, 2, 1)), (count, filters, *self.result))


def _with_bias(name: str, parameters: list[str], statements: list[str], place: str, bias: list[Value]) -> str:
    """The definition of Y, with the addition of a bias by filter if there is one."""
    biases = [f"{value.type}(F) B" for value in bias]
    added = [f"Y({place}) = Y({place}) + B(f)" for _ in bias]
    return definition(name, [*parameters, *biases], ["Y"], [*statements, *added])

"""Convolutions by minimal filtering along the first of two spatial axes: fewer multiplications, more additions.

Along one axis alone it gains less than along both (``tc.graph.operators.neural.filtered_planes``), and rounds less:
transforms read whole rows, and the products are a convolution along rows that lie end to end.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from tc.base.frozen import frozen
from tc.graph.ir.builder import Builder
from tc.graph.ir.constants import Contents
from tc.graph.ir.values import Value
from tc.graph.operators.neural.filter_transforms import transforms
from tc.graph.operators.neural.plain_convolution import PlainConvolution, with_bias
from tc.graph.operators.neural.windows import offset
from tc.graph.operators.texts import definition

# Multiply-adds that take as long as to write or to read one element of a temporary (of two cores that do 110 of them a
# nanosecond, with 12 elements), and one of the weights, which come from memory in each call (so that a Zen 3 processor
# has planes where these are quicker).
_TEMPORARY: Final = 9
_WEIGHT: Final = 5


@frozen
class FilteredRows:
    """A convolution ``of`` an image (N, C, H, W) with weights (F, C, R, S), as F(m, R) along rows."""

    of: PlainConvolution
    m: int

    @property
    def groups(self) -> int:
        """How many groups of m rows the result has; the last one may reach beyond it."""
        return -(-self.of.result[0] // self.m)

    @property
    def products(self) -> int:
        """How many products there are for a group of rows."""
        return self.m + self.of.weights[2] - 1

    @property
    def padded(self) -> tuple[int, int]:
        """Rows and columns of the image that the transform reads."""
        return self.m * self.groups + self.of.weights[2] - 1, self.of.result[1] + self.of.weights[3] - 1

    @property
    def cost(self) -> int:
        """In multiply-adds: those of the products, and what temporaries and larger weights take."""
        count, channels, _, _ = self.of.image
        filters, _, taps, columns = self.of.weights
        rows, width = self.padded
        line = self.products * self.groups * width
        summed = count * filters * channels * columns * line
        moved = 2 * count * (channels * rows * width + (channels + filters) * line)
        return summed + _TEMPORARY * moved + _WEIGHT * filters * channels * columns * (self.products - taps)

    def build(self, builder: Builder, x: Value, weights: Contents, bias: Value | None) -> Value:
        """The convolution with these weights, of the type of the image, and a bias (F) if there is one."""
        found, type = transforms(self.m, self.of.weights[2]), np.dtype(x.type.value)
        filters, channels, _, columns = self.of.weights
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
        padded = (
            x
            if (rows, width) == self.of.image[2:]
            else builder.call(self.of.padding(x.type, (rows, width), last=False), x)[0]
        )
        type = x.type
        (lines,) = builder.call(
            f"""def filter_rows({type}(N,C,{rows},W) P, {type}({n},{n}) B) -> (V) {{
    V(n, p, c, i, w) +=! B(p, a) * P(n, c, {m} * i + a, w) where i in 0:{self.groups}
}}""",
            padded,
            image,
        )
        flat = builder.reshape(lines, (self.of.image[0], n, self.of.image[1], self.groups * width))
        (sums,) = builder.call(
            f"""def conv({type}(N,{n},C,L) V, {type}({n},F,C,{self.of.weights[3]}) K) -> (M) {{
    M(n, p, f, l) +=! V(n, p, c, l + s) * K(p, f, c, s)
}}""",
            flat,
            weights,
        )
        (height, inner) = self.of.result
        # Columns between two rows that lie end to end are left out.
        place = f"M(n, p, f, {width} * (h / {m}) + w)"
        statements = [f"Y(n, f, h, w) +=! A(h % {m}, p) * {place} where h in 0:{height}, w in 0:{inner}"]
        text = with_bias("filtered", [f"{type}(N,{n},F,L) M", f"{type}({m},{n}) A"], statements, "n, f, h, w", bias)
        return builder.call(text, sums, back, *bias)[0]

    def _sequence(
        self, builder: Builder, x: Value, image: Value, back: Value, weights: Value, bias: list[Value]
    ) -> Value:
        """Of images with one column: channels are innermost, so that no transform reads every m-th element."""
        n, m, rows, (count, channels, height, _) = self.products, self.m, self.padded[0], self.of.image
        type, filters, groups = x.type, self.of.weights[0], self.groups
        place = builder.permute(builder.reshape(x, (count, channels, height)), (0, 2, 1))
        if rows != height:
            top, below = self.of.before[0], self.of.before[0] + height
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
        text = with_bias("filtered", [f"{type}(N,{n},I,F) M", f"{type}({m},{n}) A"], statements, "n, i, r, f", bias)
        (found,) = builder.call(text, sums, back, *bias)
        whole = builder.reshape(found, (count, groups * m, filters))
        kept = builder.slice(whole, (0, 0, 0), (1, 1, 1), (count, self.of.result[0], filters))
        return builder.reshape(builder.permute(kept, (0, 2, 1)), (count, filters, *self.of.result))

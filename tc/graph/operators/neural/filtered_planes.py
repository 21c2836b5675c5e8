"""Convolutions by minimal filtering along both spatial axes: fewer multiplications yet, of images with channels last.

Windows, ``m`` rows and columns apart, are transformed along one axis, then along the other; so are the weights, ahead
of time.  For each element of a window, the transformed windows by channels and the transformed weights are two
matrices, whose product is that of all results (Lavin and Gray, *Fast Algorithms for Convolutional Neural Networks*,
CVPR 2016, Section 4.1).
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

# Multiply-adds that take as long as to write or to read one element of a temporary, and one of the weights, in panels
# that leave the first cache (fitted to times of 9 to 784 windows on a Zen 3 processor; GPUs were not measured).
_TEMPORARY: Final = 5
_WEIGHT: Final = 20
# Filters whose weights lie together on a processor, in the order in which the sum over channels reads them.
_PANELS: Final = (32, 16, 8)


@frozen
class FilteredPlanes:
    """A convolution ``of`` an image (N, C, H, W) with weights (F, C, R, S), as F(m x m, R x S).

    ``panels``: weights lie in panels of some filters, as processors read them.
    """

    of: PlainConvolution
    m: int
    panels: bool = True

    @property
    def groups(self) -> tuple[int, int]:
        """How many groups of m rows and of m columns the result has; the last ones may reach beyond it."""
        return -(-self.of.result[0] // self.m), -(-self.of.result[1] // self.m)

    @property
    def window(self) -> tuple[int, int]:
        """Rows and columns of a window, of each element of which there is a product of matrices."""
        return self.m + self.of.weights[2] - 1, self.m + self.of.weights[3] - 1

    @property
    def padded(self) -> tuple[int, int]:
        """Rows and columns of the image that the transforms read."""
        return self.m * self.groups[0] + self.of.weights[2] - 1, self.m * self.groups[1] + self.of.weights[3] - 1

    @property
    def cost(self) -> int:
        """In multiply-adds: those of the products, and what temporaries and larger weights take."""
        count, channels, _, _ = self.of.image
        filters, _, taps, across = self.of.weights
        rows, columns = self.padded
        (down, along), (height, width) = self.groups, self.window
        windows, products = count * down * along, height * width
        moved = count * channels * rows * (columns + width * along)
        moved += windows * (products * (channels + filters) + (height + self.m) * self.m * filters)
        summed = windows * products * channels * filters
        return summed + 2 * _TEMPORARY * moved + _WEIGHT * filters * channels * (products - taps * across)

    def build(self, builder: Builder, x: Value, weights: Contents, bias: Value | None) -> Value:
        """The convolution with these weights, of the type of the image, and a bias (F) if there is one."""
        type, m, (rows, columns) = x.type, self.m, self.padded
        (down, along), (height, width) = self.groups, self.window
        count, channels, _, _ = self.of.image
        filters = self.of.weights[0]
        vertical, horizontal = (transforms(m, taps) for taps in self.of.weights[2:])

        def constant(array: np.ndarray) -> Value:
            return builder.constant(array.astype(type.value), "transform")

        # Sizes are open: convolutions of other shapes have the same definitions, but for the padding.
        (lined,) = builder.call(
            f"""def filter_columns({type}(N,H,W,C) P, {type}(Q,B) D) -> (U) {{
    U(n, q, h, j, c) +=! D(q, b) * P(n, h, {m} * j + b, c)
}}""",
            builder.call(self.of.padding(type, (rows, columns), last=True), x)[0],
            constant(horizontal.image),
        )
        (filtered,) = builder.call(
            f"""def filter_rows({type}(N,Q,H,J,C) U, {type}(P,A) B) -> (V) {{
    V(n, p, q, i, j, c) +=! B(p, a) * U(n, q, {m} * i + a, j, c)
}}""",
            lined,
            constant(vertical.image),
        )
        panels = _PANELS if self.panels else ()
        panel = next((panel for panel in panels if filters % panel == 0), filters)
        held = (height * width, filters // panel, channels, panel)
        (sums,) = builder.call(
            f"""def products({type}(N,P,L,C) V, {type}(P,G,C,F) K) -> (M) {{
    M(n, p, l, g, f) +=! V(n, p, l, c) * K(p, g, c, f)
}}""",
            builder.reshape(filtered, (count, height * width, down * along, channels)),
            builder.constant_later(lambda: self._transformed(weights(), held), x.type, held, "weights"),
        )
        (backwards,) = builder.call(
            f"""def columns({type}(N,P,Q,I,J,F) M, {type}(S,Q) D) -> (Z) {{
    Z(n, p, i, j, s, f) +=! D(s, q) * M(n, p, q, i, j, f)
}}""",
            builder.reshape(sums, (count, height, width, down, along, filters)),
            constant(horizontal.back),
        )
        last = [] if bias is None else [bias]
        parameters = [f"{type}(N,P,I,J,S,F) Z", f"{type}(R,P) A"]
        statements = ["Y(n, i, r, j, s, f) +=! A(r, p) * Z(n, p, i, j, s, f)"]
        text = with_bias("filtered", parameters, statements, "n, i, r, j, s, f", last)
        (found,) = builder.call(text, backwards, constant(vertical.back), *last)
        whole = builder.reshape(found, (count, down * m, along * m, filters))
        kept = builder.slice(whole, (0, 0, 0, 0), (1, 1, 1, 1), (count, *self.of.result, filters))
        return builder.permute(kept, (0, 3, 1, 2))

    def _transformed(self, weights: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """The weights of each product, the filters of a panel side by side; panels one by one, to stay in caches."""
        vertical, horizontal = (transforms(self.m, taps).weights for taps in self.of.weights[2:])
        products, panels, channels, panel = shape
        both = np.kron(vertical, horizontal)
        found = np.empty(shape, weights.dtype)
        for number in range(panels):
            own = weights[number * panel : (number + 1) * panel].reshape(panel, channels, -1)
            taps = own.transpose(2, 1, 0).astype(np.float64).reshape(both.shape[1], -1)
            found[:, number] = (both @ taps).reshape(products, channels, panel)
        return found

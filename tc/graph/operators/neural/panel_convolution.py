"""Convolutions of images with channels last, whose weights lie in panels: of several filters, in the order of the sum.

Lanes lie along filters, so that strides of the image cost nothing; each step of the sum reads one element of the image
and a row of a panel (Georganas et al., *Anatomy of High-Performance Deep Learning Convolutions on SIMD Architectures*,
SC 2018).
"""

from __future__ import annotations

from typing import Final

import numpy as np

from tc.base.frozen import frozen
from tc.graph.ir.builder import Builder
from tc.graph.ir.constants import Contents
from tc.graph.ir.values import Value
from tc.graph.operators.neural.plain_convolution import PlainConvolution, with_bias
from tc.graph.operators.neural.windows import affine

# Filters of a panel.
PANELS: Final = (16, 8)


@frozen
class PanelConvolution:
    """A convolution ``of`` an image (N, C, H, W) with weights (F, C, R, S), in panels of so many filters."""

    of: PlainConvolution
    panel: int

    @property
    def padded(self) -> tuple[int, int]:
        """The rows and columns that windows reach, or of the whole image."""
        sides = zip(
            self.of.image[2:], self.of.before, self.of.result, self.of.strides, self.of.weights[2:], strict=True
        )
        reached = [max(before + extent, (count - 1) * stride + taps) for extent, before, count, stride, taps in sides]
        return reached[0], reached[1]

    @property
    def has_all_windows(self) -> bool:
        """Whether there are as many results as such an image has windows."""
        sides = zip(self.padded, self.of.weights[2:], self.of.strides, self.of.result, strict=True)
        return all((extent - taps) // stride + 1 == count for extent, taps, stride, count in sides)

    def build(self, builder: Builder, x: Value, weights: Contents, bias: Value | None) -> Value:
        """The convolution with these weights, of the type of the image, and a bias (F) if there is one."""
        type, (down, along) = x.type, self.of.strides
        filters, channels, taps, across = self.of.weights
        (height, width), panel = self.of.result, self.panel
        image = self._image(builder, x)
        held = (filters // panel, taps, across, channels, panel)
        # Sizes are open: convolutions of other shapes have the same definition, but for the padding.
        parameters = [f"{type}(N,H,W,C) P", f"{type}(G,R,S,C,F) K"]
        place = f"P(n, {affine((down, 'h'), (1, 'r'))}, {affine((along, 'w'), (1, 's'))}, c)"
        statements = [f"Y(n, h, w, g, f) +=! {place} * K(g, r, s, c, f)"]
        last = [] if bias is None else [builder.reshape(bias, (filters // panel, panel))]
        (found,) = builder.call(
            with_bias("conv", parameters, statements, "n, h, w, g, f", last, "g, f"),
            image,
            builder.constant_later(lambda: self._in_panels(weights(), held), type, held, "weights"),
            *last,
        )
        whole = builder.reshape(found, (self.of.image[0], height, width, filters))
        return builder.permute(whole, (0, 3, 1, 2))

    def _image(self, builder: Builder, x: Value) -> Value:
        """With channels last, and zeros around it where windows reach beyond; as it is, if it lies so already."""
        if self.padded != self.of.image[2:]:
            return builder.call(self.of.padding(x.type, self.padded, last=True), x)[0]
        turned = builder.permute(x, (0, 2, 3, 1))
        return turned if turned.steps[-1] == 1 else builder.contiguous(turned)

    def _in_panels(self, weights: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        panels, taps, across, channels, panel = shape
        parts = weights.reshape(panels, panel, channels, taps, across)
        return np.ascontiguousarray(parts.transpose(0, 3, 4, 2, 1))

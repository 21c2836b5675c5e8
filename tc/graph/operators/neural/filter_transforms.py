"""The transforms of minimal filtering, of Toom and Cook.

``F(m, r)`` computes ``m`` results of ``r`` taps with ``m + r - 1`` products instead of ``m * r``: of transformed rows
of the image and transformed weights, whose sums are transformed back (Winograd, *Arithmetic Complexity of
Computations*, 1980; Lavin and Gray, *Fast Algorithms for Convolutional Neural Networks*, CVPR 2016, Section 4).
"""

from __future__ import annotations

import functools
from fractions import Fraction
from typing import Final

import numpy as np

from tc.base.frozen import frozen

# Where polynomials are evaluated; the last point is at infinity.  Small ones keep the transforms exact in binary.
_POINTS: Final = tuple(map(Fraction, ("0", "1", "-1", "2", "-2", "1/2", "-1/2")))


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

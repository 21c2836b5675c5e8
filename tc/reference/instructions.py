"""What instructions for sums of products may do to them: round factors, take small numbers for zeros, cut sums off."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import numpy as np

from tc.base.dots import Products
from tc.base.frozen import frozen
from tc.base.types import ScalarType
from tc.language.program.program import Expression, Read
from tc.language.program.terms import factors_of_instructions, single_factors
from tc.reference.bounded import SMALLEST_NORMAL, Bounded, may_be_flushed, overflow_threshold


@frozen
class Instructions:
    """Of the terms of a sum, by their ``factors``.

    ``relative``: how far a factor may be rounded.  ``additions``: how often a sum is rounded for each term.
    ``finite``: where a factor is not, anything may come out.
    """

    factors: tuple[Read, Read]
    relative: float
    additions: float
    finite: bool = False

    def rounded(self, factor: Bounded) -> Bounded:
        """What is multiplied in the place of a factor."""
        if not self.relative:
            return factor
        magnitude = np.abs(factor.value) + factor.error
        small = np.where(magnitude > 0.0, SMALLEST_NORMAL, 0.0)  # rests may be taken for zeros
        return Bounded(factor.value, factor.error + self.relative * magnitude + small, factor.ambiguous)

    def term(self, found: Bounded, left: Bounded, right: Bounded) -> Bounded:
        """A product of the factors."""
        reach = np.where(np.isfinite(found.value), np.abs(found.value) + found.error, 0.0)
        flushed = np.where(may_be_flushed(left) | may_be_flushed(right), reach, 0.0)
        error = found.error + flushed + np.where(reach > 0.0, SMALLEST_NORMAL, 0.0)
        if self.relative:
            wide = tuple(self.rounded(own) for own in (left, right))
            sides = [np.abs(own.value) + own.error for own in (left, right)]
            larger = [np.abs(own.value) + own.error for own in wide]
            error = error + np.where(reach > 0.0, larger[0] * larger[1] - sides[0] * sides[1] + reach * 1e-15, 0.0)
            threshold = overflow_threshold(ScalarType.FLOAT32)
            for own, other, most in zip((left, right), (right, left), larger, strict=True):
                # What is rounded to 0 makes something else of what is infinite.
                lost = may_be_flushed(own) & ~np.isfinite(other.value)
                beyond = ~(most < threshold) & (np.isfinite(own.value) | self.finite)
                error = np.where(lost | beyond, np.inf, error)
        return Bounded(found.value, error, found.ambiguous)


# Relative errors of a factor that is rounded to 11 bits, or to the sum of two such numbers, of which the product of
# both rests is left out; and one or three instructions, each of which adds 8 products to what there was.
_ROUNDED: Final[Mapping[Products, tuple[float, float, bool]]] = MappingProxyType(
    {Products.TF32: (2.0**-11, 1.0 + 1.0 / 8.0, False), Products.THREE_TF32: (2.0**-21, 3.0 * (1.0 + 1.0 / 8.0), True)}
)
# An instruction adds 16 products of halves to what there was, at least, and may cut off each.
_HALVES: Final = 1.0 + 1.0 / 16.0


def instructions_of(value: Expression, products: Products) -> Instructions | None:
    """The instructions that may add up such terms; None where there are none."""
    halves = factors_of_instructions(value)
    if halves is not None:
        return Instructions(halves, 0.0, _HALVES)
    single = single_factors(value)
    return Instructions(single, *_ROUNDED[products]) if single is not None and products in _ROUNDED else None

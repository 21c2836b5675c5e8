"""Reductions: what any order of combining the terms may give, per element of the target.

The arrays have the shape of the target; terms arrive box by box through a ``Placement``.
"""

from __future__ import annotations

from copy import copy
from types import EllipsisType
from typing import Final, Protocol, TypeAlias

import numpy as np

from tc.base.types import Kind, ScalarType, computation_type
from tc.language.program.program import Reduction
from tc.reference.arithmetic import enclosing_error
from tc.reference.bounded import (
    BoolArray,
    Bounded,
    FloatArray,
    numpy_type,
    overflow_threshold,
    roundoff,
    settle,
    smallest_normal,
    span,
)
from tc.reference.integers import within_type
from tc.reference.placement import Placed, Placement

Slices: TypeAlias = tuple[slice | EllipsisType, ...]

ZERO, ONE = np.zeros(()), np.ones(())
ZERO.flags.writeable = ONE.flags.writeable = False


class Accumulator(Protocol):
    """Collects the terms of a reducing statement, then combines them with what the target held before."""

    def absorb(self, terms: Bounded, place: Placed) -> None:
        """Folds one box of terms in; they are not settled yet."""

    def part(self, slices: Slices) -> Accumulator:
        """That of some elements, whose arrays are views."""

    def finish(self, before: Bounded, initialize: BoolArray) -> Bounded:
        """The target afterwards; where ``initialize`` holds, what it held before does not count."""


def accumulator(
    reduction: Reduction,
    shape: tuple[int, ...],
    type: ScalarType,
    contracted: bool,
    of_two: bool = False,
    scattered: bool = False,
    instructions: float = 0.0,
) -> Accumulator:
    """``contracted``: the term is a product, which a fused multiply-add may combine with the sum.

    ``of_two``: of two things that are read.  ``scattered``: data say into which elements.  ``instructions``:
    those for dot products and for products of matrices may add the terms up, and take subnormal numbers for zeros.
    """
    if not type.is_floating:
        return IntegerReduction(reduction, shape, type)
    match reduction:
        case Reduction.ADD:
            return FloatSum(shape, type, contracted, of_two, _SCATTERED_CHAIN if scattered else _CHAIN, instructions)
        case Reduction.MULTIPLY:
            return FloatProduct(shape, type)
        case Reduction.MINIMUM | Reduction.MAXIMUM:
            return FloatExtremum(reduction, shape, type)


# Sums in float32 are sums of partial sums (``tc.polyhedral.generate.block_sums``), on any target and with any options.
# So many terms may be added up one after the other.  What comes of that is added up in float64, but for two lanes or a
# few other partial sums, and rounded to float32 twice at most; where there are more of these, runs are shorter.
_CHAIN: Final = 32.0
# Where data say into which element, it is added to in memory.
_SCATTERED_CHAIN: Final = 4096.0
_BEYOND_CHAIN: Final = 3.0
_LEAST_RUN: Final = 16.0
_ORACLE_BLOCK: Final = 1024.0
# A sum is off by half of its last place at most, which is less than its unit of rounding but for powers of two: in a
# chain that grows evenly from 0 to s, by 3/8 of n s in all, and that of a few first terms.
_EVEN: Final = 3.0 / 8.0
_FIRST_TERMS: Final = 0.75


def chain_roundings(count: FloatArray, evenness: FloatArray) -> FloatArray:
    """How many whole roundings of its sum equal those in a chain of ``count`` terms, at most.

    ``evenness``: the mean magnitude of all terms, divided by the greatest one.  A chain whose terms have the sum s and
    none beyond a needs s/a terms to get there, and stays at s at worst: of n additions, these are off by less.  That is
    concave in s, so no way to deal terms out to chains is worse than the same sum for each (Jensen's inequality).
    """
    return count * (1.0 - (1.0 - _EVEN) * evenness) + _FIRST_TERMS


def growth(count: FloatArray, unit: float) -> FloatArray:
    """How far ``count`` roundings in a row may change a value, relatively: (1 + unit) ** count - 1 or a little more."""
    return np.asarray(np.expm1(count * unit))


def stored(value: FloatArray, error: FloatArray, type: ScalarType) -> FloatArray:
    """The error after a sum or product in the computation type was rounded to its own type."""
    if not type.is_half:
        return error
    rounding = roundoff(type) * (np.abs(value) + error) + type.smallest_subnormal
    return error + np.where(np.isfinite(value), rounding, 0.0)


class _Flags:
    """Which elements have a term with a property that is rare."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self.found: BoolArray | None = None

    def absorb(self, flags: BoolArray, place: Placed) -> None:
        if flags.any():
            place.fold(np.logical_or, self._array(), flags, np.zeros((), np.bool_))

    def mark(self, reduced: BoolArray, place: Placement) -> None:
        """Elements some term of which, in the box of the placement, is ambiguous."""
        place.fold_reduced(np.logical_or, self._array(), reduced)

    def _array(self) -> BoolArray:
        if self.found is None:
            self.found = np.zeros(self.shape, np.bool_)
        return self.found

    def part(self, slices: Slices) -> _Flags:
        found = _Flags(self.shape)
        found.found = None if self.found is None else self.found[slices]
        return found

    def joined(self, before: BoolArray) -> BoolArray:
        return before if self.found is None else np.logical_or(self.found, before)


class FloatSum:
    """Any tree of additions in the computation type, which for float32 has short chains.

    The terms' errors, and the roundings of partial sums: of all, none of which is beyond the sum of all terms of one
    sign; or, where there are fewer, of those on the way of each term.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        type: ScalarType,
        contracted: bool,
        of_two: bool = False,
        chain: float = _CHAIN,
        instructions: float = 0.0,
    ) -> None:
        self.type = type
        self.chain = chain
        self.contracted = contracted
        self.of_two = of_two
        self.instructions = instructions
        # The greatest term; those of products are not looked at one by one (``tc.reference.contract``).
        even = computation_type(type) is ScalarType.FLOAT32 and not (contracted or of_two)
        self.greatest = np.zeros(shape) if even else None
        self.overflowed = False
        self.total, self.magnitude = np.zeros(shape), np.zeros(shape)
        self.error, self.count = np.zeros(shape), np.zeros(shape)
        self.ambiguous = _Flags(shape)

    def absorb(self, terms: Bounded, place: Placed) -> None:
        """Folds one box of terms in; they are not settled yet."""
        single = settle(terms, self.type)
        if single is not terms and self.contracted:
            # The product alone overflows; contracted, it may not, unless it lies beyond what a sum can bring back.
            self.overflowed = True
            near = np.abs(terms.value) - terms.error < 2.0 * overflow_threshold(self.type)
            changed = (single.value != terms.value) & np.isfinite(terms.value)
            single = Bounded(single.value, np.where(changed & near, np.inf, single.error), single.ambiguous)
        finite = np.isfinite(single.value)
        if self.contracted and self.type is ScalarType.FLOAT64 and not finite.all():
            # Products of this type have overflowed where they were computed, if any has.
            self.overflowed = True
        magnitude = np.abs(single.value) if finite.all() else np.where(finite, np.abs(single.value), 0.0)
        place.fold(np.add, self.total, single.value, ZERO)
        place.fold(np.add, self.magnitude, magnitude, ZERO)
        place.fold(np.add, self.count, ONE, ZERO)
        if self.greatest is not None:
            place.fold(np.maximum, self.greatest, magnitude, ZERO)
        if not single.is_exact:
            place.fold(np.add, self.error, single.error, ZERO)
        self.ambiguous.absorb(single.ambiguous, place)

    def part(self, slices: Slices) -> FloatSum:
        """That of some elements, whose arrays are views."""
        found = copy(self)
        found.total, found.magnitude = self.total[slices], self.magnitude[slices]
        found.error, found.count = self.error[slices], self.count[slices]
        found.greatest = None if self.greatest is None else self.greatest[slices]
        found.ambiguous = self.ambiguous.part(slices)
        return found

    def rounded(self, farthest: FloatArray, old: FloatArray, spread: FloatArray) -> FloatArray:
        """What rounding adds; no partial sum is farther from 0 than ``farthest``; ``old``: what there was before."""
        computed = computation_type(self.type)
        count = self.count + 1.0
        unit = roundoff(computed)
        if self.instructions:
            # Dot products may be rounded to odd, as on aarch64, and sums in matrix instructions be cut off: they are
            # off by a whole place.
            count, unit = self.instructions * self.count + 2.0, 2.0 * unit
        every = growth(count, unit) * farthest
        if computed is not ScalarType.FLOAT32 or self.of_two:
            return every
        evenness = np.zeros(())
        if self.greatest is not None:
            most = self.count * self.greatest
            evenness = np.divide(self.magnitude, most, out=np.zeros(most.shape), where=most > 0)
        ways = chain_roundings(np.minimum(count, self.chain), np.minimum(evenness, 1.0)) + _BEYOND_CHAIN
        # Totals are float64, of runs, or else of all terms; and so is the oracle, which adds up blocks of terms.
        wide = ScalarType.FLOAT64.unit_roundoff
        runs = growth(ways, unit) + growth(count / _LEAST_RUN, wide) + growth(count / _ORACLE_BLOCK + 64.0, wide)
        relative = np.maximum(runs, growth(count, wide) + 2.0 * unit)
        few = relative * (self.magnitude + spread) + growth(np.minimum(count, self.chain + _BEYOND_CHAIN), unit) * old
        return np.minimum(every, few)

    def finish(self, before: Bounded, initialize: BoolArray) -> Bounded:
        """The target afterwards; where ``initialize`` holds, what it held before does not count."""
        settled = settle(before, self.type)
        old = np.where(initialize, 0.0, settled.value)
        old_error = np.where(initialize, 0.0, settled.error)
        total, spread = self.total + old, self.error + old_error
        old_magnitude = np.where(np.isfinite(old), np.abs(old), 0.0)
        magnitude = self.magnitude + old_magnitude
        computed = computation_type(self.type)
        # The sum of all positive or of all negative terms: no partial sum, in any order, lies farther from 0.
        farthest = (magnitude + np.abs(total)) * 0.5 + spread
        opposite = (magnitude - np.abs(total)) * 0.5 + spread
        rounded = self.rounded(farthest, old_magnitude, spread)
        largest = farthest + rounded
        error = spread + rounded
        # Finite terms give infinity for certain only if they cannot add up to the other infinity on the way.
        threshold = overflow_threshold(computed)
        overflow = np.isfinite(total) & (largest >= threshold)
        surely = overflow & (opposite < threshold) & (np.abs(total) - error >= threshold)
        error = np.where(overflow & ~surely, np.inf, np.where(surely, 0.0, error))
        reliable = (magnitude + spread < threshold) & ~(np.isnan(total) & self.overflowed)
        error = np.where(np.isfinite(total), error, np.where(reliable, 0.0, np.inf))
        total = np.where(surely, np.copysign(np.inf, total), total)
        ambiguous = self.ambiguous.joined(np.logical_and(settled.ambiguous, ~initialize))
        return Bounded(total, stored(total, np.where(np.isnan(error), np.inf, error), self.type), ambiguous)


class FloatProduct:
    """Any tree of multiplications, each of which may also underflow before a large factor follows."""

    def __init__(self, shape: tuple[int, ...], type: ScalarType) -> None:
        self.type = type
        self.product, self.upper = np.ones(shape), np.ones(shape)
        self.grown, self.shrunk = np.ones(shape), np.ones(shape)
        self.count = np.zeros(shape)
        self.ambiguous = _Flags(shape)

    def absorb(self, terms: Bounded, place: Placed) -> None:
        """Folds one box of terms in; they are not settled yet."""
        single = settle(terms, self.type)
        reach = np.abs(single.value) + single.error
        place.fold(np.multiply, self.product, single.value, ONE)
        place.fold(np.multiply, self.upper, reach, ONE)
        place.fold(np.multiply, self.grown, np.maximum(reach, 1.0), ONE)
        least = np.maximum(np.abs(single.value) - single.error, 0.0)
        place.fold(np.multiply, self.shrunk, np.minimum(least, 1.0), ONE)
        place.fold(np.add, self.count, ONE, ZERO)
        self.ambiguous.absorb(single.ambiguous, place)

    def part(self, slices: Slices) -> FloatProduct:
        """That of some elements, whose arrays are views."""
        found = copy(self)
        found.product, found.upper = self.product[slices], self.upper[slices]
        found.grown, found.shrunk = self.grown[slices], self.shrunk[slices]
        found.count, found.ambiguous = self.count[slices], self.ambiguous.part(slices)
        return found

    def finish(self, before: Bounded, initialize: BoolArray) -> Bounded:
        """The target afterwards; where ``initialize`` holds, what it held before does not count."""
        settled = settle(before, self.type)
        old = np.where(initialize, 1.0, settled.value)
        old_error = np.where(initialize, 0.0, settled.error)
        reach = np.abs(old) + old_error
        product, upper = self.product * old, self.upper * reach
        grown = self.grown * np.maximum(reach, 1.0)
        shrunk = self.shrunk * np.minimum(np.maximum(np.abs(old) - old_error, 0.0), 1.0)
        computed = computation_type(self.type)
        threshold, count = overflow_threshold(computed), self.count + 1
        widening = 1.0 + growth(count, roundoff(computed))
        error = upper * widening - np.abs(product) + count * computed.smallest_subnormal * grown
        keeps_value = shrunk >= smallest_normal(computed)  # no partial product can vanish
        overflow = np.isfinite(product) & ~(grown * widening < threshold)
        surely = overflow & keeps_value & (np.abs(product) - error >= threshold)
        error = np.where(overflow & ~surely, np.inf, np.where(surely, 0.0, error))
        # NaN stays; an infinity stays unless a vanished factor may meet it.
        certain = np.where(np.isnan(product), np.isnan(grown), keeps_value)
        error = np.where(np.isfinite(product), error, np.where(certain, 0.0, np.inf))
        product = np.where(surely, np.copysign(np.inf, product), product)
        ambiguous = self.ambiguous.joined(np.logical_and(settled.ambiguous, ~initialize))
        return Bounded(product, stored(product, np.where(np.isnan(error), np.inf, error), self.type), ambiguous)


class FloatExtremum:
    """Minimum or maximum: exact, and NaN if any term is; the errors of the terms move both ends."""

    def __init__(self, reduction: Reduction, shape: tuple[int, ...], type: ScalarType) -> None:
        self.type = type
        minimum = reduction is Reduction.MINIMUM
        self.choose: np.ufunc = np.minimum if minimum else np.maximum
        self.neutral = np.asarray(np.inf if minimum else -np.inf)
        self.value, self.lower, self.upper = (np.full(shape, self.neutral) for _ in range(3))
        self.ambiguous, self.unknown = _Flags(shape), _Flags(shape)

    def absorb(self, terms: Bounded, place: Placed) -> None:
        """Folds one box of terms in; they are not settled yet."""
        single = settle(terms, self.type)
        place.fold(self.choose, self.value, single.value, self.neutral)
        place.fold(self.choose, self.lower, single.value - single.error, self.neutral)
        place.fold(self.choose, self.upper, single.value + single.error, self.neutral)
        self.ambiguous.absorb(single.ambiguous, place)
        self.unknown.absorb(np.isinf(single.error), place)

    def part(self, slices: Slices) -> FloatExtremum:
        """That of some elements, whose arrays are views."""
        found = copy(self)
        found.value, found.lower, found.upper = self.value[slices], self.lower[slices], self.upper[slices]
        found.ambiguous, found.unknown = self.ambiguous.part(slices), self.unknown.part(slices)
        return found

    def finish(self, before: Bounded, initialize: BoolArray) -> Bounded:
        """The target afterwards; where ``initialize`` holds, what it held before does not count."""
        settled = settle(before, self.type)
        old, slack = np.where(initialize, self.neutral, settled.value), np.where(initialize, 0.0, settled.error)
        value = self.choose(self.value, old)
        error = enclosing_error(value, self.choose(self.lower, old - slack), self.choose(self.upper, old + slack))
        # An unknown term may be NaN, whatever the others are.
        error = np.where(self.unknown.joined(np.isinf(slack)), np.inf, error)
        return Bounded(value, error, self.ambiguous.joined(np.logical_and(settled.ambiguous, ~initialize)))


class IntegerReduction:
    """Exact in the declared type; booleans add and multiply as ``or`` and ``and``."""

    def __init__(self, reduction: Reduction, shape: tuple[int, ...], type: ScalarType) -> None:
        self.type = type
        if type.kind is Kind.BOOLEAN:
            adds = reduction in (Reduction.ADD, Reduction.MAXIMUM)
            reduction = Reduction.MAXIMUM if adds else Reduction.MINIMUM
        self.reduction = reduction
        self.operation, neutral = {
            Reduction.ADD: (np.add, 0),
            Reduction.MULTIPLY: (np.multiply, 1),
            Reduction.MINIMUM: (np.minimum, type.maximum),
            Reduction.MAXIMUM: (np.maximum, type.minimum),
        }[reduction]
        self.neutral = np.asarray(neutral, dtype=numpy_type(type))
        self.value = np.full(shape, self.neutral)
        self.error: FloatArray | None = None
        self.ambiguous = _Flags(shape)

    def absorb(self, terms: Bounded, place: Placed) -> None:
        """Folds one box of terms in; they are not settled yet."""
        place.fold(self.operation, self.value, terms.value, self.neutral)
        self.ambiguous.absorb(terms.ambiguous, place)
        if terms.is_exact:
            return
        if self.error is None:
            self.error = np.zeros(self.value.shape)
        match self.reduction:
            case Reduction.ADD:
                place.fold(np.add, self.error, terms.error, ZERO)
            case Reduction.MULTIPLY:
                place.fold(np.maximum, self.error, np.where(terms.error > 0, span(self.type), 0.0), ZERO)
            case Reduction.MINIMUM | Reduction.MAXIMUM:
                place.fold(np.maximum, self.error, terms.error, ZERO)

    def part(self, slices: Slices) -> IntegerReduction:
        """That of some elements, whose arrays are views."""
        found = copy(self)
        found.value, found.ambiguous = self.value[slices], self.ambiguous.part(slices)
        found.error = None if self.error is None else self.error[slices]
        return found

    def finish(self, before: Bounded, initialize: BoolArray) -> Bounded:
        """The target afterwards; where ``initialize`` holds, what it held before does not count."""
        old = np.where(initialize, self.neutral, before.value)
        value = self.operation(self.value, old)
        ambiguous = self.ambiguous.joined(np.logical_and(before.ambiguous, ~initialize))
        if self.error is None and before.is_exact:
            return Bounded(value, ambiguous=ambiguous)
        own = ZERO if self.error is None else self.error
        inherited = np.where(initialize, 0.0, before.error)
        if self.reduction is Reduction.MULTIPLY:
            inherited = np.where(inherited > 0, span(self.type), 0.0)
        combined = own + inherited if self.reduction is Reduction.ADD else np.maximum(own, inherited)
        return Bounded(value, within_type(value, combined, self.type), ambiguous)

"""``Bounded``: values with a bound on how far any correct kernel may be from them, and what rounding adds to it."""

from __future__ import annotations

import math
from dataclasses import field
from types import EllipsisType
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from tc.base.frozen import frozen
from tc.base.types import Kind, ScalarType

Array: TypeAlias = npt.NDArray[Any]  # the element type follows the expression and is known at run time only
FloatArray: TypeAlias = npt.NDArray[np.float64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]

EXACT: Final[FloatArray] = np.zeros(())
CERTAIN: Final[BoolArray] = np.zeros((), dtype=np.bool_)
EXACT.flags.writeable = CERTAIN.flags.writeable = False

# The oracle computes in float64; its own rounding counts too, and matters where the kernel's is as small.
ORACLE_ROUNDOFF: Final = 2.0**-52


@frozen
class Bounded:
    """Values of one scalar type and what is known about them; the three arrays broadcast against each other.

    ``value``: float64 for floating types, otherwise the type itself.
    ``error``: a kernel may have any value within it.  A floating infinity or NaN with error 0 is certain; error
    ``inf`` means that nothing is known, NaN included.  For a boolean, error 1 means that both outcomes are possible.
    ``ambiguous``: a decision (comparison, conversion to integer, overflow) upstream could have gone another way.
    """

    value: Array
    error: FloatArray = field(default_factory=lambda: EXACT)
    ambiguous: BoolArray = field(default_factory=lambda: CERTAIN)

    def part(self, slices: tuple[slice | EllipsisType, ...]) -> Bounded:
        """Some of the elements, as a view."""
        return Bounded(
            self.value[slices],
            self.error[slices] if self.error.ndim else self.error,
            self.ambiguous[slices] if self.ambiguous.ndim else self.ambiguous,
        )

    @property
    def is_exact(self) -> bool:
        """No element has an error."""
        return self.error.ndim == 0 and not self.error


def numpy_type(type: ScalarType) -> np.dtype[Any]:
    """The type in which the oracle holds values."""
    return np.dtype(np.float64) if type.is_floating else np.dtype(type.value)


def roundoff(type: ScalarType) -> float:
    """Relative error of one operation: the kernel's rounding, which for a half goes by way of float32, and ours."""
    by_way = ScalarType.FLOAT32.unit_roundoff if type.is_half else 0.0
    return type.unit_roundoff + by_way + ORACLE_ROUNDOFF


def overflow_threshold(type: ScalarType) -> float:
    """The least magnitude that rounds to infinity; infinite for float64, where the oracle overflows by itself."""
    if type is ScalarType.FLOAT64:
        return float("inf")
    quantum = 2.0 * type.unit_roundoff * 2.0 ** math.floor(math.log2(type.largest))
    middle = type.largest + quantum / 2
    # In a type without infinities the largest number is even, and what lies in the middle is rounded to it.
    return middle if type.has_infinities else math.nextafter(middle, math.inf)


def smallest_normal(type: ScalarType) -> float:
    """Results below it lose relative accuracy."""
    return type.smallest_subnormal / (2.0 * type.unit_roundoff)


# Of float32: below it, instructions for dot products of bfloat16 may take numbers and sums for zeros.
SMALLEST_NORMAL: Final = smallest_normal(ScalarType.FLOAT32)


def may_be_flushed(operand: Bounded) -> BoolArray:
    """Where a number that is not zero may be taken for zero, since it is subnormal in float32."""
    magnitude = np.abs(operand.value)
    return np.asarray((magnitude + operand.error > 0.0) & (magnitude - operand.error < SMALLEST_NORMAL))


def span(type: ScalarType) -> float:
    """The error that covers every value of an integer or boolean type."""
    return float(type.maximum - type.minimum)


def any_ambiguous(*operands: Bounded) -> BoolArray:
    """Where any of the operands is ambiguous."""
    found = CERTAIN
    for operand in operands:
        if operand.ambiguous is not CERTAIN:
            found = np.logical_or(found, operand.ambiguous)
    return found


def distance(left: Array, right: Array) -> FloatArray:
    """How far apart two floating values are: 0 for equal infinities and for two NaNs, inf for other mixtures."""
    gap = np.abs(np.asarray(left, np.float64) - np.asarray(right, np.float64))
    if np.isfinite(gap).all():
        return gap
    same = (left == right) | (np.isnan(left) & np.isnan(right))
    return np.where(same, 0.0, np.where(np.isnan(gap), np.inf, gap))


def hull(nominal: Bounded, alternative: Bounded, where: BoolArray) -> Bounded:
    """``nominal``, and where ``where`` holds, also every outcome of ``alternative``."""
    if not where.any():
        return nominal
    reach = distance(alternative.value, nominal.value) + alternative.error
    error = np.where(where, np.maximum(nominal.error, reach), nominal.error)
    ambiguous = np.logical_or(any_ambiguous(nominal), where & (reach > nominal.error))
    return Bounded(nominal.value, error, ambiguous)


def unsigned_zeros(operand: Bounded) -> Bounded:
    """The operand with room for either sign of zero: computed zeros may have any, and count as equal."""
    zero = (operand.value == 0) & (operand.error == 0)
    if not zero.any():
        return operand
    return Bounded(
        operand.value, np.where(zero, np.finfo(np.float64).smallest_subnormal, operand.error), operand.ambiguous
    )


def settle(operand: Bounded, type: ScalarType) -> Bounded:
    """What an operation that consumes the value sees: infinity where it overflows its type, anything where it may.

    A half may have been kept in float32, where it does not overflow yet: there both outcomes are possible.
    """
    if operand.is_exact or not type.is_floating:
        return operand
    threshold = overflow_threshold(type)
    magnitude = np.abs(operand.value)
    reached = ~(magnitude + operand.error < threshold) & np.isfinite(operand.value)
    if not reached.any():
        return operand
    certain = reached & (magnitude - operand.error >= threshold) & (not type.is_half)
    value = np.where(certain, np.copysign(np.inf, operand.value), operand.value)
    error = np.where(certain, 0.0, np.where(reached, np.inf, operand.error))
    return Bounded(value, error, operand.ambiguous)


def collapse(stored: Bounded, type: ScalarType) -> Bounded:
    """The value after it was certainly rounded to its type: infinity, or NaN, where every outcome overflows."""
    if not type.is_floating or (stored.is_exact and type.has_infinities):
        return stored
    certain = np.isfinite(stored.value) & (np.abs(stored.value) - stored.error >= overflow_threshold(type))
    if not type.has_infinities:
        certain = certain | np.isinf(stored.value)
    if not certain.any():
        return stored
    beyond = np.copysign(np.inf, stored.value) if type.has_infinities else np.nan
    value = np.where(certain, beyond, stored.value)
    return Bounded(value, np.where(certain, 0.0, stored.error), stored.ambiguous)


def rounded(value: Array, type: ScalarType) -> FloatArray:
    """The nearest values of a floating type, as float64 (bfloat16 by way of float32)."""
    if type.itemsize == 1:
        wide = np.asarray(value, np.float64)
        quantum = np.maximum(np.ldexp(type.unit_roundoff, np.frexp(wide)[1]), type.smallest_subnormal)
        near = np.copysign(np.rint(wide / quantum) * quantum, wide)
        beyond = np.copysign(np.inf, wide) if type.has_infinities else np.nan
        return np.where(np.abs(near) <= type.largest, near, np.where(np.isnan(wide), np.nan, beyond))
    if type is ScalarType.BFLOAT16:
        bits = np.asarray(value, np.float32).view(np.uint32)
        kept = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) & np.uint32(0xFFFF0000)
        near = kept.view(np.float32).astype(np.float64)
        return np.where(np.isnan(value), np.nan, near)
    return np.asarray(value).astype(type.value).astype(np.float64)


def constant(value: bool | int | float, type: ScalarType) -> Bounded:
    """A literal or scalar argument: rounded to its type, except that a half may be kept in float32."""
    if type.is_floating:
        given = np.asarray(float(value))
        near = rounded(given, type)
        if not type.is_half:
            return Bounded(near)
        return Bounded(given, np.asarray(2.0 * distance(near, given)))
    if type.kind is Kind.BOOLEAN:
        return Bounded(np.asarray(bool(value)))
    wrapped = (int(value) - type.minimum) % (1 << (8 * type.itemsize)) + type.minimum
    return Bounded(np.asarray(wrapped, numpy_type(type)))

"""Does what a kernel computed lie within the oracle's bound?"""

from __future__ import annotations

import numpy as np

from tc.base.errors import ArgumentError
from tc.base.frozen import frozen
from tc.reference.bounded import Array, BoolArray, FloatArray, overflow_threshold
from tc.reference.evaluate import Result

# The bound is a float64 itself, rounded many times.
_SLACK = 1.0 + 2.0**-40


@frozen
class Mismatch:
    """One element outside its bound."""

    index: tuple[int, ...]
    expected: bool | int | float
    actual: bool | int | float
    bound: float

    def __str__(self) -> str:
        at = ", ".join(map(str, self.index))
        return f"at ({at}): expected {self.expected!r}, got {self.actual!r}, which may differ by {self.bound:.3g}"


@frozen
class Comparison:
    """``worst``: the greatest |actual - value| / bound over all elements, 0 for equal ones, inf where the bound is 0.

    ``largest``: the greatest |actual - value| over the elements where both are finite.
    ``ambiguous``: the fraction of elements with a decision that could go several ways.
    """

    ok: bool
    worst: float
    largest: float
    first: Mismatch | None
    ambiguous: float

    def __str__(self) -> str:
        if self.first is None:
            return f"within the bound: worst {self.worst:.3g} of it, {100 * self.ambiguous:.3g} % ambiguous"
        return f"outside the bound, {self.worst:.3g} times it; first {self.first}"


def compare(result: Result, actual: Array) -> Comparison:
    """Compares a kernel's output with the oracle's result for it.

    NaN must meet NaN and infinities the same infinity, except that infinity (NaN, in a type without infinities) is
    accepted where a value within the bound rounds to it.  ArgumentError if shape or dtype differ from the result's.
    """
    actual = np.asarray(actual)
    if actual.shape != result.values.shape or actual.dtype.name != result.type.value:
        raise ArgumentError(
            f"cannot compare {actual.dtype.name} of shape {actual.shape} with a result of type {result.type} "
            f"and shape {result.values.shape}"
        )
    with np.errstate(all="ignore"):
        gap, accepted = _floating(result, actual) if result.type.is_floating else _integer(result, actual)
        ratio = np.where(gap == 0, 0.0, np.where(np.isinf(result.error), 0.0, gap / result.error))
    finite = gap[np.isfinite(gap)]
    return Comparison(
        ok=bool(accepted.all()),
        worst=float(ratio.max(initial=0.0)),
        largest=float(finite.max(initial=0.0)),
        first=_first(result, actual, accepted),
        ambiguous=float(result.ambiguous.mean()) if result.ambiguous.size else 0.0,
    )


def _floating(result: Result, actual: Array) -> tuple[FloatArray, BoolArray]:
    """Distances, 0 where an infinity or NaN is as it must or may be, and which elements are accepted."""
    given, value, error = actual.astype(np.float64), result.values, result.error
    gap = np.abs(given - value)
    reached = np.abs(value) + error >= overflow_threshold(result.type)
    overflowed = np.isinf(given) & reached & (np.sign(given) * value + error >= overflow_threshold(result.type))
    if not result.type.has_infinities:
        overflowed = np.isnan(given) & reached
    same = (given == value) | (np.isnan(given) & np.isnan(value)) | overflowed
    gap = np.where(same, 0.0, np.where(np.isnan(gap), np.inf, gap))
    return gap, gap <= error * _SLACK


def _integer(result: Result, actual: Array) -> tuple[FloatArray, BoolArray]:
    gap = np.abs(actual.astype(np.float64) - result.values.astype(np.float64))
    # Neighbours beyond 2**53 are one float64.
    gap = np.where(actual == result.values, 0.0, np.maximum(gap, 1.0))
    return gap, gap <= result.error * _SLACK


def _first(result: Result, actual: Array, accepted: BoolArray) -> Mismatch | None:
    if accepted.all():
        return None
    index = tuple(int(i) for i in np.argwhere(~accepted)[0])
    item = float(actual[index]) if result.type.is_floating else actual[index].item()
    return Mismatch(index, result.values[index].item(), item, float(result.error[index]))

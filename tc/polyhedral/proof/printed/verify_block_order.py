"""Proof that blocks in another order run all iterations of the loops over them, and each of them once.

Blocks do not wait for each other, so that it does not matter which of them runs what.  The digits of a number are its
own if each begins where the one before ends; sums of digits are all numbers, and each once, for the same reason.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from tc.base.errors import VerificationError
from tc.polyhedral.ir.launch_order import LaunchOrder


def prove_block_order(grid: tuple[int, ...], order: LaunchOrder) -> None:
    """VerificationError where the last loops over blocks cannot have this order; ``grid``: outermost loop first."""
    sizes = grid[-len(order.digits) :]
    digits = [digit for own in order.digits for digit in own]
    whole = _ends(((digit.below, digit.count) for digit in digits), math.prod(sizes))
    along = (
        _ends(((digit.factor, digit.count) for digit in own), size)
        for own, size in zip(order.digits, sizes, strict=True)
    )
    if not whole or not all(along):
        raise VerificationError(f"the order of blocks is not proven correct: some iteration of {sizes} has no block")


def _ends(digits: Iterable[tuple[int, int]], size: int) -> bool:
    """Whether digits, each with what it counts and how far, lie one behind the other, and end at a size."""
    begin = 1
    for unit, count in sorted(digits):
        if count == 1:
            continue
        if unit != begin:
            return False
        begin *= count
    return begin == size

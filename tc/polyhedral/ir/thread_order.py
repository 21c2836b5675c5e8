"""Which thread of the hardware runs which iteration of the loops over the threads of a block."""

from __future__ import annotations

from tc.base.frozen import frozen


@frozen
class Digit:
    """``number / below % count``, which counts ``factor`` in a sum."""

    below: int
    count: int
    factor: int

    def value(self, number: int) -> int:
        """Of one thread."""
        return number // self.below % self.count * self.factor


@frozen
class ThreadOrder:
    """For each loop over threads, outermost first, the digits of a thread's number whose sum is its iteration.

    Threads are numbered as the hardware does it, x first: so many in a row are a warp.
    """

    digits: tuple[tuple[Digit, ...], ...]

    def iterations(self, number: int) -> tuple[int, ...]:
        """Those of one thread."""
        return tuple(sum(digit.value(number) for digit in own) for own in self.digits)

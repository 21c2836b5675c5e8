"""Which thread or block of the hardware runs which iteration of the loops over these."""

from __future__ import annotations

from tc.base.frozen import frozen


@frozen
class Digit:
    """``number / below % count``, which counts ``factor`` in a sum."""

    below: int
    count: int
    factor: int

    def value(self, number: int) -> int:
        """Of one number."""
        return number // self.below % self.count * self.factor


@frozen
class LaunchOrder:
    """For each loop over threads of a block, or over blocks of a grid along its last two dimensions, outermost first,
    the digits of a number whose sum is the iteration.

    Threads and blocks are numbered as the hardware does it, x first: so many threads in a row are a warp, and blocks in
    a row run at the same time.
    """

    digits: tuple[tuple[Digit, ...], ...]

    def iterations(self, number: int) -> tuple[int, ...]:
        """Those of one number."""
        return tuple(sum(digit.value(number) for digit in own) for own in self.digits)

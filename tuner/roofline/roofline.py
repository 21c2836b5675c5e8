"""The roofline model: ``Work``, ``Roofs``, and the lower bound of time that follows from both."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tc.base.frozen import frozen

_LIKE: Final = 1.03


@frozen
class Work:
    """``operations`` on floating-point numbers, a multiplication with an addition counting as two.

    ``read``: bytes of the arguments, of gathered ones those of the rows that are chosen.  ``written``: bytes of the
    results.  A kernel that moves each of them once and keeps the rest in registers moves no others.
    """

    operations: int
    read: int
    written: int

    @property
    def moved(self) -> int:
        """Bytes read and written."""
        return self.read + self.written


@frozen
class Bandwidth:
    """Bytes per second between memory or caches and registers, for a working set of so many bytes."""

    working_set: int
    read: float
    copied: float

    @property
    def best(self) -> float:
        """Copying counts what it reads and what it writes."""
        return max(self.read, self.copied)


@frozen
class Roofs:
    """``operations``: on floats per second, in multiplications with additions.  ``bandwidths``: by working set.

    ``fresh``: bytes per second of memory that the system clears and hands out, a page at a time.
    ``launch``: seconds of a call that does nothing, by the clock that calls are timed with.
    """

    operations: float
    bandwidths: tuple[Bandwidth, ...]
    fresh: float
    launch: float = 0.0

    def bound(self, work: Work, *, fresh: bool = False) -> float:
        """Seconds that no kernel for this work can fall below on this machine.

        What the caches hold from one call to the next is taken to come from them, at the bandwidth of the largest
        measured working set that is not larger, so that the bound stays one.  ``fresh``: the results lie in memory
        that the system provides during the call: a core that clears it does nothing else meanwhile, but finds it in
        its caches when it writes the results.
        """
        computing = work.operations / self.operations
        bandwidth = max((b for b in self.bandwidths if b.working_set <= work.moved), key=_size, default=self._smallest)
        seconds = max(computing, work.moved / bandwidth.best, self.launch)
        if not fresh:
            return seconds
        return max(seconds, work.written / self.fresh + max(computing, work.read / bandwidth.best))

    @property
    def _smallest(self) -> Bandwidth:
        return min(self.bandwidths, key=_size)


def _size(bandwidth: Bandwidth) -> int:
    return bandwidth.working_set


def stable(measure: Callable[[], Roofs], most: int) -> Roofs:
    """The best of measurements of one machine, which are taken until another one adds nothing, but at most so often."""
    found = measure()
    for _ in range(most - 1):
        known, found = found, highest(found, measure())
        if _is_like(found, known):
            break
    return found


def _is_like(found: Roofs, known: Roofs) -> bool:
    """Whether no bound becomes lower by more than 3 % with what was found."""
    gains = [found.operations / known.operations, found.fresh / known.fresh]
    gains += [one.best / other.best for one, other in zip(found.bandwidths, known.bandwidths, strict=True)]
    gains += [known.launch / found.launch] if found.launch else []
    return max(gains) <= _LIKE


def highest(roofs: Roofs, others: Roofs) -> Roofs:
    """The best of two measurements of one machine, which others may have kept busy meanwhile."""
    bandwidths = (
        Bandwidth(one.working_set, max(one.read, other.read), max(one.copied, other.copied))
        for one, other in zip(roofs.bandwidths, others.bandwidths, strict=True)
    )
    operations, fresh = max(roofs.operations, others.operations), max(roofs.fresh, others.fresh)
    return Roofs(operations, tuple(bandwidths), fresh, min(roofs.launch, others.launch))

"""Offsets by branch and bound over canonical placements.

Blocks are placed by increasing offset, each at 0 or on top of one that is needed at the same time, so that no placement
comes twice.  A section is a set of steps in which the same blocks are needed: where the lowest offset that is left in
one, and the bytes that are still to be placed in it, exceed the arena, nothing below the branch fits.  Of blocks that
are chosen from, the lowest comes first; among equals decides an order.  (Moffitt, *MiniMalloc: A Lightweight Memory
Allocator for Hardware-Accelerated Machine Learning*, ASPLOS 2023.)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

import numpy as np

from tc.base.frozen import frozen
from tc.graph.memory.blocks import Block, arena_size, live_peak

Array: TypeAlias = np.ndarray
# More than any offset, and twice as much is still a number.
_FAR: Final = 1 << 60
# What decides among equals: the first letter, then the next ones.  L: what begins first, U: what ends last, S: the
# largest, A: the largest area (bytes times steps), W: what is needed longest, T: what is needed when most is, O: what
# meets most blocks.
_ORDERS: Final = ("LWA", "USA", "OLT", "TUS", "TWA", "LAT")
# How many times all blocks are placed before an attempt ends, and how much longer the next ones are, if all fail.
_PLACEMENTS: Final = 1.25
_LONGER: Final = 1.5
# What a placement costs beside the work on the elements of arrays, which is counted in those.
_OVERHEAD: Final = 30_000
# The least arena is tried first, then one that is smaller by this part of what is too much, half of it, and so on.
_SMALLER: Final = 0.3
# Where the gain would be less than this part of the arena, the search ends.
_LEAST_GAIN: Final = 1 / 512
# Matrices of more blocks would fill memory.
_MOST_BLOCKS: Final = 4096


def improved(blocks: Sequence[Block], offsets: Sequence[int], work: int) -> tuple[int, ...]:
    """Offsets in the smallest arena that is found, or those given.  ``work``: nanoseconds, counted in operations.

    Sizes are positive.
    """
    best, least = tuple(offsets), live_peak(blocks)
    if not 1 < len(blocks) <= _MOST_BLOCKS:
        return best
    sections = _Sections.of(blocks)
    orders = _orders(blocks, sections)
    size, failed, part, placements = arena_size(blocks, best), 0, 1.0, _PLACEMENTS * len(blocks)
    while work > 0 and size > least and (size - least) * part >= size * _LEAST_GAIN:
        branching = _Branching(sections, orders[0], max(size - int((size - least) * part) - 1, least))
        found = branching.run(int(placements), work)
        work -= branching.work
        if found is not None:
            best, failed = found, 0
            size = arena_size(blocks, best)
            continue
        failed, orders = failed + 1, [*orders[1:], orders[0]]
        if failed == len(orders):
            failed, placements = 0, placements if part == 1 else placements * _LONGER
            part = min(part / 2, _SMALLER)
    return best


@frozen
class _Sections:
    """By section, and of the blocks in some order: ``far`` is 0 where a section needs a block.

    ``meeting``: pairs of blocks that are needed at the same time.  ``first`` and ``until``: the sections of a block.
    """

    sizes: Array
    far: Array
    meeting: Array
    first: Array
    until: Array

    @staticmethod
    def of(blocks: Sequence[Block]) -> _Sections:
        first, last = np.array([block.first for block in blocks]), np.array([block.last for block in blocks])
        starts, ends = np.unique(first), np.unique(last)
        following = np.append(starts[1:], ends[-1] + 1)
        # A step after which none ends before another begins needs less than the next one.
        steps = starts[np.searchsorted(ends, starts) < np.searchsorted(ends, following)]
        needed = (first <= steps[:, None]) & (steps[:, None] <= last)
        begin, until = needed.argmax(0), len(steps) - needed[::-1].argmax(0)
        meeting = (begin[:, None] < until) & (begin < until[:, None])
        np.fill_diagonal(meeting, val=False)
        sizes = np.array([block.bytes for block in blocks], np.int64)
        return _Sections(sizes, np.where(needed, 0, _FAR), meeting, begin, until)

    def ordered(self, order: Array) -> _Sections:
        """The same with the blocks in another order."""
        meeting = self.meeting[np.ix_(order, order)]
        return _Sections(self.sizes[order], self.far[:, order], meeting, self.first[order], self.until[order])

    @property
    def needed(self) -> Array:
        """By section, the bytes of its blocks."""
        return np.asarray((self.far == 0) @ self.sizes)


def _orders(blocks: Sequence[Block], sections: _Sections) -> list[Array]:
    first, last = np.array([block.first for block in blocks]), np.array([block.last for block in blocks])
    needed, lasting = sections.needed, last - first + 1
    most = np.array([needed[a:b].max() for a, b in zip(sections.first, sections.until, strict=True)])
    keys = {"L": first, "U": -last, "S": -sections.sizes, "A": -lasting * sections.sizes, "W": -lasting}
    keys |= {"T": -most, "O": -sections.meeting.sum(1)}
    return [np.lexsort([keys[letter] for letter in reversed(order)]) for order in _ORDERS]


@frozen
class _Branch:
    """Some blocks placed: ``lowest`` has the least offset of each other one, ``floors`` the least in each section.

    ``left``: bytes to be placed, by section.  ``at`` and ``last``: the offset of the block placed last, and which.
    ``changed``: the sections whose floors that changed.  ``choices``: the blocks that are still to be tried next.
    """

    lowest: Array
    floors: Array
    left: Array
    at: int
    last: int
    changed: range
    choices: Iterator[int]


class _Branching:
    """The search for one arena with one order; ``work`` is counted."""

    def __init__(self, sections: _Sections, order: Array, arena: int) -> None:
        self._sections: Final = sections.ordered(order)
        self._order: Final = order
        self._arena: Final = arena
        self.work = 0

    def run(self, placements: int, work: int) -> tuple[int, ...] | None:
        """Offsets in the arena; None where so many placements, or so much work, find none.

        Where nothing fits after a branch, it goes back to the last one that has changed the section in which the first
        block had no room: what lies between has not to do with it.
        """
        lowest, floors = np.zeros(len(self._order), np.int64), np.zeros(len(self._sections.far), np.int64)
        root = _Branch(lowest, floors, self._sections.needed, 0, -1, range(len(floors)), self._choices(lowest, 0))
        branches, full = [root], [_NOWHERE]
        while placements > 0 and self.work < work:
            block = next(branches[-1].choices, None)
            if block is None:
                where = full.pop()
                branch = branches.pop()
                while branches and not _meet(branch.changed, where):
                    branch = branches.pop()
                    full.pop()
                if not branches:
                    break
                full[-1] = full[-1] or where
                continue
            placements -= 1
            found = self._with(branches[-1], block)
            if not isinstance(found, _Branch):
                full[-1] = full[-1] or found
                continue
            branches.append(found)
            full.append(_NOWHERE)
            if len(branches) > len(self._order):
                return self._offsets(branches)
        return None

    def _offsets(self, branches: Sequence[_Branch]) -> tuple[int, ...]:
        found = [0] * len(self._order)
        for branch in branches[1:]:
            found[int(self._order[branch.last])] = branch.at
        return tuple(found)

    def _choices(self, lowest: Array, at: int) -> Iterator[int]:
        """Blocks that may come next: those below which no other one has room, the lowest first."""
        top = (np.maximum(lowest, at) + self._sections.sizes).min()
        (found,) = np.nonzero((lowest >= at) & (lowest < top))
        return iter(found[np.argsort(lowest[found], kind="stable")].tolist())

    def _with(self, branch: _Branch, block: int) -> _Branch | range:
        """The branch with a block placed; the sections that have no room then, none where another order has that."""
        sections, at = self._sections, int(branch.lowest[block])
        end, first, until = at + int(sections.sizes[block]), int(sections.first[block]), int(sections.until[block])
        self.work += _OVERHEAD
        if at == branch.at and block < branch.last:
            return _NOWHERE
        if end > self._arena:
            return range(first, until)
        lowest, left = branch.lowest.copy(), branch.left.copy()
        lowest[block] = _FAR
        left[first:until] -= sections.sizes[block]
        (raised,) = np.nonzero(sections.meeting[block] & (lowest < end))
        if len(raised):
            largest = raised[sections.sizes[raised].argmax()]
            if end + int(sections.sizes[largest]) > self._arena:
                return range(int(sections.first[largest]), int(sections.until[largest]))
            lowest[raised] = end
            first, until = min(first, int(sections.first[raised].min())), max(until, int(sections.until[raised].max()))
        floors = branch.floors.copy()
        floors[first:until] = (sections.far[first:until] + lowest).min(axis=1)
        self.work += (until - first) * len(lowest)
        (full,) = np.nonzero((np.maximum(floors, at) + left > self._arena) & (left > 0))
        if len(full):
            return range(int(full[0]), int(full[0]) + 1)
        return _Branch(lowest, floors, left, at, block, range(first, until), self._choices(lowest, at))


_NOWHERE: Final = range(0)


def _meet(one: range, other: range) -> bool:
    """Whether two ranges have a number in common; with none of them, it is not known where there is no room."""
    return not other or (one.start < other.stop and other.start < one.stop)

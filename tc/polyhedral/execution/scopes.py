"""Which array of a buffer an instance sees: the time of the allocation around it."""

from __future__ import annotations

from collections.abc import Collection
from collections.abc import Sequence as Items
from itertools import accumulate
from typing import Final, TypeAlias, assert_never

import islpy as isl

from tc.base.frozen import frozen
from tc.polyhedral.analysis.functions import Function
from tc.polyhedral.analysis.times import Times
from tc.polyhedral.execution.execution import Concurrency
from tc.polyhedral.ir.lazy_attribute import LazyAttribute
from tc.polyhedral.ir.loops import Sharing

# The sorts of dimensions that each level of nesting takes: one for every sort that some branch has there, so that
# branches need not agree.
Levels: TypeAlias = tuple[tuple[Concurrency, ...], ...]

Time: TypeAlias = tuple[tuple[Concurrency, Function], ...]


@frozen
class Scope:
    """An allocation of a buffer on the way to a leaf, below so many levels of time."""

    buffer: str
    depth: int
    sharing: Sharing


@frozen
class Way:
    """The way to a leaf: its statement, time and allocations; ``times``: the same, padded to all levels."""

    statement: str
    time: Time
    scopes: tuple[Scope, ...]
    times: Times


def levels_of(times: Items[Time]) -> Levels:
    """The levels that all times have together."""
    depth = max((len(time) for time in times), default=0)
    present = [{time[level][0] for time in times if level < len(time)} for level in range(depth)]
    return tuple(tuple(sort for sort in Concurrency if sort in sorts) for sorts in present)


class Scopes:
    """The allocations around all instances, of which few are asked for.

    ``levels``: of all times.  ``sharing``: as if all buffers were shared so; None for as they are.
    """

    def __init__(self, ways: Items[Way], levels: Levels, sharing: Sharing | None = None) -> None:
        self._ways: Final = ways
        self._levels: Final = levels
        self._sharing: Final = sharing

    @LazyAttribute
    def _positions(self) -> list[list[tuple[str, tuple[int, ...]]]]:
        """Of every way, the buffers that are allocated on it, and the levels of their allocations."""
        return [
            [
                (scope.buffer, _allocation_levels(way.time, scope.depth, self._sharing or scope.sharing))
                for scope in way.scopes
            ]
            for way in self._ways
        ]

    @LazyAttribute
    def _common(self) -> Levels:
        """What all that are compared have."""
        return levels_of(
            [
                tuple(way.time[level] for level in at)
                for way, own in zip(self._ways, self._positions, strict=True)
                for _, at in own
            ]
        )

    def arrays(self, buffer: str, statements: Collection[str]) -> isl.UnionMap | None:
        """``{ instance -> time }``: of the allocation around it, for instances of these statements.

        They are some of the instance's own times.  None where no allocation is around any of them.
        """
        found: isl.UnionMap | None = None
        for way, own in zip(self._ways, self._positions, strict=True):
            if way.statement not in statements:
                continue
            for at in (at for allocated, at in own if allocated == buffer):
                times = isl.UnionMap.from_map(way.times.along(self._selected(way.time, at)))
                found = times if found is None else found.union(times)
        return None if found is None else found.coalesce()

    @LazyAttribute
    def _begins(self) -> list[int]:
        """The first dimension of every level."""
        return [0, *accumulate(map(len, self._levels))]

    def _selected(self, time: Time, at: tuple[int, ...]) -> tuple[int | None, ...]:
        """The dimensions at these of the levels, padded with None to what all that are compared have."""
        selected: list[int | None] = []
        for number, sorts in enumerate(self._common):
            if number >= len(at):
                selected += [None] * len(sorts)
                continue
            level, own = at[number], time[at[number]][0]
            position = self._begins[level] + self._levels[level].index(own)
            selected += [position if sort is own else None for sort in sorts]
        return tuple(selected)


def _allocation_levels(time: Time, depth: int, sharing: Sharing) -> tuple[int, ...]:
    """The levels of an allocation's own time: threads have one array each, or those along x, or all of a block one.

    Wherever the loops over them are: every block and every thread comes to the allocation.
    """
    on_grid = (Concurrency.BLOCKS, Concurrency.THREADS)
    around = [level for level, (sort, _) in enumerate(time) if level < depth or sort in on_grid]
    threads = [level for level in around if time[level][0] is Concurrency.THREADS]
    match sharing:
        case Sharing.THREAD:
            together = []
        case Sharing.LANES:
            together = threads[-1:]
        case Sharing.BLOCK:
            together = threads
        case _:
            assert_never(sharing)
    return tuple(level for level in around if level not in together)

"""Register tiles at borders: steps that have other rows than the ones before are written out.

Where a window leaves an image, some of its taps have fewer rows of a register tile.  Which ones they have follows from
the place of the tile and from the tap.  Tested in every step (``guard_tiles``), that costs more than what the rows
compute.  Few places of tiles are at borders: each of them has a branch of its own, in which the taps are written out,
so that each copy of a step has just its rows; in the branch of the others, all steps have all rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Final, assert_never

from tc.base.frozen import frozen
from tc.polyhedral.analysis.ranges import Range, Ranges, iterator_range, range_of
from tc.polyhedral.analysis.substitute import substituted_in
from tc.polyhedral.ir.loops import (
    LEAST_ROWS_AT_BORDERS,
    MOST_ROWS_AT_BORDERS,
    Allocation,
    Block,
    Guard,
    IndexLiteral,
    IndexOperation,
    IndexOperator,
    IndexVariable,
    Leaf,
    Loop,
    LoopKind,
    LoopTree,
    variables,
)
from tc.polyhedral.separate.guard_tiles import rows_of

# Of tiles that one loop is around, all of which are looked at.
_MOST_PLACES: Final = 1024
_PLACES: Final = (LoopKind.SEQUENTIAL, LoopKind.PARALLEL)


def unroll_borders(tree: LoopTree, ranges: Ranges, *, in_tile: bool = False) -> LoopTree:
    """The loops with copies of the tiles at borders, and of their steps; ``ranges``: of sizes and iterators around;
    ``in_tile``: a buffer is allocated around the loops.
    """
    match tree:
        case Leaf():
            return tree
        case Block(children):
            return Block(tuple(unroll_borders(child, ranges, in_tile=in_tile) for child in children))
        case Guard(condition, then, otherwise):
            other = None if otherwise is None else unroll_borders(otherwise, ranges, in_tile=in_tile)
            return Guard(condition, unroll_borders(then, ranges, in_tile=in_tile), other)
        case Allocation():
            return replace(tree, body=unroll_borders(tree.body, ranges, in_tile=True))
        case Loop():
            inside = {**ranges, tree.iterator: iterator_range(tree, ranges)}
            found = _separated(tree, ranges, in_tile=in_tile)
            return found or replace(tree, body=unroll_borders(tree.body, inside, in_tile=in_tile))
        case _:
            assert_never(tree)


@frozen
class _Rows:
    """The loops over rows and lanes of a tile, of which there are not as many in all steps.

    ``around``: the loops around them, from one on; ``allocated``: that one is around the buffer of the tile, too.
    """

    nest: tuple[Loop, ...]
    around: tuple[Loop, ...]
    allocated: bool

    @property
    def names(self) -> frozenset[str]:
        """The iterators that say which rows there are."""
        return frozenset(name for own in self.nest for name in variables(own.lower) | variables(own.upper))

    def follow(self) -> bool:
        """Whether loops that may be written out say which rows there are."""
        place, *steps = self.around
        known = {own.iterator for own in steps if _is_counted(own)}
        return self.names <= {place.iterator, *known}

    def ends(self, ranges: Ranges, place: int) -> tuple[Range, ...]:
        """Where the rows begin and end at a value of the outermost loop."""
        inside = self.inside(ranges, place)
        return tuple(range_of(end, inside) for own in self.nest for end in (own.lower, own.upper))

    def copies(self, ranges: Ranges, place: int) -> int | float:
        """How many there are of the rows at a value of the outermost loop, with the steps written out."""
        inside = self.inside(ranges, place)
        rows = (iterator_range(own, inside) for own in self.nest if own.kind is LoopKind.REGISTER)
        steps = (inside[name] for name in self.names - {self.around[0].iterator})
        return max(LEAST_ROWS_AT_BORDERS, _points(rows)) * _points(steps)

    def inside(self, ranges: Ranges, place: int) -> Ranges:
        """The values of all iterators around, at one of the outermost loop."""
        found = {**ranges, self.around[0].iterator: Range(place, place)}
        for own in self.around[1:]:
            found[own.iterator] = iterator_range(own, found)
        return found


def _separated(loop: Loop, ranges: Ranges, *, in_tile: bool) -> LoopTree | None:
    """The loop in parts, if it says which rows there are; None where others around do so, too, or copies are too many.

    A loop over steps is written out as a whole: there, the place of the tile says nothing.
    """
    if loop.kind not in _PLACES or loop.step != 1:
        return None
    every = [rows for rows in _rows(loop, ()) if loop.iterator in rows.names and (in_tile or rows.allocated)]
    values = iterator_range(loop, ranges)
    if not every or not all(rows.follow() for rows in every) or not _points([values]) <= _MOST_PLACES:
        return None
    first, last = int(values.least), int(values.most)
    around_tiles = all(rows.allocated for rows in every)

    def whole(place: int) -> tuple[Range, ...] | None:
        """The rows there, if they are the same in all steps."""
        found = tuple(end for rows in every for end in rows.ends(ranges, place))
        return found if all(end.least == end.most for end in found) else None

    parts = [
        (key, list(own)) for key, own in groupby(range(first, last + 1), whole if around_tiles else lambda _: None)
    ]
    borders = [place for key, own in parts for place in own if key is None]
    if not borders or sum(rows.copies(ranges, place) for rows in every for place in borders) > MOST_ROWS_AT_BORDERS:
        return None
    if not around_tiles:
        return replace(loop, kind=LoopKind.FULLY_UNROLLED) if _is_counted(loop) else None
    inside = [(own[0], own[-1]) for key, own in parts if key is not None]
    return replace(loop, body=_in_parts(loop, inside, borders))


def _is_counted(loop: Loop) -> bool:
    """Whether a loop runs in order from one number to another."""
    ends = isinstance(loop.lower, IndexLiteral) and isinstance(loop.upper, IndexLiteral)
    return ends and loop.kind is LoopKind.SEQUENTIAL and loop.step == 1


def _points(ranges: Iterable[Range]) -> int | float:
    return math.prod(own.most - own.least + 1 for own in ranges)


def _in_parts(loop: Loop, inside: Sequence[tuple[int, int]], borders: Sequence[int]) -> LoopTree:
    """The body for each of the places ``inside``, from one to another, and for each border."""
    place = IndexVariable(loop.iterator)
    *others, final = (_at(loop, own) for own in borders)
    found = final
    for border, copy in reversed(list(zip(borders, others, strict=False))):
        found = Guard(IndexOperation(IndexOperator.EQUAL, (place, IndexLiteral(border))), copy, found)
    for first, last in inside:
        ends = (
            IndexOperation(IndexOperator.GREATER_EQUAL, (place, IndexLiteral(first))),
            IndexOperation(IndexOperator.LESS_EQUAL, (place, IndexLiteral(last))),
        )
        found = Guard(IndexOperation(IndexOperator.AND, ends), loop.body, found)
    return found


def _at(loop: Loop, place: int) -> LoopTree:
    """The body at a border, with the steps written out."""
    return substituted_in(_written_out(loop.body, loop.iterator), {loop.iterator: IndexLiteral(place)})


def _written_out(tree: LoopTree, place: str) -> LoopTree:
    """The tree with copies of the steps that say with the ``place`` which rows there are."""
    match tree:
        case Leaf():
            return tree
        case Block(children):
            return Block(tuple(_written_out(child, place) for child in children))
        case Guard(condition, then, otherwise):
            other = None if otherwise is None else _written_out(otherwise, place)
            return Guard(condition, _written_out(then, place), other)
        case Allocation():
            return replace(tree, body=_written_out(tree.body, place))
        case Loop():
            says = any({place, tree.iterator} <= rows.names for rows in _rows(tree, ()))
            kind = LoopKind.FULLY_UNROLLED if says else tree.kind
            return replace(tree, kind=kind, body=_written_out(tree.body, place))
        case _:
            assert_never(tree)


def _rows(tree: LoopTree, around: tuple[Loop, ...], *, allocated: bool = False) -> Iterator[_Rows]:
    """Of all tiles inside."""
    match tree:
        case Leaf():
            return
        case Block(children):
            for child in children:
                yield from _rows(child, around, allocated=allocated)
        case Guard(_, then, otherwise):
            yield from _rows(then, around, allocated=allocated)
            if otherwise is not None:
                yield from _rows(otherwise, around, allocated=allocated)
        case Allocation():
            yield from _rows(tree.body, around, allocated=True)
        case Loop(kind=LoopKind.REGISTER | LoopKind.VECTOR):
            nest = tuple(rows_of(tree))
            if not all(isinstance(end, IndexLiteral) for own in nest for end in (own.lower, own.upper)):
                yield _Rows(nest, around, allocated)
        case Loop():
            yield from _rows(tree.body, (*around, tree), allocated=allocated)
        case _:
            assert_never(tree)

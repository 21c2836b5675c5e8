"""Register tiles whose points have conditions, as those of a convolution with padding at the border of the image.

The bounds of the tile's loops depend then on the step of the reduction.  Rows are in registers only where all loops
have constant bounds, so these get the least and the greatest of all steps.  A guard in every step decides whether it
has all points of the tile; where it has not, every row has a guard of its own.  Bounds that depend on loops which are
written out alone will be numbers (``unroll_borders``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import reduce
from typing import Final, assert_never

import islpy as isl

from tc.base.frozen import frozen
from tc.language.program.specialization import Sizes
from tc.polyhedral.analysis.ranges import Range, iterator_range, range_of, ranges_where, size_ranges
from tc.polyhedral.execution.barriers import Step
from tc.polyhedral.execution.loop_execution import follow_path, frame_of_path
from tc.polyhedral.ir.loops import (
    Allocation,
    Block,
    Guard,
    IndexExpression,
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

# Rows of a register tile, each of which is written out, and its lanes.
_MOST_ROWS: Final = 16
_MOST_LANES: Final = 64


def guard_tiles(root: LoopTree, context: isl.Context, sizes: Sizes = ()) -> LoopTree:
    """The loops with constant bounds for the rows and lanes of register tiles."""
    return _Guarding(context, sizes).visit(root, (), in_tile=False)


@frozen
class _Guarding:
    context: isl.Context
    sizes: Sizes

    def visit(self, tree: LoopTree, path: tuple[Step, ...], *, in_tile: bool) -> LoopTree:
        """``in_tile``: a buffer is allocated around the loops."""
        match tree:
            case Leaf():
                return tree
            case Block(children):
                return Block(tuple(self.visit(own, (*path, n), in_tile=in_tile) for n, own in enumerate(children)))
            case Guard(condition, then, otherwise):
                if otherwise is not None:
                    otherwise = self.visit(otherwise, (*path, (condition, False)), in_tile=in_tile)
                return Guard(condition, self.visit(then, (*path, (condition, True)), in_tile=in_tile), otherwise)
            case Allocation():
                return replace(tree, body=self.visit(tree.body, (*path, tree), in_tile=True))
            case Loop(kind=LoopKind.REGISTER | LoopKind.VECTOR):
                return self.guarded(tree, path) if in_tile else tree
            case Loop():
                return replace(tree, body=self.visit(tree.body, (*path, tree), in_tile=in_tile))
            case _:
                assert_never(tree)

    def guarded(self, nest: Loop, path: tuple[Step, ...]) -> LoopTree:
        """The loops of the rows, for steps that have all of them, and for the others."""
        rows = list(rows_of(nest))
        loops = [step for step in path if isinstance(step, Loop)]
        copied = {loop.iterator for loop in loops if loop.kind is LoopKind.FULLY_UNROLLED}
        inside = {row.iterator for row in rows}
        bounds = [bound for row in rows for bound in (row.lower, row.upper)]
        if all(isinstance(bound, IndexLiteral) for bound in bounds) or any(inside & variables(own) for own in bounds):
            return nest
        if any(row.step != 1 for row in rows):
            return nest  # where a loop begins says which of the values it takes
        whole: LoopTree = rows[-1].body
        some: LoopTree = rows[-1].body
        fits: list[IndexExpression] = []
        ends = self.ends(path, rows)
        if not ends:
            return nest
        for row, (least, most) in reversed(list(zip(rows, ends, strict=True))):
            if most - least >= (_MOST_LANES if row.kind is LoopKind.VECTOR else _MOST_ROWS):
                return nest
            if row.kind is LoopKind.REGISTER and variables(row.lower) | variables(row.upper) <= copied:
                whole, some = replace(row, body=whole), replace(row, body=some)
                continue
            first, last, iterator = IndexLiteral(least), IndexLiteral(most), IndexVariable(row.iterator)
            fits += [*_above(first, row.lower, least), *_below(last, row.upper, most)]
            each = [*_above(iterator, row.lower, least), *_below(iterator, row.upper, most)]
            whole = replace(row, lower=first, upper=last, body=whole)
            some = replace(row, lower=first, upper=last, body=Guard(_all(each), some, None) if each else some)
        tested = self.tested(fits, path)
        return Guard(_all(tested), whole, some) if tested else whole

    def tested(self, conditions: list[IndexExpression], path: tuple[Step, ...]) -> list[IndexExpression]:
        """Those of the conditions of which it is not known from constants that they hold at a path's end."""
        ranges = size_ranges(self.sizes)
        for step in path:
            match step:
                case Loop():
                    ranges = {**ranges, step.iterator: iterator_range(step, ranges)}
                case (condition, True):
                    ranges = ranges_where(condition, ranges)
        return [own for own in conditions if range_of(own, ranges) != Range(1, 1)]

    def ends(self, path: tuple[Step, ...], rows: list[Loop]) -> list[tuple[int, int]]:
        """The least and the greatest value of the iterator of every row, in all steps; nothing where it has none."""
        inner = (*path, *rows)
        points = follow_path(inner, frame_of_path(inner, self.context, self.sizes)).points
        outside = points.dim(isl.dim_type.set) - len(rows)
        places = () if points.is_empty() else range(outside, outside + len(rows))
        values = [(points.dim_min_val(n).ceil(), points.dim_max_val(n).floor()) for n in places]
        if not all(least.is_int() and most.is_int() for least, most in values):
            return []
        return [(int(least.to_python()), int(most.to_python())) for least, most in values]


def _above(value: IndexExpression, lower: IndexExpression, least: int) -> Iterator[IndexExpression]:
    """That a value, which is ``least`` at least, is not below a lower bound."""
    match lower:
        case IndexLiteral(number) if number <= least:
            return
        case IndexOperation(IndexOperator.MAXIMUM, parts):
            for part in parts:
                yield from _above(value, part, least)
        case _:
            yield IndexOperation(IndexOperator.LESS_EQUAL, (lower, value))


def _below(value: IndexExpression, upper: IndexExpression, most: int) -> Iterator[IndexExpression]:
    """That a value, which is ``most`` at most, is not above an upper bound."""
    match upper:
        case IndexLiteral(number) if number >= most:
            return
        case IndexOperation(IndexOperator.MINIMUM, parts):
            for part in parts:
                yield from _below(value, part, most)
        case IndexOperation(
            IndexOperator.SUBTRACT, (IndexOperation(IndexOperator.MINIMUM, parts), IndexLiteral() as less)
        ):
            for part in parts:
                yield from _below(value, _less(part, less), most)
        case _:
            yield IndexOperation(IndexOperator.GREATER_EQUAL, (upper, value))


def _less(value: IndexExpression, less: IndexLiteral) -> IndexExpression:
    if isinstance(value, IndexLiteral):
        return IndexLiteral(value.value - less.value)
    return IndexOperation(IndexOperator.SUBTRACT, (value, less))


def _all(conditions: list[IndexExpression]) -> IndexExpression:
    return reduce(lambda left, right: IndexOperation(IndexOperator.AND, (left, right)), conditions)


def rows_of(nest: LoopTree) -> Iterator[Loop]:
    """The loops of the rows of a tile, from the outermost, and that of the lanes."""
    while isinstance(nest, Loop) and nest.kind in (LoopKind.REGISTER, LoopKind.VECTOR):
        yield nest
        nest = nest.body

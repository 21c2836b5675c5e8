"""Index-set splitting: full tiles are separated from partial ones, since a register tile needs constant trip counts.

Where the size of a register tile does not divide a loop, isl bounds the loop over the tile's points by a minimum.  A
guard around the tile decides between the two cases, so that either can be unrolled into registers.  Short rows, as of a
packed operand, are separated likewise: of loops whose length is known compilers make a few vectors.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, assert_never

import islpy as isl

from tc.base.frozen import frozen
from tc.language.program.specialization import Sizes
from tc.polyhedral.analysis.index_functions import index_function
from tc.polyhedral.execution.barriers import Step
from tc.polyhedral.execution.loop_execution import follow_path, frame_of_path, loop_paths
from tc.polyhedral.ir.loops import (
    Allocation,
    Barrier,
    Block,
    Guard,
    IndexExpression,
    IndexLiteral,
    IndexOperation,
    IndexOperator,
    Leaf,
    Loop,
    LoopKind,
    LoopTree,
    Scheduled,
    leaves,
    variables,
)

# Elements of a row that is copied: for fewer, what compilers do because they do not know the length dominates.
_SHORT: Final = 64


@frozen
class _Minimum:
    """``bound``, an upper bound, is the minimum of ``number`` and ``other``."""

    bound: IndexExpression
    number: IndexLiteral
    other: IndexExpression

    @property
    def partial(self) -> IndexExpression:
        """The bound where it is below the number, with what it is at most, which ranges of variables may not say.

        In this order it is no minimum to be separated.
        """
        return IndexOperation(IndexOperator.MINIMUM, (self.other, IndexLiteral(self.number.value - 1)))


def separate_tiles(
    root: LoopTree, context: isl.Context, sizes: Sizes = (), copies: frozenset[str] = frozenset()
) -> LoopTree:
    """The loops with a guard around every register tile that is partial somewhere.

    ``copies``: the statements that pack operands, whose short rows are separated likewise.
    All threads get to barriers, so the guards are around what is between them.
    """
    return _Separator(context, sizes, copies).visit(root, (), in_tile=False)


@dataclass(frozen=True)
class _Separator:
    context: isl.Context
    sizes: Sizes
    copies: frozenset[str]

    def visit(self, tree: LoopTree, path: tuple[Step, ...], *, in_tile: bool) -> LoopTree:
        begins = isinstance(tree, Allocation) and not _allocates(tree.body)
        in_tile = in_tile or begins or self.copies_short_rows(tree)
        if in_tile and not any(isinstance(leaf, Barrier) for leaf in leaves(tree)):
            return self.separate(tree, path)
        match tree:
            case Leaf():
                return tree
            case Block(children):
                below = (self.visit(child, (*path, n), in_tile=in_tile) for n, child in enumerate(children))
                return Block(tuple(below))
            case Guard(condition, then, otherwise):
                if otherwise is not None:
                    otherwise = self.visit(otherwise, (*path, (condition, False)), in_tile=in_tile)
                return Guard(condition, self.visit(then, (*path, (condition, True)), in_tile=in_tile), otherwise)
            case Loop() | Allocation():
                return replace(tree, body=self.visit(tree.body, (*path, tree), in_tile=in_tile))
            case _:
                assert_never(tree)

    def copies_short_rows(self, tree: LoopTree) -> bool:
        """Whether a nest copies rows of a few vectors, some of which are shorter than others."""
        if not isinstance(tree, Loop):
            return False
        inside = {leaf.statement for leaf in leaves(tree) if isinstance(leaf, Scheduled)}
        return inside <= self.copies and any(found.number.value < _SHORT for found in _minima(tree))

    def separate(self, tile: LoopTree, path: tuple[Step, ...]) -> LoopTree:
        """The tile for either side of the first minimum in it, and so on for the others."""
        found = next(_minima(tile), None)
        if found is None:
            return tile
        frame = frame_of_path(path, self.context, self.sizes)
        points = follow_path(path, frame).points
        values = index_function(found.other, frame)
        short = points.intersect(values.lt_set(index_function(found.number, frame)))
        full = _bounded(tile, found.bound, found.number)
        if short.is_empty():
            return self.separate(full, path)
        rest = _single_value(short, values)
        partial = _bounded(tile, found.bound, found.partial if rest is None else IndexLiteral(rest))
        if short.is_equal(points):
            return self.separate(partial, path)
        fits = IndexOperation(IndexOperator.LESS_EQUAL, (found.number, found.other))
        then = self.separate(full, (*path, (fits, True)))
        return Guard(fits, then, self.separate(partial, (*path, (fits, False))))


def _single_value(points: isl.Set, function: isl.PwAff) -> int | None:
    """The value of the function where it is the same at all points."""
    values = isl.Map.from_pw_aff(function).intersect_domain(points).range()
    least, most = values.dim_min_val(0), values.dim_max_val(0)
    return int(least.to_python()) if least.is_int() and least.eq(most) else None


def _minima(tile: LoopTree) -> Iterator[_Minimum]:
    """Upper bounds of the loops of a register tile that are minima of a number and something from outside of it."""
    for _, path in loop_paths(tile, ()):
        inside: set[str] = set()
        for step in path:
            if isinstance(step, Loop):
                found = _minimum(step.upper) if step.kind in (LoopKind.REGISTER, LoopKind.VECTOR) else None
                if found is not None and not inside & variables(found.other):
                    yield found
                inside.add(step.iterator)


def _minimum(upper: IndexExpression) -> _Minimum | None:
    match upper:
        case IndexOperation(IndexOperator.MINIMUM, (IndexLiteral() as number, other)):
            return _Minimum(upper, number, other)
        case IndexOperation(
            IndexOperator.SUBTRACT,
            (IndexOperation(IndexOperator.MINIMUM, (IndexLiteral(value), other)), IndexLiteral(1) as one),
        ):
            return _Minimum(upper, IndexLiteral(value - 1), IndexOperation(IndexOperator.SUBTRACT, (other, one)))
        case _:
            return None


def _bounded(tree: LoopTree, bound: IndexExpression, value: IndexExpression) -> LoopTree:
    """The tree with one upper bound of loops replaced by another."""
    match tree:
        case Leaf():
            return tree
        case Block(children):
            return Block(tuple(_bounded(child, bound, value) for child in children))
        case Guard(condition, then, otherwise):
            other = None if otherwise is None else _bounded(otherwise, bound, value)
            return Guard(condition, _bounded(then, bound, value), other)
        case Loop():
            upper = value if tree.upper == bound else tree.upper
            return replace(tree, upper=upper, body=_bounded(tree.body, bound, value))
        case Allocation():
            return replace(tree, body=_bounded(tree.body, bound, value))
        case _:
            assert_never(tree)


def _allocates(tree: LoopTree) -> bool:
    return any(isinstance(step, Allocation) for _, path in loop_paths(tree, ()) for step in path)

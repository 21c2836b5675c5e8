"""Horizontal fusion: independent nests become one kernel, each block of which runs one of them.

Blocks are numbered along x, those of the second nest after those of the first, and so on.  A launch takes longer than a
short kernel runs, and fused nests run concurrently.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from collections.abc import Sequence as Items
from dataclasses import replace
from itertools import groupby

from tc.base.frozen import frozen
from tc.base.grid import MOST_BLOCKS, MOST_THREADS
from tc.polyhedral.analysis.ranges import Ranges
from tc.polyhedral.analysis.substitute import substituted_in
from tc.polyhedral.execution.loop_execution import loop_paths
from tc.polyhedral.generate.outermost_nests import OutermostNest, outermost_nests
from tc.polyhedral.ir.loops import (
    Block,
    Guard,
    IndexExpression,
    IndexLiteral,
    IndexOperation,
    IndexOperator,
    IndexVariable,
    Loop,
    LoopKind,
    LoopTree,
)
from tc.polyhedral.ir.scop import Scop


@frozen
class Limits:
    """What nests in one kernel keep to.

    ``instances``: the most of a nest that is joined with others; None for any number.  ``shared``: the most bytes of
    memory that the threads of a block share.  ``branches``: threads may wait for each other in a branch that not all
    blocks take.
    """

    instances: int | None
    shared: int
    branches: bool


def join_kernels(root: LoopTree, scop: Scop, ranges: Ranges, limits: Limits) -> LoopTree:
    """The loops in as few kernels as the conflicts between their nests allow; ``ranges``: of the open sizes."""
    match root:
        case Loop(kind=LoopKind.LAUNCH):
            return replace(root, body=join_kernels(root.body, scop, ranges, limits))
        case Block(children):
            parts: list[LoopTree] = []
            for launched, own in groupby(children, _is_launched):
                if launched:
                    parts += (join_kernels(child, scop, ranges, limits) for child in own)
                else:
                    parts += _joined_nests(Block(tuple(own)), scop, ranges, limits)
            return Block(tuple(parts))
        case _:
            return root


def _is_launched(tree: LoopTree) -> bool:
    """Whether the nests inside are launched for each iteration."""
    return isinstance(tree, Loop) and tree.kind is LoopKind.LAUNCH


def _joined_nests(root: Block, scop: Scop, ranges: Ranges, limits: Limits) -> Iterator[LoopTree]:
    """The same of nests that follow each other."""
    kernels: list[list[OutermostNest]] = []
    for nest in outermost_nests(root, scop, ranges):
        waits = [n for n, others in enumerate(kernels) if any(nest.conflicts(other) for other in others)]
        free = kernels[max(waits, default=-1) + 1 :]
        joined = next((own for own in free if what_parts((*own, nest), limits) is None), None)
        if joined is None:
            kernels.append([nest])
        else:
            joined.append(nest)
    return map(_joined, kernels)


def what_parts(nests: Items[OutermostNest], limits: Limits) -> str | None:
    """Why the nests are not one kernel, although none waits for another one; None if they can be."""
    grids = [_grid(nest.loops) for nest in nests]
    if None in grids:
        return "how many blocks it has is open"
    meet = any(nest.meets for nest in nests)
    if meet and not limits.branches:
        return "threads of a block wait for each other, which the target gets wrong in a branch"
    blocks = set(_blocks(nests))
    if meet and len(blocks) > 1:
        return "threads of a block wait for each other, and their blocks are of different sizes"
    if math.prod(map(max, zip(*blocks, strict=True))) > MOST_THREADS:
        return f"blocks with the threads of either would have more than {MOST_THREADS}"
    if sum(nest.shared_bytes for nest in nests) > limits.shared:
        return f"they would share more than {limits.shared} bytes in a block"
    if sum(math.prod(grid) for grid in grids if grid is not None) > MOST_BLOCKS[0]:
        return f"they would have more than {MOST_BLOCKS[0]} blocks"
    # Last, so that what is said of a kernel that was joined is said of one of its nests, too.
    if limits.instances is not None and any(nest.instances > limits.instances for nest in nests):
        return f"one of them has more than {limits.instances} instances"
    return None


def _blocks(nests: Items[OutermostNest]) -> list[tuple[int, ...]]:
    """The threads of the blocks of each, x last, with as many dimensions for all."""
    most = max(len(nest.sizes.block) for nest in nests)
    return [(*[1] * (most - len(nest.sizes.block)), *nest.sizes.block) for nest in nests]


def _grid(nest: LoopTree) -> tuple[int, ...] | None:
    """The blocks along each of the loops over them, which are outermost, x last; None where that is open."""
    found: list[int] = []
    while isinstance(nest, Loop) and nest.kind is LoopKind.BLOCK:
        if nest.lower != IndexLiteral(0) or not isinstance(nest.upper, IndexLiteral) or nest.step != 1:
            return None
        found.append(nest.upper.value + 1)
        nest = nest.body
    below = (step for _, path in loop_paths(nest, ()) for step in path if isinstance(step, Loop))
    return tuple(found) if found and all(loop.kind is not LoopKind.BLOCK for loop in below) else None


def _joined(nests: Items[OutermostNest]) -> LoopTree:
    """One loop over the blocks of all of them."""
    if len(nests) == 1:
        return nests[0].loops
    block = IndexVariable("block")
    end, branches = 0, list[tuple[int, LoopTree]]()
    for nest, threads in zip(nests, _blocks(nests), strict=True):
        number = block if end == 0 else IndexOperation(IndexOperator.SUBTRACT, (block, IndexLiteral(end)))
        own = _in_block(nest.loops, number)
        for dimension in range(len(threads) - len(nest.sizes.block)):
            own = Loop(f"thread{dimension}", IndexLiteral(0), IndexLiteral(0), 1, LoopKind.THREAD, own)
        branches.append((end, own))
        end += math.prod(_grid(nest.loops) or ())
    first, body = branches.pop()
    while branches:
        condition = IndexOperation(IndexOperator.LESS, (block, IndexLiteral(first)))
        first, own = branches.pop()
        body = Guard(condition, own, body)
    return Loop(block.name, IndexLiteral(0), IndexLiteral(end - 1), 1, LoopKind.BLOCK, body)


def _in_block(nest: LoopTree, number: IndexExpression) -> LoopTree:
    """What the block of this number does, x counted first."""
    extents: dict[str, int] = {}
    for extent in _grid(nest) or ():
        assert isinstance(nest, Loop)
        extents[nest.iterator], nest = extent, nest.body
    values: dict[str, IndexExpression] = {}
    outermost = next(iter(extents))
    for iterator, extent in reversed(extents.items()):
        size = IndexLiteral(extent)
        rest = IndexOperation(IndexOperator.NONNEGATIVE_REMAINDER, (number, size))
        values[iterator] = number if iterator == outermost else rest
        number = IndexOperation(IndexOperator.NONNEGATIVE_DIVIDE, (number, size))
    return substituted_in(nest, values)

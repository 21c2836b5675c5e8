"""Matrix instructions: what warps multiply together, and the fragments that they read for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, assert_never

import numpy as np

from tc.base.dots import Products
from tc.base.grid import WARP
from tc.polyhedral.gpu.cost.lane_values import value_of
from tc.polyhedral.gpu.cost.scope import Scope
from tc.polyhedral.gpu.cost.tally import Tally, tally
from tc.polyhedral.ir.loops import Allocation, Block, GroupMma, Guard, Lay, Leaf, Loop, LoopTree, Mma

# Rows or columns of a fragment are this far apart in a lane.
_APART: Final = 8
# Bytes of a register of a lane, which holds several elements, and of a half.
_REGISTER: Final = 4
_HALF: Final = 2
# Of what one instruction loads for a warp (PTX: ``ldmatrix.x4``), in the clocks of the banks without conflicts.
_LOADED: Final = 512
_CLOCKS: Final = 4
# Warps of a group, and bytes that shared memory delivers in a clock.
_WARPS: Final = 4
_CLOCK: Final = 128
# Instructions for products of numbers that are sums of two.
_THREE: Final = 3


def matrix_products(node: Mma, scope: Scope) -> Tally:
    """What the warps ask for: their multiply-adds, and both operands read once for all of them."""
    trips = dict(_trips(node.nest, scope))
    rows, steps = _APART * trips[node.rows], trips[node.steps]
    columns = _APART * (1 if node.columns is None else trips[node.columns])
    products = rows * columns * steps
    itemsize = _REGISTER / node.shape.elements
    read = clocks = 0.0
    for own, length in ((node.left, rows), (node.right, columns)):
        size = length * steps * itemsize
        # What lies apart is read element by element.
        instructions = length * steps / WARP if own.lay is Lay.APART else size / _LOADED
        read += instructions
        clocks += instructions if own.lay is Lay.APART else _CLOCKS * instructions
    shape = node.shape
    products *= _THREE if shape.operands == Products.THREE_TF32.value else 1
    each = tally(
        tensor=products * itemsize / _HALF,  # bytes take half of the time, numbers of 32 bits twice as much
        matrix=products / (shape.m * shape.n * shape.k),
        shared_reads=read,
        shared_wavefronts=clocks,
    )
    return each * scope.instances + tally(shared_waits=1, chain=2 * steps / shape.k)


def group_products(node: GroupMma, scope: Scope) -> Tally:
    """What groups of four warps ask for: each instruction reads its operands from shared memory."""
    trips, shape = dict(_trips(node.nest, scope)), node.shape
    groups = scope.instances / _WARPS
    read = (shape.m + shape.n) * shape.k * _HALF / _CLOCK
    each = tally(tensor=shape.m * shape.n * shape.k, matrix=_WARPS, shared_wavefronts=read)
    return each * (groups * trips[node.chunks]) + tally(shared_waits=1, chain=trips[node.chunks])


def _trips(tree: LoopTree, scope: Scope) -> Iterator[tuple[str, int]]:
    """How often the loops of a nest run; points that guards leave out are computed, too."""
    match tree:
        case Loop():
            lower, upper = (value_of(bound, scope.values) for bound in (tree.lower, tree.upper))
            trips = int(np.max((upper - lower) // tree.step)) + 1
            yield tree.iterator, trips
            inside = {**scope.values, tree.iterator: np.asarray(lower)}
            yield from _trips(tree.body, Scope(inside, scope.active))
        case Guard(_, then, _):
            yield from _trips(then, scope)
        case Block(children):
            for child in children:
                yield from _trips(child, scope)
        case Allocation(_, body):
            yield from _trips(body, scope)
        case Leaf():
            return
        case _:
            assert_never(tree)

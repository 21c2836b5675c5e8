"""What matrix instructions ask for: the loads of their operands from shared memory, and the products."""

from __future__ import annotations

import math
from typing import Final

from tc.polyhedral.gpu.cost.scope import Scope
from tc.polyhedral.gpu.cost.tally import Tally, tally
from tc.polyhedral.ir.loops import Fragment, Guard, IndexLiteral, Lay, Loop, LoopTree, Mma

# Registers of a lane for a block of the left and of the right factor, and those that one instruction loads.
_LEFT: Final = 4
_RIGHT: Final = 2
_AT_ONCE: Final = 4
# Multiply-adds of halves in the time of one instruction; those of bytes take twice as many steps in it.
_MULTIPLY_ADDS: Final = 16 * 8 * 16
# An instruction that needs the sums of another one waits as long as for so many operations.
_CHAIN: Final = 5


def matrix_demand(node: Mma, scope: Scope) -> Tally:
    """What all warps ask for that run the node."""
    counts = _counts(node)
    rows, columns = counts[node.rows] // 2, 1 if node.columns is None else counts[node.columns]
    loads = _loads(node, node.left, rows * _LEFT) + _loads(node, node.right, columns * _RIGHT)
    products = tally(matrix=rows * columns, tensor=rows * columns * _MULTIPLY_ADDS)
    copies = math.prod(length for _, length in scope.axes)
    return (loads + products) * scope.instances + tally(chain=_CHAIN * copies, shared_waits=copies)


def _loads(node: Mma, fragment: Fragment, registers: int) -> Tally:
    """Of the registers of a factor; rows of eight matrices are padded to lie in different banks."""
    if fragment.lay is not Lay.APART:
        return tally(shared_reads=registers / _AT_ONCE, shared_wavefronts=registers)
    elements = node.shape.elements
    return tally(
        shared_reads=registers * elements,
        shared_wavefronts=registers * elements,
        alu=registers * (elements - 1),
    )


def _counts(node: Mma) -> dict[str, int]:
    """How many iterations those loops of a lane have that are of whole blocks."""
    found: dict[str, int] = {}
    nest: LoopTree = node.nest
    while isinstance(nest, Loop | Guard):
        match nest:
            case Loop(iterator, IndexLiteral(lower), IndexLiteral(upper)):
                found[iterator] = len(range(lower, upper + 1, nest.step))
            case _:
                pass
        nest = nest.body if isinstance(nest, Loop) else nest.then
    return found
